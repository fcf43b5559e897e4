"""Alarms: what in the data speaks against the model. docs/theory.md, section "Alarms".

An alarm latches: later data that agree with the model do not take it back.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.ellipsoids import ALARM, COUNT, SQUARES_SUM, Data, Terms

EMPTY_SET, RESIDUALS, NOT_LINEAR = 1.0, 2.0, 3.0
"""Codes in ``Data.tally``; 0 is no alarm. The set is empty, or the means of rewards in a declared range
are not linear: false with probability at most delta (it is the event that the guarantee leaves out
anyway). Residuals are too large for the declared noise: false with probability at most ALARM_LEVEL."""

MESSAGES = {
    EMPTY_SET: "no theta within the norm bound explains the data",
    RESIDUALS: "residuals are too large for the declared noise around any linear mean",
    NOT_LINEAR: "mean rewards are not linear in the features",
}

ALARM_LEVEL = 1e-3
"""An alarm latches for good and Gaussian noise of exactly sigma uses the level up, so it is small."""
ALARM_THRESHOLD = 2.0 * math.log(3.0 / ALARM_LEVEL)
"""Twice the log of what the largest of three e-values must reach."""
BETS = tuple((s, math.log(1.0 - s)) for s in (0.1, 0.3, 0.6))
"""Values of s in the e-process on residuals, each with log(1 - s); see ``watch``."""


@inlined
def watch(data: Data, terms: Terms, explained: float, rho: float) -> None:
    """Latch an alarm when residuals are too large for sigma-sub-Gaussian noise around any linear mean.

    E exp(s eta^2 / 2 sigma^2) <= 1/sqrt(1 - s), so exp{s RSS(theta*)/2 sigma^2 + (n/2) log(1 - s)} is a
    supermartingale, and RSS(theta*) >= sum Y^2 - m V^-1 m - lambda S^2 with m = sum x Y; ``explained``
    is m V^-1 m for V = A + lambda I, lambda the first ridge. The largest of three such e-values over 3
    is at most their mean, so it ever exceeds 1/ALARM_LEVEL with probability at most ALARM_LEVEL.
    ``rho`` bounds the rounding error of the centre that ``explained`` comes from.
    A mean within epsilon of linear adds at most s epsilon^2 / (1 - s) to s times a squared residual.
    """
    squares, count = data.tally[SQUARES_SUM], data.tally[COUNT]
    residual = squares - explained - data.ridges[0] * terms.norm_bound**2
    residual -= 1.1 * rho * math.sqrt(squares) + 2.0 * (count + 4.0) * UNIT * squares  # may be rounding
    scale = 1.0 / terms.noise**2
    for s, log_rest in BETS:
        growth = s * residual * scale + count * log_rest
        if terms.misspecification > 0.0:
            growth -= count * s * scale * terms.misspecification**2 / (1.0 - s)
        if growth >= ALARM_THRESHOLD and data.tally[ALARM] == 0.0:
            data.tally[ALARM] = RESIDUALS


@inlined
def root_or_alarm(data: Data, square: float, error: float) -> tuple[float, float]:
    """A radius and an upper bound of it, from its square and a bound of that square's rounding error.

    A square that is certainly negative is an empty set, whose radius is NaN; one that may be positive is
    not.
    """
    largest = square + error
    if largest < 0.0:
        data.tally[ALARM] = EMPTY_SET
        return np.nan, np.nan
    return math.sqrt(max(square, 0.0)), math.sqrt(largest)
