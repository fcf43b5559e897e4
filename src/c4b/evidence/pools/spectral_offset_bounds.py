"""``offset_bounds`` in the eigenbasis: every square is a sum of squares, which never cancels.

Pool and offset are turned into the eigenbasis apart and added there. In large pools most ellipsoids are
ruled out before their squares are computed, see ``leading_ellipsoid``.
"""

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import chain_of_five, four_products, pool_chains
from c4b.evidence.bounds import ball_reach, slack_over_norm
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.leading_ellipsoid import PARTS, lead, lead_squares, may_raise
from c4b.evidence.pools.pool_bounds import raise_by_ellipsoid
from c4b.evidence.pools.pool_forms import (
    CENTRES,
    CROSS,
    coordinates,
    row_of_sums,
    shifted_pool_norms,
)

ABREAST = 4
"""Ellipsoids whose squares are computed together."""


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
    turned, squared = coordinates(forms, stack, dim)
    sums, guided = row_of_sums(stack, dim), len(region.guide) > 0
    if guided:
        lead_squares(turned, along, region.factors, region.guide, sums, forms)
    else:
        _square(turned, along, squared)
    shifted_pool_norms(pool, offset, forms)
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
            raise_by_ellipsoid(region, forms, sums + g - first, shifts[g], g, row, out)


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
    sums = row_of_sums(stack, dim)
    leader, next_leader, unsquared = int(region.guide[0]), -1, True
    raise_by_ellipsoid(region, forms, sums + PARTS - 1, shifts[leader], leader, row, out)
    for g in range(stack):
        if g != leader and may_raise(
            region.guide, g, sums, CROSS, CENTRES + 2 * g, shifts[g], row, forms, out
        ):
            if unsquared:
                _square(turned, along, squared)
                unsquared = False
            pool_chains(squared, region.factors, g, g + 1, sums + PARTS, 1, forms)
            raised = raise_by_ellipsoid(region, forms, sums + PARTS, shifts[g], g, row, out)
            if 2 * raised > size:
                next_leader = g
    if next_leader >= 0:
        lead(region.factors, region.reach, region.guide, next_leader)
