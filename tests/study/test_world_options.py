"""Changing baselines, arms, correlated pools, and noise that is bounded or varies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from c4b.errors import InvalidInput
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.prepared_setting import prepare
from c4b.study.spec import study_file
from c4b.study.spec.identity import identity
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from c4b.study.world import candidates, draws
from support.small_studies import TOML
from support.small_studies import study_file as write_study

SPREAD = Setting(baseline_spread=0.5, rounds=40, count=4)


def test_drawn_baselines_lie_around_the_incumbent() -> None:
    rows = candidates.baselines(SPREAD, 3, 0)
    assert rows.shape == (40, 5)
    assert np.all(rows[:, 0] == 1.0)
    np.testing.assert_allclose(np.linalg.norm(rows[:, 1:], axis=1), 0.5)
    assert len(np.unique(rows[:, 1])) == 40
    np.testing.assert_array_equal(rows[:10], candidates.baselines(replace(SPREAD, rounds=10), 3, 0))
    assert not np.array_equal(rows, candidates.baselines(SPREAD, 3, 1))


def test_history_of_a_changing_baseline_changes() -> None:
    setting = replace(SPREAD, history="baseline")
    rows = candidates.history(setting, 3, 0, np.empty((0, 5, 0)))
    np.testing.assert_allclose(np.linalg.norm(rows[:, 1:], axis=1), 0.5)
    assert len(np.unique(rows[:, 1])) == len(rows) == 20
    assert setting.forced_rounds == 0
    assert replace(setting, baseline_spread=0.0).forced_rounds > 0


def test_the_ratio_is_total_reward_by_total_baseline_reward() -> None:
    """A pool of worthless candidates and a policy without a gate: the ratio shows the denominator."""
    setting = replace(SPREAD, theta=(1.0, 0.5, 0.5, 0.0, 0.0), rho=0.0)
    study = Study("x", "x", (Method("linucb", "linucb"),), (setting,), (), 2, 3)
    metrics = simulate(study, 0, 1).metrics[0, 0, 0]
    means = candidates.baselines(setting, 3, 0) @ np.array(setting.theta)
    assert metrics[Metric.REWARD_RATIO] == pytest.approx(setting.rounds / means.sum(), rel=1e-12)
    deficits = np.cumsum(1.0 - 0.95 * means)
    assert metrics[Metric.MIN_D] == pytest.approx(deficits.min(), rel=1e-9)
    assert metrics[Metric.REGRET] == pytest.approx(np.maximum(means - 1.0, 0.0).sum(), rel=1e-9)


def test_baselines_from_a_file_repeat_and_name_the_study(tmp_path: Path) -> None:
    table = np.array([[1.0, 0.1, 0.0], [1.0, 0.0, 0.2], [0.9, 0.0, 0.0]])
    np.save(tmp_path / "incumbents.npy", table)
    text = TOML.replace("[truth]", '[truth]\nbaselines = "incumbents.npy"')
    study = study_file.load(write_study(tmp_path, text))
    setting = study.settings[0]
    assert not setting.fixed_baseline
    rows = candidates.baselines(setting, 0, 0)
    np.testing.assert_array_equal(rows, np.resize(table, (setting.rounds, 3)))
    scene = EpisodeDraws(0, 0).scene(prepare(setting, study.methods))
    np.testing.assert_allclose(scene.baseline_means, rows @ np.array(setting.theta))
    before = identity(study)
    np.save(tmp_path / "incumbents.npy", 1.01 * table)
    assert identity(study) != before
    floor = write_study(tmp_path, text.replace("[learner]", "[learner]\nbaseline_floor = 0.95"))
    with pytest.raises(InvalidInput, match=r"learner\.baseline_floor = 0\.95: must be at most 0\.909:"):
        study_file.load(floor)
    write_study(tmp_path, text)
    np.save(tmp_path / "incumbents.npy", -table)
    with pytest.raises(InvalidInput, match=r"truth\.baselines.*positive"):
        study_file.load(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"baseline_spread": 2.0}, "baseline_spread"),
        ({"baseline_spread": -0.1}, "baseline_spread"),
        ({"baseline_spread": 0.1, "baselines": "x.csv"}, "baseline_spread"),
        ({"correlation": 1.0}, "correlation"),
        ({"correlation": 0.5, "generator": "gaussian"}, "correlation"),
        ({"generator": "one-hot", "count": 5}, "count"),
        ({"generator": "one-hot", "count": 2, "listing": "sorted"}, "listing"),
        ({"generator": "sphere", "listing": "shuffled"}, "listing"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict, argument: str) -> None:
    with pytest.raises(InvalidInput, match=argument):
        Setting(**fields)


def test_arms_are_unit_vectors_beside_the_first() -> None:
    setting = Setting(generator="one-hot", count=2, rounds=50)
    pools = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))
    assert pools.shape == (50, 5, 2)
    assert np.all(pools.sum(axis=1) == 1.0)
    assert np.all(pools.max(axis=1) == 1.0)
    assert np.all(pools[:, 0] == 0.0)
    assert np.all(pools.sum(axis=2).max(axis=1) == 1.0)  # no arm twice
    every = candidates.raw_pools(replace(setting, count=4), 1, 0)
    np.testing.assert_array_equal(every, np.tile(np.eye(5)[1:].T, (50, 1, 1)))


def test_shuffled_arms_have_an_order_for_each_episode() -> None:
    setting = Setting(generator="one-hot", count=4, rounds=20, listing="shuffled")
    orders = set()
    for episode in range(200):
        pools = candidates.raw_pools(setting, 1, episode)
        assert np.all(pools == pools[0])  # one order for the whole episode
        assert np.all(pools.sum(axis=2) == [0.0, 1.0, 1.0, 1.0, 1.0])
        orders.add(tuple(pools[0].argmax(axis=0).tolist()))
    assert len(orders) == 24
    some = candidates.raw_pools(replace(setting, count=2), 1, 3)
    order = candidates.raw_pools(setting, 1, 3)[0].argmax(axis=0).tolist()
    places = [[order.index(arm) for arm in pool.argmax(axis=0)] for pool in some]
    assert all(first < second for first, second in places)
    scene = EpisodeDraws(1, 3).scene(prepare(setting, ()))
    np.testing.assert_array_equal(scene.means[0], np.array(setting.theta)[order])


def test_correlated_candidates_share_a_direction() -> None:
    setting = Setting(correlation=0.8, rounds=100, count=8, rho=1.0)
    pools = candidates.pools(setting, candidates.raw_pools(setting, 1, 0))[:, 1:]
    np.testing.assert_allclose(np.linalg.norm(pools, axis=1), 1.0)
    products = np.einsum("tik,til->tkl", pools, pools)
    assert products.mean() > 0.7
    between = np.einsum("ik,jk->ij", pools.mean(axis=2), pools.mean(axis=2))
    assert abs(between[~np.eye(100, dtype=bool)].mean()) < 0.05


def test_bounded_and_varying_noise_is_sub_gaussian() -> None:
    skewed = draws.unit_noise("skewed", draws.stream(1, 0, draws.NOISE), (200_000,))
    assert set(np.unique(skewed)) == {-0.2, 1.8}
    varied = draws.unit_noise("heteroscedastic", draws.stream(1, 0, draws.NOISE), (200_000,))
    assert np.std(np.abs(varied)) > 0.4
    for noise in (skewed, varied):
        assert abs(noise.mean()) < 0.01
        for slope in (-2.0, -0.5, 0.5, 2.0):
            assert np.mean(np.exp(slope * noise)) <= np.exp(slope**2 / 2.0)
