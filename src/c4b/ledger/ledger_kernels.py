"""Certified money: the bank B, the executed prefix Z, and what they allow next: (12) and (13).

Every ledger makes claims (see ``c4b.certificates``) about the round to come: a candidate's margin is
the largest ``base + L(offset + x(a))`` over them. No function here sees a reward.

Carry and refresh are one ledger with different memories. For any earlier round s,
``D_t = D_s + (Z_t - Z_s) @ theta`` and ``B_s <= D_s``, so ``B_s + L(Z_{t-1} - Z_s + z_t(a))`` is a
sound margin, and so is the largest of any number of them. The last round, s = t-1, is carry; one
checkpoint at s = 0 with B_0 = R0, Z_0 = 0 makes it refresh; more checkpoints only raise the maximum.

Which rounds are kept: round 0 for ever; of the others every ``stride``-th. When M are kept, every
second one goes and the stride doubles, so they stay evenly spread and the state bounded.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import allocating, inlined, kernel
from c4b._shaped_view import window
from c4b._validate import Array
from c4b.certificates.contrast_kernels import joint_claim, structural
from c4b.evidence.bounds import lower, raise_to_lower, upper
from c4b.evidence.ellipsoids import Region
from c4b.evidence.ellipsoids import opened as opened_evidence

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
    tolerance: float  # epsilon: how far a mean may be from linear


ROUNDS, KEPT, STRIDE, SLACK = 0, 1, 2, 3
"""Entries of ``Ledger.tally``: rounds charged, checkpoints kept, rounds between two of them, and what
declared misspecification has cost so far."""


class Ledger(NamedTuple):
    """Arrays written in place by ``charge``; room for M checkpoints."""

    bank: Array  # (1,) B
    prefix: Array  # (d,) Z = sum of executed contrasts' features
    sums: Array  # (3, d) see PLAYED, DISPLACED, FALLBACK; kept for REVALUE only
    tally: Array  # (4,)
    kept_bank: Array  # (M,) B_s
    kept_prefix: Array  # (M, d) Z_s
    kept_round: Array  # (M,) s
    low: Array  # (4, d) what rounding took from the prefix and the three sums
    kept_low: Array  # (M, d) the same for Z_s


HEADING = 7
"""Numbers before the arrays in a flat vector: M, d, then the account."""
BANK = HEADING
"""Where the bank lies in a flat vector."""


def opening(account: Account, dim: int, checkpoints: int) -> Array:
    """Before the first round, as one flat vector: B = R0, Z = 0, kept as the first checkpoint."""
    flat = np.zeros(HEADING + 5 + 8 * dim + checkpoints * (2 + 2 * dim))
    flat[:HEADING] = (checkpoints, dim, *account)
    ledger, _ = views(flat)
    ledger.bank[0] = np.nan if account.kind == UNGATED else account.reserve
    ledger.tally[:] = (0, min(checkpoints, 1), 1, 0)
    ledger.kept_bank[:] = account.reserve
    return flat


def views(flat: Array) -> tuple[Ledger, Account]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, int(flat[0]), int(flat[1]))


def parts(flat: Array, room: int, dim: int) -> tuple[Ledger, Account]:
    """``views`` for an M and d that the caller knows, perhaps when compiling."""
    a = HEADING + 1
    b = a + dim
    c = b + 3 * dim
    d = c + 4
    e = d + room
    f = e + room * dim
    g = f + room
    h = g + 4 * dim
    ledger = Ledger(
        window(flat, HEADING, (1,)),
        window(flat, a, (dim,)),
        window(flat, b, (3, dim)),
        window(flat, c, (4,)),
        window(flat, d, (room,)),
        window(flat, e, (room, dim)),
        window(flat, f, (room,)),
        window(flat, g, (4, dim)),
        window(flat, h, (room, dim)),
    )
    return ledger, Account(flat[2], flat[3], flat[4] == 1.0, int(flat[5]), flat[6])


opened_as = inlined(parts)


@inlined
def opened(flat: Array) -> tuple[Ledger, Account]:
    return opened_as(flat, int(flat[0]), int(flat[1]))


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
        for i in range(dim):
            offset[i] = ledger.sums[DISPLACED, i] + baseline[i]
        owed = (1.0 - alpha) * upper(region, offset)
        earned = structural(region, ledger.sums[FALLBACK], alpha, account.nonnegative, 0.0)
        base = account.reserve + earned - owed - ledger.tally[SLACK]
        raise_to_lower(region, forms, pool, base, ledger.sums[PLAYED], row, out, True)
    else:
        bank = ledger.bank[0]
        for k in range(size):
            out[row, k] = bank + out[certificate, k]
        for m in range(int(ledger.tally[KEPT])):
            base = ledger.kept_bank[m] + joint_claim(baseline, alpha, offset)
            for i in range(dim):
                offset[i] += _since(ledger, m, i)
            raise_to_lower(region, forms, pool, base, offset, row, out, False)
    if account.tolerance > 0.0:
        for k in range(size):
            out[row, k] -= _round_slack(account, False)


@inlined
def _round_slack(account: Account, is_baseline: bool) -> float:
    """What misspecification can cost a round: epsilon (1 + c) for a candidate, epsilon alpha else.

    The contrast of a candidate has two means in it, with weights 1 and c; the baseline's has one.
    """
    if is_baseline:
        return account.alpha * account.tolerance
    return (2.0 - account.alpha) * account.tolerance


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
        earned = structural(region, scratch, alpha, account.nonnegative, 0.0)
        owed = (1.0 - alpha) * upper(region, ledger.sums[DISPLACED]) + ledger.tally[SLACK]
        slack = _round_slack(account, True)
        total: float = account.reserve + lower(region, ledger.sums[PLAYED]) + earned - owed - slack
        return total
    best: float = ledger.bank[0] + structural(
        region, baseline, alpha, account.nonnegative, account.tolerance
    )
    for m in range(int(ledger.tally[KEPT])):
        for i in range(dim):
            scratch[i] = _since(ledger, m, i) + alpha * baseline[i]
        value = ledger.kept_bank[m] + lower(region, scratch) - _round_slack(account, True)
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
    ledger.tally[ROUNDS] += 1.0
    if account.tolerance > 0.0:
        slack = _round_slack(account, is_baseline)
        ledger.tally[SLACK] += slack
        for m in range(int(ledger.tally[KEPT])):
            ledger.kept_bank[m] -= slack  # every claim about later rounds pays for this one
    if len(ledger.kept_bank) > 1:
        _checkpoint(ledger)


@kernel
def recharge(
    ledger_flat: Array, margin: float, executed: Array, baseline: Array, is_baseline: bool
) -> None:
    """``charge`` with a recorded margin; executed and baseline (d,)."""
    ledger, account = opened(ledger_flat)
    charge(ledger, account, margin, executed, baseline, is_baseline)


@inlined
def _checkpoint(ledger: Ledger) -> None:
    """Keep this round if its turn has come; see the top of this file for the rule."""
    room, dim = ledger.kept_prefix.shape
    now = ledger.tally[ROUNDS]
    if now % ledger.tally[STRIDE] != 0.0:
        return
    if int(ledger.tally[KEPT]) == room:
        kept = 1
        for m in range(2, room, 2):
            ledger.kept_bank[kept] = ledger.kept_bank[m]
            ledger.kept_round[kept] = ledger.kept_round[m]
            for i in range(dim):
                ledger.kept_prefix[kept, i] = ledger.kept_prefix[m, i]
                ledger.kept_low[kept, i] = ledger.kept_low[m, i]
            kept += 1
        ledger.tally[KEPT] = kept
        ledger.tally[STRIDE] *= 2.0
        if now % ledger.tally[STRIDE] != 0.0:
            return
    last = int(ledger.tally[KEPT])
    ledger.kept_bank[last] = ledger.bank[0]
    ledger.kept_round[last] = now
    for i in range(dim):
        ledger.kept_prefix[last, i] = ledger.prefix[i]
        ledger.kept_low[last, i] = ledger.low[0, i]
    ledger.tally[KEPT] += 1.0


@inlined
def _since(ledger: Ledger, m: int, i: int) -> float:
    """(Z - Z_m)_i, exact to the last bits of the difference however large Z itself is."""
    gap: float = ledger.prefix[i] - ledger.kept_prefix[m, i]
    gap += ledger.low[0, i] - ledger.kept_low[m, i]
    return gap


@inlined
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as it rounds, and what rounding took from it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def _plus(high: float, low: float, value: float) -> tuple[float, float]:
    """The unevaluated sum high + low, plus value; ``high`` is the sum as it rounds."""
    total, lost = _two_sum(high, value)
    return _two_sum(total, low + lost)


@inlined
def _enter(
    ledger: Ledger,
    account: Account,
    executed: Array,
    baseline: Array,
    is_baseline: bool,
    sign: float,
) -> None:
    """Add a round to Z and the sums, or take it out again, without losing what is small beside them.

    A plain sum would forget every later round after one huge row, and claims about later rounds, which
    are differences of two prefixes, would certify contrasts that they no longer see.
    """
    low, kept = ledger.low, 1.0 - account.alpha
    for i in range(len(executed)):
        total, lost = _plus(ledger.prefix[i], low[0, i], sign * executed[i])
        ledger.prefix[i], low[0, i] = _plus(total, lost, -kept * (sign * baseline[i]))
    if account.kind != REVALUE:  # nobody else reads the sums
        return
    for i in range(len(executed)):
        x, b = sign * executed[i], sign * baseline[i]
        if is_baseline:
            ledger.sums[FALLBACK, i], low[3, i] = _plus(ledger.sums[FALLBACK, i], low[3, i], b)
        else:
            ledger.sums[PLAYED, i], low[1, i] = _plus(ledger.sums[PLAYED, i], low[1, i], x)
            ledger.sums[DISPLACED, i], low[2, i] = _plus(ledger.sums[DISPLACED, i], low[2, i], b)


@allocating
def amend(
    ledger_flat: Array,
    evidence_flat: Array,
    decided: Array,
    decided_is_baseline: bool,
    executed: Array,
    executed_is_baseline: bool,
    baseline: Array,
    round_: int,
) -> None:
    """Another action than the decided one was executed at ``round_``, the first being 0.

    D changes by exactly (x(executed) - x(decided)) @ theta from that round on, so charging L of that
    difference keeps B <= D whatever was decided in between, for the bank and for every checkpoint
    after that round. The bank may become negative: the truth may be, too.
    """
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    difference = executed - decided
    if account.kind in (JOINT, SEPARATE):
        cost = lower(region, difference) - 2.0 * account.tolerance
        ledger.bank[0] += cost
        for m in range(int(ledger.tally[KEPT])):
            if ledger.kept_round[m] > round_:
                ledger.kept_bank[m] += cost
                for i in range(len(difference)):
                    high, low = ledger.kept_prefix[m, i], ledger.kept_low[m, i]
                    high, low = _plus(high, low, -decided[i])
                    high, low = _plus(high, low, executed[i])
                    ledger.kept_prefix[m, i], ledger.kept_low[m, i] = high, low
    if account.tolerance > 0.0:  # what that round cost every claim that spans it
        more = _round_slack(account, executed_is_baseline) - _round_slack(account, decided_is_baseline)
        ledger.tally[SLACK] += more
        for m in range(int(ledger.tally[KEPT])):
            if ledger.kept_round[m] <= round_:
                ledger.kept_bank[m] -= more
    _enter(ledger, account, decided, baseline, decided_is_baseline, -1.0)
    _enter(ledger, account, executed, baseline, executed_is_baseline, 1.0)
    if account.kind == REVALUE:  # its bank is not carried: revalue the corrected sums
        nothing = np.zeros(len(baseline))
        ledger.bank[0] = baseline_margin(ledger, account, region, nothing, nothing.copy())
