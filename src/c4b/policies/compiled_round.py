"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

from typing import NamedTuple

import numpy as np

from c4b._jit import allocating, inlined
from c4b._validate import LARGEST, Array
from c4b.certificates.contrast_kernels import (
    Assessment,
    joint_claim,
    pool_joint,
    pool_separate,
    structural,
)
from c4b.evidence.bounds import (
    SQUARES,
    interval,
    lower,
    new_forms,
    pool_forms,
    pool_lower,
    pool_upper,
    upper,
)
from c4b.evidence.ellipsoids import ALARM, Region
from c4b.evidence.ellipsoids import opened as opened_evidence
from c4b.ledger.books import Account, Certificate, Ledger, LedgerKind, Tally, round_slack
from c4b.ledger.books import opened as opened_ledger
from c4b.ledger.ledger_kernels import (
    Execution,
    baseline_margin,
    charge,
    credit,
    keeps_bank,
    pool_margins,
)
from c4b.ledger.told_ledger import is_refuted
from c4b.policies.candidate_fields import CandidateField

BASELINE = -1
"""The index that stands for the baseline in kernels."""
NO_SAFE_ACTION, NOT_FINITE = -2, -3
"""Codes in the place of an action: nothing is certified; a feature is not a finite number."""
UCB, MARGIN, SCORE = int(CandidateField.UCB), int(CandidateField.MARGIN), int(CandidateField.SCORE)
JOINT, SEPARATE = int(CandidateField.JOINT), int(CandidateField.SEPARATE)
ROWS = len(CandidateField)
"""Rows of ``details`` (ROWS, K), what is known of every candidate."""
CUSHION = 6.0
"""A thrifty choice keeps no more than this many rounds of certified baseline credit in the bank."""
GOLDEN = 0.6180339887498949
"""Multiples of it spread evenly between 0 and 1: they say which round of a period is optimistic."""
ASKED_ONE_BY_ONE = 8
"""Candidates that are passed over one by one, best score first; then all others are looked at."""
BLOCK = 256
"""Candidates assessed at a time, so that everything about them stays in cache."""
TILE = 32
"""Candidates transposed at a time, so that both sides of the copy stay in cache."""


BASELINE_COMPETES, BANK_COMPETES = 1, 2
"""Values of ``Rule.competes``. A candidate that promises no more than the baseline is played if it leaves
more in the bank than playing the baseline would; with the second also if it leaves more than there is now
and could be better than the baseline."""


class Rule(NamedTuple):
    """How a composition chooses among admissible candidates."""

    propose: bool  # only the best-scored candidate is tested
    boldness: float  # share of the half-width in the score
    thrift: float  # share of the bank that a choice would like to leave
    latches: bool  # an alarm against the model latches the baseline
    period: int  # one round of so many is optimistic; 0: none is
    competes: int  # a rival below: what promises and leaves no more than it is not played; 0: nobody
    trust: float  # share of the half-width in what a candidate promises above the baseline
    by_certificate: bool = False  # the score is the certificate


@inlined
def is_optimistic(ledger: Ledger, rule: Rule) -> bool:
    """Whether the next round is one of those that score by the UCB and keep no cushion.

    Every block of ``period`` rounds has one, at a position that differs from block to block and follows
    from the round's number alone.
    """
    if rule.period == 0:
        return False
    now = int(ledger.tally[Tally.ROUNDS])
    block, position = now // rule.period, now % rule.period
    return position == int(rule.period * ((GOLDEN * (block + 1.0)) % 1.0))


@inlined
def boldness_now(ledger: Ledger, rule: Rule) -> float:
    """Half-widths that a score of the next round adds to the middle of the interval."""
    return 1.0 if is_optimistic(ledger, rule) else rule.boldness


@inlined
def score(region: Region, assessed: Assessment, boldness: float) -> None:
    """UCB and score of every candidate, and the forms of the pool.

    The score is the middle of the reward's interval [L(x), U(x)] plus ``boldness`` half-widths; 1 is
    the UCB itself. Scores only order admissible candidates, so any score is sound.
    """
    forms, details = assessed.forms, assessed.details
    pool_forms(region, assessed.pool, forms)
    pool_upper(region, forms, assessed.pool, UCB, details)
    if boldness == 1.0:
        _copy(details, UCB, SCORE)
    else:
        pool_lower(region, forms, assessed.pool, 0.0, SCORE, details)
        for k in range(details.shape[1]):
            high, low = details[UCB, k], details[SCORE, k]
            details[SCORE, k] = 0.5 * ((1.0 + boldness) * high + (1.0 - boldness) * low)


