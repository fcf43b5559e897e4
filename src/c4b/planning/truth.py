"""What a log leaves possible: coefficients that are shrunk as much as its rows suggest, and their spread.

Least squares alone takes the luck of a few rows for the truth: an item without a click has rate 0 for
sure, and the best of eighty items several times its rate. Here all coefficients but that of a constant
feature are drawn around 0 with an unknown scale, from Student's distribution: most may be small while
a few are large. The rows say how likely each scale is, and the answer averages over the scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.diagnostics.ridge_fit import Batches

SCALES = np.geomspace(3e-3, 10.0, 25)
"""Of coefficients, in standard deviations of a reward."""
ROUNDING = 1e-9
FREEDOM = 4.0
"""Degrees of freedom of Student's distribution."""
REPEATS = 6
"""Steps of the iteration that finds how much each coefficient is shrunk: Student's distribution is a
normal one whose variance is drawn, and a step sets it to what the coefficient suggests."""
Variances = Callable[[Array, Array], Array]
"""From rewards and their estimated means to the variances of the rewards."""


class Truth(NamedTuple):
    """Mean and covariance of the coefficients."""

    estimate: Array
    covariance: Array


class _Sums(NamedTuple):
    gram: Array
    moment: Array
    features: Array
    rewards: float
    squares: float
    rows: int


class _Posterior(NamedTuple):
    """For each scale of the coefficients: how likely it is, and what then is likely of them."""

    shares: Array
    penalties: Array
    """Shape (scales, d)."""
    centres: Array
    """Shape (scales, d)."""
    inverses: Array
    """Shape (scales, d, d): the covariance of normal coefficients, in units of the noise."""


def possible_truth(batches: Batches, dim: int, variances: Variances) -> Truth:
    """The coefficients that the rows suggest, in two passes: nothing but sums is kept."""
    sums = _added_up(batches, dim)
    noise, spread = _noise(sums)
    constant = np.isclose(np.diagonal(sums.gram) * sums.rows, np.square(sums.features), rtol=ROUNDING)
    local = np.where(constant, 0.0, 1.0)
    for _ in range(REPEATS):
        found = _posterior(sums, local, noise, spread)
        ratios = _mean_square(found, noise).T @ (found.shares / np.square(SCALES * spread))
        local = np.where(constant, 0.0, (FREEDOM + 1.0) / (FREEDOM + ratios))
    estimate: Array = found.shares @ found.centres
    meat = np.zeros((dim, dim))
    for x, y in batches():
        meat += (x * variances(y, x @ estimate)[:, None]).T @ x
    covariance = np.zeros((dim, dim))
    for share, penalty, centre, inverse in zip(*found, strict=True):
        own = inverse @ (meat + np.diag(noise * penalty)) @ inverse
        covariance += share * (own + np.outer(centre - estimate, centre - estimate))
    return Truth(estimate, (covariance + covariance.T) / 2.0)


@np.errstate(under="ignore")  # shares of scales that the rows speak against
def _posterior(sums: _Sums, local: Array, noise: float, spread: float) -> _Posterior:
    """With coefficient k of variance ``(scale * spread)**2 / local[k]``, of any size where local is 0."""
    penalties = noise / np.square(SCALES * spread)
    tiny = ROUNDING * max(float(np.trace(sums.gram)) / len(sums.gram), ROUNDING)
    shapes = sums.gram + (np.outer(penalties, local) + tiny)[:, :, None] * np.eye(len(local))
    inverses: Array = np.linalg.inv(shapes).astype(np.float64)
    centres = inverses @ sums.moment
    logs = np.count_nonzero(local) * np.log(penalties) - np.linalg.slogdet(shapes)[1]
    logs = 0.5 * (logs + centres @ sums.moment / noise)
    logs += np.log(SCALES)  # steps of the grid: before the rows are seen, all scales are equally likely
    shares = np.exp(logs - logs.max())
    return _Posterior(shares / shares.sum(), np.outer(penalties, local), centres, inverses)


def _mean_square(found: _Posterior, noise: float) -> Array:
    """Of each coefficient at each scale, shape (scales, d)."""
    own = np.diagonal(found.inverses, axis1=1, axis2=2)
    return np.asarray(np.square(found.centres) + noise * own)


def _added_up(batches: Batches, dim: int) -> _Sums:
    gram, moment, features = np.zeros((dim, dim)), np.zeros(dim), np.zeros(dim)
    rewards, squares, rows = 0.0, 0.0, 0
    for x, y in batches():
        gram += x.T @ x
        moment += x.T @ y
        features += x.sum(axis=0)
        rewards += float(y.sum())
        squares += float(y @ y)
        rows += len(y)
    return _Sums(gram, moment, features, rewards, squares, rows)


def _noise(sums: _Sums) -> tuple[float, float]:
    """The variance that the features do not explain, and the standard deviation of all rewards."""
    free = np.linalg.lstsq(sums.gram, sums.moment, rcond=ROUNDING)[0]
    left = sums.squares - float(sums.moment @ free)
    smallest = ROUNDING * max(sums.squares / sums.rows, ROUNDING)
    variance = max(sums.squares / sums.rows - (sums.rewards / sums.rows) ** 2, smallest)
    return max(left / max(sums.rows - len(free), 1), smallest), float(np.sqrt(variance))
