"""Whether the names of an SQLite store still stand for the files that this process has open.

A file that is removed or replaced stays open in the processes that use it. They would go on: decisions
would be committed to a file that nobody finds again, beside others who commit to the new one. SQLite
does not look. So every transaction here begins with a look at the database, its write-ahead log and the
memory by which processes share the log. A look takes time, and no name can change without the time of the
folder; so where that is the same as at the last look, and was not a fresh one then, one look is enough.
"""

from __future__ import annotations

import os
import time
from typing import Any

from sqlalchemy import Engine, event

from c4b.errors import StoreUnavailable

FRESH = 2_000_000_000
"""Nanoseconds in which a name may change once more and leave the folder's time: clocks are coarse."""
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
        event.listen(engine, "do_connect", self._before_connecting)
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "close", self._closed)

    def check(self) -> None:
        """Refuse to go on with files that have lost their names."""
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
            settled = time.time_ns() - folder[2] > FRESH
            self._unchanged = folder if settled else None

    def after_fork(self) -> None:
        """The parent's connections are not the child's."""
        self._open.clear()
        self._unchanged = None

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
