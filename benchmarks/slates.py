"""The home world of slates: what learning from items is worth; prints JSON.

    python benchmarks/slates.py [--episodes 128] [--seed 0]

Every round offers all slates of 3 of 8 items (1, .4u), u uniform on the sphere. theta = (1, .6, 0, 0,
0)/3, S .5, lambda .1, item outcomes with sigma .3/sqrt(3), the baseline three times (1, 0, 0, 0, 0), 20
outcomes of it as history, alpha .05, 200 rounds. ``sums``: the slates are plain rows, the noise of their
outcomes .3. ``slates, one outcome``: they are slates, but only the sum is reported. ``items``: an outcome
each.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from typing import Any

import numpy as np

import c4b

THETA = np.array([1.0, 0.6, 0.0, 0.0, 0.0]) / 3.0
INCUMBENT = np.tile([1.0, 0.0, 0.0, 0.0, 0.0], (3, 1))
CHOICES = np.array(list(combinations(range(8), 3)))
SIGMA, ROUNDS, HISTORY, ALPHA = 0.3 / np.sqrt(3.0), 200, 20, 0.05
WAYS = ("sums", "slates, one outcome", "items")


def episode(policy: str, way: str, seed: int, number: int) -> tuple[float, float, bool]:
    """Reward ratio, share of fallback rounds, whether the promise was broken."""
    rng = np.random.Generator(np.random.Philox(key=[seed, number]))
    scale = float(SIGMA if way != "sums" else SIGMA * np.sqrt(3.0))
    made = c4b.Policy(policy, c4b.LinearModel(5, scale, 0.5, ridge=0.1), alpha=ALPHA)
    past = rng.standard_normal((HISTORY, 3)) * SIGMA + INCUMBENT @ THETA
    if way == "items":
        made.learn(np.tile(INCUMBENT[:1], (3 * HISTORY, 1)), past.ravel())
    else:
        root = 1.0 if way == "sums" else np.sqrt(3.0)
        made.learn(np.tile(INCUMBENT.sum(axis=0), (HISTORY, 1)) / root, past.sum(axis=1) / root)
    baseline = float((INCUMBENT @ THETA).sum())
    earned, fallbacks, budget, broken = 0.0, 0, 0.0, False
    for _ in range(ROUNDS):
        directions = rng.standard_normal((8, 4))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        items = np.concatenate([np.ones((8, 1)), 0.4 * directions], axis=1)
        noise = rng.standard_normal(3) * SIGMA
        slates = items[CHOICES]
        if way == "sums":
            decision = made.decide(slates.sum(axis=1), INCUMBENT.sum(axis=0))
        else:
            decision = made.decide(slates, INCUMBENT)
        chosen = INCUMBENT if decision.action is None else slates[decision.action]
        outcomes = chosen @ THETA + noise
        made.observe(decision.id, outcomes.tolist() if way == "items" else float(outcomes.sum()))
        mean = float((chosen @ THETA).sum())
        earned += mean
        fallbacks += decision.action is None
        budget += mean - (1.0 - ALPHA) * baseline
        broken |= budget < 0.0
    return earned / (ROUNDS * baseline), fallbacks / ROUNDS, broken


def home(policies: tuple[str, ...], episodes: int, seed: int) -> dict[str, Any]:
    """Of each policy and way: [mean, standard error] of the ratio, of fallback in percent; violations."""
    out: dict[str, Any] = {}
    for policy in policies:
        for way in WAYS:
            rows = np.array([episode(policy, way, seed, n) for n in range(episodes)])
            errors = rows.std(axis=0) / np.sqrt(episodes)
            out.setdefault(policy, {})[way] = {
                "ratio": [round(float(rows[:, 0].mean()), 4), round(float(errors[0]), 4)],
                "fallback": [
                    round(100.0 * float(rows[:, 1].mean()), 2),
                    round(100.0 * float(errors[1]), 2),
                ],
                "violations": int(rows[:, 2].sum()),
            }
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(home(("refresh", "reserve-c4b+"), given.episodes, given.seed), indent=1))


if __name__ == "__main__":
    main()
