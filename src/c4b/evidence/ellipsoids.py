"""A stack of ellipsoids: its arrays, its layout as one flat vector, the linear algebra that sets share.

A confidence set is a *stack* of ellipsoids that all contain theta on the same event; the plain sets
have a stack of one. Shapes: G ellipsoids, d features. There are two representations. A *spectral* set
keeps the eigenbasis of A (``c4b.evidence.eigenbasis``), in which all its shapes are diagonal. Any other
set keeps each inverse V_g^-1; here are the updates for V_g = A + a_g I.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import inlined
from c4b._parts import EIGENBASES
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.eigenbasis import Spectrum, spectrum_size
from c4b.evidence.rounding import (
    log_det_update_error,
    rank_one_error,
    root_error,
    square_error,
    sums_error,
    widened,
)

REFACTOR_EVERY = 64
"""Rank-one updates between two factorisations from the Gram matrix: O(d^3 / 64) a round."""
LEVERAGE_LIMIT = 1e6
"""x V^-1 x above which a rank-one update cancels too much: the inverse is recomputed at once."""
RESIDUAL_LIMIT = 1e-8
"""Relative residual of V (V^-1 x) = x above which the inverse is recomputed early."""
LEAST_PIVOT = 1e-15
"""Share of a diagonal entry below which a Cholesky pivot is nothing but rounding."""
INVERSE_LIMIT, PATIENCE = 1e-8, 16
"""Error of an inverse above which it is recomputed early, if so many updates have passed since the last
time: where data are too badly conditioned for a smaller error, every update would try in vain."""
REFINE = 1e-3
"""Share of sigma above which the rounding error of a centre is made smaller by a refinement step."""

LOG_DET, COUNT, SINCE_FACTORED, SQUARES_SUM, ALARM = 0, 1, 2, 3, 4
TALLY = 5
"""Entries of ``Data.tally``: log(det V / lambda^d), observations, updates since factored, sum Y^2, and
the alarm that has latched, if any."""

SELF_NORMALIZED, MIXTURE, CONSTRAINED, UNBIASED, SEVERAL_RIDGES = 1, 0, 2, 3, 4
BOUNDED, BOUNDED_2, BOUNDED_3, OUTSIDE, BOX = 5, 6, 7, -1, -2
"""Values of ``Data.code``; OUTSIDE is every set whose update is not compiled, BOX no set of ellipsoids.

The first four sets share two stored codes, from before there were more: 1 is self-normalized or, with
mixing > 0, unbiased; 0 is constrained or, with a stack of one, mixture (there the equations of the two
agree). A later set stores its own code, from 4 on. Sets from CONSTRAINED on are spectral."""

HEADING = 8
"""Numbers before the arrays in a flat vector: G, d, sigma, S, 2 log(1/delta), the stored code, epsilon
and ``Data.mixing``."""


class Region(NamedTuple):
    """The confidence set as bounds need it: {theta: ||theta - estimate_g||_{V_g} <= radius_g, all g}, and
    ||theta|| <= S."""

    spectral: bool  # whether estimate and factors are coordinates in ``basis``; else ``inverse`` counts
    inverse: Array  # (G, d, d) V_g^-1
    basis: Array  # (d, d) rows are the eigenvectors of A
    factors: Array  # (G, d) eigenvalues of V_g^-1
    estimate: Array  # (G, d) centres; the first is theta_hat
    radius: Array  # (G,) beta_g
    reach: Array  # (G,) beta_g and all that rounding can amount to; inf: this ellipsoid says nothing
    blur: Array  # (G,) share of its terms that an expanded square may be off, and the centre with it
    slack: Array  # (1,) times ||v||: what rounding adds to any bound of v @ theta in a spectral set
    norm_bound: float  # S
    totals: Array  # what sums of rewards alone say; see ``c4b.evidence.totals`` and, for the set box,
    # ``c4b.evidence.box_bounds``; empty for most sets
    guide: Array  # to the ellipsoids that count, see ``c4b.evidence.leading_ellipsoid``; mostly empty


class Data(NamedTuple):
    """Sufficient statistics from which the region can be rebuilt, and the set that it is."""

    ridges: Array  # (G,) regularisers a_g; the first is that of theta_hat
    gram: Array  # (d, d) A = sum x x^T
    moment: Array  # (d,) m = sum x Y
    tally: Array  # (TALLY,)
    mixing: float  # l of the unbiased set, 0 for sets without it
    code: int  # which set it is
    inverse_error: Array  # (G,) bound of the relative error of V_g^-1 as it is kept
    log_det_error: Array  # (1,) bound of the error of the log-determinant
    scratch: Array  # (d,)
    spectrum: Spectrum  # of a spectral set
    extra: Array  # statistics of the set's own; empty for the first four sets


class Terms(NamedTuple):
    """The model's numbers as kernels read them."""

    noise: float  # sigma
    norm_bound: float  # S
    log_term: float  # 2 log(1/delta)
    misspecification: float  # epsilon


