"""What parts of a choice are for: in one drawn world each, beside the selection before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import c4b
from c4b.policies.catalogue import registry
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.drawn_worlds import drawn_world
from c4b.study.spec.plan import Method, Study

EPISODES = 6


def means(monkeypatch: pytest.MonkeyPatch, metric: Metric, seed: int, number: int) -> tuple[float, float]:
    """Of ``hopeful-7`` and ``hopeful-8`` in a drawn world, with the seed's own draws."""
    spec = registry.get("reserve-c4b+")
    assert isinstance(spec, c4b.Composition)
    names = ("hopeful-7", "hopeful-8")
    for name in names:
        monkeypatch.setitem(registry._REGISTRY, name, replace(spec, name=name, selection=name))
    methods = tuple(Method(name, name) for name in names)
    study = Study("one", "one world", methods, (drawn_world(seed, number),), (), EPISODES, seed)
    chunk = simulate(study, 0, EPISODES)
    before, after = np.asarray(chunk.metrics[:, 0, :, metric]).mean(axis=0)
    return float(before), float(after)


def test_a_play_that_saves_is_worth_plays_of_the_best_not_rounds_of_the_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two features, much noise, little to lose: plays back and forth, each at a loss, never opened the
    gate."""
    before, after = means(monkeypatch, Metric.REWARD_RATIO, 99173, 63)
    assert after > before + 0.05
    before, after = means(monkeypatch, Metric.REWARD_RATIO, 1005, 59)
    assert after > before + 0.02


def test_what_cannot_be_learned_in_time_is_not_hoped_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 features, 200 rounds, sigma 1, and every candidate is worse than the baseline on average."""
    before, after = means(monkeypatch, Metric.REWARD_RATIO, 1006, 52)
    assert before < 0.97
    assert after > 0.999


def test_longer_features_than_the_baselines_promise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlated candidates of length 1.26 beside a baseline of 1.05, which is worth more."""
    before, after = means(monkeypatch, Metric.FALLBACK, 1005, 62)
    assert after > before + 0.2
