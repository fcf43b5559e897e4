"""Replay of a randomised trial without context: each action has a queue of its outcomes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.policies import Policy
from c4b.replay.result import Recorder, ReplayResult


def replay_queues(
    policy: Policy, features: object, baseline: int, actions: object, rewards: object
) -> ReplayResult:
    """Answer each decision with the next outcome of its action, until a queue is empty.

    If actions were assigned at random, an action's outcomes in the order of the log are distributed as
    those that the policy would have received. Unlike matching, no row is skipped.

    Parameters
    ----------
    features: one row for each action, shape (K, d).
    baseline: index of the incumbent's action.
    actions: index of the action in each row of the log.
    rewards: outcome of each row of the log.
    """
    table = _validate.table("features", features, policy.model.dim)
    outcomes = _validate.series("rewards", rewards)
    taken = np.asarray(actions)
    if taken.shape != outcomes.shape or taken.dtype.kind not in "iu":
        raise InvalidInput("actions", actions, "must be the index of an action for each reward")
    if len(taken) and not (taken.min() >= 0 and taken.max() < len(table)):
        raise InvalidInput("actions", actions, f"must be indices from 0 to {len(table) - 1}")
    if not 0 <= baseline < len(table):
        raise InvalidInput("baseline", baseline, f"must be an index from 0 to {len(table) - 1}")
    queues = Queues(table, baseline, taken, outcomes)
    kept = Recorder(policy)
    while queues.play(kept):
        pass
    return kept.result(len(outcomes))


class Queues:
    """The outcomes of each action in the order of the log, and how many of them were used."""

    def __init__(self, table: Array, baseline: int, taken: NDArray[np.int64], outcomes: Array) -> None:
        self.table, self.baseline = table, baseline
        self.outcomes = [outcomes[taken == n] for n in range(len(table))]
        self.used = np.zeros(len(table), dtype=np.int64)
        if not len(self.outcomes[baseline]):
            raise LogCannotAnswer("the incumbent's action was never taken: nothing is known about it")
        if sum(len(queue) > 0 for queue in self.outcomes) < 2:
            raise LogCannotAnswer("one action was always taken: the log knows nothing about another")

    def play(self, kept: Recorder) -> bool:
        """One round, unless the queue of the policy's action is empty: then False."""
        baseline = self.table[self.baseline]
        chosen = kept.policy.preview(self.table, baseline).action
        played = self.baseline if chosen is None else chosen
        if self.used[played] == len(self.outcomes[played]):
            return False
        decision = kept.policy.decide(self.table, baseline)
        reward = float(self.outcomes[played][self.used[played]])
        kept.add(decision, reward, played == self.baseline)
        self.used[played] += 1
        return True
