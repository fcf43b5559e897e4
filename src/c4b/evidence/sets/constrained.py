"""``constrained``: the mixture's event before ||theta|| <= S is used, intersected with the norm ball.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": on the event (E) theta lies, for
every a > 0, in the ellipsoid

    V_a = A + a I,  theta_hat_a = V_a^-1 m,  radius^2 = sigma^2 gamma^2 - m V^-1 m + m V_a^-1 m + a S^2.

a = lambda is the mixture's. With declared misspecification (epsilon > 0) only that one is proven, so it
is the only one and the set is the mixture set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.alarms import root_or_alarm
from c4b.evidence.ellipsoids import CONSTRAINED, MIXTURE, Data, Region, Terms, gamma_squared, ridge_centre
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
def recentre_constrained(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns m V^-1 m.

    m V_g^-1 m - m V^-1 m = (lambda - a_g) theta_hat_g @ theta_hat: no large terms that cancel.
    """
    explained = ridge_centre(region, data, 0)
    for g in range(len(region.radius)):
        ridge, gain = data.ridges[g], 0.0
        if g > 0:
            ridge_centre(region, data, g)
        for i in range(len(data.moment)):
            gain += (data.ridges[0] - ridge) * region.estimate[g, i] * region.estimate[0, i]
        square = terms.noise**2 * gamma_squared(data, terms) + ridge * terms.norm_bound**2 + gain
        region.radius[g] = root_or_alarm(data, square)
    return explained


SET = ConfidenceSet(
    "constrained", "the mixture's event within the norm ball", _ridges, CONSTRAINED, stored_code=MIXTURE
)
