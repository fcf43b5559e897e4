"""A SQLite store and a state file of policies that were gates in Python, and how each of them goes on.

``tests/deployment/data/written_by_gates.db`` and the files beside it were written by a version in
which ``cucb``, ``cucb-unknown``, ``budget-first`` and ``budget-first-arms`` were gates in Python, with

    python tests/support/old_gates_store.py tests/deployment/data/written_by_gates

They are compositions since; what the gates have recorded goes on as it was.
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

from c4b import Deployment, LinearModel, Policy

DIM = 3
ARMS = np.eye(DIM)
MEANS = np.array([0.5, 0.6, 0.4])
MODEL = LinearModel(dim=DIM, noise=0.05, norm_bound=1.0)
POLICIES: dict[str, dict[str, Any]] = {
    "cucb": {},
    "cucb-unknown": {},
    "budget-first": {"horizon": 200, "reserve": 400.0},
    "budget-first-arms": {"horizon": 200, "reserve": 40.0},
}
ROUNDS = 24


def _told(name: str) -> float | None:
    return None if name == "cucb-unknown" else float(MEANS[0])


def go_on(dep: Deployment, name: str, seed: int) -> None:
    """Decisions with their outcomes, some late, one executed otherwise."""
    rng = np.random.default_rng(seed)
    for n in range(ROUNDS):
        made = dep.decide(ARMS[1:], ARMS[0], request_id=f"{seed}-{n}", baseline_mean=_told(name))
        played = 0 if made.action is None else made.action + 1
        if n % 10 == 7:
            played = 2
            dep.executed(made.id, ARMS[2])
        dep.observe(made.id, float(MEANS[played] + 0.05 * rng.normal()))


def write(url: str) -> None:
    for seed, (name, terms) in enumerate(POLICIES.items()):
        options: dict[str, Any] = {"alpha": 0.2, "reserve": 0.5, "snapshot_every": 9, **terms}
        with Deployment.create(url, name, MODEL, policy=name, **options) as dep:
            dep.learn(ARMS, MEANS, request_id="history")
            go_on(dep, name, 1 + seed)


def continued(url: str) -> dict[str, Any]:
    """Action and bank of every further decision, as plain data: exact numbers as hexadecimal text."""
    report = {}
    for seed, name in enumerate(POLICIES):
        with Deployment.open(url, name, snapshot_every=9) as dep:
            last = dep.state().seq
            go_on(dep, name, 101 + seed)
            made = [record.decision for record in dep.decisions(after=last)]
            report[name] = [[d.action, float(d.bank).hex()] for d in made]
    return report


def save(path: Path) -> None:
    """A policy ``cucb`` in the middle of its life."""
    policy, rng = Policy("cucb", MODEL, alpha=0.2), np.random.default_rng(5)
    for _ in range(ROUNDS):
        made = policy.decide(ARMS[1:], ARMS[0], _told("cucb"))
        played = 0 if made.action is None else made.action + 1
        policy.observe(made.id, float(MEANS[played] + 0.05 * rng.normal()))
    policy.save(path)


def banks(path: Path) -> list[str]:
    """How it goes on."""
    policy = Policy.load(path)
    return [float(policy.decide(ARMS[1:], ARMS[0], _told("cucb")).bank).hex() for _ in range(4)]


def main(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        write(f"sqlite:///{file}")
        for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            with sqlite3.connect(file, isolation_level=None) as connection:
                connection.execute(statement)
            connection.close()
        shutil.copy(file, f"{path}.db")
        saved = Path(f"{path}.c4b")
        save(saved)
        report = {"deployments": continued(f"sqlite:///{file}"), "policy": banks(saved)}
        Path(f"{path}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
