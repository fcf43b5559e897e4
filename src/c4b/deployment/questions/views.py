"""What a deployment answers about itself and its past: frozen values with plain JSON forms."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from c4b._validate import Array
from c4b.policies.rounds.decision import Decision, candidate_name, same_content
from c4b.policies.rounds.explanation import HELD, Explanation


@dataclass(frozen=True, slots=True)
class Order:
    """An order that is in force; see :mod:`c4b.deployment.transactions.rollout`."""

    action: str
    """``freeze``, ``ramp``, ``go-live``, ``close``, or ``succeed``: closed for a successor."""
    by: str
    why: str
    at: datetime
    share: float | None = None
    """Of a ramp: the most of all rounds that may leave the incumbent."""

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a deployment after entry ``seq``."""

    name: str
    policy: str
    alpha: float
    reserve: float
    bank: float
    """Certified lower bound of R0 + cumulative contrast so far; NaN without a gate."""
    rounds: int
    fallbacks: int
    observations: int
    """Absorbed, history included."""
    pending: int
    """Decisions whose outcome is not known."""
    waiting: int
    """Known outcomes that wait for an earlier one."""
    oldest_pending: str | None
    oldest_pending_age: float | None = field(compare=False)
    """Seconds since that decision, by this process's clock; None when nothing is pending."""
    clock_ahead: float = field(compare=False)
    """Seconds by which the journal's times are ahead of this process's clock; 0 unless some clock was
    once far ahead."""
    radius: float
    alarm: str | None
    """What the data refute of the model: certificates are void; or that the bank is below the reserve
    that a successor has taken over. A negative bank alone is no alarm."""
    seq: int
    hash: str
    """Of the last entry: keep it elsewhere, and nobody can rewrite the past unnoticed."""
    at: datetime
    alarm_since: datetime | None = None
    """When it was raised."""
    alarm_after: str | None = None
    """Id of the last decision made before it; None: there was none, or no alarm."""
    alarm_decisions: int | None = None
    """Decisions made before it."""
    mode: str = "live"
    """``live``, ``shadow``, ``ramp``, ``frozen``, ``closed``, or ``waiting`` for the history of a
    predecessor."""
    held: int = 0
    """Decisions for the baseline although the gate chose a candidate: in shadow, frozen, or by a ramp."""
    orders: tuple[Order, ...] = ()
    """What is in force, with who and why."""
    archived: int = 0
    """Entries 1 up to this one are in archive files."""

    def to_dict(self) -> dict[str, Any]:
        return {**plain_fields(self), "orders": [order.to_dict() for order in self.orders]}


@dataclass(frozen=True, slots=True)
class Point:
    """One decision in the series of all, with the deployment's counts right after it."""

    round: int
    """1 for the first decision."""
    at: datetime
    bank: float
    fallbacks: int
    """Decisions for the baseline, up to and including this one."""
    pending: int
    """Decisions whose outcome was not known then, this one included."""
    certificate: float
    """Lower bound of this round's contrast for what was played."""
    estimate: float
    """Estimate of the same contrast, by the ridge regression at that moment."""
    radius: float
    seq: int
    """Number of its entry, which its id holds."""

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """A decision whose outcome is not known."""

    id: str
    at: datetime
    age: float
    """Seconds since the decision, by this process's clock."""
    request_id: str | None
    context_json: str | None
    action: int | None
    label: str | None = None
    """Name of the candidate, if it has one."""

    @property
    def context(self) -> Any:
        return None if self.context_json is None else json.loads(self.context_json)

    def to_dict(self) -> dict[str, Any]:
        plain = plain_fields(self)
        del plain["context_json"]
        return {**plain, "context": self.context}


class PartialExplanation(Explanation):
    """Of a decision of which the journal keeps only what was executed."""

    def __init__(
        self,
        decision: Decision,
        contrasts: Array | None,
        kept: tuple[int, ...],
        rule: str,
        because: str,
    ) -> None:
        super().__init__(decision, contrasts, rule, because)
        self._offered = len(self.candidates)
        self.candidates = [each for each in self.candidates if each.candidate in kept]

    @property
    def summary(self) -> str:
        """One sentence, and what is not on record."""
        decision = self.decision
        what = "the baseline"
        if decision.action is not None:
            what = candidate_name(decision.labels, decision.action)
        held = "" if decision.held is None else f" ({HELD.get(decision.held, decision.held)})"
        alarm = f"ALARM: {decision.alarm}; certificates are void. " if decision.alarm else ""
        return (
            f"{alarm}Of {self._offered} candidates and the baseline, {what} was played{held}; bank "
            f"{decision.bank_before:.4f} -> {decision.bank:.4f}. Only what was executed is on record."
        )


