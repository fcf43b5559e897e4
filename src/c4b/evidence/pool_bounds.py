"""Bounds of x @ theta for all candidates x of a pool at once: ``c4b.evidence.bounds``, computed together.

Pools are feature-major, shape (d, K): loops over candidates are innermost and contiguous, so they
vectorise without reordering any sum. For a pool, x V^-1 x is computed once a candidate. Where there is an
eigenbasis the pool is turned into it once, and every square is a sum of squares. Otherwise the norm of
``offset + x`` follows by expansion, and is recomputed directly where the expansion would cancel.
"""

import math

import numpy as np

from c4b._jit import called, called_allocating, fma, inlined, pooled
from c4b._parts import BOXES, EIGENBASES, INVERSES
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.bounds import ball_reach, clipped, slack_over_norm
from c4b.evidence.box_bounds import is_box, pool_box_interval, pool_box_lower
from c4b.evidence.chains import chain_of_five, four_products, pool_chains
from c4b.evidence.ellipsoids import Region
from c4b.evidence.leading_ellipsoid import PARTS, lead, lead_squares, may_raise
from c4b.evidence.rounding import UNIT

CANCELLATION = 1e-4
"""Below this share of its terms an expanded square keeps fewer than 12 digits: compute it directly."""
CROSS, SQUARES, CENTRES = 0, 1, 2
"""Rows of ``forms`` (R, K), what is computed once a round for a pool: one of scratch, then for ellipsoid
g at SQUARES + 2g the squares x V_g^-1 x, at CENTRES + 2g the centres x theta_hat_g; for a spectral set
after them d rows with the coordinates of x in the eigenbasis, and scratch: d rows, SUMS rows, and as many
as hold d + G numbers."""
ABREAST = 4
"""Ellipsoids of a spectral set whose squares are computed together."""
SUMS = PARTS + 1
"""Rows for squares, of ellipsoids abreast, or of a leader and of one other."""
FEW = 8
"""Candidates up to which every root is computed: to look first whether one counts would take as long."""
NEARLY = 1.0 - 32.0 * UNIT
"""A square times this is below what rounding can have made of it."""


@inlined
def form_rows(stack: int, dim: int, spectral: bool, size: int) -> int:
    """R for G ellipsoids, d features and K candidates."""
    if not spectral:
        return 1 + 2 * stack
    return 1 + 2 * stack + 2 * dim + SUMS + (dim + stack + size - 1) // max(size, 1)


def forms_size(stack: int, dim: int, size: int) -> int:
    """Numbers that the forms of up to ``size`` candidates take at most."""
    return (2 * stack + 2 * dim + SUMS + 2) * size + dim + stack


