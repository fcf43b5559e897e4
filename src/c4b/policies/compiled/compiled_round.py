"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

import numpy as np

from c4b._compilation.cache_lines import whole_lines
from c4b._compilation.jit import inlined, kernel
from c4b._compilation.kernel_parts import COMPETITION, EIGENBASES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, joint_claim
from c4b.evidence.belief import Belief, believed
from c4b.evidence.bounds import lower, upper
from c4b.evidence.ellipsoids import ALARM, HEADING, Region
from c4b.evidence.ellipsoids import opened as opened_evidence
from c4b.evidence.pools.contained_ellipsoids import innermost
from c4b.ledger.bank_ledger import bank_claims, bank_margin, room_of_claims, write_rows
from c4b.ledger.books import Account, Certificate, Ledger, LedgerKind, has_bank, round_slack
from c4b.ledger.books import opened as opened_ledger
from c4b.ledger.ledger_kernels import Execution, baseline_margin, charge, credit, keeps_bank
from c4b.policies.catalogue.choice_rule import Rule, is_optimistic, opened_rule
from c4b.policies.compiled.assessment_in_blocks import (
    SPECTRAL_BLOCK,
    assess,
    assess_best,
    write_contrasts,
)
from c4b.policies.compiled.comparison import CONTRASTS, usable
from c4b.policies.compiled.compiled_assessment import certificate_row
from c4b.policies.compiled.compiled_choice import (
    ALL_MARGINS,
    BASELINE,
    BEST_MARGINS,
    ONE_MARGIN,
    Contest,
    chosen,
    opened_contest,
)
from c4b.policies.compiled.round_space import opened_round_space
from c4b.policies.compiled.tied_scores import shuffle_ties
from c4b.policies.rounds.candidate_fields import JOINT, MARGIN, SEPARATE, UCB

NO_SAFE_ACTION, NOT_FINITE = -2, -3
"""Codes in the place of an action: nothing is certified; a feature is not a finite number."""
MARGINS_ONE_BY_ONE = 16
"""Margins that are computed one by one, best score first; then all others are computed together."""
THOROUGH = SPECTRAL_BLOCK
"""Candidates from which on it pays to compare all ellipsoids, to find those that say nothing."""
MANY = 4 * SPECTRAL_BLOCK
"""Candidates from which on it pays to compute the margins of a block of the best-scored first."""


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
    space: Array,
) -> tuple[int, float]:
    """Choose among candidates whose margins are all known, and execute; ``space`` as in ``approach``."""
    contest = opened_contest(
        region, belief, ledger, account, rule, alarmed, baseline, mean, earned, executed
    )
    action, contest = chosen(
        region, belief, ledger, account, rule, contest, candidates, baseline, mean, earned, details,
        executed, shaped_view(executed, 0, (CONTRASTS, 0)), False, space,
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
    for i in range(len(ledger_flat)):
        space[i] = ledger_flat[i]
    room = opened_round_space(space, len(ledger_flat), stack, dim, size)
    executed, full = room.executed, room.full
    region = whole_region
    if EIGENBASES:
        region = innermost(whole_region, size >= THOROUGH, room.region)
    contrasts, lazy = shaped_view(space, 0, (CONTRASTS, 0)), lazy and may_be_lazy(region, account, rule)
    believing = COMPETITION and rule.believes > 0.0 and not is_optimistic(ledger, account, rule)
    belief = believed(
        region,
        data,
        terms,
        believing,
        rule.careful,
        rule.lessons > 0.0,
        candidates,
        baseline,
        room.belief,
    )
    if not usable(shaped_view(baseline, 0, (1, dim)), 0):
        return NOT_FINITE, BASELINE, np.nan, np.nan, np.nan, radius, before, True, alarm
    wanted = region.spectral and has_bank(account)
    claims = bank_claims(ledger, account, region, baseline, wanted, room.rest)
    rows, end = claims.rows, whole_lines(room_of_claims(claims))
    rest = shaped_view(room.rest, end, (len(room.rest) - end,))
    bad, divided = -1, first < last
    if not divided and not (lazy and last > 0):
        first, last = 0, size
    if EIGENBASES and not lazy:
        write_rows(claims, len(region.radius))
    if first < last and (lazy or not divided):
        bad = assess(
            region, belief, ledger, account, rule, rows, candidates, first, last, baseline, mean, earned,
            details, lazy, rest,
        )  # fmt: skip
    if bad >= 0:
        return NOT_FINITE, bad, np.nan, np.nan, np.nan, radius, before, True, alarm
    if divided:
        return BASELINE, BASELINE, np.nan, np.nan, np.nan, radius, before, False, alarm
    if COMPETITION and rule.shuffles:
        shuffle_ties(data.moment, details)
    contest = opened_contest(
        region, belief, ledger, account, rule, alarmed, baseline, mean, earned, executed
    )
    asked, best_known = 0, size <= MANY
    while True:
        action, contest = chosen(
            region, belief, ledger, account, rule, contest, candidates, baseline, mean, earned, details,
            executed, contrasts, lazy, rest,
        )  # fmt: skip
        if not EIGENBASES or action > ALL_MARGINS:
            break
        if action == BEST_MARGINS and not best_known:
            best_known = True
            write_rows(claims, len(region.radius))
            assess_best(
                region, belief, ledger, account, rule, rows, candidates, baseline, mean, earned, details,
                rest,
            )  # fmt: skip
        elif action >= BEST_MARGINS or asked == MARGINS_ONE_BY_ONE:  # after which no claim is asked
            lazy = False
            write_rows(claims, len(region.radius))
            assess(
                region, belief, ledger, account, rule, rows, candidates, 0, size, baseline, mean, earned,
                full, False, rest,
            )  # fmt: skip
            for k in range(size):
                details[JOINT, k], details[SEPARATE, k] = full[JOINT, k], full[SEPARATE, k]
                if details[MARGIN, k] != -np.inf:  # as of one that cannot be absorbed
                    details[MARGIN, k] = full[MARGIN, k]
            if contest.passed_over > 0:  # many more will be compared with the baseline
                contrasts = room.contrasts
                write_contrasts(region, belief, candidates, baseline, contrasts, rest)
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
    bound, ucb = details[certificate_row(account), action], details[UCB, action]
    bound -= round_slack(account, False)
    return action, action, margin, bound, ucb, radius, before, not lazy, alarm
