"""Claims with baseline means that the caller is told: CLUCB, and CLUCB2 with what plays have earned.

With K = alpha sum_F mu - c sum_S mu, z the sum of the features played and base = R0 + K - c mu, the
claims about a candidate are (base, z) and, where evidence says that absorbed plays with features g have
earned h, also (base + L(z), 0) and (base + h, z - g). A budget that is promised at the ends of phases
only may count on alpha r_l for each round that is left: the baseline can be played in all of them.
"""

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.kernel_parts import OTHER_LEDGERS
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import interval, lower
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.offset_bounds import raise_to_lower
from c4b.evidence.sums.earned import earned_at_least, earned_feature
from c4b.ledger.books import Account, Certificate, Ledger, SumsOf, Tally, Term
from c4b.ledger.exact_sums import plus


@called
def is_refuted(ledger: Ledger, account: Account, region: Region, baseline: Array, mean: float) -> bool:
    """Whether this told mean, or an earlier one, lies outside of the interval that the set gives it."""
    if OTHER_LEDGERS and account.certificate == Certificate.KNOWN:
        low, high = interval(region, baseline)
        inside = low - account.tolerance <= mean <= high + account.tolerance
        return ledger.terms[Term.ALARM] != 0.0 or not inside
    return False


@called
def told_margins(
    ledger: Ledger, account: Account, region: Region, assessed: Assessment, row: int
) -> None:
    """details[row, k] = the largest claim about candidate k."""
    played, offset, earned = ledger.sums[SumsOf.PLAYED], assessed.scratch, assessed.earned
    base = _base(ledger, account, 1.0) - (1.0 - account.alpha) * assessed.mean
    for claim in range(3 if len(earned) > 0 else 1):  # one place to compile instead of three
        if claim == 2:
            _open_plays(ledger, earned, offset)
            value = base + earned_at_least(earned)
        else:
            for i in range(len(offset)):
                offset[i] = played[i] if claim == 0 else 0.0
            value = base if claim == 0 else base + lower(region, played)
        raise_to_lower(
            region, assessed.forms, assessed.pool, value, offset, row, assessed.details, claim == 0
        )


@called
def told_value(
    ledger: Ledger,
    account: Account,
    region: Region,
    earned: Array,
    more: float,
    credit: float,
    scratch: Array,
) -> float:
    """The largest claim after ``more`` further rounds with the baseline, which add ``credit``."""
    base = _base(ledger, account, more) + credit
    best = lower(region, ledger.sums[SumsOf.PLAYED])
    if len(earned) > 0:
        _open_plays(ledger, earned, scratch)
        best = max(best, earned_at_least(earned) + lower(region, scratch))
    total: float = base + best
    return total - 4.0 * UNIT * (abs(base) + abs(best))


@inlined
def _base(ledger: Ledger, account: Account, more: float) -> float:
    """R0 + K less slack and rounding, and what is left of the phase after ``more`` further rounds."""
    terms, kept = ledger.terms, 1.0 - account.alpha
    gained = account.alpha * (terms[Term.FALLBACK] + terms[Term.FALLBACK_LOW])
    owed = kept * (terms[Term.DISPLACED] + terms[Term.DISPLACED_LOW])
    base: float = account.reserve + gained - owed - ledger.tally[Tally.SLACK]
    base -= 8.0 * UNIT * (account.reserve + abs(gained) + abs(owed))
    if account.phase > 1 and account.floor > -np.inf:
        done = (ledger.tally[Tally.ROUNDS] + more) % account.phase
        left = account.phase - done if done > 0.0 else 0.0
        base += account.alpha * left * account.floor
    return base


@inlined
def _open_plays(ledger: Ledger, earned: Array, out: Array) -> None:
    """z - g: the features of plays whose outcome is not absorbed, into ``out`` (d,)."""
    dim = len(out)
    for i in range(dim):
        high, low = earned_feature(earned, dim, i)
        gap = ledger.sums[SumsOf.PLAYED, i] - high
        out[i] = gap + (ledger.low[1, i] - low)


@inlined
def enter_told(ledger: Ledger, account: Account, is_baseline: bool, mean: float, sign: float) -> None:
    """Add a round's told mean to the sum that it belongs to, or take it out again."""
    terms = ledger.terms
    if is_baseline:
        terms[Term.FALLBACKS] += sign
    if account.certificate == Certificate.KNOWN:
        high = Term.FALLBACK if is_baseline else Term.DISPLACED
        low = Term.FALLBACK_LOW if is_baseline else Term.DISPLACED_LOW
        terms[high], terms[low] = plus(terms[high], terms[low], sign * mean)
