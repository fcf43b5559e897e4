"""Replay of a log with uniformly drawn actions: rows in which the policy agrees are its rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.policies import Policy
from c4b.replay.result import Recorder, ReplayResult


class LoggedRound(NamedTuple):
    """One logged row: the candidates, the action and its reward."""

    candidates: Array
    """Features of the candidates, shape (K, d)."""
    baseline: int
    """Index of the incumbent's action."""
    action: int
    """Index of the logged action."""
    reward: float


def replay_matching(policy: Policy, rounds: Iterable[LoggedRound]) -> ReplayResult:
    """Use the rows in which the policy would have taken the logged action, and skip the others.

    If the logged actions were drawn uniformly and independently of everything, the used rows are
    distributed as the policy's own rounds (Li, Chu, Langford and Wang 2011). About one row in K is used.
    The policy sees nothing of a skipped row.
    """
    kept = Recorder(policy)
    rows = 0
    for n, given in enumerate(rounds):
        rows = n + 1
        play_matching(kept, given, n)
    require_rounds(kept, rows)
    return kept.result(rows)


def play_matching(kept: Recorder, given: LoggedRound, n: int) -> None:
    """Row ``n``, if it holds what the policy takes."""
    for name, index in (("baseline", given.baseline), ("action", given.action)):
        if not 0 <= index < len(given.candidates):
            raise InvalidInput(f"rounds[{n}].{name}", index, "must be the index of a candidate")
    baseline = given.candidates[given.baseline]
    chosen = kept.policy.preview(given.candidates, baseline).action
    if (given.baseline if chosen is None else chosen) != given.action:
        return
    decision = kept.policy.decide(given.candidates, baseline)
    kept.add(decision, float(given.reward), given.action == given.baseline)


def require_rounds(kept: Recorder, rows: int) -> None:
    """Raise ``LogCannotAnswer`` if no row matched."""
    if not kept.rewards:
        raise LogCannotAnswer(
            f"none of the {rows} rows holds an action that the policy would have taken: the log was not "
            "randomised over all actions, or never took the incumbent's"
        )
