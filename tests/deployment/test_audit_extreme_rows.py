"""Honest journals are clean beside rows of 0, of 1e100 and more, and of candidates like the baseline."""

from __future__ import annotations

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.evidence import CONFIDENCES

pytestmark = pytest.mark.filterwarnings("error")


def assert_clean(deployment: Deployment) -> None:
    for sample in (0, 1):
        report = deployment.audit(sample=sample)
        assert report.clean, report.finding


def test_a_candidate_of_zeros_is_scored_by_a_large_baseline(memory_url: str) -> None:
    """maximin scores by the certificate, which is then the baseline's alone."""
    with Deployment.create(memory_url, "shop", LinearModel(2, 3e3, 5e-5), "maximin") as dep:
        dep.decide(np.array([[0.0, 0.0], [9e7, 1e7]]), np.array([9e7, 3e7]))
        assert_clean(dep)


def test_an_upper_bound_that_overflows_where_nothing_is_gated(memory_url: str) -> None:
    """Where rewards are small, an audit's own order of operations does not overflow."""
    model = LinearModel.bounded(1, 1e-7, ridge=1e-8)
    with Deployment.create(memory_url, "shop", model, "linucb") as dep:
        dep.learn(np.full((30, 1), 1e-7), np.full(30, 0.5))
        assert dep.decide(np.array([[1e-7], [1e160]]), np.array([2e-7])).action == 0
        assert_clean(dep)


@pytest.mark.parametrize("size", [1e60, 1e100])
@pytest.mark.parametrize("policy", ["clicks", "linucb"])
def test_rewards_in_a_range_of_the_largest_rows(memory_url: str, policy: str, size: float) -> None:
    """The fourth powers of their features overflow, and so may means that are fitted to them."""
    rng = np.random.default_rng(0)
    with Deployment.create(memory_url, "shop", LinearModel.bounded(2, 1.0), policy, reserve=9.0) as dep:
        for n in range(12):
            made = dep.decide(rng.normal(size=(3, 2)), np.array([0.5, 0.1]))
            if n % 4 == 3:
                dep.executed(made.id, size * rng.normal(size=2) / 4.0)
            dep.observe(made.id, 0.5 if n < 6 else float(rng.random() < 0.5))
        assert_clean(dep)


def test_a_told_mean_where_rounding_leaves_the_set_nothing(memory_url: str) -> None:
    """Rewards of 1e7 in float64 are further from linear than the declared noise of 6e-8."""
    rng, theta = np.random.default_rng(1), np.full(9, 0.3)
    with Deployment.create(
        memory_url, "shop", LinearModel(9, 6e-8, 1.0, 0.3, confidence="unbiased"), "lcbce", reserve=1e9
    ) as dep:
        for _ in range(8):
            baseline = 1e7 * np.abs(rng.normal(size=9))
            made = dep.decide(np.empty((0, 9)), baseline, baseline_mean=float(baseline @ theta))
            dep.observe(made.id, float(baseline @ theta))
        assert_clean(dep)


@pytest.mark.parametrize("policy", ["clicks", "contrast"])
def test_candidates_that_differ_from_the_baseline_by_its_rounding(memory_url: str, policy: str) -> None:
    rng, baseline = np.random.default_rng(3), np.array([9e6])
    with Deployment.create(memory_url, "shop", LinearModel(1, 9e5, 1.0), policy, alpha=1e-12) as dep:
        for _ in range(6):
            pool = baseline * np.array([[1.0], [1.0 - 1e-13], [1.0 + 1e-13]])
            dep.observe(dep.decide(pool, baseline).id, float(3e6 + 9e5 * rng.normal()))
        assert_clean(dep)


def test_a_candidate_beyond_all_bounds_is_explained(memory_url: str) -> None:
    """Its estimated contrast overflows; nobody is warned of it."""
    with Deployment.create(memory_url, "shop", LinearModel(2, 0.1, 5.0), "refresh") as dep:
        dep.learn(np.eye(2), np.array([4.0, 3.0]))
        made = dep.decide(np.array([[1e308, 1e308], [1.0, 0.2]]), np.array([1.0, 0.1]))
        assert "admissible" in str(dep.explain(made.id))


@pytest.mark.parametrize("policy", ["c-squarecb", "c-fastcb"])
def test_a_candidate_beyond_all_bounds_is_not_drawn(memory_url: str, policy: str) -> None:
    model, pool = LinearModel(2, 0.1, 1.0), np.array([[1e200, 0.0], [1.0, 0.2]])
    with Deployment.create(memory_url, "shop", model, policy, reserve=50.0, seed=3) as dep:
        assert dep.decide(pool, np.array([1.0, 0.0]), baseline_mean=0.5).is_baseline
        assert_clean(dep)


@pytest.mark.parametrize("size", [1e6, 1e7, 1e8])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_one_large_row_beside_small_ones(memory_url: str, confidence: str, size: float) -> None:
    """Squared radii of some sets are small differences of the squares of what was observed."""
    model = LinearModel(1, 0.1, 1.0, confidence=confidence)
    with Deployment.create(memory_url, "shop", model, "refresh", reserve=1e9) as dep:
        small, large = dep.decide([[1.3]], [1.0]), dep.decide([[size]], [1.0])
        dep.observe(small.id, 1.021724484417739)
        dep.observe(large.id, 0.7931437414608203 * size)
        dep.decide([[1.1]], [1.0])
        assert_clean(dep)
        report = dep.audit(sample=3)
        assert report.clean, report.finding
        assert report.precise == 3


@pytest.mark.parametrize("confidence", ["mixture", "self-normalized"])
def test_another_direction_after_many_rows_beside_a_small_ridge(memory_url: str, confidence: str) -> None:
    """An inverse of 1e6 in that direction loses its last digits at once, and bounds allow for it."""
    model = LinearModel(2, 10.0, 1e-3, 1e-6, confidence=confidence)
    baseline = np.array([-0.7186, 0.6954])
    with Deployment.create(memory_url, "shop", model, "contrast", alpha=0.5, reserve=50.0) as dep:
        for n in range(12):
            made = dep.decide(baseline[None], baseline)
            if n == 9:
                dep.executed(made.id, np.array([-0.645, 0.7592]))
            dep.observe(made.id, 0.0)
        assert_clean(dep)
