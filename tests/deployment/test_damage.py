"""A changed, missing or moved entry: a typed error or a finding of the audit, never a wrong answer."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from c4b import Deployment
from c4b.errors import C4BError, JournalCorrupt, SchemaVersion, StoreUnavailable
from support.shop_world import BASELINE, create, in_agreement, sql, trade

DAMAGE: dict[str, list[str]] = {
    "a flipped byte in a payload": ["UPDATE c4b_journal SET payload = {flipped} WHERE seq = 12"],
    "another reward": ["UPDATE c4b_journal SET payload = {other} WHERE seq = {observed}"],
    "another kind": ["UPDATE c4b_journal SET kind = 'alarm' WHERE seq = 12"],
    "another time": ["UPDATE c4b_journal SET at = at + 1 WHERE seq = 12"],
    "another request id": ["UPDATE c4b_journal SET request_id = 'x' WHERE seq = 12"],
    "an id about something else": ["UPDATE c4b_journal SET about = 3 WHERE seq = 12"],
    "another previous hash": ["UPDATE c4b_journal SET previous = {zeros} WHERE seq = 12"],
    "a deleted row": ["DELETE FROM c4b_journal WHERE seq = 12"],
    "the first row deleted": ["DELETE FROM c4b_journal WHERE seq = 0"],
    "the last row deleted": ["DELETE FROM c4b_journal WHERE seq = {last}"],
    "the last ten deleted": ["DELETE FROM c4b_journal WHERE seq > {last} - 10"],
    "everything deleted": ["DELETE FROM c4b_journal"],
    "two rows exchanged": [
        "UPDATE c4b_journal SET seq = -1 WHERE seq = 12",
        "UPDATE c4b_journal SET seq = 12 WHERE seq = 13",
        "UPDATE c4b_journal SET seq = 13 WHERE seq = -1",
    ],
    "a row renumbered": [
        "DELETE FROM c4b_journal WHERE seq = 13",
        "UPDATE c4b_journal SET seq = 13 WHERE seq = 12",
    ],
    "two rows in each other's place": [
        "UPDATE c4b_journal SET place = -place WHERE seq = 12",
        "UPDATE c4b_journal SET place = place - 1 WHERE seq = 13",
        "UPDATE c4b_journal SET place = 1 - place WHERE seq = 12",
    ],
    "a row out of its place": ["UPDATE c4b_journal SET place = place + 1000 WHERE seq = 12"],
    "the last row out of its place": ["UPDATE c4b_journal SET place = place + 1 WHERE seq = {last}"],
    "the last hash changed": ["UPDATE c4b_deployment SET head_hash = {zeros}"],
    "a row beyond the end": [
        "INSERT INTO c4b_journal SELECT place + 5, deployment, seq + 5, kind, about, NULL, at, payload, "
        "previous FROM c4b_journal WHERE seq = {last}"
    ],
    "the last number lowered": ["UPDATE c4b_deployment SET head = head - 1"],
    "the last number raised": ["UPDATE c4b_deployment SET head = head + 1"],
}


def blob(url: str, content: bytes) -> str:
    return f"x'{content.hex()}'" if url.startswith("sqlite") else f"'\\x{content.hex()}'::bytea"


def inflict(url: str, statements: list[str]) -> None:
    (last,) = sql(url, "SELECT max(seq) FROM c4b_journal")[0]
    (payload,) = sql(url, "SELECT payload FROM c4b_journal WHERE seq = 12")[0]
    observed, report = sql(
        url, "SELECT seq, payload FROM c4b_journal WHERE kind = 'observed' ORDER BY seq"
    )[2]
    flipped = bytearray(payload)
    flipped[-20] ^= 1
    for statement in statements:
        filled = statement.format(
            last=last,
            observed=observed,
            flipped=blob(url, bytes(flipped)),
            other=blob(url, bytes(report[:-8]) + np.float64(7.5).tobytes()),
            zeros=blob(url, bytes(32)),
        )
        sql(url, filled.replace(":", "\\:"))


@pytest.mark.parametrize("snapshots", [10**6, 10], ids=["no snapshot", "snapshots"])
@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_noticed(url: str, case: str, snapshots: int) -> None:
    with create(url, snapshot_every=snapshots) as dep:
        trade(dep, 25, ids="r")
        sound, records = dep.state(), {r.decision.id: r.to_dict() for r in dep.decisions()}
    inflict(url, DAMAGE[case])
    answers = 0
    try:
        with Deployment.open(url, "shop") as dep:
            report = dep.audit()
            assert not report.clean, report
            assert report.entry is not None
            assert dep.state() == sound  # from an intact snapshot and an intact tail
            answers += 1
            for id_, record in records.items():
                try:
                    assert dep.record(id_).to_dict() == record
                    answers += 1
                except JournalCorrupt:
                    continue
            dep.decide([], BASELINE)
    except JournalCorrupt:
        assert answers == 0 or snapshots == 10


def test_a_running_worker_notices(url: str) -> None:
    with create(url) as dep, Deployment.open(url, "shop") as other:
        trade(dep, 10)
        other.state()
        trade(dep, 10, seed=1)
        inflict(url, ["DELETE FROM c4b_journal WHERE seq = {last}"])
        with pytest.raises(JournalCorrupt):
            other.decide([], BASELINE)
        inflict(url, ["UPDATE c4b_deployment SET head = 3"])
        with pytest.raises(JournalCorrupt):
            dep.decide([], BASELINE)


def test_an_old_backup_is_not_continued(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep:
        trade(dep, 5)
        backup = sqlite3.connect(tmp_path / "backup.db")
        with sqlite3.connect(tmp_path / "shop.db") as source:
            source.backup(backup)
        source.close()
        trade(dep, 5, seed=1)
        with sqlite3.connect(tmp_path / "shop.db") as target:
            backup.backup(target)
        target.close()
        backup.close()
        for _ in range(3):  # not only the first time
            with pytest.raises(JournalCorrupt, match="backup"):
                dep.decide([], BASELINE)
    with Deployment.open(url, "shop") as dep:
        trade(dep, 5, seed=2)
        assert dep.audit().clean


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_in_the_file(tmp_path: Path, seed: int) -> None:
    """12 files, 40 flipped bytes each, anywhere but in the free space of pages."""
    path = tmp_path / "shop.db"
    url = f"sqlite:///{path}"
    with create(url, snapshot_every=15) as dep:
        trade(dep, 30, ids="r")
        before = dep.state()
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(len(content), size=40):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    for question in QUESTIONS:
        try:
            with Deployment.open(url, "shop") as dep:
                answer = question(dep)
                assert answer is None or answer == before
        except C4BError:
            continue


QUESTIONS: list[Callable[[Deployment], object]] = [
    lambda dep: dep.state(),
    lambda dep: None if not dep.audit().clean else dep.state(),
]


def test_rows_given_to_another_deployment(url: str) -> None:
    with create(url, "one") as other, create(url, "two") as dep:
        trade(other, 5)
        made = dep.decide([[1.0, 0.1, 0.0]], BASELINE, request_id="r")
        dep.observe(made.id, 0.5)
        sql(url, "UPDATE c4b_journal SET deployment = 1 WHERE request_id = 'r'")
        assert "is missing" in str(dep.audit().finding)
        for question in (dep.decisions, lambda: dep.record(made.id)):
            with pytest.raises(JournalCorrupt):
                question()
        with pytest.raises(JournalCorrupt):
            Deployment.open(url, "two").state()
        assert other.audit().clean


def test_exchanged_names(url: str) -> None:
    """One deployment would run with the other's reserve and alpha."""
    with create(url, "one", alpha=0.01) as one, create(url, "two", alpha=0.5) as two:
        trade(one, 3)
        trade(two, 5)
        for number, name in ((1, "x"), (2, "one"), (1, "two")):
            sql(url, f"UPDATE c4b_deployment SET name = '{name}' WHERE id = {number}")
        for name in ("one", "two"):
            with pytest.raises(JournalCorrupt, match="exchanged"):
                Deployment.open(url, name)
        assert "creates 'two', not 'one'" in str(one.audit().finding)
        for dep in (one, two):
            with pytest.raises(JournalCorrupt):
                dep.state()


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_another_schema_version(url: str, version: int) -> None:
    with create(url) as dep:
        trade(dep, 3)
        before = sql(url, "SELECT count(*) FROM c4b_journal")
        sql(url, f"UPDATE c4b_schema SET version = {version}")
        attempts: list[Callable[[], object]] = [
            lambda: Deployment.open(url, "shop"),
            lambda: create(url, "other"),
            lambda: Deployment.names(url),
            lambda: dep.decide([], BASELINE),  # migrated by somebody while this process was running
            dep.state,
        ]
        for attempt in attempts:
            with pytest.raises(SchemaVersion, match="upgrade" if version > 2 else "migrat"):
                attempt()
        assert sql(url, "SELECT count(*) FROM c4b_journal") == before


