"""Every snippet of docs/logs.md runs, one after the other."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.small_studies import Call

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    commands = 0
    for language, code in re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            exec(compile(code, "docs/logs.md", "exec"), names)
            continue
        arguments = shlex.split(code)
        assert arguments[0] == "c4b"
        called = Call(monkeypatch, capsys)(*arguments[1:])
        assert called.code == 0, called.err
        commands += 1
    assert commands == 3
    assert (tmp_path / "calibration.png").exists()
