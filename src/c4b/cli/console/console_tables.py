"""Tables that fit the terminal: text wraps between words, a number is never cut.

If a table is too wide for the terminal, first its headings are wrapped, then its labels. If it is still
too wide, it is printed in parts with the labels repeated. If not even one column of numbers fits beside
the labels, rows are printed as lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

COLUMN_BORDER = 3
"""Width of a column without its content: two spaces and a line."""
LONGEST_WORD = 24
"""A longer word of a label may be folded."""

Rows = Sequence[Sequence[str]]


class _Plan(NamedTuple):
    widths: list[int]  # by column
    parts: list[list[int]]  # columns of numbers that are printed together


def show(console: Console, heading: Sequence[str], rows: Rows, left: int) -> None:
    """Print rows under ``heading``; the first ``left`` columns are labels, the others numbers."""
    plan = _plan(heading, rows, left, console.width)
    if plan is None:
        for row in rows:
            for n, (name, cell) in enumerate(zip(heading, row, strict=True)):
                console.print(Text(f"{'' if n < left else '  '}{name}: {cell}"))
        return
    for part in plan.parts:
        drawn = Table()
        for n in [*range(left), *part]:
            drawn.add_column(
                Text(heading[n]),
                justify="left" if n < left else "right",
                width=plan.widths[n],
                overflow="fold",
            )
        for row in rows:
            drawn.add_row(*(Text(row[n]) for n in [*range(left), *part]))
        console.print(drawn)


def _plan(heading: Sequence[str], rows: Rows, left: int, width: int) -> _Plan | None:
    """Return the arrangement with the fewest lines that fits; None if there is none."""
    columns = [[name, *(row[n] for row in rows)] for n, name in enumerate(heading)]
    whole = [max(map(cell_len, column)) for column in columns]
    numbers = list(range(left, len(heading)))
    if sum(whole) + COLUMN_BORDER * len(whole) + 1 <= width:
        return _Plan(whole, [numbers])
    words = [[[cell_len(word) for word in cell.split()] for cell in column] for column in columns]
    longest = [max((w for cell in column for w in cell), default=0) for column in words]
    narrow = [
        max([max(words[n][0], default=0), *map(cell_len, columns[n][1:])]) for n in range(len(columns))
    ]
    best, lowest = None, 0
    least = [max(1, min(size, LONGEST_WORD)) for size in longest[:left]]
    for labels in _shrinking(whole[:left], least):
        parts = _parts(narrow, numbers, width - 1 - sum(size + COLUMN_BORDER for size in labels))
        if parts is None:
            continue
        lines = [
            max((_lines(words[n][r], labels[n]) for n in range(left)), default=1)
            for r in range(len(rows) + 1)
        ]
        height = len(parts) * (sum(lines) + 3)
        if best is None or height < lowest:
            best, lowest = _Plan([*labels, *narrow[left:]], parts), height
    return best


def _shrinking(sizes: list[int], least: list[int]) -> Iterator[list[int]]:
    """Yield label widths from ``sizes`` down to ``least``; the widest label shrinks first."""
    sizes = list(sizes)
    while True:
        yield list(sizes)
        wide = [n for n, size in enumerate(sizes) if size > least[n]]
        if not wide:
            return
        sizes[max(wide, key=lambda n: sizes[n])] -= 1


def _parts(widths: list[int], numbers: list[int], width: int) -> list[list[int]] | None:
    """Distribute columns over parts of at most ``width``; None if one column alone is wider."""
    parts: list[list[int]] = [[]]
    used = 0
    for n in numbers:
        size = widths[n] + COLUMN_BORDER
        if size > width:
            return None
        if used + size > width:
            parts.append([])
            used = 0
        parts[-1].append(n)
        used += size
    return parts if width >= 0 else None


def _lines(words: list[int], width: int) -> int:
    """Number of lines that words of these lengths fill."""
    lines, used = 1, 0
    for size in words:
        if used and used + 1 + size > width:
            lines, used = lines + 1, size
        else:
            used += size + (used > 0)
    return lines
