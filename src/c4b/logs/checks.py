"""Checks of every row. The error names the first wrong row with its column and value."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from c4b.errors import InvalidLog
from c4b.logs.columns import Columns

IDS_AT_ONCE = 1_000_000
ROW = "row_of_the_log"


class Checker:
    """Checks one frame. Rows are counted from 1, without a header."""

    def __init__(self, frame: pl.DataFrame, name: str, rows_before: int = 0) -> None:
        self.frame, self.name, self.rows_before = frame, name, rows_before

    def refuse(self, column: str, row: int, remedy: str) -> None:
        """Raise for the row with this index."""
        value = self.frame[column][row]
        raise InvalidLog(
            f"{self.name}, column {column!r}, row {self.rows_before + row + 1}",
            value.to_list() if isinstance(value, pl.Series) else value,
            remedy,
        )

    def refuse_first(self, column: str, wrong: pl.Series, remedy: str) -> None:
        """Raise for the first row that is wrong; a comparison with a missing value is wrong, too."""
        row = wrong.fill_null(True).arg_max()
        if row is not None and bool(wrong.fill_null(True)[row]):
            self.refuse(column, row, remedy)

    def present(self, column: str) -> pl.Series:
        values = self.frame[column]
        self.refuse_first(column, values.is_null(), "is missing; drop the row or fill it before")
        return values

    def labels(self, column: str) -> None:
        if self.present(column).dtype == pl.Object:
            remedy = "must be labels of one kind: 1 and '1' would be the same"
            raise InvalidLog(f"{self.name}, column {column!r}", "objects", remedy)

    def numbers(self, column: str, remedy: str) -> pl.Series:
        """A column of finite numbers; Booleans count as 0 and 1."""
        values = self.present(column)
        if values.dtype == pl.Boolean:
            return values.cast(pl.Float64)
        if values.dtype.is_nested() or values.dtype == pl.Object:
            raise InvalidLog(f"{self.name}, column {column!r}", str(values.dtype), "must be numbers")
        if not values.dtype.is_numeric():
            self.refuse_first(column, values.cast(pl.Float64, strict=False).is_null(), remedy)
            raise InvalidLog(
                f"{self.name}, column {column!r}", str(values.dtype), "must be numbers, not text"
            )
        values = values.cast(pl.Float64)
        self.refuse_first(column, ~values.is_finite(), "must be a finite number")
        return values

    def within(self, column: str, low: float, high: float, remedy: str) -> None:
        values = self.numbers(column, remedy)
        self.refuse_first(column, (values < low) | (values > high), remedy)


def require(name: str, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Every declared column exists."""
    for column in wanted:
        if column not in known:
            near = difflib.get_close_matches(column, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidLog(f"{name}, column", column, f"does not exist; {hint}there are {list(known)}")


def check_rows(
    frame: pl.DataFrame,
    columns: Columns,
    reward_range: tuple[float, float] | None,
    name: str,
    rows_before: int = 0,
    time_before: Any = None,
    length: int | None = None,
) -> None:
    """Raise ``InvalidLog`` for the first thing that contradicts the declaration.

    A log may come in parts: ``rows_before`` and ``time_before`` are the number of earlier rows and the
    time of the last of them, ``length`` that of the first vector. Whether ids differ is not checked here:
    see ``check_ids``.
    """
    check = Checker(frame, name, rows_before)
    for column in (*((columns.reward,) if columns.reward else ()), *columns.rewards):
        if reward_range is None:
            check.numbers(column, "must be a number")
        else:
            low, high = reward_range
            check.within(column, low, high, f"must be a number in the declared range [{low:g}, {high:g}]")
    if columns.propensity is not None:
        remedy = "must be a probability in (0, 1]: what was done had a positive probability"
        check.within(columns.propensity, 5e-324, 1.0, remedy)
    if columns.policy_probability is not None:
        check.within(columns.policy_probability, 0.0, 1.0, "must be a probability in [0, 1]")
    if columns.weight is not None:
        check.within(columns.weight, 0.0, float("inf"), "must be a number of at least 0")
    if columns.time is not None:
        _check_order(check, columns.time, time_before)
    if columns.id is not None:
        check.present(columns.id)
    if columns.action is not None:
        check.labels(columns.action)
    for column in columns.context:
        if check.present(column).dtype.is_numeric():
            check.numbers(column, "must be a number")
    if columns.baseline is not None:
        check.labels(columns.baseline)
    if columns.candidates is not None:
        _check_candidates(check, columns)
    if columns.vectors is not None:
        _check_vectors(check, columns, length)


def _check_order(check: Checker, column: str, before: Any) -> None:
    times = check.present(column)
    if times.dtype == pl.String:
        check.refuse(column, 0, "must be a number, a date or a time such as 2026-01-31T12:00:00")
    if before is not None and len(times) and times[0] < before:
        check.refuse(column, 0, f"is earlier than the row before, {before}; sort the log by time")
    earlier = (times < times.shift(1)).fill_null(False)
    row = earlier.arg_max()
    if row is not None and bool(earlier[row]):
        check.refuse(
            column, row, f"is earlier than the row before, {times[row - 1]}; sort the log by time"
        )


def check_ids(log: pl.LazyFrame, column: str, rows: int, name: str) -> None:
    """Every id occurs once. The ids are looked at in so many parts that a part fits into memory."""
    parts = max(1, -(-rows // IDS_AT_ONCE))
    ids = log.select(column).with_row_index(ROW)
    second, first = rows, 0
    for part in range(parts):
        some = ids if parts == 1 else ids.filter(pl.col(column).hash(0) % parts == part)
        again = some.filter(~pl.col(column).is_first_distinct()).head(1)
        found = again.join(some, on=column, suffix="_first").sort(f"{ROW}_first").collect()
        if len(found) and found[ROW][0] < second:
            second, first = int(found[ROW][0]), int(found[f"{ROW}_first"][0])
    if second < rows:
        shown = log.select(column).slice(second, 1).collect().item()
        at = f"{name}, column {column!r}, row {second + 1}"
        raise InvalidLog(at, shown, f"is the id of row {first + 1} already; each row needs its own")


def _check_candidates(check: Checker, columns: Columns) -> None:
    column = columns.candidates
    assert column is not None
    sets = check.present(column)
    if not isinstance(sets.dtype, pl.List):
        remedy = "must be a list of labels in each row; use Parquet, Arrow or JSON lines"
        raise InvalidLog(f"{check.name}, column {column!r}", str(sets.dtype), remedy)
    check.refuse_first(column, sets.list.len() == 0, "must hold at least one label")
    lists = pl.col(column).cast(pl.List(pl.String))
    check.refuse_first(
        column, sets.list.len() != sets.list.n_unique(), "holds a label twice; each candidate has its own"
    )
    for label, what in ((columns.action, "executed"), (columns.baseline, "incumbent's")):
        if label is not None:
            held = check.frame.select(lists.list.contains(pl.col(label).cast(pl.String))).to_series()
            check.refuse_first(column, ~held, f"must hold the {what} action of column {label!r}")


def length_of_vectors(frame: pl.DataFrame, columns: Columns) -> int | None:
    """The length of the first vector; None if there is none."""
    if columns.vectors is None or frame.is_empty():
        return None
    column = frame[columns.vectors]
    nested = isinstance(column.dtype, pl.List) and isinstance(column.dtype.inner, pl.List | pl.Array)
    first = column[0] if nested else None
    return None if first is None or not len(first) or first[0] is None else len(first[0])


def _check_vectors(check: Checker, columns: Columns, length: int | None) -> None:
    """As many vectors as candidates, all of one length, of finite numbers."""
    column, candidates = columns.vectors, columns.candidates
    assert column is not None
    assert candidates is not None
    vectors = check.present(column)
    inner = vectors.dtype.inner if isinstance(vectors.dtype, pl.List) else None
    numbers = inner.inner if isinstance(inner, pl.List | pl.Array) else None
    if not (isinstance(numbers, pl.DataType) and numbers.is_numeric()):
        remedy = "must be a list of vectors in each row; use Parquet, Arrow or JSON lines"
        raise InvalidLog(f"{check.name}, column {column!r}", str(vectors.dtype), remedy)
    many = vectors.list.len() != check.frame[candidates].list.len()
    check.refuse_first(column, many, f"must hold one vector for each candidate of column {candidates!r}")
    flat = vectors.cast(pl.List(pl.List(pl.Float64))).explode()
    row = np.repeat(np.arange(len(vectors)), vectors.list.len().to_numpy())
    wrong = (flat.list.len() != length).fill_null(True).to_numpy()
    if wrong.any():
        check.refuse(column, int(row[wrong.argmax()]), f"must hold vectors of one length, here {length}")
    values = flat.explode()
    infinite = (~values.is_finite()).fill_null(True).to_numpy()
    if infinite.any():
        check.refuse(column, int(row[infinite.argmax() // (length or 1)]), "must hold finite numbers")