@inlined
def _copy(details: Array, source: int, target: int) -> None:
    for k in range(details.shape[1]):
        details[target, k] = details[source, k]


@inlined
def certify(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    assessed: Assessment,
    explain: bool,
) -> None:
    """Margins of scored candidates and the certificates they need, or both kinds to ``explain``."""
    banked, known = keeps_bank(account), account.certificate == Certificate.KNOWN
    if explain or (banked and account.certificate == Certificate.JOINT):
        pool_joint(region, assessed, account.alpha, JOINT)
    if explain or (banked and account.certificate != Certificate.JOINT):
        pool_separate(region, assessed, account.alpha, known, SEPARATE)
    if rule.by_certificate:
        _copy(assessed.details, certificate_row(account), SCORE)
    pool_margins(ledger, account, region, assessed, certificate_row(account), MARGIN)


@inlined
def certificate_row(account: Account) -> int:
    """The row of ``details`` that a bank is charged by, or that says most of a candidate."""
    separate = account.certificate == Certificate.SEPARATE and keeps_bank(account)
    return SEPARATE if separate or account.certificate == Certificate.KNOWN else JOINT


@inlined
def best_from(details: Array, least: float, proposed: bool, rank: Array) -> int:
    """Highest finite score among margins >= ``least``, lowest index on ties, or BASELINE.

    ``proposed``: margins do not matter. ``rank`` (K,) is scratch. First the highest score, as four maxima
    that do not wait for each other, then its first place: no branch depends on scores or margins, which
    nobody can predict.
    """
    size = details.shape[1]
    for k in range(size):
        value = details[SCORE, k]
        admitted = (proposed | (details[MARGIN, k] >= least)) & (value < np.inf)
        rank[k] = value if admitted else -np.inf
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    fours = size - size % 4
    for k in range(0, fours, 4):
        a, b = max(a, rank[k]), max(b, rank[k + 1])
        c, d = max(c, rank[k + 2]), max(d, rank[k + 3])
    for k in range(fours, size):
        a = max(a, rank[k])
    top, best = max(a, b, c, d), size
    for k in range(size):
        best = min(best, k if rank[k] == top else size)
    return best if top > -np.inf else BASELINE


@inlined
def choose(details: Array, propose: bool, least: float, rank: Array) -> int:
    """The best-scored candidate whose margin is >= ``least``, else >= 0; else BASELINE.

    ``propose``: only the candidate of highest score is tested, against 0. ``rank`` (K,) is scratch.
    """
    best = best_from(details, max(least, 0.0), propose, rank)
    if propose:
        return best if best != BASELINE and details[MARGIN, best] >= 0.0 else BASELINE
    if best == BASELINE and least > 0.0:
        best = best_from(details, 0.0, False, rank)
    return best


