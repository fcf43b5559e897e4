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

The second half of this file chooses ridges, weights, mixes and multipliers. A choice decides tightness,
never soundness, so it is made afresh only when the observations have grown by RENEW of their number.
Shapes: J = RIDGES ridges, G = ELLIPSOIDS ellipsoids, d features.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from c4b._jit import called, inlined, quotients
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.ellipsoids import COUNT, LOG_DET, SEVERAL_RIDGES, Data, Region, Terms, drift
from c4b.evidence.rounding import UNIT
from c4b.evidence.sets.confidence_set import ConfidenceSet
from c4b.evidence.spectral import (
    explained_at_most,
    lose,
    turned_moment,
    write_radii,
    write_slack,
)

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

FIRST = 3.0
"""The first of two favoured ridges in units of lambda, as in ``unbiased``; the other is ten times it."""
POWERS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
"""Ridges relative to the first favoured one. The best ridge of a direction is about 0.1 (d = 1) to 1
(d = 20) times its eigenvalue of A and the width is flat around it: with mixes, steps finer than decades
gain at most 1 %. For features of norm 1 the upward powers last beyond 10^6 observations; the rest is for
features that are measured in units far from that."""
FAVOURED, PLATEAU = 5, 1
"""Index of the first favoured ridge, and how many more have the same weight. Beyond them a weight falls
as 1 / (1 + decades)^2, so that lambda wrong by three decades costs 4 log 4 = 5.5 in R_p^2 / sigma^2."""
LEAST_RIDGE = 1.0 / 3.0
"""Smallest ridge in units of sigma^2 / S^2. A smaller one would serve eigenvalues at which the norm ball
says more than the data do, so it has no weight; and the first favoured ridge is never below it."""
RIDGES = len(POWERS)
FOURS_OF_RIDGES = RIDGES // 4 * 4

ELLIPSOIDS = 24
"""G: mixes times multipliers."""
COARSE_RATIO, COARSE_PARTS = 10.0, 5
"""Where the ball matters: ratio of the eigenvalues that neighbouring mixes are made for, and how many
such steps there are at most (beyond that the ratio is larger)."""
FINE_RATIO, FINE_PARTS = 5.0, 7
"""The same where the data's ellipsoid lies within the ball: there multipliers are of no use, and more
mixes are. Between two neighbours comes their average. With many features a mix changes suddenly from one
ridge to the next as the eigenvalue grows, and the averages are what lies between."""
MIXES = 2 * FINE_PARTS + 1
"""Mixes at most."""
LEAST_FOCUS = 0.25
"""Smallest eigenvalue that a mix is made for, in units of 2 log(1/delta) sigma^2 / S^2: below it the ball
decides."""
LEAST_CHANGE = 0.05
"""Total variation distance within which two mixes count as one; the other gets their multipliers."""
NEWTON_STEPS = 4
"""Newton steps for a mix. They start at most a few units away and the loss is of second order."""
NEARLY_FREE = 0.004
"""Smallest a S^2 / R_p^2 of each mix: it widens a bound that the ball does not touch by 0.2 % at most."""
LEAST_ROOM = 1e-6
"""Smallest share of S^2 that is taken for the room that the ball leaves."""
LARGE = 1e150
"""A product of so much is replaced by its logarithm before it could overflow."""
NO_WEIGHT = -1e9
"""log w_j of a ridge without weight: its part in a mix underflows to 0."""
NEGLIGIBLE = -750.0
"""exp of it is 0; the library takes its time to find that out."""
LEAST_PART = 1e-9
"""Parts of a mix below it are left out: they gain nothing, and a small ridge amplifies rounding."""
RENEW = 0.0625
"""Share by which the observations grow before mixes and multipliers are chosen afresh."""


