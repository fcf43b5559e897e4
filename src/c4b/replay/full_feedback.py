"""Replay of a log that holds the reward of every action in each round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.policies import Policy
from c4b.replay.result import Recorder, ReplayResult


class FullRound(NamedTuple):
    """One round with the rewards of all actions.

    The policy sees only the reward of the action that it plays.
    """

    candidates: Array
    """Features of the candidates, shape (K, d)."""
    baseline: int
    """Index of the incumbent's action."""
    rewards: Array
    """Rewards of the candidates, shape (K,)."""


def replay_full(policy: Policy, rounds: Iterable[FullRound]) -> ReplayResult:
    """Let the policy decide round after round.

    Nothing is estimated, because the log holds every outcome.
    """
    kept = Recorder(policy)
    for n, given in enumerate(rounds):
        play_full(kept, given, n)
    return kept.result(len(kept.rewards))


def play_full(kept: Recorder, given: FullRound, n: int) -> None:
    """Round ``n``."""
    rewards = _validate.series(f"rounds[{n}].rewards", given.rewards, len(given.candidates))
    if not 0 <= given.baseline < len(rewards):
        raise InvalidInput(f"rounds[{n}].baseline", given.baseline, "must be the index of a candidate")
    decision = kept.policy.decide(given.candidates, given.candidates[given.baseline])
    played = given.baseline if decision.action is None else decision.action
    kept.add(decision, float(rewards[played]), played == given.baseline)
    kept.baseline_rewards.append(float(rewards[given.baseline]))
