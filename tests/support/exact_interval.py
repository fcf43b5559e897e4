"""The exact interval of v @ theta over a set, by an interior-point method.

For `several-ridges`, `unbiased` and `constrained`. It follows the definition, not the dual: minimise
v @ theta over an event and ||theta|| <= S. It knows nothing of mixes, multipliers or ellipsoids. Every
iterate lies in the set, so the interval that it returns lies within the exact one, and at the end by no
more than TOLERANCE of its width.
"""

from __future__ import annotations

import numpy as np

from support.oracle_sets import Array, EmptySet

TOLERANCE = 1e-6
"""Largest share of a half-width that is missing, in exact arithmetic."""
GROWTH = 30.0
"""Factor between two weights of the goal against the barrier."""
STEPS = 200
"""Newton steps at most for one weight."""


class ExactInterval:
    """The set after rows (n, d) with rewards (n,).

    ``several_ridges`` and ``constrained`` choose the event: log sum_j exp(constants_j + sum_i scaled_ij
    (m - A theta)_i^2 / 2) <= 0 in the eigenvectors of A.
    """

    def __init__(self, features: Array, rewards: Array, norm_bound: float) -> None:
        values, self.basis = np.linalg.eigh(features.T @ features)
        self.values, self.norm_bound = np.maximum(values, 0.0), norm_bound
        self.moment = self.basis.T @ (features.T @ rewards)
        top = np.max(self.values)
        self.start = self.values * self.moment / (self.values**2 + 1e-30 * top**2 + 1e-300)
        self.start /= max(1.0, float(np.linalg.norm(self.start)) / (0.9 * norm_bound))
        self.rest = self.moment - self.values * self.start
        self.constants, self.scaled, self.inside = np.zeros(1), np.zeros((len(values), 1)), self.start

    @classmethod
    def several_ridges(
        cls, features: Array, rewards: Array, norm_bound: float, noise: float, delta: float,
        ridges: Array, weights: Array,
    ) -> ExactInterval:  # fmt: skip
        """Average of martingales of ridges (J,) by weights (J,); one ridge is `unbiased`."""
        made = cls(features, rewards, norm_bound)
        log_dets = np.log1p(made.values[:, None] / ridges).sum(axis=0)
        made.constants = np.log(weights) - 0.5 * log_dets + np.log(delta)
        made.scaled = 1.0 / (noise**2 * (made.values[:, None] + ridges))
        made.inside = made._feasible()
        return made

    @classmethod
    def constrained(
        cls, features: Array, rewards: Array, norm_bound: float, noise: float, delta: float, ridge: float
    ) -> ExactInterval:
        """||theta - theta_hat||_V^2 - lambda ||theta||^2 <= sigma^2 gamma^2."""
        made = cls(features, rewards, norm_bound)
        known = made.values > 1e-13 * np.max(made.values, initial=0.0)
        inverse = np.where(known, 1.0 / np.where(known, made.values, 1.0), 0.0)
        explained = ridge * np.sum(made.moment**2 * inverse / (made.values + ridge))
        log_det = np.log1p(made.values / ridge).sum()
        made.constants = np.array([np.log(delta) - 0.5 * (log_det + explained / noise**2)])
        made.scaled = (inverse / noise**2)[:, None]
        made.inside = made._feasible()
        return made

    def lower(self, v: Array) -> float:
        """min v @ theta over the set, from above."""
        z = self.basis.T @ np.asarray(v, dtype=float)
        move, size = self.inside.copy(), float(np.linalg.norm(z)) * self.norm_bound
        pull = 1.0 / size
        while True:
            move = self._centred(move, pull * z)
            if 2.0 / pull <= TOLERANCE * max(abs(float(z @ (move - self.inside))), 1e-15 * size):
                return float(z @ self.start + z @ move)
            pull *= GROWTH

    def upper(self, v: Array) -> float:
        """max v @ theta over the set, from below."""
        return -self.lower(-np.asarray(v, dtype=float))

    def width(self, v: Array) -> float:
        """upper - lower."""
        return self.upper(v) - self.lower(v)

    # -- the barrier -----------------------------------------------------------------------------

    def _excess(self, move: Array) -> float:
        """log of the averaged martingale times delta at start + move: at most 0 in the set."""
        rest = self.rest - self.values * move
        return float(np.logaddexp.reduce(self.constants + 0.5 * rest**2 @ self.scaled))

    def _room(self, move: Array) -> float:
        """1 - ||theta||^2 / S^2: at least 0 in the set."""
        theta = (self.start + move) / self.norm_bound
        return 1.0 - float(theta @ theta)

    def _derivatives(self, move: Array) -> tuple[float, Array, Array, Array]:
        """The excess, its gradient, and its Hessian as a diagonal and a matrix of (d, J) columns."""
        rest = self.rest - self.values * move
        exponents = self.constants + 0.5 * rest**2 @ self.scaled
        excess = float(np.logaddexp.reduce(exponents))
        p = np.exp(exponents - excess)
        slopes = -(self.values * rest)[:, None] * self.scaled
        slope = slopes @ p
        return excess, slope, self.values**2 * (self.scaled @ p), (slopes - slope[:, None]) * np.sqrt(p)

    def _step(self, move: Array, goal: Array, level: float) -> tuple[Array, float]:
        """Newton's step for goal @ move - log(level - excess) - log(room), and its promise."""
        excess, slope, diagonal, columns = self._derivatives(move)
        left, room = level - excess, self._room(move)
        theta = (self.start + move) / self.norm_bound
        outward = 2.0 * theta / (self.norm_bound * room)
        gradient = goal + slope / left + outward
        diagonal = diagonal / left + 2.0 / (self.norm_bound**2 * room)
        columns = np.column_stack([columns / np.sqrt(left), slope / left, outward])
        scale = 1.0 / np.sqrt(diagonal + np.sum(columns**2, axis=1))
        columns *= scale[:, None]
        matrix = np.diag(diagonal * scale**2) + columns @ columns.T
        step = -scale * np.linalg.solve(matrix, scale * gradient)
        return step, -float(gradient @ step)

    def _merit(self, move: Array, origin: Array, goal: Array, level: float) -> float:
        left, room = level - self._excess(move), self._room(move)
        if not (left > 0.0 and room > 0.0):
            return np.inf
        return float(goal @ (move - origin) - np.log(left) - np.log(room))

    def _centred(self, move: Array, goal: Array, level: float = 0.0, until: float = -np.inf) -> Array:
        """The minimiser of the barrier function, from a point inside; or the first below ``until``."""
        for _ in range(STEPS):
            step, promise = self._step(move, goal, level)
            if promise < 1e-9 or self._excess(move) < until:
                break
            before, share = self._merit(move, move, goal, level), 1.0
            while self._merit(move + share * step, move, goal, level) > before - 0.1 * share * promise:
                share *= 0.5
                if share < 1e-9:
                    return move
            move = move + share * step
        return move

    def _feasible(self) -> Array:
        """A point inside: where the excess is well below 0, or as low as it gets."""
        move = np.zeros(len(self.values))
        for _ in range(60):
            excess = self._excess(move)
            if excess < -0.5:
                return move
            lower = self._centred(
                move, np.zeros_like(move), level=excess + 0.5 * max(1.0, abs(excess)), until=-0.7
            )
            if self._excess(lower) > excess - 1e-3:
                break
            move = lower
        if self._excess(move) < -1e-3:
            return move
        raise EmptySet
