"""Lower bounds of the contrast Delta(a) = (x(a) - c x(b)) @ theta, c = 1 - alpha: (8), (9) and (11).

A *claim* is a pair (base, offset) that certifies ``base + L(offset + x(a))`` for any candidate a at
once; the joint certificate is one.
"""

from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import allocating, inlined
from c4b._compilation.kernel_parts import EIGENBASES
from c4b._validate import Array
from c4b.evidence.bounds import lower, upper
from c4b.evidence.ellipsoids import Region, opened
from c4b.evidence.pools.offset_bounds import raise_to_lower
from c4b.evidence.pools.pool_bounds import pool_lower
from c4b.evidence.pools.pool_forms import new_forms, pool_forms
from c4b.evidence.pools.spectral_offset_bounds import raise_to_turned


class Assessment(NamedTuple):
    """K candidates against one baseline, and what is known of them."""

    pool: Array  # (d, K) feature-major
    forms: Array  # (R, K) from ``new_forms``
    baseline: Array  # (d,)
    details: Array  # (R, K) one row a field; which row is which, the caller says
    scratch: Array  # (d,)
    mean: float  # of the baseline, where it is told; NaN: it is not
    earned: Array  # what absorbed plays have earned, see ``c4b.evidence.sums.earned``; empty: nobody asks
    claims: Array  # (C, 1 + 2 d + G) claims for ``raise_to_turned``, the joint one first; C = 0: none yet


@inlined
def joint_claim(baseline: Array, alpha: float, offset: Array) -> float:
    """(8): L(x(a) - c x(b)), one set for the whole contrast. Writes ``offset`` (d,), returns the base."""
    for i in range(len(offset)):
        offset[i] = -(1.0 - alpha) * baseline[i]
    return 0.0


@inlined
def structural(region: Region, baseline: Array, alpha: float, floor: float, tolerance: float) -> float:
    """(11): alpha max{L(x(b)) - tolerance, floor}; the floor is 0 for means known to be nonnegative,
    -inf for means of which nothing is known."""
    return structural_above(lower(region, baseline), alpha, floor, tolerance)


@inlined
def structural_above(low: float, alpha: float, floor: float, tolerance: float) -> float:
    """``structural`` of a baseline whose lower bound is known."""
    bound = low - tolerance
    return alpha * (bound if bound > floor else floor)


@inlined
def pool_joint(region: Region, assessed: Assessment, alpha: float, row: int) -> None:
    """(8) for every candidate: details[row]."""
    offset, details = assessed.scratch, assessed.details
    if EIGENBASES and len(assessed.claims) > 0:
        claim = assessed.claims[0]
        raise_to_turned(region, assessed.forms, assessed.pool, claim, row, details, True)
        return
    base = joint_claim(assessed.baseline, alpha, offset)
    raise_to_lower(region, assessed.forms, assessed.pool, base, offset, row, details, True)


@inlined
def pool_separate(region: Region, assessed: Assessment, alpha: float, known: bool, row: int) -> None:
    """(9) for every candidate: details[row]; if ``known``, with the told mean instead of an interval."""
    base = -(1.0 - alpha) * (assessed.mean if known else upper(region, assessed.baseline))
    pool_lower(region, assessed.forms, assessed.pool, base, row, assessed.details)


@allocating
def both(evidence_flat: Array, pool: Array, baseline: Array, alpha: float, out: Array) -> None:
    """Joint certificates into out[0], separate ones into out[1]; pool (d, K), out (2, K)."""
    region, _, _ = opened(evidence_flat)
    forms = new_forms(region, pool.shape[1])
    pool_forms(region, pool, forms)
    nothing = np.empty(0)
    assessed = Assessment(
        pool, forms, baseline, out, np.empty(len(baseline)), np.nan, nothing, np.empty((0, 1))
    )
    pool_joint(region, assessed, alpha, 0)
    pool_separate(region, assessed, alpha, False, 1)
