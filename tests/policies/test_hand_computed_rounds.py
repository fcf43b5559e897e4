"""Whole rounds worked out by hand.

d = 1, sigma = 0.1, S = 1, lambda = 1, delta = 0.05; history: 99 rows x = 1, y = 1. Then V = 100,
theta_hat = 99/100 = 0.99, beta = 0.1 sqrt(log 100 + 2 log 20) + 1 = 1.3255..., and a vector v has
width w |v| with w = beta/sqrt(100) = 0.13255...; so L(v) = 0.99 v - w |v|. alpha = 0.1, baseline x = 1.
"""

import math

import numpy as np
import pytest

import c4b
from support.oracle_comparison import GATED

W = (0.1 * math.sqrt(math.log(100.0) + 2.0 * math.log(20.0)) + 1.0) / 10.0
LOW, HIGH = 0.99 - W, 0.99 + W  # 0.85745, 1.12255: the baseline's interval
BASELINE = [1.0]


def policy(name: str, dim: int = 1, **kwargs: float) -> c4b.Policy:
    made = c4b.Policy(name, c4b.LinearModel(dim, 0.1, 1.0, ridge=1.0), alpha=0.1, **kwargs)
    made.learn([[1.0] + [0.0] * (dim - 1)] * 99, [1.0] * 99)
    return made


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-10)


def test_contrast_plays_what_separate_cannot_afford() -> None:
    # x = 1.1: z = 0.2, joint 0.2 LOW = 0.1715; separate 1.1 LOW - 0.9 HIGH = -0.0671
    pool = [[0.5], [1.0], [1.1]]
    joint = policy("contrast").decide(pool, BASELINE)
    assert (joint.action, joint.bank, joint.certificate) == (2, near(0.2 * LOW), near(0.2 * LOW))
    assert joint.ucb == near(1.1 * HIGH)
    apart = policy("separate").decide(pool, BASELINE)
    assert (apart.action, apart.bank) == (None, near(0.1 * LOW))  # alpha L(x_b) = 0.0857
    # x = 0.5: z = -0.4, joint -0.396 - 0.4 W = -0.449: lacks that much
    assert joint.explain().candidates[0].margin == near(-0.4 * HIGH)
    assert not joint.explain().candidates[0].admissible


def test_separate_with_enough_reserve() -> None:
    decision = policy("separate", reserve=0.5).decide([[1.1]], BASELINE)
    assert (decision.action, decision.bank) == (0, near(0.5 + 1.1 * LOW - 0.9 * HIGH))


def test_refresh_recertifies_the_sum_of_two_rounds() -> None:
    # round 1: x = 1.2, z = 0.3, B = 0.3 LOW = 0.2572, Z = 0.3. Round 2: x = 0.61, z = -0.29:
    # carry 0.3 LOW - 0.29 HIGH = -0.0683 < 0, but L(Z + z) = L(0.01) = 0.01 LOW = 0.0086 >= 0
    frozen, fresh = policy("contrast"), policy("refresh")
    for each in (frozen, fresh):
        assert each.decide([[1.2]], BASELINE).bank == near(0.3 * LOW)
    assert frozen.decide([[0.61]], BASELINE).is_baseline
    decision = fresh.decide([[0.61]], BASELINE)
    assert (decision.action, decision.bank) == (0, near(0.01 * LOW))
    assert fresh.prefix == pytest.approx([0.01], abs=1e-15)


def test_revalue_saves_fallback_credit_until_it_can_play() -> None:
    # x = 1.05 needs 0.9 HIGH - 1.05 LOW = 0.1100 of credit; each fallback earns 0.1 LOW = 0.0857
    made = policy("revalue")
    pool = [[1.05]]
    assert made.decide(pool, BASELINE).bank == near(0.1 * LOW)
    assert made.decide(pool, BASELINE).bank == near(0.2 * LOW)
    third = made.decide(pool, BASELINE)
    assert (third.action, third.bank) == (0, near(1.05 * LOW + 0.2 * LOW - 0.9 * HIGH))


def test_propose_filter_and_no_gate_choose_differently() -> None:
    # d = 2: V = diag(100, 1). a_0 = (1.2, 1) has width 10 W sqrt(0.0144 + 1) and the highest UCB but
    # is not certified; a_1 = (1.2, 0) is: 1.2 LOW - 0.9 HIGH = 0.0186
    pool, baseline = [[1.2, 1.0], [1.2, 0.0]], [1.0, 0.0]
    assert policy("revalue", 2).decide(pool, baseline).action is None
    filtered = policy("revalue-f", 2).decide(pool, baseline)
    assert (filtered.action, filtered.bank) == (1, near(1.2 * LOW - 0.9 * HIGH))
    free = policy("linucb", 2).decide(pool, baseline)
    assert free.action == 0
    assert free.ucb == near(1.188 + 10.0 * W * math.sqrt(1.0144))
    assert math.isnan(free.bank)


def test_another_execution_is_charged() -> None:
    # decided x = 1.2: B = 0.3 LOW. Executed the baseline: D moves by -0.2 theta, L(-0.2) = -0.2 HIGH
    made = policy("contrast")
    decision = made.decide([[1.2]], BASELINE)
    made.executed(decision.id)
    assert made.bank == near(0.3 * LOW - 0.2 * HIGH)
    assert made.prefix == pytest.approx([0.1], abs=1e-15)
    made.executed(decision.id, [0.2])  # a far worse one: the bank may become negative
    assert made.bank == near(0.3 * LOW - 0.2 * HIGH - 0.8 * HIGH)
    assert made.decide([[1.0]], BASELINE).is_baseline


@pytest.mark.parametrize("name", GATED)
def test_ties_go_to_the_lowest_index(name: str) -> None:
    assert policy(name, reserve=1.0).decide([[1.0], [1.2], [1.2]], BASELINE).action == 1


@pytest.mark.parametrize("name", [*GATED, "linucb"])
def test_no_candidates_means_the_baseline(name: str) -> None:
    for empty in ([], np.empty((0, 1))):
        assert policy(name).decide(empty, BASELINE).is_baseline


def test_unknown_sign_of_the_baseline_stops_before_data_and_not_after() -> None:
    # no data: beta = 0.1 sqrt(2 log 20) + 1 = 1.2448, alpha L(x_b) = -0.12448 < 0: stop.
    model = c4b.LinearModel(1, 0.1, 1.0, ridge=1.0)
    blind = c4b.Policy("contrast", model, alpha=0.1, baseline_nonnegative=False)
    with pytest.raises(c4b.errors.NoSafeAction, match=r"margin -0\.1245"):
        blind.decide([], BASELINE)
    assert blind.rounds == 0
    # with the history 0.1 LOW > 0; a reserve of 0.2 also covers it
    blind.learn([[1.0]] * 99, [1.0] * 99)
    assert blind.decide([], BASELINE).bank == near(0.1 * LOW)
    covered = c4b.Policy("contrast", model, alpha=0.1, reserve=0.2, baseline_nonnegative=False)
    beta = 0.1 * math.sqrt(2.0 * math.log(20.0)) + 1.0
    assert covered.decide([], BASELINE).bank == near(0.2 - 0.1 * beta)
