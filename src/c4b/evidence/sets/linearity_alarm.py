"""An e-process against means that are linear in the features, for rewards in a declared range.

Derived in docs/theory.md, section "Alarms": for numbers phi_t that are fixed before their rewards, and
T = sum phi Y, F = sum phi x, with probability 1 - delta p, for all numbers of rows at once,

    |T - F theta*| <= R sqrt(W),   R^2 + 2 log Q_1(R, c) = log(W / l) + 2 log(1 / (delta p)),       (L)

which is (B) in one dimension. If no theta of the confidence set has that, means are not linear. phi is
what Ramsey's test looks at: the square of the fitted mean, less what the features explain of it.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.alarms import NOT_LINEAR
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import ALARM, COUNT, SQUARES_SUM, Data, Region, Terms

PRIOR = 20.0
"""l in units of w^2, w the length of the range."""
REACH_SQUARED = 30.0
"""c^2."""
FLAT = 1e-8
"""Least variance of fitted means, in units of w^2: means that differ less than that have no curvature."""
LARGEST = 1e100
"""Larger fitted means are no numbers to bet on: arithmetic is at its end there."""
SAFE = 1.0 + 1e-9
"""Covers a few hundred roundings in numbers that do not cancel."""


class Curvature(NamedTuple):
    """Views of the last numbers of ``Data.extra`` before the totals."""

    fitted: Array  # (d,) theta of an earlier ridge regression
    explained: Array  # (d,) what a regression of squares on features found then
    squares: Array  # (d,) sum of x times the square of the fitted mean
    features: Array  # (d,) F
    sums: Array  # (7,) entries below


TOTAL, WEIGHT, ABSOLUTE, SIZE, SPREAD, CENTRE, SCALE = 0, 1, 2, 3, 4, 5, 6
"""Entries of ``Curvature.sums``: T; sum s phi^2 = W - l; sum |phi|; sum |phi| ||x||; sum of squared
deviations of fitted means; centre and variance of fitted means at the last renewal."""


def curvature_size(dim: int) -> int:
    """Numbers in ``Curvature``."""
    return 4 * dim + 7


def curvature_of(extra: Array, end: int, dim: int) -> Curvature:
    """The numbers of ``extra`` before ``end`` by names; writing to them writes to it."""
    start = end - (4 * dim + 7)
    return Curvature(
        shaped_view(extra, start, (dim,)),
        shaped_view(extra, start + dim, (dim,)),
        shaped_view(extra, start + 2 * dim, (dim,)),
        shaped_view(extra, start + 3 * dim, (dim,)),
        shaped_view(extra, start + 4 * dim, (7,)),
    )


opened_curvature = inlined(curvature_of)


@called
def renew_curvature(data: Data, curvature: Curvature, mean: float, factor: Array) -> None:
    """Fit rewards and squares afresh to all rows so far; ``factor`` (d, d) is scratch, ``mean`` that of
    all rewards so far."""
    dim, count, sums = len(data.moment), data.tally[COUNT], curvature.sums
    width_squared = data.mixing * data.mixing
    sums[CENTRE] = mean
    sums[SCALE] = sums[SPREAD] / count + FLAT * width_squared if count > 0.0 else 0.0
    for i in range(dim):
        for k in range(i + 1):
            total = data.gram[i, k] + (data.ridges[0] if i == k else 0.0)
            for n in range(k):
                total -= factor[i, n] * factor[k, n]
            factor[i, k] = math.sqrt(max(total, data.ridges[0])) if i == k else total / factor[k, k]
    for target, out in ((data.moment, curvature.fitted), (curvature.squares, curvature.explained)):
        for i in range(dim):
            total = target[i]
            for k in range(i):
                total -= factor[i, k] * out[k]
            out[i] = total / factor[i, i]
        for i in range(dim - 1, -1, -1):
            total = out[i]
            for k in range(i + 1, dim):
                total -= factor[k, i] * out[k]
            total /= factor[i, i]
            out[i] = total if abs(total) < LARGEST else 0.0


@called
def bet(curvature: Curvature, x: Array) -> float:
    """phi of a row, between -1 and 1, before its reward is looked at; enters the row's square."""
    dim, sums = len(x), curvature.sums
    if not sums[SCALE] > 0.0:
        return 0.0
    fitted, explained, size = -sums[CENTRE], 0.0, 0.0
    for i in range(dim):
        fitted += x[i] * curvature.fitted[i]
        explained += x[i] * curvature.explained[i]
        size += x[i] * x[i]
    if not (abs(fitted) < LARGEST and abs(explained) < LARGEST):
        return 0.0
    square = min(0.25 * fitted * fitted / sums[SCALE], 1.0)
    for i in range(dim):
        curvature.squares[i] += square * x[i]
    sums[SPREAD] += fitted * fitted
    phi: float = min(max(square - explained, -1.0), 1.0)
    sums[ABSOLUTE] += abs(phi)
    sums[SIZE] += abs(phi) * math.sqrt(size)
    return phi


@inlined
def enter_bet(curvature: Curvature, x: Array, y: float, phi: float, weight: float) -> None:
    """One row into T, F and W."""
    for i in range(len(x)):
        curvature.features[i] += phi * x[i]
    curvature.sums[TOTAL] += phi * y
    curvature.sums[WEIGHT] += weight * phi * phi


@inlined
def shape_of(curvature: Curvature, width: float) -> float:
    """W."""
    shape: float = PRIOR * width * width + curvature.sums[WEIGHT]
    return shape


@called
def radius_in_one_dimension(level: float) -> float:
    """At least the R with R^2 + 2 log Q_1(R, c) = level; inf beyond R = c."""
    reach, half = math.sqrt(REACH_SQUARED), math.sqrt(0.5)
    low, high = 0.0, reach
    for n in range(60):
        middle = high if n == 0 else 0.5 * (low + high)
        inside = 0.5 * (math.erf((reach - middle) * half) + math.erf((reach + middle) * half))
        if middle * middle + 2.0 * math.log(inside) >= level:
            high = middle
        elif n == 0:
            return np.inf
        else:
            low = middle
    return high * SAFE


@called
def watch_linearity(
    region: Region, data: Data, terms: Terms, curvature: Curvature, log_share: float
) -> None:
    """Latch an alarm when (L) holds for no theta of the set; ``log_share`` is log(1 / p).

    A mean within epsilon of linear moves T by at most epsilon sum |phi|.
    """
    if data.tally[ALARM] != 0.0 or not curvature.sums[WEIGHT] > 0.0:
        return
    sums, count, width = curvature.sums, data.tally[COUNT], data.mixing
    shape = shape_of(curvature, width) * (SAFE + 4.0 * count * UNIT)
    level = math.log(shape / (PRIOR * width * width)) + terms.log_term + 2.0 * log_share
    low, high = interval(region, curvature.features)
    beyond = max(sums[TOTAL] - high, low - sums[TOTAL]) - terms.misspecification * sums[ABSOLUTE]
    rounding = math.sqrt(sums[ABSOLUTE] * data.tally[SQUARES_SUM]) + region.norm_bound * sums[SIZE]
    beyond -= 4.0 * (count + 16.0) * UNIT * rounding
    if not beyond > math.sqrt(level * shape):  # R^2 is at least the level
        return
    if beyond > radius_in_one_dimension(level) * math.sqrt(shape):
        data.tally[ALARM] = NOT_LINEAR
