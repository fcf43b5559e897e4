"""Results of queries: immutable values that can be converted to plain JSON."""

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
    """For a ramp: the largest share of rounds that may play something else than the incumbent."""

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
    """Number of absorbed outcomes, history included."""
    pending: int
    """Number of decisions without a known outcome."""
    waiting: int
    """Number of known outcomes that wait for an earlier one."""
    oldest_pending: str | None
    oldest_pending_age: float | None = field(compare=False)
    """Seconds since that decision, by this process's clock; None if nothing is pending."""
    clock_ahead: float = field(compare=False)
    """Seconds by which the journal's times are ahead of this process's clock; 0 unless a clock was far
    ahead at some time."""
    radius: float
    alarm: str | None
    """Why certificates are void: the data refute the model; or the bank is below the reserve that a
    successor has taken over. None without an alarm. A negative bank alone is no alarm."""
    seq: int
    hash: str
    """Hash of the last entry. Keep it outside the store to detect a later change of the history."""
    at: datetime
    alarm_since: datetime | None = None
    """Time at which the alarm was raised."""
    alarm_after: str | None = None
    """Id of the last decision before the alarm; None if there was none, or without an alarm."""
    alarm_decisions: int | None = None
    """Number of decisions before the alarm."""
    mode: str = "live"
    """``live``, ``shadow``, ``ramp``, ``frozen``, ``closed``, or ``waiting`` (for the history of a
    predecessor)."""
    held: int = 0
    """Decisions for the baseline although the gate chose a candidate, because of shadow mode, a freeze or
    a ramp."""
    orders: tuple[Order, ...] = ()
    """The orders in force, with their author and reason."""
    archived: int = 0
    """Entries 1 up to this number are in archive files."""

    def to_dict(self) -> dict[str, Any]:
        return {**plain_fields(self), "orders": [order.to_dict() for order in self.orders]}


@dataclass(frozen=True, slots=True)
class Point:
    """One decision in the series of all decisions, with the deployment's counts right after it."""

    round: int
    """1 for the first decision."""
    at: datetime
    bank: float
    fallbacks: int
    """Decisions for the baseline, up to and including this one."""
    pending: int
    """Decisions without a known outcome at that time, including this one."""
    certificate: float
    """Lower bound of this round's contrast for the action that was played."""
    estimate: float
    """Estimate of the same contrast by the ridge regression at that moment."""
    radius: float
    seq: int
    """Number of the decision's journal entry, which is part of its id."""

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """A decision without a known outcome."""

    id: str
    at: datetime
    age: float
    """Seconds since the decision, by this process's clock."""
    request_id: str | None
    context_json: str | None
    action: int | None
    label: str | None = None
    """Name of the candidate, or None."""

    @property
    def context(self) -> Any:
        return None if self.context_json is None else json.loads(self.context_json)

    def to_dict(self) -> dict[str, Any]:
        plain = plain_fields(self)
        del plain["context_json"]
        return {**plain, "context": self.context}


class PartialExplanation(Explanation):
    """Explanation of a decision for which the journal keeps only what was executed."""

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
        """The decision in one sentence, and what is not on record."""
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
    """Computes what an entry leaves out of its decision; see :mod:`c4b.deployment.questions.left_out`."""

    def __init__(self, record: Callable[[], Record]) -> None:
        self.record = record
        """Reads and recomputes everything about the decision."""

    def details(self, known: Array) -> Array:
        return self.record().decision.details

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as None: another process cannot recompute the numbers."""
        return type(None), ()


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A decision with its input and its outcome."""

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
    """Features of the action that was executed instead, if one was reported."""
    contrasts: Array | None = None
    """(2, K): estimate and upper bound of every candidate's contrast; None in early journals."""
    labels: tuple[str, ...] | None = None
    """Names of the candidates, or None if the round had none."""
    baseline_mean: float | None = None
    """The known mean of the baseline, if the policy needs it."""
    evaluated: tuple[int, ...] | None = None
    """The candidates whose bounds this record holds, because the choice depended on them; None: all.
    ``explain`` and ``Deployment.record`` recompute the others from the state at that moment."""
    kept: tuple[int, ...] | None = None
    """The candidates whose features and bounds are on record; None: all. Those of the others are NaN."""
    context_erased: bool = False
    rule: str = ""
    """How the policy orders admissible candidates, in words."""
    because: str = ""
    """Why the policy chose this action."""
    alarm_later: datetime | None = None
    """Time of an alarm against the model that was raised after this decision and voids its
    certificates."""
    items: Array | None = None
    """Features (m, d) of the slate that was executed; None if it was no slate."""
    item_rewards: tuple[float, ...] | None = None
    """Rewards of the slate's items, if they were reported one by one."""

    def __eq__(self, other: object) -> bool:
        """Whether both records have the same content; NaN equals NaN."""
        return isinstance(other, Record) and all(
            same_content(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.decision, self.outcome))

    @property
    def context(self) -> Any:
        """The context that the caller gave."""
        return None if self.context_json is None else json.loads(self.context_json)

    def explain(self) -> Explanation:
        """Explain the decision, with the whole interval of every candidate's contrast."""
        if isinstance(self.decision.left_out, LeftOutOfJournal):
            return self.decision.left_out.record().explain()
        if self.kept is None:
            return Explanation(self.decision, self.contrasts, self.rule, self.because)
        return PartialExplanation(self.decision, self.contrasts, self.kept, self.rule, self.because)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON data, with the explanation and all features."""
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
    """Microseconds since 1970 as a datetime in UTC."""
    return datetime.fromtimestamp(at / 1e6, UTC)


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of an immutable value as plain JSON data."""
    return {name: _plain(getattr(value, name)) for name in value.__slots__}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
