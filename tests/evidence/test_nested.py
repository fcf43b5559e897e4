"""Nested sets against their definition: every kept ellipsoid computed from its own rows."""

from __future__ import annotations

import numpy as np
import pytest

import c4b
from c4b.evidence.sets.nested import KEPT

RNG = np.random.default_rng(3)
ROWS = np.concatenate([np.ones((70, 1)), RNG.normal(size=(70, 2))], axis=1)
THETA = np.array([0.4, 0.3, -0.2])
REWARDS = ROWS @ THETA + 0.2 * RNG.normal(size=70)


def model(confidence: str, dim: int = 3) -> c4b.LinearModel:
    return c4b.LinearModel(dim, noise=0.2, norm_bound=0.8, ridge=0.5, confidence=confidence)


def lower_after(n: int, v: np.ndarray, source: bool) -> float:
    """L(v) of the ellipsoid of the first n rows."""
    x, y = ROWS[:n], REWARDS[:n]
    shape = 0.5 * np.eye(3) + x.T @ x
    radius = 0.2 * np.sqrt(np.log(np.linalg.det(shape) / 0.5**3) + 2.0 * np.log(20.0))
    if source:
        longest = max((x**2).sum(axis=1), default=0.0)
        radius = 0.2 * np.sqrt(3.0 * np.log((1.0 + (n + 1) * longest / 0.5) / 0.05))
    radius += np.sqrt(0.5) * 0.8
    low: float = v @ np.linalg.solve(shape, x.T @ y) - radius * np.sqrt(v @ np.linalg.solve(shape, v))
    return low


@pytest.mark.parametrize("name", ["nested", "kazerouni"])
def test_the_best_of_today_and_of_every_doubling(name: str) -> None:
    evidence = c4b.Evidence(model(name))
    for n, (x, y) in enumerate(zip(ROWS, REWARDS.tolist(), strict=True), start=1):
        evidence.absorb(x, y)
        kept = [0, *(2**k for k in range(8) if 2**k <= n), n]
        for v in (np.array([1.0, 0.0, 0.0]), np.array([0.1, -1.0, 0.5])):
            ball = -0.8 * np.linalg.norm(v)
            expected = max(ball, *(lower_after(m, v, name == "kazerouni") for m in kept))
            assert evidence.lower(v) == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert evidence.contains(THETA)


@pytest.mark.parametrize("dim", [1, 3])
def test_the_sources_radius_is_never_smaller(dim: int) -> None:
    ours, source = c4b.Evidence(model("nested", dim)), c4b.Evidence(model("kazerouni", dim))
    for x, y in zip(ROWS[:, :dim], REWARDS.tolist(), strict=True):
        ours.absorb(x, y)
        source.absorb(x, y)
        assert source.radius >= ours.radius


def test_old_ellipsoids_make_room() -> None:
    evidence = c4b.Evidence(model("nested"))
    assert len(evidence.region.radius) == 1 + KEPT
    evidence.learn(np.tile(ROWS, (600, 1)), np.tile(REWARDS, 600))
    first = evidence.region.radius.copy()
    evidence.absorb(ROWS[0], 0.1)
    assert np.sum(evidence.region.radius != first) == 1  # today's; the next one is kept at 65536
