"""All decisions as a series of bounded length, so that any journal can be plotted at once.

Every ``stride``-th decision is kept. When there are too many, every second one is dropped and the stride
doubles. So the kept decisions depend on the journal alone, and snapshots hold them with the rest of the
state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from c4b._validate import Array

KEPT = 1024
"""Decisions kept at most, besides the last; half as many right after every second one was dropped."""


class Row(NamedTuple):
    """One decision, with the deployment's counts right after it."""

    round: float
    """1 for the first decision."""
    at: float
    bank: float
    fallbacks: float
    pending: float
    certificate: float
    estimate: float
    radius: float
    seq: float
    """Number of its entry."""


class Mark(NamedTuple):
    """What ``undo`` goes back to."""

    kept: list[Row]
    size: int
    stride: int
    last: Row | None
    estimate: Callable[[], float] | None


class DownsampledSeries:
    """Evenly spaced decisions from the first on, and the last one. Belongs to one state."""

    def __init__(self) -> None:
        self.kept: list[Row] = []
        self.stride = 1
        self._last: Row | None = None
        self._estimate: Callable[[], float] | None = None  # what the last one still lacks

    @property
    def last(self) -> Row | None:
        """The last decision."""
        if self._last is not None and self._estimate is not None:
            self._last, self._estimate = self._last._replace(estimate=self._estimate()), None
        return self._last

    def add(self, row: Row, estimate: Callable[[], float]) -> None:
        """The next decision; its ``estimate`` is computed only if the row is kept, or asked for."""
        self._last, self._estimate = row, estimate
        if (row.round - 1) % self.stride == 0:
            if len(self.kept) == KEPT:
                self.kept = self.kept[::2]  # a new list: marks keep the old one
                self.stride *= 2
            if (row.round - 1) % self.stride == 0 and (last := self.last) is not None:
                self.kept.append(last)

    def rows(self, points: int) -> list[Row]:
        """About ``points`` >= 2 of them, evenly spaced, always with the first and the last."""
        rows = self._all()
        if len(rows) <= points:
            return rows
        step = (len(rows) - 1) / (points - 1)
        return [rows[round(n * step)] for n in range(points)]

    def _all(self) -> list[Row]:
        last = self.last
        if last is None or last is self.kept[-1]:
            return list(self.kept)
        return [*self.kept, last]

    def mark(self) -> Mark:
        return Mark(self.kept, len(self.kept), self.stride, self._last, self._estimate)

    def undo(self, mark: Mark) -> None:
        """Drop what was added since ``mark``."""
        self.kept, size, self.stride, self._last, self._estimate = mark
        del self.kept[size:]

    def array(self) -> Array:
        """(n, 9); whole numbers of microseconds fit into a float64 until the year 2255."""
        return np.array(self._all(), dtype=np.float64).reshape(-1, len(Row._fields))

    @classmethod
    def restored(cls, array: Array, stride: int) -> DownsampledSeries:
        """The series that ``array`` and ``stride`` were taken from."""
        series = cls()
        rows = [Row(*values) for values in array.tolist()]
        series.stride = stride
        series._last = rows[-1] if rows else None
        series.kept = [row for row in rows if (row.round - 1) % stride == 0]
        return series
