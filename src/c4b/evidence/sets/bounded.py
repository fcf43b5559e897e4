"""``bounded``: rewards in a declared range; their variance is learned, nobody declares a noise scale.

Assumes A1, A3 to A5 of docs/theory.md and rewards within a range of length w. Derived in its section
"Bounded rewards": with weights s_t as in ``take`` and W = l I + sum s_t x x^T, on one event of
probability 1 - delta, for each of the prior scales l at once,

    ||m - A theta||_{W^-1} <= R,   R^2 + 2 log Q_d(R, c) = log det(W / l) + 2 log(1 / (delta p)),   (B)

p the share of delta that the scale has, Q_d(R, c) the probability that a standard normal vector around a
point at distance R of 0 lies within c of 0. With N = A W^-1 A and t = A W^-1 m every multiplier a > 0 of
the norm constraint gives the ellipsoid

    V = N + a I,  centre = V^-1 t,  radius^2 = (R + drift)^2 + a S^2 - m W^-1 m + t V^-1 t.

They share the eigenvectors of N, which therefore is what ``Region.basis`` holds here. Which scale is used
may be chosen from the data. ``bounded-2`` has other prior scales, gives most of delta to the two that
serve thousands of rows, and watches whether means are linear; ``bounded-3`` has both sums of rewards on
one event (``c4b.evidence.joint_totals``) and more of delta for the first scale where features are few.
``bounded`` and ``bounded-2`` stay for what was recorded with them. Shapes: J = SCALES prior scales,
G = ELLIPSOIDS, d features.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from c4b._jit import called, inlined
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.eigenbasis import distance, misturn, polish
from c4b.evidence.ellipsoids import BOUNDED, BOUNDED_2, BOUNDED_3, COUNT, LOG_DET, Data, Region, Terms
from c4b.evidence.rounding import UNIT
from c4b.evidence.sets.confidence_set import ConfidenceSet
from c4b.evidence.sets.linearity_alarm import (
    REACH_SQUARED,
    bet,
    curvature_size,
    enter_bet,
    opened_curvature,
    renew_curvature,
    shape_of,
    watch_linearity,
)
from c4b.evidence.spectral import lose, write_radius, write_slack
from c4b.evidence.totals import bound_together, bound_totals, enter_totals, totals_size

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

POWERS = (
    (3.0, 30.0, 300.0, 1500.0, 15000.0),
    (3.0, 30.0, 300.0, 1000.0, 10000.0),
    (0.75, 10.0, 300.0, 1000.0, 10000.0),
)
"""Prior scales l in units of lambda w^2, of ``bounded``, ``bounded-2`` and ``bounded-3``. Small ones suit
few rows."""
SCALES = len(POWERS[0])
SHARES_OF_SECOND = (0.16, 0.05, 0.18, 0.27, 0.04)
"""Share of delta that each prior scale of ``bounded-2`` has."""
FEW_ROWS = 0.36
"""Over d: what the first scale of ``bounded-3`` has more, for few rows of few features. All others, the
sums and the bet have the share 1 - 3 / (7 d) of what they have in ``bounded-2``."""
SUM_SHARE_OF_SECOND = 0.13
"""Share of delta that each of the two sums in ``c4b.evidence.totals`` has there."""
LINEARITY_SHARE = 0.04
"""Share of delta that the alarm against means that are not linear has there."""
LOG_SHARES = ((math.log(7.0),) * SCALES, *(tuple(-math.log(share) for share in SHARES_OF_SECOND),) * 2)
"""log(1 / p) of each prior scale: in ``bounded`` scales and sums have the same share."""
LOG_SUM_SHARES = (math.log(7.0), -math.log(SUM_SHARE_OF_SECOND), -math.log(2.0 * SUM_SHARE_OF_SECOND))
"""log(1 / p) of each sum, in ``bounded-3`` of both together."""
LOG_LINEARITY_SHARE = -math.log(LINEARITY_SHARE)
ELLIPSOIDS = 16
"""G: multipliers of the norm constraint."""
REACHES = (
    (5.0, 5.0, 5.0, 10.0, 21.0),
    (25.0, 16.0, 12.0, 12.0, 16.0),
    (25.0, 20.0, 12.0, 12.0, 16.0),
)
REACH_OF_A_FEATURE = (3.0, 2.0, 2.0)
"""c^2 of each scale is a constant and so much for each feature. A larger c cuts off less of the average
and asks for more data before squared deviations count."""
REACH_OF_FEW_ROWS = 4.0
"""What the first scale of ``bounded-3`` has more: squared deviations hardly count with few rows."""
STEEPEST = 0.95
"""Largest b for which a squared residual bounds a reward's noise; g(b) grows without limit towards 1."""
DOUBT = 4.0
"""Rows of the largest variance, w^2 / 4, that the first guess of the variance counts for."""
RENEW = 0.0625
"""Share by which the observations grow before leverages and the scale are computed afresh."""
NEARLY_FREE = 0.004
"""Smallest a S^2 / R^2."""
LARGEST = 650.0
"""Largest logarithm of (B) that is solved; beyond it the set says nothing but the norm ball."""
SAFE = 1.0 + 1e-9
"""Covers a few hundred roundings in numbers that do not cancel."""