@inlined
def settle(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    alarmed: bool,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    executed: Array,
    rank: Array,
) -> tuple[int, float]:
    """Choose among assessed candidates (K, d) and charge the ledger; details (ROWS, K).

    Returns (a candidate's index, BASELINE or NO_SAFE_ACTION; its margin) and writes the features of what
    is executed (d,). Without known nonnegativity a baseline whose margin is below 0 stops the policy;
    then nothing is charged. ``alarmed``: the model is refuted, so no certificate counts and only a
    baseline that is known to be nonnegative is played. ``mean`` is the baseline's if it is told,
    ``earned`` what absorbed plays have earned if somebody asks. ``rank`` (K,) is scratch.
    """
    least, competes, rival = 0.0, rule.competes > 0, np.nan
    refuted, nonnegative = is_refuted(ledger, account, region, baseline, mean), account.floor >= 0.0
    alarmed = alarmed or (rule.latches and refuted)
    if competes and not nonnegative:  # only a baseline that may be played competes
        rival = baseline_margin(ledger, account, region, baseline, mean, earned, executed)
        competes = rival >= 0.0
    optimistic = is_optimistic(ledger, rule)
    if rule.thrift > 0.0 and not optimistic:
        saved = structural(region, baseline, account.alpha, 0.0, account.tolerance)
        least = min(rule.thrift * ledger.bank[0], CUSHION * saved)
    action, passed_over = BASELINE, 0
    while not alarmed:
        action = choose(details, rule.propose, least, rank)
        if action == BASELINE:
            break
        if not _usable(candidates, action):
            details[UCB, action] = np.inf  # absorbing it could overflow: never admitted
            details[SCORE, action] = np.inf
            details[MARGIN, action] = -np.inf
        elif competes and optimistic:
            if not details[UCB, action] > upper(region, baseline):
                action = BASELINE  # it has the highest UCB of all
            break
        elif competes and not (
            _promise(region, rule.trust, candidates, action, baseline, executed) > 0.0
        ):
            if np.isnan(rival):
                rival = baseline_margin(ledger, account, region, baseline, mean, earned, executed)
            spare = ledger.bank[0] if rule.competes == BANK_COMPETES else np.inf
            if details[MARGIN, action] > rival or (
                details[MARGIN, action] > spare
                and _promise(region, 1.0, candidates, action, baseline, executed) > 0.0
            ):
                break
            details[SCORE, action] = -np.inf
            passed_over += 1
            if passed_over == ASKED_ONE_BY_ONE:
                _pass_over(region, rule, candidates, baseline, rival, spare, details, executed)
        else:
            break
    if action != BASELINE and _is_baseline(account, candidates, action, baseline):
        action = BASELINE
    if action == BASELINE:
        margin = baseline_margin(ledger, account, region, baseline, mean, earned, executed)
        for i in range(len(executed)):
            executed[i] = baseline[i]
        unsafe = not nonnegative and (alarmed or not margin >= 0.0)
        if account.kind != LedgerKind.NONE and unsafe:
            return NO_SAFE_ACTION, margin
    else:
        margin = details[MARGIN, action] if account.kind != LedgerKind.NONE else np.nan
        for i in range(len(executed)):
            executed[i] = candidates[action, i]
    played = Execution(executed, baseline, action == BASELINE, mean)
    charge(ledger, account, margin, played, refuted)
    return action, margin


@inlined
def _promise(
    region: Region, trust: float, candidates: Array, k: int, baseline: Array, scratch: Array
) -> float:
    """What a candidate promises above the baseline, x(a) - x(b) scored like a candidate with ``trust``
    half-widths; scratch (d,)."""
    for i in range(len(scratch)):
        scratch[i] = candidates[k, i] - baseline[i]
    low, high = interval(region, scratch)
    return 0.5 * ((1.0 + trust) * high + (1.0 - trust) * low)


@inlined
def _pass_over(
    region: Region,
    rule: Rule,
    candidates: Array,
    baseline: Array,
    rival: float,
    spare: float,
    details: Array,
    scratch: Array,
) -> None:
    """Give a score of -inf to all admissible candidates that promise no more than the baseline, leave no
    more than ``rival``, the baseline's margin, and leave no more than ``spare`` or cannot be better.

    Asking the best-scored one again and again would take time quadratic in the number of candidates.
    """
    for k in range(details.shape[1]):
        beaten = details[MARGIN, k] >= 0.0 and not details[MARGIN, k] > rival and _usable(candidates, k)
        if not beaten or _promise(region, rule.trust, candidates, k, baseline, scratch) > 0.0:
            continue
        if (
            not details[MARGIN, k] > spare
            or not _promise(region, 1.0, candidates, k, baseline, scratch) > 0.0
        ):
            details[SCORE, k] = -np.inf


@inlined
def _is_baseline(account: Account, candidates: Array, k: int, baseline: Array) -> bool:
    """Whether a candidate is the incumbent offered again.

    Where means are linear in the features, equal features are one action. With declared misspecification
    they may be two actions with different means.
    """
    if account.tolerance > 0.0:
        return False
    for i in range(len(baseline)):
        if candidates[k, i] != baseline[i]:
            return False
    return True


