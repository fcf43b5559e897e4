"""Another action than the decided one was executed: the bank still bounds the truth, and checkpoints
kept after that round are corrected too."""

from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.evidence.bounds import contains
from c4b.evidence.ellipsoids import views
from support.oracle_comparison import ALL_GATED, history
from support.oracle_sets import Array
from support.random_stream import random_stream

ROUNDS = 70  # checkpoints are thinned out twice


def path(name: str, confidence: str, seed: int) -> tuple[bool, float, int]:
    """(covered, smallest D - B, corrections that came after later checkpoints were kept)."""
    rng = np.random.default_rng([seed, ALL_GATED.index(name)])
    theta, stream = random_stream(rng, 3, ROUNDS, max_candidates=5)
    policy = c4b.Policy(name, c4b.LinearModel(3, 0.1, 1.0, confidence=confidence), 0.2, 0.3)
    policy.learn(*history(rng, theta, 15, 0.1))
    waiting: list[tuple[int, str, Array, Array]] = []
    truth, slack, covered, late = policy.reserve, np.inf, True, 0
    for t, (pool, baseline) in enumerate(stream):
        covered &= contains(*views(policy.evidence.flat)[:-1], theta)
        decision = policy.decide(pool, baseline)
        executed = baseline if decision.action is None else pool[decision.action]
        truth += float((executed - 0.8 * baseline) @ theta)
        slack = min(slack, truth - policy.bank)
        waiting.append((t, decision.id, executed, baseline))
        if rng.random() < 0.3:  # one of the rounds still open turns out to have gone otherwise
            n = int(rng.integers(len(waiting)))
            round_, id_, before, its_baseline = waiting[n]
            other = None if rng.random() < 0.3 else its_baseline + 0.5 * rng.normal(size=3)
            policy.executed(id_, other)
            now = its_baseline if other is None else other
            truth += float((now - before) @ theta)
            waiting[n] = (round_, id_, now, its_baseline)
            slack = min(slack, truth - policy.bank)
            late += round_ < t
        while len(waiting) > 12 or (waiting and rng.random() < 0.4):
            _, id_, x, _ = waiting.pop(0)
            policy.observe(id_, float(x @ theta + 0.1 * rng.normal()))
    return covered, slack, late


@pytest.mark.parametrize("confidence", c4b.evidence.CONFIDENCES)
@pytest.mark.parametrize("name", ALL_GATED)
def test_the_bank_bounds_the_truth_of_what_was_executed(name: str, confidence: str) -> None:
    paths = [path(name, confidence, seed) for seed in range(8)]
    held = [(slack, late) for covered, slack, late in paths if covered]
    assert len(held) >= 6
    assert min(slack for slack, _ in held) >= -1e-9
    assert min(late for _, late in held) >= 3


@pytest.mark.parametrize("name", ["refresh", "reserve-c4b+", "clicks"])
def test_the_incumbent_instead_of_the_last_decision_does_not_overdraw(name: str) -> None:
    """What is unknown of a candidate that was not executed costs nothing."""
    rng, baseline = np.random.default_rng(5), np.array([1.0, 0.0])
    model = c4b.LinearModel.bounded(2, 1.0) if name == "clicks" else c4b.LinearModel(2, 0.5, 1.0)
    policy = c4b.Policy(name, model, 0.1, reserve=2.0)
    policy.learn(np.tile(baseline, (400, 1)), rng.random(400) < 0.4)  # its mean is certified
    instead = 0
    for _ in range(30):
        pool = np.column_stack([np.ones(4), rng.uniform(-1.0, 1.0, 4)])
        decision, executed = policy.decide(pool, baseline), baseline
        if decision.action is not None and rng.random() < 0.5:
            policy.executed(decision.id)
            instead += 1
            least = 2.0 + policy.evidence.lower(policy.prefix)  # from the start on
            assert policy.bank >= (least if name == "refresh" else decision.bank_before) - 1e-9
        elif decision.action is not None:
            executed = pool[decision.action]
        policy.observe(decision.id, float(rng.random() < executed @ [0.4, 0.1]))
    assert instead > 5


@pytest.mark.parametrize("name", ["refresh", "reserve-c4b+"])
def test_while_nothing_is_certified_the_norm_ball_is_charged(name: str, tmp_path: Path) -> None:
    """An inverse that is no number leaves L(v) = -S ||v||: the bank stays a number and can be saved."""
    policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.5), 0.2, 0.3)
    decision = policy.decide([[1.0, 0.5]], [1.0, 0.0])
    before = policy.bank
    views(policy.evidence.flat)[0].inverse[:] = np.nan
    policy.executed(decision.id, [1.0, 2.0])
    decided = np.array([1.0, 0.0] if decision.action is None else [1.0, 0.5])
    charged = 1.5 * float(np.linalg.norm(np.array([1.0, 2.0]) - decided))
    assert policy.bank == pytest.approx(before - charged)
    policy.save(tmp_path / "state.npz")
    assert c4b.Policy.load(tmp_path / "state.npz").bank == policy.bank


@pytest.mark.parametrize("name", ["revalue", "checkpoints", "reserve-c4b+", "lcbce"])
def test_a_report_of_what_was_decided_changes_nothing(name: str) -> None:
    """As in a deployment: nothing is valued anew, or paid for twice."""
    model = c4b.LinearModel(2, 0.1, 1.0, misspecification=0.02)
    told = 0.5 if name == "lcbce" else None
    policy = c4b.Policy(name, model, 0.2, 3.0)
    with c4b.Deployment.create(f"memory://same-{name}", "shop", model, name, 0.2, 3.0) as dep:
        for t in range(6):
            round_ = c4b.Round([[1.0, 0.1], [0.3, 0.2]] if t % 2 else [], [1.0, 0.0], told)
            one, other = policy.decide(round_), dep.decide(round_)
            assert one.action == other.action
            executed = None if one.action is None else round_.candidates[one.action]
            bank = policy.bank
            policy.executed(one.id, executed)
            dep.executed(other.id, executed)
            assert policy.bank == bank == dep.state().bank
            policy.observe(one.id, 0.5)
            dep.observe(other.id, 0.5)
