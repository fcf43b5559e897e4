"""Newton's method on the dual: the best mix p and multiplier a for one question.

docs/theory.md, section "Several ridges". With q = s p and b = s a, s > 0, the dual is concave in (q, b);
s is maximised out in closed form. In the logarithms of p and a the curvature of the entropy is
sigma^2 (diag(p) - p p^T), so that far from the best p a step is the one to Gibbs' p at the current
minimiser. A step that does not raise the bound is shortened or left out. Rounding enters by (T2): with
tau = distance S + ||m - n||, for every cap > 0,

    sum_i F'_i (n - B theta)_i^2 <= (R_p + epsilon sqrt(n))^2 + cap tau^2,
    1 / F'_i = 1 / F_i + 1 / cap,  F_i = sum_j p_j / (Lambda_i + distance + l_j).
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b.evidence.arithmetic.cholesky_factor import cholesky
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.ellipsoids import Terms
from c4b.evidence.refinement.question import BALL, DRIFT, ERROR, NOW, TRIAL, Question
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import LEAST_PART, NO_WEIGHT, mixed_spread

STEPS, HALVINGS = 24, 8
"""Newton steps at most, and how often one of them is halved at most."""
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


@called
def start(question: Question, terms: Terms, anywhere: bool) -> bool:
    """Complete the pair NOW: a part for each ridge with a weight, a cap. Returns whether it bounds.

    ``anywhere``: other multipliers are tried as well. Those of ``unbiased`` follow the ridge and may lie
    decades away from any that is of use.
    """
    for j in range(len(question.log_dets)):
        if question.log_weights[j] > 0.5 * NO_WEIGHT:
            question.mixes[NOW, j] = max(question.mixes[NOW, j], LEAST_PART)
        question.mixes[TRIAL, j] = question.mixes[NOW, j]
    widest, level = _widest(question), mix_level(question, terms, NOW)
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
def improve(question: Question, terms: Terms) -> None:
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
def mix_level(question: Question, terms: Terms, row: int) -> float:
    """(R_p + epsilon sqrt(n))^2 of the mix in a row."""
    root: float = math.sqrt(_spread(question, terms, row)) + question.numbers[DRIFT]
    return root * root


@called
def _evaluate(question: Question, terms: Terms, row: int) -> tuple[float, float]:
    """The bound by the pair in a row, -inf if it bounds nothing, and the squared radius."""
    a, cap = question.multipliers[row], question.caps[row]
    level = mix_level(question, terms, row) + cap * question.numbers[ERROR] ** 2 + a * terms.norm_bound**2
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
