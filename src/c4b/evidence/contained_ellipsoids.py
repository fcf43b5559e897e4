"""Which ellipsoids of a spectral set say something: one that contains another never has the better bound.

E_h lies within E_g if, with V the inverse of a shape's factors,

    reach_g min_i sqrt(factors_gi / factors_hi) - ||centre_g - centre_h||_{V_h} >= reach_h:

for every v, times ||v||_{V_h^-1}, the left side is at most what bound g lies above v @ centre_h. Leaving
out an ellipsoid is sound whatever the reason, so rounding decides nothing here but the time.
"""

import math

import numpy as np

from c4b._jit import called, inlined
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.ellipsoids import Region

CLEARLY = 1.0 + 1e-6
"""How much larger a containing ellipsoid must be: its bounds are then worse after rounding, too, so that
every bound keeps its bits."""


def innermost_size(stack: int, dim: int) -> int:
    """How large ``space`` of ``innermost`` must be."""
    return stack * (3 * dim + 4)


@called
def innermost(region: Region, wanted: bool, space: Array) -> Region:
    """``region`` without ellipsoids that contain another one; at least two of them, because a single one
    has other rules. The same region unless it is ``wanted`` and spectral. New arrays lie in ``space``."""
    stack, dim = region.estimate.shape
    if not (wanted and region.spectral and stack > 2):
        return region
    size = stack * dim
    shapes, order = shaped_view(space, 0, (stack, dim)), shaped_view(space, 3 * size, (stack,))
    count = 0
    for g in range(stack):
        for i in range(dim):
            shapes[g, i] = 1.0 / region.factors[g, i]
    for g in range(stack):
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
    )


@inlined
def _contains(region: Region, shapes: Array, g: int, h: int) -> bool:
    """Whether ellipsoid g clearly contains h; false where a number is not finite."""
    apart, ratio = 0.0, np.inf
    outer, inner = region.reach[g], CLEARLY * region.reach[h]
    for i in range(shapes.shape[1]):
        gap = region.estimate[g, i] - region.estimate[h, i]
        apart += gap * gap * shapes[h, i]
        here = region.factors[g, i] * shapes[h, i]
        ratio = here if not here >= ratio else ratio  # keeps NaN
    contained: bool = outer * math.sqrt(ratio) - math.sqrt(apart) >= inner
    return contained
