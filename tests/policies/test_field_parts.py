"""Systems of the field that were gates in Python are compositions: those gates are their oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.errors import InvalidInput
from c4b.policies.catalogue import registry
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, PythonGate, Study
from c4b.study.spec.setting import Setting

ARMS = np.eye(4)
TERMS = {
    "cucb": {},
    "cucb-unknown": {},
    "budget-first": {"horizon": 300, "reserve": 900.0},
    "budget-first-arms": {"horizon": 300, "reserve": 250.0},
}
WORLD = Setting(
    generator="one-hot",
    history_size=0,
    sigma=0.3,
    alpha=0.13,
    count=4,
    rounds=400,
    theta=(0.5, 0.6, 0.5, 0.4, 0.2),
    baseline=(1.0, 0.0, 0.0, 0.0, 0.0),
)


def story(policy: c4b.Policy, means: np.ndarray, rounds: int, seed: int) -> list[tuple[int, float]]:
    """(arm, bank) of every round; one round in 50 executes arm 2 instead."""
    rng = np.random.default_rng(seed)
    told = float(means[0]) if "baseline_mean" in policy.spec.needs else None
    policy.learn(ARMS, means + 0.1 * rng.normal(size=4))
    made = []
    for t in range(rounds):
        decision = policy.decide(ARMS[1:], ARMS[0], told)
        arm = 0 if decision.action is None else decision.action + 1
        if t % 50 == 49:
            arm = 2
            policy.executed(decision.id, ARMS[2])
        policy.observe(decision.id, float(means[arm] + 0.1 * rng.normal()))
        made.append((arm, policy.bank))
    return made


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_decisions_as_the_gate_in_python(name: str, seed: int) -> None:
    means = np.random.default_rng(seed).uniform(0.3, 0.8, size=4)
    model = c4b.LinearModel(4, 0.1, 2.0)
    stories = []
    for spec in (registry.get(name), registry.gate(name)):
        policy = c4b.Policy(spec, model, alpha=0.13, **TERMS[name])  # type: ignore[arg-type]
        stories.append(story(policy, means, 300, seed))
    ours, theirs = stories
    assert [arm for arm, _ in ours] == [arm for arm, _ in theirs]
    assert len({arm for arm, _ in ours}) > 1
    assert [bank for _, bank in ours] == pytest.approx([bank for _, bank in theirs], abs=1e-8)


@pytest.mark.parametrize("name", TERMS)
def test_simulated_as_the_gate_in_python(name: str) -> None:
    """On the same draws: compiled episodes against episodes in Python of the former gate."""
    methods = (Method("compiled", name), Method("former", name, parts=PythonGate(name)))
    setting = WORLD
    if name.startswith("budget"):  # two arms: between several without data all is a tie
        two = {"theta": (0.5, 0.6), "baseline": (1.0, 0.0), "count": 1}
        saved = {"reserve": 900.0, "history": "baseline", "history_size": 10}
        setting = Setting(**{**_fields(WORLD), **two, **saved})  # type: ignore[arg-type]
    study = Study("field", "", methods, (setting,), (), 2, 11)
    ours, theirs = simulate(study, 0, 2).metrics[:, 0].transpose(1, 0, 2)
    for metric in (Metric.REWARD_RATIO, Metric.FALLBACK, Metric.MIN_D, Metric.FINAL_BANK, Metric.COVERED):
        assert ours[:, metric] == pytest.approx(theirs[:, metric], abs=1e-7), metric.name
    assert (ours[:, Metric.FALLBACK] < 1.0).all()


def _fields(setting: Setting) -> dict[str, object]:
    return {name: getattr(setting, name) for name in Setting.__dataclass_fields__}


@pytest.mark.parametrize("name", ["cucb", "budget-first-arms"])
def test_a_study_names_a_row_that_is_no_arm(name: str) -> None:
    study = Study("rows", "", (Method(name, name),), (Setting(rounds=5),), (), 2, 1)
    with pytest.raises(InvalidInput, match=r"\[0\]"):
        simulate(study, 0, 1)


@pytest.mark.parametrize("name", ["cucb", "cucb-unknown", "budget-first"])
def test_baseline_means_must_not_be_negative(name: str) -> None:
    model, terms = c4b.LinearModel(4, 0.1, 2.0), TERMS[name]
    with pytest.raises(InvalidInput, match="baseline_nonnegative"):
        c4b.Policy(name, model, baseline_nonnegative=False, **terms)  # type: ignore[arg-type]


def test_a_regret_bound_is_for_one_learner() -> None:
    model = c4b.LinearModel(4, 0.1, 2.0, confidence="mixture")
    with pytest.raises(InvalidInput, match="confidence"):
        c4b.Policy("budget-first", model, horizon=10)
    with pytest.raises(InvalidInput, match="horizon"):
        c4b.Policy("budget-first", c4b.LinearModel(4, 0.1, 2.0))
    with pytest.raises(InvalidInput, match="pooled"):
        c4b.Composition("own", "known", "budget", "filter", "no optimistic learner")


def test_parts_go_together_with_any_other() -> None:
    """A box under other ledgers and selections, and the joint prefix over ellipsoids."""
    means, rng = np.array([0.5, 0.9, 0.4, 0.3]), np.random.default_rng(3)
    compositions = [
        c4b.Composition(
            "a", "joint", "checkpoints", "competitive", "", score="patient", confidence="box"
        ),
        c4b.Composition("b", "separate", "carry", "filter", "", confidence="box"),
        c4b.Composition("c", "joint", "prefix", "filter", ""),
        c4b.Composition("d", "joint", "refresh", "pooled", ""),
    ]
    for composition in compositions:
        policy, plays, budget = c4b.Policy(composition, c4b.LinearModel(4, 0.1, 2.0), alpha=0.2), 0, 0.0
        for _ in range(200):
            decision = policy.decide(ARMS[1:], ARMS[0])
            arm = 0 if decision.action is None else decision.action + 1
            plays += arm == 1
            budget += means[arm] - 0.8 * means[0]
            assert decision.bank <= budget + 1e-9
            policy.observe(decision.id, float(means[arm] + 0.1 * rng.normal()))
        assert plays > 50, composition.name


@pytest.mark.parametrize("name", ["cucb", "budget-first"])
def test_slates_are_neither_arms_nor_rows_of_a_regret_bound(name: str) -> None:
    policy = c4b.Policy(name, c4b.LinearModel(4, 0.1, 2.0), **TERMS[name])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="slate"):
        policy.decide([[ARMS[1], ARMS[2]]], [ARMS[0], ARMS[0]], 0.5)


def test_an_arm_without_data_is_explained() -> None:
    policy = c4b.Policy("cucb", c4b.LinearModel(4, 0.1, 2.0), reserve=3.0)
    decision = policy.decide(ARMS[1:], ARMS[0], 0.5)
    assert decision.action == 0
    assert len(str(decision.explain())) < 2000


@pytest.mark.parametrize("name", ["budget-first", "budget-first-arms"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_corrected_correction_credits_only_what_was_executed(
    name: str, compiled: bool, tmp_path: Path
) -> None:
    """Means without noise, so that the set holds: the bank must stay below the true budget."""
    means, spec = np.array([0.2, 1.0, 0.6, 0.0]), registry.get(name) if compiled else registry.gate(name)
    policy = c4b.Policy(spec, c4b.LinearModel(4, 0.01, 2.0), alpha=0.1, horizon=50)
    policy.learn(np.tile(ARMS, (200, 1)), np.tile(means, 200))
    corrected, left = policy.decide(ARMS[1:], ARMS[0], 0.2), policy.decide(ARMS[1:], ARMS[0], 0.2)
    assert corrected.is_baseline
    assert left.is_baseline
    for arm in (1, 0, 1, 2, 3, 1, 0, 0, 2, 1):
        policy.executed(corrected, ARMS[arm])
        truth = (means[arm] - 0.9 * 0.2) + 0.1 * 0.2
        assert truth - 2.0 < policy.bank <= truth
        policy.save(tmp_path / "policy.npz")
        policy = c4b.Policy.load(tmp_path / "policy.npz") if compiled else policy
    policy.observe(corrected, 1.0)


def test_a_learner_that_was_overruled_twice_still_owes_its_regret() -> None:
    policy = c4b.Policy(
        "budget-first-arms", c4b.LinearModel(4, 0.1, 2.0), alpha=0.13, horizon=300, reserve=250.0
    )
    policy.learn(ARMS, [0.5, 0.6, 0.5, 0.4])
    played = policy.decide(ARMS[1:], ARMS[0], 0.5)
    assert not played.is_baseline
    policy.observe(played, 0.6)
    owing = policy.bank
    later = policy.decide(ARMS[:0], ARMS[0], 0.5)
    for arm in (1, 2, 0):
        policy.executed(later, ARMS[arm])
    assert policy.bank <= owing + 0.13 * 0.5
