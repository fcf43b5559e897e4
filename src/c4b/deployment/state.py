"""Entries -> state, bit for bit. The only room that reaches into a ``Policy``.

Decisions are not decided again: the ledger is charged with the margin and the features that were
recorded, by the kernel that charged it then. Outcomes are absorbed by the kernel that absorbed them
then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import Array
from c4b.deployment import contrast_intervals as contrasts
from c4b.deployment.configuration import Configuration
from c4b.deployment.downsampled_series import Course, Place, Row
from c4b.evidence import ellipsoids as statistics
from c4b.journal import entries as kinds
from c4b.journal.entries import GENESIS, Entry
from c4b.ledger import ledger_kernels as ledgers
from c4b.policies.pending import Pending

COUNTS = ("learned", "decided", "fallback", "observed", "forgotten", "executed", "alarm")


@kernel
def recharge(
    ledger_flat: Array, margin: float, executed: Array, baseline: Array, is_baseline: bool
) -> None:
    """``charge`` with a recorded margin; executed and baseline (d,)."""
    ledger, account = ledgers.opened(ledger_flat)
    ledgers.charge(ledger, account, margin, executed, baseline, is_baseline)


class Open(NamedTuple):
    """A decision whose outcome is not absorbed yet."""

    round: int
    at: int


class Mark(NamedTuple):
    """What decisions change besides the pending ones."""

    ledger: Array
    rounds: int
    seq: int
    hash: bytes
    at: int
    counts: dict[str, int]
    place: Place | None


class State:
    """Everything that follows from the entries up to number ``seq``. Belongs to one thread."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.policy = configuration.policy()
        self.policy._token = configuration.name
        self.seq = -1
        self.hash = GENESIS
        self.at = 0
        self.open: dict[int, Open] = {}  # by number of the decision's entry, oldest first
        self.seq_of: dict[int, int] = {}  # round -> that number, for open rounds
        self.counts = dict.fromkeys(COUNTS, 0)
        self.course: Course | None = Course()  # None: not known, of a snapshot without one
        self.alarm: str | None = None  # the last one
        self.model_alarm: str | None = None
        region, data, _ = statistics.views(self.policy.evidence.flat)
        self._set = (region.estimate, region.radius, data.moment, data.tally)
        self.tally = data.tally
        self.centre: Array = region.estimate[0]
        self.stack = len(region.radius)
        self._fingerprint: str | None = None  # until the set changes

    # -- reading -------------------------------------------------------------------------------

    @property
    def ledger(self) -> Array:
        return self.policy._ledger

    @property
    def bank(self) -> float:
        return self.policy.bank

    @property
    def observations(self) -> int:
        return int(self.tally[statistics.COUNT])

    def fingerprint(self) -> str:
        """Of the confidence set: centre, radius and what they were computed from."""
        if self._fingerprint is None:
            content = b"".join([array.tobytes() for array in self._set])
            self._fingerprint = hashlib.sha256(content).hexdigest()[:32]
        return self._fingerprint

    def pending(self, seq: int) -> Pending | None:
        """What is known of an open decision; None when it is closed or no decision."""
        found = self.open.get(seq)
        return None if found is None else self.policy._outcomes.open[found.round]

    @property
    def unknown(self) -> int:
        """Decisions whose outcome is not known."""
        counts = self.counts
        return counts["decided"] - counts["observed"] - counts["forgotten"]

    # -- changing ------------------------------------------------------------------------------

    def advance(self, entry: Entry) -> None:
        """The entry is part of this state now."""
        self.seq, self.hash, self.at = entry.seq, entry.hash(), entry.at

    def apply(self, entry: Entry) -> None:
        """Take one recorded entry, the next."""
        fields, arrays = entry.unpack()
        _APPLY[entry.kind](self, entry, fields, arrays)
        self.advance(entry)

    def replay(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def learn(self, features: Array, rewards: Array) -> None:
        """History; raises, having changed nothing, when it cannot be absorbed."""
        self.policy.learn(features, rewards)
        self._fingerprint = None
        self.counts["learned"] += len(rewards)

    def enter(
        self, seq: int, at: int, fallback: bool, bank: float, certificate: float, radius: float
    ) -> None:
        """A decision was made: the policy's last round is the journal's entry ``seq``."""
        round_ = self.policy._rounds - 1
        self.open[seq] = Open(round_, at)
        self.seq_of[round_] = seq
        self.counts["decided"] += 1
        self.counts["fallback"] += fallback
        if self.course is not None:
            fallbacks = self.counts["fallback"]
            made = self.policy._outcomes.open[round_]
            alpha = self.configuration.alpha
            estimate = contrasts.estimate(self.centre, made.executed, made.baseline, alpha)
            row = Row(round_ + 1, at, bank, fallbacks, self.unknown, certificate, estimate, radius)
            self.course.add(row)

    def absorb(self, seq: int, reward: float | None) -> None:
        """An open decision's outcome, None for lost; absorbs what its arrival allows to absorb."""
        round_ = self.open[seq].round
        outcome = self.policy._outcomes.open[round_]
        if reward is None:
            outcome.lost = True
        else:
            outcome.reward = reward
        self.policy._absorb(round_)
        self._fingerprint = None
        self.counts["forgotten" if reward is None else "observed"] += 1
        waiting = self.policy._outcomes.open
        if round_ not in waiting:  # closed, and with it perhaps later rounds that waited for it
            closed = [round_]
            if self.policy._outcomes.in_order:
                closed = list(range(round_, self.policy._outcomes.next))
            for each in closed:
                del self.open[self.seq_of.pop(each)]

    def amend(self, seq: int, features: Array | None) -> None:
        """Another action was executed; None for the baseline."""
        round_ = self.open[seq].round
        outcome = self.policy._outcomes.open[round_]
        really = outcome.baseline if features is None else features
        ledgers.amend(
            self.ledger,
            self.policy.evidence.flat,
            outcome.executed,
            outcome.is_baseline,
            really,
            features is None,
            outcome.baseline,
            round_,
        )
        outcome.executed, outcome.is_baseline = really.copy(), features is None
        self.counts["executed"] += 1

    def mark(self) -> Mark:
        """Where to go back to when a later decision of the same call fails."""
        return Mark(
            self.ledger.copy(),
            self.policy._rounds,
            self.seq,
            self.hash,
            self.at,
            dict(self.counts),
            None if self.course is None else self.course.place(),
        )

    def undo(self, mark: Mark) -> None:
        """Take back the decisions since ``mark``, none of which was appended to the journal."""
        policy = self.policy
        self.ledger[:] = mark.ledger
        for round_ in range(mark.rounds, policy._rounds):
            del policy._outcomes.open[round_]
            if round_ in self.seq_of:
                del self.open[self.seq_of.pop(round_)]
        policy._rounds = mark.rounds
        self.seq, self.hash, self.at, self.counts = mark.seq, mark.hash, mark.at, mark.counts
        if self.course is not None and mark.place is not None:
            self.course.back(mark.place)


def _created(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    """The configuration made this state already."""


def _learned(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    state.learn(arrays["features"], arrays["rewards"])


def _decided(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    policy, action, baseline = state.policy, fields["action"], arrays["baseline"]
    executed = baseline.copy() if action is None else arrays["candidates"][action].copy()
    _, bank, certificate, _, radius = arrays["numbers"].tolist()
    recharge(state.ledger, bank, executed, baseline, action is None)
    policy._outcomes.open[policy._rounds] = Pending(executed, baseline, action is None)
    policy._rounds += 1
    state.enter(entry.seq, entry.at, action is None, bank, certificate, radius)


def _observed(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    state.absorb(_about(entry), float(arrays["numbers"][0]))


def _forgotten(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    state.absorb(_about(entry), None)


def _executed(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    state.amend(_about(entry), None if fields["baseline"] else arrays["features"])
    state.ledger[ledgers.BANK] = arrays["numbers"][1]  # the journal is the authority


def _alarm(state: State, entry: Entry, fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    state.alarm = fields["reason"]
    if fields["source"] == "model":
        state.model_alarm = state.alarm
    state.counts["alarm"] += 1


def _about(entry: Entry) -> int:
    assert entry.about is not None
    return entry.about


_APPLY: dict[str, Callable[[State, Entry, dict[str, Any], dict[str, Array]], None]] = {
    kinds.CREATED: _created,
    kinds.LEARNED: _learned,
    kinds.DECIDED: _decided,
    kinds.OBSERVED: _observed,
    kinds.FORGOTTEN: _forgotten,
    kinds.EXECUTED: _executed,
    kinds.ALARM: _alarm,
}


def same_bits(one: State, other: State) -> bool:
    """Whether two states would continue identically."""
    a, b = one.policy._arrays(), other.policy._arrays()
    skipped = ("outcomes.recent_round", "outcomes.recent_reward")  # the journal remembers instead
    return (
        _plain(one) == _plain(other)
        and one.policy._outcomes.next == other.policy._outcomes.next
        and all(np.array_equal(_bits(a[k]), _bits(b[k])) for k in a if k not in skipped)
    )


def _plain(state: State) -> tuple[Any, ...]:
    counts = state.counts, state.alarm, state.model_alarm, state.policy._rounds
    course = None if state.course is None else (state.course.stride, state.course.array().tobytes())
    return state.seq, state.hash, state.at, state.open, course, *counts


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(array.tobytes(), np.uint8)
