"""One simulated episode, compiled, over the same kernels as the online policy.

Theta and the means are known here only: no kernel that this file calls is given either of them.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from c4b._compilation.cache_lines import new_space
from c4b._compilation.jit import inlined, kernel, kernel_of_known_shapes
from c4b._compilation.kernel_parts import COMPETITION
from c4b._compilation.shaped_view import shaped_view
from c4b._compilation.specialised import specialised
from c4b._validate import Array, Counts
from c4b.certificates.contrast_kernels import Assessment
from c4b.evidence.absorption import add, recentre
from c4b.evidence.belief import belief_size, believed, believes
from c4b.evidence.bounds import contains
from c4b.evidence.ellipsoids import ALARM, LOG_DET, MIXTURE, EvidenceHeading, is_spectral, stack_and_dim
from c4b.evidence.ellipsoids import opened_as as opened_evidence
from c4b.evidence.pools.pool_forms import form_rows
from c4b.evidence.sums.earned import earn, earned_holds
from c4b.evidence.sums.regret import ABSORBED
from c4b.evidence.sums.regret import LOG_DET as LOG_DET_AT_START
from c4b.ledger.books import LedgerHeading, LedgerKind
from c4b.ledger.books import opened_as as opened_ledger
from c4b.policies.catalogue.choice_rule import Rule, boldness_now, is_optimistic, is_plain, opened_rule
from c4b.policies.compiled.compiled_assessment import certify, score
from c4b.policies.compiled.compiled_choice import BASELINE
from c4b.policies.compiled.compiled_round import executed_bounds, settle
from c4b.policies.compiled.tied_scores import shuffle_ties
from c4b.policies.rounds.candidate_fields import MARGIN, ROWS
from c4b.study.engine.episode_metrics import Metric

USUAL_STACK, USUAL_DIM, USUAL_SIZE = 1, 5, 32
"""Ellipsoids, features and candidates of the paper's study, which gets machine code of its own."""


_OF_RULE = len(Rule._fields)


class RuleColumn(IntEnum):
    """Columns of ``Lineup.rules`` after those of the composition's ``Rule``."""

    LEARNS_PLAYS_ONLY = _OF_RULE
    """1 if outcomes of the baseline are not learned."""
    EARNED_SIZE = _OF_RULE + 1
    """Numbers kept of outcomes beside the evidence, after those of the ledger: what plays have earned, or
    how far a learner is; 0: none."""
    PROMISE_PERIOD = _OF_RULE + 2
    """The budget is promised after every so many rounds."""
    ROUND_ALONE = _OF_RULE + 3
    """1 if each round's own contrast is promised to be nonnegative."""
    FORCED_ROUNDS = _OF_RULE + 4
    """Rounds at the start in which the baseline is played."""
    EVIDENCE_START = _OF_RULE + 5
    """Index of the first number of the flat evidence."""
    EVIDENCE_SIZE = _OF_RULE + 6
    """Numbers in the flat evidence."""
    LEDGER_START = _OF_RULE + 7
    """Index of the first number of the flat ledger."""
    LEDGER_SIZE = _OF_RULE + 8
    """Numbers in the flat ledger."""
    RESULT = _OF_RULE + 9
    """Row of the results that are written."""


class Lineup(NamedTuple):
    """What the compiled methods of settings with one scene start from: one call plays them all."""

    ledgers: Array  # flat ledgers, one after the other, each followed by what else outcomes change
    rules: Array  # (methods, fields of ``Rule`` + RuleColumn)


class Workspace(NamedTuple):
    """Scratch of an episode with K candidates and a stack of at most G ellipsoids."""

    evidence: Array  # flat
    ledger: Array  # flat
    forms: Array  # (R, K) from ``form_rows``
    details: Array  # (ROWS, K)
    executed: Array  # (d,)
    scratch: Array  # (d,)
    earned: Array  # see ``RuleColumn.EARNED_SIZE``
    belief: Array  # ``belief_size`` numbers


def workspace(lineup: Lineup, stack: int, dim: int, size: int) -> Workspace:
    """Scratch for any of the methods."""
    longest = lineup.rules.max(axis=0).astype(int)
    return Workspace(
        new_space(longest[RuleColumn.EVIDENCE_SIZE]),
        new_space(longest[RuleColumn.LEDGER_SIZE]),
        new_space(form_rows(stack, dim, True, size) * size).reshape(-1, size),
        new_space(ROWS * size).reshape(ROWS, size),
        np.empty(dim),
        np.empty(dim),
        np.empty(max(longest[RuleColumn.EARNED_SIZE], 1)),
        np.empty(belief_size(dim)),
    )


