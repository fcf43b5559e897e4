"""``several-ridges``: the noise is bounded at fifteen ridges at once; nobody has to choose the right one.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Several ridges": with W_j = A + l_j I and
fixed weights w_j, on one event of probability 1 - delta, for every mix p (p_j >= 0, sum 1) at once,

    sum_j p_j ||m - A theta||^2_{W_j^-1} <= R_p^2
    = sigma^2 [2 log(1/delta) + sum_j p_j log det(W_j / l_j) + 2 sum_j p_j log(p_j / w_j)].        (M)

Mixes p and multipliers a of the norm constraint may therefore be chosen from the data, afresh each time.
All W_j have the eigenvectors of A. With A = Q diag(Lambda) Q^T and mu = Q^T m, each pair (p, a) gives the
ellipsoid

    F_i = sum_j p_j / (Lambda_i + l_j),  V_i = F_i Lambda_i^2 + a,  centre_i = F_i Lambda_i mu_i / V_i,
    radius^2 = (R_p + epsilon sqrt(n))^2 + a S^2 - a sum_i F_i mu_i^2 / V_i.

The folder ``several_ridges_parts`` has the ridges and chooses mixes and multipliers. A choice decides
tightness, never soundness, so it is made afresh only when the observations have grown by RENEW of their
number.
Shapes: J = RIDGES ridges, G = ELLIPSOIDS ellipsoids, d features.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._compilation.jit import called, inlined, quotients
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.spectral import (
    explained_at_most,
    lose,
    turned_moment,
    write_radii,
    write_slack,
)
from c4b.evidence.ellipsoids import COUNT, LOG_DET, SEVERAL_RIDGES, Data, Region, Terms, drift
from c4b.evidence.sets.confidence_set import ConfidenceSet
from c4b.evidence.sets.several_ridges_parts.mix_choice import (
    ELLIPSOIDS,
    Choice,
    choice_size,
    opened_choice,
    write_choice,
)
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import (
    FAVOURED,
    RIDGES,
    mixed_spread,
    write_log_dets,
    write_ridges,
)

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

RENEW = 0.0625
"""Share by which the observations grow before mixes and multipliers are chosen afresh."""


@called
def recentre_several_ridges(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns an upper bound of m (A + lambda I)^-1 m."""
    far, moment_error = turned_moment(region, data)
    if not far < np.inf:
        lose(region)
        return np.nan
    values, moment, ridge = data.spectrum.values, data.spectrum.moment, data.ridges[0]
    choice, count = opened_choice(data.extra), data.tally[COUNT]
    if choice.ridges[0] == 0.0:
        write_ridges(ridge, terms, choice.ridges, choice.log_weights)
        choice.chosen_at[0] = -1.0
    write_log_dets(values, far, choice.ridges, choice.log_dets)
    if not choice.chosen_at[0] <= count < (1.0 + RENEW) * choice.chosen_at[0]:
        write_choice(values, moment, count, choice, terms)
        choice.chosen_at[0] = count
    data.tally[LOG_DET] = choice.log_dets[FAVOURED]
    reach = 0.0
    for g in range(ELLIPSOIDS):
        if g == 0 or not _same_mix(choice, g):
            _write_weights(data, choice, g)
            reach = _perturbed(data, terms, choice, g, far, moment_error)
        parts = write_ellipsoid(region, data, choice.multipliers[g], g, reach, terms)
        region.radius[g], region.reach[g] = parts
    write_radii(region, data)
    write_slack(region, data, terms)
    explained = 0.0
    for i in range(len(values)):
        explained += moment[i] * moment[i] / (values[i] + ridge)
    return explained_at_most(data, ridge, explained, far, moment_error)


@inlined
def _same_mix(choice: Choice, g: int) -> bool:
    same = True
    for j in range(RIDGES):
        same &= choice.mixes[g, j] == choice.mixes[g - 1, j]
    return same


@inlined
def _perturbed(
    data: Data, terms: Terms, choice: Choice, g: int, far: float, moment_error: float
) -> float:
    """R_p + epsilon sqrt(n) for the mix of ellipsoid g, enlarged by what rounding can have done.

    As ``spectral.perturbed``, with the smallest ridge of the mix in the first term and F, which is
    written, in the second.
    """
    least, weight = np.inf, data.spectrum.fitted[0]  # of the smallest eigenvalue
    for j in range(RIDGES):
        if choice.mixes[g, j] > 0.0:
            least = min(least, data.spectrum.values[0] + choice.ridges[j])
    square = mixed_spread(choice.mixes, g, choice.log_dets, choice.log_weights, terms)
    radius = math.sqrt(square) + drift(data, terms)
    more = (far * terms.norm_bound + moment_error) * math.sqrt(weight)
    return (math.sqrt(1.0 + far / least) * radius + more) * (1.0 + 64.0 * UNIT)


@inlined
def _write_weights(data: Data, choice: Choice, g: int) -> None:
    """F_i for the mix of ellipsoid g, into the working space of the spectrum."""
    values, weights = data.spectrum.values, data.spectrum.fitted
    fours = len(values) // 4 * 4
    for i in range(len(values)):
        weights[i] = 0.0
    for j in range(RIDGES):
        part, ridge = choice.mixes[g, j], choice.ridges[j]
        if part > 0.0:
            for i in range(0, fours, 4):
                a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
                shapes = a + ridge, b + ridge, c + ridge, d + ridge
                a, b, c, d = quotients((part, part, part, part), shapes)
                weights[i] += a
                weights[i + 1] += b
                weights[i + 2] += c
                weights[i + 3] += d
            for i in range(fours, len(values)):
                weights[i] += part / (values[i] + ridge)


@inlined
def write_ellipsoid(
    region: Region, data: Data, a: float, g: int, reach: float, terms: Terms
) -> tuple[float, float]:
    """Factors and centre of ellipsoid g with multiplier a; F is written. Returns what its squared radius
    is a difference of."""
    values, moment = data.spectrum.values, data.spectrum.moment
    least = 0.0
    for i in range(len(values)):
        weight = data.spectrum.fitted[i]
        factor = 1.0 / (values[i] * weight * values[i] + a)
        region.factors[g, i] = factor
        region.estimate[g, i] = values[i] * weight * moment[i] * factor
        least += a * factor * weight * moment[i] * moment[i]
    return reach**2 + a * terms.norm_bound**2, least


def _ridges(model: LinearModel) -> Array:
    """Lambda for every ellipsoid: it only scales the ridges, and is the one that alarms use."""
    return np.full(ELLIPSOIDS, model.ridge)


SET = ConfidenceSet(
    "several-ridges",
    "the noise alone at fifteen ridges at once, within the norm ball: no ridge to choose",
    _ridges,
    SEVERAL_RIDGES,
    extra_size=choice_size,
)
