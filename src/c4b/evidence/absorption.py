"""Observations into a flat vector: equations (4) to (6), for every compiled set."""

import math
from collections.abc import Callable

import numpy as np

from c4b._compilation.jit import called, inlined, kernel
from c4b._compilation.kernel_parts import EIGENBASES, INVERSES
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.alarms import watch
from c4b.evidence.arithmetic.cholesky_factor import cholesky, invert_from_cholesky
from c4b.evidence.arithmetic.ridge_inverses import (
    INVERSE_LIMIT,
    REFACTOR_EVERY,
    amplification,
    factored_error,
    update_ridge_stack,
    write_ridge_shape,
)
from c4b.evidence.arithmetic.rounding import UNIT, USABLE, sums_error
from c4b.evidence.eigenbasis.fresh_decomposition import POLISH_EVERY, polish
from c4b.evidence.eigenbasis.rank_one_update import turn
from c4b.evidence.eigenbasis.spectrum import RESIDUAL, TINY
from c4b.evidence.ellipsoids import (
    BOUNDED,
    COUNT,
    HEADING,
    LOG_DET,
    SEVERAL_RIDGES,
    SINCE_FACTORED,
    Data,
    Region,
    Terms,
    add_to_sums,
    flat_size,
    is_spectral,
    opened,
    views,
)
from c4b.evidence.model import LinearModel
from c4b.evidence.sets.bounded_parts.reward_weights import take
from c4b.evidence.sets.confidence_set import PythonSet
from c4b.evidence.sets.several_ridges import recentre_several_ridges
from c4b.evidence.sets.table import recentre_by_code, recentre_one_ridge


def empty(model: LinearModel) -> Array:
    """No data yet, as one flat vector: V = a I, whose inverse is I / a.

    One vector holds the model's terms and all statistics, so that a compiled call takes one argument
    instead of eight and what is copied or saved is exactly what continues.
    """
    entry, ridges, dim = model.confidence_set, model.ridges, model.dim
    if ridges.ndim != 1 or not len(ridges) or not np.all((ridges > 0.0) & (ridges < np.inf)):
        raise InvalidInput("ridges", ridges, f"of the set {entry.name!r} must be positive, shape (G,)")
    noise, norm_bound, log_term, misspecification = model.terms
    code = entry.code if entry.stored_code is None else entry.stored_code
    heading = np.array(
        [len(ridges), dim, noise, norm_bound, log_term, code, misspecification, model.mixing]
    )
    flat = np.zeros(flat_size(len(ridges), dim, entry.extra_size(dim), is_spectral(heading)))
    flat[:HEADING] = heading
    region, data, _ = views(flat)
    data.ridges[:] = ridges
    if region.spectral:
        np.fill_diagonal(region.basis, 1.0)
        data.spectrum.errors[RESIDUAL] = TINY
    else:
        data.inverse_error[:] = 2.0 * UNIT
        for g, ridge in enumerate(ridges):
            np.fill_diagonal(region.inverse[g], 1.0 / ridge)
    if entry.is_compiled and code == SEVERAL_RIDGES:
        centre_several_ridges(flat)
    elif entry.is_compiled and code < BOUNDED:
        centre_one_ridge(flat)
    else:
        many_absorber(model)(flat, np.empty((0, dim)), np.empty(0))
    return flat


@inlined
def add(region: Region, data: Data, x: Array, y: float) -> None:
    """One observation into the shapes, log det, A and sum x Y; call ``recentre`` after.

    Without an eigenbasis ``estimate`` serves as scratch here: ``recentre`` rewrites it.
    """
    if EIGENBASES and data.code >= BOUNDED:
        take(data, region.totals, x, y)
        add_to_sums(data, x, y)
    elif EIGENBASES and region.spectral:
        turn(region.basis, data.spectrum, x)
        add_to_sums(data, x, y)
        worn = data.tally[SINCE_FACTORED] >= POLISH_EVERY or not data.spectrum.errors[RESIDUAL] < np.inf
        if worn:
            factor(region, data)
    elif INVERSES:
        stale = update_ridge_stack(region, data, x)
        add_to_sums(data, x, y)
        if stale or data.tally[SINCE_FACTORED] >= REFACTOR_EVERY:
            factor(region, data)


