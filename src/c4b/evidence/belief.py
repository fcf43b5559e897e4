"""What is believed of theta: a Gaussian prior and the data. It orders candidates and certifies nothing.

With theta ~ N(0, S^2/d I) before any data and Gaussian noise, theta has after them the mean
(A + l I)^-1 m and the covariance sigma^2 (A + l I)^-1, l = d sigma^2 / S^2. The middle of a confidence
interval is no such mean: in many dimensions the best-looking of many middles is mostly luck.

Scores are by that mean. What is expected is more careful, if a rule wants it so: the actions of a round
may differ less than the prior's variance says, by a part of S^2/d, and the data say how likely each part
is. What all of them have in common keeps its variance. Otherwise, where theta is nearly what they have in
common alone, the best of many means would be mostly luck, too.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._compilation.kernel_parts import EIGENBASES
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import pool_chains
from c4b.evidence.ellipsoids import BOUNDED, Data, Region, Terms
from c4b.evidence.pools.pool_forms import CROSS, coordinates


class Belief(NamedTuple):
    """Means and covariance of theta; all arrays are empty where nothing is believed."""

    mean: Array  # (d,) what is expected
    turned: Array  # (1, d) its coordinates in the eigenbasis
    hoped: Array  # (1, d) coordinates of the mean that scores are by
    factors: Array  # (1, d) eigenvalues of the covariance / sigma^2
    noise: float  # sigma


PRIORS, PART, ODDS = 4, 4.0, 2.0
"""Variances of the careful prior across what actions have in common: S^2/d, a PART-th of it, and so on.
Each is so many times less likely beforehand than the one before."""


ASKED = 64
"""Candidates, evenly spaced in the list, that say what all have in common, at most."""
NOTHING = 1e-6
"""Share of the actions' sizes: if their sum is smaller, they have nothing in common."""


def belief_size(dim: int) -> int:
    """Numbers that a belief takes."""
    return 5 * dim + 2 * PRIORS


room_for_belief = inlined(belief_size)


@inlined
def believed(
    region: Region,
    data: Data,
    terms: Terms,
    wanted: bool,
    careful: bool,
    level: bool,
    candidates: Array,
    baseline: Array,
    space: Array,
) -> Belief:
    """Written into ``space``; nothing unless ``wanted`` and the set keeps the eigenbasis of A.

    ``careful`` about differences of these candidates (K, d) and this baseline; ``level``: see
    ``_write_common``.
    """
    known = EIGENBASES and wanted and region.spectral and data.code < BOUNDED
    dim = len(data.moment) if known else 0
    rows = 1 if known else 0
    mean = shaped_view(space, 0, (dim,))
    turned, factors = shaped_view(space, dim, (rows, dim)), shaped_view(space, 2 * dim, (rows, dim))
    hoped = shaped_view(space, 3 * dim, (rows, dim))
    if known:
        ridge, values = dim * (terms.noise / terms.norm_bound) ** 2, data.spectrum.values
        for i in range(dim):
            along = 0.0
            for j in range(dim):
                along += region.basis[i, j] * data.moment[j]
            factors[0, i] = 1.0 / (max(values[i], 0.0) + ridge)
            turned[0, i] = along
            hoped[0, i] = along * factors[0, i]
        if careful:
            towards = shaped_view(space, 4 * dim, (dim,))
            _write_common(region, level, candidates, baseline, mean, towards)
            weights = shaped_view(space, 5 * dim, (PRIORS,))
            pulls = shaped_view(space, 5 * dim + PRIORS, (PRIORS,))
            _shrink(values, ridge, terms.noise, towards, weights, pulls, turned)
        else:
            for i in range(dim):
                turned[0, i] = hoped[0, i]
        for j in range(dim):
            mean[j] = 0.0
        for i in range(dim):
            for j in range(dim):
                mean[j] += region.basis[i, j] * turned[0, i]
    return Belief(mean, turned, hoped, factors, terms.noise)


