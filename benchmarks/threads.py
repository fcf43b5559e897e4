"""Threads that share one deployment against a single thread, side by side in one run; prints JSON.

    python benchmarks/threads.py [--threads 16] [--rounds 400] [--folder FOLDER] [--delay-ms 2]

Every thread decides and reports the outcome, over and over. Portions of one thread and of many take
turns, because a shared disk changes from second to second; ``ratio`` is the median of the quotients of
neighbours. ``decide_ms`` is the time of a decision by one thread. A commit on a fast disk costs hardly
anything, so sharing gains little there: with ``--delay-ms`` every commit to the real store waits so much
longer, as for a disk or a server that is farther away.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from c4b import Deployment, LinearModel
from c4b.journal.backend_registry import open_backend

DIM, SIZE = 5, 32


class SlowCommits:
    """A real store whose commits take longer."""

    def __init__(self, backend: Any, seconds: float) -> None:
        self._backend, self._seconds = backend, seconds

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        if name != "append_if_head":
            return found

        def slow(*arguments: Any) -> Any:
            time.sleep(self._seconds)
            return found(*arguments)

        return slow

    def writing(self, name: str) -> Any:
        time.sleep(self._seconds)
        return self._backend.writing(name)


def portion(dep: Deployment, pools: np.ndarray[Any, Any], threads: int, rounds: int) -> float:
    """Rounds in a second: decide and observe."""
    baseline = np.eye(DIM)[0]

    def work(thread: int) -> None:
        for n in range(rounds // threads):
            decision = dep.decide(pools[(thread + n) % len(pools)], baseline)
            dep.observe(decision.id, 1.0)

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(work, range(threads)))
    return rounds // threads * threads / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--portions", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--delay-ms", type=float, default=2.0)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    pools = np.concatenate(
        [np.ones((64, SIZE, 1)), 0.2 * rng.standard_normal((64, SIZE, DIM - 1))], axis=2
    )
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        backend: Any = open_backend(f"sqlite:///{scratch}/shop.db", create=True)
        if given.delay_ms:
            backend = SlowCommits(backend, given.delay_ms / 1e3)
        model = LinearModel(dim=DIM, noise=0.3, norm_bound=1.5)
        with Deployment.create(backend, "shop", model) as dep:
            dep.learn(np.tile(np.eye(DIM)[0], (20, 1)), np.ones(20))
            portion(dep, pools, 1, 50)
            started = time.perf_counter()
            for n in range(20):
                dep.decide(pools[n], np.eye(DIM)[0])
            one = (time.perf_counter() - started) / 20
            ones, many = [], []
            for _ in range(given.portions):
                ones.append(portion(dep, pools, 1, max(given.rounds // 8, 20)))
                many.append(portion(dep, pools, given.threads, given.rounds))
        backend.close()
    report = {
        "threads": given.threads,
        "delay_ms": given.delay_ms,
        "decide_ms": round(1e3 * one, 2),
        "rounds_a_second_of_one": round(statistics.median(ones)),
        "rounds_a_second_of_all": round(statistics.median(many)),
        "ratio": round(statistics.median(b / a for a, b in zip(ones, many, strict=True)), 2),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
