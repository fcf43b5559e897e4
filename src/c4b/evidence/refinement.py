"""One question, its own ellipsoid: the best mix p and multiplier a for a single vector.

docs/theory.md, sections "Several ridges" and "Rounding": every pair (p, a) bounds v @ theta on the same
event, also one that is chosen for v, and the best bound over all pairs is the exact one. A stack holds a
few pairs for all questions. ``refined_lower`` starts from the best of them and improves it for v by
Newton's method on the dual, for the sets ``several-ridges`` and ``unbiased`` (one ridge, p = 1) alike.
``constrained`` has a alone, and a bisection finds it.

With q = s p and b = s a, s > 0, the dual is concave in (q, b); s is maximised out in closed form. In the
logarithms of p and a the curvature of the entropy is sigma^2 (diag(p) - p p^T), so that far from the best
p a step is the one to Gibbs' p at the current minimiser. No step can do harm: the last pair is written
down with its rounding allowance as a pair of the stack is, and the better of both bounds is taken.

Rounding enters by (T2) of docs/theory.md: with tau = distance S + ||m - n||, for every cap > 0,

    sum_i F'_i (n - B theta)_i^2 <= (R_p + epsilon sqrt(n))^2 + cap tau^2,
    1 / F'_i = 1 / F_i + 1 / cap,  F_i = sum_j p_j / (Lambda_i + distance + l_j).

Nothing of the evidence is changed, not even its working space. Shapes: J = RIDGES, d features.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import called, inlined, kernel
from c4b._shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.alarms import EMPTY_SET
from c4b.evidence.bounds import lower
from c4b.evidence.eigenbasis import Spectrum
from c4b.evidence.ellipsoids import (
    ALARM,
    CONSTRAINED,
    LOG_DET,
    SEVERAL_RIDGES,
    TALLY,
    UNBIASED,
    Data,
    Region,
    Terms,
    cholesky,
    drift,
    gamma_squared,
    opened,
)
from c4b.evidence.entrywise_rounding import entrywise_spread
from c4b.evidence.rounding import UNIT
from c4b.evidence.sets.constrained import noise_spread, write_shifted
from c4b.evidence.sets.several_ridges import (
    LEAST_PART,
    NO_WEIGHT,
    RIDGES,
    mixed_spread,
    opened_choice,
    write_ellipsoid,
    write_log_dets,
)
from c4b.evidence.spectral import log_det, turned_moment, write_slack

REFINED = frozenset({SEVERAL_RIDGES, UNBIASED, CONSTRAINED})
"""Codes of the sets whose answers to one question are refined."""
STEPS, HALVINGS = 24, 8
"""Newton steps at most, and how often one of them is halved at most."""
BISECTIONS = 48
"""Multipliers that are tried for ``constrained`` at most."""
WORTH = 1e-4
"""Share of sigma^2 gamma^2 by which rounding may enlarge it before it is bounded entry by entry."""
ENOUGH = 1e-8
"""Promised gain, in units of the half-width, below which no further step is taken."""
UPWARD, DOWNWARD = 4.0, 40.0
"""How far log p_j and log a may rise and fall in one step."""
LEAST_SHARE = 1e-26
"""p_j at least while refining; in the end parts below LEAST_PART are left out."""
DECADES = np.logspace(-4.0, 6.0, 11)
"""Multipliers in units of R^2 / S^2 from which ``unbiased`` may start."""
LARGEST_CAP, LEAST_CAP = 1e12, 1e-30
"""cap in units of the largest F_i."""
BALL, PAIR = RIDGES, RIDGES + 1
"""Index of a among the variables, after those of p, and how many they are."""
DRIFT, ERROR = 0, 1
"""Entries of ``Question.numbers``."""
NOW, TRIAL = 0, 1
"""Rows of a ``Question`` that hold the best pair so far and the one on trial."""


class Question(NamedTuple):
    """What is asked, what is known, and the pairs (p, a) with their caps."""

    turned: Array  # (d,) z = Q v
    values: Array  # (d,) Lambda
    moment: Array  # (d,) Q m
    shares: Array  # (d, J) 1 / (Lambda_i + distance + l_j)
    log_dets: Array  # (J,)
    log_weights: Array  # (J,)
    mixes: Array  # (2, J)
    multipliers: Array  # (2,)
    caps: Array  # (2,)
    weights: Array  # (2, d) F'_i
    shrinks: Array  # (2, d) F'_i / F_i
    thetas: Array  # (2, d) where the ellipsoid's bound is attained
    numbers: Array  # (2,) epsilon sqrt(n) and tau
    curvature: Array  # (1, J + 1, J + 1) minus the dual's
    steps: Array  # (2, J + 1) its slope, and Newton's step


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
    question, one, data = _opened_space(space, region, data)
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
        a = _refine_constrained(one, data, terms, question.turned, data.ridges[best], spread)
        question.multipliers[NOW] = a
    else:
        if data.code == SEVERAL_RIDGES:
            _ask_several(question, data, best, far)
        else:
            _ask_one(question, data, best, far)
        if _start(question, terms, data.code == UNBIASED):
            _improve(question, terms)
            _certify(one, data, terms, question)
    write_slack(one, data, terms)
    found = lower(one, v)
    if found > bound:
        bound = found
        for j in range(BALL):
            pair[j] = question.mixes[NOW, j]
        pair[BALL] = question.multipliers[NOW]
    return bound


def space_size(dim: int) -> int:
    """Numbers in the working space of a question about d features."""
    return 4 * RIDGES + 11 + TALLY + PAIR * (PAIR + 2) + dim * (RIDGES + 13)


@inlined
def _opened_space(space: Array, region: Region, data: Data) -> tuple[Question, Region, Data]:
    """The question, a stack whose second ellipsoid says nothing, and the data with a tally, a turned
    moment and weights of its own: all that is written while a question is answered."""
    dim = len(data.moment)
    a = 4 * RIDGES
    b = a + 11 + TALLY
    c = b + PAIR * PAIR
    d = c + 2 * PAIR
    e = d + dim * RIDGES
    f = e + 6 * dim
    values, errors = data.spectrum.values, data.spectrum.errors
    moment, tally = shaped_view(space, f, (dim,)), shaped_view(space, a + 11, (TALLY,))
    question = Question(
        shaped_view(space, f + dim, (dim,)), values, moment, shaped_view(space, d, (dim, RIDGES)),
        shaped_view(space, 0, (RIDGES,)), shaped_view(space, RIDGES, (RIDGES,)),
        shaped_view(space, 2 * RIDGES, (2, RIDGES)), shaped_view(space, a, (2,)),
        shaped_view(space, a + 2, (2,)), shaped_view(space, e, (2, dim)),
        shaped_view(space, e + 2 * dim, (2, dim)), shaped_view(space, e + 4 * dim, (2, dim)),
        shaped_view(space, a + 4, (2,)), shaped_view(space, b, (1, PAIR, PAIR)),
        shaped_view(space, c, (2, PAIR)),
    )  # fmt: skip
    one = Region(
        region.spectral, region.inverse, region.basis, shaped_view(space, f + 2 * dim, (2, dim)),
        shaped_view(space, f + 4 * dim, (2, dim)), shaped_view(space, a + 6, (2,)),
        shaped_view(space, a + 8, (2,)), region.blur, shaped_view(space, a + 10, (1,)),
        region.norm_bound, region.totals, shaped_view(space, 0, (0,)),
    )  # fmt: skip
    for g in range(2):
        one.radius[g], one.reach[g] = np.nan, np.inf
    for k in range(TALLY):
        tally[k] = data.tally[k]
    s = data.spectrum
    spectrum = Spectrum(
        values, moment, errors, s.image, s.poles, s.weights, shaped_view(space, f + 6 * dim, (dim,)),
        s.active, s.rotation, s.copied,
    )  # fmt: skip
    own = Data(
        data.ridges, data.gram, data.moment, tally, data.mixing, data.code, data.inverse_error,
        data.log_det_error, data.scratch, spectrum, data.extra,
    )  # fmt: skip
    return question, one, own


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
    level = _level(question, terms, NOW) + question.caps[NOW] * question.numbers[ERROR] ** 2
    write_ellipsoid(region, data, a, 0, math.sqrt(level) * (1.0 + 64.0 * UNIT), terms)


@called
def _refine_constrained(
    region: Region, data: Data, terms: Terms, turned: Array, a: float, spread: float
) -> float:
    """The best multiplier of ``constrained`` from ``a`` on, as the first ellipsoid of ``region``.

    In log a the bound rises as long as its minimiser is longer than S, and falls beyond.
    """
    low, high, best, highest = 0.0, np.inf, a, -np.inf
    for _ in range(BISECTIONS):
        write_shifted(region, data, terms, a, 0, spread)
        centre, square, length = 0.0, 0.0, 0.0
        for i in range(len(turned)):
            centre += turned[i] * region.estimate[0, i]
            square += turned[i] * turned[i] * region.factors[0, i]
        ratio = region.reach[0] / math.sqrt(square)
        for i in range(len(turned)):
            length += (region.estimate[0, i] - ratio * turned[i] * region.factors[0, i]) ** 2
        value = centre - region.reach[0] * math.sqrt(square)
        if not value < np.inf or a * terms.norm_bound**2 < ENOUGH * spread:
            break
        if value > highest:
            best, highest = a, value
        if length > terms.norm_bound**2:
            low = a
        else:
            high = a
        if low > 0.0 and high < np.inf:
            a = math.sqrt(low * high)
        else:
            a *= 4.0 if low > 0.0 else 0.25
    write_shifted(region, data, terms, best, 0, spread)
    return best


@called
def _start(question: Question, terms: Terms, anywhere: bool) -> bool:
    """Complete the pair NOW: a part for each ridge with a weight, a cap. Returns whether it bounds.

    ``anywhere``: other multipliers are tried as well. Those of ``unbiased`` follow the ridge and may lie
    decades away from any that is of use.
    """
    for j in range(len(question.log_dets)):
        if question.log_weights[j] > 0.5 * NO_WEIGHT:
            question.mixes[NOW, j] = max(question.mixes[NOW, j], LEAST_PART)
        question.mixes[TRIAL, j] = question.mixes[NOW, j]
    widest, level = _widest(question), _level(question, terms, NOW)
    question.caps[NOW] = LARGEST_CAP * widest
    if question.numbers[ERROR] > 0.0:
        question.caps[NOW] = _within(math.sqrt(level * widest) / question.numbers[ERROR], widest)
    bound = _evaluate(question, terms, NOW)[0]
    for k in range(len(DECADES) if anywhere else 0):
        question.multipliers[TRIAL] = DECADES[k] * level / terms.norm_bound**2
        question.caps[TRIAL] = question.caps[NOW]
        value = _evaluate(question, terms, TRIAL)[0]
        if value > bound:
            bound = value
            _accept(question)
    return bound > -np.inf


@called
def _improve(question: Question, terms: Terms) -> None:
    """Newton steps from the pair NOW on. The bound never falls."""
    widest = _widest(question)
    bound, square = _evaluate(question, terms, NOW)
    for _ in range(STEPS):
        _try(question, 0.0, _other_cap(question, widest))
        value, level = _evaluate(question, terms, TRIAL)
        if value > bound:
            bound, square = value, level
            _accept(question)
        promised = _write_step(question, terms)
        if not promised > ENOUGH * square:
            break
        share, better = 1.0, False
        for _ in range(HALVINGS):
            _try(question, share, question.caps[NOW])
            value, level = _evaluate(question, terms, TRIAL)
            better = value > bound
            if better:
                break
            share *= 0.4
        if not better:
            break
        bound, square = value, level
        _accept(question)


@called
def _widest(question: Question) -> float:
    """The largest F_i of the pair NOW."""
    widest = 0.0
    for i in range(len(question.values)):
        weight = 0.0
        for j in range(len(question.log_dets)):
            weight += question.mixes[NOW, j] * question.shares[i, j]
        widest = max(widest, weight)
    return widest


@inlined
def _within(cap: float, widest: float) -> float:
    return min(max(cap, LEAST_CAP * widest), LARGEST_CAP * widest)


@called
def _accept(question: Question) -> None:
    """The pair on trial is the best so far."""
    for j in range(len(question.log_dets)):
        question.mixes[NOW, j] = question.mixes[TRIAL, j]
    question.multipliers[NOW], question.caps[NOW] = question.multipliers[TRIAL], question.caps[TRIAL]
    for i in range(len(question.values)):
        question.weights[NOW, i] = question.weights[TRIAL, i]
        question.shrinks[NOW, i] = question.shrinks[TRIAL, i]
        question.thetas[NOW, i] = question.thetas[TRIAL, i]


@called
def _spread(question: Question, terms: Terms, row: int) -> float:
    """R_p^2 of the mix in a row."""
    return mixed_spread(question.mixes, row, question.log_dets, question.log_weights, terms)


@inlined
def _level(question: Question, terms: Terms, row: int) -> float:
    """(R_p + epsilon sqrt(n))^2 of the mix in a row."""
    root: float = math.sqrt(_spread(question, terms, row)) + question.numbers[DRIFT]
    return root * root


@called
def _evaluate(question: Question, terms: Terms, row: int) -> tuple[float, float]:
    """The bound by the pair in a row, -inf if it bounds nothing, and the squared radius."""
    a, cap = question.multipliers[row], question.caps[row]
    level = _level(question, terms, row) + cap * question.numbers[ERROR] ** 2 + a * terms.norm_bound**2
    centre, least, square = 0.0, 0.0, 0.0
    for i in range(len(question.values)):
        weight = 0.0
        for j in range(len(question.log_dets)):
            weight += question.mixes[row, j] * question.shares[i, j]
        shrink = 1.0 / (1.0 + weight / cap)
        weight *= shrink
        question.weights[row, i], question.shrinks[row, i] = weight, shrink
        value, moment, z = question.values[i], question.moment[i], question.turned[i]
        factor = 1.0 / (value * weight * value + a)
        centre += z * value * weight * moment * factor
        least += a * factor * weight * moment * moment
        square += z * z * factor
    radius_squared = level - least + 8.0 * (len(question.values) + 12) * UNIT * (level + least)
    if not (radius_squared > 0.0 and square > 0.0):
        return -np.inf, np.inf
    half = math.sqrt(radius_squared * square)
    for i in range(len(question.values)):
        value, weight = question.values[i], question.weights[row, i]
        pull = (
            value * weight * question.moment[i] - math.sqrt(radius_squared / square) * question.turned[i]
        )
        question.thetas[row, i] = pull / (value * weight * value + a)
    return centre - half, radius_squared


@inlined
def _other_cap(question: Question, widest: float) -> float:
    """The cap at which F' (n - B theta) / cap, the worst error for the bound NOW, has length tau."""
    total, cap = 0.0, float(question.caps[NOW])
    if not question.numbers[ERROR] > 0.0:
        return cap
    for i in range(len(question.values)):
        rest = question.moment[i] - question.values[i] * question.thetas[NOW, i]
        total += (question.weights[NOW, i] * rest) ** 2
    return _within(math.sqrt(total) / question.numbers[ERROR], widest)


