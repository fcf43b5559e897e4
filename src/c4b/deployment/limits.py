"""What a deployment accepts: sizes, names, contexts. They are checked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput, PayloadTooLarge
from c4b.journal.entries import canonical
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import DecisionNumbers

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DEPTH = 100
"""Deepest nesting of a context: it has to be read back, from anywhere in a stack."""
_LEAVES = frozenset((int, float, bool, type(None)))
_TEXTS = frozenset((str,))
LABEL = 200
"""Longest label of a candidate, in characters."""
REQUEST_ID = 200
"""Longest request id, in characters: as wide as its column."""
TEXT = 500
"""Longest reason of an order, in characters."""
NUMBERS_OF_CANDIDATE = len(CandidateField) + 1
"""Numbers of a candidate in an entry besides its features: its details and its contrast's upper bound."""
NUMBERS_OF_DECISION = len(DecisionNumbers._fields)
HISTORY_HEADER, DECISION_HEADER = 256, 768
"""Most bytes of an entry that are neither numbers nor the caller's text: names, shapes, an alarm."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes above which input is refused with ``PayloadTooLarge``.

    They apply to one ``Deployment`` object.

    >>> Limits(candidates=64).candidates
    64
    """

    candidates: int = 10_000
    """Largest number of candidates in one decision."""
    context_bytes: int = 16_384
    """Largest size of one decision's context as JSON, in bytes."""
    payload_bytes: int = 16_777_216
    """Largest journal entry in bytes: the features of a decision, or the rows of one ``learn``."""
    batch: int = 10_000
    """Largest number of decisions or outcomes in one ``decide_many`` or ``observe_many``."""
    batch_bytes: int = 33_554_432
    """Largest size of all entries of one ``decide_many``, in bytes: it holds the journal's lock
    meanwhile."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            _validate.count(field.name, value, 1, "must be a whole number of at least 1")

    def history(self, argument: str, rows: int, dim: int) -> None:
        """Raise ``PayloadTooLarge`` for more rows than one entry holds."""
        size = 8 * rows * (dim + 1) + HISTORY_HEADER
        self._at_most(argument, size, self.payload_bytes, "bytes in one learn(); split it")

    def rows(self, dim: int) -> int:
        """The largest number of rows that one ``learn`` accepts; at least 1."""
        return max((self.payload_bytes - HISTORY_HEADER) // (8 * (dim + 1)), 1)

    def pool(
        self,
        argument: str,
        size: int,
        dim: int,
        context: str | None = None,
        labels: Sequence[str] | None = None,
    ) -> int:
        """Raise ``PayloadTooLarge`` if ``size`` candidates of ``dim`` features are too many.

        Returns the largest number of bytes that their entry can have. An entry holds the candidates'
        numbers, the baseline, the estimate, the decision's numbers and some text.
        """
        if size > self.candidates:
            self._at_most(argument, size, self.candidates, "candidates")
        numbers = size * (dim + NUMBERS_OF_CANDIDATE) + 2 * dim + NUMBERS_OF_DECISION
        text = DECISION_HEADER
        if context is not None:
            text += len(context) + context.count('"') + context.count("\\")  # JSON text within JSON
        if labels is not None:
            text += len(canonical(labels))
        entry = 8 * numbers + text
        if entry > self.payload_bytes:
            self._at_most(argument, entry, self.payload_bytes, "bytes in one entry")
        return entry

    def several(self, argument: str, size: int) -> None:
        self._at_most(argument, size, self.batch, "in one call; split it")

    def together(self, argument: str, size: int) -> None:
        """Raise ``PayloadTooLarge`` if the entries of several rounds, ``size`` bytes in all, are too
        large."""
        self._at_most(argument, size, self.batch_bytes, "bytes of entries in one call; split it")

    def context(self, argument: str, value: object) -> str | None:
        """Return ``value`` as JSON text. It must be plain JSON, readable unchanged, and not too large."""
        if value is None:
            return None
        remedy = (
            "must be plain JSON: dict with text keys, list, text, finite number, bool or None, "
            f"at most {_DEPTH} deep"
        )
        try:
            left = _left_of(self.context_bytes, value, 0)
        except TypeError as error:
            raise InvalidInput(argument, value, remedy) from error
        if left < 0:
            self._at_most(argument, self.context_bytes - left, self.context_bytes, "bytes of JSON")
        try:
            text = canonical(value)
        except ValueError as error:  # NaN, infinite
            raise InvalidInput(argument, value, remedy) from error
        if len(text) > self.context_bytes:
            self._at_most(argument, len(text), self.context_bytes, "bytes of JSON")
        return text

    def _at_most(self, argument: str, size: int, limit: int, what: str) -> None:
        if size > limit:
            raise PayloadTooLarge(argument, size, f"at most {limit} {what}; the limits are configuration")


def _left_of(size: int, value: object, depth: int) -> int:
    """``size`` less the length of the shortest JSON of ``value``; what is beyond ``size`` is not read.

    Raises ``TypeError`` unless JSON gives exactly this back.
    """
    kind = type(value)
    if isinstance(value, str) and kind is str:
        return size - len(value) - 2
    if kind in _LEAVES:
        return size - 1
    if depth >= _DEPTH or kind not in (dict, list):
        raise TypeError(kind)
    parts: Any = value
    if kind is dict:
        if not _TEXTS.issuperset(map(type, parts)):
            raise TypeError(dict)
        size -= sum(map(len, parts))
        parts = parts.values()
    for part in parts:
        if size < 0:
            break
        size = size - 2 if type(part) in _LEAVES else _left_of(size - 1, part, depth + 1)
    return size


def deployment_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        remedy = "must be 1 to 100 of a to z, A to Z, 0 to 9, '.', '_' and '-', not starting with a sign"
        raise InvalidInput("name", name, remedy)
    return name


def request_id(argument: str, value: object) -> str | None:
    if value is None:
        return None
    remedy = f"must be a text of 1 to {REQUEST_ID} printable characters"
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInput(argument, value, remedy)
    if len(value) > REQUEST_ID:
        raise PayloadTooLarge(argument, value, remedy)
    return value


def text(argument: str, value: object) -> str:
    """Check a text that a person wrote, such as the reason of an order."""
    remedy = f"must be a text of 1 to {TEXT} printable characters"
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInput(argument, value, remedy)
    if len(value) > TEXT:
        raise PayloadTooLarge(argument, value, remedy)
    return value


def labels(argument: str, values: Sequence[str]) -> None:
    """Refuse labels that are unreadable or too long. The round checks their number."""
    remedy = f"must be a text of 1 to {LABEL} printable characters"
    for n, label in enumerate(values):
        if not label.isprintable() or not label.strip():
            raise InvalidInput(f"{argument}[{n}]", label, remedy)
        if len(label) > LABEL:
            raise PayloadTooLarge(f"{argument}[{n}]", label, remedy)
