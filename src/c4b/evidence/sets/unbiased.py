"""``unbiased``: the noise alone is bounded, without the ridge's bias, within the norm ball.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": with W = A + l I, on the event (N)
theta lies in the paper's ellipsoid at ridge l, which is the first, and for every a > 0 in the ellipsoid

    V_a = A W^-1 A + a I,  theta_hat_a = V_a^-1 A W^-1 m,
    radius^2 = (sigma gamma + epsilon sqrt(n))^2 + a S^2
               - min over theta of {||m - A theta||^2_{W^-1} + a ||theta||^2}.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._compilation.jit import called
from c4b._validate import Array
from c4b.evidence.eigenbasis.spectral import (
    explained_at_most,
    log_det,
    lose,
    perturbed,
    turned_moment,
    write_radius,
    write_slack,
)
from c4b.evidence.ellipsoids import (
    LOG_DET,
    SELF_NORMALIZED,
    UNBIASED,
    Data,
    Region,
    Terms,
    drift,
    gamma_squared,
)
from c4b.evidence.sets.confidence_set import ConfidenceSet

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

RIDGE = 3.0
"""l relative to the model's ridge: without a bias to pay it may be larger."""
SHIFTS = 14
"""Multipliers a of the norm constraint at which the dual is evaluated."""


def _mixing(model: LinearModel) -> float:
    return RIDGE * model.ridge


def _ridges(model: LinearModel) -> Array:
    """l, then a from where the norm constraint widens the noise's bound by less than 1 % to where it is
    nearly alone."""
    least = 0.1 * (model.noise / model.norm_bound) ** 2
    least = min(max(least, 1e-4 * model.ridge), model.ridge)
    return np.concatenate([[_mixing(model)], np.geomspace(least, 1e3 * model.ridge, SHIFTS)])


@called
def recentre_unbiased(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns an upper bound of m W^-1 m."""
    far, moment_error = turned_moment(region, data)
    if not far < np.inf:
        lose(region)
        return np.nan
    values, moment, mixing = data.spectrum.values, data.spectrum.moment, data.ridges[0]
    data.tally[LOG_DET] = log_det(data, mixing, far)
    reach = terms.noise * math.sqrt(gamma_squared(data, terms)) + drift(data, terms)
    reach = perturbed(data, terms, mixing, reach, far, moment_error)
    explained = 0.0
    for i in range(len(values)):
        weight = 1.0 / (values[i] + mixing)
        region.factors[0, i] = weight
        region.estimate[0, i] = weight * moment[i]
        explained += weight * moment[i] * moment[i]
    write_radius(region, data, 0, (reach + math.sqrt(mixing) * terms.norm_bound) ** 2, 0.0)
    for g in range(1, len(region.radius)):
        least, ridge = 0.0, data.ridges[g]
        for i in range(len(values)):
            weight = region.factors[0, i]
            factor = 1.0 / (values[i] * weight * values[i] + ridge)
            region.factors[g, i] = factor
            region.estimate[g, i] = values[i] * weight * moment[i] * factor
            least += ridge * factor * weight * moment[i] * moment[i]
        write_radius(region, data, g, reach**2 + ridge * terms.norm_bound**2, least)
    write_slack(region, data, terms)
    return explained_at_most(data, mixing, explained, far, moment_error)


SET = ConfidenceSet(
    "unbiased",
    "the noise alone, within the norm ball: the smallest where data are few",
    _ridges,
    UNBIASED,
    stored_code=SELF_NORMALIZED,
    mixing=_mixing,
)
