"""A log whose rows were checked, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, InvalidLog
from c4b.logs.checks import check_ids, check_rows, length_of_vectors, require
from c4b.logs.columns import Columns
from c4b.logs.csv_checks import check_csv
from c4b.logs.sources import collect, scan

BATCH = 100_000
"""Rows that are looked at together."""
BATCH_OF_VECTORS = 5_000
"""The same where each row holds many vectors."""


@dataclass(frozen=True)
class Log:
    """A log in memory, whose rows meet the declaration in ``columns``."""

    frame: pl.DataFrame
    columns: Columns
    name: str = "log"

    def __len__(self) -> int:
        return len(self.frame)

    def numbers(self, role: str) -> Array:
        """A declared column of numbers: "reward", "propensity", "policy_probability" or "weight"."""
        column = getattr(self.columns, role)
        if column is None:
            raise InvalidInput(role, None, "name its column in Columns")
        return np.asarray(self.frame[column].cast(pl.Float64).to_numpy(), dtype=np.float64)

    def full_rewards(self) -> Array:
        """The rewards of all actions, for a log with full feedback: shape (rows, actions)."""
        if not self.columns.rewards:
            raise InvalidInput("rewards", (), "name one column for each action in Columns")
        frame = self.frame.select(pl.col(name).cast(pl.Float64) for name in self.columns.rewards)
        return np.ascontiguousarray(frame.to_numpy(), dtype=np.float64)

    def weights(self) -> Array:
        """Probability of the logged action under π divided by its propensity, for each row."""
        if self.columns.weight is not None:
            return self.numbers("weight")
        with np.errstate(over="ignore"):  # becomes infinite, which is refused as such
            return self.numbers("policy_probability") / self.numbers("propensity")

    def split(self, past: int) -> tuple[Log, Log]:
        """The first ``past`` rows, on which numbers are chosen, and the rest, which is evidence."""
        past = _validate.count("past", past, 0, "must be a number of rows")
        head, tail = self.frame.head(past), self.frame.slice(past)
        return Log(head, self.columns, self.name), Log(tail, self.columns, self.name)

    def head(self, rows: int) -> Log:
        """The first rows."""
        return Log(self.frame.head(rows), self.columns, self.name)

    def labels(self, column: str) -> list[str]:
        """All labels in a column of labels, or of lists of labels, sorted as text."""
        return labels_in(self.frame.lazy(), column)

    def batches(self, size: int | None = None) -> Iterator[Log]:
        """All rows in order, as logs of at most ``size`` rows."""
        for frame in self.frame.iter_slices(size or batch_size(self.columns)):
            yield Log(frame, self.columns, self.name)


def batch_size(columns: Columns) -> int:
    """Default number of rows in a batch."""
    return BATCH if columns.vectors is None else BATCH_OF_VECTORS


def labels_in(frame: pl.LazyFrame, column: str) -> list[str]:
    """All labels in a column of labels, or of lists of labels, sorted as text."""
    labels = pl.col(column)
    if isinstance(frame.collect_schema()[column], pl.List):
        labels = labels.explode()
    return sorted(map(str, frame.select(labels.unique()).collect(engine="streaming")[column].to_list()))


def declared(source: object, columns: Columns) -> tuple[pl.LazyFrame, str]:
    """The declared columns of a source as a lazy frame, and the name of the source in errors."""
    frame, name = scan(source)
    wanted = columns.names()
    if not wanted:
        raise InvalidInput("columns", columns, "must name at least one column")
    schema = frame.collect_schema()
    require(name, schema.names(), wanted)
    if isinstance(source, str | Path) and Path(source).suffix.lower() == ".csv":
        check_csv(name, schema, columns)
    lists = [
        pl.col(column).arr.to_list()
        for column in (columns.candidates, columns.vectors)
        if column is not None and isinstance(schema[column], pl.Array)
    ]
    return frame.select(wanted).with_columns(lists), name


def read_log(source: object, columns: Columns, *, reward_range: tuple[float, float] | None = None) -> Log:
    """Read the declared columns of a file or a frame into memory, and check every row.

    Parameters
    ----------
    source: a Parquet, CSV, Arrow or JSON-lines file, or a Polars, pandas or Arrow table.
    reward_range: the smallest and largest possible reward. A reward outside it is an error of the log.

    >>> frame = pl.DataFrame({"item": ["a", "b"], "click": [0.0, 1.0], "p": [0.5, 1.2]})
    >>> len(read_log(frame, Columns(reward="click", action="item")))
    2
    >>> try:
    ...     read_log(frame, Columns(reward="click", action="item", propensity="p"))
    ... except InvalidLog as error:
    ...     print(error.argument, "is", error.shown)
    log, column 'p', row 2 is 1.2
    """
    lazy, name = declared(source, columns)
    rows = collect(lazy, name)
    if rows.is_empty():
        raise InvalidLog(name, "0 rows", "must hold at least one row")
    check_rows(rows, columns, reward_range, name, length=length_of_vectors(rows, columns))
    if columns.id is not None:
        check_ids(rows.lazy(), columns.id, len(rows), name)
    return Log(rows, columns, name)
