"""Journals keep the margins that a choice depended on; the others are recomputed when somebody asks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Decision, Deployment, Policy
from c4b._validate import Array
from c4b.journal.entries import DECIDED
from c4b.policies import CandidateField
from support.shop_world import BASELINE, MODEL, create, entries_of, forge, in_agreement, outcome, rivals

OPTIONS: dict[str, Any] = {"policy": "reserve-c4b+", "reserve": 3.0, "alpha": 0.1}


def decided(dep: Deployment, rounds: int, seed: int = 0, size: int = 12) -> list[tuple[Array, Decision]]:
    rng, made = np.random.default_rng(seed), []
    for n in range(rounds):
        pool = rivals(rng, size)
        decision = dep.decide(pool, BASELINE, request_id=f"{seed}-{n}")
        dep.observe(decision.id, outcome(pool, decision.action, rng))
        made.append((pool, decision))
    return made


def undone(dep: Deployment) -> list[list[int]]:
    """The candidates whose margins are on record, of decisions that left some out."""
    found = [entry.unpack()[0] for entry in entries_of(dep) if entry.kind == DECIDED]
    return [fields["evaluated"] for fields in found if "evaluated" in fields]


def test_every_number_is_the_policys(any_url: str) -> None:
    """Of decisions as they are returned, repeated, listed and explained; before and after snapshots."""
    policy, rng = Policy("reserve-c4b+", MODEL, alpha=0.1, reserve=3.0), np.random.default_rng(0)
    with create(any_url, snapshot_every=12, **OPTIONS) as dep:
        made = decided(dep, 20)
        assert len(undone(dep)) > 12
        assert max(map(len, undone(dep))) < 12
        listed = dep.decisions()
        for n, (pool, decision) in enumerate(made):
            assert np.array_equal(pool, rivals(rng, 12))
            wanted = policy.decide(pool, BASELINE)
            policy.observe(wanted, outcome(pool, wanted.action, rng))
            if n not in (0, 9, 19):
                continue
            again = dep.decide(pool, BASELINE, request_id=f"0-{n}")
            record = dep.record(decision.id)
            for each in (decision, again, record.decision, listed[n].decision):
                assert (each.action, each.numbers) == (wanted.action, wanted.numbers)
                assert each.details.tobytes() == wanted.details.tobytes()
            assert again == decision
            assert record.evaluated is None
            assert listed[n].explain().to_dict() == dep.explain(decision.id).to_dict()
            shown = list(dep.explain(decision.id))
            assert [c.margin for c in shown] == wanted.details[CandidateField.MARGIN].tolist()
            assert all(c.joint <= c.estimate <= c.upper for c in shown)
        assert in_agreement(dep)
        assert dep.audit(sample=0).clean


def test_a_single_candidate(memory_url: str) -> None:
    """Its margin is known, its separate bound is not needed."""
    with create(memory_url, **OPTIONS) as dep:
        for n, (pool, decision) in enumerate(decided(dep, 3, size=1)):
            again = dep.decide(pool, BASELINE, request_id=f"0-{n}")
            assert again == decision
            assert not np.isnan(again.details).any()
        assert dep.audit(sample=0).clean


def test_a_decision_that_was_read_can_be_pickled(memory_url: str) -> None:
    with create(memory_url, **OPTIONS) as dep:
        decided(dep, 8)
        listed = dep.decisions(newest=True, limit=1)[0].decision
        assert pickle.loads(pickle.dumps(listed)).numbers == listed.numbers


def test_held_rounds(memory_url: str) -> None:
    with create(memory_url, mode="shadow", **OPTIONS) as dep:
        decided(dep, 12)
        dep.go_live("ready", by="ann")
        decided(dep, 8, seed=1)
        dep.freeze("stop", by="ann")
        (_, last), *_ = decided(dep, 3, seed=2)
        assert last.held == "frozen"
        assert undone(dep)
        for record in dep.decisions()[::5]:
            assert not np.isnan(dep.record(record.decision.id).decision.details).any()
        assert dep.audit(sample=0).clean


def test_what_was_before_an_archive_is_not_needed(sqlite_url: str, tmp_path: Path) -> None:
    """Where the state of that moment cannot be recomputed, what is on record is shown."""
    with create(sqlite_url, snapshot_every=10, **OPTIONS) as dep:
        decided(dep, 20)
        dep.archive(tmp_path / "old.parquet", "old", by="ann")
        made = decided(dep, 25, seed=1)
        first = dep.decisions(limit=1)[0]
        assert first.evaluated is not None
        explained = dep.explain(first.decision.id)
        assert [c.candidate for c in explained] == list(first.evaluated)
        assert "on record" in explained.summary
        assert len(dep.explain(made[-1][1].id)) == 12


def chosen_instead(wanted: Callable[[Array], int | None], dep: Deployment, number: int) -> None:
    """Forge a consistent decision for another action, which leaves out what speaks against it."""
    identity = next(r.decision.id for r in dep.decisions() if r.decision.receipt[0] == number)  # type: ignore[index]
    details = dep.record(identity).decision.details
    action = wanted(details)

    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields["action"] = action
        fields["evaluated"] = [] if action is None else [action]
        arrays["details"] = details[:, fields["evaluated"]]
        if action is not None:
            rows = [CandidateField.MARGIN, CandidateField.JOINT, CandidateField.UCB]
            arrays["numbers"][1:4] = details[rows, action]

    forge(dep, number, change)


def second_best(details: Array) -> int:
    assert (details[CandidateField.MARGIN] >= 0.0).all()
    return int(np.argsort(details[CandidateField.SCORE])[-2])


@pytest.mark.parametrize("wanted", [second_best, lambda details: None])
def test_leaving_out_a_better_candidate_is_found(
    sqlite_url: str, wanted: Callable[[Array], int | None]
) -> None:
    with create(sqlite_url, **OPTIONS) as dep:
        made = decided(dep, 15)
        assert made[-1][1].action is not None
        number = [e.seq for e in entries_of(dep) if e.kind == DECIDED][-1]
        assert "evaluated" in entries_of(dep)[number].unpack()[0]
        assert dep.audit(sample=0).clean
        chosen_instead(wanted, dep, number)
    with Deployment.open(sqlite_url, "shop") as dep:
        report = dep.audit(sample=0)
        assert report.entry == number
        assert "choose" in str(report)


@pytest.mark.parametrize("evaluated", [[], [99], [1, 1], [-1]])
def test_what_is_evaluated_must_fit(sqlite_url: str, evaluated: list[int]) -> None:
    with create(sqlite_url, **OPTIONS) as dep:
        decided(dep, 15)
        number = [e.seq for e in entries_of(dep) if e.kind == DECIDED][-1]

        def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
            fields["evaluated"] = evaluated
            arrays["details"] = np.repeat(arrays["details"][:, :1], len(evaluated), axis=1)

        forge(dep, number, change)
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.audit(sample=0).entry == number
