"""The stakes are the best allowed ones, and no row can lose more than half."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from c4b.offpolicy.bets import QUADRATIC, Moments, best_bets
from c4b.offpolicy.one_sided_sequence import Range

VALUES = np.linspace(-0.9, 1.0, 9)
RANGES = [(0.9, 2.0, False), (0.9, 26.0, False), (0.9, math.inf, False), (0.9, 5.0, True)]
RANGES += [(0.9, math.inf, True), (1.4, 1.0, False), (0.0, 4.0, False)]


def rows(seed: int, fraction: float, top: float) -> tuple[Moments, Moments]:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 300))
    w = draw.choice([0.0, min(top, 3.0), 1.0], size=n)
    r = draw.random(n) ** draw.choice([0.2, 1.0, 4.0])
    u, y = w - 1.0, w * r - fraction * r
    return Moments(n, u.sum(), u @ u, y.sum(), y @ y, u @ y), Moments(0, 0, 3.0, 0, 2.0, 1.0)


def test_the_quadratic_bounds_the_logarithm() -> None:
    x = np.concatenate([[-0.5], np.geomspace(1e-9, 0.5, 500) - 0.5, np.geomspace(1e-9, 1e6, 500)])
    assert np.all(np.log1p(x) >= x - QUADRATIC * x * x - 1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("fraction", "top", "predicted"), RANGES)
def test_no_row_takes_more_than_half(fraction: float, top: float, predicted: bool, sign: float) -> None:
    values = VALUES * max(fraction, 0.1) if fraction != 0.9 else VALUES
    sides = Range(fraction, top, predicted).sides(values, sign)
    tops = [top] if math.isfinite(top) else [1.0, 1e3, 1e9]
    for seed in range(20):
        first, second = best_bets(*rows(seed, fraction, top), values, sign, sides)
        assert np.all(second >= 0.0)
        coins = (0.0, 1.0)
        for w, r, q, value in itertools.product([0.0, *tops], coins, coins, coins):
            y = w * (r - q) + value - fraction * r if predicted else w * r - fraction * r
            factor = 1.0 + first * (w - 1.0) + second * sign * (y - values)
            assert np.all(factor >= 0.5 - 1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("top", [3.0, 26.0, math.inf])
def test_no_allowed_stake_is_better(top: float, sign: float) -> None:
    sides = Range(0.9, top, False).sides(VALUES, sign)
    for seed in range(6):
        moments, prior = rows(seed, 0.9, top)
        first, second = best_bets(moments, prior, VALUES, sign, sides)
        for i, v in enumerate(VALUES):
            q_12 = sign * (moments.uy - v * moments.u + prior.uy)
            q_22 = moments.yy - 2 * v * moments.y + moments.rows * v * v + prior.yy
            q_11 = moments.uu + prior.uu
            q = np.array([[q_11, q_12], [q_12, q_22]])
            adjusted = sign * (moments.y - moments.rows * v) - q_12 / q_11 * moments.u
            g = np.array([0.0, adjusted])

            def loss(x: np.ndarray, g: np.ndarray = g, q: np.ndarray = q) -> float:
                return float(QUADRATIC * x @ q @ x - g @ x)

            edges = [
                {"type": "ineq", "fun": lambda x, i=i: 0.5 - x[0] + x[1] * sides.low_at_zero[i]},
                {
                    "type": "ineq",
                    "fun": lambda x, i=i: sides.room + sides.slope * x[0] + x[1] * sides.low_at_top[i],
                },
                {"type": "ineq", "fun": lambda x: x[1]},
            ]
            found = minimize(loss, np.zeros(2), constraints=edges, method="SLSQP")
            assert loss(np.array([first[i], second[i]])) <= found.fun + 1e-7 * (1 + abs(found.fun))
