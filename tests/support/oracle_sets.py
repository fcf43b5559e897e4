"""Slow, obvious confidence sets, written from the paper and the theory sheet alone.

Nothing is updated incrementally: every estimate is recomputed from the list of observations. Infima are
found in closed form, by a one-dimensional dual, or by a generic solver that knows nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

Array = NDArray[np.float64]


class EmptySet(Exception):
    """A set within the norm ball has no point left: the data refute the model at level delta."""


@dataclass
class Estimate:
    """(4)-(6) from all data."""

    gram: Array  # A = sum x x'
    moment: Array  # b = sum x y
    V: Array
    theta_hat: Array
    log_det: float  # log(det V / ridge^dim)
    radius: float  # of the ellipsoid around theta_hat
    shape: Array  # the exact set is theta' shape theta - 2 pull' theta <= level, ||theta|| <= S
    pull: Array
    level: float  # sigma^2 gamma^2 - b' V^-1 b


class SelfNormalized:
    """{||theta - theta_hat||_V <= sigma gamma + sqrt(ridge) S}: the paper's (6)."""

    within_ball = False
    first_apart = False

    def radius(self, spread: float, bias: float) -> float:
        return float(np.sqrt(spread) + np.sqrt(bias))

    def quadratic(self, gram: Array, moment: Array, V: Array) -> tuple[Array, Array]:
        """(shape, pull) of the exact set, for sets within the norm ball."""
        return gram, moment


class Mixture(SelfNormalized):
    """{||theta - theta_hat||_V^2 <= sigma^2 gamma^2 + ridge S^2}."""

    def radius(self, spread: float, bias: float) -> float:
        return float(np.sqrt(spread + bias))


class Constrained(Mixture):
    """{theta' A theta - 2 b'theta <= level, ||theta|| <= S}: Ville bounds ||theta - theta_hat||_V^2 by
    sigma^2 gamma^2 + ridge ||theta||^2 (theta's own norm, not S), so the ridge cancels."""

    within_ball = True


class Unbiased(SelfNormalized):
    """{||b - A theta||_{V^-1} <= sigma gamma, ||theta|| <= S}: the noise b - A theta* is bounded as in
    the paper, V = A + ridge I, and no bias is added. Of its ``ridges`` the first is the ridge, where
    the bound is the paper's."""

    within_ball = True
    first_apart = True

    def quadratic(self, gram: Array, moment: Array, V: Array) -> tuple[Array, Array]:
        return gram @ np.linalg.solve(V, gram), gram @ np.linalg.solve(V, moment)


DEFINITIONS = {
    "self-normalized": SelfNormalized(),
    "mixture": Mixture(),
    "constrained": Constrained(),
    "unbiased": Unbiased(),
}


