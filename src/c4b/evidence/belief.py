"""What is believed of theta: a Gaussian prior and the data. It orders candidates and certifies nothing.

With theta ~ N(0, S^2/d I) before any data and Gaussian noise, theta has after them the mean
(A + l I)^-1 m and the covariance sigma^2 (A + l I)^-1, l = d sigma^2 / S^2. The middle of a confidence
interval is no such mean: in many dimensions the best-looking of many middles is mostly luck.
"""

import math
from typing import NamedTuple

from c4b._compilation.jit import inlined
from c4b._compilation.kernel_parts import EIGENBASES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import pool_chains
from c4b.evidence.ellipsoids import BOUNDED, Data, Region, Terms
from c4b.evidence.pools.pool_forms import CROSS, coordinates


class Belief(NamedTuple):
    """Mean and covariance of theta; all arrays are empty where nothing is believed."""

    mean: Array  # (d,)
    turned: Array  # (1, d) the mean's coordinates in the eigenbasis
    factors: Array  # (1, d) eigenvalues of the covariance / sigma^2
    noise: float  # sigma


def belief_size(dim: int) -> int:
    """Numbers that a belief takes."""
    return 3 * dim


room_for_belief = inlined(belief_size)


@inlined
def believed(region: Region, data: Data, terms: Terms, wanted: bool, space: Array) -> Belief:
    """Written into ``space``; nothing unless ``wanted`` and the set keeps the eigenbasis of A."""
    known = EIGENBASES and wanted and region.spectral and data.code < BOUNDED
    dim = len(data.moment) if known else 0
    rows = 1 if known else 0
    mean = shaped_view(space, 0, (dim,))
    turned, factors = shaped_view(space, dim, (rows, dim)), shaped_view(space, 2 * dim, (rows, dim))
    if known:
        ridge, values = dim * (terms.noise / terms.norm_bound) ** 2, data.spectrum.values
        for i in range(dim):
            mean[i] = 0.0
        for i in range(dim):
            along = 0.0
            for j in range(dim):
                along += region.basis[i, j] * data.moment[j]
            factors[0, i] = 1.0 / (max(values[i], 0.0) + ridge)
            turned[0, i] = along * factors[0, i]
            for j in range(dim):
                mean[j] += region.basis[i, j] * turned[0, i]
    return Belief(mean, turned, factors, terms.noise)


@inlined
def believes(belief: Belief) -> bool:
    """Whether anything is believed."""
    return len(belief.mean) > 0


@inlined
def expected(belief: Belief, v: Array) -> float:
    """The mean of v @ theta."""
    total = 0.0
    for i in range(len(v)):
        total += v[i] * belief.mean[i]
    return total


@inlined
def deviation(region: Region, belief: Belief, v: Array) -> float:
    """The standard deviation of v @ theta."""
    total = 0.0
    for i in range(len(v)):
        along = 0.0
        for j in range(len(v)):
            along += region.basis[i, j] * v[j]
        total += belief.factors[0, i] * along * along
    return belief.noise * math.sqrt(total)


@inlined
def pool_belief(belief: Belief, stack: int, forms: Array, row: int, out: Array) -> None:
    """out[row, k]: the mean of x_k @ theta; the scratch row of ``forms``: its standard deviation.

    ``forms`` are those of a stack of so many ellipsoids, from ``pool_forms``: they hold the pool's
    coordinates in the eigenbasis, and their squares.
    """
    dim, size = len(belief.mean), out.shape[1]
    turned, squared = coordinates(forms, stack, dim)
    pool_chains(turned, belief.turned, 0, 1, row, 1, out)
    pool_chains(squared, belief.factors, 0, 1, CROSS, 1, forms)
    for k in range(size):
        forms[CROSS, k] = belief.noise * math.sqrt(forms[CROSS, k])
