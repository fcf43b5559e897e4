"""The oldest versions that pyproject.toml allows of what the package needs, as requirements for pip.

`make lowest` runs tests with them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = ("dev", "docs")
"""Extras for those who work on the package: their versions are in constraints.txt."""


def lowest_versions(project: Path) -> list[str]:
    """``name[extra]==version; marker`` for everything but the package's own extras."""
    described = tomllib.loads(project.read_text())["project"]
    extras = described["optional-dependencies"]
    needed = [
        *described["dependencies"],
        *(each for name in extras if name not in TOOLS for each in extras[name]),
    ]
    found = []
    for requirement in needed:
        if requirement.startswith(f"{described['name']}["):
            continue
        if not re.match(r"[\w.-]+(\[\w+\])?>=[\d.]+(;|$)", requirement):
            raise ValueError(f"{requirement}: must say the oldest version that works, as name>=version")
        found.append(requirement.replace(">=", "==", 1))
    return found


if __name__ == "__main__":
    print("\n".join(lowest_versions(Path(__file__).parents[1] / "pyproject.toml")))
