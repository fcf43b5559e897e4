"""The bounds of each candidate's contrast at a decision: the estimate, and the upper bound.

The lower bound (8) decides and is among the details. The other numbers explain a decision. The journal
keeps the centre of the set (d numbers), from which the estimates follow. It keeps the upper bounds where
they do not follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from c4b._validate import Array
from c4b.policies.compiled.compiled_gate import ESTIMATE, UPPER
from c4b.policies.rounds.candidate_fields import CandidateField


def estimate(centre: Array | None, played: Array, baseline: Array, alpha: float) -> float:
    """Estimated contrast of one action, added up one by one: the same bits in every replay, anywhere
    (Python's own ``sum`` rounds differently since 3.12). NaN for a gate that estimates nothing."""
    if centre is None:
        return math.nan
    kept, total = 1.0 - alpha, 0.0
    for x, b, c in zip(played.tolist(), baseline.tolist(), centre.tolist(), strict=True):
        total += (x - kept * b) * c
    return total


def recorded(arrays: Mapping[str, Array], alpha: float, one_ellipsoid: bool) -> Array | None:
    """(2, K): estimate and upper bound of every candidate's contrast; None: the entry does not say.

    In a set of one ellipsoid the estimate is the middle between the bounds; in a stack of several it
    may lie anywhere.
    """
    if ESTIMATE not in arrays:
        return None
    candidates, lower = arrays["candidates"], arrays["details"][CandidateField.JOINT]
    with np.errstate(over="ignore", invalid="ignore"):  # candidates beyond all bounds
        estimates = (candidates - (1.0 - alpha) * arrays["baseline"]) @ arrays[ESTIMATE]
        above = arrays.get(UPPER)
        if above is None:
            above = 2.0 * estimates - lower if one_ellipsoid else np.full(len(estimates), np.nan)
    return np.stack([estimates, above])
