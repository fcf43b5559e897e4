"""Bounds of x @ theta for all candidates x of a pool: ``c4b.evidence.bounds``, computed together.

They follow from the forms of the pool. A root takes longer than all else together, so the roots of an
ellipsoid are computed only if one of its bounds counts.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined, pooled
from c4b._compilation.kernel_parts import BOXES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import ball_reach, slack_over_norm
from c4b.evidence.box_bounds import is_box, pool_box_interval, pool_box_lower
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.pool_forms import CENTRES, CROSS, SQUARES, pool_norms

FEW = 8
"""Candidates up to which every root is computed: to look first whether one counts would take as long."""
NEARLY = 1.0 - 32.0 * UNIT
"""A square times this is below what rounding can have made of it."""


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
        pool_norms(pool, forms)
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
        pool_norms(pool, forms)
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
    pool_norms(pool, forms)
    reach, slack = ball_reach(region, len(pool)), slack_over_norm(region)
    for k in range(size):
        out[row, k] = base - reach * forms[CROSS, k]
        forms[CROSS, k] = base - slack * forms[CROSS, k]
    for g in range(len(region.radius)):
        raise_by_ellipsoid(region, forms, SQUARES + 2 * g, 0.0, g, row, out)


@inlined
def raise_by_ellipsoid(
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
