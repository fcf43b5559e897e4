"""Converts parts to and from JSON objects with the kind and the part's own fields."""

from __future__ import annotations

from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.features.part import Part


def kinds() -> dict[str, type[Part]]:
    """Every kind of part, including those that other packages derive from ``Part`` or from a part."""
    found = Part.__subclasses__()
    for each in found:  # grows while it is read
        found += each.__subclasses__()
    return {each.kind: each for each in found if "kind" in vars(each)}


def write(part: Part) -> dict[str, Any]:
    """Write a part, so that ``read`` gives the same part.

    Refuses a part whose kind belongs to another class.
    """
    known, own = kinds().get(getattr(part, "kind", "")), type(part)
    if known is None or (known.__module__, known.__qualname__) != (own.__module__, own.__qualname__):
        remedy = f"{own.__name__} needs a kind of its own, a text that no other part has, to be saved"
        raise InvalidInput("kind", getattr(part, "kind", None), remedy)
    return {"kind": part.kind, **part.to_dict()}


def read(fields: dict[str, Any]) -> Part:
    kind = _validate.name("kind", fields.get("kind"), kinds())
    return kinds()[kind].from_dict({key: value for key, value in fields.items() if key != "kind"})
