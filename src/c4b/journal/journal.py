"""Reading a journal: every entry is checked against the hash chain before it is used.

This is the same for every backend. An entry is returned only after its hash has been compared with the
copy in the next entry, or with the head's. Reading a changed, missing, moved or inserted entry raises
``JournalCorrupt``. A change is not noticed only if every later entry and the head are rewritten as well;
keep ``state().hash`` elsewhere to notice that, too.

The contract of the store below is in ``backend``, the format of an entry in ``entries``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TypeVar

from c4b.errors import EntryArchived, JournalCorrupt
from c4b.journal.backend import Head, JournalTransaction, StoredEntry
from c4b.journal.entries import DECIDED, GENESIS, Entry
from c4b.journal.seal import Sealer

T = TypeVar("T")
PAGE = 1000
"""Entries read at a time, and the most keys of one lookup."""


class Journal:
    """One deployment's journal inside one transaction, which belongs to one thread."""

    def __init__(self, transaction: JournalTransaction, sealer: Sealer | None = None) -> None:
        """sealer: of a deployment with a key. Then the seal of every entry is checked, too."""
        self.transaction = transaction
        self._sealer = sealer

    @property
    def head(self) -> Head:
        return self.transaction.head

    def tail(self, seq: int, hash_: bytes) -> Iterator[Entry]:
        """Entries after number ``seq``, whose hash is ``hash_``."""
        head = self.head
        if seq > head.seq or (seq == head.seq and hash_ != head.hash):
            raise self._other_past(seq)
        unchecked: Entry | None = None
        while seq < head.seq:
            page = self.unchecked(seq)
            for entry in page:
                if entry.seq != seq + 1:
                    raise _missing(seq + 1)
                if entry.previous != hash_:
                    raise _altered(seq)
                if unchecked is not None:
                    yield unchecked
                unchecked, seq, hash_ = entry, entry.seq, self._hash(entry)
            if not page:
                raise _missing(seq + 1)
        if unchecked is not None:
            if hash_ != head.hash:
                raise _altered(seq)
            yield unchecked

    def check_contains(self, seq: int, hash_: bytes) -> None:
        """Refuse a journal in which entry ``seq`` is another one, by what its successor says."""
        found: bytes | None = self.head.hash
        if seq < self.head.seq:
            found = next((each.next_previous for each in self.transaction.at([seq])), None)
        if seq > self.head.seq or found != hash_:
            raise self._other_past(seq)

    def _other_past(self, seq: int) -> JournalCorrupt:
        return JournalCorrupt(
            f"the journal ends at entry {self.head.seq}, but entry {seq} was seen to follow a "
            "different past; was an old backup restored? Open the deployment again"
        )

    def unchecked(self, after: int) -> list[Entry]:
        """The next entries after number ``after`` up to the head, as they are stored."""
        return self.transaction.range(after + 1, self.head.seq, min(PAGE, self.head.seq - after))

    def at(self, seq: int) -> Entry | None:
        """The entry of a number; None beyond the head."""
        if not 0 <= seq <= self.head.seq:
            return None
        entries = self._checked(self.transaction.at([seq]))
        if not entries or entries[0].seq != seq:
            raise _missing(seq)
        return entries[0]

    def among(self, seqs: Sequence[int]) -> list[Entry]:
        """The entries of these numbers, in order; all of them must be there."""
        entries = [e for part in _pages(seqs) for e in self._checked(self.transaction.at(part))]
        if absent := set(seqs).difference(entry.seq for entry in entries):
            raise _missing(min(absent))
        return entries

    def requested(self, request_ids: Sequence[str]) -> dict[str, Entry]:
        """The entries of these request ids, by id; ids that are not in the journal are left out."""
        return {
            str(entry.request_id): entry
            for part in _pages(request_ids)
            for entry in self._checked(self.transaction.requested(part))
        }

    def misplaced(self, entries: Sequence[Entry]) -> tuple[int, str] | None:
        """The number of the first of at most 1000 entries that a lookup does not find, or that has the
        request id of an earlier one, and which of the two; None if there is none such.

        No hash covers the store's indexes, so an audit asks this."""
        ids = [entry.request_id for entry in entries if entry.request_id is not None]
        subjects = sorted({entry.about for entry in entries if entry.about is not None})
        stored_ids = [(each.entry.seq, each.entry.request_id) for each in self.transaction.requested(ids)]
        by_id, first = set(stored_ids), {id_: seq for seq, id_ in reversed(stored_ids)}
        by_subject = {
            (stored.entry.seq, stored.entry.about) for stored in self.transaction.about(subjects)
        }
        for entry in entries:
            if entry.request_id is not None and (entry.seq, entry.request_id) not in by_id:
                return entry.seq, "is not found by its request id: an index is damaged"
            if entry.request_id is not None and first[entry.request_id] != entry.seq:
                return entry.seq, f"has the request id of entry {first[entry.request_id]}"
            if entry.about is not None and (entry.seq, entry.about) not in by_subject:
                return entry.seq, "is not found by its decision: an index is damaged"
        return None

    def about(self, seqs: Sequence[int]) -> Iterator[Entry]:
        """Entries about these decisions: outcomes, losses, other executions."""
        for part in _pages(seqs):
            yield from self._checked(self.transaction.about(part))

    def decided(self, after: int, before: int, count: int) -> list[Entry]:
        """The next decisions after entry ``after`` and before entry ``before``.

        The entries between are read without a gap, so none can be hidden.
        """
        first = None if after < 0 else self.at(after + 1)  # ``after`` itself may be archived
        if after >= 0 and first is None:
            return []
        tail = self.tail(after, GENESIS if first is None else first.previous)
        inside = takewhile(lambda entry: entry.seq < before, tail)
        return list(islice((entry for entry in inside if entry.kind == DECIDED), count))

    def decided_last(self, after: int, before: int, count: int) -> list[Entry]:
        """The last decisions before ``before`` and after ``after``, newest first, likewise."""
        back = self._backwards(max(after, -1), before, 2 * count + 16)
        return list(islice((entry for entry in back if entry.kind == DECIDED), count))

    def _backwards(self, after: int, before: int, size: int) -> Iterator[Entry]:
        """Entries between two numbers, newest first, in pages that grow from ``size``."""
        hash_, seq = self.head.hash, self.head.seq
        if before <= seq:
            following = self.at(max(before, 0))
            assert following is not None
            hash_, seq = following.previous, following.seq - 1
        while seq > after:
            page = self.transaction.range(after + 1, seq, min(size, PAGE), backwards=True)
            for entry in page:
                if entry.seq != seq:
                    raise _missing(seq)
                if self._hash(entry) != hash_:
                    raise _altered(seq)
                yield entry
                hash_, seq = entry.previous, entry.seq - 1
            if not page:
                raise _missing(seq)
            size *= 2

    def _checked(self, stored: Iterable[StoredEntry]) -> list[Entry]:
        entries, head = [], self.head
        for entry, next_previous in stored:
            if entry.seq > head.seq:
                continue  # committed after this transaction read the head
            expected = head.hash if entry.seq == head.seq else next_previous
            if expected is None:
                raise _missing(entry.seq + 1)
            if self._hash(entry) != expected:
                raise _altered(entry.seq)
            entries.append(entry)
        return entries

    def _hash(self, entry: Entry) -> bytes:
        """The hash of an entry, whose seal is checked."""
        if entry.payload == b"":
            raise EntryArchived(
                f"entry {entry.seq} ({entry.kind}) was archived: the store knows that it is there, and "
                "the archive file knows what it says. Bring it back with `c4b deploy unarchive`"
            )
        try:
            hash_, is_sealed = entry.hash(), self._sealer is None or self._sealer.holds(entry)
        except Exception as error:  # a damaged row can hold any type
            raise _altered(entry.seq) from error
        if not is_sealed:
            raise JournalCorrupt(
                f"entry {entry.seq} is not sealed with the deployment's key: somebody without the key "
                "wrote it; restore the journal from a backup"
            )
        return hash_


def _pages(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    return (keys[start : start + PAGE] for start in range(0, len(keys), PAGE))


def _missing(seq: int) -> JournalCorrupt:
    return JournalCorrupt(f"entry {seq} is missing from the journal; restore it from a backup")


def _altered(seq: int) -> JournalCorrupt:
    return JournalCorrupt(
        f"entry {seq} is not the one that its successor was appended to; restore it from a backup"
    )
