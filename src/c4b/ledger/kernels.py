"""Certified money: the bank B, the executed prefix Z, and what they allow next: (12) and (13).

Every ledger states its claims (see ``c4b.certificates``) about the round to come: a candidate's
margin is the largest ``base + L(offset + x(a))`` over them. No function here sees a reward.

Carry and refresh are one ledger with different memories. For any earlier round s,
``D_t = D_s + (Z_t - Z_s) @ theta`` and ``B_s <= D_s``, so ``B_s + L(Z_{t-1} - Z_s + z_t(a))`` is a
sound margin. The last round, s = t-1, is carry; a remembered s = 0 with B_0 = R0, Z_0 = 0 is refresh.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.certificates.kernels import joint_claim, separate_claim, structural
from c4b.evidence.bounds import lower, upper
from c4b.evidence.statistics import Statistics

JOINT, SEPARATE, REVALUE, UNGATED = 0, 1, 2, 3
"""Accounting: joint or separate certificates into a bank; separate sums revalued; no gate."""

PLAYED, DISPLACED, FALLBACK = 0, 1, 2
"""Rows of ``Ledger.sums``: candidates played, baselines they displaced, baselines played."""


class Account(NamedTuple):
    """The ledger's fixed terms."""

    alpha: float
    reserve: float  # R0
    nonnegative: bool  # baseline means are known to be >= 0
    kind: int  # JOINT, SEPARATE, REVALUE or UNGATED


class Ledger(NamedTuple):
    """Arrays written in place by ``charge``; M remembered rounds."""

    bank: Array  # (1,) B
    prefix: Array  # (d,) Z = sum of executed contrasts' features
    sums: Array  # (3, d) see PLAYED, DISPLACED, FALLBACK
    kept_bank: Array  # (M,) B_s of remembered rounds
    kept_prefix: Array  # (M, d) Z_s of remembered rounds


def opening(account: Account, dim: int, remembered: int) -> Ledger:
    """Before the first round: B = R0, Z = 0, and that state remembered if there is a memory."""
    bank = np.nan if account.kind == UNGATED else account.reserve
    return Ledger(
        np.array([bank]),
        np.zeros(dim),
        np.zeros((3, dim)),
        np.full(remembered, account.reserve),
        np.zeros((remembered, dim)),
    )


def copy(ledger: Ledger) -> Ledger:
    return Ledger(*(array.copy() for array in ledger))


def restore(ledger: Ledger, earlier: Ledger) -> None:
    for array, old in zip(ledger, earlier, strict=True):
        array[...] = old


@kernel
def write_claims(
    ledger: Ledger,
    account: Account,
    stats: Statistics,
    baseline: Array,
    base: Array,
    offset: Array,
) -> int:
    """Claims about any candidate of the coming round: base (M+1,), offset (M+1, d); returns how many."""
    dim = len(baseline)
    alpha = account.alpha
    if account.kind == UNGATED:
        return 0
    if account.kind == SEPARATE:
        base[0] = ledger.bank[0] + separate_claim(stats, baseline, alpha, offset[0])
        return 1
    if account.kind == REVALUE:
        for i in range(dim):
            offset[0, i] = ledger.sums[DISPLACED, i] + baseline[i]
        owed = (1.0 - alpha) * upper(stats, offset[0])
        earned = structural(stats, ledger.sums[FALLBACK], alpha, account.nonnegative)
        offset[0] = ledger.sums[PLAYED]
        base[0] = account.reserve + earned - owed
        return 1
    base[0] = ledger.bank[0] + joint_claim(baseline, alpha, offset[0])
    kept = len(ledger.kept_bank)
    for m in range(kept):
        base[m + 1] = ledger.kept_bank[m]
        for i in range(dim):
            offset[m + 1, i] = offset[0, i] + (ledger.prefix[i] - ledger.kept_prefix[m, i])
    return kept + 1


@kernel
def baseline_margin(
    ledger: Ledger, account: Account, stats: Statistics, baseline: Array, scratch: Array
) -> float:
    """Margin of playing the baseline; scratch (d,). NaN when there is no gate."""
    alpha = account.alpha
    dim = len(baseline)
    if account.kind == UNGATED:
        return np.nan
    if account.kind == REVALUE:
        for i in range(dim):
            scratch[i] = ledger.sums[FALLBACK, i] + baseline[i]
        earned = structural(stats, scratch, alpha, account.nonnegative)
        owed = (1.0 - alpha) * upper(stats, ledger.sums[DISPLACED])
        return account.reserve + lower(stats, ledger.sums[PLAYED]) + earned - owed
    best = ledger.bank[0] + structural(stats, baseline, alpha, account.nonnegative)
    for m in range(len(ledger.kept_bank)):
        for i in range(dim):
            scratch[i] = ledger.prefix[i] - ledger.kept_prefix[m, i] + alpha * baseline[i]
        value = ledger.kept_bank[m] + lower(stats, scratch)
        if value > best:
            best = value
    return best


@kernel
def charge(
    ledger: Ledger,
    account: Account,
    margin: float,
    executed: Array,
    baseline: Array,
    is_baseline: bool,
) -> None:
    """Write B and Z for the executed action, before any reward is seen (step 10 of Algorithm 1)."""
    if account.kind != UNGATED:
        ledger.bank[0] = margin
    _enter(ledger, account, executed, baseline, is_baseline, 1.0)


@kernel
def _enter(
    ledger: Ledger,
    account: Account,
    executed: Array,
    baseline: Array,
    is_baseline: bool,
    sign: float,
) -> None:
    for i in range(len(executed)):
        ledger.prefix[i] += sign * (executed[i] - (1.0 - account.alpha) * baseline[i])
        if is_baseline:
            ledger.sums[FALLBACK, i] += sign * baseline[i]
        else:
            ledger.sums[PLAYED, i] += sign * executed[i]
            ledger.sums[DISPLACED, i] += sign * baseline[i]


@kernel
def amend(
    ledger: Ledger,
    account: Account,
    stats: Statistics,
    decided: Array,
    decided_is_baseline: bool,
    executed: Array,
    executed_is_baseline: bool,
    baseline: Array,
) -> None:
    """Another action than the decided one was executed, at any earlier round.

    D changes by exactly (x(executed) - x(decided)) @ theta, so charging L of that difference keeps
    B <= D whatever was decided in between. The bank may become negative: the truth may be, too.
    """
    if account.kind == JOINT or account.kind == SEPARATE:
        ledger.bank[0] += lower(stats, executed - decided)
    _enter(ledger, account, decided, baseline, decided_is_baseline, -1.0)
    _enter(ledger, account, executed, baseline, executed_is_baseline, 1.0)
    if account.kind == REVALUE:  # its bank is not carried: revalue the corrected sums
        nothing = np.zeros(len(baseline))
        ledger.bank[0] = baseline_margin(ledger, account, stats, nothing, nothing.copy())
