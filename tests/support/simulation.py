"""A deterministic simulation of deployments: store, clocks, scheduler and faults follow from one seed.

In the manner of FoundationDB and TigerBeetle. Workers are greenlets that run the real ``Deployment`` on
a ``SimulatedBackend``. At every call of the store they give control to the scheduler, which chooses who
goes on, and whether something goes wrong: a crash of one worker or of all, a lost connection, a lost
answer to a commit, an end of the journal that was never written although it was acknowledged, a flipped
bit in an entry, an index, a snapshot or the head, a jump of a clock. Callers repeat and reorder their
requests. The same seed gives the same history.

``Model`` says what must hold afterwards; it is the promises of docs/deployment.md in fifty lines.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from greenlet import getcurrent, greenlet

from c4b import Deployment, LinearModel
from c4b.deployment.audit import audit as audits
from c4b.deployment.transactions.state import State
from c4b.errors import C4BError, JournalCorrupt, StoreUnavailable, UnknownDecision
from c4b.journal import envelope
from c4b.journal.backend import LostBeforeCommit, Unacknowledged, unknown
from c4b.journal.entries import DECIDED, GENESIS, OBSERVED, Entry
from c4b.journal.journal import Journal
from c4b.journal.memory_backend import MemoryJournal, _Contents
from c4b.policies import Decision, Gate, GateTerms, Played, Round
from c4b.policies.catalogue import registry
from support.same_state import same_bits

NAME, MODEL = "shop", LinearModel(dim=2, noise=0.1, norm_bound=1.0)
BASELINE = [1.0, 0.0]
YEARS = 3.2e8
FAULTS = ("crash", "power", "lost", "unsure", "unwritten", "entry", "index", "snapshot", "head", "clock")
DAMAGE = ("unwritten", "entry", "index", "snapshot", "head")
"""After these a store may be refused."""
STEPS = 400


class Crash(BaseException):
    """The process is gone."""


class CheapGate(Gate):
    """Takes microseconds; what it plays depends on every reward and on every earlier decision."""

    def __init__(self, terms: GateTerms) -> None:
        self.terms = terms
        self._books = np.array([terms.reserve, 0.0])
        self._sums = np.zeros(2)

    def decide(self, round_: Round, decision_id: str) -> Decision:
        size, before = len(round_.candidates), self.bank
        action = int(1000.0 * (before + self._sums[0])) % (size + 1) - 1
        self._books += [-0.001 * (1.0 + action), 1.0]
        made = None if action < 0 else action
        details = np.full((5, size), self.bank)
        return Decision(decision_id, made, self.bank, 0.0, 0.0, 1.0, before, "cheap", None, details)

    def charge(self, bank: float, played: Played) -> None:
        self._books[:] = bank, self._books[1] + 1.0

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        self._books[0] = self.bank - 0.01 if bank is None else bank

    def absorb(self, features: np.ndarray, reward: float) -> None:
        self._sums += [reward, 1.0]

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"ledger": self._books.copy(), "sums": self._sums.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._books, self._sums = arrays["ledger"].copy(), arrays["sums"].copy()

    bank = property(lambda self: float(self._books[0]))
    rounds = property(lambda self: int(self._books[1]))
    observations = property(lambda self: int(self._sums[1]))


class SimulatedBackend:
    """A ``JournalBackend`` of one worker. Every call is a step at which the scheduler may interfere."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.lock_settles_lost_commits = simulation.lock_settles

    def create(self, name: str, first: Entry) -> None:
        self._simulation.contents = _Contents(name, first._replace(at=int(self._simulation.time * 1e6)))

    def names(self) -> list[str]:
        return [NAME]

    @contextmanager
    def reading(self, name: str) -> Iterator[MemoryJournal]:
        self._simulation.step()
        yield MemoryJournal(self._contents(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[MemoryJournal]:
        with self._locked():
            transaction = MemoryJournal(self._contents(name))
            yield transaction
            self._commit(transaction)

    def append_if_head(self, journal: Hashable, entry: Entry, hash_: bytes) -> bool:
        with self._locked():
            contents = self._contents(str(journal))
            if (contents.head.seq, contents.head.hash) != (entry.seq - 1, entry.previous):
                return False
            transaction = MemoryJournal(contents)
            transaction.append([entry], hash_)
            self._commit(transaction)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        simulation = self._simulation
        simulation.step()
        while simulation.writer is not None:
            simulation.step(waiting=True)
        simulation.writer = getcurrent()
        try:
            simulation.step()
            yield
        finally:
            if simulation.writer is getcurrent():
                simulation.writer = None

    def _commit(self, transaction: MemoryJournal) -> None:
        """It is written, or not, and the caller learns that, or not."""
        fault = self._simulation.step(committing=True)
        if fault is None or fault.written:
            transaction.commit()
        if fault is not None:
            raise fault.error

    def problems(self) -> list[str]:
        return []

    def after_fork(self) -> None:
        """There are no forks."""

    def close(self) -> None:
        """Nothing to give back."""

    def _contents(self, name: str) -> _Contents:
        if name != NAME or self._simulation.contents is None:
            raise unknown(name)
        return self._simulation.contents


class CommitFault(NamedTuple):
    written: bool
    error: BaseException


class Call(NamedTuple):
    """What a caller asks: ``decide`` by a request id or without, or the outcome of a decision."""

    kind: str
    key: str | None
    value: Any
    number: int = 0
    """Recorded as the decision's context."""


class Model:
    """What callers were told, and what must therefore be."""

    def __init__(self) -> None:
        self.decisions: dict[str, Decision] = {}  # by id
        self.requests: dict[str, str] = {}  # id by request id
        self.rewards: dict[str, float] = {}
        self.calls: dict[int, str] = {}  # id by the number of the call
        self.undone: set[int] = set()  # numbers of calls that did nothing
        self.lost: set[str] = set()  # ids of decisions whose entries the store lost

    def told(self, call: Call, answer: Any) -> None:
        """A call was answered."""
        if call.kind == "decide":
            if call.key is not None:
                earlier = self.requests.setdefault(call.key, answer.id)
                assert earlier == answer.id, f"request {call.key} got {earlier} and {answer.id}"
            known = self.decisions.setdefault(answer.id, answer)
            assert known == answer, f"two decisions have the id {answer.id}"
            assert answer.id not in self.lost, f"the id {answer.id} is used again"
            if call.key is None:
                self.calls[call.number] = answer.id
        elif call.kind == "observe":
            assert call.key is not None
            assert call.key not in self.lost, f"an outcome of the lost {call.key} was taken"
            assert self.rewards.setdefault(call.key, call.value) == call.value, "two rewards"

    def failed(self, call: Call, error: BaseException) -> None:
        """A call was not answered; only a lost answer, or a crash, leaves open whether it was done."""
        if call.kind == "decide" and not isinstance(error, Unacknowledged | Crash):
            self.undone.add(call.number)
        if isinstance(error, UnknownDecision):
            assert call.key in self.lost, f"{call.key} is not known any more: {error}"

    def cut_off(self, entries: list[Entry]) -> None:
        """The store lost everything that is not among ``entries``."""
        hashes = {entry.hash().hex() for entry in entries}
        gone = {id_ for id_, made in self.decisions.items() if made.receipt.hash not in hashes}  # type: ignore[union-attr]
        self.lost |= gone
        self.decisions = {id_: made for id_, made in self.decisions.items() if id_ not in gone}
        self.requests = {key: id_ for key, id_ in self.requests.items() if id_ not in gone}
        closed = {entry.about for entry in entries if entry.kind == OBSERVED}
        self.rewards = {
            id_: reward
            for id_, reward in self.rewards.items()
            if id_ in self.decisions and self.decisions[id_].receipt.seq in closed  # type: ignore[union-attr]
        }

    def check(self, dep: Deployment, entries: list[Entry]) -> None:
        """Everything that callers were told is there, once, and the journal is sound."""
        for id_, made in self.decisions.items():
            record = dep.record(id_)
            assert record.decision == made, f"{id_} is not what was answered"
            if id_ in self.rewards:
                assert record.outcome in ("observed", "timeout"), id_  # a default that was the reward
                assert record.reward == self.rewards[id_], id_
        ids = [entry.request_id for entry in entries if entry.request_id is not None]
        assert len(ids) == len(set(ids)), "a request was decided twice"
        calls = [int(e.unpack()[0]["context"]) for e in entries if e.kind == DECIDED]
        assert len(calls) == len(set(calls)), "a call was decided twice"
        assert self.undone.isdisjoint(calls), "a call that raised was decided"
        told = {number for number, id_ in self.calls.items() if id_ in self.decisions}
        assert told <= set(calls), "a decision is missing"
        attested = {m.receipt.seq: frozenset([m.receipt.hash]) for m in self.decisions.values()}  # type: ignore[union-attr]
        report = audits.run(dep._transactor.backend, NAME, audits.Task(0, attested=attested))
        assert report.clean, report


class Simulation:
    """One history. ``steps`` and ``faults`` shorten it without changing what happens before."""

    def __init__(self, seed: int, steps: int = STEPS, faults: tuple[str, ...] = FAULTS) -> None:
        self.seed, self.left, self.faults = seed, steps, faults
        self.rng = random.Random(seed)
        self.lock_settles = self.rng.random() < 0.5
        self.timeout = 100.0 if self.rng.random() < 0.3 else None
        self.rate = self.rng.choice((0.0, 0.005, 0.02, 0.1))
        self.burst = self.rng.choice((0.0, 0.9, 0.98))
        """How likely the same worker goes on. One that is alone computes ahead of the lock."""
        self.contents: _Contents | None = None
        self.writer: greenlet | None = None
        self.time = 1.6e9
        self.model, self.trace = Model(), list[str]()
        self.repairs: list[Callable[[], None]] = []
        self.hub = getcurrent()
        self.workers: list[greenlet | None] = []
        self.calls, self.quiet, self.damaged = 0, False, False

    # -- the scheduler -------------------------------------------------------------------------

    def run(self) -> None:
        """Raises ``AssertionError`` if a promise is broken."""
        salts = random.Random(self.seed)
        with registry_of_cheap(), patch.object(envelope, "new_salt", lambda: salts.randbytes(16)):
            self._opened(create=True).close()
            self.workers = [None] * self.rng.randint(1, 4)
            place = 0
            while self.left > 0:
                self.left -= 1
                self.time += self.rng.expovariate(1.0)
                if self.rng.random() >= self.burst:
                    place = self.rng.randrange(len(self.workers))
                worker = self.workers[place]
                if worker is None or worker.dead:
                    worker = self.workers[place] = greenlet(self._work, self.hub)
                    worker.switch()
                elif self.writer in (None, worker) or self.rng.random() < 0.2:
                    self._go_on(worker)
                if self._happens("power", 0.2):
                    self._crash_all()
                self._damage()
            self._finish()

    def _go_on(self, worker: greenlet) -> None:
        if self._happens("crash"):
            worker.throw(Crash())
        elif self._happens("lost"):
            worker.throw(LostBeforeCommit("lost"))
        else:
            worker.switch()

    def _happens(self, fault: str, share: float = 1.0) -> bool:
        """Always draws, so that a history without this fault is the same up to here."""
        drawn = self.rng.random() < self.rate * share
        happens = drawn and fault in self.faults and not self.quiet
        if happens:
            self.trace.append(fault)
            self.damaged |= fault in DAMAGE
        return happens

    def step(self, waiting: bool = False, committing: bool = False) -> CommitFault | None:
        """A worker gives control to the scheduler."""
        if self.quiet:
            return None
        self.hub.switch()
        if not committing or waiting:
            return None
        written = self.rng.random() < 0.5
        if self._happens("crash"):
            return CommitFault(written, Crash())
        return CommitFault(written, Unacknowledged("unsure")) if self._happens("unsure", 5.0) else None

    def _crash_all(self) -> None:
        for worker in self.workers:
            if worker is not None and not worker.dead:
                worker.throw(Crash())
        assert self.writer is None
        if self._happens("unwritten", 10.0) and self.contents is not None:
            self._repair()
            kept = self.rng.randint(0, self.contents.head.seq)
            entries = self.contents.entries[: kept + 1]
            snapshots = {seq: s for seq, s in self.contents.snapshots.items() if seq < kept}
            self.contents = _Contents(NAME, entries[0])
            head = self.contents.head._replace(
                seq=kept, hash=entries[-1].hash(), snapshot=max(snapshots, default=-1)
            )
            self.contents.commit(entries[1:], snapshots, head)
            self.model.cut_off(entries)

    # -- damage --------------------------------------------------------------------------------

    def _damage(self) -> None:
        """Flip a bit somewhere; ``_repair`` takes it back."""
        contents, rng = self.contents, self.rng
        assert contents is not None
        if self._happens("entry", 0.3):
            seq = rng.randrange(len(contents.entries))
            self._replace(contents.entries, seq, flipped_entry(contents.entries[seq], rng))
        if self._happens("index", 0.3) and contents.by_request:
            key = rng.choice(sorted(contents.by_request))
            self._replace(contents.by_request, key, rng.randrange(len(contents.entries)))
        if self._happens("index", 0.3) and contents.by_request:
            key = rng.choice(sorted(contents.by_request))
            number = contents.by_request.pop(key)
            self.repairs.append(lambda: contents.by_request.update({key: number}))
        if self._happens("snapshot", 0.5) and contents.snapshots:
            seq = rng.choice(sorted(contents.snapshots))
            stored = contents.snapshots[seq]
            damaged = stored._replace(content=flipped(stored.content, rng))
            contents.snapshots = {**contents.snapshots, seq: damaged}
        if self._happens("head", 0.1):
            head = contents.head
            contents.head = head._replace(hash=flipped(head.hash, rng), seq=head.seq - rng.randrange(2))

            def mend() -> None:
                if contents.head.seq <= head.seq:
                    contents.head = head

            self.repairs.append(mend)

    def _replace(self, where: Any, key: Any, value: Any) -> None:
        before = where[key]
        where[key] = value

        def mend() -> None:
            where[key] = before

        self.repairs.append(mend)

    def _repair(self) -> None:
        """The store as it would be without damage; a damaged snapshot is lost."""
        while self.repairs:
            self.repairs.pop()()
        assert self.contents is not None
        intact = {
            s: each
            for s, each in self.contents.snapshots.items()
            if digest_of(each.content) == each.digest
        }
        self.contents.snapshots = intact

    # -- workers and callers -------------------------------------------------------------------

    def _opened(self, create: bool = False) -> Deployment:
        backend, every = SimulatedBackend(self), self.rng.randint(3, 12)
        if create:
            timeout: dict[str, Any] = {}
            if self.timeout is not None:
                timeout = {"outcome_timeout": self.timeout, "timeout_reward": 0.0}
            dep = Deployment.create(
                backend, NAME, MODEL, "cheap", reserve=1e6, snapshot_every=every, **timeout
            )
        else:
            dep = Deployment.open(backend, NAME, snapshot_every=every)
        dep._transactor.clock = lambda: self.time + dep_skew
        dep_skew = self.rng.choice((0.0, 0.0, 0.0, YEARS, -YEARS)) if self._happens("clock", 5.0) else 0.0
        return dep

    def _work(self) -> None:
        """One process: opens the deployment and serves calls until it crashes, or must be restarted."""
        try:
            try:
                dep = self._opened()
            except (StoreUnavailable, JournalCorrupt):
                return
            while True:
                call = self._next_call()
                try:
                    answer = self._answered(dep, call)
                except (C4BError, Crash) as error:
                    self.trace.append(f"{call.kind} {call.key}: {type(error).__name__}")
                    self.model.failed(call, error)
                    if isinstance(error, JournalCorrupt) and not self.damaged:
                        raise AssertionError(f"nothing is damaged: {error}") from error
                    if isinstance(error, JournalCorrupt | Crash):
                        return
                else:
                    self.trace.append(f"{call.kind} {call.key}: {getattr(answer, 'id', 'done')}")
                    self.model.told(call, answer)
                self.step()
        except (Crash, LostBeforeCommit):
            return

    def _next_call(self) -> Call:
        self.calls += 1
        rng, model, drawn = self.rng, self.model, self.rng.random()
        known = [*model.decisions, *sorted(model.lost)]
        if drawn < 0.45 or not known:
            key = f"r-{self.calls}" if rng.random() < 0.6 else None
            return Call("decide", key, rng.randrange(4), self.calls)
        if drawn < 0.6:  # repeated, and out of order
            return Call("decide", f"r-{rng.randint(1, self.calls)}", None, self.calls)
        id_ = rng.choice(known[-20:])
        if drawn < 0.9:
            return Call("observe", id_, model.rewards.get(id_, round(rng.random(), 3)))
        if drawn < 0.94:
            return Call("observe", id_, -1.0 - rng.random())
        if drawn < 0.95:
            return Call("order", None, rng.choice(("freeze", "thaw", 0.2, 0.7, 1.0)))
        return Call("forget" if drawn < 0.97 else "executed", id_, None)

    def _answered(self, dep: Deployment, call: Call) -> Any:
        if call.kind == "decide":
            size = random.Random(call.key).randrange(4) if call.key else call.value
            return dep.decide([[1.0, 0.1]] * size, BASELINE, request_id=call.key, context=call.number)
        if call.kind == "order":
            if isinstance(call.value, float):
                return dep.ramp(call.value, "simulated", by="a worker")
            return getattr(dep, call.value)("simulated", by="a worker")
        assert call.key is not None
        if call.kind == "observe":
            return dep.observe(call.key, call.value)
        return getattr(dep, call.kind)(call.key, independent=True)

    # -- afterwards ----------------------------------------------------------------------------

    def _finish(self) -> None:
        """Everybody stops, the damage is repaired, and the promises are checked."""
        for worker in self.workers:
            if worker is not None and not worker.dead:
                worker.throw(Crash())
        self._repair()
        self.quiet = True
        dep = self._opened()
        with dep._transactor.backend.reading(NAME) as transaction:
            entries = list(Journal(transaction).tail(-1, GENESIS))
        self.model.check(dep, entries)
        full = State(dep.configuration)
        full.replay(entries)
        state = dep._transactor._state
        assert state is not None
        assert same_bits(state, full), "the state is not the one that follows from the entries"
        for id_ in self.model.lost:
            try:
                dep.observe(id_, 0.5)
            except UnknownDecision:
                continue
            raise AssertionError(f"an outcome of the lost {id_} was taken")


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def flipped(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


def flipped_entry(entry: Entry, rng: random.Random) -> Entry:
    field = rng.choice(("payload", "payload", "previous", "at", "kind", "about", "request_id", "seq"))
    value: Any = getattr(entry, field)
    if isinstance(value, bytes):
        value = flipped(value, rng)
    elif isinstance(value, int):
        value ^= 1 << rng.randrange(8)
    elif isinstance(value, str):
        value = value[:-1] + chr(ord(value[-1]) ^ 1)
    else:
        value = 3 if field == "about" else "r-1"
    changed: dict[str, Any] = {field: value}
    return entry._replace(**changed)


@contextmanager
def registry_of_cheap() -> Iterator[None]:
    registry.register_gate("cheap", "for simulations")(CheapGate)
    try:
        yield
    finally:
        registry._REGISTRY.pop("cheap")


def failure(seed: int, steps: int = STEPS, faults: tuple[str, ...] = FAULTS) -> str | None:
    """What went wrong in one history; None if nothing did."""
    simulation = Simulation(seed, steps, faults)
    try:
        simulation.run()
    except Exception as error:  # noqa: BLE001 (whatever it is, the seed has found it)
        tail = "\n    ".join(simulation.trace[-12:])
        return f"{type(error).__name__}: {error}\n    {tail}"
    return None


def shrunk(seed: int) -> str:
    """The shortest history of a failing seed that still fails, with as few kinds of faults as can be."""
    faults: tuple[str, ...] = FAULTS
    for fault in FAULTS:
        fewer = tuple(each for each in faults if each != fault)
        if failure(seed, STEPS, fewer) is not None:
            faults = fewer
    short, long = 0, STEPS
    while short < long:
        middle = (short + long) // 2
        if failure(seed, middle, faults) is None:
            short = middle + 1
        else:
            long = middle
    kinds = ", ".join(faults) or "none"
    return f"seed {seed}, {long} steps, faults {kinds}: {failure(seed, long, faults)}"
