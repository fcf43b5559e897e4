"""Sums over all decisions, and the same sums as they were after some earlier decisions.

A window of the past is the difference of two such sums. So a question about the last day costs the same
in a journal of a hundred decisions and of a million. The decisions after which sums are kept depend on
the number of decisions alone: of the last 32 after every one, of the last 64 after every second, of the
last 128 after every fourth, and so on. So a window that ends now begins where it was asked to, to about
3 % of its length, and the number of kept sums grows with the logarithm of the number of decisions.

Sums belong to decisions, not to the time of a report. If a reward or a report of another execution comes
late, it is added to every kept sum that includes its decision.

New numbers are noted first and added up later, many at a time and in the same order: when a sum is read,
or when there are enough of them. So taking back a decision only drops a note.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.summary.added_decisions import HEADING, NEW, Sum, add_up, execute_instead
from c4b.policies.pending import PendingOutcome

_new = tuple.__new__
"""Makes a note of all its fields in the least time."""
NOTES = 64
"""Notes that are added up as soon as none of them can be taken back."""
TOGETHER = 8
"""Rewards in a row from which it is less work to add them to columns of all sums than row by row."""
KEPT = 32
"""Sums after a multiple of 2^v decisions, and no higher power, are dropped 2^v KEPT decisions later."""


_SEQ, _DECISIONS, _OUTCOMES, _REWARD = map(int, (Sum.SEQ, Sum.DECISIONS, Sum.OUTCOMES, Sum.REWARD))
_EARNED = slice(_OUTCOMES, _REWARD + 1)


def blocks(row: Array) -> Array:
    """(3, d): features executed where that was not the baseline, baselines of the same rounds, baselines
    of all other rounds."""
    return row[HEADING:].reshape(3, -1)


class _Decided(NamedTuple):
    """A decision that is to be added; see ``New``."""

    seq: int
    at: int
    bank: float
    fallback: bool
    is_baseline: bool
    mean: float
    executed: Array
    baseline: Array


class _Reported(NamedTuple):
    """A reward that is to be added."""

    round: int
    reward: float


class RunningTotals:
    """The sums now, and after some earlier decisions. Belongs to one state."""

    def __init__(self, dim: int) -> None:
        self._now = np.zeros(HEADING + 3 * dim)
        self._error = np.zeros((3, dim))  # what rounding has taken from the sums of features
        self._kept: dict[int, Array] = {}
        self._notes: list[_Decided | _Reported] = []

    @property
    def now(self) -> Array:
        """The sums over all decisions."""
        self._add_up()
        return self._now

    @property
    def kept(self) -> dict[int, Array]:
        """Earlier sums by number of decisions, in order."""
        self._add_up()
        return self._kept

    @property
    def decisions(self) -> int:
        """How many there were."""
        noted = sum(isinstance(note, _Decided) for note in self._notes)
        return int(self._now.item(_DECISIONS)) + noted

    @property
    def last_seq(self) -> int:
        """Number of the last decision's entry; -1: there was none."""
        for note in reversed(self._notes):
            if isinstance(note, _Decided):
                return note.seq
        return int(self._now.item(_SEQ)) if self._now.item(_DECISIONS) else -1

    def add(self, seq: int, at: int, bank: float, fallback: bool, made: PendingOutcome) -> None:
        """The next decision."""
        self._notes.append(_noted(made, seq, at, bank, fallback))

    def outcome(self, round_: int, reward: float | None) -> None:
        """The reward of round ``round_`` (0 is the first); None: it is lost."""
        if reward is not None:
            self.settle()
            self._notes.append(_Reported(round_, reward))

    def _add_up(self) -> None:
        """Add what is noted, one after the other; of the sums after each decision only those that are
        still kept then."""
        if not self._notes:
            return
        before, kept, decisions = int(self._now.item(_DECISIONS)), self._kept, list[_Decided]()
        outcomes = list[tuple[int, int, float]]()
        for note in self._notes:
            if type(note) is _Decided:
                decisions.append(note)
            else:
                outcomes.append((len(decisions), *note))
        self._notes.clear()
        after = np.empty((len(decisions), len(self._now)))
        reported = np.array(outcomes, dtype=np.float64).reshape(-1, 3)
        add_up(self._now, self._error, *self._numbers(decisions), reported, after)
        if kept and (late := [(r, reward) for _, r, reward in outcomes if r < before]):
            self._reported(late)
        last = before + len(decisions)
        for number, row in enumerate(after, before + 1):
            kept.pop(number - _kept_for(number), None)
            if number + _kept_for(number) > last:
                kept[number] = row.copy()

    def _reported(self, late: list[tuple[int, float]]) -> None:
        """Rewards, one after the other, in all kept sums that include their rounds."""
        if len(late) < TOGETHER:
            for round_, reward in late:
                for row in self._including(round_):
                    row[_OUTCOMES] = row.item(_OUTCOMES) + 1.0
                    row[_REWARD] = row.item(_REWARD) + reward
            return
        rows, numbers = [*self._kept.values()], [*self._kept]
        sums = np.array([row[_EARNED] for row in rows])
        outcomes, earned = sums.T.copy()
        for round_, reward in late:
            first = bisect_right(numbers, round_)
            outcomes[first:] += 1.0
            earned[first:] += reward
        for row, *new in zip(rows, outcomes.tolist(), earned.tolist(), strict=True):
            row[_EARNED] = new

    def amend(self, round_: int, before: PendingOutcome, after: PendingOutcome, bank: float) -> None:
        """Something else was executed in round ``round_``."""
        now = self.now
        execute_instead(now, self._error, *self._numbers([_noted(before), _noted(after)]))
        now[Sum.BANK] = bank
        now[Sum.AMENDED] += 1.0
        change = _parts(after) - _parts(before)
        played = float(before.is_baseline) - float(after.is_baseline)
        for row in self._including(round_):
            row[Sum.BANK] = np.nan
            row[Sum.PLAYED] += played
            row[Sum.TOLD_PLAYED] += played * (after.baseline_mean or 0.0)
            row[Sum.AMENDED] += 1.0
            blocks(row)[...] += change

    def _including(self, round_: int) -> list[Array]:
        """The kept sums that include a round, latest first."""
        rows = []
        for number in reversed(self._kept):
            if number <= round_:
                break
            rows.append(self._kept[number])
        return rows

    def _numbers(self, notes: list[_Decided]) -> tuple[Array, Array]:
        """What ``added_decisions`` takes: (n, NEW) and (n, 2, d)."""
        features = np.empty((len(notes), *self._error[:2].shape))
        numbers = np.empty((len(notes), NEW))
        if notes:
            rows = [row for note in notes for row in note[-2:]]
            np.concatenate(rows, out=features.reshape(-1))
            numbers[:, :-2] = [note[:-2] for note in notes]
            numbers[:, -2:] = np.sqrt(np.vecdot(features, features))
        return numbers, features

    def mark(self) -> int:
        """A mark for ``undo``, which takes back the decisions after it, if no sum is read before."""
        self.settle()
        return len(self._notes)

    def settle(self) -> None:
        """Nothing before this moment will be taken back; what has come together is added up."""
        if len(self._notes) >= NOTES:
            self._add_up()

    def undo(self, mark: int) -> None:
        """Take back the decisions since ``mark``; no outcome was reported in between."""
        del self._notes[mark:]

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """What ``restored`` takes: the sums and what rounding took from them."""
        rows = [*self.kept.values(), self.now]
        return {"rows": np.array(rows), "error": self._error}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray[Any, Any]], dim: int) -> RunningTotals:
        totals = cls(dim)
        *kept, now = arrays["rows"]
        totals._now[:] = now
        totals._error[...] = arrays["error"]
        totals._kept = {int(row[Sum.DECISIONS]): row.copy() for row in kept}
        return totals


def _kept_for(number: int) -> int:
    """After how many more decisions the sums after decision ``number`` are dropped."""
    return KEPT * (number & -number)


def _noted(
    made: PendingOutcome, seq: int = 0, at: int = 0, bank: float = 0.0, fallback: bool = False
) -> _Decided:
    mean = math.nan if made.baseline_mean is None else made.baseline_mean
    note = seq, at, bank, fallback, made.is_baseline, mean, made.executed, made.baseline
    return _new(_Decided, note)


def _parts(made: PendingOutcome) -> Array:
    """(3, d): what a round adds to the sums of features."""
    nothing = np.zeros_like(made.baseline)
    if made.is_baseline:
        return np.stack([nothing, nothing, made.baseline])
    return np.stack([made.executed, made.baseline, nothing])
