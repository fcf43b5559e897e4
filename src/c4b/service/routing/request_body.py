"""Parse and validate request bodies in bounded time, so that no body delays the other requests.

The parser and the validator hold the interpreter's lock. Moving them to a thread is therefore not enough:
the work itself is bounded. A body with too many values is refused before it is parsed, and validation
stops at the first wrong element of a list and at the first unknown key (``schemas.RequestBody``). Large
bodies are parsed in a thread, one at a time. So the event loop waits for one of them at most.
"""

from __future__ import annotations

import reprlib
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi._compat import ModelField
from fastapi.exceptions import RequestValidationError
from pydantic_core import from_json

from c4b.service.routing.problems import Refused
from c4b.service.routing.repeated_keys import repeated_key

LARGE = 32_768
"""Bytes from which a body is parsed in a thread."""
BYTES_PER_VALUE, FEWEST_VALUES = 8, 524_288
"""A body may hold one value for so many bytes of the limit on its size, and at least so many values."""
CONTAINER_COST = 3
"""A list, an object or a key takes as long to parse as so many numbers."""


class BodyParser:
    """Turns bodies into values of their route's type.

    Raises ``Refused`` or ``RequestValidationError``.
    """

    def __init__(self, body_bytes: int) -> None:
        """body_bytes: the limit on the size of a body."""
        self._most_values = max(body_bytes // BYTES_PER_VALUE, FEWEST_VALUES)
        self._one_at_a_time = CapacityLimiter(1)

    async def parse(self, body: bytes, field: ModelField) -> Any:
        """The validated value of ``body``."""
        if len(body) < LARGE:
            return parsed(body, field)
        if value_count(body) > self._most_values:
            most = f"at most {self._most_values} values, each list and key counted {CONTAINER_COST} times"
            detail = f"a request has {most}; split it"
            raise Refused(413, "payload-too-large", detail)
        return await to_thread.run_sync(parsed, body, field, limiter=self._one_at_a_time)


def value_count(body: bytes) -> int:
    """At least the number of values in a JSON text. Lists, objects and keys count more. It is much faster
    than parsing."""
    return body.count(b",") + CONTAINER_COST * sum(map(body.count, (b"[", b"{", b":")))


def parsed(body: bytes, field: ModelField) -> Any:
    """Parse with a limit on nesting and without NaN, then validate. No key may be there twice."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise _not_json(str(error)) from error
    checked, errors = field.validate(value, {}, loc=("body",))
    if errors:
        raise RequestValidationError(errors)
    key = repeated_key(body, value)
    if key is not None:
        raise _not_json(f"an object has the key {reprlib.repr(key)} twice")
    return checked


def _not_json(reason: str) -> RequestValidationError:
    return RequestValidationError([{"type": "json_invalid", "loc": ("body",), "ctx": {"error": reason}}])
