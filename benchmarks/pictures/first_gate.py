"""Draws docs/images/first_gate.png: the tutorial's 500 rounds.

python benchmarks/pictures/first_gate.py
"""

from __future__ import annotations

import numpy as np
from drawing import CERTIFIED, KNOWN, PLAIN, new, save

import c4b

ROUNDS = 500


def main() -> None:
    rng = np.random.default_rng(7)
    truth, incumbent = np.array([0.50, 0.15]), np.array([1.0, 0.0])
    policy = c4b.Policy(model=c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0), alpha=0.05)
    past = np.tile(incumbent, (50, 1))
    policy.learn(past, past @ truth + 0.1 * rng.normal(size=50))
    banks, credits, discounts, fell_back = [], [], [], []
    credit = 0.0
    for _ in range(ROUNDS):
        offers = np.c_[np.ones(5), rng.uniform(-1, 1, 5)]
        decision = policy.decide(candidates=offers, baseline=incumbent)
        shown = incumbent if decision.action is None else offers[decision.action]
        policy.observe(decision.id, float(shown @ truth + 0.1 * rng.normal()))
        credit += float((shown - 0.95 * incumbent) @ truth)
        banks.append(decision.bank)
        credits.append(credit)
        discounts.append(shown[1])
        fell_back.append(decision.is_baseline)
    figure, (money, played) = new(columns=2, width=10.0, height=3.8)
    x = np.arange(1, ROUNDS + 1)
    money.plot(x, credits, "--", color=KNOWN, label="truly won beyond 95 % of the incumbent")
    money.plot(x, banks, color=CERTIFIED, lw=2, label="the bank: what is certified")
    money.axhline(0.0, color="black", lw=0.8)
    money.set(xlabel="round", ylabel="units of reward")
    money.legend(frameon=False, fontsize=9.5)
    chosen = np.array(fell_back)
    played.scatter(x[~chosen], np.array(discounts)[~chosen], s=9, color=CERTIFIED, label="a candidate")
    played.scatter(
        x[chosen], np.array(discounts)[chosen], s=22, marker="x", color=PLAIN, label="the incumbent"
    )
    played.set(xlabel="round", ylabel="discount of the offer shown")
    played.legend(frameon=False, loc="lower right", fontsize=9.5)
    save(figure, "first_gate")


if __name__ == "__main__":
    main()