@called_allocating
def new_forms(region: Region, size: int) -> Array:
    stack, dim = region.estimate.shape
    return np.empty((form_rows(stack, dim, region.spectral, size), size))


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
        _five_products(
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
def _five_products(
    pool: Array, v0: float, v1: float, v2: float, v3: float, v4: float, row: int, out: Array
) -> None:
    """``pool_products`` of five features: the same sums, in one pass."""
    for k in range(pool.shape[1]):
        fresh = (v0 * pool[0, k] + v1 * pool[1, k]) + (v2 * pool[2, k] + v3 * pool[3, k])
        out[row, k] = fresh + v4 * pool[4, k]


@inlined
def pool_forms(region: Region, pool: Array, forms: Array) -> None:
    """Fill the squares and centres of ``forms`` for a pool (d, K)."""
    if EIGENBASES and region.spectral:
        _spectral_forms(region, pool, forms)
    elif INVERSES:
        for g in range(len(region.radius)):
            pool_squares(region, g, pool, forms)
            pool_products(pool, region.estimate, g, CENTRES + 2 * g, forms)


@inlined
def _spectral_forms(region: Region, pool: Array, forms: Array) -> None:
    """``pool_forms`` in the eigenbasis."""
    stack, (dim, size) = len(region.radius), pool.shape
    spectral_centres(region, pool, forms)
    turned = shaped_view(forms, (1 + 2 * stack) * size, (dim, size))
    squared = shaped_view(forms, (1 + 2 * stack + dim) * size, (dim, size))
    for i in range(dim):
        for k in range(size):
            squared[i, k] = turned[i, k] * turned[i, k]
    pool_chains(squared, region.factors, 0, stack, SQUARES, 2, forms)


@inlined
def spectral_centres(region: Region, pool: Array, forms: Array) -> None:
    """The centres of ``forms``, and the coordinates in the eigenbasis."""
    stack, (dim, size) = len(region.radius), pool.shape
    turned = shaped_view(forms, (1 + 2 * stack) * size, (dim, size))
    pool_chains(pool, region.basis, 0, dim, 0, 1, turned)
    pool_chains(turned, region.estimate, 0, stack, CENTRES, 2, forms)


@pooled
def pool_upper(region: Region, forms: Array, pool: Array, row: int, out: Array) -> None:
    """out[row, k] = U(x_k): the optimistic score of each candidate; pool (d, K).

    As in all functions for pools, the norm ball counts in sets of several ellipsoids only: a lost single
    ellipsoid certifies no candidate. +inf when nothing bounds it.
    """
    if BOXES and is_box(region):
        pool_box_interval(region, pool, -1, row, out)
        return
    size, several = out.shape[1], len(region.radius) > 1
    if several:
        _pool_norms(pool, forms)
        reach, slack = ball_reach(region, len(pool)), slack_over_norm(region)
        for k in range(size):
            out[row, k] = reach * forms[CROSS, k]
            forms[CROSS, k] = slack * forms[CROSS, k]
    for g in range(len(region.radius)):
        reach, squares, centres = region.reach[g], SQUARES + 2 * g, CENTRES + 2 * g
        lowered, square = 0, reach * reach * NEARLY
        for k in range(size if several else 0):  # one ellipsoid alone counts everywhere
            gap = out[row, k] - (forms[centres, k] + forms[CROSS, k])
            lowered += (gap > 0.0) & (square * forms[squares, k] <= gap * gap)
        if lowered > 0 or not several:  # a root is computed only where it counts
            for k in range(size):
                more = forms[CROSS, k] if several else 0.0
                value = forms[centres, k] + more + reach * math.sqrt(forms[squares, k])
                held = out[row, k] if several else np.inf
                out[row, k] = value if value < held else held


@pooled
def pool_interval(
    region: Region, forms: Array, pool: Array, low_row: int, high_row: int, out: Array
) -> None:
    """out[low_row, k] = L(x_k) and out[high_row, k] = U(x_k): ``pool_lower`` and ``pool_upper`` with one
    root for both; pool (d, K)."""
    if BOXES and is_box(region):
        pool_box_interval(region, pool, low_row, high_row, out)
        return
    size, several = out.shape[1], len(region.radius) > 1
    if several:
        _pool_norms(pool, forms)
    reach, slack = ball_reach(region, len(pool)), slack_over_norm(region)
    for k in range(size):
        width = reach * forms[CROSS, k] if several else np.inf
        out[low_row, k], out[high_row, k] = -width, width
        forms[CROSS, k] = slack * forms[CROSS, k] if several else 0.0
    for g in range(len(region.radius)):
        reach, squares, centres = region.reach[g], SQUARES + 2 * g, CENTRES + 2 * g
        narrowed, square = 0, reach * reach * NEARLY
        for k in range(size if size > FEW else 0):
            above = out[high_row, k] - (forms[centres, k] + forms[CROSS, k])
            below = (forms[centres, k] - forms[CROSS, k]) - out[low_row, k]
            width = square * forms[squares, k]
            narrowed += (above > 0.0) & (width <= above * above)
            narrowed += (below > 0.0) & (width <= below * below)
        if narrowed > 0 or size <= FEW:
            for k in range(size):
                width = reach * math.sqrt(forms[squares, k])
                high = forms[centres, k] + forms[CROSS, k] + width
                low = forms[centres, k] - forms[CROSS, k] - width
                held = out[high_row, k]
                out[high_row, k] = high if high < held else held
                held = out[low_row, k]
                out[low_row, k] = low if (held < low) & (low < np.inf) else held


@pooled
def pool_lower(region: Region, forms: Array, pool: Array, base: float, row: int, out: Array) -> None:
    """out[row, k] = base + L(x_k); pool (d, K); -inf when nothing bounds it."""
    size, several = out.shape[1], len(region.radius) > 1
    base -= 4.0 * UNIT * abs(base)
    if BOXES and is_box(region):
        pool_box_lower(region, pool, base, shaped_view(region.radius, 0, (0,)), row, out, True)
        return
    if not several:
        reach = region.reach[0]
        for k in range(size):
            value = base + (0.0 + forms[CENTRES, k]) - reach * math.sqrt(forms[SQUARES, k])
            out[row, k] = value if (-np.inf < value) & (value < np.inf) else -np.inf
        return
    _pool_norms(pool, forms)
    reach, slack = ball_reach(region, len(pool)), slack_over_norm(region)
    for k in range(size):
        out[row, k] = base - reach * forms[CROSS, k]
        forms[CROSS, k] = base - slack * forms[CROSS, k]
    for g in range(len(region.radius)):
        _raise_by_ellipsoid(region, forms, SQUARES + 2 * g, 0.0, g, row, out)


@inlined
def _raise_by_ellipsoid(
    region: Region, forms: Array, squares: int, shift: float, g: int, row: int, out: Array
) -> int:
    """out[row, k] = max(out[row, k], bound by ellipsoid g), never +inf or NaN.

    The scratch row of ``forms`` holds what is added to each bound, row ``squares`` the squares of widths,
    ``shift`` is added to the centre. Roots are computed only if one of them counts: a root takes longer
    than all else together. A bound that counts is never taken for one that does not, so that the result
    is the largest bound, in whatever company and order candidates come. Returns how many bounds count,
    0 for a few candidates, where nobody looked.
    """
    size, reach, centres = out.shape[1], region.reach[g], CENTRES + 2 * g
    raised, square = 0, reach * reach * NEARLY
    for k in range(size if size > FEW else 0):
        gap = forms[CROSS, k] + (shift + forms[centres, k]) - out[row, k]
        raised += (gap > 0.0) & (square * forms[squares, k] <= gap * gap)
    if raised > 0 or size <= FEW:
        for k in range(size):
            value = forms[CROSS, k] + (shift + forms[centres, k]) - reach * math.sqrt(forms[squares, k])
            held = out[row, k]
            out[row, k] = value if (held < value) & (value < np.inf) else held
    return raised


@inlined
def _pool_norms(pool: Array, forms: Array) -> None:
    """||x_k|| into the scratch row of ``forms``."""
    dim, size = pool.shape
    for i in range(dim):
        for k in range(size):
            held = 0.0 if i == 0 else forms[CROSS, k]
            forms[CROSS, k] = fma(pool[i, k], pool[i, k], held)
    for k in range(size):
        forms[CROSS, k] = math.sqrt(forms[CROSS, k])


@inlined
def _shifted_pool_norms(pool: Array, offset: Array, forms: Array) -> None:
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


@inlined
def base_below(region: Region, base: float, length: float) -> float:
    """``base`` less what rounding of itself and of an offset amounts to; length = sum |offset_i|."""
    return base - 4.0 * UNIT * (abs(base) + region.norm_bound * length)


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
        no_bases, end = shaped_view(region.radius, 0, (0,)), (1 + 2 * stack + 2 * dim + SUMS) * size
        along, shifts = shaped_view(forms, end, (dim,)), shaped_view(forms, end + dim, (stack,))
        turn_offset(region, offset, along, shifts)
        spectral_raise(region, forms, pool, base, no_bases, offset, along, shifts, row, out, anew)
    elif INVERSES:
        _expanded_raise(region, forms, pool, base, offset, row, out, anew)


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
                _five_products(pool, w0, w1, w2, w3, 2.0 * w4, CROSS, forms)
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
        _shifted_pool_norms(pool, offset, forms)
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
def turn_offset(region: Region, offset: Array, along: Array, shifts: Array) -> None:
    """The coordinates of an offset (d,) in the eigenbasis, and its part of every centre (G,)."""
    stack, dim = region.estimate.shape
    if dim == 5:  # the same sums in one pass
        x = offset[0], offset[1], offset[2], offset[3], offset[4]
        for i in range(5):
            along[i] = chain_of_five(region.basis, i, x)
        x = along[0], along[1], along[2], along[3], along[4]
        for g in range(stack):
            shifts[g] = chain_of_five(region.estimate, g, x)
        return
    for i in range(0, dim, 4):
        a, b, c, d = four_products(region.basis, i, offset)
        for n in range(min(4, dim - i)):
            along[i + n] = a if n == 0 else b if n == 1 else c if n == 2 else d
    for g in range(0, stack, 4):
        a, b, c, d = four_products(region.estimate, g, along)
        for n in range(min(4, stack - g)):
            shifts[g + n] = a if n == 0 else b if n == 1 else c if n == 2 else d


@inlined
def raise_to_turned(
    region: Region, forms: Array, pool: Array, claim: Array, row: int, out: Array, anew: bool
) -> None:
    """``raise_to_lower`` by a claim that was turned before: its base less what rounding of it amounts to,
    the offset (d,) and what ``turn_offset`` writes of it (d + G,)."""
    dim = len(pool)
    nothing, offset = shaped_view(claim, 0, (0,)), shaped_view(claim, 1, (dim,))
    along = shaped_view(claim, 1 + dim, (dim,))
    shifts = shaped_view(claim, 1 + 2 * dim, (len(region.radius),))
    spectral_raise(region, forms, pool, claim[0], nothing, offset, along, shifts, row, out, anew)


@called
def spectral_raise(
    region: Region,
    forms: Array,
    pool: Array,
    base: float,
    bases: Array,
    offset: Array,
    along: Array,
    shifts: Array,
    row: int,
    out: Array,
    anew: bool,
) -> None:
    """``raise_to_lower`` in the eigenbasis: sums of squares, which never cancel.

    Every x_k may have a base of its own, ``bases`` (K,), instead of ``base``. What rounding of offsets
    amounts to is in the bases already; ``along`` and ``shifts`` come from ``turn_offset``. Of ``forms``
    only what ``spectral_centres`` writes is read. Pool and offset have the same part in it: a pool of
    offsets and one x give the same bits.
    """
    stack, (dim, size), own_bases = len(region.radius), pool.shape, len(bases) > 0
    if size == 0:
        return
    first_row, guided = 1 + 2 * stack, len(region.guide) > 0
    turned = shaped_view(forms, first_row * size, (dim, size))
    squared = shaped_view(forms, (first_row + dim) * size, (dim, size))
    sums = first_row + 2 * dim
    if guided:
        lead_squares(turned, along, region.factors, region.guide, sums, forms)
    else:
        _square(turned, along, squared)
    _shifted_pool_norms(pool, offset, forms)
    reach, slack = ball_reach(region, dim), slack_over_norm(region)
    for k in range(size):
        own = bases[k] if own_bases else base
        value = own - reach * forms[CROSS, k]
        held = -np.inf if anew else out[row, k]
        out[row, k] = value if held < value else held
        forms[CROSS, k] = own - slack * forms[CROSS, k]
    if guided:
        _raise_by_guide(region, forms, turned, along, squared, shifts, row, out)
        return
    for first in range(0, stack, ABREAST):
        last = min(first + ABREAST, stack)
        pool_chains(squared, region.factors, first, last, sums, 1, forms)
        for g in range(first, last):
            _raise_by_ellipsoid(region, forms, sums + g - first, shifts[g], g, row, out)


@inlined
def _square(turned: Array, along: Array, squared: Array) -> None:
    """Squared coordinates of x_k + offset in the eigenbasis."""
    dim, size = turned.shape
    for i in range(dim):
        shift = along[i]
        for k in range(size):
            part = turned[i, k] + shift
            squared[i, k] = part * part


@inlined
def _raise_by_guide(
    region: Region,
    forms: Array,
    turned: Array,
    along: Array,
    squared: Array,
    shifts: Array,
    row: int,
    out: Array,
) -> None:
    """Raise ``out`` by the leader, then by others that may count; one that counts for most leads from
    then on."""
    stack, (dim, size) = len(region.radius), turned.shape
    sums = 1 + 2 * stack + 2 * dim
    leader, next_leader, unsquared = int(region.guide[0]), -1, True
    _raise_by_ellipsoid(region, forms, sums + PARTS - 1, shifts[leader], leader, row, out)
    for g in range(stack):
        if g != leader and may_raise(
            region.guide, g, sums, CROSS, CENTRES + 2 * g, shifts[g], row, forms, out
        ):
            if unsquared:
                _square(turned, along, squared)
                unsquared = False
            pool_chains(squared, region.factors, g, g + 1, sums + PARTS, 1, forms)
            raised = _raise_by_ellipsoid(region, forms, sums + PARTS, shifts[g], g, row, out)
            if 2 * raised > size:
                next_leader = g
    if next_leader >= 0:
        lead(region.factors, region.reach, region.guide, next_leader)
