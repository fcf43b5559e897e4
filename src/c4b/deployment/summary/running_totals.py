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
from enum import IntEnum
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.policies.pending import PendingOutcome

_new = tuple.__new__
"""Makes a note of all its fields in the least time."""
NOTES = 64
"""Notes that are added up as soon as none of them can be taken back."""
TOGETHER = 8
"""Rewards in a row from which it is less work to add them to columns of all sums than row by row."""
KEPT = 32
"""Sums after a multiple of 2^v decisions, and no higher power, are dropped 2^v KEPT decisions later."""


class Sum(IntEnum):
    """Where each number lies in a row; the features' sums follow, d numbers each (``blocks``)."""

    DECISIONS = 0
    SEQ = 1
    """Number of the last decision's entry."""
    AT = 2
    """Its time, in microseconds since 1970."""
    BANK = 3
    """After it; NaN once something else was executed in an earlier round."""
    FALLBACKS = 4
    """Decisions for the baseline."""
    PLAYED = 5
    """Rounds in which something else than the baseline was executed."""
    OUTCOMES = 6
    """Rewards reported."""
    REWARD = 7
    """Their sum."""
    TOLD = 8
    """Sum of the baseline means that were told; NaN if they were not."""
    TOLD_PLAYED = 9
    """The same in rounds in which something else than the baseline was executed."""
    AMENDED = 10
    """Other executions that were added later; each may have rounded the sums once more."""
    SIZE = 11
    """Sum of the norms of all that was added to the features' sums: what their rounding is bounded by."""


HEADING = len(Sum)
_DECISIONS, _SEQ, _AT, _BANK, _FALLBACKS, _PLAYED, _OUTCOMES, _REWARD, _TOLD, _TOLD_PLAYED, _, _SIZE = (
    map(int, Sum)
)
_PLAYS, _OTHERS = slice(0, 2), 2  # of ``blocks``
_EARNED = slice(_OUTCOMES, _REWARD + 1)


def blocks(row: Array) -> Array:
    """(3, d): features executed where that was not the baseline, baselines of the same rounds, baselines
    of all other rounds."""
    return row[HEADING:].reshape(3, -1)


class _Decided(NamedTuple):
    """A decision that is to be added."""

    seq: int
    at: int
    bank: float
    fallback: bool
    executed: Array
    baseline: Array
    is_baseline: bool
    mean: float | None


class _Reported(NamedTuple):
    """A reward that is to be added."""

    round: int
    reward: float


class RunningTotals:
    """The sums now, and after some earlier decisions. Belongs to one state."""

    def __init__(self, dim: int) -> None:
        self._now = np.zeros(HEADING + 3 * dim)
        self._error = np.zeros((3, dim))  # what rounding has taken from the sums of features
        features = blocks(self._now)
        self._plays = features[_PLAYS], self._error[_PLAYS]
        self._others = features[_OTHERS], self._error[_OTHERS]
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
        executed, baseline = made.executed, made.baseline
        note = seq, at, bank, fallback, executed, baseline, made.is_baseline, made.baseline_mean
        self._notes.append(_new(_Decided, note))

    def outcome(self, round_: int, reward: float | None) -> None:
        """The reward of round ``round_`` (0 is the first); None: it is lost."""
        if reward is not None:
            self.settle()
            self._notes.append(_Reported(round_, reward))

    def _add_up(self) -> None:
        for kind, notes in groupby(self._notes, type):
            if kind is _Decided:
                for note in notes:
                    self._decided(*note)
            else:
                self._reported(list(notes))
        self._notes.clear()

    def _decided(self, seq: int, at: int, bank: float, fallback: bool, *executed: Any) -> None:
        """``executed``: as ``_execute`` takes it."""
        now, kept = self._now, self._kept
        number = int(now.item(_DECISIONS)) + 1
        now[_DECISIONS], now[_SEQ], now[_AT], now[_BANK] = number, seq, at, bank
        if fallback:
            now[_FALLBACKS] += 1.0
        self._execute(1.0, *executed)
        kept[number] = now.copy()
        old = number - KEPT * (number & -number)
        if old > 0:
            del kept[old]

    def _execute(
        self, sign: float, executed: Array, baseline: Array, is_baseline: bool, mean: float | None
    ) -> None:
        """Add what was executed in a round to the sums of now, or with ``sign`` -1 take it back."""
        now = self._now
        size = now.item(_SIZE)
        if mean is None:
            now[_TOLD] = math.nan
        else:
            now[_TOLD] += sign * mean
            size += abs(mean)
        if is_baseline:
            _add(*self._others, baseline, sign)
            now[_SIZE] = size + math.sqrt(baseline.dot(baseline))
            return
        now[_PLAYED] += sign
        if mean is not None:
            now[_TOLD_PLAYED] += sign * mean
        _add(*self._plays, np.array((executed, baseline)), sign)
        now[_SIZE] = size + math.sqrt(executed.dot(executed)) + math.sqrt(baseline.dot(baseline))

    def _reported(self, notes: list[Any]) -> None:
        """Rewards, one after the other, in all sums that include their rounds."""
        if len(notes) < TOGETHER:
            for round_, reward in notes:
                for row in self._including(round_):
                    row[_OUTCOMES] = row.item(_OUTCOMES) + 1.0
                    row[_REWARD] = row.item(_REWARD) + reward
            return
        rows, numbers = [*self._kept.values(), self._now], [*self._kept]
        sums = np.array([row[_EARNED] for row in rows])
        outcomes, earned = sums.T.copy()
        for round_, reward in notes:
            first = bisect_right(numbers, round_)
            outcomes[first:] += 1.0
            earned[first:] += reward
        for row, *new in zip(rows, outcomes.tolist(), earned.tolist(), strict=True):
            row[_EARNED] = new

    def amend(self, round_: int, before: PendingOutcome, after: PendingOutcome, bank: float) -> None:
        """Something else was executed in round ``round_``."""
        now = self.now
        for sign, made in ((-1.0, before), (1.0, after)):
            self._execute(sign, made.executed, made.baseline, made.is_baseline, made.baseline_mean)
        now[Sum.BANK] = bank
        now[Sum.AMENDED] += 1.0
        change = _parts(after) - _parts(before)
        played = float(before.is_baseline) - float(after.is_baseline)
        for row in self._including(round_):
            if row is not now:
                row[Sum.BANK] = np.nan
                row[Sum.PLAYED] += played
                row[Sum.TOLD_PLAYED] += played * (after.baseline_mean or 0.0)
                row[Sum.AMENDED] += 1.0
                blocks(row)[...] += change

    def _including(self, round_: int) -> list[Array]:
        rows = [self._now]
        for number in reversed(self._kept):
            if number <= round_:
                break
            rows.append(self._kept[number])
        return rows

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


def _add(total: Array, error: Array, features: Array, sign: float) -> None:
    """Kahan's sum: its error is at most 2u + O(n u^2) of the sum of magnitudes, for any n.

    ``total`` and ``error``, what rounding has taken from it, are changed.
    """
    error += features if sign == 1.0 else sign * features
    grown = total + error
    total -= grown
    error += total
    total[:] = grown


def _parts(made: PendingOutcome) -> Array:
    """(3, d): what a round adds to the sums of features."""
    nothing = np.zeros_like(made.baseline)
    if made.is_baseline:
        return np.stack([nothing, nothing, made.baseline])
    return np.stack([made.executed, made.baseline, nothing])
