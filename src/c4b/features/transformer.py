"""Transformers of scikit-learn, or any object with ``fit`` and ``transform``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import polars as pl

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, InvalidLog
from c4b.features.part import Part, column_of


class Transforms(Protocol):
    """The methods of a transformer that are used."""

    def fit(self, X: Any) -> Any: ...

    def transform(self, X: Any) -> Any: ...


@dataclass(frozen=True)
class Transformer(Part):
    """Columns transformed by a scikit-learn transformer.

    The transformer is fitted on the past rows, unless ``size`` is given. A saved file holds only the
    columns and the ``name``. Store the fitted transformer itself separately, for example with skops or
    joblib, and pass it to ``FeatureBuilder.load(path, transformers={name: transformer})``.
    """

    name: str
    columns: Sequence[str]
    transformer: Transforms | None = field(compare=False)
    size: int | None = None

    kind: ClassVar[str] = "transformer"

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidInput("columns", self.columns, "must be a sequence of column names")
        object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def fitted(self) -> bool:
        return self.size is not None and self.transformer is not None

    def fit(self, rows: pl.DataFrame) -> Self:
        if self.fitted:
            return self
        fitted = copy.deepcopy(self._given()).fit(self._inputs(rows))
        size = self._dense(fitted.transform(self._inputs(rows.head(1)))).shape[1]
        return type(self)(self.name, self.columns, fitted, size)

    def transform(self, rows: pl.DataFrame) -> Array:
        return self._dense(self._given().transform(self._inputs(rows)))

    def names(self) -> list[str]:
        return [f"{self.name}[{n}]" for n in range(self.size or 0)]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "columns": list(self.columns), "size": self.size}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(fields["name"], fields["columns"], None, fields["size"])

    def _given(self) -> Transforms:
        if self.transformer is None:
            remedy = "is not in the file; load(path, transformers={name: transformer})"
            raise InvalidInput("transformer", self.name, remedy)
        return self.transformer

    def _inputs(self, rows: pl.DataFrame) -> Any:
        columns = [column_of(rows, column) for column in self.columns]
        if all(column.dtype.is_numeric() for column in columns):
            return np.column_stack([column.cast(pl.Float64).to_numpy() for column in columns])
        return np.array([column.to_list() for column in columns], dtype=object).T

    def _dense(self, made: Any) -> Array:
        dense = np.asarray(made.toarray() if hasattr(made, "toarray") else made)
        if dense.ndim != 2:
            raise InvalidInput("transformer", self.name, f"must give a table, not shape {dense.shape}")
        features = _validate.table(self.name, dense, dense.shape[1])
        if self.size is not None and features.shape[1] != self.size:
            remedy = (
                f"gave {features.shape[1]} features instead of {self.size}; give the one that was fitted"
            )
            raise InvalidLog("transformer", self.name, remedy)
        return features
