"""Run every world on real data; write results.json and index.html.

    python benchmarks/realdata/run.py [--seeds 10] [--first-seed 100] [--plans 10] [--quick]

Features and constants were chosen on seeds below 10; the page reports seeds from 100 on.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from realdata import classification, movielens, open_bandit, page, plan_commands, plans, trials
from realdata.datasets import RegistryUnreachable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/realdata"))
    parser.add_argument(
        "--plans", type=int, default=10, help="seeds of MovieLens that are planned, too; of others three"
    )
    parser.add_argument("--quick", action="store_true", help="two seeds and few rounds")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + (2 if given.quick else given.seeds))
    short: dict[str, Any] = {"rounds": 500} if given.quick else {}
    jobs: list[tuple[str, Callable[[int], list[Any]]]] = [
        ("MovieLens", lambda seed: movielens.run(seed, **short)),
        ("trials", trials.run),
    ]
    for name in classification.WORLDS:
        jobs.append((name, lambda seed, name=name: classification.run(name, seed, **short)))
    results: dict[str, Any] = {"outcomes": [], "skipped": [], "open_bandit": None}
    for name, job in jobs:
        began = time.monotonic()
        try:
            for seed in seeds:
                results["outcomes"] += [each.as_dict() for each in job(seed)]
        except RegistryUnreachable as reason:
            results["skipped"].append(f"{name}: {reason}")
            print(f"skipped {name}: {reason}", file=sys.stderr)
            continue
        print(f"{name}: {len(seeds)} seeds, {time.monotonic() - began:.0f} s", file=sys.stderr)
    try:
        results["open_bandit"] = {**open_bandit.run(), "plan": open_bandit.plan()}
    except RegistryUnreachable as reason:
        results["skipped"].append(f"Open Bandit Data: {reason}")
        print(f"skipped Open Bandit Data: {reason}", file=sys.stderr)
    save(results, given.out)
    began = time.monotonic()
    planned = [row for row in results["outcomes"] if row["seed"] < seeds[0] + plans_of(row, given)]
    results["plans"] = plans.compare(planned)
    print(f"{len(results['plans'])} plans, {time.monotonic() - began:.0f} s", file=sys.stderr)
    results["commands"] = [] if given.quick else plan_commands.every(seeds[0], results["skipped"])
    save(results, given.out)
    print(given.out / "index.html")


def plans_of(row: dict[str, Any], given: argparse.Namespace) -> int:
    """How many seeds of a world are planned."""
    if given.quick:
        return 0
    return int(given.plans) if row["world"] == movielens.WORLD else min(3, given.plans)


def save(results: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "benchmarks/realdata/run.py", *sys.argv[1:]])
    (folder / "results.json").write_text(json.dumps({"command": command, **results}))
    (folder / "index.html").write_text(page.write(results, command), encoding="utf-8")


if __name__ == "__main__":
    main()
