"""The equations once more, for the audit: NumPy, from the sums, sharing no code with the kernels.

Nothing is updated incrementally but sums: every set is factorised afresh. Equation numbers as elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from c4b._validate import Array
from c4b.policies.candidate_fields import CandidateField

PREFIX = ("prefix", "revalue")
"""Names of the ledger that values all rounds anew; journals have the second."""
UCB, MARGIN, JOINT, SEPARATE, SCORE = CandidateField
"""Rows of a decision's details, as the journal's format has them."""


class Stack(NamedTuple):
    """Ellipsoids of one moment: {||theta - centre_g||_{V_g} <= radius_g}."""

    roots: Array  # (G, d, d) V_g^-1 = R' R
    centres: Array  # (G, d)
    radii: Array  # (G,)
    explained: float  # m V^-1 m for V = sum xx' + a I at the first a


class Choice(NamedTuple):
    """What the set ``several-ridges`` is free to choose from the data: it decides tightness only."""

    mixes: Array  # (G, J) p
    multipliers: Array  # (G,) a


def bounded_reaches(dim: int) -> Array:
    """c of each prior scale of ``bounded``."""
    return np.sqrt(3.0 * dim + np.array([5.0, 5.0, 5.0, 10.0, 21.0]))


class VarianceSums:
    """What ``bounded`` sums beside A and m: squared deviations, weighted row by row in their order."""

    def __init__(self, model: dict[str, Any]) -> None:
        dim, (low, high) = model["dim"], model["rewards"]
        self.width = high - low
        self.scales = model["ridge"] * self.width**2 * np.array([3.0, 30.0, 300.0, 1500.0, 15000.0])
        self.reaches = bounded_reaches(dim)
        self.shapes = self.scales[:, None, None] * np.eye(dim)
        self.inverses = np.linalg.inv(self.shapes)
        self.inverted_at, self.count = 0, 0
        self.total, self.deviations = 0.0, 0.0

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        for x, y in zip(features, rewards.tolist(), strict=True):
            if not self.inverted_at <= self.count < 1.0625 * self.inverted_at:
                self.inverses, self.inverted_at = np.linalg.inv(self.shapes), self.count
            steps = self.reaches * self.width * np.sqrt(np.einsum("i,jik,k->j", x, self.inverses, x))
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
            self.shapes = self.shapes + weights[:, None, None] * (x[:, None] * x)
            self.total, self.deviations, self.count = (
                self.total + y,
                self.deviations + gap**2,
                self.count + 1,
            )


class Totals:
    """What ``bounded`` knows from sums of rewards alone, where the lowest reward is 0: (K)."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.width = float(model["rewards"][1])
        self.level = math.log(7.0 / model["delta"])
        self.first: Array | None = None
        self.rows, self.clicks, self.other_clicks = 0, 0.0, 0.0
        self.others = np.zeros(model["dim"])

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        if self.first is None and len(features):
            self.first = features[0].copy()
        same = np.all(features == self.first, axis=1)
        self.rows += int(same.sum())
        self.clicks += float(rewards[same].sum()) / self.width
        self.other_clicks += float(rewards[~same].sum()) / self.width
        self.others = self.others + features[~same].sum(axis=0)

    def covers(self, features: Array) -> bool:
        """Whether the rewards of these features (d,) have a sum of their own."""
        return self.first is not None and np.array_equal(self.first, features)

    def _root(self, clicks: float, inside: float, outside: float) -> float:
        """Where e(K, .) crosses the level between two totals."""
        for _ in range(200):
            middle = 0.5 * (inside + outside)
            value = middle + math.lgamma(1.0 + clicks) - (1.0 + clicks) * math.log1p(middle)
            inside, outside = (middle, outside) if value <= self.level else (inside, middle)
        return outside

    def mean(self) -> tuple[float, float]:
        """Bounds of the mean of the first row's features."""
        low = self._root(self.clicks, self.clicks, 0.0)
        high = self._root(self.clicks, self.clicks, 3.0 * self.clicks + 4.0 * self.level + 20.0)
        return self.width * low / self.rows, min(self.width, self.width * high / self.rows)

    def others_low(self) -> float:
        """A lower bound of the total mean of all other rows."""
        return self.width * self._root(self.other_clicks, self.other_clicks, 0.0)


