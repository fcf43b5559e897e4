"""Numbers worked out by hand. log(det V / lambda^d) is written L, 2 log(1/delta) is 2 log 20.

Bounds agree to 1e-11 only: they contain an allowance for rounding.
"""

import math

import pytest

import c4b

GAMMA_START = 2.0 * math.log(20.0)  # delta = 0.05


def test_one_feature_no_data() -> None:
    # V = 4, theta_hat = 0, L = 0; beta = 0.5 sqrt(2 log 20) + sqrt(4) * 1.5; ||x|| = 2/sqrt(4) = 1
    evidence = c4b.Evidence(c4b.LinearModel(1, noise=0.5, norm_bound=1.5, ridge=4.0))
    beta = 0.5 * math.sqrt(GAMMA_START) + 3.0
    assert evidence.radius == pytest.approx(beta, rel=1e-15)
    assert evidence.lower([2.0]) == pytest.approx(-beta, rel=1e-11)
    assert evidence.upper([2.0]) == pytest.approx(beta, rel=1e-11)


def test_one_feature_two_observations() -> None:
    # x = 1, 2 with y = 3, 1: A = 5, sum x y = 5, V = 1 + 5 = 6, theta_hat = 5/6, L = log 6
    evidence = c4b.Evidence(c4b.LinearModel(1, noise=1.0, norm_bound=2.0, ridge=1.0))
    evidence.learn([[1.0], [2.0]], [3.0, 1.0])
    assert evidence.estimate == pytest.approx([5.0 / 6.0], rel=1e-14)
    beta = math.sqrt(math.log(6.0) + GAMMA_START) + 2.0
    assert evidence.radius == pytest.approx(beta, rel=1e-14)
    # L(3) = 3 * 5/6 - beta * 3/sqrt(6)
    assert evidence.lower([3.0]) == pytest.approx(2.5 - beta * 3.0 / math.sqrt(6.0), rel=1e-11)


def test_two_features_mixture() -> None:
    # one observation x = (1, 1), y = 3, lambda = 1: V = [[2, 1], [1, 2]], det V = 3, L = log 3,
    # V^-1 = [[2, -1], [-1, 2]]/3, theta_hat = V^-1 (3, 3) = (1, 1)
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.5, 2.0, ridge=1.0, confidence="mixture"))
    evidence.learn([[1.0, 1.0]], [3.0])
    assert evidence.estimate == pytest.approx([1.0, 1.0], rel=1e-14)
    # beta^2 = sigma^2 (L + 2 log 20) + lambda S^2 = 0.25 (log 3 + 2 log 20) + 4
    beta = math.sqrt(0.25 * (math.log(3.0) + GAMMA_START) + 4.0)
    assert evidence.radius == pytest.approx(beta, rel=1e-14)
    # ||(1, -1)||^2 = (2 + 2 + 1 + 1)/3 = 2: the direction nobody observed; ||(1, 1)||^2 = 2/3
    assert evidence.upper([1.0, -1.0]) == pytest.approx(beta * math.sqrt(2.0), rel=1e-11)
    assert evidence.lower([1.0, 1.0]) == pytest.approx(2.0 - beta * math.sqrt(2.0 / 3.0), rel=1e-11)


def test_mixture_radius_is_never_larger() -> None:
    plain = c4b.Evidence(c4b.LinearModel(2, 0.5, 2.0, ridge=1.0))
    mixture = c4b.Evidence(c4b.LinearModel(2, 0.5, 2.0, ridge=1.0, confidence="mixture"))
    # sqrt(a^2 + b^2) < a + b, with a = sigma gamma and b = sqrt(lambda) S, both positive
    assert mixture.radius < plain.radius
    assert mixture.radius**2 == pytest.approx(0.25 * GAMMA_START + 4.0, rel=1e-14)
