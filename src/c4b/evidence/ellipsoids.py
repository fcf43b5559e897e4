"""Observations -> V^-1, theta_hat, log det, radius: equations (4) to (6).

A confidence set is a *stack* of ellipsoids that all contain theta on the same event; the plain sets
have a stack of one. Shapes: G ellipsoids, d features.

Ellipsoid g has the shape V_g = A + a_g I, except in the unbiased set (``Data.mixing`` = l > 0), where
those after the first have V_g = A W^-1 A + a_g I = A + (a_g - l) I + l^2 W^-1 with W = A + l I, the
first. docs/theory.md derives both.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import inlined, kernel
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.model import LinearModel, Terms

REFACTOR_EVERY = 256
"""Rank-one updates between two factorisations from the Gram matrix: O(d^3 / 256) a round."""
LEVERAGE_LIMIT = 1e6
"""x V^-1 x above which a rank-one update cancels too much: the inverse is recomputed at once."""
ROUNDING = 1e-15
"""Relative rounding of a sum of a few products, before the condition number amplifies it."""
RESIDUAL_LIMIT = 1e-8
"""Relative residual of V (V^-1 x) = x above which the inverse is recomputed early."""

LEAST_REST = 1e-4
"""Share of a determinant below which a downdate cancels too much: the inverse is recomputed at once."""

LEAST_PIVOT = 1e-12
"""Share of a diagonal entry below which a Cholesky pivot is mostly rounding: beyond a condition of
about 1e12 the centre's rounding error is no longer small against the width, so nothing is certified."""

LOG_DET, COUNT, SINCE_FACTORED, SQUARES_SUM, ALARM = 0, 1, 2, 3, 4
TALLY = 5
"""Entries of ``Data.tally``: log(det V / lambda^d), observations, updates since factored, sum Y^2, and
the alarm that has latched, if any."""

EMPTY_SET, RESIDUALS = 1.0, 2.0
"""Alarms: the set is empty, false with probability at most delta (it is the event that the guarantee
leaves out anyway); residuals are too large for the declared noise, false with at most ALARM_LEVEL."""
ALARM_LEVEL = 1e-3
"""An alarm latches for good and Gaussian noise of exactly sigma uses the level up, so it is small."""
ALARM_THRESHOLD = 2.0 * math.log(3.0 / ALARM_LEVEL)
"""Twice the log of what the largest of three e-values must reach."""
BETS = tuple((s, math.log(1.0 - s)) for s in (0.1, 0.3, 0.6))
"""Values of s in the e-process on residuals, each with log(1 - s); see ``watch``."""


HEADING = 8
"""Numbers before the arrays in a flat vector: G, d, the terms, then ``Data.mixing``."""


class Region(NamedTuple):
    """The confidence set as bounds need it: {theta: ||theta - estimate_g||_{V_g} <= radius_g, all g}."""

    inverse: Array  # (G, d, d) V_g^-1
    estimate: Array  # (G, d) theta_hat_g = V_g^-1 sum x Y; unbiased, g > 0: V_g^-1 A W^-1 sum x Y
    radius: Array  # (G,) beta_g


class Data(NamedTuple):
    """Sufficient statistics from which the region can be rebuilt."""

    ridges: Array  # (G,) regularisers a_g; a_0 = lambda, or l
    gram: Array  # (d, d) A = sum x x^T
    moment: Array  # (d,) sum x Y
    tally: Array  # (TALLY,)
    mixing: float  # l of the unbiased set, 0 for the others


def empty(model: LinearModel) -> Array:
    """No data yet, as one flat vector: V = a I, whose inverse is I / a.

    One vector holds the model's terms and all statistics, so that a compiled call takes one argument
    instead of eight and what is copied or saved is exactly what continues.
    """
    ridges, dim = model.ridges, model.dim
    stack = len(ridges)
    flat = np.zeros(HEADING + stack * (2 + dim + dim * dim) + dim * dim + dim + TALLY)
    flat[:HEADING] = (stack, dim, *model.terms, model.mixing)
    region, data, _ = views(flat)
    data.ridges[:] = ridges
    for g in range(stack):
        np.fill_diagonal(region.inverse[g], 1.0 / ridges[g])  # A = 0: A W^-1 A is, too
    absorb_many(flat, np.empty((0, dim)), np.empty(0))
    return flat


