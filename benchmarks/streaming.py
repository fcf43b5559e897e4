"""Plan and replay of a log with millions of rows: time and memory; prints JSON.

    python benchmarks/streaming.py [--rows 10000000] [--replayed-rows 200000] [--folder FOLDER]

Writes a Parquet file of ``--rows`` rows (six pages, a column of context, clicks) and runs the commands
``c4b plan`` on all of it, ``c4b offpolicy`` and ``c4b replay`` on its first ``--replayed-rows``, each in
a process of its own. ``peak_mb`` is the largest resident set of the process;
``peak_of_small_mb`` that of the same command on 10,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

PAGES = 6
AT_ONCE = 1_000_000
RUN = "from c4b.cli.main import main; main()"


def write_log(path: Path, rows: int, seed: int) -> None:
    """Uniformly randomised clicks whose rate depends on page and context."""
    rng = np.random.default_rng(seed)
    parts = []
    folder = path.with_suffix("")
    folder.mkdir()
    for start in range(0, rows, AT_ONCE):
        n = min(AT_ONCE, rows - start)
        page, age = rng.integers(0, PAGES, n), rng.uniform(0.0, 1.0, n)
        rate = 0.05 + 0.01 * page + 0.03 * age * (page == 2)
        frame = pl.DataFrame(
            {
                "time": np.arange(start, start + n),
                "page": pl.Series(page).cast(pl.String),
                "age": age,
                "click": (rng.random(n) < rate).astype(np.float64),
                "propensity": np.full(n, 1.0 / PAGES),
                "policy_probability": np.where(page == PAGES - 1, 0.5, 0.1),
            }
        )
        parts.append(folder / f"{start}.parquet")
        frame.write_parquet(parts[-1])
    pl.scan_parquet(parts).sink_parquet(path)


def measured(command: list[str]) -> tuple[bytes, dict[str, Any]]:
    """What ``c4b`` with these arguments prints; its seconds and peak memory."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"c4b {' '.join(command)} failed with status {status}: {output[-400:]!r}")
    return output, {
        "seconds": round(time.perf_counter() - started, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--replayed-rows", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        large, small = Path(scratch) / "large.parquet", Path(scratch) / "small.parquet"
        replayed = Path(scratch) / "replayed.parquet"
        write_log(large, given.rows, given.seed)
        pl.scan_parquet(large).head(min(given.rows, 10_000)).sink_parquet(small)
        pl.scan_parquet(large).head(given.replayed_rows).sink_parquet(replayed)
        columns = ["--reward", "click"]
        choice = [*columns, "--action", "page", "--baseline", "0", "--context", "age", "--json"]
        commands = {
            "plan": ["plan", "LOG", *choice, "--simulations", "4", "--rounds", "500"],
            "offpolicy": ["offpolicy", "LOG", *columns, "--max-weight", "6", "--json"],
            "replay": ["replay", "LOG", *choice, "--propensity", "propensity", "--policy", "refresh"],
        }
        report: dict[str, Any] = {"rows": given.rows, "file_mb": round(large.stat().st_size / 1e6)}
        for name, command in commands.items():
            log, rows = (large, given.rows) if name == "plan" else (replayed, given.replayed_rows)
            _, spent = measured([str(log) if part == "LOG" else part for part in command])
            row = {"rows": rows, **spent}
            _, again = measured([str(small) if part == "LOG" else part for part in command])
            row["peak_of_small_mb"] = again["peak_mb"]
            report[name] = row
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
