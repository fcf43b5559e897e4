"""Arrays that need no conversion and outcomes in order take a shorter path, which changes nothing."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c4b
from c4b._validate import Array
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate_run import GateRun

DIM = 3
BASELINE = np.eye(DIM)[0]


def policy(name: str) -> c4b.Policy:
    made = c4b.Policy(name, c4b.LinearModel(DIM, noise=0.2, norm_bound=1.5), reserve=0.5)
    made.learn(np.tile(BASELINE, (20, 1)), np.full(20, 0.8))
    return made


def pools(count: int) -> list[Array]:
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 40, size=count)
    return [np.c_[np.ones(k), 0.3 * rng.normal(size=(k, DIM - 1))] for k in sizes]


def content(made: c4b.Policy) -> bytes:
    """All that a file would keep, but for the token in the names of decisions."""
    header, arrays = made.state()
    header.pop("token")
    return repr(header).encode() + b"".join(arrays[name].tobytes() for name in sorted(arrays))


@pytest.mark.parametrize("name", ["refresh", "reserve-c4b+", "linucb", "lcbce"])
def test_both_paths_decide_and_learn_to_the_bit(name: str) -> None:
    needs = {"baseline_mean": 0.8} if "baseline_mean" in c4b.policies.get(name).needs else {}
    short, long = policy(name), policy(name)
    for n, pool in enumerate(pools(60)):
        one = short.decide(pool, BASELINE, **needs)
        two = long.decide(pool.tolist(), BASELINE.tolist(), **needs)
        assert one == two._replace(id=one.id)
        reward = 0.1 * (n % 9)
        short.observe(one.id, reward)
        long.observe("".join(two.id), np.float64(reward))
        assert content(short) == content(long)


def test_outcomes_out_of_order_are_absorbed_in_order() -> None:
    late, prompt = policy("refresh"), policy("refresh")
    for first, second, third in zip(*[iter(pools(30))] * 3, strict=True):
        ids = [late.decide(pool, BASELINE).id for pool in (first, second, third)]
        others = [prompt.decide(pool, BASELINE).id for pool in (first, second, third)]
        late.observe(ids[2], 0.3)  # the latest decision, but not the oldest open one
        assert late.evidence.count < prompt.evidence.count + 3
        late.observe(ids[1], 0.2)
        late.observe(ids[0], 0.1)
        for id_, reward in zip(others, (0.1, 0.2, 0.3), strict=True):
            prompt.observe(id_, reward)
        assert content(late) == content(prompt)
    late.observe(ids[2], 0.3)  # repeated: harmless
    assert content(late) == content(prompt)
    with pytest.raises(c4b.errors.ContradictoryOutcome):
        late.observe(ids[2], 0.4)
    for reward in (float("nan"), float("inf"), 1e101):
        decision = late.decide(first, BASELINE)
        with pytest.raises(c4b.errors.InvalidInput):
            late.observe(decision.id, reward)
        late.observe(decision.id, 0.5)


@pytest.mark.parametrize("name", ["refresh", "reserve-c4b+"])
@pytest.mark.parametrize("where", ["before", "after", "counted"])
def test_an_interrupted_decision_is_taken_back(
    name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the gate decides, after it has charged, and after the round was counted."""
    made, twin = policy(name), policy(name)
    decided: Any = CompiledGate.decide_ready
    counted: Any = GateRun.await_outcome

    def struck(self: Any, *given: Any) -> Any:
        if where == "after":
            decided(self, *given)
        elif where == "counted":
            counted(self, *given)
        raise KeyboardInterrupt

    for pool in pools(20):
        before = content(made)
        with monkeypatch.context() as patch:
            if where == "counted":
                patch.setattr(GateRun, "await_outcome", struck)
            else:
                patch.setattr(CompiledGate, "decide_ready", struck)
            with pytest.raises(KeyboardInterrupt):
                made.decide(pool, BASELINE)
        assert content(made) == before
        assert made.pending == ()
        for each in (made, twin):
            each.observe(each.decide(pool, BASELINE).id, 0.7)
        assert content(made) == content(twin)


@pytest.mark.parametrize("name", ["refresh", "reserve-c4b+"])
@pytest.mark.parametrize(
    "made_again", [copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_the_gate_of_a_copy_has_a_working_space_of_its_own(
    made_again: Callable[[CompiledGate], CompiledGate], name: str
) -> None:
    made = policy(name)
    pool = pools(9)[-1]
    made.observe(made.decide(pool, BASELINE).id, 0.7)
    gate = made.gate
    assert isinstance(gate, CompiledGate)
    expected = made.preview(pool, BASELINE).details
    other = made_again(gate)
    before = other.ledger.copy()
    decision = other.decide_ready(pool, BASELINE, np.nan, "again")
    assert np.array_equal(decision.details, expected, equal_nan=True)
    other.take_back(1)
    assert other.ledger.tobytes() == before.tobytes()


def test_nothing_stands_for_no_decision(tmp_path: Path) -> None:
    """A policy that was just read has decided nothing yet, and an empty name is not its first round."""
    made = policy("refresh")
    made.decide(pools(1)[0], BASELINE)
    made.save(tmp_path / "policy.npz")
    again = c4b.Policy.load(tmp_path / "policy.npz")
    nothing: list[Any] = ["", None]
    for name in nothing:
        with pytest.raises(c4b.errors.UnknownDecision):
            again.observe(name, 0.5)
    assert len(again.pending) == 1


def test_a_pickle_of_an_earlier_version_has_a_rule_with_fewer_numbers() -> None:
    """A kernel does not check where an array ends: what is missing must not be read from memory."""
    parts = c4b.Policy("reserve-c4b+", c4b.LinearModel(DIM, 0.2, 1.5)).spec
    assert isinstance(parts, c4b.Composition)
    former = replace(parts, name="made up", selection="hopeful-6")
    made = c4b.Policy(former, c4b.LinearModel(DIM, 0.2, 1.5), reserve=0.5)
    assert isinstance(made.gate, CompiledGate)
    state = made.gate.__getstate__()
    whole = state["_rule"]
    again = CompiledGate.__new__(CompiledGate)
    again.__setstate__({**state, "_rule": whole[:-1]})
    np.testing.assert_array_equal(again.__getstate__()["_rule"], whole)
    assert whole[-1] == 0.0  # what that version did