@inlined
def _write_step(question: Question, terms: Terms) -> float:
    """Newton's step for the logarithms of p and a at the pair NOW; returns what it promises, in units of
    the squared radius' share of the half-width."""
    mixes, a, theta = question.mixes, question.multipliers[NOW], question.thetas[NOW]
    matrix, slope, step = question.curvature[0], question.steps[0], question.steps[1]
    root = math.sqrt(_spread(question, terms, NOW))
    more = 1.0 + question.numbers[DRIFT] / root
    length = 0.0
    for j in range(len(question.log_dets)):
        slope[j] = 0.0
        if mixes[NOW, j] > 0.0:
            log_ratio = math.log(mixes[NOW, j]) - question.log_weights[j]
            cost = terms.noise**2 * (terms.log_term + question.log_dets[j] + 2.0 * log_ratio)
            slope[j] = (
                -0.5
                * mixes[NOW, j]
                * (more * cost + question.numbers[DRIFT] * (question.numbers[DRIFT] + root))
            )
    for j in range(len(slope)):
        for k in range(len(slope)):
            matrix[j, k] = 0.0
    for i in range(len(theta)):
        value = question.values[i]
        rest = question.moment[i] - value * theta[i]
        factor = 1.0 / (value * question.weights[NOW, i] * value + a)
        shrink = question.shrinks[NOW, i] ** 2
        length += theta[i] * theta[i]
        step[BALL] = a * theta[i]
        for j in range(len(question.log_dets)):
            part = mixes[NOW, j] * question.shares[i, j] * shrink * rest
            slope[j] += 0.5 * part * rest
            step[j] = -part * value
        for j in range(len(slope)):
            pushed = step[j] * factor
            if pushed != 0.0:
                for k in range(j + 1):
                    matrix[j, k] += pushed * step[k]
    slope[BALL] = 0.5 * a * (length - terms.norm_bound**2)
    stiff = terms.noise**2 * more
    for j in range(len(question.log_dets)):
        for k in range(j):
            matrix[j, k] -= stiff * mixes[NOW, j] * mixes[NOW, k]
        p = mixes[NOW, j]
        matrix[j, j] += stiff * p * max(1.0 - p, 0.0)
        matrix[j, j] = matrix[j, j] * (1.0 + 1e-9) if p > 0.0 else 1.0
    matrix[BALL, BALL] = (matrix[BALL, BALL] + abs(slope[BALL])) * (1.0 + 1e-9)
    cholesky(question.curvature, 0)
    for j in range(len(slope)):
        total = slope[j]
        for k in range(j):
            total -= matrix[j, k] * step[k]
        step[j] = total / matrix[j, j]
    for back in range(len(slope)):
        j = len(slope) - 1 - back
        total = step[j]
        for k in range(j + 1, len(slope)):
            total -= matrix[k, j] * step[k]
        step[j] = total / matrix[j, j]
    promised = 0.0
    for j in range(len(slope)):
        step[j] = min(max(step[j], -DOWNWARD), UPWARD)
        promised += step[j] * slope[j]
    return promised


@called
def _try(question: Question, share: float, cap: float) -> None:
    """A share of the step and another cap, from the pair NOW to the pair on trial."""
    total = 0.0
    for j in range(len(question.log_dets)):
        p = question.mixes[NOW, j]
        question.mixes[TRIAL, j] = (
            max(p * math.exp(share * question.steps[1, j]), LEAST_SHARE) if p > 0.0 else 0.0
        )
        total += question.mixes[TRIAL, j]
    for j in range(len(question.log_dets)):
        question.mixes[TRIAL, j] /= total
    a = question.multipliers[NOW] * math.exp(share * question.steps[1, BALL])
    question.multipliers[TRIAL], question.caps[TRIAL] = a / total, cap
