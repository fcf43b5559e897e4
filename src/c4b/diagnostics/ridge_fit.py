"""Least squares with a small ridge, and robust standard errors of the coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from c4b._validate import Array

RIDGE = 1e-3
"""Times the mean square of a feature: only so much that collinear features do no harm."""


class Fit(NamedTuple):
    estimate: Array
    inverse: Array
    """Of the (ridged) Gram matrix."""
    meat: Array
    """Sum of squared residual times x xᵀ: the noise need not be the same in all rows."""


@dataclass(frozen=True)
class Effect:
    """The effect of one feature on the mean reward."""

    feature: str
    effect: float
    """Change of the mean reward by one standard deviation of the feature."""
    ratio: float
    """Effect divided by its standard error. Chance alone rarely exceeds 3."""


Batches = Callable[[], Iterable[tuple[Array, Array]]]
"""Makes an iterator over (x, y) of some rows at a time, from the first row each time it is called."""


def estimated(batches: Batches, dim: int) -> tuple[Array, Array]:
    """The estimate and the inverse of the ridged Gram matrix, in one pass over the rows."""
    gram, moment, rows = np.zeros((dim, dim)), np.zeros(dim), 0
    for x, y in batches():
        gram += x.T @ x
        moment += x.T @ y
        rows += len(x)
    scale = RIDGE * max(float(np.trace(gram)) / max(rows * dim, 1), 1e-300)
    inverse: Array = np.linalg.inv(gram + scale * np.eye(dim)).astype(np.float64)
    return inverse @ moment, inverse


def fit_batches(batches: Batches, dim: int) -> Fit:
    """The fit of rows that come in batches, in two passes: nothing but sums is kept."""
    estimate, inverse = estimated(batches, dim)
    meat = np.zeros((dim, dim))
    for x, y in batches():
        meat += (x * np.square(y - x @ estimate)[:, None]).T @ x
    return Fit(estimate, inverse, meat)


def fit(x: Array, y: Array) -> Fit:
    """The fit of rows that are in memory."""
    return fit_batches(lambda: [(x, y)], x.shape[1])


def effects(x: Array, y: Array, names: list[str]) -> list[Effect]:
    """Every feature that is not constant, the strongest first."""
    found = fit(x, y)
    errors = np.sqrt(np.maximum(np.diag(found.inverse @ found.meat @ found.inverse), 1e-300))
    spread = x.std(axis=0)
    made = [
        Effect(name, float(found.estimate[n] * spread[n]), float(found.estimate[n] / errors[n]))
        for n, name in enumerate(names)
        if spread[n] > 0.0
    ]
    return sorted(made, key=lambda each: -abs(each.effect))
