"""A stack of ellipsoids: its arrays, its layout as one flat vector, the linear algebra that sets share.

A confidence set is a *stack* of ellipsoids that all contain theta on the same event; the plain sets
have a stack of one. Shapes: G ellipsoids, d features. Ellipsoid g has the shape V_g = A + a_g I,
unless the file of a set in ``c4b.evidence.sets`` says otherwise.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import inlined, kernel
from c4b._shaped_view import shaped_view
from c4b._validate import Array

REFACTOR_EVERY = 256
"""Rank-one updates between two factorisations from the Gram matrix: O(d^3 / 256) a round."""
LEVERAGE_LIMIT = 1e6
"""x V^-1 x above which a rank-one update cancels too much: the inverse is recomputed at once."""
RESIDUAL_LIMIT = 1e-8
"""Relative residual of V (V^-1 x) = x above which the inverse is recomputed early."""
LEAST_PIVOT = 1e-12
"""Share of a diagonal entry below which a Cholesky pivot is mostly rounding: beyond a condition of
about 1e12 the centre's rounding error is no longer small against the width, so nothing is certified."""

LOG_DET, COUNT, SINCE_FACTORED, SQUARES_SUM, ALARM = 0, 1, 2, 3, 4
TALLY = 5
"""Entries of ``Data.tally``: log(det V / lambda^d), observations, updates since factored, sum Y^2, and
the alarm that has latched, if any."""

SELF_NORMALIZED, MIXTURE, CONSTRAINED, UNBIASED, OUTSIDE = 1, 0, 2, 3, -1
"""Values of ``Data.code``; OUTSIDE is every set whose update is not compiled.

The first four sets share two stored codes, from before there were more: 1 is self-normalized or, with
mixing > 0, unbiased; 0 is constrained or, with a stack of one, mixture (there the equations of the two
agree). A later set stores its own code, from 4 on."""

HEADING = 8
"""Numbers before the arrays in a flat vector: G, d, sigma, S, 2 log(1/delta), the stored code, epsilon
and ``Data.mixing``."""


class Region(NamedTuple):
    """The confidence set as bounds need it: {theta: ||theta - estimate_g||_{V_g} <= radius_g, all g}."""

    inverse: Array  # (G, d, d) V_g^-1
    estimate: Array  # (G, d) centres; the first is theta_hat
    radius: Array  # (G,) beta_g


class Data(NamedTuple):
    """Sufficient statistics from which the region can be rebuilt, and the set that it is."""

    ridges: Array  # (G,) regularisers a_g; the first is that of theta_hat
    gram: Array  # (d, d) A = sum x x^T
    moment: Array  # (d,) m = sum x Y
    tally: Array  # (TALLY,)
    mixing: float  # l of the unbiased set, 0 for sets without it
    code: int  # which set it is
    extra: Array  # statistics of the set's own; empty for the first four sets


class Terms(NamedTuple):
    """The model's numbers as kernels read them."""

    noise: float  # sigma
    norm_bound: float  # S
    log_term: float  # 2 log(1/delta)
    misspecification: float  # epsilon


def flat_size(stack: int, dim: int, extra: int) -> int:
    """Numbers in a flat vector of G ellipsoids, d features and so many extra statistics."""
    return HEADING + stack * (2 + dim + dim * dim) + dim * dim + dim + TALLY + extra


def radius_index(stack: int, dim: int) -> int:
    """Where the first radius lies in a flat vector."""
    return HEADING + stack * (dim + dim * dim)


def alarm_index(stack: int, dim: int) -> int:
    """Where the alarm lies in a flat vector."""
    return flat_size(stack, dim, 0) - TALLY + ALARM


def views(flat: Array) -> tuple[Region, Data, Terms]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, int(flat[0]), int(flat[1]))


def parts(flat: Array, stack: int, dim: int) -> tuple[Region, Data, Terms]:
    """``views`` for a G and d that the caller knows, perhaps when compiling."""
    a = HEADING + stack * dim * dim
    b = a + stack * dim
    c = b + stack
    d = c + stack
    e = d + dim * dim
    f = e + dim
    g = f + TALLY
    code = int(flat[5])
    if code == SELF_NORMALIZED and flat[7] > 0.0:
        code = UNBIASED
    if code == MIXTURE and stack > 1:
        code = CONSTRAINED
    region = Region(
        shaped_view(flat, HEADING, (stack, dim, dim)),
        shaped_view(flat, a, (stack, dim)),
        shaped_view(flat, b, (stack,)),
    )
    data = Data(
        shaped_view(flat, c, (stack,)),
        shaped_view(flat, d, (dim, dim)),
        shaped_view(flat, e, (dim,)),
        shaped_view(flat, f, (TALLY,)),
        flat[7],
        code,
        shaped_view(flat, g, (len(flat) - g,)),
    )
    return region, data, Terms(flat[2], flat[3], flat[4], flat[6])


opened_as = inlined(parts)


@inlined
def opened(flat: Array) -> tuple[Region, Data, Terms]:
    return opened_as(flat, int(flat[0]), int(flat[1]))


# -- what most radii are made of ---------------------------------------------------------------


@inlined
def gamma_squared(data: Data, terms: Terms) -> float:
    """log(det V / lambda^d) + 2 log(1/delta), for the first shape and its ridge."""
    value: float = data.tally[LOG_DET] + terms.log_term
    return value


