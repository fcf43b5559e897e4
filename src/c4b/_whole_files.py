"""Files that are there as a whole or not at all, also after a full disk or a loss of power."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NUMBER_IN_TEXT = re.compile(r"\(os error (\d+)\)")
"""How Polars reports an error of the system, as text in an error of its own."""
_NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""What a file system says that syncs files only, as some over a network, and a folder without `r`."""
LEFT_AFTER = 3600.0
"""Seconds from its last change on in which a draft is nobody's leftover."""
_BOOT, _NAMESPACE = Path("/proc/sys/kernel/random/boot_id"), "/proc/self/ns/pid"


@contextmanager
def written_whole(target: Path, durably: bool = False) -> Iterator[Path]:
    """Yield the path of a draft. It takes the place of ``target`` if the block ends well, and is removed
    if not: what a full disk needs least is half a file. Errors of the system are ``OSError``.

    A link stays one, and who may read the file is as before. Drafts of ``target`` that killed processes
    left are removed. durably: return once the file is on the disk under its name.
    """
    target = Path(os.path.realpath(target))
    _remove_leftovers(target)
    draft = target.with_name(f"{_begin_of_name(target)}{os.getpid()}-{secrets.token_hex(8)}.tmp")
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


def _begin_of_name(target: Path) -> str:
    """Of drafts of ``target`` by processes that see each other's numbers."""
    about = f"{_processes()} {target.name}"
    return f".c4b-{hashlib.sha256(os.fsencode(about)).hexdigest()[:16]}-"


def _processes() -> str:
    """Names the processes among which a number belongs to one of them: those of one start of one machine,
    and of one container. Empty: nobody can say."""
    try:
        return f"{_BOOT.read_text()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""


def _remove_leftovers(target: Path) -> None:
    """Remove drafts of ``target`` whose process is gone. Those of other machines and containers stay."""
    if not _processes():
        return
    name = re.compile(rf"{re.escape(_begin_of_name(target))}(\d{{1,9}})-[0-9a-f]{{16}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as found:
        for entry in found:
            draft = name.fullmatch(entry.name)
            if draft and _is_gone(int(draft[1])) and _age(entry) > LEFT_AFTER:
                os.unlink(entry.path)


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return False


def _age(entry: os.DirEntry[str]) -> float:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime


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
