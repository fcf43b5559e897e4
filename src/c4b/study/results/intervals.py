"""Means and intervals over episodes, which are the only replications: settings share their draws."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from c4b._validate import Array


class Estimate(NamedTuple):
    """A mean over n episodes with its Student-t interval."""

    mean: float
    se: float
    low: float
    high: float
    n: int


def student(values: Array, level: float = 0.95) -> Estimate:
    """Mean, standard error and two-sided t interval of values (n,); n >= 2."""
    n = len(values)
    mean = float(np.mean(values))
    se = float(np.std(values, ddof=1)) / math.sqrt(n)
    half = float(scipy.stats.t.ppf(0.5 + level / 2.0, n - 1)) * se
    return Estimate(mean, se, mean - half, mean + half, n)


def paired(first: Array, second: Array, level: float = 0.95) -> Estimate:
    """Interval of mean(first - second), episode by episode."""
    return student(first - second, level)


def student_from_sums(total: Array, squares: Array, n: int) -> tuple[Array, Array]:
    """Means and 95 % half-widths from sums and sums of squares over n episodes, elementwise."""
    mean = total / n
    variance = np.maximum(squares - total * mean, 0.0) / (n - 1)
    half: Array = float(scipy.stats.t.ppf(0.975, n - 1)) * np.sqrt(variance / n)
    return mean, half


def binomial_upper(failures: int, n: int, level: float = 0.95) -> float:
    """One-sided exact (Clopper-Pearson) upper bound of a failure probability.

    >>> round(100 * binomial_upper(0, 256), 2)
    1.16
    """
    if failures >= n:
        return 1.0
    return float(scipy.stats.beta.ppf(level, failures + 1, n - failures))
