"""The alarm of `bounded-2` and later: it finds means that are not linear, and is quiet otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import c4b
from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import VarianceSums
from c4b.evidence.ellipsoids import views
from c4b.evidence.sets import linearity_alarm
from c4b.evidence.sets.linearity_alarm import ABSOLUTE, TOTAL, WEIGHT, curvature_of
from c4b.evidence.sums.totals import totals_size

MESSAGE = "mean rewards are not linear in the features"


def drawn(rng: np.random.Generator, rows: int, bend: float) -> tuple[Array, Array]:
    """Features (1, u) with clicks of mean .15 + .1 u + bend u^2."""
    u = rng.uniform(-1.0, 1.0, size=(rows, 2))
    means = 0.15 + 0.1 * u[:, 0] + bend * u[:, 0] ** 2
    return np.c_[np.ones(rows), u], (rng.random(rows) < means).astype(float)


def learned(model: c4b.LinearModel, x: Array, y: Array) -> c4b.Evidence:
    """What the set holds after rows in batches of 100."""
    evidence = c4b.Evidence(model)
    for n in range(0, len(x), 100):
        evidence.learn(x[n : n + 100], y[n : n + 100])
    return evidence


@pytest.mark.parametrize("seed", range(3))
def test_a_bend_is_found(seed: int) -> None:
    x, y = drawn(np.random.default_rng(seed), 3000, 0.6)
    assert learned(c4b.LinearModel.bounded(3, 1.0), x, y).alarm == MESSAGE


def test_a_declared_bend_is_none() -> None:
    x, y = drawn(np.random.default_rng(0), 3000, 0.6)
    assert learned(c4b.LinearModel.bounded(3, 1.0, misspecification=0.6), x, y).alarm is None


def test_linear_means_raise_it_no_more_than_delta_allows() -> None:
    alarms = 0
    for seed in range(80):
        x, y = drawn(np.random.default_rng([4, seed]), 600, 0.0)
        alarms += learned(c4b.LinearModel.bounded(3, 1.0, delta=0.5), x, y).alarm is not None
    assert alarms <= 80 * 0.5 * 0.04 + 2  # its share of delta, and some luck


def test_any_means_of_items_are_linear() -> None:
    rng = np.random.default_rng(3)
    items = rng.integers(4, size=2000)
    x = np.eye(4)[items]
    evidence = learned(
        c4b.LinearModel.bounded(4, 2.0), x, rng.random(2000) < np.array([0.02, 0.9, 0.5, 0.1])[items]
    )
    assert evidence.alarm is None
    data = views(evidence.flat)[1]
    sums = curvature_of(data.extra, len(data.extra) - totals_size(4, True), 4).sums
    assert sums[ABSOLUTE] < 0.05 * 2000  # what a ridge leaves unexplained


@pytest.mark.parametrize("level", [1.0, 8.0, 20.0, 27.0])
def test_the_radius_solves_its_equation(level: float) -> None:
    reach = np.sqrt(30.0)

    def excess(radius: float) -> float:
        inside = norm.cdf(reach - radius) - norm.cdf(-reach - radius)
        return float(radius**2 + 2.0 * np.log(inside) - level)

    wanted = brentq(excess, 1e-6, reach)
    assert linearity_alarm.radius_in_one_dimension(level) == pytest.approx(wanted, rel=1e-8)
    assert linearity_alarm.radius_in_one_dimension(40.0) == np.inf


@pytest.mark.parametrize("rewards", [(0.0, 1.0), (-2.0, 3.0)])
def test_sums_are_those_of_the_audit(rewards: tuple[float, float]) -> None:
    x, clicks = drawn(np.random.default_rng(7), 400, 0.3)
    y = rewards[0] + (rewards[1] - rewards[0]) * clicks
    model = c4b.LinearModel.bounded(3, 4.0, rewards)
    data = views(learned(model, x, y).flat)[1]
    kept = curvature_of(data.extra, len(data.extra) - totals_size(3, True), 3)
    terms = {"dim": 3, "rewards": rewards, "ridge": model.ridge, "confidence": model.confidence}
    again = VarianceSums({**terms, "delta": model.delta, "misspecification": 0.0})
    again.add(x, y)
    assert again.linearity is not None
    np.testing.assert_allclose(kept.features, again.linearity.features, rtol=1e-8, atol=1e-9)
    prior = 20.0 * (rewards[1] - rewards[0]) ** 2
    found = kept.sums[[TOTAL, ABSOLUTE, WEIGHT]]
    wanted = [again.linearity.total, again.linearity.absolute, again.linearity.shape - prior]
    np.testing.assert_allclose(found, wanted, rtol=1e-7)
    assert kept.sums[ABSOLUTE] > 1.0
