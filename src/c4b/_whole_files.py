"""Files that are there as a whole or not at all, also after a full disk or a loss of power."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NUMBER_IN_TEXT = re.compile(r"\(os error (\d+)\)")
"""How Polars reports an error of the system, as text in an error of its own."""
_NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""What a file system says that syncs files only, as some over a network, and a folder without `r`."""


@contextmanager
def written_whole(target: Path, durably: bool = False) -> Iterator[Path]:
    """Yield the path of a draft. It takes the place of ``target`` if the block ends well, and is removed
    if not: what a full disk needs least is half a file. Errors of the system are ``OSError``.

    A link stays one, and who may read the file is as before. durably: return once the file is on the disk
    under its name.
    """
    target = Path(os.path.realpath(target))
    draft = target.with_name(f".c4b-{secrets.token_hex(8)}.tmp")  # nobody else's
    mode = None
    try:
        if target.is_file():
            draft.touch(0o600)
            mode = _taken_over(target.stat(), draft)
            draft.chmod(mode | 0o600)
        yield draft
        if durably:
            _sync(draft)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
        if durably and os.name == "posix":
            _sync_name(target)
    except Exception as error:
        number = _NUMBER_IN_TEXT.search(str(error))
        if number is None or isinstance(error, OSError):
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(target)) from error
    finally:
        draft.unlink(missing_ok=True)


def _taken_over(before: os.stat_result, draft: Path) -> int:
    """Give the draft the owner and the group of the file that was there before, as far as this user may.
    Returns the rights that it is to have: none of the group's for another group."""
    mode = stat.S_IMODE(before.st_mode)
    if os.name == "posix":
        for owner, group in ((before.st_uid, -1), (-1, before.st_gid)):
            with suppress(OSError):  # not this user's to give away, or nothing that the file system knows
                os.chown(draft, owner, group)
        if draft.stat().st_gid != before.st_gid:
            mode &= ~stat.S_IRWXG
    return mode


def _sync_name(target: Path) -> None:
    try:
        _sync(target.parent, os.O_RDONLY)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise
        _sync(target)  # the next best: most file systems take the name along


def _sync(path: Path, flags: int = os.O_RDWR) -> None:
    """Windows syncs only what is open for writing."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
