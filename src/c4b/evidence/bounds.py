"""Bounds of v @ theta over the confidence set: the closed forms behind (8) and (9).

Every bound holds for exact arithmetic, too: ``Region.reach``, ``blur`` and ``slack`` allow for all
rounding. ``c4b.evidence.pools.pool_bounds`` computes the same for pools.
"""

import math

import numpy as np

from c4b._compilation.jit import called, fma, inlined, pooled
from c4b._compilation.kernel_parts import BOXES, EIGENBASES, INVERSES
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import chain_of_five, four_products
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.box_bounds import box_contains, box_interval, is_box
from c4b.evidence.eigenbasis.spectrum import misturn
from c4b.evidence.ellipsoids import Data, Region


@inlined
def norm(inverse: Array, g: int, v: Array) -> float:
    """sqrt(v V_g^-1 v), v (d,). A square negative by rounding is bounded, a truly negative one NaN."""
    dim = len(v)
    square = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += inverse[g, i, j] * v[j]
        square += total * v[i]
    if square < 0.0:
        size = 0.0
        for i in range(dim):
            size += math.sqrt(inverse[g, i, i]) * abs(v[i])
        square = clipped(square, size, dim)
    return math.sqrt(square)


@inlined
def clipped(square: float, size: float, dim: int) -> float:
    """The largest square that rounding can hide behind a negative one; NaN if rounding explains it not.

    ``size`` = sum of sqrt(V^-1_ii) |v_i| bounds ||v||; d terms of its square round to 1e-16 each.
    """
    rounding = 1e-13 * dim * size * size
    return rounding if -square <= rounding < np.inf else np.nan  # an overflow is no rounding


@inlined
def lower(region: Region, v: Array) -> float:
    """L(v) = max_g [v theta_hat_g - beta_g ||v||_g], a lower bound of v @ theta over the set.

    A value that is not a number, or an overflow to +inf, is no evidence: it never raises the bound. With
    nothing else, and in every set of several ellipsoids, the norm ball bounds: L(v) >= -S ||v||.
    """
    return interval(region, v)[0]


@inlined
def upper(region: Region, v: Array) -> float:
    """U(v) = -L(-v)."""
    return interval(region, v)[1]


@pooled
def interval(region: Region, v: Array) -> tuple[float, float]:
    """(L(v), U(v)): both bounds from one quadratic form an ellipsoid."""
    if BOXES and is_box(region):
        return box_interval(region, v)
    low, high = -np.inf, np.inf
    if EIGENBASES and region.spectral:
        low, high = _spectral_interval(region.basis, region.factors, region.estimate, region.reach, v)
    elif INVERSES:
        for g in range(len(region.radius)):
            centre = 0.0
            for i in range(len(v)):
                centre += v[i] * region.estimate[g, i]
            width = region.reach[g] * norm(region.inverse, g, v)
            low = centre - width if low < centre - width < np.inf else low
            high = centre + width if -np.inf < centre + width < high else high
    if len(region.radius) > 1 or not (low > -np.inf and high < np.inf):
        square = 0.0
        for i in range(len(v)):
            square += v[i] * v[i]
        size = math.sqrt(square)
        width, slack = ball_reach(region, len(v)) * size, slack_over_norm(region) * size
        low = max(low - slack, -width)
        high = min(high + slack, width)
    return low, high


