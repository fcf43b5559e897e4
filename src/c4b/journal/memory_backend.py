"""Journals in the memory of this process, for tests and notebooks: ``memory://NAME``.

All callers in one process that open the same name share one store, which exists as long as the process.
Nothing is durable. In a forked child the stores of its parent cannot be used: the child would have a
copy, and two copies of one journal would spend one budget twice.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from c4b.errors import InvalidInput, NameTaken, StoreUnavailable
from c4b.journal.backend import Head, KnownRequest, StoredEntry, StoredSnapshot, unknown
from c4b.journal.entries import Entry

WAIT = 30
"""Seconds to wait for another writer before giving up."""


class _Contents:
    """What is committed of one journal. Writers hold ``lock``; readers see only up to ``head``."""

    def __init__(self, name: str, first: Entry) -> None:
        self.lock = threading.Lock()
        self.entries = [first]
        self.by_request: dict[str, int] = {}
        self.by_subject: dict[int, tuple[int, ...]] = {}
        self.snapshots: dict[int, StoredSnapshot] = {}
        self.head = Head(name, first.seq, first.hash(), -1)

    def commit(self, entries: Iterable[Entry], snapshots: dict[int, StoredSnapshot], head: Head) -> None:
        for entry in entries:
            del self.entries[entry.seq :]  # of a commit that was interrupted
            self.entries.append(entry)
            if entry.request_id is not None:
                self.by_request[entry.request_id] = entry.seq
            if entry.about is not None:
                self.by_subject[entry.about] = (*self.by_subject.get(entry.about, ()), entry.seq)
        self.snapshots = snapshots
        self.head = head  # last: readers that begin now see all of it


class _Store:
    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.journals: dict[str, _Contents] = {}


_stores: dict[str, _Store] = {}


class MemoryJournal:
    """One journal inside one transaction: a ``JournalTransaction``. ``commit`` ends a writing one."""

    def __init__(self, contents: _Contents) -> None:
        self.head = contents.head
        self._last = contents.head.seq
        self._contents = contents
        self._appended: list[Entry] = []
        self._snapshots = contents.snapshots

    def append(self, entries: Sequence[Entry], hash_: bytes) -> None:
        ids = [entry.request_id for entry in entries if entry.request_id is not None]
        if len(set(ids)) < len(ids) or self.requested(ids):
            raise KnownRequest("a request id is in the journal already; nothing was written")
        self._appended += entries
        self.head = self.head._replace(seq=entries[-1].seq, hash=hash_)

    def range(self, first: int, last: int, count: int, backwards: bool = False) -> list[Entry]:
        if backwards:
            return self._contents.entries[max(first, last - count + 1) : last + 1][::-1]
        return self._contents.entries[first : min(last, first + count - 1) + 1]

    def at(self, seqs: Sequence[int]) -> list[StoredEntry]:
        entries = self._contents.entries
        return [
            StoredEntry(entries[seq], entries[seq + 1].previous if seq < self._last else None)
            for seq in sorted(seqs)
            if 0 <= seq <= self._last
        ]

    def requested(self, request_ids: Sequence[str]) -> list[StoredEntry]:
        known = self._contents.by_request
        stored = self.at([known[id_] for id_ in request_ids if id_ in known])
        return [each for each in stored if each.entry.request_id in request_ids]

    def about(self, seqs: Sequence[int]) -> list[StoredEntry]:
        known = self._contents.by_subject
        stored = self.at(sorted({number for seq in seqs for number in known.get(seq, ())}))
        return [each for each in stored if each.entry.about in seqs]

    def snapshot_numbers(self) -> list[int]:
        return sorted(self._snapshots, reverse=True)

    def snapshot(self, seq: int) -> StoredSnapshot | None:
        return self._snapshots.get(seq)

    def write_snapshot(self, snapshot: StoredSnapshot, keep: int) -> None:
        every = {**self._snapshots, snapshot.seq: snapshot}
        self._snapshots = {seq: every[seq] for seq in sorted(every)[-keep:]}
        self.head = self.head._replace(snapshot=snapshot.seq)

    def commit(self) -> None:
        self._contents.commit(self._appended, self._snapshots, self.head)


class MemoryBackend:
    """Journals of one name in this process: a ``JournalBackend``."""

    lock_settles_lost_commits = True

    def __init__(self, url: str, create: bool = False) -> None:
        self.url = url
        name = url.removeprefix("memory://")
        if not name or name == url:
            raise InvalidInput(
                "url", url, "needs a name, memory://NAME: everybody who opens it shares it"
            )
        self._store = _stores.setdefault(name, _Store())

    def create(self, name: str, first: Entry) -> None:
        self.after_fork()
        with self._store.lock:
            if name in self._store.journals:
                raise NameTaken(f"{name!r} exists already; open it, or choose another name")
            self._store.journals[name] = _Contents(name, first)

    def names(self) -> list[str]:
        self.after_fork()
        return sorted(self._store.journals.copy())

    @contextmanager
    def reading(self, name: str) -> Iterator[MemoryJournal]:
        yield MemoryJournal(self._contents(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[MemoryJournal]:
        contents = self._contents(name)
        with _locked(contents):
            transaction = MemoryJournal(contents)
            yield transaction
            transaction.commit()

    def append_if_head(self, journal: Hashable, entry: Entry, hash_: bytes) -> bool:
        contents = self._contents(str(journal))
        with _locked(contents):
            if (contents.head.seq, contents.head.hash) != (entry.seq - 1, entry.previous):
                return False
            transaction = MemoryJournal(contents)
            transaction.append([entry], hash_)
            transaction.commit()
        return True

    def rewrite(self, name: str, payloads: Mapping[int, bytes]) -> None:
        contents = self._contents(name)
        with _locked(contents):
            for seq, payload in payloads.items():
                contents.entries[seq] = contents.entries[seq]._replace(payload=payload)

    def problems(self) -> list[str]:
        """Memory offers no check of itself."""
        return []

    def after_fork(self) -> None:
        if self._store.process != os.getpid():
            raise StoreUnavailable(
                f"{self.url} belongs to the process that made it, and this is a fork of that process; "
                "use sqlite:///FILE to share a store between processes"
            )

    def close(self) -> None:
        """The store remains: opening its name again gives the same store."""

    def _contents(self, name: str) -> _Contents:
        self.after_fork()
        contents = self._store.journals.get(name)
        if contents is None:
            raise unknown(name)
        return contents

    def __repr__(self) -> str:
        return f"MemoryBackend({self.url!r})"


@contextmanager
def _locked(contents: _Contents) -> Iterator[None]:
    if not contents.lock.acquire(timeout=WAIT):
        raise StoreUnavailable(f"another writer held the lock for {WAIT} s; nothing was written")
    try:
        yield
    finally:
        contents.lock.release()
