"""A successor: the same traffic, another model, what was learned and what is left of the reserve.

Two journals cannot be written in one transaction, so the order of the steps makes it safe. Each step is
recorded and may be repeated, so whoever was interrupted calls it again:

1. the predecessor is closed, for this successor and with the reserve that it hands over. From then on it
   decides nothing;
2. the successor is created with that reserve. Its first entry names the predecessor, and the number and
   the hash of the entry that closed it;
3. the outcomes that the predecessor has learned from become the successor's history, in their order, and
   the successor is opened for decisions;
4. the predecessor records the hash of the successor's first entry, so that each journal knows the other.

Never do both decide. ``docs/theory.md`` says what both together promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.decision_entry import recorded_outcome, recorded_play
from c4b.deployment.state import State
from c4b.errors import InvalidInput
from c4b.journal import entries as kinds
from c4b.journal.entries import GENESIS
from c4b.journal.journal import Journal
from c4b.policies import slates
from c4b.policies.pending import OutcomeQueue, PendingOutcome

ROWS = 5000
"""Rows of history in one entry."""
Translation = Callable[[Array], Any]
"""From the predecessor's features (d,) of what was executed to those of the successor's model."""


class Handover(NamedTuple):
    """What the predecessor's journal says of it."""

    reserve: float
    closed_at: str
    """Name of the predecessor, number and hash of the entry that closed it."""


def left_of_reserve(state: State) -> float:
    """What a successor may take over: what is certified to be left, never more than there was.

    0 while an alarm is on, because then nothing is certified, and in shadow what was never used.
    """
    if state.alarm is not None or not state.bank > 0.0:
        return 0.0
    return min(state.bank, state.configuration.reserve)


def handover(journal: Journal, state: State) -> Handover:
    """Of a predecessor that was closed for a successor."""
    order = state.rollout.succession
    assert order is not None
    entry = journal.at(order.seq)
    assert entry is not None
    closed_at = f"{state.configuration.name}@{entry.seq}:{entry.hash().hex()}"
    return Handover(order.handed, closed_at)


def absorbed_rows(journal: Journal, in_order: bool) -> Iterator[tuple[Array, float]]:
    """Features and reward of every row that a deployment has learned from, in that order."""
    outcomes, round_of, rounds = OutcomeQueue(in_order), dict[int, int](), 0
    for entry in journal.tail(-1, GENESIS):
        fields, arrays = entry.unpack()
        if entry.kind == kinds.LEARNED:
            yield from zip(arrays["features"], arrays["rewards"].tolist(), strict=True)
        elif entry.kind == kinds.DECIDED:
            outcomes.open[rounds] = PendingOutcome(*recorded_play(fields, arrays))
            round_of[entry.seq], rounds = rounds, rounds + 1
        elif entry.about is not None and entry.kind == kinds.EXECUTED:
            pending = outcomes.open[round_of[entry.about]]
            pending.executed, pending.items = arrays["features"], arrays.get("items")
        elif entry.about is not None:
            number = round_of.pop(entry.about)
            reported = outcomes.open[number]
            reported.lost = entry.kind == kinds.FORGOTTEN
            reported.reward = None if reported.lost else recorded_outcome(arrays)
            while (closed := outcomes.close(number)) is not None:
                yield from _rows(closed)


def _rows(closed: PendingOutcome) -> Iterator[tuple[Array, float]]:
    """The observations that an outcome was: none if it was lost, one for each item of a slate."""
    if closed.reward is None:
        return
    if closed.items is not None:
        yield from slates.rows(closed.items, closed.reward)
    else:
        assert isinstance(closed.reward, float)
        yield closed.executed, closed.reward


def pages(
    rows: Iterator[tuple[Array, float]], translate: Translation | None, dim: int
) -> Iterator[tuple[Array, Array]]:
    """History for the successor, some rows at a time."""
    features: list[Any] = []
    rewards: list[float] = []
    for x, y in rows:
        features.append(x if translate is None else translate(x))
        rewards.append(y)
        if len(rewards) == ROWS:
            yield _table(features, dim), np.array(rewards)
            features, rewards = [], []
    if rewards:
        yield _table(features, dim), np.array(rewards)


def _table(features: list[Any], dim: int) -> Array:
    table = np.array(features, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != dim:
        remedy = f"must give {dim} features for each row, as many as the successor's model has"
        raise InvalidInput("translate", table.shape[1:], remedy)
    return table
