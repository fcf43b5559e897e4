"""What is believed of theta: the posterior of a Gaussian prior, where a choice uses it."""

from __future__ import annotations

import numpy as np
import pytest

import c4b
from c4b.policies.rounds.candidate_fields import CandidateField
from support.oracle_belief import expected_theta

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
NOISE, BOUND = 0.4, 1.3


def decided(
    confidence: str, dim: int, size: int, score: str = "believed", selection: str = "hopeful-4"
) -> tuple[Array, Array, Array]:
    """Scores (K,) of a first decision after 30 observations, and the posterior means and deviations."""
    rng = np.random.default_rng([dim, size])
    features, rewards = rng.normal(size=(30, dim)), rng.normal(size=30)
    parts = c4b.Composition("x", "joint", "checkpoints", selection, "", score, confidence)
    policy = c4b.Policy(parts, c4b.LinearModel(dim, NOISE, BOUND), alpha=0.01, reserve=100.0)
    policy.learn(features, rewards)
    pool = rng.normal(size=(size, dim))
    decision = policy.decide(pool, np.eye(dim)[0])
    precision = np.eye(dim) * dim / BOUND**2 + features.T @ features / NOISE**2
    mean = np.linalg.solve(precision, features.T @ rewards / NOISE**2)
    spread = np.sqrt(np.einsum("ki,ij,kj->k", pool, np.linalg.inv(precision), pool))
    return decision.details[CandidateField.SCORE], pool @ mean, spread


@pytest.mark.parametrize("confidence", ["several-ridges", "unbiased", "constrained"])
@pytest.mark.parametrize(("dim", "size"), [(1, 2), (3, 5), (10, 300)])
@pytest.mark.parametrize("selection", ["hopeful-4", "hopeful-7", "hopeful-8"])
def test_scores_are_the_posterior_mean_and_two_standard_deviations(
    confidence: str, dim: int, size: int, selection: str
) -> None:
    """Two, or more with fewer features than five. A careful expectation does not change scores."""
    scores, means, spreads = decided(confidence, dim, size, selection=selection)
    spreads = spreads * np.sqrt(5.0 / min(dim, 5))
    kept = np.isfinite(scores)  # others were passed over
    assert kept.any()
    np.testing.assert_allclose(scores[kept], (means + 2.0 * spreads)[kept], rtol=1e-9)


@pytest.mark.parametrize("confidence", ["self-normalized", "mixture"])
def test_sets_without_an_eigenbasis_score_by_their_intervals(confidence: str) -> None:
    with_belief, without = (decided(confidence, 3, 5, score)[0] for score in ("believed", "measured-2"))
    np.testing.assert_array_equal(with_belief, without)


def test_what_is_expected_to_be_worse_promises_nothing() -> None:
    """A candidate that is admissible, in random data of fewer observations than features: it is played
    where the interval promises more than the baseline, unless less is expected of it."""
    parts = {
        score: c4b.Composition("x", "joint", "checkpoints", "competitive", "", score, "several-ridges")
        for score in ("believed", "measured-2")
    }
    rng, differ = np.random.default_rng(5), 0
    for _ in range(40):
        features, rewards = rng.normal(size=(6, 8)), rng.normal(size=6)
        pool, baseline = rng.normal(size=(1, 8)), rng.normal(size=8)
        actions = {}
        for score, composition in parts.items():
            policy = c4b.Policy(composition, c4b.LinearModel(8, 1.0, 1.0), alpha=0.01, reserve=100.0)
            policy.learn(features, rewards)
            actions[score] = policy.decide(pool, baseline).action
        precision, contrast = np.eye(8) * 8.0 + features.T @ features, pool[0] - baseline
        expected = contrast @ np.linalg.solve(precision, features.T @ rewards)
        expected += 0.04 * np.sqrt(contrast @ np.linalg.solve(precision, contrast))
        assert actions["believed"] == (actions["measured-2"] if expected > 0.0 else None)
        differ += actions["believed"] != actions["measured-2"]
    assert differ > 0


@pytest.mark.parametrize("confidence", ["several-ridges", "unbiased", "constrained"])
@pytest.mark.parametrize("careful", ["hopeful-7", "hopeful-8"])
def test_little_is_expected_where_the_data_show_little(confidence: str, careful: str) -> None:
    """Rewards of which the features but the first explain a part that differs from world to world. The
    candidate is played if both its interval and the careful expectation promise more than the baseline;
    the expectation is recomputed here from its definition."""
    dim, noise, bound = 8, 0.7, 1.5
    parts = {
        selection: c4b.Composition("x", "joint", "checkpoints", selection, "", score, confidence)
        for selection, score in (("competitive", "measured-2"), (careful, "believed"))
    }
    rng, refused, plain = np.random.default_rng(11), 0, 0
    for world in range(400):
        features = np.c_[np.ones(20), 0.6 * rng.normal(size=(20, dim - 1))]
        theta = np.r_[1.0, rng.choice([0.02, 0.6]) * rng.normal(size=dim - 1) / np.sqrt(dim)]
        rewards = features @ theta + noise * rng.normal(size=20)
        pool = np.c_[1.0, 0.6 * rng.normal(size=(1, dim - 1))]
        baseline, actions = np.r_[rng.uniform(0.9, 1.1), np.zeros(dim - 1)], {}
        for selection, composition in parts.items():
            policy = c4b.Policy(
                composition, c4b.LinearModel(dim, noise, bound), alpha=0.01, reserve=100.0
            )
            policy.learn(features, rewards)
            actions[selection] = policy.decide(pool, baseline).action
        gram, moment, contrast = features.T @ features, features.T @ rewards, pool[0] - baseline
        shape = gram + dim * (noise / bound) ** 2 * np.eye(dim)
        spread = 0.04 * noise * np.sqrt(contrast @ np.linalg.solve(shape, contrast))
        expected = (
            contrast
            @ expected_theta(gram, moment, pool, baseline, noise, bound, level=careful == "hopeful-8")
            + spread
        )
        assert actions[careful] == (actions["competitive"] if expected > 0.0 else None), world
        refused += actions["competitive"] != actions[careful]
        plain += (expected > 0.0) != (contrast @ np.linalg.solve(shape, moment) + spread > 0.0)
    assert refused >= 5
    assert plain >= 3  # the usual prior would have said otherwise