def _layout() -> tuple[Array, Array]:
    """For k + 1 mixes, row k: which mix an ellipsoid has, and its multiplier relative to R_p^2 / room.

    Let a direction be known up to the half-width h by the data and contain an unknown part that the ball
    bounds by b. Its best multiplier is t = b / h. Another multiplier x t widens the square of its
    half-width by the factor 1 + 2 t / (1 + t)^2 (cosh(log x) - 1). With t = tan^2(phi / 2) this loss is
    the same in every cell of a grid that is uniform in phi: N points lose about (pi / N)^2 / 8 of the
    width at most, and no end is cut off. Grids of neighbouring mixes, which are nearly exchangeable, are
    shifted by half a cell. The largest eigenvalues come last and get the spare multipliers.
    """
    owner, factor = np.zeros((MIXES, ELLIPSOIDS)), np.zeros((MIXES, ELLIPSOIDS))
    for k in range(MIXES):
        mixes, at = k + 1, 0
        for mix in range(mixes):
            points = ELLIPSOIDS // mixes + (mixes - 1 - mix < ELLIPSOIDS % mixes)
            shift = 0.5 if mixes == 1 else (0.25, 0.75)[mix % 2]
            phi = (np.arange(points) + shift) * np.pi / points
            owner[k, at : at + points] = mix
            factor[k, at : at + points] = np.tan(0.5 * phi) ** 2
            factor[k, at] = min(factor[k, at], NEARLY_FREE)
            at += points
    return owner, factor


OWNER, FACTOR = _layout()


# -- the set -----------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What the set remembers: views of ``Data.extra``."""

    ridges: Array  # (J,) l_j; 0 before the first use
    log_weights: Array  # (J,) log w_j
    log_dets: Array  # (J,) log det(W_j / l_j), at least
    mixes: Array  # (G, J) p
    multipliers: Array  # (G,) a
    chosen_at: Array  # (1,) observations when mixes and multipliers were chosen


def choice_size(_dim: int) -> int:
    """Numbers in a ``Choice``."""
    return 3 * RIDGES + ELLIPSOIDS * RIDGES + ELLIPSOIDS + 1


def choice_of(extra: Array) -> Choice:
    """``Data.extra`` by names; writing to them writes to it."""
    end = 3 * RIDGES + ELLIPSOIDS * RIDGES
    return Choice(
        shaped_view(extra, 0, (RIDGES,)),
        shaped_view(extra, RIDGES, (RIDGES,)),
        shaped_view(extra, 2 * RIDGES, (RIDGES,)),
        shaped_view(extra, 3 * RIDGES, (ELLIPSOIDS, RIDGES)),
        shaped_view(extra, end, (ELLIPSOIDS,)),
        shaped_view(extra, end + ELLIPSOIDS, (1,)),
    )


opened_choice = inlined(choice_of)


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


# -- fixed before the data ---------------------------------------------------------------------


@inlined
def write_ridges(ridge: float, terms: Terms, ridges: Array, log_weights: Array) -> None:
    """l_j and log w_j, both (J,), from the model alone; a ridge without weight has NO_WEIGHT."""
    least = LEAST_RIDGE * (terms.noise / terms.norm_bound) ** 2
    first = max(FIRST * ridge, least)
    total = 0.0
    for j in range(RIDGES):
        decades = max(FAVOURED - j, j - FAVOURED - PLATEAU, 0)
        ridges[j] = first * POWERS[j]
        log_weights[j] = -2.0 * math.log(1.0 + decades)
        if j < FAVOURED and ridges[j] < least:
            log_weights[j] = NO_WEIGHT
        total += math.exp(log_weights[j])
    for j in range(RIDGES):
        log_weights[j] -= math.log(total)


# -- chosen from the data ----------------------------------------------------------------------


@inlined
def write_log_dets(values: Array, far: float, ridges: Array, log_dets: Array) -> None:
    """At least log det(W_j / l_j) (J,), with few logarithms; values (d,) are within ``far`` of the
    eigenvalues of A."""
    for j in range(RIDGES):
        log_dets[j] = 1.0
    for i in range(len(values)):
        top = values[i] + far
        for j in range(0, FOURS_OF_RIDGES, 4):
            units = ridges[j], ridges[j + 1], ridges[j + 2], ridges[j + 3]
            a, b, c, d = quotients((top, top, top, top), units)
            log_dets[j] *= 1.0 + a
            log_dets[j + 1] *= 1.0 + b
            log_dets[j + 2] *= 1.0 + c
            log_dets[j + 3] *= 1.0 + d
        for j in range(FOURS_OF_RIDGES, RIDGES):
            log_dets[j] *= 1.0 + top / ridges[j]
    for j in range(RIDGES):
        product, total = log_dets[j], 0.0
        if product > LARGE:  # if it is not, it never was: every factor is at least 1
            product = 1.0
            for i in range(len(values)):
                product *= 1.0 + (values[i] + far) / ridges[j]
                if product > LARGE:
                    total += math.log(product)
                    product = 1.0
        log_dets[j] = total + math.log(product)
        log_dets[j] += 8.0 * (len(values) + 2) * UNIT * (1.0 + log_dets[j])