@inlined
def drift(data: Data, terms: Terms) -> float:
    """epsilon sqrt(n): how far declared misspecification can move a centre."""
    return terms.misspecification * math.sqrt(data.tally[COUNT])


@inlined
def ridge_centre(region: Region, data: Data, g: int) -> float:
    """Write theta_hat_g = V_g^-1 m (5), never accumulated; returns m V_g^-1 m."""
    dim = len(data.moment)
    explained = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * data.moment[j]
        region.estimate[g, i] = total
        explained += total * data.moment[i]
    return explained


# -- one observation ---------------------------------------------------------------------------


@inlined
def rank_one(region: Region, g: int, x: Array) -> float:
    """V_g += x x^T in V_g^-1 (Sherman-Morrison); returns x V_g^-1 x from before.

    Leaves V_g^-1 x from before in ``estimate[g]``: centres are rewritten after every update anyway.
    """
    dim = len(x)
    image = region.estimate[g]
    square = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * x[j]
        image[i] = total
        square += total * x[i]
    shrink = 1.0 / (1.0 + square)
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] -= image[i] * image[j] * shrink
    return square


@inlined
def first_is_stale(region: Region, data: Data, x: Array, square: float) -> bool:
    """Count x into log det after ``rank_one`` of the first ellipsoid, with its ``square``; whether its
    inverse should be recomputed. A NaN says yes: try to recover."""
    data.tally[LOG_DET] += math.log1p(square)
    residual = _residual(data, region.estimate[0], x)
    return (not square <= LEVERAGE_LIMIT) | (not residual <= RESIDUAL_LIMIT)


@kernel
def update_ridge_stack(region: Region, data: Data, x: Array) -> bool:
    """x into every V_g = A + a_g I and into log det; whether the inverses should be recomputed."""
    stale = first_is_stale(region, data, x, rank_one(region, 0, x))
    for g in range(1, len(region.radius)):
        rank_one(region, g, x)
    return stale


@inlined
def _residual(data: Data, image: Array, x: Array) -> float:
    """sum |V image - x| / sum |x| for the first ellipsoid, before x is added to the Gram matrix."""
    dim = len(x)
    worst, size = 0.0, 0.0
    for i in range(dim):
        total = data.ridges[0] * image[i] - x[i]
        for j in range(dim):
            total += data.gram[i, j] * image[j]
        worst += abs(total)  # a sum keeps NaN, a maximum would lose it
        size += abs(x[i])
    return worst / size if size > 0.0 else 0.0


@inlined
def add_to_sums(data: Data, x: Array, y: float) -> None:
    """One observation into A, m and the tally."""
    dim = len(x)
    for i in range(dim):
        data.moment[i] += x[i] * y
        for j in range(dim):
            data.gram[i, j] += x[i] * x[j]
    data.tally[COUNT] += 1.0
    data.tally[SQUARES_SUM] += y * y
    data.tally[SINCE_FACTORED] += 1.0


# -- shapes from the sums ----------------------------------------------------------------------


@inlined
def write_ridge_shape(region: Region, data: Data, g: int) -> None:
    """A + a_g I in the place of V_g^-1."""
    dim = len(data.moment)
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] = data.gram[i, j]
        region.inverse[g, i, i] += data.ridges[g]


@inlined
def ridge_shape_times(region: Region, data: Data, g: int, theta: Array, i: int) -> float:
    """Entry i of (A + a_g I)(theta - estimate_g)."""
    total: float = data.ridges[g] * (theta[i] - region.estimate[g, i])
    for j in range(len(theta)):
        total += data.gram[i, j] * (theta[j] - region.estimate[g, j])
    return total


@kernel
def cholesky(matrix: Array, g: int) -> None:
    """Lower Cholesky factor of matrix[g] in its lower triangle; NaN if it is not positive definite.

    By hand because the library routine allocates, and raises in the middle of an update.
    """
    dim = matrix.shape[1]
    for i in range(dim):
        own = matrix[g, i, i]
        for j in range(i + 1):
            total = matrix[g, i, j]
            for k in range(j):
                total -= matrix[g, i, k] * matrix[g, j, k]
            if i > j:
                matrix[g, i, j] = total / matrix[g, j, j]
            elif total > LEAST_PIVOT * own:  # NaN compares false
                matrix[g, i, i] = math.sqrt(total)
            else:
                matrix[g, i, i] = np.nan


@kernel
def invert_from_cholesky(matrix: Array, g: int) -> None:
    """(L L^T)^-1 from L in the lower triangle of matrix[g]: invert L in place, then L^-T L^-1."""
    dim = matrix.shape[1]
    for j in range(dim):
        matrix[g, j, j] = 1.0 / matrix[g, j, j]
        for i in range(j + 1, dim):
            total = 0.0
            for k in range(j, i):
                total += matrix[g, i, k] * matrix[g, k, j]
            matrix[g, i, j] = -total / matrix[g, i, i]
    for i in range(dim):  # the upper triangle is free until the end
        for j in range(i + 1):
            total = 0.0
            for k in range(i, dim):
                total += matrix[g, k, i] * matrix[g, k, j]
            matrix[g, j, i] = total
    for i in range(dim):
        for j in range(i):
            matrix[g, i, j] = matrix[g, j, i]
