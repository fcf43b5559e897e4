"""``bounded``: rewards in a declared range; their variance is learned, nobody declares a noise scale.

Assumes A1, A3 to A5 of docs/theory.md and rewards within a range of length w. Derived in its section
"Bounded rewards": with weights s_t as in ``take`` and W = l I + sum s_t x x^T, on one event of
probability 1 - delta, for each of the prior scales l at once,

    ||m - A theta||_{W^-1} <= R,   R^2 + 2 log Q_d(R, c) = log det(W / l) + 2 log(1 / (delta p)),   (B)

p the share of delta that the scale has, Q_d(R, c) the probability that a standard normal vector around a
point at distance R of 0 lies within c of 0. With N = A W^-1 A and t = A W^-1 m every multiplier a > 0 of
the norm constraint gives the ellipsoid

    V = N + a I,  centre = V^-1 t,  radius^2 = (R + drift)^2 + a S^2 - m W^-1 m + t V^-1 t.

They share the eigenvectors of N, which therefore is what ``Region.basis`` holds here. Which scale is used
may be chosen from the data. ``bounded-2`` has other prior scales, gives most of delta to the two that
serve thousands of rows, and watches whether means are linear; ``bounded-3`` has both sums of rewards on
one event (``sums.joint_totals``) and more of delta for the first scale where features are few.
``bounded`` and ``bounded-2`` stay for what was recorded with them. Shapes: J = SCALES prior scales,
G = ELLIPSOIDS, d features.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.fresh_decomposition import polish
from c4b.evidence.eigenbasis.spectral import lose, write_radius, write_slack
from c4b.evidence.eigenbasis.spectrum import distance, misturn
from c4b.evidence.ellipsoids import BOUNDED, BOUNDED_2, BOUNDED_3, COUNT, LOG_DET, Data, Region, Terms
from c4b.evidence.sets.bounded_parts.bounded_radius import solved_radius, write_series
from c4b.evidence.sets.bounded_parts.bounded_versions import (
    LOG_LINEARITY_SHARE,
    LOG_SUM_SHARES,
    SAFE,
    SCALES,
    level_of,
    prior_scale,
    spared,
    version_of,
)
from c4b.evidence.sets.bounded_parts.learned_statistics import (
    CHOSEN_AT,
    SCALE,
    UNIT_POWER,
    Learned,
    joined_size,
    learned_size,
    opened_learned,
    watched_size,
)
from c4b.evidence.sets.bounded_parts.reward_weights import RENEW, write_factor
from c4b.evidence.sets.confidence_set import ConfidenceSet
from c4b.evidence.sets.linearity_alarm import opened_curvature, watch_linearity
from c4b.evidence.sums.totals import bound_together, bound_totals

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

ELLIPSOIDS = 16
"""G: multipliers of the norm constraint."""
NEARLY_FREE = 0.004
"""Smallest a S^2 / R^2."""


def _multipliers() -> Array:
    """a S^2 / R^2 of each ellipsoid, as in ``several_ridges``: uniform in phi, tan^2(phi / 2)."""
    factors = np.tan(0.5 * (np.arange(ELLIPSOIDS) + 0.5) * np.pi / ELLIPSOIDS) ** 2
    factors[0] = min(factors[0], NEARLY_FREE)
    return np.asarray(factors)


MULTIPLIERS = _multipliers()


@called
def recentre_bounded(region: Region, data: Data, terms: Terms) -> float:
    """Centres and radii of all ellipsoids; returns inf, because residuals raise no alarm here."""
    dim, count, version = len(data.moment), data.tally[COUNT], version_of(data)
    learned = opened_learned(data.extra, dim)
    if learned.sums[UNIT_POWER] == 0.0:
        write_series(learned, version, dim)
    if not learned.sums[CHOSEN_AT] <= count < (1.0 + RENEW) * learned.sums[CHOSEN_AT]:
        _choose(data, learned, terms)
        learned.sums[CHOSEN_AT] = count
    sums_level = 0.5 * terms.log_term + LOG_SUM_SHARES[version] + spared(version, dim)
    if version > 1:
        bound_together(region.totals, data.mixing, sums_level)
    else:
        bound_totals(region.totals, data.mixing, sums_level)
    j = int(learned.sums[SCALE])
    far, least, log_det = write_factor(data, learned, j)
    level = level_of(log_det, terms, version, dim, j)
    radius = solved_radius(learned, j, level) if far < np.inf else np.inf
    if not radius < np.inf:
        lose(region)
        return np.inf
    data.tally[LOG_DET] = log_det
    trace, half_square, solving = _whiten(data, learned)
    root = math.sqrt(least)
    if terms.misspecification > 0.0:
        share = _largest_share(data, learned, least, solving)
        radius += terms.misspecification * math.sqrt(count * share * (1.0 + far / least)) * SAFE
    explained, target_square = 0.0, 0.0
    for i in range(dim):
        explained += learned.whitened[i] ** 2
        target_square += learned.target[i] ** 2
    more = 1.1 * (count + 2.0) * UNIT * trace + solving * math.sqrt(half_square)
    more = more * terms.norm_bound + solving * math.sqrt(explained)
    more += 1.1 * (count + 2.0) * UNIT * math.sqrt(trace * data.tally[3])
    reach = (math.sqrt(1.0 + far / least) * radius + more / root) * (1.0 + 32.0 * UNIT)
    polish(region.basis, data.spectrum, learned.normal, 2.0 * dim)
    apart = distance(data.spectrum)
    if not apart < np.inf:
        lose(region)
        return np.inf
    error = 1.1 * misturn(data.spectrum) * math.sqrt(target_square)
    error += 1.1 * (dim + 2) * UNIT * math.sqrt(half_square * explained)
    for i in range(dim):
        total = 0.0
        for k in range(dim):
            total += region.basis[i, k] * learned.target[k]
        data.spectrum.moment[i] = total
    level = reach**2 + apart * terms.norm_bound**2 + 2.0 * error * terms.norm_bound
    for g in range(ELLIPSOIDS):
        a = MULTIPLIERS[g] * (radius / terms.norm_bound) ** 2
        fitted = 0.0
        for i in range(dim):
            factor = 1.0 / (data.spectrum.values[i] + a)
            region.factors[g, i] = factor
            region.estimate[g, i] = data.spectrum.moment[i] * factor
            fitted += data.spectrum.moment[i] ** 2 * factor
        write_radius(region, data, g, level + a * terms.norm_bound**2 + fitted, explained)
    write_slack(region, data, terms)
    if version > 0:
        curvature = opened_curvature(data.extra, len(data.extra) - len(region.totals), dim)
        watch_linearity(region, data, terms, curvature, LOG_LINEARITY_SHARE + spared(version, dim))
    return np.inf


@inlined
def _choose(data: Data, learned: Learned, terms: Terms) -> None:
    """The scale whose ellipsoid {||m - A theta||_{W^-1} <= R} has the least volume."""
    dim, best, version = len(data.moment), np.inf, version_of(data)
    for j in range(SCALES):
        far, _, log_det = write_factor(data, learned, j)
        if far < np.inf:
            radius = solved_radius(learned, j, level_of(log_det, terms, version, dim, j))
            volume = dim * math.log(radius * radius * prior_scale(data, j)) + log_det
            if volume < best:
                best, learned.sums[SCALE] = volume, float(j)


@inlined
def _whiten(data: Data, learned: Learned) -> tuple[float, float, float]:
    """H, h, N and t from L; returns tr A, ||H||^2 (Frobenius) and a bound of the rounding of
    L H = A and of L h = m, over ||H|| and ||h||."""
    dim, matrix, half = len(data.moment), learned.factor, learned.half
    trace, size, square = 0.0, 0.0, 0.0
    for i in range(dim):
        trace += data.gram[i, i]
        for k in range(dim):
            half[i, k] = data.gram[i, k]
        for n in range(i):
            part = matrix[i, n]
            for k in range(dim):
                half[i, k] -= part * half[n, k]
        own = matrix[i, i]
        for k in range(dim):
            half[i, k] /= own
        for k in range(dim):
            square += half[i, k] ** 2
        total = data.moment[i]
        for n in range(i):
            total -= matrix[i, n] * learned.whitened[n]
            size += matrix[i, n] ** 2
        size += matrix[i, i] ** 2
        learned.whitened[i] = total / matrix[i, i]
    _write_normal(half, learned.normal)
    for i in range(dim):
        learned.target[i] = 0.0
    for n in range(dim):
        part = learned.whitened[n]
        for i in range(dim):
            learned.target[i] += half[n, i] * part
    return trace, square, 1.1 * (dim + 2) * UNIT * math.sqrt(size)


@inlined
def _write_normal(half: Array, normal: Array) -> None:
    """N = H^T H."""
    dim = len(half)
    for i in range(dim):
        for k in range(i + 1):
            normal[i, k] = 0.0
        for n in range(dim):
            part = half[n, i]
            for k in range(i + 1):
                normal[i, k] += part * half[n, k]
    for i in range(dim):
        for k in range(i):
            normal[k, i] = normal[i, k]


@inlined
def _largest_share(data: Data, learned: Learned, least: float, solving: float) -> float:
    """At least the largest eigenvalue of L^-1 A L^-T, by its Frobenius norm; overwrites nothing but
    ``normal``, which is written again."""
    dim, matrix, half, out = len(data.moment), learned.factor, learned.half, learned.normal
    total_square, half_square = 0.0, 0.0
    for i in range(dim):
        for k in range(dim):
            total = half[i, k]
            half_square += total * total
            for n in range(k):
                total -= matrix[k, n] * out[i, n]
            out[i, k] = total / matrix[k, k]
            total_square += out[i, k] ** 2
    share = math.sqrt(total_square)
    _write_normal(half, out)
    return share + solving * (math.sqrt(half_square) / least + share / math.sqrt(least))


def _ridges(model: LinearModel) -> Array:
    """Lambda for every ellipsoid: it only scales the prior scales."""
    return np.full(ELLIPSOIDS, model.ridge)


def _width(model: LinearModel) -> float:
    """The length of the rewards' range."""
    low, high = model.rewards if model.rewards is not None else (0.0, 2.0 * model.noise)
    return high - low


SET = ConfidenceSet(
    "bounded",
    "rewards in a declared range, their variance learned, within the norm ball: for clicks and ratings",
    _ridges,
    BOUNDED,
    mixing=_width,
    extra_size=learned_size,
    needs_range=True,
)
SECOND = ConfidenceSet(
    "bounded-2",
    "bounded, narrower from some thousand rows on, with an alarm against means that are not linear",
    _ridges,
    BOUNDED_2,
    mixing=_width,
    extra_size=watched_size,
    needs_range=True,
)
THIRD = ConfidenceSet(
    "bounded-3",
    "bounded-2, with both sums of rewards on one event, and narrower with few features and few rows",
    _ridges,
    BOUNDED_3,
    mixing=_width,
    extra_size=joined_size,
    needs_range=True,
)
