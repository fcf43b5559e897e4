"""The bounds from sums of rewards alone, recomputed for audits: (K) and (J) of docs/theory.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array

SHARES = {"bounded": 1 / 7, "bounded-2": 0.13, "bounded-3": 0.26}
"""Share of delta of each of the two sums; in the last one of both together."""


class Factor(NamedTuple):
    """One s of an average."""

    rise: float  # s - 1
    log: float  # of s
    log_weight: float


def factor(rise: float, weight: float) -> Factor:
    """One s by s - 1, and its weight."""
    return Factor(rise, math.log1p(rise), math.log(weight))


OTHERS = (factor(0.0, 0.04), *(factor(2.0**k, 0.12) for k in range(-6, 2)))
"""For rows that are not like the first."""
OWN = (
    factor(0.0, 0.1),
    *(factor(-(2.0**k), 0.24 if k in (-4, -3) else 0.12) for k in range(-6, -1)),
    *(factor(2.0**k, 0.012) for k in range(-6, -1)),
)
"""For rows like the first."""


class Totals:
    """The bounds of ``bounded`` from sums of rewards alone, where the lowest reward is 0: (K)."""

    together = False
    most_kept_back = math.inf
    """What a free play has to leave in the bank, at most."""

    def __init__(self, model: dict[str, Any], share: float) -> None:
        self.width = float(model["rewards"][1])
        self.level = -math.log(model["delta"] * share)
        self.first: Array | None = None
        self.rows, self.clicks, self.other_clicks = 0, 0.0, 0.0
        self.others = np.zeros(model["dim"])

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        if self.first is None and len(features):
            self.first = features[0].copy()
        same = np.all(features == self.first, axis=1)
        self.rows += int(same.sum())
        self.clicks += float(rewards[same].sum()) / self.width
        self.other_clicks += float(rewards[~same].sum()) / self.width
        self.others = self.others + features[~same].sum(axis=0)

    def covers(self, features: Array) -> bool:
        """Whether the rewards of these features (d,) have a sum of their own."""
        return self.first is not None and np.array_equal(self.first, features)

    def _root(self, clicks: float, inside: float, outside: float) -> float:
        """Where e(K, .) crosses the level between two totals."""
        for _ in range(200):
            middle = 0.5 * (inside + outside)
            value = middle + math.lgamma(1.0 + clicks) - (1.0 + clicks) * math.log1p(middle)
            inside, outside = (middle, outside) if value <= self.level else (inside, middle)
        return outside

    def line_below_earned(self, weight: float) -> tuple[float, float]:
        """(intercept, slope) of a line: the other rows' total mean is above it at the first row's mean.

        ``weight`` is the slope that is wanted; here the two sums are apart, and the line is level.
        """
        return self.others_low(), 0.0

    def mean(self) -> tuple[float, float]:
        """Bounds of the mean of the first row's features."""
        low = self._root(self.clicks, self.clicks, 0.0)
        high = self._root(self.clicks, self.clicks, 3.0 * self.clicks + 4.0 * self.level + 20.0)
        return self.width * low / self.rows, min(self.width, self.width * high / self.rows)

    def others_low(self) -> float:
        """A lower bound of the total mean of all other rows."""
        return self.width * self._root(self.other_clicks, self.other_clicks, 0.0)


class JointTotals(Totals):
    """Both sums on one event: (J)."""

    together = True

    def __init__(self, model: dict[str, Any], share: float) -> None:
        super().__init__(model, share)
        self.most_kept_back = 3.0 * self.width

    def mean(self) -> tuple[float, float]:
        """Bounds of the mean of the first row's features, whatever the other rows earn."""
        level = self.level - OTHERS[0].log_weight
        inside = _crossing(
            lambda total: _average(self.clicks, total, OWN)[1], 0.0, 2.0 * self.clicks + 9.0
        )

        def excess(total: float) -> float:
            return _average(self.clicks, total, OWN)[0] - level

        low = _crossing(lambda total: -excess(total), 0.0, inside)
        high = _crossing(excess, inside, 1.2 * self.clicks + 4.0 * level + 40.0)
        return self.width * low / self.rows, min(self.width, self.width * high / self.rows)

    def others_low(self) -> float:
        """A lower bound of the total mean of all other rows, whatever the first row's mean is."""
        level, clicks = self.level - OWN[0].log_weight, self.other_clicks
        far = 2.0 * clicks + 4.0 * level + 40.0
        return self.width * _crossing(lambda total: level - _average(clicks, total, OTHERS)[0], 0.0, far)

    def line_below_earned(self, weight: float) -> tuple[float, float]:
        """The line that touches the region of (J) with the slope ``weight``."""
        if not (weight > 0.0 and self.rows and self.other_clicks > 0.0):
            return self.others_low(), 0.0
        ratio = weight / self.rows

        def own_total(slope: float) -> float:
            """Where g' = -ratio f'."""
            return _crossing(
                lambda own: _average(self.clicks, own, OWN)[1] + ratio * slope,
                0.0,
                3.0 * self.clicks + 1e3,
            )

        def spare(total: float) -> float:
            """What is left of the level where the line touches, at this total of the other rows."""
            value, slope = _average(self.other_clicks, total, OTHERS)
            if -ratio * slope >= 0.999 * STEEPEST_FALL:
                return -1e3 * (1.0 - ratio * slope)
            return self.level - value - _average(self.clicks, own_total(slope), OWN)[0]

        at = _crossing(spare, 0.0, 2.0 * self.other_clicks + 1e3)
        value, slope = _average(self.other_clicks, at, OTHERS)
        own = own_total(slope)
        own_value, own_slope = _average(self.clicks, own, OWN)
        steep = own_slope / -slope
        intercept = at - steep * own - (self.level - value - own_value) / -slope
        return self.width * intercept, steep * self.rows


STEEPEST_FALL = -min(factor.rise for factor in OWN)
"""Largest g'."""


def totals_of(model: dict[str, Any], left: float) -> Totals:
    """The sums of a set for rewards in a range; ``left`` of their share of delta is theirs."""
    made = JointTotals if model["confidence"] == "bounded-3" else Totals
    return made(model, SHARES[model["confidence"]] * left)


def _average(clicks: float, total: float, factors: tuple[Factor, ...]) -> tuple[float, float]:
    """f = log sum p s^clicks e^{-(s - 1) total}, and its slope in the total."""
    logs = [log_weight + clicks * log - rise * total for rise, log, log_weight in factors]
    highest = max(logs)
    sum_of_parts = slope = 0.0
    for one, each in zip(logs, factors, strict=True):
        part = math.exp(one - highest)
        sum_of_parts += part
        slope -= part * each.rise
    return highest + math.log(sum_of_parts), slope / sum_of_parts


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function becomes >= 0, by regula falsi that halves what stays (Illinois)."""
    before, after, kept = function(low), function(high), 0
    if before >= 0.0:
        return low
    for _ in range(100):
        middle = (low * after - high * before) / (after - before) if after > 0.0 else high
        if not low < middle < high:
            middle = 0.5 * (low + high)
        value = function(middle)
        if value >= 0.0:
            high, after, before = middle, value, before * (0.5 if kept > 0 else 1.0)
            kept = 1
        else:
            low, before, after = middle, value, after * (0.5 if kept < 0 else 1.0)
            kept = -1
        if value == 0.0 or high - low <= 1e-12 * (1.0 + high):
            break
    return high
