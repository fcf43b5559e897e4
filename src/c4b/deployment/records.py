"""What a deployment tells about itself and its past; plain, frozen values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from c4b._validate import Array
from c4b.deployment import entries as kinds
from c4b.deployment.entries import Entry
from c4b.deployment.journal import Journal
from c4b.deployment.replay import State
from c4b.deployment.work import decision, decision_id, parsed
from c4b.errors import JournalCorrupt, UnknownDecision
from c4b.policies.decision import Decision


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
    radius: float
    alarm: str | None
    seq: int
    hash: str
    """Of the last entry: keep it elsewhere, and nobody can rewrite the past unnoticed."""
    at: datetime

    def to_dict(self) -> dict[str, Any]:
        plain = {field: getattr(self, field) for field in self.__slots__}
        return {key: _plain(value) for key, value in plain.items()}


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

    @property
    def context(self) -> Any:
        """What the caller said, for whoever asks why."""
        return None if self.context_json is None else json.loads(self.context_json)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, with the explanation."""
        return {
            **self.decision.explain().to_dict(),
            "at": _plain(self.at),
            "request_id": self.request_id,
            "context": self.context,
            "outcome": self.outcome,
            "reward": self.reward,
            "executed": None if self.executed is None else self.executed.tolist(),
        }


def status(state: State) -> Status:
    policy, configuration = state.policy, state.configuration
    unknown = [seq for seq in state.open if not _known(state, seq)]
    return Status(
        name=configuration.name,
        policy=configuration.composition.name,
        alpha=configuration.alpha,
        reserve=configuration.reserve,
        bank=state.bank,
        rounds=state.counts["decided"],
        fallbacks=state.counts["fallback"],
        observations=state.observations,
        pending=len(unknown),
        waiting=len(state.open) - len(unknown),
        oldest_pending=decision_id(state, unknown[0]) if unknown else None,
        radius=policy.radius,
        alarm=state.alarm,
        seq=state.seq,
        hash=state.hash.hex(),
        at=moment(state.at),
    )


def decisions(journal: Journal, state: State, after: str | int | None, count: int) -> list[Record]:
    start: object = -1 if after is None else after
    if isinstance(start, str):
        start = parsed(start, state.configuration.name)
    if isinstance(start, bool) or not isinstance(start, int):
        raise UnknownDecision("after", after, "is no decision of this deployment")
    return _records(journal, state, journal.decided(max(start, -1), count))


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
    )


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)


def _known(state: State, seq: int) -> bool:
    pending = state.pending(seq)
    return pending is None or pending.known


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