def _multipliers() -> Array:
    """a S^2 / R^2 of each ellipsoid, as in ``several_ridges``: uniform in phi, tan^2(phi / 2)."""
    factors = np.tan(0.5 * (np.arange(ELLIPSOIDS) + 0.5) * np.pi / ELLIPSOIDS) ** 2
    factors[0] = min(factors[0], NEARLY_FREE)
    return np.asarray(factors)


MULTIPLIERS = _multipliers()


# -- what the set remembers --------------------------------------------------------------------


class Learned(NamedTuple):
    """Views of ``Data.extra``."""

    shapes: Array  # (J, d, d) sum s_t x x^T
    roots: Array  # (J, d, d) L^-1 for a Cholesky factor L of an earlier W
    stretch: Array  # (J,) what rounding can add to ||L^-1 x||: a factor ...
    blur: Array  # (J,) ... and a multiple of ||x||
    series: Array  # (J, K) coefficients of exp(R^2 / 2) Q_d(R, c) in powers of R^2 / (2 unit)
    sums: Array  # (6,) entries below
    factor: Array  # (d, d) L of the W in use
    half: Array  # (d, d) H = L^-1 A
    normal: Array  # (d, d) N = H^T H
    whitened: Array  # (d,) h = L^-1 m
    target: Array  # (d,) t = H^T h


REWARDS, SPREAD, SCALE, CHOSEN_AT, ROOTED_AT, UNIT_POWER = 0, 1, 2, 3, 4, 5
"""Entries of ``Learned.sums``: sum Y, sum of squared residuals around earlier means, the scale in use,
observations when it was chosen, observations when leverages were computed, unit of the series (0: none
yet)."""


def terms_of_series(dim: int) -> int:
    """K: beyond it coefficients do not matter. Leaving them out makes R larger, never smaller."""
    return 48 + 3 * dim


def learned_size(dim: int) -> int:
    """Numbers in ``Learned``, and in ``Region.totals``, which are the last ones."""
    own = (2 * SCALES + 3) * dim * dim + SCALES * (2 + terms_of_series(dim)) + 6 + 2 * dim
    return own + totals_size(dim)


def watched_size(dim: int) -> int:
    """The same with a ``Curvature`` between the two."""
    return learned_size(dim) + curvature_size(dim)


def joined_size(dim: int) -> int:
    """The same with both sums of rewards on one event."""
    return watched_size(dim) + totals_size(dim, True) - totals_size(dim)


def learned_of(extra: Array, dim: int) -> Learned:
    """``Data.extra`` by names; writing to them writes to it."""
    square = dim * dim
    terms = 48 + 3 * dim
    a = 2 * SCALES * square
    b = a + 2 * SCALES
    c = b + SCALES * terms + 6
    return Learned(
        shaped_view(extra, 0, (SCALES, dim, dim)),
        shaped_view(extra, SCALES * square, (SCALES, dim, dim)),
        shaped_view(extra, a, (SCALES,)),
        shaped_view(extra, a + SCALES, (SCALES,)),
        shaped_view(extra, b, (SCALES, terms)),
        shaped_view(extra, b + SCALES * terms, (6,)),
        shaped_view(extra, c, (dim, dim)),
        shaped_view(extra, c + square, (dim, dim)),
        shaped_view(extra, c + 2 * square, (dim, dim)),
        shaped_view(extra, c + 3 * square, (dim,)),
        shaped_view(extra, c + 3 * square + dim, (dim,)),
    )


