"""One simulated episode, compiled, over the same kernels as the online policy.

The truth lives here and only here: no kernel below this room sees theta or a mean.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array, Counts
from c4b.evidence.bounds import contains
from c4b.evidence.statistics import ALARM, add, recentre
from c4b.evidence.statistics import opened as opened_evidence
from c4b.ledger.kernels import UNGATED
from c4b.ledger.kernels import opened as opened_ledger
from c4b.policies.round import (
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
"""Columns that ``run_episode`` fills, in this order; NaN where a method without a gate has none."""


class Workspace(NamedTuple):
    """Scratch of an episode with K candidates and a stack of G ellipsoids."""

    evidence: Array  # flat
    ledger: Array  # flat
    forms: Array  # (1 + 2G, K)
    details: Array  # (ROWS, K)
    executed: Array  # (d,)
    scratch: Array  # (d,)


def workspace(evidence: Array, ledger: Array, dim: int, size: int) -> Workspace:
    """Scratch for runs that start from flat vectors like these."""
    forms = np.empty((1 + 2 * int(evidence[0]), size))
    return Workspace(
        evidence.copy(), ledger.copy(), forms, np.empty((ROWS, size)), np.empty(dim), np.empty(dim)
    )


class Scene(NamedTuple):
    """What one episode fixes for a setting before any method plays."""

    pools: Array  # (T, d, K) feature-major
    means: Array  # (T, K)
    best: Array  # (T,) highest mean of candidates and baseline
    noise: Array  # (T, K+1), the last column the baseline's
    baseline: Array  # (d,)
    theta: Array  # (d,)


@kernel
def _copy(source: Array, target: Array) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def run_episode(
    evidence_flat: Array,
    ledger_flat: Array,
    propose: bool,
    boldness: float,
    thrift: float,
    latches: bool,
    wait: int,
    scene: Scene,
    work: Workspace,
    metrics: Array,
    fallbacks: Counts,
    setting: int,
    method: int,
) -> None:
    """Play T rounds from an evidence and a ledger, which are left as they are.

    The first ``wait`` rounds play the baseline. Writes metrics[setting, method], (S, M, 11), and adds
    the cumulative count of fallbacks and its square to fallbacks[:, setting, method], (2, S, M, T).
    """
    _copy(evidence_flat, work.evidence)
    _copy(ledger_flat, work.ledger)
    region, data, terms = opened_evidence(work.evidence)
    ledger, account = opened_ledger(work.ledger)
    pools, means, best, noise = scene.pools, scene.means, scene.best, scene.noise
    baseline, theta = scene.baseline, scene.theta
    rounds, dim, size = pools.shape
    forms, details = work.forms, work.details
    executed, scratch = work.executed, work.scratch
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
            region, ledger, account, propose, thrift, alarmed, pool.T, baseline, details, executed
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
