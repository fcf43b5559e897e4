"""``mixture``: the paper's ellipsoid with a radius that is never larger, under the same assumptions.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": by the event (E) and A3,

    V = A + lambda I,  theta_hat = V^-1 m,  radius = sqrt(sigma^2 gamma^2 + lambda S^2) + epsilon sqrt(n)
"""

import math

from c4b._compilation.jit import inlined
from c4b.evidence.arithmetic.ridge_inverses import write_one_ellipsoid
from c4b.evidence.ellipsoids import MIXTURE, Data, Region, Terms, drift, gamma_squared
from c4b.evidence.sets.confidence_set import ConfidenceSet, one_ridge


@inlined
def recentre_mixture(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centre and radius of the only ellipsoid; returns m V^-1 m and the centre's rounding error."""
    square = terms.noise**2 * gamma_squared(data, terms) + data.ridges[0] * terms.norm_bound**2
    radius = math.sqrt(square) + drift(data, terms)
    return write_one_ellipsoid(region, data, terms, radius)


SET = ConfidenceSet("mixture", "the same ellipsoid, never larger", one_ridge, MIXTURE)
