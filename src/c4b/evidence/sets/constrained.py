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

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.spectral import (
    explained_at_most,
    log_det,
    lose,
    perturbed,
    turned_moment,
    write_radius,
    write_slack,
)
from c4b.evidence.ellipsoids import CONSTRAINED, LOG_DET, MIXTURE, Data, Region, Terms, gamma_squared
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


@called
def recentre_constrained(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns an upper bound of m V^-1 m.

    m V_a^-1 m - m V^-1 m = (lambda - a) sum n_i^2 / ((values_i + lambda) (values_i + a)) has terms of
    one sign. Rounding enlarges ||m - V theta||_{V^-1} <= T, T^2 = sigma^2 gamma^2 + lambda S^2, as it
    does the radius of the noise, so sigma^2 gamma^2 grows by the growth of T^2.
    """
    far, moment_error = turned_moment(region, data)
    if not far < np.inf:
        lose(region)
        return np.nan
    values, moment, own = data.spectrum.values, data.spectrum.moment, data.ridges[0]
    data.tally[LOG_DET] = log_det(data, own, far)
    spread = noise_spread(data, terms, far, moment_error)
    explained = 0.0
    for i in range(len(values)):
        explained += moment[i] * moment[i] / (values[i] + own)
    for g in range(len(region.radius)):
        write_shifted(region, data, terms, data.ridges[g], g, spread)
    write_slack(region, data, terms)
    return explained_at_most(data, own, explained, far, moment_error)


@inlined
def noise_spread(data: Data, terms: Terms, far: float, moment_error: float) -> float:
    """sigma^2 gamma^2, enlarged by what rounding can have done; log det is written."""
    own = data.ridges[0]
    total = math.sqrt(terms.noise**2 * gamma_squared(data, terms) + own * terms.norm_bound**2)
    total = perturbed(data, terms, own, total, far, moment_error)
    spread: float = total**2 * (1.0 + 8.0 * UNIT) - own * terms.norm_bound**2
    return spread


@inlined
def write_shifted(region: Region, data: Data, terms: Terms, ridge: float, g: int, spread: float) -> None:
    """Factors, centre and radius of ellipsoid g with the multiplier a = ``ridge``."""
    values, moment, own = data.spectrum.values, data.spectrum.moment, data.ridges[0]
    gain = 0.0
    for i in range(len(values)):
        factor = 1.0 / (values[i] + ridge)
        region.factors[g, i] = factor
        region.estimate[g, i] = factor * moment[i]
        gain += factor * moment[i] * moment[i] / (values[i] + own)
    level, gain = spread + ridge * terms.norm_bound**2, (own - ridge) * gain
    write_radius(region, data, g, level + max(gain, 0.0), max(-gain, 0.0))


SET = ConfidenceSet(
    "constrained", "the mixture's event within the norm ball", _ridges, CONSTRAINED, stored_code=MIXTURE
)
