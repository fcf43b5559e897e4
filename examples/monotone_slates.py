"""Slates whose reward is no sum: a user is served if at least one item pleases.

Items please independently of each other, with chances that are linear in their features, so a slate is
worth 1 - prod(1 - chance). That rises with every chance: lower bounds of the offered items and upper
bounds of the baseline's give a certificate (Zhang et al. 2019). The bank is carried from round to round.
"""

import numpy as np

import c4b
from c4b.policies import CandidateField


def worth(chances):
    return 1.0 - np.prod(1.0 - np.clip(chances, 0.0, 1.0), axis=-1)


@c4b.register_gate("one-of-the-slate", summary="a slate is worth the chance that one item pleases")
class OneOfTheSlateGate(c4b.Gate):
    takes_slates = needs_item_outcomes = True

    def __init__(self, terms):
        self.terms, self.money = terms, np.array([terms.reserve, 0.0])  # bank, rounds
        self.evidence = c4b.Evidence(terms.model, refined=False)  # asked for every item of a pool

    def worths(self, items):
        """Lower and upper bounds of what slates (..., m, d) are worth."""
        rows = items.reshape(-1, items.shape[-1])
        ends = np.array([(self.evidence.lower(x), self.evidence.upper(x)) for x in rows])
        return (worth(end.reshape(items.shape[:-1])) for end in ends.reshape(-1, 2).T)

    def decide(self, round_, decision_id):
        if round_.items is None:
            raise c4b.errors.InvalidInput("candidates", round_.candidates, "must be slates (K, m, d)")
        alpha, before, (offered, incumbent) = self.terms.alpha, self.bank, round_.items
        (low, high), (least, most) = self.worths(offered), self.worths(incumbent)
        details = np.full((len(CandidateField), len(offered)), np.nan)
        details[CandidateField.MARGIN] = margins = before + low - (1.0 - alpha) * most
        details[CandidateField.SCORE] = details[CandidateField.UCB] = high
        action = int(np.argmax(np.where(margins >= 0.0, high, -1.0))) if max(margins) >= 0.0 else None
        bank = float(before + alpha * least if action is None else margins[action])
        self.charge(bank, None)
        numbers = (bank, bank - before, np.nan, np.nan, before)
        return c4b.Decision(decision_id, action, *numbers, "one-of-the-slate", None, details)

    def charge(self, bank, played):
        self.money[:] = bank, self.rounds + 1

    def amend(self, round_number, decided, executed, bank=None):
        (low, _), (_, most) = self.worths(executed.items), self.worths(executed.baseline_items)
        after = self.bank - 1.0 + low - (1.0 - self.terms.alpha) * most  # at most 1 was credited
        self.money[0] = after if bank is None else bank

    def absorb(self, features, reward):
        self.evidence.absorb(features, reward)

    def snapshot(self):
        return {"ledger": self.money, "evidence": self.evidence.flat}

    def restore(self, arrays):
        self.money[:], self.evidence.flat[:] = arrays["ledger"], arrays["evidence"]

    bank = property(lambda self: float(self.money[0]))
    rounds = property(lambda self: int(self.money[1]))


if __name__ == "__main__":
    rng, theta, incumbent = np.random.default_rng(1), np.array([0.3, 0.2]), np.array([[1.0, 0.0]] * 2)
    model = c4b.LinearModel(dim=2, noise=0.5, norm_bound=0.5)  # clicks: 0.5 is a valid scale
    policy, truth, plays = c4b.Policy("one-of-the-slate", model, 0.2, reserve=5.0), 5.0, 0
    for _ in range(400):
        slates = np.insert(rng.uniform(-1.0, 1.0, (6, 2, 1)), 0, 1.0, axis=2)
        decision = policy.decide(slates, incumbent)
        items = incumbent if decision.action is None else slates[decision.action]
        policy.observe(decision.id, (rng.random(2) < items @ theta) * 1.0)
        truth += worth(items @ theta) - 0.8 * worth(incumbent @ theta)
        plays += not decision.is_baseline
        assert max(policy.bank, 0.0) <= truth
    print(f"{plays} of 400 rounds played; bank {policy.bank:.2f} <= truth {truth:.2f}")
