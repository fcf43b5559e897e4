"""CONTRIBUTING.md says where to look: every path that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATHS = sorted(
    set(re.findall(r"`((?:src|tests|benchmarks|docs)/[\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
)


def test_there_are_paths() -> None:
    assert len(PATHS) >= 30


@pytest.mark.parametrize("path", PATHS)
def test_the_path_exists(path: str) -> None:
    assert (ROOT / path).exists()
