"""Bytes and computing time of a decision in a journal: K candidates, d features, every way of keeping it.

    python benchmarks/storage.py [--rounds 200] [--json]

Features of two kinds: ``numbers``, all random (nothing to compress but exponents), and ``items``, an
intercept, a one-hot category and an embedding of 4 numbers in single precision, as shops have them. The
bytes are those of the rows of a decision and of its outcome. The time is processor time of ``decide`` and
``observe`` in a store in memory, median, in milliseconds: a commit comes on top, the same for all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from typing import Any

import numpy as np

from c4b import Deployment, LinearModel
from c4b.journal import open_backend

SIZES = ((10, 5), (32, 5), (100, 20), (1000, 50))
WAYS: dict[str, dict[str, Any]] = {
    "everything": {},
    "compressed": {"compress": True},
    "executed": {"records": "executed"},
    "executed, compressed": {"records": "executed", "compress": True},
}


def features(kind: str, rng: np.random.Generator, count: int, dim: int) -> np.ndarray[Any, Any]:
    if kind == "numbers":
        return rng.normal(size=(count, dim)) / np.sqrt(dim)
    x = np.zeros((count, dim))
    x[:, 0] = 1.0
    x[:, -4:] = rng.normal(size=(count, 4)).astype(np.float32) / 4.0
    if dim > 5:
        x[np.arange(count), rng.integers(1, dim - 4, count)] = 1.0
    return x


def measured(kind: str, way: dict[str, Any], size: tuple[int, int], rounds: int) -> dict[str, float]:
    count, dim = size
    rng, times = np.random.default_rng(0), []
    model = LinearModel(dim=dim, noise=0.1, norm_bound=1.0)
    url = f"memory://{uuid.uuid4()}"
    with Deployment.create(url, "shop", model, reserve=2.0, **way) as dep:
        for n in range(rounds):
            pool = features(kind, rng, count, dim)
            start = time.process_time()
            made = dep.decide(pool, pool[0], request_id=f"visit-{n}", context={"user": f"u-{n}"})
            dep.observe(made.id, float(rng.normal(0.5, 0.1)))
            times.append(time.process_time() - start)
    with open_backend(url).reading("shop") as journal:
        entries = journal.range(1, 2 * rounds, 2 * rounds)
    columns = 32 + 40  # the hash of the entry before, numbers and times
    kept = sum(
        len(each.payload) + len(each.kind) + len(each.request_id or "") + columns for each in entries
    )
    return {"bytes": kept / rounds, "milliseconds": 1000.0 * statistics.median(times[rounds // 10 :])}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = {
        f"{kind}, K={size[0]}, d={size[1]}": {
            name: measured(kind, way, size, given.rounds) for name, way in WAYS.items()
        }
        for kind in ("numbers", "items")
        for size in SIZES
    }
    if given.json:
        print(json.dumps(results, indent=2))
        return
    print(f"| features | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}")
    for name, row in results.items():
        cells = [f"{each['bytes'] / 1000:.1f} kB, {each['milliseconds']:.2f} ms" for each in row.values()]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
