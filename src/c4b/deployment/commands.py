"""What one transaction does: change the state, write the entries that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.state import Mark, State
from c4b.errors import (
    C4BError,
    ContradictoryOutcome,
    ContradictoryRequest,
    HistoryClosed,
    JournalCorrupt,
    OutcomeClosed,
    UnknownDecision,
)
from c4b.journal import entries as kinds
from c4b.journal.entries import Entry, pack
from c4b.journal.journal import Journal
from c4b.policies.decision import Decision, DecisionNumbers
from c4b.policies.round import Round

CALLER, TIMEOUT = "caller", "timeout"
EXPIRED_AT_ONCE = 1000
"""Outcome windows closed in one transaction."""
NEGATIVE_BANK = "the bank is negative: what was executed instead is not covered by it"


class Request(NamedTuple):
    """One checked call of ``decide``."""

    candidates: Array  # (K, d)
    baseline: Array  # (d,)
    request_id: str | None
    context: str | None
    place: str  # of the arguments, for messages


class Unread(C4BError):
    """The answer is in the journal, which was not opened."""


class Work:
    """One transaction's work on a state that is up to date. A failed call has changed nothing."""

    def __init__(self, state: State, journal: Journal | None, now: int) -> None:
        """Without a journal, what has to be looked up there raises ``Unread``, nothing being changed."""
        self.state = state
        self._journal = journal
        self.at = max(now, state.at)
        self.entries: list[Entry] = []
        self._mark: Mark | None = None

    @property
    def journal(self) -> Journal:
        if self._journal is None:
            raise Unread
        return self._journal

    def _append(
        self,
        kind: str,
        fields: Mapping[str, Any],
        arrays: Mapping[str, Array],
        about: int | None = None,
        request_id: str | None = None,
    ) -> Entry:
        state = self.state
        payload = pack(fields, arrays)
        entry = Entry(state.seq + 1, kind, about, request_id, self.at, payload, state.hash)
        state.advance(entry)
        self.entries.append(entry)
        return entry

    def _set_now(self) -> dict[str, Any]:
        return {"set": self.state.fingerprint(), "observations": self.state.observations}

    # -- history and decisions -----------------------------------------------------------------

    def learn(self, features: Array, rewards: Array, request_id: str | None) -> None:
        if request_id is not None and (earlier := self.journal.requested(request_id)) is not None:
            arrays = earlier.unpack()[1]
            if earlier.kind != kinds.LEARNED or not (
                np.array_equal(arrays["features"], features)
                and np.array_equal(arrays["rewards"], rewards)
            ):
                raise _other_request("request_id", request_id, earlier)
            return
        if self.state.counts["decided"]:
            raise HistoryClosed(
                f"learn: {self.state.counts['decided']} decisions were made already; give all history "
                "before the first decision, and later rewards to observe()"
            )
        if not len(rewards):
            return
        self.state.learn(features, rewards)
        arrays = {"features": features, "rewards": rewards}
        self._append(kinds.LEARNED, self._set_now(), arrays, request_id=request_id)
        self._watch()

    def decide(self, requests: Sequence[Request], look: bool = True) -> list[Decision]:
        """All or none; a request id that the journal knows gets the decision it got then.

        Not to ``look`` saves a journey to the server; the append then fails with ``KnownRequest`` if
        the journal knows an id after all.
        """
        asked = [r.request_id for r in requests if r.request_id is not None] if look else []
        known = self.journal.requested_many(asked) if asked else {}
        self._mark = self.state.mark()
        set_now = self._set_now()  # decisions do not change it
        try:
            decisions = []
            for request in requests:
                earlier = None if request.request_id is None else known.get(request.request_id)
                if earlier is not None:
                    decisions.append(self._repeated(request, earlier))
                    continue
                decision, entry = self._decide(request, set_now)
                decisions.append(decision)
                if request.request_id is not None:
                    known[request.request_id] = entry
        except C4BError:
            self.take_back()
            raise
        return decisions

    def take_back(self) -> bool:
        """Undo ``decide``; False if this was something else."""
        if self._mark is None:
            return False
        self.state.undo(self._mark)
        self.entries.clear()
        return True

    def _decide(self, request: Request, set_now: dict[str, Any]) -> tuple[Decision, Entry]:
        state = self.state
        round_ = Round(request.candidates, request.baseline, argument=request.place)
        explanation = state.gate.explanation(round_)
        made = state.run.decide(round_, decision_id(state, state.seq + 1))
        fallback = made.action is None
        state.enter(state.seq + 1, self.at, fallback, made.bank, made.certificate, made.radius)
        fields = {"action": made.action, "context": request.context, "alarm": made.alarm, **set_now}
        if made.propensity is not None:
            fields["propensity"] = made.propensity
        arrays = {
            "candidates": request.candidates,
            "baseline": request.baseline,
            "details": made.details,
            "numbers": np.array(made.numbers),
            **explanation,
        }
        entry = self._append(kinds.DECIDED, fields, arrays, request_id=request.request_id)
        return made, entry

    def _repeated(self, request: Request, earlier: Entry) -> Decision:
        if earlier.kind == kinds.DECIDED:
            fields, arrays = earlier.unpack()
            if np.array_equal(arrays["candidates"], request.candidates) and np.array_equal(
                arrays["baseline"], request.baseline
            ):
                return decision(self.state, earlier, fields, arrays)
        raise _other_request(f"{request.place}request_id", request.request_id, earlier)

    # -- outcomes ------------------------------------------------------------------------------

    def observe(self, outcomes: Sequence[tuple[str, str, float]]) -> None:
        """Triples (place in the call, id, reward); all are taken or none."""
        news: dict[int, float] = {}
        for place, told, reward in outcomes:
            seq = self.number(told, f"{place}decision_id")
            if news.get(seq, reward) != reward:
                remedy = f"the same batch also reports {news[seq]!r} for {told}"
                raise ContradictoryOutcome(f"{place}reward", reward, remedy)
            if self._is_news(seq, place, told, reward):
                news[seq] = reward
        for seq, reward in news.items():
            self._observed(seq, reward, CALLER)

    def _observed(self, seq: int, reward: float, by: str) -> None:
        self.state.absorb(seq, reward)
        self._append(kinds.OBSERVED, {"by": by, **self._set_now()}, {"numbers": np.array([reward])}, seq)
        self._watch()

    def _is_news(self, seq: int, place: str, told: str, reward: float) -> bool:
        """False for a harmless repetition; raises for anything that contradicts the past."""
        pending = self.state.pending(seq)
        if pending is not None and not pending.known:
            return True
        entry = self.outcome(seq)
        fields, arrays = entry.unpack()
        if entry.kind == kinds.FORGOTTEN:
            remedy = "was declared lost; its reward can no longer be used"
            raise OutcomeClosed(f"{place}decision_id", told, remedy)
        previous = float(arrays["numbers"][0])
        if previous == reward:
            return False
        if fields["by"] == TIMEOUT:
            remedy = f"its window had closed and the declared default {previous!r} was recorded"
            raise OutcomeClosed(f"{place}decision_id", told, remedy)
        remedy = f"decision {told} has reward {previous!r} already"
        raise ContradictoryOutcome(f"{place}reward", reward, remedy)

    def outcome(self, seq: int) -> Entry:
        """The entry that closed a decision's outcome."""
        for entry in self.journal.about([seq]):
            if entry.kind in (kinds.OBSERVED, kinds.FORGOTTEN):
                return entry
        raise JournalCorrupt(f"the outcome of entry {seq} is missing; restore it from a backup")

    def forget(self, told: str) -> None:
        seq = self.number(told, "decision_id")
        pending = self.state.pending(seq)
        if pending is None or pending.known:
            if self.outcome(seq).kind == kinds.FORGOTTEN:
                return
            raise ContradictoryOutcome("decision_id", told, "has an outcome already")
        self._forgotten(seq, CALLER)

    def _forgotten(self, seq: int, by: str) -> None:
        self.state.absorb(seq, None)
        self._append(kinds.FORGOTTEN, {"by": by, **self._set_now()}, {}, seq)
        self._watch()

    def executed(self, told: str, features: Array | None) -> None:
        seq = self.number(told, "decision_id")
        pending = self.state.pending(seq)
        if pending is None or pending.known:
            remedy = "has its outcome already; report executed() before it"
            raise OutcomeClosed("decision_id", told, remedy)
        features = self.state.run.named(self.state.open[seq].round, features)
        wanted = pending.baseline if features is None else features
        if pending.is_baseline == (features is None) and np.array_equal(pending.executed, wanted):
            return
        fields = {"baseline": features is None, **self._set_now()}
        before = self.state.bank
        self.state.amend(seq, features)
        arrays = {"features": wanted, "numbers": np.array([before, self.state.bank])}
        self._append(kinds.EXECUTED, fields, arrays, seq)
        if before >= 0.0 > self.state.bank:
            self._alarm(NEGATIVE_BANK, "ledger")

    # -- by itself -----------------------------------------------------------------------------

    def expire(self) -> int:
        """Close windows that are due, oldest first, as was declared at creation; returns how many."""
        reward = self.state.configuration.timeout_reward
        for closed in range(EXPIRED_AT_ONCE):
            if not overdue(self.state, self.at):
                return closed
            seq = next(iter(self.state.open))
            if reward is None:
                self._forgotten(seq, TIMEOUT)
            else:
                self._observed(seq, reward, TIMEOUT)
        return EXPIRED_AT_ONCE

    def _watch(self) -> None:
        """Record what has come to speak against the model; see ``Policy.alarm``."""
        alarm = self.state.gate.alarm
        if alarm is not None and alarm != self.state.model_alarm:
            self.state.model_alarm = alarm
            self._alarm(alarm, "model")

    def _alarm(self, reason: str, source: str) -> None:
        self.state.alarm = reason
        self.state.counts["alarm"] += 1
        self._append(kinds.ALARM, {"reason": reason, "source": source}, {})

    # -- ids -----------------------------------------------------------------------------------

    def number(self, told: object, argument: str) -> int:
        """The journal's number of a decision."""
        seq = parsed(told, self.state.configuration.name)
        if seq is not None and seq in self.state.open:
            return seq
        if seq is not None and seq <= self.state.seq:
            entry = self.journal.at(seq)
            if entry is not None and entry.kind == kinds.DECIDED:
                return seq
        raise UnknownDecision(argument, told, "is no decision of this deployment")


