"""What sums of rewards say by themselves: the interval (K), and which rows each sum holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln

import c4b
from c4b.evidence import totals
from c4b.evidence.ellipsoids import views


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
    evidence = c4b.Evidence(c4b.LinearModel.bounded(2, 1.0, rewards=(0, 2)))
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
