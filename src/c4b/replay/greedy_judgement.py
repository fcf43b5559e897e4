"""Evaluates the greedy policy of the past rows on the later rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.features import FeatureBuilder
from c4b.logs import Log, StreamedLog
from c4b.replay.action_pool import ActionPool, executed_frame
from c4b.replay.judge import Judgement, Judging


def judge_greedy(
    past: Log | StreamedLog,
    rest: Log | StreamedLog,
    pool: ActionPool,
    builder: FeatureBuilder,
    alpha: float,
    delta: float,
    reward_range: tuple[float, float],
    max_weight: float,
) -> Judgement:
    """Evaluate the greedy policy of a ridge estimate from the past rows on the other rows."""
    gram, moment = np.eye(builder.dim), np.zeros(builder.dim)
    for batch in past.batches():
        x = builder.transform(executed_frame(batch))
        gram += x.T @ x
        moment += x.T @ batch.numbers("reward")
    estimate: Array = np.linalg.solve(gram, moment).astype(np.float64)
    judging = Judging(True, 1.0 - alpha, delta, reward_range, max_weight)
    for batch in rest.batches():
        greedy, own, best = _greedy(batch, pool, builder, estimate)
        judging.extend(
            greedy.astype(float),
            batch.numbers("propensity"),
            batch.numbers("reward"),
            np.clip(own, *reward_range),
            np.clip(best, *reward_range),
        )
    return judging.judgement()


def _greedy(
    batch: Log, pool: ActionPool, builder: FeatureBuilder, estimate: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Whether each logged action has the highest estimate, its estimate, and the highest one."""
    if batch.columns.candidates is None:
        means = np.concatenate([x @ estimate for x in pool.blocks(batch, builder)])
        taken, best = pool.taken(batch), np.argmax(means, axis=1)
        rows = np.arange(len(batch))
        return best == taken, means[rows, taken], means[rows, best]
    greedy, own, highest = [], [], []
    for listed in pool.listed(batch, builder):
        means = listed.features @ estimate
        starts = np.cumsum(listed.sizes) - listed.sizes
        top = np.maximum.reduceat(means, starts)
        is_top = means == np.repeat(top, listed.sizes)
        first = np.minimum.reduceat(np.where(is_top, np.arange(len(means)), len(means)), starts)
        greedy.append(first - starts == listed.taken)
        own.append(means[starts + listed.taken])
        highest.append(top)
    return np.concatenate(greedy), np.concatenate(own), np.concatenate(highest)
