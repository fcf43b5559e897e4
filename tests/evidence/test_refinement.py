"""Answers to one question: against the exact interval and the list of ellipsoids; what stays."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import c4b
from c4b.evidence import bounds
from c4b.evidence.refinement.question import PAIR, space_size
from c4b.evidence.refinement.refined_lower import refined_lower
from support.evidence_internals import inside
from support.exact_interval import ExactInterval
from support.oracle_sets import Array, EmptySet
from support.oracle_several_ridges import OracleSeveralRidges

REFINED = ("constrained", "unbiased", "several-ridges")
DELTA = 0.05
seeds = st.integers(0, 2**32 - 1)


def exact_interval(model: c4b.LinearModel, x: Array, y: Array) -> ExactInterval:
    """The event of the model's set after rows x (n, d) with rewards y (n,)."""
    if model.confidence == "constrained":
        return ExactInterval.constrained(x, y, model.norm_bound, model.noise, DELTA, model.ridge)
    ridges, weights = np.array([3.0 * model.ridge]), np.ones(1)
    if model.confidence == "several-ridges":
        fixed = OracleSeveralRidges(model.dim, model.noise, model.norm_bound, model.ridge, DELTA)
        ridges, weights = fixed.ridges, fixed.weights
    return ExactInterval.several_ridges(x, y, model.norm_bound, model.noise, DELTA, ridges, weights)


def drawn(confidence: str, seed: int) -> tuple[c4b.Evidence, Array, Array, Array]:
    """lambda, sigma and S over six decades, up to 20 features and 1000 rows; vectors to ask about."""
    rng = np.random.default_rng([seed, 77])
    ridge, noise, bound = (float(x) for x in 10.0 ** rng.uniform(-3.0, 3.0, size=3))
    dim, rows = int(rng.choice([1, 2, 5, 20])), int(rng.choice([0, 1, 20, 1000]))
    x = rng.normal(size=(rows, dim)) * 10.0 ** -rng.uniform(0.0, rng.choice([0.01, 2.0]), size=dim)
    x[:, rng.random(dim) < rng.choice([0.0, 0.5])] = 0.0
    x *= 10.0 ** rng.uniform(-2.0, 2.0)
    theta = rng.normal(size=dim)
    theta *= rng.choice([0.3, 0.7, 0.95]) * bound / np.linalg.norm(theta)
    y = x @ theta + noise * rng.normal(size=rows)
    evidence = c4b.Evidence(c4b.LinearModel(dim, noise, bound, ridge, DELTA, confidence))
    evidence.learn(x, y)
    best = np.linalg.eigh(x.T @ x)[1][:, -1]
    vectors = [rng.normal(size=dim), best, best + 10.0 ** rng.uniform(-3.0, 0.0) * rng.normal(size=dim)]
    return evidence, x, y, np.array(vectors)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", REFINED)
def test_an_answer_is_exact_over_six_decades(confidence: str) -> None:
    """Never narrower than the exact interval, whatever the numbers, and at most 2 % wider."""
    ratios: list[float] = []
    for seed in range(60):
        evidence, x, y, vectors = drawn(confidence, seed)
        try:
            exact = exact_interval(evidence.model, x, y)
        except EmptySet:
            continue
        if evidence.alarm:
            continue
        for v in vectors:
            low, high, least, most = evidence.lower(v), evidence.upper(v), exact.lower(v), exact.upper(v)
            rounding = 1e-9 * (most - least) + 1e-13 * evidence.model.norm_bound * np.linalg.norm(v)
            assert low <= least + rounding, seed
            assert high >= most - rounding, seed
            ratios.append((high - low) / (most - least))
    assert len(ratios) > 140
    assert max(ratios) <= 1.02
    assert np.median(ratios) <= 1.0001


@pytest.mark.parametrize("confidence", REFINED)
@given(seeds)
def test_an_answer_is_never_looser_than_the_list(confidence: str, seed: int) -> None:
    evidence, _, _, vectors = drawn(confidence, seed)
    for v in vectors:
        assert evidence.lower(v) >= bounds.lower(evidence.region, v)
        assert evidence.upper(v) <= bounds.upper(evidence.region, v)


