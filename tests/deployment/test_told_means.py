"""Told baseline means in a journal: recorded, replayed, audited; refuted ones raise an alarm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel, Round
from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.state import INSTEAD, State
from c4b.errors import ContradictoryRequest, InvalidInput
from support.same_state import same_bits
from support.shop_world import BASELINE, create, entries_of, forge, outcome, replayed, rivals, seen

SYSTEMS = ["clucb", "clucb2t", "lcbce"]
ARMS = LinearModel(dim=3, noise=0.1, norm_bound=1.0)
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("cucb", {}),
    ("cucb-unknown", {}),
    ("budget-first", {"horizon": 1000}),
    ("budget-first-arms", {"horizon": 1000}),
    ("c-squarecb", {"seed": 3}),
    ("c-fastcb", {"seed": 3}),
    ("clucb-source", {}),
    ("clucb-unknown-nested", {}),
]


def trade(dep: Deployment, rounds: int, mean: float | None = 0.6, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for n in range(rounds):
        pool = rivals(rng)
        made = dep.decide(pool, BASELINE, baseline_mean=mean)
        if n % 5 == 2:
            dep.executed(made.id, None if n % 2 else 0.9 * BASELINE)
        if n % 4:
            dep.observe(made.id, outcome(pool, made.action, rng))


@pytest.mark.parametrize("policy", SYSTEMS)
def test_a_journal_is_continued_bit_for_bit(sqlite_url: str, policy: str) -> None:
    with create(sqlite_url, policy=policy, baseline_floor=0.2, snapshot_every=7) as dep:
        trade(dep, 20)
        bank = dep.state().bank
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state().bank == bank
        assert dep.configuration.baseline_floor == 0.2
        trade(dep, 5, seed=1)
        assert same_bits(seen(dep), replayed(dep))
        report = dep.audit(sample=3)
        assert report.clean, report
        assert report.level == "recomputed"


@pytest.mark.parametrize("change", [0.01, -0.01])
def test_a_forged_mean_is_found(sqlite_url: str, change: float) -> None:
    def lie(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields["baseline_mean"] += change

    with create(sqlite_url, policy="clucb") as dep:
        trade(dep, 8)
        number = [e.seq for e in entries_of(dep) if e.kind == "decided"][4]
        forge(dep, number, lie)
    with Deployment.open(sqlite_url, "shop") as dep:
        assert not dep.audit(sample=0).clean


def test_a_request_with_another_mean_is_another_request(sqlite_url: str) -> None:
    with create(sqlite_url, policy="clucb") as dep:
        first = dep.decide(Round([], BASELINE, 0.6, request_id="r"))
        assert dep.decide([], BASELINE, "r", baseline_mean=0.6) == first
        with pytest.raises(ContradictoryRequest):
            dep.decide([], BASELINE, "r", baseline_mean=0.5)
        with pytest.raises(InvalidInput, match="baseline_mean"):
            dep.decide([], BASELINE)
    with pytest.raises(InvalidInput, match="horizon"):
        create(sqlite_url, "other", policy="clucb", horizon=5)


@pytest.mark.parametrize("policy", SYSTEMS)
def test_a_refuted_mean_in_shadow_is_an_alarm_of_its_round_alone(memory_url: str, policy: str) -> None:
    with create(memory_url, policy=policy, mode="shadow") as dep:
        trade(dep, 3)
        made = [dep.decide([], BASELINE, baseline_mean=mean) for mean in (9.0, 0.6)]
        assert [each.alarm is None for each in made] == [False, True]
        assert dep.state().alarm is None
        assert dep.audit(sample=0).clean
        dep.go_live("enough", by="ann")
        assert dep.decide([], BASELINE, baseline_mean=0.6).alarm is None
        assert same_bits(seen(dep), replayed(dep))
        assert dep.audit(sample=0).clean
        assert dep.decide([], BASELINE, baseline_mean=9.0).alarm == dep.state().alarm is not None
        assert dep.audit(sample=0).clean


def test_a_refuted_mean_is_recorded_as_an_alarm(sqlite_url: str) -> None:
    with create(sqlite_url, policy="clucb") as dep:
        trade(dep, 2)
        assert dep.state().alarm is None
        made = dep.decide_many([Round([], BASELINE, 0.6), Round([], BASELINE, 9.0)])
        assert made[0].alarm is None
        assert made[1].alarm is not None
        assert dep.state().alarm == made[1].alarm
        assert same_bits(seen(dep), replayed(dep))
        assert dep.audit(sample=0).clean


def test_a_batch_that_fails_leaves_no_alarm(sqlite_url: str) -> None:
    with create(sqlite_url, policy="clucb") as dep:
        with pytest.raises(InvalidInput):
            dep.decide_many([Round([], BASELINE, 9.0), Round([[np.nan] * 3], BASELINE, 0.6)])
        assert dep.state().alarm is None
        assert dep.state().rounds == 0


@pytest.mark.parametrize(("policy", "terms"), OTHERS)
def test_systems_without_independent_arithmetic_are_replayed(
    sqlite_url: str, policy: str, terms: dict[str, Any]
) -> None:
    rng, arms = np.random.default_rng(0), policy in ("cucb", "cucb-unknown", "budget-first-arms")
    theta = np.array([0.5, 0.6, 0.3])
    mean = None if "unknown" in policy else 0.5
    with Deployment.create(sqlite_url, "shop", ARMS, policy, 0.2, 1.0, snapshot_every=10, **terms) as dep:
        for n in range(25):
            pool = np.eye(3)[1:] if arms else rivals(rng, 3)
            made = dep.decide(pool, BASELINE, baseline_mean=mean)
            if n == 11:
                dep.executed(made.id, np.eye(3)[2])
            x = BASELINE if made.action is None else pool[made.action]
            dep.observe(made.id, float(x @ theta + 0.1 * rng.normal()))
        assert same_bits(seen(dep), replayed(dep))
        report = dep.audit()
        assert report.clean, report
        assert (report.level, report.decisions) == ("replayed", 25)


@pytest.mark.parametrize("policy", ["budget-first", "budget-first-arms"])
def test_corrections_of_corrections_are_continued_and_audited(sqlite_url: str, policy: str) -> None:
    """What is open was executed instead of a decision: a snapshot remembers it."""
    means, arms = np.array([0.2, 1.0, 0.6]), np.eye(3)
    model = LinearModel(dim=3, noise=0.01, norm_bound=2.0)
    with Deployment.create(
        sqlite_url, "shop", model, policy, alpha=0.1, horizon=100, snapshot_every=3
    ) as dep:
        dep.learn(np.tile(arms, (200, 1)), np.tile(means, 200))
        made = [dep.decide(arms[1:], arms[0], baseline_mean=0.2) for _ in range(4)]
        dep.executed(made[0].id, arms[1])
        dep.executed(made[1].id, arms[1])
        dep.executed(made[3].id, None)
    with Deployment.open(sqlite_url, "shop", snapshot_every=3) as dep:
        for n in (0, 1, 3):
            dep.executed(made[n].id, arms[2])
            dep.executed(made[n].id, None)
        assert dep.state().bank <= 4 * 0.1 * 0.2
        assert same_bits(seen(dep), replayed(dep))
        report = dep.audit()
        assert report.clean, report
        assert report.snapshots > 0


def test_earlier_snapshots_that_do_not_know_of_corrections_are_not_used(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal knows; and the audit of such a journal is clean."""
    means, arms = np.array([0.2, 1.0, 0.6]), np.eye(3)
    model = LinearModel(dim=3, noise=0.01, norm_bound=2.0)
    options: dict[str, Any] = {"alpha": 0.1, "horizon": 100, "snapshot_every": 3}
    with monkeypatch.context() as earlier:
        everything = snapshot.durable_arrays

        def without(state: State) -> dict[str, Any]:
            return {name: array for name, array in everything(state).items() if name != INSTEAD}

        earlier.setattr(snapshot, "durable_arrays", without)
        with Deployment.create(sqlite_url, "shop", model, "budget-first", **options) as dep:
            dep.learn(np.tile(arms, (200, 1)), np.tile(means, 200))
            made = [dep.decide(arms[1:], arms[0], baseline_mean=0.2) for _ in range(4)]
            dep.executed(made[0].id, arms[1])
            dep.observe(made[3].id, 0.6)
    with Deployment.open(sqlite_url, "shop", snapshot_every=3) as dep:
        assert dep.audit().clean
        dep.executed(made[0].id, None, independent=True)
        assert same_bits(seen(dep), replayed(dep))
        dep.decide(arms[1:], arms[0], baseline_mean=0.2)
        report = dep.audit()
        assert report.clean, report
        assert report.snapshots > 0