@inlined
def mixed_spread(mixes: Array, g: int, log_dets: Array, log_weights: Array, terms: Terms) -> float:
    """At least R_p^2 of (M) for the mix p in row g of ``mixes``, p up to rounding a point of the simplex.

    A mix that does not add up to 1 exactly stands for one that does: that changes R_p^2 by as many units
    in the last place of its terms.
    """
    total, size = terms.log_term, terms.log_term
    for j in range(RIDGES):
        p = mixes[g, j]
        if p > 0.0:
            log = math.log(p)
            part = p * (log_dets[j] + 2.0 * (log - log_weights[j]))
            total += part
            size += abs(part) + 2.0 * p * (abs(log) + abs(log_weights[j]))
    return terms.noise**2 * (total + 128.0 * UNIT * size)


@inlined
def one_ridge_square(
    value: float, ridges: Array, log_dets: Array, log_weights: Array, terms: Terms
) -> float:
    """Squared half-width in a direction of which A has the eigenvalue ``value``, in units of
    sigma^2 / value, by the best ridge alone and without the ball."""
    square = np.inf
    for j in range(RIDGES):
        spread = terms.log_term + log_dets[j] - 2.0 * log_weights[j]
        square = min(square, spread * (1.0 + ridges[j] / value))
    return square


@inlined
def write_mix(
    focus: float, ridges: Array, log_dets: Array, log_weights: Array, terms: Terms, mixes: Array, g: int
) -> None:
    """The best mix for a direction in which A has the eigenvalue ``focus``, into row g of ``mixes``.

    On the boundary of the event, theta - centre in that direction has the residual tau with
    sum_j w_j exp{(tau^2 s_j - log det(W_j / l_j)) / 2} = 1 / delta, s_j = focus / (focus + l_j), in units
    of sigma. The terms of that sum, divided by it, are p. The sum's logarithm is convex and increasing in
    tau^2, and Newton's method from the smallest of the roots of single terms goes down to the root.
    """
    square = one_ridge_square(focus, ridges, log_dets, log_weights, terms)
    for step in range(NEWTON_STEPS + 1):
        top = -np.inf
        for j in range(RIDGES):
            share = focus / (focus + ridges[j])
            mixes[g, j] = log_weights[j] + 0.5 * (square * share - log_dets[j])
            top = max(top, mixes[g, j])
        total, slope = 0.0, 0.0
        for j in range(RIDGES):
            less = mixes[g, j] - top
            mixes[g, j] = 0.0 if less < NEGLIGIBLE else math.exp(less)
            total += mixes[g, j]
            slope += mixes[g, j] * focus / (focus + ridges[j])
        if step < NEWTON_STEPS:
            square -= (2.0 * (top + math.log(total)) - terms.log_term) * total / slope
    kept = 0.0
    for j in range(RIDGES):
        mixes[g, j] = mixes[g, j] / total if mixes[g, j] >= LEAST_PART * total else 0.0
        kept += mixes[g, j]
    for j in range(RIDGES):
        mixes[g, j] /= kept


