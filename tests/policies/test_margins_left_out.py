"""A policy leaves out margins that its choice cannot depend on: the same decisions, bit for bit."""

import pickle
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import c4b
from c4b._validate import Array
from c4b.errors import C4BError, InvalidInput
from c4b.evidence.arithmetic.chains import four_products, pool_chains
from c4b.policies.compiled.assessment_in_blocks import SPECTRAL_BLOCK
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.compiled.tied_scores import TIE
from c4b.policies.rounds.candidate_fields import JOINT, MARGIN, SCORE, UCB

DIM = 6


class Twins(NamedTuple):
    """Two policies of the same kind and past; the second one computes every margin."""

    lazy: c4b.Policy
    full: c4b.Policy

    def learn(self, features: Array, rewards: Array) -> None:
        for each in self:
            each.learn(features, rewards)

    def decide(self, pool: Array, baseline: Array) -> tuple[c4b.Decision, c4b.Decision]:
        return self.lazy.decide(pool, baseline), self.full.decide(pool, baseline)


def twins(spec: str | c4b.Composition, model: c4b.LinearModel, **terms: Any) -> Twins:
    pair = Twins(*(c4b.Policy(spec, model, **terms) for _ in range(2)))
    assert isinstance(pair.lazy.gate, CompiledGate)
    assert isinstance(pair.full.gate, CompiledGate)
    assert pair.lazy.gate.leaves_out_margins
    pair.full.gate.leaves_out_margins = False
    return pair


def assert_same(lazy: c4b.Decision, full: c4b.Decision) -> int:
    """Compare two decisions; returns how many margins were left out."""
    assert (lazy.action, lazy.numbers, lazy.alarm) == (full.action, full.numbers, full.alarm)
    assert full.left_out is None
    known = ~np.isnan(lazy.computed[MARGIN])
    assert np.array_equal(lazy.computed[UCB], full.details[UCB], equal_nan=True)
    for row in (MARGIN, JOINT):
        assert np.array_equal(lazy.computed[row][known], full.details[row][known])
    assert lazy.details.tobytes() == full.details.tobytes()
    assert lazy.explain().to_dict()["candidates"] == full.explain().to_dict()["candidates"]
    return int((~known).sum())


def pool(rng: np.random.Generator, size: int, spread: float, baseline: Array) -> Array:
    """Candidates with ties, the baseline itself, one beyond all bounds, hopeless and excellent ones."""
    drawn = np.c_[rng.choice([0.9, 1.0, 1.1], size), spread * rng.normal(size=(size, DIM - 1))]
    if size > 4:
        drawn[rng.integers(size)] = drawn[rng.integers(size)]
        drawn[rng.integers(size)] = baseline
        if rng.random() < 0.3:
            drawn[rng.integers(size)] = 1e160 * drawn[0]
        if rng.random() < 0.5:
            drawn[rng.integers(size)] *= 2.0
    return drawn


def play(pair: Twins, rng: np.random.Generator, rounds: int, binary: bool = False) -> int:
    """Rounds of both; returns how many margins were left out."""
    theta, left_out = 0.3 * rng.normal(size=DIM), 0
    theta[0] = 0.6
    baseline = np.eye(DIM)[0]
    for _ in range(rounds):
        if rng.random() < 0.1:
            baseline = np.r_[1.0, 0.1 * rng.normal(size=DIM - 1)]
        candidates = pool(
            rng, int(rng.choice([0, 1, 5, 40, 300])), rng.choice([0.05, 0.3, 1.5]), baseline
        )
        try:
            lazy = pair.lazy.decide(candidates, baseline)
        except C4BError as error:
            with pytest.raises(type(error), match=str(error)[:20]):
                pair.full.decide(candidates, baseline)
            return left_out
        full = pair.full.decide(candidates, baseline)
        left_out += assert_same(lazy, full)
        played = baseline if lazy.action is None else candidates[lazy.action]
        mean = float(played @ theta)
        reward = float(rng.random() < min(max(mean, 0.0), 1.0)) if binary else mean + 0.1 * rng.normal()
        for each, decision in zip(pair, (lazy, full), strict=True):
            each.observe(decision.id, reward)
        assert (
            pair.lazy.gate.snapshot()["ledger"].tobytes() == pair.full.gate.snapshot()["ledger"].tobytes()
        )
    return left_out


