"""Every method against the oracle when outcomes come late, in batches, never, or for another action."""

import numpy as np
import pytest

import c4b
from support.oracle_comparison import ALL_CONFIDENCES, ALL_METHODS, Duel, history
from support.random_stream import random_stream


def scramble(name: str, absorb: str, seed: int) -> dict[str, int]:
    """A random mixture of every call, compared after each; returns how often each happened."""
    rng = np.random.default_rng([seed, ALL_METHODS.index(name), len(absorb)])
    dim = int(rng.choice([1, 2, 4, 8]))
    theta, stream = random_stream(rng, dim, 60, max_candidates=6)
    model = c4b.LinearModel(dim, 0.1, 1.0, 0.5, 0.05, ALL_CONFIDENCES[seed % 4])
    duel = Duel(name, model, alpha=0.15, reserve=float(rng.choice([0.0, 1.0])), absorb=absorb)
    duel.learn(*history(rng, theta, 20 * dim, 0.1))
    waiting: list[int] = []  # decided, outcome not reported
    seen = 0
    counts = dict.fromkeys(("decide", "decide_many", "observe", "observe_many", "forget", "executed"), 0)

    def reward(round_: int) -> float:
        return float(duel.executed_features[round_] @ theta + 0.1 * rng.normal())

    def pick() -> int:
        return waiting.pop(int(rng.integers(len(waiting))))

    while stream or waiting:
        call = str(rng.choice(list(counts), p=[0.3, 0.1, 0.3, 0.1, 0.1, 0.1]))
        if call == "decide" and stream:
            duel.decide(*stream.pop())
        elif call == "decide_many" and stream:
            duel.decide_many([stream.pop() for _ in range(min(len(stream), 4))])
        elif call == "observe" and waiting:
            duel.observe((r := pick()), reward(r))
        elif call == "observe_many" and waiting:
            batch = [pick() for _ in range(min(len(waiting), 5))]
            duel.observe_many([(r, reward(r)) for r in batch])
        elif call == "forget" and waiting:
            duel.forget(pick())
        elif call == "executed" and waiting:
            baseline = duel.oracle.pending[waiting[0]].baseline
            other = None if rng.random() < 0.4 else baseline + 0.1 * rng.normal(size=dim)
            duel.executed(waiting[0], other)
        else:
            continue
        counts[call] += 1
        waiting.extend(range(seen, len(duel.ids)))
        seen = len(duel.ids)
    return counts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
@pytest.mark.parametrize("name", ALL_METHODS)
def test_scrambled_calls_equal_the_oracle(name: str, absorb: str, seed: int) -> None:
    counts = scramble(name, absorb, seed)
    assert min(counts.values()) > 0


def test_in_order_delays_give_the_same_evidence_as_one_batch() -> None:
    """Whatever the order of arrival, the absorbed sequence is the order of decisions: bit for bit."""
    rng = np.random.default_rng(3)
    _, stream = random_stream(rng, 3, 30, max_candidates=5)
    rewards = rng.normal(size=30)
    banks, flats = [], []
    for order in (np.arange(30), np.arange(30)[::-1], rng.permutation(30)):
        policy = c4b.Policy("refresh", c4b.LinearModel(3, 0.1, 1.0), reserve=1.0)
        decisions = policy.decide_many(stream)
        for n in order:
            policy.observe(decisions[n].id, rewards[n])
        banks.append(policy.bank)
        flats.append(policy.evidence.flat.tobytes())
    assert len(set(banks)) == len(set(flats)) == 1


def test_a_missing_outcome_stalls_the_prefix_until_it_is_forgotten() -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0))
    first, second, third = policy.decide_many([([], [1.0])] * 3)
    policy.observe(second.id, 0.5)
    policy.observe(third.id, 0.5)
    assert policy.evidence.count == 0
    assert policy.pending == (first.id,)
    policy.forget(first.id, independent=True)
    assert policy.evidence.count == 2
    assert policy.pending == ()


def test_on_arrival_absorbs_at_once() -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0), absorb="on-arrival")
    _, second = policy.decide_many([([], [1.0])] * 2)
    policy.observe(second.id, 0.5)
    assert policy.evidence.count == 1


@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
def test_repeating_an_outcome_changes_nothing_pending_or_absorbed(absorb: str) -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0), absorb=absorb)
    first, second = policy.decide_many([([], [1.0])] * 2)
    for decision, reward in ((second, 0.25), (first, 0.5)):
        policy.observe(decision.id, reward)
        before = policy.evidence.flat.copy()
        policy.observe(decision.id, reward)
        policy.observe_many({decision.id: reward})
        np.testing.assert_array_equal(policy.evidence.flat, before)
    assert policy.evidence.count == 2


def test_forgetting_twice_is_harmless_and_keeps_the_charge() -> None:
    policy = c4b.Policy("contrast", c4b.LinearModel(1, 0.1, 1.0), reserve=5.0)
    decision = policy.decide([[1.1]], [1.0])
    policy.forget(decision.id)
    policy.forget(decision.id)
    assert policy.bank == decision.bank < 5.0
    assert policy.evidence.count == 0
