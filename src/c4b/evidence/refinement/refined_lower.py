"""One question, its own ellipsoid: the best mix p and multiplier a for a single vector.

docs/theory.md, sections "Several ridges" and "Rounding": every pair (p, a) bounds v @ theta on the same
event, also one that is chosen for v, and the best bound over all pairs is the exact one. A stack holds a
few pairs for all questions. ``refined_lower`` starts from the best of them and improves it for v by
Newton's method on the dual, for the sets ``several-ridges`` and ``unbiased`` (one ridge, p = 1) alike.
``constrained`` has a alone, and a bisection finds it. No step can do harm: the last pair is written down
with its rounding allowance as a pair of the stack is, and the better of both bounds is taken.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined, kernel
from c4b._validate import Array
from c4b.evidence.alarms import EMPTY_SET
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import lower
from c4b.evidence.eigenbasis.spectral import log_det, turned_moment, write_radius, write_slack
from c4b.evidence.ellipsoids import (
    ALARM,
    CONSTRAINED,
    LOG_DET,
    SEVERAL_RIDGES,
    UNBIASED,
    Data,
    Region,
    Terms,
    drift,
    gamma_squared,
    opened,
)
from c4b.evidence.refinement.entrywise_rounding import entrywise_spread
from c4b.evidence.refinement.multiplier_bisection import refine_multiplier
from c4b.evidence.refinement.newton_steps import improve, mix_level, start
from c4b.evidence.refinement.question import BALL, DRIFT, ERROR, NOW, Question, opened_space
from c4b.evidence.sets.constrained import noise_spread
from c4b.evidence.sets.several_ridges import write_ellipsoid
from c4b.evidence.sets.several_ridges_parts.mix_choice import opened_choice
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import LEAST_PART, NO_WEIGHT, write_log_dets

REFINED = frozenset({SEVERAL_RIDGES, UNBIASED, CONSTRAINED})
"""Codes of the sets whose answers to one question are refined."""
WORTH = 1e-4
"""Share of sigma^2 gamma^2 by which rounding may enlarge it before it is bounded entry by entry."""


@kernel
def refined_lower(flat: Array, v: Array, pair: Array, space: Array) -> float:
    """L(v) of ``bounds.lower``, or a better one by the pair (p, a) that ``pair`` (J + 1,) then holds.

    v (d,); ``space`` has ``space_size(d)`` numbers, all zero. Where the stack's bound stays, ``pair`` is
    NaN: a set that is refuted or lost is not refined.
    """
    region, data, terms = opened(flat)
    for j in range(len(pair)):
        pair[j] = np.nan
    bound = lower(region, v)
    if data.tally[ALARM] == EMPTY_SET or not CONSTRAINED <= data.code <= SEVERAL_RIDGES:
        return bound
    question, one, data = opened_space(space, region, data)
    far, moment_error = turned_moment(region, data)
    question.numbers[DRIFT] = drift(data, terms)
    question.numbers[ERROR] = (far * terms.norm_bound + moment_error) * (1.0 + 8.0 * UNIT)
    best = _best_of_stack(region, v, question.turned, 1 if data.code == UNBIASED else 0)
    if best < 0 or not question.numbers[ERROR] < np.inf:
        return bound
    if data.code == CONSTRAINED:
        data.tally[LOG_DET] = log_det(data, data.ridges[0], far)
        spread = noise_spread(data, terms, far, moment_error)
        if spread > (1.0 + WORTH) * terms.noise**2 * gamma_squared(data, terms):
            finer = entrywise_spread(region, data, terms)
            spread = finer if finer < spread else spread
        a = refine_multiplier(one, data, terms, question.turned, data.ridges[best], spread)
        question.multipliers[NOW] = a
    else:
        if data.code == SEVERAL_RIDGES:
            _ask_several(question, data, best, far)
        else:
            _ask_one(question, data, best, far)
        if start(question, terms, data.code == UNBIASED):
            improve(question, terms)
            _certify(one, data, terms, question)
    write_slack(one, data, terms)
    found = lower(one, v)
    if found > bound:
        bound = found
        for j in range(BALL):
            pair[j] = question.mixes[NOW, j]
        pair[BALL] = question.multipliers[NOW]
    return bound


@inlined
def _ask_several(question: Question, data: Data, best: int, far: float) -> None:
    """Ridges, weights and log-determinants, and the pair of ellipsoid ``best`` as the pair NOW."""
    choice = opened_choice(data.extra)
    write_log_dets(question.values, far, choice.ridges, question.log_dets)
    for j in range(len(question.log_dets)):
        question.log_weights[j] = choice.log_weights[j]
        question.mixes[NOW, j] = choice.mixes[best, j]
        for i in range(len(question.values)):
            question.shares[i, j] = 1.0 / (question.values[i] + far + choice.ridges[j])
    question.multipliers[NOW] = choice.multipliers[best]


@inlined
def _ask_one(question: Question, data: Data, best: int, far: float) -> None:
    """The same with the one ridge of ``unbiased``; the others have no weight."""
    for i in range(len(question.values)):
        for j in range(len(question.log_dets)):
            question.shares[i, j] = 1.0 / (question.values[i] + far + data.ridges[0])
    for j in range(len(question.log_dets)):
        question.log_weights[j] = NO_WEIGHT
    question.log_weights[0], question.log_dets[0] = 0.0, log_det(data, data.ridges[0], far)
    question.mixes[NOW, 0], question.multipliers[NOW] = 1.0, data.ridges[best]


@inlined
def _best_of_stack(region: Region, v: Array, turned: Array, first: int) -> int:
    """Which ellipsoid from ``first`` on bounds v @ theta best, -1 if none does; writes Q v."""
    stack, dim = region.estimate.shape
    for i in range(dim):
        turned[i] = 0.0
        for j in range(dim):
            turned[i] += region.basis[i, j] * v[j]
    best, highest = -1, -np.inf
    for g in range(first, stack):
        centre, square = 0.0, 0.0
        for i in range(dim):
            centre += turned[i] * region.estimate[g, i]
            square += turned[i] * turned[i] * region.factors[g, i]
        value = centre - region.reach[g] * math.sqrt(square)
        if highest < value < np.inf:
            best, highest = g, value
    return best


@inlined
def _certify(region: Region, data: Data, terms: Terms, question: Question) -> None:
    """The best pair as the first ellipsoid of ``region``, with its rounding allowance: (T2).

    F' is a sum of positive terms and three operations more, so 64 units in the last place of the radius
    allow for it, and the ellipsoid is that of the computed F'.
    """
    mixes, a = question.mixes, question.multipliers[NOW]
    total = 0.0
    for j in range(len(question.log_dets)):
        if not mixes[NOW, j] >= LEAST_PART:
            mixes[NOW, j] = 0.0
        total += mixes[NOW, j]
    for j in range(len(question.log_dets)):
        mixes[NOW, j] /= total
    for i in range(len(question.values)):
        weight = 0.0
        for j in range(len(question.log_dets)):
            weight += mixes[NOW, j] * question.shares[i, j]
        data.spectrum.fitted[i] = weight / (1.0 + weight / question.caps[NOW])
    level = mix_level(question, terms, NOW) + question.caps[NOW] * question.numbers[ERROR] ** 2
    reach = math.sqrt(level) * (1.0 + 64.0 * UNIT)
    write_radius(region, data, 0, *write_ellipsoid(region, data, a, 0, reach, terms))
