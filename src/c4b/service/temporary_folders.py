"""Temporary folders. What a killed process left behind is removed when the next service starts.

A folder is locked as long as its process lives. Its number would not do: containers that share a folder
do not see each other's processes, and in a container every service is process 1.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

if os.name == "posix":
    import fcntl

_NAME = re.compile(r"c4b-(?:export|metrics)-\d+-\w+")
_locks: dict[Path, int] = {}
"""Descriptors of the folders of this process."""


def new_folder(purpose: str) -> Path:
    """An empty folder whose name says what it is for ("export", "metrics") and which process made it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"c4b-{purpose}-{os.getpid()}-"))
        descriptor = _locked(folder, wait=True)
        if descriptor is not None:
            _locks[folder] = descriptor
        if folder.exists():  # else it was taken for a leftover before it was locked, and removed
            return folder
        remove(folder)


def remove(folder: Path) -> None:
    """Remove the folder and what is in it; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if (descriptor := _locks.pop(folder, None)) is not None:
        os.close(descriptor)


def remove_leftovers() -> None:
    """Remove the folders of processes that are gone."""
    for path in Path(tempfile.gettempdir()).glob("c4b-*-*-*"):
        if _NAME.fullmatch(path.name) and (descriptor := _locked(path)) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)


def _locked(folder: Path, wait: bool = False) -> int | None:
    """A descriptor that holds the folder's lock; None: another one holds it, or nobody can say.

    wait: until nobody else holds it.
    """
    if os.name != "posix":
        return None
    descriptor = None
    with suppress(OSError):  # gone, another user's, no folder, or without locks
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return descriptor
    if descriptor is not None:
        os.close(descriptor)
    return None
