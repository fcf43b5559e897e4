"""Features that are already numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidLog
from c4b.features.part import Part, column_of, numbers_of

SCALES = ("standard", "range", "none")


@dataclass(frozen=True)
class Intercept(Part):
    """The constant 1: its coefficient is the mean that all actions share."""

    kind: ClassVar[str] = "intercept"
    fitted: ClassVar[bool] = True

    def fit(self, rows: pl.DataFrame) -> Self:
        return self

    def transform(self, rows: pl.DataFrame) -> Array:
        return np.ones((len(rows), 1))

    def names(self) -> list[str]:
        return ["1"]

    def to_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls()


@dataclass(frozen=True)
class Number(Part):
    """A column of numbers, shifted and scaled by constants that are fixed from past rows.

    Parameters
    ----------
    scale: "standard" (mean 0 and standard deviation 1 in the past rows), "range" (their smallest and
        largest become 0 and 1) or "none".
    clip: scaled values are clipped to [-clip, clip], so that features stay bounded; None: they are not
        clipped.
    """

    column: str
    scale: str = "standard"
    clip: float | None = 5.0
    shift: float | None = None
    divisor: float | None = None

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        _validate.name("scale", self.scale, SCALES)
        if self.clip is not None:
            _validate.positive("clip", self.clip, "must be a positive number or None")

    @property
    def fitted(self) -> bool:
        return self.shift is not None and self.divisor is not None

    def fit(self, rows: pl.DataFrame) -> Self:
        values = numbers_of(rows, self.column)
        shift, divisor = 0.0, 1.0
        if self.scale == "standard":
            shift, divisor = float(values.mean()), float(values.std())
        elif self.scale == "range":
            shift, divisor = float(values.min()), float(np.ptp(values))
        return replace(self, shift=shift, divisor=divisor if divisor > 0.0 else 1.0)

    def transform(self, rows: pl.DataFrame) -> Array:
        assert self.shift is not None
        assert self.divisor is not None
        scaled = (numbers_of(rows, self.column) - self.shift) / self.divisor
        return (scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip))[:, None]

    def names(self) -> list[str]:
        return [self.column]

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)


@dataclass(frozen=True)
class Vector(Part):
    """A column of precomputed vectors, all of the same size, used unchanged."""

    column: str
    size: int | None = None

    kind: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if self.size is not None:
            _validate.count("size", self.size, 1, "must be a number of features, at least 1")

    @property
    def fitted(self) -> bool:
        return self.size is not None

    def fit(self, rows: pl.DataFrame) -> Self:
        return self if self.size is not None else replace(self, size=len(self._lists(rows)[0]))

    def transform(self, rows: pl.DataFrame) -> Array:
        vectors = self._lists(rows)
        wrong = (vectors.list.len() != self.size).to_numpy()
        if wrong.any():
            self._refuse(vectors, int(wrong.argmax()), f"must hold {self.size} numbers")
        values = vectors.explode().to_numpy().astype(np.float64).reshape(len(rows), -1)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            self._refuse(vectors, int(finite.argmin()), "must hold finite numbers")
        return values.reshape(len(rows), len(self.names()))

    def _lists(self, rows: pl.DataFrame) -> pl.Series:
        values = column_of(rows, self.column)
        if not isinstance(values.dtype, pl.List | pl.Array):
            raise InvalidLog(f"features, column {self.column!r}", str(values.dtype), "must hold vectors")
        return values.cast(pl.List(pl.Float64))

    def _refuse(self, vectors: pl.Series, row: int, remedy: str) -> None:
        where = f"features, column {self.column!r}, row {row + 1}"
        raise InvalidLog(where, vectors[row].to_list(), remedy)

    def names(self) -> list[str]:
        return [f"{self.column}[{n}]" for n in range(self.size or 0)]

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)
