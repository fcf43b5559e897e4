"""How long a deployment with very many open decisions takes to open, on both stores.

    python benchmarks/pending.py [--decisions 100900] [--folder DIR]

Prints one line of JSON for each store: the median wall and processor seconds of opening and asking for
the state, and the same for a deployment with a hundred open decisions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from c4b import Deployment
from deployment import BASELINE, MODEL, pools, postgresql

AT_ONCE = 5000


def fill(url: str, name: str, decisions: int) -> None:
    candidates = pools(np.random.default_rng(0), 1)[0]
    with Deployment.create(url, name, MODEL, "reserve-c4b+") as dep:
        for start in range(0, decisions, AT_ONCE):
            dep.decide_many([(candidates, BASELINE)] * min(AT_ONCE, decisions - start))


def opened(url: str, name: str, decisions: int) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    with Deployment.open(url, name) as dep:
        assert dep.state().pending == decisions
    return time.perf_counter() - wall, time.process_time() - processor


def report(store: str, url: str, decisions: int, repetitions: int) -> dict[str, Any]:
    sizes = {"few": 100, "many": decisions}
    for name, size in sizes.items():
        fill(url, name, size)
    times = [{name: opened(url, name, size) for name, size in sizes.items()} for _ in range(repetitions)]
    wall = {name: [each[name][0] for each in times] for name in sizes}
    return {
        "store": store,
        "open decisions": decisions,
        "opening, s (target < 2)": round(statistics.median(wall["many"]), 3),
        "slowest of all, s": round(max(wall["many"]), 3),
        "processor time, s": round(statistics.median(each["many"][1] for each in times), 3),
        "opening with 100 open decisions, s": round(statistics.median(wall["few"]), 3),
        "repetitions": repetitions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--decisions", type=int, default=100_900)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=None, help="where files are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="c4b-bench-") as folder:
        url = f"sqlite:///{folder}/pending.db"
        print(json.dumps(report("sqlite", url, options.decisions, options.repetitions)), flush=True)
        with postgresql() as url:
            print(json.dumps(report("postgresql", url, options.decisions, options.repetitions)))


if __name__ == "__main__":
    main()
