"""A bank that is carried from round to round and recertified from checkpoints: (12) and (13).

For any earlier round s, ``D_t = D_s + (Z_t - Z_s) @ theta`` and ``B_s <= D_s``, so the claim
``B_s + L(Z_{t-1} - Z_s + z_t(a))`` is a sound margin, and so is the largest of any number of them. The
last round, s = t-1, is carry; one checkpoint at s = 0 with B_0 = R0, Z_0 = 0 makes it refresh; more
checkpoints only raise the maximum.
"""

from c4b._jit import inlined
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, joint_claim
from c4b.evidence.bounds import lower, raise_to_lower
from c4b.evidence.ellipsoids import Region
from c4b.ledger.books import Account, Ledger, Tally, round_slack
from c4b.ledger.exact_sums import plus


@inlined
def bank_margins(
    ledger: Ledger,
    account: Account,
    region: Region,
    assessed: Assessment,
    certificate: int,
    row: int,
) -> None:
    """details[row, k] = the largest claim of every candidate; details[certificate] is bounded already."""
    dim, size = assessed.pool.shape
    details, offset = assessed.details, assessed.scratch
    bank = ledger.bank[0]
    for k in range(size):
        details[row, k] = bank + details[certificate, k]
    for m in range(int(ledger.tally[Tally.KEPT])):
        base = ledger.kept_bank[m] + joint_claim(assessed.baseline, account.alpha, offset)
        for i in range(dim):
            offset[i] += _since(ledger, m, i)
        raise_to_lower(region, assessed.forms, assessed.pool, base, offset, row, details, False)


@inlined
def bank_baseline_margin(
    ledger: Ledger, account: Account, region: Region, baseline: Array, credit: float, scratch: Array
) -> float:
    """The largest claim of the baseline, whose own round adds ``credit``; scratch (d,)."""
    best: float = ledger.bank[0] + credit
    for m in range(int(ledger.tally[Tally.KEPT])):
        for i in range(len(baseline)):
            scratch[i] = _since(ledger, m, i) + account.alpha * baseline[i]
        value = ledger.kept_bank[m] + lower(region, scratch) - round_slack(account, True)
        best = max(best, value)
    return best


@inlined
def keep_checkpoint(ledger: Ledger) -> None:
    """Keep the state after this round if its turn has come.

    A checkpoint s is the state after s rounds. The opening, s = 0, is kept for ever; of the others every
    ``stride``-th. When all M places are taken, every second one is dropped and the stride doubles, so
    that checkpoints stay evenly spread and the state bounded.
    """
    room, dim = ledger.kept_prefix.shape
    now = ledger.tally[Tally.ROUNDS]
    if now % ledger.tally[Tally.STRIDE] != 0.0:
        return
    if int(ledger.tally[Tally.KEPT]) == room:
        kept = 1
        for m in range(2, room, 2):
            ledger.kept_bank[kept] = ledger.kept_bank[m]
            ledger.kept_round[kept] = ledger.kept_round[m]
            for i in range(dim):
                ledger.kept_prefix[kept, i] = ledger.kept_prefix[m, i]
                ledger.kept_low[kept, i] = ledger.kept_low[m, i]
            kept += 1
        ledger.tally[Tally.KEPT] = kept
        ledger.tally[Tally.STRIDE] *= 2.0
        if now % ledger.tally[Tally.STRIDE] != 0.0:
            return
    last = int(ledger.tally[Tally.KEPT])
    ledger.kept_bank[last] = ledger.bank[0]
    ledger.kept_round[last] = now
    for i in range(dim):
        ledger.kept_prefix[last, i] = ledger.prefix[i]
        ledger.kept_low[last, i] = ledger.low[0, i]
    ledger.tally[Tally.KEPT] += 1.0


@inlined
def amend_bank(
    ledger: Ledger,
    account: Account,
    region: Region,
    decided: Array,
    executed: Array,
    change: Array,
    round_: int,
) -> None:
    """Charge the difference of two actions to the bank and to every checkpoint after ``round_``.

    change (d,) = executed - decided.

    D changes by exactly (x(executed) - x(decided)) @ theta from that round on, so charging L of that
    difference keeps B <= D whatever was decided in between. The bank may become negative: the truth may
    be, too.
    """
    cost = lower(region, change) - 2.0 * account.tolerance
    ledger.bank[0] += cost
    for m in range(int(ledger.tally[Tally.KEPT])):
        if ledger.kept_round[m] > round_:
            ledger.kept_bank[m] += cost
            for i in range(len(decided)):
                high, low = ledger.kept_prefix[m, i], ledger.kept_low[m, i]
                high, low = plus(high, low, -decided[i])
                high, low = plus(high, low, executed[i])
                ledger.kept_prefix[m, i], ledger.kept_low[m, i] = high, low


@inlined
def _since(ledger: Ledger, m: int, i: int) -> float:
    """(Z - Z_m)_i, exact to the last bits of the difference however large Z itself is."""
    gap: float = ledger.prefix[i] - ledger.kept_prefix[m, i]
    gap += ledger.low[0, i] - ledger.kept_low[m, i]
    return gap
