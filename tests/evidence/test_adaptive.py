"""The set `adaptive`: its definition once more, its promise, what it gains over the declared bound."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ncx2

import c4b
from c4b.evidence.sets import adaptive
from support.oracle_sets import Array

LOOSE = 1.0


def rows(rng: np.random.Generator, count: int, dim: int, noise: float) -> tuple[Array, Array, Array]:
    """Features (1, u), Gaussian noise, the truth."""
    u = rng.normal(size=(count, dim - 1))
    x = np.c_[np.ones(count), u / np.linalg.norm(u, axis=1)[:, None]]
    theta = np.r_[0.5, 0.2, np.zeros(dim - 2)]
    return x, x @ theta + noise * rng.normal(size=count), theta


def defined(model: c4b.LinearModel, x: Array, y: Array) -> list[tuple[Array, float]]:
    """(W, R) of each prior scale, row by row from the definition in docs/theory.md."""
    dim, found = model.dim, []
    for power, more in zip((30.0, 1000.0, 30000.0), (5.0, 10.0, 21.0), strict=True):
        scale, c_square = power * model.ridge * model.noise**2, 3.0 * dim + more
        shape = earlier = scale * np.eye(dim)
        centre, spread, renewed = np.zeros(dim), 0.0, 0.0
        for n in range(1, len(y) + 1):
            row, reach = x[n - 1], model.norm_bound * float(np.linalg.norm(x[n - 1]))
            m = min(max(float(row @ centre), -reach), reach)
            limit = model.noise * math.sqrt(2.0 * math.log(2.0 * n * (n + 1) / 0.05))
            b = math.sqrt(c_square * float(row @ np.linalg.solve(earlier, row)))
            b *= reach + abs(m) + limit
            weight = model.noise**2
            if b <= 0.95:
                steep = 2.0 * (-math.log(1.0 - b) - b) / b**2
                if steep * (4.0 * weight + spread) / (3.0 + n) < weight:
                    weight = steep * (y[n - 1] - m) ** 2
            shape = shape + weight * np.outer(row, row)
            spread += (y[n - 1] - m) ** 2
            if n >= 1.0625 * renewed:
                earlier, renewed = shape, n
                gram = x[:n].T @ x[:n] + model.ridge * np.eye(dim)
                centre = np.linalg.solve(gram, x[:n].T @ y[:n])
        level = np.linalg.slogdet(shape)[1] - dim * math.log(scale)
        level += 2.0 * math.log(3.0 / model.delta) + 0.1
        found.append((shape, adaptive.solved_radius(level, dim, c_square)))
    return found


@pytest.mark.parametrize("dim", [1, 2, 5, 20, 64])
def test_the_radius_solves_its_equation(dim: int) -> None:
    for level in np.geomspace(3.0, 60.0, 12).tolist():
        for more in (5.0, 21.0):
            radius = adaptive.solved_radius(level, dim, 3.0 * dim + more)
            inside = ncx2.cdf(3.0 * dim + more, dim, radius**2)
            assert level <= radius**2 + 2.0 * math.log(inside) <= level * (1.0 + 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_every_theta_of_the_definition_is_in_the_ellipsoids(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, count = int(rng.integers(2, 5)), int(rng.choice([30, 900]))
    model = c4b.LinearModel(dim, LOOSE, 1.0, confidence="adaptive")
    x, y, _ = rows(rng, count, dim, float(rng.choice([0.05, 1.0])))
    evidence = c4b.Evidence(model)
    evidence.learn(x, y)
    scales = defined(model, x, y)
    gram, moment = x.T @ x, x.T @ y
    volumes = [dim * math.log(r * r) + float(np.linalg.slogdet(w)[1]) for w, r in scales]
    shape, radius = scales[int(np.argmin(volumes))]
    root, directions = np.linalg.cholesky(shape), rng.normal(size=(400, dim))
    inside = 0
    for direction in directions:
        residual = root @ (direction * (radius / np.linalg.norm(direction)))
        theta = np.linalg.solve(gram, moment - residual)  # on the border of (B)
        if np.linalg.norm(theta) <= model.norm_bound:
            inside += 1
            assert evidence.contains(theta)
        assert not evidence.contains(theta + 2.0 * (theta - np.linalg.solve(gram, moment)))
    assert inside > 0 or count == 30


def misses(seed: int, noise: str) -> bool:
    """Whether theta* ever left the set while an adversary who knows it chose the features."""
    rng = np.random.default_rng([seed, len(noise)])
    theta, pool = np.array([0.3, 0.2]), np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.1, 0.9]])
    evidence = c4b.Evidence(c4b.LinearModel(2, LOOSE, 1.0, ridge=30.0, delta=0.5, confidence="adaptive"))
    for n in range(25):
        best = pool[int(np.argmax(pool @ (evidence.estimate - theta)))]
        x = np.where(np.arange(12)[:, None] % 2 == n % 2, best, pool[rng.integers(4, size=12)])
        if noise == "rare":  # nothing for long, then much: the hardest for a learned variance
            eta = np.where(rng.random(12) < 0.01, 0.99, -0.01)
        else:
            eta = {"small": 0.1, "normal": 1.0}[noise] * rng.normal(size=12)
        evidence.learn(x, x @ theta + eta)
        if not evidence.contains(theta):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["rare", "small", "normal"])
def test_an_adversary_who_knows_the_truth_meets_delta(noise: str) -> None:
    assert sum(misses(seed, noise) for seed in range(20)) <= 0.5 * 20


@pytest.mark.slow
def test_a_loose_bound_costs_little_once_there_are_many_rows() -> None:
    rng, v = np.random.default_rng(4), np.array([0.05, 1.0, 0.0, 0.0, 0.0])
    x, y, theta = rows(rng, 20_000, 5, 0.1)
    learned, declared = (
        c4b.Evidence(c4b.LinearModel(5, LOOSE, 1.0, confidence=name))
        for name in ("adaptive", "several-ridges")
    )
    for evidence in (learned, declared):
        evidence.learn(x, y)
        assert evidence.contains(theta)
    assert learned.upper(v) - learned.lower(v) < 0.7 * (declared.upper(v) - declared.lower(v))


def test_rewards_that_no_theta_explains_raise_the_alarm() -> None:
    evidence = c4b.Evidence(c4b.LinearModel(1, 0.1, 0.1, confidence="adaptive"))
    evidence.learn(np.ones((300, 1)), np.ones(300))
    assert evidence.alarm == "no theta within the norm bound explains the data"


def test_a_policy_with_it_is_saved_and_continues(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    policy = c4b.Policy("reserve-c4b+", c4b.LinearModel(2, LOOSE, 1.0, confidence="adaptive"), 0.2, 3.0)
    policy.learn(np.tile([1.0, 0.0], (60, 1)), 0.5 + 0.1 * rng.normal(size=60))
    policy.save(tmp_path / "policy")
    loaded = c4b.Policy.load(tmp_path / "policy")
    for _ in range(10):
        one, two = (each.decide([[1.0, 0.5]], [1.0, 0.0]) for each in (policy, loaded))
        assert (one.action, one.bank) == (two.action, two.bank)
        policy.observe(one.id, 0.5)
        loaded.observe(two.id, 0.5)
