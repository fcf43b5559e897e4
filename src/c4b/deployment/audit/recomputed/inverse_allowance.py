"""The allowance for rounding in the radius of a deployment that keeps the inverse of one ellipsoid.

Rounding errors accumulate over rank-one updates until the inverse is computed again from the sums. So the
allowance depends on the order of the rows, and not on their sums alone: docs/theory.md, section
"Rounding", "One ellipsoid".
"""

from __future__ import annotations

import numpy as np

from c4b._validate import Array

UNIT = 2.0**-53
"""Largest relative error of one operation."""
UPDATES, EARLY_UPDATES, POOR = 64, 16, 1e-8
"""An inverse is computed anew after so many updates, or after the second number if its error exceeds the
third."""
CANCELS = 1e6
"""And at once after a row of so large x V^-1 x."""
REFINED = 2e-3
"""Share of the noise's scale beyond which the rounding of a centre is made smaller."""


class InverseAllowance:
    """Follows the error of an inverse, and of log det, through the rows."""

    def __init__(self, dim: int, ridge: float) -> None:
        self._inverse, self._diagonal = np.eye(dim) / ridge, np.full(dim, ridge)
        self._error = self._log_det = 0.0
        self._before = (0.0, 0.0)
        """Both when the inverse was last computed anew; the deployment may have done it a row later."""
        self._updates = 0

    def add(self, x: Array, gram: Array, ridge: float) -> None:
        """The row x (d,); gram (d, d) of all rows, this one among them."""
        dim, held = len(x), np.diagonal(self._inverse)
        image = self._inverse @ x
        square, leverage = float(x @ image), float(held @ x**2)
        product = dim * (float(held @ self._diagonal) + leverage)
        exposure = dim * leverage / (1.0 + square)
        self._log_det += 1.3 * self._error + 3.0 * (dim + 1) * UNIT * (exposure + 10.0)
        self._error += 9.0 * (dim + 2) * UNIT * (1.0 + exposure) * product
        self._inverse -= np.outer(image, image) / (1.0 + square)
        self._diagonal += x**2
        self._updates += 1
        poor = self._updates >= EARLY_UPDATES and not self._error <= POOR
        if self._updates >= UPDATES or poor or not square <= CANCELS:
            self._before = self._error, self._log_det
            try:
                self._inverse[...] = np.linalg.inv(gram + ridge * np.eye(dim))
            except np.linalg.LinAlgError:  # float64 cannot say
                self._inverse[...] = np.nan
            self._error = self._log_det = 0.0
            self._updates = 0

    def share(self, squares: float, noise: float, radius: float) -> float:
        """About the share of the radius that is added, from the sum of the squares of all rewards."""
        error, log_det = np.maximum(self._before, (self._error, self._log_det)).tolist()
        centre = min(2.2 * error * float(np.sqrt(squares)), REFINED * noise)
        return float(error + (centre + noise * log_det) / radius)
