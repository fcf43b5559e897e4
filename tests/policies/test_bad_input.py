"""Every entry point of a policy: a typed error that names argument, value and remedy; no change."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import c4b
from c4b import errors
from support.oracle_comparison import METHODS, history

MODEL = c4b.LinearModel(2, 0.1, 1.0)
GOOD, BASE = [[1.0, 0.1]], [1.0, 0.0]
HUGE = 10**400  # an int that no float can hold


def snapshot(policy: c4b.Policy) -> tuple[Any, ...]:
    """Everything that a later call could see."""
    arrays = {key: array.tobytes() for key, array in policy.state()[1].items()}
    return arrays, policy.state()[0], policy.pending, policy.rounds, repr(policy.bank)


@pytest.fixture
def policy() -> c4b.Policy:
    """Rounds 0 absorbed, 1 pending, 2 reported but stalled, 3 forgotten but stalled."""
    made = c4b.Policy("refresh", MODEL, alpha=0.1, reserve=0.5)
    made.learn(*history(np.random.default_rng(0), np.array([0.6, 0.1]), 50, 0.1))
    decisions = made.decide_many([(GOOD, BASE)] * 4)
    made.observe(decisions[0].id, 0.5)
    made.observe(decisions[2].id, 0.25)
    made.forget(decisions[3].id)
    return made


def decision_id(policy: c4b.Policy, round_: int) -> str:
    return policy.pending[0].rpartition("-")[0] + f"-{round_}"


MATRICES: dict[str, object] = {
    "a vector": [1.0, 0.1],
    "wrong width": [[1.0, 0.1, 2.0]],
    "four axes": [[[[1.0, 0.1]]]],
    "ragged": [[1.0, 0.1], [1.0]],
    "text": [["one", "two"]],
    "numerals as text": [["1.0", "0.1"]],
    "none": None,
    "complex": np.array([[1.0 + 1.0j, 0.1]]),
    "objects": [[object(), 1.0]],
    "dates": np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
    "huge integer": [[HUGE, 1.0]],
    "a dict": {"a": 1.0},
    "NaN": [[1.0, 0.1], [1.0, math.nan]],
    "infinity": [[math.inf, 0.1]],
    "minus infinity": [[1.0, -math.inf]],
    "masked": np.ma.masked_array([[1.0, 0.1]], mask=[[True, False]]),
    "a masked row": [np.ma.masked_array([1.0, 0.1], mask=[True, False])],
    "numerals among objects": np.array([["1.0", 0.1]], dtype=object),
    "a date among objects": np.array([[np.datetime64("2020-01-01"), 0.1]], dtype=object),
    "imaginary parts among objects": np.array([[np.complex128(1j), 0.1]], dtype=object),
}
VECTORS: dict[str, object] = {
    "three axes": [[[1.0, 0.1]]],
    "too long": [1.0, 0.1, 2.0],
    "empty": [],
    "a number": 1.0,
    "text": ["one", "two"],
    "none": None,
    "NaN": [1.0, math.nan],
    "infinity": [math.inf, 1.0],
    "too large": [1e101, 1.0],
    "huge integer": [HUGE, 1.0],
    "complex": np.array([1.0 + 1.0j, 0.1]),
}
REWARDS: dict[str, object] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "too large": 1e101,
    "text": "0.5",
    "none": None,
    "a list": [0.5],
    "an array": np.array([0.5]),
    "a duration": np.timedelta64(1, "ns"),
    "lists of different lengths": [[0.5, 0.5], [0.5]],
    "complex": 0.5j,
    "huge integer": HUGE,
    "unprintable integer": 10**5000,
    "huge fraction": Fraction(HUGE),
}
IDS: dict[str, object] = {
    "unknown": "nobody",
    "another policy's": "0123456789ab-1",
    "empty": "",
    "a number": 1,
    "none": None,
    "bytes": b"x-1",
    "too large for an int": "x-" + "9" * 5000,
}


def refused(
    policy: c4b.Policy, kind: type[errors.InvalidInput], argument: str, call: Callable[[], object]
) -> None:
    before = snapshot(policy)
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert error.argument.startswith(argument), error.argument
    assert str(error) == f"{error.argument} = {error.shown}: {error.remedy}"
    assert len(error.remedy) > 10
    assert snapshot(policy) == before


@pytest.mark.parametrize("what", MATRICES)
def test_candidates(policy: c4b.Policy, what: str) -> None:
    bad = MATRICES[what]
    refused(policy, errors.InvalidInput, "candidates", lambda: policy.decide(bad, BASE))
    batch = [(GOOD, BASE), (bad, BASE)]
    refused(policy, errors.InvalidInput, "rounds[1].candidates", lambda: policy.decide_many(batch))


@pytest.mark.parametrize("what", VECTORS)
def test_baseline_and_executed_features(policy: c4b.Policy, what: str) -> None:
    bad = VECTORS[what]
    refused(policy, errors.InvalidInput, "baseline", lambda: policy.decide(GOOD, bad))
    refused(policy, errors.InvalidInput, "baseline", lambda: policy.decide([], bad))
    batch = [(GOOD, BASE), (GOOD, bad)]
    refused(policy, errors.InvalidInput, "rounds[1].baseline", lambda: policy.decide_many(batch))
    if bad is not None:  # None means the baseline here
        one = policy.pending[0]
        refused(policy, errors.InvalidInput, "features", lambda: policy.executed(one, bad))


@pytest.mark.parametrize("bad", [None, 1, [1], [(GOOD,)], [(GOOD, BASE, 1)], [None], np.array(1.0)])
def test_decide_many_needs_pairs(policy: c4b.Policy, bad: Any) -> None:
    refused(policy, errors.InvalidInput, "rounds", lambda: policy.decide_many(bad))


@pytest.mark.parametrize("what", REWARDS)
def test_rewards(policy: c4b.Policy, what: str) -> None:
    bad: Any = REWARDS[what]
    one = policy.pending[0]
    refused(policy, errors.InvalidInput, "reward", lambda: policy.observe(one, bad))
    batch: Any = [(one, 0.5), (one, bad)]
    refused(policy, errors.InvalidInput, "outcomes[1].reward", lambda: policy.observe_many(batch))


@pytest.mark.parametrize("what", IDS)
def test_decision_ids(policy: c4b.Policy, what: str) -> None:
    bad: Any = IDS[what]
    if isinstance(bad, str) and bad.startswith("x-"):
        bad = decision_id(policy, 0)[:-1] + bad[2:]
    one = policy.pending[0]
    refused(policy, errors.UnknownDecision, "decision_id", lambda: policy.observe(bad, 0.5))
    refused(policy, errors.UnknownDecision, "decision_id", lambda: policy.forget(bad))
    refused(policy, errors.UnknownDecision, "decision_id", lambda: policy.executed(bad))
    batch = [(one, 0.5), (bad, 0.5)]
    refused(policy, errors.UnknownDecision, "", lambda: policy.observe_many(batch))


@pytest.mark.parametrize("number", ["4", "-1", "01", "+1", " 1", "1.0", "१", ""])
def test_only_ids_that_were_given_out(policy: c4b.Policy, number: str) -> None:
    bad = decision_id(policy, 0)[:-1] + number
    refused(policy, errors.UnknownDecision, "decision_id", lambda: policy.observe(bad, 0.5))


@pytest.mark.parametrize("bad", [None, 1, [1], ["id"], [("a",)], [("a", 1.0, 2.0)], np.array("id")])
def test_observe_many_needs_pairs(policy: c4b.Policy, bad: Any) -> None:
    refused(policy, errors.InvalidInput, "outcomes", lambda: policy.observe_many(bad))


def test_contradictions(policy: c4b.Policy) -> None:
    absorbed, pending, stalled, lost = (decision_id(policy, n) for n in range(4))
    for one in (absorbed, stalled):
        refused(policy, errors.ContradictoryOutcome, "reward", lambda one=one: policy.observe(one, 0.9))
        refused(policy, errors.InvalidInput, "decision_id", lambda one=one: policy.forget(one))
    refused(policy, errors.OutcomeClosed, "decision_id", lambda: policy.observe(lost, 0.5))
    for one in (absorbed, stalled, lost):
        refused(policy, errors.OutcomeClosed, "decision_id", lambda one=one: policy.executed(one))
    twice = [(pending, 0.5), (pending, 0.6)]
    refused(policy, errors.ContradictoryOutcome, "outcomes[1].reward", lambda: policy.observe_many(twice))
    mixed = {pending: 0.5, absorbed: 0.9}
    refused(policy, errors.ContradictoryOutcome, "", lambda: policy.observe_many(mixed))


def test_an_outcome_absorbed_long_ago_is_named_as_such() -> None:
    """4096 closed outcomes are remembered, so that memory stays bounded."""
    policy = c4b.Policy("contrast", c4b.LinearModel(1, 0.1, 1.0))
    first = policy.decide([], [1.0])
    policy.observe(first.id, 0.5)
    for _ in range(4095):
        policy.observe(policy.decide([], [1.0]).id, 0.5)
    policy.observe(first.id, 0.5)  # just remembered
    policy.observe(policy.decide([], [1.0]).id, 0.5)
    refused(policy, errors.OutcomeClosed, "decision_id", lambda: policy.observe(first.id, 0.5))


@pytest.mark.parametrize("what", [w for w in MATRICES if w != "a vector"])
def test_history_features(what: str) -> None:
    made = c4b.Policy("refresh", MODEL)
    refused(made, errors.InvalidInput, "features", lambda: made.learn(MATRICES[what], [0.5]))


@pytest.mark.parametrize(
    "bad", [[0.5], [0.5, math.nan], [[0.5, 0.5]], None, ["a", "b"], [0.5, HUGE], 1.0]
)
def test_history_rewards(bad: object) -> None:
    made = c4b.Policy("refresh", MODEL)
    features = [[1.0, 0.0], [0.0, 1.0]]
    refused(made, errors.InvalidInput, "rewards", lambda: made.learn(features, bad))


def test_history_is_closed_by_the_first_decision(policy: c4b.Policy) -> None:
    before = snapshot(policy)
    with pytest.raises(errors.HistoryClosed, match="before the first decision"):
        policy.learn([[1.0, 0.0]], [0.5])
    assert snapshot(policy) == before


@pytest.mark.parametrize("name", METHODS[:-1])
def test_no_safe_action_changes_nothing(name: str) -> None:
    made = c4b.Policy(name, MODEL, baseline_nonnegative=False)
    before = snapshot(made)
    for _ in range(2):
        with pytest.raises(errors.NoSafeAction, match="reserve"):
            made.decide(GOOD, BASE)
        with pytest.raises(errors.NoSafeAction):
            made.decide_many([([], [0.0, 0.0]), (GOOD, BASE)])  # the first alone would succeed
    assert snapshot(made) == before
    made.decide([], [0.0, 0.0])


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *[("alpha", {"alpha": bad}) for bad in (0.0, 1.0, -0.1, 2, math.nan, "0.1", None, True, HUGE)],
    *[("reserve", {"reserve": bad}) for bad in (-1e-9, math.inf, math.nan, 1e101, "1", None, False)],
    *[("baseline_nonnegative", {"baseline_nonnegative": bad}) for bad in (1, "yes", None)],
    *[("absorb", {"absorb": bad}) for bad in ("in order", "", None, ["in-order"])],
    *[("policy", {"policy": bad}) for bad in ("Refresh", "", None, ["refresh"], 3)],
    *[("model", {"model": bad}) for bad in (None, 2, {"dim": 2})],
]


@pytest.mark.parametrize(("argument", "change"), SETTINGS)
def test_settings(argument: str, change: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        c4b.Policy(**({"policy": "refresh", "model": MODEL} | change))
    assert caught.value.argument == argument
    is_name = argument in ("policy", "absorb")
    assert isinstance(caught.value, errors.UnknownName) == is_name


@pytest.mark.parametrize(
    "name", ["alpha", "reserve", "baseline_nonnegative", "absorb", "composition", "evidence", "bank"]
)
def test_terms_cannot_be_changed_under_a_ledger(policy: c4b.Policy, name: str) -> None:
    before = getattr(policy, name)
    with pytest.raises(AttributeError, match=name):
        setattr(policy, name, before)
    assert getattr(policy, name) is before or getattr(policy, name) == before
