"""The confidence set in 50 digits, for a sample of decisions.

Sums over the whole journal are kept as a few float64 each (error-free transformations, 32 digits or
more), so that a journal of any length needs high precision only where it is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath
import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import (
    SetChoice,
    checked_choice,
    checked_scale,
    fixed_ridges,
    within_ball,
)
from c4b.deployment.audit.recomputed.recomputed_variance import BOUNDED, VarianceSums, bounded_multipliers

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
    """A sum of arrays as two parts, or as many more as leave out at most ``grain`` in one addition."""

    def __init__(self, shape: tuple[int, ...], grain: float = 0.0) -> None:
        self.parts, self.grain = [np.zeros(shape), np.zeros(shape)], grain

    def add(self, values: Array, first: int = 0) -> None:
        """Parts before the ``first`` stay as they are."""
        for n in range(first, len(self.parts)):
            self.parts[n], values = _two_sum(self.parts[n], values)
        if np.abs(values).max() > self.grain:
            self.parts.append(values)

    def add_products(self, a: Array, b: Array) -> None:
        product, error = _two_product(a, b)
        self.add(product)
        self.add(error, 1)

    def exact(self) -> Any:
        """As a column or matrix of mpmath numbers."""
        rows = [part.reshape(len(part), -1).tolist() for part in self.parts]
        total = mpmath.matrix(rows[0])
        for part in rows[1:]:
            total += mpmath.matrix(part)
        return total


class Sums:
    """What a confidence set is made of; what is left out is nothing beside the ridge."""

    def __init__(self, dim: int, ridge: float, norm_bound: float) -> None:
        self.ridge = ridge
        self.gram = Sum((dim, dim), 1e-24 * ridge)
        self.moment = Sum((dim,), 1e-24 * ridge * norm_bound)

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        for x, y in zip(features, rewards, strict=True):
            rows, columns = np.broadcast_arrays(x[:, None], x[None, :])
            self.gram.add_products(rows, columns)
            self.moment.add_products(x, np.full_like(x, y))

    @property
    def range(self) -> float:
        """Digits between the squares of features and the ridge."""
        return float(np.log10(1.0 + np.trace(self.gram.parts[0]) / self.ridge))

    @property
    def is_wide(self) -> bool:
        """Whether some features are ten billion times as large as others may be."""
        return self.range >= 20.0

    @property
    def digits(self) -> int:
        """How many it takes to invert what is summed."""
        return DIGITS + 2 * int(max(self.range - 10.0, 0.0))


class Ellipsoid(NamedTuple):
    """{||theta - centre||_V <= radius}, in mpmath numbers."""

    inverse: Any  # V^-1
    centre: Any
    radius: Any


class Moment:
    """What the sets are computed from at one moment, in mpmath numbers."""

    def __init__(
        self,
        sums: Sums,
        count: int,
        model: dict[str, Any],
        ridges: Array,
        choice: SetChoice | None,
        variance: VarianceSums | None,
    ) -> None:
        self.model, self.choice, self.variance = model, choice, variance
        self.gram, self.moment, self.dim = sums.gram.exact(), sums.moment.exact(), model["dim"]
        self.noise, self.bound = mpmath.mpf(model["noise"]), mpmath.mpf(model["norm_bound"])
        self.log_term = -2 * mpmath.log(mpmath.mpf(model["delta"]))
        self.drift = mpmath.mpf(model["misspecification"]) * mpmath.sqrt(count)
        self.ridges = [mpmath.mpf(ridge) for ridge in ridges.tolist()]

    def solved(self, shape: Any, ridge: Any, target: Any) -> tuple[Any, Any]:
        """(V^-1, V^-1 target) of V = shape + ridge I."""
        inverse = mpmath.inverse(shape + ridge * mpmath.eye(self.dim))
        return inverse, inverse * target

    def spread(self, inverse: Any) -> Any:
        """sigma^2 gamma^2, from the inverse of the first shape."""
        log_det = -mpmath.log(mpmath.det(inverse)) - self.dim * mpmath.log(self.ridges[0])
        return self.noise**2 * (log_det + self.log_term)

    def paper(self) -> Ellipsoid:
        """Radius (6) at the first ridge."""
        inverse, centre = self.solved(self.gram, self.ridges[0], self.moment)
        reach = mpmath.sqrt(self.spread(inverse)) + mpmath.sqrt(self.ridges[0]) * self.bound
        return Ellipsoid(inverse, centre, reach + self.drift)


def _ellipsoid(inverse: Any, centre: Any, square: Any, drift: Any = 0) -> Ellipsoid | None:
    """One of this radius squared, and ``drift`` more. None: nothing fulfils it; no number, no bound."""
    return Ellipsoid(inverse, centre, mpmath.sqrt(square) + drift) if square >= 0 else None


def _self_normalized(m: Moment) -> Iterator[Ellipsoid | None]:
    yield m.paper()


def _constrained(m: Moment) -> Iterator[Ellipsoid | None]:
    """The event (E) within the norm ball, at every a; with one a it is the mixture set."""
    first, centre = m.solved(m.gram, m.ridges[0], m.moment)
    level = m.spread(first) - (m.moment.T * centre)[0]
    for ridge in m.ridges:
        inverse, centre = m.solved(m.gram, ridge, m.moment)
        square = level + ridge * m.bound**2 + (m.moment.T * centre)[0]
        yield _ellipsoid(inverse, centre, square, m.drift)


def _unbiased(m: Moment) -> Iterator[Ellipsoid | None]:
    """The paper's set, then {||m - A theta||^2_{W^-1} + a ||theta||^2 <= const}, W its shape."""
    first = m.paper()
    yield first
    shape, target = m.gram * first.inverse * m.gram, m.gram * first.centre
    level = (mpmath.sqrt(m.spread(first.inverse)) + m.drift) ** 2 - (m.moment.T * first.centre)[0]
    for ridge in m.ridges[1:]:
        inverse, centre = m.solved(shape, ridge, target)
        square = level + ridge * m.bound**2 + (target.T * centre)[0]
        yield _ellipsoid(inverse, centre, square)


