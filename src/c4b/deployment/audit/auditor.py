"""Follow one journal entry by entry.

The checks here are the same for every policy: kinds and times of entries, outcomes about open decisions,
banks that continue each other, fingerprints and snapshots of the replayed state. ``DecisionChecks``
checks whether the decisions are right, at one of two levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding, Report
from c4b.deployment.audit.checks.alarm_checks import AlarmChecks
from c4b.deployment.audit.checks.decided_again import check_numbers_again
from c4b.deployment.audit.checks.decision_checks import (
    EVERYTHING,
    DecisionChecks,
    RecordedDecision,
    Share,
    same,
)
from c4b.deployment.audit.checks.recomputed_checks import RecomputedChecks
from c4b.deployment.audit.checks.replayed_checks import ReplayedChecks
from c4b.deployment.audit.checks.replayed_choice import replayed_choice
from c4b.deployment.audit.checks.rollout_checks import RolloutChecks
from c4b.deployment.audit.entry_format import entry_contents
from c4b.deployment.audit.recomputed.recomputed_books import MARGIN
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.decision_entry import BankNumbers
from c4b.deployment.transactions.state import State
from c4b.journal.backend import StoredSnapshot
from c4b.journal.entries import DECIDED, EXECUTED, FORGOTTEN, LEARNED, OBSERVED, Entry
from c4b.policies.gate import Played
from c4b.policies.rounds.decision import DecisionNumbers

Fields = dict[str, Any]
Arrays = dict[str, Array]
KNOWING = (LEARNED, DECIDED, OBSERVED, FORGOTTEN, EXECUTED)
"""Kinds of entries that fingerprint the confidence set."""


@dataclass(slots=True)
class OpenOutcome:
    """A decision whose outcome is not absorbed yet."""

    round: int
    at: int
    played: Played
    charged: bool = True
    known: bool = False
    reward: float | tuple[float, ...] | None = None


class Auditor:
    """Follows one journal entry by entry; raises ``Finding``.

    every: one decision of so many is recomputed in 50 digits; 0: none.
    snapshots: by the number of their entry; each is removed when its entry comes.
    share: the decisions to recompute, if they can be recomputed at all.
    """

    def __init__(
        self,
        first: Entry,
        report: Report,
        every: int,
        snapshots: dict[int, StoredSnapshot],
        share: Share = EVERYTHING,
    ) -> None:
        fields, arrays = entry_contents(first.payload)
        if first.kind != "created":
            raise Finding("is not of kind created")
        configuration = Configuration.recorded(fields, arrays)
        self.report, self.snapshots = report, snapshots
        self.checks: DecisionChecks
        if configuration.is_recomputable:
            self.checks = RecomputedChecks(fields, arrays, report, every, share)
        else:
            self.checks = ReplayedChecks(configuration)
        report.name, report.level = fields["name"], self.checks.level
        self.rollout = RolloutChecks(
            fields.get("mode") == "shadow", fields.get("predecessor") is not None
        )
        self.archived = 0  # the last entry that was archived
        self.uncharged = 0  # decisions in shadow, all of them before the first charged one
        self.in_order = fields["absorb"] == "in-order"
        self.outcome_timeout: float | None = fields["outcome_timeout"]
        self.timeout_reward: float | None = fields["timeout_reward"]
        self.range: tuple[float, float] = tuple(fields["model"].get("rewards") or (-math.inf, math.inf))
        self.asserts_independence = configuration.asserts_independence
        self.attests_snapshots = configuration.attests_snapshots
        self.alarms = AlarmChecks(of_model=configuration.is_recomputable)
        self.unattested: StoredSnapshot | None = None  # the one after the entry before
        self.latest = -1  # last round whose reward was reported
        self.open: dict[int, OpenOutcome] = {}  # by number of the decision's entry
        self.seq_of: dict[int, int] = {}  # number of the entry of each open round
        self.last_at = first.at
        self.state = State(configuration)
        if isinstance(self.checks, RecomputedChecks):
            self.checks.set.choice = replayed_choice(configuration)

    @np.errstate(over="ignore", invalid="ignore")  # with features like 1e200; no number bounds nothing
    def take(self, entry: Entry, hash_: bytes) -> None:
        """The next entry, whose hash is ``hash_``."""
        try:
            self._take(entry, hash_)
        except Finding:
            raise
        except Exception as error:  # an entry that cannot be processed is a finding, not a crash
            raise Finding(f"cannot be followed ({type(error).__name__}: {error})") from error

    def _take(self, entry: Entry, hash_: bytes) -> None:
        if entry.at < self.last_at:
            raise Finding("is older than the entry before it")
        self.last_at = entry.at
        fields, arrays = entry_contents(entry.payload)
        self._attest(fields.get("state"))
        if entry.kind in KNOWING and "set" not in fields:
            raise Finding("does not say which confidence set there was")
        getattr(self, f"_{entry.kind}", self._unknown)(entry, fields, arrays)
        self.alarms.take(entry.kind, fields, arrays, self.state)
        before = self.state.fingerprint()
        self.state.apply(entry)
        if entry.kind in KNOWING:
            used = entry.kind in (DECIDED, EXECUTED)
            agrees = fields["set"] == (before if used else self.state.fingerprint())
            self.report.replay_differences += not agrees
            if agrees:
                self.alarms.replayed(entry.kind, fields, self.state)
            count = self.checks.observations
            if not used and fields["observations"] != count:
                raise Finding(f"counts {fields['observations']} observations, there are {count}")
        if (stored := self.snapshots.pop(entry.seq, None)) is not None:
            self._snapshot(stored, hash_)

    def _unknown(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        raise Finding(f"is of unknown kind {entry.kind!r}")

    def _snapshot(self, stored: StoredSnapshot, hash_: bytes) -> None:
        if stored.hash != hash_ or not snapshot.intact(stored):
            raise Finding("has a damaged snapshot (the journal itself is intact)")
        agree = self.report.replay_differences == 0
        if snapshot.differs(stored.content, self.state) and not snapshot.is_near(
            stored.content, self.state, agree
        ):
            raise Finding("has a snapshot that differs from the replayed state")
        self.report.snapshots += 1
        self.unattested = stored

    def _attest(self, digest: str | None) -> None:
        """An entry, or the end of the journal, follows a snapshot; ``digest`` is what it says of it."""
        stored, self.unattested = self.unattested, None
        if stored is not None and self.attests_snapshots and stored.digest.hex() != digest:
            raise Finding("has a snapshot that the next entry does not attest", stored.seq)

    def finish(self) -> None:
        """There are no more entries."""
        self._attest(None)
        self.alarms.finish(self.state)

    def _created(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        if entry.seq != 0:
            raise Finding("creates the deployment a second time")

    def _alarm(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        """See ``AlarmChecks``."""

    def _control(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        self.report.orders += 1
        if fields["action"] == "archive":
            self._archived(entry, fields)
        else:
            certain = self.checks.bank - self.state.gate.counts_on
            self.rollout.order(fields, certain, self.state.configuration.reserve)

    def _archived(self, entry: Entry, fields: Fields) -> None:
        last = fields["last"]
        if not self.archived < last < entry.seq or any(seq <= last for seq in self.open):
            raise Finding(f"archives entries up to {last!r}, not all of which are closed")
        self.archived = last

    def _learned(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        if self.report.decisions:
            raise Finding("adds history after the first decision")
        for reward in arrays["rewards"].tolist():
            self._check_reward(reward)
        self.checks.learn(arrays["features"], arrays["rewards"])
        self.report.observations += len(arrays["rewards"])

    def _decided(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        action, baseline = fields["action"], arrays["baseline"]
        kept = fields.get("kept")
        if kept is not None:  # rows instead of indices: what was not executed is not there
            if sorted({fields["action"], fields.get("proposed")} - {None}) != kept:
                raise Finding("does not hold what it executes")
            rows = {None: None, **{index: row for row, index in enumerate(kept)}}
            action = rows[action]
            fields = {**fields, "action": action, "proposed": rows[fields.get("proposed")]}
        if "evaluated" in fields:
            arrays = {**arrays, "details": _all_details(fields, arrays)}
        features = baseline if action is None else arrays["candidates"][action]
        played = Played(features, baseline, action is None, fields.get("baseline_mean"))
        if "items" in arrays:
            played = _slate(played, action, arrays)
        decision = RecordedDecision(
            entry.seq,
            self.report.decisions,
            fields,
            arrays,
            DecisionNumbers(*arrays["numbers"].tolist()),
            played,
            fields.get("set") == self.state.fingerprint(),
        )
        count = self.checks.observations
        if fields["observations"] != count:
            raise Finding(f"used {fields['observations']} observations, {count} were absorbed")
        self._continues(decision.numbers.bank_before)
        self.rollout.decided(fields)
        self.checks.decided(decision)
        if self.checks.needs_replay(decision):
            check_numbers_again(self.state.run.gate, decision)
        self.report.unchecked_choices += not decision.complete
        self.uncharged += not decision.charged
        # copies: the arrays are views of the whole entry, and many decisions may be open
        played = played._replace(features=features.copy(), baseline=baseline.copy())
        self.open[entry.seq] = OpenOutcome(decision.round, entry.at, played, decision.charged)
        self.seq_of[decision.round] = entry.seq
        self.report.decisions += 1
        self.report.fallbacks += action is None
        self.report.held += "held" in fields and fields["proposed"] is not None

    def _continues(self, before: float) -> None:
        bank = self.checks.bank
        if not same(before, bank):
            raise Finding(f"starts from bank {before!r}, the entries before it end with {bank!r}")

    # -- outcomes ------------------------------------------------------------------------------

    def _observed(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        outcome, rewards = self._open_outcome(entry), arrays["numbers"].tolist()
        items = outcome.played.items
        for reward in rewards:
            self._check_reward(reward)
        if len(rewards) not in (1, 1 if items is None else len(items)):
            raise Finding(f"reports {len(rewards)} rewards of {1 if items is None else len(items)} items")
        if fields["by"] == "timeout":
            self._overdue(entry, outcome)
            if rewards != [self.timeout_reward]:
                raise Finding(f"records {rewards!r}, the declared default is {self.timeout_reward!r}")
        outcome.reward = rewards[0] if len(rewards) == 1 else tuple(rewards)
        self.latest = max(self.latest, outcome.round)
        self._close(outcome)

    def _check_reward(self, reward: float) -> None:
        low, high = self.range
        if not (math.isfinite(reward) and low <= reward <= high):
            raise Finding(f"reports the reward {reward!r}; the model declares {low!r} to {high!r}")

    def _forgotten(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        outcome = self._open_outcome(entry)
        if fields["by"] == "timeout":
            self._overdue(entry, outcome)
        else:
            self._independent(fields, outcome)
        self._close(outcome)

    def _executed(self, entry: Entry, fields: Fields, arrays: Arrays) -> None:
        outcome = self._open_outcome(entry)
        self._independent(fields, outcome)
        decided, numbers = outcome.played, BankNumbers(*arrays["numbers"].tolist())
        self._continues(numbers.before)
        executed = decided._replace(
            features=arrays["features"],
            is_baseline=bool(fields["baseline"]),
            items=arrays.get("items"),
            instead=self.state.run.gate.knows_instead,
        )
        if (executed.items is None) != (decided.items is None):
            raise Finding("is about a slate and names no items, or the other way round")
        if executed.items is not None:
            _check_sum(executed.items, executed.features)
        if executed.is_baseline and not np.array_equal(executed.features, decided.baseline):
            raise Finding("calls something the baseline that is not")
        if outcome.charged:
            round_ = outcome.round - self.uncharged
            self.checks.executed(round_, decided, executed, numbers.after)
        elif not same(numbers.before, numbers.after):
            raise Finding("charges what was executed in shadow")
        outcome.played = executed

    def _open_outcome(self, entry: Entry) -> OpenOutcome:
        outcome = None if entry.about is None else self.open.get(entry.about)
        if outcome is None or outcome.known:
            raise Finding(f"is about entry {entry.about}, which is no decision without an outcome")
        return outcome

    def _independent(self, fields: Fields, outcome: OpenOutcome) -> None:
        """A loss or another execution that a later outcome could have caused was declared independent.

        Journals that the first versions created did not ask for that.
        """
        asserted = fields.get("independent", False)
        if self.asserts_independence and self.latest > outcome.round and asserted is not True:
            raise Finding("follows the outcome of a later decision and is not asserted independent of it")

    def _overdue(self, entry: Entry, outcome: OpenOutcome) -> None:
        timeout = self.outcome_timeout
        if timeout is None or entry.at - outcome.at <= timeout * 1e6:
            raise Finding("closes an outcome's window before its time")

    def _close(self, outcome: OpenOutcome) -> None:
        outcome.known = True
        self.report.outcomes += 1
        round_: int | None = next(iter(self.seq_of)) if self.in_order else outcome.round
        while round_ is not None:
            ready = self.open[self.seq_of[round_]]
            if not ready.known:
                return
            del self.open[self.seq_of.pop(round_)]
            if ready.reward is not None:
                before = self.checks.observations
                self.checks.absorb(ready.played, ready.reward, ready.charged)
                self.report.observations += self.checks.observations - before
            round_ = next(iter(self.seq_of), None) if self.in_order else None


def _all_details(fields: Fields, arrays: Arrays) -> Array:
    """Details (5, K) of an entry that has them of some candidates only, NaN elsewhere."""
    some, count = fields["evaluated"], len(arrays["candidates"])
    if some != sorted(set(some)) or not all(type(k) is int and 0 <= k < count for k in some):
        raise Finding(f"has details of candidates that are not there: {some!r}")
    details = np.full((5, count), np.nan)
    details[:, some] = arrays["details"]
    if np.isnan(arrays["details"][MARGIN]).any():
        raise Finding("lists a candidate as evaluated that has no margin")
    if not {fields["action"], fields.get("proposed")} - {None} <= set(some):
        raise Finding("has no margin of what it chooses")
    return details


def _slate(played: Played, action: int | None, arrays: Arrays) -> Played:
    """The same with the items that were recorded, once every slate is the sum of its items."""
    for items, features in zip(arrays["items"], arrays["candidates"], strict=True):
        _check_sum(items, features)
    incumbent = arrays["baseline_items"].copy()
    _check_sum(incumbent, arrays["baseline"])
    items = incumbent if action is None else arrays["items"][action].copy()
    return played._replace(items=items, baseline_items=incumbent)


def _check_sum(items: Array, features: Array) -> None:
    size = np.abs(items).sum(axis=0) + np.finfo(float).tiny
    if not np.all(np.abs(items.sum(axis=0) - features) <= len(items) * np.finfo(float).eps * size):
        raise Finding("gives a slate other features than the sum of its items'")
