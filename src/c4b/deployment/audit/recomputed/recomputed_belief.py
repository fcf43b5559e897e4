"""The belief of a choice about theta, recomputed: docs/theory.md, section "Choice", *Belief*."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import RecomputedSet

SETS = ("constrained", "unbiased", "several-ridges")
"""Sets that keep the eigenbasis in which a belief is computed; with others nothing is believed."""
UNIT = 2e-16
RIDGES, ODDS = 4.0 ** np.arange(4), 0.5 ** np.arange(4)
"""Of the careful prior: ridges over the usual one, and how likely each is beforehand."""


class Belief(NamedTuple):
    """Scores take theta for N(hoped, noise^2 root root^T); ``mean`` is what is expected."""

    hoped: Array  # (d,)
    mean: Array  # (d,)
    root: Array  # (d, d)
    noise: float
    blur: float  # times ||v||: what two arithmetics may differ in v @ mean and v @ hoped

    def view(self, vectors: Array, deviations: float) -> tuple[Array, Array]:
        """What is expected (K,) of v @ theta, and so many standard deviations."""
        spread = np.linalg.norm(vectors @ self.root, axis=1)
        return np.asarray(vectors @ self.mean), np.asarray(deviations * self.noise * spread)

    def scores(self, vectors: Array, deviations: float) -> Array:
        """Scores (K,) of candidates."""
        return np.asarray(vectors @ self.hoped + self.view(vectors, deviations)[1])


def belief_of(data: RecomputedSet, careful: bool) -> Belief | None:
    """From a prior N(0, S^2/d I) and the sums of all observations; None where nothing is believed.

    careful: what is expected is by a prior whose variance is not known.
    """
    if data.model["confidence"] not in SETS or data.ellipsoids == 1:
        return None
    dim, noise = len(data.moment), float(data.model["noise"])
    ridge = dim * (noise / data.norm_bound) ** 2
    values, vectors = np.linalg.eigh(data.gram)
    values = np.maximum(values, 0.0)
    least = float(values[0]) + ridge
    factors = 1.0 / (values + ridge)
    along = vectors.T @ data.moment
    hoped = mean = vectors @ (factors * along)
    trace = float(np.trace(data.gram))
    moved = trace * float(np.linalg.norm(hoped)) + np.sqrt(trace * data.squares)
    steps = 20.0 * UNIT * (data.count + 100.0 * dim**2)
    blur = steps * moved / least
    if careful:
        means, logs = _under_each_ridge(values, along, ridge, noise)
        mean = vectors @ (_weights(logs) @ means)
        doubt = 2.0 * steps * float(np.abs(logs).max()) * (1.0 + trace / least)
        if dim > 1 and values[-1] - values[-2] <= steps * trace:
            doubt = 1.0  # either may be the direction that has no say
        blur += min(doubt, 1.0) * float(np.linalg.norm(means - means[0], axis=1).max())
    return Belief(hoped, mean, vectors * np.sqrt(factors), noise, float(blur))


def _under_each_ridge(values: Array, along: Array, ridge: float, noise: float) -> tuple[Array, Array]:
    """Means (J, d) in the eigenbasis, and logarithms (J,) of how likely each ridge is, from ascending
    ``values``: the last direction has the usual ridge, and no say."""
    ridges = (ridge * RIDGES)[:, None]
    means = along / (values + ridges)
    means[:, -1] = along[-1] / (values[-1] + ridge)
    shapes = values[:-1] + ridges
    logs = np.sum(np.log(ridges / shapes) + (along[:-1] / noise) ** 2 / shapes, axis=1)
    return means, np.asarray(np.log(ODDS) + 0.5 * logs)


def _weights(logs: Array) -> Array:
    """How likely each ridge is."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