class OracleSet:
    """The confidence set of (4)-(7), rebuilt from all observations whenever they change.

    A set within the norm ball is {theta' shape theta - 2 pull'theta <= level, ||theta|| <= S}. Adding
    a (||theta||^2 - S^2) <= 0 gives one ellipsoid for each a > 0. With ``ridges`` the dual is evaluated
    at those a only, without them at the best a.
    """

    def __init__(self, dim: int, noise: float, norm_bound: float, ridge: float, delta: float,
                 confidence: str = "self-normalized", ridges: Sequence[float] = ()) -> None:  # fmt: skip
        self.definition, self.confidence = DEFINITIONS[confidence], confidence
        self.within_ball = self.definition.within_ball
        self.dim, self.noise, self.norm_bound = dim, noise, norm_bound
        self.ridge, self.delta = ridge, delta
        self.ridges = list(ridges)
        self.features: list[Array] = []
        self.rewards: list[float] = []
        self.log_grid = np.log(ridge) + np.log(10.0) * np.linspace(-9.0, 10.0, 96)  # of log a
        self._cache: Estimate | None = None
        self._empty: bool | None = None
        self._stack: list[tuple[Array, Array, float]] | None = None

    def add(self, x: Array, y: float) -> None:
        """Keep one observation (x, y)."""
        x = np.array(x, dtype=float)
        if x.shape != (self.dim,) or not np.all(np.isfinite(x)) or not np.isfinite(y):
            raise ValueError("an observation needs finite features of the right length")
        self.features.append(x)
        self.rewards.append(float(y))
        self._cache = self._empty = self._stack = None

    def estimate(self) -> Estimate:
        """(4)-(6) from scratch; kept until the next observation."""
        if self._cache is not None:
            return self._cache
        gram, moment = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        for x, y in zip(self.features, self.rewards, strict=True):
            gram += np.outer(x, x)
            moment += x * y
        V = self.ridge * np.eye(self.dim) + gram
        theta_hat = np.asarray(np.linalg.solve(V, moment), dtype=np.float64)
        log_det = float(np.linalg.slogdet(V)[1]) - self.dim * float(np.log(self.ridge))
        spread = self.noise**2 * (log_det + 2.0 * float(np.log(1.0 / self.delta)))
        radius = self.definition.radius(spread, self.ridge * self.norm_bound**2)
        shape, pull = self.definition.quadratic(gram, moment, V)
        level = spread - float(moment @ theta_hat)
        self._cache = Estimate(gram, moment, V, theta_hat, log_det, radius, shape, pull, level)
        return self._cache

    def contains(self, theta: Array) -> bool:
        """Whether theta lies in the set, by its definition."""
        e = self.estimate()
        if self.within_ball:
            quadratic = theta @ e.shape @ theta - 2.0 * e.pull @ theta
            return bool(quadratic <= e.level and theta @ theta <= self.norm_bound**2)
        gap = theta - e.theta_hat
        return bool(gap @ e.V @ gap <= e.radius**2)

    def lower(self, v: Array) -> float:
        """L(v) = inf of v'theta over the set: (8), or the dual where the set ends at the norm ball."""
        v = np.asarray(v, dtype=float)
        if not self.within_ball:
            return self._ellipsoid_lower(v)
        if not self.ridges:
            return self._dual_lower(v)
        bound = self._grid_lower(v)
        if self.definition.first_apart:
            bound = max(bound, self._ellipsoid_lower(v))
        if len(self.ridges) > 1:
            bound = max(bound, -self.norm_bound * float(np.linalg.norm(v)))
        return bound

    def _ellipsoid_lower(self, v: Array) -> float:
        e = self.estimate()
        form = max(float(v @ np.linalg.solve(e.V, v)), 0.0)
        return float(v @ e.theta_hat - e.radius * np.sqrt(form))

    def upper(self, v: Array) -> float:
        """U(v) = sup of v'theta over the set."""
        return -self.lower(-np.asarray(v, dtype=float))

    def ellipsoid(self, a: float) -> tuple[Array, Array, float]:
        """(V_a, theta_hat_a, r_a^2) of the theory sheet."""
        e = self.estimate()
        V_a = e.shape + a * np.eye(self.dim)
        centre = np.asarray(np.linalg.solve(V_a, e.pull), dtype=np.float64)
        return V_a, centre, e.level + float(e.pull @ centre) + a * self.norm_bound**2

    def stack(self) -> list[tuple[Array, Array, float]]:
        """(V_a^-1, theta_hat_a, r_a^2) at each of the given a; kept until the next observation."""
        if self._stack is None:
            used = self.ridges[1:] if self.definition.first_apart else self.ridges
            ellipsoids = [self.ellipsoid(a) for a in used]
            self._stack = [
                (np.asarray(np.linalg.inv(V), dtype=np.float64), centre, square)
                for V, centre, square in ellipsoids
            ]
        return self._stack

    def _grid_lower(self, v: Array) -> float:
        """The dual at the given a; one with r_a^2 < 0 says nothing but that the set is empty."""
        return max(
            float(v @ centre - np.sqrt(square * max(float(v @ inverse @ v), 0.0)))
            for inverse, centre, square in self.stack()
            if square >= 0.0
        )

    def refuted(self) -> bool:
        """Either alarm, by definition. No theta of norm <= S is left at one of the given a; or
        e_s = exp{s R / 2 sigma^2} (1 - s)^(n/2), s in {.1, .3, .6}, exceeds 3 / 0.001 for some s, where
        R = min RSS(theta) + ridge ||theta||^2 - ridge S^2 is at most the truth's residual sum."""
        if self.within_ball and any(square < 0.0 for *_, square in self.stack()):
            return True
        X, y = np.array(self.features).reshape(-1, self.dim), np.array(self.rewards)
        theta = self.estimate().theta_hat
        fitted = float(np.sum((y - X @ theta) ** 2) + self.ridge * theta @ theta)
        rest = fitted - self.ridge * self.norm_bound**2
        logs = [0.5 * (s * rest / self.noise**2 + len(y) * np.log(1.0 - s)) for s in (0.1, 0.3, 0.6)]
        return bool(max(logs) >= np.log(3.0 / 0.001))

    def _minimum(self, function: Callable[[float], float]) -> float:
        """Minimum over a > 0 of a unimodal function of log a: dense grid, bounded refinement."""
        values = [function(log_a) for log_a in self.log_grid]
        best = int(np.argmin(values))
        low, high = self.log_grid[max(best - 1, 0)], self.log_grid[min(best + 1, len(values) - 1)]
        tight: Any = {"xatol": 1e-9, "maxiter": 200}
        found = minimize_scalar(function, bounds=(low, high), method="bounded", options=tight)
        return min(float(values[best]), float(found.fun))

    @property
    def empty(self) -> bool:
        """r_a^2 < 0 for some a (it is convex in a); only a set within the ball can be empty."""
        if self._empty is None:
            smallest = self._minimum(lambda log_a: self.ellipsoid(float(np.exp(log_a)))[2])
            self._empty = self.within_ball and smallest < 0.0
        return self._empty

    def _dual_lower(self, v: Array) -> float:
        """max over a > 0 of v'theta_hat_a - r_a ||v||_{V_a^-1}; a -> infinity gives -S ||v||."""
        if self.empty:
            raise EmptySet("r_a^2 < 0 for some a")

        def minus_bound(log_a: float) -> float:
            V_a, centre, square = self.ellipsoid(float(np.exp(log_a)))
            form = float(v @ np.linalg.solve(V_a, v))
            return float(np.sqrt(max(square, 0.0) * max(form, 0.0)) - v @ centre)

        return max(-self._minimum(minus_bound), -self.norm_bound * float(np.linalg.norm(v)))


