"""A stack of ellipsoids: its arrays, its layout as one flat vector.

A confidence set is a *stack* of ellipsoids that all contain theta on the same event; the plain sets
have a stack of one. Shapes: G ellipsoids, d features. There are two representations. A *spectral* set
keeps the eigenbasis of A (``c4b.evidence.eigenbasis``), in which all its shapes are diagonal. Any other
set keeps each inverse V_g^-1 (``c4b.evidence.arithmetic.ridge_inverses``).
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._compilation.kernel_parts import EIGENBASES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.eigenbasis.spectrum import Spectrum, spectrum_size

LOG_DET, COUNT, SINCE_FACTORED, SQUARES_SUM, ALARM = 0, 1, 2, 3, 4
TALLY = 5
"""Entries of ``Data.tally``: log(det V / lambda^d), observations, updates since factored, sum Y^2, and
the alarm that has latched, if any."""

SELF_NORMALIZED, MIXTURE, CONSTRAINED, UNBIASED, SEVERAL_RIDGES = 1, 0, 2, 3, 4
BOUNDED, BOUNDED_2, BOUNDED_3, OUTSIDE, BOX = 5, 6, 7, -1, -2
"""Values of ``Data.code``; OUTSIDE is every set whose update is not compiled, BOX no set of ellipsoids.

The first four sets share two stored codes, from before there were more: 1 is self-normalized or, with
mixing > 0, unbiased; 0 is constrained or, with a stack of one, mixture (there the equations of the two
agree). A later set stores its own code, from 4 on. Sets from CONSTRAINED on are spectral."""


class EvidenceHeading(IntEnum):
    """Numbers before the arrays in a flat vector."""

    STACK = 0
    """G"""
    DIM = 1
    """d"""
    NOISE = 2
    """sigma"""
    NORM_BOUND = 3
    """S"""
    LOG_TERM = 4
    """2 log(1/delta)"""
    CODE = 5
    """The stored code, from which ``Data.code`` follows."""
    MISSPECIFICATION = 6
    """epsilon"""
    MIXING = 7
    """See ``Data.mixing``."""


HEADING = len(EvidenceHeading)


class Region(NamedTuple):
    """The confidence set as bounds need it: {theta: ||theta - estimate_g||_{V_g} <= radius_g, all g}, and
    ||theta|| <= S."""

    spectral: bool  # whether estimate and factors are coordinates in ``basis``; else ``inverse`` counts
    inverse: Array  # (G, d, d) V_g^-1
    basis: Array  # (d, d) rows are the eigenvectors of A
    factors: Array  # (G, d) eigenvalues of V_g^-1
    estimate: Array  # (G, d) centres; the first is theta_hat
    radius: Array  # (G,) beta_g
    reach: Array  # (G,) beta_g and all that rounding can amount to; inf: this ellipsoid says nothing
    blur: Array  # (G,) share of its terms that an expanded square may be off, and the centre with it
    slack: Array  # (1,) times ||v||: what rounding adds to any bound of v @ theta in a spectral set
    norm_bound: float  # S
    totals: Array  # what sums of rewards alone say; see ``sums.totals`` and, for the set box,
    # ``c4b.evidence.box_bounds``; empty for most sets
    guide: Array  # to the ellipsoids that count, see ``pools.leading_ellipsoid``; mostly empty


class Data(NamedTuple):
    """Sufficient statistics from which the region can be rebuilt, and the set that it is."""

    ridges: Array  # (G,) regularisers a_g; the first is that of theta_hat
    gram: Array  # (d, d) A = sum x x^T
    moment: Array  # (d,) m = sum x Y
    tally: Array  # (TALLY,)
    mixing: float  # l of the unbiased set, 0 for sets without it
    code: int  # which set it is
    inverse_error: Array  # (G,) bound of the relative error of V_g^-1 as it is kept
    log_det_error: Array  # (1,) bound of the error of the log-determinant
    scratch: Array  # (d,)
    spectrum: Spectrum  # of a spectral set
    extra: Array  # statistics of the set's own; empty for the first four sets


class Terms(NamedTuple):
    """The model's numbers as kernels read them."""

    noise: float  # sigma
    norm_bound: float  # S
    log_term: float  # 2 log(1/delta)
    misspecification: float  # epsilon


def flat_size(stack: int, dim: int, extra: int, spectral: bool) -> int:
    """Numbers in a flat vector of G ellipsoids, d features and so many extra statistics."""
    return _end_of_tally(stack, dim, spectral) + rounding_size(stack, dim, spectral) + extra


def rounding_size(stack: int, dim: int, spectral: bool) -> int:
    """Numbers in a flat vector between the tally and the extra statistics."""
    more = 1 + stack * dim + spectrum_size(dim) if spectral else 0
    return 3 * stack + 1 + dim + more


def _end_of_tally(stack: int, dim: int, spectral: bool) -> int:
    matrices = 1 if spectral else stack
    return HEADING + matrices * dim * dim + stack * (2 + dim) + dim * dim + dim + TALLY


def is_spectral(flat: Array) -> bool:
    """Which of the two representations a flat vector has."""
    code = int(flat[EvidenceHeading.CODE])
    several = code == MIXTURE and int(flat[EvidenceHeading.STACK]) > 1
    mixed = code == SELF_NORMALIZED and float(flat[EvidenceHeading.MIXING]) > 0.0
    return code >= CONSTRAINED or several or mixed


def stack_and_dim(flat: Array) -> tuple[int, int]:
    """(G, d) of a flat vector."""
    return int(flat[EvidenceHeading.STACK]), int(flat[EvidenceHeading.DIM])


def radius_index(flat: Array) -> int:
    """Where the first radius lies in a flat vector."""
    stack, dim = stack_and_dim(flat)
    return HEADING + (1 if is_spectral(flat) else stack) * dim * dim + stack * dim


