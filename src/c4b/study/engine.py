"""One simulated episode, compiled, over the same kernels as the online policy.

The truth lives here and only here: no kernel below this room sees theta or a mean.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.bounds import contains
from c4b.evidence.statistics import add, recentre
from c4b.evidence.statistics import opened as opened_evidence
from c4b.ledger.kernels import UNGATED
from c4b.ledger.kernels import opened as opened_ledger
from c4b.policies.round import (
    BASELINE,
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

    forms: Array  # (1 + 2G, K)
    details: Array  # (4, K)
    executed: Array  # (d,)
    scratch: Array  # (d,)


def workspace(stack: int, dim: int, size: int) -> Workspace:
    rows = 1 + 2 * stack
    return Workspace(np.empty((rows, size)), np.empty((4, size)), np.empty(dim), np.empty(dim))


@kernel
def run_episode(
    evidence_flat: Array,
    ledger_flat: Array,
    propose: bool,
    pools: Array,
    means: Array,
    best: Array,
    baseline: Array,
    theta: Array,
    noise: Array,
    metrics: Array,
    fallbacks: Array,
    work: Workspace,
) -> None:
    """Play T rounds; evidence and ledger are used up.

    Shapes: pools (T, d, K) feature-major; means (T, K); best (T,); baseline and theta (d,); noise
    (T, K+1), the last column the baseline's; metrics (11,); fallbacks (T,) cumulative count.
    """
    region, data, terms = opened_evidence(evidence_flat)
    ledger, account = opened_ledger(ledger_flat)
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
        score(region, pool, forms, details)
        certify(region, ledger, account, pool, baseline, forms, scratch, details, False)
        action, margin = settle(region, ledger, account, propose, pool.T, baseline, details, executed)
        fell_back = action == BASELINE
        mean = baseline_mean if fell_back else means[t, action]
        outcome = mean + (noise[t, size] if fell_back else noise[t, action])

        count += fell_back
        fallbacks[t] = count
        reward += mean
        regret += best[t] - mean
        deficit += mean - (1.0 - account.alpha) * baseline_mean
        least = min(least, deficit)
        if gated:
            least_slack = min(least_slack, deficit - margin)
            joint, separate = executed_bounds(region, account, executed, baseline, fell_back, scratch)
            paid_joint -= joint
            paid_separate -= separate
            need_joint = max(need_joint, paid_joint)
            need_separate = max(need_separate, paid_separate)
        add(region, data, executed, outcome)
        recentre(region, data, terms)

    metrics[0] = reward / (rounds * baseline_mean)
    metrics[1] = count / rounds
    metrics[2] = least
    metrics[3] = least < 0.0
    metrics[4] = covered
    metrics[5] = least_slack if gated else np.nan
    metrics[6] = ledger.bank[0]
    metrics[7] = regret
    metrics[8] = need_joint if gated else np.nan
    metrics[9] = need_separate if gated else np.nan
    metrics[10] = paid_separate - paid_joint if gated else np.nan
