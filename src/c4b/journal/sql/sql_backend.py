"""Journals in SQLite and PostgreSQL: the statements. Transactions are in ``sql_store``.

Writers of one journal hold the lock of its row in ``c4b_deployment`` (PostgreSQL), or the write lock of
the whole database (SQLite).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Insert,
    LargeBinary,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.exc import DBAPIError

from c4b.errors import JournalCorrupt, NameTaken
from c4b.journal.backend import Head, StoredEntry, StoredSnapshot, unknown
from c4b.journal.entries import Entry
from c4b.journal.sql import sql_schema as schema
from c4b.journal.sql.sql_schema import deployments, journal, snapshots
from c4b.journal.sql.sql_store import Store
from c4b.journal.sql.sql_transaction import Transaction

_INSERT = journal.insert()
AT_ONCE = 64
"""Most entries that one statement inserts. Its size is a power of two, so that few are compiled."""
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
"""Both in one message to the server, where one statement can write to two tables."""
_given = {column.name: bindparam(column.name, type_=column.type) for column in journal.c}
_MOVE_FROM = (
    update(deployments)
    .where(
        deployments.c.id == _given["deployment"],
        deployments.c.head == _given["seq"] - literal_column("1"),
        deployments.c.head_hash == _given["previous"],
        exists().where(schema.version.c.version == literal_column(str(schema.VERSION))),
    )
    .values(
        head=bindparam("last", type_=journal.c.seq.type), head_hash=bindparam("hash", type_=LargeBinary)
    )
)
"""Only if the journal ends where the first entry continues it.

In order: number and hash of the last entry, deployment, number of the first entry, previous hash."""
_moved = _MOVE_FROM.returning(deployments.c.id).cte("moved")
_WRITTEN = ("place", *Entry._fields)
IN_ONE_STATEMENT = 8
"""Most entries that ``append_all_if_head`` takes. Each number of them is a statement of its own."""
_COPY = f"COPY {journal.name} ({', '.join(journal.c.keys())}) FROM STDIN (FORMAT BINARY)"
_COPIED = ("int8", "int4", "int8", "varchar", "int8", "varchar", "int8", "bytea", "bytea")
"""Many entries in one message to the server, and the types of their columns."""
_REWRITE = (
    update(journal).where(journal.c.place == bindparam("place")).values(payload=bindparam("content"))
)
_COLUMNS = [journal.c[name] for name in Entry._fields]
_of_journal = journal.c.deployment == bindparam("row")  # stated although the key implies it, unless
# somebody changed one of the two
_between = select(*_COLUMNS).where(
    _of_journal, journal.c.place.between(bindparam("first"), bindparam("last"))
)
_FORWARDS = _between.order_by(journal.c.place).limit(bindparam("count"))
_BACKWARDS = _between.order_by(journal.c.place.desc()).limit(bindparam("count"))
_successor = journal.alias("successor")
_next_previous = (  # a subquery, not a join: a server without statistics yet would join all with all
    select(_successor.c.previous)
    .where(_successor.c.place == journal.c.place + 1, _successor.c.deployment == journal.c.deployment)
    .scalar_subquery()
)
_WITH_NEXT = (
    select(*_COLUMNS, _next_previous.label("next_previous")).where(_of_journal).order_by(journal.c.place)
)
_AT = _WITH_NEXT.where(journal.c.place == bindparam("place"))
_AMONG = _WITH_NEXT.where(journal.c.place.in_(bindparam("places", expanding=True)))
_REQUESTED = _WITH_NEXT.where(journal.c.request_id == bindparam("request"))
_REQUESTED_MANY = _WITH_NEXT.where(journal.c.request_id.in_(bindparam("requests", expanding=True)))
_ABOUT = _WITH_NEXT.where(journal.c.about.in_(bindparam("seqs", expanding=True)))
_of_snapshots = snapshots.c.deployment == bindparam("row")
_SNAPSHOT_INSERT = snapshots.insert()
_SNAPSHOT_MARK = (
    update(deployments).where(deployments.c.id == bindparam("row")).values(snapshot=bindparam("seq"))
)
_SNAPSHOT_NUMBERS = select(snapshots.c.seq).where(_of_snapshots).order_by(snapshots.c.seq.desc())
_SNAPSHOT = select(*(snapshots.c[name] for name in StoredSnapshot._fields)).where(
    _of_snapshots, snapshots.c.seq == bindparam("number")
)
_SNAPSHOT_DROP = delete(snapshots).where(_of_snapshots, snapshots.c.seq < bindparam("oldest"))


_AMCHECK = text("SELECT to_regprocedure('bt_index_check(regclass, boolean)')")
_INDEXES = text(
    "SELECT quote_ident(schemaname) || '.' || quote_ident(indexname) FROM pg_indexes "
    "WHERE schemaname = ANY (current_schemas(false)) AND tablename LIKE 'c4b\\_%' ORDER BY indexname"
)
_CHECK_INDEX = text("SELECT bt_index_check(CAST(:index AS regclass), true)")
_DENIED = "42501"
"""PostgreSQL's state for a function that the user may not call."""


