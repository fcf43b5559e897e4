"""Tests whether the noise is within the declared scale."""

from __future__ import annotations

import math

import numpy as np
import scipy

from c4b._validate import Array
from c4b.diagnostics.finding import Finding


def noise_scale(residuals: Array, noise: float, delta: float) -> Finding:
    """σ-sub-Gaussian noise has a variance of at most σ², and n of it rarely exceed σ√(2 log(2n/δ))."""
    squares = np.square(residuals)
    half_width = float(scipy.stats.norm.isf(delta / 2.0)) * float(squares.std()) / math.sqrt(len(squares))
    low, high = (math.sqrt(max(squares.mean() + side * half_width, 0.0)) for side in (-1.0, 1.0))
    largest = float(np.abs(residuals).max())
    limit = noise * math.sqrt(2.0 * math.log(2.0 * len(residuals) / delta))
    said = (
        f"standard deviation of residuals between {low:.3g} and {high:.3g}, declared {noise:.3g}; "
        f"largest residual {largest:.3g}, plausible up to {limit:.3g}"
    )
    remedy = ""
    if low > noise or largest > limit:
        least = max(high, noise * largest / limit)
        remedy = (
            f"Declare a noise of at least {least:.2g}; for rewards in [l, u], (u - l)/2 is always valid."
        )
    return Finding("Is the noise within the declared scale?", not remedy, said, remedy)
