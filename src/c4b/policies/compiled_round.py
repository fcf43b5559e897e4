"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

from typing import NamedTuple

import numpy as np

from c4b._jit import allocating, inlined
from c4b._shaped_view import shaped_view
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
    form_rows,
    interval,
    lower,
    pool_forms,
    pool_interval,
    pool_upper,
    upper,
)
from c4b.evidence.ellipsoids import ALARM, Region
from c4b.evidence.ellipsoids import opened as opened_evidence
from c4b.ledger.bank_ledger import bank_claims, bank_margin
from c4b.ledger.books import Account, Certificate, Ledger, LedgerKind, Tally, has_bank, round_slack
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
ALL_MARGINS, ONE_MARGIN = -4, -5
"""Codes in the place of a choice: it needs all margins; with ONE_MARGIN - k, that of candidate k."""
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
MARGINS_ONE_BY_ONE = 16
"""Margins that are computed one by one, best score first; then all others are computed together."""
BLOCK, SPECTRAL_BLOCK = 256, 128
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
    if boldness == 1.0:
        pool_upper(region, forms, assessed.pool, UCB, details)
        _copy(details, UCB, SCORE)
    else:
        pool_interval(region, forms, assessed.pool, SCORE, UCB, details)
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
def best_from(details: Array, least: float, proposed: bool, rank: Array, lazy: bool) -> int:
    """Highest finite score among margins >= ``least``, lowest index on ties, or BASELINE.

    ``proposed``: margins do not matter. ``lazy``: a margin that is NaN is not known yet and may be large
    enough. ``rank`` (K,) is scratch. First the highest score, as four maxima that do not wait for each
    other, then its first place: no branch depends on scores or margins, which nobody can predict.
    """
    size = details.shape[1]
    for k in range(size):
        value, margin = details[SCORE, k], details[MARGIN, k]
        admitted = (proposed | (margin >= least) | (lazy & np.isnan(margin))) & (value < np.inf)
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
def choose(details: Array, propose: bool, least: float, rank: Array, lazy: bool) -> int:
    """The best-scored candidate whose margin is >= ``least``, else >= 0; else BASELINE.

    ``propose``: only the candidate of highest score is tested, against 0. ``rank`` (K,) is scratch.
    ``lazy``: a candidate whose margin is not known is returned as ONE_MARGIN - k, if it would be chosen
    were its margin large enough. So what is chosen at last is what all margins would choose.
    """
    best = best_from(details, max(least, 0.0), propose, rank, lazy)
    if lazy and best != BASELINE and np.isnan(details[MARGIN, best]):
        return ONE_MARGIN - best
    if propose:
        return best if best != BASELINE and details[MARGIN, best] >= 0.0 else BASELINE
    if best == BASELINE and least > 0.0:
        best = best_from(details, 0.0, False, rank, False)
    return best


class Contest(NamedTuple):
    """What a choice depends on besides the candidates."""

    refuted: bool  # a told mean contradicts the data
    alarmed: bool  # no certificate counts
    competes: bool  # the baseline does
    optimistic: bool  # this round scores by the UCB
    least: float  # margin that a choice would like to have
    rival: float  # the baseline's margin; NaN: nobody has asked yet
    passed_over: int  # candidates that promise no more than the baseline


@inlined
def opened_contest(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    alarmed: bool,
    baseline: Array,
    mean: float,
    earned: Array,
    scratch: Array,
) -> Contest:
    """``alarmed``: the model is refuted. ``mean`` is the baseline's if it is told, ``earned`` what
    absorbed plays have earned if somebody asks; scratch (d,)."""
    least, competes, rival = 0.0, rule.competes > 0, np.nan
    refuted = is_refuted(ledger, account, region, baseline, mean)
    if competes and not account.floor >= 0.0:  # only a baseline that may be played competes
        rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
        competes = rival >= 0.0
    optimistic = is_optimistic(ledger, rule)
    if rule.thrift > 0.0 and not optimistic:
        saved = structural(region, baseline, account.alpha, 0.0, account.tolerance)
        least = min(rule.thrift * ledger.bank[0], CUSHION * saved)
    alarmed = alarmed or (rule.latches and refuted)
    return Contest(refuted, alarmed, competes, optimistic, least, rival, 0)


