"""Find a key that a JSON object has twice: the parser keeps the last value and drops the others.

A complete search takes as long as parsing again. A count nearly always shows that no value was dropped. A
text has one colon for each key, besides the colons within its strings, and every dropped value takes at
least one colon with it. So if the parsed value accounts for all colons, nothing was dropped.
"""

from __future__ import annotations

import json
from typing import Any

_ESCAPED_COLON = b"\\u003"
"""How a colon begins that a string has and the text has not."""
_NUMBERS = (float, int)


def repeated_key(body: bytes, value: Any) -> str | None:
    """A key that an object of ``body`` has twice, if there is one. ``value`` is what was parsed of it."""
    return None if is_complete(body, value) else _search(body)


def is_complete(body: bytes, value: Any) -> bool:
    """Whether counting shows that ``value`` has all of ``body``. False: nothing is known."""
    found = body.count(b":")
    if type(value) is dict and found == len(value):
        return True
    return found == _colons(value) and _ESCAPED_COLON not in body


def _colons(value: Any) -> int:
    """At most the number of colons in the text of ``value``: some are left out to save time."""
    kind = type(value)
    if kind is str:
        return int(value.count(":"))
    if kind is dict:
        return len(value) + sum(map(_colons, value.values()))
    if kind is not list or not value or _begins_with_numbers(value):
        return 0
    if set(map(type, value)) == {str}:
        return "".join(value).count(":")
    return sum(map(_colons, value))


def _begins_with_numbers(value: list[Any]) -> bool:
    """Whether the first element is a number, or a row that begins with one."""
    first = value[0]
    return type(first[0] if type(first) is list and first else first) in _NUMBERS


class _RepeatedKeyError(Exception):
    """Ends the search."""


def _search(body: bytes) -> str | None:
    try:
        json.loads(body, object_pairs_hook=_each_once, parse_int=str, parse_float=str, strict=False)
    except _RepeatedKeyError as found:
        return str(found)
    return None


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Takes the pairs of one object."""
    if len(dict(pairs)) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKeyError(key)
            seen.add(key)
