"""One code path to SQLite and PostgreSQL; what differs between them is in the two ``_prepare`` hooks.

Whatever a driver raises leaves here as ``StoreUnavailable`` or ``JournalCorrupt``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    SQLAlchemyError,
)

from c4b.errors import InvalidInput, JournalCorrupt, StoreUnavailable

WAIT = 30
"""Seconds to wait for another writer before giving up."""
_WRITES = "c4b_writes"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LostBeforeCommit(StoreUnavailable):
    """The connection was found dead before anything was committed: trying again is safe."""


class Store:
    """Transactions on one database. Safe to share between threads; after a fork, call ``forked``."""

    def __init__(self, url: str, create: bool = False) -> None:
        self.url = _checked(url)
        if self.url.get_backend_name() == "sqlite" and not create:
            path = self.url.database or ""
            if not Path(path).exists():
                raise StoreUnavailable(f"{path}: no such file; create a deployment in it first")
        self._engine = _engine(self.url)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that writes nothing and waits for no writer."""
        with translated(committing=False), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that commits when the block ends well, durably, and else leaves nothing.

        On SQLite it holds the database's write lock from its first moment.
        """
        with translated(committing=False):
            connection = self._engine.connect()
            try:
                connection.execution_options(**{_WRITES: True})
                transaction = connection.begin()
                try:
                    yield connection
                except BaseException:
                    transaction.rollback()
                    raise
                with translated(committing=True):
                    transaction.commit()
            finally:
                connection.close()

    def forked(self) -> None:
        """Leave the parent's connections to the parent."""
        self._engine.dispose(close=False)

    def close(self) -> None:
        self._engine.dispose()

    def __repr__(self) -> str:
        return f"Store({self.url.render_as_string(hide_password=True)!r})"


def _checked(url: object) -> URL:
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


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": WAIT})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        engine = create_engine(url, connect_args={"connect_timeout": WAIT})
        event.listen(engine, "connect", _prepare_postgresql)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says, not before
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnavailable(f"the file system offers no write-ahead log (mode is {mode})")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")  # macOS: fsync alone leaves data in the drive


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_postgresql(connection: Any, _: object) -> None:
    before, connection.autocommit = connection.autocommit, True
    if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
        connection.execute("SET synchronous_commit = on")  # acknowledged means on disk
    milliseconds = 1000 * WAIT
    connection.execute(f"SET lock_timeout = {milliseconds}")
    # a worker that hangs with the lock in hand is disconnected, and its transaction with it
    connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    connection.autocommit = before


@contextmanager
def translated(committing: bool) -> Iterator[None]:
    """Errors of SQLAlchemy and of the drivers as errors of this package."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _meaning(error, committing) from error


def _meaning(error: BaseException, committing: bool) -> Exception:
    cause = getattr(error, "orig", None) or error
    said = " ".join(str(cause).split()) or type(cause).__name__
    code = getattr(cause, "sqlite_errorcode", None)
    state = getattr(cause, "sqlstate", None) or ""
    damaged = code is not None and code & 0xFF in _DAMAGED
    if damaged or state.startswith("XX") or "decode to UTF-8" in said:
        return JournalCorrupt(f"the store is damaged ({said}); restore it from a backup")
    if isinstance(error, IntegrityError):
        return JournalCorrupt(f"the store contradicts its journal ({said}); run an audit")
    if committing:
        return StoreUnavailable(
            f"{said}; the commit was not acknowledged: it was recorded or it was not, never half. "
            "Repeat the call with the same request_id to learn which"
        )
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return LostBeforeCommit(f"{said}; nothing was written, try again")
    return StoreUnavailable(f"{said}; nothing was written")