def _several_ridges(m: Moment) -> Iterator[Ellipsoid | None]:
    """{sum_j p_j ||m - A theta||^2_{W_j^-1} + a ||theta||^2 <= const} for each chosen (p, a)."""
    ridges, weights = fixed_ridges(m.model)
    inverses = [
        mpmath.inverse(m.gram + mpmath.mpf(ridge) * mpmath.eye(m.dim)) for ridge in ridges.tolist()
    ]
    log_dets = [
        -mpmath.log(mpmath.det(inverse)) - m.dim * mpmath.log(mpmath.mpf(ridge))
        for inverse, ridge in zip(inverses, ridges.tolist(), strict=True)
    ]
    known: dict[bytes, tuple[Any, Any, Any]] = {}
    for mix, a in zip(*checked_choice(m.choice, weights), strict=True):
        if np.isnan(mix).any():
            yield None
            continue
        if mix.tobytes() not in known:
            parts = [(j, mpmath.mpf(float(p))) for j, p in enumerate(mix) if p > 0.0]
            cost = sum(p * (log_dets[j] + 2 * mpmath.log(p / mpmath.mpf(weights[j]))) for j, p in parts)
            factor = mpmath.zeros(m.dim)
            for j, p in parts:
                factor += p * inverses[j]
            reach = m.noise * mpmath.sqrt(m.log_term + cost) + m.drift
            known[mix.tobytes()] = factor, m.gram * factor * m.gram, reach
        factor, shape, reach = known[mix.tobytes()]
        target = m.gram * factor * m.moment
        inverse, centre = m.solved(shape, mpmath.mpf(float(a)), target)
        square = reach**2 + a * m.bound**2 - (m.moment.T * factor * m.moment)[0] + (target.T * centre)[0]
        yield _ellipsoid(inverse, centre, square)