class SqlJournal:
    """One journal inside one SQL transaction: a ``JournalTransaction``."""

    def __init__(self, transaction: Transaction, head: Head) -> None:
        self.head = head
        self._transaction = transaction
        self._row: Any = head.journal

    def append(self, entries: Sequence[Entry], hash_: bytes) -> None:
        row, last = self._row, entries[-1].seq
        move = {"row": row, "last": last, "last_hash": hash_}
        if len(entries) > 1:
            self._insert_many(entries)
            self._transaction.run(_MOVE, move)
        elif self._transaction.dialect.name == "postgresql":
            self._transaction.run(_MOVE_AND_INSERT, {**_columns(row, entries[0]), **move})
        else:
            self._transaction.run(_INSERT, _columns(row, entries[0]))
            self._transaction.run(_MOVE, move)
        self.head = self.head._replace(seq=last, hash=hash_)

    def _insert_many(self, entries: Sequence[Entry]) -> None:
        """Where the store is in this process, few statements: other threads may run during each, and
        then this one waits for them. A server takes all rows as one stream."""
        row, written, count = self._row, 0, len(entries)
        if self._transaction.dialect.name == "postgresql":
            self._transaction.copy(_COPY, _COPIED, (_values(row, entry) for entry in entries))
            return
        while written < count:
            size = min(1 << ((count - written).bit_length() - 1), AT_ONCE)
            some = entries[written : written + size]
            values = [value for entry in some for value in _values(row, entry)]
            self._transaction.run_ready(_inserts(size), values)
            written += size

    def range(self, first: int, last: int, count: int, backwards: bool = False) -> list[Entry]:
        row = self._row
        values = {"row": row, "first": _key(row, first), "last": _key(row, last), "count": count}
        rows = self._transaction.all(_BACKWARDS if backwards else _FORWARDS, values)
        return [Entry(*values) for values in rows]

    def at(self, seqs: Sequence[int]) -> list[StoredEntry]:
        keys = [_key(self._row, seq) for seq in seqs]
        if len(keys) == 1:
            return _stored(self._transaction.all(_AT, {"row": self._row, "place": keys[0]}))
        return _stored(self._transaction.all_in(_AMONG, {"row": self._row, "places": keys}))

    def requested(self, request_ids: Sequence[str]) -> list[StoredEntry]:
        if len(request_ids) == 1:
            values = {"row": self._row, "request": request_ids[0]}
            return _stored(self._transaction.all(_REQUESTED, values))
        values = {"row": self._row, "requests": list(request_ids)}
        return _stored(self._transaction.all_in(_REQUESTED_MANY, values))

    def about(self, seqs: Sequence[int]) -> list[StoredEntry]:
        return _stored(self._transaction.all_in(_ABOUT, {"row": self._row, "seqs": list(seqs)}))

    def snapshot_numbers(self) -> list[int]:
        return [seq for (seq,) in self._transaction.all(_SNAPSHOT_NUMBERS, {"row": self._row})]

    def snapshot(self, seq: int) -> StoredSnapshot | None:
        row = self._transaction.one(_SNAPSHOT, {"row": self._row, "number": seq})
        return None if row is None else StoredSnapshot(*row)

    def write_snapshot(self, snapshot: StoredSnapshot, keep: int) -> None:
        values = {"deployment": self._row, **snapshot._asdict()}
        self._transaction.run(_SNAPSHOT_INSERT, values)
        self._transaction.run(_SNAPSHOT_MARK, {"row": self._row, "seq": snapshot.seq})
        self.head = self.head._replace(snapshot=snapshot.seq)
        oldest = self.snapshot_numbers()[:keep][-1]
        self._transaction.run(_SNAPSHOT_DROP, {"row": self._row, "oldest": oldest})

    def rewrite(self, payloads: Mapping[int, bytes]) -> None:
        """Replace payloads. Needs the lock."""
        if self._transaction.dialect.name == "sqlite":
            self._transaction.control("PRAGMA secure_delete = ON")
        values = [
            {"place": _key(self._row, seq), "content": payload} for seq, payload in payloads.items()
        ]
        self._transaction.run_many(_REWRITE, values)


