"""The set `bounded`, written from docs/theory.md alone: every number again from the list of rows.

``weights`` follows the rule row by row with fresh inverses; the radius is the root of (B) with SciPy's
incomplete gamma function; ``lower`` is exact over the event at the given scale and the ball.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from support.oracle_sets import Array, infimum_over_constrained_set

KAPPA = 0.95


class Constants(NamedTuple):
    """What is fixed in advance."""

    scales: tuple[float, ...]  # l over lambda w^2
    reaches: tuple[float, ...]  # c^2 without what features add
    reach: float  # c^2 for each feature
    shares: tuple[float, ...]  # of delta
    few_rows: float = 0.0  # over d: more for the first, taken from all other claims in proportion
    first_reach: float = 0.0  # c^2 for each feature that the first scale has more

    def share(self, dim: int, scale: int) -> float:
        """Of delta."""
        more = self.few_rows / dim
        return self.shares[0] + more if scale == 0 else self.shares[scale] * (1.0 - more / 0.84)

    def reach_squared(self, dim: int, scale: int) -> float:
        """c^2."""
        return (self.reach + self.first_reach * (scale == 0)) * dim + self.reaches[scale]


CONSTANTS = {
    "bounded": Constants((3, 30, 300, 1500, 15000), (5, 5, 5, 10, 21), 3, (1 / 7,) * 5),
    "bounded-2": Constants(
        (3, 30, 300, 1000, 10000), (25, 16, 12, 12, 16), 2, (0.16, 0.05, 0.18, 0.27, 0.04)
    ),
    "bounded-3": Constants(
        (0.75, 10, 300, 1000, 10000), (25, 20, 12, 12, 16), 2, (0.16, 0.05, 0.18, 0.27, 0.04), 0.36, 4
    ),
}


def log_truncated(radius: float, dim: int, reach_squared: float) -> float:
    """log of exp(R^2 / 2) Q_d(R, c): a Poisson mixture of chi-squared probabilities."""
    k = np.arange(400)
    with np.errstate(divide="ignore"):
        logs = np.log(gammainc(0.5 * dim + k, 0.5 * reach_squared)) - gammaln(k + 1.0)
    return float(np.logaddexp.reduce(logs + k * np.log(0.5 * radius**2)))


class OracleBounded:
    """{||b - A theta||_{W^-1} <= R, ||theta|| <= S} at one of the prior scales."""

    def __init__(
        self, name: str, dim: int, width: float, norm_bound: float, ridge: float, delta: float
    ) -> None:
        self.dim, self.width, self.norm_bound, self.delta = dim, width, norm_bound, delta
        self.constants = CONSTANTS[name]
        self.priors = np.array(self.constants.scales) * ridge * width**2
        self.features: list[Array] = []
        self.rewards: list[float] = []

    def add(self, x: Array, y: float) -> None:
        self.features.append(np.array(x, dtype=float))
        self.rewards.append(float(y))

    def shape(self, scale: int) -> Array:
        """W after all rows, from the first on."""
        W = self.priors[scale] * np.eye(self.dim)
        old, old_count = W, 0
        largest, deviations = self.width**2 / 4.0, 0.0
        for n, (x, y) in enumerate(zip(self.features, self.rewards, strict=True)):
            if n == 0 or n >= 1.0625 * old_count:
                old, old_count = W, n
            reach_squared = self.constants.reach_squared(self.dim, scale)
            b = np.sqrt(reach_squared * self.width**2 * (x @ np.linalg.solve(old, x)))
            gap = y - float(np.mean(self.rewards[:n])) if n else self.width / 2.0
            guess = (4.0 * largest + deviations) / (4.0 + n)
            g = 2.0 * (-np.log1p(-b) - b) / b**2 if 0.0 < b <= KAPPA else np.inf
            weight = g * gap**2 if n > 0 and g * guess < largest else largest
            W = W + weight * np.outer(x, x)
            deviations += gap**2
        return np.asarray(W, dtype=np.float64)

    def radius(self, W: Array, scale: int) -> float:
        """R of (B)."""
        log_det = float(np.linalg.slogdet(W / self.priors[scale])[1])
        level = log_det - 2.0 * float(np.log(self.constants.share(self.dim, scale) * self.delta))
        reach_squared = self.constants.reach_squared(self.dim, scale)

        def excess(R: float) -> float:
            return 2.0 * log_truncated(R, self.dim, reach_squared) - level

        return float(brentq(excess, 1e-3, 50.0, xtol=1e-12))

    def quadratic(self, scale: int) -> tuple[Array, Array, float]:
        """(shape, pull, level) of theta' shape theta - 2 pull'theta <= level."""
        X, y = np.array(self.features), np.array(self.rewards)
        A, m, W = X.T @ X, X.T @ y, self.shape(scale)
        level = self.radius(W, scale) ** 2 - float(m @ np.linalg.solve(W, m))
        return A @ np.linalg.solve(W, A), A @ np.linalg.solve(W, m), level

    def lower(self, v: Array, scale: int) -> float:
        """min v @ theta over the event at one scale and the norm ball, by a generic solver."""
        shape, pull, level = self.quadratic(scale)
        return infimum_over_constrained_set(v, shape, pull, level, self.norm_bound)

    def ellipsoid_lower(self, v: Array, scale: int) -> float:
        """The largest of the library's sixteen duals, or that of the ball."""
        shape, pull, level = self.quadratic(scale)
        radius = self.radius(self.shape(scale), scale)
        factors = np.tan(np.pi * (2.0 * np.arange(16) + 1.0) / 64.0) ** 2
        factors[0] = min(factors[0], 0.004)
        best = -self.norm_bound * float(np.linalg.norm(v))
        for a in factors * radius**2 / self.norm_bound**2:
            V = shape + a * np.eye(self.dim)
            centre = np.linalg.solve(V, pull)
            square = level + a * self.norm_bound**2 + float(pull @ centre)
            best = max(best, float(v @ centre - np.sqrt(square * (v @ np.linalg.solve(V, v)))))
        return best

    def contains(self, theta: Array, scale: int) -> bool:
        """Whether theta lies in the set, by its definition."""
        shape, pull, level = self.quadratic(scale)
        inside = float(np.linalg.norm(theta)) <= self.norm_bound
        return inside and float(theta @ shape @ theta - 2.0 * pull @ theta) <= level
