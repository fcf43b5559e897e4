"""The interface between ``auditor`` and the checks of decisions, which exist at two levels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

from c4b._validate import Array
from c4b.policies.gate import Played
from c4b.policies.rounds.decision import DecisionNumbers


class RecordedDecision(NamedTuple):
    """One ``decided`` entry, read."""

    seq: int
    round: int
    """0 for the first decision."""
    fields: dict[str, Any]
    arrays: dict[str, Array]
    numbers: DecisionNumbers
    played: Played
    has_same_bits: bool
    """Whether the replayed set is the recorded one to the bit."""

    @property
    def action(self) -> int | None:
        action: int | None = self.fields["action"]
        return action

    @property
    def chosen(self) -> int | None:
        """By the gate; in a round that was held something else was executed."""
        chosen: int | None = self.fields["proposed" if "held" in self.fields else "action"]
        return chosen

    @property
    def complete(self) -> bool:
        """Whether all candidates are there; else only those that were executed or chosen."""
        return "kept" not in self.fields

    @property
    def evaluated(self) -> list[int] | None:
        """The candidates whose details are there; None: all. Those of the others are NaN."""
        evaluated: list[int] | None = self.fields.get("evaluated")
        return evaluated

    @property
    def charged(self) -> bool:
        """Whether the ledger counts the round: in shadow it does not."""
        return self.fields.get("held") != "shadow"


class Share(NamedTuple):
    """The decisions that one process recomputes; those of the others it only follows."""

    number: int
    of: int
    after: int = -1
    """Entries up to this number were verified by an earlier audit."""

    def covers(self, decision: RecordedDecision) -> bool:
        return decision.seq > self.after and decision.round % self.of == self.number


EVERYTHING = Share(0, 1)


class DecisionChecks(Protocol):
    """Follows the decisions of one journal; raises ``Finding`` for what does not hold."""

    level: str
    """``"recomputed"`` or ``"replayed"``; see ``Report.level``."""

    @property
    def bank(self) -> float:
        """After the entries so far; NaN without a gate."""

    @property
    def observations(self) -> int:
        """Absorbed so far."""

    def learn(self, features: Array, rewards: Array) -> None:
        """History (n, d) with rewards (n,)."""

    def absorb(self, played: Played, reward: float | tuple[float, ...], charged: bool) -> None:
        """The outcome of what was executed; a tuple has one reward for each item of a slate.

        charged: whether the ledger counts the round, as ``RecordedDecision.charged``.
        """

    def decided(self, decision: RecordedDecision) -> None:
        """The next decision."""

    def needs_replay(self, decision: RecordedDecision) -> bool:
        """Whether only the fast path can say if this decision, the last one, is right.

        Rounding leaves open how much worse than recomputed its numbers may be; or some number is -inf
        that is recomputed as a finite one. That is safe, but may be why something else was chosen.
        """

    def executed(self, round_: int, decided: Played, executed: Played, bank: float) -> None:
        """``executed`` was executed instead of ``decided``, which left ``bank``."""


def same(a: float, b: float) -> bool:
    """The same number, or both none."""
    return a == b or (math.isnan(a) and math.isnan(b))


def described(action: int | None) -> str:
    return "the baseline" if action is None else f"candidate {action}"
