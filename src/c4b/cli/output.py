"""How commands speak: one console, plain tables, a progress bar with an estimate."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from c4b.cli import console_tables as tables
from c4b.study.engine.run import Progress as Report

# in a file or a pipe there is no edge to cut a table off at
console = Console(highlight=False, width=None if sys.stdout.isatty() else 1000)
_progress = Console(stderr=True)


def say(text: str, style: str | None = None) -> None:
    """One line as it is: no markup, no wrapping, so that paths can be copied."""
    console.print(text, style=style, markup=False, soft_wrap=True)


def tell(text: str, style: str | None = None) -> None:
    """A sentence, wrapped between words."""
    console.print(Text(text), style=style)


def table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers, which are never cut."""
    if title:
        say(title, style="bold")
    tables.show(console, heading, rows, left)


@contextmanager
def episodes_bar(what: str, compiling: bool = False) -> Iterator[Report]:
    """Episodes done and time left on stderr: a bar, or a line now and then where no bar can be.

    With ``compiling``, the wait for the first episodes is said to be the compiler's.
    """
    if not _progress.is_terminal:
        yield Lines(what, compiling)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=_progress,
    ) as bar:
        yield Bar(bar, what, compiling)


COMPILING = "compiling, first use only"


class Bar:
    """Progress on a terminal."""

    def __init__(self, bar: Progress, what: str, compiling: bool) -> None:
        self.bar, self.what, self.compiling = bar, what, compiling
        self.task: TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.task is None:  # what was done before this run says nothing about its speed
            first = f"{self.what} ({COMPILING})" if self.compiling and done < total else self.what
            self.task = self.bar.add_task(first, total=total, completed=done)
        else:
            self.bar.update(self.task, completed=done, description=self.what)


class Lines:
    """Progress for a log file: the start, the end and every ten seconds between.

    Time left is told from the first finished chunk on: before it, the compiler may have been at work.
    """

    def __init__(self, what: str, compiling: bool) -> None:
        self.what, self.compiling = what, compiling
        self.last = 0.0
        self.start: int | None = None  # episodes done when the run began
        self.pace: tuple[float, int] | None = (
            None  # time of the first finished chunk, episodes done by it
        )

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        line = f"{self.what}: {done}/{total} episodes"
        if self.start is None:
            self.start, self.last = done, now
            if self.compiling and done < total:
                line += f" ({COMPILING})"
            self._print(line)
            return
        if self.pace is None:
            self.pace = now, done
        if done < total and now - self.last < 10.0:
            return
        began, before = self.pace
        if before < done < total:
            line += f", about {(now - began) * (total - done) / (done - before):.0f} s left"
        self.last = now
        self._print(line)

    @staticmethod
    def _print(line: str) -> None:
        print(line, file=sys.stderr, flush=True)
