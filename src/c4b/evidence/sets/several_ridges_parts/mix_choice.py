"""Which mixes and multipliers the ellipsoids of ``several-ridges`` have, chosen from the data.

A choice decides tightness, never soundness: it is sound however inaccurate its input is. Shapes:
J = RIDGES ridges, G = ELLIPSOIDS ellipsoids, d features.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.ellipsoids import Terms
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import (
    RIDGES,
    mixed_spread,
    one_ridge_square,
    write_mix,
)

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
NEARLY_FREE = 0.004
"""Smallest a S^2 / R_p^2 of each mix: it widens a bound that the ball does not touch by 0.2 % at most."""
LEAST_ROOM = 1e-6
"""Smallest share of S^2 that is taken for the room that the ball leaves."""


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
