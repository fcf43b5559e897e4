"""The forms of a pool: what is computed once a round for its candidates, and all their bounds need.

Pools are feature-major, shape (d, K): loops over candidates are innermost and contiguous, so they
vectorise without reordering any sum. The forms (R, K) of G ellipsoids have these rows:

    CROSS             scratch
    SQUARES + 2 g     x_k V_g^-1 x_k
    CENTRES + 2 g     x_k theta_hat_g

and for a set that keeps an eigenbasis also

    d rows            the coordinates of x_k in it: the pool is turned once
    d rows            scratch, after ``pool_forms`` the squares of these coordinates
    SUMS rows         scratch, squares that are computed together
    the last rows     scratch for d + G numbers
"""

import math

import numpy as np

from c4b._compilation.jit import called_allocating, fma, inlined, pooled
from c4b._compilation.kernel_parts import EIGENBASES, INVERSES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import pool_chains
from c4b.evidence.bounds import clipped
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.leading_ellipsoid import PARTS

CROSS, SQUARES, CENTRES = 0, 1, 2
"""The first rows of forms, see above."""
SUMS = PARTS + 1
"""Rows for squares, of ellipsoids abreast, or of a leader (its partial sums) and of one other."""


@inlined
def form_rows(stack: int, dim: int, spectral: bool, size: int) -> int:
    """R for G ellipsoids, d features and K candidates."""
    if not spectral:
        return 1 + 2 * stack
    return row_of_sums(stack, dim) + SUMS + (dim + stack + size - 1) // max(size, 1)


def forms_size(stack: int, dim: int, size: int) -> int:
    """Numbers that the forms of up to ``size`` candidates take at most."""
    return (2 * stack + 2 * dim + SUMS + 2) * size + dim + stack


@called_allocating
def new_forms(region: Region, size: int) -> Array:
    stack, dim = region.estimate.shape
    return np.empty((form_rows(stack, dim, region.spectral, size), size))


@inlined
def coordinates(forms: Array, stack: int, dim: int) -> tuple[Array, Array]:
    """Of forms of G ellipsoids, the rows for coordinates in the eigenbasis (d, K), and for squares."""
    first, size = 1 + 2 * stack, forms.shape[1]
    return (
        shaped_view(forms, first * size, (dim, size)),
        shaped_view(forms, (first + dim) * size, (dim, size)),
    )


@inlined
def row_of_sums(stack: int, dim: int) -> int:
    """The first of SUMS rows."""
    return 1 + 2 * stack + 2 * dim


@inlined
def pool_forms(region: Region, pool: Array, forms: Array) -> None:
    """Fill the squares and centres of ``forms`` for a pool (d, K)."""
    if EIGENBASES and region.spectral:
        _spectral_forms(region, pool, forms)
    elif INVERSES:
        for g in range(len(region.radius)):
            pool_squares(region, g, pool, forms)
            pool_products(pool, region.estimate, g, CENTRES + 2 * g, forms)


@pooled
def pool_squares(region: Region, g: int, pool: Array, forms: Array) -> None:
    """x_k V_g^-1 x_k into its row of ``forms``; pool (d, K).

    Sums x_i (V_ii x_i + 2 sum_{j<i} V_ij x_j): half the products of ``pool.T @ V^-1``. Four features
    a pass keep running sums in registers, and passes few where d is small. No BLAS call: its threads
    would make both the time and the last bits depend on the machine.
    """
    dim, size = pool.shape
    inverse, out, first, negative = region.inverse, SQUARES + 2 * g, 0, 0
    if dim >= 4:
        first = 4
        v00, v11, v22, v33 = inverse[g, 0, 0], inverse[g, 1, 1], inverse[g, 2, 2], inverse[g, 3, 3]
        v10, v20, v30 = 2.0 * inverse[g, 1, 0], 2.0 * inverse[g, 2, 0], 2.0 * inverse[g, 3, 0]
        v21, v31, v32 = 2.0 * inverse[g, 2, 1], 2.0 * inverse[g, 3, 1], 2.0 * inverse[g, 3, 2]
        for k in range(size):
            x0, x1, x2, x3 = pool[0, k], pool[1, k], pool[2, k], pool[3, k]
            low = v00 * x0 * x0 + (v10 * x0 + v11 * x1) * x1
            high = (v20 * x0 + v21 * x1 + v22 * x2) * x2
            forms[out, k] = low + (high + ((v30 * x0 + v31 * x1) + (v32 * x2 + v33 * x3)) * x3)
    else:
        for k in range(size):
            forms[out, k] = 0.0
    if dim >= 5:  # the same sums as below, in one pass
        first, own = 5, inverse[g, 4, 4]
        v0, v1 = 2.0 * inverse[g, 4, 0], 2.0 * inverse[g, 4, 1]
        v2, v3 = 2.0 * inverse[g, 4, 2], 2.0 * inverse[g, 4, 3]
        for k in range(size):
            total = fma(v1, pool[1, k], fma(v0, pool[0, k], own * pool[4, k]))
            total = fma(v3, pool[3, k], fma(v2, pool[2, k], total))
            square = forms[out, k] + total * pool[4, k]
            negative += (dim == 5) & (square < 0.0)
            forms[out, k] = square
    for i in range(first, dim):
        own, fours = inverse[g, i, i], i - i % 4
        for k in range(size):
            forms[CROSS, k] = own * pool[i, k]
        for j in range(0, fours, 4):
            v0, v1 = 2.0 * inverse[g, i, j], 2.0 * inverse[g, i, j + 1]
            v2, v3 = 2.0 * inverse[g, i, j + 2], 2.0 * inverse[g, i, j + 3]
            for k in range(size):
                total = fma(v0, pool[j, k], forms[CROSS, k])
                total = fma(v1, pool[j + 1, k], total)
                total = fma(v2, pool[j + 2, k], total)
                forms[CROSS, k] = fma(v3, pool[j + 3, k], total)
        for j in range(fours, i):
            v0 = 2.0 * inverse[g, i, j]
            for k in range(size):
                forms[CROSS, k] += v0 * pool[j, k]
        for k in range(size):
            forms[out, k] += forms[CROSS, k] * pool[i, k]
    for k in range(0 if dim == 5 else size):
        negative += forms[out, k] < 0.0
    if negative > 0:  # rounding in a nearly known direction, or a broken inverse
        for k in range(size):
            if forms[out, k] < 0.0:
                bound = 0.0
                for i in range(dim):
                    bound += math.sqrt(inverse[g, i, i]) * abs(pool[i, k])
                forms[out, k] = clipped(forms[out, k], bound, dim)