@called
def _spectral_interval(
    basis: Array, factors: Array, estimate: Array, reach: Array, v: Array
) -> tuple[float, float]:
    """``interval`` before the norm ball and the slack, from the arrays of the same names in ``Region``.

    Four ellipsoids at a time share the turned v. A function of its own: a dozen places need it.
    """
    stack, dim = estimate.shape
    low, high = -np.inf, np.inf
    if dim == 5:  # as in most small problems: the same sums, turned once for all
        x = v[0], v[1], v[2], v[3], v[4]
        a, b, c = chain_of_five(basis, 0, x), chain_of_five(basis, 1, x), chain_of_five(basis, 2, x)
        d, e = chain_of_five(basis, 3, x), chain_of_five(basis, 4, x)
        squared = a * a, b * b, c * c, d * d, e * e
        for g in range(stack):
            centre = chain_of_five(estimate, g, (a, b, c, d, e))
            width = reach[g] * math.sqrt(chain_of_five(factors, g, squared))
            low = centre - width if low < centre - width < np.inf else low
            high = centre + width if -np.inf < centre + width < high else high
        return low, high
    for first in range(0, stack, 4):
        second, third = min(first + 1, stack - 1), min(first + 2, stack - 1)
        fourth = min(first + 3, stack - 1)
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        square_a, square_b, square_c, square_d = 0.0, 0.0, 0.0, 0.0
        for i in range(0, dim, 4):
            z = four_products(basis, i, v)
            a, square_a = _with_four(factors, estimate, first, i, z, a, square_a)
            b, square_b = _with_four(factors, estimate, second, i, z, b, square_b)
            c, square_c = _with_four(factors, estimate, third, i, z, c, square_c)
            d, square_d = _with_four(factors, estimate, fourth, i, z, d, square_d)
        sums = ((a, square_a, first), (b, square_b, second), (c, square_c, third), (d, square_d, fourth))
        for centre, square, g in sums:
            width = reach[g] * math.sqrt(square)
            low = centre - width if low < centre - width < np.inf else low
            high = centre + width if -np.inf < centre + width < high else high
    return low, high


@inlined
def _with_four(
    factors: Array,
    estimate: Array,
    g: int,
    i: int,
    z: tuple[float, float, float, float],
    centre: float,
    square: float,
) -> tuple[float, float]:
    """Centre and square of ellipsoid g with coordinates i to i + 3 of v added; z is 0 beyond the last."""
    last = estimate.shape[1] - 1
    j, m, n = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    centre = fma(z[1], estimate[g, j], fma(z[0], estimate[g, i], centre))
    centre = fma(z[3], estimate[g, n], fma(z[2], estimate[g, m], centre))
    square = fma(z[1] * z[1], factors[g, j], fma(z[0] * z[0], factors[g, i], square))
    square = fma(z[3] * z[3], factors[g, n], fma(z[2] * z[2], factors[g, m], square))
    return centre, square


@inlined
def ball_reach(region: Region, dim: int) -> float:
    """S, and all that rounding can amount to beside a computed ||v||."""
    return region.norm_bound * (1.0 + (dim + 8) * UNIT)


@inlined
def slack_over_norm(region: Region) -> float:
    """``Region.slack``; 0 for a set that is not spectral."""
    return region.slack[0] if region.spectral else 0.0


@inlined
def contains(region: Region, data: Data, theta: Array) -> bool:
    """Whether theta lies in every ellipsoid of the stack: the event (7) at this moment.

    Without an eigenbasis ||theta - theta_hat||_V^2 <= beta^2 with V = A + a I from A itself, not from its
    inverse. beta includes its allowance for rounding. For compiled sets; ``Evidence.contains`` answers
    for all.
    """
    if BOXES and is_box(region):
        return box_contains(region, theta)
    if EIGENBASES and region.spectral:
        return _spectral_contains(region, data, theta)
    dim = len(theta)
    for g in range(len(region.radius)):
        square = 0.0
        for i in range(dim):
            total = data.ridges[g] * (theta[i] - region.estimate[g, i])
            for j in range(dim):
                total += data.gram[i, j] * (theta[j] - region.estimate[g, j])
            square += total * (theta[i] - region.estimate[g, i])
        if not square <= region.reach[g] ** 2:
            return False
    return True


@inlined
def _spectral_contains(region: Region, data: Data, theta: Array) -> bool:
    stack, dim = region.estimate.shape
    size = 0.0
    for i in range(dim):
        size += theta[i] * theta[i]
    size = math.sqrt(size)
    off = misturn(data.spectrum) * size
    if not size <= ball_reach(region, dim):
        return False
    for g in range(stack):
        square, steepest = 0.0, 0.0
        for i in range(dim):
            gap = -region.estimate[g, i]
            for j in range(dim):
                gap += region.basis[i, j] * theta[j]
            square += gap * gap / region.factors[g, i]
            steepest = max(steepest, 1.0 / region.factors[g, i])
        if not math.sqrt(square) <= region.reach[g] + off * math.sqrt(steepest):
            return False
    return True
