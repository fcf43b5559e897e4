"""The belief of a choice about theta, recomputed: docs/theory.md, section "Choice", *Belief*."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import RecomputedSet

SETS = ("constrained", "unbiased", "several-ridges")
"""Sets that keep the eigenbasis in which a belief is computed; with others nothing is believed."""
UNIT = 2e-16
NOTHING = 1e-6
"""Share of the actions' sizes: if their sum is smaller, they have nothing in common."""
RIDGES, ODDS = 4.0 ** np.arange(4), 0.5 ** np.arange(4)
"""Of the careful prior: ridges over the usual one, and how likely each is beforehand."""


class Belief(NamedTuple):
    """Scores take theta for N(hoped, noise^2 root root^T); ``mean`` is what is expected."""

    hoped: Array  # (d,)
    mean: Array  # (d,)
    root: Array  # (d, d)
    noise: float
    blur: float  # times ||v||: what two arithmetics may differ in v @ hoped
    mean_blur: float  # and in v @ mean

    def view(self, vectors: Array, deviations: float) -> tuple[Array, Array]:
        """What is expected (K,) of v @ theta, and so many standard deviations."""
        spread = np.linalg.norm(vectors @ self.root, axis=1)
        return np.asarray(vectors @ self.mean), np.asarray(deviations * self.noise * spread)

    def scores(self, vectors: Array, deviations: float) -> Array:
        """Scores (K,) of candidates."""
        return np.asarray(vectors @ self.hoped + self.view(vectors, deviations)[1])


def belief_of(
    data: RecomputedSet, careful: tuple[Array, Array] | None, level: bool = False
) -> Belief | None:
    """From a prior N(0, S^2/d I) and the sums of all observations; None where nothing is believed.

    careful: candidates (K, d) and baseline (d,), if what is expected is by a prior whose variance across
    what they have in common is not known. level: that is as much in the baseline as in their mean.
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
    blur = mean_blur = steps * moved / least
    if careful is not None:
        common, uncertain = (_level if level else _common)(*careful)
        means, logs, size = _under_each_ridge(values, along, vectors.T @ common, ridge, noise)
        mean = vectors @ (_weights(logs) @ means)
        doubt = 2.0 * steps * size * (1.0 + trace / least)
        mean_blur *= 1.0 + float(RIDGES[-1])  # the common direction mixes all others
        mean_blur += min(doubt, 1.0) * float(np.linalg.norm(means - means[0], axis=1).max())
        mean_blur += min(uncertain, 1.0) * float(np.linalg.norm(means, axis=1).max())
    return Belief(hoped, mean, vectors * np.sqrt(factors), noise, float(blur), float(mean_blur))


def _common(candidates: Array, baseline: Array) -> tuple[Array, float]:
    """The direction (d,) of the sum of the baseline and up to 64 candidates, evenly spaced in the list,
    or 0 if they have nothing in common; and what rounding can change in the means by it."""
    rows = np.vstack([baseline, candidates[:: max(-(-len(candidates) // 64), 1)]])
    with np.errstate(over="ignore", invalid="ignore"):
        total, sizes = rows.sum(axis=0), float(np.abs(rows).sum())
        length = float(np.linalg.norm(total))
    if not NOTHING * sizes < length < np.inf:
        hangs = 0.99 * NOTHING * sizes < length < np.inf
        return np.zeros(len(total)), 1.0 if hangs else 0.0
    hangs = length < 1.01 * NOTHING * sizes
    return np.asarray(total / length), 1.0 if hangs else 1e4 * UNIT * sizes / length


def _level(candidates: Array, baseline: Array) -> tuple[Array, float]:
    """The same for the direction of the point nearest to 0 between the baseline and the mean of up to 64
    candidates."""
    rows = candidates[:: max(-(-len(candidates) // 64), 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = rows.sum(axis=0) / max(len(rows), 1)
        sizes = float(np.abs(rows).sum()) / max(len(rows), 1) + float(np.abs(baseline).sum())
        apart = mean - baseline
        square = float(apart @ apart)
        share = -float(baseline @ apart) / square if square > 0.0 else 0.0
        share = min(share, 1.0) if share > 0.0 else 0.0
        point = baseline + share * apart
        length = float(np.linalg.norm(point))
        # where baseline and mean nearly agree, rounding may move the point between them
        far = np.sqrt(square)
        moved = min(1e4 * UNIT * sizes * (sizes / far), far) if square > 0.0 else 0.0
    if not NOTHING * sizes < length < np.inf:
        hangs = 0.99 * NOTHING * sizes < length < np.inf
        return np.zeros(len(point)), 1.0 if hangs else 0.0
    hangs = length < 1.01 * NOTHING * sizes
    return np.asarray(point / length), 1.0 if hangs else (1e4 * UNIT * sizes + float(moved)) / length


def _under_each_ridge(
    values: Array, along: Array, unit: Array, ridge: float, noise: float
) -> tuple[Array, Array, float]:
    """Means (J, d) in the eigenbasis, logarithms (J,) of how likely each ridge is, relative to the first,
    and the size of what they are sums of. The direction ``unit`` has the usual ridge."""
    dim = len(values)
    means, logs, size = np.empty((len(RIDGES), dim)), np.empty(len(RIDGES)), 1.0
    for j, wider in enumerate(RIDGES):
        diagonal = values + wider * ridge
        change = (1.0 - wider) * ridge
        plain, turned = along / diagonal, unit / diagonal
        rest = 1.0 + change * float(unit @ turned)
        pull = change * float(unit @ plain) / rest
        means[j] = plain - pull * turned
        grown = dim * np.log(wider) - (np.log(wider) if unit.any() else 0.0)
        narrowed = np.sum(np.log((values + ridge) / diagonal))
        fitted = change * float((plain / noise) @ (along / (values + ridge) / noise))
        pulled = pull * float(unit @ plain) / noise**2
        logs[j] = np.log(ODDS[j]) + 0.5 * (grown + narrowed - np.log(rest) + fitted - pulled)
        size = max(size, float(abs(grown) + abs(narrowed) + abs(fitted) + abs(pulled)))
    return means, logs, size


def _weights(logs: Array) -> Array:
    """How likely each ridge is."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
