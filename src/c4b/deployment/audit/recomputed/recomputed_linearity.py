"""The alarm against means that are not linear, recomputed for audits: (L) of docs/theory.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from c4b._validate import LARGEST, Array
from c4b.deployment.audit.recomputed.whitening import whitened

PRIOR, REACH, SHARE = 20.0, math.sqrt(30.0), 0.04
"""l over w^2, c, and the alarm's share of delta."""


class LinearitySums:
    """What ``bounded-2`` sums up along the squares of fitted means, row by row in their order.

    ``left`` of the alarm's share of delta is its own in later sets.
    """

    def __init__(self, model: dict[str, Any], left: float) -> None:
        dim, (low, high) = model["dim"], model["rewards"]
        self.model, self.width, self.share = model, high - low, SHARE * left
        self.gram, self.moment = np.zeros((dim, dim)), np.zeros(dim)
        self.fitted, self.explained = np.zeros(dim), np.zeros(dim)
        self.squares, self.features = np.zeros(dim), np.zeros(dim)
        self.shape = PRIOR * self.width**2
        self.total, self.absolute, self.deviations = 0.0, 0.0, 0.0
        self.centre, self.variance = 0.0, 0.0

    def renew(self, count: int, mean: float) -> None:
        """Fit rewards and squares afresh to all rows so far."""
        ridge = self.model["ridge"]
        root, _ = whitened(self.gram + ridge * np.eye(len(self.moment)), ridge)
        self.fitted, self.explained = np.array([self.moment, self.squares]) @ root.T @ root
        self.centre = mean
        self.variance = self.deviations / count + 1e-8 * self.width**2 if count else 0.0

    def step(self, x: Array) -> tuple[float, float]:
        """(phi, b) of a row before its reward is looked at."""
        if not self.variance > 0.0:
            return 0.0, 0.0
        deviation, explained = float(x @ self.fitted) - self.centre, float(x @ self.explained)
        if not (abs(deviation) < LARGEST and abs(explained) < LARGEST):  # no numbers to bet on
            return 0.0, 0.0
        square = min(deviation**2 / (4.0 * self.variance), 1.0)
        phi = float(np.clip(square - explained, -1.0, 1.0))
        self.squares = self.squares + square * x
        self.deviations += deviation**2
        return phi, REACH * abs(phi) * self.width / math.sqrt(self.shape)

    def add(self, x: Array, y: float, phi: float, weight: float) -> None:
        """A row, and the weight of its square."""
        self.gram, self.moment = self.gram + np.outer(x, x), self.moment + y * x
        self.total += phi * y
        self.features = self.features + phi * x
        self.absolute += abs(phi)
        self.shape += weight * phi**2

    def excess(self, low: float, high: float) -> tuple[float, float]:
        """How far sum phi Y is beyond what (L) allows where low <= F theta <= high, and its unit."""
        prior = PRIOR * self.width**2
        level = math.log(self.shape / prior) - 2.0 * math.log(self.model["delta"] * self.share)
        unit = math.sqrt(self.shape)
        allowed = _radius(level) * unit + self.model["misspecification"] * self.absolute
        return max(self.total - high, low - self.total) - allowed, unit


def _radius(level: float) -> float:
    """The R <= c with R^2 + 2 log Q_1(R, c) = level; inf: there is none."""

    def value(radius: float) -> float:
        inside = math.erf((REACH - radius) / math.sqrt(2.0)) + math.erf((REACH + radius) / math.sqrt(2.0))
        return radius**2 + 2.0 * math.log(0.5 * inside)

    low, high = 0.0, REACH
    if value(high) < level:
        return math.inf
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if value(middle) >= level else (middle, high)
    return high
