"""Reward over the incumbent's where rewards are clicks, in seven worlds. Prints one JSON line a world.

    python benchmarks/clicks.py [--policy clicks] [--episodes 64] [--seed 20000] [--worlds sphere-10 ...]
    python benchmarks/clicks.py --ledger checkpoints  # without what means that are never negative allow

Five features, S = 1, alpha = .05, R0 = 0. The incumbent is (1, 0, 0, 0, 0) with click rate p, 2000 of its
rows are the history. *sphere*: 32 candidates (1, u), u uniform on the unit sphere, drawn anew each round,
theta = p (1, .35, 0, 0, 0). *arms*: four candidates (1, e_k), theta = p (1, .3, 0, -.15, -.3).
*newcomer*: arms, the best with a rate of 4 % instead of 3 %, and 100,000 logged rows over all four.
``lowest_credit`` is the lowest cumulative contrast of all episodes and rounds, in mean rewards: below 0
would be a violation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from typing import NamedTuple

import numpy as np

import c4b
from c4b._validate import Array
from c4b.policies.catalogue.built_in import BUILT_IN

ALPHA, DIM = 0.05, 5
BASELINE = np.eye(DIM)[0]
ARMS = np.c_[np.ones(4), np.eye(4)]


class World(NamedTuple):
    """Who is offered, with which click rates, for how long, after which history."""

    sphere: bool
    theta: Array
    rounds: int
    logged: bool = False


SPHERE, SLOPES = np.array([1.0, 0.35, 0.0, 0.0, 0.0]), np.array([1.0, 0.3, 0.0, -0.15, -0.3])
WORLDS = {
    "sphere-10": World(True, 0.1 * SPHERE, 20_000),
    "sphere-3": World(True, 0.03 * SPHERE, 20_000),
    "sphere-3-long": World(True, 0.03 * SPHERE, 100_000),
    "arms-10": World(False, 0.1 * SLOPES, 20_000),
    "arms-3": World(False, 0.03 * SLOPES, 20_000),
    "arms-3-long": World(False, 0.03 * SLOPES, 100_000),
    "newcomer": World(False, np.array([0.03, 0.01, 0.0, -0.005, -0.01]), 20_000, logged=True),
}


class Outcome(NamedTuple):
    """One episode."""

    ratio: float  # mean reward over the incumbent's
    lowest_credit: float
    fallback: float  # share of rounds
    alarmed: bool


def policy_of(name: str, ledger: str | None) -> c4b.Composition:
    """A built-in policy, with another ledger if one is named."""
    built_in = next(policy for policy in BUILT_IN if policy.name == name)
    return built_in if ledger is None else dataclasses.replace(built_in, ledger=ledger)


def episode(
    world: World,
    policy: c4b.Composition,
    seed: int,
    rounds: int | None = None,
    confidence: str = "bounded-3",
) -> Outcome:
    rng, theta = np.random.default_rng(seed), world.theta
    model = c4b.LinearModel(DIM, 0.5, 1.0, confidence=confidence, rewards=(0, 1))
    made = c4b.Policy(policy, model, alpha=ALPHA)
    history = ARMS[rng.integers(4, size=100_000)] if world.logged else np.tile(BASELINE, (2000, 1))
    made.learn(history, (rng.random(len(history)) < history @ theta).astype(float))
    rate, pool = float(BASELINE @ theta), ARMS
    total = credit = lowest = 0.0
    fallbacks, rounds = 0, rounds or world.rounds
    for _ in range(rounds):
        if world.sphere:
            u = rng.normal(size=(32, DIM - 1))
            pool = np.c_[np.ones(32), u / np.linalg.norm(u, axis=1)[:, None]]
        decision = made.decide(pool, BASELINE)
        played = BASELINE if decision.action is None else pool[decision.action]
        mean = float(played @ theta)
        made.observe(decision.id, float(rng.random() < mean))
        fallbacks += decision.action is None
        total += mean
        credit += mean - (1.0 - ALPHA) * rate
        lowest = min(lowest, credit)
    return Outcome(total / (rounds * rate), lowest, fallbacks / rounds, made.alarm is not None)


def measured(
    name: str,
    policy: c4b.Composition,
    episodes: int,
    seed: int,
    rounds: int | None,
    confidence: str = "bounded-3",
) -> dict[str, object]:
    """A world's row: averages over episodes, the ratio with its standard error."""
    started = time.perf_counter()
    outcomes = [episode(WORLDS[name], policy, seed + n, rounds, confidence) for n in range(episodes)]
    ratios = np.array([outcome.ratio for outcome in outcomes])
    return {
        "world": name,
        "policy": policy.name,
        "ledger": policy.ledger,
        "confidence": confidence,
        "episodes": episodes,
        "seed": seed,
        "rounds": rounds or WORLDS[name].rounds,
        "ratio": round(float(ratios.mean()), 4),
        "standard_error": round(float(ratios.std() / max(np.sqrt(episodes - 1), 1)), 4),
        "lowest_credit": round(min(outcome.lowest_credit for outcome in outcomes), 6),
        "fallback": round(float(np.mean([outcome.fallback for outcome in outcomes])), 4),
        "alarms": sum(outcome.alarmed for outcome in outcomes),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--policy", default="clicks")
    parser.add_argument("--ledger", default=None, help="instead of the policy's own")
    parser.add_argument("--confidence", default="bounded-3", help="or several-ridges, for sigma = 1/2")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=20_000, help="of the first episode")
    parser.add_argument("--rounds", type=int, default=None, help="instead of each world's own")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    asked = parser.parse_args()
    policy = policy_of(asked.policy, asked.ledger)
    for name in asked.worlds:
        row = measured(name, policy, asked.episodes, asked.seed, asked.rounds, asked.confidence)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
