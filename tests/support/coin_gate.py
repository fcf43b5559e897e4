"""A gate in plain Python that uses everything a gate may use: a known mean, chance, an alarm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import c4b
from c4b.policies import CandidateField, Decision, GateFactory, Played

NAME = "coin"
Array = NDArray[np.float64]


class CoinGate(c4b.Gate):
    """A candidate costs at most the baseline's known mean + ``norm_bound * ||x||``."""

    def __init__(self, terms: c4b.GateTerms) -> None:
        self.terms = terms
        self.ledger = np.array([terms.reserve, 0.0])  # bank, rounds
        self.sums = np.zeros((2, terms.model.dim))  # features, and features times rewards
        self.count = np.zeros(1, dtype=np.int64)

    def decide(self, round_: c4b.Round, decision_id: str) -> Decision:
        assert round_.baseline_mean is not None
        before, candidates = self.bank, round_.candidates
        worst = -self.terms.model.norm_bound * np.linalg.norm(candidates, axis=1)
        contrasts = worst - (1.0 - self.terms.alpha) * round_.baseline_mean
        details = np.full((len(CandidateField), len(candidates)), np.nan)
        details[CandidateField.JOINT], details[CandidateField.MARGIN] = contrasts, before + contrasts
        fit = np.flatnonzero(before + contrasts >= 0.0)
        draw = np.random.default_rng([7, self.rounds]).integers(len(fit) + 1)  # the last: the baseline
        action = None if draw == len(fit) else int(fit[draw])
        certificate = self.terms.alpha * round_.baseline_mean
        played = Played(round_.baseline, round_.baseline, True)
        if action is not None:
            certificate, played = (
                float(contrasts[action]),
                Played(candidates[action], round_.baseline, False),
            )
        self.charge(before + certificate, played)
        chance = 1.0 / (len(fit) + 1)
        nan = np.nan
        return Decision(
            decision_id,
            action,
            self.bank,
            certificate,
            nan,
            nan,
            before,
            NAME,
            self.alarm,
            details,
            chance,
        )

    def charge(self, bank: float, played: Played) -> None:
        self.ledger[:] = bank, self.rounds + 1

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        cost = self.terms.model.norm_bound * float(np.linalg.norm(executed.features - decided.features))
        self.ledger[0] = self.bank - cost if bank is None else bank

    def absorb(self, features: Array, reward: float) -> None:
        if reward == 13.0:
            raise c4b.errors.InvalidInput("reward", reward, "brings bad luck")
        self.sums += np.array([features, features * reward])
        self.count += 1

    def snapshot(self) -> dict[str, NDArray[np.generic]]:
        return {"ledger": self.ledger, "sums": self.sums, "count": self.count}

    def restore(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        self.ledger[:], self.sums[:], self.count[:] = arrays["ledger"], arrays["sums"], arrays["count"]

    def explanation(self, round_: c4b.Round) -> dict[str, Array]:
        return {"sums": self.sums.copy()}

    @property
    def bank(self) -> float:
        return float(self.ledger[0])

    @property
    def rounds(self) -> int:
        return int(self.ledger[1])

    @property
    def observations(self) -> int:
        return int(self.count[0])

    @property
    def alarm(self) -> str | None:
        return "a reward of 100 is a miracle" if np.abs(self.sums[1]).max() > 50.0 else None


COIN = GateFactory(
    NAME, CoinGate, "plays what it can afford by chance", needs=frozenset({"baseline_mean"})
)
"""Not registered here: other tests list all policies and must not meet it."""
