"""The contract of a journal store, and the protocol that states it in types.

``c4b.journal.journal`` checks the hash chain of everything that it reads, in the same way for every
store. So a backend only stores and finds bytes. ``c4b.testing.journal_backend`` holds one test case for
all backends; run it on yours. ``c4b.journal.backend_registry`` chooses a backend by the scheme of a URL.

Contract
--------
*Order.* A deployment has one journal: entries numbered 0, 1, 2, ... without a gap. The journal ends with
its head, the number and the hash of the last entry. Writers are serialised: ``writing`` takes a lock of
the journal (or a wider one) before it reads the head, and holds it until the commit. An appended entry
was computed from the state after exactly the entries before it. Either it was computed under that lock,
or before the lock was taken. In the second case ``append_if_head`` appends it only if the head, read
under the lock, is still the one that the entry was computed from. So the entries are a serial order of
all calls of all processes, and a writer always sees every entry before its own.

*Immutability.* Entries are only appended. A backend never deletes an entry. Only ``rewrite``
changes one: it replaces payloads where no hash covers the change, or where they were archived.

*Durability.* An append is as durable as the store ever makes it when ``writing`` ends or when
``append_if_head`` returns, and not before. A transaction whose block raises appends nothing. A call that
raised appended nothing, except with ``Unacknowledged``: there the acknowledgement of the commit was lost,
and whether the entry is appended is not known.

*Uniqueness.* A journal holds at most one entry for each request id. Appending a second one raises
``KnownRequest`` and appends nothing.

*Reading.* A reading transaction sees every entry up to the head that it read when it began. It does not
wait for writers, and it may see later entries, which ``Journal`` ignores. Readers receive copies, or
values that cannot be changed. What a transaction reads after it has appended is not specified.

*Chain.* Every entry carries the hash of the entry before it, and the head carries the hash of the last
one. A backend returns these as they were stored. It does not check them.

*Indexes.* Lookups by request id and by decision may rely on indexes, which no hash covers. An audit looks
every entry up. The last request ids of a journal are recognised without the store.

*Snapshots* are a cache: their content can be computed from the entries. A backend may lose them.

*Threads and processes.* Any number of threads and processes may have a backend open on one store. A
backend object is used by one writing thread at a time and by any number of reading threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, cast

from c4b.errors import StoreUnavailable, UnknownDeployment
from c4b.journal.entries import Entry


class LostBeforeCommit(StoreUnavailable):
    """The connection broke before anything was committed. Trying again is safe."""


class Unacknowledged(StoreUnavailable):
    """A commit was sent and its answer did not come. It was recorded, or will be, or never."""


class KnownRequest(StoreUnavailable):
    """The journal has an entry for this request id already. Nothing was written; look the entry up."""

    lost: Unacknowledged | None = None
    """Of an attempt before this one, whose entry it may be."""


class Head(NamedTuple):
    """Where a journal ends."""

    journal: Hashable
    """The backend's own key of the journal; no other code interprets it."""
    seq: int
    """Number of the last entry."""
    hash: bytes
    """Its hash."""
    snapshot: int
    """Number of the entry after which the last snapshot was written; -1 if there is none."""


class StoredEntry(NamedTuple):
    """An entry that was looked up out of order, with what is needed to check it."""

    entry: Entry
    next_previous: bytes | None
    """The copy of this entry's hash that the next entry carries; None if there is no next entry."""


class StoredSnapshot(NamedTuple):
    """The state after entry ``seq`` as bytes."""

    seq: int
    hash: bytes
    """Of the entry."""
    digest: bytes
    """SHA-256 of the content."""
    content: bytes