def overdue(state: State, now: int) -> bool:
    """Whether the oldest open decision has waited for its outcome long enough."""
    window = state.configuration.outcome_timeout
    if window is None or not state.open:
        return False
    return now - next(iter(state.open.values())).at > window * 1e6


def decision_id(state: State, seq: int) -> str:
    return f"{state.configuration.name}-{seq}"


def parsed(told: object, name: str) -> int | None:
    """The number in an id of deployment ``name``, if it is one, as it was given out."""
    if isinstance(told, str):
        prefix, _, digits = told.rpartition("-")
        if prefix == name and digits.isdecimal() and len(digits) < 19 and str(int(digits)) == digits:
            return int(digits)
    return None


def decision(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> Decision:
    """The decision as it was returned when it was made."""
    numbers = DecisionNumbers(*arrays["numbers"].tolist())
    return Decision(
        decision_id(state, entry.seq),
        fields["action"],
        numbers.bank,
        numbers.certificate,
        numbers.ucb,
        numbers.radius,
        numbers.bank_before,
        state.configuration.spec.name,
        fields["alarm"],
        arrays["details"],
        fields.get("propensity"),
    )


def _other_request(argument: str, request_id: str | None, earlier: Entry) -> ContradictoryRequest:
    return ContradictoryRequest(
        argument,
        request_id,
        f"was used at entry {earlier.seq} ({earlier.kind}) with other data; a new request needs a new id",
    )
