"""Audits that take long: idle servers, several cores, interruptions, many open decisions."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from c4b import Deployment
from c4b.deployment.audit import audit
from c4b.deployment.audit.auditor import Auditor
from c4b.deployment.audit.checks.decision_checks import RecordedDecision
from c4b.deployment.audit.checks.recomputed_checks import RecomputedChecks
from c4b.errors import InvalidInput
from c4b.journal.sql import sql_connections
from support.shop_world import BASELINE, create, sql, trade


def test_a_server_that_ends_idle_transactions(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_connections, "WAIT", 1)
    monkeypatch.setattr(audit, "REPORTED", 0.0)
    pauses = iter([1.5, 1.5])
    with create(postgres_url) as dep:
        trade(dep, 80)
        report = dep.audit(sample=0, progress=lambda done, total: time.sleep(next(pauses, 0.0)))
    assert report.clean
    assert report.entries > audit.PAGE


@pytest.mark.slow
def test_two_processes_find_what_one_does(url: str) -> None:
    with create(url, snapshot_every=20) as dep:
        trade(dep, 40, ids="r")
        seen: list[tuple[int, int]] = []
        one = dep.audit(sample=4)
        assert dep.audit(4, lambda *each: seen.append(each), jobs=2) == one
        assert seen[-1] == (one.entries, one.entries)
        sql(url, "UPDATE c4b_journal SET at = at + 1 WHERE seq = 30")
        one, two = dep.audit(), dep.audit(jobs=2)
        assert not one.clean
        assert (one.entry, one.finding) == (two.entry, two.finding)


def test_stores_of_one_process_are_audited_by_it(memory_url: str) -> None:
    with create(memory_url) as dep:
        trade(dep, 5)
        assert dep.audit(jobs=4).clean
        with pytest.raises(InvalidInput, match="jobs"):
            dep.audit(jobs=0)


def test_an_interrupted_audit_goes_on(
    any_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REPORTED", 0.0)
    place, recomputed = tmp_path / "place.json", []
    recompute = RecomputedChecks._recompute

    def counted(self: RecomputedChecks, decision: RecordedDecision) -> None:
        recomputed.append(decision.seq)
        recompute(self, decision)

    def interrupt(done: int, total: int) -> None:
        if done == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(RecomputedChecks, "_recompute", counted)
    with create(any_url) as dep:
        trade(dep, 40)
        with pytest.raises(KeyboardInterrupt):
            dep.audit(progress=interrupt, resume=place)
        assert json.loads(place.read_text())["seq"] == 28
        assert max(recomputed) <= 29
        recomputed.clear()
        report = dep.audit(resume=place)
        assert report.clean
        assert min(recomputed) > 28
        assert json.loads(place.read_text()) == {
            "name": "shop",
            "seq": report.entries - 1,
            "hash": report.hash,
        }
        recomputed.clear()
        trade(dep, 5, seed=1)
        assert dep.audit(resume=place).clean
        assert len(recomputed) == 5


def test_a_past_that_is_not_the_verified_one(tmp_path: Path) -> None:
    path, backup, place = tmp_path / "shop.db", tmp_path / "backup.db", tmp_path / "place.json"
    url = f"sqlite:///{path}"
    with create(url) as dep:
        trade(dep, 10)
    shutil.copy(path, backup)
    with Deployment.open(url, "shop") as dep:
        trade(dep, 10, seed=1)
        assert dep.audit(resume=place).clean
    verified = json.loads(place.read_text())
    shutil.copy(backup, path)
    with Deployment.open(url, "shop") as dep:
        report = dep.audit(resume=place)
        assert report.entry == verified["seq"]
        assert "earlier audit verified" in str(report.finding)
        trade(dep, 20, seed=2)
        report = dep.audit(resume=place)
        assert report.entry == verified["seq"]
        assert "not the one" in str(report.finding)
        assert json.loads(place.read_text()) == verified


@pytest.mark.parametrize("content", ["", "[]", '{"name": "shop"}', '{"name": "x", "seq": 1, "hash": ""}'])
def test_a_file_that_is_none(memory_url: str, tmp_path: Path, content: str) -> None:
    place = tmp_path / "place.json"
    place.write_text(content)
    with create(memory_url) as dep, pytest.raises(InvalidInput, match="resume"):
        dep.audit(resume=place)


def test_open_decisions_do_not_keep_their_entries(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 open decisions of 80 kB each would not fit into memory."""
    opened = []
    take = Auditor.take

    def kept(self: Auditor, *entry: object) -> None:
        take(self, *entry)  # type: ignore[arg-type]
        opened.extend(self.open.values())

    monkeypatch.setattr(Auditor, "take", kept)
    with create(memory_url) as dep:
        dep.decide_many([([BASELINE * 1.01], BASELINE)] * 3)
        assert dep.audit().clean
    assert opened
    assert all(each.played.features.base is None and each.played.baseline.base is None for each in opened)


@pytest.mark.slow
def test_many_open_decisions(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        for _ in range(2):
            made = dep.decide_many([([], BASELINE)] * 10_000)
        dep.observe_many({each.id: 0.5 for each in made})
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state().pending == 10_000
        assert dep.audit(sample=0).clean
