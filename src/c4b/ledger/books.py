"""The ledger's terms and its arrays: the bank B, the executed prefix Z, and the rounds it remembers.

Carry, refresh and checkpoints are one ledger with different memories; see ``bank_ledger``.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.ledger.exact_sums import plus


class Certificate(IntEnum):
    """How the contrast of a candidate is bounded."""

    JOINT = 0
    """By one set for the whole contrast (8)."""
    SEPARATE = 1
    """By two intervals, one for each reward (9)."""
    KNOWN = 2
    """By the candidate's interval and the baseline's mean, which the caller is told."""


class LedgerKind(IntEnum):
    """What is kept of earlier rounds."""

    BANK = 0
    """A bank that is carried from round to round, and checkpoints to recertify from."""
    PREFIX = 1
    """Sums of features, revalued as a whole each round."""
    NONE = 2
    """Nothing: no gate."""
    FREE = 3
    """A bank, checkpoints, and claims that need every action's mean to be >= 0."""
    ROUND = 4
    """A bank, but a candidate is admissible only if its own round is certified without it."""
    BUDGET = 5
    """A credit that is saved until it covers all that a learner can lose."""


CODES = {
    (Certificate.JOINT, LedgerKind.BANK): 0,
    (Certificate.SEPARATE, LedgerKind.BANK): 1,
    (Certificate.SEPARATE, LedgerKind.PREFIX): 2,
    (Certificate.JOINT, LedgerKind.NONE): 3,
    (Certificate.JOINT, LedgerKind.FREE): 4,
}
"""Combinations without terms of their own, and the number of each in a flat vector. Numbers on disk
never change."""
WITH_TERMS = 16
"""Added to 8 certificate + kind: the number of a ledger that has ``Ledger.terms``."""


class SumsOf(IntEnum):
    """Rows of ``Ledger.sums``."""

    PLAYED = 0
    """Candidates played."""
    DISPLACED = 1
    """Baselines that they displaced."""
    FALLBACK = 2
    """Baselines played."""


class Tally(IntEnum):
    """Entries of ``Ledger.tally``."""

    ROUNDS = 0
    """Rounds charged."""
    KEPT = 1
    """Checkpoints kept."""
    STRIDE = 2
    """Rounds between two checkpoints."""
    SLACK = 3
    """What declared misspecification has cost so far."""


class PlaysOf(IntEnum):
    """Entries of ``Ledger.plays``."""

    COUNT = 0
    """Rounds that executed a candidate."""
    CHANGED = 1
    """1 once a baseline had other features than the first one."""
    FIRST = 2
    """From here on the features of the first baseline (d,)."""


class SavingsOf(IntEnum):
    """Entries of ``Ledger.plays`` for LedgerKind.BUDGET."""

    PLAYS = 0
    """Rounds that executed the candidate that the learner chose."""
    INSTEAD = 1
    """What candidates that were executed instead are certified to be worth."""
    LONGEST = 2
    """Length of the longest row executed, or of a baseline."""


class Term(IntEnum):
    """Entries of ``Ledger.terms``: two fixed terms, and what is told of baselines."""

    FLOOR = 0
    """r_l: every baseline's mean is at least this; -inf: nothing is known."""
    PHASE = 1
    """Rounds of a phase: the budget is promised at the end of each; 1: in every round."""
    DISPLACED = 2
    """Sum of the told means that plays displaced."""
    FALLBACK = 3
    """Sum of the told means of fallback rounds."""
    DISPLACED_LOW = 4
    """What rounding took from the first sum."""
    FALLBACK_LOW = 5
    """What rounding took from the second sum."""
    FALLBACKS = 6
    """Fallback rounds."""
    ALARM = 7
    """1 once a told mean lay outside of its own interval."""


class Account(NamedTuple):
    """The ledger's fixed terms."""

    alpha: float
    reserve: float  # R0
    floor: float  # r_l: baseline means are known to be at least this; -inf: not known
    certificate: int  # Certificate
    kind: int  # LedgerKind
    tolerance: float  # epsilon: how far a mean may be from linear
    phase: int = 1  # rounds between two promises


class Ledger(NamedTuple):
    """Arrays written in place by ``charge``; room for M checkpoints."""

    bank: Array  # (1,) B
    prefix: Array  # (d,) Z = sum of executed contrasts' features
    sums: Array  # (3, d) see SumsOf; kept for LedgerKind.PREFIX only
    tally: Array  # (4,) see Tally
    kept_bank: Array  # (M,) B_s
    kept_prefix: Array  # (M, d) Z_s
    kept_round: Array  # (M,) s
    low: Array  # (4, d) what rounding took from the prefix and the three sums
    kept_low: Array  # (M, d) the same for Z_s
    plays: Array  # (2 + d,) see PlaysOf for LedgerKind.FREE, (3,) see SavingsOf for BUDGET; else empty
    terms: Array  # (8,) see Term; empty for the ledgers in CODES


class LedgerHeading(IntEnum):
    """Numbers before the arrays in a flat vector."""

    ROOM = 0
    """M"""
    DIM = 1
    """d"""
    ALPHA = 2
    RESERVE = 3
    """R0"""
    NONNEGATIVE = 4
    """1 if baseline means are known to be nonnegative."""
    CODE = 5
    """Certificate and kind: see CODES and WITH_TERMS."""
    TOLERANCE = 6


