"""Parts as JSON objects: the kind, and the part's own fields."""

from __future__ import annotations

from typing import Any

from c4b import _validate
from c4b.features.part import Part


def kinds() -> dict[str, type[Part]]:
    """Every kind of part, also those that other packages derive."""
    return {each.kind: each for each in Part.__subclasses__()}


def write(part: Part) -> dict[str, Any]:
    return {"kind": part.kind, **part.to_dict()}


def read(fields: dict[str, Any]) -> Part:
    kind = _validate.name("kind", fields.get("kind"), kinds())
    return kinds()[kind].from_dict({key: value for key, value in fields.items() if key != "kind"})