def flat_size(stack: int, dim: int, extra: int, spectral: bool) -> int:
    """Numbers in a flat vector of G ellipsoids, d features and so many extra statistics."""
    return _end_of_tally(stack, dim, spectral) + rounding_size(stack, dim, spectral) + extra


def rounding_size(stack: int, dim: int, spectral: bool) -> int:
    """Numbers in a flat vector between the tally and the extra statistics."""
    more = 1 + stack * dim + spectrum_size(dim) if spectral else 0
    return 3 * stack + 1 + dim + more


def _end_of_tally(stack: int, dim: int, spectral: bool) -> int:
    matrices = 1 if spectral else stack
    return HEADING + matrices * dim * dim + stack * (2 + dim) + dim * dim + dim + TALLY


def is_spectral(flat: Array) -> bool:
    """Which of the two representations a flat vector has."""
    code = int(flat[5])
    several = code == MIXTURE and int(flat[0]) > 1
    return code >= CONSTRAINED or several or (code == SELF_NORMALIZED and float(flat[7]) > 0.0)


def radius_index(flat: Array) -> int:
    """Where the first radius lies in a flat vector."""
    stack, dim = int(flat[0]), int(flat[1])
    return HEADING + (1 if is_spectral(flat) else stack) * dim * dim + stack * dim


def alarm_index(flat: Array) -> int:
    """Where the alarm lies in a flat vector."""
    return _end_of_tally(int(flat[0]), int(flat[1]), is_spectral(flat)) - TALLY + ALARM


def estimates(flat: Array) -> Array:
    """The part of a flat vector whose numbers are finite while arithmetic holds: all but rounding."""
    stack, dim, spectral = int(flat[0]), int(flat[1]), is_spectral(flat)
    end = _end_of_tally(stack, dim, spectral)
    return np.concatenate([flat[:end], flat[end + rounding_size(stack, dim, spectral) :]])


def views(flat: Array) -> tuple[Region, Data, Terms]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, int(flat[0]), int(flat[1]))


def parts(flat: Array, stack: int, dim: int) -> tuple[Region, Data, Terms]:
    """``views`` for a G and d that the caller knows, perhaps when compiling."""
    code = int(flat[5])
    if code == SELF_NORMALIZED and flat[7] > 0.0:
        code = UNBIASED
    if code == MIXTURE and stack > 1:
        code = CONSTRAINED
    spectral = EIGENBASES and code >= CONSTRAINED
    a = HEADING + (dim * dim if spectral else stack * dim * dim)
    b = a + stack * dim
    c = b + stack
    d = c + stack
    e = d + dim * dim
    f = e + dim
    g = f + TALLY
    h = g + stack
    k = h + stack
    m = k + stack
    n = m + 1 + dim
    p = n + 1 + (stack * dim if spectral else 0)  # spectral sets only: slack, factors, spectrum
    w = dim if spectral else 0
    q = p + 7 * w + 2
    end = q + 2 * w * w if spectral else n
    totals = 2 * dim if code == BOX else 0
    if code >= BOUNDED:
        totals = (9 if code >= BOUNDED_3 else 7) + 3 * dim
    region = Region(
        spectral,
        shaped_view(flat, HEADING, (1 if spectral else stack, dim, dim)),
        shaped_view(flat, HEADING, (dim, dim)),
        shaped_view(flat, n + 1, (stack if spectral else 0, dim)),
        shaped_view(flat, a, (stack, dim)),
        shaped_view(flat, b, (stack,)),
        shaped_view(flat, g, (stack,)),
        shaped_view(flat, h, (stack,)),
        shaped_view(flat, n, (1 if spectral else 0,)),
        flat[3],
        shaped_view(flat, len(flat) - totals, (totals,)),
        shaped_view(flat, 0, (0,)),
    )
    spectrum = Spectrum(
        shaped_view(flat, p, (w,)),
        shaped_view(flat, p + w, (w,)),
        shaped_view(flat, p + 2 * w, (2 if spectral else 0,)),
        shaped_view(flat, p + 2 * w + 2, (w,)),
        shaped_view(flat, p + 3 * w + 2, (w,)),
        shaped_view(flat, p + 4 * w + 2, (w,)),
        shaped_view(flat, p + 5 * w + 2, (w,)),
        shaped_view(flat, p + 6 * w + 2, (w,)),
        shaped_view(flat, q, (w, w)),
        shaped_view(flat, q + w * w, (w, w)),
    )
    data = Data(
        shaped_view(flat, c, (stack,)),
        shaped_view(flat, d, (dim, dim)),
        shaped_view(flat, e, (dim,)),
        shaped_view(flat, f, (TALLY,)),
        flat[7],
        code,
        shaped_view(flat, k, (stack,)),
        shaped_view(flat, m, (1,)),
        shaped_view(flat, m + 1, (dim,)),
        spectrum,
        shaped_view(flat, end, (len(flat) - end,)),
    )
    return region, data, Terms(flat[2], flat[3], flat[4], flat[6])


