"""Compares stored benchmark results: every ratio side by side, and which ones got worse.

    python benchmarks/compare.py BEFORE AFTER [--threshold 5]

BEFORE and AFTER are two files written by ``run.py``, or two folders of them; in a folder the newest
result of each benchmark counts. The exit code is 1 if a ratio is worse by more than the threshold.
Needs the standard library only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HIGHER_IS_BETTER = {
    "online": {"ratio": False},
    "pools": {"ratio": False},
    "study": {"times_faster": True},
    "deployment": {
        "share of the bare rate": True,
        "share of the least possible": True,
        "decide_many against single": True,
    },
    "service": {"ratio": True, "p99_over_median": False},
}
"""The ratios of each benchmark by the beginning of their field's name, and which direction is better."""

CONTEXT = ("what", "store", "policy", "K", "d")
"""Fields that say which measurement a row is."""


def ratios(benchmark: str, rows: list[Any]) -> dict[str, tuple[float, bool]]:
    """By label: the ratio, and whether a higher one is better."""
    return {label: (value, better) for row in rows for label, value, better in _walk(benchmark, row, "")}


def _walk(benchmark: str, row: dict[str, Any], path: str) -> Iterator[tuple[str, float, bool]]:
    context = [f"{key}={row[key]}" if key in "Kd" else str(row[key]) for key in CONTEXT if key in row]
    here = ", ".join(filter(None, [path, *context]))
    for key, value in row.items():
        known = HIGHER_IS_BETTER.get(benchmark, {})
        better = next((up for name, up in known.items() if key.startswith(name)), None)
        number = value.get("median") if isinstance(value, dict) else value
        if better is not None and isinstance(number, int | float):
            yield f"{here}: {key}", float(number), better
        elif isinstance(value, dict):
            yield from _walk(benchmark, value, ", ".join(filter(None, [here, key])))


def percent_worse(before: float, after: float, higher_is_better: bool) -> float:
    """By how many percent the second ratio is worse than the first; negative if it is better."""
    return 100.0 * (before / after - 1.0 if higher_is_better else after / before - 1.0)


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Results by benchmark: of one file, or the newest ones of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    results = sorted((json.loads(file.read_text()) for file in files), key=lambda r: r["machine"]["date"])
    return {result["benchmark"]: result for result in results}


def compare(before: dict[str, Any], after: dict[str, Any], threshold: float) -> bool:
    """Print one benchmark's ratios; True if one got worse by more than the threshold."""
    name = before["benchmark"]
    print(f"\n{name}: {_origin(before)} -> {_origin(after)}")
    for what in ("cpu", "cores", "python", "numpy", "numba", "blas"):
        one, other = before["machine"].get(what), after["machine"].get(what)
        if one != other:
            print(f"  note: {what} differs: {one} -> {other}")
    if before["quick"] or after["quick"]:
        print(
            "  note: measured with --quick, which checks that a benchmark runs, not how fast the code is"
        )
    old, new = ratios(name, before["rows"]), ratios(name, after["rows"])
    worse = False
    print(f"  {'before':>9} {'after':>9} {'change':>9}")
    for label in (key for key in old if key in new):
        (a, up), (b, _) = old[label], new[label]
        flag = percent_worse(a, b, up) > threshold
        worse |= flag
        print(f"  {a:9.3f} {b:9.3f} {100.0 * (b / a - 1.0):+8.1f}% {'WORSE ' if flag else ''} {label}")
    for side, only in (("before", old.keys() - new.keys()), ("after", new.keys() - old.keys())):
        for label in sorted(only):
            print(f"  only {side}: {label}")
    return worse


def _origin(result: dict[str, Any]) -> str:
    return f"{result['machine']['commit']} ({result['machine']['date']})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--threshold", type=float, default=5.0, help="percent, default 5")
    options = parser.parse_args()
    old, new = load(options.before), load(options.after)
    common = [name for name in old if name in new]
    if not common:
        parser.error("the two have no benchmark in common; `make bench` writes results")
    for name in sorted(old.keys() ^ new.keys()):
        print(f"{name}: only {'before' if name in old else 'after'}")
    worse = [name for name in common if compare(old[name], new[name], options.threshold)]
    print(f"\nworse by more than {options.threshold:g} %: {', '.join(worse) or 'nothing'}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
