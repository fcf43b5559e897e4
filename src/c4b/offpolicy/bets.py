"""The stakes of the two bets, from the moments of the rows seen so far (docs/theory.md, "From a log")."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from c4b._validate import Array

QUADRATIC = 4.0 * (math.log(2.0) - 0.5)
"""``log(1 + x) >= x - QUADRATIC·x²`` for every ``x >= -1/2``."""


class Moments(NamedTuple):
    """Sums over the rows so far. ``u = weight - 1``; ``y`` has mean V(π) - c·V(h)."""

    rows: float
    u: float
    uu: float
    y: float
    yy: float
    uy: float


class Sides(NamedTuple):
    """What the stakes ``(first, second >= 0)`` must fulfil, one number for each tested value.

    A row's factor is smallest at weight 0 or at the largest weight, with the reward that makes ``gain``
    smallest: ``-first + second·low_at_zero >= -1/2`` and ``first·slope + second·low_at_top >= -room``.
    """

    low_at_zero: Array
    slope: float
    low_at_top: Array
    room: float


def best_bets(
    moments: Moments, prior: Moments, values: Array, sign: float, sides: Sides
) -> tuple[Array, Array]:
    """The stakes (first, second) that would have earned most on the rows so far, had their weights had
    mean 1, by the quadratic lower bound.

    values: shape (V,), the tested values v. sign: +1 bets that y is larger than v on average, -1 smaller.
    The programme is a concave quadratic over a polygon with three edges, so its maximum lies at the
    unconstrained maximum, at the maximum along an edge or at a corner; all are tried.
    """
    q_11 = np.full_like(values, moments.uu + prior.uu)
    q_12 = sign * (moments.uy - values * moments.u + prior.uy)
    q_22 = moments.yy - 2.0 * values * moments.y + moments.rows * values**2 + prior.yy
    gain_1 = np.zeros_like(values)  # weights have mean 1: the first bet is a hedge, not a gamble
    hedge = np.divide(q_12, q_11, out=np.zeros_like(values), where=q_11 > 0.0)
    gain_2 = sign * (moments.y - moments.rows * values) - hedge * moments.u
    zero, one = np.zeros_like(values), np.ones_like(values)
    edges = (
        (-one, sides.low_at_zero, 0.5),
        (sides.slope * one, sides.low_at_top, sides.room),
        (zero, one, 0.0),
    )
    double = 2.0 * QUADRATIC
    best, first, second = zero.copy(), zero.copy(), zero.copy()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        determinant = double * (q_11 * q_22 - q_12 * q_12)
        tried = [
            (
                (q_22 * gain_1 - q_12 * gain_2) / determinant,
                (q_11 * gain_2 - q_12 * gain_1) / determinant,
            )
        ]
        for a, b, room in edges:  # from the edge's point next to the origin, along the edge
            size = a * a + b * b
            x, y = -room * a / size, -room * b / size
            rise = (
                gain_2 * a - gain_1 * b - double * ((q_12 * x + q_22 * y) * a - (q_11 * x + q_12 * y) * b)
            )
            step = rise / (double * (q_11 * b * b - 2.0 * q_12 * a * b + q_22 * a * a))
            tried.append((x - step * b, y + step * a))
        for one_edge, other in ((0, 1), (0, 2), (1, 2)):
            (a, b, room), (a_2, b_2, room_2) = edges[one_edge], edges[other]
            cross = a * b_2 - b * a_2
            tried.append(((b * room_2 - b_2 * room) / cross, (a_2 * room - a * room_2) / cross))
        for x, y in tried:
            allowed = np.isfinite(x) & np.isfinite(y)
            for a, b, room in edges:
                allowed &= a * x + b * y >= -room - 1e-9 * (1.0 + np.abs(a * x) + np.abs(b * y))
            earned = (
                gain_1 * x + gain_2 * y - QUADRATIC * (q_11 * x * x + 2.0 * q_12 * x * y + q_22 * y * y)
            )
            better = allowed & (earned > best)
            best, first, second = (
                np.where(better, new, old) for new, old in ((earned, best), (x, first), (y, second))
            )
    second = np.maximum(second, 0.0)
    if sides.room == 0.0:  # no largest weight: the factor must not fall as the weight grows, exactly
        first = np.maximum(first, -second * sides.low_at_top)
    return first, second