opened_learned = inlined(learned_of)


# -- one observation ---------------------------------------------------------------------------


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
def version_of(data: Data) -> int:
    """0 for ``bounded``, 1 for ``bounded-2``, 2 for ``bounded-3``."""
    return 2 if data.code == BOUNDED_3 else 1 if data.code == BOUNDED_2 else 0


@inlined
def _weight(b: float, guess: float, gap: float, largest: float) -> float:
    """A row's s, from its b and from ``guess``, the squared deviation to expect."""
    if b <= STEEPEST:  # NaN is not
        steep = steepness(b)
        if steep * guess < largest:
            return steep * gap * gap * SAFE
    return largest * SAFE


@inlined
def reach_squared(version: int, dim: int, j: int) -> float:
    """c^2 of scale j."""
    more = REACH_OF_FEW_ROWS * dim if version > 1 and j == 0 else 0.0
    return float(REACHES[version][j] + REACH_OF_A_FEATURE[version] * dim + more)


@inlined
def steepness(b: float) -> float:
    """g(b) = 2 (-log(1 - b) - b) / b^2, for 0 <= b < 1."""
    if b < 0.02:
        return 1.0 + b * (2.0 / 3.0 + b * (0.5 + b * (0.4 + b * (1.0 / 3.0 + b * 0.3))))
    return 2.0 * (-math.log1p(-b) - b) / (b * b)


@inlined
def prior_scale(data: Data, j: int) -> float:
    """l of scale j."""
    scale: float = POWERS[version_of(data)][j] * data.ridges[0] * data.mixing * data.mixing
    return scale


@inlined
def _write_factor(data: Data, learned: Learned, j: int) -> tuple[float, float, float]:
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
    far, least, _ = _write_factor(data, learned, j)
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


# -- the radius of (B) -------------------------------------------------------------------------


@inlined
def write_series(learned: Learned, version: int, dim: int) -> None:
    """exp(z) Q_d(sqrt(2 z), c) = sum over k of P(d/2 + k, c^2/2) z^k / k!, P the regularised incomplete
    gamma function. Every term is positive; P comes from its recursion downwards, a sum."""
    last = learned.series.shape[1] - 1
    unit = (last + 1) / math.e
    learned.sums[UNIT_POWER] = unit
    for j in range(SCALES):
        y = 0.5 * reach_squared(version, dim, j)
        a = 0.5 * dim + last
        step = math.exp(a * math.log(y) - y - math.lgamma(a + 1.0))
        probability = step
        for n in range(1, 200):
            step *= y / (a + n)
            probability += step
        for k in range(last, -1, -1):
            scaled = k * math.log(unit) - math.lgamma(k + 1.0)
            learned.series[j, k] = probability * math.exp(scaled)
            a = 0.5 * dim + k - 1.0
            if k > 0:
                probability += math.exp(a * math.log(y) - y - math.lgamma(a + 1.0))


@inlined
def solved_radius(learned: Learned, j: int, level: float) -> float:
    """At least the R with R^2 + 2 log Q_d(R, c) = level at scale j; inf beyond LARGEST.

    The logarithm of the series is convex and increasing in log z, so Newton's iterates after the first
    lie above the root.
    """
    if not 0.5 * level <= LARGEST:
        return np.inf
    series, unit = learned.series[j], learned.sums[UNIT_POWER]
    z = max(0.5 * level, 1e-3) / unit
    for n in range(100):
        value, slope = 0.0, 0.0
        for k in range(len(series) - 1, -1, -1):
            slope = slope * z + value
            value = value * z + series[k]
        excess = math.log(value) - 0.5 * level
        if n > 0 and 0.0 <= excess <= 1e-8:
            break
        if -1e-9 < excess < 0.0:  # nothing but rounding
            z *= 1.0 + 1e-11
            continue
        z *= math.exp(min(-excess * value / (slope * z), 3.0))
    return math.sqrt(2.0 * unit * z) * SAFE if excess >= 0.0 else np.inf


