"""The candidate that hope tries where no candidate promises more than the baseline, recomputed.

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
    could: Array  # how much each candidate could gain
    better: Array  # the same in the less hopeful of two views, by the set and by what is believed
    cheap: NDArray[np.bool_]  # whether learning about it surely costs no more than it may
    dear: NDArray[np.bool_]  # whether it surely costs more
    soon: NDArray[np.bool_]  # whether it is surely cheap, or takes no more plays than hope may
    late: NDArray[np.bool_]  # whether it surely is neither
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
    better = passed_over & (margins >= 0.0) & (hope.better > 0.0)
    hopeful = hope.left > 0.0
    if tried is not None and (hope.late if hopeful else hope.dear)[tried]:
        reason = (
            "it would take too long to learn whether"
            if hopeful
            else ("too much seems lost, or gained, to hope that")
        )
        raise Finding(
            f"executes candidate {tried}, which promises less than the baseline, though {reason} it is "
            "better"
        )
    better &= hope.soon if hopeful else hope.cheap
    if tried is None:
        if better.any():
            raise Finding(
                f"plays the baseline, though candidate {int(better.argmax())} could be better and little "
                "seems lost, or learning about it is cheap"
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


def possible_aims(
    hope: Hope, within: Array, promises: Array, ambition: float, nears: Array
) -> tuple[float, float]:
    """The least and the most, as rounding can make it, that a candidate must be able to gain to take from
    the bank: a share of what the best-scored one could gain, if that is within reach and would be played.

    within (K,): margins, and what the baseline saves in as many rounds as there were. promises (K,) above
    the baseline. nears (K,): differences that rounding can make in what there is of each candidate.
    """
    found = []
    scores = np.where(np.isfinite(hope.scores), hope.scores, -np.inf)
    top = int(np.argmax(scores))
    for k in np.flatnonzero(~(scores + nears < scores[top] - nears[top])):
        near = nears[k]
        gain, better = hope.could[k], hope.better[k]
        worth = hope.soon if hope.left > hope.near else hope.cheap
        not_worth = hope.dear if hope.left < -hope.near else hope.late
        played = promises[k] > near or (better > near and bool(worth[k]))
        hopeless = bool(not_worth[k])
        left_out = promises[k] < -near and (better < -near or hopeless)
        if not (within[k] < -near or left_out):
            found.append(ambition * float(gain))
        if not (within[k] > near and played):
            found.append(-np.inf)
    return min(found), max(found)


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


def what_is_cheap(
    middles: Array,
    granted: tuple[float, float],
    view: tuple[Array, Array],
    rule: tuple[NDArray[np.int_], float],
    rounding: tuple[float, Array],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates (K,) may surely be learned about at the price that is granted, and which surely
    not.

    middles (2,) of prefix and baseline; granted: rewards of the baseline, alpha t and the part that
    learning may cost; view: what each candidate (K,) seems to gain, and how much more it could. rule:
    features (K,) to be learned, and sigma. rounding: the differences that it can make in sums of rewards
    and in bounds (K,).
    """
    spent = abs(float(middles[0]) - granted[0] * float(middles[1]))
    budget = granted[1] * float(middles[1]) - spent
    least, most = (_cost_of_learning(view, rule, sign * rounding[1]) for sign in (-1.0, 1.0))
    if budget < -rounding[0] or not granted[1]:
        return np.zeros(len(least), bool), np.ones(len(least), bool)
    return most < budget - rounding[0], least > budget + rounding[0]


def what_is_soon(
    most: float,
    view: tuple[Array, Array],
    rule: tuple[NDArray[np.int_], float],
    rounding: Array,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates (K,) may surely be learned about in so many plays at ``most``, and which surely
    not. The other arguments are as in ``what_is_cheap``."""
    fewest, plays = (_plays_to_learn(view, rule, sign * rounding) for sign in (-1.0, 1.0))
    return plays < most, fewest > most


def _plays_to_learn(
    view: tuple[Array, Array], rule: tuple[NDArray[np.int_], float], worse: Array
) -> Array:
    """Plays (K,): one for each feature, or as many as make the possible gain three standard errors; with
    estimates that are ``worse`` by so much."""
    features, noise = rule
    gain = view[0] - worse + view[1]
    with np.errstate(divide="ignore", over="ignore"):
        plays = features * np.maximum(9.0 * noise**2 / gain**2, 1.0)
    return np.where(gain > 0.0, plays, np.inf)


def _cost_of_learning(
    view: tuple[Array, Array], rule: tuple[NDArray[np.int_], float], worse: Array
) -> Array:
    """Rewards (K,) lost in these plays."""
    plays, loss = _plays_to_learn(view, rule, worse), np.maximum(worse - view[0], 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(plays < np.inf, plays * loss, np.inf)