HEADING = len(LedgerHeading)
BANK = HEADING
"""Where the bank lies in a flat vector."""


def opening(account: Account, dim: int, checkpoints: int) -> Array:
    """Before the first round, as one flat vector: B = R0, Z = 0, kept as the first checkpoint."""
    plays = _plays_size(account.kind, dim)
    size = HEADING + 5 + 8 * dim + checkpoints * (2 + 2 * dim) + plays
    code = _code(account)
    flat = np.zeros(size + (len(Term) if code >= WITH_TERMS else 0))
    terms = (account.alpha, account.reserve, account.floor >= 0.0, code, account.tolerance)
    flat[:HEADING] = (checkpoints, dim, *terms)
    if code >= WITH_TERMS:
        flat[size + Term.FLOOR], flat[size + Term.PHASE] = account.floor, account.phase
    ledger, _ = views(flat)
    ledger.bank[0] = np.nan if account.kind == LedgerKind.NONE else account.reserve
    ledger.tally[:] = (0, min(checkpoints, 1), 1, 0)
    ledger.kept_bank[:] = account.reserve
    return flat


def _plays_size(kind: int, dim: int) -> int:
    if kind == LedgerKind.BUDGET:
        return len(SavingsOf)
    return PlaysOf.FIRST + dim if kind == LedgerKind.FREE else 0


def _code(account: Account) -> int:
    pair = Certificate(account.certificate), LedgerKind(account.kind)
    usual = account.floor in (0.0, -np.inf) and account.phase == 1
    return CODES[pair] if usual and pair in CODES else WITH_TERMS + 8 * pair[0] + pair[1]


def views(flat: Array) -> tuple[Ledger, Account]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, int(flat[LedgerHeading.ROOM]), int(flat[LedgerHeading.DIM]))


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
    k = h + room * dim
    code = int(flat[LedgerHeading.CODE])
    has_terms = code >= WITH_TERMS
    if has_terms:
        certificate, kind = (code - WITH_TERMS) // 8, (code - WITH_TERMS) % 8
    else:
        certificate = 1 if code in (1, 2) else 0  # see CODES
        kind = 0 if code < 2 else code - 1
    plays = PlaysOf.FIRST + dim if kind == LedgerKind.FREE else 3 if kind == LedgerKind.BUDGET else 0
    end = k + plays
    ledger = Ledger(
        shaped_view(flat, HEADING, (1,)),
        shaped_view(flat, a, (dim,)),
        shaped_view(flat, b, (3, dim)),
        shaped_view(flat, c, (4,)),
        shaped_view(flat, d, (room,)),
        shaped_view(flat, e, (room, dim)),
        shaped_view(flat, f, (room,)),
        shaped_view(flat, g, (4, dim)),
        shaped_view(flat, h, (room, dim)),
        shaped_view(flat, k, (plays,)),
        shaped_view(flat, end, (8 if has_terms else 0,)),
    )
    floor, phase = 0.0 if flat[LedgerHeading.NONNEGATIVE] == 1.0 else -np.inf, 1
    if has_terms:
        floor, phase = flat[end + Term.FLOOR], int(flat[end + Term.PHASE])
    alpha, reserve = flat[LedgerHeading.ALPHA], flat[LedgerHeading.RESERVE]
    tolerance = flat[LedgerHeading.TOLERANCE]
    return ledger, Account(alpha, reserve, floor, certificate, kind, tolerance, phase)


opened_as = inlined(parts)


@inlined
def opened(flat: Array) -> tuple[Ledger, Account]:
    return opened_as(flat, int(flat[LedgerHeading.ROOM]), int(flat[LedgerHeading.DIM]))


@inlined
def has_bank(account: Account) -> bool:
    """Whether a bank is carried from round to round."""
    return account.kind in (LedgerKind.BANK, LedgerKind.FREE)


@inlined
def round_slack(account: Account, is_baseline: bool) -> float:
    """What misspecification can cost a round: epsilon (1 + c) for a candidate, epsilon alpha else.

    The contrast of a candidate has two means in it, with weights 1 and c; the baseline's has one. A mean
    that is told costs nothing.
    """
    if account.certificate == Certificate.KNOWN:
        return 0.0 if is_baseline else account.tolerance
    if is_baseline:
        return account.alpha * account.tolerance
    return (2.0 - account.alpha) * account.tolerance


@inlined
def enter_prefix(ledger: Ledger, account: Account, executed: Array, baseline: Array, sign: float) -> None:
    """Add a round's contrast to Z, or take it out again, without losing what is small beside Z.

    A plain sum would forget every later round after one huge row, and claims about later rounds, which
    are differences of two prefixes, would certify contrasts that they no longer see.
    """
    low, kept = ledger.low, 1.0 - account.alpha
    for i in range(len(executed)):
        total, lost = plus(ledger.prefix[i], low[0, i], sign * executed[i])
        ledger.prefix[i], low[0, i] = plus(total, lost, -kept * (sign * baseline[i]))
