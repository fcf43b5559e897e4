"""A small SQLite store with many kinds of deployments and entries, and how its deployments go on.

``tests/deployment/data/written_by_0_1.db`` and the ``.json`` beside it were written by version 0.1.0 with

    python tests/support/old_store.py tests/deployment/data/written_by_0_1

It uses only what every version offers, so that any version can write such a store and go on with it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b import Deployment, LinearModel

DIM = 3
BASELINE = np.array([1.0, 0.0, 0.0])
THETA = np.array([0.6, 0.3, -0.2])
START = 4_000_000_000.0
"""Seconds since 1970 by the deployments' clocks, after any real creation; hashes cover the time."""
DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "refresh": {"policy": "refresh"},
    "recommended": {"policy": "reserve-c4b+"},
    "revalue": {"policy": "revalue", "absorb": "on-arrival"},
    "separate": {"policy": "separate", "outcome_timeout": 40.0, "timeout_reward": 0.0},
    "constrained": {"policy": "checkpoints", "confidence": "constrained", "outcome_timeout": 60.0},
    "ungated": {"policy": "linucb", "confidence": "mixture"},
}


def model(confidence: str | None) -> LinearModel:
    options: dict[str, Any] = {} if confidence is None else {"confidence": confidence}
    return LinearModel(dim=DIM, noise=0.1, norm_bound=1.0, misspecification=0.001, **options)


def set_clock(dep: Any, seconds: float) -> None:
    holder = dep._session if hasattr(dep, "_session") else dep._transactor
    holder.clock = lambda: START + seconds


def reward(played: NDArray[np.float64], rng: np.random.Generator) -> float:
    return float(sum(a * b for a, b in zip(played.tolist(), THETA.tolist(), strict=True))) + float(
        0.1 * rng.normal()
    )


def go_on(dep: Deployment, rounds: int, seed: int) -> None:
    """Decisions alone and together, outcomes late, lost and overdue, other executions."""
    rng, start = np.random.default_rng(seed), 1000.0 * seed
    late: list[tuple[str, float]] = []
    for n in range(rounds):
        set_clock(dep, start + 10.0 * n)
        candidates = BASELINE + 0.2 * rng.normal(size=(int(rng.integers(0, 4)), DIM))
        pairs = [(candidates, BASELINE)] * (2 if n % 5 == 4 else 1)
        ids = [f"{seed}-{n}-{k}" for k in range(len(pairs))]
        for made in dep.decide_many(pairs, ids, [{"round": n}] * len(pairs)):
            played = BASELINE if made.action is None else candidates[made.action]
            if n % 6 == 2:
                played = BASELINE if n % 4 else np.array([1.0, 0.05, 0.05])
                dep.executed(made.id, None if n % 4 else played)
            late.append((made.id, reward(played, rng)))
        if n % 3:
            decision, value = late.pop(int(rng.integers(len(late))))
            if n % 7 == 4:
                dep.forget(decision)
            elif dep.record(decision).outcome == "pending":
                dep.observe(decision, value)


def write(url: str) -> None:
    for seed, (name, options) in enumerate(DEPLOYMENTS.items()):
        terms = {**options, "alpha": 0.1, "reserve": 0.3, "snapshot_every": 9}
        with Deployment.create(url, name, model(terms.pop("confidence", None)), **terms) as dep:
            set_clock(dep, 0.0)
            rng = np.random.default_rng(seed)
            history = BASELINE + 0.1 * rng.normal(size=(4, DIM))
            dep.learn(history, [reward(row, rng) for row in history], request_id="history")
            go_on(dep, 14, 1 + seed)


def continued(url: str) -> dict[str, Any]:
    """What becomes of every deployment in the store, as plain data: exact numbers as hexadecimal text."""
    report = {}
    for seed, name in enumerate(DEPLOYMENTS):
        with Deployment.open(url, name, snapshot_every=9) as dep:
            last = dep.state().seq
            go_on(dep, 10, 101 + seed)
            made = [record.decision for record in dep.decisions(after=last)]
            numbers = [(d.bank_before, d.bank, d.certificate, d.ucb, d.radius) for d in made]
            report[name] = {
                "decisions": [[d.id, d.action, d.alarm] for d in made],
                "numbers": [[float(value).hex() for value in row] for row in numbers],
                "hash": dep.state().hash,
                "pending": dep.state().pending,
            }
    return report


def main(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        write(f"sqlite:///{file}")
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        with sqlite3.connect(file, isolation_level=None) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        shutil.copy(file, f"{path}.db")
        Path(f"{path}.json").write_text(json.dumps(continued(f"sqlite:///{file}"), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
