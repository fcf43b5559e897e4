"""Honest journals are clean at any scale of features, noise, norm and ridge: rounding is no finding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.errors import InvalidInput, NoSafeAction

POLICIES = ("reserve-c4b+", "reserve-c4b+", "refresh", "checkpoints", "revalue", "contrast", "separate")
SETS = (None, "constrained", "unbiased", "several-ridges", "self-normalized", "mixture")
ONCE_WRONG = (1023, 1089, 3159, 20203, 20370, 60001)
"""Once had a finding: of a set that says nothing after cancellation; of candidates nearly like the
baseline where an update of the inverse had cancelled five digits; of a radius where only the norm ball
is known; of a small margin, the difference of large sums; of the norm ball in a set that is wider; of a
choice where an audit's float64 knew less than the deployment's."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [*ONCE_WRONG, *range(14)])
def test_an_honest_journal_is_clean(sqlite_url: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, policy = int(rng.choice([1, 2, 3, 6, 12])), str(rng.choice(POLICIES))
    size, scale = int(rng.choice([1, 3, 20, 150])), 10.0 ** rng.uniform(-8.0, 8.0)
    norm, noise = 10.0 ** rng.uniform(-4.0, 4.0), 10.0 ** rng.uniform(-6.0, 3.0)
    ridge, confidence = 10.0 ** rng.uniform(-4.0, 3.0), SETS[int(rng.integers(6))]
    alpha, theta = float(rng.choice([0.01, 0.05, 0.3])), rng.normal(size=dim)
    theta *= norm * rng.uniform(0.2, 0.99) / np.linalg.norm(theta)
    baseline = scale * rng.normal(size=dim)
    baseline *= np.sign(baseline @ theta)
    terms: dict[str, Any] = {"alpha": alpha, "baseline_nonnegative": bool(rng.random() < 0.6)}
    terms["reserve"] = float(rng.choice([0.0, 0.5, 5.0])) * float(baseline @ theta)
    model = LinearModel(dim, noise, norm, ridge, confidence=confidence)
    with Deployment.create(sqlite_url, "shop", model, policy, **terms) as dep:
        rows, spread = int(rng.choice([0, 5, 300])), scale * 10.0 ** rng.uniform(-6.0, 1.0)
        try:
            if rows:
                history = baseline + spread * rng.normal(size=(rows, dim)) * (rng.random() < 0.7)
                dep.learn(history, history @ theta + noise * rng.normal(size=rows))
            for _ in range(12):
                pool = baseline + spread * rng.normal(size=(size, dim))
                made = dep.decide(pool, baseline)
                played = baseline if made.action is None else pool[made.action]
                if rng.random() < 0.8:
                    dep.observe(made.id, float(played @ theta + noise * rng.normal()))
        except (NoSafeAction, InvalidInput):
            pass  # nothing is certified, or too badly scaled for float64: what was decided before counts
        report = dep.audit(sample=4)
        assert report.clean, report.finding


def test_many_outcomes_are_pending() -> None:
    """The value of the sums over rounds is some hundred times the bank that is left of them."""
    rng, baseline = np.random.default_rng(4), np.array([1.0, 0.0, 0.0])
    pools = np.concatenate([np.ones((1800, 4, 1)), 0.2 * rng.normal(size=(1800, 4, 2))], axis=2)
    model = LinearModel(3, 0.3, 1.5)
    with Deployment.create("memory://pending", "shop", model, "reserve-c4b+", reserve=5.0) as dep:
        for pool in pools[:21]:
            dep.observe(dep.decide(pool, baseline).id, float(rng.normal(1.0, 0.3)))
        for some in np.split(pools[21:], 3):
            dep.decide_many([(pool, baseline) for pool in some])
        report = dep.audit(sample=0)
        assert report.clean, report.finding


@pytest.mark.parametrize("size", [30.0, 100.0, 300.0, 2000.0])
@pytest.mark.parametrize("policy", ["refresh", "revalue", "lcbce", "contrast"])
def test_updates_that_cancel_digits(sqlite_url: str, policy: str, size: float) -> None:
    """One feature is large and others are hardly known: bounds have a visible allowance for rounding."""
    rng, baseline = np.random.default_rng(1), np.array([size, 0.0, 0.0])
    told = {"baseline_mean": 0.5} if policy == "lcbce" else {}
    model = LinearModel(3, 0.1, 1.0)
    with Deployment.create(sqlite_url, "shop", model, policy, alpha=0.1, reserve=0.2) as dep:
        for _ in range(12):
            pool = baseline + 0.3 * rng.normal(size=(6, 3))
            made = dep.decide(pool, baseline, **told)
            played = baseline if made.action is None else pool[made.action]
            dep.observe(made.id, float(played @ [0.5 / size, 0.3, -0.2] + 0.1 * rng.normal()))
        for sample in (0, 1):
            report = dep.audit(sample=sample)
            assert report.clean, report.finding
            assert report.largest_error < 1e-9


def test_an_alarm_by_what_the_set_chose_after_the_rows(sqlite_url: str) -> None:
    """The sets for rewards in a range choose a prior scale from the data; an alarm hangs on it."""
    rng = np.random.default_rng(140)
    _ = [rng.choice(3) for _ in range(3)]
    theta = rng.normal(size=3)
    theta *= 0.5 / np.linalg.norm(theta)
    rows = rng.normal(size=(300, 3))
    with Deployment.create(
        sqlite_url, "shop", LinearModel.bounded(3, 1.0, (0.0, 1.0)), "contrast", reserve=1.0
    ) as dep:
        dep.learn(rows, 1.0 * (rng.random(300) < np.clip(rows @ theta, 0.0, 1.0)))
        assert dep.decide(rows[1:3], rows[0]).alarm is not None
        report = dep.audit(sample=0)
        assert report.clean, report.finding


@pytest.mark.parametrize("ridge", [0.003, 0.01, 1.0])
def test_rewards_in_a_range_beside_large_features(memory_url: str, ridge: float) -> None:
    """A deployment knows of W only that it is above its prior, so its bounds allow for per cents."""
    rng, baseline = np.random.default_rng(0), np.array([3e4])
    model = LinearModel.bounded(1, 1.2, (0.0, 3e4), ridge=ridge)
    with Deployment.create(memory_url, "shop", model, "refresh", alpha=0.3, reserve=3000.0) as dep:
        dep.learn(baseline + 7e5 * rng.normal(size=(300, 1)), 3e4 * (rng.random(300) < 0.3))
        dep.decide(baseline + 7e5 * rng.normal(size=(3, 1)), baseline)
        for sample in (0, 1):
            report = dep.audit(sample=sample)
            assert report.clean, report.finding


@pytest.mark.parametrize("seed", [3, 6])
def test_rows_that_are_alike_and_large(memory_url: str, seed: int) -> None:
    """Float64 has no inverse of their sum with weights, or of the one without."""
    rng = np.random.default_rng(seed)
    baseline, model = 1e6 * rng.normal(size=2), LinearModel.bounded(2, 10.0, (0.0, 1e7))
    with Deployment.create(memory_url, "shop", model, "refresh", alpha=0.1, reserve=1e8) as dep:
        dep.learn(np.tile(baseline, (300, 1)), 1e7 * (rng.random(300) < 0.3))
        dep.decide(baseline + 1.7e7 * rng.normal(size=(3, 2)), baseline)
        for sample in (0, 1):
            report = dep.audit(sample=sample)
            assert report.clean, report.finding


@pytest.mark.parametrize("seed", range(3))
def test_only_the_norm_ball_is_left(memory_url: str, seed: int) -> None:
    """Updates of an inverse have lost more digits than an audit can know without replay."""
    rng = np.random.default_rng(seed)
    baseline, model = 47.0 * rng.normal(size=6), LinearModel(6, 1.0, 1.8, 0.027, confidence="mixture")
    with Deployment.create(memory_url, "shop", model, "contrast", alpha=0.3, reserve=20.0) as dep:
        for n in range(10):
            made = dep.decide(baseline + 400.0 * rng.normal(size=(1, 6)), baseline)
            if n % 3 == 2:
                dep.executed(made.id, baseline + 400.0 * rng.normal(size=6))
            dep.observe(made.id, float(rng.normal()))
        for sample in (0, 1):
            report = dep.audit(sample=sample)
            assert report.clean, report.finding


@pytest.mark.parametrize("confidence", ["self-normalized", "mixture"])
@pytest.mark.parametrize("delta", [0.05, 0.9, 0.999])
def test_an_honest_journal_is_clean_at_any_delta(sqlite_url: str, confidence: str, delta: float) -> None:
    """gamma may be near 0: what is added to its root for rounding must be near 0 as well."""
    rng, theta = np.random.default_rng(3), np.array([0.6, -0.3])
    model = LinearModel(2, 1.0, 2.0, 10.0, delta, confidence)
    with Deployment.create(sqlite_url, "shop", model, "refresh", reserve=1.0) as dep:
        dep.learn([[0.1, 0.02]], [0.05])
        for _ in range(6):
            pool = rng.normal(size=(3, 2)) * 0.1
            made = dep.decide(pool, [0.1, 0.0])
            dep.observe(made.id, float(([0.1, 0.0] if made.is_baseline else pool[made.action]) @ theta))
        report = dep.audit()
    assert report.clean, report


@pytest.mark.parametrize("seed", [497, 977])
def test_a_certificate_that_is_a_small_difference(seed: int) -> None:
    """Of a centre and a width that are many times larger: the allowance for rounding is in the width.
    Once had a finding."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=4)
    size = 10.0 ** rng.integers(2, 5)
    theta *= size / np.linalg.norm(theta)
    noise, ridge = size * 10.0 ** rng.integers(-3, 0), 10.0 ** rng.integers(-2, 0)
    model = LinearModel(4, float(noise), float(size), float(ridge))
    with Deployment.create(f"memory://small-{seed}", "shop", model, "contrast", alpha=0.1) as dep:
        for _ in range(16):
            baseline = rng.normal(size=4) * 10.0 ** rng.integers(-1, 1)
            baseline *= np.sign(baseline @ theta)
            made = dep.decide(np.empty((0, 4)), baseline)
            dep.observe(made.id, float(baseline @ theta))
        report = dep.audit()
    assert report.clean, report


@pytest.mark.parametrize(
    ("seed", "policy"),
    [(47, "refresh"), (70, "refresh"), (105, "refresh"), (107, "contrast"), (108, "contrast")],
)
def test_allowances_that_add_up_over_updates(seed: int, policy: str) -> None:
    """Of 2000 such journals 83 once had a finding: a small ridge, and rewards that are not around 1."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(2, 6))
    theta = rng.normal(size=dim)
    size = 10.0 ** rng.integers(0, 5)
    theta *= size / np.linalg.norm(theta)
    ridge = 10.0 ** rng.integers(-3, 0)
    model = LinearModel(dim, float(0.1 * size), float(2.0 * size), float(ridge))
    baseline = rng.normal(size=dim) * 2
    baseline *= np.sign(baseline @ theta)
    terms = {"alpha": 0.1, "reserve": float(size)}
    with Deployment.create(f"memory://updates-{seed}", "shop", model, policy, **terms) as dep:
        for _ in range(20):
            pool = baseline + rng.normal(size=(5, dim))
            made = dep.decide(pool, baseline)
            played = baseline if made.action is None else pool[made.action]
            dep.observe(made.id, float(played @ theta + 0.1 * size * rng.normal()))
        report = dep.audit()
    assert report.clean, report
