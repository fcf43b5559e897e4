"""The off-policy gate deploys what is better, and errs with probability at most delta."""

import copy
import itertools
import math
import pickle
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from c4b.errors import InvalidInput
from c4b.offpolicy import OffPolicyGate, effective_sample_size, evaluate
from c4b.offpolicy.gate import tested_values as values_of
from c4b.offpolicy.one_sided_sequence import OneSidedSequence, Range
from c4b.offpolicy.weight_alarm import WeightAlarm
from support.log_world import MAX_WEIGHT, greedy_value, log_world


@pytest.mark.slow
def test_home_world_deploys() -> None:
    """benchmarks/offpolicy.py runs the 48 logs of the acceptance; these are others."""
    found = [evaluate(*log_world(seed), max_weight=MAX_WEIGHT) for seed in range(100, 105)]
    assert all(report.deploy for report in found)
    assert np.median([report.deployed_at_row for report in found]) <= 800  # type: ignore[type-var]
    value = greedy_value() - 0.95 * 0.5
    assert all(report.lower <= value <= report.upper for report in found)
    assert all(report.upper - report.lower < 0.5 for report in found)


@pytest.mark.slow
def test_a_worse_policy_is_refused() -> None:
    found = [evaluate(*log_world(seed, anti_greedy=True), max_weight=MAX_WEIGHT) for seed in range(3)]
    assert not any(report.deploy for report in found)
    assert all(report.refused_at_row for report in found)


@pytest.mark.slow
def test_the_edge_is_not_deployed() -> None:
    """c such that V(π) = c·V(h): a deployment is an error, allowed in delta of the logs."""
    edge = greedy_value() / 0.5
    found = [evaluate(*log_world(s), max_weight=MAX_WEIGHT, fraction=edge) for s in range(200, 206)]
    assert sum(report.deploy for report in found) <= 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("predicted", [False, True])
def test_the_wealth_is_a_fair_game(sign: float, predicted: bool) -> None:
    """Over all sequences of four rows, each weighed by its probability, the wealth at the truth is 1."""
    c, q, value = 0.8, 0.5, 0.6
    outcomes = [  # probability, weight, reward: two actions, the policy takes the first
        (0.5 * 0.7, 2.0, 1.0),
        (0.5 * 0.3, 2.0, 0.0),
        (0.5 * 0.2, 0.0, 1.0),
        (0.5 * 0.8, 0.0, 0.0),
    ]
    truth = 0.7 - c * 0.45
    if predicted:
        truth += value - q
    total = 0.0
    for rows in itertools.product(outcomes, repeat=4):
        probability, w, r = np.array(rows).T
        y = w * (r - q) + value - c * r if predicted else w * r - c * r
        sequence = OneSidedSequence(np.array([truth]), sign, 0.05, Range(c, 2.0, predicted))
        sequence.threshold = math.inf
        sequence.extend(w, y)
        total += math.prod(probability) * math.exp(sequence.wealth[0])
    assert total == pytest.approx(1.0, abs=1e-9)


def test_bounds_do_not_depend_on_how_rows_arrive() -> None:
    weights, rewards = log_world(3, rows=1500)
    whole, parts = (OffPolicyGate(max_weight=MAX_WEIGHT) for _ in range(2))
    whole.extend(weights, rewards)
    for part in np.array_split(np.arange(1500), [1, 2, 40, 777, 900]):
        parts.extend(weights[part], rewards[part])
    assert np.array_equal(whole._lower.wealth, parts._lower.wealth)
    assert np.array_equal(whole._upper.refuted_at, parts._upper.refuted_at)
    assert whole.report().lower == parts.report().lower


def test_bounds_after_each_row() -> None:
    weights, rewards = log_world(5, rows=1200)
    gate = OffPolicyGate(max_weight=MAX_WEIGHT)
    gate.extend(weights, rewards)
    lower, upper = gate.bounds()
    report = gate.report()
    assert (lower[-1], upper[-1]) == (report.lower, report.upper)
    assert np.all(np.diff(lower) >= 0)
    assert np.all(np.diff(upper) <= 0)
    assert report.deployed_at_row == 1 + int(np.argmax(lower >= 0.0))
    early = OffPolicyGate(max_weight=MAX_WEIGHT)
    early.extend(weights[:500], rewards[:500])
    assert early.report().lower == lower[499]


def test_other_units_say_the_same() -> None:
    """Rewards in [-3, 7]: V(π) >= c·V(h) is another goal then, which lies among the tested values."""
    weights, rewards = log_world(11)
    shifted = evaluate(
        weights, 10 * rewards - 3, reward_range=(-3.0, 7.0), fraction=1.0, max_weight=MAX_WEIGHT
    )
    plain = evaluate(weights, rewards, fraction=1.0, max_weight=MAX_WEIGHT)
    assert shifted.lower == pytest.approx(10 * plain.lower, abs=1e-6)
    assert shifted.deployed_at_row == plain.deployed_at_row
    goal = 3.0 * 0.05 / 10.0
    assert goal in values_of(goal, 0.95)


def test_a_range_that_decides_alone() -> None:
    report = evaluate([], [], reward_range=(95.0, 100.0), fraction=0.9)
    assert (report.deploy, report.deployed_at_row, report.rows) == (True, 0, 0)


