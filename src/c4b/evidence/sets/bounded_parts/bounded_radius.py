"""The radius R of (B): R^2 + 2 log Q_d(R, c) = level, solved from above."""

import math

import numpy as np

from c4b._compilation.jit import inlined
from c4b.evidence.sets.bounded_parts.bounded_versions import SAFE, SCALES, reach_squared
from c4b.evidence.sets.bounded_parts.learned_statistics import UNIT_POWER, Learned

LARGEST = 650.0
"""Largest logarithm of (B) that is solved; beyond it the set says nothing but the norm ball."""


@inlined
def write_series(learned: Learned, version: int, dim: int) -> None:
    """exp(z) Q_d(sqrt(2 z), c) = sum over k of P(d/2 + k, c^2/2) z^k / k!, P the regularised incomplete
    gamma function. Every term is positive; P comes from its recursion downwards, a sum."""
    last = learned.series.shape[1] - 1
    unit = (last + 1) / math.e
    learned.sums[UNIT_POWER] = unit
    for j in range(SCALES):
        y = 0.5 * reach_squared(version, dim, j)
        a = 0.5 * dim + last
        step = math.exp(a * math.log(y) - y - math.lgamma(a + 1.0))
        probability = step
        for n in range(1, 200):
            step *= y / (a + n)
            probability += step
        for k in range(last, -1, -1):
            scaled = k * math.log(unit) - math.lgamma(k + 1.0)
            learned.series[j, k] = probability * math.exp(scaled)
            a = 0.5 * dim + k - 1.0
            if k > 0:
                probability += math.exp(a * math.log(y) - y - math.lgamma(a + 1.0))


@inlined
def solved_radius(learned: Learned, j: int, level: float) -> float:
    """At least the R with R^2 + 2 log Q_d(R, c) = level at scale j; inf beyond LARGEST.

    The logarithm of the series is convex and increasing in log z, so Newton's iterates after the first
    lie above the root.
    """
    if not 0.5 * level <= LARGEST:
        return np.inf
    series, unit = learned.series[j], learned.sums[UNIT_POWER]
    z = max(0.5 * level, 1e-3) / unit
    for n in range(100):
        value, slope = 0.0, 0.0
        for k in range(len(series) - 1, -1, -1):
            slope = slope * z + value
            value = value * z + series[k]
        excess = math.log(value) - 0.5 * level
        if n > 0 and 0.0 <= excess <= 1e-8:
            break
        if -1e-9 < excess < 0.0:  # nothing but rounding
            z *= 1.0 + 1e-11
            continue
        z *= math.exp(min(-excess * value / (slope * z), 3.0))
    return math.sqrt(2.0 * unit * z) * SAFE if excess >= 0.0 else np.inf