class LeftOutOfJournal:
    """What an entry leaves out of its decision; see :mod:`c4b.deployment.questions.left_out`."""

    def __init__(self, record: Callable[[], Record]) -> None:
        self.record = record
        """Reads and recomputes everything about the decision."""

    def details(self, known: Array) -> Array:
        return self.record().decision.details

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process nothing can be recomputed: None."""
        return type(None), ()


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A decision and what became of it."""

    decision: Decision
    at: datetime
    request_id: str | None
    context_json: str | None
    candidates: Array
    baseline: Array
    outcome: str
    """``pending``, ``observed``, ``timeout`` (the declared default was recorded) or ``forgotten``."""
    reward: float | None
    executed: Array | None
    """Features of what was executed instead, if that was reported."""
    contrasts: Array | None = None
    """(2, K): estimate and upper bound of every candidate's contrast; None in early journals."""
    labels: tuple[str, ...] | None = None
    """Names of the candidates, if the round had some."""
    baseline_mean: float | None = None
    """The baseline's known mean, if the policy needs it."""
    evaluated: tuple[int, ...] | None = None
    """The candidates whose bounds are here, because the choice depended on them; None: all. ``explain``
    and ``Deployment.record`` recompute the others from the state of that moment."""
    kept: tuple[int, ...] | None = None
    """The candidates of which there is more than their number on record; None: all. The features and
    bounds of the others are NaN."""
    context_erased: bool = False
    rule: str = ""
    """How the policy orders admissible candidates, in words."""
    because: str = ""
    """Why it chose this one."""
    alarm_later: datetime | None = None
    """When an alarm against the model was raised after this decision, which voids its certificates."""
    items: Array | None = None
    """(m, d) of the slate that was executed; None: no slate."""
    item_rewards: tuple[float, ...] | None = None
    """The rewards of its items, if they were reported one by one."""

    def __eq__(self, other: object) -> bool:
        """Whether both say the same."""
        return isinstance(other, Record) and all(
            same_content(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.decision, self.outcome))

    @property
    def context(self) -> Any:
        """What the caller said, for whoever asks why."""
        return None if self.context_json is None else json.loads(self.context_json)

    def explain(self) -> Explanation:
        """Why, with the whole interval of every candidate's contrast."""
        if isinstance(self.decision.left_out, LeftOutOfJournal):
            return self.decision.left_out.record().explain()
        if self.kept is None:
            return Explanation(self.decision, self.contrasts, self.rule, self.because)
        return PartialExplanation(self.decision, self.contrasts, self.kept, self.rule, self.because)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, with the explanation and all features."""
        explanation = self.explain().to_dict()
        for candidate in explanation["candidates"]:
            candidate["features"] = self.candidates[candidate["candidate"]].tolist()
        record = {
            **explanation,
            "baseline": self.baseline.tolist(),
            "at": _plain(self.at),
            "request_id": self.request_id,
            "context": self.context,
            "context_erased": self.context_erased,
            "outcome": self.outcome,
            "reward": self.reward,
            "executed": None if self.executed is None else self.executed.tolist(),
            "alarm_later": _plain(self.alarm_later),
        }
        if self.labels is not None:
            record["labels"] = list(self.labels)
        if self.baseline_mean is not None:
            record["baseline_mean"] = self.baseline_mean
        if self.items is not None:
            record["items"] = self.items.tolist()
        if self.item_rewards is not None:
            record["item_rewards"] = list(self.item_rewards)
        return record


def moment(at: int) -> datetime:
    """Microseconds since 1970 as a time."""
    return datetime.fromtimestamp(at / 1e6, UTC)


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a frozen value as plain JSON data."""
    return {name: _plain(getattr(value, name)) for name in value.__slots__}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
