"""Sums of features, revalued as a whole each round: with separate intervals the paper's revalue.

Rounds that played a candidate earn L of the sum of what was played and owe c U of the sum of the
baselines that it displaced; fallback rounds earn alpha max{L, 0} of the sum of theirs, with r_l a round
for 0 where that is known. With joint certificates all rounds are one vector, Z, and the claim is
``R0 + L(Z + x(a) - c x(b))``. Told means have a file of their own, ``told_ledger``.
"""

import numpy as np

from c4b._compilation.jit import fma, inlined
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, structural
from c4b.evidence.bounds import lower, upper
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.offset_bounds import raise_to_lower
from c4b.ledger.books import Account, Certificate, Ledger, SumsOf, Tally, Term, round_slack
from c4b.ledger.exact_sums import plus


@inlined
def prefix_margins(
    ledger: Ledger, account: Account, region: Region, assessed: Assessment, row: int
) -> None:
    """details[row, k] = the value of all rounds if candidate k were played now."""
    offset = assessed.scratch
    if account.certificate == Certificate.JOINT:
        for i in range(len(offset)):
            offset[i] = _joint_sum(ledger, account, i, assessed.baseline[i], 0.0)
        base = account.reserve - ledger.tally[Tally.SLACK]
        raise_to_lower(region, assessed.forms, assessed.pool, base, offset, row, assessed.details, True)
        return
    for i in range(len(offset)):
        offset[i] = ledger.sums[SumsOf.DISPLACED, i] + assessed.baseline[i]
    owed = (1.0 - account.alpha) * upper(region, offset)
    fallback = ledger.sums[SumsOf.FALLBACK]
    earned = structural(region, fallback, account.alpha, _floor(ledger, account, 0.0), 0.0)
    base = account.reserve + earned - owed - ledger.tally[Tally.SLACK]
    played = ledger.sums[SumsOf.PLAYED]
    raise_to_lower(region, assessed.forms, assessed.pool, base, played, row, assessed.details, True)


@inlined
def _joint_sum(ledger: Ledger, account: Account, i: int, displaced: float, fallback: float) -> float:
    """Entry i of Z = z - v + alpha (v + w), with more in v or in w, as it rounds.

    Sums of arms are whole numbers, and Z is often next to 0, where the sign of what is left decides: so
    1 - alpha is not rounded, nor is a product with alpha.
    """
    sums, low = ledger.sums, ledger.low
    owed, owed_low = plus(sums[SumsOf.DISPLACED, i], low[2, i], displaced)
    every, every_low = plus(owed, owed_low, sums[SumsOf.FALLBACK, i])
    every, every_low = plus(every, every_low + low[3, i], fallback)
    kept = account.alpha * every
    lost = fma(account.alpha, every, -kept) + account.alpha * every_low
    total, rest = plus(sums[SumsOf.PLAYED, i], low[1, i], -owed)
    total, rest = plus(total, rest - owed_low, kept)
    return float(total + (rest + lost))


@inlined
def _floor(ledger: Ledger, account: Account, more: float) -> float:
    """n r_l: what the means of n fallback rounds, ``more`` of them to come, sum to at least."""
    if len(ledger.terms) == 0 or not account.floor > -np.inf:
        return account.floor
    count: float = ledger.terms[Term.FALLBACKS] + more
    return count * account.floor


@inlined
def prefix_baseline_margin(
    ledger: Ledger, account: Account, region: Region, baseline: Array, more: float, scratch: Array
) -> float:
    """The value of all rounds if the baseline were played in ``more`` further ones; scratch (d,)."""
    if account.certificate == Certificate.JOINT:
        for i in range(len(baseline)):
            scratch[i] = _joint_sum(ledger, account, i, 0.0, baseline[i])
        worth = account.reserve + lower(region, scratch) - ledger.tally[Tally.SLACK]
        return float(worth - (round_slack(account, True) if more > 0.0 else 0.0))
    for i in range(len(baseline)):
        scratch[i] = ledger.sums[SumsOf.FALLBACK, i] + baseline[i]
    earned = structural(region, scratch, account.alpha, _floor(ledger, account, more), 0.0)
    displaced, played = ledger.sums[SumsOf.DISPLACED], ledger.sums[SumsOf.PLAYED]
    owed = (1.0 - account.alpha) * upper(region, displaced) + ledger.tally[Tally.SLACK]
    slack = round_slack(account, True)
    total: float = account.reserve + lower(region, played) + earned - owed - slack
    return total


@inlined
def enter_sums(ledger: Ledger, executed: Array, baseline: Array, is_baseline: bool, sign: float) -> None:
    """Add a round to the sums that it belongs to, or take it out again."""
    low, sums = ledger.low, ledger.sums
    for i in range(len(executed)):
        x, b = sign * executed[i], sign * baseline[i]
        if is_baseline:
            sums[SumsOf.FALLBACK, i], low[3, i] = plus(sums[SumsOf.FALLBACK, i], low[3, i], b)
        else:
            sums[SumsOf.PLAYED, i], low[1, i] = plus(sums[SumsOf.PLAYED, i], low[1, i], x)
            sums[SumsOf.DISPLACED, i], low[2, i] = plus(sums[SumsOf.DISPLACED, i], low[2, i], b)
