"""A generic conic solver as the judge of closed forms."""

from collections.abc import Sequence

import clarabel
import numpy as np
from scipy import sparse

from support.oracle_sets import Array

Quadratic = tuple[Array, Array, float]
"""(M, q, r): the set of theta with theta' M theta - 2 q' theta <= r, M positive semidefinite."""


def by_cone_solver(v: Array, centre: Array, shape: Array, radius: float) -> float:
    """min v @ theta with ||F' (theta - centre)|| <= radius, F F' = shape, as a second-order cone."""
    factor = np.linalg.cholesky(shape)
    cone = np.vstack([np.zeros(len(v)), -factor.T])  # s = b - cone @ theta = (radius, F'(theta - m))
    right = np.concatenate([[radius], -factor.T @ centre])
    return _solved(v, cone, right, [clarabel.SecondOrderConeT(len(v) + 1)])


def ellipsoid(centre: Array, shape: Array, radius: float) -> Quadratic:
    """||theta - centre||_shape <= radius."""
    return shape, shape @ centre, radius**2 - float(centre @ shape @ centre)


def ball(dim: int, radius: float) -> Quadratic:
    return ellipsoid(np.zeros(dim), np.eye(dim), radius)


def infimum(v: Array, quadratics: Sequence[Quadratic], halfspaces: Sequence[Array] = ()) -> float:
    """min v @ theta over all quadratics, and x @ theta >= 0 for every x in halfspaces.

    ||F' theta||^2 <= t with t = r + 2 q' theta is the cone ||(2 F' theta, 1 - t)|| <= 1 + t.
    """
    rows, right, cones = [], [], []
    if len(halfspaces):
        rows.append(-np.array(halfspaces))
        right.append(np.zeros(len(halfspaces)))
        cones.append(clarabel.NonnegativeConeT(len(halfspaces)))
    for matrix, q, r in quadratics:
        scale = 1.0 / max(float(np.linalg.norm(matrix, 2)), abs(r), 1e-12)
        values, vectors = np.linalg.eigh(scale * matrix)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        t = 2.0 * scale * q
        rows.append(np.vstack([-t, t, -2.0 * factor.T]))
        right.append(np.concatenate([[1.0 + scale * r, 1.0 - scale * r], np.zeros(len(v))]))
        cones.append(clarabel.SecondOrderConeT(len(v) + 2))
    return _solved(v, np.vstack(rows), np.concatenate(right), cones)


def _solved(v: Array, cone: Array, right: Array, cones: list[object]) -> float:
    """min v @ theta with right - cone @ theta in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((len(v), len(v))), v, sparse.csc_matrix(cone), right, cones, settings
    )
    solution = solver.solve()
    assert "Solved" in str(solution.status), solution.status
    return float(v @ np.array(solution.x))
