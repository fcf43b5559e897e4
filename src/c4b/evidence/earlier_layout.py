"""Evidence that was stored before rounding errors were bounded, in the layout of today.

A state file or a snapshot may be that old.
"""

import numpy as np

from c4b._compilation.jit import kernel
from c4b._validate import Array
from c4b.evidence.absorption import factor, recentre
from c4b.evidence.arithmetic.ridge_inverses import factored_error
from c4b.evidence.arithmetic.rounding import UNIT, USABLE
from c4b.evidence.ellipsoids import (
    COUNT,
    HEADING,
    LOG_DET,
    TALLY,
    flat_size,
    is_spectral,
    opened,
    rounding_size,
    stack_and_dim,
    views,
)
from c4b.evidence.model import LinearModel
from c4b.evidence.sets.confidence_set import PythonSet


def in_current_layout(array: Array, target: Array, model: LinearModel) -> Array:
    """A flat vector like ``target``, from one that was stored before rounding errors were bounded.

    Any other array is returned as it is. The sums keep their bits; the bounds of rounding errors are
    computed afresh, and so is the eigenbasis of a set that has one: it was stored as G inverses.
    """
    stack, dim = stack_and_dim(target)
    more = rounding_size(stack, dim, False)
    before = flat_size(stack, dim, 0, False) - more
    extra = model.confidence_set.extra_size(dim)
    same = array.dtype == target.dtype and array.shape == (before + extra,)
    if not same or not np.array_equal(array[:HEADING], target[:HEADING]):
        return array
    if is_spectral(target):
        flat = target.copy()
        sums = before - dim * dim - dim - TALLY
        data = views(flat)[1]
        data.gram.flat[:] = array[sums : sums + dim * dim]
        data.moment[:] = array[before - TALLY - dim : before - TALLY]
        data.tally[:] = array[before - TALLY : before]
        decompose(flat)
        return flat
    flat = np.concatenate([array[:before], np.zeros(more), array[before:]])
    region, data, _ = views(flat)
    if isinstance(model.confidence_set, PythonSet):
        region.reach[:] = region.radius
        return flat
    ridge, count = float(data.ridges[0]), float(data.tally[COUNT])
    shape = data.gram + ridge * np.eye(dim)
    data.log_det_error[0] = np.inf
    try:
        logs = np.log(np.diagonal(np.linalg.cholesky(shape)))
    except np.linalg.LinAlgError:
        logs = np.full(dim, np.nan)
    log_det = float(2.0 * np.sum(logs) - dim * np.log(ridge))
    product = dim * float(np.sum(np.diagonal(region.inverse[0]) * np.diagonal(shape)))
    loss = 2.0 * 1.5 * (count + 3.0 * dim + 12.0) * UNIT * product
    if loss <= USABLE:
        size = float(np.sum(np.abs(logs))) + dim * abs(np.log(ridge))
        apart = abs(log_det - float(data.tally[LOG_DET]))
        data.log_det_error[0] = 1.1 * apart + dim * loss + 8.0 * (dim + 4) * UNIT * size
    judge_inverses(flat)
    return flat


@kernel
def decompose(flat: Array) -> None:
    """Eigenbasis, centres and radii of a spectral set from its sums."""
    region, data, terms = opened(flat)
    factor(region, data)
    recentre(region, data, terms)


@kernel
def judge_inverses(flat: Array) -> None:
    """Bound the error of every inverse as it is, then write centres and radii."""
    region, data, terms = opened(flat)
    for g in range(len(region.radius)):
        data.inverse_error[g] = factored_error(region, data, g)
    recentre(region, data, terms)
