"""Processor seconds and memory from import to the first decision, compiling and not. Prints JSON lines.

    python benchmarks/first_decision.py [--study]
    python benchmarks/first_decision.py --carried   # of a wheel with kernels, see `make wheel`

Each line is a process of its own. Each policy has a compile cache of its own. ``--study`` also measures
what compiles everything that studies need. The wall clock says little on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

FIRST = """
import numpy as np
import c4b
policy = c4b.Policy("{policy}", c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0), reserve=1.0)
policy.decide(np.array([[1.0, 0.5], [1.0, -0.5]]), np.array([1.0, 0.0]))
"""
ALL = "import c4b; c4b.warm_up()"
STUDY = "from c4b.study.engine.run import warm_up; warm_up()"


def measured(what: str, code: str, cache: str) -> dict[str, object]:
    """One process: its processor seconds, peak memory and seconds by the clock on the wall."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "C4B_QUIET": "1"}
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{what}: exit code {process.returncode}")
    return {
        "what": what,
        "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_megabytes": round(used.ru_maxrss / 1024),
        "wall_seconds": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--study", action="store_true", help="also what studies need")
    parser.add_argument("--carried", action="store_true", help="only what a wheel with kernels does")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.carried:
            for _ in range(5):
                row = measured(
                    "first decision, kernels carried", FIRST.format(policy="reserve-c4b+"), folder
                )
                if any(files for _, _, files in os.walk(folder)):
                    raise SystemExit("kernels were compiled: the wheel's do not fit")
                print(json.dumps(row), flush=True)
            return
        for policy in ("reserve-c4b+", "refresh"):
            cache = os.path.join(folder, policy)
            for state in ("compiling", "compiled before"):
                code = FIRST.format(policy=policy)
                print(json.dumps(measured(f"first decision, {policy}, {state}", code, cache)), flush=True)
        cache = os.path.join(folder, "all")
        print(json.dumps(measured("c4b.warm_up", ALL, cache)), flush=True)
        if options.study:
            print(json.dumps(measured("what studies need, after it", STUDY, cache)), flush=True)


if __name__ == "__main__":
    main()
