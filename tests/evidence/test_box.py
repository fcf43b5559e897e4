"""The set of arms: intervals by hand, bounds by enumeration, what it refuses."""

import itertools
import math

import numpy as np
import pytest

import c4b
from c4b.errors import InvalidInput
from c4b.evidence import Evidence

ARMS = np.eye(3)
MODEL = c4b.LinearModel(3, 0.2, 2.0, delta=0.1, confidence="box")


def learned() -> Evidence:
    evidence = Evidence(MODEL)
    evidence.learn(ARMS[[0, 0, 0, 0, 1]], [0.9, 1.1, 1.0, 1.2, 0.05])
    return evidence


def interval(rewards: list[float]) -> tuple[float, float]:
    n, zeta = len(rewards), sum(k**-3.0 for k in range(1, 200_000))
    width = 0.2 * math.sqrt(2.0 * math.log(2.0 * zeta * 3 * n**3 / 0.1) / n)
    return max(0.0, np.mean(rewards) - width), float(np.mean(rewards) + width)


def test_an_interval_for_each_arm() -> None:
    evidence = learned()
    for arm, rewards in enumerate([[0.9, 1.1, 1.0, 1.2], [0.05]]):
        found = evidence.lower(ARMS[arm]), evidence.upper(ARMS[arm])
        assert found == pytest.approx(interval(rewards), rel=1e-9)
    assert (evidence.lower(ARMS[2]), evidence.upper(ARMS[2])) == pytest.approx((0.0, 2.0))
    assert evidence.estimate == pytest.approx([1.05, 0.05, 0.0])


def test_bounds_are_those_of_the_corners() -> None:
    evidence = learned()
    ends = [*(interval(rewards) for rewards in ([0.9, 1.1, 1.0, 1.2], [0.05])), (0.0, 2.0)]
    corners = np.array(list(itertools.product(*ends)))
    for v in np.random.default_rng(0).normal(size=(50, 3)):
        assert evidence.lower(v) == pytest.approx(float((corners @ v).min()), rel=1e-9, abs=1e-12)
        assert evidence.upper(v) == pytest.approx(float((corners @ v).max()), rel=1e-9, abs=1e-12)
        assert evidence.lower(v) <= (corners @ v).min() + 1e-15


def test_it_contains_what_lies_in_every_interval() -> None:
    evidence = learned()
    assert evidence.contains([1.0, 0.1, 1.9])
    assert not evidence.contains([3.0, 0.1, 1.9])
    assert not evidence.contains([1.0, -0.1, 1.9])


@pytest.mark.parametrize("row", [[1.0, 1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
def test_a_row_that_is_no_arm_is_named(row: list[float]) -> None:
    evidence = Evidence(MODEL)
    with pytest.raises(InvalidInput, match=r"features\[1\]"):
        evidence.learn([[1.0, 0.0, 0.0], row], [0.5, 0.5])
    with pytest.raises(InvalidInput, match="x"):
        evidence.absorb(row, 0.5)
    assert evidence.count == 0


def test_there_is_no_allowance_for_misspecification() -> None:
    with pytest.raises(InvalidInput, match="misspecification"):
        c4b.LinearModel(3, 0.2, 2.0, confidence="box", misspecification=0.1)


def test_a_mean_that_is_certainly_negative_refutes_the_model() -> None:
    evidence = Evidence(MODEL)
    evidence.learn(ARMS[[0] * 40], [-1.0] * 40)
    assert evidence.alarm is not None


def test_all_intervals_hold_at_all_times_together() -> None:
    """In at most 10 % of runs, and in fact far fewer, some interval of some arm ever misses its mean."""
    rng, means, missed = np.random.default_rng(7), np.array([0.2, 0.5, 1.0]), 0
    for _ in range(40):
        evidence = Evidence(MODEL)
        covered = True
        for arm in rng.integers(3, size=150):
            evidence.absorb(ARMS[arm], float(means[arm] + 0.2 * rng.normal()))
            covered &= evidence.contains(means)
        missed += not covered
    assert missed <= 4
