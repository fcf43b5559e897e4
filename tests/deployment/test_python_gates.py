"""A gate in plain Python is as durable as the compiled ones; its audit replays instead of recomputing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, Round
from c4b.errors import ContradictoryRequest, InvalidInput, SchemaVersion
from c4b.policies import GateFactory
from c4b.policies.catalogue import registry
from support.coin_gate import COIN, NAME, CoinGate
from support.shop_world import BASELINE, MODEL, create, entries_of, forge, in_agreement, rivals, seen


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTRY, NAME, COIN)


def round_of(rng: np.random.Generator, size: int = 3, **more: Any) -> Round:
    return Round(0.1 * rivals(rng, size), BASELINE, baseline_mean=0.6, **more)


def live(dep: Deployment, rounds: int = 40, seed: int = 0) -> None:
    """Decisions alone and together; outcomes late and lost; other executions."""
    rng, late = np.random.default_rng(seed), []
    for n in range(rounds):
        made = dep.decide_many([round_of(rng) for _ in range(1 + n % 2)])
        late += [each.id for each in made]
        if n % 9 == 4:
            dep.executed(made[0].id)
        if n % 9 == 7:
            dep.executed(made[0].id, 1.01 * BASELINE)
        if n % 3:
            dep.observe(late.pop(int(rng.integers(len(late)))), float(rng.normal()))
        if n % 11 == 5:
            dep.forget(late.pop(), independent=True)


def test_a_python_gate_is_deployed_and_audited(any_url: str) -> None:
    with create(any_url, policy=NAME, reserve=5.0, snapshot_every=10) as dep:
        dep.learn(np.eye(3), [0.5, 0.1, 0.2])
        live(dep)
        assert in_agreement(dep)
        assert 0 < dep.state().fallbacks < dep.state().rounds
        report = dep.audit()
        assert report.clean, report
        assert (report.level, report.replay_differences) == ("replayed", 0)
        assert report.snapshots == 2
        assert report.decisions == dep.state().rounds
        assert report.observations == dep.state().observations
        assert "clean, replayed" in str(report)
        assert report.to_dict()["level"] == "replayed"
    with Deployment.open(any_url, "shop", snapshot_every=10) as dep:
        live(dep, seed=1)
        assert in_agreement(dep)
        assert dep.audit().clean
        fields, arrays = entries_of(dep)[0].unpack()
    assert fields["gate"] == {"name": NAME}
    assert "composition" not in fields
    assert arrays == {}


def test_a_compiled_policy_is_recomputed(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        report = dep.audit()
        assert report.to_dict()["level"] == "recomputed"
        assert "clean, recomputed" in str(report)


def test_everything_that_a_round_carries_is_recorded(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url, policy=NAME, reserve=5.0) as dep:
        given = round_of(rng, 2, labels=("red", "blue"), request_id="r", context={"user": 1})
        made = dep.decide(given)
        assert dep.decide(given) == made
        record = dep.record(made.id)
        assert (record.labels, record.baseline_mean) == (("red", "blue"), 0.6)
        assert (record.context, record.request_id) == ({"user": 1}, "r")
        assert record.decision.propensity == made.propensity is not None
        plain = record.to_dict()
        assert (plain["labels"], plain["baseline_mean"]) == (["red", "blue"], 0.6)
        with pytest.raises(ContradictoryRequest):
            dep.decide(given._replace(baseline_mean=0.7))
        with pytest.raises(InvalidInput, match="baseline_mean"):
            dep.decide(given._replace(baseline_mean=None, request_id=None))
        with pytest.raises(InvalidInput, match=r"rounds\[1\].labels"):
            dep.decide_many([given, given._replace(labels=("red",))])
        several = dep.decide_many([given, round_of(rng, request_id="own")], contexts=[1, 2])
        assert several[0] == made
        assert dep.record(several[1].id).request_id == "own"
        assert dep.record(several[1].id).context == 2
        assert dep.audit().clean
    with create(any_url, "compiled") as dep:
        with pytest.raises(InvalidInput, match="baseline_mean"):
            dep.decide(given)
        made = dep.decide(given._replace(baseline_mean=None))
        assert dep.record(made.id).labels == ("red", "blue")
        assert dep.audit().clean


def test_a_gate_that_cannot_absorb_leaves_a_sound_object(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url, policy=NAME, reserve=5.0) as dep:
        live(dep, 10)
        for _ in range(2):
            made = dep.decide(round_of(rng))
            for earlier in dep.pending(limit=100)[:-1]:
                dep.forget(earlier.id, independent=True)
            before = dep.state()
            with pytest.raises(InvalidInput, match="bad luck"):
                dep.observe(made.id, 13.0)
            assert replace(dep.state(), radius=0.0) == replace(before, radius=0.0)  # NaN is no NaN
            dep.observe(made.id, 12.0)
            assert dep.state().observations == before.observations + 1
        with create(any_url, "other", policy=NAME) as other:
            with pytest.raises(InvalidInput, match="bad luck"):
                other.learn(np.eye(3), [1.0, 13.0, 1.0])
            assert other.state().observations == 0
            assert in_agreement(other)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_an_explanation_cannot_replace_the_decision(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    with create(memory_url, policy=NAME, reserve=5.0) as dep:
        live(dep, 5)
        before = dep.state()
        with monkeypatch.context() as patch:
            patch.setattr(CoinGate, "explanation", lambda *_: {"numbers": np.zeros(5)})
            with pytest.raises(InvalidInput, match="numbers"):
                dep.decide(round_of(rng))
        assert replace(dep.state(), radius=0.0) == replace(before, radius=0.0)
        assert in_agreement(dep)


def test_its_alarm_is_recorded(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url, policy=NAME, reserve=5.0) as dep:
        dep.observe(dep.decide(round_of(rng)).id, 1e6)
        assert "miracle" in str(dep.state().alarm)
        assert "miracle" in str(dep.decide(round_of(rng)).alarm)
        assert dep.audit().clean


def _bank(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["numbers"][1] += 0.01


def _action(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    fields["action"] = None if fields["action"] is not None else 0


def _propensity(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    fields["propensity"] /= 2.0


def _mean(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    fields["baseline_mean"] += 1e-12


def _details(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["details"][1, 0] = np.nextafter(arrays["details"][1, 0], 1.0)


def _explanation(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["sums"][0, 0] += 1.0


def _alarm(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    fields["alarm"] = "fire"


@pytest.mark.parametrize(
    "change",
    [_bank, _action, _propensity, _mean, _details, _explanation, _alarm],
    ids=lambda f: f.__name__,
)
def test_a_forged_decision_is_found(sqlite_url: str, change: Callable[..., None]) -> None:
    with create(sqlite_url, policy=NAME, reserve=5.0) as dep:
        live(dep, 10)
        number = [entry.seq for entry in entries_of(dep) if entry.kind == "decided"][7]
        forge(dep, number, change)
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.audit().entry == number


def test_a_forged_amendment_is_found(sqlite_url: str) -> None:
    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["numbers"][1] += 0.01

    with create(sqlite_url, policy=NAME, reserve=5.0) as dep:
        live(dep, 10)
        number = next(entry.seq for entry in entries_of(dep) if entry.kind == "executed")
        forge(dep, number, change)
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.audit().entry == number


def test_a_gate_that_is_not_there(any_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(any_url, policy=NAME) as dep:
        live(dep, 3)
    stranger = GateFactory("stranger", CoinGate, "not registered")
    with pytest.raises(InvalidInput, match="registered"):
        Deployment.create(any_url, "another", MODEL, stranger)
    assert Deployment.names(any_url) == ["shop"]
    with monkeypatch.context() as patch:
        patch.delitem(registry._REGISTRY, NAME)
        with pytest.raises(SchemaVersion, match="install"):
            Deployment.open(any_url, "shop")
    with Deployment.open(any_url, "shop") as dep:
        assert seen(dep).gate.rounds == dep.state().rounds
