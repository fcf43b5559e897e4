"""One journal, followed entry by entry, by code that decided nothing."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4b._validate import Array
from c4b.deployment import snapshot
from c4b.deployment.audit.audit_report import Report
from c4b.deployment.audit.recompute import JOINT, MARGIN, SCORE, SEPARATE, UCB, Books, RecomputedSet
from c4b.deployment.configuration import Configuration
from c4b.deployment.state import State
from c4b.journal.entries import Entry

TOLERANCE = 1e-6
"""Largest difference between two arithmetics, relative to 1 + the size of the numbers involved."""


class Wrong(Exception):
    """What does not hold, of the entry at hand or of another."""

    def __init__(self, finding: str, entry: int | None = None) -> None:
        super().__init__(finding)
        self.entry = entry


def hash_of(e: Entry) -> bytes:
    """From the format in ``journal``, not from ``Entry.hash``."""
    try:
        return _hash(e)
    except Exception as error:  # a damaged row can hold any type
        raise Wrong(f"cannot be read ({error})", e.seq) from error


def _hash(e: Entry) -> bytes:
    about = -1 if e.about is None else e.about
    kind = e.kind.encode("utf-8")
    request = b"" if e.request_id is None else ("=" + e.request_id).encode("utf-8")
    text = struct.pack("<3q", e.seq, about, e.at) + struct.pack("<I", len(kind)) + kind
    text += struct.pack("<I", len(request)) + request + e.previous + e.payload
    return hashlib.sha256(text).digest()


def _content(payload: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    size = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + size].decode("utf-8"))
    numbers = np.frombuffer(payload[4 + size :], dtype="<f8")
    arrays, start = {}, 0
    for name, shape in header["arrays"]:
        stop = start + math.prod(shape)
        arrays[name] = numbers[start:stop].reshape(shape)
        start = stop
    if start != len(numbers):
        raise Wrong("holds more numbers than it says")
    return header["fields"], arrays


@dataclass(slots=True)
class Case:
    """A decision whose outcome is open."""

    round: int
    at: int
    executed: Array
    is_baseline: bool
    baseline: Array
    known: bool = False
    reward: float | None = None


@dataclass
class Auditor:
    """Follows one journal entry by entry; raises ``Wrong``."""

    first: Entry
    report: Report
    every: int
    """One decision of so many in high precision; 0: none."""
    snapshots: dict[int, tuple[Any, ...]]
    """(hash, digest, content) by entry; each is taken out when its entry comes."""

    def __post_init__(self) -> None:
        fields, arrays = _content(self.first.payload)
        if self.first.kind != "created":
            raise Wrong("is not of kind created")
        self.fields, self.rule, self.ridges = fields, arrays["rule"], arrays["ridges"]
        self.model = fields["model"]
        self.report.name = fields["name"]
        self.set = RecomputedSet(self.model, self.ridges, arrays["alarms"])
        self.books = Books(fields, self.rule, self.set)
        self.cases: dict[int, Case] = {}
        self.order: dict[int, int] = {}  # round -> number of its entry, open ones
        self.last_at = self.first.at
        self.state = State(Configuration.recorded(fields, arrays))
        if self.every:
            from c4b.deployment.audit.exact import Sums  # noqa: PLC0415 (mpmath is needed here only)

            self.sums: Any = Sums(self.model["dim"])

    def take(self, entry: Entry, hash_: bytes) -> None:
        """The next entry, whose hash is ``hash_``."""
        try:
            self._take(entry, hash_)
        except Wrong:
            raise
        except Exception as error:  # what an entry makes of this code is a finding, not a crash
            raise Wrong(f"cannot be followed ({type(error).__name__}: {error})") from error

    def _take(self, entry: Entry, hash_: bytes) -> None:
        if entry.at < self.last_at:
            raise Wrong("is older than the entry before it")
        self.last_at = entry.at
        fields, arrays = _content(entry.payload)
        getattr(self, f"_{entry.kind}", self._unknown)(entry, fields, arrays)
        before = self.state.fingerprint()
        self.state.apply(entry)
        if "set" in fields:
            used = entry.kind in ("decided", "executed")
            self.report.replay_differences += fields["set"] != (
                before if used else self.state.fingerprint()
            )
            if not used and fields["observations"] != self.set.count:
                raise Wrong(f"counts {fields['observations']} observations, there are {self.set.count}")
        if (kept := self.snapshots.pop(entry.seq, None)) is not None:
            self._snapshot(kept, hash_)

    def _unknown(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        raise Wrong(f"is of unknown kind {entry.kind!r}")

    def _snapshot(self, kept: tuple[Any, ...], hash_: bytes) -> None:
        told, digest, content = kept
        if told != hash_ or not snapshot.intact(content, digest):
            raise Wrong("has a damaged snapshot (the journal itself is intact)")
        if snapshot.differs(content, self.state) and not self.report.replay_differences:
            raise Wrong("has a snapshot that differs from the replayed state")
        self.report.snapshots += 1

    def _created(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        if entry.seq != 0:
            raise Wrong("creates the deployment a second time")

    def _alarm(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        if not isinstance(fields["reason"], str):
            raise Wrong("gives no reason")

    def _learned(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        if self.report.decisions:
            raise Wrong("adds history after the first decision")
        self._absorb(arrays["features"], arrays["rewards"])

    def _absorb(self, features: Array, rewards: Array) -> None:
        self.set.add(features, rewards)
        self.report.observations = self.set.count
        if self.every:
            self.sums.add(features, rewards)

    # -- decisions -----------------------------------------------------------------------------

    def _decided(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        action, books = fields["action"], self.books
        candidates, baseline, told = arrays["candidates"], arrays["baseline"], arrays["details"]
        before, bank, certificate, ucb, radius = arrays["numbers"].tolist()
        if fields["observations"] != self.set.count:
            raise Wrong(f"used {fields['observations']} observations, {self.set.count} were absorbed")
        if not _same(before, books.bank):
            raise Wrong(f"starts from bank {before!r}, the entries before it end with {books.bank!r}")
        found = books.details(candidates, baseline, float(self.rule[1]))
        scale = 1.0 + abs(books.bank) if books.gated else 1.0
        for row, what in ((UCB, "UCB"), (MARGIN, "margin"), (JOINT, "joint"), (SEPARATE, "separate")):
            self._near(f"{what} of candidates", told[row], found[row], scale)
        self._near("radius", radius, self.set.stack().radii[0], 1.0)
        if "estimate" in arrays:
            self._explanation(arrays)
        chosen = self._choice(told, baseline, fields["alarm"])
        if action != chosen:
            raise Wrong(f"executes {_called(action)}, its own numbers choose {_called(chosen)}")
        if action is None:
            margin = books.baseline_margin(baseline)
            self._near("bank", bank, margin, scale)
            if books.gated and not self.fields["baseline_nonnegative"] and not bank >= 0.0:
                raise Wrong(f"falls back with bank {bank!r} on a baseline that may be negative")
            self._near("certificate", certificate, books.credit(baseline, books.tolerance), scale)
        else:
            if books.gated and not (told[MARGIN, action] >= 0.0 and _same(bank, told[MARGIN, action])):
                raise Wrong(f"executes candidate {action} with margin {told[MARGIN, action]!r}")
            row = SEPARATE if (books.certificate, books.ledger) == ("separate", "carry") else JOINT
            if not _same(ucb, told[UCB, action]):
                raise Wrong("gives another UCB than it lists for its candidate")
            self._near("certificate", certificate, told[row, action] - books.price(False), scale)
        if self.every and self.report.decisions % self.every == 0:
            self._precisely(candidates, baseline, action, bank, radius, scale)
        executed = baseline if action is None else candidates[action]
        case = Case(self.report.decisions, entry.at, executed, action is None, baseline)
        self.cases[entry.seq], self.order[case.round] = case, entry.seq
        books.charge(bank, executed, baseline, action is None)
        self.report.decisions += 1
        self.report.fallbacks += action is None

    def _explanation(self, arrays: dict[str, Array]) -> None:
        """What decides nothing, but is shown to whoever asks why; early versions did not record it."""
        contrasts = arrays["candidates"] - (1.0 - self.books.alpha) * arrays["baseline"]
        with np.errstate(invalid="ignore"):
            told = contrasts @ arrays["estimate"]
            found = contrasts @ self.set.stack().centres[0]
        self._near("estimated contrasts", np.where(np.isnan(told), -np.inf, told), found, 1.0)
        if "upper" in arrays:  # one that is too large explains less, but nothing wrongly
            self._near("upper bounds of contrasts", -arrays["upper"], -self.set.bounds(contrasts)[1], 1.0)

    def _choice(self, told: Array, baseline: Array, alarm: str | None) -> int | None:
        """The candidate that the rule takes, given the recorded margins and scores."""
        propose, thrift, latches = bool(self.rule[0]), float(self.rule[2]), bool(self.rule[3])
        if self.set.alarmed != (alarm is not None) and self.set.closest > TOLERANCE:
            raise Wrong(f"says {alarm!r} of the model, the data say otherwise")
        if latches and alarm is not None:
            return None
        scores = np.where(told[SCORE] < np.inf, told[SCORE], -np.inf)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        least = self.books.least(thrift, baseline)
        levels = [least, 0.0] if least > 0.0 else [0.0]
        for least in levels:
            fit = np.ones(len(scores), bool) if propose else told[MARGIN] >= least
            fit &= scores > -np.inf
            if fit.any():
                best = int(np.argmax(np.where(fit, scores, -np.inf)))
                return best if told[MARGIN, best] >= 0.0 else None
        return None

    def _precisely(
        self,
        candidates: Array,
        baseline: Array,
        action: int | None,
        bank: float,
        radius: float,
        scale: float,
    ) -> None:
        from c4b.deployment.audit.exact import ExactSet  # noqa: PLC0415 (mpmath)

        books = copy.copy(self.books)
        books.region = exact = ExactSet(self.sums, self.set.count, self.model, self.ridges)
        self._near("radius (50 digits)", radius, exact.radius, 1.0)
        if books.gated:
            found = books.baseline_margin(baseline)
            if action is not None:
                found = books.details(candidates[action : action + 1], baseline, 1.0)[MARGIN, 0]
            self._near("bank (50 digits)", bank, found, scale)
        self.report.precise += 1

    # -- outcomes ------------------------------------------------------------------------------

    def _observed(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        case, reward = self._case(entry), float(arrays["numbers"][0])
        if not math.isfinite(reward):
            raise Wrong(f"reports the reward {reward!r}")
        if fields["by"] == "timeout":
            self._expired(entry, case)
            if reward != self.fields["timeout_reward"]:
                raise Wrong(
                    f"records {reward!r}, the declared default is {self.fields['timeout_reward']!r}"
                )
        case.reward = reward
        self._close(case)

    def _forgotten(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        case = self._case(entry)
        if fields["by"] == "timeout":
            self._expired(entry, case)
        self._close(case)

    def _executed(self, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
        case, books = self._case(entry), self.books
        before, after = arrays["numbers"].tolist()
        if not _same(before, books.bank):
            raise Wrong(f"starts from bank {before!r}, the entries before it end with {books.bank!r}")
        instead = arrays["features"], bool(fields["baseline"])
        if instead[1] and not np.array_equal(instead[0], case.baseline):
            raise Wrong("calls something the baseline that is not")
        bank = books.amended((case.executed, case.is_baseline), instead, case.baseline, case.round)
        if books.gated:
            self._near("bank", after, bank, 1.0 + abs(before))
            books.bank = after
        case.executed, case.is_baseline = instead

    def _case(self, entry: Entry) -> Case:
        case = None if entry.about is None else self.cases.get(entry.about)
        if case is None or case.known:
            raise Wrong(f"is about entry {entry.about}, which is no decision without an outcome")
        return case

    def _expired(self, entry: Entry, case: Case) -> None:
        window = self.fields["outcome_timeout"]
        if window is None or entry.at - case.at <= window * 1e6:
            raise Wrong("closes an outcome's window before its time")

    def _close(self, case: Case) -> None:
        case.known = True
        self.report.outcomes += 1
        in_order = self.fields["absorb"] == "in-order"
        for round_ in list(self.order) if in_order else [case.round]:
            ready = self.cases[self.order[round_]]
            if not ready.known:
                return
            del self.cases[self.order.pop(round_)]
            if ready.reward is not None:
                self._absorb(ready.executed[None, :], np.array([ready.reward]))

    def _near(self, what: str, told: Any, found: Any, scale: float) -> None:
        """Recorded numbers agree with recomputed ones; recorded -inf is always safe, +inf or NaN never
        is unless recomputed."""
        told, found = np.atleast_1d(told), np.atleast_1d(found)
        with np.errstate(invalid="ignore"):
            error = np.abs(told - found) / (scale + np.abs(found))
        error[(told == found) | (np.isnan(told) & np.isnan(found))] = 0.0
        error[np.isneginf(told)] = 0.0
        worst = float(np.max(error, initial=0.0))
        if not worst <= TOLERANCE:
            k = int(np.argmax(~(error <= TOLERANCE)))
            raise Wrong(f"{what}: recorded {told[k]!r}, recomputed {found[k]!r}")
        self.report.largest_error = max(self.report.largest_error, worst)


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _called(action: int | None) -> str:
    return "the baseline" if action is None else f"candidate {action}"
