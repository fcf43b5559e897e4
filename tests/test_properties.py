"""Properties 1 to 8 of the theory sheet, one test each, on arbitrary histories."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import c4b
from support.conic_solver import by_cone_solver
from support.evidence_internals import inside
from support.oracle_comparison import CONFIDENCES, GATED, METHODS, history
from support.oracle_ledger import minimum_reserve_by_search
from support.oracle_sets import Array
from support.random_stream import random_stream

seeds = st.integers(0, 2**32 - 1)
dims = st.integers(1, 6)
alphas = st.floats(0.01, 0.9)
pools = st.integers(1, 7)


def learned(rng: np.random.Generator, dim: int) -> c4b.Evidence:
    """Evidence after a random history, from none to plenty, of either confidence."""
    confidence = CONFIDENCES[int(rng.integers(2))]
    model = c4b.LinearModel(
        dim, float(rng.uniform(0.05, 1.0)), 1.0, 10.0 ** rng.uniform(-2, 1), 0.1, confidence
    )
    evidence = c4b.Evidence(model)
    evidence.learn(*history(rng, rng.normal(size=dim) / np.sqrt(dim), int(rng.integers(0, 80)), 0.1))
    return evidence


def prepared(name: str, rng: np.random.Generator, dim: int, rounds: int = 6) -> c4b.Policy:
    """A policy some rounds into its life, with history and with outcomes still pending."""
    theta, stream = random_stream(rng, dim, rounds, max_candidates=5)
    policy = c4b.Policy(name, c4b.LinearModel(dim, 0.1, 1.0), 0.2, float(rng.choice([0.0, 1.0])))
    policy.learn(*history(rng, theta, 30 * dim, 0.1))
    for decision in policy.decide_many(stream)[: rounds // 2]:
        policy.observe(decision.id, float(rng.normal()))
    return policy


@given(seeds, dims, alphas)
def test_property_1_joint_is_never_below_separate(seed: int, dim: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    evidence, c = learned(rng, dim), 1.0 - alpha
    inverse = inside(evidence).inverse[0]
    pool, baseline = rng.normal(size=(5, dim)), rng.normal(size=dim)
    pool[0] = -rng.uniform(0.1, 3.0) * baseline  # aligned: the triangle inequality is an equality
    pool[1] = baseline

    def norm(v: Array) -> float:
        return math.sqrt(v @ inverse @ v)

    penalty = c4b.decoupling_penalty(evidence, pool, baseline, alpha)
    expected = [evidence.radius * (norm(x) + c * norm(baseline) - norm(x - c * baseline)) for x in pool]
    scale = evidence.radius * max(norm(x) for x in (*pool, baseline))
    room = 1e-7 * scale  # joint and separate bounds allow differently for rounding
    np.testing.assert_allclose(penalty, expected, atol=room)  # (10)
    assert np.all(penalty >= -room)
    assert abs(penalty[0]) <= room
    at_baseline = c * (evidence.upper(baseline) - evidence.lower(baseline))
    assert penalty[1] == pytest.approx(at_baseline, abs=room)
    if dim > 1:  # a generic direction is not aligned, so the penalty is strict
        assert np.max(penalty[2:]) > room


@given(seeds, dims, st.sampled_from(GATED))
def test_property_2_the_bank_never_exceeds_the_truth(seed: int, dim: int, name: str) -> None:
    """Noise within +-sigma/10 keeps theta in every set here, which the test checks, not assumes."""
    rng = np.random.default_rng(seed)
    theta, stream = random_stream(rng, dim, 15, max_candidates=5)
    policy = c4b.Policy(name, c4b.LinearModel(dim, 0.1, 1.0), 0.2)
    policy.learn(*history(rng, theta, 20 * dim, 0.01))
    truth = 0.0
    for candidates, baseline in stream:
        assert all(policy.evidence.lower(v) <= v @ theta for v in (*np.eye(dim), *-np.eye(dim)))
        decision = policy.decide(candidates, baseline)
        executed = baseline if decision.action is None else candidates[decision.action]
        truth += float((executed - 0.8 * baseline) @ theta)
        assert decision.bank <= truth + 1e-12
        assert truth >= -1e-12
        if name not in ("revalue", "revalue-f"):  # their bank is revalued, not carried
            assert decision.bank >= 0.0
        policy.observe(decision.id, float(executed @ theta + 0.01 * rng.uniform(-1, 1)))


@given(seeds, dims, pools)
def test_property_3_refresh_margin_is_never_below_contrast_margin(seed: int, dim: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    policy = prepared("refresh", rng, dim)
    decision = policy.decide(rng.normal(size=(size, dim)), rng.normal(size=dim))
    carry = decision.bank_before + decision.details[2]
    assert np.all(decision.details[1] >= carry)


@given(seeds, dims)
def test_property_4_the_bound_is_the_infimum_over_the_ellipsoid(seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    evidence, v = learned(rng, dim), rng.normal(size=dim)
    shape = inside(evidence).gram + evidence.model.ridge * np.eye(dim)
    expected = by_cone_solver(v, evidence.estimate, shape, evidence.radius)
    assert evidence.lower(v) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 5)), max_size=12))
def test_property_5_minimum_reserve_is_the_smallest(path: list[tuple[float, float]]) -> None:
    joint = [value for value, _ in path]
    separate = [value - penalty for value, penalty in path]
    needed = c4b.minimum_reserve(joint)
    assert needed == pytest.approx(minimum_reserve_by_search(joint), abs=1e-12)
    assert all(needed + total >= -1e-12 for total in np.cumsum(joint))  # enough
    if needed > 0.0:  # and less is not
        assert any(needed - 1e-6 + total < 0.0 for total in np.cumsum(joint))
    gap = c4b.minimum_reserve(separate) - needed
    assert -1e-12 <= gap <= sum(penalty for _, penalty in path) + 1e-12  # (15)


@given(seeds, dims, st.sampled_from(METHODS))
def test_property_6_history_changes_the_set_never_the_ledger(seed: int, dim: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    policy = c4b.Policy(name, c4b.LinearModel(dim, 0.1, 1.0), reserve=0.7)
    ledger, radius = policy.gate.ledger.tobytes(), policy.radius
    policy.learn(*history(rng, rng.normal(size=dim), 50, 0.1))
    assert policy.gate.ledger.tobytes() == ledger
    assert not np.any(policy.prefix)
    assert policy.radius > radius


@given(seeds, dims, st.integers(1, 40), st.sampled_from(METHODS))
def test_property_7_order_and_duplicates_change_only_indices(
    seed: int, dim: int, size: int, name: str
) -> None:
    rng = np.random.default_rng(seed)
    pool, baseline = rng.normal(size=(size, dim)), rng.normal(size=dim)
    order = rng.permutation(size)
    doubled = np.concatenate([pool, pool[rng.integers(size, size=3)]])
    plain, moved, more = (
        prepared(name, np.random.default_rng(seed), dim).decide(candidates, baseline)
        for candidates in (pool, pool[order], doubled)
    )
    assert more.action == plain.action  # a duplicate comes later, and the lowest index wins
    if plain.action is None:
        assert moved.action is None
    else:
        np.testing.assert_array_equal(pool[order][moved.action], pool[plain.action])
    assert repr(plain[2:5]) == repr(moved[2:5]) == repr(more[2:5])  # bank, certificate, ucb
    np.testing.assert_array_equal(plain.details[:, order], moved.details)
    np.testing.assert_array_equal(plain.details, more.details[:, :size])


BROKEN = st.sampled_from([math.nan, math.inf, -math.inf])


@given(
    seeds,
    dims,
    pools,
    st.sampled_from(METHODS),
    st.sampled_from(["inverse", "estimate", "reach"]),
    BROKEN,
)
def test_property_8_what_is_not_a_number_is_never_admissible(
    seed: int, dim: int, size: int, name: str, part: str, value: float
) -> None:
    rng = np.random.default_rng(seed)
    policy = prepared(name, rng, dim)
    bank = policy.bank
    getattr(inside(policy.evidence), part)[...] = value
    decision = policy.decide(rng.normal(size=(size, dim)), rng.normal(size=dim))
    assert decision.is_baseline
    if name not in ("revalue", "revalue-f", "linucb"):  # a broken set earns no credit either
        assert decision.bank == bank
