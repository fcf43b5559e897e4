"""Are two states of a deployment the same, to the bit?"""

from __future__ import annotations

from typing import Any

import numpy as np

from c4b.deployment.transactions.state import State, durable_arrays


def same_bits(one: State, other: State) -> bool:
    """Whether two states would continue identically."""
    a, b = durable_arrays(one), durable_arrays(other)
    return (
        plain_part(one) == plain_part(other)
        and _recent(one, other).tobytes() == _recent(other, one).tobytes()
        and one.run.outcomes.next == other.run.outcomes.next
        and _late(one) == _late(other)
        and all(np.array_equal(_bits(a[k]), _bits(b[k])) for k in a)
    )


def plain_part(state: State) -> tuple[Any, ...]:
    counts = state.counts, state.alarm, state.model_alarm, state.run.rounds, state.archived
    series = None if state.series is None else (state.series.stride, state.series.array().tobytes())
    summary = None
    if state.summary is not None:
        arrays = {name: array.tobytes() for name, array in state.summary.arrays().items()}
        summary = state.summary.plain(), arrays
    places = state.seq, state.hash, state.at, state.ahead, state.open
    return *places, series, summary, state.rollout, *counts


def _recent(state: State, other: State) -> np.ndarray[Any, Any]:
    """The request ids that both remember, as ``state`` has them."""
    return state.recent.array(other.recent.since)


def _late(state: State) -> list[int]:
    """Open rounds with a later round whose reward is known."""
    outcomes = state.run.outcomes
    return [number for number in outcomes.open if outcomes.later_reward_known(number)]


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(array.tobytes(), np.uint8)
