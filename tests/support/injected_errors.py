"""Raise an error at the n-th call that the package makes, of a Python function or of one in C."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

PACKAGE = "/src/c4b/"
SURE = ("release", "leave", "__exit__")
"""Calls that cannot fail: they give a lock back, or enter what does."""
DRIVER = ("execute", "executemany", "fetchone", "fetchall", "rollback", "close", "cursor")
"""Functions of the driver, which fail with an error of the driver."""


class Calls:
    """Counts the calls that code of the package makes; fails at number ``at``, once."""

    def __init__(self, kind: str, at: int | None = None) -> None:
        self.kind, self.at, self.count = kind, at, 0
        self.where: str | None = None

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_call"):
            return
        caller = frame.f_back if event == "call" else frame
        if caller is None or PACKAGE not in caller.f_code.co_filename:
            return
        name = frame.f_code.co_name if event == "call" else getattr(argument, "__name__", "?")
        if name in SURE:
            return
        if self.kind == "driver" and not (event == "c_call" and name in DRIVER):
            return
        self.count += 1
        if self.at is not None and self.count == self.at:
            file = caller.f_code.co_filename.partition(PACKAGE)[2]
            self.where = f"{file}:{caller.f_lineno} {caller.f_code.co_name} -> {name}"
            raise self._error()

    def _error(self) -> Exception:
        if self.kind == "driver":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            return error
        return MemoryError() if self.kind == "memory" else OSError(5, "Input/output error")


@contextmanager
def watched(calls: Calls) -> Iterator[None]:
    sys.setprofile(calls)
    try:
        yield
    finally:
        sys.setprofile(None)
