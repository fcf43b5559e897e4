"""A chunk of episodes: draws once an episode, shared by all settings and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.evidence import statistics
from c4b.ledger import kernels as ledgers
from c4b.study import candidates, draws
from c4b.study.engine import METRICS, run_episode, workspace
from c4b.study.plan import Setting, Study

Counts = NDArray[np.int64]


class Chunk(NamedTuple):
    """Results of episodes start..stop-1; S settings, M methods, T rounds."""

    start: int
    stop: int
    metrics: Array  # (episodes, S, M, len(METRICS))
    fallback_sum: Counts  # (S, M, T) sum over episodes of the cumulative fallback count
    fallback_square_sum: Counts  # (S, M, T) whole numbers: sums do not depend on their order


class _Scene(NamedTuple):
    """What one episode fixes for a setting before any method plays."""

    pools: Array
    means: Array
    best: Array
    noise: Array
    features: Array
    rewards: Array


def simulate(study: Study, start: int, stop: int) -> Chunk:
    """Episodes start..stop-1 of every setting and method."""
    shape = (len(study.settings), len(study.methods))
    metrics = np.empty((stop - start, *shape, len(METRICS)))
    sums = np.zeros((2, *shape, study.rounds), dtype=np.int64)
    runs = _prepared(study)
    for episode in range(start, stop):
        stage = _Stage(study.seed, episode)
        for s, setting in enumerate(study.settings):
            scene = stage.scene(setting)
            theta, baseline = setting.vectors()
            learned: dict[int, Array] = {}
            for m in range(len(study.methods)):
                which, empty, ledger, propose = runs[s][m]
                if which not in learned:
                    learned[which] = empty.copy()
                    statistics.absorb_many(learned[which], scene.features, scene.rewards)
                counts = np.empty(setting.rounds)
                run_episode(
                    learned[which].copy(),
                    ledger.copy(),
                    propose,
                    scene.pools,
                    scene.means,
                    scene.best,
                    baseline,
                    theta,
                    scene.noise,
                    metrics[episode - start, s, m],
                    counts,
                    workspace(int(empty[0]), setting.dim, setting.count),
                )
                whole = counts.astype(np.int64)
                sums[0, s, m, : setting.rounds] += whole
                sums[1, s, m, : setting.rounds] += whole * whole
    return Chunk(start, stop, metrics, sums[0], sums[1])


def _prepared(study: Study) -> list[list[tuple[int, Array, Array, bool]]]:
    """For each setting and method: (which evidence, empty evidence, open ledger, propose?)."""
    table = []
    for setting in study.settings:
        row, known = [], dict[str, int]()
        for method in study.methods:
            confidence = method.confidence or setting.confidence
            which = known.setdefault(confidence, len(known))
            composition = method.composition
            account = composition.account(setting.alpha, setting.reserve, True)
            ledger = ledgers.opening(account, setting.dim, composition.remembered)
            empty = statistics.empty(setting.model(confidence))
            row.append((which, empty, ledger, composition.propose))
        table.append(row)
    return table


class _Stage:
    """One episode's draws, each made once."""

    def __init__(self, seed: int, episode: int) -> None:
        self.seed, self.episode = seed, episode
        self.made: dict[tuple[object, ...], Array] = {}

    def scene(self, setting: Setting) -> _Scene:
        shape = (setting.generator, setting.source, setting.rounds, setting.count, setting.dim)
        raw = self._once(("raw", *shape), lambda: candidates.raw_pools(setting, self.seed, self.episode))
        place = (*shape, setting.rho)
        pools = self._once(("pools", *place), lambda: candidates.pools(setting, raw))
        truth = (*place, setting.theta)
        means = self._once(
            ("means", *truth), lambda: np.einsum("i,tik->tk", np.array(setting.theta), pools)
        )
        best = self._once(
            ("best", *truth, setting.baseline),
            lambda: np.maximum(means.max(axis=1), setting.baseline_mean),
        )
        columns = setting.count + 1
        noise = self._noise(setting, draws.NOISE, (setting.rounds, columns))
        features = candidates.history(setting, self.seed, self.episode, pools)
        past = self._noise(setting, draws.HISTORY_NOISE, (setting.history_size,))
        rewards = features @ np.array(setting.theta) + past
        return _Scene(pools, means, best, noise, features, rewards)

    def _noise(self, setting: Setting, role: int, shape: tuple[int, ...]) -> Array:
        def unit() -> Array:
            rng = draws.stream(self.seed, self.episode, role)
            return draws.unit_noise(setting.noise, rng, shape)

        base = self._once(("unit", setting.noise, role, shape), unit)
        return self._once(
            ("noise", setting.noise, role, shape, setting.sigma), lambda: base * setting.sigma
        )

    def _once(self, key: tuple[object, ...], make: Callable[[], Array]) -> Array:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]
