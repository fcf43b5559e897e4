"""The journal's time: a process's clock, which may be wrong, made to go on where the journal is.

Times in a journal never decrease. A clock that was ten years ahead once would therefore stop the
journal's time for ten years: no outcome window would close, and no pending outcome would seem to age. So
a clock that is far behind the last entry is moved forward to it, and time goes on from there. Entries
record the shift, for processes that begin later.

A shift belongs to the clock that needed it. A clock that needs none, because it was set right or is the
one that is ahead, gets none: else shifts of several clocks would add up, and time would run away from all
of them.
"""

from __future__ import annotations

from typing import NamedTuple

SETBACK = 300_000_000
"""Microseconds by which a clock may be behind the last entry. Within it, time waits for the clock."""


class JournalTime(NamedTuple):
    """One reading, in microseconds."""

    now: int
    """Since 1970, by the journal's time."""
    ahead: int
    """What was added to the process's clock."""


class JournalClock:
    """The shift of one process's clock."""

    def __init__(self) -> None:
        self._ahead = 0  # what this clock needed last; it keeps it, whatever others record meanwhile

    def time(self, now: int, last: int, ahead: int) -> JournalTime:
        """The time when the process's clock says ``now``, the last entry is of ``last``, and the journal
        has recorded the shift ``ahead``."""
        for shift in (0, self._ahead or ahead):
            if now + shift >= last - SETBACK:
                self._ahead = shift
                return JournalTime(now + shift, shift)
        self._ahead = last - now
        return JournalTime(last, self._ahead)
