"""Slow, obvious reference, written from the paper and the theory sheet alone.

Nothing is updated incrementally: every estimate is recomputed from the list of observations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

Array = NDArray[np.float64]

KEEPING = ("checkpoints", "reserve-c4b+")  # whose ledgers keep many rounds


class StopHere(Exception):
    """No action has a margin >= 0 and the baseline is not known to be nonnegative."""


class EmptySet(Exception):
    """The constrained set has no point left: the data refute the model at level delta."""


@dataclass
class Estimate:
    """(4)-(6) from all data."""

    gram: Array  # A = sum x x'
    moment: Array  # b = sum x y
    V: Array
    theta_hat: Array
    log_det: float  # log(det V / ridge^dim)
    radius: float  # (6), or the mixture radius for "mixture" and "constrained"
    shape: Array  # the exact set is theta' shape theta - 2 pull' theta <= level, ||theta|| <= S
    pull: Array
    level: float  # sigma^2 gamma^2 - b' V^-1 b


class OracleSet:
    """The confidence set of (4)-(7), rebuilt from all observations whenever they change.

    The constrained set is {theta' A theta - 2 b'theta <= level, ||theta|| <= S}: Ville bounds
    ||theta - theta_hat||_V^2 by sigma^2 gamma^2 + ridge ||theta||^2 (theta's own norm, not S), so
    the ridge cancels. Adding a (||theta||^2 - S^2) <= 0 gives one ellipsoid for each a > 0. With
    ``ridges`` the dual is evaluated at those a only, without them at the best a.

    The unbiased set is {||b - A theta||_{V^-1} <= sigma gamma, ||theta|| <= S}: the noise b - A theta*
    is bounded as in the paper, V = A + ridge I, and no bias is added. Of its ``ridges`` the first is
    the ridge itself, where the bound is the paper's.
    """

    def __init__(self, dim: int, noise: float, norm_bound: float, ridge: float, delta: float,
                 confidence: str = "self-normalized", ridges: Sequence[float] = ()) -> None:  # fmt: skip
        if confidence not in ("self-normalized", "mixture", "constrained", "unbiased"):
            raise ValueError(f"unknown confidence {confidence!r}")
        self.dim, self.noise, self.norm_bound = dim, noise, norm_bound
        self.ridge, self.delta, self.confidence = ridge, delta, confidence
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
        bias = self.ridge * self.norm_bound**2
        paper, mixture = float(np.sqrt(spread) + np.sqrt(bias)), float(np.sqrt(spread + bias))
        radius = paper if self.confidence in ("self-normalized", "unbiased") else mixture
        shape, pull = gram, moment
        if self.confidence == "unbiased":
            shape, pull = gram @ np.linalg.solve(V, gram), gram @ theta_hat
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
        if self.confidence == "unbiased":
            return max(self._ellipsoid_lower(v), self._grid_lower(v))
        return self._grid_lower(v)

    @property
    def within_ball(self) -> bool:
        return self.confidence in ("constrained", "unbiased")

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
            used = self.ridges[1:] if self.confidence == "unbiased" else self.ridges
            ellipsoids = [self.ellipsoid(a) for a in used]
            self._stack = [(np.linalg.inv(V), centre, square) for V, centre, square in ellipsoids]
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


@dataclass
class Pending:
    """A decided round whose outcome is not absorbed yet; features None means the baseline."""

    features: Array | None
    baseline: Array
    reward: float | None = None

    @property
    def played(self) -> Array:
        return self.baseline if self.features is None else self.features


class OraclePolicy:
    """The six methods of the theory sheet's table: Algorithm 1 with (8)-(13); ``checkpoints``, which
    tests a candidate from every kept round; ``reserve-c4b+``, which also scores by the upper quarter
    of the interval, saves bank, and plays only the baseline once the model is refuted."""

    def __init__(self, name: str, set: OracleSet, alpha: float, reserve: float,
                 baseline_nonnegative: bool = True, absorb: str = "in-order") -> None:  # fmt: skip
        names = ("separate", "contrast", "refresh", "revalue", "revalue-f", "linucb", *KEEPING)
        if name not in names or absorb not in ("in-order", "on-arrival"):
            raise ValueError(f"unknown method {name!r} or absorption {absorb!r}")
        self.name, self.set, self.alpha, self.reserve = name, set, alpha, reserve
        self.baseline_nonnegative, self.absorb = baseline_nonnegative, absorb
        self.c = 1.0 - alpha
        self.bank = float("nan") if name == "linucb" else reserve  # B
        self.prefix = np.zeros(set.dim)  # Z
        self.z = np.zeros(set.dim)  # revalue: features of the candidates played
        self.v = np.zeros(set.dim)  # revalue: baselines of those rounds
        self.w = np.zeros(set.dim)  # revalue: baselines of the fallback rounds
        self.rounds = 0
        self.past = [(reserve, np.zeros(set.dim))]  # (B_s, Z_s) after s rounds, all of them
        self.alarmed = False
        self.pending: dict[int, Pending] = {}

    def learn(self, X: Array, y: Array) -> None:
        """Historical data: they change the set, never the ledger."""
        for row, value in zip(np.asarray(X, dtype=float), np.asarray(y, dtype=float), strict=True):
            self.set.add(row, float(value))
        self._watch()

    def _watch(self) -> None:
        self.alarmed = self.alarmed or (self.name == "reserve-c4b+" and self.set.refuted())

    def _checkpoints(self) -> list[tuple[float, Array]]:
        """Multiples of the smallest power of two that leaves at most 32 of them, 0 included."""
        if self.name == "refresh":
            return self.past[:1]
        stride = 1
        while self.rounds // stride > 31:
            stride *= 2
        return self.past[::stride]

    def _credit(self, x: Array) -> float:
        """(11); the plain bound alpha L(x) when nonnegativity is not known."""
        low = self.set.lower(x)
        return self.alpha * (max(low, 0.0) if self.baseline_nonnegative else low)

    def _revalued(self, z: Array, v: Array, w: Array) -> float:
        """R0 + L(z) + alpha max{L(w), 0} - c U(v) under the current set."""
        return self.reserve + self.set.lower(z) + self._credit(w) - self.c * self.set.upper(v)

    def _candidate_margin(self, x: Array, baseline: Array) -> float:
        """G(a) of a candidate: the table's second column, (12)-(13) for refresh."""
        if self.name == "linucb":
            return float("inf")
        if self.name in ("revalue", "revalue-f"):
            return self._revalued(self.z + x, self.v + baseline, self.w)
        if self.name == "separate":
            return self.bank + self.set.lower(x) - self.c * self.set.upper(baseline)
        contrast = x - self.c * baseline
        carry = self.bank + self.set.lower(contrast)
        if self.name == "contrast":
            return carry
        sums = [(bank, self.prefix - prefix + contrast) for bank, prefix in self._checkpoints()]
        return max(carry, *(bank + self.set.lower(v) for bank, v in sums))

    def _baseline_margin(self, baseline: Array) -> float:
        """G(b): the table's third column; for revalue the value its ledger would then have."""
        if self.name == "linucb":
            return float("nan")
        if self.name in ("revalue", "revalue-f"):
            return self._revalued(self.z, self.v, self.w + baseline)
        carry = self.bank + self._credit(baseline)
        if self.name in ("separate", "contrast"):
            return carry
        own = self.alpha * baseline
        sums = [(bank, self.prefix - prefix + own) for bank, prefix in self._checkpoints()]
        return max(carry, *(bank + self.set.lower(v) for bank, v in sums))

    def _least(self, baseline: Array) -> float:
        """Thrift: 0.9 of the bank, or six rounds of baseline credit if that is less."""
        if self.name != "reserve-c4b+":
            return 0.0
        credit = self.alpha * max(self.set.lower(baseline), 0.0)
        return max(0.0, min(0.9 * self.bank, 6.0 * credit))

    def decide(self, candidates: Array, baseline: Array) -> dict[str, Any]:
        """One round of Algorithm 1, up to and including the ledger update."""
        baseline = np.array(baseline, dtype=float)
        candidates = np.array(candidates, dtype=float).reshape(-1, self.set.dim)
        if not (np.all(np.isfinite(candidates)) and np.all(np.isfinite(baseline))):
            raise ValueError("features must be finite")
        ucb = [self.set.upper(x) for x in candidates]
        margin = [self._candidate_margin(x, baseline) for x in candidates]
        joint = [self.set.lower(x - self.c * baseline) for x in candidates]  # (8)
        baseline_upper = self.set.upper(baseline)
        separate = [self.set.lower(x) - self.c * baseline_upper for x in candidates]  # (9)

        score = ucb
        if self.name == "reserve-c4b+":  # middle of [L, U] plus half a half-width
            score = [0.75 * self.set.upper(x) + 0.25 * self.set.lower(x) for x in candidates]
        least = self._least(baseline)

        tested = list(range(len(candidates))) if not self.alarmed else []
        if self.name == "revalue" and tested:
            tested = [int(np.argmax(ucb))]  # propose: only the optimistic candidate
        action: int | None = None
        for floor in (least, 0.0):
            for index in tested if action is None else []:
                if margin[index] >= floor and (action is None or score[index] > score[action]):
                    action = index

        if action is None:
            bank, certificate = self._baseline_margin(baseline), self._credit(baseline)
            must_pass = self.name != "linucb" and not self.baseline_nonnegative
            if must_pass and (self.alarmed or not bank >= 0.0):
                raise StopHere("no action has a margin >= 0")
        else:
            bank = float("nan") if self.name == "linucb" else margin[action]
            certificate = separate[action] if self.name == "separate" else joint[action]

        handle = self.rounds
        entry = Pending(None if action is None else candidates[action].copy(), baseline)
        self.rounds, self.bank, self.pending[handle] = handle + 1, bank, entry
        self._book(entry, +1.0)
        self.past.append((bank, self.prefix.copy()))
        return {
            "action": action, "bank": bank, "certificate": certificate, "round": handle,
            "ucb": np.array(ucb, dtype=float), "margin": np.array(margin, dtype=float),
            "joint": np.array(joint, dtype=float), "separate": np.array(separate, dtype=float),
            "score": np.array(score, dtype=float), "least": least,
        }  # fmt: skip

    def _book(self, entry: Pending, sign: float) -> None:
        """Write (+1) or take back (-1) one round's share of Z and of the three revalue sums."""
        self.prefix = self.prefix + sign * (entry.played - self.c * entry.baseline)
        if entry.features is None:
            self.w = self.w + sign * entry.baseline
        else:
            self.z = self.z + sign * entry.features
            self.v = self.v + sign * entry.baseline

    def executed(self, round: int, features: Array | None) -> None:
        """Another action than decided was executed (None: the baseline): charge that one."""
        old = self.pending[round]
        played = None if features is None else np.array(features, dtype=float)
        new = Pending(played, old.baseline, old.reward)
        self._book(old, -1.0)
        self._book(new, +1.0)
        if self.name in ("revalue", "revalue-f"):
            self.bank = self._revalued(self.z, self.v, self.w)
        elif self.name != "linucb":
            difference = new.played - old.played
            cost = self.set.lower(difference)
            self.bank = self.bank + cost
            for s in range(round + 1, len(self.past)):
                bank, prefix = self.past[s]
                self.past[s] = (bank + cost, prefix + difference)
        self.pending[round] = new

    def observe(self, round: int, reward: float) -> None:
        """Record an outcome, then absorb it on arrival or as part of the contiguous prefix."""
        entry = self.pending[round]
        if entry.reward is not None or not np.isfinite(reward):
            raise ValueError(f"round {round}: outcome already seen, or not finite")
        entry.reward = float(reward)
        if self.absorb == "on-arrival":
            self.set.add(entry.played, entry.reward)
            self._watch()
            del self.pending[round]
        else:
            self._absorb_prefix()

    def forget(self, round: int) -> None:
        """Declare an outcome lost, whatever its value was; the ledger keeps the round."""
        if self.pending[round].reward is not None:
            raise ValueError(f"round {round}: its outcome has been seen")
        del self.pending[round]
        self._absorb_prefix()

    def _absorb_prefix(self) -> None:
        """Absorb in decision order up to the first outcome still missing."""
        for handle in sorted(self.pending):
            entry = self.pending[handle]
            if entry.reward is None:
                return
            self.set.add(entry.played, entry.reward)
            self._watch()
            del self.pending[handle]


def _infimum(v: Array, forms: Sequence[tuple[Array, Array, float]]) -> float:
    """min v'theta with theta'M theta - 2 q'theta <= r for every (M, q, r), by SLSQP from 0."""
    constraints: list[Any] = []
    for M, q, r in forms:
        k = 1.0 / (1.0 + float(np.linalg.norm(M)))  # to a common scale
        slack = lambda t, M=M, q=q, r=r, k=k: k * (r - t @ M @ t + 2.0 * q @ t)  # noqa: E731
        slope = lambda t, M=M, q=q, k=k: 2.0 * k * (q - M @ t)  # noqa: E731
        constraints.append({"type": "ineq", "fun": slack, "jac": slope})
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


def minimum_reserve_by_search(certificates: Sequence[float]) -> float:
    """Smallest R with R + every prefix sum >= 0, by bisection: what (14) must equal."""

    def enough(reserve: float) -> bool:
        return all(reserve + sum(certificates[: t + 1]) >= 0.0 for t in range(len(certificates)))

    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0 + sum(abs(value) for value in certificates)
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def random_stream(
    rng: np.random.Generator, dim: int, rounds: int, max_candidates: int
) -> tuple[Array, list[tuple[Array, Array]]]:
    """theta_star (norm <= 1) and its rounds (candidates (K, dim), baseline (dim,)): K changes and
    includes 0 and 1 (given 2 rounds); every baseline mean is nonnegative."""
    theta = rng.normal(size=dim)
    theta *= rng.uniform(0.5, 1.0) / np.linalg.norm(theta)
    counts = rng.integers(0, max_candidates + 1, size=rounds)
    for place, count in zip(rng.permutation(rounds)[:2], (0, 1), strict=False):
        counts[place] = min(count, max_candidates)
    stream = []
    for count in counts:
        baseline = rng.normal(size=dim)
        baseline *= rng.uniform(0.5, 1.0) / np.linalg.norm(baseline)
        if baseline @ theta < 0.0:
            baseline = -baseline
        spread = rng.choice([0.05, 0.3, 1.0])  # near the baseline, or anywhere
        candidates = baseline + spread * rng.normal(size=(int(count), dim)) / np.sqrt(dim)
        stream.append((candidates, baseline))
    return theta, stream
