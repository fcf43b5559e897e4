"""Ctrl-C and SIGTERM end a command with one line, after it has closed what it had open."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup


class Terminated(KeyboardInterrupt):
    """SIGTERM. By itself it ends a process at once: those of an audit would go on alone, and the first
    process of a container would not end at all."""


class StoppableCommands(TyperGroup):
    """The group of all commands. Exit codes are those of a shell: 128 and the number of the signal."""

    def invoke(self, ctx: Any) -> Any:
        try:
            before = signal.signal(signal.SIGTERM, _terminate)
        except ValueError:  # not the main thread, which alone gets signals
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            terminated = isinstance(interrupt, Terminated)
            said = ["stopped by SIGTERM" if terminated else "interrupted"]
            typer.echo(f"c4b: {'; '.join(said + getattr(interrupt, '__notes__', []))}", err=True)
            raise typer.Exit(143 if terminated else 130) from interrupt
        finally:
            signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> None:
    raise Terminated


@contextmanager
def goes_on(kept: Path | None) -> Iterator[None]:
    """Tell whoever stops a command that the same one goes on, from what is in ``kept``."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if kept is not None and kept.exists():
            interrupt.add_note(f"the same command goes on from what {kept} holds")
        raise
