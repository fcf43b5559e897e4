"""One simulated episode, compiled, over the same kernels as the online policy.

The truth lives here and only here: no kernel below this room sees theta or a mean.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from c4b._jit import inlined, kernel
from c4b._shaped_view import window
from c4b._validate import Array, Counts
from c4b.evidence.absorption import add, recentre
from c4b.evidence.bounds import CROSS, contains
from c4b.evidence.ellipsoids import ALARM
from c4b.evidence.ellipsoids import opened_as as opened_evidence
from c4b.ledger.ledger_kernels import UNGATED
from c4b.ledger.ledger_kernels import opened_as as opened_ledger
from c4b.policies.compiled_round import (
    BASELINE,
    MARGIN,
    ROWS,
    certify,
    executed_bounds,
    score,
    settle,
)

METRICS = (
    "reward_ratio",  # mean over rounds of the played mean / the baseline's mean
    "fallback",  # share of rounds in which the baseline was played
    "min_d",  # smallest D_t = R0 + sum of true contrasts
    "violation",  # 1 if some D_t < 0
    "covered",  # 1 if theta was in the confidence set at every round
    "min_slack",  # smallest D_t - B_t
    "final_bank",
    "regret",  # sum over rounds of the best mean (candidates and baseline) - the played mean
    "rmin_joint",  # (14) along the executed path, joint certificates
    "rmin_separate",  # (14) along the executed path, separate certificates
    "sum_penalty",  # sum of (10) along the executed path
)
"""Columns that ``run_setting`` fills, in this order; NaN where a method without a gate has none."""

USUAL_STACK, USUAL_DIM, USUAL_SIZE = 1, 5, 32
"""Ellipsoids, features and candidates of the paper's study, which gets machine code of its own."""


PROPOSE, BOLDNESS, THRIFT, LATCHES, WAIT, EVIDENCE_AT, EVIDENCE_SIZE, LEDGER_AT, LEDGER_SIZE = range(9)
"""Columns of ``Lineup.rules``. The first WAIT rounds play the baseline."""


class Lineup(NamedTuple):
    """What the M methods of a setting start from, as arrays: one compiled call plays them all."""

    ledgers: Array  # flat ledgers, one after the other
    rules: Array  # (M, 9): a composition's rule, rounds to wait, then place and size of both flats


class Workspace(NamedTuple):
    """Scratch of an episode with K candidates and a stack of at most G ellipsoids."""

    evidence: Array  # flat
    ledger: Array  # flat
    forms: Array  # (1 + 2G, K)
    details: Array  # (ROWS, K)
    executed: Array  # (d,)
    scratch: Array  # (d,)


def workspace(lineup: Lineup, stack: int, dim: int, size: int) -> Workspace:
    """Scratch for any of the methods."""
    longest = lineup.rules.max(axis=0).astype(int)
    return Workspace(
        np.empty(longest[EVIDENCE_SIZE]),
        np.empty(longest[LEDGER_SIZE]),
        np.empty((1 + 2 * stack, size)),
        np.empty((ROWS, size)),
        np.empty(dim),
        np.empty(dim),
    )


class Scene(NamedTuple):
    """What one episode fixes for a setting before any method plays."""

    pools: Array  # (T, d, K) feature-major
    means: Array  # (T, K)
    best: Array  # (T,) highest mean of candidates and baseline
    noise: Array  # (T, K+1), the last column the baseline's
    baseline: Array  # (d,)
    theta: Array  # (d,)


