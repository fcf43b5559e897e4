"""Outcomes that come late, twice, never, or in another order than the decisions.

In-order absorption hands on only the contiguous prefix of outcomes in decision order. That is sound
for any delay mechanism, because the event (7) holds for every prefix length at once. On-arrival
absorption is sound only if the order of arrival is independent of the noise. Either way a loss must
depend on no reward of that round or of a later one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.policies.gate import Played

ABSORB = ("in-order", "on-arrival")
REMEMBERED = 4096
"""Closed outcomes kept to tell a harmless repetition from a contradiction; bounds the state."""


class PendingOutcome:
    """A decision whose outcome is not absorbed yet."""

    __slots__ = ("baseline", "baseline_mean", "executed", "is_baseline", "lost", "reward")

    def __init__(
        self,
        executed: Array,
        baseline: Array,
        is_baseline: bool,
        baseline_mean: float | None = None,
    ) -> None:
        self.executed = executed  # (d,)
        self.baseline = baseline  # (d,)
        self.is_baseline = is_baseline
        self.baseline_mean = baseline_mean
        self.reward: float | None = None
        self.lost = False

    @property
    def played(self) -> Played:
        return Played(self.executed, self.baseline, self.is_baseline, self.baseline_mean)

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
        self.recent_reward[slot] = math.nan if entry.reward is None else entry.reward
        return entry

    def later_reward_known(self, number: int) -> bool:
        """Whether a reward was reported of a later round than ``number``, which is open."""
        return self.latest > number

    def remembered(self, round_: int) -> float | None:
        """Reward of a closed round (NaN: lost), or None when it closed too long ago."""
        slot = round_ % REMEMBERED
        return float(self.recent_reward[slot]) if self.recent_round[slot] == round_ else None

    def arrays(self, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Everything but ``next``, as arrays; P open rounds. Told means only if some round has one."""
        entries = list(self.open.values())
        means = [math.nan if e.baseline_mean is None else e.baseline_mean for e in entries]
        told = {} if all(map(math.isnan, means)) else {"baseline_mean": np.array(means)}
        return {
            "round": np.array(list(self.open), dtype=np.int64),
            "executed": np.array([e.executed for e in entries]).reshape(-1, dim),
            "baseline": np.array([e.baseline for e in entries]).reshape(-1, dim),
            "is_baseline": np.array([e.is_baseline for e in entries], dtype=bool),
            "lost": np.array([e.lost for e in entries], dtype=bool),
            "reward": np.array(
                [math.nan if e.reward is None else e.reward for e in entries], dtype=np.float64
            ),
            "recent_round": self.recent_round,
            "recent_reward": self.recent_reward,
            **told,
        }

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]], dim: int) -> None:
        """The inverse of ``arrays``; ``latest`` as far as open rounds tell, which is enough in order."""
        rounds = arrays["round"].tolist()
        executed = arrays["executed"].reshape(len(rounds), dim)
        baseline = arrays["baseline"].reshape(len(rounds), dim)
        means = arrays.get("baseline_mean", np.full(len(rounds), np.nan)).tolist()
        for n, round_ in enumerate(rounds):
            entry = PendingOutcome(
                executed[n].copy(),
                baseline[n].copy(),
                bool(arrays["is_baseline"][n]),
                None if math.isnan(means[n]) else means[n],
            )
            entry.lost = bool(arrays["lost"][n])
            reward = float(arrays["reward"][n])
            entry.reward = None if math.isnan(reward) else reward
            self.open[round_] = entry
            if entry.reward is not None:
                self.latest = max(self.latest, round_)
        self.recent_round[...] = arrays["recent_round"]
        self.recent_reward[...] = arrays["recent_reward"]
