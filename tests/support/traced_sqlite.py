"""What SQLite does to its files: every write, truncation, sync and removal, in order.

SQLite reaches files by functions that a program may replace (its VFS). Here they are replaced in the
SQLite that Python's ``sqlite3`` uses, by functions which write down what they are asked and ask the
original. So the trace is of the real store on a real file.
"""

from __future__ import annotations

import _sqlite3
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_Int, _Long, _Pointer, _Text = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
_Open = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Pointer, _Int, _Pointer)
_Delete = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int)
_Write = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int, _Long)
_Truncate = ctypes.CFUNCTYPE(_Int, _Pointer, _Long)
_Sync = ctypes.CFUNCTYPE(_Int, _Pointer, _Int)

_CREATE, _LOGS = 0x4, 0x800 | 0x4000 | 0x80000
"""Flags of files that may be made, and of journals and logs. The first sync of such a file also syncs its
folder (``UNIXFILE_DIRSYNC`` in SQLite's os_unix.c)."""


class _FileMethods(ctypes.Structure):
    """``sqlite3_io_methods``; what is not traced is only passed on."""

    _fields_ = (
        ("iVersion", _Int),
        ("xClose", _Pointer),
        ("xRead", _Pointer),
        ("xWrite", _Write),
        ("xTruncate", _Truncate),
        ("xSync", _Sync),
        ("others", _Pointer * 13),
    )


class _File(ctypes.Structure):
    """``sqlite3_file``"""

    _fields_ = (("methods", ctypes.POINTER(_FileMethods)),)


class _Vfs(ctypes.Structure):
    """``sqlite3_vfs``"""

    _fields_ = (
        ("iVersion", _Int),
        ("szOsFile", _Int),
        ("mxPathname", _Int),
        ("pNext", _Pointer),
        ("zName", _Text),
        ("pAppData", _Pointer),
        ("xOpen", _Open),
        ("xDelete", _Delete),
        ("others", _Pointer * 14),
    )


class Event(NamedTuple):
    kind: str
    """``write``, ``truncate``, ``sync``, ``delete``; or what the caller of ``Trace.mark`` says."""
    path: str
    place: int = 0
    """Where it was written, or the size that is left. Of ``sync`` and ``delete``: 1 if the folder was
    synced, too, with its list of files."""
    content: bytes = b""


class Trace:
    """The events of all files that are opened while it is on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._paths: dict[int, str] = {}
        self._syncs_folder: set[int] = set()
        library = ctypes.CDLL(_sqlite3.__file__)
        self._register, self._unregister = library.sqlite3_vfs_register, library.sqlite3_vfs_unregister
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._register.argtypes, self._unregister.argtypes = (_Pointer, _Int), (_Pointer,)
        self._original = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._original.contents)
        self._vfs.zName = b"traced"
        self._vfs.xOpen, self._vfs.xDelete = _Open(self._open), _Delete(self._delete)
        self._methods: dict[int, _FileMethods] = {}

    def mark(self, kind: str) -> None:
        """Add an event of the caller's own."""
        self.events.append(Event(kind, ""))

    @contextmanager
    def on(self) -> Iterator[Trace]:
        """Files must be closed when the block ends."""
        self._register(ctypes.addressof(self._vfs), 1)
        try:
            yield self
        finally:
            self._unregister(ctypes.addressof(self._vfs))
            self._register(ctypes.cast(self._original, _Pointer), 1)

    def _open(self, vfs: int, path: int | None, file: int, flags: int, out: int) -> int:
        """SQLite keeps the pointer ``path``, so the original gets the same."""
        code: int = self._original.contents.xOpen(vfs, path, file, flags, out)
        opened = _File.from_address(file)
        if code == 0 and opened.methods and path is not None:
            self._paths[file] = ctypes.string_at(path).decode()
            if flags & _CREATE and flags & _LOGS:
                self._syncs_folder.add(file)
            opened.methods = ctypes.pointer(self._traced(opened.methods))
        return code

    def _delete(self, vfs: int, path: int, syncs_folder: int) -> int:
        code: int = self._original.contents.xDelete(vfs, path, syncs_folder)
        if code == 0:
            self.events.append(Event("delete", ctypes.string_at(path).decode(), syncs_folder))
        return code

    def _traced(self, methods: ctypes._Pointer[_FileMethods]) -> _FileMethods:
        """A copy of the file's functions with those that are traced in their place."""
        address = ctypes.addressof(methods.contents)
        if address in self._methods:
            return self._methods[address]
        traced, original = _FileMethods.from_buffer_copy(methods.contents), methods.contents

        def write(file: int, content: int, size: int, place: int) -> int:
            code: int = original.xWrite(file, content, size, place)
            if code == 0:
                written = ctypes.string_at(content, size)
                self.events.append(Event("write", self._paths[file], place, written))
            return code

        def truncate(file: int, size: int) -> int:
            code: int = original.xTruncate(file, size)
            if code == 0:
                self.events.append(Event("truncate", self._paths[file], size))
            return code

        def sync(file: int, flags: int) -> int:
            code: int = original.xSync(file, flags)
            if code == 0:
                self.events.append(Event("sync", self._paths[file], int(file in self._syncs_folder)))
                self._syncs_folder.discard(file)
            return code

        traced.xWrite, traced.xTruncate, traced.xSync = _Write(write), _Truncate(truncate), _Sync(sync)
        self._methods[address] = traced
        return traced
