"""The set `bounded`: against its oracle, against its promise, and against rewards out of range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ncx2

import c4b
from c4b.errors import InvalidInput
from c4b.evidence.ellipsoids import views
from c4b.evidence.sets.bounded_parts import bounded_versions
from c4b.evidence.sets.bounded_parts.bounded_radius import solved_radius, write_series
from c4b.evidence.sets.bounded_parts.learned_statistics import SCALE, learned_of, learned_size
from support.oracle_bounded import CONSTANTS, OracleBounded, log_truncated
from support.oracle_sets import Array


def clicks(rng: np.random.Generator, rows: int, dim: int, rate: float) -> tuple[Array, Array, Array]:
    """Features (1, u) on the sphere, Bernoulli rewards, the truth."""
    u = rng.normal(size=(rows, dim - 1))
    features = np.c_[np.ones(rows), u / np.linalg.norm(u, axis=1)[:, None]]
    theta = rate * np.r_[1.0, 0.35, np.zeros(dim - 2)]
    return features, (rng.random(rows) < features @ theta).astype(float), theta


def scale_of(evidence: c4b.Evidence) -> int:
    return int(learned_of(views(evidence.flat)[1].extra, evidence.model.dim).sums[SCALE])


def of_range(name: str, dim: int, bound: float, low: float = 0.0, high: float = 1.0) -> c4b.LinearModel:
    noise = 0.5 * (high - low)
    return c4b.LinearModel(dim, noise, bound, confidence=name, rewards=(low, high))


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 2, 5, 20, 64])
def test_the_radius_solves_its_equation(dim: int, version: int) -> None:
    learned = learned_of(np.zeros(learned_size(dim)), dim)
    write_series(learned, version, dim)
    for scale in range(5):
        reach_squared = list(CONSTANTS.values())[version].reach_squared(dim, scale)
        for level in np.geomspace(3.0, 60.0, 40).tolist():
            found = 2.0 * log_truncated(solved_radius(learned, scale, level), dim, reach_squared)
            assert level <= found <= level * (1.0 + 1e-6)


def test_the_truncated_average_is_a_noncentral_probability() -> None:
    for radius in (0.5, 2.0, 4.0):
        direct = 0.5 * radius**2 + np.log(ncx2.cdf(25.0, 5, radius**2))
        assert log_truncated(radius, 5, 25.0) == pytest.approx(direct, rel=1e-9)


def test_shares_of_delta_add_up_to_one() -> None:
    total = (
        sum(bounded_versions.SHARES_OF_SECOND)
        + 2.0 * bounded_versions.SUM_SHARE_OF_SECOND
        + bounded_versions.LINEARITY_SHARE
    )
    assert total == pytest.approx(1.0, abs=1e-12)
    for dim in (1, 2, 5, 50):
        first, left = total_share(dim, 0), np.exp(-bounded_versions.spared(2, dim))
        others = sum(total_share(dim, scale) for scale in range(1, 5))
        sums = left * (2.0 * bounded_versions.SUM_SHARE_OF_SECOND + bounded_versions.LINEARITY_SHARE)
        assert first + others + sums == pytest.approx(1.0, abs=1e-12)
        assert first == pytest.approx(CONSTANTS["bounded-3"].share(dim, 0), abs=1e-12)


def total_share(dim: int, scale: int) -> float:
    """Of delta, by the level that a scale of `bounded-3` has."""
    terms = c4b.LinearModel.bounded(dim, 1.0, delta=0.5).terms
    return float(np.exp(-0.5 * (bounded_versions.level_of(0.0, terms, 2, dim, scale) - terms.log_term)))


@pytest.mark.parametrize("rewards", [(0.0, 1.0), (-2.0, 3.0)])
@pytest.mark.parametrize(("name", "seed"), [("bounded", 0), ("bounded-2", 1), ("bounded-3", 2)])
def test_bounds_are_those_of_the_oracle(name: str, seed: int, rewards: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    dim, rows = int(rng.integers(2, 5)), int(rng.choice([30, 300]))
    low, high = rewards
    x, y, _ = clicks(rng, rows, dim, float(rng.choice([0.02, 0.3])))
    y = low + (high - low) * y
    model = of_range(name, dim, 4.0, low, high)
    evidence = c4b.Evidence(model)
    oracle = OracleBounded(name, dim, high - low, 4.0, model.ridge, model.delta)
    evidence.learn(x, y)
    for row, reward in zip(x, y.tolist(), strict=True):
        oracle.add(row, reward)
    scale = scale_of(evidence)
    for v in rng.normal(size=(6, dim)):
        bound = evidence.lower(v)
        assert bound == pytest.approx(oracle.ellipsoid_lower(v, scale), rel=1e-6, abs=1e-7)
        exact = oracle.lower(v, scale)
        assert bound <= exact + 1e-6
        assert exact - bound <= 0.03 * (evidence.upper(v) - bound)  # what sixteen multipliers lose


def test_one_by_one_or_at_once_is_the_same_evidence() -> None:
    rng = np.random.default_rng(5)
    x, y, _ = clicks(rng, 200, 3, 0.1)
    at_once, single = (c4b.Evidence(c4b.LinearModel.bounded(3, 1.0)) for _ in range(2))
    at_once.learn(x, y)
    for row, reward in zip(x, y.tolist(), strict=True):
        single.absorb(row, reward)
    for v in rng.normal(size=(5, 3)):
        if scale_of(at_once) == scale_of(single):
            assert at_once.lower(v) == pytest.approx(single.lower(v), rel=1e-9)
    shapes = [learned_of(views(e.flat)[1].extra, 3).shapes for e in (at_once, single)]
    np.testing.assert_array_equal(*shapes)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "largest"), [(0.005, 0.22), (0.03, 0.35), (0.1, 0.5), (0.3, 0.75)])
def test_many_rows_of_low_rates_are_narrower_than_half_the_range_allows(
    rate: float, largest: float
) -> None:
    rng = np.random.default_rng(8)
    v = np.array([0.05, 1.0, 0.0, 0.0, 0.0])
    for rows in (20, 200, 20_000):
        x, y, theta = clicks(rng, rows, 5, rate)
        bounded = c4b.Evidence(c4b.LinearModel.bounded(5, 1.0))
        declared = c4b.Evidence(c4b.LinearModel(5, 0.5, 1.0, confidence="unbiased"))
        bounded.learn(x, y)
        declared.learn(x, y)
        assert bounded.contains(theta)
        ratio = (bounded.upper(v) - bounded.lower(v)) / (declared.upper(v) - declared.lower(v))
        assert ratio <= (largest if rows == 20_000 else 1.1)


def greedy_misses(rng: np.random.Generator, delta: float, rate: float, two_point: bool) -> bool:
    """Whether theta* ever left the set while an adversary who knows it played on."""
    dim = 2
    theta = rate * np.array([1.0, 0.5])
    model = c4b.LinearModel.bounded(dim, 1.0, delta=delta)
    evidence = c4b.Evidence(model)
    for n in range(400):
        gap = evidence.estimate - theta
        pool = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.0, 1.0], [0.1, 0.9]])
        drawn = rng.random()
        x = pool[int(np.argmax(pool @ gap))] if n % 2 else pool[int(rng.integers(3))]
        mean = float(np.clip(x @ theta, 0.0, 1.0))
        y = float(drawn < mean) if two_point else mean * drawn * 2.0 if mean <= 0.5 else mean
        evidence.absorb(x, y)
        if not evidence.contains(theta):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("two_point", [True, False])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.6])
def test_an_adversary_who_knows_the_truth_meets_delta(rate: float, two_point: bool) -> None:
    rng = np.random.default_rng([3, int(1000 * rate), two_point])
    misses = sum(greedy_misses(rng, 0.5, rate, two_point) for _ in range(200))
    assert misses <= 200 * 0.5


MODEL = c4b.LinearModel.bounded(2, 1.0)


@pytest.mark.parametrize("reward", [-1e-9, 1.0 + 1e-9, 2.0])
def test_a_reward_out_of_range_changes_nothing(reward: float) -> None:
    evidence = c4b.Evidence(MODEL)
    evidence.learn([[1.0, 0.0]], [1.0])
    before = evidence.flat.copy()
    with pytest.raises(InvalidInput, match=r"rewards\[1\].*0 to 1"):
        evidence.learn([[1.0, 0.0], [1.0, 0.0]], [0.0, reward])
    with pytest.raises(InvalidInput, match="declared range"):
        evidence.absorb([1.0, 0.0], reward)
    np.testing.assert_array_equal(evidence.flat, before)


@pytest.mark.parametrize("reward", [-0.5, 1.5])
def test_a_policy_refuses_it_too(reward: float, tmp_path: Path) -> None:
    policy = c4b.Policy("reserve-c4b+", MODEL, alpha=0.1)
    with pytest.raises(InvalidInput, match=r"rewards\[0\]"):
        policy.learn([[1.0, 0.0]], [reward])
    policy.learn([[1.0, 0.0]] * 20, [0.0, 1.0] * 10)
    ids = [policy.decide([[1.0, 0.5]], [1.0, 0.0]).id for _ in range(2)]
    radius = policy.radius
    with pytest.raises(InvalidInput, match="reward"):
        policy.observe(ids[0], reward)
    with pytest.raises(InvalidInput, match=r"outcomes\[1\]\.reward"):
        policy.observe_many([(ids[0], 1.0), (ids[1], reward)])
    assert policy.radius == radius
    assert list(policy.pending) == ids
    policy.observe_many([(ids[0], 1.0), (ids[1], 0.0)])
    policy.save(tmp_path / "policy")
    loaded = c4b.Policy.load(tmp_path / "policy")
    assert loaded.model == policy.model
    np.testing.assert_array_equal(loaded.evidence.flat, policy.evidence.flat)


@pytest.mark.parametrize("rewards", [(1, 0), (0, 0), (0, float("inf")), 1.0, (0, 1, 2), None])
def test_the_range_must_be_one(rewards: object) -> None:
    with pytest.raises(InvalidInput, match="rewards"):
        c4b.LinearModel.bounded(2, 1.0, rewards)  # type: ignore[arg-type]


def test_the_set_needs_the_range_and_no_other_noise() -> None:
    with pytest.raises(InvalidInput, match="rewards"):
        c4b.LinearModel(2, 0.5, 1.0, confidence="bounded")
    with pytest.raises(InvalidInput, match="noise"):
        c4b.LinearModel(2, 0.3, 1.0, confidence="bounded", rewards=(0, 1))


def test_data_that_no_theta_explains_raise_the_alarm() -> None:
    evidence = c4b.Evidence(c4b.LinearModel.bounded(1, 0.1))
    evidence.learn(np.ones((300, 1)), np.ones(300))
    assert evidence.alarm == "no theta within the norm bound explains the data"