class RecomputedSet:
    """(4) to (7): the sums of all observations, and the confidence set that follows from them."""

    def __init__(self, model: dict[str, Any], ridges: Array, alarms: Array) -> None:
        self.model = model
        self.ridges = ridges
        self.level, self.bets = float(alarms[0]), alarms[1:]
        self.alarmed = False
        self.closest = np.inf
        """How near an alarm's threshold came to being met or missed, relative to its terms."""
        self.squares = 0.0
        self.within_ball = True
        """Whether the norm ball is part of the bounds; the first version left it out."""
        self.choice: Callable[[], Any] | None = None
        """What the replayed set has chosen at this moment: a ``Choice`` of ``several-ridges``, the prior
        scale of ``bounded``; other sets choose nothing."""
        self.variance = VarianceSums(model) if model["confidence"] == "bounded" else None
        self.totals = Totals(model) if self.variance is not None and model["rewards"][0] == 0.0 else None
        self.gram = np.zeros((model["dim"], model["dim"]))
        self.moment = np.zeros(model["dim"])
        self.count = 0
        self._stack: Stack | None = None

    def add(self, features: Array, rewards: Array) -> None:
        """Rows (n, d) with rewards (n,)."""
        self.gram += features.T @ features
        self.moment += features.T @ rewards
        self.squares += float(rewards @ rewards)
        self.count += len(rewards)
        if self.variance is not None:
            self.variance.add(features, rewards)
        if self.totals is not None:
            self.totals.add(features, rewards)
        self._stack = None
        self._watch()

    def stack(self) -> Stack:
        """The ellipsoids, kept until the next observation."""
        if self._stack is None:
            with np.errstate(invalid="ignore"):
                self._stack = SETS[self.model["confidence"]](self)
        return self._stack

    def renew(self) -> None:
        """The choice may be another one now."""
        if self.choice is not None:
            self._stack = None

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
        """Latch an alarm: an empty set, or residuals too large for the noise around any linear mean."""
        model, (_, centres, radii, explained) = self.model, self.stack()
        variance, tolerance = model["noise"] ** 2, model["misspecification"] ** 2
        rest = self.squares - explained - self.ridges[0] * model["norm_bound"] ** 2
        allowed = self.bets * tolerance / (variance * (1.0 - self.bets))
        growth = self.bets * rest / variance + self.count * (np.log1p(-self.bets) - allowed)
        gap = growth - 2.0 * np.log(3.0 / self.level)
        self.closest = float(np.min(np.abs(gap)) / (1.0 + self.squares / variance))
        empty = bool(np.isnan(radii).any()) and not np.isnan(centres).any()
        if empty and self.is_rough:  # rounding alone can make a square negative
            self.closest = 0.0
        self.alarmed = self.alarmed or empty or bool(np.any(gap >= 0.0))

    def bounds(self, vectors: Array) -> tuple[Array, Array]:
        """(L, U) of v @ theta for vectors (n, d), shape (n,) each; no number: no bound."""
        roots, centres, radii, _ = self.stack()
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

    def rounding(self) -> float:
        """About the largest relative error of a bound in float64, with the allowance for it; NaN:
        unknown, as for ``bounded``, whose radius has allowances of its own."""
        if self.variance is not None:
            return np.nan
        model, dim, trace = self.model, len(self.moment), float(np.trace(self.gram))
        if self.ellipsoids == 1:
            inverse = np.sum(self.stack().roots[0] ** 2, axis=0)
            product = dim * float(inverse @ (np.diagonal(self.gram) + self.ridges[0]))
            steps = self.count + 2000.0 * (dim + 2)
            return float(2e-16 * steps * product * (1.0 + np.sqrt(self.squares) / model["noise"]))
        least = 1e-4 * model["ridge"] + max(float(np.linalg.eigvalsh(self.gram)[0]), 0.0)
        unit = 2e-16 * (self.count + 100.0 * dim**2)
        moved = unit * (trace * self.norm_bound + np.sqrt(trace * self.squares))
        return float(np.maximum(moved / (model["noise"] * np.sqrt(least)), unit * trace / least))


