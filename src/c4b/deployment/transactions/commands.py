"""What one transaction does: change the state, and make the entries that say so.

``Commands`` calls ``State`` and reads the journal. It does not know how transactions begin or end:
``Transactor`` appends what is in ``entries``, or takes the change back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions import recording
from c4b.deployment.transactions.decision_entry import (
    BankNumbers,
    contents,
    id_parts,
    id_tag,
    recorded_decision,
    recorded_outcome,
    same_round,
)
from c4b.deployment.transactions.entry_writer import EntryWriter
from c4b.deployment.transactions.rollout import SHADOW_HOLDS, SUCCEED, Control, closed_error
from c4b.deployment.transactions.state import ARCHIVE, Mark, State
from c4b.errors import (
    C4BError,
    ContradictoryOutcome,
    ContradictoryRequest,
    HistoryClosed,
    InvalidInput,
    JournalCorrupt,
    OutcomeClosed,
    UnknownDecision,
)
from c4b.journal import entries as kinds
from c4b.journal.entries import Entry
from c4b.policies.compiled.compiled_gate import ESTIMATE, CompiledGate
from c4b.policies.rounds.decision import Decision, Receipt
from c4b.policies.rounds.round import Round
from c4b.policies.rounds.slates import Outcome, plain

CALLER, TIMEOUT = "caller", "timeout"
EXPIRED_AT_ONCE = 1000
"""Outcomes closed in one transaction for being overdue."""
HANDED_OVER = "the bank is below the reserve that the successor took over"
NEGATIVE_BANK = "the bank is negative: what was executed instead is not covered by it"


class ReportedOutcome(NamedTuple):
    """The outcome of a decision, checked."""

    id: str
    reward: Outcome
    argument: str = ""
    """What errors put before the names of its arguments."""


def numbers_in(call: Round | ReportedOutcome) -> int:
    """How many numbers a call adds to a commit, about."""
    return call.candidates.size if isinstance(call, Round) else 0


class Commands(EntryWriter):
    """The commands of one transaction on a state that is up to date.

    A command that raises has changed nothing, unless ``changed`` says otherwise.
    """

    _mark: Mark | None = None

    # -- history and decisions -----------------------------------------------------------------

    def learn(self, features: Array, rewards: Array, request_id: str | None) -> None:
        """History (n, d) with rewards (n,), before the first decision."""
        if request_id is not None and (earlier := self._known([request_id]).get(request_id)):
            arrays = earlier.unpack()[1]
            if earlier.kind != kinds.LEARNED or not (
                np.array_equal(arrays["features"], features)
                and np.array_equal(arrays["rewards"], rewards)
            ):
                raise _other_request("request_id", request_id, earlier)
            return
        if (closed := self.state.rollout.closed) is not None:
            raise closed_error(closed)
        if self.state.counts["decided"]:
            raise HistoryClosed(
                f"learn: {self.state.counts['decided']} decisions were made already; give all history "
                "before the first decision, and later rewards to observe()"
            )
        if not len(rewards):
            return
        self.changed = True
        self.state.learn(features, rewards)
        arrays = {"features": features, "rewards": rewards}
        self._append(kinds.LEARNED, self._knowledge(), arrays, request_id=request_id)
        self._record_model_alarm()

    def call(
        self, rounds: Sequence[Round], outcomes: Sequence[ReportedOutcome], look_up: bool = True
    ) -> list[Decision]:
        """Decide checked rounds, then take outcomes of earlier decisions; all or none."""
        news = self._news(outcomes)
        decisions = self.decide(rounds, look_up) if rounds else []
        self._observe(news)
        return decisions

    def report_and_decide(
        self, outcomes: Sequence[ReportedOutcome], rounds: Sequence[Round], look_up: bool = True
    ) -> list[Decision]:
        """Take outcomes of earlier decisions, then decide checked rounds by what they teach; all or none.

        Unlike ``call`` it cannot be taken back once there is an outcome.
        """
        known, news = self._known_rounds(rounds, look_up), self._news(outcomes)
        self._observe(news)
        return self._decide_all(rounds, known)

    def decide(self, rounds: Sequence[Round], look_up: bool = True) -> list[Decision]:
        """Decide all checked rounds or none; a request id that the journal knows gets its decision again.

        Without ``look_up`` the store is not asked for request ids that are not among the last ones. The
        append then fails with ``KnownRequest`` if the journal knows one.
        """
        return self._decide_all(rounds, self._known_rounds(rounds, look_up))

    def _known_rounds(self, rounds: Sequence[Round], look_up: bool) -> dict[str, Entry]:
        return self._known([r.request_id for r in rounds if r.request_id is not None], look_up)

    def _decide_all(self, rounds: Sequence[Round], known: dict[str, Entry]) -> list[Decision]:
        self._mark = self.state.mark()
        knowledge = self._knowledge()  # decisions do not change it
        try:
            decisions = []
            for round_ in rounds:
                earlier = None if round_.request_id is None else known.get(round_.request_id)
                if earlier is not None:
                    decisions.append(self._repeated(round_, earlier))
                    continue
                self.state.rollout.check_open()
                decision, entry = self._decide(round_, knowledge)
                decisions.append(decision)
                self._record_model_alarm()  # a told mean may speak against the model
                if round_.request_id is not None:
                    known[round_.request_id] = entry
        except C4BError:
            self.take_back()
            raise
        return decisions

    def _known(self, request_ids: Sequence[str], look_up: bool = True) -> dict[str, Entry]:
        """The entries of the ids that the journal knows, by id.

        The last ids are recognised without the store's index, which may be damaged.
        """
        recent = self.state.recent
        numbers = {seq for id_ in request_ids if (seq := recent.find(id_)) is not None}
        known: dict[str, Entry] = {}
        if numbers:
            known = {str(entry.request_id): entry for entry in self.journal.among(sorted(numbers))}
        if look_up and (others := [id_ for id_ in request_ids if id_ not in known]):
            known.update(self.journal.requested(others))
        return known

    def take_back(self) -> bool:
        """Undo ``decide``; False if another command was run, which cannot be undone."""
        if self._mark is None or self.changed:
            return False
        self.state.undo(self._mark)
        self.entries.clear()
        return True

    def _decide(self, round_: Round, knowledge: dict[str, Any]) -> tuple[Decision, Entry]:
        state, seq = self.state, self.state.seq + 1
        if round_.items is not None:
            self._check_timeout(round_)
        gate, held = state.gate, state.rollout.hold()
        lazy = gate if isinstance(gate, CompiledGate) and gate.leaves_out_margins else None
        explanation = gate.explanation(round_) if lazy is None else {}
        id_ = f"{state.configuration.name}-{seq}"
        made = state.run.decide(round_, id_, held, charged=held != SHADOW_HOLDS)
        keeps_all = state.configuration.records == recording.EVERYTHING
        if lazy is not None and keeps_all:
            complete, estimate = made.left_out is None, state.estimate()
            assert estimate is not None
            explanation = gate.explanation(round_) if complete else {ESTIMATE: estimate}
        elif lazy is not None:
            kept = recording.kept_candidates(made.action, made.proposed)
            explanation = lazy.explanation_of(round_, kept, made.computed)
        numbers = made.numbers
        state.enter(seq, self.at, made.action is None, numbers, made.proposed is not None)
        fields, arrays = contents(round_, made, numbers, knowledge, explanation)
        if keeps_all and made.left_out is not None:
            recording.leave_out_details(fields, arrays)
        elif not keeps_all:
            fields, arrays = recording.reduced(fields, arrays)
            made = _as_kept(made, *recording.expanded(fields, arrays))
        state.offer(fields, arrays)
        entry = self._append(kinds.DECIDED, fields, arrays, request_id=round_.request_id)
        return made.recorded(state.id_of(seq), Receipt(seq, state.hash.hex())), entry

    def _check_timeout(self, round_: Round) -> None:
        """A default reward would be one number for a whole slate."""
        default = self.state.configuration.timeout_reward
        if default is not None and self.state.gate.needs_item_outcomes:
            remedy = "this policy learns from items only, but timeout_reward is one number for the slate"
            raise InvalidInput(f"{round_.argument}candidates", default, remedy)

    def _repeated(self, round_: Round, earlier: Entry) -> Decision:
        if earlier.kind == kinds.DECIDED:
            fields, arrays = recording.expanded(*earlier.unpack())
            if same_round(round_, fields, arrays):
                return recorded_decision(self.state.configuration, earlier, fields, arrays)
        raise _other_request(f"{round_.argument}request_id", round_.request_id, earlier)

    # -- outcomes ------------------------------------------------------------------------------

    def _news(self, outcomes: Sequence[ReportedOutcome]) -> dict[int, Outcome]:
        """Outcomes that are not known yet, by number of the decision's entry."""
        news: dict[int, Outcome] = {}
        for id_, reward, argument in outcomes:
            seq = self._number(id_, f"{argument}decision_id")
            if plain(news.get(seq, reward)) != plain(reward):
                remedy = f"the same batch also reports {news[seq]!r} for {id_}"
                raise ContradictoryOutcome(f"{argument}reward", reward, remedy)
            if self._is_news(seq, argument, id_, reward):
                round_ = self.state.open[seq].round
                self.state.run.check_outcome(round_, f"{argument}reward", reward)
                news[seq] = reward
        return news

    def _observe(self, news: Mapping[int, Outcome]) -> None:
        for seq, reward in news.items():
            self._observed(seq, reward, CALLER)

    def _observed(self, seq: int, reward: Outcome, by: str) -> None:
        self.changed = True
        self.state.absorb(seq, reward)
        fields = {"by": by, **self._knowledge()}
        numbers = {"numbers": np.array(reward if isinstance(reward, tuple) else [reward])}
        self._append(kinds.OBSERVED, fields, numbers, seq)
        self._record_model_alarm()

    def _is_news(self, seq: int, argument: str, id_: str, reward: Outcome) -> bool:
        """False for a harmless repetition; raises for anything that contradicts the past."""
        pending = self.state.pending(seq)
        if pending is not None and not pending.known:
            return True
        entry = self._outcome(seq)
        fields, arrays = entry.unpack()
        if entry.kind == kinds.FORGOTTEN:
            remedy = "was declared lost; its reward can no longer be used"
            raise OutcomeClosed(f"{argument}decision_id", id_, remedy)
        previous = recorded_outcome(arrays)
        if previous == plain(reward):
            return False
        if fields["by"] == TIMEOUT:
            remedy = f"its window had closed and the declared default {previous!r} was recorded"
            raise OutcomeClosed(f"{argument}decision_id", id_, remedy)
        remedy = f"decision {id_} has reward {previous!r} already"
        raise ContradictoryOutcome(f"{argument}reward", reward, remedy)

    def _outcome(self, seq: int) -> Entry:
        """The entry that closed a decision's outcome."""
        for entry in self.journal.about([seq]):
            if entry.kind in (kinds.OBSERVED, kinds.FORGOTTEN):
                return entry
        raise JournalCorrupt(f"the outcome of entry {seq} is missing; restore it from a backup")

    def forget(self, id_: str, independent: bool = False) -> None:
        """Declare an outcome lost; repeating it is harmless.

        ``independent`` is an assertion of the caller; see ``GateRun.check_order``.
        """
        seq = self._number(id_, "decision_id")
        pending = self.state.pending(seq)
        if pending is None or pending.known:
            if self._outcome(seq).kind == kinds.FORGOTTEN:
                return
            raise ContradictoryOutcome("decision_id", id_, "has an outcome already")
        self.state.run.check_order(self.state.open[seq].round, id_, independent)
        self._forgotten(seq, CALLER, independent)

    def _forgotten(self, seq: int, by: str, independent: bool = False) -> None:
        self.changed = True
        self.state.absorb(seq, None)
        fields = {"by": by, **_assertion(independent), **self._knowledge()}
        self._append(kinds.FORGOTTEN, fields, {}, seq)
        self._record_model_alarm()

    def executed(
        self,
        id_: str,
        features: Array | None,
        independent: bool = False,
        items: Array | None = None,
    ) -> None:
        """Charge what was executed instead; None for the baseline. ``independent``: as in ``forget``.
        ``items`` (m, d): of a slate."""
        seq = self._number(id_, "decision_id")
        pending = self.state.pending(seq)
        if pending is None or pending.known:
            remedy = "has its outcome already; report executed() before it"
            raise OutcomeClosed("decision_id", id_, remedy)
        run, round_ = self.state.run, self.state.open[seq].round
        if features is not None:
            run.check_kind(round_, features, items)
        features = run.named(round_, features)
        if run.is_recorded(round_, features, items):
            return
        run.check_order(round_, id_, independent)
        fields = {"baseline": features is None, **_assertion(independent), **self._knowledge()}
        before = self.state.bank
        self.changed = True
        self.state.amend(seq, features, items=items)
        numbers = BankNumbers(before, self.state.bank)
        executed = pending.baseline if features is None else features
        arrays = {"features": executed, "numbers": np.array(numbers)}
        if pending.items is not None:
            arrays["items"] = pending.items
        self._append(kinds.EXECUTED, fields, arrays, seq)
        owed = self.state.owed_to_successor
        if numbers.before >= owed > numbers.after:
            self._record_alarm(NEGATIVE_BANK if owed == 0.0 else HANDED_OVER, "ledger")

    # -- rolling out and back ------------------------------------------------------------------

    def control(self, action: str, by: str, why: str, **more: Any) -> None:
        """An order that moves ``State.rollout``; one that is in force already is not recorded again.

        more: further fields of ``Control``.
        """
        state = self.state
        if not state.rollout.is_news(action, more.get("share")):
            return
        self.changed = True
        order = Control(action, by, why, self.at, state.seq + 1, **more)
        state.rollout = state.rollout.ordered(order)
        self._append(kinds.CONTROL, {"action": action, "by": by, "why": why, **more}, {})

    def succeed(self, successor: str, reserve: float | None, by: str, why: str) -> None:
        """Close for ``successor``, which takes over ``reserve``; None: all that is left of it."""
        earlier = self.state.rollout.succession
        if earlier is not None:
            if earlier.successor != successor or reserve not in (None, earlier.handed):
                handed = f"{earlier.successor!r} with the reserve {earlier.handed!r}"
                raise InvalidInput("successor", successor, f"it was closed for {handed} already")
            return
        left = self.state.left_of_reserve
        if reserve is not None and reserve > left:
            remedy = f"must be at most {left!r}, what is certified to be left; none of it is spent twice"
            raise InvalidInput("reserve", reserve, remedy)
        self.control(SUCCEED, by, why, successor=successor, handed=left if reserve is None else reserve)

    def archive(self, last: int, hash_: str, by: str, why: str, file: str) -> None:
        """Entries up to ``last``, whose hash is ``hash_``, are in a file."""
        if last <= self.state.archived:
            return
        self.changed = True
        self.state.archived = last
        fields = {"action": ARCHIVE, "by": by, "why": why, "last": last, "hash": hash_, "file": file}
        self._append(kinds.CONTROL, fields, {})

    # -- what no caller asked for --------------------------------------------------------------

    def expire(self) -> int:
        """Close overdue outcomes, oldest first, as was declared at creation; returns how many."""
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

    # -- ids -----------------------------------------------------------------------------------

    def _number(self, id_: object, argument: str) -> int:
        """The number of a decision's entry."""
        parts = id_parts(id_, self.state.configuration)
        if parts is None:
            raise UnknownDecision(argument, id_, "is no decision of this deployment")
        tag: str | None
        if parts.seq in self.state.open:
            tag = self.state.open[parts.seq].tag
        else:
            tag = decided_tag(self.journal.at(parts.seq), self.state.configuration)
        if tag != parts.tag:
            raise unknown_decision(argument, id_, tag)
        return parts.seq