@inlined
def recentre(region: Region, data: Data, terms: Terms) -> None:
    """Centres (5) and radii (6) from V^-1 and the moment, and the alarms that they raise."""
    explained, rho = recentre_by_code(region, data, terms)
    watch(data, terms, explained, rho)


@called
def factor(region: Region, data: Data) -> None:
    """The eigenbasis afresh from the sums; or V_g^-1 and log det by Cholesky, all in the place of V_g^-1.

    When V_g is no longer positive definite in float64 the inverse becomes NaN, and so does the bound of
    its error: the ellipsoid says nothing until further data make it definite again. Failing closed
    beats a plausible wrong number.
    """
    stack, dim = region.estimate.shape
    inverse, size = region.inverse, 0.0
    data.tally[SINCE_FACTORED] = 0.0
    if EIGENBASES and region.spectral:
        polish(region.basis, data.spectrum, data.gram, data.tally[COUNT])
        return
    for g in range(stack):
        write_ridge_shape(region, data, g)
        cholesky(inverse, g)
        if g == 0:
            log_det = 0.0
            for i in range(dim):
                log_det += math.log(inverse[g, i, i] / math.sqrt(data.ridges[0]))
                size += abs(math.log(inverse[g, i, i])) + abs(math.log(data.ridges[0]))
            data.tally[LOG_DET] = 2.0 * log_det
        invert_from_cholesky(inverse, g)
        data.inverse_error[g] = factored_error(region, data, g)
        if g == 0:
            loss = 2.0 * sums_error(dim, data.tally[COUNT], amplification(region, data, 0))
            known = loss <= USABLE and data.inverse_error[0] <= USABLE
            data.log_det_error[0] = dim * loss + 4.0 * (dim + 4) * UNIT * size if known else np.inf


@kernel
def centre_several_ridges(flat: Array) -> None:
    """``recentre`` for one set only: there is less to compile, and a first decision waits for it."""
    region, data, terms = opened(flat)
    watch(data, terms, recentre_several_ridges(region, data, terms), 0.0)


@kernel
def centre_one_ridge(flat: Array) -> None:
    """The same for the first four sets."""
    region, data, terms = opened(flat)
    explained, rho = recentre_one_ridge(region, data, terms)
    watch(data, terms, explained, rho)


@kernel
def absorb(flat: Array, x: Array, y: float) -> None:
    """One observation, complete: (4), (5) and (6) hold again afterwards."""
    region, data, terms = opened(flat)
    add(region, data, x, y)
    recentre(region, data, terms)


@kernel
def absorb_many(flat: Array, features: Array, rewards: Array) -> None:
    """Rows of ``features`` (n, d) with ``rewards`` (n,), in order."""
    region, data, terms = opened(flat)
    for n in range(len(rewards)):
        add(region, data, features[n], rewards[n])
    poor = region.spectral
    for g in range(len(region.radius)):
        poor |= not data.inverse_error[g] <= INVERSE_LIMIT
    if poor and data.tally[SINCE_FACTORED] > 0.0 and data.code < BOUNDED:
        factor(region, data)
    recentre(region, data, terms)


def absorber(model: LinearModel) -> Callable[[Array, Array, float], None]:
    """What absorbs one observation (flat, x (d,), y) for this model's set: ``absorb``, or Python code."""
    entry = model.confidence_set
    if not isinstance(entry, PythonSet):
        return absorb

    def absorb_in_python(flat: Array, x: Array, y: float) -> None:
        entry.absorb_many(model, flat, x[None, :], np.array([y]))

    return absorb_in_python


def many_absorber(model: LinearModel) -> Callable[[Array, Array, Array], None]:
    """What absorbs rows (flat, features (n, d), rewards (n,)) for this model's set."""
    entry = model.confidence_set
    if not isinstance(entry, PythonSet):
        return absorb_many

    def absorb_many_in_python(flat: Array, features: Array, rewards: Array) -> None:
        entry.absorb_many(model, flat, features, rewards)

    return absorb_many_in_python
