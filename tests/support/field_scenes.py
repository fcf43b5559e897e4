"""Episodes of a study's setting as the plain arrays that ``oracle_field`` plays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b.study.spec.setting import Setting
from c4b.study.world import candidates, draws
from support.oracle_field import Array, Story, Terms, play


class FieldScene(NamedTuple):
    """One episode: T rounds, K candidates, d features."""

    pools: Array  # (T, K, d)
    baselines: Array  # (T, d)
    theta: Array  # (d,)
    noise: Array  # (T, K+1), the last column the baseline's
    history: tuple[Array, Array]


SETTINGS = {
    "diverse .15/.3": Setting(history="diverse", rho=0.15, sigma=0.3),
    "baseline .15/.3": Setting(history="baseline", rho=0.15, sigma=0.3),
    "baseline .8/.3": Setting(history="baseline", rho=0.8, sigma=0.3),
}
"""Columns of the table in docs/field.md, all without a reserve."""


def scene(setting: Setting, seed: int, episode: int) -> FieldScene:
    """The draws that a study makes for this episode."""
    pools = candidates.pools(setting, candidates.raw_pools(setting, seed, episode))
    theta = np.array(setting.theta)

    def noise(role: int, shape: tuple[int, ...]) -> Array:
        stream = draws.stream(seed, episode, role)
        return setting.sigma * draws.unit_noise(setting.noise, stream, shape)

    rows = candidates.history(setting, seed, episode, pools)
    rewards = rows @ theta + noise(draws.HISTORY_NOISE, (setting.history_size,))
    return FieldScene(
        np.ascontiguousarray(pools.transpose(0, 2, 1)),
        candidates.baselines(setting, seed, episode),
        theta,
        noise(draws.NOISE, (setting.rounds, setting.count + 1)),
        (rows, rewards),
    )


def oracle_story(system: str, setting: Setting, made: FieldScene, **more: object) -> Story:
    """The episode as the oracle plays it."""
    terms = Terms(
        setting.dim,
        setting.sigma,
        setting.norm_bound,
        setting.ridge,
        setting.delta,
        setting.alpha,
        setting.reserve,
    )
    return play(system, terms._replace(**more), *made)  # type: ignore[arg-type]
