"""Requirements on the ledger: what may change it, and Theorem 1 in a simulation with known theta."""

from __future__ import annotations

import numpy as np

from c4b._validate import Array
from c4b.policies.catalogue import registry
from c4b.testing.kit import Factory, requirement
from c4b.testing.world import SLACK, World, decided, lived, money

PATHS, ROUNDS = 6, 60


@requirement("history is evidence, never budget")
def _history(make: Factory, seed: int) -> str | None:
    policy = make()
    before, known = money(policy), policy.gate.fingerprint()
    policy.learn(*World.of(policy, seed).history(30))
    assert money(policy) == before, "history changed the ledger"
    assert policy.gate.fingerprint() != known, "history was not learned"
    return None


@requirement("no reward ever reaches the ledger")
def _rewards(make: Factory, seed: int) -> str | None:
    policy, _world, ids = lived(make, seed)
    for id_, reward in zip(ids, (1e3, -1e3, 0.5), strict=False):
        before = money(policy)
        policy.observe(id_, reward)
        assert money(policy) == before, "an outcome changed bank or prefix"
    return None


def _path(make: Factory, seed: int, interfere: bool) -> tuple[bool, float, float, float]:
    """One deployment whose pools depend on past rewards.

    Returns (the gate does not know that its guarantee failed; the smallest D - B, D and B over all
    rounds). ``interfere``: sometimes another action than the decided one is executed.
    """
    policy = make()
    world = World.of(policy, seed)
    policy.learn(*world.history(seed % 3 * 10 * policy.model.dim))
    promise = registry.promise(policy.spec)
    truth, covered, last = policy.reserve, True, 0.0
    slack = least = least_bank = np.inf
    for _ in range(ROUNDS):
        baseline = world.baseline()
        pool = world.pool(baseline, 6)
        estimate = policy.estimate
        if (
            last > 0.0 and estimate is not None and not world.one_hot
        ):  # an adversary: after good luck, what the estimate likes
            pool[0] = baseline + estimate
        for decision, played in decided(policy, world, [(pool, baseline)]):
            covered &= policy.gate.covers(world.theta) is not False
            executed: Array = played
            if interfere and world.rng.random() < 0.3:
                executed = world.pool(baseline, 1)[0]
                policy.executed(decision.id, executed)
            truth += float((executed - (1.0 - policy.alpha) * baseline) @ world.theta)
            if promise.holds_at(policy.rounds):
                slack = min(slack, truth - policy.bank)
                least, least_bank = min(least, truth), min(least_bank, policy.bank)
            reward = world.reward(executed)
            last = reward - float(executed @ world.theta)
            policy.observe(decision.id, reward)
    return covered, slack, least, least_bank


def _covered_paths(make: Factory, seed: int, interfere: bool) -> list[tuple[float, float, float]]:
    paths = [_path(make, PATHS * seed + n, interfere) for n in range(PATHS)]
    covered = [numbers for held, *numbers in paths if held]
    assert 2 * len(covered) > PATHS, "the set misses the truth on most paths"
    return [(slack, least, bank) for slack, least, bank in covered]


@requirement("the bank never exceeds the truth")
def _bank_below_truth(make: Factory, seed: int) -> str | None:
    if not make().spec.gated:
        return "no gate, nothing is promised"
    for slack, least, _ in _covered_paths(make, seed, interfere=False):
        assert slack >= -SLACK, f"the bank exceeds the true D by {-slack:.3g}"
        assert least >= -SLACK, f"the true D falls to {least:.3g}"
    return None


@requirement("the bank is never negative")
def _bank_nonnegative(make: Factory, seed: int) -> str | None:
    policy = make()
    if not policy.spec.gated or policy.gate.revalues:
        return "no bank is carried from round to round"
    for _, _, bank in _covered_paths(make, seed, interfere=False):
        assert bank >= 0.0, f"the bank falls to {bank:.3g}"
    return None


@requirement("another execution is charged")
def _other_execution(make: Factory, seed: int) -> str | None:
    if not make().spec.gated:
        return "no gate, nothing is charged"
    for slack, _, _ in _covered_paths(make, seed, interfere=True):
        assert slack >= -SLACK, f"the bank exceeds the true D by {-slack:.3g}"
    return None
