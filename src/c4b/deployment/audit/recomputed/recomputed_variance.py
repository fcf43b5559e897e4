"""The parts of the sets for rewards in a range, besides A and m: weights, radius, multipliers.

(B) of docs/theory.md, in NumPy, for audits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recomputed_linearity import LinearitySums
from c4b.deployment.audit.recomputed.whitening import whitened


class BoundedTerms(NamedTuple):
    """What is fixed in advance of the sets for rewards in a range."""

    scales: tuple[float, ...]  # l over lambda w^2
    reaches: tuple[int, ...]  # c^2, without
    reach: int  # c^2 for each feature
    shares: tuple[float, ...]  # of delta, for each scale
    few_rows: float = 0.0  # over d: what the first scale has more of delta, taken from all others
    first_reach: int = 0  # what the first scale has more of c^2 for each feature

    def reach_squared(self, scale: int, dim: int) -> int:
        """c^2 of a scale with so many features."""
        return self.reaches[scale] + dim * (self.reach + (self.first_reach if scale == 0 else 0))

    def share(self, scale: int, dim: int) -> float:
        """The share of delta that a scale has with so many features."""
        return self.shares[0] + self.few_rows / dim if scale == 0 else self.shares[scale] * self.left(dim)

    def left(self, dim: int) -> float:
        """What is left of every share but the first scale's."""
        return 1.0 - self.few_rows / (dim * (1.0 - self.shares[0]))


BOUNDED = {
    "bounded": BoundedTerms((3, 30, 300, 1500, 15000), (5, 5, 5, 10, 21), 3, (1 / 7,) * 5),
    "bounded-2": BoundedTerms(
        (3, 30, 300, 1000, 10000), (25, 16, 12, 12, 16), 2, (0.16, 0.05, 0.18, 0.27, 0.04)
    ),
    "bounded-3": BoundedTerms(
        (0.75, 10, 300, 1000, 10000), (25, 20, 12, 12, 16), 2, (0.16, 0.05, 0.18, 0.27, 0.04), 0.36, 4
    ),
}
"""Sets for rewards in a range."""


class VarianceSums:
    """What ``bounded`` sums beside A and m: squared deviations, weighted row by row in their order."""

    def __init__(self, model: dict[str, Any]) -> None:
        dim, (low, high) = model["dim"], model["rewards"]
        self.width, terms = high - low, BOUNDED[model["confidence"]]
        self.scales = model["ridge"] * self.width**2 * np.array(terms.scales)
        self.reaches = np.sqrt([terms.reach_squared(scale, dim) for scale in range(len(terms.scales))])
        self.shares = [terms.share(scale, dim) for scale in range(len(terms.scales))]
        self.linearity = (
            None if model["confidence"] == "bounded" else LinearitySums(model, terms.left(dim))
        )
        self.shapes = self.scales[:, None, None] * np.eye(dim)
        self.roots, self.rooted_at, self.count = whitened(self.shapes, self.scales)[0], 0, 0
        self.total, self.deviations = 0.0, 0.0

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        for x, y in zip(features, rewards.tolist(), strict=True):
            if not self.rooted_at <= self.count < 1.0625 * self.rooted_at:
                self.roots, self.rooted_at = whitened(self.shapes, self.scales)[0], self.count
                if self.linearity is not None:
                    self.linearity.renew(self.count, self.total / self.count if self.count else 0.0)
            steps = self.reaches * self.width * np.linalg.norm(self.roots @ x, axis=1)
            phi = 0.0
            if self.linearity is not None:
                phi, step = self.linearity.step(x)
                steps = np.r_[steps, step]
            largest = 0.25 * self.width**2
            guess = (4.0 * largest + self.deviations) / (4.0 + self.count)
            gap = y - self.total / self.count if self.count else 0.5 * self.width
            small = np.minimum(steps, 0.95)
            with np.errstate(invalid="ignore", divide="ignore"):
                steep = np.where(
                    small > 1e-4, 2.0 * (-np.log1p(-small) - small) / small**2, 1.0 + small / 1.5
                )
            learned = (steps <= 0.95) & (steep * guess < largest) & (self.count > 0)
            weights = np.where(learned, steep * gap**2, largest)
            if self.linearity is not None:
                self.linearity.add(x, y, phi, float(weights[-1]))
                weights = weights[:-1]
            self.shapes = self.shapes + weights[:, None, None] * (x[:, None] * x)
            self.total, self.deviations, self.count = (
                self.total + y,
                self.deviations + gap**2,
                self.count + 1,
            )


def bounded_radius(level: float, dim: int, reach: float) -> float:
    """The R with R^2 + 2 log Q_d(R, c) = level, by bisection of a Poisson mixture."""
    power = np.arange(48 + 3 * dim)
    half = 0.5 * reach**2
    # P(d/2 + k, half): what a Poisson-like tail holds from d/2 + k on
    order = 0.5 * dim + np.arange(len(power) + 400)
    log_factorials = np.array([math.lgamma(a + 1.0) for a in order])
    tails = np.cumsum(np.exp(order * np.log(half) - half - log_factorials)[::-1])[::-1][: len(power)]
    logs = np.log(np.maximum(tails, 1e-300)) - np.array([math.lgamma(k + 1.0) for k in power])

    def excess(square: float) -> float:
        return float(2.0 * np.logaddexp.reduce(logs + power * np.log(0.5 * square)) - level)

    low, high = 1e-9, 1.0
    while excess(high) < 0.0:
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
    return float(np.sqrt(high))


def bounded_multipliers(radius: float, norm_bound: float) -> Array:
    """The multipliers a of ``bounded``."""
    factors = np.tan(np.pi * (np.arange(16) + 0.5) / 32.0) ** 2
    factors[0] = min(factors[0], 0.004)
    return np.asarray(factors * (radius / norm_bound) ** 2)
