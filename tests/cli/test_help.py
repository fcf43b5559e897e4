"""Help texts are shown as written: rich takes [words] for markup and drops them. Only [bold] is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from c4b.cli.main import app
from support.small_studies import Call


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with what is typed to reach it."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


EVERY = dict(commands(typer.main.get_command(app)))


def plain(text: str) -> str:
    """Without borders and line ends."""
    return " ".join(text.replace("│", " ").split())


def test_all_commands_are_looked_at() -> None:
    assert {("serve",), ("demo",), ("token", "create"), ("deploy", "create"), ("study", "run")} <= set(
        EVERY
    )


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_is_shown_as_written(
    c4b: Call, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")  # one line for each text
    command = EVERY[path]
    texts = [command.help, *(getattr(each, "help", None) for each in command.params)]
    written = [plain(re.sub(r"\[/?bold\]", "", text).replace("\\[", "[")) for text in texts if text]
    assert written
    shown = plain(c4b(*path, "--help").out)
    assert [text for text in written if text not in shown] == []
