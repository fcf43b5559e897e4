"""What the squares of one ellipsoid, the *leader*, say about all others of a spectral set.

For one question after the other it is mostly the same ellipsoid h that bounds best. Its square,
sum_i f_hi z_i^2, is summed over the eigenvectors in order, so its partial sums P_0 <= ... <= P_3 after
four parts of the spectrum cost nothing. With m_gb the least f_gi / f_hi in part b, for each ellipsoid g

    sum_i f_gi z_i^2 >= sum_b m_gb (P_b - P_b-1) = sum_b c_gb P_b,  c_gb = m_gb - m_g,b+1,  c_g3 = m_g3.

Where even a width as small as that leaves g's bound no better than a bound at hand, the square of g is
not computed. Nothing else is left out, so that every result has the same bits as without.

Rounding: the computed P_b, the computed square of g and the sums here are off by less than
(2 d + 16) units in the last place of (sum_b |c_gb|) P_3; ``_write_shares`` takes twice as much off c_g3.
What underflows is far below ``TINY``.

A guide (5 + 4 G,) holds the leader's number, where each part of the spectrum ends, and c_gb reach_g^2.
"""

import math

import numpy as np

from c4b._compilation.jit import called, fma, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT

PARTS = 4
"""Parts of the spectrum."""
LEAST_FEATURES = 16
"""Features from which it pays."""
TINY = 1e-280
"""Taken off every lower bound of a squared width."""
LARGEST_SHARE, LARGEST_REACH = 1e15, 1e15
"""More is not made use of: nothing that underflows may count."""
GUIDE_HEADING = 1 + PARTS
"""Numbers in a guide before PARTS for each ellipsoid."""


@called
def open_guide(factors: Array, reach: Array, guide: Array) -> None:
    """Write a guide to ellipsoids with factors (G, d), led by the first.

    The parts divide the range of the factors that vary most, in equal ratios.
    """
    stack, dim = factors.shape
    steepest, range_ = 0, 1.0
    for g in range(stack):
        ratio = factors[g, 0] / factors[g, dim - 1]
        if range_ < ratio < np.inf:
            steepest, range_ = g, ratio
    root = math.sqrt(math.sqrt(range_))
    part, level = 0, factors[steepest, 0] / root
    for b in range(PARTS):
        guide[1 + b] = dim
    for i in range(1, dim):
        while part < PARTS - 1 and factors[steepest, i] < level:
            guide[1 + part] = i
            part, level = part + 1, level / root
    lead(factors, reach, guide, 0)


@called
def lead(factors: Array, reach: Array, guide: Array, leader: int) -> None:
    """Make ellipsoid ``leader`` the leader."""
    guide[0] = leader
    for g in range(len(reach)):
        _write_shares(factors, reach[g], guide, leader, g)


@inlined
def _write_shares(factors: Array, reach: float, guide: Array, leader: int, g: int) -> None:
    """c_gb reach^2, less what rounding amounts to."""
    dim, at, start, before = factors.shape[1], GUIDE_HEADING + PARTS * g, 0, 0.0
    for b in range(PARTS):
        least, end = LARGEST_SHARE, int(guide[1 + b])
        for i in range(start, end):
            ratio = factors[g, i] / factors[leader, i]
            least = ratio if ratio < least else least  # NaN: both are 0, or no square is a number
        if start == end:
            least = before
        guide[at + b] = least
        before, start = least, end
    size, square = 0.0, reach * reach if reach <= LARGEST_REACH else np.nan
    for b in range(PARTS - 1):
        guide[at + b] -= guide[at + b + 1]
        size += abs(guide[at + b])
    size += abs(guide[at + PARTS - 1])
    guide[at + PARTS - 1] -= 4.0 * (dim + 16) * UNIT * size
    for b in range(PARTS):
        guide[at + b] *= square


@called
def lead_squares(
    turned: Array, along: Array, factors: Array, guide: Array, row: int, forms: Array
) -> None:
    """P_b of the leader for every x_k + offset into forms[row + b], from their coordinates ``turned``
    (d, K) and ``along`` (d,) in the eigenbasis: the same as ``arithmetic.chains`` computes."""
    size, h, last, i = turned.shape[1], int(guide[0]), row + PARTS - 1, 0
    for b in range(PARTS):
        end = int(guide[1 + b])
        while i + 4 <= end:
            f0, f1, f2, f3 = factors[h, i], factors[h, i + 1], factors[h, i + 2], factors[h, i + 3]
            s0, s1, s2, s3 = along[i], along[i + 1], along[i + 2], along[i + 3]
            for k in range(size):
                z0, z1 = turned[i, k] + s0, turned[i + 1, k] + s1
                z2, z3 = turned[i + 2, k] + s2, turned[i + 3, k] + s3
                square = fma(f1, z1 * z1, fma(f0, z0 * z0, 0.0 if i == 0 else forms[last, k]))
                forms[last, k] = fma(f3, z3 * z3, fma(f2, z2 * z2, square))
            i += 4
        while i < end:
            f0, s0 = factors[h, i], along[i]
            for k in range(size):
                z0 = turned[i, k] + s0
                forms[last, k] = fma(f0, z0 * z0, 0.0 if i == 0 else forms[last, k])
            i += 1
        for k in range(size if b < PARTS - 1 else 0):
            forms[row + b, k] = forms[last, k]


@inlined
def may_raise(
    guide: Array,
    g: int,
    row: int,
    added: int,
    centres: int,
    shift: float,
    held: int,
    forms: Array,
    out: Array,
) -> bool:
    """Whether the lower bound by ellipsoid g may exceed out[held] for some vector.

    forms[row] to forms[row + 3] hold P_b, forms[added] what is added to each bound, forms[centres]
    the centres, to which ``shift`` is added.
    """
    at, count = GUIDE_HEADING + PARTS * g, 0
    c0, c1, c2, c3 = guide[at], guide[at + 1], guide[at + 2], guide[at + 3]
    for k in range(out.shape[1]):
        gap = forms[added, k] + (shift + forms[centres, k]) - out[held, k]
        width = fma(c1, forms[row + 1, k], c0 * forms[row, k])
        width = fma(c3, forms[row + 3, k], fma(c2, forms[row + 2, k], width)) - TINY
        ruled_out = (width > gap * gap) & (width < np.inf)  # NaN is not, nor where P_b overflows
        count += (gap > 0.0) & (not ruled_out)
    return count > 0
