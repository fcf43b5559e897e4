"""The policy `clicks`: what it may play before anything is known, and a bank that is never too large."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import c4b
from c4b._validate import Array
from c4b.ledger import books
from c4b.ledger.books import LedgerKind

BASELINE = np.array([1.0, 0.0, 0.0])
ARMS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def kind(policy: c4b.Policy) -> int:
    return books.views(policy.gate.snapshot()["ledger"])[1].kind


def test_a_share_of_rounds_is_free_without_any_evidence() -> None:
    """Not one reward is ever seen, so nothing but counting can certify a play."""
    policy = c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0), alpha=0.1)
    plays = 0
    for n in range(1, 201):
        plays += not policy.decide(ARMS, BASELINE).is_baseline
        assert plays <= 0.1 * n
        assert policy.bank >= 0.0
    assert plays >= 18


def test_a_baseline_that_changes_makes_nothing_free() -> None:
    policy = c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0), alpha=0.1)
    for n in range(100):
        assert policy.decide(ARMS, BASELINE + np.array([0.0, 0.1 * (n == 1), 0.0])).is_baseline or n < 1


@pytest.mark.parametrize("rewards", [None, (-1, 1), (0.5, 1)])
def test_without_zero_as_the_lowest_reward_it_is_a_ledger_of_checkpoints(
    rewards: tuple[float, float] | None,
) -> None:
    model = c4b.LinearModel.bounded(3, 1.0, rewards) if rewards else c4b.LinearModel(3, 0.5, 1.0)
    assert kind(c4b.Policy("clicks", model)) == LedgerKind.BANK
    assert kind(c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0))) == LedgerKind.FREE
    unsure = c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0), baseline_nonnegative=False)
    assert kind(unsure) == LedgerKind.BANK


def lowest_excess(seed: int, changing: bool) -> float:
    """How far the truth ever was above the bank, in a world of arms with delays and corrections."""
    rng = np.random.default_rng(seed)
    theta: Array = float(rng.choice([0.03, 0.2])) * np.array([1.0, *rng.uniform(-1.0, 1.0, 2)])
    policy = c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0), alpha=0.2)
    policy.learn(np.tile(BASELINE, (300, 1)), (rng.random(300) < theta[0]).astype(float))
    truth, lowest, waiting = 0.0, np.inf, []
    for n in range(400):
        baseline = BASELINE + np.array([0.0, 0.2 * changing * (n % 3 == 0), 0.0])
        decision = policy.decide(ARMS, baseline)
        played = baseline if decision.action is None else ARMS[decision.action]
        if n % 19 == 3:
            played = ARMS[1] if decision.action is None else baseline
            policy.executed(decision.id, played)
        truth += float((played - 0.8 * baseline) @ theta)
        lowest = min(lowest, truth - policy.bank)
        waiting.append((decision.id, float(rng.random() < played @ theta)))
        while len(waiting) > 5 * (n % 50 > 25):
            policy.observe(*waiting.pop(0))
    return lowest


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_bank_is_below_the_truth(seed: int, changing: bool) -> None:
    assert lowest_excess(seed, changing) >= -1e-9


def test_a_saved_policy_continues_bit_for_bit(tmp_path: Path) -> None:
    policy = c4b.Policy("clicks", c4b.LinearModel.bounded(3, 1.0), alpha=0.1)
    policy.learn(np.tile(BASELINE, (50, 1)), np.arange(50) % 5 == 0)
    for n in range(40):
        policy.observe(policy.decide(ARMS, BASELINE).id, float(n % 4 == 0))
    policy.save(tmp_path / "policy")
    loaded = c4b.Policy.load(tmp_path / "policy")
    for n in range(40):
        one, two = policy.decide(ARMS, BASELINE), loaded.decide(ARMS, BASELINE)
        assert (one.action, one.bank) == (two.action, two.bank)
        policy.observe(one.id, float(n % 3 == 0))
        loaded.observe(two.id, float(n % 3 == 0))


def benchmark(name: str) -> ModuleType:
    """A file of the folder ``benchmarks`` as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_in_small() -> None:
    """`benchmarks/clicks.py` with one short episode a world: safe, and the gate opens in each."""
    clicks = benchmark("clicks")
    for name in clicks.WORLDS:
        row = clicks.measured(name, clicks.policy_of("clicks", None), 1, 100, 600)
        assert row["lowest_credit"] == 0.0
        assert row["fallback"] < 1.0
        assert row["alarms"] == 0


def test_shared_numbers_are_worth_more_than_indicators() -> None:
    """`benchmarks/sharing.py` in small: 40 items, 10,000 rows; no interval misses the truth."""
    sharing = benchmark("sharing")
    own, shared, both = (sharing.measured(kind, 40, 10_000, 0.0, 3) for kind in sharing.KINDS)
    assert [row["dim"] for row in (own, shared, both)] == [44, 20, 60]
    assert shared["half_width"] < 0.5 * both["half_width"] < 0.5 * own["half_width"]
    assert own["missed"] == shared["missed"] == both["missed"] == 0


def test_every_snippet_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "clicks.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "docs/clicks.md", "exec"), names)
    assert names["policy"].model.confidence == "bounded-3"
    assert names["revenue"].confidence == "adaptive"
    assert len(names["builder"].parts) == 5
