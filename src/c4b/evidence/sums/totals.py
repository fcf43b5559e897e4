"""What sums of rewards say by themselves, without features: bounds of a total mean.

For rewards Y in [0, w], K = sum Y / w of any rows that are picked before their rewards, with a total mean
w Lambda, docs/theory.md (section "Totals") gives with probability 1 - delta for all numbers of rows at
once

    e(K, Lambda) = Lambda + log Gamma(1 + K) - (1 + K) log(1 + Lambda) <= log(1 / delta).          (K)

Two sums are kept: of the rows whose features are those of the first row of all, usually the incumbent's,
and of all other rows. They have one dimension where an ellipsoid has d. Since ``bounded-3`` both are on
one event, and what (K) is there stands in ``c4b.evidence.sums.joint_totals``.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.sums.joint_totals import (
    OTHER_LEAST,
    OTHER_LOGS,
    OTHER_POWERS,
    OTHER_RISES,
    OWN_LEAST,
    OWN_LOGS,
    OWN_POWERS,
    OWN_RISES,
    allowed_level,
    earned_line,
    highest_total,
    lowest_total,
)

ROWS, CLICKS, OTHER_ROWS, OTHER_CLICKS, OTHERS_LOW, LOW, HIGH, FEATURES = 0, 1, 2, 3, 4, 5, 6, 7
"""Entries of ``Region.totals``: rows like the first one and their sum Y / w; the same of all other rows;
a lower bound of the other rows' total mean; bounds of the first row's mean; then its features (d,), the
sum of the other rows' features (d,) and what rounding took from that sum (d,). Where both sums are on one
event, two numbers more: w, and log(1 / delta) of that event."""
NO_BOUND = 1e300
"""Stands where nothing is known: a state holds finite numbers only."""


def totals_size(dim: int, together: bool = False) -> int:
    """Numbers in ``Region.totals`` of a set that has them, with both sums on one event or apart."""
    return FEATURES + 3 * dim + (2 if together else 0)


@inlined
def are_together(totals: Array, dim: int) -> bool:
    """Whether both sums are on one event."""
    return len(totals) > FEATURES + 3 * dim


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


@called
def bound_together(totals: Array, width: float, level: float) -> None:
    """Write the three bounds and the level, log(1 / delta) of the one event that both sums are on."""
    clicks, own, rows = totals[OTHER_CLICKS], totals[CLICKS], totals[ROWS] + totals[OTHER_ROWS]
    if not (clicks >= 0.0 and own >= 0.0):
        totals[OTHERS_LOW], totals[LOW], totals[HIGH] = -NO_BOUND, -NO_BOUND, NO_BOUND
        return
    level = allowed_level(level, rows, clicks + own)
    totals[len(totals) - 2], totals[len(totals) - 1] = width, level
    least = lowest_total(clicks, level + OWN_LEAST, OTHER_RISES, OTHER_POWERS, OTHER_LOGS)
    totals[OTHERS_LOW] = width * least * (1.0 - 1e-12)
    totals[LOW], totals[HIGH] = 0.0, width
    if totals[ROWS] > 0.0:
        share, level = width / totals[ROWS], level + OTHER_LEAST
        totals[LOW] = share * lowest_total(own, level, OWN_RISES, OWN_POWERS, OWN_LOGS) * (1.0 - 1e-12)
        high = highest_total(own, level, OWN_RISES, OWN_POWERS, OWN_LOGS)
        totals[HIGH] = min(width, share * high * (1.0 + 1e-12))


@called
def line_below_earned(totals: Array, weight: float) -> tuple[float, float]:
    """(intercept, slope): the other rows' total mean is at least intercept + slope mu, mu the first row's
    mean, as large as can be shown for a slope near ``weight``. Both sums must be on one event."""
    if not (weight > 0.0 and totals[ROWS] > 0.0 and totals[OTHER_CLICKS] > 0.0):
        return totals[OTHERS_LOW], 0.0
    width, level, own = totals[len(totals) - 2], totals[len(totals) - 1], totals[CLICKS]
    intercept, slope = earned_line(totals[OTHER_CLICKS], own, weight / totals[ROWS], level)
    if not intercept > -np.inf:
        return totals[OTHERS_LOW], 0.0
    intercept -= 1e-12 * (abs(intercept) + slope * own + level)
    return width * intercept, slope * totals[ROWS]
