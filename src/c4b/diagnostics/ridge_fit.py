"""Least squares with a little ridge, and how sure its coefficients are whatever the noise is."""

from __future__ import annotations

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
    """How much a feature moves the mean."""

    feature: str
    effect: float
    """Change of the mean reward by one standard deviation of the feature."""
    ratio: float
    """Effect divided by its standard error; beyond 3 it is hardly chance."""


def fit(x: Array, y: Array) -> Fit:
    scale = RIDGE * max(float(np.mean(np.square(x))), 1e-300)
    inverse: Array = np.linalg.inv(x.T @ x + scale * np.eye(x.shape[1])).astype(np.float64)
    estimate = inverse @ (x.T @ y)
    residuals = y - x @ estimate
    return Fit(estimate, inverse, (x * np.square(residuals)[:, None]).T @ x)


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
