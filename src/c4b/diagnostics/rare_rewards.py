"""Drift of rewards that are mostly one value, such as clicks and purchases: chance is simulated.

A period in which an item got no click seems to have no noise at all, so that whatever it should have got
looks like a change. Here the noise is what one theta for all rows leaves, and how far periods then are
from each other by chance is simulated: where clicks are rare, a sum of them is far from normal. Rewards
of two values are drawn at the rates that theta gives. Of others, rows of about the same estimated mean
exchange their residuals.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.diagnostics.ridge_fit import fit

GROUPS = 20
"""Of rows that exchange residuals."""
MOST_DRAWS = 400_000_000
"""With more rows than that allows, sums are normal enough."""
AT_ONCE = 4_000_000


def is_rare(y: Array) -> bool:
    """Whether there are two values, or one is that of at least half of the rows."""
    counts = np.unique(y, return_counts=True)[1]
    return len(counts) > 1 and bool(len(counts) == 2 or 2 * counts.max() >= len(y))


class SimulatedPeriods:
    """Score statistics of the periods of a log, in the directions that each has seen."""

    def __init__(self, x: Array, y: Array, rows: list[NDArray[np.bool_]]) -> None:
        self._x, self._rows = x, rows
        found = fit(x, y)
        self._inverse, self._means = found.inverse, x @ found.estimate
        self._residuals = y - self._means
        self._low, self._high = float(y.min()), float(y.max())
        self._two_values = bool(np.all((y == self._low) | (y == self._high)))
        self._group = _groups(self._means)
        self._grams = [x[own].T @ x[own] for own in rows]
        variances = self._variances()
        meats = [(x[own] * variances[own][:, None]).T @ x[own] for own in rows]
        self._scales: list[Array] = []
        for gram, meat in zip(self._grams, meats, strict=True):
            along = gram @ self._inverse
            spread = meat - along @ meat - meat @ along.T + along @ np.sum(meats, axis=0) @ along.T
            values, vectors = np.linalg.eigh((spread + spread.T) / 2.0)
            seen = values > 1e-8 * max(float(values.max()), 1e-300)
            self._scales.append(vectors[:, seen] / np.sqrt(values[seen]))

    def p_values(self) -> Array:
        """Of each period, as if sums were normal."""
        return self._asymptotic(self._residuals[:, None])[:, 0]

    def chance(self, delta: float) -> float:
        """The probability of a period at least as unlike the others as the most unlike one."""
        least, size = float(self.p_values().min()), len(self._residuals)
        repeats = math.ceil(10.0 / delta) - 1
        if repeats * size > MOST_DRAWS:
            return min(1.0, least * len(self._rows))
        draw, beyond, left = np.random.default_rng(0), 0, repeats
        while left:
            some = min(left, max(1, AT_ONCE // size))
            found = self._asymptotic(self._drawn(draw, some)).min(axis=0)
            beyond += int(np.sum(found <= least * (1.0 + 1e-9)))
            left -= some
        return (1.0 + beyond) / (1.0 + repeats)

    def _rates(self) -> Array:
        """Of the higher of two values."""
        rates: Array = np.clip((self._means - self._low) / (self._high - self._low), 0.0, 1.0)
        return rates

    def _variances(self) -> Array:
        if self._two_values:
            rates = self._rates()
            return np.asarray(rates * (1.0 - rates) * (self._high - self._low) ** 2)
        squares = np.bincount(self._group, np.square(self._residuals), GROUPS)
        own: Array = (squares / np.maximum(np.bincount(self._group, minlength=GROUPS), 1))[self._group]
        return own

    def _drawn(self, draw: np.random.Generator, some: int) -> Array:
        """Residuals (rows, some) of a log in which nothing changes."""
        if self._two_values:
            is_high = draw.random((len(self._means), some)) < self._rates()[:, None]
            return np.asarray(np.where(is_high, self._high, self._low) - self._means[:, None])
        drawn = np.empty((len(self._means), some))
        for group in range(GROUPS):
            own = np.flatnonzero(self._group == group)
            drawn[own] = draw.permuted(np.tile(self._residuals[own][:, None], some), axis=0)
        return drawn

    def _asymptotic(self, residuals: Array) -> Array:
        """P-values (periods, n) of n columns of residuals."""
        own = [self._x[rows].T @ residuals[rows] for rows in self._rows]
        moved = self._inverse @ np.sum(own, axis=0)
        made = []
        for gram, score, scale in zip(self._grams, own, self._scales, strict=True):
            statistic = np.square(scale.T @ (score - gram @ moved)).sum(axis=0)
            made.append(scipy.stats.chi2.sf(statistic, max(scale.shape[1], 1)))
        return np.array(made)


def _groups(means: Array) -> NDArray[np.int64]:
    """The group of each row, by its mean. Rows of the same one are divided at random: by time they would
    keep a change within their group."""
    rounded = np.round(means / max(float(np.abs(means).max()), 1e-300), 9)
    order = np.lexsort((np.random.default_rng(0).random(len(means)), rounded))
    found = np.empty(len(means), dtype=np.int64)
    found[order] = np.arange(len(means)) * GROUPS // len(means)
    return found
