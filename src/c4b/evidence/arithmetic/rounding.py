"""Bounds of rounding errors, proved in docs/theory.md, section "Rounding".

Every bound is computed from the data at hand and enlarges a radius, so that a certificate which float64
computes is one that exact arithmetic would grant. Two numbers describe an ellipsoid:

- ``error``: the inverse P that is kept satisfies (1 - error) V^-1 <= P <= (1 + error) V^-1, V exact;
- ``product``: d sum_i P_ii V_ii, at least d^2 (about): how much rounding of single entries is amplified.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined

UNIT = 2.0**-53
"""Largest relative error of one operation."""
USABLE = 0.25
"""Largest error of an inverse from which a bound is computed; beyond it only the norm ball counts."""


@inlined
def rank_one_error(dim: int, product: float, exposure: float) -> float:
    """What rounding in one rank-one update adds to an inverse's error.

    exposure = d sum_i P_ii x_i^2 / (1 + x P x), product with the diagonal of V after the update.
    """
    return 9.0 * (dim + 2) * UNIT * (1.0 + exposure) * product


@inlined
def sums_error(dim: int, count: float, product: float) -> float:
    """n rounded additions to A and m and some operations more, relative to V^1/2 or to sqrt(sum Y^2)."""
    return 1.5 * (count + 3.0 * dim + 12.0) * UNIT * product


@inlined
def log_det_update_error(dim: int, error: float, exposure: float, log_det: float) -> float:
    """What log1p(x P x) adds to the error of log det; ``error`` is the inverse's before the update."""
    return 1.3 * error + 3.0 * (dim + 1) * UNIT * exposure + 3.0 * UNIT * (1.0 + abs(log_det))


@inlined
def square_error(dim: int, product: float) -> float:
    """Relative error of a computed square v P v."""
    return 4.0 * (dim + 3) * UNIT * product


@inlined
def root_error(scale: float, square: float, error: float) -> float:
    """At least scale (sqrt(square + error) - sqrt(square)), half of error / sqrt(square) at most."""
    if square > 0.25:
        return scale * error
    root = math.sqrt(error)
    return scale * (error / math.sqrt(square) if square > error else root)


@inlined
def widened(radius: float, rho: float, error: float, blur: float) -> float:
    """The radius that covers everything, to be multiplied by a *computed* sqrt(v P v); inf if none does.

    ``rho`` bounds ||t - V c||_{V^-1} and the rounding of v @ c over ||v||_{V^-1}; ``blur`` is
    ``square_error``. 1/sqrt(1 - e) <= 1 + e up to 1/4, for e = error + blur.
    """
    total = error + blur
    if not total <= USABLE:  # NaN is not
        return np.inf
    return (radius + 2.0 * rho) * (1.0 + total)
