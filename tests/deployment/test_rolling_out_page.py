"""Every snippet of docs/rolling-out.md runs; commands run in this process, which is faster."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from c4b.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs/rolling-out.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 5


@pytest.mark.parametrize(("language", "code"), [each for each in SNIPPETS if "curl" not in each[1]])
def test_snippet(language: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if language == "python":
        exec(compile(code, "snippet", "exec"), {})
        return
    for line in code.replace("\\\n", " ").splitlines():
        if line.startswith("export "):
            monkeypatch.setenv(*line.removeprefix("export ").split("=", 1))
        elif line:
            command, *arguments = shlex.split(os.path.expandvars(line))
            assert command == "c4b"
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, (line, done.output, done.exception)
