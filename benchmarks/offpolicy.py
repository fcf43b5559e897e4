"""The off-policy gate on its home world (tests/support/log_world.py): prints JSON.

    python benchmarks/offpolicy.py [first seed]

48 logs of 4000 rows whose policy is better than the incumbent, 200 each whose policy is worse or
exactly at the edge, and the time for one log of 100,000 rows.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from c4b.offpolicy import evaluate
from support.log_world import MAX_WEIGHT, greedy_value, log_world

WRONG = 200


def main(first: int) -> None:
    seeds = range(first, first + 48)
    better = [evaluate(*log_world(s), max_weight=MAX_WEIGHT) for s in seeds]
    rows = [r.deployed_at_row if r.deployed_at_row is not None else np.inf for r in better]
    truth = greedy_value() - 0.95 * 0.5
    edge = greedy_value() / 0.5
    seeds = range(first, first + WRONG)
    worse = sum(evaluate(*log_world(s, anti_greedy=True), max_weight=MAX_WEIGHT).deploy for s in seeds)
    at_edge = sum(evaluate(*log_world(s), max_weight=MAX_WEIGHT, fraction=edge).deploy for s in seeds)
    weights, rewards = log_world(first, rows=100_000)
    began = time.perf_counter()
    evaluate(weights, rewards, max_weight=MAX_WEIGHT)
    result = {
        "deployed": f"{sum(r.deploy for r in better)} of 48",
        "median_row": float(np.median(rows)),
        "bounds_missed": sum(not r.lower <= truth <= r.upper for r in better),
        "false_deployments_of_a_worse_policy": f"{worse} of {WRONG}",
        "false_deployments_at_the_edge": f"{at_edge} of {WRONG}",
        "seconds_for_100000_rows": round(time.perf_counter() - began, 2),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
