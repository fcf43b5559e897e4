"""Certified bounds against exact ones on data that are hard on float64; prints JSON.

    python benchmarks/hostile.py [--configurations 2000] [--first-seed N]

``false_bounds`` and ``missed`` must be 0: a certified bound beyond the exact set of the same rows, and a
theta of the exact set outside of the certified bounds. ``width`` is certified over exact width, in the
median, by the power of ten of the condition. Progress goes to standard error.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.hostile_data import CONFIDENCES, draw, issue_world, judge

MANY = 100_000
"""Updates of every hundredth configuration at most."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", type=int, default=2000)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    configurations, first = asked.configurations, asked.first_seed
    counts: Counter[str] = Counter()
    seeds, widths = [], defaultdict(list)
    for seed in range(first, first + configurations):
        world = draw(seed, largest=5, most_rows=MANY) if seed % 100 == 99 else draw(seed)
        for rows in sorted({len(world.rewards) // 2, len(world.rewards)}):
            verdict = judge(world, rows, seed)
            counts["bounds"] += verdict.checked
            counts["false_bounds"] += verdict.false_bounds
            counts["missed"] += verdict.missed_truth
            counts["false_alarms"] += verdict.false_alarm
            if verdict.false_bounds or verdict.missed_truth or verdict.false_alarm:
                seeds.append(seed)
            widths[int(np.log10(verdict.condition))].append(verdict.ratio)
        if (seed + 1 - first) % 50 == 0:
            print(f"{seed + 1 - first} of {configurations}: {dict(counts)}", file=sys.stderr, flush=True)
    collinear: Counter[str] = Counter()
    for confidence in CONFIDENCES:
        for size in (1e4, 2e4, 5e4, 1e5, 2e5, 3e5):
            for seed in range(20):
                verdict = judge(
                    issue_world(confidence, size, 0.01 if seed % 2 else 1.0, seed), 1000, seed
                )
                collinear["runs"] += 1
                collinear["missed"] += bool(verdict.missed_truth or verdict.false_bounds)
    report = {
        "configurations": configurations,
        **{name: counts[name] for name in ("bounds", "false_bounds", "missed", "false_alarms")},
        "seeds": sorted(set(seeds)),
        "collinear": dict(collinear),
        "width": {f"1e{power}": float(np.median(ratios)) for power, ratios in sorted(widths.items())},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
