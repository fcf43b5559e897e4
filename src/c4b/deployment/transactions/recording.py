"""How much of a decision the journal keeps.

``everything``: all candidates, and the bounds of those that the choice depended on. The other bounds can
be recomputed: ``Deployment.explain`` does, and an audit checks that each certificate is right and that
the rule chose, of all candidates, what was executed.

``executed``: of the candidates only the one that was executed, and the one that the gate chose if the
incumbent was executed by order. Whether the budget was kept depends on what was executed alone, so an
audit still recomputes every certificate, margin and bank. It cannot check any more that no other
candidate was to be chosen, and its report counts these decisions. A hash of all candidates recognises
repeated requests.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.policies.compiled.compiled_gate import UPPER
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.round import Round

EVERYTHING, EXECUTED = "everything", "executed"
LEVELS = (EVERYTHING, EXECUTED)
KEPT, OFFERED, POOL = "kept", "offered", "pool"
"""Fields of a reduced entry: indices of the candidates in it, how many there were, their hash."""
EVALUATED = "evaluated"
"""Field of an entry with all candidates: indices of those whose details are in it."""
_MARGIN = int(CandidateField.MARGIN)

Fields = dict[str, Any]
Arrays = dict[str, Array]


def kept_candidates(action: int | None, proposed: int | None) -> list[int]:
    """Of which candidates a reduced entry holds everything."""
    return sorted({k for k in (action, proposed) if k is not None})


def reduced(fields: Fields, arrays: Arrays) -> tuple[Fields, Arrays]:
    """A decision's entry without the candidates that were not executed."""
    candidates = arrays["candidates"]
    kept = kept_candidates(fields["action"], fields.get("proposed"))
    items = arrays.get("items")
    less: Fields = {**fields, KEPT: kept, OFFERED: len(candidates), POOL: pool_hash(candidates, items)}
    if "labels" in fields:
        less["labels"] = [fields["labels"][k] for k in kept]
    smaller = {**arrays, "candidates": candidates[kept], "details": arrays["details"][:, kept]}
    for name in ("items", UPPER):
        if name in arrays:
            smaller[name] = arrays[name][kept]
    return less, smaller


def leave_out_details(fields: Fields, arrays: Arrays) -> None:
    """Take the details of candidates whose margin nobody needed out of a decision's entry."""
    details = arrays["details"]
    margins = details[_MARGIN]
    known = (margins == margins).nonzero()[0]  # noqa: PLR0124 (NaN)
    fields[EVALUATED] = numbers = known.tolist()
    if len(numbers) == 1:  # in most rounds: a view is enough
        arrays["details"] = details[:, numbers[0] : numbers[0] + 1]
    elif len(numbers) < len(margins):
        arrays["details"] = details.take(known, axis=1)


def all_details(fields: Fields, arrays: Arrays) -> Array:
    """Details of all candidates in an entry, NaN where they were not evaluated."""
    if EVALUATED not in fields:
        return arrays["details"]
    details = np.full((len(CandidateField), len(arrays["candidates"])), np.nan)
    details[:, fields[EVALUATED]] = arrays["details"]
    return details


def expanded(fields: Fields, arrays: Arrays) -> tuple[Fields, Arrays]:
    """The entry in the shape of a complete one; numbers that were not kept are NaN."""
    if KEPT not in fields:
        return fields, {**arrays, "details": all_details(fields, arrays)}
    kept, count = fields[KEPT], fields[OFFERED]
    more, larger = dict(fields), dict(arrays)
    for name, axis in (("candidates", 0), ("items", 0), ("details", 1), (UPPER, 0)):
        if name in arrays:
            shape = list(arrays[name].shape)
            shape[axis] = count
            larger[name] = np.full(shape, np.nan)
            larger[name][(slice(None),) * axis + (kept,)] = arrays[name]
    if "labels" in fields:
        labels = dict(zip(kept, fields["labels"], strict=True))
        more["labels"] = [labels.get(k, "") for k in range(count)]
    return more, larger


def position(fields: Fields, candidate: int) -> int:
    """The row of a candidate in the entry's arrays."""
    row: int = fields[KEPT].index(candidate) if KEPT in fields else candidate
    return row


def same_pool(given: Round, fields: Fields, recorded: Arrays) -> bool:
    """Whether ``given`` has the candidates, and their items, that were recorded."""
    items = None if given.items is None else given.items.candidates
    incumbent = None if given.items is None else given.items.baseline
    if not _same(incumbent, recorded.get("baseline_items")):
        return False
    if KEPT in fields:
        return bool(fields[POOL] == pool_hash(given.candidates, items))
    return np.array_equal(given.candidates, recorded["candidates"]) and _same(
        items, recorded.get("items")
    )


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def pool_hash(candidates: Array, items: Array | None = None) -> str:
    """SHA-256 of the shape and of the numbers, float64, little-endian, row by row; of slates: items."""
    pool = candidates if items is None else items
    text = "x".join(map(str, pool.shape)) + ":"
    return hashlib.sha256(text.encode() + pool.astype("<f8").tobytes()).hexdigest()
