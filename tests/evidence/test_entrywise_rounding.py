"""Rounding of the sums entry by entry: many rows in few directions leave answers exact, and sound."""

import mpmath
import numpy as np
import pytest

import c4b
from c4b.evidence import bounds
from c4b.evidence.ellipsoids import views
from c4b.evidence.refinement.entrywise_rounding import decomposition_error
from support.exact_interval import ExactInterval
from support.hostile_data import World, judge

pytestmark = pytest.mark.slow

DELTA = 0.05


def long_world(seed: int, rows: int) -> World:
    """Some of 2 to 5 features are 0 in every row, the others have units of their own; sigma is so far
    below S that ``rows`` units in the last place of the sum of squares are as large as the noise."""
    rng = np.random.default_rng([seed, 31])
    dim = int(rng.integers(2, 6))
    features = rng.normal(size=(rows, dim)) * 10.0 ** rng.uniform(-2.0, 2.0, size=dim)
    features[:, rng.permutation(dim)[: int(rng.integers(1, dim))]] = 0.0
    bound, ridge = (float(10.0 ** rng.uniform(-2.0, 2.0)) for _ in range(2))
    size = float(np.sum(features**2))
    noise = bound * float(np.sqrt(rows * 2.0**-53 * size)) * 10.0 ** rng.uniform(-1.0, 1.0)
    theta = rng.normal(size=dim)
    theta *= 0.7 * bound / np.linalg.norm(theta) * 10.0 ** rng.uniform(-4.0, 0.0)
    rewards = features @ theta + noise * rng.choice([-1.0, 1.0], size=rows)
    return World(
        c4b.LinearModel(dim, noise, bound, ridge, DELTA, "constrained"), features, rewards, theta
    )


def test_directions_without_data_do_not_pay_for_many_rows() -> None:
    """1e5 rows in one direction, S = 390 000 sigma: the list of ellipsoids is half as wide again."""
    rng = np.random.default_rng(8)
    x = np.tile([9.5, 0.0, 0.0], (100_000, 1))
    model = c4b.LinearModel(3, 0.0019, 740.0, 1.3, DELTA, "constrained")
    y = x @ np.array([0.5, 0.0, 0.0]) + 0.0019 * rng.normal(size=len(x))
    evidence = c4b.Evidence(model)
    evidence.learn(x, y)
    exact = ExactInterval.constrained(x, y, 740.0, 0.0019, DELTA, 1.3)
    v = np.array([1.0, 0.0, 0.0])
    wide = bounds.upper(evidence.region, v) - bounds.lower(evidence.region, v)
    assert wide > 1.3 * exact.width(v)
    assert exact.width(v) <= evidence.upper(v) - evidence.lower(v) <= 1.01 * exact.width(v)


def test_an_answer_stays_beyond_the_exact_set() -> None:
    """In ball arithmetic, where the finer allowance is what counts."""
    narrower = 0
    for seed in range(20):
        world = long_world(seed, 3000)
        for count in (1000, 3000):
            verdict = judge(world, count, seed)
            assert verdict.false_bounds == 0, (seed, count)
            assert verdict.missed_truth == 0, (seed, count)
        evidence = c4b.Evidence(world.model)
        evidence.learn(world.features, world.rewards)
        for v in world.features[:3]:
            wide = bounds.upper(evidence.region, v) - bounds.lower(evidence.region, v)
            narrower += evidence.upper(v) - evidence.lower(v) < 0.9 * wide
    assert narrower > 10


def test_the_decomposition_is_no_worse_than_its_bound() -> None:
    """Rows of U^T A - diag(values) U^T and errors of U^T m in 60 digits, U the polar factor of Q^T."""
    for seed in range(25):
        world = long_world(seed, 60)
        evidence = c4b.Evidence(world.model)
        evidence.learn(world.features[:40], world.rewards[:40])
        for x, y in zip(world.features[40:50], world.rewards[40:50], strict=True):
            evidence.absorb(x, y)
        region, data, terms = views(evidence.flat)
        with mpmath.workdps(60):
            basis, gram = mpmath.matrix(region.basis.tolist()), mpmath.matrix(data.gram.tolist())
            values = [mpmath.mpf(value) for value in data.spectrum.values.tolist()]
            squares, turn = mpmath.eigsy(basis * basis.T)
            polar = turn * mpmath.diag([1 / mpmath.sqrt(s) for s in squares]) * turn.T * basis
            rows = polar * gram - mpmath.diag(values) * polar
            gaps = polar * mpmath.matrix(data.moment.tolist())
            gaps -= mpmath.matrix(data.spectrum.moment.tolist())
            square = loss = mpmath.mpf(0)
            for i, value in enumerate(values):
                far, shape = mpmath.norm(rows[i, :]), value + world.model.ridge
                square += (abs(gaps[i]) + far * world.model.norm_bound) ** 2 / shape
                loss += far / shape
            bound = decomposition_error(region, data, terms)
            assert bound[0] >= mpmath.sqrt(square), seed
            assert bound[1] >= loss, seed
