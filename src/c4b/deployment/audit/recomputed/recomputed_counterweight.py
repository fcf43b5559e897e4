"""The candidate that a choice plays because the best-scored one is not admissible, recomputed.

The rule is that of docs/theory.md, section "Choice". Scores and margins are those that the decision
records; the numbers that they are compared with are recomputed, so rounding may decide a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from c4b._validate import LARGEST, Array

COUNTERWEIGHTS, SAVES_UP = 3.0, 4.0
"""``RecordedRule.competes`` where the lowest-scored, or the best-scored, of the candidates is played that
leave more in the bank than the baseline would."""


class Counterweight(NamedTuple):
    """What the rule says of one decision."""

    candidate: int | None  # the candidate to play; None: the rule does not apply
    is_sure: bool  # False: rounding decides it
    possible: npt.NDArray[np.bool_] | None = None
    """Candidates (K,) that it may be if the rule applies; None: any, or nobody asked."""


NONE = Counterweight(None, True)


Promise = Callable[[int], tuple[float, float]]
"""What a candidate promises above the baseline, and the difference that rounding can make in it."""


def awaited(
    scores: Array, doubts: Array, margins: Array, promise: Promise
) -> tuple[npt.NDArray[np.intp], bool]:
    """The best-scored candidate if it promises more than the baseline but is not admissible, or all that
    it may be, as rounding decides; none if the rule does not apply. And whether rounding decides that.

    From scores (K,) before any candidate was passed over, NaN or inf where there is none; doubts (K,):
    difference that rounding can make in a score.
    """
    none = np.empty(0, np.intp)
    rank = np.where(np.abs(scores) < np.inf, scores, -np.inf)
    if not np.any(rank > -np.inf):
        return none, True
    top = int(np.argmax(rank))
    close = rank + doubts >= rank[top] - doubts[top]
    if (margins[close] >= 0.0).any():
        return none, bool(margins[top] >= 0.0 and (margins[close] >= 0.0).all())
    promised, doubt = promise(top)
    if not abs(promised) > doubt:
        return none, False
    return (np.flatnonzero(close) if promised > 0.0 else none), True


def counterweight(
    scores: Array,
    doubts: Array,
    margins: Array,
    candidates: Array,
    promise: Promise,
    rival: float,
    near: float,
    lowest: bool,
) -> Counterweight:
    """Where the best-scored candidate is ``awaited``: who leaves more in the bank than the baseline.

    rival: the baseline's margin. near: difference that rounding can make in a margin. lowest: the
    lowest-scored one is played, not the best-scored one.
    """
    targets, is_sure = awaited(scores, doubts, margins, promise)
    if not is_sure or not len(targets):
        return Counterweight(None, is_sure)
    rank = np.where(np.abs(scores) < np.inf, scores, -np.inf)
    usable = np.isfinite(rank) & (np.abs(candidates).max(axis=1, initial=0.0) <= LARGEST)
    least = max(rival, 0.0)
    order = np.where(usable & (margins > least - near), -rank if lowest else rank, -np.inf)
    if not np.any(order > -np.inf):
        return NONE
    first = int(np.argmax(order))
    return Counterweight(first, bool(margins[first] > least + near))