@inlined
def executed_bounds(
    region: Region, account: Account, assessed: Assessment, action: int, executed: Array
) -> tuple[float, float]:
    """(joint, separate) lower bound of the executed contrast; the baseline's is structural in both.

    The one that the ledger needed is in ``details`` already.
    """
    baseline, scratch, details = assessed.baseline, assessed.scratch, assessed.details
    if action == BASELINE:
        bound = credit(account, region, baseline, assessed.mean)
        return bound, bound
    banked, known = keeps_bank(account), account.certificate == Certificate.KNOWN
    if banked and account.certificate != Certificate.JOINT:
        separate = details[SEPARATE, action]
    else:
        owed = assessed.mean if known else upper(region, baseline)
        separate = lower(region, executed) - (1.0 - account.alpha) * owed
    if banked and account.certificate == Certificate.JOINT:
        return details[JOINT, action], separate
    base = joint_claim(baseline, account.alpha, scratch)
    for i in range(len(scratch)):
        scratch[i] += executed[i]
    return base + lower(region, scratch), separate


@allocating
def decide(
    evidence_flat: Array,
    ledger_flat: Array,
    propose: bool,
    boldness: float,
    thrift: float,
    latches: bool,
    period: int,
    competes: int,
    trust: float,
    by_certificate: bool,
    earned: Array,
    candidates: Array,
    baseline: Array,
    mean: float,
) -> tuple[int, int, float, float, float, Array]:
    """One online round on candidates (K, d); the ledger is written only when it succeeds. ``mean`` is the
    baseline's, NaN if it is not told; ``earned`` is empty where nobody asks for it.

    Returns six values: the action or a negative code; the candidate concerned (the action again; with
    NOT_FINITE the offending candidate, or BASELINE); the margin; the UCB of what is executed; its
    certificate; details (ROWS, K).
    """
    region, data, _ = opened_evidence(evidence_flat)
    rule = Rule(propose, boldness, thrift, latches, period, competes, trust, by_certificate)
    alarmed = latches and data.tally[ALARM] != 0.0
    ledger, account = opened_ledger(ledger_flat)
    now = boldness_now(ledger, rule)
    size, dim = candidates.shape
    details = np.empty((ROWS, size))
    executed = np.empty(dim)
    if not _usable(baseline.reshape(1, dim), 0):
        return NOT_FINITE, BASELINE, np.nan, np.nan, np.nan, details
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        if size <= BLOCK:
            bad = _certify_rows(
                region, ledger, account, rule, now, candidates, baseline, mean, earned, details
            )
        else:
            part = np.empty((ROWS, stop - start))
            rows = candidates[start:stop]
            bad = _certify_rows(region, ledger, account, rule, now, rows, baseline, mean, earned, part)
            details[:, start:stop] = part
        if bad >= 0:
            return NOT_FINITE, start + bad, np.nan, np.nan, np.nan, details
    rank = np.empty(size)
    action, margin = settle(
        region,
        ledger,
        account,
        rule,
        alarmed,
        candidates,
        baseline,
        mean,
        earned,
        details,
        executed,
        rank,
    )
    if action < 0:
        bound = credit(account, region, baseline, mean)
        return action, BASELINE, margin, upper(region, baseline), bound, details
    bound = details[certificate_row(account), action] - round_slack(account, False)
    return action, action, margin, details[UCB, action], bound, details


@inlined
def _usable(rows: Array, k: int) -> bool:
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) <= LARGEST:
            return False
    return True


@allocating
def _certify_rows(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    boldness: float,
    rows: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
) -> int:
    """``score`` and ``certify`` for rows (K, d); returns a row that is not finite, or -1."""
    size, dim = rows.shape
    pool = np.empty((dim, size))
    for start in range(0, size, TILE):
        for i in range(dim):
            for k in range(start, min(start + TILE, size)):
                pool[i, k] = rows[k, i]
    forms = new_forms(region, size)
    assessed = Assessment(pool, forms, baseline, details, np.empty(dim), mean, earned)
    score(region, assessed, boldness)
    certify(region, ledger, account, rule, assessed, True)
    for k in range(size):
        # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
        if not forms[SQUARES, k] < np.inf and not np.all(np.isfinite(rows[k])):
            return k
    return -1
