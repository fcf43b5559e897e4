"""What follows from a journal's entries, bit for bit.

A state changes in two ways with the same result: ``Commands`` makes an entry and changes the state, or
``apply`` takes an entry that was recorded. Recorded decisions are not decided again: the gate takes over
the bank and the features that were recorded. Outcomes are absorbed as they were absorbed then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.configuration import Configuration
from c4b.deployment.summary import contrast_intervals, downsampled_series
from c4b.deployment.summary.downsampled_series import DownsampledSeries, Row
from c4b.deployment.summary.journal_summary import JournalSummary
from c4b.deployment.summary.journal_summary import Mark as SummaryMark
from c4b.deployment.transactions import recording
from c4b.deployment.transactions.decision_entry import (
    BankNumbers,
    Fields,
    decision_id,
    id_tag,
    recorded_numbers,
    recorded_outcome,
    recorded_play,
)
from c4b.deployment.transactions.recent_requests import RecentRequests
from c4b.deployment.transactions.rollout import SHADOW_HOLDS, Control, Rollout
from c4b.journal import entries as kinds
from c4b.journal.entries import GENESIS, Entry
from c4b.policies import gate_run
from c4b.policies.gate import Arrays, Gate
from c4b.policies.pending import PendingOutcome
from c4b.policies.rounds.decision import DecisionNumbers
from c4b.policies.rounds.slates import Outcome

_new = tuple.__new__
"""Makes a named tuple of all its fields in the least time."""
INSTEAD = "outcomes.instead"
"""Array that says in which open rounds another action than the decided one is on record."""
REMEMBERED_REPORTS = ("outcomes.recent_round", "outcomes.recent_reward")
"""Arrays by which a policy without a journal recognises repeated reports."""
AHEAD = "ahead"
"""Field of an entry that records another ``State.ahead``."""
ORDERED = ("share", "successor", "handed", "hash")
"""Fields that only some orders have."""
ARCHIVE = "archive"
"""Action of a control entry: entries up to ``last`` were written to a file."""
COUNTS = ("learned", "decided", "fallback", "observed", "forgotten", "executed", "alarm")


class OpenDecision(NamedTuple):
    """A decision whose outcome is not absorbed yet."""

    round: int
    at: int
    tag: str = ""
    """Of its id; empty in early journals."""


class Mark(NamedTuple):
    """What ``undo`` goes back to."""

    run: gate_run.Mark
    seq: int
    hash: bytes
    at: int
    ahead: int
    counts: dict[str, int]
    series: downsampled_series.Mark | None
    alarms: tuple[str | None, str | None]
    rollout: Rollout
    summary: SummaryMark | None


class State:
    """Everything that follows from the entries up to number ``seq``. Belongs to one thread."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.run = configuration.run()
        self.seq = -1
        self.hash = GENESIS
        self.at = 0
        self.ahead = 0  # what is added to clocks, in microseconds; see ``journal_clock``
        self.open: dict[int, OpenDecision] = {}  # by number of the decision's entry, oldest first
        self.seq_of: dict[int, int] = {}  # number of the entry of each open round
        self.counts = dict.fromkeys(COUNTS, 0)
        self.series: DownsampledSeries | None = DownsampledSeries()  # None: an early snapshot had none
        self.summary: JournalSummary | None = JournalSummary(configuration.model.dim)  # None: likewise
        self.recent = RecentRequests()
        self.rollout = first_rollout(configuration)
        self.archived = 0  # entries 1 up to this one are in an archive, or may be
        self.alarm: str | None = None  # the last one
        self.model_alarm: str | None = None
        self._fingerprint: str | None = None  # these two are forgotten when an outcome is absorbed
        self._centre: Array | None = None

    # -- reading -------------------------------------------------------------------------------

    @property
    def gate(self) -> Gate:
        return self.run.gate

    @property
    def bank(self) -> float:
        return self.run.gate.bank

    @property
    def alarm_on(self) -> str | None:
        """What makes certificates void, or the bank less than a successor has taken over. A negative bank
        is no such alarm: it makes nothing void, and recovers."""
        overdrawn = 0.0 < self.owed_to_successor > self.bank
        return self.alarm if self.model_alarm is None and overdrawn else self.model_alarm

    @property
    def left_of_reserve(self) -> float:
        """What a successor may take over: what is certified to be left, never more than there was.

        0 after an alarm against the model, because then nothing is certified.
        """
        left = self.bank - self.gate.counts_on
        if self.model_alarm is not None or not left > 0.0:
            return 0.0
        return min(left, self.configuration.reserve)

    @property
    def owed_to_successor(self) -> float:
        """What the bank must not fall below, because a successor took over a reserve; 0: none did."""
        succession = self.rollout.succession
        if succession is None or not succession.handed > 0.0:
            return 0.0
        return succession.handed + self.gate.counts_on

    @property
    def observations(self) -> int:
        return self.run.gate.observations

    def fingerprint(self) -> str:
        """Of what is known from outcomes."""
        if self._fingerprint is None:
            self._fingerprint = self.run.gate.fingerprint()
        return self._fingerprint

    def estimate(self) -> Array | None:
        """The gate's estimate of theta (d,); None if it has none."""
        if self._centre is None:
            estimate = self.run.gate.estimate  # perhaps an array that the gate goes on to change
            self._centre = None if estimate is None else estimate.copy()
        return self._centre

    def pending(self, seq: int) -> PendingOutcome | None:
        """What is known of an open decision; None when it is closed or no decision."""
        open_ = self.open.get(seq)
        return None if open_ is None else self.run.outcomes.open[open_.round]

    def id_of(self, seq: int) -> str:
        """The id of an open decision."""
        return decision_id(self.configuration, seq, self.open[seq].tag)

    @property
    def unknown(self) -> int:
        """Decisions whose outcome is not known."""
        counts = self.counts
        return counts["decided"] - counts["observed"] - counts["forgotten"]

    # -- changing ------------------------------------------------------------------------------

    def advance(self, entry: Entry) -> None:
        """The entry is part of this state now."""
        seq, kind, _, request_id, at, _, _ = entry
        self.seq, self.hash, self.at = seq, entry.hash(), at
        if kind == kinds.DECIDED and self.configuration.ids_hold_hashes:
            tag, (round_, since, _) = id_tag(self.hash), self.open[seq]
            self.open[seq] = _new(OpenDecision, (round_, since, tag))
            if self.summary is not None:
                self.summary.last_tag = tag
        if request_id is not None:
            self.recent.add(request_id, seq)

    def apply(self, entry: Entry) -> None:
        """Take one recorded entry, the next."""
        fields, arrays = entry.unpack()
        _APPLY[entry.kind](self, entry, fields, arrays)
        self.advance(entry)
        self.ahead = fields.get(AHEAD, self.ahead)
        self.recent.trim()
        if self.summary is not None:
            self.summary.settle()

    def replay(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def learn(self, features: Array, rewards: Array) -> None:
        """History (n, d) with rewards (n,)."""
        self.run.gate.learn(features, rewards)
        self._fingerprint = self._centre = None
        self.counts["learned"] += len(rewards)

    def enter(
        self, seq: int, at: int, fallback: bool, numbers: DecisionNumbers, overruled: bool = False
    ) -> None:
        """A decision was made: the last round of ``run`` is the journal's entry ``seq``."""
        self.rollout = self.rollout.decided(not fallback, overruled)
        run, counts = self.run, self.counts
        round_ = run.rounds - 1
        self.open[seq] = _new(OpenDecision, (round_, at, ""))
        self.seq_of[round_] = seq
        counts["decided"] += 1
        counts["fallback"] += fallback
        made = run.outcomes.open[round_]
        if self.summary is not None:
            self.summary.decided(seq, at, self._bank_of_all_rounds(numbers.bank), fallback, made)
        if self.series is not None:
            compute, alpha = contrast_intervals.estimate, self.configuration.alpha
            estimate = partial(compute, self.estimate(), made.executed, made.baseline, alpha)
            row = (
                round_ + 1,
                at,
                numbers.bank,
                counts["fallback"],
                counts["decided"] - counts["observed"] - counts["forgotten"],
                numbers.certificate,
                math.nan,
                numbers.radius,
                seq,
            )
            self.series.add(_new(Row, row), estimate)

    def _bank_of_all_rounds(self, bank: float) -> float:
        """``bank`` if it bounds all rounds, those in shadow included; else NaN.

        The ledger does not know rounds in shadow. Where the incumbent was executed in them and has no
        negative mean, they owe nothing.
        """
        if not self.run.uncharged:
            return bank
        owes = self.rollout.strayed or self.run.gate.terms.floor < 0.0
        return math.nan if owes else bank

    def offer(self, fields: Fields, arrays: dict[str, Array]) -> None:
        """The candidates among which the last decision was made, as its entry holds them."""
        if self.summary is not None and "labels" in fields:
            action = fields["action"]
            played = None if action is None else recording.position(fields, action)
            details = recording.all_details(fields, arrays)
            self.summary.offered(self.run.rounds - 1, fields["labels"], details, played)

    def absorb(self, seq: int, reward: Outcome | None) -> None:
        """An open decision's outcome, None for lost; absorbs what can be absorbed now."""
        number, outcomes = self.open[seq].round, self.run.outcomes
        first = outcomes.next if outcomes.in_order else number
        if self.summary is not None:
            self.summary.outcome(number, reward, outcomes.open[number].items)
        if type(reward) is not float or not self.run.report_next(number, reward):
            self.run.report(number, reward)
        for closed in range(first, outcomes.next if outcomes.in_order else number + 1):
            del self.open[self.seq_of.pop(closed)]
        self._fingerprint = self._centre = None
        self.counts["forgotten" if reward is None else "observed"] += 1

    def amend(
        self,
        seq: int,
        features: Array | None,
        bank: float | None = None,
        items: Array | None = None,
    ) -> None:
        """Another action was executed; None for the baseline. A recorded ``bank`` is taken over."""
        number = self.open[seq].round
        before = PendingOutcome(*self.run.outcomes.open[number].played)
        self.run.amend(number, features, bank, items)
        if number < self.run.uncharged and features is not None:
            self.rollout = self.rollout._replace(strayed=True)
        if self.summary is not None:
            bank_now = self._bank_of_all_rounds(self.bank)
            self.summary.amended(number, before, self.run.outcomes.open[number], bank_now)
        self.counts["executed"] += 1

    def raise_alarm(self, seq: int, at: int, reason: str, source: str) -> None:
        """The journal's entry ``seq`` is an alarm."""
        self.alarm = reason
        self.counts["alarm"] += 1
        if self.summary is not None:
            self.summary.alarm(seq, at, reason, source)

    def mark(self) -> Mark:
        """What ``undo`` needs when a later decision of the same call fails."""
        self.recent.trim()
        return Mark(
            self.run.mark(),
            self.seq,
            self.hash,
            self.at,
            self.ahead,
            dict(self.counts),
            None if self.series is None else self.series.mark(),
            (self.alarm, self.model_alarm),
            self.rollout,
            None if self.summary is None else self.summary.mark(),
        )

    def undo(self, mark: Mark) -> None:
        """Take back the decisions since ``mark``, none of which was appended to the journal."""
        for round_ in range(mark.run.rounds, self.run.rounds):
            if round_ in self.seq_of:
                del self.open[self.seq_of.pop(round_)]
        self.run.undo(mark.run)
        self.recent.undo(mark.seq)
        self.seq, self.hash, self.at, self.counts = mark.seq, mark.hash, mark.at, mark.counts
        self.ahead, (self.alarm, self.model_alarm) = mark.ahead, mark.alarms
        self.rollout = mark.rollout
        if self.series is not None and mark.series is not None:
            self.series.undo(mark.series)
        if self.summary is not None and mark.summary is not None:
            self.summary.undo(mark.summary)


def _created(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    """The configuration made this state already."""


def _learned(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    state.learn(arrays["features"], arrays["rewards"])


def _decided(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    played, numbers = recorded_play(fields, arrays), recorded_numbers(arrays)
    held = fields.get("held")
    state.run.recharge(numbers.bank, played, charged=held != SHADOW_HOLDS)
    overruled = held is not None and fields["proposed"] is not None
    state.enter(entry.seq, entry.at, played.is_baseline, numbers, overruled)
    state.offer(fields, arrays)


def _observed(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    state.absorb(_about(entry), recorded_outcome(arrays))


def _forgotten(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    state.absorb(_about(entry), None)


def _executed(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    numbers = BankNumbers(*arrays["numbers"].tolist())
    features = None if fields["baseline"] else arrays["features"]
    bank = numbers.after  # the journal is the authority
    state.amend(_about(entry), features, bank, arrays.get("items"))


def _alarm(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    state.raise_alarm(entry.seq, entry.at, fields["reason"], fields["source"])
    if fields["source"] == "model":
        state.model_alarm = state.alarm


def _control(state: State, entry: Entry, fields: Fields, arrays: dict[str, Array]) -> None:
    if fields["action"] == ARCHIVE:
        state.archived = fields["last"]
    else:
        state.rollout = state.rollout.ordered(recorded_control(entry, fields))


def recorded_control(entry: Entry, fields: Fields) -> Control:
    given = {name: fields[name] for name in ORDERED if name in fields}
    return Control(fields["action"], fields["by"], fields["why"], entry.at, entry.seq, **given)


def first_rollout(configuration: Configuration) -> Rollout:
    """Where a new deployment stands."""
    waiting = configuration.predecessor is not None
    return Rollout(shadow=configuration.mode == "shadow", waiting=waiting)


def _about(entry: Entry) -> int:
    assert entry.about is not None
    return entry.about


_APPLY: dict[str, Callable[[State, Entry, Fields, dict[str, Array]], None]] = {
    kinds.CREATED: _created,
    kinds.LEARNED: _learned,
    kinds.DECIDED: _decided,
    kinds.OBSERVED: _observed,
    kinds.FORGOTTEN: _forgotten,
    kinds.EXECUTED: _executed,
    kinds.ALARM: _alarm,
    kinds.CONTROL: _control,
}


def durable_arrays(state: State) -> Arrays:
    """The arrays of a state without ``REMEMBERED_REPORTS``: the journal remembers every report."""
    arrays = {name: a for name, a in state.run.arrays().items() if name not in REMEMBERED_REPORTS}
    if needs_instead(state):  # also where it is False for all, so that its absence says something
        arrays.setdefault(INSTEAD, np.zeros(len(state.run.outcomes.open), dtype=bool))
    return arrays


def needs_instead(state: State) -> bool:
    """Whether the gate must know which open decisions have another execution on record."""
    return state.gate.knows_instead and bool(state.counts["executed"] and state.open)
