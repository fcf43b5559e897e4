"""The result of a replay."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.policies import Decision, Policy


@dataclass(frozen=True)
class ReplayResult:
    """One run of a policy over a log, round by round."""

    policy: str
    alpha: float
    rows: int
    """Number of rows that were read; a replay by matching uses only some of them."""
    rewards: Array
    """Reward of the policy in each of its rounds."""
    fell_back: NDArray[np.bool_]
    """Whether the gate played the incumbent's action, for each round."""
    banks: Array
    """The certified bank after each round; NaN without a gate."""
    baseline_rewards: Array | None = None
    """Reward that the incumbent would have earned in the same rounds, if the log holds it."""
    alarm: str | None = None

    @property
    def rounds(self) -> int:
        return len(self.rewards)

    @property
    def reward(self) -> float:
        """Mean reward per round."""
        return float(self.rewards.mean()) if self.rounds else float("nan")

    @property
    def fallback(self) -> float:
        """Share of rounds in which the gate played the incumbent's action."""
        return float(self.fell_back.mean()) if self.rounds else float("nan")

    @property
    def opened_at(self) -> int | None:
        """The first round (from 1) that did not play the incumbent's action; None if there is none."""
        return None if self.fell_back.all() else int(np.argmin(self.fell_back)) + 1

    @property
    def realised_credit(self) -> Array | None:
        """Sum of reward - (1 - alpha)·(the incumbent's reward) after each round, noise included."""
        if self.baseline_rewards is None:
            return None
        return np.cumsum(self.rewards - (1.0 - self.alpha) * self.baseline_rewards)

    def as_dict(self) -> dict[str, Any]:
        """A summary as plain data for JSON."""
        baseline, credit = self.baseline_rewards, self.realised_credit
        return {
            "policy": self.policy,
            "rows": self.rows,
            "rounds": self.rounds,
            "reward": self.reward,
            "reward_second_half": float(self.rewards[self.rounds // 2 :].mean()) if self.rounds else None,
            "baseline_reward": None if baseline is None else float(baseline.mean()),
            "fallback": self.fallback,
            "opened_at": self.opened_at,
            "bank": float(self.banks[-1]) if self.rounds and np.isfinite(self.banks[-1]) else None,
            "smallest_realised_credit": None if credit is None else float(credit.min()),
            "alarm": self.alarm,
        }


class Recorder:
    """Collects the rounds of one replay, in 25 bytes each."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.rewards, self.banks, self.baseline_rewards = array("d"), array("d"), array("d")
        self.fell_back = array("b")

    def add(self, decision: Decision, reward: float, is_baseline: bool) -> None:
        """Report the outcome to the policy and keep it."""
        self.policy.observe(decision.id, reward)
        self.rewards.append(reward)
        self.fell_back.append(is_baseline)
        self.banks.append(decision.bank)

    def result(self, rows: int) -> ReplayResult:
        """What the policy did with so many rows of the log."""
        baseline = np.array(self.baseline_rewards) if self.baseline_rewards else None
        return ReplayResult(
            policy=self.policy.name,
            alpha=self.policy.alpha,
            rows=rows,
            rewards=np.array(self.rewards),
            fell_back=np.array(self.fell_back, dtype=bool),
            banks=np.array(self.banks),
            baseline_rewards=baseline,
            alarm=self.policy.alarm,
        )
