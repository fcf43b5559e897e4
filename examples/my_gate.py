"""A gate in plain Python: judged by the conformance kit, simulated, deployed, served and audited.

It needs no statistics of its own. Playing a candidate instead of the baseline can cost at most
S * ||x - (1 - alpha) * x_b|| (the norm bound times the length of the contrast); playing a baseline whose
mean is nonnegative costs nothing. So a reserve pays for some plays, and the gate spends it on candidates
that a ridge regression likes best.
"""

import numpy as np

import c4b
from c4b.policies import CandidateField, Decision, Played


@c4b.register_gate("worst-case", summary="pays for the worst theta within the norm bound; ridge score")
class WorstCaseGate(c4b.Gate):
    def __init__(self, terms: c4b.GateTerms) -> None:
        dim = terms.model.dim
        self.terms = terms
        self.budget = np.array([terms.reserve, 0.0])  # bank, rounds
        self.gram, self.moment = terms.model.ridge * np.eye(dim), np.zeros(dim)

    def margin(self, contrasts: np.ndarray) -> np.ndarray:
        return self.bank - self.terms.model.norm_bound * np.linalg.norm(contrasts, axis=-1)

    def decide(self, round_: c4b.Round, decision_id: str) -> Decision:
        candidates, baseline, before = round_.candidates, round_.baseline, self.bank
        if not np.isfinite(candidates).all() or not np.isfinite(baseline).all():
            raise c4b.errors.InvalidInput("round", round_, "must hold finite numbers only")
        details = np.full((len(CandidateField), len(candidates)), np.nan)
        score = details[CandidateField.SCORE] = candidates @ self.estimate
        contrasts = candidates - (1.0 - self.terms.alpha) * baseline
        details[CandidateField.MARGIN] = self.margin(contrasts)
        wanted = (details[CandidateField.MARGIN] >= 0.0) & (score > baseline @ self.estimate)
        wanted &= ~(candidates == baseline).all(axis=1)
        action = int(np.argmax(np.where(wanted, score, -np.inf))) if wanted.any() else None
        played = Played(baseline if action is None else candidates[action], baseline, action is None)
        bank = before - self.cost(played)
        if bank < 0.0 and not self.terms.baseline_nonnegative:
            raise c4b.errors.NoSafeAction("the reserve does not cover a negative baseline")
        self.charge(bank, played)
        nan = np.nan
        return Decision(
            decision_id, action, bank, bank - before, nan, nan, before, "worst-case", None, details
        )

    def cost(self, played: Played) -> float:
        if played.is_baseline and self.terms.baseline_nonnegative:
            return 0.0
        contrast = played.features - (1.0 - self.terms.alpha) * played.baseline
        return float(self.bank - self.margin(contrast))

    def charge(self, bank: float, played: Played) -> None:
        self.budget[:] = bank, self.rounds + 1

    def amend(self, round_number, decided, executed, bank=None) -> None:
        self.budget[0] = self.bank + self.cost(decided) - self.cost(executed) if bank is None else bank

    def absorb(self, features: np.ndarray, reward: float) -> None:
        self.gram += np.outer(features, features)
        self.moment += features * reward

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"ledger": self.budget, "gram": self.gram, "moment": self.moment}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.budget[:], self.gram[:], self.moment[:] = (arrays[k] for k in ("ledger", "gram", "moment"))

    bank = property(lambda self: float(self.budget[0]))
    rounds = property(lambda self: int(self.budget[1]))
    estimate = property(lambda self: np.linalg.solve(self.gram, self.moment))