@inlined
def pool_products(pool: Array, vectors: Array, g: int, row: int, out: Array) -> None:
    """out[row, k] = x_k @ vectors[g]; pool (d, K), vectors (G, d), out (R, K)."""
    dim, size = pool.shape
    fours = dim - dim % 4
    if dim == 5:
        five_products(
            pool, vectors[g, 0], vectors[g, 1], vectors[g, 2], vectors[g, 3], vectors[g, 4], row, out
        )
        return
    if fours == 0:
        for k in range(size):
            out[row, k] = 0.0
    for i in range(0, fours, 4):
        v0, v1 = vectors[g, i], vectors[g, i + 1]
        v2, v3 = vectors[g, i + 2], vectors[g, i + 3]
        for k in range(size):
            fresh = (v0 * pool[i, k] + v1 * pool[i + 1, k]) + (v2 * pool[i + 2, k] + v3 * pool[i + 3, k])
            out[row, k] = fresh if i == 0 else out[row, k] + fresh
    for i in range(fours, dim):
        v0 = vectors[g, i]
        for k in range(size):
            out[row, k] += v0 * pool[i, k]


@inlined
def five_products(
    pool: Array, v0: float, v1: float, v2: float, v3: float, v4: float, row: int, out: Array
) -> None:
    """``pool_products`` of five features: the same sums, in one pass."""
    for k in range(pool.shape[1]):
        fresh = (v0 * pool[0, k] + v1 * pool[1, k]) + (v2 * pool[2, k] + v3 * pool[3, k])
        out[row, k] = fresh + v4 * pool[4, k]


@inlined
def _spectral_forms(region: Region, pool: Array, forms: Array) -> None:
    """``pool_forms`` in the eigenbasis."""
    stack, (dim, size) = len(region.radius), pool.shape
    spectral_centres(region, pool, forms)
    turned, squared = coordinates(forms, stack, dim)
    for i in range(dim):
        for k in range(size):
            squared[i, k] = turned[i, k] * turned[i, k]
    pool_chains(squared, region.factors, 0, stack, SQUARES, 2, forms)


@inlined
def spectral_centres(region: Region, pool: Array, forms: Array) -> None:
    """The centres of ``forms``, and the coordinates in the eigenbasis."""
    stack, dim = region.estimate.shape
    turned, _ = coordinates(forms, stack, dim)
    pool_chains(pool, region.basis, 0, dim, 0, 1, turned)
    pool_chains(turned, region.estimate, 0, stack, CENTRES, 2, forms)


@inlined
def pool_norms(pool: Array, forms: Array) -> None:
    """||x_k|| into the scratch row of ``forms``."""
    dim, size = pool.shape
    for i in range(dim):
        for k in range(size):
            held = 0.0 if i == 0 else forms[CROSS, k]
            forms[CROSS, k] = fma(pool[i, k], pool[i, k], held)
    for k in range(size):
        forms[CROSS, k] = math.sqrt(forms[CROSS, k])


@inlined
def shifted_pool_norms(pool: Array, offset: Array, forms: Array) -> None:
    """||offset + x_k|| into the scratch row of ``forms``."""
    dim, size = pool.shape
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        o0, o1, o2, o3 = offset[i], offset[i + 1], offset[i + 2], offset[i + 3]
        for k in range(size):
            v0, v1, held = pool[i, k] + o0, pool[i + 1, k] + o1, 0.0 if i == 0 else forms[CROSS, k]
            v2, v3 = pool[i + 2, k] + o2, pool[i + 3, k] + o3
            forms[CROSS, k] = fma(v3, v3, fma(v2, v2, fma(v1, v1, fma(v0, v0, held))))
    for i in range(fours, dim):
        shift = offset[i]
        for k in range(size):
            held, part = 0.0 if i == 0 else forms[CROSS, k], pool[i, k] + shift
            forms[CROSS, k] = fma(part, part, held)
    for k in range(size):
        forms[CROSS, k] = math.sqrt(forms[CROSS, k])
