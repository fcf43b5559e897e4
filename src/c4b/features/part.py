"""The contract of one part of a feature vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import polars as pl

from c4b._validate import Array
from c4b.errors import InvalidLog


class Part(ABC):
    """Some columns of the feature matrix, computed row by row from columns of a log.

    A part is immutable. ``fit`` returns a part whose numbers are fixed from past rows. ``transform`` then
    always gives the same features for the same row, alone or among others. ``to_dict`` and ``from_dict``
    are exact.
    """

    kind: ClassVar[str]
    """Name of the kind of part in a file."""

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether everything that depends on past rows is fixed."""

    @abstractmethod
    def fit(self, rows: pl.DataFrame) -> Self:
        """Return the part with everything fixed that depends on data."""

    @abstractmethod
    def transform(self, rows: pl.DataFrame) -> Array:
        """The features of each row: shape (rows, size)."""

    @abstractmethod
    def names(self) -> list[str]:
        """The name of each feature, in order."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The part as plain data for JSON, without the kind."""

    @classmethod
    @abstractmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Rebuild a part from what ``to_dict`` returned."""


def column_of(rows: pl.DataFrame, column: str) -> pl.Series:
    """A column without missing values."""
    if column not in rows.columns:
        raise InvalidLog("features, column", column, f"does not exist; there are {rows.columns}")
    values = rows[column]
    missing = values.is_null().arg_max()
    if missing is not None and bool(values.is_null()[missing]):
        raise InvalidLog(
            f"features, column {column!r}, row {missing + 1}", None, "is missing; fill it before"
        )
    return values


def numbers_of(rows: pl.DataFrame, column: str) -> Array:
    """A column of finite numbers; Booleans count as 0 and 1."""
    values = column_of(rows, column)
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        remedy = "must be numbers; use OneHot or Hashed for labels"
        raise InvalidLog(f"features, column {column!r}", str(values.dtype), remedy)
    values = values.cast(pl.Float64)
    wrong = (~values.is_finite()).arg_max()
    if wrong is not None and not bool(values.is_finite()[wrong]):
        where = f"features, column {column!r}, row {wrong + 1}"
        raise InvalidLog(where, values[wrong], "must be a finite number")
    return values.to_numpy().astype("float64")


def labels_of(rows: pl.DataFrame, column: str) -> list[str]:
    """A column of labels, as text: 3 and "3" are the same label, in a log and online."""
    values = column_of(rows, column)
    if values.dtype.is_float():
        remedy = "must be labels or whole numbers; cast the column before"
        raise InvalidLog(f"features, column {column!r}", str(values.dtype), remedy)
    return [str(label) for label in values.to_list()]
