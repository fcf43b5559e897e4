"""What a gate in plain Python answers is checked; what fails in it, or in a set, changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c4b
from c4b import Decision, Deployment, GateTerms, Policy, Round
from c4b.errors import CorruptState, GateFailed, SchemaVersion, StateFileError
from c4b.evidence import PythonSet, SetView
from c4b.evidence.sets import table
from c4b.evidence.sets.confidence_set import one_ridge
from c4b.policies.catalogue import registry
from c4b.testing.world import state
from support.coin_gate import COIN, CoinGate

MODEL = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
POOL, BASELINE = np.array([[0.1, 0.0], [0.0, 0.1]]), np.array([1.0, 0.0])
NAN = float("nan")

Change = Callable[[Decision], Any]
WRONG: dict[str, tuple[Change, str]] = {
    "no decision": (lambda made: 0, "returned int"),
    "nothing": (lambda made: None, "returned NoneType"),
    "an index from the end": (lambda made: made._replace(action=-1), "-1 of 2 candidates"),
    "no such candidate": (lambda made: made._replace(action=2), "2 of 2 candidates"),
    "a truth value": (lambda made: made._replace(action=True), "neither None nor the index"),
    "a fraction": (lambda made: made._replace(action=0.0), "neither None nor the index"),
    "details of another shape": (lambda made: made._replace(details=np.zeros((2, 1))), "(5, 2)"),
    "details that are a list": (lambda made: made._replace(details=made.details.tolist()), "(5, 2)"),
    "an alarm that is no text": (lambda made: made._replace(alarm=ValueError()), "alarm"),
    "a chance above 1": (lambda made: made._replace(propensity=2.0), "propensity"),
    "a chance that is no number": (lambda made: made._replace(propensity=NAN), "propensity"),
    "no certificate": (lambda made: made._replace(certificate=None), "certificate is None"),
    "another bank": (lambda made: made._replace(bank=made.bank + 1.0), "the gate's is"),
}


class Twisted(CoinGate):
    """Changes the coin gate's answers, or what it leaves behind, as a test says."""

    change: Change = staticmethod(lambda made: made)

    def decide(self, round_: Round, decision_id: str) -> Decision:
        made = super().decide(round_, decision_id)
        return type(self).change(made)  # type: ignore[no-any-return]


def twisted(change: Change, **more: Any) -> registry.GateFactory:
    kind = type("Kind", (Twisted,), {"change": staticmethod(change), **more})
    return replace(COIN, name="twisted", make=kind)


def first(policy: Policy) -> Decision:
    return policy.decide(POOL, BASELINE, 0.5)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused_and_changes_nothing(name: str) -> None:
    change, message = WRONG[name]
    policy = Policy(twisted(change), MODEL, alpha=0.2, reserve=2.0)
    before = state(policy)
    with pytest.raises(GateFailed) as caught:
        first(policy)
    assert message in str(caught.value)
    assert state(policy) == before


@pytest.mark.parametrize("name", WRONG)
def test_a_deployment_records_no_wrong_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTRY, "twisted", twisted(WRONG[name][0]))
    url = f"memory://wrong-{name}"
    with Deployment.create(url, "shop", MODEL, policy="twisted", alpha=0.2, reserve=2.0) as dep:
        before = dep.state()
        with pytest.raises(GateFailed):
            dep.decide(Round(POOL, BASELINE, 0.5))
        assert dep.state() == before
        assert dep.decisions() == []


@pytest.mark.parametrize("how", ["frozen", "shadow"])
@pytest.mark.parametrize(
    "change",
    [
        lambda made: made._replace(action=-1),
        lambda made: made._replace(action=0),  # also when it is asked again, without candidates
        lambda made: None,
    ],
)
def test_a_held_round_plays_the_baseline(
    change: Change, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._REGISTRY, "twisted", twisted(change))
    terms: dict[str, Any] = {
        "policy": "twisted",
        "reserve": 2.0,
        "mode": "shadow" if how == "shadow" else "live",
    }
    with Deployment.create(f"memory://{uuid.uuid4()}", "shop", MODEL, **terms) as dep:
        if how == "frozen":
            dep.freeze("somebody", "a test")
        before = dep.state()
        with pytest.raises(GateFailed):
            dep.decide(Round(POOL, BASELINE, 0.5))
        assert dep.state() == before


def test_a_bank_that_certifies_nothing_plays_no_candidate() -> None:
    def lost(self: CoinGate, round_: Round, decision_id: str) -> Decision:
        made = CoinGate.decide(self, round_, decision_id)
        self.ledger[0] = NAN
        return made._replace(action=0, bank=NAN)

    policy = Policy(twisted(lambda made: made, decide=lost), MODEL, alpha=0.2, reserve=2.0)
    before = state(policy)
    with pytest.raises(GateFailed, match="leaves the bank nan"):
        first(policy)
    assert state(policy) == before
    promises_nothing = replace(policy.spec, gated=False)  # type: ignore[type-var]
    assert first(Policy(promises_nothing, MODEL, reserve=2.0)).action == 0


def test_rounds_must_be_counted() -> None:
    policy = Policy(
        twisted(lambda made: made, rounds=property(lambda self: 0)), MODEL, alpha=0.2, reserve=2.0
    )
    with pytest.raises(GateFailed, match="counts 0 rounds after 1 decisions"):
        first(policy)