@inlined
def write_mixes(
    values: Array, moments: Array, ridges: Array, log_dets: Array, log_weights: Array, terms: Terms,
    mixes: Array,
) -> int:  # fmt: skip
    """Mixes for eigenvalues from the smallest that counts to the largest, into the first rows of
    ``mixes``; returns how many. One is enough where the spectrum is narrow or where the mixes agree."""
    least = LEAST_FOCUS * terms.log_term * (terms.noise / terms.norm_bound) ** 2
    lowest, low, high, length = np.inf, np.inf, least, 0.0
    for i in range(len(values)):
        length += (moments[i] / values[i]) ** 2
        lowest = min(lowest, values[i])
        if values[i] >= least:
            low, high = min(low, values[i]), max(high, values[i])
    low = min(low, high)
    square = one_ridge_square(lowest, ridges, log_dets, log_weights, terms)
    fine = math.sqrt(length) + terms.noise * math.sqrt(square / lowest) < terms.norm_bound
    ratio, parts = (FINE_RATIO, FINE_PARTS) if fine else (COARSE_RATIO, COARSE_PARTS)
    steps = math.log(high / low) / math.log(ratio)
    if steps < parts:
        parts = math.ceil(steps - 1e-6)
    count = 0
    for k in range(parts + 1):
        focus = low * (high / low) ** (k / max(parts, 1))
        between = 1 if fine and count > 0 else 0
        write_mix(focus, ridges, log_dets, log_weights, terms, mixes, count + between)
        change = 1.0
        if count > 0:
            change = 0.0
            for j in range(RIDGES):
                change += 0.5 * abs(mixes[count + between, j] - mixes[count - 1, j])
        if change < LEAST_CHANGE:
            continue
        if between == 1:
            for j in range(RIDGES):
                mixes[count, j] = 0.5 * (mixes[count - 1, j] + mixes[count + 1, j])
        count += 1 + between
    return count


@inlined
def unit_multiplier(
    values: Array, moments: Array, ridges: Array, mixes: Array, g: int, square: float, norm_bound: float
) -> float:
    """R_p^2 / room for the mix in row g: the multiplier at which data and ball weigh the same.

    ``square`` is R_p^2, with misspecification. The ball leaves S^2 - ||c||^2 for what is unknown, c the
    centre with a small multiplier. Where c is nearly as long as S, the set is an ellipsoid that the
    sphere cuts, and the room is S times the half-width along c.
    """
    a = NEARLY_FREE * square / norm_bound**2
    length, wide, explained = 0.0, 0.0, 0.0
    for i in range(len(values)):
        weight = 0.0
        for j in range(RIDGES):
            weight += mixes[g, j] / (values[i] + ridges[j])
        shape = weight * values[i] ** 2 + a
        centre = weight * values[i] * moments[i] / shape
        length += centre**2
        wide += centre**2 / shape
        explained += a * weight * moments[i] ** 2 / shape
    room = norm_bound**2 - length
    if length > 0.0:
        radius_squared = max(square + a * norm_bound**2 - explained, 0.0)
        cut = norm_bound * math.sqrt(radius_squared * wide / length)
        room = max(room, min(cut, norm_bound**2))
    return square / max(room, LEAST_ROOM * norm_bound**2)


@inlined
def write_choice(values: Array, moments: Array, count: float, choice: Choice, terms: Terms) -> int:
    """Mixes p (G, J) and multipliers a (G,) of all ellipsoids; returns how many mixes are different.

    ``values`` (d,) are the eigenvalues Lambda of A, none negative; ``moments`` (d,) is mu = Q m;
    ``count`` is the number of observations. The choice is sound however inaccurate its input is.
    Ellipsoids with the same mix are neighbours.
    """
    ridges, log_weights, log_dets, mixes, multipliers, _ = choice
    different = write_mixes(values, moments, ridges, log_dets, log_weights, terms, mixes)
    shift = terms.misspecification * math.sqrt(count)
    unit, of = 0.0, -1
    for back in range(ELLIPSOIDS):
        g = ELLIPSOIDS - 1 - back  # row k of the mixes is needed by no ellipsoid before k
        mix = int(OWNER[different - 1, g])
        if mix != of:
            reach = math.sqrt(mixed_spread(mixes, mix, log_dets, log_weights, terms)) + shift
            unit = unit_multiplier(values, moments, ridges, mixes, mix, reach**2, terms.norm_bound)
            of = mix
        for j in range(RIDGES):
            mixes[g, j] = mixes[mix, j]
        multipliers[g] = unit * FACTOR[different - 1, g]
    return different