def region_size(flat: Array) -> int:
    """So many numbers at the front of a flat vector hold the region and all that decisions read: up to
    the eigenvalues of A, from which a belief is computed."""
    region, data, _ = views(flat)
    if len(region.totals) or not region.spectral:
        return len(flat)
    values = data.spectrum.values
    before = (values.ctypes.data - flat.ctypes.data) // flat.itemsize
    return int(before) + values.size


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
def spread_error(data: Data, terms: Terms) -> float:
    """What the error of log det adds to sigma gamma."""
    error: float = root_error(terms.noise, gamma_squared(data, terms), data.log_det_error[0])
    return error


@inlined
def rewards_norm(data: Data) -> float:
    """sqrt(sum Y^2), which bounds ||m||_{V^-1}."""
    return math.sqrt(data.tally[SQUARES_SUM])


@inlined
def amplification(region: Region, data: Data, g: int) -> float:
    """``product`` of ``c4b.evidence.rounding``: d sum_i V_g^-1_ii V_g_ii, or more."""
    dim = len(data.moment)
    total = 0.0
    for i in range(dim):
        total += region.inverse[g, i, i] * (data.gram[i, i] + data.ridges[g])
    return float(dim * total)


@inlined
def ridge_centre(region: Region, data: Data, terms: Terms, g: int, norm: float) -> tuple[float, float]:
    """Write theta_hat_g = V_g^-1 m (5), never accumulated, for V_g = A + a_g I.

    Returns m V_g^-1 m and rho, which bounds ||m - V_g theta_hat_g||_{V_g^-1} and the rounding of
    v @ theta_hat_g over ||v||_{V_g^-1}; ``norm`` is ``rewards_norm``.
    """
    dim = len(data.moment)
    explained = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * data.moment[j]
        region.estimate[g, i] = total
        explained += total * data.moment[i]
    product = amplification(region, data, g)
    loss = sums_error(dim, data.tally[COUNT], product)
    rho = norm * (1.1 * data.inverse_error[g] + 2.0 * loss)
    if not rho <= REFINE * terms.noise:
        rho = _refined(region, data, g, norm, product)
        explained = 0.0
        for i in range(dim):
            explained += region.estimate[g, i] * data.moment[i]
    return explained, rho


@inlined
def _refined(region: Region, data: Data, g: int, norm: float, product: float) -> float:
    """One step c += V_g^-1 (m - V_g c) for the centre c of ellipsoid g; returns its rho."""
    dim = len(data.moment)
    residual, centre = data.scratch, region.estimate[g]
    for last in (False, True):
        for i in range(dim):
            total = data.moment[i] - data.ridges[g] * centre[i]
            for j in range(dim):
                total -= data.gram[i, j] * centre[j]
            residual[i] = total
        if not last:
            for i in range(dim):
                total = 0.0
                for j in range(dim):
                    total += region.inverse[g, i, j] * residual[j]
                centre[i] += total
    rest, size = 0.0, norm
    for i in range(dim):
        rest += abs(residual[i]) * math.sqrt(region.inverse[g, i, i])
        size += abs(centre[i]) * math.sqrt(data.gram[i, i] + data.ridges[g])
    loss = sums_error(dim, data.tally[COUNT], math.sqrt(product))
    return float(rest * (1.0 + data.inverse_error[g]) * 1.1 + size * loss)


