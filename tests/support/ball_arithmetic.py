"""Confidence sets in ball arithmetic (arb): every number is an interval that contains the exact value.

Sums are exact, the rest is computed in several hundred bits, so the exact bounds over a set lie within a
radius far below a float64's last bit. Nothing here is shared with the library or the other oracles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

from c4b import LinearModel
from support.oracle_sets import Array

BITS = 640
"""Enough for products of float64 whose exponents span 1e-16 to 1e32, and a condition of 1e40 on top."""


class Dual(NamedTuple):
    """One ellipsoid: v @ centre and ||v||_{V^-1} for each vector of interest, and its radius."""

    middles: list[Any]
    widths: list[Any]
    square: Any  # of the radius, before ``shift``
    shift: Any  # added to the radius: epsilon sqrt(n)


class BallSet:
    """The exact stack of a model after rows (n, d) with rewards (n,)."""

    def __init__(self, model: LinearModel, features: Array, rewards: Array) -> None:
        ctx.prec = BITS
        self.model, self.dim, self.count = model, model.dim, len(rewards)
        rows = arb_mat(self.count, self.dim, features.ravel().tolist())
        self.rewards = arb_mat(self.count, 1, rewards.tolist())
        self.gram: Any = rows.transpose() * rows
        self.moment: Any = rows.transpose() * self.rewards
        self.noise, self.bound = arb(model.noise), arb(model.norm_bound)
        self.ridges = [arb(ridge) for ridge in model.ridges.tolist()]
        self.drift = arb(model.misspecification) * arb(self.count).sqrt()
        self.first = self.shape(self.gram, self.ridges[0])
        log_det = self.first.det().log() - self.dim * self.ridges[0].log()
        self.spread = self.noise**2 * (log_det - 2 * arb(model.delta).log())
        self.centre: Any = self.first.solve(self.moment)

    def shape(self, matrix: Any, ridge: Any) -> Any:
        out = arb_mat(matrix)
        for i in range(self.dim):
            out[i, i] += ridge
        return out

    def duals(self, vectors: list[Any]) -> Iterator[Dual]:
        """Every ellipsoid of the stack, in order; vectors (d, 1)."""
        name = self.model.confidence
        level = self.spread - _dot(self.moment, self.centre)
        if name == "self-normalized":
            square = (self.spread.sqrt() + self.ridges[0].sqrt() * self.bound) ** 2
            yield self.dual(self.first, self.moment, vectors, square, self.drift)
        elif name in ("mixture", "constrained"):
            for ridge in self.ridges:
                shape = self.shape(self.gram, ridge)
                centre = shape.solve(self.moment)
                square = level + ridge * self.bound**2 + _dot(self.moment, centre)
                yield self.dual(shape, self.moment, vectors, square, self.drift)
        else:
            square = (self.spread.sqrt() + self.ridges[0].sqrt() * self.bound + self.drift) ** 2
            yield self.dual(self.first, self.moment, vectors, square, arb(0))
            product = self.gram * self.first.solve(self.gram)
            target = self.gram * self.centre
            level = (self.spread.sqrt() + self.drift) ** 2 - _dot(self.moment, self.centre)
            for ridge in self.ridges[1:]:
                shape = self.shape(product, ridge)
                square = level + ridge * self.bound**2 + _dot(target, shape.solve(target))
                yield self.dual(shape, target, vectors, square, arb(0))

    def dual(self, shape: Any, target: Any, vectors: list[Any], square: Any, shift: Any) -> Dual:
        middles, widths = [], []
        for v in vectors:
            image = shape.solve(v)
            middles.append(_dot(target, image))
            widths.append(_dot(v, image).abs_upper().sqrt())
        return Dual(middles, widths, square, shift)

    def bounds(self, vectors: Array | list[Any]) -> Bounds:
        """Exact (L, U) over the stack and the norm ball; rows of ``vectors`` (n, d), or arb columns."""
        columns = [arb_mat(self.dim, 1, v.tolist()) for v in vectors] if len(vectors) else []
        return self.column_bounds(columns)

    def column_bounds(self, columns: list[Any]) -> Bounds:
        low = [-self.bound * _dot(v, v).sqrt() for v in columns]
        high = [-value for value in low]
        empty = False
        for dual in self.duals(columns):
            if dual.square < 0:
                empty = True
                continue
            radius = dual.square.abs_upper().sqrt() + dual.shift
            for n, (middle, width) in enumerate(zip(dual.middles, dual.widths, strict=True)):
                low[n] = _larger(low[n], middle - radius * width)
                high[n] = -_larger(-high[n], -(middle + radius * width))
        return Bounds(low, high, empty)

    def residuals(self) -> Any:
        """sum Y^2 - m V^-1 m - lambda S^2: at most the residual sum of squares of the truth."""
        total = _dot(self.rewards, self.rewards) - _dot(self.moment, self.centre)
        return total - self.ridges[0] * self.bound**2

    def condition(self) -> float:
        """An upper estimate: trace of V over its ridge."""
        trace = sum((self.first[i, i] for i in range(self.dim)), arb(0))
        return float((trace / self.ridges[0]).mid())


class Bounds(NamedTuple):
    """Exact bounds in each direction; ``empty``: some ellipsoid has a negative squared radius."""

    low: list[Any]
    high: list[Any]
    empty: bool


def contrast(candidate: Array, baseline: Array, alpha: float) -> Any:
    """x - (1 - alpha) b with no rounding but that of 1 - alpha, as a column."""
    kept = arb(1.0 - alpha)
    pairs = zip(candidate.tolist(), baseline.tolist(), strict=True)
    return arb_mat(len(candidate), 1, [arb(x) - kept * arb(b) for x, b in pairs])


def _dot(a: Any, b: Any) -> Any:
    return (a.transpose() * b)[0, 0]


def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


def above(value: float, exact: Any) -> bool:
    """Whether a float is certainly larger than an exact number; +inf is, NaN is not."""
    if np.isnan(value) or value == -np.inf:
        return False
    return bool(value == np.inf or arb(value) > exact)
