"""Questions about a deployment, answered from its journal and its state. They change nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

from c4b.deployment.configuration import Configuration
from c4b.deployment.questions import search
from c4b.deployment.questions.search import Found, Wanted
from c4b.deployment.questions.views import Order, PendingDecision, Point, Record, Status, moment
from c4b.deployment.questions.witness import Witness
from c4b.deployment.summary import contrast_intervals
from c4b.deployment.summary.downsampled_series import Row
from c4b.deployment.summary.journal_summary import AlarmMark, JournalSummary
from c4b.deployment.transactions import recording
from c4b.deployment.transactions.commands import decided_tag, unknown_decision
from c4b.deployment.transactions.decision_entry import (
    decision_id,
    id_parts,
    id_tag,
    recorded_decision,
    recorded_round,
)
from c4b.deployment.transactions.journal_clock import JournalTime
from c4b.deployment.transactions.rollout import Rollout
from c4b.deployment.transactions.state import State
from c4b.errors import JournalCorrupt, UnknownDecision
from c4b.journal import entries as kinds
from c4b.journal import envelope
from c4b.journal.entries import GENESIS, Entry
from c4b.journal.journal import Journal
from c4b.policies.catalogue import choice_in_words
from c4b.policies.compiled.compiled_gate import CompiledGate


def end(journal: Journal, state: State, earlier: Witness | None) -> tuple[int, str]:
    """Number and hash of the last entry; raises if the journal does not continue ``earlier``."""
    if earlier is not None:
        hash_ = _hash_at(journal, state, earlier.seq)
        if hash_ is None or hash_.hex() != earlier.hash:
            raise JournalCorrupt(
                f"the journal ends at entry {state.seq} and does not continue entry {earlier.seq}, which "
                "a witness attests: its end was removed, or an old copy was restored. Restore the newest "
                "backup; to go on with this one, keep the witness file aside and begin a new one"
            )
    return state.seq, state.hash.hex()


def _hash_at(journal: Journal, state: State, seq: int) -> bytes | None:
    """The hash of an entry; None if there is none. Of an archived one it is what the next entry says,
    which only an audit with the file can check."""
    if 0 < seq <= state.archived:
        stored = journal.transaction.at([seq])
        if stored and stored[0].entry.seq == seq and stored[0].entry.payload == b"":
            return stored[0].next_previous
    entry = journal.at(seq)
    return None if entry is None else entry.hash()


def last_gone(journal: Journal, state: State) -> int:
    """Number of the last entry whose payload is in an archive only; 0: there is none.

    An archive may have been interrupted or brought back, so the store is asked. The payloads that it has
    are taken for one piece up to the last; whoever reads across a gap is told by ``EntryArchived``.
    """
    low, high = 0, state.archived
    if high and _is_gone(journal, high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if _is_gone(journal, middle):
            low = middle
        else:
            high = middle
    return low


def _is_gone(journal: Journal, seq: int) -> bool:
    stored = journal.transaction.at([seq])
    return bool(stored) and stored[0].entry.payload == b""


def status(journal: Journal, state: State, time: JournalTime) -> Status:
    configuration = state.configuration
    reason = state.alarm_on
    source = "ledger" if state.model_alarm is None else "model"
    raised = [] if reason is None else summary(journal, state).alarms
    alarm = next((each for each in raised if each.source == source), None)
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
        oldest_pending=None if oldest is None else state.id_of(oldest),
        oldest_pending_age=None if oldest is None else _age(state.open[oldest].at, time.now),
        clock_ahead=time.ahead / 1e6,
        radius=state.gate.radius,
        alarm=reason,
        alarm_since=None if alarm is None else moment(alarm.at),
        alarm_after=None if alarm is None else _decision_before(alarm, configuration),
        alarm_decisions=None if alarm is None else alarm.decisions,
        seq=state.seq,
        hash=state.hash.hex(),
        at=moment(state.at),
        mode=state.rollout.mode,
        held=state.rollout.held,
        orders=_orders(state.rollout),
        archived=state.archived,
    )


def _orders(rollout: Rollout) -> tuple[Order, ...]:
    in_force = (rollout.closed, rollout.frozen, rollout.ramp, rollout.live)
    return tuple(
        Order(each.action, each.by, each.why, moment(each.at), each.share)
        for each in in_force
        if each is not None
    )


def _decision_before(alarm: AlarmMark, configuration: Configuration) -> str | None:
    """The id of the last decision made before an alarm; None if there was none."""
    if alarm.last_decision < 0:
        return None
    return decision_id(configuration, alarm.last_decision, alarm.last_tag)


def decisions(
    journal: Journal,
    state: State,
    after: str | int | None,
    before: str | int | None,
    count: int,
    newest: bool,
) -> list[Record]:
    start = max(_entry_limit(state, "after", after, -1), last_gone(journal, state) or -1)
    stop = _entry_limit(state, "before", before, state.seq + 1)
    read = journal.decided_last if newest else journal.decided
    return _records(journal, state, read(start, stop, count))


def find(journal: Journal, state: State, wanted: Wanted, before: str | int | None, count: int) -> Found:
    start, stop = last_gone(journal, state) or -1, _entry_limit(state, "before", before, state.seq + 1)
    return search.find(journal, wanted, lambda some: _records(journal, state, some), start, stop, count)


def _entry_limit(state: State, argument: str, given: str | int | None, default: int) -> int:
    """The number of an entry, given as such or as a decision's id."""
    seq: object = default if given is None else given
    if isinstance(seq, str):
        parts = id_parts(seq, state.configuration)
        seq = None if parts is None else parts.seq
    if isinstance(seq, bool) or not isinstance(seq, int):
        raise UnknownDecision(argument, given, "is no decision of this deployment")
    return seq