@pytest.mark.parametrize(
    "selection",
    [
        "filter",
        "thrifty",
        "propose",
        "competitive",
        "curious",
        "balanced",
        "hopeful",
        "hopeful-5",
        "hopeful-6",
        "hopeful-7",
        "hopeful-8",
    ],
)
@pytest.mark.parametrize(
    ("ledger", "confidence", "score"),
    [
        ("carry", "unbiased", "ucb"),
        ("refresh", "constrained", "mean"),
        ("checkpoints", "several-ridges", "patient"),
    ],
)
def test_decisions_are_those_of_all_margins(
    selection: str, ledger: str, confidence: str, score: str
) -> None:
    spec = c4b.Composition("made up", "joint", ledger, selection, "for a test", score, latches=True)
    left_out = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, *map(ord, selection + ledger)])
        model = c4b.LinearModel(
            DIM,
            0.1,
            rng.choice([1.5, 6.0]),
            confidence=confidence,
            misspecification=0.01 * (seed == 5 and confidence != "constrained"),
        )
        pair = twins(
            spec, model, alpha=rng.choice([0.05, 0.3]), reserve=rng.choice([0.0, 0.5, 20.0]),
            baseline_nonnegative=seed % 3 != 2,
        )  # fmt: skip
        if seed % 2:
            rows = np.c_[np.ones(40), rng.normal(size=(40, DIM - 1))]
            pair.learn(rows, 0.6 * rows[:, 0] + 0.1 * rng.normal(size=40))
        left_out += play(pair, rng, 25)
    assert left_out > 500


@pytest.mark.parametrize("name", ["reserve-c4b+", "clicks"])
def test_the_recommended_policies_too(name: str) -> None:
    left_out = 0
    for seed in range(4):
        rng = np.random.default_rng([7, seed])
        model = c4b.LinearModel.bounded(DIM, 2.0, (0.0, 1.0))
        if name == "reserve-c4b+":
            model = c4b.LinearModel(DIM, 0.1, 2.0)
        pair = twins(name, model, alpha=0.2, reserve=rng.choice([0.0, 2.0]))
        left_out += play(pair, rng, 40, binary=name == "clicks")
    assert left_out > 500


def test_who_saves_up_in_a_large_pool_looks_among_the_best_scored_first() -> None:
    rng, size, baseline = np.random.default_rng(5), 700, np.eye(DIM)[0]
    theta, rows = np.r_[0.5, np.full(DIM - 1, 0.05)], np.c_[np.ones(60), rng.normal(size=(60, DIM - 1))]
    pair = twins("reserve-c4b+", c4b.LinearModel.bounded(DIM, 1.5), alpha=0.05, reserve=2.0)
    pair.learn(rows, np.clip(rows @ theta, 0.0, 1.0))
    some, all_ = 0, 0
    for n in range(40):
        candidates = np.c_[np.ones(size), 0.3 * rng.normal(size=(size, DIM - 1))]
        candidates[rng.integers(size, size=50)] = candidates[0]  # ties
        if n % 4 == 0:
            candidates[rng.integers(size, size=200 if n % 8 else 3)] *= 1e160  # beyond all bounds
        decisions = pair.decide(candidates, baseline)
        known = size - assert_same(*decisions)
        some, all_ = some + (16 < known <= SPECTRAL_BLOCK), all_ + (known == size)
        action = decisions[0].action
        played = baseline if action is None else candidates[action]
        for each, decision in zip(pair, decisions, strict=True):
            each.observe(decision.id, float(np.clip(played @ theta, 0.0, 1.0)))
    assert some >= 5
    assert all_ >= 5  # where none of the best-scored saves enough


