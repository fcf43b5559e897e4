"""What a policy would have done on logged traffic: ``replay_log`` chooses among the four ways.

``replay_full`` where every action's reward is known, ``replay_matching`` on uniformly randomised logs,
``replay_queues`` where there is no context, ``judge`` for one fixed policy where propensities are known.
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
