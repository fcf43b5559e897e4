"""The regret of an optimistic learner over its horizon: what it can earn less than the best actions.

The learner plays the action with the highest upper bound in every round, and knows each outcome before
the next choice. On the event that its confidence set holds, ``regret`` bounds its regret over T rounds:
docs/theory.md, "The field". It is an ellipsoid (the paper's set) or a box of arms.
"""

import math

import numpy as np

from c4b._compilation.jit import called
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.sets.box import psi

ARMS, NOISE, LOG_TERM, RIDGE, NORM_BOUND, DIM, HORIZON, LOG_DET, ABSORBED = range(9)
SIZE, HEADING = 9, 7
"""Entries of a learner's flat vector: whether it knows arms; sigma, 2 log(1/delta), lambda, S, d and T,
which are fixed; log(det V / lambda^d) before the first round; how many outcomes it knows."""


def learner(
    arms: bool,
    noise: float,
    log_term: float,
    ridge: float,
    norm_bound: float,
    dim: int,
    horizon: int,
) -> Array:
    """A learner without data, which will decide at most ``horizon`` rounds."""
    return np.array([arms, noise, log_term, ridge, norm_bound, dim, horizon, 0.0, 0.0], dtype=np.float64)


@called
def regret(flat: Array, longest: float) -> float:
    """Reg_T, if no row is longer than ``longest``.

    Arms: the sum of widths is at most 4 sigma sqrt(psi(T) d T) less 2 sigma sqrt(psi) an arm, and the
    first play of each arm costs at most S. Ellipsoid: 2 beta sqrt(2 T d log(1 + T L^2 / (d lambda))),
    beta at least S L, so that widths above 1 count as 1.
    """
    noise, bound, dim, rounds = flat[NOISE], flat[NORM_BOUND], flat[DIM], flat[HORIZON]
    if flat[ARMS] == 1.0:
        growth = psi(rounds, int(dim), flat[LOG_TERM])
        first = max(0.0, bound - 2.0 * noise * math.sqrt(growth))
        total = 4.0 * noise * math.sqrt(growth * dim * rounds) + dim * first
    else:
        growth = dim * math.log(1.0 + rounds * longest * longest / (dim * flat[RIDGE]))
        beta = noise * math.sqrt(flat[LOG_DET] + growth + flat[LOG_TERM])
        beta = max(beta + math.sqrt(flat[RIDGE]) * bound, bound * longest)
        total = 2.0 * beta * math.sqrt(2.0 * rounds * growth)
    return float(total * (1.0 + 64.0 * UNIT))
