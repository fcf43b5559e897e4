"""The command ``c4b plan`` on each data set, in a process of its own: what it says, its time and memory.

Logs are what a team would have: rows in which one of the actions was drawn at random. The trials and the
Open Bandit sample are such logs; for the classification sets a class is drawn, and for MovieLens one of
four rules that recommend a film.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from realdata import classification, movielens, trials
from realdata.datasets import RegistryUnreachable, table
from streaming import measured

RULES = ("most popular", "best past average", "what similar users say", "any")


class PlannedLog(NamedTuple):
    frame: pl.DataFrame
    baseline: str
    context: tuple[str, ...] = ()


def of_trial(given: Callable[[], tuple[Any, Any]], seed: int) -> PlannedLog:
    actions, rewards = given()
    order = np.random.default_rng([seed, 5]).permutation(len(actions))
    return PlannedLog(pl.DataFrame({"action": actions[order], "reward": rewards[order]}), "0")


def of_clicks(seed: int) -> PlannedLog:
    """The item that was shown most often is as good an incumbent as any: all were drawn at random."""
    rows = table("open-bandit").sort("timestamp")
    usual = str(rows["item_id"].value_counts(sort=True)["item_id"][0])
    return PlannedLog(rows.select(action="item_id", reward=pl.col("click").cast(pl.Float64)), usual)


def of_classification(world: str, seed: int) -> PlannedLog:
    given = classification.prepare(world, seed, classification.MOST_ROUNDS)
    draw = np.random.default_rng([seed, 6])
    taken = draw.integers(0, given.right.shape[1], len(given.right))
    columns = {f"x{n}": given.contexts[:, n] for n in range(1, given.contexts.shape[1])}
    reward = given.right[np.arange(len(taken)), taken]
    return PlannedLog(
        pl.DataFrame({"action": taken, "reward": reward, **columns}), str(given.usual), tuple(columns)
    )


def of_movielens(seed: int) -> PlannedLog:
    given = movielens.world(seed, movielens.ROUNDS)
    draw = np.random.default_rng([seed, 6])
    chosen = np.stack(
        [
            given.popular,
            given.best_average,
            given.features[:, :, 1].argmax(axis=1),
            draw.integers(0, movielens.POOL, len(given.rewards)),
        ]
    )
    rule = draw.integers(0, len(RULES), len(given.rewards))
    every = np.arange(len(rule))
    reward = given.rewards[every, chosen[rule, every]]
    frame = pl.DataFrame({"action": np.array(RULES)[rule], "reward": reward})
    return PlannedLog(frame, RULES[0])


LOGS: dict[str, Callable[[int], PlannedLog]] = {
    "MovieLens, rules": of_movielens,
    "thornton_hiv": lambda seed: of_trial(trials.incentives, seed),
    "ResumeNames": lambda seed: of_trial(trials.resumes, seed),
    "Open Bandit Data": of_clicks,
    **{world: lambda seed, w=world: of_classification(w, seed) for world in classification.WORLDS},
}


def every(seed: int, skipped: list[str]) -> list[dict[str, Any]]:
    """All of them but those that cannot be downloaded, whose reasons are added to ``skipped``."""
    made = []
    for world in LOGS:
        try:
            made.append(measure(world, seed))
        except RegistryUnreachable as reason:
            skipped.append(f"c4b plan on {world}: {reason}")
    return made


def measure(world: str, seed: int) -> dict[str, Any]:
    """One command."""
    given = LOGS[world](seed)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        given.frame.write_parquet(log)
        options = [part for name in given.context for part in ("--context", name)]
        command = ["plan", str(log), "--baseline", given.baseline, "--json", *options]
        answer, spent = measured(command)
    told = json.loads(answer)
    return {
        "world": world,
        "seed": seed,
        "rows": len(given.frame),
        "features": told["proposal"]["dim"],
        **spent,
        "verdict": told["verdict"],
    }
