"""Output of the commands: lines, tables and progress."""

from __future__ import annotations

import io
import os
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

from c4b.cli.console import console_tables
from c4b.study.engine.run import Progress as ReportProgress

for _name in ("stdout", "stderr"):
    if getattr(sys, _name) is None:  # closed by who started this, as `>&-` does
        setattr(sys, _name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (as long as it runs)
        os.set_inheritable(getattr(sys, _name).fileno(), True)  # it takes the stream's number
if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a character still shows the rest
    sys.stdout.reconfigure(errors="replace")

# a file or a pipe has no width, so tables are not cut
console = Console(highlight=False, width=None if sys.stdout.isatty() else 1000)
_progress = Console(stderr=True)


def print_line(text: str, style: str | None = None) -> None:
    """Print one line without markup and without wrapping, so that paths can be copied."""
    console.print(text, style=style, markup=False, soft_wrap=True)


def print_paragraph(text: str, style: str | None = None) -> None:
    """Print text that is wrapped between words."""
    console.print(Text(text), style=style)


def print_table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers, which are never cut."""
    if title:
        print_line(title, style="bold")
    console_tables.show(console, heading, rows, left)


@contextmanager
def shown_progress(
    title: str, compiling: bool = False, unit: str = "episodes"
) -> Iterator[ReportProgress]:
    """Report units done and time left on stderr: by a bar on a terminal, by lines elsewhere.

    compiling: show that the first episodes wait for the compiler.
    """
    if not _progress.is_terminal:
        yield ProgressLines(title, compiling, unit)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=_progress,
    ) as bar:
        yield ProgressBar(bar, title, compiling)


COMPILING = "compiling, first use only"


class ProgressBar:
    """Progress on a terminal."""

    def __init__(self, bar: Progress, title: str, compiling: bool) -> None:
        self.bar, self.title, self.compiling = bar, title, compiling
        self.task: TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.task is None:  # episodes of an earlier run do not count for the speed
            first = f"{self.title} ({COMPILING})" if self.compiling and done < total else self.title
            self.task = self.bar.add_task(first, total=total, completed=done)
        else:
            self.bar.update(self.task, completed=done, description=self.title)


class ProgressLines:
    """Progress for a log file: one line at the start, every ten seconds, and at the end.

    The time left is estimated from the first finished chunk on, because kernels may compile before it.
    """

    def __init__(self, title: str, compiling: bool, unit: str = "episodes") -> None:
        self.title, self.compiling, self.unit = title, compiling, unit
        self.last = 0.0
        self.start: int | None = None  # units done when the run began
        self.first_chunk: tuple[float, int] | None = None  # when it finished, units done by then

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        line = f"{self.title}: {done}/{total} {self.unit}"
        if self.start is None:
            self.start, self.last = done, now
            if self.compiling and done < total:
                line += f" ({COMPILING})"
            self._print(line)
            return
        if self.first_chunk is None:
            self.first_chunk = now, done
        if done < total and now - self.last < 10.0:
            return
        began, before = self.first_chunk
        if before < done < total:
            line += f", about {(now - began) * (total - done) / (done - before):.0f} s left"
        self.last = now
        self._print(line)

    @staticmethod
    def _print(line: str) -> None:
        print(line, file=sys.stderr, flush=True)
