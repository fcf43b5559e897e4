"""``box``: an interval for the mean of every arm, for features that are unit vectors.

An arm has a mean of at least 0. After n rewards with average m it lies in ``[max(0, m - D), m + D]``,
``D = sigma sqrt(psi(n) / n)``, without any in [0, S]. With ``psi(n) = 2 log(2 zeta(3) d n^3 / delta)``
all intervals of d arms hold at all times together with probability at least 1 - delta: docs/theory.md,
"The field". Counts and sums of rewards are the diagonal of A and the moment.
"""

import math

import numpy as np

from c4b._compilation.jit import called
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.alarms import EMPTY_SET
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.box_bounds import UNTRIED
from c4b.evidence.ellipsoids import ALARM, BOX, SQUARES_SUM, Data, Region, Terms
from c4b.evidence.sets.confidence_set import ConfidenceSet, one_ridge

TWO_ZETA_3 = 2.40411380631918857
"""Twice the sum of n^-3 over all n."""


@called
def psi(count: float, arms: int, log_term: float) -> float:
    """psi(n) for so many arms; ``log_term`` is 2 log(1/delta)."""
    return log_term + 2.0 * math.log(TWO_ZETA_3 * arms) + 6.0 * math.log(count)


@called
def recentre_box(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Averages and intervals; returns m V^-1 m and 0. The radius is sigma sqrt(psi) of the arm with most
    rewards."""
    dim, most, explained = len(data.moment), 1.0, 0.0
    for i in range(dim):
        n, total = data.gram[i, i], data.moment[i]
        low, high = 0.0, UNTRIED
        region.estimate[0, i] = 0.0
        if n > 0.0:
            region.estimate[0, i] = total / n
            width = terms.noise * math.sqrt(psi(n, dim, terms.log_term) / n) * (1.0 + 16.0 * UNIT)
            width += (n + 4.0) * UNIT * math.sqrt(data.tally[SQUARES_SUM] / n)
            low, high = max(total / n - width, 0.0), total / n + width
        if not (high >= 0.0 and low <= terms.norm_bound):
            data.tally[ALARM] = EMPTY_SET
        region.totals[i], region.totals[dim + i] = low, high
        explained += total * total / (n + data.ridges[0])
        most = max(most, n)
    region.radius[0] = terms.noise * math.sqrt(psi(most, dim, terms.log_term))
    region.reach[0] = region.radius[0]
    return explained, 0.0


def check_arms(argument: str, rows: Array) -> None:
    """Refuse rows (n, d) that are not all unit vectors, and name the first that is none."""
    wrong = (np.count_nonzero(rows, axis=1) != 1) | ((rows == 1.0).sum(axis=1) != 1)
    if wrong.any():
        n = int(wrong.argmax())
        check_arm(f"{argument}[{n}]", rows[n])


def check_arm(argument: str, row: Array) -> None:
    """Refuse a row (d,) that is no unit vector."""
    ones = np.flatnonzero(row)
    if len(ones) != 1 or row[ones[0]] != 1.0:
        remedy = "must be a unit vector (one 1, else 0): the confidence set knows arms, not features"
        raise InvalidInput(argument, row, remedy)


def _extra_size(dim: int) -> int:
    return 2 * dim


SET = ConfidenceSet(
    "box",
    "an interval for each arm: for features that are unit vectors, and means of at least 0",
    one_ridge,
    BOX,
    extra_size=_extra_size,
    one_hot=True,
)