class SqlBackend:
    """Journals in one database: a ``JournalBackend``.

    connections: the most to have open at once. With it, any number of threads may write at once, and so
    any number of deployments may share this object.
    """

    most_at_once = IN_ONE_STATEMENT

    def __init__(self, url: str, create: bool = False, connections: int | None = None) -> None:
        self.store = Store(url, create, connections)
        self.lock_settles_lost_commits = self.store.one_statement
        self._tables_checked = False

    def create(self, name: str, first: Entry) -> None:
        row = {"name": name, "head": first.seq, "head_hash": first.hash(), "snapshot": -1}
        with self.store.administering() as connection:
            schema.prepare(connection)
            existing = select(deployments.c.id).where(deployments.c.name == name)
            if connection.execute(existing).first() is not None:
                raise NameTaken(f"{name!r} exists already; open it, or choose another name")
            connection.execute(deployments.insert(), row)
            number = connection.execute(existing).scalar_one()
            connection.execute(_INSERT, _columns(number, first))
        self._tables_checked = True

    def names(self) -> list[str]:
        with self.store.administering(write=False) as connection:
            if not schema.exists(connection):
                return []
            schema.check(connection)
            column = deployments.c.name
            return list(connection.execute(select(column).order_by(column)).scalars())

    @contextmanager
    def reading(self, name: str) -> Iterator[SqlJournal]:
        self._check_tables(name)
        with self.store.reading() as transaction:
            yield _journal(transaction, name, _HEAD)

    @contextmanager
    def writing(self, name: str) -> Iterator[SqlJournal]:
        self._check_tables(name)
        with self.store.writing() as transaction:
            yield _journal(transaction, name, _LOCK)

    def append_if_head(self, journal: Hashable, entry: Entry, hash_: bytes) -> bool:
        """One statement where it can write to two tables, else two.

        The condition is checked under the lock that ``writing`` takes.
        """
        if not self.store.one_statement:
            move = (entry.seq, hash_, journal, entry.seq, entry.previous)
            return self.store.at_once(_MOVE_FROM, move, then=(_INSERT, _values(journal, entry)))
        values = _columns(journal, entry)
        values["last"], values["hash"] = entry.seq, hash_
        return self.store.at_once(_append_from(1), values)

    def append_all_if_head(self, journal: Hashable, entries: Sequence[Entry], hash_: bytes) -> bool:
        """The same for 1 to ``most_at_once`` entries."""
        first, last = entries[0], entries[-1].seq
        if not self.store.one_statement:
            move = (last, hash_, journal, first.seq, first.previous)
            values = [value for entry in entries for value in _values(journal, entry)]
            return self.store.at_once(_MOVE_FROM, move, then=(_inserts(len(entries)), values))
        named = _columns(journal, first)
        for n, entry in enumerate(entries[1:], 1):
            named.update({f"{name}{n}": value for name, value in _columns(journal, entry).items()})
        named["last"], named["hash"] = last, hash_
        return self.store.at_once(_append_from(len(entries)), named)

    def rewrite(self, name: str, payloads: Mapping[int, bytes]) -> None:
        """SQLite overwrites what was there. PostgreSQL keeps old rows until they are vacuumed."""
        with self.writing(name) as locked:
            locked.rewrite(payloads)

    def problems(self) -> list[str]:
        """Whether the indexes are there. SQLite also checks its pages, and its indexes against the
        tables. PostgreSQL checks the indexes where its extension ``amcheck`` is installed and this user
        may call it."""
        with self.store.administering(write=False) as connection:
            try:
                schema.check_indexes(connection)
            except JournalCorrupt as error:
                return [str(error)]
            if self.store.one_statement:
                return _amcheck(connection)
            found = connection.exec_driver_sql("PRAGMA integrity_check(10)").scalars().all()
        return [each for each in found if each != "ok"]

    def after_fork(self) -> None:
        self.store.after_fork()

    def close(self) -> None:
        self.store.close()

    def _check_tables(self, name: str) -> None:
        """Once: later changes of the schema's version show when the head is read."""
        if self._tables_checked:
            return
        with self.store.administering(write=False) as connection:
            if not schema.exists(connection):
                raise unknown(name)
            schema.check(connection)
            schema.check_indexes(connection)
        self._tables_checked = True

    def __repr__(self) -> str:
        return repr(self.store)


