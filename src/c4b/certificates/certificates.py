"""Certificates of candidates against a baseline, for one confidence set.

They do not depend on the bank or the round.
"""

import numpy as np
from numpy.typing import ArrayLike

from c4b import _validate
from c4b._validate import Array
from c4b.certificates import contrast_kernels as kernels
from c4b.errors import InvalidInput
from c4b.evidence.evidence import Evidence


def _both(
    evidence: Evidence, candidates: ArrayLike, baseline: ArrayLike, alpha: float
) -> tuple[Array, Array]:
    if not isinstance(evidence, Evidence):
        raise InvalidInput("evidence", evidence, "must be a c4b.Evidence, e.g. policy.evidence")
    dim = evidence.model.dim
    pool = np.ascontiguousarray(_validate.table("candidates", candidates, dim).T)
    against = _validate.vector("baseline", baseline, dim)
    alpha = _validate.fraction("alpha", alpha, "must lie strictly between 0 and 1")
    bounds = np.empty((2, pool.shape[1]))
    kernels.both(evidence.flat, pool, against, alpha, bounds)
    return bounds[0], bounds[1]


def joint_certificate(
    evidence: Evidence, candidates: ArrayLike, baseline: ArrayLike, alpha: float
) -> Array:
    """(8): lower bound (K,) of each candidate's contrast, computed from one set for both rewards."""
    return _both(evidence, candidates, baseline, alpha)[0]


def separate_certificate(
    evidence: Evidence, candidates: ArrayLike, baseline: ArrayLike, alpha: float
) -> Array:
    """(9): lower bound (K,) of each contrast, from two separate intervals.

    With a set of one ellipsoid it is never larger than the joint certificate, up to rounding. With
    several ellipsoids it sometimes is: the two intervals may use two of them, the contrast uses one.
    """
    return _both(evidence, candidates, baseline, alpha)[1]


def decoupling_penalty(
    evidence: Evidence, candidates: ArrayLike, baseline: ArrayLike, alpha: float
) -> Array:
    """(10): joint minus separate certificate (K,): the cost of bounding the two rewards separately.

    >>> from c4b import Evidence, LinearModel
    >>> evidence = Evidence(LinearModel(dim=1, noise=0.1, norm_bound=1.0, ridge=1.0))
    >>> width = evidence.upper([1.0]) - evidence.lower([1.0])
    >>> penalty = decoupling_penalty(evidence, [[1.0]], [1.0], alpha=0.05)
    >>> bool(abs(penalty[0] - 0.95 * width) < 1e-12)     # Proposition 1 at a = b
    True
    """
    joint, separate = _both(evidence, candidates, baseline, alpha)
    return joint - separate
