"""Small studies, and the command ``c4b`` as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from c4b.cli.main import main
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.oracle_comparison import METHODS

C4B = [sys.executable, "-c", "from c4b.cli.main import main; main()"]

TOML = """
name = "small"
episodes = 6
seed = 7
methods = ["contrast", "refresh", "linucb"]
[truth]
theta = [1.0, 0.5, 0.2]
baseline = [1.0, 0.0, 0.0]
sigma = 0.2
[history]
kind = ["diverse", "baseline"]
[candidates]
count = 5
rho = 0.4
[learner]
reserve = [0.0, 0.5]
[deployment]
rounds = 12
"""


def small_study(methods: tuple[str, ...] = METHODS, episodes: int = 12, **fields: Any) -> Study:
    """Two histories, three features, five candidates, fifteen rounds."""
    common: dict[str, Any] = {
        "theta": (1.0, 0.5, 0.2), "baseline": (1.0, 0.0, 0.0), "rounds": 15, "count": 5,
        "rho": 0.4, "sigma": 0.2, **fields,
    }  # fmt: skip
    settings = tuple(Setting(history=history, **common) for history in ("diverse", "baseline"))
    named = tuple(Method(name, name) for name in methods)
    return Study("small", "A small study", named, settings, ("history",), episodes, 7)


def study_file(folder: Path, text: str = TOML, name: str = "study.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


class Call:
    """``c4b`` in this process, through its real entry point: exit code and both streams."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Call:
        self.monkeypatch.setattr(sys, "argv", ["c4b", *map(str, arguments)])
        self.capsys.readouterr()
        try:
            main()
            self.code: object = 0
        except SystemExit as stop:
            self.code = stop.code or 0
        self.out, self.err = self.capsys.readouterr()
        return self


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """``c4b`` as a process of its own."""
    return subprocess.Popen(
        [*C4B, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