class Bounded(Protocol):
    """A stack of ellipsoids within a ball."""

    @property
    def norm_bound(self) -> float: ...
    @property
    def ellipsoids(self) -> int: ...


def within_ball(region: Bounded, vectors: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds with ||theta|| <= S: always in a stack of several ellipsoids, else where there are none."""
    far = region.norm_bound * np.sqrt(np.sum(vectors**2, axis=1))
    several = region.ellipsoids > 1
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
    return Stack(roots, centres, np.sqrt(squares) + s.drift(), float(explained[0]))


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


def _bounded(s: RecomputedSet) -> Stack:
    """{||m - A theta||^2_{W^-1} + a ||theta||^2 <= const}, W at the chosen prior scale."""
    assert s.variance is not None
    scale, dim, bound = checked_scale(s.choice), len(s.moment), s.model["norm_bound"]
    shape = s.variance.shapes[scale]
    log_det = np.linalg.slogdet(shape / s.variance.scales[scale])[1]
    radius = bounded_radius(
        log_det - 2.0 * np.log(s.model["delta"] / 7.0), dim, s.variance.reaches[scale]
    )
    root = np.linalg.cholesky(shape)
    half = np.linalg.solve(root, np.c_[s.gram, s.moment])
    normal, target = half[:, :dim].T @ half[:, :dim], half[:, :dim].T @ half[:, dim]
    if s.model["misspecification"] > 0.0:
        share = np.linalg.norm(np.linalg.solve(root, half[:, :dim].T))
        radius += s.drift() * np.sqrt(share)
    values, basis = np.linalg.eigh(normal)
    multipliers = bounded_multipliers(radius, bound)
    shapes = np.maximum(values, 0.0) + multipliers[:, None]
    turned = basis.T @ target
    squares = radius**2 + multipliers * bound**2 - half[:, dim] @ half[:, dim]
    squares = squares + np.sum(turned**2 / shapes, axis=1)
    roots = basis.T / np.sqrt(shapes)[:, :, None]
    return Stack(roots, (turned / shapes) @ basis.T, np.sqrt(squares), np.inf)


def checked_scale(choice: Callable[[], Any] | None) -> int:
    """A prior scale that (B) of docs/theory.md allows."""
    if choice is None:
        raise ValueError("this set needs the choice of the replayed set")
    scale = int(choice())
    if not 0 <= scale < 5:
        raise ValueError(f"there is no prior scale {scale}")
    return scale


def checked_choice(choice: Callable[[], Choice] | None, weights: Array) -> Choice:
    """A choice that (M) of docs/theory.md allows; any other has no ellipsoid."""
    if choice is None:
        raise ValueError("this set needs the choice of the replayed set")
    mixes, multipliers = choice()
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


class Region(Protocol):
    """What the books ask of a set."""

    def bounds(self, vectors: Array) -> tuple[Array, Array]: ...


class Books:
    """The ledger: bank, prefix, revalued sums, checkpoints."""

    def __init__(self, fields: dict[str, Any], rule: Array, region: Region) -> None:
        self.region = region
        self.certificate = fields["composition"]["certificate"]
        self.ledger = fields["composition"]["ledger"]
        self.alpha, self.reserve = float(fields["alpha"]), float(fields["reserve"])
        floor = fields.get("baseline_floor")
        self.floor = float(floor) if floor is not None else 0.0
        if not fields["baseline_nonnegative"] and floor is None:
            self.floor = -np.inf
        composition = fields["composition"]
        self.phase = int(composition.get("phase", 1))
        self.known = self.certificate == "known"
        self.earns = composition.get("earned", "none") != "none"
        self.noise, self.level = fields["model"]["noise"], fields["model"]["delta"] / 2.0
        self.mean = np.nan  # the baseline's in this round, where it is told
        self.told = 0.0  # alpha sum_F mu - c sum_S mu
        self.fallbacks = self.plays = 0
        self.rewards = 0.0  # of absorbed plays
        self.refuted, self.closest = False, np.inf
        dim = fields["model"]["dim"]
        self.gated = self.ledger != "none"
        self.bank = self.reserve if self.gated else float("nan")
        self.prefix = np.zeros(dim)
        self.played, self.displaced, self.fallback = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        self.absorbed = np.zeros(dim)  # features of absorbed plays
        self.room, self.cushion = int(rule[4]), float(rule[5])
        self.kept_back = float(rule[9]) if self.ledger == "nonnegative" else 0.0
        self.tolerance = fields["model"]["misspecification"]
        self.slack = 0.0  # what declared misspecification has cost so far
        self.rounds, self.stride = 0, 1
        self.executed_plays, self.changed = 0, False
        self.first_baseline: Array | None = None
        totals = getattr(region, "totals", None)
        claims = self.ledger == "nonnegative" and self.floor >= 0.0 and self.tolerance == 0.0
        self.totals: Totals | None = totals if claims else None
        self.kept: list[tuple[int, float, Array]] = [(0, self.reserve, np.zeros(dim))] * min(self.room, 1)

    def _lower(self, vector: Array) -> float:
        return float(self.region.bounds(vector[None, :])[0][0])

    def _upper(self, vector: Array) -> float:
        return float(self.region.bounds(vector[None, :])[1][0])

    @property
    def charges_separately(self) -> bool:
        """Whether a round's certificate is the separate one."""
        return self.known or (self.certificate == "separate" and self.ledger in ("carry", "round"))

    def tell(self, baseline: Array, mean: float | None) -> None:
        """The baseline's mean in the round to come, which its own interval may refute."""
        self.mean = np.nan if mean is None else mean
        if self.known:
            low, high = (float(bound[0]) for bound in self.region.bounds(baseline[None, :]))
            inside = min(self.mean - low, high - self.mean) + self.tolerance
            self.closest = min(self.closest, abs(inside))
            self.refuted = self.refuted or not inside >= 0.0

    def earn(self, features: Array, reward: float) -> None:
        """The reward of a play was absorbed."""
        self.plays += 1
        self.rewards += reward
        self.absorbed = self.absorbed + features

    def credit(self, features: Array, tolerance: float = 0.0, floor: float | None = None) -> float:
        """(11), less what the mean may be below linear; or the mean that was told."""
        if self.known and floor is None:
            return float(self.alpha * self.mean)
        low = self._lower(features) - tolerance
        return float(self.alpha * max(low, self.floor if floor is None else floor))

    def price(self, is_baseline: bool) -> float:
        """What declared misspecification can cost a round."""
        if self.known:
            return 0.0 if is_baseline else float(self.tolerance)
        return float(self.tolerance * (self.alpha if is_baseline else 2.0 - self.alpha))

    def optimistic(self, period: int) -> bool:
        """Whether the next round is the optimistic one of its block of ``period`` rounds."""
        if not period:
            return False
        golden = 0.6180339887498949 * (self.rounds // period + 1)
        return self.rounds % period == int(period * (golden - np.floor(golden)))

    def promises(self, candidates: Array, baseline: Array, trust: float) -> Array:
        """Scores (K,) of x(a) - x(b): what each candidate promises above the baseline."""
        low, high = self.region.bounds(candidates - baseline)
        return np.asarray(0.5 * ((1.0 + trust) * high + (1.0 - trust) * low))

    def least(self, thrift: float, baseline: Array) -> float:
        """The margin that a thrifty choice would like to keep."""
        if thrift <= 0.0:
            return 0.0
        return float(min(thrift * self.bank, self.cushion * self.credit(baseline, self.tolerance, 0.0)))

    def details(
        self, candidates: Array, baseline: Array, boldness: float, by_certificate: bool = False
    ) -> Array:
        """UCB, margin, joint and separate certificate and score (5, K), from the set and the books."""
        c = 1.0 - self.alpha
        out = np.empty((len(CandidateField), len(candidates)))
        low, out[UCB] = self.region.bounds(candidates)
        contrasts = candidates - c * baseline
        out[JOINT] = self.region.bounds(contrasts)[0]
        out[SEPARATE] = low - c * (self.mean if self.known else self._upper(baseline))
        certificate = out[SEPARATE if self.charges_separately else JOINT]
        out[SCORE] = 0.5 * ((1.0 + boldness) * out[UCB] + (1.0 - boldness) * low)
        if by_certificate:
            out[SCORE] = certificate
        if not self.gated:
            out[MARGIN] = np.inf
        elif self.known and self.ledger == "prefix":
            gained = self._gained(candidates)
            out[MARGIN] = self._told(1) - c * self.mean + gained
        elif self.ledger in PREFIX:
            owed = c * self._upper(self.displaced + baseline)
            gained = self.region.bounds(self.played + candidates)[0]
            earned = self.credit(self.fallback, 0.0, self._floor(0))
            out[MARGIN] = self.reserve + gained + earned - owed - self.slack
        elif self.ledger == "round":
            alone = certificate >= self.price(False)
            out[MARGIN] = np.where(alone, self.bank + certificate, -np.inf)
        else:
            now, _, free = self.free_claims(baseline)
            out[MARGIN] = np.maximum(max(self.bank, now) + certificate, free)
            for _, bank, prefix in self.kept:  # (12), from any round that is remembered
                low = self.region.bounds(self.prefix - prefix + contrasts)[0]
                out[MARGIN] = np.maximum(out[MARGIN], bank + low)
        out[MARGIN] -= self.price(False) if self.gated else 0.0
        return out

    def baseline_margin(self, baseline: Array) -> float:
        if not self.gated:
            return float("nan")
        if self.known and self.ledger == "prefix":
            return self._told(1) + self.alpha * self.mean + float(self._gained(None)[0])
        if self.ledger in PREFIX:
            return self.revalued(self.fallback + baseline, 1) - self.price(True)
        best = self.bank + self.credit(baseline, self.tolerance)
        if self.ledger == "round":
            return best if best >= self.bank else -np.inf
        now, after, _ = self.free_claims(baseline)
        best = max(best, now + self.credit(baseline, self.tolerance), after)
        for _, bank, prefix in self.kept:
            low = self._lower(self.prefix - prefix + self.alpha * baseline)
            best = max(best, bank + low - self.price(True))
        return best

    def free_claims(self, baseline: Array) -> tuple[float, float, float]:
        """(N1) to (N3): the worth of all rounds now, after the baseline, and after any candidate."""
        if self.totals is None:
            return -np.inf, -np.inf, -np.inf
        low, high = (float(bound[0]) for bound in self.region.bounds(baseline[None, :]))
        low, earned, summed = max(low, 0.0), 0.0, self.totals.covers(baseline)
        weight = self.alpha * self.rounds - self.executed_plays
        if summed:
            sums = self.totals.mean()
            low, high = max(low, sums[0]), min(high, sums[1])
            rest = self.prefix - weight * baseline - self.totals.others
            earned = max(self.totals.others_low() + self._lower(rest), 0.0)

        def worth(rounds: int, plays: int) -> float:
            credit = self.alpha * rounds
            weight = credit - plays - 8.0 * 2.0**-53 * credit
            return float(self.reserve + earned + weight * (low if weight >= 0.0 else high))

        now = after = free = -np.inf
        if not self.changed and (
            self.first_baseline is None or np.array_equal(self.first_baseline, baseline)
        ):
            now, after = (
                worth(self.rounds, self.executed_plays),
                worth(self.rounds + 1, self.executed_plays),
            )
            free = worth(self.rounds + 1, self.executed_plays + 1)
        free = max(free, max(self.bank, now) - (1.0 - self.alpha) * high)
        keeps = self.kept_back * self.alpha * (self.rounds + 1) * low
        return now, after, free if free >= keeps else -np.inf

    def revalued(self, fallback: Array, more: int) -> float:
        """``more``: rounds of the fallback that are not counted yet."""
        owed = (1.0 - self.alpha) * self._upper(self.displaced) + self.slack
        earned = self.credit(fallback, 0.0, self._floor(more))
        return float(self.reserve + self._lower(self.played) + earned - owed)

    def _floor(self, more: int) -> float:
        """What the means of all fallback rounds sum to at least."""
        return (self.fallbacks + more) * self.floor if np.isfinite(self.floor) else self.floor

    def _told(self, more: int) -> float:
        """R0 and all told means, and what is left of a phase after ``more`` further rounds."""
        left = -(self.rounds + more) % self.phase if np.isfinite(self.floor) else 0
        ahead = self.alpha * left * self.floor if left else 0.0
        return float(self.reserve + self.told + ahead - self.slack)

    def _gained(self, candidates: Array | None) -> Array:
        """What all plays have earned, with one more of ``candidates`` (K, d), or without."""
        rows = np.zeros((1, len(self.played))) if candidates is None else candidates
        gained = self.region.bounds(self.played + rows)[0]
        if not self.earns:
            return gained
        m = self.plays + 20.0
        width = self.noise * np.sqrt(m * (np.log(m / 20.0) - 2.0 * np.log(self.level)))
        apart = self._lower(self.played) + self.region.bounds(rows)[0]
        open_plays = self.region.bounds(self.played - self.absorbed + rows)[0]
        best: Array = np.max([gained, apart, self.rewards - width + open_plays], axis=0)
        return best

    def charge(
        self, bank: float, executed: Array, baseline: Array, is_baseline: bool, mean: float | None
    ) -> None:
        """A decision was recorded: take its bank, enter its features, keep a checkpoint when due."""
        if self.gated:
            self.bank = bank
        self._enter(executed, baseline, is_baseline, mean, 1.0)
        self.rounds += 1
        price = self.price(is_baseline)
        self.slack += price
        self.kept = [(s, bank - price, prefix) for s, bank, prefix in self.kept]
        if self.room < 2 or self.rounds % self.stride:
            return
        if len(self.kept) == self.room:
            self.kept = self.kept[:1] + self.kept[2::2]
            self.stride *= 2
        if self.rounds % self.stride == 0:
            self.kept.append((self.rounds, self.bank, self.prefix.copy()))

    def amended(
        self,
        decided: tuple[Array, bool],
        executed: tuple[Array, bool],
        baseline: Array,
        mean: float | None,
        round_: int,
    ) -> float:
        """Something else was executed at ``round_``; returns the bank that this leaves."""
        difference = executed[0] - decided[0]
        cost = self._lower(difference) - 2.0 * self.tolerance
        more = self.price(executed[1]) - self.price(decided[1])
        self.slack += more
        self.kept = [
            (s, bank + cost, prefix + difference) if s > round_ else (s, bank - more, prefix)
            for s, bank, prefix in self.kept
        ]
        self._enter(decided[0], baseline, decided[1], mean, -1.0)
        self._enter(executed[0], baseline, executed[1], mean, 1.0)
        if self.known and self.ledger == "prefix":
            return self._told(0) + float(self._gained(None)[0])
        if self.ledger in PREFIX:  # as if a baseline of no features were played
            return self.revalued(self.fallback, 0) - self.price(True)
        return float(self.bank + cost)

    def _enter(
        self, executed: Array, baseline: Array, is_baseline: bool, mean: float | None, sign: float
    ) -> None:
        known = 0.0 if mean is None else sign * mean
        self.told += self.alpha * known if is_baseline else -(1.0 - self.alpha) * known
        self.fallbacks += int(sign) if is_baseline else 0
        self.prefix = self.prefix + sign * (executed - (1.0 - self.alpha) * baseline)
        self.executed_plays += 0 if is_baseline else int(sign)
        if self.first_baseline is None:
            self.first_baseline = baseline.copy()
        self.changed = self.changed or not np.array_equal(self.first_baseline, baseline)
        if is_baseline:
            self.fallback = self.fallback + sign * baseline
        else:
            self.played = self.played + sign * executed
            self.displaced = self.displaced + sign * baseline
