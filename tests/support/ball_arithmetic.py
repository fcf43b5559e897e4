"""Confidence sets in ball arithmetic (arb): every number is an interval that contains the exact value.

Sums are exact, the rest is computed in several hundred bits, so the exact bounds over a set lie within a
radius far below a float64's last bit. Nothing here is shared with the library or, but for constants, with
the other oracles.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

from c4b import LinearModel
from c4b.evidence.sets.several_ridges_parts.mix_choice import Choice
from support.oracle_bounded import CONSTANTS
from support.oracle_sets import Array

BITS = 640
"""Enough for products of float64 whose exponents span 1e-16 to 1e32, and a condition of 1e40 on top."""


NEARBY = (-0.3, -0.03, -0.003, -0.0003, 0.0003, 0.003, 0.03, 0.3)
"""Logarithms of multipliers relative to one that was chosen for a question."""


class Dual(NamedTuple):
    """One ellipsoid: v @ centre and ||v||_{V^-1} for each vector of interest, and its radius."""

    middles: list[Any]
    widths: list[Any]
    square: Any  # of the radius, before ``shift``
    shift: Any  # added to the radius: epsilon sqrt(n)


class BallSet:
    """The exact stack of a model after rows (n, d) with rewards (n,)."""

    def __init__(
        self,
        model: LinearModel,
        features: Array,
        rewards: Array,
        choice: Choice | None = None,
        scale: tuple[int, list[float]] | None = None,
    ) -> None:
        ctx.prec = BITS
        self.choice, self.scale, self.pairs = choice, scale, np.empty((0, 16))
        self.rows = (features, rewards)
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
        elif name == "several-ridges":
            yield from self.several_ridges(vectors)
        elif name in CONSTANTS:
            yield from self.bounded(vectors)
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

    def several_ridges(self, vectors: list[Any]) -> Iterator[Dual]:
        """Ridges and weights by the model, mixes and multipliers as they were chosen."""
        assert self.choice is not None
        useless = (self.noise / self.bound) ** 2 / 3
        first = _larger(3 * arb(self.model.ridge), useless)
        ridges = [first * arb(10) ** k for k in range(-5, 10)]
        weights = [arb(1) / (1 + max(-k, k - 1, 0)) ** 2 for k in range(-5, 10)]
        for j in range(5):
            if ridges[j] < useless:
                weights[j] = arb(0)
        total = sum(weights, arb(0))
        unit = self.shape(arb_mat(self.dim, self.dim), arb(1))
        shapes = [self.shape(self.gram, ridge) for ridge in ridges]
        inverses = [shape.solve(unit) for shape in shapes]
        log_dets = [
            shape.det().log() - self.dim * ridge.log()
            for shape, ridge in zip(shapes, ridges, strict=True)
        ]
        for mix, a in zip(self.choice.mixes.tolist(), self.choice.multipliers.tolist(), strict=True):
            whole = sum((arb(p) for p in mix), arb(0))
            parts = [(j, arb(p) / whole) for j, p in enumerate(mix) if p > 0.0]  # adds up to 1 exactly
            factor, spread = arb_mat(self.dim, self.dim), -2 * arb(self.model.delta).log()
            for j, p in parts:
                factor += inverses[j] * p
                spread += p * (log_dets[j] + 2 * (p * total / weights[j]).log())
            target, level = self.gram * factor * self.moment, self.noise * spread.sqrt() + self.drift
            shape = self.shape(self.gram * factor * self.gram, arb(a))
            square = level**2 + arb(a) * self.bound**2 - _dot(self.moment, factor * self.moment)
            square += _dot(target, shape.solve(target))
            yield self.dual(shape, target, vectors, square, arb(0))

    def bounded(self, vectors: list[Any]) -> Iterator[Dual]:
        """Weights row by row with exact inverses, at the prior scale and the multipliers in use."""
        assert self.scale is not None
        assert self.drift == 0
        index, multipliers = self.scale
        W, prior, reach = self.deviations(index)
        log_det = W.det().log() - self.dim * prior.log()
        share = CONSTANTS[str(self.model.confidence)].share(self.dim, index)
        level = log_det - 2 * (arb(self.model.delta) * share).log()
        square = 2 * self.truncated_root(level / 2, reach**2 / 2)
        normal, image = self.gram * W.solve(self.gram), W.solve(self.moment)
        target, explained = self.gram * image, _dot(self.moment, image)
        for a in multipliers:
            shape = self.shape(normal, arb(a))
            radius = square + arb(a) * self.bound**2 - explained + _dot(target, shape.solve(target))
            yield self.dual(shape, target, vectors, radius, arb(0))

    def deviations(self, index: int) -> tuple[Any, Any, Any]:
        """(W, l, c) after all rows."""
        width = 2 * self.noise
        constants = CONSTANTS[str(self.model.confidence)]
        prior = arb(constants.scales[index]) * arb(self.model.ridge) * width**2
        reach = arb(constants.reach_squared(self.dim, index)).sqrt()
        unit = self.shape(arb_mat(self.dim, self.dim), arb(1))
        W = self.shape(arb_mat(self.dim, self.dim), prior)
        inverse, inverted_at = W.solve(unit), 0
        largest, spread, total = width**2 / 4, arb(0), arb(0)
        for n, (row, reward) in enumerate(zip(*self.rows, strict=True)):
            x, y = arb_mat(self.dim, 1, row.tolist()), arb(float(reward))
            if not inverted_at <= n < 1.0625 * inverted_at:
                inverse, inverted_at = W.solve(unit), n
            b = reach * width * _dot(x, inverse * x).abs_upper().sqrt()
            gap = y - total / n if n else width / 2
            weight = largest
            if n and b <= arb(0.95):
                steep = 2 * (-(1 - b).log() - b) / b**2 if b > 0 else arb(1)
                if steep * (4 * largest + spread) / (4 + n) < largest:
                    weight = steep * gap**2
            W += x * x.transpose() * weight
            spread, total = spread + gap**2, total + y
        return W, prior, reach

    def truncated_root(self, level: Any, half: Any) -> Any:
        """z with log(exp(z) Q_d(sqrt(2 z), c)) = level, half = c^2 / 2, from below to 100 digits."""
        order = arb(self.dim) / 2
        parts = [half.gamma_lower(order + k, 1) / arb(k + 1).gamma() for k in range(120 + 3 * self.dim)]
        low, high = arb(0), arb(4096)
        for _ in range(340):
            middle = (low + high) / 2
            total = arb(0)
            for part in reversed(parts):
                total = total * middle + part
            low, high = (low, middle) if total.log() >= level else (middle, high)
        return low

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

    def with_pairs(self, pairs: Array) -> BallSet:
        """The same event and ball, by pairs (p, a) besides those of the library's list: rows of ``pairs``
        (n, J + 1). Sets of one ridge have the multiplier a alone."""
        other = copy(self)
        other.pairs = pairs
        if self.choice is not None:
            other.choice = self.choice._replace(
                mixes=np.vstack([self.choice.mixes, pairs[:, :-1]]),
                multipliers=np.concatenate([self.choice.multipliers, pairs[:, -1]]),
            )
        elif len(self.ridges) > 1:
            other.ridges = self.ridges + [arb(a) for a in pairs[:, -1].tolist()]
        return other

    def by_more_multipliers(self) -> BallSet:
        """The same event and ball by other multipliers of the norm constraint.

        Each pair of the library's list is one of infinitely many that hold on the event. Which of them
        are listed decides tightness; theta is promised to lie in the intersection of all.
        """
        other, S = copy(self), self.bound
        unit = float((self.spread / S**2).mid())
        more = [arb(unit) * arb(10) ** (arb(k) / 4) for k in range(-40, 121)]
        if self.choice is not None:
            mixes = np.unique(self.choice.mixes, axis=0)
            pairs = [(mix, float(a.mid())) for mix in mixes for a in more]
            other.choice = self.choice._replace(
                mixes=np.array([mix for mix, _ in pairs]), multipliers=np.array([a for _, a in pairs])
            )
        elif len(self.ridges) > 1:
            other.ridges = [self.ridges[0], *more]
        nearby = [self.pairs * np.append(np.ones(self.pairs.shape[1] - 1), np.exp(x)) for x in NEARBY]
        return other.with_pairs(np.vstack([self.pairs, *nearby]))

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
