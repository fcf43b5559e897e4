"""Replays a policy on logged traffic. ``replay_log`` chooses among the four methods.

``replay_full`` needs the reward of every action, ``replay_matching`` a uniformly randomised log,
``replay_queues`` a randomised log without context, and ``judge`` known propensities; it evaluates one
fixed policy.
"""

from c4b.replay.action_pool import executed_features
from c4b.replay.full_feedback import FullRound, replay_full
from c4b.replay.judge import Judgement, judge
from c4b.replay.log_replay import LogReplay, Terms, replay_log
from c4b.replay.matching import LoggedRound, replay_matching
from c4b.replay.queues import replay_queues
from c4b.replay.result import ReplayResult

__all__ = [
    "FullRound",
    "Judgement",
    "LogReplay",
    "LoggedRound",
    "ReplayResult",
    "Terms",
    "executed_features",
    "judge",
    "replay_full",
    "replay_log",
    "replay_matching",
    "replay_queues",
]
