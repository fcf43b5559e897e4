"""What the set ``bounded`` remembers beside the common sums: names for the numbers in ``Data.extra``.

Shapes: J = SCALES prior scales, d features, K terms of the series.
"""

from typing import NamedTuple

from c4b._compilation.jit import inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.sets.bounded_parts.bounded_versions import SCALES
from c4b.evidence.sets.linearity_alarm import curvature_size
from c4b.evidence.sums.totals import totals_size


class Learned(NamedTuple):
    """Views of ``Data.extra``."""

    shapes: Array  # (J, d, d) sum s_t x x^T
    roots: Array  # (J, d, d) L^-1 for a Cholesky factor L of an earlier W
    stretch: Array  # (J,) what rounding can add to ||L^-1 x||: a factor ...
    blur: Array  # (J,) ... and a multiple of ||x||
    series: Array  # (J, K) coefficients of exp(R^2 / 2) Q_d(R, c) in powers of R^2 / (2 unit)
    sums: Array  # (6,) entries below
    factor: Array  # (d, d) L of the W in use
    half: Array  # (d, d) H = L^-1 A
    normal: Array  # (d, d) N = H^T H
    whitened: Array  # (d,) h = L^-1 m
    target: Array  # (d,) t = H^T h


REWARDS, SPREAD, SCALE, CHOSEN_AT, ROOTED_AT, UNIT_POWER = 0, 1, 2, 3, 4, 5
"""Entries of ``Learned.sums``: sum Y, sum of squared residuals around earlier means, the scale in use,
observations when it was chosen, observations when leverages were computed, unit of the series (0: none
yet)."""


def terms_of_series(dim: int) -> int:
    """K: beyond it coefficients do not matter. Leaving them out makes R larger, never smaller."""
    return 48 + 3 * dim


def learned_size(dim: int) -> int:
    """Numbers in ``Learned``, and in ``Region.totals``, which are the last ones."""
    own = (2 * SCALES + 3) * dim * dim + SCALES * (2 + terms_of_series(dim)) + 6 + 2 * dim
    return own + totals_size(dim)


def watched_size(dim: int) -> int:
    """The same with a ``Curvature`` between the two."""
    return learned_size(dim) + curvature_size(dim)


def joined_size(dim: int) -> int:
    """The same with both sums of rewards on one event."""
    return watched_size(dim) + totals_size(dim, True) - totals_size(dim)


def learned_of(extra: Array, dim: int) -> Learned:
    """``Data.extra`` by names; writing to them writes to it."""
    square = dim * dim
    terms = 48 + 3 * dim
    a = 2 * SCALES * square
    b = a + 2 * SCALES
    c = b + SCALES * terms + 6
    return Learned(
        shaped_view(extra, 0, (SCALES, dim, dim)),
        shaped_view(extra, SCALES * square, (SCALES, dim, dim)),
        shaped_view(extra, a, (SCALES,)),
        shaped_view(extra, a + SCALES, (SCALES,)),
        shaped_view(extra, b, (SCALES, terms)),
        shaped_view(extra, b + SCALES * terms, (6,)),
        shaped_view(extra, c, (dim, dim)),
        shaped_view(extra, c + square, (dim, dim)),
        shaped_view(extra, c + 2 * square, (dim, dim)),
        shaped_view(extra, c + 3 * square, (dim,)),
        shaped_view(extra, c + 3 * square + dim, (dim,)),
    )


opened_learned = inlined(learned_of)
