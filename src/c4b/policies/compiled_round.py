"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

import numpy as np

from c4b._jit import called, inlined, kernel
from c4b._parts import COMPETITION, EIGENBASES
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.certificates.contrast_kernels import (
    Assessment,
    joint_claim,
    pool_joint,
    pool_separate,
)
from c4b.evidence.belief import Belief, belief_size, believed, believes, pool_belief
from c4b.evidence.bounds import lower, upper
from c4b.evidence.ellipsoids import ALARM, HEADING, Region
from c4b.evidence.ellipsoids import opened as opened_evidence
from c4b.evidence.pools.contained_ellipsoids import innermost, innermost_size, room_for_innermost
from c4b.evidence.pools.pool_bounds import pool_interval, pool_upper
from c4b.evidence.pools.pool_forms import CROSS, SQUARES, form_rows, forms_size, pool_forms
from c4b.ledger.bank_ledger import bank_claims, bank_margin, claims_size, room_of_claims, write_rows
from c4b.ledger.books import Account, Certificate, Ledger, LedgerKind, has_bank, round_slack
from c4b.ledger.books import opened as opened_ledger
from c4b.ledger.ledger_kernels import (
    Execution,
    baseline_margin,
    charge,
    credit,
    keeps_bank,
    pool_margins,
)
from c4b.policies.candidate_fields import CandidateField
from c4b.policies.choice_rule import Rule, boldness_now, is_optimistic, opened_rule
from c4b.policies.comparison import CONTRASTS, DEVIATION, EXPECTED, HIGH, LOW
from c4b.policies.compiled_choice import (
    ALL_MARGINS,
    BASELINE,
    BEST_MARGINS,
    MARGIN,
    ONE_MARGIN,
    SCORE,
    UCB,
    Contest,
    chosen,
    opened_contest,
    usable,
)

NO_SAFE_ACTION, NOT_FINITE = -2, -3
"""Codes in the place of an action: nothing is certified; a feature is not a finite number."""
JOINT, SEPARATE = int(CandidateField.JOINT), int(CandidateField.SEPARATE)
ROWS = len(CandidateField)
"""Rows of ``details`` (ROWS, K), what is known of every candidate."""
MARGINS_ONE_BY_ONE = 16
"""Margins that are computed one by one, best score first; then all others are computed together."""
BLOCK, SPECTRAL_BLOCK = 256, 128
"""Candidates assessed at a time, so that everything about them stays in cache. From so many candidates on
it pays to look for ellipsoids that say nothing."""
MANY = 4 * SPECTRAL_BLOCK
"""Candidates from which on it pays to compute the margins of a block of the best-scored first."""
BISECTIONS = 20
"""For the lowest score of that block."""
LINE = 8
"""Numbers in a line of cache: vectors that begin with one are read faster."""
NUMBERS = 4096
"""Numbers in a block of a spectral set, which is read again for every four eigenvectors: from the nearest
cache."""


@inlined
def score(region: Region, belief: Belief, assessed: Assessment, boldness: float) -> None:
    """UCB and score of every candidate, and the forms of the pool.

    The score is what is believed of the reward plus ``boldness`` standard deviations; where nothing is
    believed, the middle of the reward's interval [L(x), U(x)] plus ``boldness`` half-widths; 1 is the UCB
    itself. Scores only order admissible candidates, so any score is sound.
    """
    forms, details = assessed.forms, assessed.details
    pool_forms(region, assessed.pool, forms)
    if COMPETITION and believes(belief):
        pool_upper(region, forms, assessed.pool, UCB, details)
        pool_belief(belief, len(region.radius), forms, SCORE, details)
        for k in range(details.shape[1]):
            details[SCORE, k] += boldness * forms[CROSS, k]
    elif not COMPETITION or boldness == 1.0:
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
    wanted = explain or rule.by_certificate
    if wanted or (banked and account.certificate == Certificate.JOINT):
        pool_joint(region, assessed, account.alpha, JOINT)
    if wanted or (banked and account.certificate != Certificate.JOINT):
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
    belief: Belief,
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
) -> tuple[int, float]:
    """Choose among candidates whose margins are all known, and execute; see the three steps above."""
    contest = opened_contest(
        region, belief, ledger, account, rule, alarmed, baseline, mean, earned, executed
    )
    action, contest = chosen(
        region, belief, ledger, account, rule, contest, candidates, baseline, mean, earned, details,
        executed, shaped_view(executed, 0, (CONTRASTS, 0)), False,
    )  # fmt: skip
    return execute(
        region, ledger, account, contest, action, candidates, baseline, mean, earned, details, executed
    )


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


