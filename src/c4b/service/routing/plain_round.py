"""Read the body of a decision that is plainly valid, without the schema and without lists of lists.

Most bodies have rows of numbers, and perhaps labels and a context. Recognising such a body takes a
fraction of the time of the schema and of NumPy's search for a shape. Every other body is left to the
schema.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from pydantic_core import from_json

from c4b.policies import Round
from c4b.service import schemas
from c4b.service.routing.repeated_keys import repeated_key

_KEYS = schemas.Round.model_fields.keys()
_NUMBERS = {float, int}


def parsed(body: bytes, request_id: str | None) -> Round | None:
    """The round that ``schemas.Round`` would give, with arrays; None: the schema has to judge it.

    Raises ``ValueError`` or ``OverflowError`` for what is not JSON or not a number of 64 bits.
    """
    value: Any = from_json(body, allow_inf_nan=False)
    if type(value) is not dict or not value.keys() <= _KEYS:
        return None
    rows, baseline = value.get("candidates"), value.get("baseline")
    if type(rows) is not list or type(baseline) is not list or set(map(type, rows)) != {list}:
        return None
    if set(map(len, rows)) != {len(baseline)}:
        return None
    flat = list(chain(baseline, *rows))
    if not set(map(type, flat)) <= _NUMBERS:
        return None
    mean, labels = value.get("baseline_mean"), value.get("labels")
    if mean is not None and type(mean) is not float:
        return None
    if labels is not None and (type(labels) is not list or not set(map(type, labels)) <= {str}):
        return None
    if repeated_key(body, value) is not None:
        return None
    numbers = np.fromiter(flat, np.float64, len(flat)).reshape(len(rows) + 1, -1)
    return Round(numbers[1:], numbers[0], mean, labels, request_id, value.get("context"))
