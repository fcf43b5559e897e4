"""Deployments whose rewards lie in a declared range: durable, audited, and closed to other rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.errors import InvalidInput
from c4b.policies import CandidateField
from support.forgeries import Forgery, another, forge_decision, only_one, play
from support.shop_world import entries_of, forge

Fields, Arrays = dict[str, Any], dict[str, Any]

BASELINE = np.array([1.0, 0.0, 0.0])
THETA = np.array([0.5, 0.2, -0.1])


@pytest.mark.parametrize("misspecification", [0.0, 0.001])
@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+"])
def test_a_clean_verdict(sqlite_url: str, policy: str, misspecification: float) -> None:
    rng = np.random.default_rng(2)
    model = LinearModel.bounded(3, 1.0, (0, 2), misspecification=misspecification)
    with Deployment.create(
        sqlite_url, "shop", model, policy, alpha=0.1, reserve=2.0, snapshot_every=20
    ) as dep:
        history = BASELINE + 0.3 * rng.normal(size=(60, 3))
        dep.learn(history, 2.0 * (rng.random(60) < history @ THETA / 2.0))
        waiting: list[tuple[str, float]] = []
        for n in range(60):
            candidates = BASELINE + 0.3 * rng.normal(size=(int(rng.integers(1, 5)), 3))
            made = dep.decide(candidates, BASELINE)
            played = BASELINE if made.action is None else candidates[made.action]
            waiting.append((made.id, 2.0 * float(rng.random() < played @ THETA / 2.0)))
            if n % 13 == 5:
                dep.executed(made.id, None if n % 2 else BASELINE + 0.05)
            if n % 3:
                id_, reward = waiting.pop(int(rng.integers(len(waiting))))
                dep.forget(id_, independent=True) if n % 17 == 4 else dep.observe(id_, reward)
        report = dep.audit(sample=5)
        assert report.clean, report
        assert report.level == "recomputed"
        assert report.precise >= 5
        assert report.largest_error < 1e-6
        state = dep.state()
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state() == state
        assert dep.configuration.model.rewards == (0.0, 2.0)


def test_means_that_are_not_linear_raise_the_alarm_and_the_audit_agrees(sqlite_url: str) -> None:
    rng = np.random.default_rng(5)
    with Deployment.create(sqlite_url, "shop", LinearModel.bounded(3, 1.0), "clicks") as dep:
        for _ in range(30):
            u = rng.uniform(-1.0, 1.0, size=(100, 2))
            means = 0.15 + 0.1 * u[:, 0] + 0.6 * u[:, 0] ** 2
            dep.learn(np.c_[np.ones(100), u], rng.random(100) < means)
        assert dep.decide([BASELINE + 0.1], BASELINE).is_baseline
        assert dep.state().alarm == "mean rewards are not linear in the features"
        report = dep.audit(sample=0)
        assert report.clean, report


def test_rewards_out_of_range_write_nothing(sqlite_url: str) -> None:
    model = LinearModel.bounded(3, 1.0)
    with pytest.raises(InvalidInput, match="timeout_reward"):
        Deployment.create(sqlite_url, "shop", model, outcome_timeout=60.0, timeout_reward=-1.0)
    with Deployment.create(sqlite_url, "shop", model) as dep:
        with pytest.raises(InvalidInput, match=r"rewards\[1\]"):
            dep.learn([BASELINE, BASELINE], [1.0, 1.01])
        ids = [dep.decide([BASELINE + 0.1], BASELINE).id for _ in range(2)]
        state = dep.state()
        with pytest.raises(InvalidInput, match="0 to 1"):
            dep.observe(ids[0], 2.0)
        with pytest.raises(InvalidInput, match=r"outcomes\[1\]"):
            dep.observe_many([(ids[0], 1.0), (ids[1], -0.1)])
        assert dep.state() == state
        dep.observe_many([(ids[0], 1.0), (ids[1], 0.0)])


def clicked(url: str, rounds: int = 30) -> Deployment:
    dep = Deployment.create(url, "shop", LinearModel.bounded(3, 1.0), "clicks", alpha=0.1, reserve=5.0)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        candidates = BASELINE + 0.2 * rng.normal(size=(6, 3))
        made = dep.decide(candidates, BASELINE)
        dep.observe(made.id, float(rng.random() < 0.5))
    return dep


@pytest.mark.parametrize("forgery", [another, only_one])
def test_another_candidate_is_found(sqlite_url: str, forgery: Forgery) -> None:
    with clicked(sqlite_url) as dep:
        assert dep.audit(sample=0).clean
        choices = [each.decision for each in dep.decisions(limit=100) if each.decision.action is not None]
        made = next(
            each for each in reversed(choices) if (each.details[CandidateField.MARGIN] >= 0).sum() > 1
        )
        assert made.receipt is not None
        forge(dep, made.receipt.seq, forgery)
        assert dep.audit(sample=0).entry == made.receipt.seq


def better_certificates(fields: Fields, arrays: Arrays) -> None:
    arrays["details"][CandidateField.JOINT] += 1e-3


def worse_margins(fields: Fields, arrays: Arrays) -> None:
    """So that the baseline is played."""
    details, numbers = arrays["details"], arrays["numbers"]
    details[CandidateField.MARGIN] = -1.0
    fields["action"], numbers[1], numbers[2], numbers[3] = None, numbers[0], 0.0, np.nan


def larger_radius(fields: Fields, arrays: Arrays) -> None:
    arrays["numbers"][4] *= 1.001


def admitted(fields: Fields, arrays: Arrays) -> None:
    """The candidate with the worst margin has a good one, and is played."""
    details = arrays["details"]
    worst = int(np.argmin(details[CandidateField.MARGIN]))
    details[CandidateField.MARGIN, worst] = 0.1
    others = np.arange(details.shape[1]) != worst
    details[CandidateField.MARGIN, others] = -1.0
    play(worst, fields, arrays)


@pytest.mark.parametrize("sample", [0, 1])
@pytest.mark.parametrize("forgery", [better_certificates, worse_margins, larger_radius, admitted])
def test_other_numbers_are_found(sqlite_url: str, forgery: Forgery, sample: int) -> None:
    rng, model = np.random.default_rng(1), LinearModel.bounded(3, 1.0)
    with Deployment.create(sqlite_url, "shop", model, "refresh", alpha=0.1, reserve=0.3) as dep:
        history = BASELINE + 0.2 * rng.normal(size=(300, 3))
        dep.learn(history, rng.random(300) < 0.5)
        made = dep.decide(BASELINE + 0.2 * rng.normal(size=(6, 3)), BASELINE)
        assert made.action is not None
        assert made.details[CandidateField.MARGIN].min() < 0.0
        assert dep.audit(sample=sample).clean
        number = forge_decision(dep, made, forgery)
        assert dep.audit(sample=sample).entry == number


@pytest.mark.parametrize("amount", [1e-3, -1e-3])
def test_another_reward_is_found(sqlite_url: str, amount: float) -> None:
    with clicked(sqlite_url) as dep:
        one = next(each for each in dep.decisions(limit=10) if each.reward == float(amount < 0)).decision
        assert one.receipt is not None
        number = next(entry.seq for entry in entries_of(dep) if entry.about == one.receipt.seq)
        forge(dep, number, lambda _, arrays: arrays["numbers"].__setitem__(0, float(amount < 0) + amount))
        assert not dep.audit(sample=0).clean


@pytest.mark.parametrize("kind", ["observed", "learned"])
def test_a_recorded_reward_out_of_range_is_found(sqlite_url: str, kind: str) -> None:
    array = "numbers" if kind == "observed" else "rewards"
    with Deployment.create(sqlite_url, "shop", LinearModel.bounded(3, 1.0)) as dep:
        dep.learn([BASELINE], [1.0])
        dep.observe(dep.decide([], BASELINE).id, 1.0)
        number = next(entry.seq for entry in entries_of(dep) if entry.kind == kind)
        forge(dep, number, lambda _, arrays: arrays[array].__setitem__(0, 1.5))
        report = dep.audit(sample=0)
        assert (report.entry, "declares 0.0 to 1.0" in str(report)) == (number, True)


def test_a_nearly_empty_set_is_no_finding(memory_url: str) -> None:
    """The rewards are far from what the norm bound allows: lower bounds are above upper ones."""
    rng = np.random.default_rng(0)
    model = LinearModel.bounded(1, 0.3, (-5, -4))
    with Deployment.create(memory_url, "shop", model, alpha=0.1, reserve=2.0) as dep:
        dep.learn(2.0 + 0.6 * rng.normal(size=(200, 1)), np.where(rng.random(200) < 0.3, -4.0, -5.0))
        made = dep.decide(2.0 + 0.6 * rng.normal(size=(4, 1)), [2.0])
        assert np.any(made.details[CandidateField.SCORE] > made.details[CandidateField.UCB])
        report = dep.audit(sample=0)
        assert report.clean, report