def _bounded(m: Moment) -> Iterator[Ellipsoid | None]:
    """{||m - A theta||^2_{W^-1} + a ||theta||^2 <= const}; W as float64 has summed it."""
    assert m.variance is not None
    scale = checked_scale(m.choice)
    shape, prior = mpmath.matrix(m.variance.shapes[scale].tolist()), mpmath.mpf(m.variance.scales[scale])
    inverse = mpmath.inverse(shape)
    volume = mpmath.det(inverse)
    if not volume > 0:  # the sums have lost their last digits
        yield None
        return
    terms = BOUNDED[m.model["confidence"]]
    level = m.log_term - 2 * mpmath.log(terms.share(scale, m.dim))
    level -= mpmath.log(volume) + m.dim * mpmath.log(prior)
    radius = _bounded_radius(level, m.dim, terms.reach_squared(scale, m.dim))
    if m.drift > 0:
        share = inverse * m.gram * inverse * m.gram
        radius += m.drift * mpmath.sqrt(mpmath.sqrt(sum(share[i, i] for i in range(m.dim))))
    normal, target = m.gram * inverse * m.gram, m.gram * inverse * m.moment
    explained = (m.moment.T * inverse * m.moment)[0]
    for a in bounded_multipliers(float(radius), float(m.bound)).tolist():
        inverse, centre = m.solved(normal, mpmath.mpf(a), target)
        square = radius**2 + a * m.bound**2 - explained + (target.T * centre)[0]
        yield _ellipsoid(inverse, centre, square)


def _bounded_radius(level: Any, dim: int, reach_squared: int) -> Any:
    """The R with R^2 + 2 log Q_d(R, c) = level."""
    half = mpmath.mpf(reach_squared) / 2
    tails = [
        mpmath.gammainc(mpmath.mpf(dim) / 2 + k, 0, half, regularized=True) / mpmath.factorial(k)
        for k in range(48 + 3 * dim)
    ]

    def excess(z: Any) -> Any:
        total = mpmath.mpf(0)
        for tail in reversed(tails):
            total = total * z + tail
        return 2 * mpmath.log(total) - level

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while excess(high) < 0:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) >= 0 else (middle, high)
    return mpmath.sqrt(2 * high)


SETS: dict[str, Callable[[Moment], Iterator[Ellipsoid | None]]] = {
    "self-normalized": _self_normalized,
    "mixture": _constrained,
    "constrained": _constrained,
    "unbiased": _unbiased,
    "several-ridges": _several_ridges,
    "bounded": _bounded,
    "bounded-2": _bounded,
    "bounded-3": _bounded,
}
"""Confidence sets that the audit can recompute in high precision."""


class ExactSet:
    """(4) to (7) at one moment. Answers like ``recompute.RecomputedSet``, rounded at the very end."""

    def __init__(
        self,
        sums: Sums,
        count: int,
        model: dict[str, Any],
        ridges: Array,
        choice: SetChoice | None = None,
        variance: VarianceSums | None = None,
    ) -> None:
        self.norm_bound, self.ellipsoids = float(model["norm_bound"]), len(ridges)
        self.within_ball, self.is_lost = True, False
        self.digits = sums.digits
        with mpmath.workdps(self.digits):
            moment = Moment(sums, count, model, ridges, choice, variance)
            first, *others = SETS[model["confidence"]](moment)
        self.stack = [each for each in (first, *others) if each is not None]
        self.radius = math.nan if first is None else float(first.radius)
        """Of the first ellipsoid; NaN if that says nothing."""

    def bounds(self, vectors: Array) -> tuple[Array, Array]:
        """(L, U) of v @ theta for vectors (n, d), shape (n,) each."""
        low, high = np.full(len(vectors), -np.inf), np.full(len(vectors), np.inf)
        with mpmath.workdps(self.digits):
            for n, vector in enumerate(vectors):
                v = mpmath.matrix(vector.tolist())
                for inverse, centre, radius in self.stack:
                    width = radius * mpmath.sqrt(abs((v.T * inverse * v)[0]))
                    middle = (v.T * centre)[0]
                    low[n] = max(low[n], float(middle - width))
                    high[n] = min(high[n], float(middle + width))
        return within_ball(self, vectors, low, high) if self.within_ball else (low, high)
