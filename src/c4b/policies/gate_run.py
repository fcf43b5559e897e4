"""A gate in use: the rounds so far, and the outcomes that are not absorbed yet.

``Policy`` and ``Deployment`` share this: the first adds ids and files, the second a journal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import LaterOutcomeKnown
from c4b.policies.decision import Decision
from c4b.policies.gate import Arrays, Gate, Played
from c4b.policies.pending import OutcomeQueue, PendingOutcome
from c4b.policies.round import Round

_OUTCOMES = "outcomes."


class Mark(NamedTuple):
    """What decisions change."""

    gate: Any
    rounds: int


class GateRun:
    """Decides, charges, amends and absorbs by round number (0 is the first). Belongs to one thread."""

    def __init__(self, gate: Gate, in_order: bool) -> None:
        self.gate = gate
        self.outcomes = OutcomeQueue(in_order)
        self.rounds = 0

    def decide(self, round_: Round, decision_id: str) -> Decision:
        """One round, for a caller who takes it back with ``undo`` if it is interrupted."""
        decision = self.gate.decide(round_, decision_id)
        action, baseline = decision.action, round_.baseline
        played = baseline if action is None else round_.candidates[action]
        self.outcomes.open[self.rounds] = PendingOutcome(
            played.copy(), baseline.copy(), action is None, round_.baseline_mean
        )
        self.rounds += 1
        return decision if round_.labels is None else decision._replace(labels=tuple(round_.labels))

    def recharge(self, bank: float, played: Played) -> None:
        """Take over a recorded decision without deciding again; the arrays become this object's."""
        self.gate.charge(bank, played)
        self.outcomes.open[self.rounds] = PendingOutcome(*played)
        self.rounds += 1

    def amend(self, number: int, features: Array | None, bank: float | None = None) -> None:
        """Other ``features`` (d,) than decided were executed in an open round; None: the baseline.

        A ``bank`` that was recorded when this happened is taken over.
        """
        entry = self.outcomes.open[number]
        executed = entry.baseline if features is None else features
        instead = Played(executed, entry.baseline, features is None, entry.baseline_mean)
        self.gate.amend(number, entry.played, instead, bank)
        entry.executed, entry.is_baseline = executed.copy(), features is None

    def is_recorded(self, number: int, features: Array | None) -> bool:
        """Whether ``features`` (d,), None for the baseline, are what an open round has on record."""
        entry = self.outcomes.open[number]
        wanted = entry.baseline if features is None else features
        return entry.is_baseline == (features is None) and np.array_equal(entry.executed, wanted)

    def check_order(self, number: int, decision_id: str, independent: bool) -> None:
        """Refuse a loss or another execution of an open round once a later round's reward is known.

        The confidence sets need that neither depends on a reward of that round or of a later one. Only
        the caller can know, and asserts it by ``independent``.
        """
        if not independent and self.outcomes.later_reward_known(number):
            raise LaterOutcomeKnown(
                "decision_id",
                decision_id,
                "an outcome of a later decision was reported already; if this report depends on no "
                "reward of this decision or of a later one, repeat it with independent=True (command "
                "line: --independent), else leave the decision open",
            )

    def named(self, number: int, features: Array | None) -> Array | None:
        """None for features (d,) that are the baseline's of an open round, else the features.

        Where means are linear in the features, equal features are one action. With declared
        misspecification they may be two actions with different means.
        """
        same = features is not None and np.array_equal(features, self.outcomes.open[number].baseline)
        return None if same and self.gate.terms.model.misspecification == 0.0 else features

    def report(self, number: int, reward: float | None) -> None:
        """The outcome of an open round, None for lost; absorbs what can be absorbed now."""
        outcomes = self.outcomes
        entry = outcomes.open[number]
        if reward is None:
            entry.lost = True
        else:
            entry.reward = reward
            outcomes.latest = max(outcomes.latest, number)
        closed = outcomes.close(number)
        while closed is not None:
            if closed.reward is not None:
                self.gate.absorb_outcome(closed.played, closed.reward)
            closed = outcomes.close(number) if outcomes.open else None

    def mark(self) -> Mark:
        """Where ``undo`` goes back to."""
        return Mark(self.gate.mark(), self.rounds)

    def undo(self, mark: Mark) -> None:
        """Take back the decisions since ``mark``; no outcome was reported in between."""
        self.gate.undo(mark.gate)
        for number in range(mark.rounds, max(self.rounds, mark.rounds) + 1):
            self.outcomes.open.pop(number, None)
        self.rounds = mark.rounds

    def arrays(self) -> Arrays:
        """The gate's snapshot and the open outcomes, as a file or a journal keeps them."""
        prefix, dim = self.gate.array_prefix, self.gate.terms.model.dim
        outcomes = self.outcomes.arrays(dim)
        return {
            **{f"{prefix}{name}": array for name, array in self.gate.snapshot().items()},
            **{f"{_OUTCOMES}{name}": array for name, array in outcomes.items()},
        }

    def restore(self, arrays: Arrays, rounds: int, next_: int, latest: int | None) -> None:
        """Continue from ``arrays``; raises ``ValueError`` if they are not of such a gate.

        latest: the last round whose reward was reported. With on-arrival absorption None means unknown;
        then it may have been any.
        """
        prefix = self.gate.array_prefix
        self.gate.restore(
            {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix) and not name.startswith(_OUTCOMES)
            }
        )
        own = {n.removeprefix(_OUTCOMES): a for n, a in arrays.items() if n.startswith(_OUTCOMES)}
        self.outcomes.restore(own, self.gate.terms.model.dim)
        self.rounds, self.outcomes.next = rounds, next_
        if not self.outcomes.in_order:
            unknown = rounds - 1 if len(self.outcomes.open) < rounds else -1
            self.outcomes.latest = unknown if latest is None else latest
        if not (
            rounds == self.gate.rounds
            and 0 <= next_ <= rounds
            and all(0 <= number < rounds for number in self.outcomes.open)
        ):
            raise ValueError("its parts contradict each other")
