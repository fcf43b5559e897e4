"""Recompute the confidence sets for audits, in NumPy, from the sums. Shares no code with the kernels.

Only sums are updated incrementally: every set is factorised afresh. Equation numbers as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.checks.refutation import Refutation
from c4b.deployment.audit.recomputed.inverse_allowance import InverseAllowance
from c4b.deployment.audit.recomputed.recomputed_totals import Totals, totals_of
from c4b.deployment.audit.recomputed.recomputed_variance import (
    BOUNDED,
    VarianceSums,
    bounded_multipliers,
    bounded_radius,
)
from c4b.deployment.audit.recomputed.whitening import whitened

UNIT = 2.0**-53
"""Largest relative error of one operation."""
TOLERANCE = 1e-6
"""Largest difference between two arithmetics, relative to 1 + the size of the numbers involved, in
journals of early versions, and anywhere."""


class Stack(NamedTuple):
    """Ellipsoids of one moment: {||theta - centre_g||_{V_g} <= radius_g}."""

    roots: Array  # (G, d, d) V_g^-1 = R' R
    centres: Array  # (G, d)
    radii: Array  # (G,)
    explained: float  # m V^-1 m for V = sum xx' + a I at the first a
    rounding: float = np.nan  # relative error of its bounds, where rewards are in a range
    lost: float = 0.0  # what rounding may have taken from a radius squared: a difference of large squares


class Choice(NamedTuple):
    """What the set ``several-ridges`` is free to choose from the data: it decides tightness only."""

    mixes: Array  # (G, J) p
    multipliers: Array  # (G,) a


class SetChoice(Protocol):
    """What a set chooses from the data at the moment, or whether rounding left it nothing but the norm
    ball; it is told of every row."""

    def learn(self, features: Array, rewards: Array) -> None:
        """History (n, d) with rewards (n,)."""

    def absorb(self, x: Array, y: float) -> None:
        """One outcome."""

    def ridges(self) -> Choice:
        """Of ``several-ridges``."""

    def scale(self) -> int:
        """The prior scale of ``bounded``."""

    @property
    def is_lost(self) -> bool:
        """Whether float64 says nothing about the set."""


class RecomputedSet:
    """(4) to (7): the sums of all observations, and the confidence set that follows from them."""

    def __init__(self, model: dict[str, Any], ridges: Array, alarms: Array) -> None:
        self.model = model
        self.ridges = ridges
        self.level, self.bets = float(alarms[0]), alarms[1:]
        self.refuted = Refutation()
        self.squares = 0.0
        self.longest = 0.0
        """The largest ||x||^2 of a row."""
        self.within_ball = True
        """Whether the norm ball is part of the bounds; the first version left it out."""
        self.choice: SetChoice | None = None
        self.variance = VarianceSums(model) if model["confidence"] in BOUNDED else None
        self.totals: Totals | None = None
        if self.variance is not None and model["rewards"][0] == 0.0:
            self.totals = totals_of(model, BOUNDED[model["confidence"]].left(model["dim"]))
        self.gram = np.zeros((model["dim"], model["dim"]))
        self.moment = np.zeros(model["dim"])
        self.count = 0
        self._stack: Stack | None = None
        self._rounding: float | None = None
        self._allowance: InverseAllowance | None = None
        if self.ellipsoids == 1 and self.variance is None:
            self._allowance = InverseAllowance(model["dim"], float(ridges[0]))

    def learn(self, features: Array, rewards: Array) -> None:
        """History (n, d) with rewards (n,): alarms are looked for once."""
        if self.choice is not None:
            self.choice.learn(features, rewards)
        self._add(features, rewards)

    def absorb(self, x: Array, y: float) -> None:
        """One outcome."""
        if self.choice is not None:
            self.choice.absorb(x, y)
        self._add(x[None, :], np.array([y]))

    def _add(self, features: Array, rewards: Array) -> None:
        if self._allowance is not None:
            gram = self.gram.copy()
            for x in features:
                gram += np.outer(x, x)
                self._allowance.add(x, gram, float(self.ridges[0]))
        self.gram += features.T @ features
        self.moment += features.T @ rewards
        self.squares += float(rewards @ rewards)
        self.longest = max(self.longest, float(np.sum(features**2, axis=1).max(initial=0.0)))
        self.count += len(rewards)
        if self.variance is not None:
            self.variance.add(features, rewards)
        if self.totals is not None:
            self.totals.add(features, rewards)
        self._stack = self._rounding = None
        self._watch()

    def stack(self) -> Stack:
        """The ellipsoids, kept until the next observation."""
        if self._stack is None:
            with np.errstate(invalid="ignore"):
                self._stack = SETS[self.model["confidence"]](self)
        return self._stack

    def shapes(self) -> Array:
        """(G, d, d) sum xx' + a_g I."""
        return self.gram + self.ridges[:, None, None] * np.eye(len(self.moment))

    def spread(self, root: Array) -> float:
        """sigma^2 gamma^2, from the Cholesky factor of the first shape."""
        log_det = 2.0 * np.sum(np.log(np.diagonal(root))) - len(root) * np.log(self.ridges[0])
        return float(self.model["noise"] ** 2 * (log_det - 2.0 * np.log(self.model["delta"])))

    def drift(self) -> float:
        """How far declared misspecification can move a centre."""
        return float(self.model["misspecification"] * np.sqrt(self.count))

    def _watch(self) -> None:
        """An empty set, or residuals too large for the noise around any linear mean, refute the model."""
        model, (_, centres, radii, explained, *_) = self.model, self.stack()
        blur = np.inf if self.is_lost else max(self.rounding(), TOLERANCE)
        variance, tolerance = model["noise"] ** 2, model["misspecification"] ** 2
        rest = self.squares - explained - self.ridges[0] * model["norm_bound"] ** 2
        allowed = self.bets * tolerance / (variance * (1.0 - self.bets))
        growth = self.bets * rest / variance + self.count * (np.log1p(-self.bets) - allowed)
        excess = float(np.max(growth)) - 2.0 * np.log(3.0 / self.level)
        refuted = self.refuted.weighed(excess, blur * (1.0 + self.squares / variance))
        if np.isnan(radii).any() and not np.isnan(centres).any():
            refuted = refuted.weighed(1.0, np.inf if self.is_rough else 0.0)  # a square that is negative
        if self.variance is not None and self.variance.linearity is not None:
            watched = self.variance.linearity
            (low,), (high,) = self.bounds(watched.features[None])
            excess, unit = watched.excess(float(low), float(high))
            refuted = refuted.weighed(excess, 4.0 * blur * (unit + abs(float(high)) + abs(float(low))))
        self.refuted = refuted

    def bounds(self, vectors: Array) -> tuple[Array, Array]:
        """(L, U) of v @ theta for vectors (n, d), shape (n,) each; no number: no bound."""
        roots, centres, radii, *_ = self.stack()
        norms = np.sqrt(np.sum(np.einsum("gij,nj->gni", roots, vectors) ** 2, axis=2))
        middles = centres @ vectors.T
        widths = radii[:, None] * norms
        low = np.fmax.reduce(middles - widths, axis=0, initial=-np.inf)
        high = np.fmin.reduce(middles + widths, axis=0, initial=np.inf)
        return within_ball(self, vectors, low, high) if self.within_ball else (low, high)

    @property
    def radius(self) -> float:
        return float(self.stack().radii[0])

    @property
    def norm_bound(self) -> float:
        return float(self.model["norm_bound"])

    @property
    def ellipsoids(self) -> int:
        return len(self.ridges)

    @property
    def is_rough(self) -> bool:
        """Whether rounding may be visible in float64, here or in what the deployment recorded: then it
        recorded bounds with a visible allowance for it (docs/theory.md, section "Rounding")."""
        return not self.rounding() < (2e-8 if self.ellipsoids == 1 else 1e-7)

    @property
    def is_lost(self) -> bool:
        """Whether float64 says nothing about the set: a deployment then has only the norm ball,
        and neither its radius nor an alarm means anything."""
        return not self.rounding() < 1.0 or (self.choice is not None and self.choice.is_lost)

    @property
    def leverage(self) -> float:
        """The largest x V^-1 x with which an inverse can have been updated."""
        return self.longest / float(self.ridges[0]) if self.ellipsoids == 1 else 0.0

    @property
    def allowance(self) -> float:
        """About the share of its radius that a deployment has added for rounding; 0: not known here."""
        if self._allowance is None:
            return 0.0
        radius = float(self.stack().radii[0])
        return self._allowance.share(self.squares, self.model["noise"], radius)

    def rounding(self) -> float:
        """About the largest relative error of a bound in float64, with the allowance for it; NaN:
        unknown. Kept until the next observation."""
        if self._rounding is None:
            self._rounding = self._estimated_rounding()
        return self._rounding

    def _estimated_rounding(self) -> float:
        if self.variance is not None:
            return self.stack().rounding
        model, dim, trace = self.model, len(self.moment), float(np.trace(self.gram))
        if self.ellipsoids == 1:
            inverse = np.sum(self.stack().roots[0] ** 2, axis=0)
            product = dim * float(inverse @ (np.diagonal(self.gram) + self.ridges[0]))
            steps = self.count + 2000.0 * (dim + 2)
            return float(2e-16 * steps * product * (1.0 + np.sqrt(self.squares) / model["noise"]))
        least = 1e-4 * model["ridge"] + max(float(np.linalg.eigvalsh(self.gram)[0]), 0.0)
        unit = 2e-16 * (self.count + 100.0 * dim**2)
        moved = unit * (trace * self.norm_bound + np.sqrt(trace * self.squares))
        with np.errstate(invalid="ignore"):  # NaN says that it is not known
            return float(np.maximum(moved / (model["noise"] * np.sqrt(least)), unit * trace / least))


