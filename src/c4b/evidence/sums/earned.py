"""What absorbed plays have earned: a lower bound of the sum of their means, from their rewards.

Rewards belong to the evidence. A ledger is given three things only: how many plays were absorbed (m), the
sum of their features (g) and a number h that the sum of their means is at least. docs/theory.md, "The
field", proves ``h = sum Y - sigma sqrt((m + 20)(log((m + 20)/20) + 2 log(1/delta)))`` for all m at once.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined, kernel
from c4b._validate import Array

NOISE, LOG_TERM, PLAYS, REWARDS, REWARDS_LOW = 0, 1, 2, 3, 4
HEADING = 2
FEATURES = 5
"""Entries of a flat vector: sigma and 2 log(1/delta), which are fixed; m, sum Y as a pair high + low,
then g as a pair of vectors."""
PRIOR_PLAYS = 20.0
"""Where the bound is tightest; any number fixed before the data is sound."""


def size(dim: int) -> int:
    """Numbers in a flat vector."""
    return FEATURES + 2 * dim


def empty(dim: int, noise: float, delta: float) -> Array:
    """No play yet; the bound fails with probability at most ``delta``."""
    flat = np.zeros(size(dim))
    flat[NOISE], flat[LOG_TERM] = noise, -2.0 * math.log(delta)
    return flat


@inlined
def earned_at_least(flat: Array) -> float:
    """h: the means of absorbed plays sum to at least this."""
    m = flat[PLAYS] + PRIOR_PLAYS
    width = flat[NOISE] * math.sqrt(m * (math.log(m / PRIOR_PLAYS) + flat[LOG_TERM]))
    total: float = flat[REWARDS] - width + flat[REWARDS_LOW]
    return total


@inlined
def earned_feature(flat: Array, dim: int, i: int) -> tuple[float, float]:
    """g_i as a pair."""
    return flat[FEATURES + i], flat[FEATURES + dim + i]


@inlined
def earned_holds(flat: Array, theta: Array, tolerance: float) -> bool:
    """Whether the bound holds for the true theta, with means within ``tolerance`` of linear."""
    dim, total = len(theta), flat[PLAYS] * tolerance
    for i in range(dim):
        total += flat[FEATURES + i] * theta[i]
    holds: bool = total >= earned_at_least(flat)
    return holds


@kernel
def earn(flat: Array, x: Array, y: float) -> None:
    """Absorb the reward of a play with features x (d,)."""
    dim = len(x)
    flat[PLAYS] += 1.0
    flat[REWARDS], flat[REWARDS_LOW] = _plus(flat[REWARDS], flat[REWARDS_LOW], y)
    for i in range(dim):
        a, b = FEATURES + i, FEATURES + dim + i
        flat[a], flat[b] = _plus(flat[a], flat[b], x[i])


@inlined
def _plus(high: float, low: float, value: float) -> tuple[float, float]:
    """high + low + value as a pair (Knuth's two-sum, twice)."""
    total = high + value
    part = total - high
    lost = low + ((high - (total - part)) + (value - part))
    high = total + lost
    part = high - total
    return high, (total - (high - part)) + (lost - part)
