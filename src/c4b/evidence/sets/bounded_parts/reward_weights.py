"""One observation into the set ``bounded``: its weight s_t, the sums s_t x x^T and the factors of W.

docs/theory.md, section "Bounded rewards", *Weights*: which of two weights a row has is decided before its
reward is looked at.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.ellipsoids import COUNT, Data
from c4b.evidence.sets.bounded_parts.bounded_radius import write_series
from c4b.evidence.sets.bounded_parts.bounded_versions import (
    SAFE,
    SCALES,
    prior_scale,
    reach_squared,
    version_of,
)
from c4b.evidence.sets.bounded_parts.learned_statistics import (
    REWARDS,
    ROOTED_AT,
    SPREAD,
    UNIT_POWER,
    Learned,
    opened_learned,
)
from c4b.evidence.sets.linearity_alarm import (
    REACH_SQUARED,
    bet,
    enter_bet,
    opened_curvature,
    renew_curvature,
    shape_of,
)
from c4b.evidence.sums.totals import enter_totals

STEEPEST = 0.95
"""Largest b for which a squared residual bounds a reward's noise; g(b) grows without limit towards 1."""
DOUBT = 4.0
"""Rows of the largest variance, w^2 / 4, that the first guess of the variance counts for."""
RENEW = 0.0625
"""Share by which the observations grow before leverages and the scale are computed afresh."""


@called
def take(data: Data, totals: Array, x: Array, y: float) -> None:
    """One observation into every sum s_t x x^T, before the other sums take it.

    ``data.mixing`` is the range w. The weight of a row is w^2 / 4 or g(b) (y - mean)^2, where b is at
    least c w ||x||_{W^-1}; which of the two is decided before y is looked at.
    """
    dim, width, count = len(x), data.mixing, data.tally[COUNT]
    version = version_of(data)
    learned = opened_learned(data.extra, dim)
    sums = learned.sums
    curvature = opened_curvature(data.extra, len(data.extra) - len(totals), dim)
    if sums[UNIT_POWER] == 0.0:
        write_series(learned, version, dim)
    if not sums[ROOTED_AT] <= count < (1.0 + RENEW) * sums[ROOTED_AT]:
        for j in range(SCALES):
            _write_root(data, learned, j)
        if version > 0:
            mean = sums[REWARDS] / count if count > 0.0 else 0.0
            renew_curvature(data, curvature, mean, learned.factor)
        sums[ROOTED_AT] = count
    largest = 0.25 * width * width
    guess = (DOUBT * largest + sums[SPREAD]) / (DOUBT + count)
    gap = y - sums[REWARDS] / count if count > 0.0 else 0.5 * width
    size = 0.0
    for i in range(dim):
        size += x[i] * x[i]
    for j in range(SCALES):
        square = 0.0
        for i in range(dim):
            total = 0.0
            for k in range(i + 1):
                total += learned.roots[j, i, k] * x[k]
            square += total * total
        b = math.sqrt(square) * learned.stretch[j] + learned.blur[j] * math.sqrt(size)
        b *= math.sqrt(reach_squared(version, dim, j)) * width * SAFE
        weight = _weight(b, guess if count > 0.0 else np.inf, gap, largest)
        for i in range(dim):
            for k in range(dim):
                learned.shapes[j, i, k] += weight * x[i] * x[k]
    if version > 0:
        phi = bet(curvature, x)
        if phi != 0.0:
            b = math.sqrt(REACH_SQUARED / shape_of(curvature, width)) * abs(phi) * width * SAFE
            enter_bet(curvature, x, y, phi, _weight(b, guess, gap, largest))
    enter_totals(totals, x, y, width)
    sums[SPREAD] += gap * gap
    sums[REWARDS] += y


@inlined
def _weight(b: float, guess: float, gap: float, largest: float) -> float:
    """A row's s, from its b and from ``guess``, the squared deviation to expect."""
    if b <= STEEPEST:  # NaN is not
        steep = steepness(b)
        if steep * guess < largest:
            return steep * gap * gap * SAFE
    return largest * SAFE


@inlined
def steepness(b: float) -> float:
    """g(b) = 2 (-log(1 - b) - b) / b^2, for 0 <= b < 1."""
    if b < 0.02:
        return 1.0 + b * (2.0 / 3.0 + b * (0.5 + b * (0.4 + b * (1.0 / 3.0 + b * 0.3))))
    return 2.0 * (-math.log1p(-b) - b) / (b * b)


@inlined
def write_factor(data: Data, learned: Learned, j: int) -> tuple[float, float, float]:
    """L for scale j into ``factor``; returns a bound of ||W - L L^T||, the least eigenvalue that L L^T
    can have, and a bound of log det(W / l) from above. Nothing is finite where W is not definite."""
    dim, scale, matrix = len(data.moment), prior_scale(data, j), learned.factor
    trace, log_det, size = 0.0, 0.0, 0.0
    for i in range(dim):
        for k in range(i + 1):
            total = learned.shapes[j, i, k]
            if i == k:
                total += scale
                trace += total
            for n in range(k):
                total -= matrix[i, n] * matrix[k, n]
            if i > k:
                matrix[i, k] = total / matrix[k, k]
            elif total > 0.5 * scale:
                matrix[i, i] = math.sqrt(total)
                part = math.log(total / scale)
                log_det += part
                size += abs(part)
            else:
                return np.inf, 0.0, np.inf
    far = 1.1 * (2.0 * data.tally[COUNT] + 2.0 * dim + 8.0) * UNIT * trace
    least = scale - far
    if not least > 0.5 * scale:
        return np.inf, 0.0, np.inf
    return far, least, log_det + dim * far / least + 8.0 * (dim + 2) * UNIT * (1.0 + size)


@inlined
def _write_root(data: Data, learned: Learned, j: int) -> None:
    """L^-1 of scale j and its rounding into ``roots``, ``stretch`` and ``blur``."""
    dim, root, matrix = len(data.moment), learned.roots, learned.factor
    far, least, _ = write_factor(data, learned, j)
    if not far < np.inf:
        learned.stretch[j], learned.blur[j] = 1e300, 1e300
        for i in range(dim):
            for k in range(dim):
                root[j, i, k] = 0.0
        return
    inverse_size, size = 0.0, 0.0
    for k in range(dim):
        for i in range(dim):
            total = 1.0 if i == k else 0.0
            if i < k:
                root[j, i, k] = 0.0
                continue
            for n in range(k, i):
                total -= matrix[i, n] * root[j, n, k]
            root[j, i, k] = total / matrix[i, i]
            inverse_size += root[j, i, k] ** 2
            size += matrix[i, k] ** 2
    rounding = 1.1 * (dim + 2) * UNIT * math.sqrt(inverse_size * size) / math.sqrt(least)
    learned.stretch[j] = math.sqrt(1.0 + far / least)
    learned.blur[j] = (rounding + 2.0 * (dim + 2) * UNIT * math.sqrt(inverse_size)) * learned.stretch[j]
