"""Every method against the oracle, action by action and bank by bank: outcomes at once."""

import numpy as np
import pytest

import c4b
from support.oracle_comparison import ALL_CONFIDENCES, ALL_METHODS, Duel, history
from support.random_stream import random_stream

LARGE = [pytest.param(dim, marks=pytest.mark.slow) for dim in (13, 40)]


def run(
    name: str, dim: int, confidence: str, seed: int, most_history: int = 60, **kwargs: object
) -> Duel:
    """40 rounds with up to ``most_history`` historical rows per feature."""
    rng = np.random.default_rng([seed, dim, ALL_METHODS.index(name), ALL_CONFIDENCES.index(confidence)])
    theta, stream = random_stream(rng, dim, 40, max_candidates=8)
    noise = float(rng.choice([0.05, 0.2]))
    model = c4b.LinearModel(dim, noise, 1.0, float(rng.choice([0.1, 1.0])), 0.05, confidence)
    duel = Duel(name, model, float(rng.uniform(0.05, 0.3)), **kwargs)  # type: ignore[arg-type]
    duel.learn(*history(rng, theta, int(rng.integers(0, most_history)) * dim, noise))
    for candidates, baseline in stream:
        if duel.decide(candidates, baseline):
            mean = float(duel.executed_features[-1] @ theta)
            duel.observe(len(duel.ids) - 1, mean + noise * float(rng.normal()))
    return duel


@pytest.mark.parametrize("confidence", ALL_CONFIDENCES)
@pytest.mark.parametrize("dim", [1, 2, 5, *LARGE])
@pytest.mark.parametrize("name", ALL_METHODS)
def test_every_method_equals_the_oracle(name: str, dim: int, confidence: str) -> None:
    duel = run(name, dim, confidence, seed=1, reserve=0.5)
    assert duel.policy.rounds == 40


@pytest.mark.parametrize("name", ALL_METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_zero_reserve_equals_the_oracle(name: str, seed: int) -> None:
    run(name, dim=3, confidence="mixture", seed=10 + seed)


@pytest.mark.parametrize("name", ALL_METHODS)
def test_without_known_nonnegativity_both_stop_in_the_same_rounds(name: str) -> None:
    stops = 0
    for seed in range(3):
        for rows in (2, 10):
            duel = run(name, 3, "mixture", seed, rows, reserve=0.05, baseline_nonnegative=False)
            stops += 40 - duel.policy.rounds
    assert stops > 0 if name != "linucb" else stops == 0


@pytest.mark.parametrize("name", ALL_METHODS)
def test_the_streams_exercise_play_and_fallback(name: str) -> None:
    """Agreement on a policy that always falls back would say little."""
    actions = [a for seed in range(3) for a in run(name, 3, "mixture", 10 + seed).actions]
    played = sum(action is not None for action in actions)
    assert 10 <= played <= len(actions) - 3  # at least the rounds with K = 0 fall back


@pytest.mark.parametrize("name", ALL_METHODS)
def test_pools_larger_than_one_block_equal_the_oracle(name: str) -> None:
    rng = np.random.default_rng(5)
    theta = np.array([0.6, 0.3])
    confidence = "unbiased" if name == "reserve-c4b+" else None
    duel = Duel(name, c4b.LinearModel(2, 0.1, 1.0, confidence=confidence), reserve=1.0)
    duel.learn(*history(rng, theta, 100, 0.1))
    for size in (255, 256, 257, 600):
        pool = np.array([1.0, 0.0]) + 0.3 * rng.normal(size=(size, 2))
        duel.decide(pool, np.array([1.0, 0.0]))
    assert len(duel.ids) == 4
