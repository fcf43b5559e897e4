"""A simulation that meets the model's assumptions, and policies that have played in it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from c4b._validate import Array
from c4b.errors import NoSafeAction
from c4b.evidence.model import LinearModel
from c4b.policies import Decision, Policy
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.promise import ONE_HOT
from c4b.policies.rounds.round import BASELINE_MEAN
from c4b.testing.kit import Factory

Rounds = list[tuple[Array, Array]]

SLACK = 1e-9
"""Rounding allowed between a certified number and the truth, for numbers of size 1."""


class World:
    """A simulation: theta with ||theta|| <= S, baselines of nonnegative mean, noise of scale sigma.

    one_hot: rows are unit vectors, the baseline is always the first one, and no mean is negative.
    """

    def __init__(self, model: LinearModel, seed: int, one_hot: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = model
        self.one_hot = one_hot
        theta = self.rng.normal(size=model.dim)
        if one_hot:
            theta = np.abs(theta)
        self.theta: Array = theta * self.rng.uniform(0.5, 1.0) * model.norm_bound / np.linalg.norm(theta)

    @classmethod
    def of(cls, policy: Policy, seed: int) -> World:
        """A world that provides the inputs that the policy needs."""
        arms = ONE_HOT in registry.needs(policy.spec) or policy.model.confidence_set.one_hot
        return cls(policy.model, seed, arms)

    def told(self, policy: Policy, baseline: Array) -> float | None:
        """The baseline's mean for a policy that needs it."""
        needed = BASELINE_MEAN in registry.needs(policy.spec)
        return float(baseline @ self.theta) if needed else None

    def reward(self, x: Array) -> float:
        return float(x @ self.theta + self.model.noise * self.rng.normal())

    def baseline(self) -> Array:
        if self.one_hot:
            return self._arms([0])[0]
        raw = self.rng.normal(size=self.model.dim)
        x: Array = raw / np.linalg.norm(raw)
        return x if x @ self.theta >= 0.0 else -x

    def others(self) -> list[Array]:
        """Features (d,) that might be executed instead of the decided action, all different."""
        return self._arms([1, 2]) if self.one_hot else [0.5 * self.baseline()]

    def _arms(self, numbers: list[int]) -> list[Array]:
        return list(np.eye(self.model.dim)[numbers])

    def pool(self, near: Array, size: int) -> Array:
        if self.one_hot:
            return np.eye(self.model.dim)[self.rng.integers(self.model.dim, size=size)]
        width = self.rng.choice([0.1, 0.5]) / math.sqrt(self.model.dim)
        pool: Array = near + width * self.rng.normal(size=(size, self.model.dim))
        return pool

    def rounds(self, count: int) -> Rounds:
        """Rounds with changing baselines and pools, K from 0 to 6."""
        baselines = [self.baseline() for _ in range(count)]
        return [(self.pool(b, int(self.rng.integers(7))), b) for b in baselines]

    def history(self, rows: int) -> tuple[Array, Array]:
        x = self.rng.normal(size=(rows, self.model.dim)) / math.sqrt(self.model.dim)
        if self.one_hot:
            x = self.pool(x, rows)
        return x, np.array([self.reward(row) for row in x])


def decided(policy: Policy, world: World, rounds: Rounds) -> Iterator[tuple[Decision, Array]]:
    """Each decision with the features it executes.

    Rounds in which the policy decides nothing are left out.
    """
    for pool, baseline in rounds:
        try:
            decision = policy.decide(pool, baseline, world.told(policy, baseline))
        except NoSafeAction:
            continue
        yield decision, baseline if decision.action is None else pool[decision.action]


def lived(make: Factory, seed: int) -> tuple[Policy, World, list[str]]:
    """A policy with history and a few rounds behind it; the last three outcomes are not reported."""
    policy = make()
    world = World.of(policy, seed)
    policy.learn(*world.history(20 * policy.model.dim))
    ids = []
    for decision, executed in decided(policy, world, world.rounds(12)):
        ids.append(decision.id)
        if len(ids) > 3:
            policy.observe(ids[-4], world.reward(executed))
    return policy, world, ids[-3:]


def state(policy: Policy) -> dict[str, bytes]:
    """The complete state except the token of the ids, bit for bit."""
    header, arrays = policy.state()
    return {
        **{key: array.tobytes() for key, array in arrays.items()},
        "header": repr({k: v for k, v in header.items() if k != "token"}).encode(),
    }


def money(policy: Policy) -> tuple[str, dict[str, bytes]]:
    """The bank and every array of the gate that holds money, bit for bit."""
    arrays = policy.gate.snapshot()
    kept = {name: array.tobytes() for name, array in arrays.items() if name.startswith("ledger")}
    return repr(policy.bank), kept


def answer_of(decision: Decision) -> tuple[object, ...]:
    return (decision.action, *map(repr, decision[2:7]), decision.details.tobytes())