def _as_kept(made: Decision, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Decision:
    """A decision with what its entry keeps of the candidates, as a repeated request will return it."""
    labels = fields.get("labels")
    return made._replace(
        details=arrays["details"], left_out=None, labels=None if labels is None else tuple(labels)
    )


def decided_tag(entry: Entry | None, configuration: Configuration) -> str | None:
    """The tag in the id of the decision in ``entry``; None if it is no decision."""
    if entry is None or entry.kind != kinds.DECIDED:
        return None
    return id_tag(entry.hash()) if configuration.ids_hold_hashes else ""


def unknown_decision(argument: str, given: object, tag: str | None) -> UnknownDecision:
    """``tag``: of the decision that has the number in ``given``, if there is one."""
    remedy = "is no decision of this deployment"
    if tag is not None:
        remedy += "; its number belongs to another decision: was an old backup restored since?"
    return UnknownDecision(argument, given, remedy)


def overdue(state: State, now: int) -> bool:
    """Whether the oldest open decision has waited for its outcome longer than was declared."""
    timeout = state.configuration.outcome_timeout
    if timeout is None or not state.open:
        return False
    return now - next(iter(state.open.values())).at > timeout * 1e6


def _assertion(independent: bool) -> dict[str, bool]:
    """Recorded only when it was made."""
    return {"independent": True} if independent else {}


def _other_request(argument: str, request_id: str | None, earlier: Entry) -> ContradictoryRequest:
    return ContradictoryRequest(
        argument,
        request_id,
        f"was used at entry {earlier.seq} ({earlier.kind}) with other data; a new request needs a new id",
    )
