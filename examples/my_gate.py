"""A gate in plain Python: judged by the kit, simulated, deployed, served and audited.

Playing x instead of the baseline b costs at most S * ||x - (1 - alpha) * b||, and a baseline with a
nonnegative mean costs nothing. So the reserve pays for some plays without any statistics.
"""

import tempfile
from pathlib import Path

import numpy as np

import c4b
from c4b.policies import CandidateField, Played
from c4b.service.serving.background import serve_in_background
from c4b.study import Method, Setting, Study, run
from c4b.testing import check_policy


@c4b.register_gate("worst-case", summary="pays for the worst theta; scores by ridge regression")
class WorstCaseGate(c4b.Gate):
    def __init__(self, terms):
        self.terms, self.budget = terms, np.array([terms.reserve, 0.0])  # bank, rounds
        self.sums = np.eye(terms.model.dim, terms.model.dim + 1)  # ridge + sum x x', sum x y

    def decide(self, round_, decision_id):
        candidates, baseline, before = round_.candidates, round_.baseline, self.bank
        if not np.isfinite([*candidates, baseline]).all():
            raise c4b.errors.InvalidInput("round", round_, "must hold finite numbers only")
        details = np.full((len(CandidateField), len(candidates)), np.nan)
        plays = [Played(x, baseline, False) for x in candidates]
        details[CandidateField.MARGIN] = [before - self.cost(play) for play in plays]
        score = details[CandidateField.SCORE] = candidates @ self.estimate
        fit = (details[CandidateField.MARGIN] >= 0.0) & (candidates != baseline).any(axis=1)
        action = int(np.argmax(np.where(fit, score, -np.inf))) if fit.any() else None
        bank = before - self.cost(Played(baseline, baseline, True) if action is None else plays[action])
        if bank < 0.0 and not self.terms.baseline_nonnegative:
            raise c4b.errors.NoSafeAction("the reserve does not cover a negative baseline")
        self.charge(bank, None)
        numbers = (bank, bank - before, np.nan, np.nan, before)  # no UCB, no radius
        return c4b.Decision(decision_id, action, *numbers, "worst-case", None, details)

    def cost(self, played):
        if played.is_baseline and self.terms.baseline_nonnegative:
            return 0.0
        contrast = played.features - (1.0 - self.terms.alpha) * played.baseline
        return self.terms.model.norm_bound * float(np.linalg.norm(contrast))

    def charge(self, bank, played):
        self.budget[:] = bank, self.rounds + 1

    def amend(self, round_number, decided, executed, bank=None):
        self.budget[0] = self.bank + self.cost(decided) - self.cost(executed) if bank is None else bank

    def absorb(self, features, reward):
        self.sums += np.outer(features, [*features, reward])

    def snapshot(self):
        return {"ledger": self.budget, "sums": self.sums}

    def restore(self, arrays):
        self.budget[:], self.sums[:] = arrays["ledger"], arrays["sums"]

    bank = property(lambda self: float(self.budget[0]))
    rounds = property(lambda self: int(self.budget[1]))
    estimate = property(lambda self: np.linalg.solve(self.sums[:, :-1], self.sums[:, -1]))


if __name__ == "__main__":
    print(check_policy("worst-case"))
    folder, model = Path(tempfile.mkdtemp()), c4b.LinearModel(2, noise=0.1, norm_bound=1.0)
    methods = tuple(Method(name, name) for name in ("worst-case", "reserve-c4b+"))
    study = Study("mine", "Mine", methods, (Setting(reserve=5.0),), (), episodes=4, seed=1)
    print(run(study, folder / "study").frame.select("method", "reward_ratio", "fallback"))
    with serve_in_background(f"sqlite:///{folder}/shop.db") as url, c4b.Client(url) as client:
        client.create("shop", model, policy="worst-case", reserve=1.0)
        decision = client.decide("shop", candidates=[[1.0, 0.2]], baseline=[1.0, 0.0])
        client.observe("shop", decision.id, 0.6)
        print(decision.action, client.audit("shop").level)
