"""The draws of one episode, and what follows from them alone, each made once for all settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.absorption import absorb_many
from c4b.study.engine.compiled_episode import Scene
from c4b.study.engine.prepared_setting import (
    CompiledMethods,
    PreparedSetting,
    baseline_key,
    pool_shape,
)
from c4b.study.spec.setting import Setting
from c4b.study.world import candidates, draws

T = TypeVar("T")
MOST_KEPT_BYTES = 256_000_000
"""Draws of an episode that are kept for settings that may share them."""


class EpisodeDraws:
    """Scenes and histories of one episode.

    Settings share what they agree on. A scene does not depend on history, reserve or model; what is
    learned from history depends on scene, history and model only. So each is made for the first setting
    that needs it and kept under a key of what it depends on.
    """

    def __init__(self, seed: int, episode: int) -> None:
        self.seed, self.episode = seed, episode
        self._made: dict[tuple[object, ...], Any] = {}
        self._kept_bytes = 0

    def scene(self, prepared: PreparedSetting) -> Scene:
        """Candidates, means and noise of every round."""
        return self._once(("scene", *prepared.scene_key), lambda: self._scene(prepared.setting))

    def history(self, prepared: PreparedSetting) -> tuple[Array, Array]:
        """Historical features (n, d) and rewards (n,)."""
        return self._once(("history", *prepared.history_key), lambda: self._history(prepared))

    def learned(self, prepared: PreparedSetting, compiled: CompiledMethods) -> Array:
        """Flat evidences after history, one after the other."""
        key = ("learned", *compiled.learned_key)
        return self._once(key, lambda: self._learned(prepared, compiled))

    def _scene(self, setting: Setting) -> Scene:
        shape = pool_shape(setting)
        raw = self._once(("raw", *shape), lambda: candidates.raw_pools(setting, self.seed, self.episode))
        pool_fields = (*shape, setting.rho)
        pools = self._once(("pools", *pool_fields), lambda: candidates.pools(setting, raw))
        theta = np.array(setting.theta)
        baselines = self._once(
            ("baselines", setting.rounds, setting.dim, *baseline_key(setting)),
            lambda: candidates.baselines(setting, self.seed, self.episode),
        )
        means = self._once(
            ("means", *pool_fields, setting.theta), lambda: np.einsum("i,tik->tk", theta, pools)
        )
        baseline_means = np.zeros(setting.rounds)
        for i in range(setting.dim):
            baseline_means += baselines[:, i] * theta[i]
        fixed = setting.fixed_baseline
        best = np.maximum(means.max(axis=1), setting.baseline_mean if fixed else baseline_means)
        reward = setting.rounds * baseline_means[0] if fixed else baseline_means.sum()
        noise = self._noise(setting, draws.NOISE, (setting.rounds, setting.count + 1))
        if setting.noise == draws.CLICKS:
            every = np.concatenate([means, baseline_means[:, None]], axis=1)
            noise = draws.clicks_minus_means(noise, _rates(every))
        told = baseline_means + setting.told_mean_error
        return Scene(pools, means, best, noise, baselines, theta, baseline_means, float(reward), told)

    def _history(self, prepared: PreparedSetting) -> tuple[Array, Array]:
        setting, scene = prepared.setting, self.scene(prepared)
        rho = setting.rho if setting.history in ("candidates", "logged") else None
        kind = (setting.history, setting.history_size, *baseline_key(setting), rho, *pool_shape(setting))
        features = self._once(
            ("features", *kind),
            lambda: candidates.history(setting, self.seed, self.episode, scene.pools),
        )
        noise = self._noise(setting, draws.HISTORY_NOISE, (setting.history_size,))
        means = features @ scene.theta
        if setting.noise == draws.CLICKS:
            noise = draws.clicks_minus_means(noise, _rates(means))
        return features, means + noise

    def _learned(self, prepared: PreparedSetting, compiled: CompiledMethods) -> Array:
        features, rewards = self.history(prepared)
        evidences = [evidence.copy() for evidence in compiled.empty_evidences]
        for evidence in evidences:
            absorb_many(evidence, features, rewards)
        return np.concatenate(evidences)

    def _noise(self, setting: Setting, role: int, shape: tuple[int, ...]) -> Array:
        def unit() -> Array:
            rng = draws.stream(self.seed, self.episode, role)
            if setting.noise == draws.CLICKS:
                return rng.random(shape)
            return draws.unit_noise(setting.noise, rng, shape)

        base = self._once(("unit", setting.noise, role, shape), unit)
        if setting.noise == draws.CLICKS:
            return base
        return self._once(
            ("noise", setting.noise, role, shape, setting.sigma), lambda: base * setting.sigma
        )

    def release_if_large(self) -> None:
        """Drop what is kept if it is too much; a setting that needs it draws the same again."""
        if self._kept_bytes > MOST_KEPT_BYTES:
            self._made.clear()
            self._kept_bytes = 0

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self._made:
            fresh = self._made[key] = make()
            if isinstance(fresh, np.ndarray):
                self._kept_bytes += fresh.nbytes
        made: T = self._made[key]
        return made


def _rates(means: Array) -> Array:
    """``means`` if all of them are probabilities; else no click could have them."""
    lowest, highest = float(means.min(initial=0.5)), float(means.max(initial=0.5))
    if not (lowest >= 0.0 and highest <= 1.0):
        remedy = (
            f"means of clicks must lie between 0 and 1; these reach from {lowest:.6g} to {highest:.6g}"
        )
        raise InvalidInput("theta", None, remedy)
    return means
