"""The journal: what was decided, learned and reported, in order, for good.

Contract, for every store
-------------------------
*Order.* A deployment has one journal: entries numbered 0, 1, 2, ... without a gap. Writers are
serialised by a lock (SQLite: the database's write lock; PostgreSQL: the lock of the deployment's row),
taken before the head is read and held until the commit. What is appended was computed from the state
after exactly the entries before it: either under the lock, or ahead of it, and then it is appended only
if the head, read under the lock, is still the one that it was computed from. So the entries are a serial
order of all calls of all processes, and a writer always sees every entry before its own.

*Immutability.* Entries are only appended. Nothing in this package updates or deletes one.

*Durability.* An append is on disk when the transaction's commit returns, and not before. A call that
raised appended nothing, with one exception, which the error says: a commit whose acknowledgement got
lost.

*Chain.* Every entry carries the hash of the entry before it; the deployment's row carries the number and
the hash of the last one. An entry is used only after its hash has been compared with its successor's
copy, or with the row's: a changed, missing, moved or inserted entry raises ``JournalCorrupt`` in whoever
reads it. Only someone who rewrites every later entry and the row goes unnoticed; keep ``state().hash``
elsewhere to notice that, too.

*Completeness.* With the entries before it an entry suffices to recompute itself.

*Ownership.* Readers receive copies. *Threads and processes:* a ``Journal`` lives inside one transaction
and belongs to whoever opened that; any number of processes may have one.

Format 1
--------
hash = sha256(seq, about or -1, at: int64 each | length of kind: uint32 | kind | length of r: uint32 | r |
previous hash | payload); r = "=" + request id, or empty without one. payload = length of header: uint32 |
header | arrays. The header is JSON {"arrays": [[name, shape], ...], "fields": {...}}, keys sorted, no
spaces; the arrays follow in that order, float64, row by row. Everything is little-endian. ``at`` is in
microseconds since 1970 and never decreases.

    created    fields: the configuration; ridges (G,) of the stacked ellipsoids;
               rule: propose, boldness, thrift, latches, checkpoints, cushion;
               alarms: level, bets
    learned    features (n, d), rewards (n,)
    decided    candidates (K, d), baseline (d,), details (5, K): UCB, margin, joint and separate
               bound, score; numbers: bank before and after, certificate, UCB of what is executed, radius;
               estimate (d,): the set's centre; upper (K,): upper bounds of the contrasts, in sets of
               several ellipsoids. The last two explain only; the first journals are without them
    observed   numbers: reward. about: the decision; by: "caller" or "timeout"
    forgotten  about, by
    executed   features (d,) of what was executed instead; numbers: bank before, bank after
    alarm      reason, source: "model" or "ledger"

``set`` fingerprints the confidence set: in ``decided`` and ``executed`` the one that was used, elsewhere
the one that resulted; ``observations`` counts what it had absorbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, literal_column, select, update

from c4b.errors import JournalCorrupt
from c4b.journal import sql_schema as schema
from c4b.journal.entries import DECIDED, GENESIS, Entry
from c4b.journal.sql_schema import deployments, journal
from c4b.journal.sql_store import Store, Transaction

PAGE = 1000
"""Entries read at a time."""

_INSERT = journal.insert()
_HEAD = select(
    deployments.c.id,
    deployments.c.head,
    deployments.c.head_hash,
    deployments.c.snapshot,
    select(func.max(schema.version.c.version)).scalar_subquery(),
).where(deployments.c.name == bindparam("name"))
_LOCK = _HEAD.with_for_update()
_MOVE = (
    update(deployments)
    .where(deployments.c.id == bindparam("row"))
    .values(head=bindparam("last"), head_hash=bindparam("last_hash"))
)
_MOVE_AND_INSERT = _INSERT.add_cte(_MOVE.cte("moved"))
"""Both in one journey to the server, where the store's SQL can say that."""
_MOVE_FROM = _MOVE.where(
    deployments.c.head == bindparam("base"),
    deployments.c.head_hash == bindparam("base_hash"),
    select(func.max(schema.version.c.version)).scalar_subquery() == literal_column(str(schema.VERSION)),
)
"""Only if the journal ends where the writer believes."""
_moved = _MOVE_FROM.returning(deployments.c.id).cte("moved")
_WRITTEN = ("place", *Entry._fields)
_APPEND_FROM = journal.insert().from_select(
    ["deployment", *_WRITTEN],
    select(_moved.c.id, *(bindparam(name, type_=journal.c[name].type) for name in _WRITTEN)),
)
"""A whole transaction in one journey: nothing is written if the journal ends elsewhere."""
_MARK = update(deployments).where(deployments.c.id == bindparam("row")).values(snapshot=bindparam("seq"))
_COLUMNS = [journal.c[name] for name in Entry._fields]
_mine = journal.c.deployment == bindparam("row")  # said again although the place implies it, unless
# somebody changed one of the two
_part = select(*_COLUMNS).where(_mine, journal.c.place.between(bindparam("first"), bindparam("last")))
_AFTER = _part.order_by(journal.c.place).limit(bindparam("count"))
_BEFORE = _part.order_by(journal.c.place.desc()).limit(bindparam("count"))
_successor = journal.alias("successor")
_told = (  # a subquery, not a join: a server without statistics yet would join all with all
    select(_successor.c.previous)
    .where(_successor.c.place == journal.c.place + 1, _successor.c.deployment == journal.c.deployment)
    .scalar_subquery()
)
_WITH_NEXT = select(*_COLUMNS, _told.label("told")).where(_mine).order_by(journal.c.place)
_AT = _WITH_NEXT.where(journal.c.place == bindparam("place"))
_AMONG = _WITH_NEXT.where(journal.c.place.in_(bindparam("places", expanding=True)))
_REQUESTED = _WITH_NEXT.where(journal.c.request_id == bindparam("request"))
_REQUESTED_MANY = _WITH_NEXT.where(journal.c.request_id.in_(bindparam("requests", expanding=True)))
_ABOUT = _WITH_NEXT.where(journal.c.about.in_(bindparam("seqs", expanding=True)))


