"""After an alarm a policy that latches plays the baseline only, says so, and keeps saying so."""

from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b import errors
from support.oracle_comparison import ALL_METHODS

MODEL = c4b.LinearModel(2, 0.1, 1.0)
GOOD, BASELINE = [[1.2, 0.1], [1.1, -0.1]], [1.0, 0.0]
HISTORY = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] * 20)


def deployed(name: str, **settings: bool) -> c4b.Policy:
    """Well informed, with a reserve: plays candidates."""
    policy = c4b.Policy(name, MODEL, alpha=0.1, reserve=1.0, **settings)
    policy.learn(HISTORY, HISTORY @ [0.6, 0.2])
    first = policy.decide(GOOD, BASELINE)
    assert first.action is not None
    assert first.alarm is None
    policy.observe(first.id, 0.7)
    return policy


def alarm(policy: c4b.Policy) -> None:
    """Rewards that no theta explains: twenty times the declared noise."""
    for n in range(6):
        policy.observe(policy.decide([], BASELINE).id, 0.6 + 2.0 * (-1.0) ** n)


def test_only_the_recommended_policy_latches() -> None:
    assert [name for name in ALL_METHODS if c4b.policies.get(name).latches] == ["reserve-c4b+"]


def test_the_baseline_and_nothing_else_from_then_on() -> None:
    policy = deployed("reserve-c4b+")
    alarm(policy)
    assert policy.alarm is not None
    for _ in range(30):  # good data do not bring it back
        decision = policy.decide(GOOD, BASELINE)
        assert decision.is_baseline
        assert decision.alarm == policy.alarm
        assert decision.explain().summary.startswith(f"ALARM: {policy.alarm}")
        assert decision.explain().to_dict()["alarm"] == policy.alarm
        policy.observe(decision.id, 0.6)


@pytest.mark.parametrize("name", ["refresh", "checkpoints"])
def test_others_say_so_and_go_on(name: str) -> None:
    policy = deployed(name)
    alarm(policy)
    decision = policy.decide(GOOD, BASELINE)
    assert decision.alarm is not None
    assert decision.action is not None


@pytest.mark.parametrize("cause", ["residuals", "norm bound"])
def test_the_latch_survives_a_file(tmp_path: Path, cause: str) -> None:
    if cause == "residuals":
        policy = deployed("reserve-c4b+")
        alarm(policy)
    else:  # an empty set leaves radii that are not numbers
        policy = c4b.Policy("reserve-c4b+", MODEL, alpha=0.1, reserve=1.0)
        policy.learn([[1.0, 0.0]] * 3, [3.0] * 3)
    assert policy.alarm is not None
    assert cause in policy.alarm
    policy.save(tmp_path / "policy")
    again = c4b.Policy.load(tmp_path / "policy")
    assert again.alarm == policy.alarm
    assert again.decide(GOOD, BASELINE).is_baseline
    assert again.evidence.flat.tobytes() == policy.evidence.flat.tobytes()


def test_it_stops_where_the_baseline_is_not_known_to_be_nonnegative() -> None:
    policy = deployed("reserve-c4b+", baseline_nonnegative=False)
    for decision in policy.decide_many([([], BASELINE)] * 6):  # decided before anything was amiss
        policy.observe(decision.id, 0.6 + 2.0 * (-1.0) ** policy.evidence.count)
    assert policy.alarm is not None
    ledger, rounds = policy.gate.ledger.tobytes(), policy.rounds
    with pytest.raises(errors.NoSafeAction, match="refuted"):
        policy.decide(GOOD, BASELINE)
    assert (policy.gate.ledger.tobytes(), policy.rounds) == (ledger, rounds)
