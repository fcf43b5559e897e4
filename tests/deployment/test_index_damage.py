"""Indexes are covered by no hash: a damaged or lost one is found, and no request is decided twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from c4b import Deployment
from c4b.deployment.transactions import recent_requests, snapshot
from c4b.errors import C4BError, JournalCorrupt
from c4b.journal.sql import sql_migration
from c4b.journal.sql.sql_schema import DEPLOYMENT
from support.shop_world import BASELINE, create, in_agreement, seen, sql, trade

REQUEST, SUBJECT = "c4b_journal_request", "c4b_journal_about"


def lose_a_cell(url: str, index: str, seq: int, deployment: int = 1) -> None:
    """Remove one entry from an index, behind the back of the store."""
    place = deployment * DEPLOYMENT + seq
    unique, column = ("UNIQUE", "request_id") if index == REQUEST else ("", "about")
    made = f"{unique} INDEX {index} ON c4b_journal (deployment, {column}) WHERE {column} IS NOT NULL"
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None) as connection:
            (right,) = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", [index]
            ).fetchone()
            connection.execute(f"DROP INDEX {index}")
            connection.execute(f"CREATE {made} AND place != {place}")
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", [right, index])
        connection.close()
        return
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text(f"ALTER INDEX {index} RENAME TO model_index"))
        connection.execute(text(f"CREATE {made} AND place != {place}"))
        predicate = "SELECT indpred FROM pg_index WHERE indexrelid = 'model_index'::regclass"
        connection.execute(
            text(f"UPDATE pg_index SET indpred = ({predicate}) WHERE indexrelid = '{index}'::regclass")
        )
        connection.execute(text("DROP INDEX model_index"))
    engine.dispose()


def numbers(url: str, column: str) -> list[int]:
    found = sql(url, f"SELECT seq FROM c4b_journal WHERE {column} IS NOT NULL ORDER BY seq")
    return [seq for (seq,) in found]


def again(dep: Deployment, ids: str, n: int) -> None:
    """The same request as in ``trade`` gets the same decision."""
    known = {r.request_id: r for r in dep.decisions(limit=1000)}[f"{ids}{n}"]
    rounds = dep.state().rounds
    made = dep.decide(known.candidates, known.baseline, request_id=f"{ids}{n}")
    assert made.id == known.decision.id
    assert dep.state().rounds == rounds


@pytest.mark.parametrize("snapshots", [10**6, 10], ids=["no snapshot", "snapshots"])
@pytest.mark.parametrize("running", [True, False])
def test_a_lost_cell_does_not_decide_twice(url: str, snapshots: int, running: bool) -> None:
    with create(url, snapshot_every=snapshots) as dep:
        trade(dep, 25, ids="r")
        lose_a_cell(url, REQUEST, numbers(url, "request_id")[7])
        if running:
            again(dep, "r", 7)
    with Deployment.open(url, "shop") as dep:
        again(dep, "r", 7)
        assert in_agreement(dep)


@pytest.mark.parametrize(("index", "column"), [(REQUEST, "request_id"), (SUBJECT, "about")])
def test_the_audit_finds_a_lost_cell(url: str, index: str, column: str) -> None:
    with create(url) as dep:
        trade(dep, 25, ids="r")
        assert dep.audit().clean
    lost = numbers(url, column)[7]
    lose_a_cell(url, index, lost)
    with Deployment.open(url, "shop") as dep:
        report = dep.audit()
        assert report.entry == lost
        assert "index" in str(report.finding)
    sql_migration.migrate(url)
    with Deployment.open(url, "shop") as dep:
        assert dep.audit().clean


def test_a_flipped_bit_in_any_copy_of_a_request_id(tmp_path: Path) -> None:
    """The entry's and the index's: a typed error or the right answer, never a second decision."""
    path = tmp_path / "shop.db"
    with create(f"sqlite:///{path}", snapshot_every=20) as dep:
        trade(dep, 30, ids="request-")
        known = dep.decisions(limit=1000)[17]
        rounds = dep.state().rounds
    sound = path.read_bytes()
    name = str(known.request_id).encode()
    places = [at for at in range(len(sound)) if sound.startswith(name, at)]
    assert len(places) >= 2
    damaged = tmp_path / "damaged.db"
    for place in places:
        for bit in np.random.default_rng(place).permutation(8 * len(name))[:6]:
            content = bytearray(sound)
            content[place + bit // 8] ^= 1 << (bit % 8)
            damaged.write_bytes(content)
            try:
                with Deployment.open(f"sqlite:///{damaged}", "shop") as dep:
                    made = dep.decide(known.candidates, known.baseline, request_id=known.request_id)
                    assert made.id == known.decision.id
                    assert dep.state().rounds == rounds
                    assert not dep.audit().clean
            except C4BError:
                continue


def test_a_lost_index(url: str) -> None:
    with create(url) as dep:
        trade(dep, 10, ids="r")
        sql(url, f"DROP INDEX {REQUEST}")
        again(dep, "r", 7)
        with pytest.raises(JournalCorrupt, match="migrate"):
            Deployment.open(url, "shop")
        assert sql_migration.migrate(url) == (2, 2)
        with Deployment.open(url, "shop") as other:
            again(other, "r", 7)
            assert other.audit().clean


def test_a_request_that_was_decided_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index was lost under a running worker, and the id is older than those that it remembers."""
    monkeypatch.setattr(recent_requests, "REMEMBERED", 2)
    with create(url) as dep:
        first = dep.decide([], BASELINE, request_id="r")
        for n in range(12):
            dep.decide([], BASELINE, request_id=f"r-{n}")
        sql(url, f"DROP INDEX {REQUEST}")
        assert f"the index {REQUEST}" in str(dep.audit(sample=0))
        second = dep.decide([], BASELINE, request_id="r")
        assert second.id != first.id
        report = dep.audit(sample=0)
        assert second.receipt is not None
        assert (report.entry, report.finding) == (second.receipt.seq, "has the request id of entry 1")