def test_equal_candidates_tie_as_ever_whatever_is_left_out() -> None:
    spec = c4b.Policy("reserve-c4b+", c4b.LinearModel(2, 0.1, 1.0)).spec
    assert isinstance(spec, c4b.Composition)
    for selection in ("hopeful-5", "hopeful-8"):
        made = replace(spec, name="made up", selection=selection)
        pair = twins(made, c4b.LinearModel(2, 0.1, 1.0), alpha=0.1, reserve=5.0)
        pair.learn(np.array([[1.0, 0.0], [1.0, 0.5]] * 30), np.array([0.5, 0.9] * 30))
        lazy, full = pair.decide(np.array([[1.0, 0.1], [1.0, 0.4], [1.0, 0.4]]), np.array([1.0, 0.0]))
        assert lazy.action is not None
        assert lazy.action == full.action >= 1
        assert np.flatnonzero(~np.isnan(lazy.computed[MARGIN])).tolist() == [lazy.action]
        one, two = lazy.details[SCORE, 1:]
        assert (one == two) == (selection == "hopeful-5")
        assert one == pytest.approx(two, rel=TIE)


def test_where_every_margin_counts_none_is_left_out() -> None:
    pair = twins("reserve-c4b+", c4b.LinearModel(2, 0.1, 1.0), alpha=0.1)
    pool = np.c_[np.ones(50), np.linspace(0.1, 1.0, 50)]
    lazy, full = pair.decide(pool, np.array([1.0, 0.0]))
    assert lazy.action is None
    assert lazy.left_out is None
    assert lazy == full._replace(id=lazy.id)


def test_candidates_overwritten_since_are_noticed() -> None:
    pair = twins("reserve-c4b+", c4b.LinearModel(2, 0.1, 1.0), alpha=0.1, reserve=5.0)
    pair.learn(np.array([[1.0, 0.0], [1.0, 0.5]] * 30), np.array([0.5, 0.9] * 30))
    candidates = np.array([[1.0, 0.1], [1.0, 0.4], [1.0, 0.2]])
    decision = pair.lazy.decide(candidates, np.array([1.0, 0.0]))
    later = pickle.loads(pickle.dumps(decision))  # an independent copy
    before = decision.explain().to_dict()
    pair.lazy.observe(decision.id, 0.7)
    assert later.explain().to_dict() == before  # from the state of that moment
    assert later == decision
    decision = pair.lazy.decide(candidates, np.array([1.0, 0.0]))
    candidates[2] = 0.0
    with pytest.raises(InvalidInput, match=r"candidates\[2\].*overwritten"):
        decision.explain()


def test_a_baseline_overwritten_since_changes_no_explanation() -> None:
    pair = twins("reserve-c4b+", c4b.LinearModel(2, 0.1, 1.0), alpha=0.1, reserve=5.0)
    pair.learn(np.array([[1.0, 0.0], [1.0, 0.5]] * 30), np.array([0.5, 0.9] * 30))
    candidates, baseline = np.array([[1.0, 0.1], [1.0, 0.4], [1.0, 0.2]]), np.array([1.0, 0.0])
    lazy, full = pair.decide(candidates, baseline)
    assert lazy.left_out is not None
    baseline[:] = 1.0, 0.3  # one buffer for every round
    assert np.array_equal(lazy.details, full.details)


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 5), (8, 24), (7, 13)])
def test_chains_have_the_same_bits_in_any_company(shape: tuple[int, int]) -> None:
    dim, rows = shape
    rng = np.random.default_rng(dim)
    vectors, pool = rng.normal(size=(rows, dim)), rng.normal(size=(dim, 9))
    out, alone = np.empty((rows, 9)), np.empty((rows, 1))
    pool_chains(pool, vectors, 0, rows, 0, 1, out)
    assert out == pytest.approx(vectors @ pool, rel=1e-12, abs=1e-14)
    for k in range(9):
        x = np.ascontiguousarray(pool[:, k])
        pool_chains(x[:, None].copy(), vectors, 0, rows, 0, 1, alone)
        assert np.array_equal(alone[:, 0], out[:, k])
        for g in range(rows):
            wanted = np.zeros(4)
            wanted[: min(4, rows - g)] = out[g : g + 4, k]
            assert np.array_equal(four_products(vectors, g, x), wanted)
