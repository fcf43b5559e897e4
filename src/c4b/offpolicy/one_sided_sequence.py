"""One side of the confidence sequence: which values of V(π) - c·V(h) the rows have refuted, and when."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.offpolicy.bets import Moments, Sides, best_bets

PRIOR_ROWS = 20.0
"""The moments are tempered by this many rows of the range's own variance, so that first stakes are
small."""
GROWTH = 1.02
"""Stakes stay as they are until there are this many times as many rows; they never depend on later
rows."""
ROUNDING = 1e-6
"""A value is refuted only if the logarithm of its wealth is beyond the threshold by this much."""
BLOCK = 2048  # rows, so that memory does not grow with the log


class Range:
    """What one row can be: a weight of at most ``max_weight``, a reward in [0, 1], and whether
    predictions of the reward in [0, 1] are subtracted (doubly robust)."""

    def __init__(self, fraction: float, max_weight: float, predicted: bool) -> None:
        self.fraction, self.max_weight, self.predicted = fraction, max_weight, predicted

    def sides(self, values: Array, sign: float) -> Sides:
        """The smallest ``sign·(y - v)`` at weight 0 and at the largest weight."""
        low_0, high_0 = self._extremes(0.0)
        low_at_zero = sign * ((low_0 if sign > 0 else high_0) - values)
        if math.isinf(self.max_weight):
            steepest = -1.0 if sign < 0 or self.predicted else 0.0  # of sign·y in the weight
            return Sides(low_at_zero, 1.0, np.full_like(values, steepest), 0.0)
        low, high = self._extremes(self.max_weight)
        low_at_top = sign * ((low if sign > 0 else high) - values)
        return Sides(low_at_zero, self.max_weight - 1.0, low_at_top, 0.5)

    def _extremes(self, weight: float) -> tuple[float, float]:
        """The smallest and the largest y = weight·(reward - predicted) + predicted_value - c·reward."""
        own = weight - self.fraction
        low, high = min(own, 0.0), max(own, 0.0)
        return (low - weight, high + 1.0) if self.predicted else (low, high)

    def prior(self) -> Moments:
        """Rows whose weight is 0 or the largest and whose reward is a fair coin; they win nothing."""
        top = self.max_weight if math.isfinite(self.max_weight) else 2.0
        top = max(top, 1.0)
        share, c = 1.0 / top, self.fraction
        yy = (share * (top - c) ** 2 + (1.0 - share) * c * c) / 2.0 - (1.0 - c) ** 2 / 4.0
        uy = (share * (top - 1.0) * (top - c) + (1.0 - share) * c) / 2.0
        return Moments(0.0, 0.0, PRIOR_ROWS * (top - 1.0), 0.0, PRIOR_ROWS * yy, PRIOR_ROWS * uy)


class OneSidedSequence:
    """For each tested value v, ascending, a wealth that grows on average only if V(π) - c·V(h) is
    beyond v.

    sign: +1 refutes values from below (a lower bound), -1 from above (an upper bound).
    """

    def __init__(self, values: Array, sign: float, delta: float, row_range: Range) -> None:
        self.values, self.sign, self.range = values, sign, row_range
        self.threshold = math.log(1.0 / delta) + ROUNDING
        self.refuted_at: NDArray[np.int64] = np.zeros(len(values), dtype=np.int64)  # 0: not refuted
        self.wealth = np.zeros(len(values))  # logarithms
        self.moments = np.zeros(len(Moments._fields))
        self._prior = row_range.prior()
        self._sides = row_range.sides(values, sign)
        self._first, self._second = np.zeros(len(values)), np.zeros(len(values))
        self._rows = 0
        self._next_stakes = 0

    def extend(self, weights: Array, y: Array) -> None:
        """Take further rows in order. The result does not depend on how rows are divided among calls."""
        start = 0
        while start < len(y):
            if self._rows == self._next_stakes:
                self._set_stakes()
            stop = min(len(y), start + BLOCK, start + self._next_stakes - self._rows)
            self._play(weights[start:stop], y[start:stop])
            start = stop

    def _set_stakes(self) -> None:
        """New stakes for the values that are not refuted; the others are played no more."""
        open_ = np.flatnonzero(self.refuted_at == 0)
        sides = self._sides._replace(
            low_at_zero=self._sides.low_at_zero[open_], low_at_top=self._sides.low_at_top[open_]
        )
        self._first[open_], self._second[open_] = best_bets(
            Moments(*self.moments.tolist()), self._prior, self.values[open_], self.sign, sides
        )
        self._next_stakes = max(self._rows + 1, int(self._rows * GROWTH))

    def _play(self, weights: Array, y: Array) -> None:
        u = weights - 1.0
        open_ = np.flatnonzero(self.refuted_at == 0)
        if len(open_):
            factors = 1.0 + np.multiply.outer(u, self._first[open_])
            factors += (y[:, None] - self.values[open_]) * (self.sign * self._second[open_])
            paths = np.add.accumulate(np.vstack([self.wealth[open_], np.log(factors)]), axis=0)[1:]
            reached = paths >= self.threshold
            hit = reached.any(axis=0)
            self.refuted_at[open_[hit]] = self._rows + 1 + reached.argmax(axis=0)[hit]
            self.wealth[open_] = paths[-1]
        sums = np.column_stack([np.ones_like(u), u, u * u, y, y * y, u * y])
        self.moments = np.add.accumulate(np.vstack([self.moments, sums]), axis=0)[-1]
        self._rows += len(y)

    def reached(self) -> NDArray[np.int64]:
        """The row at which the bound reached each value: it and every value on its way are refuted. 0:
        not yet."""
        ordered = self.refuted_at if self.sign > 0 else self.refuted_at[::-1]
        never = np.iinfo(np.int64).max
        since = np.maximum.accumulate(np.where(ordered == 0, never, ordered))
        since = np.where(since == never, 0, since)
        return since if self.sign > 0 else since[::-1]
