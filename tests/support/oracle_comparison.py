"""A policy and the oracle side by side, compared after every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import c4b
from c4b.policies.rounds.candidate_fields import CandidateField
from support.oracle import OraclePolicy, StopHere
from support.oracle_ledger import KEEPING
from support.oracle_sets import DEFINITIONS, Array, OracleSet

METHODS = ("separate", "contrast", "refresh", "revalue", "revalue-f", "linucb")
GATED = METHODS[:-1]  # the paper's
ALL_GATED = (*GATED, *KEEPING)
ALL_METHODS = (*METHODS, *KEEPING)
ALL_CONFIDENCES = tuple(DEFINITIONS)
"""Sets whose stack the oracle restates; ``several-ridges`` has an oracle of its own."""
CONFIDENCES = tuple(  # of one ellipsoid each
    name for name in ALL_CONFIDENCES if len(c4b.LinearModel(1, 1.0, 1.0, confidence=name).ridges) == 1
)
TOLERANCE = 1e-6
"""Room for the allowance for rounding in a set that keeps an inverse."""
SPECTRAL_TOLERANCE = 1e-8
"""In a set that keeps an eigenbasis the allowance is smaller."""


def close(a: Any, b: Any, tolerance: float = TOLERANCE) -> bool:
    """Equal to ``tolerance``, absolutely for values up to 1; NaN equals NaN and infinities themselves."""
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


@dataclass
class Duel:
    """Every call goes to both; every answer is compared at once."""

    name: str
    model: c4b.LinearModel
    alpha: float = 0.1
    reserve: float = 0.0
    baseline_nonnegative: bool = True
    absorb: str = "in-order"
    ids: list[str] = field(default_factory=list)
    executed_features: list[Array] = field(default_factory=list)
    actions: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        m = self.model
        self.policy = c4b.Policy(
            self.name, m, self.alpha, self.reserve, self.baseline_nonnegative, self.absorb
        )
        m = m.resolved(self.policy.composition.confidence)
        assert m.confidence is not None
        oracle_set = OracleSet(
            m.dim, m.noise, m.norm_bound, m.ridges[0], m.delta, m.confidence, m.ridges.tolist()
        )
        self.oracle = OraclePolicy(
            self.name, oracle_set, self.alpha, self.reserve, self.baseline_nonnegative, self.absorb
        )

    def close(self, a: Any, b: Any) -> bool:
        return close(a, b, SPECTRAL_TOLERANCE if self.policy.evidence.region.spectral else TOLERANCE)

    def learn(self, features: Array, rewards: Array) -> None:
        self.policy.learn(features, rewards)
        self.oracle.learn(features, rewards)
        self.compare_state()

    def decide(self, candidates: Array, baseline: Array) -> bool:
        """False when both stop because nothing is certified."""
        try:
            told = self.oracle.decide(candidates, baseline)
        except StopHere:
            with pytest.raises(c4b.errors.NoSafeAction):
                self.policy.decide(candidates, baseline)
            self.compare_state()
            return False
        self.compare_decision(self.policy.decide(candidates, baseline), told, candidates, baseline)
        self.compare_state()
        return True

    def decide_many(self, rounds: list[tuple[Array, Array]]) -> None:
        """The oracle decides one by one, the policy at once."""
        told = [self.oracle.decide(*pair) for pair in rounds]
        for decision, answer, pair in zip(self.policy.decide_many(rounds), told, rounds, strict=True):
            self.compare_decision(decision, answer, *pair)
        self.compare_state()

    def compare_decision(self, decision: c4b.Decision, told: Any, pool: Array, baseline: Array) -> None:
        assert_unambiguous(told)
        assert decision.action == told["action"]
        assert self.close(decision.bank, told["bank"])
        assert self.close(decision.certificate, told["certificate"])
        for row in CandidateField:
            assert self.close(decision.details[row], told[row.name.lower()]), row
        played = baseline if decision.action is None else pool[decision.action]
        assert self.close(decision.ucb, self.oracle.set.upper(played))
        self.ids.append(decision.id)
        self.actions.append(decision.action)
        self.executed_features.append(played)

    def executed(self, round_: int, features: Array | None) -> None:
        self.policy.executed(self.ids[round_], features, independent=True)
        self.oracle.executed(round_, features)
        self.executed_features[round_] = self.oracle.pending[round_].played
        self.compare_state()

    def observe(self, round_: int, reward: float) -> None:
        self.policy.observe(self.ids[round_], reward)
        self.oracle.observe(round_, reward)
        self.compare_state()

    def observe_many(self, outcomes: list[tuple[int, float]]) -> None:
        self.policy.observe_many([(self.ids[round_], reward) for round_, reward in outcomes])
        for round_, reward in outcomes:
            self.oracle.observe(round_, reward)
        self.compare_state()

    def forget(self, round_: int) -> None:
        self.policy.forget(self.ids[round_], independent=True)
        self.oracle.forget(round_)
        self.compare_state()

    def compare_state(self) -> None:
        policy, oracle = self.policy, self.oracle
        estimate = oracle.set.estimate()
        assert self.close(policy.bank, oracle.bank)
        assert self.close(policy.prefix, oracle.prefix)
        assert self.close(policy.estimate, estimate.theta_hat)
        assert self.close(policy.radius, estimate.radius)
        assert policy.evidence.count == len(oracle.set.rewards)
        assert policy.rounds == oracle.rounds
        assert not oracle.alarmed or policy.alarm
        waiting = [r for r, entry in sorted(oracle.pending.items()) if entry.reward is None]
        assert list(policy.pending) == [self.ids[r] for r in waiting]


def assert_unambiguous(told: Any) -> None:
    """Where a margin lies within 1e-9 of 0, or the two best admissible scores of one another, rounding
    may decide the action. Random streams do not come there; one that does fails here, by name."""
    assert not np.any(np.abs(told["margin"]) <= TOLERANCE), "ambiguous stream: margin near 0"
    assert not np.any(np.abs(told["promises"]) <= TOLERANCE), "ambiguous stream: promise near 0"
    scores = np.sort(told["score"][(told["margin"] >= 0.0) & (told["score"] > -np.inf)])
    assert len(scores) < 2 or scores[-1] - scores[-2] > TOLERANCE, "ambiguous stream: tied scores"


def history(rng: np.random.Generator, theta: Array, rows: int, noise: float) -> tuple[Array, Array]:
    """Rows in every direction, norm about 1, with rewards."""
    features = rng.normal(size=(rows, len(theta))) / np.sqrt(len(theta))
    return features, features @ theta + noise * rng.normal(size=rows)
