"""``self-normalized``: the paper's set, one ellipsoid with the radius (6).

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets" as what the triangle inequality
leaves of the event (N) at ridge lambda.

    V = A + lambda I,  theta_hat = V^-1 m,  radius = sigma gamma + sqrt(lambda) S + epsilon sqrt(n)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._jit import inlined
from c4b._validate import Array
from c4b.evidence.ellipsoids import SELF_NORMALIZED, Data, Region, Terms, drift, gamma_squared
from c4b.evidence.ridge_inverses import (
    amplification,
    rewards_norm,
    ridge_centre,
    spread_error,
    write_reach,
)
from c4b.evidence.sets.confidence_set import ConfidenceSet

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel


def _ridges(model: LinearModel) -> Array:
    return np.array([model.ridge])


@inlined
def recentre_self_normalized(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centre and radius of the first ellipsoid; returns m V^-1 m and the centre's rounding error."""
    explained, rho = ridge_centre(region, data, terms, 0, rewards_norm(data))
    radius = terms.noise * math.sqrt(gamma_squared(data, terms))
    radius = radius + math.sqrt(data.ridges[0]) * terms.norm_bound + drift(data, terms)
    region.radius[0] = radius
    product = amplification(region, data, 0)
    write_reach(region, 0, radius + spread_error(data, terms), rho, data.inverse_error[0], product)
    return explained, rho


SET = ConfidenceSet("self-normalized", "the paper's radius", _ridges, SELF_NORMALIZED)
