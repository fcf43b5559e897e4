"""``constrained``: the mixture's event before ||theta|| <= S is used, intersected with the norm ball.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": on the event (E) theta lies, for
every a > 0, in the ellipsoid

    V_a = A + a I,  theta_hat_a = V_a^-1 m,  radius^2 = sigma^2 gamma^2 - m V^-1 m + m V_a^-1 m + a S^2.

a = lambda is the mixture's. With declared misspecification (epsilon > 0) only that one is proven, so it
is the only one and the set is the mixture set.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.alarms import root_or_alarm
from c4b.evidence.ellipsoids import (
    CONSTRAINED,
    MIXTURE,
    Data,
    Region,
    Terms,
    amplification,
    gamma_squared,
    rewards_norm,
    ridge_centre,
    write_reach,
)
from c4b.evidence.rounding import UNIT
from c4b.evidence.sets.confidence_set import ConfidenceSet

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

GRID = np.logspace(-3.0, 5.0, 21)
"""Multipliers a of the norm constraint, relative to the ridge, at which the dual is evaluated besides the
ridge itself. Each is sound by itself, so the grid decides tightness only; the largest is nearly the norm
ball alone."""


def _ridges(model: LinearModel) -> Array:
    if model.misspecification > 0.0:
        return np.array([model.ridge])
    return np.concatenate([[model.ridge], model.ridge * GRID])


@kernel
def recentre_constrained(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centres and radii of all ellipsoids; returns m V^-1 m and the first centre's rounding error.

    m V_g^-1 m - m V^-1 m = (lambda - a_g) theta_hat_g @ theta_hat: no large terms that cancel.
    """
    dim, norm, variance = len(data.moment), rewards_norm(data), terms.noise**2
    spread = variance * gamma_squared(data, terms)
    explained, first_rho = ridge_centre(region, data, terms, 0, norm)
    first_size, first_error = 0.0, first_rho / math.sqrt(data.ridges[0])
    for i in range(dim):
        first_size += abs(region.estimate[0, i])
    for g in range(len(region.radius)):
        ridge, gain, rho = data.ridges[g], 0.0, first_rho
        if g > 0:
            _, rho = ridge_centre(region, data, terms, g, norm)
        size, apart = 0.0, data.ridges[0] - ridge
        for i in range(dim):
            gain += apart * region.estimate[g, i] * region.estimate[0, i]
            size += abs(region.estimate[g, i])
        square = spread + ridge * terms.norm_bound**2 + gain
        own_error = rho / math.sqrt(ridge)
        error = own_error * (first_size + first_error) + first_error * size
        error = 1.2 * abs(apart) * (error + 2.0 * (dim + 4) * UNIT * size * first_size)
        error += variance * data.log_det_error[0] + 8.0 * UNIT * (spread + ridge * terms.norm_bound**2)
        region.radius[g], radius = root_or_alarm(data, square, error)
        write_reach(region, g, radius, rho, data.inverse_error[g], amplification(region, data, g))
    return explained, first_rho


SET = ConfidenceSet(
    "constrained", "the mixture's event within the norm ball", _ridges, CONSTRAINED, stored_code=MIXTURE
)
