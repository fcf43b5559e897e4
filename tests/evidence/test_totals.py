"""What sums of rewards say by themselves: (K) and (J), and which rows each sum holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, logsumexp

import c4b
from c4b._validate import Array
from c4b.deployment.audit.recomputed.recomputed_totals import JointTotals
from c4b.evidence.ellipsoids import views
from c4b.evidence.sums import joint_totals, totals


def excess(total: float, clicks: float) -> float:
    return float(total + gammaln(1.0 + clicks) - (1.0 + clicks) * np.log1p(total))


@pytest.mark.parametrize("clicks", [0.0, 0.4, 1.0, 3.0, 60.0, 4321.5, 2e6])
@pytest.mark.parametrize("level", [0.7, 5.0, 30.0])
def test_bounds_are_the_roots(clicks: float, level: float) -> None:
    low, high = totals.least_total(clicks, level), totals.largest_total(clicks, level)
    far = 4.0 * clicks + 4.0 * level + 20.0
    wanted = brentq(lambda total: excess(total, clicks) - level, clicks, far, xtol=1e-9)
    assert high == pytest.approx(wanted, rel=1e-7)
    if excess(0.0, clicks) <= level:
        assert low == 0.0
    else:
        wanted = brentq(lambda total: excess(total, clicks) - level, 0.0, clicks, xtol=1e-9)
        assert low == pytest.approx(wanted, rel=1e-7)


def test_rows_are_sorted_by_their_features() -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 1.0, 1.0, confidence="bounded-2", rewards=(0, 2)))
    evidence.learn([[1.0, 0.0], [1.0, 0.5], [1.0, 0.0], [1.0, -0.25]], [2.0, 1.0, 1.0, 0.5])
    held = views(evidence.flat)[0].totals
    assert held[[totals.ROWS, totals.CLICKS]].tolist() == [2.0, 1.5]
    assert held[[totals.OTHER_ROWS, totals.OTHER_CLICKS]].tolist() == [2.0, 0.75]
    assert held[totals.FEATURES :].tolist() == [1.0, 0.0, 2.0, 0.25, 0.0, 0.0]
    assert 0.0 <= held[totals.LOW] <= 0.75 * 2.0 <= held[totals.HIGH] == 2.0


@pytest.mark.parametrize("two_point", [True, False])
@pytest.mark.parametrize("mean", [0.01, 0.2, 0.9])
def test_the_interval_misses_no_more_than_delta_allows(mean: float, two_point: bool) -> None:
    rng, delta, misses = np.random.default_rng([7, two_point]), 0.3, 0
    level = -math.log(delta)
    for _ in range(300):
        means = np.where(rng.random(600) < 0.5, mean, 0.5 * mean)
        rewards = (
            (rng.random(600) < means).astype(float) if two_point else means * 2 * rng.beta(2, 2, 600)
        )
        rewards = np.minimum(rewards, 1.0) if two_point or mean <= 0.5 else means
        values = np.cumsum(means) + gammaln(1.0 + np.cumsum(rewards))
        values -= (1.0 + np.cumsum(rewards)) * np.log1p(np.cumsum(means))
        misses += bool(np.any(values > level))
    assert misses <= 300 * delta


def test_negative_rewards_have_no_such_bounds() -> None:
    evidence = c4b.Evidence(c4b.LinearModel.bounded(2, 1.0, rewards=(-1, 1)))
    evidence.learn([[1.0, 0.0]] * 6 + [[1.0, 0.5]] * 6, [-1.0] * 12)
    held = views(evidence.flat)[0].totals
    assert held[[totals.OTHERS_LOW, totals.LOW, totals.HIGH]].tolist() == [
        -totals.NO_BOUND,
        -totals.NO_BOUND,
        totals.NO_BOUND,
    ]


# -- both sums on one event --------------------------------------------------------------------

OTHERS = (
    np.array([0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0]),
    np.array([0.04] + [0.12] * 8),
)
FALLS = np.array([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4])
OWN = np.r_[0.0, -FALLS, FALLS], np.r_[0.1, 0.12, 0.12, 0.24, 0.24, 0.12, [0.012] * 5]
"""s - 1 and weights of the two averages, as docs/theory.md has them."""


def average(clicks: Array, total: Array, factors: tuple[Array, Array]) -> Array:
    """f of (J)."""
    rises, weights = factors
    powers = np.multiply.outer(clicks, np.log1p(rises)) - np.multiply.outer(total, rises)
    return np.asarray(logsumexp(powers, b=weights, axis=-1))


def least_over_the_region(clicks: float, own: float, ratio: float, level: float) -> float:
    """min Lambda - ratio M over (J) and Lambda >= 0, by a generic solver."""

    def least(total: float) -> float:
        left = level - float(average(own, total, OWN))
        if float(average(clicks, 0.0, OTHERS)) <= left:
            return -ratio * total
        far = 10.0 * clicks + 1e4
        if float(average(clicks, far, OTHERS)) > left:
            return 1e9 * (1.0 + abs(total - own))
        return (
            brentq(lambda x: float(average(clicks, x, OTHERS)) - left, 0.0, far, xtol=1e-12)
            - ratio * total
        )

    found = minimize_scalar(
        least, bounds=(0.0, 3.0 * own + 100.0), method="bounded", options={"xatol": 1e-9}
    )
    return float(found.fun)


@pytest.mark.parametrize(
    ("clicks", "own"), [(12.0, 90.0), (60.5, 150.0), (800.0, 400.0), (4000.0, 900.0)]
)
@pytest.mark.parametrize("ratio", [0.02, 0.3, 1.5])
def test_a_line_touches_the_region_of_both_sums(clicks: float, own: float, ratio: float) -> None:
    level = 5.5
    intercept, slope = joint_totals.earned_line(clicks, own, ratio, level)
    assert slope == pytest.approx(ratio, rel=1e-9)
    exact = least_over_the_region(clicks, own, ratio, level)
    assert intercept <= exact + 1e-6 * (1.0 + abs(exact))
    if exact > -ratio * own:  # where Lambda >= 0 does not bind
        assert intercept == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_ends_of_the_region_and_the_line_are_those_of_the_audit() -> None:
    rng = np.random.default_rng(3)
    for _ in range(12):
        model = c4b.LinearModel.bounded(2, 1.0, rewards=(0, 2))
        evidence, rate = c4b.Evidence(model), float(rng.choice([0.02, 0.2, 0.7]))
        x = np.array([[1.0, 0.0], [1.0, 0.5]])[rng.integers(2, size=300)]
        x[0] = 1.0, 0.0
        y = 2.0 * (rng.random(300) < rate)
        evidence.learn(x, y)
        held = views(evidence.flat)[0].totals
        share = 0.26 * (1.0 - 3.0 / 14.0)
        again = JointTotals({"rewards": (0.0, 2.0), "delta": model.delta, "dim": 2}, share)
        again.add(x, y)
        found = held[[totals.LOW, totals.HIGH, totals.OTHERS_LOW]]
        np.testing.assert_allclose(found, [*again.mean(), again.others_low()], rtol=1e-5, atol=1e-6)
        for weight in (-3.0, 4.0, 60.0):
            line = totals.line_below_earned(held, weight)
            np.testing.assert_allclose(line, again.line_below_earned(weight), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mean", [0.02, 0.3])
def test_both_sums_miss_no_more_than_delta_allows(mean: float) -> None:
    """A player who plays more when plays have done well; the region holds both totals in every round."""
    rng, delta, misses = np.random.default_rng(11), 0.3, 0
    for _ in range(300):
        draws, sums, means = rng.random(800), np.zeros((800, 2)), np.zeros((800, 2))
        total, expected = np.zeros(2), np.zeros(2)
        for n in range(800):
            own = n % 2 == 0 or total[0] < expected[0]
            rate = mean if own else 0.7 * mean
            total[int(own)] += draws[n] < rate
            expected[int(own)] += rate
            sums[n], means[n] = total, expected
        values = average(sums[:, 0], means[:, 0], OTHERS) + average(sums[:, 1], means[:, 1], OWN)
        misses += bool(np.any(values > -math.log(delta)))
    assert misses <= 300 * delta


def test_weights_of_both_averages_add_up_to_one() -> None:
    for rises, parts, wanted in (
        (joint_totals.OTHER_RISES, joint_totals.OTHER_PARTS, OTHERS),
        (joint_totals.OWN_RISES, joint_totals.OWN_PARTS, OWN),
    ):
        assert parts.sum() == pytest.approx(1.0, abs=1e-12)
        assert dict(zip(rises.tolist(), parts.tolist(), strict=True)) == pytest.approx(
            dict(zip(*(part.tolist() for part in wanted), strict=True))
        )
