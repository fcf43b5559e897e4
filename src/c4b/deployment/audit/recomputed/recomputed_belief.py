"""The belief of a choice about theta, recomputed: docs/theory.md, section "Choice", *Belief*."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import RecomputedSet

SETS = ("constrained", "unbiased", "several-ridges")
"""Sets that keep the eigenbasis in which a belief is computed; with others nothing is believed."""
UNIT = 2e-16


class Belief(NamedTuple):
    """The choice takes theta for N(mean, noise^2 root root^T)."""

    mean: Array  # (d,)
    root: Array  # (d, d)
    noise: float
    blur: float  # times ||v||: what two arithmetics may differ in v @ mean

    def view(self, vectors: Array, deviations: float) -> tuple[Array, Array]:
        """Means (K,) of v @ theta, and so many standard deviations."""
        spread = np.linalg.norm(vectors @ self.root, axis=1)
        return np.asarray(vectors @ self.mean), np.asarray(deviations * self.noise * spread)


def belief_of(data: RecomputedSet) -> Belief | None:
    """From a prior N(0, S^2/d I) and the sums of all observations; None where nothing is believed."""
    if data.model["confidence"] not in SETS or data.ellipsoids == 1:
        return None
    dim, noise = len(data.moment), float(data.model["noise"])
    ridge = dim * (noise / data.norm_bound) ** 2
    values, vectors = np.linalg.eigh(data.gram)
    least = max(float(values[0]), 0.0) + ridge
    factors = 1.0 / (np.maximum(values, 0.0) + ridge)
    mean = vectors @ (factors * (vectors.T @ data.moment))
    trace = float(np.trace(data.gram))
    moved = trace * float(np.linalg.norm(mean)) + np.sqrt(trace * data.squares)
    blur = 20.0 * UNIT * (data.count + 100.0 * dim**2) * moved / least
    return Belief(mean, vectors * np.sqrt(factors), noise, float(blur))
