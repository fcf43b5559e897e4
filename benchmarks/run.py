"""Runs benchmarks and stores what they print, with a description of the machine, as JSON.

    python benchmarks/run.py [online pools study deployment service] [--quick] [--out benchmarks/results]

A result is a file ``<name>-<date>-<commit>.json``, with ``-changed`` after the commit if the tree differs
from it. ``compare.py`` shows two results side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine

RESULTS = machine.ROOT / "benchmarks" / "results"
QUICK = {
    "online": ["--quick"],
    "pools": ["--quick"],
    "study": ["--quick"],
    "deployment": ["--quick"],
    "service": ["--seconds", "0.5", "--blocks", "2", "--decisions", "2000"],
}
"""The benchmarks of speed, and the arguments that make each a short check that it runs."""


def printed(tree: Path, name: str, quick: bool = False) -> list[Any]:
    """The JSON values that a benchmark of a source tree prints; they are shown here as well."""
    values, text = [], ""
    command = [sys.executable, str(tree / "benchmarks" / f"{name}.py"), *(QUICK[name] if quick else [])]
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            text += line
    if process.returncode:
        raise SystemExit(f"{name}.py ended with exit code {process.returncode}")
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(QUICK), help="default: all")
    parser.add_argument("--quick", action="store_true", help="a short check that they run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    options = parser.parse_args()
    unknown = set(options.names) - set(QUICK)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(QUICK)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        described = machine.describe()
        rows = printed(machine.ROOT, name, options.quick)
        described["load_afterwards"] = machine.load()
        result = {"benchmark": name, "quick": options.quick, "machine": described, "rows": rows}
        changed = "-changed" if described["uncommitted_changes"] else ""
        path = options.out / f"{name}-{described['date'][:10]}-{described['commit']}{changed}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
