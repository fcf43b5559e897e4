"""A chunk of episodes: draws once an episode, shared by all settings and methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from c4b._validate import Array, Counts
from c4b.evidence import absorption
from c4b.ledger.ledger_kernels import opening
from c4b.study.engine.episode import METRICS, Lineup, Runner, Scene, runner, workspace
from c4b.study.spec.plan import Method, Setting, Study
from c4b.study.world import candidates, draws

T = TypeVar("T")


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
    parts = [_part(setting, study.methods) for setting in study.settings]
    works = [workspace(part.lineup, part.stack, part.setting.dim, part.setting.count) for part in parts]
    for episode in range(start, stop):
        stage = _Stage(study.seed, episode)
        for s, part in enumerate(parts):
            scene, evidences = stage.scene(part), stage.learned(part)
            part.run(evidences, part.lineup, scene, works[s], metrics[episode - start], sums, s)
    return Chunk(start, stop, metrics, sums[0], sums[1])


class _Part(NamedTuple):
    """A setting and what its methods start from; nothing here is written to."""

    setting: Setting
    place: tuple[object, ...]  # names the scene
    past: tuple[object, ...]  # names the evidences after history
    empties: tuple[Array, ...]  # evidences before history, each confidence once, flat
    lineup: Lineup
    stack: int  # ellipsoids of the largest evidence
    run: Runner


@lru_cache(maxsize=1024)
def _part(setting: Setting, methods: tuple[Method, ...]) -> _Part:
    """Made once for all chunks: neither a setting nor a registered policy ever changes."""
    empties, places, at = dict[str, Array](), dict[str, int](), 0
    ledgers, rules, paid = list[Array](), list[tuple[float, ...]](), 0
    for method in methods:
        confidence, composition = method.confidence_in(setting), method.composition
        if confidence not in empties:
            empties[confidence] = absorption.empty(setting.model(confidence))
            places[confidence] = at
            at += len(empties[confidence])
        account = composition.account(
            setting.alpha, setting.reserve, misspecification=setting.misspecification
        )
        ledgers.append(opening(account, setting.dim, composition.checkpoints))
        wait = setting.forced_rounds if method.after_forced_phase else 0
        of_evidence = (places[confidence], len(empties[confidence]))
        rules.append((*composition.rule, wait, *of_evidence, paid, len(ledgers[-1])))
        paid += len(ledgers[-1])
    lineup = Lineup(np.concatenate(ledgers), np.array(rules, dtype=np.float64))
    stack = max(int(empty[0]) for empty in empties.values())
    place = (*_shape(setting), setting.rho, setting.theta, setting.baseline, setting.noise, setting.sigma)
    models = (empty.tobytes() for empty in empties.values())
    past = (*place, setting.history, setting.history_size, *models)
    run = runner(stack, setting.dim, setting.count)
    return _Part(setting, place, past, tuple(empties.values()), lineup, stack, run)


def _shape(setting: Setting) -> tuple[object, ...]:
    return setting.generator, setting.source, setting.rounds, setting.count, setting.dim


class _Stage:
    """One episode's draws and what follows from them alone, each made once.

    What settings share is taken from the first: a scene knows no history, reserve or model, and what
    is learned from history depends on scene, history and model only.
    """

    def __init__(self, seed: int, episode: int) -> None:
        self.seed, self.episode = seed, episode
        self.made: dict[tuple[object, ...], Any] = {}

    def scene(self, part: _Part) -> Scene:
        return self._once(("scene", *part.place), lambda: self._scene(part.setting))

    def learned(self, part: _Part) -> Array:
        """The part's evidences after history, flat, one after the other."""
        return self._once(("past", *part.past), lambda: self._learned(part))

    def _scene(self, setting: Setting) -> Scene:
        shape = _shape(setting)
        raw = self._once(("raw", *shape), lambda: candidates.raw_pools(setting, self.seed, self.episode))
        place = (*shape, setting.rho)
        pools = self._once(("pools", *place), lambda: candidates.pools(setting, raw))
        theta, baseline = setting.vectors()
        means = self._once(("means", *place, setting.theta), lambda: np.einsum("i,tik->tk", theta, pools))
        best = np.maximum(means.max(axis=1), setting.baseline_mean)
        noise = self._noise(setting, draws.NOISE, (setting.rounds, setting.count + 1))
        return Scene(pools, means, best, noise, baseline, theta)

    def _learned(self, part: _Part) -> Array:
        setting, scene = part.setting, self.scene(part)
        drawn = setting.rho if setting.history == "candidates" else None
        kind = (setting.history, setting.history_size, setting.baseline, drawn, *_shape(setting))
        features = self._once(
            ("history", *kind),
            lambda: candidates.history(setting, self.seed, self.episode, scene.pools),
        )
        noise = self._noise(setting, draws.HISTORY_NOISE, (setting.history_size,))
        rewards = features @ scene.theta + noise
        learned = [empty.copy() for empty in part.empties]
        for evidence in learned:
            absorption.absorb_many(evidence, features, rewards)
        return np.concatenate(learned)

    def _noise(self, setting: Setting, role: int, shape: tuple[int, ...]) -> Array:
        def unit() -> Array:
            rng = draws.stream(self.seed, self.episode, role)
            return draws.unit_noise(setting.noise, rng, shape)

        base = self._once(("unit", setting.noise, role, shape), unit)
        return self._once(
            ("noise", setting.noise, role, shape, setting.sigma), lambda: base * setting.sigma
        )

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self.made:
            self.made[key] = make()
        found: T = self.made[key]
        return found
