"""What a deployment tells about itself and its past; plain, frozen values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from c4b._validate import Array
from c4b.deployment import contrast_intervals as contrasts
from c4b.deployment.commands import decision, decision_id, parsed
from c4b.deployment.downsampled_series import Row
from c4b.deployment.state import State
from c4b.errors import JournalCorrupt, UnknownDecision
from c4b.journal import entries as kinds
from c4b.journal.entries import GENESIS, Entry
from c4b.journal.journal import Journal
from c4b.policies.compiled_gate import CompiledGate
from c4b.policies.decision import Decision, Explanation


@dataclass(frozen=True, slots=True)
class Status:
    """Where a deployment stands after entry ``seq``."""

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
    radius: float
    alarm: str | None
    seq: int
    hash: str
    """Of the last entry: keep it elsewhere, and nobody can rewrite the past unnoticed."""
    at: datetime

    def to_dict(self) -> dict[str, Any]:
        return _plain_fields(self)


@dataclass(frozen=True, slots=True)
class Point:
    """One decision in the course of a deployment, with what there was right after it."""

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

    def to_dict(self) -> dict[str, Any]:
        return _plain_fields(self)


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

    @property
    def context(self) -> Any:
        return None if self.context_json is None else json.loads(self.context_json)

    def to_dict(self) -> dict[str, Any]:
        plain = _plain_fields(self)
        del plain["context_json"]
        return {**plain, "context": self.context}


@dataclass(frozen=True, slots=True)
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

    @property
    def context(self) -> Any:
        """What the caller said, for whoever asks why."""
        return None if self.context_json is None else json.loads(self.context_json)

    def explain(self) -> Explanation:
        """Why, with the whole interval of every candidate's contrast."""
        return Explanation(self.decision, self.contrasts)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, with the explanation and all features."""
        told = self.explain().to_dict()
        for candidate, features in zip(told["candidates"], self.candidates.tolist(), strict=True):
            candidate["features"] = features
        return {
            **told,
            "baseline": self.baseline.tolist(),
            "at": _plain(self.at),
            "request_id": self.request_id,
            "context": self.context,
            "outcome": self.outcome,
            "reward": self.reward,
            "executed": None if self.executed is None else self.executed.tolist(),
        }


def status(state: State, now: int) -> Status:
    configuration = state.configuration
    oldest = next(iter(state.open), None)  # what is known is absorbed, unless an older one is not
    return Status(
        name=configuration.name,
        policy=configuration.spec.name,
        alpha=configuration.alpha,
        reserve=configuration.reserve,
        bank=state.bank,
        rounds=state.counts["decided"],
        fallbacks=state.counts["fallback"],
        observations=state.observations,
        pending=state.unknown,
        waiting=len(state.open) - state.unknown,
        oldest_pending=None if oldest is None else decision_id(state, oldest),
        oldest_pending_age=None if oldest is None else _age(state.open[oldest].at, now),
        radius=state.gate.radius,
        alarm=state.alarm,
        seq=state.seq,
        hash=state.hash.hex(),
        at=moment(state.at),
    )


def decisions(
    journal: Journal,
    state: State,
    after: str | int | None,
    before: str | int | None,
    count: int,
    newest: bool,
) -> list[Record]:
    start = max(_limit(state, "after", after, -1), -1)
    stop = _limit(state, "before", before, state.seq + 1)
    read = journal.decided_last if newest else journal.decided
    return _records(journal, state, read(start, stop, count))


def _limit(state: State, argument: str, told: str | int | None, default: int) -> int:
    """The number of an entry, given as such or as a decision's id."""
    seq: object = default if told is None else told
    if isinstance(seq, str):
        seq = parsed(seq, state.configuration.name)
    if isinstance(seq, bool) or not isinstance(seq, int):
        raise UnknownDecision(argument, told, "is no decision of this deployment")
    return seq


def series(journal: Journal, state: State, points: int) -> list[Point]:
    """Of a snapshot that an early version wrote the course is not known: read it once."""
    if state.course is None:
        past = State(state.configuration)
        past.replay(journal.tail(-1, GENESIS))
        state.course = past.course
    assert state.course is not None
    return [_point(row) for row in state.course.rows(points)]


def _point(row: Row) -> Point:
    return Point(
        int(row.round),
        moment(int(row.at)),
        row.bank,
        int(row.fallbacks),
        int(row.pending),
        row.certificate,
        row.estimate,
        row.radius,
    )


def pending(journal: Journal, state: State, count: int, now: int) -> list[PendingDecision]:
    """Oldest first."""
    oldest = list(islice((seq for seq in state.open if not _known(state, seq)), count))
    found = []
    for entry in journal.among(oldest):
        fields, _ = entry.unpack()
        id_, age = decision_id(state, entry.seq), _age(entry.at, now)
        made = entry.request_id, fields["context"], fields["action"]
        found.append(PendingDecision(id_, moment(entry.at), age, *made))
    return found


def _age(at: int, now: int) -> float:
    return max(now - at, 0) / 1e6


def record(journal: Journal, state: State, told: str) -> Record:
    seq = parsed(told, state.configuration.name)
    entry = None if seq is None else journal.at(seq)
    if entry is None or entry.kind != kinds.DECIDED:
        raise UnknownDecision("decision_id", told, "is no decision of this deployment")
    return _records(journal, state, [entry])[0]


def _records(journal: Journal, state: State, found: list[Entry]) -> list[Record]:
    later: dict[int, list[Entry]] = {entry.seq: [] for entry in found}
    for entry in journal.about(list(later)):
        later[entry.about or 0].append(entry)
    return [_record(state, entry, later[entry.seq]) for entry in found]


def _record(state: State, entry: Entry, later: Iterable[Entry]) -> Record:
    fields, arrays = entry.unpack()
    outcome, reward, executed = "pending", None, None
    for after in later:
        told, numbers = after.unpack()
        if after.kind == kinds.EXECUTED:
            executed = numbers["features"]
        elif after.kind == kinds.FORGOTTEN:
            outcome = "forgotten"
        elif after.kind == kinds.OBSERVED:
            outcome = "timeout" if told["by"] == "timeout" else "observed"
            reward = float(numbers["numbers"][0])
    if (outcome != "pending") != _known(state, entry.seq):
        raise JournalCorrupt(
            f"the outcome of entry {entry.seq} is not where it was recorded; run an audit"
        )
    return Record(
        decision(state, entry, fields, arrays),
        moment(entry.at),
        entry.request_id,
        fields["context"],
        arrays["candidates"],
        arrays["baseline"],
        outcome,
        reward,
        executed,
        contrasts.recorded(arrays, state.configuration.alpha, _one_ellipsoid(state)),
    )


def _one_ellipsoid(state: State) -> bool:
    return isinstance(state.gate, CompiledGate) and state.gate.ellipsoids == 1


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)


def _known(state: State, seq: int) -> bool:
    pending = state.pending(seq)
    return pending is None or pending.known


def _plain_fields(value: Any) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in value.__slots__}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