def new_space(size: int) -> Array:
    """So many numbers, from the beginning of a line of cache on."""
    raw = np.empty(size + LINE)
    first = -(raw.ctypes.data // raw.itemsize) % LINE
    return raw[first : first + size]


@inlined
def _whole_lines(start: int) -> int:
    """``start``, or where the next line of cache begins in a ``new_space``."""
    return (start + LINE - 1) // LINE * LINE


def space_size(evidence_flat: Array, ledger_flat: Array, size: int) -> int:
    """How large ``space`` of ``decide`` must be for K candidates."""
    stack, dim, room = int(evidence_flat[0]), int(evidence_flat[1]), int(ledger_flat[0])
    block = min(size, BLOCK)
    assessing = 3 * LINE + (1 + block) * dim + ROWS * block + forms_size(stack, dim, block)
    kept = (
        len(ledger_flat) + dim + (CONTRASTS + ROWS) * size + innermost_size(stack, dim) + belief_size(dim)
    )
    return kept + assessing + claims_size(stack, dim, room)


@kernel
def decide(
    evidence_flat: Array,
    ledger_flat: Array,
    rule_numbers: Array,
    earned: Array,
    candidates: Array,
    baseline: Array,
    mean: float,
    lazy: bool,
    first: int,
    last: int,
    details: Array,
    space: Array,
) -> tuple[int, int, float, float, float, float, float, bool, bool]:
    """One online round on candidates (K, d); the ledger is written only when it succeeds. ``mean`` is the
    baseline's, NaN if it is not told; ``earned`` is empty where nobody asks for it. ``lazy``: margins and
    certificates that the choice does not depend on may be left out.

    Where this leaves something out, a round may be divided: with ``first`` < ``last`` only the scores of
    these candidates are written, with K for both the choice is made from scores that are written already.
    A round in one call has 0 for both.

    Writes details (ROWS, K), NaN where left out. ``space`` has ``space_size`` numbers; the first of them
    become the ledger as it was before.

    Returns nine values: the action or a negative code; the candidate concerned (the action again; with
    NOT_FINITE the offending candidate, or BASELINE); the margin; certificate and UCB of what is executed;
    the first radius; the bank before; whether nothing is left out; whether there may be an alarm.
    """
    whole_region, data, terms = opened_evidence(evidence_flat)
    rule = opened_rule(rule_numbers)
    alarm = data.tally[ALARM] != 0.0 or np.isnan(evidence_flat[HEADING])
    alarmed = rule.latches and data.tally[ALARM] != 0.0
    ledger, account = opened_ledger(ledger_flat)
    radius, before = whole_region.radius[0], ledger.bank[0]
    (size, dim), stack = candidates.shape, len(whole_region.radius)
    start = len(ledger_flat)
    for i in range(start):
        space[i] = ledger_flat[i]
    executed, start = shaped_view(space, start, (dim,)), start + dim
    all_contrasts = shaped_view(space, start, (CONTRASTS, size))
    start += CONTRASTS * size
    full, start = shaped_view(space, start, (ROWS, size)), start + ROWS * size
    room = room_for_innermost(stack, dim)
    of_region, start = shaped_view(space, start, (room,)), start + room
    of_belief, start = shaped_view(space, start, (3 * dim,)), _whole_lines(start + 3 * dim)
    region = whole_region
    if EIGENBASES:
        region = innermost(whole_region, size >= SPECTRAL_BLOCK, of_region)
    contrasts, lazy = shaped_view(space, 0, (CONTRASTS, 0)), lazy and may_be_lazy(region, account, rule)
    believing = COMPETITION and rule.believes > 0.0 and not is_optimistic(ledger, account, rule)
    belief = believed(region, data, terms, believing, of_belief)
    if not usable(shaped_view(baseline, 0, (1, dim)), 0):
        return NOT_FINITE, BASELINE, np.nan, np.nan, np.nan, radius, before, True, alarm
    wanted = region.spectral and has_bank(account)
    rest = shaped_view(space, start, (len(space) - start,))
    claims = bank_claims(ledger, account, region, baseline, wanted, rest)
    rows, start = claims.rows, _whole_lines(start + room_of_claims(claims))
    rest = shaped_view(space, start, (len(space) - start,))
    bad, divided = -1, first < last
    if not divided and not (lazy and last > 0):
        first, last = 0, size
    if EIGENBASES and not lazy:
        write_rows(claims, len(region.radius))
    if first < last and (lazy or not divided):
        bad = _assess(
            region, belief, ledger, account, rule, rows, candidates, first, last, baseline, mean, earned,
            details, lazy, rest,
        )  # fmt: skip
    if bad >= 0:
        return NOT_FINITE, bad, np.nan, np.nan, np.nan, radius, before, True, alarm
    if divided:
        return BASELINE, BASELINE, np.nan, np.nan, np.nan, radius, before, False, alarm
    contest = opened_contest(
        region, belief, ledger, account, rule, alarmed, baseline, mean, earned, executed
    )
    asked, best_known = 0, size <= MANY
    while True:
        action, contest = chosen(
            region, belief, ledger, account, rule, contest, candidates, baseline, mean, earned, details,
            executed, contrasts, lazy,
        )  # fmt: skip
        if not EIGENBASES or action > ALL_MARGINS:
            break
        if action == BEST_MARGINS and not best_known:
            best_known = True
            write_rows(claims, len(region.radius))
            _assess_best(
                region, belief, ledger, account, rule, rows, candidates, baseline, mean, earned, details,
                rest,
            )  # fmt: skip
        elif action >= BEST_MARGINS or asked == MARGINS_ONE_BY_ONE:  # after which no claim is asked
            lazy = False
            write_rows(claims, len(region.radius))
            _assess(
                region, belief, ledger, account, rule, rows, candidates, 0, size, baseline, mean, earned,
                full, False, rest,
            )  # fmt: skip
            for k in range(size):
                details[JOINT, k], details[SEPARATE, k] = full[JOINT, k], full[SEPARATE, k]
                if details[MARGIN, k] != -np.inf:  # as of one that cannot be absorbed
                    details[MARGIN, k] = full[MARGIN, k]
            if contest.passed_over > 0:  # many more will be compared with the baseline
                contrasts = all_contrasts
                _write_contrasts(region, belief, candidates, baseline, contrasts, rest)
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
    alarm = alarm or len(ledger.terms) > 0
    if action < 0:
        bound, ucb = credit(account, region, baseline, mean), upper(region, baseline)
        return action, BASELINE, margin, bound, ucb, radius, before, not lazy, alarm
    bound, ucb = (
        details[certificate_row(account), action] - round_slack(account, False),
        details[UCB, action],
    )
    return action, action, margin, bound, ucb, radius, before, not lazy, alarm


@called
def _assess(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    claims: Array,
    candidates: Array,
    first: int,
    last: int,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    lazy: bool,
    space: Array,
) -> int:
    """``score`` and, unless ``lazy``, ``certify`` for candidates (K, d) from ``first`` to ``last``;
    returns the first row that is not finite, or -1."""
    (size, dim), stack = candidates.shape, len(region.radius)
    boldness, block = boldness_now(ledger, account, rule), _block(region, size, dim, not lazy)
    if believes(belief):
        boldness = rule.believes
    scratch, at_pool = shaped_view(space, 0, (dim,)), _whole_lines(dim)
    after = at_pool + block * dim
    for start in range(first, last, block):
        count = min(block, last - start)
        pool = shaped_view(space, at_pool, (dim, count))
        _transpose(candidates, start, pool)
        rows = form_rows(stack, dim, region.spectral, count)
        forms = shaped_view(space, after + ROWS * block, (rows, count))
        if count == size:
            whole = shaped_view(details, 0, (ROWS, count))
        else:
            whole = shaped_view(space, after, (ROWS, count))
        assessed = Assessment(pool, forms, baseline, whole, scratch, mean, earned, claims)
        score(region, belief, assessed, boldness)
        if lazy:
            for k in range(count):
                whole[MARGIN, k], whole[JOINT, k], whole[SEPARATE, k] = np.nan, np.nan, np.nan
        else:
            certify(region, ledger, account, rule, assessed, True)
        for k in range(count):
            # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
            if not forms[SQUARES, k] < np.inf and not _is_finite(candidates, start + k):
                return start + k
        if count < size:
            for row in range(ROWS):
                for k in range(count):
                    details[row, start + k] = whole[row, k]
    return -1


@called
def _assess_best(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    claims: Array,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    space: Array,
) -> None:
    """Margins and certificates of up to SPECTRAL_BLOCK candidates whose scores are above all others.

    They are gathered at the end of ``space``, of which ``_assess`` needs no more than the first half.
    """
    (size, dim), room = candidates.shape, SPECTRAL_BLOCK
    low, high = np.inf, -np.inf
    for k in range(size):
        value = details[SCORE, k]
        low, high = min(low, value), max(high, value if value < np.inf else -np.inf)
    count = 0
    for _ in range(BISECTIONS):
        middle, above = 0.5 * (low + high), 0
        for k in range(size):
            above += (details[SCORE, k] > middle) & (details[SCORE, k] < np.inf)
        if above > room:
            low = middle
        else:
            high, count = middle, above
        if room // 2 <= count:
            break
    start = len(space) - room * (dim + ROWS + 1)
    listed = shaped_view(space, start, (room,))
    best = shaped_view(space, start + room, (count, dim))
    found = shaped_view(space, start + room * (dim + 1), (ROWS, count))
    n = 0
    for k in range(size):
        if high < details[SCORE, k] < np.inf:
            listed[n] = k
            for i in range(dim):
                best[n, i] = candidates[k, i]
            n += 1
    _assess(
        region, belief, ledger, account, rule, claims, best, 0, count, baseline, mean, earned, found,
        False, space,
    )  # fmt: skip
    for n in range(count):
        k = int(listed[n])
        for row in (JOINT, SEPARATE, MARGIN):
            details[row, k] = found[row, n]


@called
def _write_contrasts(
    region: Region, belief: Belief, candidates: Array, baseline: Array, contrasts: Array, space: Array
) -> None:
    """``contrasts`` of ``comparison`` for candidates (K, d)."""
    (size, dim), stack = candidates.shape, len(region.radius)
    block = _block(region, size, dim, False)
    after = block * dim
    for start in range(0, size, block):
        count = min(block, size - start)
        pool, part = shaped_view(space, 0, (dim, count)), shaped_view(space, after, (CONTRASTS, count))
        _transpose(candidates, start, pool)
        for i in range(dim):
            for k in range(count):
                pool[i, k] -= baseline[i]
        rows = form_rows(stack, dim, region.spectral, count)
        forms = shaped_view(space, after + ROWS * block, (rows, count))
        pool_forms(region, pool, forms)
        pool_interval(region, forms, pool, LOW, HIGH, part)
        if believes(belief):
            pool_belief(belief, len(region.radius), forms, EXPECTED, part)
            for k in range(count):
                part[DEVIATION, k] = forms[CROSS, k]
        for row in range(CONTRASTS if believes(belief) else EXPECTED):
            for k in range(count):
                contrasts[row, start + k] = part[row, k]


@inlined
def _is_finite(rows: Array, k: int) -> bool:
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) < np.inf:
            return False
    return True


