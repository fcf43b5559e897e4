"""``mixture``: the paper's ellipsoid with a radius that is never larger, under the same assumptions.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": by the event (E) and A3,

    V = A + lambda I,  theta_hat = V^-1 m,  radius = sqrt(sigma^2 gamma^2 + lambda S^2) + epsilon sqrt(n)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._jit import inlined
from c4b._validate import Array
from c4b.evidence.ellipsoids import MIXTURE, Data, Region, Terms, drift, gamma_squared
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
def recentre_mixture(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centre and radius of the only ellipsoid; returns m V^-1 m and the centre's rounding error."""
    explained, rho = ridge_centre(region, data, terms, 0, rewards_norm(data))
    square = terms.noise**2 * gamma_squared(data, terms) + data.ridges[0] * terms.norm_bound**2
    radius = math.sqrt(square) + drift(data, terms)
    region.radius[0] = radius
    product = amplification(region, data, 0)
    write_reach(region, 0, radius + spread_error(data, terms), rho, data.inverse_error[0], product)
    return explained, rho


SET = ConfidenceSet("mixture", "the same ellipsoid, never larger", _ridges, MIXTURE)
