"""Bounds of v @ theta over the confidence set: the closed forms behind (8) and (9).

Pools are feature-major, shape (d, K): loops over candidates are innermost and contiguous, so they
vectorise without reordering any sum. For a pool, x V^-1 x is computed once a candidate; the norm of
``offset + x`` follows by expansion, and is recomputed directly where the expansion would cancel.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.statistics import Statistics

CANCELLATION = 1e-4
"""Below this share of its terms an expanded square keeps fewer than 12 digits: compute it directly."""


class Forms(NamedTuple):
    """What is computed once a round for a pool of K candidates, and scratch."""

    squares: Array  # (G, K) x V_g^-1 x
    centres: Array  # (G, K) x theta_hat_g
    cross: Array  # (K,) scratch
    offset: Array  # (d,) scratch


@kernel
def new_forms(stats: Statistics, size: int) -> Forms:
    stack, dim = stats.estimate.shape
    return Forms(np.empty((stack, size)), np.empty((stack, size)), np.empty(size), np.empty(dim))


@kernel
def norm(inverse: Array, v: Array) -> float:
    """sqrt(v V^-1 v). A negative square of rounding size is 0; a truly negative one is NaN."""
    dim = len(v)
    square, size = 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += inverse[i, j] * v[j]
        square += total * v[i]
        size += math.sqrt(inverse[i, i]) * abs(v[i])
    if square >= 0.0:
        return math.sqrt(square)
    rounding = 1e-13 * dim * size * size
    return 0.0 if -square <= rounding < np.inf else np.nan  # an overflow is no rounding


@kernel
def lower(stats: Statistics, v: Array) -> float:
    """L(v) = max_g [v theta_hat_g - beta_g ||v||_g], a lower bound of v @ theta over the set.

    A value that is not a number, or an overflow to +inf, is no evidence: it never raises the bound,
    and with nothing else the bound is -inf, which certifies nothing.
    """
    best = -np.inf
    for g in range(len(stats.radius)):
        value = -stats.radius[g] * norm(stats.inverse[g], v)
        for i in range(len(v)):
            value += v[i] * stats.estimate[g, i]
        if value < np.inf:  # false for NaN
            best = max(best, value)
    return best


@kernel
def upper(stats: Statistics, v: Array) -> float:
    """U(v) = -L(-v)."""
    return -lower(stats, -v)


@kernel
def contains(stats: Statistics, theta: Array) -> bool:
    """Whether theta lies in every ellipsoid of the stack: the event (7) at this moment.

    ||theta - theta_hat||_V^2 <= beta^2 with V = A + a I, from A itself, not from an inverse.
    """
    dim = len(theta)
    for g in range(len(stats.radius)):
        square = 0.0
        for i in range(dim):
            gap = theta[i] - stats.estimate[g, i]
            total = stats.ridges[g] * gap
            for j in range(dim):
                total += stats.gram[i, j] * (theta[j] - stats.estimate[g, j])
            square += total * gap
        if not square <= stats.radius[g] ** 2:
            return False
    return True


@kernel
def pool_squares(inverse: Array, pool: Array, scratch: Array, out: Array) -> None:
    """out[k] = x_k V^-1 x_k; pool (d, K), scratch and out (K,).

    Sums x_i (V_ii x_i + 2 sum_{j<i} V_ij x_j): half the products of ``pool.T @ V^-1``. Four features
    at a time keep the running sum in registers. No BLAS call: its threads would make both the time
    and the last bits depend on the machine.
    """
    dim, size = pool.shape
    out[:] = 0.0
    for i in range(dim):
        own = inverse[i, i]
        for k in range(size):
            scratch[k] = own * pool[i, k]
        fours = i - i % 4
        for j in range(0, fours, 4):
            a, b = 2.0 * inverse[i, j], 2.0 * inverse[i, j + 1]
            c, d = 2.0 * inverse[i, j + 2], 2.0 * inverse[i, j + 3]
            for k in range(size):
                scratch[k] += (a * pool[j, k] + b * pool[j + 1, k]) + (
                    c * pool[j + 2, k] + d * pool[j + 3, k]
                )
        for j in range(fours, i):
            a = 2.0 * inverse[i, j]
            for k in range(size):
                scratch[k] += a * pool[j, k]
        for k in range(size):
            out[k] += scratch[k] * pool[i, k]
    for k in range(size):
        if out[k] < 0.0:  # rounding in a nearly known direction, or a broken inverse
            out[k] = norm(inverse, pool[:, k].copy()) ** 2


@kernel
def pool_products(pool: Array, v: Array, out: Array) -> None:
    """out[k] = x_k @ v; pool (d, K), v (d,), out (K,)."""
    dim, size = pool.shape
    for k in range(size):
        out[k] = v[0] * pool[0, k]
    for i in range(1, dim):
        for k in range(size):
            out[k] += v[i] * pool[i, k]


@kernel
def pool_forms(stats: Statistics, pool: Array, forms: Forms) -> None:
    """Fill ``squares`` and ``centres`` for a pool (d, K)."""
    for g in range(len(stats.radius)):
        pool_squares(stats.inverse[g], pool, forms.cross, forms.squares[g])
        pool_products(pool, stats.estimate[g], forms.centres[g])


@kernel
def pool_upper(stats: Statistics, forms: Forms, out: Array) -> None:
    """out[k] = U(x_k): the optimistic score of each candidate; +inf when nothing bounds it."""
    out[:] = np.inf
    for g in range(len(stats.radius)):
        radius, squares, centres = stats.radius[g], forms.squares[g], forms.centres[g]
        for k in range(len(out)):
            value = centres[k] + radius * math.sqrt(squares[k])
            out[k] = min(out[k], value)


@kernel
def raise_to_lower(
    stats: Statistics, forms: Forms, pool: Array, base: float, offset: Array, out: Array
) -> None:
    """out[k] = max(out[k], base + L(offset + x_k)); pool (d, K), offset (d,), out (K,).

    A value that is not a number never raises ``out``.
    """
    dim, size = pool.shape
    cross = forms.cross
    for g in range(len(stats.radius)):
        inverse, radius = stats.inverse[g], stats.radius[g]
        squares, centres = forms.squares[g], forms.centres[g]
        shift, offset_square = base, 0.0
        cross[:] = 0.0
        for i in range(dim):
            image = 0.0  # of V^-1 offset
            for j in range(dim):
                image += inverse[i, j] * offset[j]
            shift += offset[i] * stats.estimate[g, i]
            offset_square += image * offset[i]
            if image != 0.0:
                twice = 2.0 * image
                for k in range(size):
                    cross[k] += twice * pool[i, k]
        cancelled = 0
        for k in range(size):
            terms = squares[k] + offset_square
            square = terms + cross[k]
            value = shift + centres[k] - radius * math.sqrt(square if square > 0.0 else 0.0)
            safe = square >= CANCELLATION * terms  # false for NaN
            cancelled += not safe
            if safe and value > out[k]:
                out[k] = value
        if cancelled > 0:
            for k in range(size):
                terms = squares[k] + offset_square
                if not terms + cross[k] >= CANCELLATION * terms:
                    value = shift + centres[k] - radius * norm(inverse, offset + pool[:, k])
                    out[k] = max(out[k], value)
