"""The inverses of V_g = A + a_g I, kept through rank-one updates, with their rounding errors.

Sets that are not spectral keep them: ``self-normalized`` and ``mixture``. docs/theory.md, section
"Rounding", proves the bounds under "One ellipsoid". Shapes: G ellipsoids, d features.
"""

import math

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import (
    log_det_update_error,
    rank_one_error,
    root_error,
    square_error,
    sums_error,
    widened,
)
from c4b.evidence.ellipsoids import (
    COUNT,
    LOG_DET,
    SINCE_FACTORED,
    SQUARES_SUM,
    Data,
    Region,
    Terms,
    gamma_squared,
)

REFACTOR_EVERY = 64
"""Rank-one updates between two factorisations from the Gram matrix: O(d^3 / 64) a round."""
LEVERAGE_LIMIT = 1e6
"""x V^-1 x above which a rank-one update cancels too much: the inverse is recomputed at once."""
RESIDUAL_LIMIT = 1e-8
"""Relative residual of V (V^-1 x) = x above which the inverse is recomputed early."""
INVERSE_LIMIT, PATIENCE = 1e-8, 16
"""Error of an inverse above which it is recomputed early, if so many updates have passed since the last
time: where data are too badly conditioned for a smaller error, every update would try in vain."""
REFINE = 1e-3
"""Share of sigma above which the rounding error of a centre is made smaller by a refinement step."""


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
    """``product`` of ``c4b.evidence.arithmetic.rounding``: d sum_i V_g^-1_ii V_g_ii, or more."""
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


@inlined
def write_one_ellipsoid(region: Region, data: Data, terms: Terms, radius: float) -> tuple[float, float]:
    """Centre, radius and reach of the first ellipsoid; returns m V^-1 m and the centre's rho."""
    explained, rho = ridge_centre(region, data, terms, 0, rewards_norm(data))
    region.radius[0] = radius
    product = amplification(region, data, 0)
    write_reach(region, 0, radius + spread_error(data, terms), rho, data.inverse_error[0], product)
    return explained, rho


@inlined
def rank_one(region: Region, data: Data, g: int, x: Array) -> tuple[float, float]:
    """V_g += x x^T in V_g^-1 (Sherman-Morrison), before x is added to the Gram matrix.

    Returns x V_g^-1 x from before and the ``exposure`` of ``arithmetic.rounding``. Leaves V_g^-1 x from
    before in ``estimate[g]``: centres are rewritten after every update anyway.
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
def write_ridge_shape(region: Region, data: Data, g: int) -> None:
    """A + a_g I in the place of V_g^-1."""
    dim = len(data.moment)
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] = data.gram[i, j]
        region.inverse[g, i, i] += data.ridges[g]


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
