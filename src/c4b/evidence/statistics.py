"""Observations -> V^-1, theta_hat, log det, radius: equations (4) to (6).

A confidence set is a *stack* of ellipsoids that all contain theta on the same event; the plain sets
have a stack of one. Shapes: G ellipsoids, d features.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.evidence.model import LinearModel, Terms

REFACTOR_EVERY = 256
"""Rank-one updates between two factorisations from the Gram matrix: O(d^3 / 256) a round."""
RESIDUAL_LIMIT = 1e-8
"""Relative residual of V (V^-1 x) = x above which the inverse is recomputed early."""

LOG_DET, COUNT, SINCE_FACTORED = 0, 1, 2


HEADING = 6
"""Numbers before the arrays in a flat vector: G, d, sigma, S, 2 log(1/delta), self-normalized?"""


class Statistics(NamedTuple):
    """Everything learned; arrays are written in place by the kernels below."""

    ridges: Array  # (G,) regularisers a_g; a_0 = lambda
    inverse: Array  # (G, d, d) V_g^-1 = (A + a_g I)^-1
    estimate: Array  # (G, d) theta_hat_g = V_g^-1 sum x Y
    radius: Array  # (G,) beta_g
    gram: Array  # (d, d) A = sum x x^T
    moment: Array  # (d,) sum x Y
    tally: Array  # (3,) log(det V / lambda^d), observations, updates since factored


def empty(model: LinearModel) -> Array:
    """No data yet, as one flat vector: V = a I, whose inverse is I / a.

    One vector holds the model's terms and all statistics, so that a compiled call takes one argument
    instead of eight and what is copied or saved is exactly what continues.
    """
    ridges, dim = model.ridges, model.dim
    stack = len(ridges)
    flat = np.zeros(HEADING + stack * (2 + dim + dim * dim) + dim * dim + dim + 3)
    flat[:HEADING] = (stack, dim, *model.terms)
    stats, terms = opened(flat)
    stats.ridges[:] = ridges
    for g in range(stack):
        np.fill_diagonal(stats.inverse[g], 1.0 / ridges[g])
    recentre(stats, terms)
    return flat


def radius_index(model: LinearModel) -> int:
    """Where the first radius lies in a flat vector."""
    return HEADING + len(model.ridges) * (1 + model.dim + model.dim * model.dim)


@kernel
def opened(flat: Array) -> tuple[Statistics, Terms]:
    """Name the parts of a flat vector; writing to them writes to it."""
    stack, dim = int(flat[0]), int(flat[1])
    a = HEADING + stack
    b = a + stack * dim * dim
    c = b + stack * dim
    d = c + stack
    e = d + dim * dim
    f = e + dim
    stats = Statistics(
        flat[HEADING:a],
        flat[a:b].reshape(stack, dim, dim),
        flat[b:c].reshape(stack, dim),
        flat[c:d],
        flat[d:e].reshape(dim, dim),
        flat[e:f],
        flat[f : f + 3],
    )
    return stats, Terms(flat[2], flat[3], flat[4], flat[5] == 1.0)


@kernel
def recentre(stats: Statistics, terms: Terms) -> None:
    """theta_hat (5) from V^-1 and the moment, never accumulated; then the radius (6) or its mixture form.

    Radius of ellipsoid g, with gamma^2 = log(det V/lambda^d) + 2 log(1/delta) and m = sum x Y:
    self-normalized: sigma gamma + sqrt(lambda) S;
    otherwise: sqrt(sigma^2 gamma^2 - m V_0^-1 m + m V_g^-1 m + a_g S^2), for g = 0 the mixture radius.
    """
    stack, dim = stats.estimate.shape
    gamma_squared = stats.tally[LOG_DET] + terms.log_term
    explained_first = 0.0
    for g in range(stack):
        explained = 0.0
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += stats.inverse[g, i, j] * stats.moment[j]
            stats.estimate[g, i] = total
            explained += total * stats.moment[i]
        if g == 0:
            explained_first = explained
        ridge = stats.ridges[g]
        if terms.self_normalized:
            stats.radius[g] = terms.noise * math.sqrt(gamma_squared) + math.sqrt(ridge) * terms.norm_bound
        else:
            gain = explained - explained_first  # exactly 0 for g = 0
            stats.radius[g] = math.sqrt(
                terms.noise**2 * gamma_squared + ridge * terms.norm_bound**2 + gain
            )


@kernel
def add(stats: Statistics, x: Array, y: float) -> None:
    """One observation into V^-1 (Sherman-Morrison), log det, A and sum x Y; call ``recentre`` after.

    ``estimate`` serves as scratch here: ``recentre`` rewrites it from V^-1 and the moment.
    """
    stack, dim = stats.estimate.shape
    stale = stats.tally[SINCE_FACTORED] + 1.0 >= REFACTOR_EVERY
    for g in range(stack):
        image = stats.estimate[g]  # V_g^-1 x
        square = 0.0
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += stats.inverse[g, i, j] * x[j]
            image[i] = total
            square += total * x[i]
        if g == 0:
            stats.tally[LOG_DET] += math.log1p(square)
            stale |= _residual(stats, image, x) > RESIDUAL_LIMIT
        shrink = 1.0 / (1.0 + square)
        for i in range(dim):
            for j in range(dim):
                stats.inverse[g, i, j] -= image[i] * image[j] * shrink
    for i in range(dim):
        stats.moment[i] += x[i] * y
        for j in range(dim):
            stats.gram[i, j] += x[i] * x[j]
    stats.tally[COUNT] += 1.0
    stats.tally[SINCE_FACTORED] += 1.0
    if stale:
        factor(stats)


@kernel
def _residual(stats: Statistics, image: Array, x: Array) -> float:
    """max |V image - x| / max |x| for the first ellipsoid, before x is added to the Gram matrix."""
    dim = len(x)
    worst, size = 0.0, 0.0
    for i in range(dim):
        total = stats.ridges[0] * image[i] - x[i]
        for j in range(dim):
            total += stats.gram[i, j] * image[j]
        worst = max(worst, abs(total))
        size = max(size, abs(x[i]))
    return worst / size if size > 0.0 else 0.0


@kernel
def factor(stats: Statistics) -> None:
    """V_g^-1 and log det afresh from A by Cholesky.

    When A + a I is no longer positive definite in float64 the inverse becomes NaN: every bound is
    then NaN and nothing is certified. Failing closed beats a plausible wrong number.
    """
    stack, dim = stats.estimate.shape
    for g in range(stack):
        shape = stats.gram + stats.ridges[g] * np.eye(dim)
        lower = cholesky(shape)
        if g == 0:
            log_det = 0.0
            for i in range(dim):
                log_det += math.log(lower[i, i] / math.sqrt(stats.ridges[0]))
            stats.tally[LOG_DET] = 2.0 * log_det
        half = np.linalg.solve(lower, np.eye(dim)) if np.isfinite(lower[dim - 1, dim - 1]) else lower
        for i in range(dim):
            for j in range(i + 1):
                total = 0.0
                for k in range(i, dim):  # half is lower triangular
                    total += half[k, i] * half[k, j]
                stats.inverse[g, i, j] = total
                stats.inverse[g, j, i] = total
    stats.tally[SINCE_FACTORED] = 0.0


@kernel
def cholesky(shape: Array) -> Array:
    """Lower Cholesky factor (d, d); all NaN when ``shape`` is not positive definite.

    By hand because the library routine raises in the middle of a compiled update.
    """
    dim = shape.shape[0]
    lower = np.zeros((dim, dim))
    for i in range(dim):
        for j in range(i + 1):
            total = shape[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = total / lower[j, j]
            elif total > 1e-14 * shape[i, i]:  # NaN compares false
                lower[i, i] = math.sqrt(total)
            else:
                return np.full((dim, dim), np.nan)
    return lower


@kernel
def absorb(flat: Array, x: Array, y: float) -> None:
    """One observation, complete: (4), (5) and (6) hold again afterwards."""
    stats, terms = opened(flat)
    add(stats, x, y)
    recentre(stats, terms)


@kernel
def absorb_many(flat: Array, features: Array, rewards: Array) -> None:
    """Rows of ``features`` (n, d) with ``rewards`` (n,), in order."""
    stats, terms = opened(flat)
    for n in range(len(rewards)):
        add(stats, features[n], rewards[n])
    recentre(stats, terms)
