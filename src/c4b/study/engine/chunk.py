"""A chunk of episodes: every setting and method, on draws that are made once an episode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array, Counts
from c4b.errors import InvalidInput
from c4b.evidence.sets import box
from c4b.study.engine.compiled_episode import Scene
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.prepared_setting import PreparedSetting, prepare
from c4b.study.engine.python_episode import play_method
from c4b.study.engine.shared_scene import by_scene
from c4b.study.spec.plan import Study


class Chunk(NamedTuple):
    """Results of episodes start..stop-1; S settings, M methods, T rounds."""

    start: int
    stop: int
    metrics: Array  # (episodes, S, M, len(Metric)); NaN where the method does not play
    fallback_sum: Counts  # (S, M, T) sum over episodes of the cumulative fallback count
    fallback_square_sum: Counts  # (S, M, T) whole numbers: sums do not depend on their order


def simulate(study: Study, start: int, stop: int) -> Chunk:
    """Episodes start..stop-1 of every setting and method."""
    shape = (len(study.settings), len(study.methods))
    metrics = np.full((stop - start, *shape, len(Metric)), np.nan)
    sums = np.zeros((2, *shape, study.rounds), dtype=np.int64)
    prepared = [prepare(setting, study.methods) for setting in study.settings]
    shared, falls = by_scene(prepared, len(study.methods)), sums.reshape(2, -1, study.rounds)
    for episode in range(start, stop):
        draws, rows = EpisodeDraws(study.seed, episode), metrics[episode - start]
        results = rows.reshape(-1, len(Metric))
        for members, compiled in shared:
            scene = draws.scene(members[0][1])
            if compiled is not None:
                for _, one in members:
                    _check_arms(one, scene, draws)
                compiled.run(
                    compiled.evidences(draws), compiled.lineup, scene, compiled.work, results, falls
                )
            for s, one in members:
                for m, method in one.python:
                    played = play_method(method, one.setting, scene, draws.history(one), episode)
                    rows[s, m] = played.metrics
                    sums[0, s, m, : one.setting.rounds] += played.fallbacks
                    sums[1, s, m, : one.setting.rounds] += played.fallbacks**2
            draws.release_if_large()
    return Chunk(start, stop, metrics, sums[0], sums[1])


def check_arms(scene: Scene, history: Array, keeps_told_arm: bool) -> None:
    """Refuse what a method over arms cannot take: rows (n, d) that are no unit vectors, or the baseline's
    told mean about one arm in some rounds and about another in others."""
    rounds, dim, size = scene.pools.shape
    box.check_arms("history", history)
    box.check_arms("baselines", scene.baselines)
    box.check_arms("candidates", scene.pools.transpose(0, 2, 1).reshape(rounds * size, dim))
    if keeps_told_arm and (scene.baselines != scene.baselines[:1]).any():
        remedy = "must be the same arm in all rounds: a policy is told the mean of one arm"
        raise InvalidInput("baselines", scene.baselines, remedy)


def _check_arms(prepared: PreparedSetting, scene: Scene, draws: EpisodeDraws) -> None:
    compiled = prepared.compiled
    if compiled is not None and compiled.knows_arms:
        check_arms(scene, draws.history(prepared)[0], compiled.keeps_told_arm)
