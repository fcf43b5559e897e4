"""``unbiased``: the noise alone is bounded, without the ridge's bias, within the norm ball.

Assumes A1 to A5 of docs/theory.md. Derived in its section "Four sets": with W = A + l I, on the event (N)
theta lies in the paper's ellipsoid at ridge l, which is the first, and for every a > 0 in the ellipsoid

    V_a = A W^-1 A + a I = A + (a - l) I + l^2 W^-1,  theta_hat_a = V_a^-1 A W^-1 m,
    radius^2 = (sigma gamma + epsilon sqrt(n))^2 + a S^2
               - min over theta of {||m - A theta||^2_{W^-1} + a ||theta||^2}.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._jit import inlined, kernel
from c4b._validate import Array
from c4b.evidence.alarms import root_or_alarm
from c4b.evidence.ellipsoids import (
    COUNT,
    SELF_NORMALIZED,
    UNBIASED,
    Data,
    Region,
    Terms,
    amplification,
    drift,
    first_is_stale,
    gamma_squared,
    inverse_is_poor,
    rank_one,
    rewards_norm,
    ridge_shape_times,
    spread_error,
    write_reach,
    write_ridge_shape,
)
from c4b.evidence.rounding import UNIT, USABLE, downdate_error, sums_error
from c4b.evidence.sets.confidence_set import ConfidenceSet
from c4b.evidence.sets.self_normalized import recentre_self_normalized

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

RIDGE = 3.0
"""l relative to the model's ridge: without a bias to pay it may be larger."""
SHIFTS = 14
"""Multipliers a of the norm constraint at which the dual is evaluated."""
LEAST_REST = 1e-4
"""Share of a determinant below which a downdate cancels too much: the inverse is recomputed at once."""


def _mixing(model: LinearModel) -> float:
    return RIDGE * model.ridge


def _ridges(model: LinearModel) -> Array:
    """l, then a from where the norm constraint widens the noise's bound by less than 1 % to where it is
    nearly alone."""
    least = 0.1 * (model.noise / model.norm_bound) ** 2
    least = min(max(least, 1e-4 * model.ridge), model.ridge)
    return np.concatenate([[_mixing(model)], np.geomspace(least, 1e3 * model.ridge, SHIFTS)])