class Scene(NamedTuple):
    """What one episode fixes for a setting before any method plays."""

    pools: Array  # (T, d, K) feature-major
    means: Array  # (T, K)
    best: Array  # (T,) highest mean of candidates and baseline
    noise: Array  # (T, K+1), the last column the baseline's
    baselines: Array  # (T, d)
    theta: Array  # (d,)
    baseline_means: Array  # (T,)
    baseline_reward: float  # sum over rounds of the baseline's means
    told_means: Array  # (T,) what methods that need the baseline's mean are told


@inlined
def _play(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
    row: int,
    stack: int,
    dim: int,
    size: int,
) -> None:
    """Row ``row`` of the lineup in ``run_setting``, for G = ``stack``, d = ``dim`` and K = ``size``."""
    columns = lineup.rules[row]
    result = int(columns[RuleColumn.RESULT])
    rule = opened_rule(columns)
    learns_plays_only = columns[RuleColumn.LEARNS_PLAYS_ONLY] == 1.0
    promise_period = int(columns[RuleColumn.PROMISE_PERIOD])
    round_alone = columns[RuleColumn.ROUND_ALONE] == 1.0
    forced_rounds = int(columns[RuleColumn.FORCED_ROUNDS])
    # of exactly their lengths: some of what is in them is found from the end
    evidence = shaped_view(work.evidence, 0, (int(columns[RuleColumn.EVIDENCE_SIZE]),))
    books = shaped_view(work.ledger, 0, (int(columns[RuleColumn.LEDGER_SIZE]),))
    for i in range(len(evidence)):
        evidence[i] = evidences[int(columns[RuleColumn.EVIDENCE_START]) + i]
    for i in range(len(books)):
        books[i] = lineup.ledgers[int(columns[RuleColumn.LEDGER_START]) + i]
    rounds = len(scene.best)
    region, data, terms = opened_evidence(evidence, stack, dim)
    ledger, account = opened_ledger(books, int(books[LedgerHeading.ROOM]), dim)
    pools = shaped_view(scene.pools, 0, (rounds, dim, size))
    means, best, noise = scene.means, scene.best, scene.noise
    baselines, baseline_means = shaped_view(scene.baselines, 0, (rounds, dim)), scene.baseline_means
    theta = shaped_view(scene.theta, 0, (dim,))
    forms = shaped_view(work.forms, 0, (form_rows(stack, dim, region.spectral, size), size))
    settling = shaped_view(work.forms, 0, (work.forms.size,))  # once the forms have done their work
    details = shaped_view(work.details, 0, (ROWS, size))
    executed, scratch = shaped_view(work.executed, 0, (dim,)), shaped_view(work.scratch, 0, (dim,))
    gated = account.kind != LedgerKind.NONE
    earned = shaped_view(work.earned, 0, (int(columns[RuleColumn.EARNED_SIZE]),))
    outcomes_start = int(columns[RuleColumn.LEDGER_START] + columns[RuleColumn.LEDGER_SIZE])
    for i in range(len(earned)):
        earned[i] = lineup.ledgers[outcomes_start + i]
    has_learner, no_claims = account.kind == LedgerKind.BUDGET, shaped_view(work.scratch, 0, (0, 1))
    earns = len(earned) > 0 and not has_learner
    if has_learner:
        earned[LOG_DET_AT_START] = data.tally[LOG_DET]

    reward, regret, count = 0.0, 0.0, 0
    true_credit, least, least_slack = account.reserve, np.inf, np.inf
    covered, broken = True, False
    paid_joint, paid_separate, need_joint, need_separate = 0.0, 0.0, 0.0, 0.0
    for t in range(rounds):
        covered &= contains(region, data, theta)
        if earns:
            covered &= earned_holds(earned, theta, terms.misspecification)
        pool, baseline, baseline_mean = pools[t], baselines[t], baseline_means[t]
        told_mean = scene.told_means[t]
        alarmed = rule.latches and data.tally[ALARM] != 0.0
        assessed = Assessment(pool, forms, baseline, details, scratch, told_mean, earned, no_claims)
        believing = rule.believes > 0.0 and not is_optimistic(ledger, account, rule)
        belief = believed(
            region,
            data,
            terms,
            believing,
            rule.careful,
            rule.lessons > 0.0,
            pool.T,
            baseline,
            work.belief,
        )
        boldness = boldness_now(ledger, account, rule)
        score(region, belief, assessed, rule.believes if believes(belief) else boldness)
        certify(region, ledger, account, rule, assessed, False)
        if COMPETITION and rule.shuffles:
            shuffle_ties(data.moment, details)  # scores by the certificate are there now, too
        if t < forced_rounds:
            for k in range(size):
                details[MARGIN, k] = -np.inf
        action, margin = settle(
            region,
            belief,
            ledger,
            account,
            rule,
            alarmed,
            pool.T,
            baseline,
            told_mean,
            earned,
            details,
            executed,
            settling,
        )
        fell_back = action == BASELINE
        mean = baseline_mean if fell_back else means[t, action]
        outcome = mean + (noise[t, size] if fell_back else noise[t, action])

        count += fell_back
        fallbacks[0, result, t] += count
        fallbacks[1, result, t] += count * count
        reward += mean
        regret += best[t] - mean
        contrast = mean - (1.0 - account.alpha) * baseline_mean
        true_credit += contrast
        promised = promise_period == 1 or (t + 1) % promise_period == 0
        least = min(least, true_credit if promised else np.inf)
        broken |= round_alone and contrast < 0.0
        if gated:
            least_slack = min(least_slack, true_credit - margin if promised else np.inf)
            joint, separate = executed_bounds(region, account, assessed, action, executed)
            paid_joint -= joint
            paid_separate -= separate
            need_joint = max(need_joint, paid_joint)
            need_separate = max(need_separate, paid_separate)
        if not (learns_plays_only and fell_back):
            add(region, data, executed, outcome)
            recentre(region, data, terms)
        if earns and not fell_back:
            earn(earned, executed, outcome)
        if has_learner:
            earned[ABSORBED] += 1.0

    numbers = metrics[result]
    numbers[Metric.REWARD_RATIO] = reward / scene.baseline_reward
    numbers[Metric.FALLBACK] = count / rounds
    numbers[Metric.MIN_D] = least
    numbers[Metric.VIOLATION] = least < 0.0 or broken
    numbers[Metric.COVERED] = covered
    numbers[Metric.MIN_SLACK] = least_slack if gated else np.nan
    numbers[Metric.FINAL_BANK] = ledger.bank[0]
    numbers[Metric.REGRET] = regret
    numbers[Metric.RMIN_JOINT] = need_joint if gated else np.nan
    numbers[Metric.RMIN_SEPARATE] = need_separate if gated else np.nan
    numbers[Metric.SUM_PENALTY] = paid_separate - paid_joint if gated else np.nan