class JournalTransaction(Protocol):
    """One journal inside one transaction. It belongs to the thread that began the transaction.

    Lookups return entries in the order of their numbers. Numbers and ids that are not there are left out.
    At most 1000 of them are given in one call.
    """

    @property
    def head(self) -> Head:
        """Where the journal ends, with what this transaction appended."""

    def append(self, entries: Sequence[Entry], hash_: bytes) -> None:
        """Add entries that continue the chain; ``hash_`` is the hash of the last one. Needs the lock."""

    def range(self, first: int, last: int, count: int, backwards: bool = False) -> list[Entry]:
        """At most ``count`` of the entries ``first`` to ``last``, from the first on, or from the last on
        ``backwards``. For replay and for pages of decisions."""

    def at(self, seqs: Sequence[int]) -> list[StoredEntry]:
        """The entries of these numbers. For single decisions."""

    def requested(self, request_ids: Sequence[str]) -> list[StoredEntry]:
        """The entries of these request ids. For calls that are repeated."""

    def about(self, seqs: Sequence[int]) -> list[StoredEntry]:
        """The entries about these decisions. For their outcomes."""

    def snapshot_numbers(self) -> list[int]:
        """Numbers of the entries after which there is a snapshot, newest first."""

    def snapshot(self, seq: int) -> StoredSnapshot | None:
        """The snapshot after entry ``seq``."""

    def write_snapshot(self, snapshot: StoredSnapshot, keep: int) -> None:
        """Store a snapshot and drop all but the newest ``keep``. Needs the lock."""


class JournalBackend(Protocol):
    """A store of journals. Whatever its driver raises leaves as a ``DeploymentError``."""

    lock_settles_lost_commits: bool
    """Whether a ``writing`` transaction that begins after ``Unacknowledged`` shows if the entry is there,
    and whether the entry can no longer come once another one is there. A server's lock does that."""

    def create(self, name: str, first: Entry) -> None:
        """Begin a journal with its first entry, and the store before that if there is none.

        Raises ``NameTaken`` if there is a journal of this name.
        """

    def names(self) -> list[str]:
        """The names of all journals, sorted."""

    def reading(self, name: str) -> AbstractContextManager[JournalTransaction]:
        """A transaction that writes nothing. Raises ``UnknownDeployment`` if there is no such journal."""

    def writing(self, name: str) -> AbstractContextManager[JournalTransaction]:
        """A transaction that holds the lock of the journal and commits when its block ends well.

        A writer that waits too long for the lock raises ``StoreUnavailable``.
        """

    def append_if_head(self, journal: Hashable, entry: Entry, hash_: bytes) -> bool:
        """Append one entry in a transaction of its own if the journal ends where the entry continues it,
        with number ``entry.seq - 1`` and hash ``entry.previous``; else return False.

        ``journal`` is the key in the journal's ``Head``. This is ``writing`` for the usual case, in as
        few steps as the store can do it.
        """

    def problems(self) -> list[str]:
        """What the store's own check of its files finds; empty if nothing, or if it offers none."""

    def after_fork(self) -> None:
        """Called in a child process before it uses the object: leave connections to the parent."""

    def close(self) -> None:
        """Give connections back."""


class BatchBackend(JournalBackend, Protocol):
    """A store that appends a few entries in as few steps as one. For other stores ``writing`` does it."""

    most_at_once: int
    """Most entries that it takes."""

    def append_all_if_head(self, journal: Hashable, entries: Sequence[Entry], hash_: bytes) -> bool:
        """``append_if_head`` for several entries, which continue each other; all or none. ``hash_`` is
        the hash of the last one."""


class RewritableBackend(JournalBackend, Protocol):
    """A store that can also erase contexts and archive payloads. Others refuse both."""

    def rewrite(self, name: str, payloads: Mapping[int, bytes]) -> None:
        """Replace the payloads of these entries, all or none: a context was erased, or they were archived
        (empty), or brought back. What was there before must not be found in the store's files afterwards,
        as far as the store can do that."""


def rewritable(backend: JournalBackend) -> RewritableBackend:
    """The same backend; raises if it can only append."""
    if not hasattr(backend, "rewrite"):
        raise StoreUnavailable(f"{backend!r} can only append: it neither erases contexts nor archives")
    return cast(RewritableBackend, backend)


def unknown(name: str) -> UnknownDeployment:
    """The error of ``reading`` and ``writing`` for a name that is not there."""
    return UnknownDeployment(f"the store holds no deployment {name!r}; create() it, or list the names")
