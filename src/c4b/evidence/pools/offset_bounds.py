"""Lower bounds of base + (offset + x) @ theta for all candidates x of a pool.

Of several pairs (base, offset) the largest bound counts: one after the other *raises* what those before
it have left. With an eigenbasis see ``spectral_offset_bounds``. Otherwise the square of ``offset + x``
follows by expansion from the forms of the pool, and is computed directly where the expansion would
cancel.
"""

import math

import numpy as np

from c4b._compilation.jit import called, fma, inlined, pooled
from c4b._compilation.kernel_parts import BOXES, EIGENBASES, INVERSES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import ball_reach, clipped
from c4b.evidence.box_bounds import is_box, pool_box_lower
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.pool_forms import (
    CENTRES,
    CROSS,
    SQUARES,
    SUMS,
    five_products,
    row_of_sums,
    shifted_pool_norms,
)
from c4b.evidence.pools.spectral_offset_bounds import spectral_raise, turn_offset

CANCELLATION = 1e-4
"""Below this share of its terms an expanded square keeps fewer than 12 digits: compute it directly."""


@pooled
def raise_to_lower(
    region: Region,
    forms: Array,
    pool: Array,
    base: float,
    offset: Array,
    row: int,
    out: Array,
    anew: bool,
) -> None:
    """out[row, k] = max(out[row, k], base + L(offset + x_k)); pool (d, K), offset (d,), out (R, K).

    A value that is not a number, or an overflow to +inf, never raises ``out``. ``anew``: whatever
    ``out`` holds counts as -inf. Conditions are joined by ``&``, which unlike ``and`` never branches.
    ``offset`` may be off by two roundings an entry.
    """
    dim = len(pool)
    length = 0.0
    for i in range(dim):
        length += abs(offset[i])
    if BOXES and is_box(region):
        pool_box_lower(region, pool, base - 4.0 * UNIT * abs(base), offset, row, out, anew)
        return
    base, size = base_below(region, base, length), pool.shape[1]
    if size == 0:  # then there is no room in ``forms`` either
        return
    if EIGENBASES and region.spectral:
        stack = len(region.radius)
        no_bases, end = shaped_view(region.radius, 0, (0,)), (row_of_sums(stack, dim) + SUMS) * size
        along, shifts = shaped_view(forms, end, (dim,)), shaped_view(forms, end + dim, (stack,))
        turn_offset(region, offset, along, shifts)
        spectral_raise(region, forms, pool, base, no_bases, offset, along, shifts, row, out, anew)
    elif INVERSES:
        _expanded_raise(region, forms, pool, base, offset, row, out, anew)


@inlined
def base_below(region: Region, base: float, length: float) -> float:
    """``base`` less what rounding of itself and of an offset amounts to; length = sum |offset_i|."""
    return base - 4.0 * UNIT * (abs(base) + region.norm_bound * length)


@inlined
def _expanded_raise(
    region: Region,
    forms: Array,
    pool: Array,
    base: float,
    offset: Array,
    row: int,
    out: Array,
    anew: bool,
) -> None:
    """``raise_to_lower`` by expanded squares, from inverses."""
    dim, size = pool.shape
    inverse, fours = region.inverse, dim - dim % 4
    for g in range(len(region.radius)):
        reach, squares, centres = region.reach[g], SQUARES + 2 * g, CENTRES + 2 * g
        blur, shift, offset_square = region.blur[g], base, 0.0
        if fours == 0:
            for k in range(size):
                forms[CROSS, k] = 0.0
        for i in range(0, fours, 4):
            w0, w1, w2, w3 = 0.0, 0.0, 0.0, 0.0  # of V_g^-1 offset
            for j in range(dim):
                w0 += inverse[g, i, j] * offset[j]
                w1 += inverse[g, i + 1, j] * offset[j]
                w2 += inverse[g, i + 2, j] * offset[j]
                w3 += inverse[g, i + 3, j] * offset[j]
            offset_square += (w0 * offset[i] + w1 * offset[i + 1]) + (
                w2 * offset[i + 2] + w3 * offset[i + 3]
            )
            w0, w1, w2, w3 = 2.0 * w0, 2.0 * w1, 2.0 * w2, 2.0 * w3
            if dim == 5:  # in one pass
                w4 = 0.0
                for j in range(dim):
                    w4 += inverse[g, 4, j] * offset[j]
                offset_square += w4 * offset[4]
                five_products(pool, w0, w1, w2, w3, 2.0 * w4, CROSS, forms)
                break
            for k in range(size):
                fresh = (w0 * pool[i, k] + w1 * pool[i + 1, k]) + (
                    w2 * pool[i + 2, k] + w3 * pool[i + 3, k]
                )
                forms[CROSS, k] = fresh if i == 0 else forms[CROSS, k] + fresh
        for i in range(fours, 0 if dim == 5 else dim):
            w0 = 0.0
            for j in range(dim):
                w0 += inverse[g, i, j] * offset[j]
            offset_square += w0 * offset[i]
            w0 = 2.0 * w0
            for k in range(size):
                forms[CROSS, k] += w0 * pool[i, k]
        for i in range(dim):
            shift += offset[i] * region.estimate[g, i]
        cancelled = 0
        for k in range(size):
            terms = forms[squares, k] + offset_square
            square = terms + forms[CROSS, k]
            value = shift + forms[centres, k] - reach * math.sqrt(fma(blur, terms, abs(square)))
            safe = square >= CANCELLATION * terms  # false for NaN
            cancelled += not safe
            held = -np.inf if anew and g == 0 else out[row, k]
            out[row, k] = value if safe & (held < value) & (value < np.inf) else held
        if cancelled > 0:
            _raise_where_cancelled(region, g, forms, pool, offset_square, shift, offset, row, out)
    if len(region.radius) > 1:
        shifted_pool_norms(pool, offset, forms)
        reach = ball_reach(region, dim)
        for k in range(size):
            value = base - reach * forms[CROSS, k]
            out[row, k] = value if out[row, k] < value else out[row, k]


@called
def _raise_where_cancelled(
    region: Region,
    g: int,
    forms: Array,
    pool: Array,
    offset_square: float,
    shift: float,
    offset: Array,
    row: int,
    out: Array,
) -> None:
    """``_expanded_raise`` by ellipsoid g of candidates whose square would cancel. A function of its own:
    it is rare, and nothing of it is computed in advance."""
    reach, blur = region.reach[g], region.blur[g]
    squares, centres = SQUARES + 2 * g, CENTRES + 2 * g
    for k in range(pool.shape[1]):
        terms = forms[squares, k] + offset_square
        if not terms + forms[CROSS, k] >= CANCELLATION * terms:
            width = shifted_norm(region.inverse, g, offset, pool, k) + blur * math.sqrt(2.0 * terms)
            value = shift + forms[centres, k] - reach * width
            out[row, k] = value if out[row, k] < value < np.inf else out[row, k]


@inlined
def shifted_norm(inverse: Array, g: int, offset: Array, pool: Array, k: int) -> float:
    """``norm`` of offset + x_k, directly: where the expanded square would cancel."""
    dim = len(offset)
    square, size = 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += inverse[g, i, j] * (offset[j] + pool[j, k])
        square += total * (offset[i] + pool[i, k])
        size += math.sqrt(inverse[g, i, i]) * abs(offset[i] + pool[i, k])
    return math.sqrt(square if square >= 0.0 else clipped(square, size, dim))