@inlined
def _block(region: Region, size: int, dim: int, claims: bool) -> int:
    """Candidates at a time. ``claims``: every block costs as much again for each claim, so that larger
    ones pay."""
    largest = SPECTRAL_BLOCK if region.spectral else BLOCK
    if region.spectral and not claims:
        largest = min(max(NUMBERS // dim // 16 * 16, 32), largest)
    return max(min(size, largest), 1)


@called
def _transpose(candidates: Array, start: int, pool: Array) -> None:
    """Candidates from ``start`` on, (K, d), as a pool (d, count)."""
    dim, count = pool.shape
    for k in range(0, count - count % 4, 4):
        n = start + k
        for i in range(0, dim - dim % 4, 4):  # four by four, so that both sides are whole vectors
            a0, a1 = candidates[n, i], candidates[n, i + 1]
            a2, a3 = candidates[n, i + 2], candidates[n, i + 3]
            b0, b1 = candidates[n + 1, i], candidates[n + 1, i + 1]
            b2, b3 = candidates[n + 1, i + 2], candidates[n + 1, i + 3]
            c0, c1 = candidates[n + 2, i], candidates[n + 2, i + 1]
            c2, c3 = candidates[n + 2, i + 2], candidates[n + 2, i + 3]
            d0, d1 = candidates[n + 3, i], candidates[n + 3, i + 1]
            d2, d3 = candidates[n + 3, i + 2], candidates[n + 3, i + 3]
            pool[i, k], pool[i, k + 1], pool[i, k + 2], pool[i, k + 3] = a0, b0, c0, d0
            pool[i + 1, k], pool[i + 1, k + 1], pool[i + 1, k + 2], pool[i + 1, k + 3] = a1, b1, c1, d1
            pool[i + 2, k], pool[i + 2, k + 1], pool[i + 2, k + 2], pool[i + 2, k + 3] = a2, b2, c2, d2
            pool[i + 3, k], pool[i + 3, k + 1], pool[i + 3, k + 2], pool[i + 3, k + 3] = a3, b3, c3, d3
        for i in range(dim - dim % 4, dim):
            for m in range(k, k + 4):
                pool[i, m] = candidates[start + m, i]
    for k in range(count - count % 4, count):
        for i in range(dim):
            pool[i, k] = candidates[start + k, i]
