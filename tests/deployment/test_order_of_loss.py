"""Losses and other executions after a later outcome: refused, asserted, recorded, audited."""

from __future__ import annotations

import time
from typing import Any

import pytest

from c4b import Deployment
from c4b.deployment.transactions import snapshot
from c4b.errors import InvalidInput, LaterOutcomeKnown
from support.shop_world import BASELINE, create, entries_of, forge, in_agreement, seen

OTHER = 1.05 * BASELINE


def started(dep: Deployment) -> list[str]:
    """Open decisions, of which the third has its outcome."""
    ids = [made.id for made in dep.decide_many([([], BASELINE)] * 4)]
    dep.observe(ids[2], 0.5)
    return ids


def asserted(dep: Deployment) -> list[tuple[str, bool | None]]:
    """Losses and other executions in the journal, with their field."""
    entries = [each for each in entries_of(dep) if each.kind in ("forgotten", "executed")]
    return [(each.kind, each.unpack()[0].get("independent")) for each in entries]


@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
def test_refused_unless_asserted(any_url: str, absorb: str) -> None:
    with create(any_url, absorb=absorb, snapshot_every=3) as dep:
        ids = started(dep)
        for at in (dep, Deployment.open(any_url, "shop")):
            before = at.state()
            with pytest.raises(LaterOutcomeKnown, match="independent=True"):
                at.forget(ids[0])
            with pytest.raises(LaterOutcomeKnown, match="independent=True"):
                at.executed(ids[1], OTHER)
            with pytest.raises(InvalidInput, match="independent"):
                at.forget(ids[0], independent=1)  # type: ignore[arg-type]
            assert at.state() == before
        dep.executed(ids[3], OTHER)
        dep.executed(ids[1], OTHER, independent=True)
        dep.forget(ids[0], independent=True)
        head = dep.state().seq
        for assertion in (False, True):  # harmless, whatever is asserted now
            dep.forget(ids[0], independent=assertion)
            dep.executed(ids[1], OTHER, independent=assertion)
        assert dep.state().seq == head
        expected = [("executed", None), ("executed", True), ("forgotten", True)]
        assert asserted(dep) == expected
        assert in_agreement(dep)
        assert dep.audit().clean
        at.close()


def test_windows_close_by_time_alone(any_url: str) -> None:
    now = time.time()
    with create(any_url, outcome_timeout=60.0) as dep:
        dep._transactor.clock = lambda: now + 1
        started(dep)
        dep._transactor.clock = lambda: now + 100
        assert dep.expire() == 3
        assert asserted(dep) == [("forgotten", None)] * 3
        assert dep.audit().clean


def without_assertion(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    del fields["independent"]


def as_created_before(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    del fields["asserts_independence"]


@pytest.mark.parametrize("report", ["forgotten", "executed"])
def test_the_audit_asks_for_the_assertion(sqlite_url: str, report: str) -> None:
    with create(sqlite_url) as dep:
        ids = started(dep)
        if report == "forgotten":
            dep.forget(ids[0], independent=True)
        else:
            dep.executed(ids[0], OTHER, independent=True)
        late = dep.state().seq
    with Deployment.open(sqlite_url, "shop") as dep:
        forge(dep, late, without_assertion)
        result = dep.audit()
        assert result.entry == late
        assert "later decision" in str(result)
    with Deployment.open(sqlite_url, "shop") as dep:
        forge(dep, 0, as_created_before)
    with Deployment.open(sqlite_url, "shop") as dep:  # a journal of a version that did not ask
        assert dep.audit().clean
        assert in_agreement(dep)
        pending = dep.pending()[0 if report == "forgotten" else 1].id
        with pytest.raises(LaterOutcomeKnown):  # but new calls are asked
            dep.forget(pending)
        dep.forget(pending, independent=True)
        assert dep.audit().clean


@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
def test_snapshots_of_an_earlier_version(
    any_url: str, absorb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a snapshot does not tell what was observed last, the journal does."""
    encode = snapshot.encode
    with create(any_url, absorb=absorb, snapshot_every=3) as dep:
        with monkeypatch.context() as early:
            early.setattr(snapshot, "encode", lambda state: encode(state, with_latest=False))
            ids = started(dep)
        assert dep.audit().snapshots == 1
    with Deployment.open(any_url, "shop", snapshot_every=3) as dep:
        assert seen(dep).run.outcomes.latest == 2
        with pytest.raises(LaterOutcomeKnown):
            dep.forget(ids[1])
        dep.forget(ids[3])
        for id_ in ids[:2]:
            dep.observe(id_, 0.5)
        assert in_agreement(dep)
        report = dep.audit()
        assert report.clean
        assert report.snapshots == 2
