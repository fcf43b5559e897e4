"""The choices of `several-ridges`: the list of ellipsoids against its restatement and the exact set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4b._compilation.jit import kernel
from c4b.evidence.ellipsoids import Terms
from c4b.evidence.sets.several_ridges_parts.mix_choice import (
    Choice,
    choice_of,
    choice_size,
    opened_choice,
    write_choice,
)
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import NO_WEIGHT, write_log_dets, write_ridges
from support.oracle_sets import Array
from support.oracle_several_ridges import OracleSeveralRidges

seeds = st.integers(0, 2**32 - 1)
DELTA = 0.05


@kernel
def write(values: Array, moments: Array, count: float, ridge: float, terms: Terms, out: Array) -> None:
    choice = opened_choice(out)
    write_ridges(ridge, terms, choice.ridges, choice.log_weights)
    write_log_dets(values, 0.0, choice.ridges, choice.log_dets)
    write_choice(values, moments, count, choice, terms)


def written_choice(values: Array, moments: Array, count: float, ridge: float, terms: Terms) -> Choice:
    numbers = np.zeros(choice_size(len(values)))
    write(values, moments, count, ridge, terms, numbers)
    return choice_of(numbers)


def chosen(oracle: OracleSeveralRidges, ridge: float, epsilon: float, count: int) -> tuple[Array, Array]:
    """Mixes and multipliers by the compiled code, for the oracle's data."""
    terms = Terms(oracle.noise, oracle.norm_bound, 2.0 * oracle.log_level, epsilon)
    values, basis = np.linalg.eigh(oracle.gram)
    choice = written_choice(np.maximum(values, 0.0), basis.T @ oracle.moment, float(count), ridge, terms)
    ridges, log_weights, mixes, multipliers = choice[0], choice[1], choice[3], choice[4]
    used = log_weights > 0.5 * NO_WEIGHT
    assert ridges[used] == pytest.approx(oracle.ridges, rel=1e-12)
    assert np.exp(log_weights[used]) == pytest.approx(oracle.weights, rel=1e-12)
    assert not np.any(mixes[:, ~used])
    return mixes[:, used], multipliers


def drawn(seed: int) -> tuple[OracleSeveralRidges, float, int]:
    """A world of moderate numbers: the oracle after some rows, lambda, and how many rows."""
    rng = np.random.default_rng(seed)
    dim, rows = int(rng.integers(1, 7)), int(rng.choice([0, 1, 5, 20, 100, 300]))
    noise, bound = float(rng.choice([0.1, 0.5, 1.0])), float(rng.choice([1.0, 1.5]))
    ridge = float(10.0 ** rng.uniform(-2.0, 1.0))
    oracle = OracleSeveralRidges(dim, noise, bound, ridge, DELTA)
    theta = rng.normal(size=dim)
    theta *= rng.uniform(0.3, 0.95) * bound / np.linalg.norm(theta)
    features = rng.normal(size=(rows, dim)) / np.sqrt(dim)
    if rng.random() < 0.4:
        features[:, int(rng.integers(1, dim + 1)) :] *= float(rng.choice([0.0, 0.03]))
    for x in features:
        oracle.add(x, float(x @ theta + noise * rng.normal()))
    return oracle, ridge, rows


@given(seeds, st.sampled_from([0.0, 0.02]))
def test_the_choice_is_the_restated_one(seed: int, epsilon: float) -> None:
    oracle, ridge, rows = drawn(seed)
    mixes, multipliers = chosen(oracle, ridge, epsilon, rows)
    expected = oracle.ellipsoids(epsilon * np.sqrt(rows))
    assert mixes == pytest.approx(np.array([mix for mix, _ in expected]), abs=1e-7)
    assert multipliers == pytest.approx([a for _, a in expected], rel=1e-5)


@given(seeds)
def test_every_mix_is_a_point_of_the_simplex(seed: int) -> None:
    oracle, ridge, rows = drawn(seed)
    mixes, multipliers = chosen(oracle, ridge, 0.0, rows)
    assert np.all(mixes >= 0.0)
    assert np.sum(mixes, axis=1) == pytest.approx(1.0, abs=1e-14)
    assert np.all(multipliers > 0.0)
    for mix in mixes:
        assert oracle.radius_squared(mix) >= 2.0 * oracle.noise**2 * oracle.log_level


@given(seeds)
def test_any_mix_and_multiplier_contain_the_exact_set(seed: int) -> None:
    """Pairs drawn at random, not those of the library: soundness depends on no choice."""
    oracle, _, _ = drawn(seed)
    rng = np.random.default_rng(seed)
    v = rng.normal(size=oracle.dim)
    theta = np.linalg.lstsq(oracle.gram + 1e-9 * np.eye(oracle.dim), oracle.moment, rcond=None)[0]
    theta *= min(1.0, 0.999 * oracle.norm_bound / max(float(np.linalg.norm(theta)), 1e-12))
    if not oracle.contains(theta):  # perhaps empty
        return
    low, high = oracle.lower(v), oracle.upper(v)
    for _ in range(5):
        mix = rng.dirichlet(np.full(len(oracle.ridges), 10.0 ** rng.uniform(-1.5, 0.5)))
        V, centre, square = oracle.ellipsoid(mix, float(10.0 ** rng.uniform(-4.0, 4.0)))
        half = np.sqrt(square * (v @ np.linalg.solve(V, v)))
        assert v @ centre - half <= low + 1e-6
        assert v @ centre + half >= high - 1e-6


@pytest.mark.slow
def test_the_list_is_nearly_as_good_as_all_mixes_and_multipliers() -> None:
    """Against the conic solver: what 24 pairs lose of the width."""
    lost = []
    for seed in range(120):
        oracle, _, _ = drawn(7_000_000 + seed)
        rng = np.random.default_rng(seed)
        for v in rng.normal(size=(2, oracle.dim)):
            low, high = oracle.stack_bounds(v)
            exact = oracle.upper(v) - oracle.lower(v)
            lost.append((high - low) / exact - 1.0)
    assert min(lost) >= -1e-6
    assert max(lost) <= 0.03
    assert np.median(lost) <= 0.003


@pytest.mark.slow
def test_the_event_holds_with_probability_one_minus_delta() -> None:
    """Features follow the error so far, which is what makes a set fail if one can; delta = 30 %."""
    rng, missed, runs = np.random.default_rng(3), 0, 150
    for _ in range(runs):
        oracle = OracleSeveralRidges(2, 1.0, 5.0, 0.1, 0.3)
        theta, failed = rng.normal(size=2), False
        for n in range(60):
            rest = oracle.moment - oracle.gram @ theta
            x = rest / max(float(np.linalg.norm(rest)), 1e-9) if n % 3 else rng.normal(size=2)
            oracle.add(x, float(x @ theta + rng.normal()))
            failed = failed or oracle.log_martingale(theta) > oracle.log_level
        missed += failed
    assert missed <= 0.3 * runs
    assert missed > 0  # the event is not vacuous


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_lost_leave_no_finite_choice(bad: float) -> None:
    terms = Terms(0.3, 1.5, 6.0, 0.0)
    choice = written_choice(np.array([1.0, bad]), np.array([0.5, 0.5]), 2.0, 0.1, terms)
    assert not np.any(np.isfinite(choice.multipliers))
