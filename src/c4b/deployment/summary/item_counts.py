"""Counts for each label: how often it was offered, admissible and played, and what it earned.

The interval of an item's mean reward is a confidence sequence: with probability 95 % it holds after
every number n of rewards at once, so it may be looked at at any time. It bounds the average of the
conditional means of the plays whose reward is known.

It assumes what the model assumes of noise: mean zero and sub-Gaussian with the declared scale s, given
everything before, the choice included (for a range of rewards, s is half of it). Half its width is
s sqrt((n + r) log((n + r) / (r d^2))) / n with r = 10 and d = 0.05: the normal mixture of Robbins, by
Ville's inequality. It also assumes that whether a reward has been reported yet does not depend on its
value. Each item has its own 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LABELS = 1000
"""Labels that are counted by name, the first ones; all others are counted together."""
OTHERS = ""
"""Name of the others: no label is empty."""
MIXTURE, ERROR = 10.0, 0.05
"""r and d of the interval; r makes it narrowest at about 80 rewards."""


@dataclass(frozen=True, slots=True)
class Item:
    """The counts of one label."""

    label: str
    """Empty: all labels after the first 1000."""
    offered: int
    admissible: int
    """How often it was found to be: a choice asks only for margins that it depends on, and which others
    were admissible is not counted. ``Deployment.explain`` tells for one decision."""
    played: int
    outcomes: int
    """Plays whose reward is known."""
    earned: float
    """Sum of these rewards."""
    low: float
    """Lower end of the 95 % interval of the mean reward; NaN without a reward."""
    high: float

    @property
    def mean(self) -> float:
        """Mean reward; NaN without one."""
        return self.earned / self.outcomes if self.outcomes else math.nan


def half_width(count: int, noise: float) -> float:
    """Of the 95 % interval of a mean of ``count`` rewards."""
    spread = (count + MIXTURE) * math.log((count + MIXTURE) / (MIXTURE * ERROR * ERROR))
    return noise * math.sqrt(spread) / count


class ItemCounts:
    """Counts by label, in order of first appearance. Belongs to one state."""

    def __init__(self) -> None:
        self._counts: dict[str, list[float]] = {}  # offered, admissible, played, outcomes, sum
        self._open: dict[int, str] = {}  # label played in each round without an outcome
        self._taken: list[tuple[int, list[str], list[bool], int | None]] | None = None

    def decided(
        self, round_: int, labels: Sequence[str], admissible: list[bool], action: int | None
    ) -> None:
        """A decision among labelled candidates."""
        names = [self._name(label) for label in labels]
        for name, fits in zip(names, admissible, strict=True):
            counts = self._counts[name]
            counts[0] += 1
            counts[1] += fits
        if action is not None:
            self._counts[names[action]][2] += 1
            self._open[round_] = names[action]
        if self._taken is not None:
            self._taken.append((round_, names, admissible, action))

    def _name(self, label: str) -> str:
        if label not in self._counts:
            if len(self._counts) >= LABELS:
                label = OTHERS
            self._counts.setdefault(label, [0, 0, 0, 0, 0.0])
        return label

    def outcome(self, round_: int, reward: float | None) -> None:
        label = self._open.pop(round_, None)
        if label is not None and reward is not None:
            self._counts[label][3] += 1
            self._counts[label][4] += reward

    def amended(self, round_: int) -> None:
        """Something else was executed: the label was not played after all."""
        label = self._open.pop(round_, None)
        if label is not None:
            self._counts[label][2] -= 1

    def items(self, noise: float) -> list[Item]:
        """All labels, the most played first."""
        listed = []
        for label, (offered, admissible, played, outcomes, earned) in self._counts.items():
            known = int(outcomes)
            half = half_width(known, noise) if known else math.nan
            mean = earned / known if known else math.nan
            whole = int(offered), int(admissible), int(played), known
            listed.append(Item(label, *whole, float(earned), mean - half, mean + half))
        return sorted(listed, key=lambda item: (-item.played, -item.offered))

    def mark(self) -> None:
        self._taken = []

    def settle(self) -> None:
        self._taken = None

    def undo(self) -> None:
        """Take back the decisions since ``mark``."""
        for round_, names, admissible, action in reversed(self._taken or []):
            if action is not None:
                del self._open[round_]
                self._counts[names[action]][2] -= 1
            for name, fits in zip(names, admissible, strict=True):
                self._counts[name][0] -= 1
                self._counts[name][1] -= fits
        self._counts = {name: counts for name, counts in self._counts.items() if counts[0]}
        self._taken = []

    def plain(self) -> dict[str, Any]:
        """As JSON data that ``restored`` takes."""
        return {"counts": list(self._counts.items()), "open": list(self._open.items())}

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> ItemCounts:
        items = cls()
        items._counts = {label: list(counts) for label, counts in plain["counts"]}
        items._open = {int(round_): label for round_, label in plain["open"]}
        return items
