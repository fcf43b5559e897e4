"""An entry that SQLite appends by one statement, and what it says when it cannot."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from c4b.errors import StoreUnavailable
from c4b.journal.backend import KnownRequest
from c4b.journal.backend_registry import open_backend
from c4b.journal.entries import CREATED, DECIDED, GENESIS, Entry
from c4b.journal.sql_backend import SqlBackend

FIRST = Entry(0, CREATED, None, None, 1, b"first", GENESIS)
SECOND = Entry(1, DECIDED, None, "a", 2, b"second", FIRST.hash())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def backend(path: Path) -> SqlBackend:
    backend = open_backend(f"sqlite:///{path}", create=True)
    assert isinstance(backend, SqlBackend)
    backend.create("shop", FIRST)
    return backend


def append(backend: SqlBackend, entry: Entry) -> bool:
    with backend.reading("shop") as journal:
        key = journal.head.journal
    return backend.append_if_head(key, entry, entry.hash())


def ends(backend: SqlBackend) -> list[Entry]:
    """All entries, if the head is where they end."""
    with backend.reading("shop") as journal:
        found = journal.range(0, 100, 100)
        assert (journal.head.seq, journal.head.hash) == (found[-1].seq, found[-1].hash())
    return found


def test_an_entry_that_continues_the_journal(backend: SqlBackend) -> None:
    assert append(backend, SECOND)
    assert ends(backend) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "other",
    [
        SECOND._replace(seq=2),
        SECOND._replace(seq=0),
        SECOND._replace(previous=SECOND.hash()),
        SECOND._replace(seq=2, previous=SECOND.hash()),
    ],
)
def test_one_that_does_not_leaves_nothing(backend: SqlBackend, other: Entry) -> None:
    assert not append(backend, other)
    assert ends(backend) == [FIRST]
    assert append(backend, SECOND)


def test_the_second_of_two_is_refused(backend: SqlBackend) -> None:
    assert append(backend, SECOND)
    assert not append(backend, SECOND._replace(payload=b"rival"))
    assert ends(backend) == [FIRST, SECOND]


def test_a_known_request_leaves_the_head(backend: SqlBackend) -> None:
    assert append(backend, SECOND)
    with pytest.raises(KnownRequest):
        append(backend, SECOND._replace(seq=2, previous=SECOND.hash()))
    assert ends(backend) == [FIRST, SECOND]


def test_an_entry_of_another_version_is_refused(backend: SqlBackend, path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("UPDATE c4b_schema SET version = 99")
    other.close()
    assert not backend.append_if_head(1, SECOND, SECOND.hash())


def test_the_file_has_neither_view_nor_trigger(backend: SqlBackend, path: Path) -> None:
    append(backend, SECOND)
    with sqlite3.connect(path) as other:
        kinds = {kind for (kind,) in other.execute("SELECT type FROM sqlite_master")}
    other.close()
    assert kinds == {"table", "index"}


def test_another_writer_is_waited_for(backend: SqlBackend, path: Path) -> None:
    """One that does not stand in the queue."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def later() -> None:
        time.sleep(0.2)
        other.execute("COMMIT")

    waiting = threading.Thread(target=later)
    waiting.start()
    assert append(backend, SECOND)
    waiting.join()
    other.close()
    assert ends(backend) == [FIRST, SECOND]


def test_what_fails_before_writing_says_so(
    backend: SqlBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c4b.journal.sql_store.WAIT", 0.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        append(backend, SECOND)
    other.execute("COMMIT")
    other.execute("ALTER TABLE c4b_journal RENAME TO elsewhere")
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        backend.append_if_head(1, SECOND, SECOND.hash())
    other.execute("ALTER TABLE elsewhere RENAME TO c4b_journal")
    other.close()
    assert append(backend, SECOND)