@inlined
def chosen(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    contest: Contest,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    scratch: Array,
    rank: Array,
    lazy: bool,
) -> tuple[int, Contest]:
    """The choice among assessed candidates (K, d): an index, BASELINE, or which margins it needs first.

    details (ROWS, K); ``scratch`` (d,); ``rank`` (K,) is scratch, too.
    """
    refuted, alarmed, competes, optimistic, least, rival, passed_over = contest
    action = BASELINE
    while not alarmed:
        action = choose(details, rule.propose, least, rank, lazy)
        if action < 0:
            break
        if not _usable(candidates, action):
            details[UCB, action] = np.inf  # absorbing it could overflow: never admitted
            details[SCORE, action] = np.inf
            details[MARGIN, action] = -np.inf
        elif competes and optimistic:
            if not details[UCB, action] > upper(region, baseline):
                action = BASELINE  # it has the highest UCB of all
            break
        elif competes and not (_promise(region, rule.trust, candidates, action, baseline, scratch) > 0.0):
            if np.isnan(rival):
                rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
            spare = ledger.bank[0] if rule.competes == BANK_COMPETES else np.inf
            if details[MARGIN, action] > rival or (
                details[MARGIN, action] > spare
                and _promise(region, 1.0, candidates, action, baseline, scratch) > 0.0
            ):
                break
            details[SCORE, action] = -np.inf
            passed_over += 1
            if passed_over == ASKED_ONE_BY_ONE and lazy:
                action, passed_over = ALL_MARGINS, passed_over - 1
                break
            if passed_over == ASKED_ONE_BY_ONE:
                _pass_over(region, rule, candidates, baseline, rival, spare, details, scratch)
        else:
            break
    if action >= 0 and _is_baseline(account, candidates, action, baseline):
        action = BASELINE
    return action, Contest(refuted, alarmed, competes, optimistic, least, rival, passed_over)


@inlined
def execute(
    region: Region,
    ledger: Ledger,
    account: Account,
    contest: Contest,
    action: int,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    executed: Array,
) -> tuple[int, float]:
    """Charge the ledger for a choice and write the features of what is executed (d,).

    Returns the action, or NO_SAFE_ACTION, and its margin. Without known nonnegativity a baseline whose
    margin is below 0 stops the policy; then nothing is charged. With an alarm no certificate counts and
    only a baseline that is known to be nonnegative is played.
    """
    if action == BASELINE:
        margin = baseline_margin(ledger, account, region, baseline, mean, earned, executed)
        for i in range(len(executed)):
            executed[i] = baseline[i]
        unsafe = not account.floor >= 0.0 and (contest.alarmed or not margin >= 0.0)
        if account.kind != LedgerKind.NONE and unsafe:
            return NO_SAFE_ACTION, margin
    else:
        margin = details[MARGIN, action] if account.kind != LedgerKind.NONE else np.nan
        for i in range(len(executed)):
            executed[i] = candidates[action, i]
    played = Execution(executed, baseline, action == BASELINE, mean)
    charge(ledger, account, margin, played, contest.refuted)
    return action, margin


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
    """Choose among candidates whose margins are all known, and execute; see the three steps above."""
    contest = opened_contest(region, ledger, account, rule, alarmed, baseline, mean, earned, executed)
    action, contest = chosen(
        region, ledger, account, rule, contest, candidates, baseline, mean, earned, details, executed,
        rank, False,
    )  # fmt: skip
    return execute(
        region, ledger, account, contest, action, candidates, baseline, mean, earned, details, executed
    )


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


