"""Effective sample size of a weighted log."""

from __future__ import annotations

import numpy as np

from c4b._validate import Array


def effective_sample_size(weights: Array) -> float:
    """Kish's ``(sum w)² / sum w²``: n for equal weights, 1 for a single weight, 0 if all weights are 0.

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    total, squares = float(np.sum(weights)), float(np.sum(np.square(weights)))
    return total * total / squares if squares > 0.0 else 0.0
