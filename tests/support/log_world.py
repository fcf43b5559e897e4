"""The home world of the off-policy gate: an incumbent that explores, and a pilot's greedy policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_WEIGHT = 8 / 0.3


class Rows(NamedTuple):
    weights: NDArray[np.float64]
    rewards: NDArray[np.float64]


def log_world(seed: int, rows: int = 4000, anti_greedy: bool = False) -> Rows:
    """The baseline with probability .7, else one of 8 candidates (1, u), u uniform on the sphere.

    The evaluated policy is greedy (or anti-greedy) for the pilot estimate (0, 1, .6, 0, 0).
    """
    draw = np.random.default_rng([seed, 61])
    u = draw.normal(size=(rows, 8, 4))
    u /= np.linalg.norm(u, axis=2, keepdims=True)
    scores = u @ np.array([1.0, 0.6, 0.0, 0.0])
    chosen = scores.argmin(axis=1) if anti_greedy else scores.argmax(axis=1)
    baseline = draw.random(rows) < 0.7
    action = draw.integers(0, 8, rows)
    means = np.where(baseline, 0.5, 0.5 + 0.3 * u[np.arange(rows), action, 0])
    weights = np.where(~baseline & (action == chosen), MAX_WEIGHT, 0.0)
    return Rows(weights, means + draw.uniform(-0.2, 0.2, rows))


def greedy_value() -> float:
    """The greedy policy's mean reward, by half a million draws; the logging policy's is .5."""
    draw = np.random.default_rng(9)
    best = []
    for _ in range(20):
        u = draw.normal(size=(25_000, 8, 4))
        u /= np.linalg.norm(u, axis=2, keepdims=True)
        chosen = (u @ np.array([1.0, 0.6, 0.0, 0.0])).argmax(axis=1)
        best.append(u[np.arange(len(u)), chosen, 0].mean())
    return float(0.5 + 0.3 * np.mean(best))
