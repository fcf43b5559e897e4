"""Features of labels: one for each label, hashed features, or vectors that the user gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, InvalidLog
from c4b.features.part import Part, labels_of


@dataclass(frozen=True)
class OneHot(Part):
    """One feature for each label.

    The labels are fixed: either given, or the most frequent ones of the past rows.

    For a label that is not among them all these features are 0, so only the other features describe it.
    """

    column: str
    labels: tuple[str, ...] | None = None
    at_most: int = 50

    kind: ClassVar[str] = "one-hot"

    def __post_init__(self) -> None:
        _validate.count("at_most", self.at_most, 1, "must be a number of labels, at least 1")
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(str(label) for label in self.labels))

    @property
    def fitted(self) -> bool:
        return self.labels is not None

    def fit(self, rows: pl.DataFrame) -> Self:
        if self.labels is not None:
            return self
        found, counts = np.unique(labels_of(rows, self.column), return_counts=True)
        order = np.argsort(-counts, kind="stable")[: self.at_most]
        return replace(self, labels=tuple(sorted(str(found[n]) for n in order)))

    def transform(self, rows: pl.DataFrame) -> Array:
        place = {label: n for n, label in enumerate(self.labels or ())}
        features = np.zeros((len(rows), len(place)))
        for row, label in enumerate(labels_of(rows, self.column)):
            if label in place:
                features[row, place[label]] = 1.0
        return features

    def names(self) -> list[str]:
        return [f"{self.column}={label}" for label in self.labels or ()]

    def to_dict(self) -> dict[str, Any]:
        labels = None if self.labels is None else list(self.labels)
        return {"column": self.column, "labels": labels, "at_most": self.at_most}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)


@dataclass(frozen=True)
class Hashed(Part):
    """``size`` features that all labels share: each label adds 1 or -1 to one of them.

    The hash of the label chooses the feature and the sign. Use it for labels that are too many or not
    known in advance. Two labels may share a feature; a larger size makes this rarer.
    """

    column: str
    size: int

    kind: ClassVar[str] = "hashed"
    fitted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.count("size", self.size, 1, "must be a number of features, at least 1")

    def fit(self, rows: pl.DataFrame) -> Self:
        return self

    def transform(self, rows: pl.DataFrame) -> Array:
        features = np.zeros((len(rows), self.size))
        for row, label in enumerate(labels_of(rows, self.column)):
            digest = hashlib.blake2b(f"{self.column}={label}".encode(), digest_size=9).digest()
            place = int.from_bytes(digest[:8], "big") % self.size
            features[row, place] = 1.0 if digest[8] % 2 else -1.0
        return features

    def names(self) -> list[str]:
        return [f"{self.column}#{n}" for n in range(self.size)]

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "size": self.size}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)


@dataclass(frozen=True)
class Embedding(Part):
    """A vector for each label, given by the user, for example from a model of other data.

    unknown: the vector of a label that has none. Without it, such a label is an error.
    """

    column: str
    vectors: dict[str, tuple[float, ...]]
    unknown: tuple[float, ...] | None = None

    kind: ClassVar[str] = "embedding"
    fitted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.vectors:
            raise InvalidInput("vectors", self.vectors, "must hold a vector for each label")
        vectors = {str(k): tuple(map(float, v)) for k, v in self.vectors.items()}
        size = len(next(iter(vectors.values())))
        given = [
            *vectors.items(),
            *([("unknown", tuple(self.unknown))] if self.unknown is not None else []),
        ]
        for label, vector in given:
            if len(vector) != size or not np.all(np.isfinite(vector)):
                raise InvalidInput(f"vectors[{label!r}]", vector, f"must be {size} finite numbers")
        object.__setattr__(self, "vectors", vectors)

    def fit(self, rows: pl.DataFrame) -> Self:
        return self

    def transform(self, rows: pl.DataFrame) -> Array:
        found = []
        for row, label in enumerate(labels_of(rows, self.column)):
            vector = self.vectors.get(label, self.unknown)
            if vector is None:
                where = f"features, column {self.column!r}, row {row + 1}"
                raise InvalidLog(where, label, "has no vector; give one, or unknown= for all such labels")
            found.append(vector)
        return np.array(found, dtype=np.float64).reshape(len(rows), len(self.names()))

    def names(self) -> list[str]:
        return [f"{self.column}[{n}]" for n in range(len(next(iter(self.vectors.values()))))]

    def to_dict(self) -> dict[str, Any]:
        vectors = {label: list(vector) for label, vector in self.vectors.items()}
        unknown = None if self.unknown is None else list(self.unknown)
        return {"column": self.column, "vectors": vectors, "unknown": unknown}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)
