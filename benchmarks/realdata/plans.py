"""Does a plan foretell what then happens? Its opening round and its uplift, beside those of the replay.

    python benchmarks/realdata/plans.py [--seeds 10] [--first-seed 100] [--other-seeds 3]

prints JSON: each plan, and for each world whether the median opening round was foretold within a factor
of two, and how often the measured uplift was in its interval.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
from numpy.typing import NDArray
from realdata import classification, movielens, open_bandit, trials

from c4b import LinearModel
from c4b._validate import Array
from c4b.diagnostics.ridge_fit import fit
from c4b.features import FeatureBuilder, Intercept, OneHot
from c4b.logs import Columns, read_log
from c4b.planning import Forecast, Simulator, Traffic, plan_log
from c4b.replay import Terms

SIMULATIONS, ROUNDS = 20, 2000
LOGGED = 4000
"""Rows of the randomised log of MovieLens."""
POOLS = Columns(
    reward="liked", action="shown", candidates="films", vectors="features", baseline="popular"
)
TRIALS = {"thornton_hiv": trials.incentives, "ResumeNames": trials.resumes}


class Foretold(NamedTuple):
    policy: str
    """What the plan proposes to play."""
    forecast: Forecast
    verdict: str


def of_trial(actions: NDArray[np.int64], rewards: Array, seed: int, horizon: int) -> Foretold:
    """A plan on the trial's own rows in another order, with features and history of the replay."""
    order = np.random.default_rng([seed, 5]).permutation(len(actions))
    frame = pl.DataFrame({"action": actions[order], "reward": rewards[order]})
    log = read_log(frame, Columns(reward="reward", action="action"))
    others = OneHot("action", labels=tuple(str(n) for n in range(1, int(actions.max()) + 1)))
    plan = plan_log(
        log, Terms("0", norm_bound=trials.NORM_BOUND), rounds_a_day=horizon / 7, history=trials.HISTORY,
        simulations=SIMULATIONS, rounds=ROUNDS, seed=seed, builder=FeatureBuilder([Intercept(), others]),
    )  # fmt: skip
    return Foretold(plan.proposal.policy, plan.forecast, plan.verdict)


def of_movielens(seed: int) -> Foretold:
    """A plan on rounds in which one of the ten films was shown at random; none is played later."""
    log = read_log(movielens.randomised_log(seed, LOGGED), POOLS)
    plan = plan_log(
        log, Terms(norm_bound=movielens.NORM_BOUND, alpha=movielens.ALPHA), seed=seed, rounds=ROUNDS,
        rounds_a_day=movielens.ROUNDS / 7, history=movielens.HISTORY, simulations=SIMULATIONS,
    )  # fmt: skip
    return Foretold(plan.proposal.policy, plan.forecast, plan.verdict)


def of_classification(world: str, seed: int) -> Foretold:
    """A forecast from the past rows, whose labels are all known."""
    given = classification.prepare(world, seed, classification.MOST_ROUNDS)
    past = slice(0, classification.PAST)
    usual = np.full(classification.PAST, given.usual)
    rounds = len(given.pools) - classification.PAST
    forecast = of_past(given.pools[past], usual, given.right[past], given.model, seed, rounds)
    return Foretold("reserve-c4b+", forecast, "")


def of_past(
    pools: Array,
    baselines: NDArray[np.int64],
    rewards: Array,
    model: LinearModel,
    seed: int,
    horizon: int,
) -> Forecast:
    """From past rounds whose rewards are all known; the policy learns the incumbent's part of them.

    All rewards of a round count as one piece of evidence: they depend on one label.
    """
    n, k, d = pools.shape
    found = fit(pools.reshape(n * k, d), rewards.reshape(n * k))
    scores = np.einsum("rk,rkd->rd", rewards - pools @ found.estimate, pools)
    covariance = found.inverse @ (scores.T @ scores) @ found.inverse
    history = pools[np.arange(n), baselines]
    traffic = Traffic(
        list(pools), baselines, history, found.estimate, (covariance + covariance.T) / 2, np.empty(0)
    )
    simulator = Simulator(traffic, model, "reserve-c4b+", classification.ALPHA, 0.0, (0.0, 1.0))
    return simulator.run(SIMULATIONS, ROUNDS, [horizon], seed)


def foretold(world: str, seed: int, rounds: int) -> Foretold:
    if world == movielens.WORLD:
        return of_movielens(seed)
    if world in TRIALS:
        return of_trial(*TRIALS[world](), seed, rounds)
    return of_classification(world, seed)


def compare(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each world and seed: foretold and found."""
    made = []
    for world, seed in dict.fromkeys((row["world"], row["seed"]) for row in outcomes):
        runs = [row for row in outcomes if row["world"] == world and row["seed"] == seed]
        incumbent = next(row for row in runs if "incumbent" in row["policy"])
        told = foretold(world, seed, runs[0]["rounds"])
        played = next(row for row in runs if row["policy"] == told.policy)
        made.append(
            {
                "world": world,
                "seed": seed,
                "policy": told.policy,
                "opens_at": list(told.forecast.opens_at),
                "opened_at": played["opened_at"],
                "uplift": list(next(iter(told.forecast.uplift.values()))),
                "uplift_found": played["reward"] / incumbent["reward"] - 1.0,
            }
        )
    return made


def summary(plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each world, over its seeds."""
    made = []
    for world in dict.fromkeys(each["world"] for each in plans):
        runs = [each for each in plans if each["world"] == world]
        opens = float(np.median([each["opens_at"][1] for each in runs]))
        opened = float(np.median([each["opened_at"] or np.inf for each in runs]))
        near = opens == opened or 0.5 <= opened / opens <= 2.0
        inside = sum(each["uplift"][0] <= each["uplift_found"] <= each["uplift"][2] for each in runs)
        made.append(
            {
                "world": world, "plans": len(runs), "opens_at": opens, "opened_at": opened,
                "within_a_factor_of_two": near, "uplift_in_its_interval": inside,
            }
        )  # fmt: skip
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="of MovieLens")
    parser.add_argument("--other-seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    given = parser.parse_args()
    first, outcomes = given.first_seed, []
    for seed in range(first, first + given.seeds):
        outcomes += movielens.run(seed)
    for seed in range(first, first + given.other_seeds):
        outcomes += trials.run(seed)
        for world in classification.WORLDS:
            outcomes += classification.run(world, seed)
    plans = compare([each.as_dict() for each in outcomes])
    print(json.dumps({"worlds": summary(plans), "open_bandit": open_bandit.plan(), "plans": plans}))


if __name__ == "__main__":
    main()
