"""Whether the names of an SQLite store still stand for the files that this process has open.

A file that is removed or replaced stays open in the processes that use it. They would go on: decisions
would be committed to a file that nobody finds again, beside others who commit to the new one. SQLite
does not look. So every transaction here begins with a look at the database, its write-ahead log and the
memory by which processes share the log. A look takes time, and no name can change without the time of the
folder; so where that is the same as at the last look, and was not a fresh one then, one look is enough.

Nor does SQLite notice that somebody has cut its log short, as log rotation and people who need room do.
It would write on behind the hole, and at the end copy zeros over the database. The database itself may be
cut short, or ``cp`` may write an older copy over it and keep its identity: it is smaller then. Only
VACUUM makes it smaller in an orderly way, so SQLite is asked for what it thinks of a file that shrank.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
import weakref
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, event

from c4b.errors import JournalCorrupt, StoreUnavailable

FRESH, FRESH_IN_SECONDS = 50_000_000, 2_000_000_000
"""Nanoseconds in which a name may change once more and leave the folder's time, because clocks are
coarse: some ticks of the system, or two seconds on file systems that note whole seconds only."""
SECOND = 1_000_000_000
LOG_HEADER, FRAME_HEADER = 32, 24
"""Bytes of the log before its first frame, and of a frame before its page."""
_INDEX_HEADER = struct.Struct("=12xBxHI28x")
"""The beginning of the shared memory, as SQLite documents it: whether it is valid, the size of a page
(1: 65,536), and how many frames of the log are valid."""
_Identity = tuple[int, int] | None


class SQLiteFiles:
    """The files of one engine's connections. Those of the log may come and go while none is open."""

    def __init__(self, database: str, engine: Engine, has_log: bool, create: bool) -> None:
        """create: whether a file may be made where there is none."""
        self._given, self._create = database, create
        path = os.path.realpath(database)
        self._names = [path, f"{path}-wal", f"{path}-shm"] if has_log else [path]
        self._folder = os.path.dirname(path)
        self._unchanged: tuple[int, int, int] | None = None  # as the folder was when all was well
        self._known: list[_Identity] = []
        self._open: set[int] = set()
        self._bytes = 0  # of the database at the last look
        self._log: int | None = None  # the log, opened to see its size
        self._log_bytes = 0  # as it was at the last look
        self._close_log: Callable[[], object] = bool
        self._index: int | None = None  # the shared memory, where it was read
        event.listen(engine, "do_connect", self._before_connecting)
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "close", self._closed)

    def check(self) -> None:
        """Refuse to go on with files that have lost their names or their end."""
        self._check_names()
        if self._open:
            self._check_database()
        if self._log is not None:
            self._check_log(self._log)
        elif self._open and len(self._known) > 1 and self._known[1] is not None and os.name == "posix":
            self._log = os.open(self._names[1], os.O_RDONLY | os.O_CLOEXEC)
            self._close_log = weakref.finalize(self, os.close, self._log)

    def _check_database(self) -> None:
        size = os.stat(self._names[0]).st_size  # by its name: to close it would release SQLite's locks
        # SQLite must not be shown an empty one: it would remove the log
        if size < self._bytes and not (size and _is_sound(self._names[0])):
            raise JournalCorrupt(
                f"{self._names[0]} was cut short or written over while this process had it open; nothing "
                "was written. Stop all processes of the store, remove this file and those with -wal and "
                "-shm behind its name, and restore a backup"
            )
        self._bytes = size

    def _check_log(self, log: int) -> None:
        size = _size(log)
        if size < self._log_bytes and self._is_cut_short(log):
            raise JournalCorrupt(
                f"{self._names[1]} was cut short while this process had it open; nothing was written. "
                "The newest decisions were in it and nowhere else. Stop all processes of the store, and "
                "do as after restoring a backup: a deployment that lacks decisions must not go on"
            )
        self._log_bytes = size

    def _is_cut_short(self, log: int) -> bool:
        """Whether frames are missing that count. If not, a checkpoint has emptied the log."""
        if self._index is None:  # never closed: that would release the locks which SQLite has on the file
            self._index = os.open(self._names[2], os.O_RDONLY | os.O_CLOEXEC)
        while True:  # whoever empties the log says so first; whoever writes to it says so afterwards
            header = os.pread(self._index, _INDEX_HEADER.size, 0)
            size = _size(log)
            if header == os.pread(self._index, _INDEX_HEADER.size, 0):
                break
        is_valid, page, frames = _INDEX_HEADER.unpack(header)
        needed = LOG_HEADER + frames * (FRAME_HEADER + (65_536 if page == 1 else page))
        return bool(is_valid and frames and size < needed)

    def _check_names(self) -> None:
        folder = _stamp(self._folder)
        if folder is not None and folder == self._unchanged:
            return
        self._unchanged = None
        if not self._open:
            del self._known[1:]
        for n, known in enumerate(self._known):  # none before the first connection
            found = _identity(name := self._names[n])
            if known is None:
                self._known[n] = found  # the log of a new database, since its first transaction
            elif found != known:
                raise StoreUnavailable(
                    f"{name} was removed or replaced while this process had it open; nothing was "
                    "written. Put it back, or stop (SIGTERM) every process that uses the store, see that "
                    "the right file is there, and start again"
                )
        if folder is not None and None not in self._known and len(self._known) == len(self._names):
            changed = folder[2]
            settled = time.time_ns() - changed > (FRESH if changed % SECOND else FRESH_IN_SECONDS)
            self._unchanged = folder if settled else None

    def after_fork(self) -> None:
        """The parent's connections are not the child's."""
        self._open.clear()
        self._unchanged = None
        self._forget_log()

    def _before_connecting(self, *_: object) -> None:
        """A new connection would make a new file where there is none."""
        self.check()
        if not self._create and _identity(self._names[0]) is None:
            raise StoreUnavailable(f"{self._given}: no such file; create a deployment in it first")

    def _connected(self, connection: Any, _: object) -> None:
        self._open.add(id(connection))
        self._known = [_identity(name) for name in self._names]
        self._unchanged = None

    def _closed(self, connection: Any, _: object) -> None:
        self._open.discard(id(connection))
        self._unchanged = None
        if not self._open:
            self._forget_log()

    def _forget_log(self) -> None:
        self._close_log()
        self._bytes, self._log, self._log_bytes, self._index = 0, None, 0, None


def _is_sound(database: str) -> bool:
    """Whether SQLite finds all that belongs to it; takes long for a large one."""
    try:
        with closing(sqlite3.connect(f"file:{quote(database)}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _size(file: int) -> int:
    """By its end, not by ``os.fstat``: whoever asks Linux for a file's times makes the next write note
    them anew, and a commit then takes 10 % longer."""
    return os.lseek(file, 0, os.SEEK_END)


def _stamp(folder: str) -> tuple[int, int, int] | None:
    """Which folder it is, and when a name in it changed last; None: nobody can say, as on some file
    systems of Windows."""
    if os.name != "posix":
        return None
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _identity(name: str) -> _Identity:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino
