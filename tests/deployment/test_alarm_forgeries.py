"""Alarms that somebody removed, changed or made up, with hashes made again: the audit finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.journal.entries import ALARM
from support.shop_world import BASELINE, create, entries_of, forge, outcome, rivals, sql

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


def late(url: str, policy: str = "reserve-c4b+") -> Deployment:
    """One outcome releases 300 that waited for it. It refutes the model; after all of them the data would
    not."""
    rng, model = np.random.default_rng(0), LinearModel(3, 0.1, 1.5, ridge=0.01)
    dep = Deployment.create(url, "shop", model, policy, alpha=0.1, reserve=500.0)
    outcomes = []
    for _ in range(360):
        pool = rivals(rng)
        made = dep.decide(pool, BASELINE)
        outcomes.append((made.id, outcome(pool, made.action, rng)))
    late, reward = outcomes.pop(60)
    dep.observe_many(outcomes)
    dep.observe(late, reward + 1.0)
    dep.decide(rivals(rng), BASELINE)
    return dep


def lost(url: str) -> Deployment:
    """After the alarm comes a row that leaves the set nothing to say."""
    dep, rng = create(url), np.random.default_rng(0)
    for _ in range(ROUNDS):
        dep.observe(dep.decide(rivals(rng), BASELINE).id, 0.6)
    first, second = (dep.decide(rivals(rng), BASELINE).id for _ in range(2))
    dep.executed(second, [1e20, 1.0, 1.0])
    dep.observe(first, 50.0)
    assert dep.state().alarm is not None
    dep.observe(second, 1e20)
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


@pytest.mark.parametrize("policy", ["reserve-c4b+", "refresh"])
def test_an_alarm_within_outcomes_that_waited(sqlite_url: str, policy: str) -> None:
    with late(sqlite_url, policy) as dep:
        assert dep.state().alarm is not None
        report = dep.audit(sample=0)
        assert report.clean, report


@pytest.mark.parametrize("made", [late, lost])
def test_an_alarm_that_was_never_there(sqlite_url: str, made: Any) -> None:
    """It is removed, and the decisions after it do not have it."""
    with made(sqlite_url) as dep:
        number = next(
            e.seq for e in entries_of(dep) if e.kind == ALARM and e.unpack()[0]["source"] == "model"
        )
        assert dep.audit(sample=0).clean
        remove(dep, sqlite_url, number)
        for entry in entries_of(dep):
            if entry.kind == "decided" and entry.unpack()[0]["alarm"] is not None:
                forge(dep, entry.seq, lambda fields, _: fields.update(alarm=None))
        report = dep.audit(sample=0)
        assert "of the model" in str(report.finding), report


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
