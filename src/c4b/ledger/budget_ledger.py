"""Save first, then learn: nothing but the baseline until the credit covers the learner's whole regret.

From then on plays add up to at least ``-Reg_T + alpha sum_S mu`` (``evidence.sums.regret``), so that a
credit R0 + alpha sum_F mu >= Reg_T covers them all, and no single play costs anything. The bound needs
each outcome before the next choice: while one is open, or lost, only the baseline is played.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import lower, upper
from c4b.evidence.ellipsoids import Region
from c4b.evidence.sums.regret import ABSORBED, HORIZON, regret
from c4b.ledger.books import Account, Ledger, SavingsOf, Tally, Term


@called
def budget_margins(ledger: Ledger, account: Account, assessed: Assessment, row: int) -> None:
    """details[row, k] = what the credit leaves if the learner begins with candidate k, or goes on."""
    pool, learner, details = assessed.pool, assessed.earned, assessed.details
    rounds, saved = ledger.tally[Tally.ROUNDS], _saved(ledger, account)
    may_learn = rounds < learner[HORIZON] and rounds <= learner[ABSORBED]
    longest = max(ledger.plays[SavingsOf.LONGEST], _length(assessed.baseline))
    for k in range(pool.shape[1]):
        details[row, k] = -np.inf
        if may_learn:
            square = 0.0
            for i in range(len(pool)):
                square += pool[i, k] * pool[i, k]
            details[row, k] = saved - regret(learner, max(longest, math.sqrt(square)))


@called
def budget_value(ledger: Ledger, account: Account, learner: Array, baseline: Array, gain: float) -> float:
    """The bank after a round with the baseline (d,) that adds ``gain``."""
    value = _saved(ledger, account) + gain
    if ledger.plays[SavingsOf.PLAYS] > 0.0:
        value -= regret(learner, max(ledger.plays[SavingsOf.LONGEST], _length(baseline)))
    return value


@inlined
def _saved(ledger: Ledger, account: Account) -> float:
    """R0 + alpha sum_F mu, and what was executed instead of decisions, less rounding."""
    instead = ledger.plays[SavingsOf.INSTEAD]
    saved = account.alpha * (ledger.terms[Term.FALLBACK] + ledger.terms[Term.FALLBACK_LOW])
    size = account.reserve + abs(saved) + abs(instead)
    return float(
        account.reserve + saved + instead - 2.0 * (ledger.tally[Tally.ROUNDS] + 8.0) * UNIT * size
    )


@inlined
def _length(row: Array) -> float:
    square = 0.0
    for i in range(len(row)):
        square += row[i] * row[i]
    return math.sqrt(square)


@inlined
def enter_savings(
    ledger: Ledger, executed: Array, baseline: Array, is_baseline: bool, sign: float
) -> None:
    """Count a round of the learner's, or take it out again."""
    ledger.plays[SavingsOf.PLAYS] += 0.0 if is_baseline else sign
    longest = max(ledger.plays[SavingsOf.LONGEST], _length(executed))
    ledger.plays[SavingsOf.LONGEST] = max(longest, _length(baseline))


@inlined
def enter_instead(ledger: Ledger, account: Account, region: Region, executed: Array, mean: float) -> None:
    """A candidate was executed that the learner did not choose: it is worth its own certificate."""
    ledger.plays[SavingsOf.PLAYS] -= 1.0
    ledger.plays[SavingsOf.INSTEAD] += lower(region, executed) - (1.0 - account.alpha) * mean


@called
def withdraw_instead(
    ledger: Ledger, account: Account, region: Region, entered: Array, mean: float
) -> None:
    """A candidate (d,) that ``enter_instead`` has entered was not executed after all.

    What it was certified to be worth is not known any more. That is at most what it is worth, and this at
    most its upper bound of today: so much goes.
    """
    plays = ledger.plays
    plays[SavingsOf.PLAYS] += 1.0  # the caller takes a round of the learner's out, which this is not
    worth, owed = upper(region, entered), (1.0 - account.alpha) * mean
    rounding = 4.0 * UNIT * (abs(plays[SavingsOf.INSTEAD]) + abs(worth) + abs(owed))
    plays[SavingsOf.INSTEAD] -= worth - owed + rounding
