"""What a play must leave in the bank for what it is expected to lose, recomputed.

The rule is that of docs/theory.md, section "Choice", *Due*.
"""

from __future__ import annotations

import numpy as np

from c4b._validate import Array


def dues(
    scores: Array,
    doubts: Array,
    gains: Array,
    nears: Array,
    saved: tuple[float, float],
    prices: Array,
) -> tuple[Array, Array]:
    """The least and the most (K,), as rounding can make it, that each candidate must leave in the bank
    above what the baseline leaves.

    scores (K,) before any candidate was passed over, NaN or inf where there is none; gains (K,) that are
    expected beside the baseline; doubts and nears (K,): what rounding can change in them. saved: what a
    round of the baseline saves, the least and the most. prices (2, K): likewise, what a play of each
    candidate takes; -inf where that does not count.
    """
    rank = np.where(np.abs(scores) < np.inf, scores, -np.inf)
    if not np.any(rank > -np.inf):
        return np.zeros(len(scores)), np.zeros(len(scores))
    top = int(np.argmax(rank))
    close = rank + doubts >= rank[top] - doubts[top]
    if not close.any():  # doubts are not finite
        return np.zeros(len(scores)), np.full(len(scores), np.inf)
    low, high = prices[0, close].min(), prices[1, close].max()
    least = _rate(max(saved[0], float(low)), float((gains + nears)[close].max()))
    most = _rate(max(saved[1], float(high)), float((gains - nears)[close].min()))
    return _times(least, -gains - nears), _times(most, nears - gains)


def _rate(saved: float, gain: float) -> float:
    """What is due for each reward that is lost."""
    return max(saved, 0.0) / gain if gain > 0.0 else np.inf


def _times(rate: float, losses: Array) -> Array:
    """Nothing is due where nothing is lost."""
    with np.errstate(invalid="ignore"):
        return np.where(losses > 0.0, rate * losses, 0.0)
