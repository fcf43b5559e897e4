"""Drift of rewards that are one of two values, such as clicks: what chance does is simulated.

A period in which an item got no click seems to have no noise at all, so that whatever it should have got
looks like a change. Here the noise is that of the rates which one theta for all rows gives, and how far
periods then are from each other by chance is simulated: where clicks are rare, a sum of them is far from
normal.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.diagnostics.ridge_fit import fit

MOST_DRAWS = 400_000_000
"""With more rows than that allows, sums are normal enough."""
AT_ONCE = 4_000_000


def is_two_valued(y: Array) -> bool:
    return bool(np.all((y == y.min()) | (y == y.max()))) and y.min() < y.max()


class TwoValuedPeriods:
    """Score statistics of the periods of a log, in the directions that each has seen."""

    def __init__(self, x: Array, y: Array, rows: list[NDArray[np.bool_]]) -> None:
        self._x, self._y, self._rows = x, y, rows
        low, high = float(y.min()), float(y.max())
        found = fit(x, y)
        self._inverse = found.inverse
        self._size = high - low
        self._rates = np.clip((x @ found.estimate - low) / self._size, 0.0, 1.0)
        self._linear = (x @ found.estimate - low) / self._size
        variances = self._rates * (1.0 - self._rates)
        self._grams = [x[own].T @ x[own] for own in rows]
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
        low = float(self._y.min())
        return self._asymptotic(((self._y - low) / self._size)[:, None])[:, 0]

    def chance(self, delta: float) -> float:
        """The probability of a period at least as unlike the others as the most unlike one."""
        least = float(self.p_values().min())
        repeats = math.ceil(10.0 / delta) - 1
        if repeats * len(self._y) > MOST_DRAWS:
            return min(1.0, least * len(self._rows))
        draw, beyond, left = np.random.default_rng(0), 0, repeats
        while left:
            some = min(left, max(1, AT_ONCE // len(self._y)))
            drawn = draw.random((len(self._y), some)) < self._rates[:, None]
            beyond += int(
                np.sum(self._asymptotic(drawn.astype(float)).min(axis=0) <= least * (1.0 + 1e-9))
            )
            left -= some
        return (1.0 + beyond) / (1.0 + repeats)

    def _asymptotic(self, drawn: Array) -> Array:
        """P-values (periods, n) of rewards 0 and 1, n columns of them."""
        residuals = drawn - self._linear[:, None]
        own = [self._x[rows].T @ residuals[rows] for rows in self._rows]
        moved = self._inverse @ np.sum(own, axis=0)
        made = []
        for gram, score, scale in zip(self._grams, own, self._scales, strict=True):
            statistic = np.square(scale.T @ (score - gram @ moved)).sum(axis=0)
            made.append(scipy.stats.chi2.sf(statistic, max(scale.shape[1], 1)))
        return np.array(made)