def _amcheck(connection: Connection) -> list[str]:
    found: list[str] = []
    if connection.execute(_AMCHECK).scalar() is None:
        return found
    for index in connection.execute(_INDEXES).scalars().all():
        try:
            with connection.begin_nested():
                connection.execute(_CHECK_INDEX, {"index": index})
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _DENIED:
                return []
            found.append(" ".join(str(error.orig).split()))
    return found


def _journal(transaction: Transaction, name: str, statement: Any) -> SqlJournal:
    row = transaction.one(statement, {"name": name})
    if row is None:
        raise unknown(name)
    *head, version = row
    if version != schema.VERSION:  # somebody migrated it while this process was running
        schema.refuse(version)
    return SqlJournal(transaction, Head(*head))


@cache
def _inserts(size: int) -> Insert:
    """A statement that inserts so many entries; each has its values in the order of ``_values``."""
    return journal.insert().values(
        [
            {column.name: bindparam(f"{column.name}{n}", type_=column.type) for column in journal.c}
            for n in range(size)
        ]
    )


@cache
def _append_from(size: int) -> Insert:
    """A whole transaction in one message: so many entries, and nothing if the journal ends elsewhere.

    The values of an entry but the first have its number, from 1 on, at the end of their names.
    """
    rows = [
        select(
            _moved.c.id, *(bindparam(f"{name}{n or ''}", type_=journal.c[name].type) for name in _WRITTEN)
        )
        for n in range(size)
    ]
    every = rows[0] if size == 1 else union_all(*rows)
    return journal.insert().from_select(["deployment", *_WRITTEN], every)


def _stored(rows: Iterable[Any]) -> list[StoredEntry]:
    return [StoredEntry(Entry(*fields), next_previous) for *fields, next_previous in rows]


def _key(row: Any, seq: int) -> int:
    """The primary key of an entry."""
    key: int = row * schema.DEPLOYMENT + seq
    return key


def _values(row: Any, entry: Entry) -> tuple[Any, ...]:
    """What is written of an entry, in the order of the table's columns."""
    return (row * schema.DEPLOYMENT + entry.seq, row, *entry)


def _columns(row: Any, entry: Entry) -> dict[str, Any]:
    """The same by name."""
    seq, kind, about, request_id, at, payload, previous = entry
    return {
        "place": _key(row, seq),
        "deployment": row,
        "seq": seq,
        "kind": kind,
        "about": about,
        "request_id": request_id,
        "at": at,
        "payload": payload,
        "previous": previous,
    }
