"""C-SquareCB over a regression that declares its regret: the gate's numbers, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.policies.catalogue import registry
from c4b.policies.field import Regressor, square_cb_over
from c4b.policies.gate import Arrays
from c4b.study.spec.plan import PythonGate

ROWS, BASELINE = np.array([[1.0, 0.2], [1.0, -0.1]]), np.array([1.0, 0.0])
MODEL = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)


class Average(Regressor):
    """Predicts the average reward so far, 0.3 before the first."""

    def __init__(self) -> None:
        self.sums = np.zeros(2)

    def predict(self, rows: Array) -> Array:
        count, total = self.sums
        return np.full(len(rows), total / count if count else 0.3)

    def update(self, features: Array, reward: float) -> None:
        self.sums += 1.0, reward

    def regret(self, plays: int) -> float:
        return 0.5 + 0.1 * plays

    def arrays(self) -> Arrays:
        return {"sums": self.sums}

    def restore(self, arrays: Arrays) -> None:
        self.sums = arrays["sums"]


average = square_cb_over("average", lambda terms: Average(), "the average", lowest_mean=-0.25)


def opened() -> c4b.Policy:
    return c4b.Policy(average, MODEL, alpha=0.1, reserve=20.0, seed=3)


def test_the_bank_is_what_predictions_less_their_regret_have_earned() -> None:
    policy = opened()
    first = policy.decide(ROWS, BASELINE, baseline_mean=0.5)
    assert first.action is not None
    assert first.bank == pytest.approx(20.0 - 0.9 * 0.5 - 0.25)  # an open play earns at least -1/4
    policy.observe(first.id, 0.7)
    second = policy.decide(ROWS, BASELINE, baseline_mean=0.5)
    width = math.sqrt(1.0 * (2.0 * 0.6 + 8.0 * 0.01 * math.log(20.0)))
    assert second.bank == pytest.approx(20.0 - 2 * 0.9 * 0.5 + 0.3 - width - 0.25)
    policy.observe(second.id, 0.9)
    width = math.sqrt(2.0 * (2.0 * 0.7 + 8.0 * 0.01 * math.log(20.0)))
    third = policy.decide(ROWS[:0], BASELINE, baseline_mean=0.5)
    assert third.bank == pytest.approx(20.0 - 2 * 0.9 * 0.5 + 0.1 * 0.5 + 0.3 + 0.7 - width)
    assert "guarantee conditional on declared regret" in average.summary


def test_it_continues_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTRY, "average", average)
    policy = opened()
    for reward in (0.7, 0.9, 0.2):
        policy.observe(policy.decide(ROWS, BASELINE, baseline_mean=0.5).id, reward)
    policy.save(tmp_path / "policy.npz")
    again = c4b.Policy.load(tmp_path / "policy.npz")
    for _ in range(3):
        one, other = (p.decide(ROWS, BASELINE, baseline_mean=0.5) for p in (policy, again))
        assert (one.action, one.numbers, one.propensity) == (
            other.action,
            other.numbers,
            other.propensity,
        )
    with pytest.raises(ValueError, match="regression of average"):
        policy.gate.restore({n: a for n, a in policy.gate.snapshot().items() if "regressor" not in n})


def test_a_study_takes_a_factory_with_its_needs() -> None:
    named = PythonGate("mine", source=f"{__name__}:average")
    assert named.names_a_factory
    assert named.factory().needs == average.needs
    assert named.factory().name == "mine"


def test_the_lowest_mean_is_a_number() -> None:
    with pytest.raises(InvalidInput, match="lowest_mean"):
        square_cb_over("bad", lambda terms: Average(), "nothing", lowest_mean=math.nan)
