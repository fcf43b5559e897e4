"""Answers of commands: a table for people on a terminal, JSON for programs and for whoever asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from c4b.cli.console.output import print_line, print_table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON also on a terminal.")]


def answer(value: Any, as_json: bool = False, text: str | None = None) -> None:
    """Print ``value``: JSON if asked for or piped, else ``text``, or a table of it."""
    if as_json or not sys.stdout.isatty():
        typer.echo(json.dumps(value, allow_nan=False))
    elif text is not None:
        print_line(text)
    elif isinstance(value, Mapping):
        print_table(
            "", ["", ""], [[key.replace("_", " "), _cell(each)] for key, each in value.items()], 2
        )
    elif isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        heading = [str(key).replace("_", " ") for key in value[0]]
        print_table("", heading, [[_cell(each) for each in row.values()] for row in value])
    else:
        for each in value:
            print_line(str(each))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