@pytest.mark.parametrize("confidence", REFINED)
@given(seeds, st.floats(0.0, 0.5))
def test_declared_misspecification_widens_an_answer(confidence: str, seed: int, share: float) -> None:
    """The answer for epsilon > 0 contains the one for 0, and both contain the exact interval for 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3))
    y = x @ np.array([0.5, -0.3, 0.2]) + 0.2 * rng.normal(size=30)
    made = []
    for epsilon in (0.0, 0.2 * share):
        evidence = c4b.Evidence(c4b.LinearModel(3, 0.2, 1.0, 0.1, DELTA, confidence, epsilon))
        evidence.learn(x, y)
        made.append(evidence)
    exact = exact_interval(made[0].model, x, y)
    for v in rng.normal(size=(3, 3)):
        assert made[1].lower(v) <= made[0].lower(v) + 1e-7
        assert made[0].lower(v) <= exact.lower(v) + 1e-9
        assert made[1].upper(v) >= exact.upper(v) - 1e-9


@pytest.mark.parametrize("confidence", REFINED)
def test_a_question_changes_nothing(confidence: str) -> None:
    """No number of the evidence, working space included; so threads may ask at the same time."""
    evidence, _, _, vectors = drawn(confidence, 11)
    before = evidence.flat.copy()
    alone = [(evidence.lower(v), evidence.upper(v)) for v in vectors]
    with ThreadPoolExecutor(4) as pool:
        low = list(pool.map(evidence.lower, list(vectors) * 50))
    assert low == [low for low, _ in alone] * 50
    np.testing.assert_array_equal(evidence.flat, before)
    other = copy.deepcopy(evidence)
    assert [(other.lower(v), other.upper(v)) for v in vectors] == alone


@pytest.mark.parametrize("confidence", [*REFINED, "self-normalized", "mixture"])
def test_unrefined_evidence_answers_by_the_list(confidence: str) -> None:
    """As policies do, and as journals of gates in Python were written."""
    rng = np.random.default_rng(2)
    model = c4b.LinearModel(3, 0.1, 1.0, confidence=confidence)
    plain, refined = c4b.Evidence(model, refined=False), c4b.Evidence(model)
    for evidence in (plain, refined):
        evidence.learn(np.eye(3), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(plain.flat, refined.flat)
    for v in rng.normal(size=(5, 3)):
        assert plain.lower(v) == bounds.lower(plain.region, v)
        assert plain.upper(v) == bounds.upper(plain.region, v)
        if confidence not in REFINED:
            assert refined.lower(v) == plain.lower(v)


@pytest.mark.parametrize("confidence", REFINED)
def test_a_refuted_set_is_not_refined(confidence: str) -> None:
    """theta = 5 where its norm is declared to be at most 1. The alarm is the absorbing code's alone."""
    evidence = c4b.Evidence(c4b.LinearModel(1, 0.1, 1.0, confidence=confidence))
    evidence.learn([[1.0]] * 3, [5.0] * 3)
    assert evidence.alarm == "no theta within the norm bound explains the data"
    assert evidence.lower([1.0]) == bounds.lower(evidence.region, np.ones(1))
    pair = np.zeros(PAIR)
    refined_lower(evidence.flat, np.ones(1), pair, np.zeros(space_size(1)))
    assert np.all(np.isnan(pair))


@pytest.mark.parametrize("confidence", REFINED)
@pytest.mark.parametrize("name", ["inverse", "moment", "gram"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_lost_numbers_leave_the_norm_ball(confidence: str, name: str, bad: float) -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, confidence=confidence))
    evidence.learn([[1.0, 0.0], [0.5, 1.0]], [0.5, 0.2])
    getattr(inside(evidence), name)[:] = bad
    v = np.array([1.0, 0.4])
    assert evidence.lower(v) == bounds.lower(evidence.region, v)
    assert evidence.upper(v) == bounds.upper(evidence.region, v)


@pytest.mark.parametrize("confidence", REFINED)
def test_a_vector_of_zeros_is_bounded_by_zero(confidence: str) -> None:
    evidence, *_ = drawn(confidence, 5)
    zero = np.zeros(evidence.model.dim)
    assert evidence.lower(zero) <= 0.0 <= evidence.upper(zero)
    assert evidence.upper(zero) - evidence.lower(zero) == 0.0


def test_rows_that_rounding_spoils_elsewhere_are_still_bounded_well() -> None:
    """1e5 rows in one direction beside one small row in another, S = 1300 sigma: n u times the sum of
    squares enlarges the list's radii, which allow for the worst direction, by a fifth and more."""
    rng = np.random.default_rng(8)
    x = np.tile([75.0, 0.0], (100_000, 1))
    x[0] = [0.0, 0.1]
    model = c4b.LinearModel(2, 0.01, 13.0, 0.01, DELTA, "several-ridges")
    evidence = c4b.Evidence(model)
    y = x @ np.array([9.0, 0.0]) + 0.01 * rng.normal(size=len(x))
    evidence.learn(x, y)
    v, exact = np.array([1.0, 0.0]), exact_interval(model, x, y)
    stack = bounds.upper(evidence.region, v) - bounds.lower(evidence.region, v)
    assert stack > 1.1 * exact.width(v)
    assert exact.width(v) <= evidence.upper(v) - evidence.lower(v) <= 1.01 * exact.width(v)
