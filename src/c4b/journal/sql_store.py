"""Transactions on SQLite and PostgreSQL.

The two differ in how a connection is prepared and how a transaction begins (here), in whether one
statement can write to two tables (``Store.one_statement``), and in how tables are made and locked
(``sql_schema``). Whatever a driver raises leaves here as ``StoreUnavailable`` or ``JournalCorrupt``.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Dialect,
    Engine,
    PoolProxiedConnection,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from c4b.errors import InvalidInput, JournalCorrupt, StoreUnavailable
from c4b.journal import sqlite_queue
from c4b.journal.backend import KnownRequest, LostBeforeCommit, Unacknowledged
from c4b.journal.sqlite_files import SQLiteFiles
from c4b.journal.sqlite_queue import SQLiteQueue

if TYPE_CHECKING:
    from c4b.journal.prepared_statement import PreparedStatement

WAIT = 30
"""Seconds to wait for another writer before giving up."""
PATIENCE = 10
"""Seconds to wait for a connection where their number is limited."""
ENOUGH = 4
"""Connections of which one may be kept for the next writer: preparing one takes as long as a commit."""
_WRITES = "c4b_writes"
_UNSURE = ("08", "57", "40003")
"""PostgreSQL's states that leave open whether a commit happened."""
_READ_ONLY = "25006"
"""PostgreSQL's state for a session that may only read, also after the server itself may write again."""
_NO_SUCH_CHARACTER = "22P05"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


Compiled = tuple[str, dict[str, Any], Callable[[dict[str, Any]], tuple[Any, ...]] | None]
"""A statement's text, the values that are fixed in it, and what puts values in the order of the text;
None for a driver that takes them by name."""