def _constraint(M: Array, q: Array, r: float) -> dict[str, Any]:
    """r - theta'M theta + 2 q'theta >= 0 with its gradient, brought to a common scale."""
    k = 1.0 / (1.0 + float(np.linalg.norm(M)))

    def slack(t: Array) -> float:
        return float(k * (r - t @ M @ t + 2.0 * q @ t))

    def slope(t: Array) -> Array:
        return np.asarray(2.0 * k * (q - M @ t))

    return {"type": "ineq", "fun": slack, "jac": slope}


def _infimum(v: Array, forms: Sequence[tuple[Array, Array, float]]) -> float:
    """min v'theta with theta'M theta - 2 q'theta <= r for every (M, q, r), by SLSQP from 0."""
    constraints: list[Any] = [_constraint(*form) for form in forms]
    unit = v / max(float(np.linalg.norm(v)), 1e-300)
    objective: Any = {"fun": lambda t: float(unit @ t), "jac": lambda t: unit, "method": "SLSQP"}
    tight: Any = {"ftol": 1e-15, "maxiter": 1000}
    point = np.zeros(len(v))
    for _ in range(20):  # a restart sheds a stale quasi-Newton matrix
        start = point
        point = minimize(x0=start, constraints=constraints, options=tight, **objective).x
        if np.linalg.norm(point - start) <= 1e-10:
            break
    if any(entry["fun"](point) < -1e-8 for entry in constraints):
        raise RuntimeError("the generic solver ended outside the set (is it empty?)")
    return float(v @ point)


def infimum_over_ellipsoid(v: Array, centre: Array, shape: Array, radius: float) -> float:
    """inf of v'theta over ||theta - centre||_shape <= radius, by a generic solver."""
    return float(v @ centre) + _infimum(v, [(shape, np.zeros(len(v)), radius**2)])


def infimum_over_constrained_set(
    v: Array, gram: Array, moment: Array, level: float, norm_bound: float
) -> float:
    """inf of v'theta over {theta'A theta - 2 b'theta <= level} and ||theta|| <= S; A may be
    singular. An ellipsoid of centre m, shape M, radius r is (M, M m, r^2 - m'M m)."""
    ball = (np.eye(len(v)), np.zeros(len(v)), norm_bound**2)
    return _infimum(v, [(gram, moment, level), ball])
