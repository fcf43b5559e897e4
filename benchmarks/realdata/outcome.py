"""What one policy did in one world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.replay import ReplayResult

POINTS = 200
CITED = "clucb-unknown"
"""Kazerouni et al. 2017 with an unknown baseline: of the literature, what applies in all worlds."""


@dataclass(frozen=True)
class Outcome:
    """One line of the tables, and one line of the figures."""

    world: str
    seed: int
    policy: str
    rounds: int
    reward: float
    reward_second_half: float
    fallback: float | None = None
    opened_at: int | None = None
    smallest_credit: float | None = None
    """Smallest realised sum of reward - (1 - alpha)·(the incumbent's reward), noise included."""
    noise_allowance: float | None = None
    """How far noise alone pulls that sum below its mean, at the same round, with probability 10⁻³."""
    bank: float | None = None
    alarm: str | None = None
    rate: list[float] = field(default_factory=list)
    """Mean reward up to POINTS moments."""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def of_replay(world: str, seed: int, found: ReplayResult, label: str | None = None) -> Outcome:
    summary = found.as_dict()
    credit = found.realised_credit
    allowance = None
    if credit is not None:
        worst = int(np.argmin(credit))
        steps = np.diff(credit, prepend=0.0)[: worst + 1]
        allowance = float(3.1 * np.sqrt(np.sum(np.square(steps - steps.mean()))))
    return Outcome(
        world, seed, label or found.policy, found.rounds, found.reward, summary["reward_second_half"],
        found.fallback, found.opened_at, summary["smallest_realised_credit"], allowance,
        summary["bank"], found.alarm, running_mean(found.rewards),
    )  # fmt: skip


def of_rewards(world: str, seed: int, policy: str, rewards: Array) -> Outcome:
    """A rule without a gate: the incumbent, a fixed ranking, chance."""
    half = float(rewards[len(rewards) // 2 :].mean())
    return Outcome(
        world, seed, policy, len(rewards), float(rewards.mean()), half, rate=running_mean(rewards)
    )


def running_mean(rewards: Array) -> list[float]:
    places = np.unique(np.linspace(1, len(rewards), POINTS).astype(int))
    return [round(float(v), 5) for v in (np.cumsum(rewards)[places - 1] / places)]
