"""Outcomes that come late, twice, never, or in another order than the decisions.

In-order absorption hands on only the contiguous prefix of outcomes in decision order. That is sound
for any delay mechanism, because the event (7) holds for every prefix length at once. On-arrival
absorption is sound only if the order of arrival is independent of the noise. Either way a loss must
depend on no reward of that round or of a later one.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.policies.gate import Played
from c4b.policies.rounds.slates import Outcome, total

ABSORB = ("in-order", "on-arrival")
REMEMBERED = 4096
"""Closed outcomes kept to tell a harmless repetition from a contradiction; bounds the state."""


class PendingOutcome:
    """A decision whose outcome is not absorbed yet."""

    __slots__ = (
        "baseline", "baseline_items", "baseline_mean", "executed", "instead", "is_baseline", "items",
        "lost", "reward",
    )  # fmt: skip

    def __init__(
        self,
        executed: Array,
        baseline: Array,
        is_baseline: bool,
        baseline_mean: float | None = None,
        items: Array | None = None,
        baseline_items: Array | None = None,
        instead: bool = False,
    ) -> None:
        self.executed = executed  # (d,)
        self.baseline = baseline  # (d,)
        self.is_baseline = is_baseline
        self.baseline_mean = baseline_mean
        self.items = items  # (m, d) of an executed slate
        self.baseline_items = baseline_items
        self.instead = instead  # see Played.instead
        self.reward: Outcome | None = None
        self.lost = False

    @property
    def played(self) -> Played:
        return Played(
            self.executed,
            self.baseline,
            self.is_baseline,
            self.baseline_mean,
            self.items,
            self.baseline_items,
            self.instead,
        )

    @property
    def known(self) -> bool:
        return self.lost or self.reward is not None


class OutcomeQueue:
    """The queue between decisions and evidence, numbered by round."""

    def __init__(self, in_order: bool) -> None:
        self.in_order = in_order
        self.open: dict[int, PendingOutcome] = {}
        self.next = 0  # first round whose outcome is still open
        self.latest = -1  # last round whose reward was reported; after ``restore``, of the open ones
        self.recent_round = np.full(REMEMBERED, -1, dtype=np.int64)
        self.recent_reward = np.full(REMEMBERED, np.nan)  # NaN: declared lost

    def copy(self) -> OutcomeQueue:
        """The same queue, of the same open rounds."""
        other = copy.copy(self)
        other.open = self.open.copy()
        other.recent_round, other.recent_reward = self.recent_round.copy(), self.recent_reward.copy()
        return other

    def close(self, number: int) -> PendingOutcome | None:
        """Close the next round that can be closed now that ``number`` has its outcome; None: none can.

        Call it until it returns None, and absorb what it returns.
        """
        if self.in_order:
            head = self.open.get(self.next)
            if head is None or not (head.lost or head.reward is not None):
                return None
            number = self.next
            self.next += 1  # before anything can interrupt: an outcome is never absorbed twice
        elif number not in self.open:
            return None
        entry = self.open.pop(number)
        slot = number % REMEMBERED
        self.recent_round[slot] = number
        self.recent_reward[slot] = math.nan if entry.reward is None else total(entry.reward)
        return entry

    def close_next(self, number: int, reward: float) -> None:
        """``close`` where ``number`` is next and has its reward by now."""
        self.latest = max(self.latest, number)
        self.next = number + 1
        del self.open[number]
        slot = number % REMEMBERED
        self.recent_round[slot] = number
        self.recent_reward[slot] = reward

    def later_reward_known(self, number: int) -> bool:
        """Whether a reward was reported of a later round than ``number``, which is open."""
        return self.latest > number

    def remembered(self, round_: int) -> float | None:
        """Reward of a closed round, of a slate the sum (NaN: lost); None when it closed too long ago."""
        slot = round_ % REMEMBERED
        return float(self.recent_reward[slot]) if self.recent_round[slot] == round_ else None

    def arrays(self, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Everything but ``next``, as arrays; P open rounds. Told means, items and what was executed
        instead only if some round has any."""
        entries = list(self.open.values())
        means = [math.nan if e.baseline_mean is None else e.baseline_mean for e in entries]
        told = {} if all(map(math.isnan, means)) else {"baseline_mean": np.array(means)}
        instead = [e.instead for e in entries]
        return {
            "round": np.array(list(self.open), dtype=np.int64),
            "executed": _rows([e.executed for e in entries], dim),
            "baseline": _rows([e.baseline for e in entries], dim),
            "is_baseline": np.array([e.is_baseline for e in entries], dtype=bool),
            "lost": np.array([e.lost for e in entries], dtype=bool),
            "reward": np.array(
                [math.nan if e.reward is None else total(e.reward) for e in entries], dtype=np.float64
            ),
            "recent_round": self.recent_round,
            "recent_reward": self.recent_reward,
            **told,
            **({"instead": np.array(instead)} if any(instead) else {}),
            **_items(entries, dim),
        }

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]], dim: int) -> None:
        """The inverse of ``arrays``; ``latest`` as far as open rounds tell, which is enough in order."""
        rounds = arrays["round"].tolist()
        executed = arrays["executed"].reshape(len(rounds), dim)
        baseline = arrays["baseline"].reshape(len(rounds), dim)
        means = arrays.get("baseline_mean", np.full(len(rounds), np.nan)).tolist()
        instead = arrays.get("instead", np.zeros(len(rounds), dtype=bool)).tolist()
        slates = _slates(arrays, len(rounds))
        for n, round_ in enumerate(rounds):
            items, baseline_items, item_rewards = slates[n]
            entry = PendingOutcome(
                executed[n].copy(),
                baseline[n].copy(),
                bool(arrays["is_baseline"][n]),
                None if math.isnan(means[n]) else means[n],
                items,
                baseline_items,
                instead[n],
            )
            entry.lost = bool(arrays["lost"][n])
            reward = float(arrays["reward"][n])
            entry.reward = None if math.isnan(reward) else item_rewards or reward
            self.open[round_] = entry
            if entry.reward is not None:
                self.latest = max(self.latest, round_)
        self.recent_round[...] = arrays["recent_round"]
        self.recent_reward[...] = arrays["recent_reward"]


