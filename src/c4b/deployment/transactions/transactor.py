"""One process's transactions on one deployment, and its copy of the deployment's state.

Calls go one way: ``Deployment`` -> ``Transactor`` -> ``Commands`` -> ``State``. A transaction brings the
state up to date with the journal, lets a command change it, and appends the entries that say what
changed. If it fails, the state is taken back or read again from the journal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast
from weakref import WeakSet

from c4b._forks import after_fork
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.commands import Commands, overdue
from c4b.deployment.transactions.journal_clock import JournalClock, JournalTime
from c4b.deployment.transactions.state import State
from c4b.errors import C4BError, DeploymentError, EntryArchived, StoreUnavailable
from c4b.journal import seal
from c4b.journal.backend import (
    BatchBackend,
    Head,
    JournalBackend,
    JournalTransaction,
    KnownRequest,
    LostBeforeCommit,
    Unacknowledged,
)
from c4b.journal.entries import ALARM, CONTROL, EXECUTED, FORGOTTEN, OBSERVED, Entry
from c4b.journal.journal import Journal

T = TypeVar("T")
TRUST, DISTRUST = 4, 256
"""Calls in a row between which no other process wrote, before the next call is computed without the lock;
the latter once that went wrong."""
PATIENCE = 0.05
"""Seconds that a reader waits for its turn before it reads by itself."""
REPEATABLE = (OBSERVED, FORGOTTEN, EXECUTED, ALARM, CONTROL)
"""Kinds of entries that come from calls which may be repeated without harm."""


_transactors: WeakSet[Transactor] = after_fork(lambda each: each.leave_turn_to_parent())


class Overtaken(Exception):
    """Another process wrote while this one was computing; nothing was written here."""


class Transactor:
    """Threads take turns; after a fork the child connects anew."""

    def __init__(
        self,
        backend: JournalBackend,
        configuration: Configuration,
        snapshot_every: int,
        owns_backend: bool = True,
    ) -> None:
        self.backend = backend
        self._owns_backend = owns_backend
        self.configuration = configuration
        self.clock: Callable[[], float] = time.time
        self._clock = JournalClock()
        self._snapshot_every = snapshot_every
        self.sealer = seal.find(configuration.key)
        self._most_at_once: int = getattr(backend, "most_at_once", 1)
        self._has_timeout = configuration.outcome_timeout is not None
        self._state: State | None = None
        self._head: Head | None = None  # as the last transaction saw it
        self._seen: tuple[int, bytes] | None = None  # an entry that was committed, also after an error
        self._alone, self._trust = 0, TRUST
        self._turn = threading.RLock()
        _transactors.add(self)
        self._forked = self._closed = False
        self._beside: Transactor | None = None  # for readers while this one is busy
        self._beside_turn = threading.Lock()

    @property
    def name(self) -> str:
        return self.configuration.name

    def now(self) -> int:
        """Microseconds since 1970."""
        return int(self.clock() * 1e6)

    def time(self, state: State) -> JournalTime:
        """The journal's time."""
        return self._clock.time(self.now(), state.at, state.ahead)

    def write(self, command: Callable[[Commands], T]) -> T:
        """Run ``command`` in one transaction, after closing the outcomes that are overdue."""
        with self._turn:
            self.check_usable()
            if self._has_timeout and self._state is not None and self._is_overdue(self._state):
                self._retried(self._transaction, Commands.expire)
            return self._retried(self._transaction, command)

    def _is_overdue(self, state: State) -> bool:
        return overdue(state, self.time(state).now)

    def expire(self) -> int:
        """Close all outcomes that are overdue; returns how many."""
        with self._turn:
            self.check_usable()
            closed = 0
            while some := self._retried(self._transaction, Commands.expire):
                closed += some
            return closed

    def read(self, query: Callable[[Journal, State], T]) -> T:
        """Answer from the journal and the state after its last entry.

        While another thread of this process is in a long call, a second state is read from the
        journal: a reader does not wait for a writer.
        """
        if not self._turn.acquire(timeout=PATIENCE):
            return self._read_beside(query)
        try:
            self.check_usable()
            return self._retried(self._answer, query)
        finally:
            self._turn.release()

    def _read_beside(self, query: Callable[[Journal, State], T]) -> T:
        with self._beside_turn:
            if self._beside is None:
                self._beside = Transactor(self.backend, self.configuration, self._snapshot_every)
            self._beside.clock, self._beside._clock = self.clock, self._clock
            self._beside._closed = self._closed
            return self._beside.read(query)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            if self._owns_backend:
                self.backend.close()

    def check_usable(self) -> None:
        """Refuse a closed object; connect anew after a fork."""
        if self._closed:
            raise StoreUnavailable(f"this object for {self.name!r} was closed; open the deployment again")
        if self._forked:
            self.backend.after_fork()
            self._forked = False

    def leave_turn_to_parent(self) -> None:
        """In a child process: a thread that was in a call at the fork exists in the parent only."""
        self._forked = True
        if self._turn.acquire(blocking=False):
            self._turn.release()
        else:
            self._turn, self._state = threading.RLock(), None
        self._beside, self._beside_turn = None, threading.Lock()

    def _retried(self, attempt: Callable[[Callable[..., T]], T], action: Callable[..., T]) -> T:
        """Once more if the connection broke before anything was committed."""
        try:
            return attempt(action)
        except LostBeforeCommit:
            return attempt(action)

    def _transaction(self, command: Callable[[Commands], T]) -> T:
        """Compute before taking the lock if nobody else seems to write, which is cheaper; else compute
        under the lock, which always works."""
        if self._alone >= self._trust and self._state is not None and self._head is not None:
            try:
                return self._ahead(command, self._state, self._head)
            except Overtaken:
                pass  # under the lock then, and outside of this handler
        return self._locked(command)

    def _ahead(self, command: Callable[[Commands], T], state: State, head: Head) -> T:
        """Compute from the state that this process has, then append if the journal still ends there."""
        self._state = None  # until it is known to be where the journal is, also if this is interrupted
        seq, hash_, commands = state.seq, state.hash, self._commands(state, None, head)
        try:
            result, appended = command(commands), False
            if len(commands.entries) == 1 and commands.snapshot is None:
                appended = self.backend.append_if_head(head.journal, commands.entries[0], state.hash)
            elif commands.entries:
                appended = self._append_all_if_head(commands, head, seq, hash_)
        except KnownRequest:
            self._take_back(commands)
            raise
        except Unacknowledged as lost:
            if self.backend.lock_settles_lost_commits:
                return self._settled(command, commands.entries, lost)
            raise
        except DeploymentError:
            raise
        except C4BError as error:
            if not commands.changed:
                self._state = state
            raise Overtaken from error  # the error may come from a state that is out of date
        if appended:
            self._state, self._seen = state, (state.seq, state.hash)
            return result
        if commands.entries:
            self._alone, self._trust = 0, DISTRUST
            self._take_back(commands)
        else:
            self._state = state
        raise Overtaken  # or there was nothing to do, perhaps because the state is out of date

    def _take_back(self, commands: Commands) -> None:
        """Back to the state before ``commands``, if they can be undone; else it is read again."""
        self._state = None  # if undoing is interrupted
        if commands.take_back():
            self._state = commands.state

    def _append_all_if_head(self, commands: Commands, head: Head, seq: int, hash_: bytes) -> bool:
        """Append what was computed after entry ``seq`` if that is still the last one."""
        if len(commands.entries) <= self._most_at_once and commands.snapshot is None:
            backend = cast(BatchBackend, self.backend)
            return backend.append_all_if_head(head.journal, commands.entries, commands.state.hash)
        with self.backend.writing(self.name) as transaction:
            journal = self._journal(transaction)
            if (journal.head.seq, journal.head.hash) != (seq, hash_):
                return False
            self._append(commands, journal)
        return True

    def _settled(self, command: Callable[[Commands], T], entries: list[Entry], lost: Unacknowledged) -> T:
        """The answer to an append got lost. Under the lock it is known whether the entries are there,
        and they can no longer come once another one is there. So run the command again, unless that
        would count it twice."""
        once = all(e.kind in REPEATABLE or e.request_id is not None for e in entries)
        try:
            return self._locked(command, None if once else entries[-1])
        except KnownRequest as known:
            known.lost = lost
            raise
        except DeploymentError as again:  # damage, too: it does not tell whether the entries are there
            raise lost from again

    def _commands(self, state: State, journal: Journal | None, head: Head) -> Commands:
        due = snapshot.due(state, head.snapshot, self._snapshot_every)
        image = snapshot.of(state) if due else None
        return Commands(state, journal, self.time(state), image, self.sealer)

    def _journal(self, transaction: JournalTransaction) -> Journal:
        return Journal(transaction, self.sealer)

    def _append(self, commands: Commands, journal: Journal) -> None:
        if commands.entries:
            state = commands.state
            journal.transaction.append(commands.entries, state.hash)
            if commands.snapshot is not None:
                journal.transaction.write_snapshot(commands.snapshot, snapshot.KEPT)
        self._head = journal.head

    def _locked(self, command: Callable[[Commands], T], unless: Entry | None = None) -> T:
        """Run ``command`` on the state after the journal's last entry, ``unless`` that entry is in it."""
        commands: Commands | None = None
        try:
            with self.backend.writing(self.name) as transaction:
                journal = self._journal(transaction)
                if unless is not None:
                    _check_absent(unless, journal)
                commands = self._commands(self._caught_up(journal), journal, journal.head)
                result = command(commands)
                self._append(commands, journal)
            self._alone += 1
            self._seen = commands.state.seq, commands.state.hash
        except KnownRequest:
            self._state = None
            if commands is not None:
                self._take_back(commands)
            raise
        except C4BError as error:
            if isinstance(error, DeploymentError) or (commands is not None and commands.changed):
                self._state = None  # it may be ahead of the journal: read it again
            raise
        except BaseException:
            self._state = None
            raise
        return result

    def _answer(self, query: Callable[[Journal, State], T]) -> T:
        try:
            with self.backend.reading(self.name) as transaction:
                journal = self._journal(transaction)
                return query(journal, self._caught_up(journal))
        except C4BError as error:
            if isinstance(error, DeploymentError):
                self._state = None
            raise
        except BaseException:
            self._state = None  # an answer may have been adding something up
            raise

    def _caught_up(self, journal: Journal) -> State:
        """The state after the journal's last entry, from what this process has seen of it."""
        state, self._state = self._state, None  # in case an entry fails to apply
        if state is None or state.seq != journal.head.seq:
            self._alone = 0
        if state is not None:
            try:
                _read_on(state, journal)
            except EntryArchived:  # by another process, with what this one had not read yet
                state = None
        if state is None:
            if self._seen is not None:
                journal.check_contains(*self._seen)
            state = snapshot.newest(journal, self.configuration)
            _read_on(state, journal)
        self._state, self._seen = state, (journal.head.seq, journal.head.hash)
        return state


def _read_on(state: State, journal: Journal) -> None:
    if (state.seq, state.hash) != (journal.head.seq, journal.head.hash):
        state.replay(journal.tail(state.seq, state.hash))


def _check_absent(entry: Entry, journal: Journal) -> None:
    stored = journal.at(entry.seq)
    if stored is not None and stored.hash() == entry.hash():
        raise StoreUnavailable(f"entry {entry.seq} was recorded")
