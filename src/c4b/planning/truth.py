"""What a log leaves possible: coefficients that are shrunk as much as its rows suggest, and their spread.

Least squares alone takes the luck of a few rows for the truth: an item without a click has rate 0 for
sure, and the best of eighty items several times its rate. Here all coefficients but that of a constant
feature are drawn around 0 with an unknown scale. The rows say how likely each scale is, and the answer
averages over the scales.
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
NEGLIGIBLE = 1e-6
"""A scale with a smaller share is left out."""
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


def possible_truth(batches: Batches, dim: int, variances: Variances) -> Truth:
    """The coefficients that the rows suggest, in two passes: nothing but sums is kept."""
    sums = _added_up(batches, dim)
    shrunk = ~np.isclose(np.diagonal(sums.gram) * sums.rows, np.square(sums.features), rtol=ROUNDING)
    noise, spread = _noise(sums)
    penalties = noise / np.square(SCALES * spread)
    shapes = [_shape(sums.gram, penalty * shrunk) for penalty in penalties]
    inverses = [np.linalg.inv(shape) for shape in shapes]
    centres = np.array([inverse @ sums.moment for inverse in inverses])
    sizes = np.array([np.linalg.slogdet(shape)[1] for shape in shapes])
    logs = 0.5 * (shrunk.sum() * np.log(penalties) - sizes + centres @ sums.moment / noise)
    logs += np.log(SCALES)  # the grid's steps: before the rows are seen, all scales are equally likely
    shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    estimate: Array = shares @ centres
    meat = np.zeros((dim, dim))
    for x, y in batches():
        meat += (x * variances(y, x @ estimate)[:, None]).T @ x
    covariance = np.zeros((dim, dim))
    for share, penalty, centre, inverse in zip(shares, penalties, centres, inverses, strict=True):
        if share > NEGLIGIBLE:
            own = inverse @ (meat + np.diag(noise * penalty * shrunk)) @ inverse
            covariance += share * (own + np.outer(centre - estimate, centre - estimate))
    return Truth(estimate, (covariance + covariance.T) / 2.0)


def _added_up(batches: Batches, dim: int) -> _Sums:
    gram, moment, features, rewards, squares, rows = (
        np.zeros((dim, dim)),
        *np.zeros((2, dim)),
        0.0,
        0.0,
        0,
    )
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


def _shape(gram: Array, penalty: Array) -> Array:
    """Definite even if several features are constant."""
    tiny = ROUNDING * max(float(np.trace(gram)) / len(gram), ROUNDING)
    return np.asarray(gram + np.diag(penalty + tiny))
