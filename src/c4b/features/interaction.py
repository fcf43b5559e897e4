"""Products of two parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import polars as pl

from c4b._validate import Array
from c4b.features import registry
from c4b.features.part import Part


@dataclass(frozen=True)
class Interaction(Part):
    """All products of a feature of ``item`` and a feature of ``context``.

    They describe how the effect of an item depends on the context.
    """

    item: Part
    context: Part

    kind: ClassVar[str] = "interaction"

    @property
    def fitted(self) -> bool:
        return self.item.fitted and self.context.fitted

    def fit(self, rows: pl.DataFrame) -> Self:
        return replace(self, item=self.item.fit(rows), context=self.context.fit(rows))

    def transform(self, rows: pl.DataFrame) -> Array:
        left, right = self.item.transform(rows), self.context.transform(rows)
        return (left[:, :, None] * right[:, None, :]).reshape(len(rows), -1)

    def names(self) -> list[str]:
        return [f"{left}*{right}" for left in self.item.names() for right in self.context.names()]

    def to_dict(self) -> dict[str, Any]:
        return {"item": registry.write(self.item), "context": registry.write(self.context)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(registry.read(fields["item"]), registry.read(fields["context"]))
