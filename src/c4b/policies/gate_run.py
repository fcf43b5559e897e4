"""A gate in use: the rounds so far, and the outcomes that are not absorbed yet.

``Policy`` and ``Deployment`` share this: the first adds ids and files, the second a journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput, LaterOutcomeKnown
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Arrays, Gate, Played, copied
from c4b.policies.pending import OutcomeQueue, PendingOutcome
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.gate_answer import answered, check_charge
from c4b.policies.rounds.held_round import decide_for_baseline, decide_uncharged
from c4b.policies.rounds.round import Round
from c4b.policies.rounds.slates import Outcome, plain

_OUTCOMES = "outcomes."


class Mark(NamedTuple):
    """What decisions change."""

    gate: Any
    rounds: int
    uncharged: int = 0


class GateRun:
    """Decides, charges, amends and absorbs by round number (0 is the first). Belongs to one thread."""

    def __init__(self, gate: Gate, in_order: bool, gated: bool = True) -> None:
        self.gate, self.gated = gate, gated
        self.in_python = not isinstance(gate, CompiledGate)
        """Whether somebody else's code decides: its answers are checked."""
        self.may_raise = self.in_python or not gate.terms.model.confidence_set.is_compiled
        """Whether somebody else's code absorbs outcomes."""
        self.outcomes = OutcomeQueue(in_order)
        self.rounds = 0
        self.uncharged = 0
        """The first so many rounds were decided in shadow: the gate's ledger does not know them."""

    def decide(
        self, round_: Round, decision_id: str, held: str | None = None, charged: bool = True
    ) -> Decision:
        """One round, for a caller who takes it back with ``undo`` if it is interrupted.

        held: why the baseline is played whatever the gate chooses; None: the gate's choice is played.
        """
        if round_.items is not None:
            self._check_slates(round_)
        if held is None:
            decision = answered(self.gate, round_, decision_id)
        elif charged:
            decision = decide_for_baseline(self.gate, round_, decision_id, held)
        else:
            decision = decide_uncharged(self.gate, round_, decision_id, held)
            self.uncharged += 1
        if self.in_python:
            check_charge(self.gate, decision, self.rounds + 1 - self.uncharged, self.gated)
        action, baseline = decision.action, round_.baseline
        played = baseline if action is None else round_.candidates[action]
        pending = PendingOutcome(played.copy(), baseline.copy(), action is None, round_.baseline_mean)
        if round_.items is not None:
            offered, incumbent = round_.items
            pending.items = (incumbent if action is None else offered[action]).copy()
            pending.baseline_items = incumbent.copy()
        self.outcomes.open[self.rounds] = pending
        self.rounds += 1
        return decision if round_.labels is None else decision._replace(labels=tuple(round_.labels))

    def await_outcome(self, candidates: Array, baseline: Array, action: int | None) -> None:
        """Count a round that the gate has decided; see ``decide``."""
        played = baseline if action is None else candidates[action]
        number = self.rounds
        self.outcomes.open[number] = PendingOutcome(played.copy(), baseline.copy(), action is None)
        self.rounds = number + 1

    def _check_slates(self, round_: Round) -> None:
        """Refuse slates where nothing is proved for them."""
        gate, model, argument = self.gate, self.gate.terms.model, f"{round_.argument}candidates"
        if not gate.takes_slates:
            remedy = "this policy knows no slates; give one row for each, the sum of its items' features"
        elif model.misspecification > 0.0:
            remedy = "slates need misspecification 0: the deviations of their items would add up"
        elif model.rewards is not None:
            remedy = "slates need a model without a range of rewards: a sum of rewards leaves it"
        else:
            return
        raise InvalidInput(argument, round_.items, remedy)

    def check_outcome(self, number: int, argument: str, outcome: Outcome) -> None:
        """Refuse an outcome of an open round that its action cannot have."""
        items = self.outcomes.open[number].items
        if items is None and type(outcome) is float:
            return
        by_item = isinstance(outcome, tuple)
        if items is None and by_item:
            raise InvalidInput(argument, outcome, "must be one number: the decision is no slate")
        if items is not None and isinstance(outcome, tuple) and len(outcome) != len(items):
            raise InvalidInput(argument, outcome, f"must be {len(items)} numbers, or one for the slate")
        if items is not None and len(items) > 1 and self.gate.needs_item_outcomes and not by_item:
            remedy = f"must be {len(items)} numbers: this policy learns from items only"
            raise InvalidInput(argument, outcome, remedy)

    def recharge(self, bank: float, played: Played, charged: bool = True) -> None:
        """Take over a recorded decision without deciding again; the arrays become this object's."""
        if charged:
            self.gate.charge(bank, played)
        else:
            self.uncharged += 1
        self.outcomes.open[self.rounds] = PendingOutcome(*played)
        self.rounds += 1

    def amend(
        self,
        number: int,
        features: Array | None,
        bank: float | None = None,
        items: Array | None = None,
    ) -> None:
        """Other ``features`` (d,) than decided were executed in an open round; None: the baseline.

        A ``bank`` that was recorded when this happened is taken over. ``items`` (m, d): of a slate.
        """
        entry = self.outcomes.open[number]
        executed = entry.baseline if features is None else features
        if items is None:
            items = entry.baseline_items
        known = self.gate.knows_instead
        instead = Played(
            executed,
            entry.baseline,
            features is None,
            entry.baseline_mean,
            items,
            entry.baseline_items,
            known,
        )
        if number >= self.uncharged:
            self.gate.amend(number - self.uncharged, entry.played, instead, bank)
        else:
            self.gate.check_row("features", executed)
        entry.executed, entry.is_baseline, entry.instead = executed.copy(), features is None, known
        entry.items = None if items is None else items.copy()

    def is_recorded(self, number: int, features: Array | None, items: Array | None = None) -> bool:
        """Whether ``features`` (d,), None for the baseline, are what an open round has on record."""
        entry = self.outcomes.open[number]
        wanted = entry.baseline if features is None else features
        same = entry.is_baseline == (features is None) and np.array_equal(entry.executed, wanted)
        if items is None:
            items = entry.baseline_items
        return same and (entry.items is None or items is None or np.array_equal(entry.items, items))

    def check_kind(self, number: int, features: object, items: Array | None) -> None:
        """Refuse a slate in an open round of single actions, and the other way round."""
        slate = self.outcomes.open[number].items is not None
        if slate != (items is not None):
            remedy = "must be a slate (m, d), as was decided" if slate else "must be one row, shape (d,)"
            raise InvalidInput("features", features, remedy)

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

    def report_next(self, number: int, reward: float) -> bool:
        """``report`` for the oldest open round, in less time; False, with nothing done, for any other."""
        outcomes, gate = self.outcomes, self.gate
        entry = outcomes.open.get(number)
        if (
            entry is None
            or number != outcomes.next
            or number < self.uncharged
            or entry.reward is not None
            or entry.lost
            or entry.items is not None
            or not (gate.learns_alike and outcomes.in_order)
        ):
            return False
        entry.reward = reward
        outcomes.close_next(number, reward)
        gate.absorb(entry.executed, reward)
        if outcomes.open:
            self._absorb_closed(number)
        return True

    def report(self, number: int, reward: Outcome | None) -> None:
        """The outcome of an open round, None for lost; absorbs what can be absorbed now."""
        outcomes = self.outcomes
        entry = outcomes.open[number]
        if reward is None:
            entry.lost = True
        else:
            entry.reward = plain(reward)
            outcomes.latest = max(outcomes.latest, number)
        self._absorb_closed(number)

    def _absorb_closed(self, number: int) -> None:
        """Close and absorb what can be now that ``number`` has its outcome."""
        outcomes = self.outcomes
        closed = outcomes.close(number)
        while closed is not None:
            round_ = outcomes.next - 1 if outcomes.in_order else number
            if round_ < self.uncharged and closed.reward is not None:
                self.gate.absorb_uncharged(closed.played, closed.reward)
            elif closed.items is not None and closed.reward is not None:
                self.gate.absorb_slate(closed.played, closed.reward)
            elif closed.reward is not None:
                assert not isinstance(closed.reward, tuple)
                self.gate.absorb_outcome(closed.played, closed.reward)
            closed = outcomes.close(number) if outcomes.open else None

    def mark(self) -> Mark:
        """Where ``undo`` goes back to."""
        return Mark(self.gate.mark(), self.rounds, self.uncharged)

    def undo(self, mark: Mark) -> None:
        """Take back the decisions since ``mark``; no outcome was reported in between."""
        self.gate.undo(mark.gate)
        for number in range(mark.rounds, max(self.rounds, mark.rounds) + 1):
            self.outcomes.open.pop(number, None)
        self.rounds, self.uncharged = mark.rounds, mark.uncharged

    @contextmanager
    def whole(self, reported: Collection[int] = ()) -> Iterator[None]:
        """History, an execution, or outcomes of the rounds ``reported`` are taken altogether, or not at
        all if a gate or a set in plain Python raises an error."""
        if not self.may_raise:
            yield
            return
        gate, outcomes = copied(self.gate.snapshot()), self.outcomes.copy()
        try:
            yield
        except BaseException:
            self.gate.restore(gate)
            self.outcomes = outcomes
            for number in reported:
                outcomes.open[number].reward, outcomes.open[number].lost = None, False
            raise

    def arrays(self) -> Arrays:
        """The gate's snapshot and the open outcomes, as a file or a journal keeps them."""
        prefix, dim = self.gate.array_prefix, self.gate.terms.model.dim
        outcomes = self.outcomes.arrays(dim)
        return {
            **{f"{prefix}{name}": array for name, array in self.gate.snapshot().items()},
            **{f"{_OUTCOMES}{name}": array for name, array in outcomes.items()},
        }

    def restore(
        self, arrays: Arrays, rounds: int, next_: int, latest: int | None, uncharged: int = 0
    ) -> None:
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
        self.rounds, self.outcomes.next, self.uncharged = rounds, next_, uncharged
        if not self.outcomes.in_order:
            unknown = rounds - 1 if len(self.outcomes.open) < rounds else -1
            self.outcomes.latest = unknown if latest is None else latest
        if not (
            rounds - uncharged == self.gate.rounds
            and 0 <= next_ <= rounds
            and all(0 <= number < rounds for number in self.outcomes.open)
        ):
            raise ValueError("its parts contradict each other")
