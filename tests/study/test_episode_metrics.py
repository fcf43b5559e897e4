"""Every metric of an episode, recomputed with the slow oracle and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from c4b.study.world import candidates, draws
from support.oracle import OraclePolicy
from support.oracle_comparison import METHODS
from support.oracle_ledger import minimum_reserve_by_search
from support.oracle_sets import OracleSet

SETTING = Setting(
    history="diverse", history_size=8, rho=0.5, sigma=0.2, reserve=0.3, rounds=25, count=6,
    theta=(1.0, 0.5, -0.3), baseline=(0.9, 0.1, 0.0),
)  # fmt: skip
WRONG_SIGMA = Setting(
    history="baseline", history_size=12, rho=0.8, sigma=1.5, assumed_sigma=0.02, rounds=25, count=6,
    norm_bound=1.2, theta=(1.0, 0.5, -0.3), baseline=(0.9, 0.1, 0.0),
)  # fmt: skip


def recomputed(setting: Setting, name: str, seed: int, episode: int) -> dict[str, float]:
    theta, baseline = setting.vectors()
    pools = candidates.pools(setting, candidates.raw_pools(setting, seed, episode))
    noise = setting.sigma * draws.unit_noise(
        "gaussian", draws.stream(seed, episode, draws.NOISE), (setting.rounds, setting.count + 1)
    )
    past = candidates.history(setting, seed, episode, pools)
    past_noise = draws.stream(seed, episode, draws.HISTORY_NOISE).standard_normal(setting.history_size)
    assumed = setting.assumed_sigma or setting.sigma
    known = OracleSet(3, assumed, setting.norm_bound, setting.ridge, setting.delta, "self-normalized")
    oracle = OraclePolicy(name, known, setting.alpha, setting.reserve)
    oracle.learn(past, past @ theta + setting.sigma * past_noise)

    played, banks, covered, best, joint, separate = [], [], [], [], [], []
    for t in range(setting.rounds):
        pool = pools[t].T
        covered.append(known.contains(theta))
        answer = oracle.decide(pool, baseline)
        a = answer["action"]
        x = baseline if a is None else pool[a]
        structural = setting.alpha * max(known.lower(baseline), 0.0)
        joint.append(structural if a is None else answer["joint"][a])
        separate.append(structural if a is None else answer["separate"][a])
        played.append(np.nan if a is None else x @ theta)
        best.append(max((pool @ theta).max(), baseline @ theta))
        banks.append(answer["bank"])
        oracle.observe(answer["round"], float(x @ theta + noise[t, setting.count if a is None else a]))
    fell = np.isnan(played)
    means = np.where(fell, baseline @ theta, played)
    d = setting.reserve + np.cumsum(means - (1 - setting.alpha) * (baseline @ theta))
    gate = np.nan if name == "linucb" else 1.0
    return {
        "reward_ratio": means.mean() / (baseline @ theta),
        "fallback": fell.mean(),
        "min_d": d.min(),
        "violation": float((d < 0.0).any()),
        "covered": float(all(covered)),
        "min_slack": gate * (d - banks).min(),
        "final_bank": gate * banks[-1],
        "regret": float(np.sum(best - means)),
        "rmin_joint": gate * minimum_reserve_by_search(joint),
        "rmin_separate": gate * minimum_reserve_by_search(separate),
        "sum_penalty": gate * (sum(joint) - sum(separate)),
    }


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("setting", [SETTING, WRONG_SIGMA], ids=["right sigma", "wrong sigma"])
def test_metrics_equal_the_oracle(setting: Setting, name: str) -> None:
    chunk = simulate(Study("m", "m", (Method(name, name),), (setting,), (), 3, 5), 0, 3)
    for episode in range(3):
        expected = recomputed(setting, name, 5, episode)
        assert list(expected) == [metric.column for metric in Metric]
        found = chunk.metrics[episode, 0, 0]
        np.testing.assert_allclose(found, list(expected.values()), rtol=1e-8, atol=1e-8)


def test_both_outcomes_of_the_coverage_check_occur() -> None:
    methods = (Method("refresh", "refresh"),)
    at = Metric.COVERED
    for setting, expected in ((SETTING, 1.0), (WRONG_SIGMA, 0.0)):
        chunk = simulate(Study("m", "m", methods, (setting,), (), 3, 5), 0, 3)
        assert expected in chunk.metrics[:, 0, 0, at]
