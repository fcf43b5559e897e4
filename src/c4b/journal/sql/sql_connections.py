"""Connections to SQLite and PostgreSQL: where to, and what is set on each so that a commit is durable."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from c4b.errors import InvalidInput, StoreUnavailable

WAIT = 30
"""Seconds to wait for another writer before giving up."""
PATIENCE = 10
"""Seconds to wait for a connection where their number is limited."""
WRITES = "c4b_writes"
"""SQLAlchemy's execution option: whether a transaction will write."""


def checked_url(url: object) -> URL:
    remedy = "must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    if not isinstance(url, str):
        raise InvalidInput("url", url, remedy)
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise InvalidInput("url", "(hidden: it may hold a password)", remedy) from error
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InvalidInput("url", parsed.drivername, remedy)
    if not parsed.database or parsed.database.startswith((":memory:", "file:")):
        raise InvalidInput("url", url, "needs a file, sqlite:///FILE: a deployment outlives its process")
    return parsed


def new_engine(url: URL, connections: int | None) -> Engine:
    pool: dict[str, Any] = {}
    if connections is not None:
        pool = {"pool_size": connections, "max_overflow": 0, "pool_timeout": PATIENCE}
    if url.get_backend_name() == "sqlite":
        fixed = _is_fixed(Path(url.database or ""))
        if fixed:
            file = f"file:{quote(str(Path(url.database or '').absolute()))}"
            url = url.set(database=file, query={"immutable": "1", "uri": "true"})
        engine = create_engine(url, connect_args={"timeout": WAIT}, **pool)
        event.listen(engine, "connect", _prepare_fixed_sqlite if fixed else _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        given = {"connect_timeout": WAIT, "client_encoding": "utf8"}  # whatever the database's own is
        engine = create_engine(url, connect_args=given, **pool)
        event.listen(engine, "connect", _prepare_postgresql)
    return engine


def _is_fixed(path: Path) -> bool:
    """Whether a file is complete in itself and this process cannot write beside it, as on a read-only
    file system. SQLite then cannot make the files by which it shares a write-ahead log, and needs none:
    nobody who writes has one open."""
    log = path.with_name(f"{path.name}-wal")
    return path.exists() and not os.access(path.parent, os.W_OK) and not log.exists()


def _prepare_fixed_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says, not before


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says, not before
    mode = _logged_ahead(connection)
    if mode != "wal":
        raise StoreUnavailable(f"the file system offers no write-ahead log (mode is {mode})")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=2000")  # 8 MB: a checkpoint takes 10 ms
    connection.execute("PRAGMA fullfsync=ON")  # macOS: fsync alone leaves data in the drive


def _logged_ahead(connection: Any) -> str:
    """Turn the write-ahead log on. Several may do so at once in a new file, and there SQLite does not
    wait by itself."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES, True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_postgresql(connection: Any, _: object) -> None:
    before, connection.autocommit = connection.autocommit, True
    if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
        connection.execute("SET synchronous_commit = on")  # acknowledged means on disk
    milliseconds = 1000 * WAIT
    connection.execute(f"SET lock_timeout = {milliseconds}")
    # a worker that hangs with the lock in hand is disconnected, and its transaction with it
    connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    # every query here has its index; a plan made while the table was small must not scan it for ever
    connection.execute("SET enable_seqscan = off")
    # a transaction that waited for the lock must see what was committed meanwhile
    connection.execute("SET default_transaction_isolation = 'read committed'")
    connection.autocommit = before