@inlined
def write_reach(region: Region, g: int, radius: float, rho: float, error: float, product: float) -> None:
    """reach_g and blur_g from a radius that has its own error in it."""
    blur = square_error(region.estimate.shape[1], product)
    region.reach[g] = widened(radius, rho, error, blur)
    region.blur[g] = 3.0 * blur + rho / (radius + rho)


# -- one observation ---------------------------------------------------------------------------


@inlined
def rank_one(region: Region, data: Data, g: int, x: Array) -> tuple[float, float]:
    """V_g += x x^T in V_g^-1 (Sherman-Morrison), before x is added to the Gram matrix.

    Returns x V_g^-1 x from before and the ``exposure`` of ``c4b.evidence.rounding``. Leaves V_g^-1 x
    from before in ``estimate[g]``: centres are rewritten after every update anyway.
    """
    dim = len(x)
    image = region.estimate[g]
    own = data.ridges[g]
    square, spread, product = 0.0, 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * x[j]
        image[i] = total
        square += total * x[i]
        leverage = region.inverse[g, i, i] * x[i] * x[i]
        spread += leverage
        product += region.inverse[g, i, i] * (data.gram[i, i] + own) + leverage
    shrink = 1.0 / (1.0 + square)
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] -= image[i] * image[j] * shrink
    exposure = dim * spread * shrink
    data.inverse_error[g] += rank_one_error(dim, dim * product, exposure)
    return square, exposure


@inlined
def first_is_stale(region: Region, data: Data, x: Array) -> tuple[bool, float]:
    """x into the first ellipsoid and into log det. Returns whether its inverse should be recomputed, and
    x V^-1 x from before. A NaN says yes: try to recover."""
    before = data.inverse_error[0]
    square, exposure = rank_one(region, data, 0, x)
    data.tally[LOG_DET] += math.log1p(square)
    data.log_det_error[0] += log_det_update_error(len(x), before, exposure, data.tally[LOG_DET])
    residual = _residual(data, region.estimate[0], x)
    return (not square <= LEVERAGE_LIMIT) | (not residual <= RESIDUAL_LIMIT), square


@inlined
def inverse_is_poor(data: Data, g: int) -> bool:
    """Whether an inverse's error has become large enough to recompute it early."""
    tried_lately: bool = data.tally[SINCE_FACTORED] < PATIENCE
    return not data.inverse_error[g] <= INVERSE_LIMIT and not tried_lately


@inlined
def update_ridge_stack(region: Region, data: Data, x: Array) -> bool:
    """x into every V_g = A + a_g I and into log det; whether the inverses should be recomputed."""
    stale, _ = first_is_stale(region, data, x)
    stale |= inverse_is_poor(data, 0)
    for g in range(1, len(region.radius)):
        rank_one(region, data, g, x)
        stale |= inverse_is_poor(data, g)
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


@inlined
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


@inlined
def factored_error(region: Region, data: Data, g: int) -> float:
    """Bound of the relative error of V_g^-1 as it has just been computed from the sums.

    max_i sum_j |V_g V_g^-1 - I|_ij sqrt(N_j / N_i), N_i about V_g_ii, bounds the spectral radius; the
    rounding of A and of the product itself is added.
    """
    dim = len(data.moment)
    roots, inverse = data.scratch, region.inverse
    for i in range(dim):
        roots[i] = math.sqrt(data.gram[i, i] + data.ridges[g])
    worst, mass = 0.0, 0.0
    for i in range(dim):
        row = 0.0
        for j in range(dim):
            total = 0.0
            for k in range(dim):
                entry = data.gram[i, k] + data.ridges[g] if i == k else data.gram[i, k]
                total += entry * inverse[g, j, k]
            row += abs(total - 1.0 if i == j else total) * roots[j]
            mass += abs(inverse[g, i, j]) * roots[i] * roots[j]
        row /= roots[i]
        worst = worst if row <= worst else row  # keeps NaN
    return 1.05 * worst + sums_error(dim, data.tally[COUNT], mass)
