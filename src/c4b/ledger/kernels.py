"""Certified money: the bank B, the executed prefix Z, and what they allow next: (12) and (13).

Every ledger makes claims (see ``c4b.certificates``) about the round to come: a candidate's margin is
the largest ``base + L(offset + x(a))`` over them. No function here sees a reward.

Carry and refresh are one ledger with different memories. For any earlier round s,
``D_t = D_s + (Z_t - Z_s) @ theta`` and ``B_s <= D_s``, so ``B_s + L(Z_{t-1} - Z_s + z_t(a))`` is a
sound margin. The last round, s = t-1, is carry; a remembered s = 0 with B_0 = R0, Z_0 = 0 is refresh.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import allocating, inlined, kernel
from c4b._validate import Array
from c4b.certificates.kernels import joint_claim, structural
from c4b.evidence.bounds import lower, raise_to_lower, upper
from c4b.evidence.statistics import Region
from c4b.evidence.statistics import opened as opened_evidence

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


HEADING = 6
"""Numbers before the arrays in a flat vector: M, d, then the account."""
BANK = HEADING
"""Where the bank lies in a flat vector."""


def opening(account: Account, dim: int, remembered: int) -> Array:
    """Before the first round, as one flat vector: B = R0, Z = 0, that state remembered if it can be."""
    flat = np.zeros(HEADING + 1 + 4 * dim + remembered * (1 + dim))
    flat[:HEADING] = (remembered, dim, *account)
    ledger, _ = views(flat)
    ledger.bank[0] = np.nan if account.kind == UNGATED else account.reserve
    ledger.kept_bank[:] = account.reserve
    return flat


def views(flat: Array) -> tuple[Ledger, Account]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    remembered, dim = int(flat[0]), int(flat[1])
    a = HEADING + 1
    b = a + dim
    c = b + 3 * dim
    d = c + remembered
    ledger = Ledger(
        flat[HEADING:a],
        flat[a:b],
        flat[b:c].reshape(3, dim),
        flat[c:d],
        flat[d : d + remembered * dim].reshape(remembered, dim),
    )
    return ledger, Account(flat[2], flat[3], flat[4] == 1.0, int(flat[5]))


opened = inlined(views)


@inlined
def pool_margins(
    ledger: Ledger,
    account: Account,
    region: Region,
    forms: Array,
    pool: Array,
    baseline: Array,
    certificate: int,
    offset: Array,
    row: int,
    out: Array,
) -> None:
    """out[row, k], out (R, K): the bank that playing a candidate would leave, -inf if uncertified.

    out[certificate] holds the joint or separate certificates where the account's kind needs them;
    offset (d,) is scratch.
    """
    alpha = account.alpha
    dim, size = pool.shape
    if account.kind == UNGATED:
        for k in range(size):
            out[row, k] = np.inf
    elif account.kind == REVALUE:
        for k in range(size):
            out[row, k] = -np.inf
        for i in range(dim):
            offset[i] = ledger.sums[DISPLACED, i] + baseline[i]
        owed = (1.0 - alpha) * upper(region, offset)
        earned = structural(region, ledger.sums[FALLBACK], alpha, account.nonnegative)
        base = account.reserve + earned - owed
        raise_to_lower(region, forms, pool, base, ledger.sums[PLAYED], row, out)
    else:
        bank = ledger.bank[0]
        for k in range(size):
            out[row, k] = bank + out[certificate, k]
        for m in range(len(ledger.kept_bank)):
            base = ledger.kept_bank[m] + joint_claim(baseline, alpha, offset)
            for i in range(dim):
                offset[i] += ledger.prefix[i] - ledger.kept_prefix[m, i]
            raise_to_lower(region, forms, pool, base, offset, row, out)


@kernel
def baseline_margin(
    ledger: Ledger, account: Account, region: Region, baseline: Array, scratch: Array
) -> float:
    """Margin of playing the baseline; scratch (d,). NaN when there is no gate."""
    alpha = account.alpha
    dim = len(baseline)
    if account.kind == UNGATED:
        return np.nan
    if account.kind == REVALUE:
        for i in range(dim):
            scratch[i] = ledger.sums[FALLBACK, i] + baseline[i]
        earned = structural(region, scratch, alpha, account.nonnegative)
        owed = (1.0 - alpha) * upper(region, ledger.sums[DISPLACED])
        return account.reserve + lower(region, ledger.sums[PLAYED]) + earned - owed
    best: float = ledger.bank[0] + structural(region, baseline, alpha, account.nonnegative)
    for m in range(len(ledger.kept_bank)):
        for i in range(dim):
            scratch[i] = ledger.prefix[i] - ledger.kept_prefix[m, i] + alpha * baseline[i]
        value = ledger.kept_bank[m] + lower(region, scratch)
        best = max(best, value)
    return best


@inlined
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


@inlined
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


@allocating
def amend(
    ledger_flat: Array,
    evidence_flat: Array,
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
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    if account.kind in (JOINT, SEPARATE):
        ledger.bank[0] += lower(region, executed - decided)
    _enter(ledger, account, decided, baseline, decided_is_baseline, -1.0)
    _enter(ledger, account, executed, baseline, executed_is_baseline, 1.0)
    if account.kind == REVALUE:  # its bank is not carried: revalue the corrected sums
        nothing = np.zeros(len(baseline))
        ledger.bank[0] = baseline_margin(ledger, account, region, nothing, nothing.copy())
