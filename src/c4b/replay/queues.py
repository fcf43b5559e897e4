"""Replay of a randomised trial without context: each action's outcomes form a queue."""

from __future__ import annotations

import numpy as np

from c4b import _validate
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.policies import Policy
from c4b.replay.result import Recorder, ReplayResult


def replay_queues(
    policy: Policy, features: object, baseline: int, actions: object, rewards: object
) -> ReplayResult:
    """Answer each decision by the next outcome of its action, until a queue is empty.

    If actions were assigned at random, an action's outcomes in the order of the log are what the policy
    would have met. Unlike matching, no row is skipped.

    features: shape (K, d), one row for each action. baseline: index of the incumbent's action.
    actions: for each row of the log, the index of its action. rewards: for each row, its outcome.
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
    queues = [outcomes[taken == n].tolist()[::-1] for n in range(len(table))]
    if not queues[baseline]:
        raise LogCannotAnswer("the incumbent's action was never taken: nothing is known about it")
    if sum(map(bool, queues)) < 2:
        raise LogCannotAnswer("one action was always taken: the log knows nothing about another")
    kept = Recorder(policy)
    while True:
        chosen = policy.preview(table, table[baseline]).action
        played = baseline if chosen is None else chosen
        if not queues[played]:
            return kept.result(len(outcomes))
        decision = policy.decide(table, table[baseline])
        kept.add(decision, queues[played].pop(), played == baseline)
