"""The command ``c4b plan`` on each data set, in a process of its own: what it says, its time and memory.

Logs are what a team would have: rows in which one of the actions was drawn at random. The trials and the
Open Bandit sample are such logs; for the classification sets a class is drawn, and for MovieLens one of
the ten films that a row offers.

    python benchmarks/realdata/plan_commands.py [--seed 100]

prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
from realdata import classification, movielens, open_bandit, trials
from realdata.datasets import RegistryUnreachable
from streaming import measured

MOVIELENS_ROWS = 20_000


class PlannedLog(NamedTuple):
    frame: pl.DataFrame
    baseline: str = ""
    context: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    """Options of the command, with the names of columns."""


def of_trial(given: Callable[[], tuple[Any, Any]], seed: int) -> PlannedLog:
    actions, rewards = given()
    order = np.random.default_rng([seed, 5]).permutation(len(actions))
    return PlannedLog(pl.DataFrame({"action": actions[order], "reward": rewards[order]}), "0")


def of_clicks(seed: int) -> PlannedLog:
    return PlannedLog(*open_bandit.log())


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
    frame = movielens.randomised_log(seed, MOVIELENS_ROWS)
    names = (("reward", "liked"), ("action", "shown"), ("candidates", "films"), ("vectors", "features"))
    return PlannedLog(frame, columns=(*names, ("incumbent", "popular")))


LOGS: dict[str, Callable[[int], PlannedLog]] = {
    "MovieLens": of_movielens,
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
        named = [*given.columns, *(("context", name) for name in given.context)]
        options = [part for option, name in named for part in (f"--{option}", name)]
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=100)
    skipped: list[str] = []
    print(json.dumps({"commands": every(parser.parse_args().seed, skipped), "skipped": skipped}))