@inlined
def may_be_lazy(region: Region, account: Account, rule: Rule) -> bool:
    """Whether scores need no margin, and margins of single candidates are much less work than all."""
    joint = account.certificate == Certificate.JOINT and has_bank(account)
    return region.spectral and joint and not rule.by_certificate


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
    lazy: bool,
) -> tuple[int, int, float, float, float, Array, bool]:
    """One online round on candidates (K, d); the ledger is written only when it succeeds. ``mean`` is the
    baseline's, NaN if it is not told; ``earned`` is empty where nobody asks for it. ``lazy``: margins and
    certificates that the choice does not depend on may be left out.

    Returns seven values: the action or a negative code; the candidate concerned (the action again; with
    NOT_FINITE the offending candidate, or BASELINE); the margin; the UCB of what is executed; its
    certificate; details (ROWS, K), NaN where left out; whether nothing is.
    """
    region, data, _ = opened_evidence(evidence_flat)
    rule = Rule(propose, boldness, thrift, latches, period, competes, trust, by_certificate)
    alarmed = latches and data.tally[ALARM] != 0.0
    ledger, account = opened_ledger(ledger_flat)
    size, dim = candidates.shape
    details, executed, rank = np.empty((ROWS, size)), np.empty(dim), np.empty(size)
    lazy = lazy and may_be_lazy(region, account, rule)
    if not _usable(baseline.reshape(1, dim), 0):
        return NOT_FINITE, BASELINE, np.nan, np.nan, np.nan, details, True
    bad = _assess(region, ledger, account, rule, candidates, baseline, mean, earned, details, lazy)
    if bad >= 0:
        return NOT_FINITE, bad, np.nan, np.nan, np.nan, details, True
    contest = opened_contest(region, ledger, account, rule, alarmed, baseline, mean, earned, executed)
    claims = bank_claims(ledger, account, region, baseline, lazy)
    asked = 0
    while True:
        action, contest = chosen(
            region, ledger, account, rule, contest, candidates, baseline, mean, earned, details, executed,
            rank, lazy,
        )  # fmt: skip
        if action > ALL_MARGINS:
            break
        if action == ALL_MARGINS or asked == MARGINS_ONE_BY_ONE:
            full, lazy = np.empty((ROWS, size)), False
            _assess(region, ledger, account, rule, candidates, baseline, mean, earned, full, False)
            for k in range(size):
                details[JOINT, k], details[SEPARATE, k] = full[JOINT, k], full[SEPARATE, k]
                if details[MARGIN, k] != -np.inf:  # as of one that cannot be absorbed
                    details[MARGIN, k] = full[MARGIN, k]
        else:
            k, asked = ONE_MARGIN - action, asked + 1
            for i in range(dim):
                executed[i] = candidates[k, i]
            margin, joint = bank_margin(claims, account, region, executed)
            details[JOINT, k] = joint
            details[MARGIN, k] = margin if margin >= -np.inf else -np.inf
    action, margin = execute(
        region, ledger, account, contest, action, candidates, baseline, mean, earned, details, executed
    )
    if action < 0:
        bound = credit(account, region, baseline, mean)
        return action, BASELINE, margin, upper(region, baseline), bound, details, not lazy
    bound = details[certificate_row(account), action] - round_slack(account, False)
    return action, action, margin, details[UCB, action], bound, details, not lazy


@allocating
def _assess(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    lazy: bool,
) -> int:
    """``score`` and, unless ``lazy``, ``certify`` for candidates (K, d); returns a row that is not
    finite, or -1."""
    size, dim = candidates.shape
    boldness, most = boldness_now(ledger, rule), SPECTRAL_BLOCK if region.spectral else BLOCK
    block, scratch = max(min(size, most), 1), np.empty(dim)
    pools, parts = np.empty(dim * block), np.empty((ROWS, block))
    stack = len(region.radius)
    all_forms = np.empty(form_rows(stack, dim, region.spectral, block) * block + dim)
    for start in range(0, size, block):
        count = min(block, size - start)
        pool = shaped_view(pools, 0, (dim, count))
        for first in range(0, count, TILE):
            for i in range(dim):
                for k in range(first, min(first + TILE, count)):
                    pool[i, k] = candidates[start + k, i]
        forms = shaped_view(all_forms, 0, (form_rows(stack, dim, region.spectral, count), count))
        whole = shaped_view(details if count == size else parts, 0, (ROWS, count))
        assessed = Assessment(pool, forms, baseline, whole, scratch, mean, earned)
        score(region, assessed, boldness)
        if lazy:
            for k in range(count):
                whole[MARGIN, k], whole[JOINT, k], whole[SEPARATE, k] = np.nan, np.nan, np.nan
        else:
            certify(region, ledger, account, rule, assessed, True)
        for k in range(count):
            # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
            if not forms[SQUARES, k] < np.inf and not np.all(np.isfinite(candidates[start + k])):
                return start + k
        if count < size:
            for row in range(ROWS):
                for k in range(count):
                    details[row, start + k] = whole[row, k]
    return -1


@inlined
def _usable(rows: Array, k: int) -> bool:
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) <= LARGEST:
            return False
    return True
