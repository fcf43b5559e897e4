"""``self-normalized``: the paper's set, one ellipsoid with the radius (6).

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets" as what the triangle inequality
leaves of the event (N) at ridge lambda.

    V = A + lambda I,  theta_hat = V^-1 m,  radius = sigma gamma + sqrt(lambda) S + epsilon sqrt(n)
"""

import math

from c4b._compilation.jit import inlined
from c4b.evidence.arithmetic.ridge_inverses import write_one_ellipsoid
from c4b.evidence.ellipsoids import SELF_NORMALIZED, Data, Region, Terms, drift, gamma_squared
from c4b.evidence.sets.confidence_set import ConfidenceSet, one_ridge


@inlined
def recentre_self_normalized(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centre and radius of the first ellipsoid; returns m V^-1 m and the centre's rounding error."""
    radius = terms.noise * math.sqrt(gamma_squared(data, terms))
    radius = radius + math.sqrt(data.ridges[0]) * terms.norm_bound + drift(data, terms)
    return write_one_ellipsoid(region, data, terms, radius)


SET = ConfidenceSet("self-normalized", "the paper's radius", one_ridge, SELF_NORMALIZED)