@inlined
def level_of(log_det: float, terms: Terms, version: int, dim: int, j: int) -> float:
    """log det(W / l) + 2 log(1 / (delta p)) of scale j."""
    log_share = LOG_SHARES[version][j] + spared(version, dim)
    if version > 1 and j == 0:
        log_share = -math.log(SHARES_OF_SECOND[0] + FEW_ROWS / dim)
    return terms.log_term + log_det + 2.0 * log_share


@inlined
def spared(version: int, dim: int) -> float:
    """What all but the first scale have less of delta, as a logarithm."""
    return -math.log1p(-FEW_ROWS / ((1.0 - SHARES_OF_SECOND[0]) * dim)) if version > 1 else 0.0


# -- the set -----------------------------------------------------------------------------------


@called
def recentre_bounded(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns inf, because residuals raise no alarm here."""
    dim, count, version = len(data.moment), data.tally[COUNT], version_of(data)
    learned = opened_learned(data.extra, dim)
    if learned.sums[UNIT_POWER] == 0.0:
        write_series(learned, version, dim)
    if not learned.sums[CHOSEN_AT] <= count < (1.0 + RENEW) * learned.sums[CHOSEN_AT]:
        _choose(data, learned, terms)
        learned.sums[CHOSEN_AT] = count
    sums_level = 0.5 * terms.log_term + LOG_SUM_SHARES[version] + spared(version, dim)
    if version > 1:
        bound_together(region.totals, data.mixing, sums_level)
    else:
        bound_totals(region.totals, data.mixing, sums_level)
    j = int(learned.sums[SCALE])
    far, least, log_det = _write_factor(data, learned, j)
    level = level_of(log_det, terms, version, dim, j)
    radius = solved_radius(learned, j, level) if far < np.inf else np.inf
    if not radius < np.inf:
        lose(region)
        return np.inf
    data.tally[LOG_DET] = log_det
    trace, half_square, solving = _whiten(data, learned)
    root = math.sqrt(least)
    if terms.misspecification > 0.0:
        share = _largest_share(data, learned, least, solving)
        radius += terms.misspecification * math.sqrt(count * share * (1.0 + far / least)) * SAFE
    explained, target_square = 0.0, 0.0
    for i in range(dim):
        explained += learned.whitened[i] ** 2
        target_square += learned.target[i] ** 2
    more = 1.1 * (count + 2.0) * UNIT * trace + solving * math.sqrt(half_square)
    more = more * terms.norm_bound + solving * math.sqrt(explained)
    more += 1.1 * (count + 2.0) * UNIT * math.sqrt(trace * data.tally[3])
    reach = (math.sqrt(1.0 + far / least) * radius + more / root) * (1.0 + 32.0 * UNIT)
    polish(region.basis, data.spectrum, learned.normal, 2.0 * dim)
    apart = distance(data.spectrum)
    if not apart < np.inf:
        lose(region)
        return np.inf
    error = 1.1 * misturn(data.spectrum) * math.sqrt(target_square)
    error += 1.1 * (dim + 2) * UNIT * math.sqrt(half_square * explained)
    for i in range(dim):
        total = 0.0
        for k in range(dim):
            total += region.basis[i, k] * learned.target[k]
        data.spectrum.moment[i] = total
    level = reach**2 + apart * terms.norm_bound**2 + 2.0 * error * terms.norm_bound
    for g in range(ELLIPSOIDS):
        a = MULTIPLIERS[g] * (radius / terms.norm_bound) ** 2
        fitted = 0.0
        for i in range(dim):
            factor = 1.0 / (data.spectrum.values[i] + a)
            region.factors[g, i] = factor
            region.estimate[g, i] = data.spectrum.moment[i] * factor
            fitted += data.spectrum.moment[i] ** 2 * factor
        write_radius(region, data, g, level + a * terms.norm_bound**2 + fitted, explained)
    write_slack(region, data, terms)
    if version > 0:
        curvature = opened_curvature(data.extra, len(data.extra) - len(region.totals), dim)
        watch_linearity(region, data, terms, curvature, LOG_LINEARITY_SHARE + spared(version, dim))
    return np.inf


@inlined
def _choose(data: Data, learned: Learned, terms: Terms) -> None:
    """The scale whose ellipsoid {||m - A theta||_{W^-1} <= R} has the least volume."""
    dim, best, version = len(data.moment), np.inf, version_of(data)
    for j in range(SCALES):
        far, _, log_det = _write_factor(data, learned, j)
        if far < np.inf:
            radius = solved_radius(learned, j, level_of(log_det, terms, version, dim, j))
            volume = dim * math.log(radius * radius * prior_scale(data, j)) + log_det
            if volume < best:
                best, learned.sums[SCALE] = volume, float(j)


@inlined
def _whiten(data: Data, learned: Learned) -> tuple[float, float, float]:
    """H, h, N and t from L; returns tr A, ||H||^2 (Frobenius) and a bound of the rounding of
    L H = A and of L h = m, over ||H|| and ||h||."""
    dim, matrix, half = len(data.moment), learned.factor, learned.half
    trace, size, square = 0.0, 0.0, 0.0
    for i in range(dim):
        trace += data.gram[i, i]
        for k in range(dim):
            half[i, k] = data.gram[i, k]
        for n in range(i):
            part = matrix[i, n]
            for k in range(dim):
                half[i, k] -= part * half[n, k]
        own = matrix[i, i]
        for k in range(dim):
            half[i, k] /= own
        for k in range(dim):
            square += half[i, k] ** 2
        total = data.moment[i]
        for n in range(i):
            total -= matrix[i, n] * learned.whitened[n]
            size += matrix[i, n] ** 2
        size += matrix[i, i] ** 2
        learned.whitened[i] = total / matrix[i, i]
    _write_normal(half, learned.normal)
    for i in range(dim):
        learned.target[i] = 0.0
    for n in range(dim):
        part = learned.whitened[n]
        for i in range(dim):
            learned.target[i] += half[n, i] * part
    return trace, square, 1.1 * (dim + 2) * UNIT * math.sqrt(size)


@inlined
def _write_normal(half: Array, normal: Array) -> None:
    """N = H^T H."""
    dim = len(half)
    for i in range(dim):
        for k in range(i + 1):
            normal[i, k] = 0.0
        for n in range(dim):
            part = half[n, i]
            for k in range(i + 1):
                normal[i, k] += part * half[n, k]
    for i in range(dim):
        for k in range(i):
            normal[k, i] = normal[i, k]


@inlined
def _largest_share(data: Data, learned: Learned, least: float, solving: float) -> float:
    """At least the largest eigenvalue of L^-1 A L^-T, by its Frobenius norm; overwrites nothing but
    ``normal``, which is written again."""
    dim, matrix, half, out = len(data.moment), learned.factor, learned.half, learned.normal
    total_square, half_square = 0.0, 0.0
    for i in range(dim):
        for k in range(dim):
            total = half[i, k]
            half_square += total * total
            for n in range(k):
                total -= matrix[k, n] * out[i, n]
            out[i, k] = total / matrix[k, k]
            total_square += out[i, k] ** 2
    share = math.sqrt(total_square)
    _write_normal(half, out)
    return share + solving * (math.sqrt(half_square) / least + share / math.sqrt(least))


def _ridges(model: LinearModel) -> Array:
    """Lambda for every ellipsoid: it only scales the prior scales."""
    return np.full(ELLIPSOIDS, model.ridge)


def _width(model: LinearModel) -> float:
    """The length of the rewards' range."""
    low, high = model.rewards if model.rewards is not None else (0.0, 2.0 * model.noise)
    return high - low


SET = ConfidenceSet(
    "bounded",
    "rewards in a declared range, their variance learned, within the norm ball: for clicks and ratings",
    _ridges,
    BOUNDED,
    mixing=_width,
    extra_size=learned_size,
    needs_range=True,
)
SECOND = ConfidenceSet(
    "bounded-2",
    "bounded, narrower from some thousand rows on, with an alarm against means that are not linear",
    _ridges,
    BOUNDED_2,
    mixing=_width,
    extra_size=watched_size,
    needs_range=True,
)
THIRD = ConfidenceSet(
    "bounded-3",
    "bounded-2, with both sums of rewards on one event, and narrower with few features and few rows",
    _ridges,
    BOUNDED_3,
    mixing=_width,
    extra_size=joined_size,
    needs_range=True,
)
NAMES = (SET.name, SECOND.name, THIRD.name)
