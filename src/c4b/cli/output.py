"""How commands speak: one console, plain tables, a progress bar with an estimate."""

from __future__ import annotations

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
from rich.table import Table

from c4b.study.run import Progress as Report

console = Console(highlight=False)
_progress = Console(stderr=True)


def table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers."""
    drawn = Table(title=title or None, title_justify="left", title_style="bold")
    for n, cell in enumerate(heading):
        drawn.add_column(cell, justify="left" if n < left else "right")
    for row in rows:
        drawn.add_row(*row)
    console.print(drawn)


@contextmanager
def episodes_bar(what: str) -> Iterator[Report]:
    """A bar of episodes on stderr, with time left; silent parts are the compiler's first run."""
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
