"""No float64 input breaks a bound: certified bounds against exact ones, in ball arithmetic.

A sample of what ``make hostile`` runs in full.
"""

import numpy as np
import pytest
from flint import arb

import c4b
from c4b.evidence.ellipsoids import ALARM, views
from c4b.evidence.sets.several_ridges_parts.mix_choice import choice_of
from support import ball_arithmetic
from support.ball_arithmetic import BallSet
from support.evidence_internals import inside
from support.hostile_data import (
    ALPHA,
    CONFIDENCES,
    Verdict,
    absorbed,
    draw,
    draw_bounded,
    false_bounds,
    issue_world,
    judge,
    refined_pairs,
)
from support.oracle_sets import Array

pytestmark = pytest.mark.slow

SIZES = (1e4, 2e4, 5e4, 1e5, 2e5, 3e5)


def sound(verdict: Verdict) -> bool:
    return not (verdict.false_bounds or verdict.missed_truth or verdict.false_alarm)


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_no_certified_bound_lies_beyond_the_exact_set(first: int) -> None:
    for seed in range(first, first + 20):
        world = draw(seed, largest=12, most_rows=500)
        for count in sorted({len(world.rewards) // 3, len(world.rewards)}):
            assert sound(judge(world, count, seed)), (seed, count)


def test_what_is_promised_is_the_event_and_not_a_list_of_its_bounds() -> None:
    """Noise of 1e-5 beside a norm bound of 34: the listed ellipsoids are far wider than the event, and
    rounding moves them by 1e-12. Exact multipliers between those of the list prove every bound."""
    world = draw(100_125)
    for count in (637, 1275):
        assert sound(judge(world, count, 100_125))


def test_the_judge_sees_bounds_that_are_too_tight() -> None:
    world = draw(100_125)
    evidence, vectors = absorbed(world, 637), world.features[:3]
    exact = BallSet(world.model, world.features[:637], world.rewards[:637])
    exact = exact.with_pairs(refined_pairs(evidence, vectors)).by_more_multipliers()
    limits = exact.bounds(vectors)
    low = [np.nextafter(float(value.upper()), np.inf) for value in limits.low]
    high = [np.nextafter(float(value.lower()), -np.inf) for value in limits.high]
    joint = c4b.joint_certificate(evidence, vectors[1:], vectors[0], ALPHA).tolist()
    assert false_bounds(exact, vectors, (low, high, joint)) == 6
    sound_ones = ([evidence.lower(v) for v in vectors], [evidence.upper(v) for v in vectors], joint)
    assert false_bounds(exact, vectors, sound_ones) == 0


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_squares_that_underflow_move_no_bound_visibly(
    confidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features down to the smallest numbers, noise, norm bound and ridge up to their limits."""
    monkeypatch.setattr(ball_arithmetic, "BITS", 5000)
    rng = np.random.default_rng(list(map(ord, confidence)))
    for seed in range(25):
        dim, rows = int(rng.choice([1, 2, 3])), int(rng.choice([1, 4, 12]))
        noise, bound, ridge = rng.choice([1e-30, 1e-3, 1.0, 1e3, 1e30], size=3).tolist()
        features = 10.0 ** rng.uniform(-320.0, 50.0) * rng.normal(size=(rows, dim))
        theta = 0.5 * bound * np.ones(dim) / dim
        model = c4b.LinearModel(dim, noise, bound, ridge, confidence=confidence)
        world = draw(0)._replace(model=model, features=features, rewards=features @ theta, theta=theta)
        evidence = absorbed(world, rows)
        choice = choice_of(views(evidence.flat)[1].extra) if confidence == "several-ridges" else None
        vectors = np.vstack([features[:2], np.eye(dim)[0], 10.0 ** rng.uniform(-320, 50) * np.ones(dim)])
        exact = BallSet(model, features, world.rewards, choice)
        exact = exact.with_pairs(refined_pairs(evidence, vectors))
        bounds = [exact.bounds(vectors), exact.by_more_multipliers().bounds(vectors)]
        assert not bounds[0].empty, seed
        for n, v in enumerate(vectors):
            low, high = arb(evidence.lower(v)), arb(evidence.upper(v))
            near = arb(bound) * arb(1e-90)
            assert any(low - near <= each.low[n] for each in bounds), (seed, v)
            assert any(high + near >= each.high[n] for each in bounds), (seed, v)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_bound_of_the_set_for_ranges_lies_beyond_the_exact_set(first: int) -> None:
    for seed in range(first, first + 20):
        world = draw_bounded(seed)
        for count in sorted({len(world.rewards) // 3, len(world.rewards)}):
            assert sound(judge(world, count, seed)), (seed, count)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_nearly_collinear_features_do_not_lose_the_truth(confidence: str) -> None:
    """theta lies in the exact set (the noise is moderate), so it lies within every bound."""
    for size in SIZES:
        for noise in (0.01, 1.0):
            for seed in range(3):
                world = issue_world(confidence, size, noise, seed)
                assert sound(judge(world, 1000, seed)), (size, noise, seed)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_hundred_thousand_updates(confidence: str) -> None:
    """Sound, and hardly wider than the exact set at a condition of a million."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(100_000, 4)) * [1.0, 1.0, 0.1, 0.01]
    world = draw(0)._replace(
        model=c4b.LinearModel(4, 0.3, 1.5, confidence=confidence),
        features=features,
        rewards=features @ np.full(4, 0.7) + 0.3 * rng.normal(size=100_000),
        theta=np.full(4, 0.7),
    )
    verdict = judge(world, 100_000, 0)
    assert sound(verdict)
    assert verdict.condition > 1e5
    assert verdict.ratio < 1.35  # what the grids lose, not rounding


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_rounding_does_not_empty_a_set(confidence: str) -> None:
    """||theta|| = S, little noise, a condition of 2e8: theta explains the data."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        angle = rng.uniform(0.0, 2.0 * np.pi)
        theta = np.array([np.cos(angle), np.sin(angle)])
        features = 1e3 * np.ones((200, 2)) + rng.uniform(-0.1, 0.1, size=(200, 2))
        world = draw(0)._replace(
            model=c4b.LinearModel(2, 1e-3, 1.0, 1.0, confidence=confidence),
            features=features,
            rewards=features @ theta + 1e-3 * rng.choice([-1.0, 1.0], size=200),
            theta=theta,
        )
        assert inside(absorbed(world, 200)).tally[ALARM] == 0.0


def far(v: Array, bound: float) -> float:
    return bound * float(np.linalg.norm(v))


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_norm_ball_bounds_what_the_data_do_not(confidence: str) -> None:
    """With an inverse that is no number, and, for sets within the ball, always."""
    rng = np.random.default_rng(4)
    evidence = c4b.Evidence(c4b.LinearModel(3, 3.0, 2.0, 0.01, confidence=confidence))
    evidence.learn([[1.0, 0.0, 0.0]], [0.5])
    vectors = rng.normal(size=(5, 3))
    if len(evidence.region.radius) > 1:
        for v in vectors:
            assert evidence.lower(v) >= -far(v, 2.0) * (1.0 + 1e-12)
            assert evidence.upper(v) <= far(v, 2.0) * (1.0 + 1e-12)
    inside(evidence).inverse[:] = np.nan
    joint = c4b.joint_certificate(evidence, vectors, vectors[0], 0.05)
    for v, bound in zip(vectors, joint.tolist(), strict=True):
        assert evidence.lower(v) == pytest.approx(-far(v, 2.0), rel=1e-12)
        assert evidence.upper(v) == pytest.approx(far(v, 2.0), rel=1e-12)
        several = len(evidence.region.radius) > 1
        limit = -far(v - 0.95 * vectors[0], 2.0) if several else -np.inf
        assert bound == pytest.approx(limit, rel=1e-9)
