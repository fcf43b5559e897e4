"""The candidate that a choice plays because the best-scored one is not admissible, recomputed.

The rule is that of docs/theory.md, section "Choice". Scores and margins are those that the decision
records; the numbers that they are compared with are recomputed, so rounding may decide a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from c4b._validate import LARGEST, Array

COUNTERWEIGHTS, SAVES_UP = 3.0, 4.0
"""``RecordedRule.competes`` where the lowest-scored, or the best-scored, of the candidates is played that
leave more in the bank than the baseline would."""


class Counterweight(NamedTuple):
    """What the rule says of one decision."""

    candidate: int | None  # the candidate to play; None: the rule does not apply
    is_sure: bool  # False: rounding decides it


NONE = Counterweight(None, True)


def counterweight(
    scores: Array,
    doubts: Array,
    margins: Array,
    candidates: Array,
    promise: Callable[[int], tuple[float, float]],
    bars: tuple[Array, Array],
    lowest: bool,
) -> Counterweight:
    """From scores (K,) before any candidate was passed over, NaN or inf where there is none.

    doubts (K,): difference that rounding can make in a score. promise: what a candidate promises above
    the baseline, and the difference in it. bars: the margin (K,) that each candidate must exceed, the
    least and the most that rounding can make it. lowest: the lowest-scored one is played, not the
    best-scored one.
    """
    rank = np.where(np.abs(scores) < np.inf, scores, -np.inf)
    if not np.any(rank > -np.inf):
        return NONE
    top = int(np.argmax(rank))
    close = rank + doubts >= rank[top] - doubts[top]
    if (margins[close] >= 0.0).any():
        return (
            NONE if margins[top] >= 0.0 and (margins[close] >= 0.0).all() else Counterweight(None, False)
        )
    promised, doubt = promise(top)
    if not abs(promised) > doubt:
        return Counterweight(None, False)
    if promised < 0.0:
        return NONE
    usable = np.isfinite(rank) & (np.abs(candidates).max(axis=1, initial=0.0) <= LARGEST)
    order = np.where(usable & (margins > bars[0]), -rank if lowest else rank, -np.inf)
    if not np.any(order > -np.inf):
        return NONE
    first = int(np.argmax(order))
    return Counterweight(first, bool(margins[first] > bars[1][first]))