def _rows(features: list[Array], dim: int) -> Array:
    """(P, d); twice as fast as NumPy's own way from a list of small arrays."""
    return np.frombuffer(b"".join([each.tobytes() for each in features])).reshape(-1, dim)


def _items(entries: list[PendingOutcome], dim: int) -> dict[str, np.ndarray[Any, Any]]:
    """Items of open slates as arrays; empty if no open round is one. Counts of 0 stand for no slate."""
    if all(entry.items is None for entry in entries):
        return {}
    nothing = np.empty((0, dim))
    own = [nothing if e.items is None else e.items for e in entries]
    incumbent = [nothing if e.baseline_items is None else e.baseline_items for e in entries]
    rewards = [
        e.reward if isinstance(e.reward, tuple) else (math.nan,) * len(items)
        for e, items in zip(entries, own, strict=True)
    ]
    return {
        "item_counts": np.array([[len(a), len(b)] for a, b in zip(own, incumbent, strict=True)]),
        "items": np.concatenate(own),
        "baseline_items": np.concatenate(incumbent),
        "item_rewards": np.concatenate([np.array(each, dtype=np.float64) for each in rewards]),
    }


def _slates(
    arrays: dict[str, np.ndarray[Any, Any]], size: int
) -> list[tuple[Array | None, Array | None, tuple[float, ...] | None]]:
    """The inverse of ``_items``: items, baseline's items and rewards by item of each open round."""
    if "item_counts" not in arrays:
        return [(None, None, None)] * size
    slates: list[tuple[Array | None, Array | None, tuple[float, ...] | None]] = []
    ends = np.cumsum(arrays["item_counts"], axis=0)
    for (count, others), (end, others_end) in zip(
        arrays["item_counts"].tolist(), ends.tolist(), strict=True
    ):
        if not count:
            slates.append((None, None, None))
            continue
        rewards = tuple(arrays["item_rewards"][end - count : end].tolist())
        slates.append(
            (
                arrays["items"][end - count : end].copy(),
                arrays["baseline_items"][others_end - others : others_end].copy(),
                None if math.isnan(rewards[0]) else rewards,
            )
        )
    return slates
