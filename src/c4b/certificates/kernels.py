"""Lower bounds of the contrast Delta(a) = (x(a) - c x(b)) @ theta, c = 1 - alpha: (8), (9) and (11).

A *claim* is a pair (base, offset) that certifies ``base + L(offset + x(a))`` for any candidate a at
once. The joint and the separate certificate are the two claims about one round.
"""

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.bounds import Forms, lower, raise_to_lower, upper
from c4b.evidence.statistics import Statistics


@kernel
def joint_claim(baseline: Array, alpha: float, offset: Array) -> float:
    """(8): L(x(a) - c x(b)), one set for the whole contrast. Writes ``offset`` (d,), returns the base."""
    for i in range(len(offset)):
        offset[i] = -(1.0 - alpha) * baseline[i]
    return 0.0


@kernel
def separate_claim(stats: Statistics, baseline: Array, alpha: float, offset: Array) -> float:
    """(9): L(x(a)) - c U(x(b)). Writes ``offset`` (d,), returns the base."""
    offset[:] = 0.0
    return -(1.0 - alpha) * upper(stats, baseline)


@kernel
def structural(stats: Statistics, baseline: Array, alpha: float, nonnegative: bool) -> float:
    """(11): alpha max{L(x(b)), 0}; without known nonnegativity, alpha L(x(b))."""
    bound = lower(stats, baseline)
    if nonnegative and not bound > 0.0:
        return 0.0
    return alpha * bound


@kernel
def pool_joint(
    stats: Statistics, forms: Forms, pool: Array, baseline: Array, alpha: float, out: Array
) -> None:
    """(8) for every candidate: out (K,)."""
    out[:] = -np.inf
    offset = forms.offset
    base = joint_claim(baseline, alpha, offset)
    raise_to_lower(stats, forms, pool, base, offset, out)


@kernel
def pool_separate(
    stats: Statistics, forms: Forms, pool: Array, baseline: Array, alpha: float, out: Array
) -> None:
    """(9) for every candidate: out (K,)."""
    out[:] = -np.inf
    offset = forms.offset
    base = separate_claim(stats, baseline, alpha, offset)
    raise_to_lower(stats, forms, pool, base, offset, out)
