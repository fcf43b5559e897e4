"""The ridges l_j of ``several-ridges``, their weights w_j, and mixes p of them: (M) in that set's file.

Ridges and weights are fixed before the data. Shapes: J = RIDGES ridges, d features.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined, quotients
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.ellipsoids import Terms

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
NEWTON_STEPS = 4
"""Newton steps for a mix. They start at most a few units away and the loss is of second order."""
LARGE = 1e150
"""A product of so much is replaced by its logarithm before it could overflow."""
NO_WEIGHT = -1e9
"""log w_j of a ridge without weight: its part in a mix underflows to 0."""
NEGLIGIBLE = -750.0
"""exp of it is 0; the library takes its time to find that out."""
LEAST_PART = 1e-9
"""Parts of a mix below it are left out: they gain nothing, and a small ridge amplifies rounding."""


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
