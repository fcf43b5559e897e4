"""Files that are there as a whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from c4b import _whole_files
from c4b._whole_files import LEFT_AFTER, written_whole

FULL = """
import os, pathlib, resource, sys
import numpy as np, polars as pl
from c4b._whole_files import written_whole
target = pathlib.Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with written_whole(target) as draft:
        pl.DataFrame({"x": np.random.default_rng(0).random(10_000)}).write_parquet(draft)
except OSError as error:
    print(error.strerror, error.filename == str(target))
"""


def test_half_a_file_is_removed_and_the_error_is_the_systems(tmp_path: Path) -> None:
    target = tmp_path / "table.parquet"
    target.write_text("of yesterday")
    said = subprocess.check_output([sys.executable, "-c", FULL, str(target)], text=True)
    assert said == "File too large True\n"
    assert os.listdir(tmp_path) == [target.name]
    assert target.read_text() == "of yesterday"


def test_other_errors_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "a") as draft:
        draft.write_text(str(1 / 0))
    assert os.listdir(tmp_path) == []


def test_a_durable_file_has_its_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, sync, synced = tmp_path / "a", os.fsync, []

    def watched(descriptor: int) -> None:
        sync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, target.exists()))

    monkeypatch.setattr(os, "fsync", watched)
    with written_whole(target, durably=True) as draft:
        draft.write_text("whole")
    assert synced == [(target.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_folder_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some file systems over a network: the file is there, so nobody is told that it is not."""
    target, sync, synced = tmp_path / "a", os.fsync, []

    def of_files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(descriptor)
        synced.append(target.exists())

    monkeypatch.setattr(os, "fsync", of_files_only)
    with written_whole(target, durably=True) as draft:
        draft.write_text("whole")
    assert synced == [False, True]


def test_a_folder_that_fails_to_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"), written_whole(tmp_path / "a", True) as draft:
        draft.write_text("whole")


def test_files_are_synced_as_windows_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_files_to_write(descriptor: int) -> None:
        writes = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_RDWR | os.O_WRONLY)
        if not (writes or stat.S_ISDIR(os.fstat(descriptor).st_mode)):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(os, "fsync", of_files_to_write)
    with written_whole(tmp_path / "a", durably=True) as draft:
        draft.write_text("whole")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o440])
def test_who_may_read_a_file_is_as_before(mode: int, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    target.chmod(mode)
    with written_whole(target, durably=True) as draft:
        draft.write_text("new")
        assert not draft.stat().st_mode & 0o777 & ~(mode | 0o600)
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == mode


def test_owner_and_group_are_as_before(tmp_path: Path) -> None:
    """Else rights that are kept would be those of others: root saves what a service must read."""
    root = os.geteuid() == 0
    owner, group = (12345, 54321) if root else (os.geteuid(), os.getgroups()[-1])
    target = tmp_path / "a"
    target.write_text("old")
    target.chmod(0o640)
    os.chown(target, owner, group)
    with written_whole(target) as draft:
        draft.write_text("new")
        assert (draft.stat().st_uid, draft.stat().st_gid) == (owner, group)
    status = target.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (owner, group, 0o640)
    assert target.read_text() == "new"


def test_another_group_may_not_read_what_the_first_one_could(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user who is not in the file's group."""
    root, change = os.geteuid() == 0, os.chown

    def of_owners_only(path: Path, owner: int, group: int) -> None:
        change(path, owner, group if group == -1 else tmp_path.stat().st_gid)
        if group != -1:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    target = tmp_path / "a"
    target.write_text("old")
    change(target, -1, 54321 if root else os.getgroups()[-1])
    target.chmod(0o664)
    kept = target.stat().st_gid == tmp_path.stat().st_gid
    monkeypatch.setattr(os, "chown", of_owners_only)
    with written_whole(target) as draft:
        draft.write_text("new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == (0o664 if kept else 0o604)


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    link.symlink_to(real)
    for text in ("first", "second"):  # the first time it points to nothing
        with written_whole(link) as draft:
            draft.write_text(text)
        assert link.is_symlink()
        assert real.read_text() == text
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["real"]


KILLED = """
import os, pathlib, signal, sys
from c4b._whole_files import written_whole
with written_whole(pathlib.Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def left_by_a_killed_process(target: Path, age: float = LEFT_AFTER + 60.0) -> Path:
    """Its draft, last changed so many seconds ago."""
    before = set(target.parent.iterdir())
    subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    (draft,) = set(target.parent.iterdir()) - before
    os.utime(draft, (time.time() - age,) * 2)
    return draft


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "a"
    left, young = left_by_a_killed_process(target), left_by_a_killed_process(target, LEFT_AFTER - 60.0)
    of_another = left_by_a_killed_process(tmp_path / "b")
    others = left.with_name(f"{left.name}.mine")
    others.write_text("whose name only looks like it")
    os.utime(others, (0.0, 0.0))
    with written_whole(target) as draft:
        draft.write_text("whole")
    assert {*tmp_path.iterdir()} == {target, young, of_another, others}


def test_a_draft_of_a_process_that_lives_stays(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with written_whole(target) as first:
        first.write_text("first")
        os.utime(first, (0.0, 0.0))
        with written_whole(target) as second:
            second.write_text("second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"


@pytest.mark.parametrize("processes", ["of another container", ""])
def test_a_draft_of_a_process_that_nobody_sees_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    left = left_by_a_killed_process(tmp_path / "a")
    monkeypatch.setattr(_whole_files, "_processes", lambda: processes)
    with written_whole(tmp_path / "a") as draft:
        draft.write_text("whole")
    assert left.read_text() == "half"