def radius_index(model: LinearModel) -> int:
    """Where the first radius lies in a flat vector."""
    return HEADING + len(model.ridges) * (model.dim + model.dim * model.dim)


def views(flat: Array) -> tuple[Region, Data, Terms]:
    """Name the parts of a flat vector; writing to them writes to it. ``opened`` is its compiled form."""
    return parts(flat, int(flat[0]), int(flat[1]))


def parts(flat: Array, stack: int, dim: int) -> tuple[Region, Data, Terms]:
    """``views`` for a G and d that the caller knows, perhaps when compiling."""
    a = HEADING + stack * dim * dim
    b = a + stack * dim
    c = b + stack
    d = c + stack
    e = d + dim * dim
    f = e + dim
    region = Region(
        shaped_view(flat, HEADING, (stack, dim, dim)),
        shaped_view(flat, a, (stack, dim)),
        shaped_view(flat, b, (stack,)),
    )
    data = Data(
        shaped_view(flat, c, (stack,)),
        shaped_view(flat, d, (dim, dim)),
        shaped_view(flat, e, (dim,)),
        shaped_view(flat, f, (TALLY,)),
        flat[7],
    )
    return region, data, Terms(flat[2], flat[3], flat[4], flat[5] == 1.0, flat[6])


opened_as = inlined(parts)


@inlined
def opened(flat: Array) -> tuple[Region, Data, Terms]:
    return opened_as(flat, int(flat[0]), int(flat[1]))


@inlined
def recentre(region: Region, data: Data, terms: Terms) -> None:
    """theta_hat (5) from V^-1 and the moment, never accumulated; then the radius (6) or its mixture form.

    Radius of ellipsoid g, with gamma^2 = log(det V/lambda^d) + 2 log(1/delta) and m = sum x Y:
    self-normalized, and the first of unbiased: sigma gamma + sqrt(lambda) S;
    otherwise: sqrt(sigma^2 gamma^2 - m V_0^-1 m + m V_g^-1 m + a_g S^2), for g = 0 the mixture radius;
    the others of unbiased: see ``_unbiased``.
    """
    stack, dim = region.estimate.shape
    gamma_squared = data.tally[LOG_DET] + terms.log_term
    extra = terms.misspecification * math.sqrt(data.tally[COUNT])
    trace = 0.0
    for i in range(dim):
        trace += data.gram[i, i]
    explained_first = 0.0
    for g in range(stack):
        ridge = data.ridges[g]
        if g > 0 and data.mixing > 0.0:
            reach = terms.noise * math.sqrt(gamma_squared) + extra
            square = _unbiased(region, data, g, reach**2 + ridge * terms.norm_bound**2)
            if square < 0.0:
                data.tally[ALARM] = EMPTY_SET
            region.radius[g] = math.sqrt(square)
            continue
        explained = 0.0
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += region.inverse[g, i, j] * data.moment[j]
            region.estimate[g, i] = total
            explained += total * data.moment[i]
        if g == 0:
            explained_first = explained
        if terms.self_normalized:
            radius = terms.noise * math.sqrt(gamma_squared) + math.sqrt(ridge) * terms.norm_bound
        else:
            gain = 0.0  # m V_g^-1 m - m V_0^-1 m = (lambda - a_g) theta_hat_g @ theta_hat_0
            for i in range(dim):
                gain += (data.ridges[0] - ridge) * region.estimate[g, i] * region.estimate[0, i]
            square = terms.noise**2 * gamma_squared + ridge * terms.norm_bound**2 + gain
            if square < 0.0:
                data.tally[ALARM] = EMPTY_SET
            radius = math.sqrt(square)
        region.radius[g] = radius + extra
    watch(data, terms, explained_first, 1.0 + trace / data.ridges[0])