def test_what_the_store_itself_finds_is_a_finding(sqlite_url: str) -> None:
    """Every entry of this journal is found; a cell of another one is lost in the same file."""
    with create(sqlite_url) as dep, create(sqlite_url, "other") as other:
        trade(dep, 5, ids="r")
        trade(other, 5, ids="r")
    lose_a_cell(sqlite_url, REQUEST, 1, deployment=2)
    with Deployment.open(sqlite_url, "shop") as dep:
        report = dep.audit()
        assert "missing from index c4b_journal_request" in str(report)
        assert report.entry is None


@pytest.mark.parametrize("snapshots", [10**6, 10], ids=["no snapshot", "snapshots"])
def test_ids_beyond_the_window_are_looked_up(
    any_url: str, snapshots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_requests, "REMEMBERED", 4)
    with create(any_url, snapshot_every=snapshots) as dep:
        trade(dep, 25, ids="r")
        for n in (0, 12, 24):
            again(dep, "r", n)
        assert in_agreement(dep)
        assert dep.audit().clean
    with Deployment.open(any_url, "shop") as dep:
        for n in (0, 12, 24):
            again(dep, "r", n)


def test_what_is_taken_back_is_forgotten(any_url: str) -> None:
    """A call that fails leaves no id behind: the next call with that id is decided."""
    with create(any_url, baseline_nonnegative=False, reserve=0.0) as dep:
        with pytest.raises(C4BError):
            dep.decide([], BASELINE, request_id="r")
        assert dep._transactor._state is not None
        assert dep._transactor._state.recent.find("r") is None


def test_a_snapshot_without_request_ids(any_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first versions wrote them: the memory begins there, and later snapshots are right."""
    encode = snapshot.encode
    with create(any_url, snapshot_every=10) as dep, monkeypatch.context() as early:
        early.setattr(snapshot, "encode", lambda state: encode(state, requests_since=None))
        trade(dep, 20, ids="r")
    with Deployment.open(any_url, "shop", snapshot_every=10) as dep:
        assert seen(dep).recent.since > 0
        trade(dep, 30, seed=1, ids="s")
        for ids, n in (("r", 0), ("r", 19), ("s", 0), ("s", 29)):
            again(dep, ids, n)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_the_last_ids_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = recent_requests.RecentRequests()
    assert recent.array().shape == (0, 2)
    for seq in range(1, 8):
        recent.add(f"r-{seq}", seq)
    monkeypatch.setattr(recent_requests, "REMEMBERED", 4)
    assert recent.array()[:, 1].tolist() == [4, 5, 6, 7]
    assert recent.array(since=5)[:, 1].tolist() == [6, 7]
    again = recent_requests.RecentRequests.restored(recent.array(), -1)
    assert [again.find(f"r-{seq}") for seq in (3, 4, 7)] == [None, 4, 7]
