"""The common parts of request and response bodies, and the types of their numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import InitErrorDetails, ValidationError

# a list of millions of wrong elements is refused at the first of them
Vector = Annotated[list[float], Field(fail_fast=True)]
Matrix = Annotated[list[Vector], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]


PLAIN, SLATE = "(plain)", "(slate)"
"""What a value was taken for: parts of an error's place that are no part of the request."""


def _slate_at(depth: int) -> Discriminator:
    """A list that is so deep, judged by its first elements, belongs to a slate."""

    def kind(value: Any) -> str:
        found = 0
        while isinstance(value, list) and found < depth:
            found, value = found + 1, value[0] if value else None
        return SLATE if found == depth else PLAIN

    return Discriminator(kind)


Actions = Annotated[
    Annotated[Matrix, Tag(PLAIN)] | Annotated[list[Matrix], Field(fail_fast=True), Tag(SLATE)],
    _slate_at(3),
]
Action = Annotated[Annotated[Vector, Tag(PLAIN)] | Annotated[Matrix, Tag(SLATE)], _slate_at(2)]
Reward = Annotated[Annotated[float, Tag(PLAIN)] | Annotated[Vector, Tag(SLATE)], _slate_at(1)]


def is_none(value: Any) -> bool:
    return value is None


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite_or_none)]
"""A finite number; null where the library has NaN or infinity (no gate, or not certifiable)."""


class RequestBody(BaseModel):
    """Base of request bodies. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _first_unknown_key(cls, value: Any) -> Any:
        """Refuse the first unknown key at once; ``extra`` alone would list a million of them."""
        if isinstance(value, dict):
            known = cls.__pydantic_fields__
            for key, given in value.items():
                if key not in known:
                    error = InitErrorDetails(type="extra_forbidden", loc=(key,), input=given)
                    raise ValidationError.from_exception_data(cls.__name__, [error])
        return value


class ResponseBody(BaseModel):
    """Base of response bodies. A client ignores keys that it does not know."""

    model_config = ConfigDict(frozen=True, from_attributes=True)
