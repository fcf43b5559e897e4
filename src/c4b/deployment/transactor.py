"""One process's view of one deployment: its state, kept up to date, and its transactions."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from c4b.deployment import snapshot
from c4b.deployment.commands import Work, overdue
from c4b.deployment.configuration import Configuration
from c4b.deployment.state import State
from c4b.errors import C4BError, DeploymentError, StoreUnavailable, UnknownDeployment
from c4b.journal.entries import ALARM, EXECUTED, FORGOTTEN, OBSERVED, Entry
from c4b.journal.journal import Head, Journal
from c4b.journal.sql_store import (
    KnownRequest,
    LostBeforeCommit,
    Store,
    Transaction,
    Unacknowledged,
)

T = TypeVar("T")
TRUST, DISTRUST = 4, 256
"""Calls in a row between which no other process wrote, before the next is computed ahead of the lock; the
latter once that went wrong."""
REPEATABLE = (OBSERVED, FORGOTTEN, EXECUTED, ALARM)
"""Kinds of entries that come from calls which may be repeated without harm."""


class Overtaken(Exception):
    """Another process wrote while this one was computing; nothing was written here."""


class Session:
    """Threads take turns; after a fork the child connects anew."""

    def __init__(self, store: Store, configuration: Configuration, snapshot_every: int) -> None:
        self.store = store
        self.configuration = configuration
        self.clock: Callable[[], float] = time.time
        self._every = snapshot_every
        self._windows = configuration.outcome_timeout is not None
        self._state: State | None = None
        self._head: Head | None = None  # as of the last transaction that looked
        self._alone, self._trust = 0, TRUST
        self._turn = threading.RLock()
        self._pid = os.getpid()
        self._closed = False

    @property
    def name(self) -> str:
        return self.configuration.name

    def now(self) -> int:
        """Microseconds since 1970."""
        return int(self.clock() * 1e6)

    def write(self, action: Callable[[Work], T]) -> T:
        """Run ``action`` in one transaction, after closing the outcome windows that are due."""
        with self._turn:
            self.ready()
            if self._windows and self._state is not None and overdue(self._state, self.now()):
                self._retried(self._transaction, Work.expire)
            return self._retried(self._transaction, action)

    def expire(self) -> int:
        """Close all outcome windows that are due; returns how many."""
        with self._turn:
            self.ready()
            closed = 0
            while some := self._retried(self._transaction, Work.expire):
                closed += some
            return closed

    def read(self, question: Callable[[Journal, State], T]) -> T:
        """Answer from the journal and the state after its last entry."""
        with self._turn:
            self.ready()
            return self._retried(self._answer, question)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self.store.close()

    def ready(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"this object for {self.name!r} was closed; open the deployment again")
        if self._pid != os.getpid():
            self.store.forked()
            self._pid = os.getpid()

    def _retried(self, attempt: Callable[[Callable[..., T]], T], action: Callable[..., T]) -> T:
        """Once more if the connection turned out to be dead before anything was committed."""
        try:
            return attempt(action)
        except LostBeforeCommit:
            return attempt(action)

    def _transaction(self, action: Callable[[Work], T]) -> T:
        """Compute first and lock then if nobody else seems to write, which is cheaper; else the other
        way round, which always works."""
        if self._alone >= self._trust and self._state is not None and self._head is not None:
            with suppress(Overtaken):
                return self._ahead(action, self._state, self._head)
        return self._locked(action)

    def _ahead(self, action: Callable[[Work], T], state: State, head: Head) -> T:
        seq, hash_, work = state.seq, state.hash, Work(state, None, self.now())
        try:
            result, done = action(work), False
            if len(work.entries) == 1 and not snapshot.due(state, head.snapshot, self._every):
                done = Journal.append_from(self.store, head.row, work.entries[0], state.hash)
            elif work.entries:
                done = self._appended(work, seq, hash_)
        except KnownRequest:
            work.take_back()
            raise
        except Unacknowledged as lost:
            self._state = None
            if self.store.one_statement:
                return self._settled(action, work.entries, lost)
            raise
        except DeploymentError:
            self._state = None
            raise
        except C4BError as error:
            raise Overtaken from error  # what went wrong may do so for being out of date
        except BaseException:
            self._state = None
            raise
        if done:
            return result
        if work.entries:
            self._alone, self._trust = 0, DISTRUST
            if not work.take_back():
                self._state = None
        raise Overtaken  # or, having found nothing to do, perhaps not: look again under the lock

    def _appended(self, work: Work, seq: int, hash_: bytes) -> bool:
        """Append what was computed after entry ``seq`` if that is still the last one."""
        with self.store.writing() as transaction:
            journal = found(transaction, self.name, lock=True)
            if (journal.head.seq, journal.head.hash) != (seq, hash_):
                return False
            self._write(work, journal)
        return True

    def _settled(self, action: Callable[[Work], T], entries: list[Entry], lost: Unacknowledged) -> T:
        """The answer to an append got lost. Under the lock it is known whether the entries are there,
        and once another one is, they can no longer come: so act once more, unless that would count
        twice."""
        once = all(e.kind in REPEATABLE or e.request_id is not None for e in entries)
        try:
            return self._locked(action, None if once else entries[-1])
        except KnownRequest:
            raise
        except StoreUnavailable as again:
            raise lost from again

    def _write(self, work: Work, journal: Journal) -> None:
        if work.entries:
            journal.append(work.entries, work.state.hash)
            if snapshot.due(work.state, journal.head.snapshot, self._every):
                snapshot.write(journal, work.state)
        self._head = journal.head

    def _locked(self, action: Callable[[Work], T], unless: Entry | None = None) -> T:
        """Run ``action`` on the state after the journal's last entry, ``unless`` that entry is in it."""
        work: Work | None = None
        try:
            with self.store.writing() as transaction:
                journal = found(transaction, self.name, lock=True)
                if unless is not None:
                    _absent(unless, journal)
                work = Work(self._caught_up(journal), journal, self.now())
                result = action(work)
                self._write(work, journal)
            self._alone += 1
        except KnownRequest:
            if work is not None:
                work.take_back()
            raise
        except C4BError as error:
            if isinstance(error, DeploymentError):
                self._state = None  # it may be ahead of the journal: read it again
            raise
        except BaseException:
            self._state = None
            raise
        return result

    def _answer(self, question: Callable[[Journal, State], T]) -> T:
        try:
            with self.store.reading() as transaction:
                journal = found(transaction, self.name)
                return question(journal, self._caught_up(journal))
        except DeploymentError:
            self._state = None
            raise

    def _caught_up(self, journal: Journal) -> State:
        """The state after the journal's last entry, from what this process has seen of it."""
        state, self._state = self._state, None  # in case an entry fails to apply
        if state is None or state.seq != journal.head.seq:
            self._alone = 0
        if state is None:
            state = snapshot.newest(journal, self.configuration)
        if (state.seq, state.hash) != (journal.head.seq, journal.head.hash):
            state.replay(journal.tail(state.seq, state.hash))
        self._state = state
        return state


def found(transaction: Transaction, name: str, lock: bool = False) -> Journal:
    journal = Journal.find(transaction, name, lock)
    if journal is None:
        raise unknown(name)
    return journal


def _absent(entry: Entry, journal: Journal) -> None:
    there = journal.at(entry.seq)
    if there is not None and there.hash() == entry.hash():
        raise StoreUnavailable(f"entry {entry.seq} was recorded")


def unknown(name: str) -> UnknownDeployment:
    return UnknownDeployment(f"the store holds no deployment {name!r}; create() it, or list the names")