def alarm_index(flat: Array) -> int:
    """Where the alarm lies in a flat vector."""
    return _end_of_tally(*stack_and_dim(flat), is_spectral(flat)) - TALLY + ALARM


def estimates(flat: Array) -> Array:
    """The part of a flat vector whose numbers are finite while arithmetic holds: all but rounding."""
    (stack, dim), spectral = stack_and_dim(flat), is_spectral(flat)
    end = _end_of_tally(stack, dim, spectral)
    return np.concatenate([flat[:end], flat[end + rounding_size(stack, dim, spectral) :]])


def views(flat: Array) -> tuple[Region, Data, Terms]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, *stack_and_dim(flat))


def parts(flat: Array, stack: int, dim: int) -> tuple[Region, Data, Terms]:
    """``views`` for a G and d that the caller knows, perhaps when compiling."""
    code = int(flat[EvidenceHeading.CODE])
    if code == SELF_NORMALIZED and flat[EvidenceHeading.MIXING] > 0.0:
        code = UNBIASED
    if code == MIXTURE and stack > 1:
        code = CONSTRAINED
    spectral = EIGENBASES and code >= CONSTRAINED
    a = HEADING + (dim * dim if spectral else stack * dim * dim)
    b = a + stack * dim
    c = b + stack
    d = c + stack
    e = d + dim * dim
    f = e + dim
    g = f + TALLY
    h = g + stack
    k = h + stack
    m = k + stack
    n = m + 1 + dim
    p = n + 1 + (stack * dim if spectral else 0)  # spectral sets only: slack, factors, spectrum
    w = dim if spectral else 0
    q = p + 7 * w + 2
    end = q + 2 * w * w if spectral else n
    totals = 2 * dim if code == BOX else 0
    if code >= BOUNDED:
        totals = (9 if code >= BOUNDED_3 else 7) + 3 * dim
    region = Region(
        spectral,
        shaped_view(flat, HEADING, (1 if spectral else stack, dim, dim)),
        shaped_view(flat, HEADING, (dim, dim)),
        shaped_view(flat, n + 1, (stack if spectral else 0, dim)),
        shaped_view(flat, a, (stack, dim)),
        shaped_view(flat, b, (stack,)),
        shaped_view(flat, g, (stack,)),
        shaped_view(flat, h, (stack,)),
        shaped_view(flat, n, (1 if spectral else 0,)),
        flat[EvidenceHeading.NORM_BOUND],
        shaped_view(flat, len(flat) - totals, (totals,)),
        shaped_view(flat, 0, (0,)),
    )
    spectrum = Spectrum(
        shaped_view(flat, p, (w,)),
        shaped_view(flat, p + w, (w,)),
        shaped_view(flat, p + 2 * w, (2 if spectral else 0,)),
        shaped_view(flat, p + 2 * w + 2, (w,)),
        shaped_view(flat, p + 3 * w + 2, (w,)),
        shaped_view(flat, p + 4 * w + 2, (w,)),
        shaped_view(flat, p + 5 * w + 2, (w,)),
        shaped_view(flat, p + 6 * w + 2, (w,)),
        shaped_view(flat, q, (w, w)),
        shaped_view(flat, q + w * w, (w, w)),
    )
    data = Data(
        shaped_view(flat, c, (stack,)),
        shaped_view(flat, d, (dim, dim)),
        shaped_view(flat, e, (dim,)),
        shaped_view(flat, f, (TALLY,)),
        flat[EvidenceHeading.MIXING],
        code,
        shaped_view(flat, k, (stack,)),
        shaped_view(flat, m, (1,)),
        shaped_view(flat, m + 1, (dim,)),
        spectrum,
        shaped_view(flat, end, (len(flat) - end,)),
    )
    terms = Terms(
        flat[EvidenceHeading.NOISE],
        flat[EvidenceHeading.NORM_BOUND],
        flat[EvidenceHeading.LOG_TERM],
        flat[EvidenceHeading.MISSPECIFICATION],
    )
    return region, data, terms


def region_size(flat: Array) -> int:
    """So many numbers at the front of a flat vector hold the region, but for ``Region.totals``, and all
    that decisions read: up to the eigenvalues of A, from which a belief is computed."""
    region, data, _ = views(flat)
    if not region.spectral:
        return len(flat)
    values = data.spectrum.values
    before = (values.ctypes.data - flat.ctypes.data) // flat.itemsize
    return int(before) + values.size


opened_as = inlined(parts)


@inlined
def opened(flat: Array) -> tuple[Region, Data, Terms]:
    return opened_as(flat, int(flat[EvidenceHeading.STACK]), int(flat[EvidenceHeading.DIM]))


# -- what most radii are made of ---------------------------------------------------------------


@inlined
def gamma_squared(data: Data, terms: Terms) -> float:
    """log(det V / lambda^d) + 2 log(1/delta), for the first shape and its ridge."""
    value: float = data.tally[LOG_DET] + terms.log_term
    return value


@inlined
def drift(data: Data, terms: Terms) -> float:
    """epsilon sqrt(n): how far declared misspecification can move a centre."""
    return terms.misspecification * math.sqrt(data.tally[COUNT])


# -- one observation ---------------------------------------------------------------------------


@inlined
def add_to_sums(data: Data, x: Array, y: float) -> None:
    """One observation into A, m and the tally."""
    dim = len(x)
    for i in range(dim):
        data.moment[i] += x[i] * y
        for j in range(dim):
            data.gram[i, j] += x[i] * x[j]
    data.tally[COUNT] += 1.0
    data.tally[SQUARES_SUM] += y * y
    data.tally[SINCE_FACTORED] += 1.0
