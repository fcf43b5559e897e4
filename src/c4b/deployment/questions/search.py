"""Find decisions by request id, label, outcome and time.

Request ids and times are found by an index, labels and outcomes by reading decisions, newest first. One
call reads at most ``READ`` decisions and returns where to continue, so that a search does not block other
calls for long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from c4b import _validate
from c4b.deployment.questions.views import Record
from c4b.errors import InvalidInput
from c4b.journal.entries import DECIDED, Entry
from c4b.journal.journal import Journal

READ = 5000
"""Decisions that one call reads at most."""
PAGE = 250
OUTCOMES = ("pending", "observed", "timeout", "forgotten")
BASELINE = "baseline"
"""What ``played`` says for the incumbent's own action, and for any candidate."""
CANDIDATE = "candidate"
Records = Callable[[list[Entry]], list[Record]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions of a search; None: no condition."""

    request_id: str | None = None
    label: str | None = None
    """Label of the candidate that was played."""
    outcome: str | None = None
    played: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for argument in ("request_id", "label"):
            value = getattr(self, argument)
            if value is not None and not isinstance(value, str):
                raise InvalidInput(argument, value, "must be a text")
        if self.outcome is not None:
            _validate.name("outcome", self.outcome, OUTCOMES)
        if self.played is not None:
            _validate.name("played", self.played, (BASELINE, CANDIDATE))
        for argument in ("since", "until"):
            value = getattr(self, argument)
            if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
                raise InvalidInput(argument, value, "must be a datetime with a time zone")

    def fits(self, record: Record) -> bool:
        """Whether a record meets the conditions, except the time, which was compared already."""
        made = record.decision
        return (
            self.label in (None, made.label)
            and self.outcome in (None, record.outcome)
            and self.played in (None, BASELINE if made.is_baseline else CANDIDATE)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The decisions that a search found, newest first."""

    records: list[Record]
    next: str | None
    """Id to pass as ``before`` to continue; None if there are no more."""
    read: int
    """Number of decisions that the search read."""


def find(
    journal: Journal, wanted: Wanted, records: Records, first: int, before: int, limit: int
) -> Found:
    """Find at most ``limit`` decisions after entry ``first`` and before entry ``before``."""
    archived = max(first, 0)
    if wanted.since is not None:
        first = max(first, _entry_at(journal, wanted.since, archived) - 1)
    if wanted.until is not None:
        before = min(before, _entry_at(journal, wanted.until, archived, after=True))
    if wanted.request_id is not None:
        entry = journal.requested([wanted.request_id]).get(wanted.request_id)
        if entry is None or entry.kind != DECIDED or not first < entry.seq < before:
            return Found([], None, 0)
        return Found([each for each in records([entry]) if wanted.fits(each)], None, 1)
    found: list[Record] = []
    read = 0
    while read < READ:
        page = records(journal.decided_last(first, before, PAGE))
        for record in page:
            read += 1
            before = _seq(record)
            if wanted.fits(record):
                found.append(record)
                if len(found) == limit:
                    return Found(found, record.decision.id, read)
        if len(page) < PAGE:
            return Found(found, None, read)
    return Found(found, page[-1].decision.id, read)


def _seq(record: Record) -> int:
    receipt = record.decision.receipt
    assert receipt is not None
    return receipt.seq


def _entry_at(journal: Journal, moment: datetime, low: int, after: bool = False) -> int:
    """Number of the first entry at or after a moment, or ``after`` it: entries' times never fall."""
    at = int(moment.astimezone(UTC).timestamp() * 1e6)
    low, high = low + 1 if low else 0, journal.head.seq + 1
    while low < high:
        middle = (low + high) // 2
        entry = journal.at(middle)
        assert entry is not None
        if entry.at > at or (entry.at == at and not after):
            high = middle
        else:
            low = middle + 1
    return low
