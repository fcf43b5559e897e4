"""inf of v @ theta over the set, against a generic convex solver (theory.md, property 4)."""

import numpy as np
import pytest

import c4b
from support.conic_solver import by_cone_solver
from support.oracle_comparison import CONFIDENCES, close, history
from support.oracle_sets import infimum_over_ellipsoid


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("dim", [1, 2, 5, 12])
@pytest.mark.parametrize("rows", [0, 7, 60])
def test_lower_and_upper_equal_a_convex_solver(dim: int, rows: int, confidence: str) -> None:
    rng = np.random.default_rng([dim, rows])
    evidence = c4b.Evidence(c4b.LinearModel(dim, 0.3, 1.5, 0.2, 0.1, confidence))
    features, rewards = history(rng, rng.normal(size=dim), rows, 0.3)
    evidence.learn(features, rewards)
    shape = 0.2 * np.eye(dim) + features.T @ features
    centre = np.linalg.solve(shape, features.T @ rewards)
    for v in rng.normal(size=(3, dim)):
        low = by_cone_solver(v, centre, shape, evidence.radius)
        assert abs(evidence.lower(v) - low) < 1e-7
        assert abs(evidence.lower(v) - infimum_over_ellipsoid(v, centre, shape, evidence.radius)) < 1e-6
        assert abs(evidence.upper(v) + by_cone_solver(-v, centre, shape, evidence.radius)) < 1e-7


@pytest.mark.slow
def test_joint_certificate_is_the_infimum_of_the_contrast() -> None:
    rng = np.random.default_rng(8)
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.2, 1.0, 0.1))
    features, rewards = history(rng, np.array([0.5, 0.2, 0.1]), 25, 0.2)
    evidence.learn(features, rewards)
    shape = 0.1 * np.eye(3) + features.T @ features
    centre = np.linalg.solve(shape, features.T @ rewards)
    pool, baseline = rng.normal(size=(4, 3)), rng.normal(size=3)
    expected = [by_cone_solver(x - 0.9 * baseline, centre, shape, evidence.radius) for x in pool]
    np.testing.assert_allclose(
        c4b.joint_certificate(evidence, pool, baseline, alpha=0.1), expected, atol=1e-7
    )


def test_the_minimiser_lies_on_the_boundary_of_the_set() -> None:
    """The bound is attained: theta = centre - beta V^-1 v / ||v|| gives exactly L(v)."""
    rng = np.random.default_rng(4)
    evidence = c4b.Evidence(c4b.LinearModel(4, 0.2, 1.0, 0.1))
    features, rewards = history(rng, np.array([0.5, 0.2, 0.1, 0.0]), 30, 0.2)
    evidence.learn(features, rewards)
    shape = 0.1 * np.eye(4) + features.T @ features
    v = rng.normal(size=4)
    image = np.linalg.solve(shape, v)
    theta = evidence.estimate - evidence.radius * image / np.sqrt(v @ image)
    assert close(evidence.lower(v), v @ theta)
