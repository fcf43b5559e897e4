"""Transactions on SQLite and PostgreSQL.

The two differ in how a connection is prepared (``sql_connections``) and how a transaction begins (here),
in whether one statement can write to two tables (``Store.one_statement``), and in how tables are made and
locked (``sql_schema``). Whatever a driver raises leaves here as ``StoreUnavailable`` or
``JournalCorrupt`` (``sql_errors``).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, PoolProxiedConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from c4b.errors import StoreUnavailable
from c4b.journal.sql import sql_connections, sql_errors, sqlite_queue
from c4b.journal.sql.sql_transaction import Compiled, Transaction
from c4b.journal.sql.sqlite_files import SQLiteFiles
from c4b.journal.sql.sqlite_queue import SQLiteQueue

if TYPE_CHECKING:
    from c4b.journal.sql.prepared_statement import PreparedStatement

ENOUGH = 4
"""Connections of which one may be kept for the next writer: preparing one takes as long as a commit."""


class _Writer(NamedTuple):
    """A connection whose transactions begin and end by statements only."""

    connection: PoolProxiedConnection
    transaction: Transaction


class Store:
    """Transactions on one database. After a fork, call ``after_fork``."""

    def __init__(self, url: str, create: bool = False, connections: int | None = None) -> None:
        """connections: the most that are open at once. Any number of threads may then write at once, and
        those for which there is no connection wait. Without it the store belongs to one deployment, which
        writes in one thread at a time."""
        self.url = sql_connections.checked_url(url)
        self._engine = sql_connections.new_engine(self.url, connections)
        self._errors = (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self.one_statement = not self._sqlite
        """Whether a statement can write to two tables."""
        self._queue = SQLiteQueue(self.url.database or "") if self._sqlite else None
        self._files = None
        if self._sqlite:
            has_log = "immutable" not in self._engine.url.query  # see sql_connections
            self._files = SQLiteFiles(self.url.database or "", self._engine, has_log, create)
        self._keeps_writer = connections is None or connections >= ENOUGH
        self._idle: list[_Writer] = []  # kept between two writes: one, or two until the next write
        self._busy: set[int] = set()  # ids of the writers in a transaction
        self._locked_by_parent = False
        self._compiled: dict[Any, Compiled] = {}

    @contextmanager
    def administering(self, write: bool = True) -> Iterator[Connection]:
        """A transaction in SQLAlchemy's own terms: to make tables, and to see which there are."""
        try:
            with self._engine.connect() as connection:
                self._check_files()
                connection.execution_options(**{sql_connections.WRITES: write}).begin()
                yield connection
                connection.commit()
        except self._errors as error:
            raise self._translated(error, None, committing=False) from error

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that writes nothing and waits for no writer; any thread, any number at once."""
        connection = cursor = None
        try:
            connection = self._engine.raw_connection()
            self._check_files()
            cursor = connection.cursor()
            if self._sqlite:
                cursor.execute("BEGIN")
            yield self._transaction(cursor)
        except self._errors as error:
            typed = self._translated(error, connection, committing=False)
            _give_back(connection, broken=True)
            raise typed from error
        finally:
            if cursor is not None:
                with suppress(Exception):  # SQLite goes on reading the past while a result is open
                    cursor.close()
            _give_back(connection, broken=False)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that commits when the block ends well, durably, and else leaves nothing.

        One at a time. On SQLite it holds the database's write lock from its first moment.
        """
        committing, writer = False, None
        try:
            writer = self._taken()
            self._begin(writer.transaction)
            yield writer.transaction
            committing = True
            writer.transaction.control("COMMIT")
        except self._errors as error:
            raise self._failed(writer, error, committing) from error
        except BaseException:
            self._drop(writer, broken=False)
            raise
        self._keep(writer)

    def at_once(self, statement: Any, values: Any, then: tuple[Any, Any] | None = None) -> bool:
        """A transaction that is known beforehand, durable on return; False if nothing was written.

        ``then``, a second statement and its values, is executed only after ``statement`` wrote something.
        Its values, and those of ``statement`` then, are as for ``Transaction.run_ready``. Without it the
        statement is a transaction by itself, of a server, and has its values by name.
        """
        sent, writer = False, None
        try:
            writer = self._taken()
            transaction = writer.transaction
            if then is None:
                prepared = self._prepared(writer.connection, statement)
                sent = True
                written = prepared.run(values) > 0
            else:
                self._begin(transaction)
                written = transaction.run_ready(statement, values) > 0
                if written:
                    transaction.run_ready(*then)
                    sent = True
                    transaction.control("COMMIT")
                else:
                    transaction.control("ROLLBACK")
        except self._errors as error:
            raise self._failed(writer, error, committing=sent) from error
        except BaseException:
            self._drop(writer, broken=True)  # an answer may be on its way
            raise
        self._keep(writer)
        return written

    def _prepared(self, connection: PoolProxiedConnection, statement: Any) -> PreparedStatement:
        """The statement as the connection knows it while it lasts."""
        known = connection.info
        if statement not in known:
            from c4b.journal.sql.prepared_statement import PreparedStatement  # noqa: PLC0415 (not for SQLite)

            driver: Any = connection.driver_connection
            known[statement] = PreparedStatement(driver, statement, f"c4b_{len(known)}")
        prepared: PreparedStatement = known[statement]
        return prepared

    def _taken(self) -> _Writer:
        """A writer that nobody else uses."""
        if self._locked_by_parent:
            raise StoreUnavailable(
                "this process was forked while another thread was writing to the same SQLite file, and "
                "inherited a lock that nobody here can release; nothing was written. Fork while no call "
                "is under way, or start processes anew (multiprocessing: spawn)"
            )
        self._check_files()
        try:
            writer = self._idle.pop()  # one operation, which no other thread can come between
        except IndexError:
            connection = self._engine.raw_connection()
            writer = _Writer(connection, self._transaction(connection.cursor()))
            if self._sqlite:
                writer.transaction.control("PRAGMA busy_timeout=0")
            else:
                _set_autocommit(connection, True)
        self._busy.add(id(writer))
        return writer

    def _check_files(self) -> None:
        if self._files is not None:
            self._files.check()

    def _begin(self, transaction: Transaction) -> None:
        """On SQLite this takes the write lock."""
        if self._queue is None:
            transaction.control("BEGIN")
            return
        deadline = time.monotonic() + sql_connections.WAIT
        entered = self._queue.enter(deadline)
        try:
            while True:
                try:
                    transaction.control("BEGIN IMMEDIATE")
                    break
                except sqlite3.OperationalError as error:
                    if not sql_connections.is_busy(error) or time.monotonic() > deadline:
                        raise
                    sqlite_queue.pause()
        finally:
            if entered:
                self._queue.leave()

    def _keep(self, writer: _Writer) -> None:
        """Its transaction ended."""
        self._busy.discard(id(writer))
        if self._keeps_writer and not self._idle:
            self._idle.append(writer)
        else:
            self._drop(writer, broken=False)

    def _drop(self, writer: _Writer | None, broken: bool) -> None:
        if writer is not None:
            self._busy.discard(id(writer))
            if self._sqlite and not broken:
                with suppress(Exception):  # else it is of no use to a reader, who waits in SQLite
                    writer.transaction.control(f"PRAGMA busy_timeout={1000 * sql_connections.WAIT}")
            _give_back(writer.connection, broken, ends_autocommit=not self._sqlite)

    def _failed(self, writer: _Writer | None, error: BaseException, committing: bool) -> Exception:
        """Give up the writer; returns the typed error."""
        typed = self._translated(error, None if writer is None else writer.connection, committing)
        self._drop(writer, broken=True)
        return typed

    def _transaction(self, cursor: Any) -> Transaction:
        return Transaction(cursor, self._engine.dialect, self._compiled)

    def _translated(
        self, error: BaseException, connection: PoolProxiedConnection | None, committing: bool
    ) -> Exception:
        if isinstance(error, PoolTimeout):
            return StoreUnavailable(
                f"every connection to the store has been in use for {sql_connections.PATIENCE} s; "
                "nothing was written. Try again later, or allow more connections"
            )
        cause: Any = getattr(error, "orig", None) or error
        driver = None if connection is None else connection.dbapi_connection
        lost = driver is not None and self._engine.dialect.is_disconnect(cause, driver, None)
        if lost or getattr(cause, "sqlstate", None) == sql_errors.READ_ONLY:
            self._engine.dispose()  # what killed one connection killed the idle ones, too
        return sql_errors.translated(cause, lost, committing, self.url.database)

    def after_fork(self) -> None:
        """Leave the parent's connections to the parent."""
        self._locked_by_parent = self._locked_by_parent or (self._sqlite and bool(self._busy))
        self._idle, self._busy = [], set()
        if self._queue is not None:
            self._queue.after_fork()
        if self._files is not None:
            self._files.after_fork()
        self._engine.dispose(close=False)

    def close(self) -> None:
        while self._idle:
            self._drop(self._idle.pop(), broken=False)
        if self._queue is not None:
            self._queue.close()
        self._engine.dispose()

    def __repr__(self) -> str:
        return f"Store({self.url.render_as_string(hide_password=True)!r})"


def _set_autocommit(connection: PoolProxiedConnection, on: bool) -> None:
    driver: Any = connection.driver_connection  # psycopg's
    driver.autocommit = on


def _give_back(
    connection: PoolProxiedConnection | None, broken: bool, ends_autocommit: bool = False
) -> None:
    """Give a connection back to the pool, which rolls back; drop one that is of no more use."""
    if connection is None or not connection.is_valid:
        return
    with suppress(Exception):  # it is being given up because something is wrong with it
        connection.rollback()  # SQLite keeps the lock of a connection that is closed in a transaction
        if ends_autocommit and not broken:
            _set_autocommit(connection, False)
    with suppress(Exception):
        if broken:
            connection.invalidate()
        else:
            connection.close()
