"""A log that stays in its file: its rows are read and checked in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from c4b import _validate
from c4b.errors import InvalidLog
from c4b.logs.checks import check_ids, check_rows, length_of_vectors
from c4b.logs.columns import Columns
from c4b.logs.log import Log, batch_size, declared, labels_in
from c4b.logs.sources import in_batches


@dataclass(frozen=True)
class StreamedLog:
    """A log that stays in its file, whose rows meet the declaration in ``columns``.

    It has the parts of ``Log`` that replays and plans need: its length, ``split``, ``head``, ``labels``
    and ``batches``. The file must not change while the log is in use.
    """

    lazy: pl.LazyFrame
    """The declared columns of the whole file."""
    columns: Columns
    name: str
    rows: int
    start: int = 0
    """Number of rows of the file before the first row of this log."""

    def __len__(self) -> int:
        return self.rows

    def split(self, past: int) -> tuple[StreamedLog, StreamedLog]:
        """The first ``past`` rows and the rest."""
        past = min(_validate.count("past", past, 0, "must be a number of rows"), self.rows)
        return replace(self, rows=past), replace(self, rows=self.rows - past, start=self.start + past)

    def head(self, rows: int) -> Log:
        """The first rows, in memory."""
        return Log(self.lazy.slice(self.start, min(rows, self.rows)).collect(), self.columns, self.name)

    def labels(self, column: str) -> list[str]:
        """All labels in a column of labels, or of lists of labels, sorted as text."""
        return labels_in(self.lazy.slice(self.start, self.rows), column)

    def batches(self, size: int | None = None) -> Iterator[Log]:
        """All rows in order, as logs of at most ``size`` rows in memory."""
        size = size or batch_size(self.columns)
        for frame in in_batches(self.lazy.slice(self.start, self.rows), size, self.name):
            yield Log(frame, self.columns, self.name)


def open_log(
    source: object, columns: Columns, *, reward_range: tuple[float, float] | None = None
) -> StreamedLog:
    """Check every row of the declared columns of a file, without loading the file into memory.

    The checks and errors are those of :func:`c4b.logs.read_log`; the rows are checked in batches.

    >>> frame = pl.DataFrame({"item": ["a", "b"], "click": [0.0, 3.0]})
    >>> len(open_log(frame, Columns(reward="click", action="item")))
    2
    >>> open_log(frame, Columns(reward="click"), reward_range=(0.0, 1.0))
    Traceback (most recent call last):
        ...
    c4b.errors.InvalidLog: log, column 'click', row 2 = 3.0: must be a number in the declared range [0, 1]
    """
    lazy, name = declared(source, columns)
    rows, last, length = 0, None, None
    for frame in in_batches(lazy, batch_size(columns), name):
        length = length_of_vectors(frame, columns) if length is None else length
        check_rows(frame, columns, reward_range, name, rows, last, length)
        rows += len(frame)
        if columns.time is not None and len(frame):
            last = frame[columns.time][-1]
    if not rows:
        raise InvalidLog(name, "0 rows", "must hold at least one row")
    if columns.id is not None:
        check_ids(lazy, columns.id, rows, name)
    return StreamedLog(lazy, columns, name, rows)
