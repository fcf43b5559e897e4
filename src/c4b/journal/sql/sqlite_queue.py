"""Writers of one SQLite file wait in a queue, so that none of them is overtaken for long.

SQLite has no queue: a writer that finds the file locked sleeps and tries again, and whoever tries in the
right moment goes first, which is mostly the one that has just released the lock. So there is a second
lock in front of SQLite's, of a file beside the database, and a writer holds it only while it waits for
SQLite's. The one that waits there is next: nobody else can try before it.

The queue only orders writers. Where it cannot be used, they wait as SQLite makes them.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

TRIES = (0.0003, 0.001)
"""Least and most seconds between two tries to get a lock."""


class SQLiteQueue:
    """The queue of one process; its threads line up in it, too."""

    def __init__(self, database: str) -> None:
        self._path = f"{os.path.realpath(database)}-queue"  # where SQLite has its files, too
        self._file: int | None = None
        self._usable = fcntl is not None
        self._turn = threading.Lock()

    def enter(self, deadline: float) -> bool:
        """Wait until this writer is next; False if it is not by the ``deadline``."""
        turn = self._turn
        if not turn.acquire(blocking=False) and not turn.acquire(
            timeout=max(deadline - time.monotonic(), 0.0)
        ):
            return False
        try:
            self._line_up(deadline)
        except BaseException:
            self._turn.release()
            raise
        return True

    def _line_up(self, deadline: float) -> None:
        """Wait for the other processes."""
        while self._usable:
            try:
                if self._file is None:
                    self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    break
                pause()
            except OSError:
                self._usable = False

    def leave(self) -> None:
        """Let the next one wait for SQLite's lock."""
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        except OSError:
            pass
        except BaseException:
            self.close()  # which unlocks it, too
            raise
        finally:
            self._turn.release()

    def after_fork(self) -> None:
        """A child must not share the parent's place."""
        self.close()
        self._turn = threading.Lock()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)


def pause() -> None:
    """Between two tries."""
    time.sleep(random.uniform(*TRIES))
