"""Alarms that somebody removed, changed or made up, with hashes made again: the audit finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment
from c4b.journal.entries import ALARM
from support.shop_world import BASELINE, create, entries_of, forge, rivals, sql

ROUNDS = 12


def refuted(url: str) -> Deployment:
    """Rewards far outside the declared noise, after a dozen within it."""
    dep, rng = create(url), np.random.default_rng(0)
    for n in range(2 * ROUNDS):
        made = dep.decide(rivals(rng), BASELINE)
        dep.observe(made.id, 0.6 if n < ROUNDS else 50.0 * (-1) ** n)
    return dep


def overdrawn(url: str) -> Deployment:
    """Something was executed that the bank does not cover."""
    dep, rng = create(url, reserve=0.0), np.random.default_rng(0)
    dep.executed(dep.decide(rivals(rng), BASELINE).id, [0.2, 1.0, 1.0])
    dep.decide(rivals(rng), BASELINE)
    return dep


def number_of_alarm(dep: Deployment) -> int:
    return next(entry.seq for entry in entries_of(dep) if entry.kind == ALARM)


def remove(dep: Deployment, url: str, number: int) -> None:
    """Remove an entry, and number and hash what is after it again."""
    entries = entries_of(dep)
    hash_, update = (
        entries[number].previous,
        "UPDATE c4b_journal SET kind = :kind, about = :about, at = :at",
    )
    for entry in entries[number + 1 :]:
        about = entry.about - 1 if entry.about is not None and entry.about > number else entry.about
        moved = entry._replace(seq=entry.seq - 1, about=about, previous=hash_)
        hash_ = moved.hash()
        more = ", payload = :payload, previous = :previous WHERE seq = :seq"
        sql(url, update + more, **{k: v for k, v in moved._asdict().items() if k != "request_id"})
    sql(url, "DELETE FROM c4b_journal WHERE seq = :seq", seq=entries[-1].seq)
    sql(url, "UPDATE c4b_deployment SET head = head - 1, head_hash = :hash", hash=hash_)


@pytest.mark.parametrize("made", [refuted, overdrawn])
def test_a_removed_alarm(sqlite_url: str, made: Any) -> None:
    with made(sqlite_url) as dep:
        number = number_of_alarm(dep)
        assert dep.audit(sample=0).clean
        remove(dep, sqlite_url, number)
        report = dep.audit(sample=0)
        assert report.entry in (number, number + 1), report
        assert "alarm" in str(report.finding)


def test_a_removed_alarm_at_the_end(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        rng = np.random.default_rng(0)
        while dep.state().alarm is None:
            dep.observe(dep.decide(rivals(rng), BASELINE).id, 50.0)
        assert dep.audit(sample=0).clean
        number = number_of_alarm(dep)
        remove(dep, sqlite_url, number)
        report = dep.audit(sample=0)
        assert (report.entry, "is missing: the alarm" in str(report.finding)) == (number, True)


@pytest.mark.parametrize("made", [refuted, overdrawn])
@pytest.mark.parametrize(
    "change", [{"reason": "all is well"}, {"reason": None}, {"source": "sun"}], ids=str
)
def test_another_reason(sqlite_url: str, made: Any, change: dict[str, Any]) -> None:
    with made(sqlite_url) as dep:
        number = number_of_alarm(dep)
        forge(dep, number, lambda fields, _: fields.update(change))
        assert dep.audit(sample=0).entry == number


@pytest.mark.parametrize("source", ["model", "ledger"])
def test_an_alarm_that_nothing_gave(sqlite_url: str, source: str) -> None:
    with create(sqlite_url) as dep:
        rng = np.random.default_rng(0)
        dep.observe(dep.decide(rivals(rng), BASELINE).id, 0.6)
        dep._transactor.write(lambda commands: commands._record_alarm("fire", source))
        number = number_of_alarm(dep)
        dep.decide(rivals(rng), BASELINE)
        assert dep.audit(sample=0).entry == (number + 1 if source == "model" else number)
