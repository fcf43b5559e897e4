"""Which ellipsoids of a spectral set say something: one that contains another never has the better bound.

E_h lies within E_g if, with V the inverse of a shape's factors,

    reach_g min_i sqrt(factors_gi / factors_hi) - ||centre_g - centre_h||_{V_h} >= reach_h:

for every v, times ||v||_{V_h^-1}, the left side is at most what bound g lies above v @ centre_h. Leaving
out an ellipsoid is sound whatever the reason, so rounding decides nothing here but the time.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.leading_ellipsoid import GUIDE_HEADING, LEAST_FEATURES, PARTS, open_guide

CLEARLY = 1.0 + 1e-6
"""How much larger a containing ellipsoid must be: its bounds are then worse after rounding, too, so that
every bound keeps its bits."""


def innermost_size(stack: int, dim: int) -> int:
    """How large ``space`` of ``innermost`` must be."""
    return stack * (3 * dim + 4) + GUIDE_HEADING + PARTS * stack


room_for_innermost = inlined(innermost_size)


@called
def innermost(region: Region, thorough: bool, space: Array) -> Region:
    """``region`` without ellipsoids that contain a neighbour in its list or, where this is ``thorough``,
    any other one; at least two of them, because a single one has other rules. The same region unless it
    is spectral. New arrays lie in ``space``; where this is ``thorough``, a guide to the ellipsoids, too.

    Most that can go contain a neighbour; to compare all pairs pays in large pools only.
    """
    stack, dim = region.estimate.shape
    if not (region.spectral and stack > 2):
        return region
    size, count = stack * dim, 0
    shapes, order = shaped_view(space, 0, (stack, dim)), shaped_view(space, 3 * size, (stack,))
    flat_shapes, flat_factors = shaped_view(space, 0, (size,)), shaped_view(region.factors, 0, (size,))
    for n in range(size):
        flat_shapes[n] = 1.0 / flat_factors[n]
    for g in range(stack):
        if not (
            (g > 0 and _contains(region, shapes, g, g - 1))
            or (g + 1 < stack and _contains(region, shapes, g, g + 1))
        ):
            order[count] = g
            count += 1
    if thorough:
        count = _without_containing(region, shapes, order, count)
    if count == 0:  # no: rounding cannot make a cycle of those that are clearly larger
        return region
    if count == 1:
        order[1] = 1.0 if order[0] == 0.0 else 0.0
        count = 2
    factors, estimate = shaped_view(space, size, (count, dim)), shaped_view(space, 2 * size, (count, dim))
    radius = shaped_view(space, 3 * size + stack, (count,))
    reach = shaped_view(space, 3 * size + 2 * stack, (count,))
    blur = shaped_view(space, 3 * size + 3 * stack, (count,))
    for n in range(count):
        g = int(order[n])
        radius[n], reach[n], blur[n] = region.radius[g], region.reach[g], region.blur[g]
        for i in range(dim):
            factors[n, i], estimate[n, i] = region.factors[g, i], region.estimate[g, i]
    guided = thorough and dim >= LEAST_FEATURES
    guide = shaped_view(space, 3 * size + 4 * stack, (GUIDE_HEADING + PARTS * count if guided else 0,))
    if guided:
        open_guide(factors, reach, guide)
    return Region(
        region.spectral,
        region.inverse,
        region.basis,
        factors,
        estimate,
        radius,
        reach,
        blur,
        region.slack,
        region.norm_bound,
        region.totals,
        guide,
    )


@inlined
def _without_containing(region: Region, shapes: Array, order: Array, listed: int) -> int:
    """Leaves those of the first ``listed`` ellipsoids in ``order`` that contain no other; returns how
    many."""
    count = 0
    for m in range(listed):
        g = int(order[m])
        contains_another = False
        for n in range(count):
            contains_another = contains_another or _contains(region, shapes, g, int(order[n]))
        if contains_another:
            continue
        left = 0
        for n in range(count):
            if not _contains(region, shapes, int(order[n]), g):
                order[left] = order[n]
                left += 1
        order[left] = g
        count = left + 1
    return count


@inlined
def _contains(region: Region, shapes: Array, g: int, h: int) -> bool:
    """Whether ellipsoid g clearly contains h; false where a number is not finite."""
    apart, ratio = 0.0, np.inf
    outer, inner = region.reach[g], CLEARLY * region.reach[h]
    for i in range(shapes.shape[1]):
        gap = region.estimate[g, i] - region.estimate[h, i]
        apart += gap * gap * shapes[h, i]
        here = region.factors[g, i] * shapes[h, i]
        if not outer * outer * here >= inner * inner:
            return False
        ratio = here if not here >= ratio else ratio  # keeps NaN
    contained: bool = outer * math.sqrt(ratio) - math.sqrt(apart) >= inner
    return contained
