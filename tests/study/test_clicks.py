"""Studies whose rewards are clicks: exact zeros and ones, items, logs, gates named by a function."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from c4b.errors import InvalidInput
from c4b.evidence import LinearModel
from c4b.policies import GateTerms
from c4b.study import Method, Setting, Study, load
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.prepared_setting import prepare
from c4b.study.spec.study_file import StudyFileError, parse
from c4b.study.world import draws
from c4b.study.world.gaussian_oracle import GaussianOracle

ITEMS = Setting(
    noise="clicks", generator="items", count=4, theta=(0.1, 0.03, 0.0, -0.015, -0.03), norm_bound=1.0,
    history="logged", history_size=4000, rounds=300, rho=1.0,
)  # fmt: skip
THOMPSON = {"factory": "c4b.study.world.logistic_thompson:LogisticThompson"}


def test_a_mean_plus_its_click_is_exactly_zero_or_one() -> None:
    rng = np.random.default_rng(1)
    means = np.concatenate([rng.random(200_000), 10.0 ** rng.uniform(-300, 0, 200_000), [0.0, 1.0, 0.5]])
    for uniform in (0.0, 1.0, rng.random(len(means))):
        rewards = means + draws.clicks_minus_means(np.broadcast_to(uniform, means.shape), means)
        assert set(np.unique(rewards)) <= {0.0, 1.0}


def test_history_and_rounds_are_clicks_at_the_items_rates() -> None:
    prepared = prepare(ITEMS, (Method("clicks", "clicks"),))
    episode = EpisodeDraws(3, 0)
    features, rewards = episode.history(prepared)
    assert {*rewards} == {0.0, 1.0}
    assert (features[:, 0] == 1.0).all()
    assert (features.sum(axis=1) == 2.0).all()
    for k in range(1, 5):
        own = rewards[features[:, k] == 1.0]
        rate = ITEMS.theta[0] + ITEMS.theta[k]
        assert abs(own.mean() - rate) < 5.0 * np.sqrt(rate / len(own))
    scene = episode.scene(prepared)
    every = np.concatenate([scene.means, scene.baseline_means[:, None]], axis=1)
    assert set(np.unique(every + scene.noise)) == {0.0, 1.0}


def test_means_that_are_no_probabilities_are_refused() -> None:
    setting = replace(ITEMS, theta=(0.1, 0.95, 0.0, 0.0, 0.0))
    study = Study("s", "s", (Method("linucb", "linucb"),), (setting,), (), 2, 0)
    with pytest.raises(InvalidInput, match=r"between 0 and 1; these reach from 0\.1 to 1\.05"):
        simulate(study, 0, 1)


@pytest.mark.slow
def test_every_world_of_the_study_is_played_by_every_method() -> None:
    shipped = load("clicks")
    short = [replace(s, rounds=40, history_size=min(s.history_size, 200)) for s in shipped.settings]
    metrics = simulate(replace(shipped, settings=tuple(short)), 0, 1).metrics
    assert np.isfinite(metrics[..., Metric.REWARD_RATIO]).all()
    gated = [m for m, method in enumerate(shipped.methods) if method.gated]
    assert len(gated) == 2
    assert not metrics[:, :, gated, Metric.VIOLATION].any()


def test_the_gaussian_oracle_takes_its_noise_from_the_history() -> None:
    terms = GateTerms(LinearModel(2, 0.5, 1.0), 0.05, 0.0)
    oracle, empty = GaussianOracle(terms), GaussianOracle(terms)
    oracle.learn(np.tile([1.0, 0.0], (100, 1)), np.arange(100) % 10 == 0)
    empty.learn(np.tile([1.0, 0.0], (100, 1)), np.zeros(100))
    assert oracle.evidence.model.noise == pytest.approx(0.3)
    assert oracle.observations == 100
    assert empty.evidence.model.noise == 0.5


@pytest.mark.slow
def test_thompson_sampling_finds_the_best_item() -> None:
    study = parse(
        f'methods = [{{label = "t", factory = "{THOMPSON["factory"]}", gated = false}}]', "s", Path()
    )
    setting = replace(ITEMS, theta=(0.3, 0.3, 0.0, 0.0, -0.1), rounds=1500, history_size=0)
    ratio = simulate(replace(study, settings=(setting,)), 0, 2).metrics[..., Metric.REWARD_RATIO]
    assert ratio.min() > 1.8


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ('{label = "g", factory = "no_such:gate"}', "cannot be imported"),
        ('{label = "g", factory = "math"}', "module:function"),
        ('{label = "g", factory = "math:pi"}', "is not a function"),
        ('{label = "g", factory = "math:sin", ledger = "carry"}', "must be a name"),
        ('{label = "g", factory = "math:sin", score = "ucb"}', "not made of parts"),
        ('{policy = "refresh", gated = false}', "goes with factory"),
    ],
)
def test_what_a_factory_must_be(entry: str, error: str) -> None:
    with pytest.raises(StudyFileError, match=error):
        parse(f"methods = [{entry}]", "mine.toml", Path())


def test_a_factory_beside_the_study_file_is_found_and_remembered(tmp_path: Path) -> None:
    (tmp_path / "beside_me.py").write_text("def gate(terms):\n    raise ValueError('made')\n")
    study = parse('methods = [{label = "g", factory = "beside_me:gate"}]', "mine.toml", tmp_path)
    again = Study.from_dict(study.to_dict())
    assert again == study
    with pytest.raises(Exception, match="made"):
        simulate(again, 0, 1)
