"""Classification as a bandit: name the class, earn 1 if it is right, and never see what was right
otherwise.

The incumbent always names the most frequent class of the past rows. The yardstick is the best linear
rule, fitted on all rows with all labels, which no bandit sees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata.datasets import table
from realdata.outcome import CITED, Outcome, of_replay, of_rewards

from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.replay import FullRound, replay_full

PAST = 500
ALPHA, NOISE, NORM_BOUND = 0.05, 0.5, 2.0
MOST_ROUNDS = 10_000


def shuttle() -> tuple[Array, NDArray[np.int64]]:
    rows = table("shuttle")
    return rows.drop("anomaly").to_numpy().astype(float), rows["anomaly"].to_numpy().astype(np.int64)


def adult() -> tuple[Array, NDArray[np.int64]]:
    rows = table("adult")
    numbers = rows.select(
        "age", "educational-num", "hours-per-week",
        gain=(pl.col("capital-gain") + 1).log(), loss=(pl.col("capital-loss") + 1).log(),
        married=(pl.col("marital-status").str.starts_with("Married")).cast(pl.Int64),
        man=(pl.col("gender") == "Male").cast(pl.Int64),
    )  # fmt: skip
    high = rows["income"].str.contains(">50K").to_numpy().astype(np.int64)
    return numbers.to_numpy().astype(float), high


def digits() -> tuple[Array, NDArray[np.int64]]:
    rows = table("digits").to_numpy().astype(float)
    return rows[:, :-1], rows[:, -1].astype(np.int64)


WORLDS = {"Shuttle": shuttle, "adult": adult, "digits": digits}


def reduced(contexts: Array, most: int = 8) -> Array:
    """The main directions of the past rows, scaled by them; an intercept first."""
    past = contexts[:PAST]
    centre = past.mean(axis=0)
    scale = np.where(past.std(axis=0) > 0, past.std(axis=0), 1.0)
    if contexts.shape[1] > 20:
        scale = np.ones_like(scale)
    _, sizes, directions = np.linalg.svd((past - centre) / scale, full_matrices=False)
    kept = min(most, contexts.shape[1])
    parts = (contexts - centre) / scale @ directions[:kept].T / (sizes[:kept] / np.sqrt(PAST))
    parts = np.clip(parts, -3.0, 3.0) / np.sqrt(kept)
    return np.column_stack([np.ones(len(parts)), parts])


class Prepared(NamedTuple):
    pools: Array
    """Shape (PAST + rounds, classes, d)."""
    right: Array
    """1 where the class is right, shape (PAST + rounds, classes)."""
    usual: int
    model: LinearModel
    contexts: Array


def prepare(world: str, seed: int, rounds: int) -> Prepared:
    contexts, labels = WORLDS[world]()
    order = np.random.default_rng([seed, 4]).permutation(len(labels))[: PAST + rounds]
    labels = labels[order]
    x = reduced(contexts[order])
    kinds = int(labels.max()) + 1
    pools = (np.eye(kinds)[None, :, :, None] * x[:, None, None, :]).reshape(len(x), kinds, -1)
    model = LinearModel(dim=kinds * x.shape[1], noise=NOISE, norm_bound=NORM_BOUND)
    return Prepared(pools, np.eye(kinds)[labels], int(np.bincount(labels[:PAST]).argmax()), model, x)


def run(world: str, seed: int, rounds: int = MOST_ROUNDS) -> list[Outcome]:
    pools, right, usual, model, x = prepare(world, seed, rounds)
    outcomes = []
    for name in ("reserve-c4b+", CITED, "linucb"):
        policy = Policy(name, model, alpha=ALPHA)
        policy.learn(pools[:PAST, usual], right[:PAST, usual])
        given = (FullRound(pools[n], usual, right[n]) for n in range(PAST, len(x)))
        outcomes.append(of_replay(world, seed, replay_full(policy, given)))
    outcomes.append(of_rewards(world, seed, "most frequent class (incumbent)", right[PAST:, usual]))
    known = np.linalg.lstsq(x[PAST:], right[PAST:], rcond=None)[0]
    chosen = (x[PAST:] @ known).argmax(axis=1)
    best = right[PAST:][np.arange(len(chosen)), chosen]
    outcomes.append(of_rewards(world, seed, "best linear rule, all labels known", best))
    return outcomes