class Transaction:
    """Statements inside one transaction.

    They are SQLAlchemy Core, compiled once for the store's dialect and given to the driver directly,
    because Core's own execution costs several times what SQLite's does.
    """

    def __init__(self, cursor: Any, dialect: Dialect, compiled: dict[Any, Compiled]) -> None:
        self._cursor = cursor
        self.dialect = dialect
        self._compiled = compiled
        self.control: Callable[[str], object] = cursor.execute
        """BEGIN, COMMIT, ROLLBACK or a setting."""

    def one(self, statement: Any, values: dict[str, Any]) -> Any:
        """The first row or None."""
        self.run(statement, values)
        return self._cursor.fetchone()

    def all(self, statement: Any, values: dict[str, Any]) -> list[Any]:
        self.run(statement, values)
        rows: list[Any] = self._cursor.fetchall()
        return rows

    def run(self, statement: Any, values: dict[str, Any]) -> None:
        text, constants, in_order = self._compiled.get(statement) or self._compile(statement)
        if constants:
            values = {**constants, **values}
        self._cursor.execute(text, values if in_order is None else in_order(values))

    def run_ready(self, statement: Any, values: Any) -> int:
        """The same with values as the driver takes them, by name or in the order in which the statement's
        text has them; returns how many rows it wrote."""
        self._cursor.execute((self._compiled.get(statement) or self._compile(statement))[0], values)
        written: int = self._cursor.rowcount
        return written

    def run_many(self, statement: Any, values: list[dict[str, Any]]) -> None:
        text, _, in_order = self._compiled.get(statement) or self._compile(statement)
        self._cursor.executemany(text, values if in_order is None else [*map(in_order, values)])

    def copy(self, command: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Rows as one stream, where the server takes such a one."""
        with self._cursor.copy(command) as stream:
            stream.set_types(types)
            for row in rows:
                stream.write_row(row)

    def all_in(self, statement: Any, values: dict[str, Any]) -> list[Any]:
        """As ``all``, for a statement with a list of values, whose text depends on the list's length."""
        made = statement.compile(dialect=self.dialect)
        state = made.construct_expanded_state(values)
        self._cursor.execute(
            state.statement, state.parameters if made.positiontup is None else state.positional_parameters
        )
        rows: list[Any] = self._cursor.fetchall()
        return rows

    def _compile(self, statement: Any) -> Compiled:
        made = statement.compile(dialect=self.dialect)
        constants = {key: value for key, value in made.params.items() if value is not None}
        in_order = None if made.positiontup is None else _picker(made.positiontup)
        self._compiled[statement] = str(made), constants, in_order
        return self._compiled[statement]


def _picker(names: Sequence[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What takes the values of these names from a dictionary, in this order."""
    return itemgetter(*names) if len(names) > 1 else lambda values: tuple(values[name] for name in names)


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
        self.url = _checked(url)
        self._engine = _engine(self.url, connections)
        self._errors = (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error, OSError, UnicodeError)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self.one_statement = not self._sqlite
        """Whether a statement can write to two tables."""
        self._queue = SQLiteQueue(self.url.database or "") if self._sqlite else None
        self._files = None
        if self._sqlite:
            has_log = "immutable" not in self._engine.url.query  # see _is_fixed
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
                connection.execution_options(**{_WRITES: write}).begin()
                yield connection
                connection.commit()
        except self._errors as error:
            raise self._translated(error, None, committing=False) from error

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that writes nothing and waits for no writer; any thread, any number at once."""
        connection = None
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
            from c4b.journal.prepared_statement import PreparedStatement  # noqa: PLC0415 (not for SQLite)

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
                connection.driver_connection.autocommit = True  # type: ignore[union-attr]  # psycopg's
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
        deadline = time.monotonic() + WAIT
        entered = self._queue.enter(deadline)
        try:
            while True:
                try:
                    transaction.control("BEGIN IMMEDIATE")
                    break
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > deadline:
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
                    writer.transaction.control(f"PRAGMA busy_timeout={1000 * WAIT}")
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
                f"every connection to the store has been in use for {PATIENCE} s; nothing was written. "
                "Try again later, or allow more connections"
            )
        cause: Any = getattr(error, "orig", None) or error
        driver = None if connection is None else connection.dbapi_connection
        lost = driver is not None and self._engine.dialect.is_disconnect(cause, driver, None)
        if lost or getattr(cause, "sqlstate", None) == _READ_ONLY:
            self._engine.dispose()  # what killed one connection killed the idle ones, too
        return _translated(cause, lost, committing)

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


def _give_back(
    connection: PoolProxiedConnection | None, broken: bool, ends_autocommit: bool = False
) -> None:
    """Give a connection back to the pool, which rolls back; drop one that is of no more use."""
    if connection is None or not connection.is_valid:
        return
    with suppress(Exception):  # it is being given up because something is wrong with it
        connection.rollback()  # SQLite keeps the lock of a connection that is closed in a transaction
        if ends_autocommit and not broken:
            connection.driver_connection.autocommit = False  # type: ignore[union-attr]  # psycopg's
    with suppress(Exception):
        if broken:
            connection.invalidate()
        else:
            connection.close()


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


def _engine(url: URL, connections: int | None) -> Engine:
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
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, True)
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


def _translated(cause: BaseException, lost: bool, committing: bool) -> Exception:
    message = " ".join(str(cause).split()) or type(cause).__name__
    code = getattr(cause, "sqlite_errorcode", None)
    state = getattr(cause, "sqlstate", None) or ""
    damaged = code is not None and code & 0xFF in _DAMAGED
    if (code or 0) & 0xFF == sqlite3.SQLITE_NOTADB:
        return JournalCorrupt(
            f"{message}, or its first page is damaged; check the path, or restore the file from a backup"
        )
    if (
        damaged
        or state in ("XX001", "XX002")
        or "decode to UTF-8" in message
        or isinstance(cause, UnicodeError)
    ):
        return JournalCorrupt(f"the store is damaged ({message}); restore it from a backup")
    if (code or 0) & 0xFF == sqlite3.SQLITE_CONSTRAINT or state.startswith("23"):
        if "request" in message:  # the only unique thing of that name
            return KnownRequest(message)
        return JournalCorrupt(f"the store contradicts its journal ({message}); run an audit")
    if committing and (not state or state.startswith(_UNSURE)):
        return Unacknowledged(
            f"{message}; the commit was not acknowledged: it was recorded or it was not, never half. "
            "Repeat the call with the same request_id to learn which"
        )
    if lost:
        return LostBeforeCommit(f"{message}; nothing was written, try again")
    if state == _NO_SUCH_CHARACTER:
        message += "; the database must have ENCODING 'UTF8' for texts like this"
    return StoreUnavailable(f"{message}; nothing was written")