@inlined
def _play(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
    setting: int,
    method: int,
    stack: int,
    dim: int,
    size: int,
) -> None:
    """One method of ``run_setting``, for G = ``stack``, d = ``dim`` and K = ``size``."""
    rule = lineup.rules[method]
    propose, latches, wait = rule[PROPOSE] == 1.0, rule[LATCHES] == 1.0, int(rule[WAIT])
    boldness, thrift = rule[BOLDNESS], rule[THRIFT]
    for i in range(int(rule[EVIDENCE_SIZE])):
        work.evidence[i] = evidences[int(rule[EVIDENCE_AT]) + i]
    for i in range(int(rule[LEDGER_SIZE])):
        work.ledger[i] = lineup.ledgers[int(rule[LEDGER_AT]) + i]
    rounds = len(scene.best)
    region, data, terms = opened_evidence(work.evidence, stack, dim)
    ledger, account = opened_ledger(work.ledger, int(work.ledger[0]), dim)
    pools = window(scene.pools, 0, (rounds, dim, size))
    means, best, noise = scene.means, scene.best, scene.noise
    baseline, theta = window(scene.baseline, 0, (dim,)), window(scene.theta, 0, (dim,))
    forms = window(work.forms, 0, (1 + 2 * stack, size))
    details = window(work.details, 0, (ROWS, size))
    executed, scratch = window(work.executed, 0, (dim,)), window(work.scratch, 0, (dim,))
    gated = account.kind != UNGATED
    baseline_mean = 0.0
    for i in range(dim):
        baseline_mean += baseline[i] * theta[i]

    reward, regret, count = 0.0, 0.0, 0
    deficit, least, least_slack = account.reserve, np.inf, np.inf
    covered = True
    paid_joint, paid_separate, need_joint, need_separate = 0.0, 0.0, 0.0, 0.0
    for t in range(rounds):
        covered &= contains(region, data, theta)
        pool = pools[t]
        alarmed = latches and data.tally[ALARM] != 0.0
        score(region, pool, forms, boldness, details)
        certify(region, ledger, account, pool, baseline, forms, scratch, details, False)
        if t < wait:
            for k in range(size):
                details[MARGIN, k] = -np.inf
        action, margin = settle(
            region,
            ledger,
            account,
            propose,
            thrift,
            alarmed,
            pool.T,
            baseline,
            details,
            executed,
            forms[CROSS],
        )
        fell_back = action == BASELINE
        mean = baseline_mean if fell_back else means[t, action]
        outcome = mean + (noise[t, size] if fell_back else noise[t, action])

        count += fell_back
        fallbacks[0, setting, method, t] += count
        fallbacks[1, setting, method, t] += count * count
        reward += mean
        regret += best[t] - mean
        deficit += mean - (1.0 - account.alpha) * baseline_mean
        least = min(least, deficit)
        if gated:
            least_slack = min(least_slack, deficit - margin)
            joint, separate = executed_bounds(
                region, account, details, action, executed, baseline, scratch
            )
            paid_joint -= joint
            paid_separate -= separate
            need_joint = max(need_joint, paid_joint)
            need_separate = max(need_separate, paid_separate)
        add(region, data, executed, outcome)
        recentre(region, data, terms)

    row = metrics[setting, method]
    row[0] = reward / (rounds * baseline_mean)
    row[1] = count / rounds
    row[2] = least
    row[3] = least < 0.0
    row[4] = covered
    row[5] = least_slack if gated else np.nan
    row[6] = ledger.bank[0]
    row[7] = regret
    row[8] = need_joint if gated else np.nan
    row[9] = need_separate if gated else np.nan
    row[10] = paid_separate - paid_joint if gated else np.nan


@kernel
def run_setting(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
    setting: int,
) -> None:
    """Play T rounds with every method, from flat evidences, one after the other, left as they are.

    Writes metrics[setting], (S, M, 11), and adds the cumulative count of fallbacks and its square to
    fallbacks[:, setting], (2, S, M, T).
    """
    _, dim, size = scene.pools.shape
    for m in range(len(lineup.rules)):
        stack = int(evidences[int(lineup.rules[m, EVIDENCE_AT])])
        _play(evidences, lineup, scene, work, metrics, fallbacks, setting, m, stack, dim, size)


@kernel
def run_usual_setting(
    evidences: Array,
    lineup: Lineup,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
    setting: int,
) -> None:
    """``run_setting`` for the usual G, d and K: the same source with all three known when compiling.

    Bits cannot differ: kernels are compiled without any licence to reorder or contract arithmetic.
    """
    stack, dim, size = USUAL_STACK, USUAL_DIM, USUAL_SIZE
    for m in range(len(lineup.rules)):
        _play(evidences, lineup, scene, work, metrics, fallbacks, setting, m, stack, dim, size)


Runner = Callable[[Array, Lineup, Scene, Workspace, Array, Counts, int], None]


def runner(stack: int, dim: int, size: int) -> Runner:
    """The fastest ``run_setting`` for at most G ellipsoids, d features and K candidates."""
    usual = (stack, dim, size) == (USUAL_STACK, USUAL_DIM, USUAL_SIZE)
    return run_usual_setting if usual else run_setting
