"""A script of ``benchmarks/`` as a module, so that a test can run a sample of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
