"""Randomised trials without context, replayed by queues of actions.

thornton_hiv: who came to learn the result of an HIV test, by the incentive that was drawn for him
(Thornton 2008). ResumeNames: which applications were called back, by the quality that was drawn for the
resume (Bertrand and Mullainathan 2004). The incumbent is no incentive, and a resume of low quality.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata.datasets import table
from realdata.outcome import CITED, Outcome, of_replay, of_rewards

from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.replay import replay_queues

ALPHA, NOISE, NORM_BOUND, HISTORY = 0.05, 0.5, 1.0, 100


def incentives() -> tuple[NDArray[np.int64], Array]:
    """0: none; 1, 2, 3: up to so many dollars."""
    rows = table("thornton").filter(pl.col("got").is_not_nan() & pl.col("tinc").is_not_nan())
    return rows["tinc"].ceil().to_numpy().astype(np.int64), rows["got"].to_numpy().astype(float)


def resumes() -> tuple[NDArray[np.int64], Array]:
    """0: low quality, 1: high."""
    rows = table("resumes")
    quality = (rows["quality"] == "high").to_numpy().astype(np.int64)
    return quality, (rows["call"] == "yes").to_numpy().astype(float)


def run_trial(world: str, seed: int, actions: NDArray[np.int64], rewards: Array) -> list[Outcome]:
    """The rows in an order of their own for each seed; the first hundred of the incumbent are history."""
    order = np.random.default_rng([seed, 3]).permutation(len(actions))
    actions, rewards = actions[order], rewards[order]
    kinds = int(actions.max()) + 1
    features = np.column_stack([np.ones(kinds), np.eye(kinds)[:, 1:]])
    past = np.flatnonzero(actions == 0)[:HISTORY]
    rest = np.setdiff1d(np.arange(len(actions)), past)
    outcomes = []
    gaussian = LinearModel(dim=kinds, noise=NOISE, norm_bound=NORM_BOUND)
    yes_or_no = LinearModel.bounded(kinds, NORM_BOUND)
    plain = ((name, gaussian) for name in ("reserve-c4b+", CITED, "linucb"))
    for name, model in (*plain, ("clicks", yes_or_no)):
        policy = Policy(name, model, alpha=ALPHA)
        policy.learn(features[actions[past]], rewards[past])
        found = replay_queues(policy, features, 0, actions[rest], rewards[rest])
        outcomes.append(of_replay(world, seed, found))
    own = rewards[rest][actions[rest] == 0]
    outcomes.append(of_rewards(world, seed, "incumbent", own))
    best = max(range(kinds), key=lambda n: float(rewards[actions == n].mean()))
    outcomes.append(of_rewards(world, seed, "best action, known", rewards[rest][actions[rest] == best]))
    return outcomes


def run(seed: int) -> list[Outcome]:
    return [
        *run_trial("thornton_hiv", seed, *incentives()),
        *run_trial("ResumeNames", seed, *resumes()),
    ]
