"""The set `several-ridges`, written from docs/theory.md alone.

``lower`` and ``upper`` are exact: a conic solver gets the event and the norm ball as they are defined. It
knows nothing of mixes, multipliers or eigenvalues. ``ellipsoids`` restates the library's finite list.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from support.oracle_sets import Array

FACTORS = 10.0 ** np.arange(-5, 10)
ELLIPSOIDS = 24


class OracleSeveralRidges:
    """{log sum_j w_j det(W_j / l_j)^-1/2 exp(||b - A theta||^2_{W_j^-1} / 2 sigma^2) <= log(1 / delta),
    ||theta|| <= S}, W_j = A + l_j I."""

    def __init__(self, dim: int, noise: float, norm_bound: float, ridge: float, delta: float) -> None:
        self.dim, self.noise, self.norm_bound = dim, noise, norm_bound
        self.log_level = float(np.log(1.0 / delta))
        self.gram, self.moment = np.zeros((dim, dim)), np.zeros(dim)
        useless = noise**2 / norm_bound**2 / 3.0
        first = max(3.0 * ridge, useless)
        decades = np.array([5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
        used = (FACTORS >= 1.0) | (first * FACTORS >= useless)
        weights = 1.0 / (1.0 + decades[used]) ** 2
        self.ridges, self.weights = first * FACTORS[used], weights / weights.sum()

    def add(self, x: Array, y: float) -> None:
        """One observation (x, y)."""
        self.gram += np.outer(x, x)
        self.moment += x * y

    def _shapes(self) -> list[Array]:
        return [self.gram + ridge * np.eye(self.dim) for ridge in self.ridges]

    def _log_dets(self) -> Array:
        logs = [np.linalg.slogdet(W)[1] for W in self._shapes()]
        return np.asarray(np.array(logs) - self.dim * np.log(self.ridges), dtype=np.float64)

    def log_martingale(self, theta: Array) -> float:
        """log of the averaged martingale at theta; the event says that it is at most log(1 / delta)."""
        rest = self.moment - self.gram @ theta
        squares = np.array([rest @ np.linalg.solve(W, rest) for W in self._shapes()])
        exponents = np.log(self.weights) - 0.5 * self._log_dets() + 0.5 * squares / self.noise**2
        return float(np.logaddexp.reduce(exponents))

    def contains(self, theta: Array) -> bool:
        """Whether theta lies in the set, by its definition."""
        inside = float(np.linalg.norm(theta)) <= self.norm_bound
        return inside and self.log_martingale(theta) <= self.log_level

    # -- exact -----------------------------------------------------------------------------------

    def upper(self, v: Array) -> float:
        """max v @ theta over the set.

        Variables: theta / S (d), s_j and e_j (J each). ||F_j (b - A theta)||^2 <= s_j with F_j' F_j =
        W_j^-1 / 2 sigma^2 is a second-order cone, exp(constant_j + s_j) <= e_j an exponential one, and
        the e_j add up to at most 1.
        """
        d, J = self.dim, len(self.ridges)
        constants = np.log(self.weights) - 0.5 * self._log_dets() - self.log_level
        ball = np.zeros((d + 1, d + 2 * J))
        ball[1:, :d] = -np.eye(d)
        rows, right = [ball], [np.eye(d + 1)[0]]
        cones: list[object] = [clarabel.SecondOrderConeT(d + 1)]
        for j, W in enumerate(self._shapes()):
            factor = np.linalg.inv(np.linalg.cholesky(W)) / (np.sqrt(2.0) * self.noise)
            quadratic = np.zeros((d + 2, d + 2 * J))  # ||(2 y, 1 - s)|| <= 1 + s
            quadratic[:2, d + j] = -1.0, 1.0
            quadratic[2:, :d] = 2.0 * self.norm_bound * factor @ self.gram
            exponential = np.zeros((3, d + 2 * J))
            exponential[0, d + j] = exponential[2, d + J + j] = -1.0
            rows += [quadratic, exponential]
            right += [np.concatenate([[1.0, 1.0], 2.0 * factor @ self.moment])]
            right += [np.array([constants[j], 1.0, 0.0])]
            cones += [clarabel.SecondOrderConeT(d + 2), clarabel.ExponentialConeT()]
        rows.append(np.concatenate([np.zeros(d + J), np.ones(J)])[None])
        right.append(np.ones(1))
        cones.append(clarabel.NonnegativeConeT(1))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        size = d + 2 * J
        goal = np.concatenate([-np.asarray(v, dtype=float), np.zeros(2 * J)])
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix((size, size)), goal, sparse.csc_matrix(np.vstack(rows)),
            np.concatenate(right), cones, settings,
        )  # fmt: skip
        solution = solver.solve()
        assert "Solved" in str(solution.status), solution.status
        return -self.norm_bound * float(goal @ np.array(solution.x))

    def lower(self, v: Array) -> float:
        """min v @ theta over the set."""
        return -self.upper(-np.asarray(v, dtype=float))

    # -- the finite list -------------------------------------------------------------------------

    def radius_squared(self, mix: Array) -> float:
        """R_p^2 of (M)."""
        some = mix > 0.0
        entropy = -float(np.sum(mix[some] * np.log(mix[some])))
        cost = float(mix @ (self._log_dets() - 2.0 * np.log(self.weights)))
        return self.noise**2 * (2.0 * self.log_level + cost - 2.0 * entropy)

    def ellipsoid(self, mix: Array, a: float, drift: float = 0.0) -> tuple[Array, Array, float]:
        """(V, centre, radius^2) of a pair (p, a), with full matrices."""
        F = sum(p * np.linalg.inv(W) for p, W in zip(mix, self._shapes(), strict=True))
        V = self.gram @ F @ self.gram + a * np.eye(self.dim)
        centre = np.linalg.solve(V, self.gram @ F @ self.moment)
        rest = self.moment - self.gram @ centre
        least = float(rest @ F @ rest + a * centre @ centre)
        reach = np.sqrt(self.radius_squared(mix)) + drift
        return V, centre, float(reach**2 + a * self.norm_bound**2 - least)

    def mix_for(self, focus: float) -> Array:
        """The best p for eigenvalue ``focus``: four Newton steps for tau^2."""
        start, share = np.log(self.weights) - 0.5 * self._log_dets(), focus / (focus + self.ridges)
        square = float(np.min(2.0 * (self.log_level - start) / share))
        for _ in range(4):
            exponents = start + 0.5 * square * share
            total = np.logaddexp.reduce(exponents)
            square -= 2.0 * (total - self.log_level) / float(np.exp(exponents - total) @ share)
        exponents = start + 0.5 * square * share
        return np.asarray(np.exp(exponents - np.logaddexp.reduce(exponents)), dtype=np.float64)

    def mixes(self) -> list[Array]:
        """For eigenvalues from the smallest that matters to the largest: at ratios of 10 or more; where
        the best ridge's ellipsoid is within the ball, at ratios of 5 or more with averages between."""
        least = 0.5 * self.log_level * (self.noise / self.norm_bound) ** 2
        values = np.linalg.eigvalsh(self.gram)
        fine = False
        if values[0] > 1e-12 * values[-1]:
            costs = 2.0 * self.log_level + self._log_dets() - 2.0 * np.log(self.weights)
            square = float(np.min(costs * (1.0 + self.ridges / values[0]))) / values[0]
            length = float(np.linalg.norm(np.linalg.solve(self.gram, self.moment)))
            fine = length + self.noise * np.sqrt(square) < self.norm_bound
        values = values[values >= least] if np.any(values >= least) else np.array([least])
        ratio, most = (5.0, 7) if fine else (10.0, 5)
        parts = min(most, int(np.ceil(np.log(values[-1] / values[0]) / np.log(ratio) - 1e-6)))
        found: list[Array] = []
        for focus in np.geomspace(values[0], values[-1], parts + 1):
            mix = self.mix_for(float(focus))
            if found and 0.5 * float(np.sum(np.abs(mix - found[-1]))) < 0.05:
                continue
            if found and fine:
                found.append(0.5 * (found[-1] + mix))
            found.append(mix)
        return found

    def unit_multiplier(self, mix: Array, drift: float) -> float:
        """R_p^2 over the room that the ball leaves."""
        S, square = self.norm_bound, (np.sqrt(self.radius_squared(mix)) + drift) ** 2
        V, c, radius_squared = self.ellipsoid(mix, 0.004 * square / S**2, drift)
        length = float(c @ c)
        room = S**2 - length
        if length > 0.0:
            along = max(radius_squared, 0.0) * float(c @ np.linalg.solve(V, c)) / length
            room = max(room, min(S * np.sqrt(along), S**2))
        return float(square / max(room, 1e-6 * S**2))

    def ellipsoids(self, drift: float = 0.0) -> list[tuple[Array, float]]:
        """The pairs (p, a) that the library uses; ``drift`` is epsilon sqrt(n)."""
        pairs, mixes = [], self.mixes()
        for k, mix in enumerate(mixes):
            points = ELLIPSOIDS // len(mixes) + (k >= len(mixes) - ELLIPSOIDS % len(mixes))
            shift = 0.5 if len(mixes) == 1 else [0.25, 0.75][k % 2]
            times = np.tan(0.5 * np.pi * (np.arange(points) + shift) / points) ** 2
            times[0] = min(times[0], 0.004)
            unit = self.unit_multiplier(mix, drift)
            pairs += [(mix, unit * float(t)) for t in times]
        return pairs

    def stack_bounds(self, v: Array, drift: float = 0.0) -> tuple[float, float]:
        """(lower, upper) of v @ theta from the finite list and the ball."""
        ball = self.norm_bound * float(np.linalg.norm(v))
        low, high = -ball, ball
        for mix, a in self.ellipsoids(drift):
            V, centre, square = self.ellipsoid(mix, a, drift)
            half = float(np.sqrt(square * (v @ np.linalg.solve(V, v))))
            low, high = max(low, float(v @ centre) - half), min(high, float(v @ centre) + half)
        return low, high
