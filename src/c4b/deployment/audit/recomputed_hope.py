"""What a hopeful choice tries where no candidate promises more than the baseline, recomputed.

The rule is that of docs/theory.md, section "Choice", *Hope*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding


class Hope(NamedTuple):
    """What is recomputed of one decision; arrays are (K,)."""

    left: float  # by how much less seems lost, or gained, than may be
    near: float  # difference that rounding can make in it
    could: Array  # how much better each candidate could be, less what rounding can make of it
    scores: Array  # before any candidate was passed over
    least: float  # margin that a thrifty choice would like to keep


def check_hope(
    hope: Hope, margins: Array, passed_over: NDArray[np.bool_], tried: int | None, near: float
) -> None:
    """Raise a Finding if the decision should have tried another candidate, or none.

    margins (K,) as recorded; passed_over (K,): the candidates left out. tried: the candidate played
    although it promises no more than the baseline; None: the baseline is played. near: difference that
    rounding can make in scores and margins.
    """
    if abs(hope.left) <= hope.near:
        return
    if not hope.left > 0.0:
        if tried is not None:
            raise Finding(
                f"executes candidate {tried}, which promises less than the baseline, though too much "
                "seems lost, or gained, to hope that it is better"
            )
        return
    better = passed_over & (margins >= 0.0) & (hope.could > 0.0)
    if tried is None:
        if better.any():
            raise Finding(
                f"plays the baseline, though candidate {int(better.argmax())} could be better and little "
                "seems lost"
            )
        return
    thrifty = bool(margins[tried] >= max(hope.least, 0.0) - near)
    before = better & (hope.scores > hope.scores[tried] + near)
    if thrifty:
        before &= margins >= max(hope.least, 0.0) + near
    if before.any():
        raise Finding(
            f"tries candidate {tried}, though candidate {int(before.argmax())} could be better, too, and "
            "has a higher score"
        )


def leeway_left(
    middles: Array, alpha: float, rounds: int, hope: float, reluctance: float
) -> tuple[float, float]:
    """By how much the rounds so far seem to have lost or gained less than ``hope`` units of leeway; and
    the size of what is compared. ``middles`` (2,) of the intervals of prefix and baseline."""
    free = hope * max(alpha * float(np.sqrt(rounds)) - reluctance, 0.0)
    if not free > 0.0:
        return -np.inf, 0.0
    left, mean = float(middles[0]), float(middles[1])
    return mean * free - abs(left - mean * alpha * rounds), 1.0 + abs(left) + abs(mean) * alpha * rounds
