"""A generic conic solver as the judge of closed forms."""

import clarabel
import numpy as np
from scipy import sparse

from oracle import Array


def by_cone_solver(v: Array, centre: Array, shape: Array, radius: float) -> float:
    """min v @ theta with ||F' (theta - centre)|| <= radius, F F' = shape, as a second-order cone."""
    factor = np.linalg.cholesky(shape)
    cone = np.vstack([np.zeros(len(v)), -factor.T])  # s = b - cone @ theta = (radius, F'(theta - m))
    right = np.concatenate([[radius], -factor.T @ centre])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((len(v), len(v))),
        v,
        sparse.csc_matrix(cone),
        right,
        [clarabel.SecondOrderConeT(len(v) + 1)],
        settings,
    )
    return float(v @ np.array(solver.solve().x))
