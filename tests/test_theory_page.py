"""docs/theory.md maps functions to statements: every function it names exists."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "theory.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`c4b\.[^|]+) \|", PAGE, re.MULTILINE)


def test_there_is_a_table() -> None:
    assert len(ROWS) >= 12


@pytest.mark.parametrize("cell", ROWS)
def test_every_function_exists(cell: str) -> None:
    first, *siblings = re.findall(r"`([\w.]+)`", cell)
    parts = first.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        break
    for name in parts[cut:-1]:
        owner = getattr(owner, name)
    for name in (parts[-1], *siblings):
        assert hasattr(owner, name), f"{name} is not in {owner}"
