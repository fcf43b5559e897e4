"""The confidence set in 50 digits, for a sample of decisions.

Sums over the whole journal are kept as pairs of float64 (error-free transformations, 32 digits), so that
a journal of any length needs high precision only where it is sampled.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from c4b._validate import Array

DIGITS = 50
_SPLITTER = 134217729.0  # 2^27 + 1


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    big_a, big_b = _SPLITTER * a, _SPLITTER * b
    high_a, high_b = big_a - (big_a - a), big_b - (big_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


class Sum:
    """A sum of arrays as high + low."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.high, self.low = np.zeros(shape), np.zeros(shape)

    def add(self, values: Array, sign: float = 1.0) -> None:
        self.high, error = _two_sum(self.high, sign * values)
        self.low = self.low + error

    def add_products(self, a: Array, b: Array) -> None:
        product, error = _two_product(a, b)
        self.add(product)
        self.low = self.low + error

    def exact(self) -> Any:
        """As a column or matrix of mpmath numbers."""
        rows = self.high.reshape(len(self.high), -1)
        low = self.low.reshape(rows.shape)
        out = mpmath.matrix(*rows.shape)
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                out[i, j] = mpmath.mpf(float(rows[i, j])) + mpmath.mpf(float(low[i, j]))
        return out


class Sums:
    """What a confidence set is made of, in 32 digits."""

    def __init__(self, dim: int) -> None:
        self.gram, self.moment = Sum((dim, dim)), Sum((dim,))

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        for x, y in zip(features, rewards, strict=True):
            rows, columns = np.broadcast_arrays(x[:, None], x[None, :])
            self.gram.add_products(rows, columns)
            self.moment.add_products(x, np.full_like(x, y))


class PreciseSet:
    """(4) to (7) at one moment. Answers like ``reckoning.ConfidenceSet``, rounded at the very end."""

    def __init__(self, sums: Sums, count: int, model: dict[str, Any], ridges: Array) -> None:
        self.parts: list[tuple[Any, Any, Any]] = []
        with mpmath.workdps(DIGITS):
            gram, moment, dim = sums.gram.exact(), sums.moment.exact(), model["dim"]
            noise, bound = mpmath.mpf(model["noise"]), mpmath.mpf(model["norm_bound"])
            extra = mpmath.mpf(model["misspecification"]) * mpmath.sqrt(count)
            unbiased = model["confidence"] == "unbiased"
            paper = unbiased or model["confidence"] == "self-normalized"
            shape, target = gram, moment  # of ||theta - centre||^2 before a ridge is added
            spread = first = mpmath.mpf(0)
            for g, ridge in enumerate(map(mpmath.mpf, ridges.tolist())):
                inverse = mpmath.inverse(shape + ridge * mpmath.eye(dim))
                centre = inverse * target
                explained = (target.T * centre)[0]
                if g == 0:
                    log_det = -mpmath.log(mpmath.det(inverse)) - dim * mpmath.log(ridge)
                    spread = noise**2 * (log_det - 2 * mpmath.log(mpmath.mpf(model["delta"])))
                    first = explained
                    if unbiased:
                        shape, target = gram * inverse * gram, gram * centre
                if paper and not (unbiased and g > 0):
                    radius = mpmath.sqrt(spread) + mpmath.sqrt(ridge) * bound + extra
                else:
                    level = (mpmath.sqrt(spread) + extra) ** 2 if unbiased else spread
                    square = level + ridge * bound**2 + explained - first
                    if square < 0:
                        continue  # no number, no bound
                    radius = mpmath.sqrt(square) + (0 if unbiased else extra)
                self.parts.append((inverse, centre, radius))

    @property
    def radius(self) -> float:
        return float(self.parts[0][2])

    def bounds(self, vectors: Array) -> tuple[Array, Array]:
        """(L, U) of v @ theta for vectors (n, d), shape (n,) each."""
        low, high = np.full(len(vectors), -np.inf), np.full(len(vectors), np.inf)
        with mpmath.workdps(DIGITS):
            for n, vector in enumerate(vectors):
                v = mpmath.matrix(vector.tolist())
                for inverse, centre, radius in self.parts:
                    width = radius * mpmath.sqrt(abs((v.T * inverse * v)[0]))
                    middle = (v.T * centre)[0]
                    low[n] = max(low[n], float(middle - width))
                    high[n] = min(high[n], float(middle + width))
        return low, high
