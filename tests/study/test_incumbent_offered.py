"""The incumbent offered again among the candidates is the incumbent: playing it is a fallback."""

from pathlib import Path

import numpy as np
import pytest

from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec import study_file
from c4b.study.spec.plan import Method, Study
from support.any_world import COMPOSITIONS
from support.python_gates import registered
from support.small_studies import TOML
from support.small_studies import study_file as write_study


def offering(folder: Path, rows: list[list[float]], count: int) -> Study:
    """A study whose candidates are drawn from these rows."""
    np.save(folder / "pool.npy", np.array(rows))
    source = '[candidates]\ngenerator = "file"\nsource = "pool.npy"'
    text = TOML.replace("[candidates]", source).replace("rho = 0.4\n", "")
    return study_file.load(write_study(folder, text.replace("count = 5", f"count = {count}")))


@pytest.mark.parametrize("name", [*COMPOSITIONS, "first", "wrapped-refresh"])
def test_a_pool_of_nothing_else_is_all_fallback(tmp_path: Path, name: str) -> None:
    with registered():
        study = offering(tmp_path, [[1.0, 0.0, 0.0]] * 3, 3).with_(methods=(Method(name, name),))
        found = simulate(study, 0, 2)
    assert np.all(found.metrics[..., Metric.FALLBACK] == 1.0)
    assert np.all(found.metrics[..., Metric.REWARD_RATIO] == 1.0)
    assert np.array_equal(found.fallback_sum[0, 0], 2 * np.arange(1, 13))


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_it_is_counted_whenever_it_is_played(tmp_path: Path, name: str) -> None:
    """One candidate is better than the incumbent, one worse, one is the incumbent itself: where the
    better or the worse one is played, the mean tells; all other rounds are fallbacks."""
    rows = [[1.0, 0.4, 0.0], [1.0, 0.0, 0.0], [1.0, -0.3, 0.0]]
    study = offering(tmp_path, rows, 3).with_(methods=(Method(name, name),))
    for episode in range(3):
        found = simulate(study, episode, episode + 1)
        for s, setting in enumerate(study.settings):
            ratio, share = found.metrics[0, s, 0, [Metric.REWARD_RATIO, Metric.FALLBACK]]
            gain = (ratio - 1.0) * setting.rounds
            played = round((1.0 - share) * setting.rounds)
            better = (gain + 0.15 * played) / 0.35  # each better one adds .2, each worse one takes .15
            assert better == pytest.approx(round(better), abs=1e-9)
            assert 0 <= round(better) <= played


def test_without_it_the_same_study_falls_back_less(tmp_path: Path) -> None:
    """Otherwise the tests above could pass because nothing is ever played."""
    study = offering(tmp_path, [[1.0, 0.4, 0.0], [1.0, 0.3, 0.1], [1.0, 0.4, 0.2]], 3)
    found = simulate(study.with_(methods=(Method("linucb", "linucb"),)), 0, 2)
    assert np.all(found.metrics[..., Metric.FALLBACK] == 0.0)
