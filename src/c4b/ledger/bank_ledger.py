"""A bank that is carried from round to round and recertified from checkpoints: (12) and (13).

For any earlier round s, ``D_t = D_s + (Z_t - Z_s) @ theta`` and ``B_s <= D_s``, so the claim
``B_s + L(Z_{t-1} - Z_s + z_t(a))`` is a sound margin, and so is the largest of any number of them. The
last round, s = t-1, is carry; one checkpoint at s = 0 with B_0 = R0, Z_0 = 0 makes it refresh; more
checkpoints only raise the maximum.
"""

from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.kernel_parts import EIGENBASES, OTHER_LEDGERS
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, joint_claim
from c4b.evidence.bounds import lower
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.offset_bounds import base_below, raise_to_lower
from c4b.evidence.pools.pool_forms import CENTRES, coordinates, form_rows, forms_size, spectral_centres
from c4b.evidence.pools.spectral_offset_bounds import raise_to_turned, spectral_raise, turn_offset
from c4b.ledger.books import Account, Ledger, LedgerKind, Tally, round_slack
from c4b.ledger.exact_sums import plus
from c4b.ledger.free_ledger import free_claims


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
    size = assessed.pool.shape[1]
    details, offset = assessed.details, assessed.scratch
    bank, free = ledger.bank[0], -np.inf
    if OTHER_LEDGERS and account.kind == LedgerKind.FREE:
        now, _, free = free_claims(ledger, account, region, assessed.baseline, offset)
        bank = max(bank, now)
    for k in range(size):
        details[row, k] = max(bank + details[certificate, k], free)
    if EIGENBASES:
        for c in range(1, len(assessed.claims)):
            claim = assessed.claims[c]
            raise_to_turned(region, assessed.forms, assessed.pool, claim, row, details, False)
    kept = 0 if len(assessed.claims) > 0 else int(ledger.tally[Tally.KEPT])
    if kept > 0:
        _raise_by_checkpoint(ledger, account, region, assessed, 0, row)
    if kept > 1:
        _raise_by_others(ledger, account, region, assessed, row)


@called
def _raise_by_others(
    ledger: Ledger, account: Account, region: Region, assessed: Assessment, row: int
) -> None:
    """All checkpoints but the first. Apart from that: a loop that usually ends after one round would
    fetch in advance what all rounds need."""
    for m in range(1, int(ledger.tally[Tally.KEPT])):
        _raise_by_checkpoint(ledger, account, region, assessed, m, row)


@inlined
def _raise_by_checkpoint(
    ledger: Ledger, account: Account, region: Region, assessed: Assessment, m: int, row: int
) -> None:
    offset, details = assessed.scratch, assessed.details
    base = ledger.kept_bank[m] + joint_claim(assessed.baseline, account.alpha, offset)
    for i in range(len(offset)):
        offset[i] += _since(ledger, m, i)
    raise_to_lower(region, assessed.forms, assessed.pool, base, offset, row, details, False)


ABREAST = 8
"""Numbers that a processor computes with at once. Loops over claims are short: what a whole number of
times so many leaves over would take as long as the rest."""


class BankClaims(NamedTuple):
    """All claims about the coming round, one a column, as the margin of a single candidate needs them.

    For spectral sets. The first is the joint certificate, which the bank is added to; then comes one for
    each checkpoint, then columns of zeros up to C', the next multiple of ABREAST.
    """

    offsets: Array  # (d, C')
    bases: Array  # (C',)
    forms: Array  # (R, C') of the offsets, as if they were candidates
    values: Array  # (1, C') scratch
    turned: Array  # (d + G,) scratch
    rows: Array  # (C, 1 + 2 d + G) see ``Assessment.claims``
    bank: float
    free: float  # see ``c4b.ledger.free_ledger``; -inf: nothing is free


def claims_size(stack: int, dim: int, room: int) -> int:
    """How large ``space`` of ``bank_claims`` must be for M checkpoints."""
    most = room + ABREAST
    return (3 * dim + 3 + stack) * most + 2 * dim + stack + forms_size(stack, dim, most)


