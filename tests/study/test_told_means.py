"""Studies hand the baseline's mean to methods that need it, and score what they promise."""

from dataclasses import replace

import numpy as np
import pytest

from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.field_scenes import SETTINGS, oracle_story, scene

NAMES = ("clucb", "clucb2", "clucb2t", "lcbce", "refresh")


def metrics(setting: Setting, names: tuple[str, ...], episodes: int, seed: int = 31) -> np.ndarray:
    """(episodes, methods, len(Metric))."""
    methods = tuple(Method(name, name) for name in names)
    study = Study("told", "told", methods, (setting,), (), max(episodes, 2), seed)
    return simulate(study, 0, episodes).metrics[:, 0]


def test_episodes_are_the_oracles() -> None:
    """Ratio, fallback and smallest budget, where no tie lets rounding decide."""
    setting, same = SETTINGS["diverse .15/.3"], 0
    found = metrics(setting, ("clucb", "lcbce"), 6)
    for episode in range(6):
        for m, name in enumerate(("clucb", "lcbce")):
            story = oracle_story(name, setting, scene(setting, 31, episode))
            if story.closeness.min() > 1e-7:
                numbers = found[episode, m, [Metric.REWARD_RATIO, Metric.FALLBACK, Metric.MIN_D]]
                np.testing.assert_allclose(numbers, [story.ratio, story.fallback, story.least], 1e-9)
                same += 1
    assert same >= 6


def test_phases_are_scored_at_their_ends() -> None:
    """Candidates are worth .8 of the baseline: clucb2t plays some, and is below 0 within a phase."""
    theta, baseline = (1.0, 0.0, 0.0, 0.0, 0.0), (1.25, 0.0, 0.0, 0.0, 0.0)
    setting = replace(SETTINGS["baseline .15/.3"], theta=theta, baseline=baseline, baseline_floor=1.25)
    found = metrics(setting, ("clucb2t",), 4)[:, 0]
    below = 0
    for episode in range(4):
        story = oracle_story("clucb2t", setting, scene(setting, 31, episode), floor=1.25)
        budget = np.cumsum(np.where(story.actions < 0, 0.05 * 1.25, 1.0 - 0.95 * 1.25))
        below += budget.min() < -0.1
        assert story.least == pytest.approx(budget[19::20].min())
        assert found[episode, Metric.MIN_D] >= 0.0
    assert below == 4
    assert not found[:, Metric.VIOLATION].any()
    assert np.all(found[:, Metric.FALLBACK] < 1.0)


def test_a_wrong_mean_breaks_those_who_are_told_it() -> None:
    setting = replace(SETTINGS["diverse .15/.3"], rho=0.8, sigma=0.1)
    misled = metrics(replace(setting, told_mean_error=-0.2), NAMES, 8)
    told_well = metrics(setting, NAMES, 8)
    refresh = NAMES.index("refresh")
    assert not told_well[..., Metric.VIOLATION].any()
    assert (misled[:, :refresh, Metric.MIN_SLACK] < 0.0).any()
    assert misled[:, refresh].tobytes() == told_well[:, refresh].tobytes()
