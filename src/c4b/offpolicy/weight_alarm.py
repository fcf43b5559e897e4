"""Detects weights that do not have mean 1: the propensities are wrong, or do not cover the policy."""

from __future__ import annotations

import math

import numpy as np

from c4b._validate import Array

LEVEL = 1e-3
"""The probability of an alarm although all weights have mean 1."""
SIZES = (1.0, 0.3, 0.1, 0.03)
BLOCK = 4096  # rows


class WeightAlarm:
    """The mean wealth of a few fixed stakes on the weight.

    It grows without bound if the weights' mean is not 1.

    Without a largest weight, only a mean above 1 can be detected.
    """

    def __init__(self, max_weight: float) -> None:
        stakes = [0.5 * size for size in SIZES]
        if math.isfinite(max_weight):
            stakes += [-min(0.5 / max(max_weight - 1.0, 1e-9), 5.0) * size for size in SIZES]
        self.stakes = np.array(stakes)
        self.wealth = np.zeros(len(stakes))  # logarithms
        self.raised = False

    @np.errstate(under="ignore")  # shares of stakes that lost all
    def extend(self, weights: Array) -> None:
        """Take further rows in order."""
        for start in range(0, len(weights), BLOCK):
            u = weights[start : start + BLOCK] - 1.0
            gains = np.log1p(np.multiply.outer(u, self.stakes))
            paths = np.add.accumulate(np.vstack([self.wealth, gains]), axis=0)[1:]
            best = paths.max(axis=1)
            mean = best + np.log(np.exp(paths - best[:, None]).mean(axis=1))
            self.raised = self.raised or bool(np.any(mean >= math.log(1.0 / LEVEL)))
            self.wealth = paths[-1]
