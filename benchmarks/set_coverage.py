"""Coverage at scale in the hardest settings of the study. Prints JSON lines.

    python benchmarks/set_coverage.py [--episodes 25000] [--jobs N]

Both histories, the smallest and the largest candidate radius, the larger noise: four settings, so the
default is 100 000 episodes a method. A *miss* is an episode in which theta left the confidence set at
some round; the guarantee allows a share of delta of them. A violation of the constraint may occur in a
miss only: ``on_covered`` must be 0, and the smallest D - B over covered paths must not be negative.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import binomial_upper
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting

METHODS = (
    Method("refresh, mixture", "refresh", "mixture"),
    Method("refresh, constrained", "refresh", "constrained"),
    Method("refresh, unbiased", "refresh", "unbiased"),
    Method("reserve-c4b+", "reserve-c4b+"),
)
SETTINGS = tuple(
    Setting(history=history, rho=rho, sigma=0.3)
    for history in ("baseline", "diverse")
    for rho in (0.15, 0.8)
)
CHUNK = 100
NEEDED = [Metric.VIOLATION, Metric.COVERED, Metric.MIN_SLACK]
LEVEL = 0.99
"""One-sided level of the binomial bounds."""


def coverage(episodes: int, seed: int = 4_100_000, jobs: int = 1) -> Iterator[dict[str, Any]]:
    """One row for each setting and method, then one for each method over all settings."""
    study = Study("coverage", "Coverage at scale", METHODS, SETTINGS, ("history", "rho"), episodes, seed)
    starts = range(0, episodes, CHUNK)
    with ThreadPoolExecutor(jobs) as pool:
        chunks = pool.map(lambda at: _kept(study, at, min(at + CHUNK, episodes)), starts)
        metrics = np.concatenate(list(chunks))
    for m, method in enumerate(METHODS):
        for s, setting in enumerate(SETTINGS):
            where = {"history": setting.history, "rho": setting.rho, "sigma": setting.sigma}
            yield {"method": method.label, **where, **_counted(metrics[:, s, m], setting.delta)}
        together = metrics[:, :, m].reshape(-1, len(NEEDED))
        yield {"method": method.label, "history": "all", **_counted(together, SETTINGS[0].delta)}


def _kept(study: Study, start: int, stop: int) -> np.ndarray[Any, Any]:
    return simulate(study, start, stop).metrics[..., NEEDED]


def _counted(rows: np.ndarray[Any, Any], delta: float) -> dict[str, Any]:
    failed, covered, slack = rows[:, 0] != 0.0, rows[:, 1] != 0.0, rows[:, 2]
    misses = int((~covered).sum())
    return {
        "episodes": len(rows),
        "misses": misses,
        "miss_rate": misses / len(rows),
        "miss_bound_99": binomial_upper(misses, len(rows), LEVEL),
        "delta": delta,
        "violations": int(failed.sum()),
        "on_covered": int((failed & covered).sum()),
        "min_slack": float(slack[covered].min()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=25_000, help="per setting")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    started = time.perf_counter()
    for row in coverage(arguments.episodes, jobs=arguments.jobs):
        print(json.dumps(row))
    print(json.dumps({"seconds": round(time.perf_counter() - started, 1), "jobs": arguments.jobs}))


if __name__ == "__main__":
    main()
