"""Declared misspecification: off it changes no bit; on it costs what is documented and protects."""

import numpy as np
import pytest

import c4b
from c4b.evidence.bounds import contains
from c4b.evidence.ellipsoids import views
from support.evidence_internals import inside
from support.oracle_comparison import ALL_CONFIDENCES, ALL_GATED, ALL_METHODS, history
from support.oracle_sets import Array
from support.random_stream import random_stream

ALPHA = 0.2


def test_the_radius_grows_by_epsilon_root_n() -> None:
    rng = np.random.default_rng(1)
    for confidence in ALL_CONFIDENCES:
        models = [
            c4b.LinearModel(3, 0.1, 1.0, confidence=confidence, misspecification=e) for e in (0, 0.2)
        ]
        plain, tolerant = map(c4b.Evidence, models)
        for n in (0, 9, 16):
            data = history(rng, np.array([0.5, 0.2, 0.0]), n, 0.1)
            plain.learn(*data)
            tolerant.learn(*data)
            assert tolerant.count == plain.count
            assert tolerant.radius == pytest.approx(plain.radius + 0.2 * np.sqrt(plain.count), rel=1e-12)
        covered = 1 if confidence != "unbiased" else len(inside(plain).ridges)
        assert len(inside(tolerant).ridges) == covered  # only the ellipsoids that the argument covers


@pytest.mark.parametrize("name", ALL_METHODS)
def test_none_and_next_to_none_are_the_same_bits(name: str) -> None:
    """An epsilon of 1e-300 takes every path that a real one takes, and no number can show it."""
    rng = np.random.default_rng(2)
    theta, stream = random_stream(rng, 3, 40, max_candidates=5)
    data, noise = history(rng, theta, 20, 0.1), 0.1 * rng.normal(size=40)
    states = []
    for epsilon in (0.0, 1e-300):
        model = c4b.LinearModel(3, 0.1, 1.0, confidence="mixture", misspecification=epsilon)
        policy = c4b.Policy(name, model, ALPHA, 0.2)
        policy.learn(*data)
        for (pool, baseline), error in zip(stream, noise, strict=True):
            decision = policy.decide(pool, baseline)
            x = baseline if decision.action is None else pool[decision.action]
            policy.observe(decision.id, float(x @ theta + error))
        parts = inside(policy.evidence)
        states.append((parts.radius.tobytes(), parts.estimate.tobytes(), repr(policy.bank)))
    assert states[0] == states[1]


@pytest.mark.parametrize("name", ["contrast", "refresh", "separate", "revalue-f", "checkpoints"])
def test_each_round_pays_as_documented(name: str) -> None:
    """No data yet, so the sets are equal: margins differ by (1 + c) epsilon a candidate of this round
    and, where earlier rounds are spanned, by what those cost."""
    epsilon, b = 0.01, np.array([1.0, 0.0])
    pool = np.array([[1.05, 0.02], [1.1, 0.0]])
    plain, tolerant = (
        c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0, misspecification=e), ALPHA, reserve=9.0)
        for e in (0.0, epsilon)
    )
    owed = 0.0
    for candidates in (pool, pool[:0], pool, pool):
        one, other = plain.decide(candidates, b), tolerant.decide(candidates, b)
        assert one.action == other.action
        gap = one.details[1] - other.details[1]
        np.testing.assert_allclose(gap, owed + (2.0 - ALPHA) * epsilon, atol=1e-12)
        if one.action is not None:
            owed += (2.0 - ALPHA) * epsilon
        elif name == "revalue-f":
            owed += ALPHA * epsilon
        else:  # L(x(b)) < 0 here: the structural bound is 0 in both
            assert other.certificate == one.certificate == 0.0
        assert one.bank - other.bank == pytest.approx(owed, abs=1e-12)


def worst_path(
    name: str, confidence: str, epsilon: float, seed: int, declared: float
) -> tuple[bool, float, float]:
    """(covered, smallest D - B, smallest D): every mean is bent against the policy by epsilon.

    A played candidate is worth epsilon less than linear, the baseline it displaces epsilon more; a
    baseline played is worth less, as far as it stays nonnegative. The history looks like another theta.
    """
    rng = np.random.default_rng([seed, ALL_GATED.index(name)])
    theta, stream = random_stream(rng, 3, 60, max_candidates=5)
    model = c4b.LinearModel(3, 0.1, 1.0, 0.1, 0.05, confidence, declared)
    policy = c4b.Policy(name, model, ALPHA, 0.3)
    X, _ = history(rng, theta, 40, 0.1)
    lie = epsilon * np.sign(X @ rng.normal(size=3))
    policy.learn(X, X @ theta + lie + 0.1 * rng.normal(size=40))
    truth, slack, least, covered = policy.reserve, np.inf, np.inf, True
    for pool, baseline in stream:
        covered &= contains(*views(policy.evidence.flat)[:-1], theta)
        decision = policy.decide(pool, baseline)
        base = float(baseline @ theta)
        if decision.action is None:
            mean = max(base - epsilon, 0.0)
            truth += ALPHA * mean
        else:
            mean = float(pool[decision.action] @ theta) - epsilon
            truth += mean - (1.0 - ALPHA) * (base + epsilon)
        slack, least = min(slack, truth - decision.bank), min(least, truth)
        policy.observe(decision.id, mean + 0.1 * float(rng.normal()))
    return covered, slack, least


@pytest.mark.parametrize("confidence", c4b.evidence.CONFIDENCES)
@pytest.mark.parametrize("name", ALL_GATED)
def test_the_bank_bounds_the_truth_of_bent_means(name: str, confidence: str) -> None:
    paths = [worst_path(name, confidence, 0.03, seed, declared=0.03) for seed in range(8)]
    held = [(slack, least) for covered, slack, least in paths if covered]
    assert len(held) >= 6
    assert min(slack for slack, _ in held) >= -1e-9
    assert min(least for _, least in held) >= -1e-9


def test_undeclared_the_same_means_break_the_bank() -> None:
    """The simulation could fail."""
    slacks = [worst_path("refresh", "mixture", 0.1, seed, declared=0.0)[1] for seed in range(20)]
    assert min(slacks) < -0.1


@pytest.mark.parametrize("name", ["refresh", "checkpoints", "revalue-f"])
def test_executed_otherwise_under_misspecification(name: str) -> None:
    """The baseline was decided, a candidate executed, each mean bent against the policy."""
    epsilon, theta, b = 0.05, np.array([0.5, 0.0]), np.array([1.0, 0.0])
    model = c4b.LinearModel(2, 0.05, 1.0, misspecification=epsilon)
    policy = c4b.Policy(name, model, ALPHA, reserve=2.0)
    rng = np.random.default_rng(4)
    X: Array = rng.normal(size=(4000, 2))
    policy.learn(X, X @ theta + 0.05 * rng.normal(size=4000))
    truth = 2.0
    for _ in range(15):
        decision = policy.decide([], b)
        policy.executed(decision.id, b)  # features of a candidate that equals the baseline
        truth += (0.5 - epsilon) - (1.0 - ALPHA) * (0.5 + epsilon)
        assert policy.bank <= truth + 1e-9
    exact = 2.0 + 15 * (ALPHA * 0.5 - (2.0 - ALPHA) * epsilon)
    assert truth == pytest.approx(exact)
    after = policy.decide([], b)
    assert after.bank <= truth + ALPHA * (0.5 - epsilon) + 1e-9