def test_a_range_that_decides_against() -> None:
    """Rewards below 0: V(π) is below c·V(h) whatever the rows say."""
    for fraction in (0.0, 0.05, 0.1):
        report = evaluate([1.0] * 40, [-10.0, -1.0] * 20, fraction=fraction, reward_range=(-10.0, -1.0))
        assert (report.deploy, report.deployed_at_row, report.refused_at_row) == (False, None, 0)
        assert report.alarm is None
        assert report.lower < -5.5 * (1.0 - fraction) < report.upper


def test_a_range_far_from_zero_needs_no_more_values() -> None:
    near, far = (values_of(goal, 0.95) for goal in (-0.95, -5e4))
    np.testing.assert_array_equal(near, far)
    report = evaluate([1.0] * 40, [1e8, 1e8 + 1.0] * 20, reward_range=(1e8, 1e8 + 1.0))
    assert report.deployed_at_row == 0


def test_weights_that_contradict_themselves_raise_the_alarm() -> None:
    """Propensities reported at half their size: weights have mean 2, and nothing is deployed."""
    draw = np.random.default_rng(1)
    weights = 4.0 * (draw.random(4000) < 0.5)
    report = evaluate(weights, draw.random(4000), max_weight=4.0)
    assert report.alarm is not None
    assert "mean 1" in report.alarm
    assert not report.deploy
    assert report.deployed_at_row is None


@pytest.mark.parametrize("top", [2.0, 26.0, math.inf])
def test_a_false_alarm_is_rare(top: float) -> None:
    """Weights with mean 1: at most one log in a thousand, whatever its length."""
    draw = np.random.default_rng(4)
    high = min(top, 26.0)
    raised = 0
    for _ in range(300):
        alarm = WeightAlarm(top)
        alarm.extend(high * (draw.random(2000) < 1.0 / high))
        raised += alarm.raised
    assert raised <= 3


def test_a_good_prediction_narrows_the_bounds() -> None:
    draw = np.random.default_rng(2)
    n = 4000
    action = draw.integers(0, 4, n)
    means = np.array([0.2, 0.4, 0.6, 0.8])
    x = draw.random(n) * 0.2  # moves every reward, and is known
    rewards = means[action] + x
    weights = 4.0 * (action == 3)
    plain = OffPolicyGate(fraction=0.0, max_weight=4.0)
    plain.extend(weights, rewards)
    robust = OffPolicyGate(fraction=0.0, max_weight=4.0, predictions=True)
    robust.extend(weights, rewards, predicted=means[action] + x, predicted_value=0.8 + x)
    assert robust.report().lower <= 0.9 <= robust.report().upper
    assert robust.report().estimate == pytest.approx(0.9, abs=0.005)
    assert abs(robust.report().estimate - 0.9) < abs(plain.report().estimate - 0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fraction": -0.1}, "fraction = -0.1"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"reward_range": (1.0, 1.0)}, "reward_range"),
        ({"reward_range": 3}, "reward_range = 3"),
        ({"max_weight": 0.5}, "max_weight = 0.5"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        OffPolicyGate(**arguments)  # type: ignore[arg-type]


def test_wrong_rows_change_nothing() -> None:
    gate = OffPolicyGate(max_weight=5.0)
    gate.extend([5.0 * (1 + 1e-12), 0.0], [0.5, 0.5])  # a rounded quotient is no mistake
    before = gate.report()
    for weights, rewards, where in [
        ([1.0, -1.0], [0.0, 0.0], r"weights\[3\] = -1"),
        ([6.0], [0.0], r"weights\[2\] = 6"),
        ([1.0], [1.5], r"rewards\[2\] = 1.5"),
        ([1.0], [math.nan], "rewards"),
        ([1.0, 1.0], [0.0], "rewards"),
    ]:
        with pytest.raises(InvalidInput, match=where):
            gate.extend(weights, rewards)
    with pytest.raises(InvalidInput, match="predictions"):
        gate.extend([1.0], [0.5], predicted=[0.5], predicted_value=[0.5])
    assert gate.report() == before


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows() -> None:
    weights, rewards = log_world(1, rows=2500)
    gate = OffPolicyGate(max_weight=MAX_WEIGHT)
    tracemalloc.start()
    gate.extend(weights, rewards)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


def test_a_caller_may_let_numpy_raise() -> None:
    with np.errstate(all="raise"):
        WeightAlarm(math.inf).extend(np.full(5000, 1.0) + np.resize([9.0, -1.0], 5000))


def test_effective_sample_size() -> None:
    assert effective_sample_size(np.zeros(3)) == 0.0
    assert effective_sample_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_takes_rows_of_its_own(how: Callable[[OffPolicyGate], OffPolicyGate]) -> None:
    gate = OffPolicyGate(max_weight=2.0)
    gate.extend([2.0, 0.0] * 20, [1.0, 0.0] * 20)
    before, other = gate.report(), how(gate)
    assert other.report() == before
    other.extend([2.0, 0.0] * 20, [0.0, 1.0] * 20)
    assert gate.report() == before
    assert other.report().upper < before.upper
