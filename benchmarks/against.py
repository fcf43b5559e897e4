"""Measures this tree and another commit alternately in one run, and compares their ratios.

    python benchmarks/against.py REV [online study] [--times 5] [--quick] [--threshold 5]

Every turn runs each benchmark once with the code of this tree and once with the code of REV (each tree
its own script), in changing order, so that a slow minute of the machine meets both. Prints JSON: the
medians, and the change as the median over the turns. The exit code is 1 if a ratio is worse than that
of REV by more than the threshold. The first turn also compiles the kernels of REV, outside the timings.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compare
import machine
import run

Ratios = dict[str, tuple[float, bool]]


@contextlib.contextmanager
def worktree(rev: str) -> Iterator[Path]:
    """The files of a commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="c4b-against-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(machine.ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), rev], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measure(tree: Path, name: str, quick: bool) -> Ratios:
    with contextlib.redirect_stdout(sys.stderr):  # standard output holds the comparison alone
        return compare.ratios(name, run.printed(tree, name, quick))


def summary(turns: list[tuple[Ratios, Ratios]], threshold: float) -> Iterator[dict[str, Any]]:
    """One row for each ratio that both trees measure; ``turns`` holds pairs (this tree, REV)."""
    for label, (_, higher_is_better) in turns[0][0].items():
        if label not in turns[0][1]:
            continue
        pairs = [(ours[label][0], theirs[label][0]) for ours, theirs in turns]
        worse = [compare.percent_worse(b, a, higher_is_better) for a, b in pairs]
        yield {
            "ratio": label,
            "this_tree": round(statistics.median(a for a, _ in pairs), 3),
            "rev": round(statistics.median(b for _, b in pairs), 3),
            "percent_worse": round(statistics.median(worse), 1),
            "percent_worse_by_turn": [round(value, 1) for value in worse],
            "too_slow": statistics.median(worse) > threshold,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rev", help="a commit of this repository")
    parser.add_argument("names", nargs="*", default=["online", "study"], help="default: online study")
    parser.add_argument("--times", type=int, default=5, help="turns, default 5")
    parser.add_argument("--quick", action="store_true", help="a short check that it runs")
    parser.add_argument("--threshold", type=float, default=5.0, help="percent, default 5")
    options = parser.parse_args()
    turns: dict[str, list[tuple[Ratios, Ratios]]] = {name: [] for name in options.names}
    described = machine.describe()
    with worktree(options.rev) as other:
        for turn in range(options.times):
            for name in options.names:
                order = (machine.ROOT, other) if turn % 2 else (other, machine.ROOT)
                measured = {tree: measure(tree, name, options.quick) for tree in order}
                turns[name].append((measured[machine.ROOT], measured[other]))
    described["load_afterwards"] = machine.load()
    rows = {name: list(summary(each, options.threshold)) for name, each in turns.items()}
    alone = [label for ((ours, theirs), *_) in turns.values() for label in ours.keys() ^ theirs.keys()]
    heading = {"rev": options.rev, "turns": options.times, "machine": described}
    print(json.dumps({**heading, "in_one_tree_only": alone, **rows}, indent=1))
    return int(any(row["too_slow"] for each in rows.values() for row in each))


if __name__ == "__main__":
    sys.exit(main())