@kernel
def run_setting(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
) -> None:
    """Play T rounds with every method, from flat evidences, one after the other, left as they are.

    Every method has a row of ``metrics`` (R, len(Metric)), which is written, and of ``fallbacks``
    (2, R, T), to which the cumulative count of fallbacks and its square are added.
    """
    _, dim, size = scene.pools.shape
    for m in range(len(lineup.rules)):
        stack = int(evidences[int(lineup.rules[m, RuleColumn.EVIDENCE_START])])
        _play(evidences, lineup, scene, work, metrics, fallbacks, m, stack, dim, size)


@kernel_of_known_shapes
def _run_usual_setting(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
) -> None:
    """``run_setting`` for the usual G, d and K: the same source with all three known when compiling.

    Bits cannot differ: kernels are compiled without any licence to reorder or contract arithmetic.
    """
    stack, dim, size = USUAL_STACK, USUAL_DIM, USUAL_SIZE
    for m in range(len(lineup.rules)):
        _play(evidences, lineup, scene, work, metrics, fallbacks, m, stack, dim, size)


run_usual_setting = specialised(
    _run_usual_setting, "run_usual_setting", ("BOXES", "EIGENBASES", "COMPETITION", "UNREAD")
)
"""For sets that keep an inverse, and choices by UCB and margins alone."""
Runner = Callable[[Array, Lineup, Scene, Workspace, Array, Counts], None]


def runner(evidences: Iterable[Array], lineup: Lineup, size: int) -> Runner:
    """The fastest ``run_setting`` for methods with these flat evidences and K candidates."""
    usual = size == USUAL_SIZE and all(is_plain(numbers) for numbers in lineup.rules)
    for flat in evidences:
        usual &= stack_and_dim(flat) == (USUAL_STACK, USUAL_DIM) and not is_spectral(flat)
        usual &= bool(flat[EvidenceHeading.CODE] >= MIXTURE)
    return run_usual_setting if usual else run_setting
