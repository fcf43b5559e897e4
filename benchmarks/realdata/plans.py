"""Does a plan foretell what then happens? Its opening round and its uplift, beside those of the
replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata import classification, movielens, trials

from c4b import LinearModel
from c4b._validate import Array
from c4b.diagnostics.ridge_fit import fit
from c4b.logs import Columns, read_log
from c4b.planning import Forecast, Simulator, Traffic, plan_log
from c4b.replay import Terms

SIMULATIONS, ROUNDS = 20, 2000


def of_trial(actions: NDArray[np.int64], rewards: Array, seed: int, horizon: int) -> Forecast:
    """Plan on the trial's own rows in another order, with the history that the replay gives."""
    order = np.random.default_rng([seed, 5]).permutation(len(actions))
    frame = pl.DataFrame({"action": actions[order], "reward": rewards[order]})
    log = read_log(frame, Columns(reward="reward", action="action"))
    plan = plan_log(
        log, Terms("0", norm_bound=trials.NORM_BOUND), rounds_a_day=horizon / 7, history=trials.HISTORY,
        simulations=SIMULATIONS, rounds=ROUNDS, seed=seed,
    )  # fmt: skip
    return plan.forecast


def of_past(
    pools: Array,
    baselines: NDArray[np.int64],
    rewards: Array,
    users: NDArray[np.int64],
    model: LinearModel,
    seed: int,
    horizon: int,
) -> Forecast:
    """Plan on past rounds whose rewards are all known; the policy learns the incumbent's part of them.

    All rewards of a user count as one piece of evidence: what the linear model leaves of them may be
    alike, because they come from one taste.
    """
    n, k, d = pools.shape
    found = fit(pools.reshape(n * k, d), rewards.reshape(n * k))
    scores = np.einsum("rk,rkd->rd", rewards - pools @ found.estimate, pools)
    places = np.unique(users, return_inverse=True)[1]
    by_user = np.stack([np.bincount(places, column) for column in scores.T], axis=1)
    covariance = found.inverse @ (by_user.T @ by_user) @ found.inverse
    history = pools[np.arange(n), baselines]
    traffic = Traffic(
        pools, baselines, history, found.estimate, (covariance + covariance.T) / 2, np.empty(0)
    )
    simulator = Simulator(traffic, model, "reserve-c4b+", 0.05, 0.0, (0.0, 1.0))
    return simulator.run(SIMULATIONS, ROUNDS, [horizon], seed)


def of_movielens(seed: int) -> Forecast:
    given = movielens.world(seed, rounds=1)
    past = slice(0, movielens.HISTORY)
    return of_past(
        given.features[past], given.popular[past], given.rewards[past], given.users[past], given.model,
        seed, movielens.ROUNDS,
    )  # fmt: skip


def of_classification(world: str, seed: int) -> Forecast:
    given = classification.prepare(world, seed, classification.MOST_ROUNDS)
    past = slice(0, classification.PAST)
    usual = np.full(classification.PAST, given.usual)
    rounds = len(given.pools) - classification.PAST
    every = np.arange(classification.PAST)
    return of_past(given.pools[past], usual, given.right[past], every, given.model, seed, rounds)


def _is_planned(row: dict[str, Any]) -> bool:
    """Whether it is the run that a plan speaks of: a plan on rewards of 0 and 1 proposes ``clicks``."""
    trial = row["world"] in ("thornton_hiv", "ResumeNames")
    return row["policy"] == ("clicks" if trial else "reserve-c4b+")


def compare(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each world and seed: foretold and found."""
    made = []
    for row in outcomes:
        if not _is_planned(row):
            continue
        world, seed = row["world"], row["seed"]
        incumbent = next(
            each for each in outcomes
            if each["world"] == world and each["seed"] == seed and "incumbent" in each["policy"]
        )  # fmt: skip
        if world == "MovieLens":
            forecast = of_movielens(seed)
        elif world == "thornton_hiv":
            forecast = of_trial(*trials.incentives(), seed, row["rounds"])
        elif world == "ResumeNames":
            forecast = of_trial(*trials.resumes(), seed, row["rounds"])
        else:
            forecast = of_classification(world, seed)
        made.append(
            {
                "world": world,
                "seed": seed,
                "opens_at": list(forecast.opens_at),
                "opened_at": row["opened_at"],
                "uplift": list(next(iter(forecast.uplift.values()))),
                "uplift_found": row["reward"] / incumbent["reward"] - 1.0,
            }
        )
    return made
