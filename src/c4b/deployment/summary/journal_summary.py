"""A summary of a journal for the most frequent questions, updated with every entry: sums, items, alarms.

It is part of the state: it can be computed from the entries alone, and snapshots hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.summary.item_counts import ItemCounts
from c4b.deployment.summary.running_totals import RunningTotals
from c4b.policies.pending import PendingOutcome
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.slates import Outcome, total

ALARMS = 100
"""Alarms remembered, the first ones; and the first one against the model, if it comes after them."""
MODEL = "model"
"""Source of alarms that make certificates void."""


class AlarmMark(NamedTuple):
    """When an alarm was raised."""

    seq: int
    """Number of its entry."""
    at: int
    """Microseconds since 1970."""
    decisions: int
    """Decisions made before it."""
    last_decision: int
    """Number of the last one's entry; -1: there was none."""
    last_tag: str
    """Of the last one's id."""
    reason: str
    source: str
    """``model``: the data contradict it, certificates are void. ``ledger``: the bank is negative."""


class Mark(NamedTuple):
    """What ``undo`` goes back to."""

    totals: int
    alarms: int
    first_play: int | None
    last_tag: str


class JournalSummary:
    """Belongs to one state."""

    def __init__(self, dim: int) -> None:
        self.totals = RunningTotals(dim)
        self.items = ItemCounts()
        self.alarms: list[AlarmMark] = []
        self.first_play: int | None = None
        """Number of the entry of the first decision for a candidate."""
        self.last_tag = ""
        """Of the last decision's id; empty in early journals."""

    @property
    def model_alarm(self) -> AlarmMark | None:
        """The first alarm against the model: from it on, and before it, nothing is certified."""
        return next((alarm for alarm in self.alarms if alarm.source == MODEL), None)

    def decided(self, seq: int, at: int, bank: float, fallback: bool, made: PendingOutcome) -> None:
        self.totals.add(seq, at, bank, fallback, made)
        if not fallback and self.first_play is None:
            self.first_play = seq

    def offered(self, round_: int, labels: Sequence[str], details: Array, action: int | None) -> None:
        """The candidates of the decision that was just made; where the journal keeps only what was
        executed, only that."""
        fits = (details[CandidateField.MARGIN] >= 0.0).tolist()
        self.items.decided(round_, labels, fits, action)

    def outcome(self, round_: int, reward: Outcome | None, items: Array | None) -> None:
        """What was earned. The sum of a slate of several ``items`` has another scale of noise than the
        interval of an item assumes, and does not count there."""
        earned = None if reward is None else total(reward)
        self.totals.outcome(round_, earned)
        self.items.outcome(round_, earned if items is None or len(items) == 1 else None)

    def amended(self, round_: int, before: PendingOutcome, after: PendingOutcome, bank: float) -> None:
        self.totals.amend(round_, before, after, bank)
        self.items.amended(round_)

    def alarm(self, seq: int, at: int, reason: str, source: str) -> None:
        if len(self.alarms) < ALARMS or (source == MODEL and self.model_alarm is None):
            last, decisions = self.totals.last_seq, self.totals.decisions
            self.alarms.append(AlarmMark(seq, at, decisions, last, self.last_tag, reason, source))

    def mark(self) -> Mark:
        """What ``undo`` needs when a later decision of the same call fails."""
        self.items.mark()
        return Mark(self.totals.mark(), len(self.alarms), self.first_play, self.last_tag)

    def settle(self) -> None:
        """Nothing before this moment will be taken back."""
        self.totals.settle()
        self.items.settle()

    def undo(self, mark: Mark) -> None:
        self.totals.undo(mark.totals)
        self.items.undo()
        del self.alarms[mark.alarms :]
        self.first_play, self.last_tag = mark.first_play, mark.last_tag

    def plain(self, alarms: int | None = None) -> dict[str, Any]:
        """As JSON data, beside ``arrays``. alarms: at most so many, the first ones."""
        return {
            "items": self.items.plain(),
            "alarms": self.alarms[:alarms],
            "first_play": self.first_play,
            "last_tag": self.last_tag,
        }

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return self.totals.arrays()

    @classmethod
    def restored(
        cls, plain: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]], dim: int
    ) -> JournalSummary:
        summary = cls(dim)
        summary.totals = RunningTotals.restored(arrays, dim)
        summary.items = ItemCounts.restored(plain["items"])
        summary.alarms = [AlarmMark(*alarm) for alarm in plain["alarms"]]
        summary.first_play, summary.last_tag = plain["first_play"], plain["last_tag"]
        return summary
