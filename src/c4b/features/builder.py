"""Computes feature vectors from rows of a log, and in the same way online."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4b._validate import Array
from c4b._whole_files import written_whole
from c4b.errors import CorruptState, InvalidInput, NewerState
from c4b.features import registry
from c4b.features.interaction import Interaction
from c4b.features.part import Part
from c4b.features.transformer import Transformer, Transforms

FORMAT = 1


class FeatureBuilder:
    """Builds feature vectors: a list of parts, whose features are concatenated.

    Fit it on *past* rows, never on the rows that will be used as evidence. Save it beside the deployment
    and compute online features with it: they are the same numbers as those of the log.

    >>> from c4b.features import Intercept, Number, OneHot
    >>> past = pl.DataFrame({"age": [20, 40], "film": ["a", "b"]})
    >>> builder = FeatureBuilder([Intercept(), Number("age", scale="range"), OneHot("film")]).fit(past)
    >>> builder.names
    ['1', 'age', 'film=a', 'film=b']
    >>> builder.candidates({"age": 30}, [{"film": "a"}, {"film": "c"}]).tolist()
    [[1.0, 0.5, 1.0, 0.0], [1.0, 0.5, 0.0, 0.0]]
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        if not parts or not all(isinstance(part, Part) for part in parts):
            raise InvalidInput("parts", parts, "must be parts such as Intercept() and Number('age')")
        self.parts = tuple(parts)

    def __repr__(self) -> str:
        kinds = ", ".join(type(part).__name__ for part in self.parts)
        return f"<FeatureBuilder: {kinds}; {f'{self.dim} features' if self.fitted else 'not fitted'}>"

    @property
    def fitted(self) -> bool:
        """Whether features can be computed, because every part is fitted."""
        return all(part.fitted for part in self.parts)

    def fit(self, past: pl.DataFrame) -> FeatureBuilder:
        """Return a builder whose scales and labels are fixed from these rows."""
        if not isinstance(past, pl.DataFrame) or past.is_empty():
            raise InvalidInput("past", past, "must be a Polars frame of at least one row, e.g. log.frame")
        return FeatureBuilder([part.fit(past) for part in self.parts])

    @property
    def names(self) -> list[str]:
        """The name of each feature, in order."""
        return [name for part in self._fitted() for name in part.names()]

    @property
    def dim(self) -> int:
        """The number of features."""
        return len(self.names)

    def transform(self, rows: pl.DataFrame) -> Array:
        """The features of each row: shape (rows, dim)."""
        return np.ascontiguousarray(np.hstack([part.transform(rows) for part in self._fitted()]))

    def candidates(self, context: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Array:
        """The features of each item in one context, for ``decide``: shape (items, dim)."""
        for n, item in enumerate(items):
            twice = context.keys() & item.keys()
            if twice:
                raise InvalidInput(f"items[{n}]", sorted(twice), "is in the context, too; name each once")
        if not items:
            return np.empty((0, self.dim))
        return self.transform(
            pl.DataFrame([{**context, **item} for item in items], infer_schema_length=None)
        )

    def save(self, path: str | Path) -> None:
        """Write the builder to a JSON file. After ``load`` it gives the same features, bit for bit."""
        parts = [registry.write(part) for part in self._fitted()]
        text = json.dumps(
            {"format": FORMAT, "names": self.names, "parts": parts}, indent=1, allow_nan=False
        )
        with written_whole(Path(path)) as draft:
            draft.write_text(text, encoding="utf-8")

    @classmethod
    def load(
        cls, path: str | Path, transformers: Mapping[str, Transforms] | None = None
    ) -> FeatureBuilder:
        """Read a builder that ``save`` wrote.

        ``transformers`` gives, by name, those that the file cannot hold.
        """
        try:
            saved = json.loads(Path(path).read_text(encoding="utf-8"))
            version, names, parts = saved["format"], saved["names"], saved["parts"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{path} is no saved feature builder: {error}") from error
        if version != FORMAT:
            raise NewerState(f"{path} has format {version}; this version of c4b reads {FORMAT}")
        try:
            builder = cls([_given(registry.read(fields), transformers or {}) for fields in parts])
            found = builder.names
        except (KeyError, TypeError) as error:
            raise CorruptState(f"{path} is damaged: {error!r}") from error
        if found != names:
            raise CorruptState(f"{path} is damaged: its parts have other features than its names say")
        return builder

    def _fitted(self) -> tuple[Part, ...]:
        if not self.fitted:
            waiting = [part for part in self.parts if not part.fitted]
            raise InvalidInput("parts", waiting, "must be fixed first: builder = builder.fit(past)")
        return self.parts


def _given(part: Part, transformers: Mapping[str, Transforms]) -> Part:
    """The part with the transformers that its file could not hold."""
    if isinstance(part, Interaction):
        item, context = _given(part.item, transformers), _given(part.context, transformers)
        return replace(part, item=item, context=context)
    if isinstance(part, Transformer):
        if part.name not in transformers:
            remedy = f"lacks {part.name!r}; give the transformer that was fitted"
            raise InvalidInput("transformers", list(transformers), remedy)
        return replace(part, transformer=transformers[part.name])
    return part
