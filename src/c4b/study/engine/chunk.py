"""A chunk of episodes: every setting and method, on draws that are made once an episode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array, Counts
from c4b.study.engine.compiled_episode import workspace
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.prepared_setting import prepare
from c4b.study.spec.plan import Study


class Chunk(NamedTuple):
    """Results of episodes start..stop-1; S settings, M methods, T rounds."""

    start: int
    stop: int
    metrics: Array  # (episodes, S, M, len(Metric))
    fallback_sum: Counts  # (S, M, T) sum over episodes of the cumulative fallback count
    fallback_square_sum: Counts  # (S, M, T) whole numbers: sums do not depend on their order


def simulate(study: Study, start: int, stop: int) -> Chunk:
    """Episodes start..stop-1 of every setting and method."""
    shape = (len(study.settings), len(study.methods))
    metrics = np.empty((stop - start, *shape, len(Metric)))
    sums = np.zeros((2, *shape, study.rounds), dtype=np.int64)
    prepared = [prepare(setting, study.methods) for setting in study.settings]
    works = [workspace(p.lineup, p.stack, p.setting.dim, p.setting.count) for p in prepared]
    for episode in range(start, stop):
        draws = EpisodeDraws(study.seed, episode)
        for s, one in enumerate(prepared):
            scene, evidences = draws.scene(one), draws.learned(one)
            one.run(evidences, one.lineup, scene, works[s], metrics[episode - start], sums, s)
    return Chunk(start, stop, metrics, sums[0], sums[1])
