"""Files of an SQLite store that are removed or replaced while a process has them open."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

import pytest

from c4b import Deployment
from c4b.errors import JournalCorrupt, StoreUnavailable
from support.shop_world import BASELINE, create, sql, store_of, trade


@pytest.mark.parametrize("is_fresh", [True, False], ids=["new folder", "folder at rest"])
@pytest.mark.parametrize("lost", ["shop.db", "shop.db-wal", "shop.db-shm"])
def test_nothing_is_decided_in_a_file_that_nobody_finds_again(
    tmp_path: Path, lost: str, is_fresh: bool
) -> None:
    """Once the file is back, the same object goes on."""
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep:
        trade(dep, 10)
        if not is_fresh:
            os.utime(tmp_path, (0, 0))
        before = dep.state()
        (tmp_path / lost).rename(tmp_path / "elsewhere")
        for call in (lambda: dep.decide([], BASELINE, request_id="r"), dep.state, dep.audit):
            with pytest.raises(StoreUnavailable, match=f"{lost} was removed or replaced"):
                call()
        assert not (tmp_path / lost).exists()  # no new one was made
        (tmp_path / "elsewhere").rename(tmp_path / lost)
        assert dep.state() == before
        dep.decide([], BASELINE, request_id="r")
        assert dep.audit().clean


def test_a_folder_whose_time_is_in_whole_seconds(tmp_path: Path) -> None:
    """On some file systems a name can change within a second, and the folder's time stays the same."""
    second = 1_000_000_000
    before = (time.time_ns() // second - 1) * second
    with create(f"sqlite:///{tmp_path}/shop.db") as dep:
        trade(dep, 5)
        os.utime(tmp_path, ns=(before, before))
        dep.state()
        (tmp_path / "shop.db-wal").rename(tmp_path / "elsewhere")
        os.utime(tmp_path, ns=(before, before))
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            dep.decide([], BASELINE)


def test_a_removed_log_is_in_the_file_after_an_orderly_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep:
        trade(dep, 10)
        before = dep.state()
        for ending in ("wal", "shm"):
            (tmp_path / f"shop.db-{ending}").unlink()
        with pytest.raises(StoreUnavailable):
            dep.decide([], BASELINE)
    with Deployment.open(url, "shop") as dep:
        assert dep.state() == before
        assert dep.audit().clean


def test_a_restored_file_is_not_mixed_with_the_open_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(f"sqlite:///{tmp_path}/old.db") as old:
        trade(old, 5)
    with create(url) as dep:
        trade(dep, 10)
        os.utime(tmp_path, (0, 0))
        dep.state()
        os.replace(tmp_path / "old.db", tmp_path / "shop.db")
        with pytest.raises(StoreUnavailable, match="replaced"):
            dep.decide([], BASELINE)


def test_a_log_that_came_and_went_between_two_connections(tmp_path: Path) -> None:
    """SQLite removes the log with the last connection, and makes another one for the next."""
    with create(f"sqlite:///{tmp_path}/shop.db") as dep:
        trade(dep, 5)
        store_of(dep).close()
        assert not (tmp_path / "shop.db-wal").exists()
        trade(dep, 5, seed=1)
        assert dep.audit().clean


def test_a_folder_that_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with create(f"sqlite:///{tmp_path}/here/shop.db") as dep:
        trade(dep, 5)
        os.utime(tmp_path / "here", (0, 0))
        dep.state()
        (tmp_path / "here").rename(tmp_path / "elsewhere")
        with pytest.raises(StoreUnavailable, match="removed"):
            dep.decide([], BASELINE)
        shutil.copytree(tmp_path / "elsewhere", tmp_path / "here")
        with pytest.raises(StoreUnavailable, match="replaced"):
            dep.decide([], BASELINE)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_log_that_is_cut_short(tmp_path: Path, share: float) -> None:
    """SQLite would write on behind the hole, and copy zeros over the database when it is closed."""
    url, log = f"sqlite:///{tmp_path}/shop.db", tmp_path / "shop.db-wal"
    with create(url) as dep:
        trade(dep, 10)
        emptied(tmp_path / "shop.db")
        kept = dep.state().seq
        trade(dep, 10, seed=1)
        os.truncate(log, int(share * log.stat().st_size))
        for call in (lambda: dep.decide([], BASELINE, request_id="r"), dep.state, dep.audit):
            with pytest.raises(JournalCorrupt, match=r"shop\.db-wal was cut short"):
                call()
    with Deployment.open(url, "shop") as dep:
        assert dep.state().seq >= kept
        assert dep.audit().clean


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_database_that_is_cut_short(tmp_path: Path, share: float) -> None:
    """Decisions went on, into the log, and the next start found a damaged file."""
    file = tmp_path / "shop.db"
    with create(f"sqlite:///{file}") as dep:
        trade(dep, 10)
        emptied(file)
        trade(dep, 3, seed=1)
        os.truncate(file, int(share * file.stat().st_size) // 4096 * 4096)
        for call in (lambda: dep.decide([], BASELINE, request_id="r"), dep.state, dep.audit):
            with pytest.raises(JournalCorrupt, match=r"shop\.db was cut short or written over"):
                call()
        assert (tmp_path / "shop.db-wal").exists()


def test_a_smaller_backup_written_over_the_database(tmp_path: Path) -> None:
    """By ``cp``, which keeps the file."""
    file = tmp_path / "shop.db"
    with create(f"sqlite:///{file}") as dep:
        emptied(file)
        shutil.copyfile(file, tmp_path / "backup.db")
        for n in range(3):
            trade(dep, 30, seed=n)
            emptied(file)
        trade(dep, 3)
        shutil.copyfile(tmp_path / "backup.db", file)
        with pytest.raises(JournalCorrupt, match="written over"):
            dep.decide([], BASELINE)


def test_a_database_that_is_made_smaller_by_vacuum(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with create(f"sqlite:///{file}") as dep:
        trade(dep, 10)
        sql(f"sqlite:///{file}", "CREATE TABLE much AS SELECT randomblob(1000000)")
        emptied(file)
        trade(dep, 3, seed=1)
        before = file.stat().st_size
        sql(f"sqlite:///{file}", "DROP TABLE much")
        connection = sqlite3.connect(file)
        connection.execute("VACUUM")
        connection.close()
        emptied(file)
        assert file.stat().st_size < before
        trade(dep, 3, seed=2)
        assert dep.audit().clean


def test_a_log_that_a_checkpoint_empties(tmp_path: Path) -> None:
    """Anybody may ask SQLite for that, before a copy of the file for example."""
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep, Deployment.open(url, "shop") as other:
        for n in range(5):
            trade(dep, 3, seed=n)
            emptied(tmp_path / "shop.db")
            trade(other, 1, seed=n)
        assert other.audit().clean
        assert dep.state() == other.state()


def emptied(database: Path) -> None:
    """Have SQLite move its log into the file."""
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    connection.close()
    assert database.with_name(f"{database.name}-wal").stat().st_size == 0


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(StoreUnavailable, match=r"nowhere/shop\.db: unable to open.*folder must exist"):
        create(f"sqlite:///{tmp_path}/nowhere/shop.db")
    with pytest.raises(JournalCorrupt, match=r"text\.db: file is not a database"):
        create(f"sqlite:///{tmp_path}/text.db")


def test_a_process_that_may_open_no_more_files(tmp_path: Path) -> None:
    """SQLite says the same as of a folder that does not exist."""
    url, held = f"sqlite:///{tmp_path}/shop.db", []
    create(url).close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, limits[1]))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open("/", os.O_RDONLY))
        with pytest.raises(StoreUnavailable, match=r"unable to open.*ulimit -n"):
            Deployment.open(url, "shop")
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