@called
def bank_claims(
    ledger: Ledger, account: Account, region: Region, baseline: Array, wanted: bool, space: Array
) -> BankClaims:
    """What margins need, computed once a round, in ``space``; empty unless it is ``wanted``."""
    stack, dim = region.estimate.shape
    count, width = 1 + int(ledger.tally[Tally.KEPT]) if wanted else 0, 1 + 2 * dim + stack
    columns = (count + ABREAST - 1) // ABREAST * ABREAST
    lines = form_rows(stack, dim, region.spectral, columns)
    after = (dim + 2 + lines) * columns
    claims = BankClaims(
        shaped_view(space, 0, (dim, columns)),
        shaped_view(space, dim * columns, (columns,)),
        shaped_view(space, (dim + 2) * columns, (lines, columns)),
        shaped_view(space, (dim + 1) * columns, (1, columns)),
        shaped_view(space, after, (dim + stack,)),
        shaped_view(space, after + dim + stack, (count, width)),
        ledger.bank[0],
        -np.inf,
    )
    if not EIGENBASES or not wanted:
        return claims
    offsets, bases, offset = claims.offsets, claims.bases, shaped_view(claims.turned, 0, (dim,))
    joint, lengths = joint_claim(baseline, account.alpha, offset), claims.values
    for c in range(columns):
        lengths[0, c] = 0.0
    for i in range(dim):
        own, high, low = offset[i], ledger.prefix[i], ledger.low[0, i]
        offsets[i, 0] = own
        for c in range(1, count):
            offsets[i, c] = own + _gap(high, low, ledger.kept_prefix[c - 1, i], ledger.kept_low[c - 1, i])
        for c in range(count, columns):
            offsets[i, c] = 0.0
        for c in range(columns):
            lengths[0, c] += abs(offsets[i, c])
    for c in range(columns):
        base = ledger.kept_bank[c - 1] + joint if 0 < c < count else joint
        bases[c] = base_below(region, base, lengths[0, c])
    spectral_centres(region, offsets, claims.forms)
    if OTHER_LEDGERS and account.kind == LedgerKind.FREE:
        now, _, free = free_claims(ledger, account, region, baseline, offset)
        now = max(claims.bank, now)
        return BankClaims(
            offsets, bases, claims.forms, claims.values, claims.turned, claims.rows, now, free
        )
    return claims


@called
def write_rows(claims: BankClaims, stack: int) -> None:
    """The claims as ``Assessment.claims``, for margins of all candidates."""
    dim = len(claims.offsets)
    turned, _ = coordinates(claims.forms, stack, dim)
    for c in range(len(claims.rows)):
        claims.rows[c, 0] = claims.bases[c]
        for i in range(dim):
            claims.rows[c, 1 + i], claims.rows[c, 1 + dim + i] = claims.offsets[i, c], turned[i, c]
        for g in range(stack):
            claims.rows[c, 1 + 2 * dim + g] = claims.forms[CENTRES + 2 * g, c]


@inlined
def room_of_claims(claims: BankClaims) -> int:
    """Numbers that claims take of their ``space``."""
    lists = claims.offsets.size + claims.bases.size + claims.values.size + claims.turned.size
    return int(lists + claims.rows.size + claims.forms.size)


@inlined
def bank_margin(claims: BankClaims, account: Account, region: Region, x: Array) -> tuple[float, float]:
    """Margin and joint certificate of one candidate x (d,), the same bits as ``bank_margins`` gives."""
    values, dim = claims.values, len(x)
    along = shaped_view(claims.turned, 0, (dim,))
    shifts = shaped_view(claims.turned, dim, (len(region.radius),))
    turn_offset(region, x, along, shifts)
    spectral_raise(
        region, claims.forms, claims.offsets, 0.0, claims.bases, x, along, shifts, 0, values, True
    )
    margin = max(claims.bank + values[0, 0], claims.free)
    for c in range(1, len(claims.rows)):
        margin = max(margin, values[0, c])
    if account.tolerance > 0.0:
        margin -= round_slack(account, False)
    return margin, values[0, 0]


@inlined
def bank_baseline_margin(
    ledger: Ledger, account: Account, region: Region, baseline: Array, credit: float, scratch: Array
) -> float:
    """The largest claim of the baseline, whose own round adds ``credit``; scratch (d,)."""
    best: float = ledger.bank[0] + credit
    if OTHER_LEDGERS and account.kind == LedgerKind.FREE:
        now, after, _ = free_claims(ledger, account, region, baseline, scratch)
        best = max(best, now + credit, after)
    for m in range(int(ledger.tally[Tally.KEPT])):
        for i in range(len(baseline)):
            scratch[i] = _since(ledger, m, i) + account.alpha * baseline[i]
        value = ledger.kept_bank[m] + lower(region, scratch) - round_slack(account, True)
        best = max(best, value)
    return best


@inlined
def recertified_bank(
    ledger: Ledger, account: Account, region: Region, baseline: Array, scratch: Array
) -> float:
    """The largest claim about the rounds so far; scratch (d,)."""
    best: float = ledger.bank[0]
    if OTHER_LEDGERS and account.kind == LedgerKind.FREE:
        best = max(best, free_claims(ledger, account, region, baseline, scratch)[0])
    for m in range(int(ledger.tally[Tally.KEPT])):
        for i in range(len(scratch)):
            scratch[i] = _since(ledger, m, i)
        best = max(best, ledger.kept_bank[m] + lower(region, scratch))
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
    difference keeps B <= D whatever was decided in between. That pays for what is unknown of the decided
    action twice; checkpoints before the round do not: see ``recertified_bank``. The bank may become
    negative: the truth may be, too.
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
    return _gap(ledger.prefix[i], ledger.low[0, i], ledger.kept_prefix[m, i], ledger.kept_low[m, i])


@inlined
def _gap(high: float, low: float, kept_high: float, kept_low: float) -> float:
    """The difference of two sums that are kept in two parts each."""
    return (high - kept_high) + (low - kept_low)