def test_numbers_of_numpy_become_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def numpys(made: Decision) -> Decision:
        action: Any = None if made.action is None else np.int64(made.action)
        return made._replace(action=action, id="of its own", bank=np.float64(made.bank))

    monkeypatch.setitem(registry._REGISTRY, "twisted", twisted(numpys))
    with Deployment.create("memory://plain", "shop", MODEL, policy="twisted", reserve=2.0) as dep:
        made = [dep.decide(Round(POOL, BASELINE, 0.5)) for _ in range(6)]
        assert {type(each.action) for each in made} == {int, type(None)}
        assert dep.audit().clean
    policy = Policy("twisted", MODEL, reserve=2.0)
    policy.observe(first(policy).id, 0.5)


def test_a_gate_cannot_change_what_the_caller_offers() -> None:
    def overwrites(self: CoinGate, round_: Round, decision_id: str) -> Decision:
        made = CoinGate.decide(self, round_, decision_id)
        round_.candidates[:] = round_.baseline[:] = 7.0
        return made

    policy = Policy(twisted(lambda made: made, decide=overwrites), MODEL, reserve=2.0)
    pool, baseline = POOL.copy(), BASELINE.copy()
    policy.decide(pool, baseline, 0.5)
    assert np.array_equal(pool, POOL)
    assert np.array_equal(baseline, BASELINE)


# -- errors of a gate's or a set's own code --------------------------------------------------------


def check_nothing_changed(policy: Policy, call: Callable[[], object]) -> None:
    before, pending = state(policy), policy.pending
    with pytest.raises(ZeroDivisionError):
        call()
    assert (state(policy), policy.pending) == (before, pending)


def absorbs_few(self: CoinGate, features: Any, reward: float) -> None:
    CoinGate.absorb(self, features, reward)
    if reward == 1.0:
        raise ZeroDivisionError


def divides(view: SetView) -> None:
    view.radius[0] = 1.0
    if view.squares_sum >= 1.0:
        raise ZeroDivisionError


@pytest.fixture(params=["gate", "set"])
def policy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Policy:
    """One that raises when it learns the reward 1."""
    if request.param == "gate":
        return Policy(twisted(lambda made: made, absorb=absorbs_few), MODEL, reserve=2.0)
    raising = PythonSet("divides", "raises an error", one_ridge, rebuild=divides)
    monkeypatch.setitem(table._TABLE, "divides", raising)
    return Policy("clucb", replace(MODEL, confidence="divides"), reserve=2.0)


def test_an_error_in_learning_changes_nothing(policy: Policy) -> None:
    check_nothing_changed(policy, lambda: policy.learn(POOL, [0.5, 1.0]))
    policy.learn(POOL, [0.5, 0.5])


def test_an_error_in_absorbing_changes_nothing(policy: Policy) -> None:
    ids = [first(policy).id for _ in range(4)]
    policy.observe(ids[1], 1.0)  # waits for the first one
    check_nothing_changed(policy, lambda: policy.observe(ids[0], 0.5))
    check_nothing_changed(policy, lambda: policy.forget(ids[0], independent=True))
    check_nothing_changed(policy, lambda: policy.observe_many([(ids[2], 0.1), (ids[0], 0.5)]))


def test_the_latest_outcome_can_be_reported_again(policy: Policy) -> None:
    made = first(policy)
    check_nothing_changed(policy, lambda: policy.observe(made.id, 1.0))
    policy.observe(made.id, 0.5)
    assert policy.pending == ()


def test_an_error_in_amending_changes_nothing() -> None:
    def amend(self: CoinGate, *_: object) -> None:
        self.ledger[0] += 1.0
        raise ZeroDivisionError

    policy = Policy(twisted(lambda made: made, amend=amend), MODEL, reserve=2.0)
    made = first(policy)
    check_nothing_changed(policy, lambda: policy.executed(made.id, [0.3, 0.3]))


# -- what is not there any more --------------------------------------------------------------------


def test_a_file_whose_gate_or_set_is_missing_is_not_called_damaged(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.save(tmp_path / "state")
    monkeypatch.delitem(table._TABLE, "divides", raising=False)
    with pytest.raises(StateFileError, match="install the package") as caught:
        Policy.load(tmp_path / "state")
    assert not isinstance(caught.value, CorruptState)


def test_a_later_revision_must_make_the_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTRY, "twisted", twisted(lambda made: made))
    url = "memory://revision"
    with Deployment.create(url, "shop", MODEL, policy="twisted", reserve=2.0) as dep:
        dep.decide(Round(POOL, BASELINE, 0.5))
    later = replace(twisted(lambda made: made), revision=2)
    monkeypatch.setitem(registry._REGISTRY, "twisted", later)
    with pytest.raises(SchemaVersion, match="must take the earlier ones"):
        Deployment.open(url, "shop").state()

    def make(terms: GateTerms, revision: int = 2) -> CoinGate:
        return CoinGate(terms)

    monkeypatch.setitem(registry._REGISTRY, "twisted", replace(later, make=make))
    with Deployment.open(url, "shop") as dep:
        assert dep.state().rounds == 1
        assert dep.audit().clean