@inlined
def _write_common(
    region: Region, level: bool, candidates: Array, baseline: Array, scratch: Array, towards: Array
) -> None:
    """The direction of what the actions of a round have in common, in the eigenbasis, into ``towards``
    (d,); 0 if they have nothing in common. scratch is (d,).

    It is that of the sum of the baseline and some candidates (K, d). If it is to be ``level``: of the
    point between the baseline and the mean of these candidates that is nearest to 0. Along it both are
    worth the same, unless one of them is that point.
    """
    size, dim, count, length, sizes = len(candidates), len(baseline), 0, 0.0, 0.0
    for j in range(dim):
        scratch[j] = 0.0 if level else baseline[j]
    for k in range(0, size, (size + ASKED - 1) // ASKED if size > 0 else 1):
        count += 1
        for j in range(dim):
            scratch[j] += candidates[k, j]
            sizes += abs(candidates[k, j])
    sizes = sizes / max(count, 1) if level else sizes
    for j in range(dim):
        sizes += abs(baseline[j])
    if level:
        _move_to_nearest(baseline, max(count, 1), scratch)
    for j in range(dim):
        length += scratch[j] * scratch[j]
    length = math.sqrt(length)
    for i in range(dim):
        along = 0.0
        for j in range(dim):
            along += region.basis[i, j] * scratch[j]
        towards[i] = along / length if NOTHING * sizes < length < np.inf else 0.0


@inlined
def _move_to_nearest(baseline: Array, count: int, total: Array) -> None:
    """``total`` (d,), a sum of so many rows, becomes the point nearest to 0 between ``baseline`` and the
    mean of the rows."""
    along, square = 0.0, 0.0
    for j in range(len(baseline)):
        apart = total[j] / count - baseline[j]
        along += baseline[j] * apart
        square += apart * apart
    share = -along / square if square > 0.0 else 0.0
    share = min(share, 1.0) if share > 0.0 else 0.0  # also where squares overflow
    for j in range(len(baseline)):
        total[j] = baseline[j] + share * (total[j] / count - baseline[j])


@inlined
def _shrink(
    values: Array,
    ridge: float,
    noise: float,
    towards: Array,
    weights: Array,
    pulls: Array,
    along: Array,
) -> None:
    """Coordinates of m (1, d) in the eigenbasis of A become those of the mean under the careful prior.

    ``values`` (d,) of A; ``towards`` (d,): a unit vector u, or 0. Prior p has the usual ridge l in the
    direction u and PART^p l across it, together D_p = PART^p l I + c u u^T. So the inverse of
    A + D_p and its determinant are those of a diagonal matrix and one term more. ``weights`` (PRIORS,)
    begin as logarithms relative to the first prior: what all have in common would hide differences.
    """
    dim, top, unit = len(values), -np.inf, 0.0
    for i in range(dim):
        unit += towards[i] * towards[i]
    for p in range(PRIORS):
        part, wider = ridge * PART**p, math.log(PART**p)
        change, spread, pull = ridge - part, 0.0, 0.0
        log = -2.0 * p * math.log(ODDS) - (wider if unit > 0.0 else 0.0)
        for i in range(dim):
            value = max(values[i], 0.0)
            shape, usual = value + part, value + ridge
            spread += towards[i] * towards[i] / shape
            pull += towards[i] * (along[0, i] / shape)
            log += wider + math.log(usual / shape)
            log += change * (along[0, i] / shape / noise) * (along[0, i] / usual / noise)
        rest = 1.0 + change * spread
        log -= math.log(rest) + change * (pull / noise) * (pull / noise) / rest
        pulls[p] = change * pull / rest
        weights[p] = 0.5 * log
        top = max(top, weights[p])
    total = 0.0
    for p in range(PRIORS):
        weights[p] = math.exp(weights[p] - top)
        total += weights[p]
    for i in range(dim):
        value, mean = max(values[i], 0.0), 0.0
        for p in range(PRIORS):
            mean += weights[p] / total * (along[0, i] - pulls[p] * towards[i]) / (value + ridge * PART**p)
        along[0, i] = mean


@inlined
def believes(belief: Belief) -> bool:
    """Whether anything is believed."""
    return len(belief.mean) > 0


@inlined
def expected(belief: Belief, v: Array) -> float:
    """What is expected of v @ theta."""
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
def pool_belief(belief: Belief, mean: Array, stack: int, forms: Array, row: int, out: Array) -> None:
    """out[row, k]: x_k @ theta for a ``mean`` of theta, ``turned`` or ``hoped``; the scratch row of
    ``forms``: its standard deviation.

    ``forms`` are those of a stack of so many ellipsoids, from ``pool_forms``: they hold the pool's
    coordinates in the eigenbasis, and their squares.
    """
    dim, size = len(belief.mean), out.shape[1]
    turned, squared = coordinates(forms, stack, dim)
    pool_chains(turned, mean, 0, 1, row, 1, out)
    pool_chains(squared, belief.factors, 0, 1, CROSS, 1, forms)
    for k in range(size):
        forms[CROSS, k] = belief.noise * math.sqrt(forms[CROSS, k])
