"""The audit agrees with every policy, and finds lies that hash correctly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel, policies
from c4b.deployment.audit.recomputed.exact import ExactSet, Sums
from c4b.deployment.audit.recomputed.recompute import RecomputedSet
from c4b.evidence import CONFIDENCES
from c4b.policies import CandidateField
from support.any_world import COMPILED
from support.shop_world import BASELINE, MODEL, create, entries_of, forge, outcome, rivals, trade

FIELD = ["clucb", "clucb-plays", "clucb-unknown", "clucb2", "clucb2t", "lcbce", "maximin"]
PAIRS = [(name, set_) for name in COMPILED for set_ in CONFIDENCES if name not in FIELD]
PAIRS += [(name, set_) for name in FIELD for set_ in ("self-normalized", "several-ridges")]


@pytest.mark.parametrize("misspecification", [0.0, pytest.param(0.001, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("policy", "confidence"), PAIRS)
def test_a_clean_verdict_for_every_policy(
    sqlite_url: str, policy: str, confidence: str, misspecification: float
) -> None:
    model = LinearModel(3, 0.1, 1.0, confidence=confidence, misspecification=misspecification)
    rng = np.random.default_rng(0)
    told = 0.6 if policies.get(policy).needs else None
    with Deployment.create(
        sqlite_url, "shop", model, policy, alpha=0.1, reserve=0.2, snapshot_every=20
    ) as dep:
        history = BASELINE + 0.1 * rng.normal(size=(10, 3))
        dep.learn(history, history @ np.array([0.6, 0.3, -0.2]))
        late = []
        for n in range(60):
            candidates = rivals(rng, int(rng.integers(0, 5)))
            made = dep.decide(candidates, BASELINE, baseline_mean=told)
            late.append((made.id, outcome(candidates, made.action, rng)))
            if n % 13 == 5:
                dep.executed(made.id, None if n % 2 else BASELINE + 0.05)
            if n % 3:
                id_, reward = late.pop(int(rng.integers(len(late))))
                dep.forget(id_, independent=True) if n % 17 == 4 else dep.observe(id_, reward)
        report = dep.audit(sample=5)
        assert report.clean, report
        assert (report.decisions, report.replay_differences) == (60, 0)
        assert report.precise >= 5
        assert report.snapshots == 2
        assert report.largest_error < 1e-6
        assert "clean" in str(report)
        assert report.hash == dep.state().hash


@pytest.mark.parametrize("size", [0.7, 2.0, 50.0])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_clean_verdict_where_rewards_refute_the_model(confidence: str, size: float) -> None:
    """Some ellipsoids are empty then, and which ones must not confuse 50 digits."""
    model = LinearModel(2, 0.1, 1.0, confidence=confidence)
    with Deployment.create(f"memory://refuted-{confidence}-{size}", "shop", model, reserve=5.0) as dep:
        for n in range(12):
            made = dep.decide([[1.0, 0.8], [1.0, -0.3]], [1.0, 0.0])
            dep.observe(made.id, size * (-1.0) ** n)
        assert size < 1.0 or dep.state().alarm is not None
        report = dep.audit(sample=12)
        assert report.clean, report
        assert report.precise == 12


def lie(name: str) -> Any:
    def bank(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["numbers"][1] += 0.01

    def margin(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["details"][1] += 0.01

    def features(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["candidates"][:, 1] *= 1.01

    def radius(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["numbers"][4] *= 0.9

    def action(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields["action"] = None if fields["action"] is not None else 0

    def count(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields["observations"] += 1

    def estimate(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["estimate"] += 0.01

    def upper(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["upper"] -= 0.01

    return locals()[name]


LIES = ["bank", "margin", "features", "radius", "action", "count", "estimate", "upper"]


@pytest.mark.parametrize("name", LIES)
def test_a_forged_decision_is_found(sqlite_url: str, name: str) -> None:
    records = "executed" if name == "upper" else "everything"  # else upper bounds are not recorded
    with create(sqlite_url, policy="reserve-c4b+", records=records, reserve=3.0) as dep:
        trade(dep, 20)
        number = [e.seq for e in entries_of(dep) if e.kind == "decided"][10]
    with Deployment.open(sqlite_url, "shop") as dep:
        forge(dep, number, lie(name))
    with Deployment.open(sqlite_url, "shop") as dep:
        report = dep.audit(sample=0)
        assert not report.clean
        assert report.entry is not None
        assert number <= report.entry <= number + 2, report
        assert "NOT CLEAN" in str(report)


def test_a_forged_reward_is_found_at_the_next_decision(sqlite_url: str) -> None:
    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["numbers"][0] += 0.5

    with create(sqlite_url) as dep:
        for _ in range(5):
            dep.observe(dep.decide(BASELINE[None, :] * 1.1, BASELINE).id, 0.6)
    with Deployment.open(sqlite_url, "shop") as dep:
        forge(dep, 4, change)
        report = dep.audit()
        assert report.entry == 5


def test_an_unsafe_execution_is_found(sqlite_url: str) -> None:
    """A candidate whose own margin is negative, played all the same."""

    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields["action"] = int(np.argmin(arrays["details"][1]))
        arrays["numbers"][1] = arrays["details"][1].min()

    with create(sqlite_url, reserve=0.0) as dep:
        dep.decide(BASELINE + np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), BASELINE)
        forge(dep, 1, change)
        report = dep.audit()
        assert report.entry == 1


def test_a_candidate_left_out_by_a_lie_is_found(sqlite_url: str) -> None:
    """A score of -inf says that the baseline promises as much as the candidate."""

    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        assert fields["action"] == 0
        arrays["details"][CandidateField.SCORE, 0] = -np.inf
        fields["action"] = None

    with create(sqlite_url, policy="reserve-c4b+", reserve=5.0) as dep:
        dep.decide(1.2 * BASELINE[None, :], BASELINE)
        assert dep.audit().clean
        forge(dep, 1, change)
        report = dep.audit()
        assert report.entry == 1
        assert "promises or leaves more than the baseline" in str(report)


def test_a_forged_score_is_found(sqlite_url: str) -> None:
    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["details"][CandidateField.SCORE] += 0.01

    with create(sqlite_url, policy="reserve-c4b+", reserve=5.0) as dep:
        dep.decide(1.2 * BASELINE[None, :], BASELINE)
        forge(dep, 1, change)
        report = dep.audit()
        assert report.entry == 1
        assert "score" in str(report)


def test_progress_and_empty_journals(sqlite_url: str) -> None:
    seen: list[tuple[int, int]] = []
    with create(sqlite_url) as dep:
        assert dep.audit().clean
        trade(dep, 80)
        dep.audit(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (dep.state().seq + 1,) * 2


def test_high_precision_agrees_with_the_recomputation() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 3)) * [1e3, 1.0, 1e-3], rng.normal(size=200)
    model: dict[str, Any] = {
        "dim": 3,
        "noise": 0.1,
        "norm_bound": 1.0,
        "delta": 0.05,
        "confidence": "mixture",
    }
    model["misspecification"] = 0.01
    ridges = MODEL.ridges
    sums, plain = Sums(3, float(ridges.min()), 1.0), RecomputedSet(model, ridges, np.array([1e-3, 0.5]))
    sums.add(x, y)
    plain.learn(x, y)
    vectors = rng.normal(size=(5, 3))
    for ours, theirs in zip(
        plain.bounds(vectors), ExactSet(sums, 200, model, ridges).bounds(vectors), strict=True
    ):
        assert np.allclose(ours, theirs, rtol=1e-9)


def test_the_smallest_model_is_audited(sqlite_url: str) -> None:
    """With the smallest numbers that a model takes."""
    model = LinearModel(1, 1e-30, 1e-30)
    with Deployment.create(sqlite_url, "shop", model, "reserve-c4b+") as dep:
        assert dep.decide([[0.0]], [0.0]).is_baseline
        report = dep.audit(sample=1)
        assert report.clean, report
        assert report.precise == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("policy", ["reserve-c4b+", "refresh", "checkpoints"])
@pytest.mark.parametrize("dim", [1, 5])
def test_features_that_nearly_overflow(sqlite_url: str, policy: str, dim: int) -> None:
    """Some of the candidates are too large to be played (1e100 and more), others are played and leave
    float64 nothing to say about the rest, and the sums over the journal too few digits for 50."""
    rng, baseline = np.random.default_rng(3), np.eye(dim)[0]
    model = LinearModel(dim, 0.1, 1.0)
    with Deployment.create(sqlite_url, "shop", model, policy, reserve=0.5) as dep:
        for _ in range(12):
            pool = baseline + 0.3 * rng.normal(size=(20, dim))
            pool[rng.integers(20, size=2)] *= 10.0 ** rng.uniform(80.0, 300.0, size=(2, 1))
            dep.observe(dep.decide(pool, baseline).id, float(rng.normal(0.5, 0.1)))
        report = dep.audit()
        assert report.clean, report.finding
