"""What sums of rewards say by themselves, without features: bounds of a total mean.

For rewards Y in [0, w], K = sum Y / w of any rows that are picked before their rewards, with a total mean
w Lambda, docs/theory.md (section "Totals") gives with probability 1 - delta for all numbers of rows at
once

    e(K, Lambda) = Lambda + log Gamma(1 + K) - (1 + K) log(1 + Lambda) <= log(1 / delta).          (K)

Two sums are kept: of the rows whose features are those of the first row of all, usually the incumbent's,
and of all other rows. They have one dimension where an ellipsoid has d.
"""

import math

from c4b._jit import called, inlined
from c4b._validate import Array
from c4b.evidence.rounding import UNIT

ROWS, CLICKS, OTHER_ROWS, OTHER_CLICKS, OTHERS_LOW, LOW, HIGH, FEATURES = 0, 1, 2, 3, 4, 5, 6, 7
"""Entries of ``Region.totals``: rows like the first one and their sum Y / w; the same of all other rows;
a lower bound of the other rows' total mean; bounds of the first row's mean; then its features (d,), the
sum of the other rows' features (d,) and what rounding took from that sum (d,)."""
NO_BOUND = 1e300
"""Stands where nothing is known: a state holds finite numbers only."""


def totals_size(dim: int) -> int:
    """Numbers in ``Region.totals`` of a set that has them."""
    return FEATURES + 3 * dim


@called
def least_total(clicks: float, level: float) -> float:
    """A lower bound of Lambda: no more than the smallest root of e = level, at least 0."""
    rest, power = level - math.lgamma(1.0 + clicks), 1.0 + clicks
    if not rest < 0.0:
        return 0.0
    low, high = 0.0, clicks
    for _ in range(44):
        middle = 0.5 * (low + high)
        if middle - power * math.log1p(middle) > rest:
            low = middle
        else:
            high = middle
    return low


@called
def largest_total(clicks: float, level: float) -> float:
    """An upper bound of Lambda: no less than the largest root of e = level."""
    rest, power = level - math.lgamma(1.0 + clicks), 1.0 + clicks
    low, high = clicks, clicks + 1.0
    while not high - power * math.log1p(high) > rest and high < 1e300:
        high += high
    for _ in range(44):
        middle = 0.5 * (low + high)
        if middle - power * math.log1p(middle) > rest:
            high = middle
        else:
            low = middle
    return high


@called
def enter_totals(totals: Array, x: Array, y: float, width: float) -> None:
    """One row into the sum that it belongs to; decided by its features alone."""
    dim = len(x)
    first = totals[ROWS] == 0.0
    same = True
    for i in range(dim):
        if first:
            totals[FEATURES + i] = x[i]
        same &= totals[FEATURES + i] == x[i]
    if same:
        totals[ROWS] += 1.0
        totals[CLICKS] += y / width
    else:
        totals[OTHER_ROWS] += 1.0
        totals[OTHER_CLICKS] += y / width
        for i in range(dim):
            held = totals[FEATURES + dim + i]
            total = held + x[i]
            part = total - held
            totals[FEATURES + dim + i] = total
            totals[FEATURES + 2 * dim + i] += (held - (total - part)) + (x[i] - part)


@called
def bound_totals(totals: Array, width: float, level: float) -> None:
    """Write the three bounds; ``level`` is log(1 / delta) of one sum. Negative rewards have none."""
    clicks = totals[OTHER_CLICKS]
    if not (clicks >= 0.0 and totals[CLICKS] >= 0.0):
        totals[OTHERS_LOW], totals[LOW], totals[HIGH] = -NO_BOUND, -NO_BOUND, NO_BOUND
        return
    least = least_total(clicks, _rounded(level, totals[OTHER_ROWS], clicks))
    totals[OTHERS_LOW] = width * least * (1.0 - 1e-12)
    totals[LOW], totals[HIGH] = 0.0, width
    if totals[ROWS] > 0.0:
        share, clicks = width / totals[ROWS], totals[CLICKS]
        level = _rounded(level, totals[ROWS], clicks)
        totals[LOW] = share * least_total(clicks, level) * (1.0 - 1e-12)
        totals[HIGH] = min(width, share * largest_total(clicks, level) * (1.0 + 1e-12))


@inlined
def _rounded(level: float, rows: float, clicks: float) -> float:
    """``level`` and more than the rounding of K and of the terms of e amounts to."""
    return level + 1e-7 + 4.0 * (rows + 64.0) * UNIT * (1.0 + clicks)
