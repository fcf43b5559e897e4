"""One process's view of one deployment: its state, kept up to date, and its transactions."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from c4b.deployment import snapshot
from c4b.deployment.configuration import Configuration
from c4b.deployment.journal import Journal
from c4b.deployment.replay import State
from c4b.deployment.store import KnownRequest, LostBeforeCommit, Store, Transaction
from c4b.deployment.work import Work, overdue
from c4b.errors import C4BError, DeploymentError, StoreUnavailable, UnknownDeployment

T = TypeVar("T")


class Session:
    """Threads take turns; after a fork the child connects anew."""

    def __init__(self, store: Store, configuration: Configuration, snapshot_every: int) -> None:
        self.store = store
        self.configuration = configuration
        self.clock: Callable[[], float] = time.time
        self._every = snapshot_every
        self._state: State | None = None
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
            if self._state is not None and overdue(self._state, self.now()):
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
        work: Work | None = None
        try:
            with self.store.writing() as transaction:
                journal = found(transaction, self.name, lock=True)
                work = Work(self._caught_up(journal), journal, self.now())
                result = action(work)
                if work.entries:
                    journal.append(work.entries, work.state.hash)
                    if snapshot.due(work.state, journal.head.snapshot, self._every):
                        snapshot.write(journal, work.state)
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


def unknown(name: str) -> UnknownDeployment:
    return UnknownDeployment(f"the store holds no deployment {name!r}; create() it, or list the names")