def test_a_damaged_snapshot_is_not_used(url: str) -> None:
    with create(url, snapshot_every=10) as dep:
        trade(dep, 30)
        sound = dep.state()
        for statement in (
            "UPDATE c4b_snapshot SET content = digest WHERE seq = (SELECT max(seq) FROM c4b_snapshot)",
            "UPDATE c4b_snapshot SET content = digest",
        ):
            sql(url, statement)
            with Deployment.open(url, "shop") as other:
                assert other.state() == sound
                assert in_agreement(other)
                report = other.audit()
                assert not report.clean
                assert "snapshot" in str(report.finding)


def test_a_snapshot_of_another_layout_is_not_used(url: str) -> None:
    """Intact, but written by a version whose ledger or pending outcomes had another shape."""
    with create(url, snapshot_every=10) as dep:
        trade(dep, 30)
        sound = dep.state()
        for old, new in ((b'"ledger"', b'"ledges"'), (b'"rounds"', b'"Rounds"'), (b'"<f8"', b'"<f4"')):
            for seq, content in sql(url, "SELECT seq, content FROM c4b_snapshot"):
                changed = bytes(content).replace(old, new)
                assert changed != bytes(content)
                digest = hashlib.sha256(changed).digest()
                values = {"content": changed, "digest": digest, "seq": seq}
                sql(
                    url,
                    "UPDATE c4b_snapshot SET content = :content, digest = :digest WHERE seq = :seq",
                    **values,
                )
            with Deployment.open(url, "shop") as other:
                assert other.state() == sound
                assert in_agreement(other)


def test_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(b"once upon a time" * 1000)
    for attempt in (Deployment.open, create):
        with pytest.raises((JournalCorrupt, StoreUnavailable)):
            attempt(f"sqlite:///{path}", "shop")