def series(journal: Journal, state: State, points: int) -> list[Point]:
    _complete(journal, state)
    assert state.series is not None
    return [_point(row) for row in state.series.rows(points)]


def summary(journal: Journal, state: State) -> JournalSummary:
    """What the state keeps for questions about the whole past."""
    _complete(journal, state)
    assert state.summary is not None
    return state.summary


def _complete(journal: Journal, state: State) -> None:
    """A snapshot of an early version holds no series and no summary; then the journal is read once."""
    if state.series is None or state.summary is None:
        past = State(state.configuration)
        past.replay(journal.tail(-1, GENESIS))
        state.series, state.summary = past.series, past.summary


def _point(row: Row) -> Point:
    return Point(
        round=int(row.round),
        at=moment(int(row.at)),
        bank=row.bank,
        fallbacks=int(row.fallbacks),
        pending=int(row.pending),
        certificate=row.certificate,
        estimate=row.estimate,
        radius=row.radius,
        seq=int(row.seq),
    )


def pending(journal: Journal, state: State, count: int, now: int) -> list[PendingDecision]:
    """Oldest first."""
    oldest = list(islice((seq for seq in state.open if not _known(state, seq)), count))
    listed = []
    for entry in journal.among(oldest):
        fields, _ = entry.unpack()
        labels, action = fields.get("labels"), fields["action"]
        listed.append(
            PendingDecision(
                id=decision_id(state.configuration, entry.seq, id_tag(entry.hash())),
                at=moment(entry.at),
                age=_age(entry.at, now),
                request_id=entry.request_id,
                context_json=fields["context"],
                action=action,
                label=None
                if labels is None or action is None
                else labels[recording.position(fields, action)],
            )
        )
    return listed


def _age(at: int, now: int) -> float:
    return max(now - at, 0) / 1e6


def record(journal: Journal, state: State, id_: str) -> Record:
    parts = id_parts(id_, state.configuration)
    entry = None if parts is None else journal.at(parts.seq)
    tag = decided_tag(entry, state.configuration)
    if entry is None or parts is None or tag != parts.tag:
        raise unknown_decision("decision_id", id_, tag)
    return _records(journal, state, [entry])[0]


def _records(journal: Journal, state: State, decided: list[Entry]) -> list[Record]:
    later: dict[int, list[Entry]] = {entry.seq: [] for entry in decided}
    for entry in journal.about(list(later)):
        later[entry.about or 0].append(entry)
    past = state.summary
    if past is None and decided and not state.archived:  # else it cannot be read from its start
        past = summary(journal, state)
    return [_record(state, past, entry, later[entry.seq]) for entry in decided]


def _record(state: State, past: JournalSummary | None, entry: Entry, later: Iterable[Entry]) -> Record:
    outcome, reward, executed, items, item_rewards = "pending", None, None, None, None
    for after in later:
        fields, arrays = after.unpack()
        if after.kind == kinds.EXECUTED:
            executed, items = arrays["features"], arrays.get("items")
        elif after.kind == kinds.FORGOTTEN:
            outcome = "forgotten"
        elif after.kind == kinds.OBSERVED:
            outcome = "timeout" if fields["by"] == "timeout" else "observed"
            reward = math.fsum(arrays["numbers"])  # of a slate's items
            item_rewards = tuple(arrays["numbers"].tolist()) if len(arrays["numbers"]) > 1 else None
    if (outcome != "pending") != _known(state, entry.seq):
        raise JournalCorrupt(
            f"the outcome of entry {entry.seq} is not where it was recorded; run an audit"
        )
    configuration, (fields, arrays) = state.configuration, recording.expanded(*entry.unpack())
    round_ = recorded_round(fields, arrays)
    made, spec, dim = (
        recorded_decision(configuration, entry, fields, arrays),
        configuration.spec,
        configuration.model.dim,
    )
    if items is None and round_.items is not None:
        items = round_.items.baseline if made.action is None else round_.items.candidates[made.action]
    alarm = None if past is None else past.model_alarm
    first = None if past is None else past.first_play
    set_name = configuration.model.confidence
    return Record(
        decision=made,
        at=moment(entry.at),
        request_id=entry.request_id,
        context_json=round_.context,
        candidates=round_.candidates,
        baseline=round_.baseline,
        outcome=outcome,
        reward=reward,
        executed=executed,
        contrasts=contrast_intervals.recorded(arrays, configuration.alpha, _one_ellipsoid(state)),
        labels=None if round_.labels is None else tuple(round_.labels),
        baseline_mean=round_.baseline_mean,
        evaluated=_some(fields.get(recording.EVALUATED)),
        kept=_some(fields.get(recording.KEPT)),
        context_erased=envelope.CONTEXT_HASH in fields and round_.context is None,
        rule=choice_in_words.rule_in_words(spec, dim, set_name),
        because=choice_in_words.because(made, spec, dim, first is None or entry.seq < first, set_name),
        alarm_later=None if alarm is None or alarm.seq < entry.seq else moment(alarm.at),
        items=items,
        item_rewards=item_rewards,
    )


def _some(candidates: list[int] | None) -> tuple[int, ...] | None:
    return None if candidates is None else tuple(candidates)


def _one_ellipsoid(state: State) -> bool:
    return isinstance(state.gate, CompiledGate) and state.gate.ellipsoids == 1


def _known(state: State, seq: int) -> bool:
    pending = state.pending(seq)
    return pending is None or pending.known