@inlined
def _unbiased(region: Region, data: Data, g: int, level: float) -> float:
    """theta_hat_g of the unbiased set; returns its squared radius, ``level`` less the smallest value of
    ||m - A theta||^2_{W^-1} + a ||theta||^2.

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
    least = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[0, i, j] * own[j]
        rest = first[i] - own[i] + data.mixing * total
        least += (data.ridges[g] * own[i] + data.mixing * rest) * first[i]
    return level - least


@inlined
def watch(data: Data, terms: Terms, explained: float, condition: float) -> None:
    """Latch an alarm when residuals are too large for sigma-sub-Gaussian noise around any linear mean.

    E exp(s eta^2 / 2 sigma^2) <= 1/sqrt(1 - s), so exp{s RSS(theta*)/2 sigma^2 + (n/2) log(1 - s)} is a
    supermartingale, and RSS(theta*) >= sum Y^2 - m V^-1 m - lambda S^2 with m = sum x Y. The largest of
    three such e-values over 3 is at most their mean, so it ever exceeds 1/ALARM_LEVEL with probability
    at most ALARM_LEVEL.
    A mean within epsilon of linear adds at most s epsilon^2 / (1 - s) to s times a squared residual.
    """
    residual = data.tally[SQUARES_SUM] - explained - data.ridges[0] * terms.norm_bound**2
    residual -= ROUNDING * condition * (data.tally[SQUARES_SUM] + explained)  # may be rounding
    scale, count = 1.0 / terms.noise**2, data.tally[COUNT]
    for s, log_rest in BETS:
        growth = s * residual * scale + count * log_rest
        if terms.misspecification > 0.0:
            growth -= count * s * scale * terms.misspecification**2 / (1.0 - s)
        if growth >= ALARM_THRESHOLD and data.tally[ALARM] == 0.0:
            data.tally[ALARM] = RESIDUALS


@inlined
def add(region: Region, data: Data, x: Array, y: float) -> None:
    """One observation into V^-1 (Sherman-Morrison), log det, A and sum x Y; call ``recentre`` after.

    ``estimate`` serves as scratch here: ``recentre`` rewrites it from V^-1 and the moment.
    """
    stack, dim = region.estimate.shape
    stale = data.tally[SINCE_FACTORED] + 1.0 >= REFACTOR_EVERY
    first_shrink = 1.0
    for g in range(stack):
        image = region.estimate[g]  # V_g^-1 x
        square = 0.0
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += region.inverse[g, i, j] * x[j]
            image[i] = total
            square += total * x[i]
        if g == 0:
            data.tally[LOG_DET] += math.log1p(square)
            stale |= not square <= LEVERAGE_LIMIT
            stale |= not _residual(data, image, x) <= RESIDUAL_LIMIT  # NaN: try to recover
        shrink = 1.0 / (1.0 + square)
        for i in range(dim):
            for j in range(dim):
                region.inverse[g, i, j] -= image[i] * image[j] * shrink
        if g == 0:
            first_shrink = shrink
        elif data.mixing > 0.0:
            stale |= not _take_back(region, g, data.mixing**2 * first_shrink) >= LEAST_REST
    for i in range(dim):
        data.moment[i] += x[i] * y
        for j in range(dim):
            data.gram[i, j] += x[i] * x[j]
    data.tally[COUNT] += 1.0
    data.tally[SQUARES_SUM] += y * y
    data.tally[SINCE_FACTORED] += 1.0
    if stale:
        factor(region, data)


@inlined
def _take_back(region: Region, g: int, share: float) -> float:
    """V_g -= share w w^T with w in estimate[0]; estimate[g] is scratch.

    An observation x adds x x^T - l^2 w w^T / (1 + x W^-1 x) to V_g of the unbiased set, w = W^-1 x
    before it. Returns what is left of det V_g: near 0 the inverse has lost as many digits.
    """
    dim = region.estimate.shape[1]
    w, image = region.estimate[0], region.estimate[g]
    square = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.inverse[g, i, j] * w[j]
        image[i] = total
        square += total * w[i]
    rest = 1.0 - share * square
    grow = share / rest
    for i in range(dim):
        for j in range(dim):
            region.inverse[g, i, j] += image[i] * image[j] * grow
    return rest


@inlined
def _residual(data: Data, image: Array, x: Array) -> float:
    """sum |V image - x| / sum |x| for the first ellipsoid, before x is added to the Gram matrix."""
    dim = len(x)
    worst, size = 0.0, 0.0
    for i in range(dim):
        total = data.ridges[0] * image[i] - x[i]
        for j in range(dim):
            total += data.gram[i, j] * image[j]
        worst += abs(total)  # a sum keeps NaN, a maximum would lose it
        size += abs(x[i])
    return worst / size if size > 0.0 else 0.0


@kernel
def factor(region: Region, data: Data) -> None:
    """V_g^-1 and log det afresh from A by Cholesky, all in the place of V_g^-1.

    When V_g is no longer positive definite in float64 the inverse becomes NaN: every bound is
    then NaN and nothing is certified, until further data make it definite again. Failing closed
    beats a plausible wrong number.
    """
    stack, dim = region.estimate.shape
    inverse = region.inverse
    for g in range(stack):
        for i in range(dim):
            for j in range(dim):
                inverse[g, i, j] = data.gram[i, j]
            inverse[g, i, i] += data.ridges[g]
        if g > 0 and data.mixing > 0.0:
            for i in range(dim):
                for j in range(dim):
                    inverse[g, i, j] += data.mixing**2 * inverse[0, i, j]
                inverse[g, i, i] -= data.mixing
        _cholesky(inverse, g)
        if g == 0:
            log_det = 0.0
            for i in range(dim):
                log_det += math.log(inverse[g, i, i] / math.sqrt(data.ridges[0]))
            data.tally[LOG_DET] = 2.0 * log_det
        _invert_from_cholesky(inverse, g)
    data.tally[SINCE_FACTORED] = 0.0


@kernel
def _cholesky(matrix: Array, g: int) -> None:
    """Lower Cholesky factor of matrix[g] in its lower triangle; NaN if it is not positive definite.

    By hand because the library routine allocates, and raises in the middle of an update.
    """
    dim = matrix.shape[1]
    for i in range(dim):
        own = matrix[g, i, i]
        for j in range(i + 1):
            total = matrix[g, i, j]
            for k in range(j):
                total -= matrix[g, i, k] * matrix[g, j, k]
            if i > j:
                matrix[g, i, j] = total / matrix[g, j, j]
            elif total > LEAST_PIVOT * own:  # NaN compares false
                matrix[g, i, i] = math.sqrt(total)
            else:
                matrix[g, i, i] = np.nan


@kernel
def _invert_from_cholesky(matrix: Array, g: int) -> None:
    """(L L^T)^-1 from L in the lower triangle of matrix[g]: invert L in place, then L^-T L^-1."""
    dim = matrix.shape[1]
    for j in range(dim):
        matrix[g, j, j] = 1.0 / matrix[g, j, j]
        for i in range(j + 1, dim):
            total = 0.0
            for k in range(j, i):
                total += matrix[g, i, k] * matrix[g, k, j]
            matrix[g, i, j] = -total / matrix[g, i, i]
    for i in range(dim):  # the upper triangle is free until the end
        for j in range(i + 1):
            total = 0.0
            for k in range(i, dim):
                total += matrix[g, k, i] * matrix[g, k, j]
            matrix[g, j, i] = total
    for i in range(dim):
        for j in range(i):
            matrix[g, i, j] = matrix[g, j, i]


@kernel
def absorb(flat: Array, x: Array, y: float) -> None:
    """One observation, complete: (4), (5) and (6) hold again afterwards."""
    region, data, terms = opened(flat)
    add(region, data, x, y)
    recentre(region, data, terms)


@kernel
def absorb_many(flat: Array, features: Array, rewards: Array) -> None:
    """Rows of ``features`` (n, d) with ``rewards`` (n,), in order."""
    region, data, terms = opened(flat)
    for n in range(len(rewards)):
        add(region, data, features[n], rewards[n])
    recentre(region, data, terms)
