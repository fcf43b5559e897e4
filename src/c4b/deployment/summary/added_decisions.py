"""The arithmetic of ``running_totals``: many decisions are added to the sums in one compiled call.

The features are summed by Kahan's method, whose error is at most 2u + O(n u^2) of the sum of magnitudes,
for any n. ``error`` is what rounding has taken from the sums.
"""

from enum import IntEnum

import numpy as np

from c4b._compilation.jit import inlined, kernel
from c4b._validate import Array


class Sum(IntEnum):
    """Where each number lies in a row; the features' sums follow, d numbers each (``blocks``)."""

    DECISIONS = 0
    SEQ = 1
    """Number of the last decision's entry."""
    AT = 2
    """Its time, in microseconds since 1970."""
    BANK = 3
    """After it; NaN once something else was executed in an earlier round."""
    FALLBACKS = 4
    """Decisions for the baseline."""
    PLAYED = 5
    """Rounds in which something else than the baseline was executed."""
    OUTCOMES = 6
    """Rewards reported."""
    REWARD = 7
    """Their sum."""
    TOLD = 8
    """Sum of the baseline means that were told; NaN if they were not."""
    TOLD_PLAYED = 9
    """The same in rounds in which something else than the baseline was executed."""
    AMENDED = 10
    """Other executions that were added later; each may have rounded the sums once more."""
    SIZE = 11
    """Sum of the norms of all that was added to the features' sums: what their rounding is bounded by."""


HEADING = len(Sum)
_DECISIONS, _SEQ, _AT, _BANK, _FALLBACKS, _PLAYED, _OUTCOMES, _REWARD, _TOLD, _TOLD_PLAYED, _, _SIZE = (
    map(int, Sum)
)


class New(IntEnum):
    """Where each number of a decision that is to be added lies."""

    SEQ = 0
    AT = 1
    BANK = 2
    FALLBACK = 3
    IS_BASELINE = 4
    MEAN = 5
    """The baseline's if it was told, else NaN."""
    EXECUTED_NORM = 6
    BASELINE_NORM = 7


NEW = len(New)
(
    _NEW_SEQ, _NEW_AT, _NEW_BANK, _FALLBACK, _IS_BASELINE, _MEAN, _EXECUTED_NORM, _BASELINE_NORM,
) = map(int, New)  # fmt: skip


@kernel
def add_up(
    now: Array, error: Array, decisions: Array, features: Array, outcomes: Array, after: Array
) -> None:
    """Add decisions and outcomes to the sums ``now``, one after the other.

    decisions (n, NEW) executed features[:, 0] beside the baselines features[:, 1]. outcomes (m, 3): how
    many of these decisions came before, the round, the reward. after (n, len(now)): the sums after each
    decision, with the outcomes of rounds up to it.
    """
    before, told = now[_DECISIONS], 0
    for n in range(len(decisions) + 1):
        while told < len(outcomes) and outcomes[told, 0] == n:
            _earn(now, outcomes[told, 2])
            for k in range(int(max(outcomes[told, 1] - before, 0.0)), n):
                _earn(after[k], outcomes[told, 2])
            told += 1
        if n < len(decisions):
            new = decisions[n]
            now[_DECISIONS] += 1.0
            now[_SEQ], now[_AT], now[_BANK] = new[_NEW_SEQ], new[_NEW_AT], new[_NEW_BANK]
            now[_FALLBACKS] += new[_FALLBACK]
            _execute(now, error, 1.0, new, features[n])
            for i in range(len(now)):
                after[n, i] = now[i]


@inlined
def _earn(row: Array, reward: float) -> None:
    row[_OUTCOMES] += 1.0
    row[_REWARD] += reward


@kernel
def execute_instead(now: Array, error: Array, decisions: Array, features: Array) -> None:
    """Take back what was executed by decisions[0], and add what was executed by decisions[1] instead."""
    _execute(now, error, -1.0, decisions[0], features[0])
    _execute(now, error, 1.0, decisions[1], features[1])


@inlined
def _execute(now: Array, error: Array, sign: float, new: Array, features: Array) -> None:
    """Add what was executed in a round to the sums of now, or with ``sign`` -1 take it back."""
    mean, size, dim = new[_MEAN], now[_SIZE], features.shape[1]
    now[_TOLD] += sign * mean
    if not np.isnan(mean):
        size += abs(mean)
    if new[_IS_BASELINE] > 0.0:
        _add(now[HEADING + 2 * dim :], error[2], features[1], sign)
        now[_SIZE] = size + new[_BASELINE_NORM]
        return
    now[_PLAYED] += sign
    if not np.isnan(mean):
        now[_TOLD_PLAYED] += sign * mean
    _add(now[HEADING : HEADING + dim], error[0], features[0], sign)
    _add(now[HEADING + dim : HEADING + 2 * dim], error[1], features[1], sign)
    now[_SIZE] = size + new[_EXECUTED_NORM] + new[_BASELINE_NORM]


@inlined
def _add(total: Array, error: Array, features: Array, sign: float) -> None:
    """Kahan's step. ``total`` and ``error`` are changed."""
    for i in range(len(total)):
        lost = error[i] + sign * features[i]
        grown = total[i] + lost
        error[i] = lost + (total[i] - grown)
        total[i] = grown
