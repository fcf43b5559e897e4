"""How often the set `bounded-3` loses the truth, in designs that are hard on it. Prints JSON lines.

    python benchmarks/bounded_coverage.py [--episodes 10000] [--rows 400] [--seed 7100000]

A miss is an episode in which theta* left the set after some row, in which the alarm came although
means are linear, or in which the two sums of rewards left the region of their total means; a share of
delta of them is allowed.
Designs: an adversary who knows theta* and repeats the feature whose mean is overestimated most; a greedy
bandit; features at random. Rewards: 0 or 1, or uniform between 0 and twice the mean (where that is within
the range, else the mean itself). Rates: mean rewards of about .5 % to 90 %.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import c4b
from c4b._compilation.jit import allocating
from c4b._validate import Array
from c4b.evidence.absorption import absorb, empty
from c4b.evidence.bounds import contains
from c4b.evidence.ellipsoids import ALARM, opened
from c4b.evidence.sums.joint_totals import (
    OTHER_LOGS,
    OTHER_POWERS,
    OTHER_RISES,
    OWN_LOGS,
    OWN_POWERS,
    OWN_RISES,
    line_below,
)
from c4b.evidence.sums.totals import CLICKS, OTHER_CLICKS, ROWS
from c4b.study.results.intervals import binomial_upper

ADVERSARY, GREEDY, RANDOM = 0, 1, 2
DESIGNS = {"adversary": ADVERSARY, "greedy": GREEDY, "random": RANDOM}
RATES = (0.005, 0.03, 0.1, 0.3, 0.9)
DELTAS = (0.05, 0.5)
LEVEL = 0.99


@allocating
def missed(flat: Array, pool: Array, theta: Array, draws: Array, design: int, two_point: bool) -> int:
    """One episode from an empty ``flat``; pool (K, d), theta (d,), draws (n, 2) uniform. Returns 1 when
    theta has left the set, 2 when an alarm came first, 3 when sums of rewards did, else 0."""
    dim, own, others = len(theta), 0.0, 0.0
    region, data, _ = opened(flat)
    for n in range(len(draws)):
        best, chosen = -np.inf, int(draws[n, 1] * len(pool))
        if design != RANDOM and n % 2 == 1:
            for k in range(len(pool)):
                score = 0.0
                for i in range(dim):
                    estimate = 0.0
                    for j in range(dim):
                        estimate += region.basis[j, i] * region.estimate[0, j]
                    score += pool[k, i] * (estimate - theta[i] if design == ADVERSARY else estimate)
                if score > best:
                    best, chosen = score, k
        mean = 0.0
        for i in range(dim):
            mean += pool[chosen, i] * theta[i]
        y = mean
        if two_point:
            y = 1.0 if draws[n, 0] < mean else 0.0
        elif mean <= 0.5:
            y = 2.0 * mean * draws[n, 0]
        rows = region.totals[ROWS]
        absorb(flat, pool[chosen], y)
        if region.totals[ROWS] > rows:
            own += mean
        else:
            others += mean
        if not contains(region, data, theta):
            return 1
        if data.tally[ALARM] != 0.0:
            return 2
        fall, start, _ = line_below(
            region.totals[OTHER_CLICKS], others, OTHER_RISES, OTHER_POWERS, OTHER_LOGS
        )
        own_fall, own_start, _ = line_below(region.totals[CLICKS], own, OWN_RISES, OWN_POWERS, OWN_LOGS)
        level = region.totals[len(region.totals) - 1]
        if (start - fall * others) + (own_start - own_fall * own) > level:
            return 3
    return 0


def cells(designs: list[str], episodes: int, rows: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row for each design, kind of reward, rate, number of features and delta."""
    for name in designs:
        for two_point in (True, False):
            for rate in RATES:
                for dim in (1, 3):
                    for delta in DELTAS:
                        where = {"design": name, "two_point": two_point, "rate": rate, "dim": dim}
                        yield {**where, **_counted(episodes, rows, seed, where, delta)}


def _counted(episodes: int, rows: int, seed: int, where: dict[str, Any], delta: float) -> dict[str, Any]:
    dim, rate, design = where["dim"], where["rate"], DESIGNS[where["design"]]
    theta = rate * np.r_[1.0, np.zeros(dim - 1)]
    if dim > 1:
        theta[1] = min(0.3 * rate, 1.0 - rate)
    corners = np.r_[np.eye(dim)[1:], -np.eye(dim)[1:], np.zeros((1, dim))]
    pool = np.ascontiguousarray(np.c_[np.ones(len(corners)), corners[:, 1:]])
    start = empty(c4b.LinearModel.bounded(dim, 1.0, delta=delta))
    counts = [0, 0, 0, 0]
    for episode in range(episodes):
        draws = np.random.default_rng([seed, episode, design, dim]).random((rows, 2))
        counts[missed(start.copy(), pool, theta, draws, design, where["two_point"])] += 1
    misses = counts[1] + counts[2] + counts[3]
    bound = binomial_upper(misses, episodes, LEVEL)
    found = {"misses": misses, "false_alarms": counts[2], "sums": counts[3], "miss_bound_99": bound}
    return {"delta": delta, "episodes": episodes, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7_100_000)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    arguments = parser.parse_args()
    started = time.perf_counter()
    for row in cells(arguments.designs, arguments.episodes, arguments.rows, arguments.seed):
        print(json.dumps(row), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - started, 1)}))


if __name__ == "__main__":
    main()
