"""Tables of the journal, and their version."""

from __future__ import annotations

from typing import NoReturn

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    inspect,
    select,
    text,
)

from c4b.errors import JournalCorrupt, SchemaVersion

OLDEST, VERSION = 1, 2
"""What ``sql_migration`` can read, and what this package works with.

Raise the latter with every change of a table or of an entry's bytes, and add the step to
``sql_migration``."""

DEPLOYMENT = 2**40
"""Keys that each deployment has: its entry ``seq`` has the key deployment * 2**40 + seq."""

metadata = MetaData()

version = Table("c4b_schema", metadata, Column("version", Integer, nullable=False))

deployments = Table(
    "c4b_deployment",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("head", BigInteger, nullable=False),  # seq of the last entry
    Column("head_hash", LargeBinary(32), nullable=False),
    Column("snapshot", BigInteger, nullable=False),  # seq of the last snapshot, -1: none
)
"""One row a deployment: where its journal ends. Writers hold this row's lock."""

journal = Table(
    "c4b_journal",
    metadata,
    # one number for both of the next columns: on SQLite a whole entry then lies in the tree of its key,
    # in order, without an index beside it or a page of overflow for each
    Column("place", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    # no foreign key: an append moves its deployment's head, and a server would look there once more
    Column("deployment", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("about", BigInteger),  # seq of the decision that the entry is about
    Column("request_id", String(200)),
    Column("at", BigInteger, nullable=False),  # microseconds since 1970, never decreasing
    Column("payload", LargeBinary, nullable=False),
    Column("previous", LargeBinary(32), nullable=False),  # hash of the entry before
)
Index(
    "c4b_journal_request",
    journal.c.deployment,
    journal.c.request_id,
    unique=True,
    sqlite_where=journal.c.request_id.is_not(None),
    postgresql_where=journal.c.request_id.is_not(None),
)
Index(
    "c4b_journal_about",
    journal.c.deployment,
    journal.c.about,
    sqlite_where=journal.c.about.is_not(None),
    postgresql_where=journal.c.about.is_not(None),
)

snapshots = Table(
    "c4b_snapshot",
    metadata,
    Column("deployment", ForeignKey(deployments.c.id), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary(32), nullable=False),  # of the entry at seq
    Column("digest", LargeBinary(32), nullable=False),  # of the content
    Column("content", LargeBinary, nullable=False),
)
"""A cache: everything in it follows from the journal."""

_CREATION_LOCK = 0x633462  # any number that only this package uses


def prepare(connection: Connection) -> None:
    """Create the tables unless they are there; two processes may do this at once."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
    if exists(connection):
        check(connection)
        return
    metadata.create_all(connection)
    compress_nothing(connection)
    connection.execute(version.insert(), {"version": VERSION})


def compress_nothing(connection: Connection) -> None:
    """Entries are mostly random bits: a server keeps them in their row and does not try to compress them.
    Compressing a snapshot takes it five times as long as writing it."""
    if connection.dialect.name == "postgresql":
        for change in (
            f"{journal.name} ALTER payload SET STORAGE EXTERNAL",
            f"{journal.name} SET (toast_tuple_target = 8160)",
            f"{snapshots.name} ALTER content SET STORAGE EXTERNAL",
        ):
            connection.exec_driver_sql(f"ALTER TABLE {change}")


def exclusive(connection: Connection) -> None:
    """Wait for every transaction under way, and let none begin. SQLite has one writer anyhow."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {version.name}, {deployments.name}, {journal.name}"))


def exists(connection: Connection) -> bool:
    return inspect(connection).has_table(version.name)


def recorded_version(connection: Connection) -> int:
    """The version of the store's tables; 0 if none is recorded."""
    recorded = connection.execute(select(version.c.version)).scalars().all()
    return recorded[0] if len(recorded) == 1 and isinstance(recorded[0], int) else 0


def check(connection: Connection) -> None:
    """Refuse every version but this one."""
    recorded = recorded_version(connection)
    if recorded != VERSION:
        refuse(recorded)


def check_indexes(connection: Connection) -> None:
    """Refuse a journal without its indexes: they keep request ids unique, and lookups need them."""
    try:
        there = {
            str(index["name"]): bool(index["unique"])
            for index in inspect(connection).get_indexes(journal.name)
        }
    except TypeError:  # the catalogue itself is damaged
        there = {}
    for index in journal.indexes:
        if there.get(str(index.name)) != bool(index.unique):
            raise JournalCorrupt(
                f"the index {index.name} of the journal is missing or another one; run "
                "`c4b deploy migrate URL`, which makes it again, and then an audit"
            )


def restore_indexes(connection: Connection) -> None:
    """Make the journal's indexes again from its entries."""
    for index in journal.indexes:
        index.drop(connection, checkfirst=True)
        index.create(connection)


def refuse(recorded: object) -> NoReturn:
    if not isinstance(recorded, int):
        raise SchemaVersion(f"the store's schema version is {recorded!r}; restore it from a backup")
    if recorded > VERSION:
        raise SchemaVersion(
            f"the store has schema version {recorded}, this package reads {VERSION}; upgrade reserve-c4b"
        )
    if recorded >= OLDEST:
        raise SchemaVersion(
            f"the store has schema version {recorded}, this package works with {VERSION}; stop what uses "
            "the store, back it up, and migrate it: c4b deploy migrate URL"
        )
    raise SchemaVersion(
        f"the store has schema version {recorded}, this package reads {VERSION} and knows no migration "
        "from there; open it with the version of reserve-c4b that wrote it"
    )
