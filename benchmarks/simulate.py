"""Many simulated histories of deployments with faults: ``python benchmarks/simulate.py 10000 [FIRST]``.

Prints JSON. A failing seed is printed with the shortest history that still fails, and the exit code is 1.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.simulation import Simulation, failure, shrunk


def main(seeds: int, first: int) -> int:
    began, failed, entries, answers = time.monotonic(), [], 0, 0
    faults: dict[str, int] = {}
    for seed in range(first, first + seeds):
        simulation = Simulation(seed)
        try:
            simulation.run()
        except Exception:  # noqa: BLE001 (whatever it is, the seed has found it)
            assert failure(seed) is not None
            failed.append(seed)
            print(shrunk(seed), file=sys.stderr)
        for line in simulation.trace:
            if ":" not in line:
                faults[line] = faults.get(line, 0) + 1
            answers += "Error" not in line and ": " in line
        entries += 0 if simulation.contents is None else len(simulation.contents.entries)
    print(
        json.dumps(
            {
                "histories": seeds,
                "first": first,
                "failed": failed,
                "entries": entries,
                "answers": answers,
                "faults": dict(sorted(faults.items())),
                "seconds": round(time.monotonic() - began, 1),
            }
        )
    )
    return 1 if failed else 0


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    sys.exit(main(arguments[0] if arguments else 1000, arguments[1] if len(arguments) > 1 else 0))
