"""Claims that need every action's mean to be >= 0, as for clicks: (N1) to (N3) of docs/theory.md.

While the baseline is the same in every round, t rounds of which q played candidates are worth at least
``R0 + (alpha t - q) mu``, mu the baseline's mean: whatever was played, it earned at least nothing. So no
more than the share alpha of all rounds can play any candidates for free, before anything is known about
them. Sums of rewards (``c4b.evidence.sums.totals``) say how much those plays have earned in fact: by
themselves, or, where the set has both sums on one event, as a line above the baseline's mean.
"""

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import Region
from c4b.evidence.sums.totals import (
    FEATURES,
    HIGH,
    LOW,
    OTHERS_LOW,
    ROWS,
    are_together,
    line_below_earned,
)
from c4b.ledger.books import Account, Ledger, PlaysOf, Tally

KEPT_BACK = 0.5
"""Share of all credit of the baseline that a free play leaves; the rest is for plays whose own worth is
certified, to which free plays are a way."""
MOST_KEPT_BACK = 3.0
"""Where both sums are on one event no more than so many of the highest reward is left."""


@inlined
def enter_play(ledger: Ledger, baseline: Array, is_baseline: bool, sign: float) -> None:
    """Count a round, or take it out again."""
    plays = ledger.plays
    if not is_baseline:
        plays[PlaysOf.COUNT] += sign
    for i in range(len(baseline)):
        if ledger.tally[Tally.ROUNDS] == 0.0:
            plays[PlaysOf.FIRST + i] = baseline[i]
        elif plays[PlaysOf.FIRST + i] != baseline[i]:
            plays[PlaysOf.CHANGED] = 1.0


@called
def free_claims(
    ledger: Ledger, account: Account, region: Region, baseline: Array, scratch: Array
) -> tuple[float, float, float]:
    """(N1) to (N3): lower bounds of D as it is, after a round of the baseline, and after a round of any
    candidate if the spending rule allows that; -inf where there is none. scratch (d,)."""
    if account.tolerance > 0.0:
        return -np.inf, -np.inf, -np.inf
    rounds, count, dim = ledger.tally[Tally.ROUNDS], ledger.plays[PlaysOf.COUNT], len(baseline)
    alpha, totals = account.alpha, region.totals
    constant = ledger.plays[PlaysOf.CHANGED] == 0.0
    summed = totals[ROWS] > 0.0
    for i in range(dim):
        constant &= rounds == 0.0 or ledger.plays[PlaysOf.FIRST + i] == baseline[i]
        summed &= totals[FEATURES + i] == baseline[i]
    low, high = interval(region, baseline)
    low = max(low, 0.0)
    if summed:
        low, high = max(low, totals[LOW]), min(high, totals[HIGH])
    now, after, free = -np.inf, -np.inf, -np.inf
    together = are_together(totals, dim)
    if constant:
        base, more = account.reserve, alpha * (rounds + 1.0)
        rest, rounding = 0.0, 0.0
        if summed:
            rest, rounding = _not_summed(ledger, region, alpha * rounds - count, baseline, scratch)
            base += max(totals[OTHERS_LOW] + rest - rounding, 0.0)
        now = _valued(base, alpha * rounds, count, low, high)
        after = _valued(base, more, count, low, high)
        free = _valued(base, more, count + 1.0, low, high)
        if summed and together:
            least, slope = line_below_earned(totals, count + 1.0 - more)
            base = account.reserve + (least + rest - rounding)
            now = max(now, _on_line(base, alpha * rounds + slope, count, low, high))
            after = max(after, _on_line(base, more + slope, count, low, high))
            free = max(free, _on_line(base, more + slope, count + 1.0, low, high))
    free = max(free, max(ledger.bank[0], now) - (1.0 - alpha) * high * (1.0 + 8.0 * UNIT))
    kept = KEPT_BACK * alpha * (rounds + 1.0) * low
    if together:
        kept = min(kept, MOST_KEPT_BACK * totals[len(totals) - 2])
    if not free >= kept:
        free = -np.inf
    return now, after, free


@inlined
def _not_summed(
    ledger: Ledger, region: Region, past: float, baseline: Array, scratch: Array
) -> tuple[float, float]:
    """L of the features by which the rows that are not the baseline's and the plays differ, and its
    rounding: plays without an outcome yet, less rows that are no plays. With the total of those rows it
    is what plays have earned."""
    totals, dim, size = region.totals, len(baseline), 0.0
    for i in range(dim):
        others = totals[FEATURES + dim + i]
        played = ledger.prefix[i] - past * baseline[i]
        scratch[i] = (played - others) + (ledger.low[0, i] - totals[FEATURES + 2 * dim + i])
        size += abs(ledger.prefix[i]) + abs(past * baseline[i]) + abs(others)
    rest = interval(region, scratch)[0]
    return rest, 16.0 * UNIT * region.norm_bound * size


@inlined
def _valued(base: float, credit: float, count: float, low: float, high: float) -> float:
    """base + (credit - count) mu for low <= mu <= high, less its rounding."""
    weight = credit - count - 8.0 * UNIT * credit
    if weight >= 0.0:
        return (base + weight * low) * (1.0 - 8.0 * UNIT)
    return base + weight * high - 8.0 * UNIT * (base - weight * high)


@inlined
def _on_line(base: float, credit: float, count: float, low: float, high: float) -> float:
    """The same for a base that may be far below 0 and a credit that makes up for it."""
    weight = credit - count
    bound = low if weight >= 0.0 else high
    return base + weight * bound - 16.0 * UNIT * (abs(base) + (credit + count) * high)