class Head(NamedTuple):
    """Where a journal ends."""

    row: int
    seq: int
    hash: bytes
    snapshot: int


class Journal:
    """One deployment's journal inside one transaction; ``lock=True`` to append."""

    def __init__(self, transaction: Transaction, head: Head) -> None:
        self.transaction = transaction
        self.head = head

    @classmethod
    def find(cls, transaction: Transaction, name: str, lock: bool = False) -> Journal | None:
        found = transaction.one(_LOCK if lock else _HEAD, {"name": name})
        if found is None:
            return None
        *head, version = found
        if version != schema.VERSION:  # somebody migrated it while this process was running
            schema.refuse(version)
        return cls(transaction, Head(*head))

    def append(self, entries: Sequence[Entry], hash_: bytes) -> None:
        """Add entries that continue the chain and end it with ``hash_``; the caller holds the lock."""
        row, last = self.head.row, entries[-1].seq
        move = {"row": row, "last": last, "last_hash": hash_}
        if len(entries) > 1:
            self.transaction.run_many(_INSERT, [columns(row, entry) for entry in entries])
            self.transaction.run(_MOVE, move)
        elif self.transaction.dialect.name == "postgresql":
            self.transaction.run(_MOVE_AND_INSERT, {**columns(row, entries[0]), **move})
        else:
            self.transaction.run(_INSERT, columns(row, entries[0]))
            self.transaction.run(_MOVE, move)
        self.head = self.head._replace(seq=last, hash=hash_)

    @staticmethod
    def append_from(store: Store, row: int, entry: Entry, hash_: bytes) -> bool:
        """A transaction of its own: add one entry if the journal ends where the entry says; else False.

        The condition is checked under the lock that ``find`` takes, so this is as serial as the rest.
        """
        values = {
            **columns(row, entry),
            "row": row,
            "last": entry.seq,
            "last_hash": hash_,
            "base": entry.seq - 1,
            "base_hash": entry.previous,
        }
        if store.one_statement:
            return store.at_once(_APPEND_FROM, values)
        return store.at_once(_MOVE_FROM, values, then=_INSERT)

    def mark_snapshot(self, seq: int) -> None:
        self.transaction.run(_MARK, {"row": self.head.row, "seq": seq})
        self.head = self.head._replace(snapshot=seq)

    def tail(self, seq: int, hash_: bytes) -> Iterator[Entry]:
        """Entries after number ``seq``, whose hash is ``hash_``; each is checked before it is given."""
        if seq > self.head.seq or (seq == self.head.seq and hash_ != self.head.hash):
            raise JournalCorrupt(
                f"the journal ends at entry {self.head.seq}, but entry {seq} was seen to follow a "
                "different past; was an old backup restored? Open the deployment again"
            )
        waiting: Entry | None = None
        while seq < self.head.seq:
            page = self._page(seq, min(PAGE, self.head.seq - seq))
            for entry in page:
                if entry.seq != seq + 1:
                    raise _missing(seq + 1)
                if entry.previous != hash_:
                    raise _altered(seq)
                if waiting is not None:
                    yield waiting
                waiting, seq, hash_ = entry, entry.seq, _hash(entry)
            if not page:
                raise _missing(seq + 1)
        if waiting is not None:
            if hash_ != self.head.hash:
                raise _altered(seq)
            yield waiting

    def _page(self, after: int, count: int) -> list[Entry]:
        values = self._between(after + 1, self.head.seq, count)
        return [Entry(*row) for row in self.transaction.all(_AFTER, values)]

    def _place(self, seq: int) -> int:
        return place(self.head.row, seq)

    def _between(self, first: int, last: int, count: int) -> dict[str, Any]:
        row = self.head.row
        return {"row": row, "first": place(row, first), "last": place(row, last), "count": count}

    def at(self, seq: int) -> Entry | None:
        if not 0 <= seq <= self.head.seq:
            return None
        found = self._checked(
            self.transaction.all(_AT, {"row": self.head.row, "place": self._place(seq)})
        )
        if not found or found[0].seq != seq:
            raise _missing(seq)
        return found[0]

    def requested(self, request_id: str) -> Entry | None:
        values = {"row": self.head.row, "request": request_id}
        found = self._checked(self.transaction.all(_REQUESTED, values))
        return found[0] if found else None

    def requested_many(self, request_ids: Sequence[str]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for start in range(0, len(request_ids), PAGE):
            part = list(request_ids[start : start + PAGE])
            values = {"row": self.head.row, "requests": part}
            for entry in self._checked(self.transaction.all_in(_REQUESTED_MANY, values)):
                found[str(entry.request_id)] = entry
        return found

    def about(self, seqs: Sequence[int]) -> Iterator[Entry]:
        """Entries about these decisions: outcomes, losses, other executions."""
        for start in range(0, len(seqs), PAGE):
            values = {"row": self.head.row, "seqs": list(seqs[start : start + PAGE])}
            yield from self._checked(self.transaction.all_in(_ABOUT, values))

    def among(self, seqs: Sequence[int]) -> list[Entry]:
        """The entries of these numbers, in order; all of them are there."""
        found: list[Entry] = []
        for start in range(0, len(seqs), PAGE):
            places = [self._place(seq) for seq in seqs[start : start + PAGE]]
            values = {"row": self.head.row, "places": places}
            found += self._checked(self.transaction.all_in(_AMONG, values))
        if absent := set(seqs).difference(entry.seq for entry in found):
            raise _missing(min(absent))
        return found

    def decided(self, after: int, before: int, count: int) -> list[Entry]:
        """The next decisions after entry ``after`` and before entry ``before``, from a reading without
        gaps: none can be hidden."""
        first = None if after < 0 else self.at(after)
        if after >= 0 and first is None:
            return []
        tail = self.tail(after, GENESIS if first is None else first.hash())
        inside = takewhile(lambda entry: entry.seq < before, tail)
        return list(islice((entry for entry in inside if entry.kind == DECIDED), count))

    def decided_last(self, after: int, before: int, count: int) -> list[Entry]:
        """The last decisions before ``before`` and after ``after``, newest first, likewise."""
        back = takewhile(lambda entry: entry.seq > after, self._backwards(before, 2 * count + 16))
        return list(islice((entry for entry in back if entry.kind == DECIDED), count))

    def _backwards(self, before: int, size: int) -> Iterator[Entry]:
        """Entries before number ``before``, each checked against the copy of its hash in the next."""
        hash_, seq = self.head.hash, self.head.seq
        if before <= seq:
            following = self.at(max(before, 0))
            assert following is not None
            hash_, seq = following.previous, following.seq - 1
        while seq >= 0:
            values = self._between(0, seq, min(size, PAGE))
            page = [Entry(*row) for row in self.transaction.all(_BEFORE, values)]
            for entry in page:
                if entry.seq != seq:
                    raise _missing(seq)
                if _hash(entry) != hash_:
                    raise _altered(seq)
                yield entry
                hash_, seq = entry.previous, entry.seq - 1
            if not page:
                raise _missing(seq)
            size *= 2

    def _checked(self, rows: Iterable[Any]) -> list[Entry]:
        entries = []
        for *fields, told in rows:
            entry = Entry(*fields)
            if entry.seq == self.head.seq:
                told = self.head.hash  # noqa: PLW2901 (the row vouches for the last entry)
            if told is None and entry.seq < self.head.seq:
                raise _missing(entry.seq + 1)
            if entry.seq > self.head.seq:
                continue  # committed after this transaction read the head
            if _hash(entry) != told:
                raise _altered(entry.seq)
            entries.append(entry)
        return entries


def place(row: int, seq: int) -> int:
    """The key of a deployment's entry."""
    return row * schema.DEPLOYMENT + seq


def columns(row: int, entry: Entry) -> dict[str, Any]:
    """What is written of an entry."""
    seq, kind, about, request_id, at, payload, previous = entry
    return {
        "place": place(row, seq),
        "deployment": row,
        "seq": seq,
        "kind": kind,
        "about": about,
        "request_id": request_id,
        "at": at,
        "payload": payload,
        "previous": previous,
    }


def _hash(entry: Entry) -> bytes:
    try:
        return entry.hash()
    except Exception as error:  # a damaged row can hold any type
        raise _altered(entry.seq) from error


def _missing(seq: int) -> JournalCorrupt:
    return JournalCorrupt(f"entry {seq} is missing from the journal; restore it from a backup")


def _altered(seq: int) -> JournalCorrupt:
    return JournalCorrupt(
        f"entry {seq} is not the one that its successor was appended to; restore it from a backup"
    )