@kernel
def recentre_unbiased(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centres and radii of all ellipsoids; returns m W^-1 m and the first centre's rounding error."""
    dim, norm, mixing = len(data.moment), rewards_norm(data), data.mixing
    explained, first_rho = recentre_self_normalized(region, data, terms)
    reach = terms.noise * math.sqrt(gamma_squared(data, terms)) + drift(data, terms)
    reach_error = spread_error(data, terms)
    first_size, first_error = 0.0, first_rho / math.sqrt(mixing)
    for i in range(dim):
        first_size += abs(region.estimate[0, i])
    for g in range(1, len(region.radius)):
        ridge = data.ridges[g]
        carried = mixing * data.inverse_error[0] / ridge  # W^-1 is part of V_g
        inverse_error = 1.34 * (data.inverse_error[g] + carried) if carried <= USABLE else np.inf
        product = amplification(region, data, g)
        total = 0.0
        for i in range(dim):
            total += region.inverse[g, i, i] * (data.gram[i, i] + ridge + 2.0 * mixing)
        loss = sums_error(dim, data.tally[COUNT], math.sqrt(product * dim * total))
        rho = norm * (1.1 * inverse_error + 4.0 * loss) + 1.05 * math.sqrt(mixing / ridge) * first_rho
        level = reach**2 + ridge * terms.norm_bound**2
        least, size = _least(region, data, g)
        own_error, both = rho / math.sqrt(ridge), ridge + mixing
        error = both * (first_size * own_error + first_error * (size + own_error))
        error += 2.0 * mixing * first_error * (first_size + first_error)
        error += first_size * mixing * data.inverse_error[0] * size
        error += 4.0 * (dim + 4) * UNIT * first_size * dim * 2.0 * both * (size + first_size)
        error = 1.2 * error + 8.0 * UNIT * level + reach_error * (2.0 * reach + reach_error)
        region.radius[g], radius = root_or_alarm(data, level - least, error)
        write_reach(region, g, radius, rho, inverse_error, product)
    return explained, first_rho


@inlined
def _least(region: Region, data: Data, g: int) -> tuple[float, float]:
    """Write theta_hat_g; returns the smallest value of ||m - A theta||^2_{W^-1} + a ||theta||^2, and
    sum |theta_hat_g|.

    The minimum is at theta_hat_g = V_g^-1 A W^-1 m with A W^-1 m = m - l theta_hat_0. There it equals
    a t_0 t_g + l t_0 (t_0 - t_g + l W^-1 t_g), t short for theta_hat: no large terms that cancel.
    """
    dim = len(data.moment)
    first, own = region.estimate[0], region.estimate[g]
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * (data.moment[j] - data.mixing * first[j])
        own[i] = total
    least, size = 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[0, i, j] * own[j]
        rest = first[i] - own[i] + data.mixing * total
        least += (data.ridges[g] * own[i] + data.mixing * rest) * first[i]
        size += abs(own[i])
    return least, size


@kernel
def update_unbiased(region: Region, data: Data, x: Array) -> bool:
    """x into every V_g and into log det; whether the inverses should be recomputed.

    It adds x x^T - l^2 w w^T / (1 + x w) to V_g, w = W^-1 x from before: two rank-one steps.
    """
    stale, square = first_is_stale(region, data, x)
    stale |= inverse_is_poor(data, 0)
    share = data.mixing**2 * (1.0 / (1.0 + square))
    for g in range(1, len(region.radius)):
        rank_one(region, data, g, x)
        stale |= not _take_back(region, data, g, x, share) >= LEAST_REST
        stale |= inverse_is_poor(data, g)
    return stale


@inlined
def _take_back(region: Region, data: Data, g: int, x: Array, share: float) -> float:
    """V_g -= share w w^T with w in estimate[0]; estimate[g] is scratch.

    Returns what is left of det V_g: near 0 the inverse has lost as many digits.
    """
    dim = region.estimate.shape[1]
    w, image = region.estimate[0], region.estimate[g]
    own = data.ridges[g]  # V_g <= A + a I
    square, spread, product = 0.0, 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * w[j]
        image[i] = total
        square += total * w[i]
        spread += region.inverse[g, i, i] * w[i] * w[i]
        product += region.inverse[g, i, i] * (data.gram[i, i] + x[i] * x[i] + own)
    rest = 1.0 - share * square
    grow = share / rest
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] += image[i] * image[j] * grow
    lost = downdate_error(dim, dim * product, dim * share * spread, rest)
    kept = 6.0 * dim * UNIT * data.mixing / data.ridges[g]
    data.inverse_error[g] = data.inverse_error[g] / rest + lost + kept
    return rest


@kernel
def write_unbiased_shape(region: Region, data: Data, g: int) -> None:
    """V_g in the place of V_g^-1; W^-1 is in the first place already."""
    dim = len(data.moment)
    write_ridge_shape(region, data, g)
    if g > 0:
        for i in range(dim):
            for j in range(dim):
                region.inverse[g, i, j] += data.mixing**2 * region.inverse[0, i, j]
            region.inverse[g, i, i] -= data.mixing


@kernel
def unbiased_shape_times(region: Region, data: Data, g: int, theta: Array, i: int) -> float:
    """Entry i of V_g (theta - estimate_g)."""
    total = ridge_shape_times(region, data, g, theta, i)
    if g > 0:
        total -= data.mixing * (theta[i] - region.estimate[g, i])
        for j in range(len(theta)):
            part = region.inverse[0, i, j] * (theta[j] - region.estimate[g, j])
            total += data.mixing**2 * part
    return total


SET = ConfidenceSet(
    "unbiased",
    "the noise alone, within the norm ball: the smallest where data are few",
    _ridges,
    UNBIASED,
    stored_code=SELF_NORMALIZED,
    mixing=_mixing,
)
