"""A strong yardstick for clicks that promises nothing: Thompson sampling with a logistic model.

Named by ``factory`` in study files. It certifies nothing and never plays the baseline of its own accord
unless the baseline looks best.
"""

from __future__ import annotations

import math

import numpy as np

from c4b._validate import Array
from c4b.policies import CandidateField, Decision, Gate, GateTerms, Played, Round
from c4b.policies.gate import Arrays

START_VARIANCE = 10.0
"""Prior variance of a coefficient of the log-odds."""


class LogisticThompson(Gate):
    """Laplace's approximation, moved by one Newton step a reward; one draw of the coefficients a round.

    The draw of a round depends on the round's number only, so a run continues bit for bit.
    """

    def __init__(self, terms: GateTerms) -> None:
        dim = terms.model.dim
        self.terms, self.count = terms, np.zeros(2)  # rounds, rewards
        self.mean, self.spread = np.zeros(dim), np.eye(dim) * START_VARIANCE

    def decide(self, round_: Round, decision_id: str) -> Decision:
        actions = np.vstack([round_.candidates, round_.baseline])
        rng = np.random.Generator(np.random.Philox(key=[0, self.rounds]))
        root = np.linalg.cholesky(self.spread + 1e-12 * np.eye(len(self.mean)))
        score = actions @ (self.mean + root @ rng.standard_normal(len(self.mean)))
        best = int(np.argmax(score))
        details = np.full((len(CandidateField), len(actions) - 1), np.nan)
        details[CandidateField.SCORE] = score[:-1]
        details[CandidateField.MARGIN] = np.inf
        action = None if best == len(actions) - 1 else best
        self.count[0] += 1.0
        none = math.nan  # it certifies nothing
        return Decision(
            decision_id, action, none, none, none, none, none, "logistic-thompson", None, details
        )

    def absorb(self, features: Array, reward: float) -> None:
        rate = 1.0 / (1.0 + math.exp(-float(np.clip(features @ self.mean, -30.0, 30.0))))
        image = self.spread @ features
        weight = max(rate * (1.0 - rate), 1e-6)
        self.spread -= np.outer(image, image) * (weight / (1.0 + weight * float(features @ image)))
        self.mean += self.spread @ features * (reward - rate)
        self.count[1] += 1.0

    def charge(self, bank: float, played: Played) -> None:
        self.count[0] += 1.0

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        """Nothing was charged."""

    def snapshot(self) -> Arrays:
        return {"count": self.count, "mean": self.mean, "spread": self.spread}

    def restore(self, arrays: Arrays) -> None:
        self.count[:], self.mean[:], self.spread[:] = (arrays[k] for k in ("count", "mean", "spread"))

    @property
    def bank(self) -> float:
        return math.nan

    @property
    def rounds(self) -> int:
        return int(self.count[0])

    @property
    def observations(self) -> int:
        return int(self.count[1])