class Bounded(Protocol):
    """A stack of ellipsoids within a ball."""

    @property
    def norm_bound(self) -> float: ...
    @property
    def ellipsoids(self) -> int: ...
    @property
    def is_lost(self) -> bool: ...


def within_ball(region: Bounded, vectors: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds with ||theta|| <= S: always in a stack of several ellipsoids, or where a deployment has
    no other bounds; else where there are none."""
    far = region.norm_bound * np.sqrt(np.sum(vectors**2, axis=1))
    several = region.ellipsoids > 1 or region.is_lost
    low = np.where(several | ~np.isfinite(low), np.maximum(low, -far), low)
    high = np.where(several | ~np.isfinite(high), np.minimum(high, far), high)
    return low, high


def _self_normalized(s: RecomputedSet) -> Stack:
    """Radius (6)."""
    root = _root(s.shapes())
    roots, centres, explained = _solved(root, s.moment)
    radii = np.sqrt(s.spread(root[0])) + np.sqrt(s.ridges) * s.model["norm_bound"] + s.drift()
    return Stack(roots, centres, radii, float(explained[0]))


def _constrained(s: RecomputedSet) -> Stack:
    """The event (E) within the norm ball, at every a; with one a it is the mixture set."""
    root = _root(s.shapes())
    roots, centres, explained = _solved(root, s.moment)
    squares = s.spread(root[0]) + s.ridges * s.model["norm_bound"] ** 2 + explained - explained[0]
    lost = 512.0 * UNIT * float(explained[0])
    return Stack(roots, centres, np.sqrt(squares) + s.drift(), float(explained[0]), lost=lost)


def _unbiased(s: RecomputedSet) -> Stack:
    """The paper's set, then {||m - A theta||^2_{W^-1} + a ||theta||^2 <= const}, W its shape."""
    first, dim = _root(s.shapes()[:1]), len(s.moment)
    root, ridges, bound = first[0], s.ridges[1:], s.model["norm_bound"]
    half = np.linalg.solve(root, np.c_[s.gram, s.moment])
    shape, target = half[:, :dim].T @ half[:, :dim], half[:, :dim].T @ half[:, dim]
    own, centre, explained = _solved(first, s.moment)
    roots, centres, _ = _solved(_root(shape + ridges[:, None, None] * np.eye(dim)), target)
    reach = np.sqrt(s.spread(root)) + s.drift()
    rest = np.linalg.solve(root, (s.moment - centres @ s.gram).T)
    least = np.sum(rest**2, axis=0) + ridges * np.sum(centres**2, axis=1)
    radii = np.r_[reach + np.sqrt(s.ridges[0]) * bound, np.sqrt(reach**2 + ridges * bound**2 - least)]
    every, middles = np.concatenate([own, roots]), np.concatenate([centre, centres])
    return Stack(every, middles, radii, float(explained[0]))


def fixed_ridges(model: dict[str, Any]) -> tuple[Array, Array]:
    """(l_j, w_j) of ``several-ridges``, by the model alone, without those that have no weight."""
    useless = (model["noise"] / model["norm_bound"]) ** 2 / 3.0
    powers = np.arange(-5, 10)
    ridges = max(3.0 * model["ridge"], useless) * 10.0**powers
    weights = 1.0 / (1.0 + np.maximum(np.maximum(-powers, powers - 1), 0)) ** 2.0
    weights[(powers < 0) & (ridges < useless)] = 0.0
    return ridges, weights / np.sum(weights)


def _several_ridges(s: RecomputedSet) -> Stack:
    """{sum_j p_j ||m - A theta||^2_{W_j^-1} + a ||theta||^2 <= const} for each chosen (p, a)."""
    ridges, weights = fixed_ridges(s.model)
    mixes, multipliers = checked_choice(s.choice, weights)
    values, basis = np.linalg.eigh(s.gram)
    values, moment, bound = np.maximum(values, 0.0), basis.T @ s.moment, s.model["norm_bound"]
    log_dets = np.sum(np.log1p(values[:, None] / ridges), axis=0)
    with np.errstate(divide="ignore"):
        entropy = np.where(mixes > 0.0, mixes * np.log(mixes / weights), 0.0)
    spread = -2.0 * np.log(s.model["delta"]) + mixes @ log_dets + 2.0 * np.sum(entropy, axis=1)
    reach = s.model["noise"] * np.sqrt(spread) + s.drift()
    factors = mixes @ (1.0 / (values + ridges[:, None]))
    shapes = factors * values**2 + multipliers[:, None]
    squares = reach**2 + multipliers * (bound**2 - np.sum(factors * moment**2 / shapes, axis=1))
    roots = basis.T / np.sqrt(shapes)[:, :, None]
    centres = (factors * values * moment / shapes) @ basis.T
    explained = float(np.sum(moment**2 / (values + s.ridges[0])))
    return Stack(roots, centres, np.sqrt(squares), explained)


def _bounded(s: RecomputedSet) -> Stack:
    """{||m - A theta||^2_{W^-1} + a ||theta||^2 <= const}, W at the chosen prior scale."""
    assert s.variance is not None
    scale, dim, bound = checked_scale(s.choice), len(s.moment), s.model["norm_bound"]
    shape, prior = s.variance.shapes[scale], s.variance.scales[scale]
    root, log_det = whitened(shape, prior)
    radius = bounded_radius(
        float(log_det - dim * np.log(prior) - 2.0 * np.log(s.model["delta"] * s.variance.shares[scale])),
        dim,
        s.variance.reaches[scale],
    )
    half = root @ np.c_[s.gram, s.moment]
    normal, target = half[:, :dim].T @ half[:, :dim], half[:, :dim].T @ half[:, dim]
    if s.model["misspecification"] > 0.0:
        share = np.linalg.norm(root @ half[:, :dim].T)
        radius += s.drift() * np.sqrt(share)
    if not np.isfinite(normal).all():  # features whose fourth powers overflow say nothing in float64
        nothing = np.full((s.ellipsoids, dim, dim), np.nan)
        return Stack(nothing, nothing[:, 0], nothing[:, 0, 0], np.inf, np.inf)
    values, basis = np.linalg.eigh(normal)
    multipliers = bounded_multipliers(radius, bound)
    shapes = np.maximum(values, 0.0) + multipliers[:, None]
    turned = basis.T @ target
    squares = radius**2 + multipliers * bound**2 - half[:, dim] @ half[:, dim]
    squares = squares + np.sum(turned**2 / shapes, axis=1)
    roots = basis.T / np.sqrt(shapes)[:, :, None]
    grown = _grown_by_rounding(s, half, radius, float(np.trace(shape)), prior)
    rounding = 4e-9 + grown / float(np.min(np.abs(squares)))
    return Stack(roots, (turned / shapes) @ basis.T, np.sqrt(squares), np.inf, rounding)


def _grown_by_rounding(
    s: RecomputedSet, half: Array, radius: float, weights: float, prior: float
) -> float:
    """What the squares of radii are larger by, so that the set holds in spite of the rounding of A, m and
    W, of which a deployment knows only that it is above the prior. half (d, d + 1): R (A, m), where
    R' R = W^-1. weights: tr W."""
    dim, rows, bound = len(s.moment), float(np.trace(s.gram)), s.norm_bound
    far = 2.5 * (s.count + dim + 4.0) * UNIT * weights / prior
    if not far < 0.5:
        return np.inf
    gram, moment = float(np.linalg.norm(half[:, :dim])), float(np.linalg.norm(half[:, dim]))
    moved = (dim + 2.0) * np.sqrt(weights) * (gram * bound + moment)
    moved += (s.count + 2.0) * (rows * bound + np.sqrt(rows * s.squares))
    moved *= 1.5 * UNIT / np.sqrt(prior)
    turned = 100.0 * (dim + 2.0) * UNIT * gram * bound * (gram * bound + 2.0 * moment)
    return float(radius * (far * radius + 2.0 * moved) + 2.0 * dim * far + turned)


def checked_scale(choice: SetChoice | None) -> int:
    """A prior scale that (B) of docs/theory.md allows."""
    if choice is None:
        raise ValueError("this set needs the choice of the replayed set")
    scale = choice.scale()
    if not 0 <= scale < 5:
        raise ValueError(f"there is no prior scale {scale}")
    return scale


def checked_choice(choice: SetChoice | None, weights: Array) -> Choice:
    """A choice that (M) of docs/theory.md allows; any other has no ellipsoid."""
    if choice is None:
        raise ValueError("this set needs the choice of the replayed set")
    mixes, multipliers = choice.ridges()
    legal = np.all((mixes >= 0.0) & ((weights > 0.0) | (mixes == 0.0)), axis=1)
    legal &= (np.abs(np.sum(mixes, axis=1) - 1.0) < 1e-12) & (multipliers > 0.0)
    return Choice(np.where(legal[:, None], mixes, np.nan), multipliers)


SETS: dict[str, Callable[[RecomputedSet], Stack]] = {
    "self-normalized": _self_normalized,
    "mixture": _constrained,
    "constrained": _constrained,
    "unbiased": _unbiased,
    "several-ridges": _several_ridges,
    "bounded": _bounded,
    "bounded-2": _bounded,
    "bounded-3": _bounded,
}
"""Confidence sets that the audit can recompute."""


def _solved(roots: Any, target: Array) -> tuple[Array, Array, Array]:
    """(L^-1 (n, d, d), V^-1 target (n, d), target V^-1 target (n,)) for the Cholesky factors L of V."""
    inverses = np.linalg.inv(roots)
    whitened = inverses @ target
    return inverses, np.einsum("gij,gi->gj", inverses, whitened), np.sum(whitened**2, axis=1)


def _root(shapes: Any) -> Any:
    """Cholesky factors (n, d, d); no numbers where a shape is not positive definite."""
    try:
        return np.linalg.cholesky(shapes)
    except np.linalg.LinAlgError:
        if len(shapes) == 1:
            return np.full_like(shapes, np.nan)
        return np.concatenate([_root(shape[None]) for shape in shapes])
