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
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from c4b.cli import tables
from c4b.study.run import Progress as Report

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
def episodes_bar(what: str) -> Iterator[Report]:
    """Episodes done and time left on stderr: a bar, or a line now and then where no bar can be."""
    if not _progress.is_terminal:
        yield _Lines(what)
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
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Progress for a log file: the start, the end and every ten seconds between."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self.first is not None and done < total and now - self.last < 10.0:
            return
        line = f"{self.what}: {done}/{total} episodes"
        if self.first is None:
            self.first = done
        elif self.first < done < total:
            left = (now - self.began) * (total - done) / (done - self.first)
            line += f", about {left:.0f} s left"
        self.last = now
        print(line, file=sys.stderr, flush=True)
