"""The best multiplier of ``constrained`` for one question, by bisection."""

import math

import numpy as np

from c4b._compilation.jit import called
from c4b._validate import Array
from c4b.evidence.ellipsoids import Data, Region, Terms
from c4b.evidence.sets.constrained import write_shifted

BISECTIONS = 48
"""Multipliers that are tried at most."""
ENOUGH = 1e-8
"""Share of sigma^2 gamma^2 below which a S^2 does not count: a smaller a gains nothing."""


@called
def refine_multiplier(
    region: Region, data: Data, terms: Terms, turned: Array, a: float, spread: float
) -> float:
    """The best multiplier of ``constrained`` from ``a`` on, as the first ellipsoid of ``region``.

    In log a the bound rises as long as its minimiser is longer than S, and falls beyond.
    """
    low, high, best, highest = 0.0, np.inf, a, -np.inf
    for _ in range(BISECTIONS):
        write_shifted(region, data, terms, a, 0, spread)
        centre, square, length = 0.0, 0.0, 0.0
        for i in range(len(turned)):
            centre += turned[i] * region.estimate[0, i]
            square += turned[i] * turned[i] * region.factors[0, i]
        ratio = region.reach[0] / math.sqrt(square)
        for i in range(len(turned)):
            length += (region.estimate[0, i] - ratio * turned[i] * region.factors[0, i]) ** 2
        value = centre - region.reach[0] * math.sqrt(square)
        if not value < np.inf or a * terms.norm_bound**2 < ENOUGH * spread:
            break
        if value > highest:
            best, highest = a, value
        if length > terms.norm_bound**2:
            low = a
        else:
            high = a
        if low > 0.0 and high < np.inf:
            a = math.sqrt(low * high)
        else:
            a *= 4.0 if low > 0.0 else 0.25
    write_shifted(region, data, terms, best, 0, spread)
    return best
