"""Two sums of rewards on one event: what all other rows have earned, beside what the incumbent earns.

Lambda is the total mean of the other rows over w and M that of the rows like the first one, K and C
their sums of rewards over w (``c4b.evidence.sums.totals``). With two averages over factors s,

    f(K, Lambda) = log sum_i p_i s_i^K e^{-(s_i - 1) Lambda},

docs/theory.md (section "Totals together") gives with probability 1 - delta, for all numbers of rows at
once, ``f(K, Lambda) + g(C, M) <= log(1 / delta)``. Every choice of shares q_i >= 0 that add up to 1 gives
a line below f, ``f >= sum_i q_i (log(p_i s_i^K / q_i) - (s_i - 1) Lambda)``, so every two such lines give
a bound of Lambda by M: nothing here needs to converge to be true.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT

OTHER_RISES = np.array([0.0, 2.0**-6, 2.0**-5, 2.0**-4, 2.0**-3, 2.0**-2, 0.5, 1.0, 2.0])
"""s - 1 for the other rows: only lower bounds of what they earn are asked for."""
OTHER_PARTS = np.array([0.04] + [0.12] * 8)
OWN_RISES = np.array([0.0, *(sign * 2.0**-k for sign in (-1.0, 1.0) for k in (6, 5, 4, 3, 2))])
"""s - 1 for the rows like the first: mostly upper bounds."""
OWN_PARTS = np.array([0.1, 0.12, 0.12, 0.24, 0.24, 0.12, *[0.012] * 5])
OTHER_POWERS, OTHER_LOGS = np.log1p(OTHER_RISES), np.log(OTHER_PARTS)
OWN_POWERS, OWN_LOGS = np.log1p(OWN_RISES), np.log(OWN_PARTS)
OTHER_LEAST, OWN_LEAST = -float(OTHER_LOGS[0]), -float(OWN_LOGS[0])
"""f and g are never less than minus these, because s = 1 is among the factors."""
STEEPEST_FALL = 0.25
"""Largest slope that g can have."""


@called
def line_below(
    clicks: float, at: float, rises: Array, powers: Array, logs: Array
) -> tuple[float, float, float]:
    """(fall, start, bend): f(Lambda) >= start - fall Lambda, close at ``at``; bend is f'' there."""
    size, highest = len(rises), -np.inf
    for i in range(size):
        highest = max(highest, logs[i] + clicks * powers[i] - rises[i] * at)
    total, fall, bend, start = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        first = logs[i] + clicks * powers[i]
        above = (first - rises[i] * at) - highest
        part = math.exp(above)
        total += part
        fall += part * rises[i]
        bend += part * rises[i] * rises[i]
        start += part * (first - above)
    fall /= total
    return fall, start / total + math.log(total), max(bend / total - fall * fall, 0.0)


@called
def lowest_total(clicks: float, level: float, rises: Array, powers: Array, logs: Array) -> float:
    """A lower bound of a total with f <= level, by Newton's iteration from 0."""
    total = 0.0
    for _ in range(16):
        fall, start, _ = line_below(clicks, total, rises, powers, logs)
        if not start - fall * total > level + 1e-9 or not fall > 0.0:
            break
        total = (start - level) / fall
    return total


@called
def highest_total(clicks: float, level: float, rises: Array, powers: Array, logs: Array) -> float:
    """An upper bound of a total with f <= level, by Newton's iteration from far above; inf: none."""
    total = 1.2 * clicks + 4.0 * level + 40.0
    bound = np.inf
    for _ in range(16):
        fall, start, _ = line_below(clicks, total, rises, powers, logs)
        if not start - fall * total > level + 1e-9 or not fall < 0.0:
            break
        total = (start - level) / fall
        bound = total
    return bound


@called
def earned_line(clicks: float, own_clicks: float, ratio: float, level: float) -> tuple[float, float]:
    """(intercept, slope): Lambda >= intercept + slope M, with a slope near ``ratio`` >= 0; -inf: none.

    The intercept is the largest for that slope: where both lines touch and f + g = level.
    """
    best, slope = -np.inf, 0.0
    low, high, at, own_at = 0.0, np.inf, 0.5 * clicks, own_clicks
    for _ in range(40):
        fall, start, bend = line_below(clicks, at, OTHER_RISES, OTHER_POWERS, OTHER_LOGS)
        wanted, step = ratio * fall, np.nan
        if wanted < 0.999 * STEEPEST_FALL and fall > 1e-12:
            own_at = _touches(own_clicks, wanted, own_at)
            own_fall, own_start, own_bend = line_below(
                own_clicks, own_at, OWN_RISES, OWN_POWERS, OWN_LOGS
            )
            value = (start + own_start - level) / fall
            if value > best:
                best, slope = value, -own_fall / fall
            excess = (start - fall * at) + (own_start - own_fall * own_at) - level
            if abs(excess) <= 1e-7:
                break
            if excess > 0.0:
                low = at
            else:
                high = at
            step = excess / (fall * (1.0 + ratio * ratio * bend / max(own_bend, 1e-300)))
        elif fall > 1e-12:
            low = at
        else:
            high = at
        at += step
        if not (low < at < high):
            at = 0.5 * (low + high) if high < np.inf else 2.0 * low + 1.0
        if high - low <= 1e-9 * (1.0 + low):
            break
    return best, slope


@inlined
def _touches(clicks: float, wanted: float, at: float) -> float:
    """Where g has the slope ``wanted``, by Newton's iteration between bounds, from ``at`` on."""
    low, high = 0.0, np.inf
    for _ in range(60):
        fall, _, bend = line_below(clicks, at, OWN_RISES, OWN_POWERS, OWN_LOGS)
        excess = -fall - wanted
        if abs(excess) <= 1e-13 + 1e-12 * wanted:
            break
        if excess > 0.0:
            high = at
        else:
            low = at
        at -= excess / max(bend, 1e-300)
        if not (low < at < high):
            at = 0.5 * (low + high) if high < np.inf else 2.0 * low + 1.0
        if high - low <= 1e-14 * (1.0 + low):
            break
    return at


@inlined
def allowed_level(level: float, rows: float, clicks: float) -> float:
    """``level`` and more than the rounding of both sums and of the lines amounts to."""
    return level + 1e-7 + 4.0 * (rows + 256.0) * UNIT * (1.0 + clicks)
