"""A chunk of episodes: draws once an episode, shared by all settings and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from c4b._validate import Array, Counts
from c4b.evidence import statistics
from c4b.ledger import kernels as ledgers
from c4b.policies.composition import Composition
from c4b.study import candidates, draws
from c4b.study.engine import METRICS, Scene, Workspace, run_episode, workspace
from c4b.study.plan import Setting, Study


class Chunk(NamedTuple):
    """Results of episodes start..stop-1; S settings, M methods, T rounds."""

    start: int
    stop: int
    metrics: Array  # (episodes, S, M, len(METRICS))
    fallback_sum: Counts  # (S, M, T) sum over episodes of the cumulative fallback count
    fallback_square_sum: Counts  # (S, M, T) whole numbers: sums do not depend on their order


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
            learned: dict[int, Array] = {}
            for m, (which, empty, ledger, composition, wait, work) in enumerate(runs[s]):
                if which not in learned:
                    learned[which] = empty.copy()
                    statistics.absorb_many(learned[which], *stage.history(setting, scene))
                run_episode(
                    learned[which],
                    ledger,
                    *composition.rule,
                    wait,
                    scene,
                    work,
                    metrics[episode - start],
                    sums,
                    s,
                    m,
                )
    return Chunk(start, stop, metrics, sums[0], sums[1])


class _Run(NamedTuple):
    """What a method starts from in a setting."""

    which: int  # number of its evidence among the setting's
    empty: Array  # evidence before history, flat
    ledger: Array  # opening, flat
    composition: Composition
    wait: int  # rounds played by the baseline first
    work: Workspace


def _prepared(study: Study) -> list[list[_Run]]:
    """By setting and method."""
    table = []
    for setting in study.settings:
        row, known = [], dict[str, int]()
        for method in study.methods:
            confidence = method.confidence_in(setting)
            which = known.setdefault(confidence, len(known))
            composition = method.composition
            account = composition.account(
                setting.alpha, setting.reserve, misspecification=setting.misspecification
            )
            ledger = ledgers.opening(account, setting.dim, composition.checkpoints)
            empty = statistics.empty(setting.model(confidence))
            work = workspace(empty, ledger, setting.dim, setting.count)
            wait = setting.forced_rounds if method.after_forced_phase else 0
            row.append(_Run(which, empty, ledger, composition, wait, work))
        table.append(row)
    return table


class _Stage:
    """One episode's draws, each made once."""

    def __init__(self, seed: int, episode: int) -> None:
        self.seed, self.episode = seed, episode
        self.made: dict[tuple[object, ...], Array] = {}

    def scene(self, setting: Setting) -> Scene:
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
        noise = self._noise(setting, draws.NOISE, (setting.rounds, setting.count + 1))
        theta, baseline = setting.vectors()
        return Scene(pools, means, best, noise, baseline, theta)

    def history(self, setting: Setting, scene: Scene) -> tuple[Array, Array]:
        """Historical features (n, d) and rewards (n,)."""
        features = candidates.history(setting, self.seed, self.episode, scene.pools)
        noise = self._noise(setting, draws.HISTORY_NOISE, (setting.history_size,))
        return features, features @ scene.theta + noise

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
