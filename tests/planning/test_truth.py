"""What a log leaves possible contains the truth, and does not take luck for it."""

import numpy as np

from c4b._validate import Array
from c4b.planning.truth import possible_truth


def of_rates(actions: Array, rewards: Array, count: int) -> tuple[Array, Array]:
    """Estimated rates of some actions, and their standard deviations."""
    features = np.column_stack([np.ones(count), np.eye(count)])
    found = possible_truth(
        lambda: [(features[actions], rewards)],
        count + 1,
        lambda y, means: np.clip(means, 0.0, 1.0) * (1.0 - np.clip(means, 0.0, 1.0)),
    )
    return features @ found.estimate, np.sqrt(np.sum(features @ found.covariance * features, axis=1))


def test_intervals_contain_the_rates() -> None:
    draw = np.random.default_rng(3)
    inside = []
    for _ in range(60):
        rates = np.clip(0.4 + 0.1 * draw.normal(size=8), 0.05, 0.95)
        actions = draw.integers(0, 8, 400)
        means, errors = of_rates(actions, (draw.random(400) < rates[actions]).astype(float), 8)
        inside.append(np.abs(means - rates) < 1.645 * errors)
    assert 0.8 < np.mean(inside) < 0.97


def test_no_click_is_no_proof_of_rate_zero() -> None:
    draw = np.random.default_rng(4)
    actions = np.repeat(np.arange(80), 60)
    rewards = (draw.random(len(actions)) < 0.004).astype(float)
    clicks = np.bincount(actions, rewards)
    assert clicks.min() == 0.0
    assert clicks.max() >= 2.0
    means, errors = of_rates(actions, rewards, 80)
    assert 0.5 * rewards.mean() < means.min()
    assert means.max() < 0.5 * clicks.max() / 60
    assert errors.min() > 0.1 * rewards.mean()


def test_many_rows_are_hardly_shrunk() -> None:
    draw = np.random.default_rng(5)
    rates = np.array([0.3, 0.5, 0.8])
    actions = draw.integers(0, 3, 30_000)
    rewards = (draw.random(30_000) < rates[actions]).astype(float)
    means, errors = of_rates(actions, rewards, 3)
    plain = np.bincount(actions, rewards) / np.bincount(actions)
    assert np.allclose(means, plain, atol=2e-3)
    assert np.allclose(errors, np.sqrt(rates * (1 - rates) / 10_000), rtol=0.1)


def test_rewards_that_are_all_the_same() -> None:
    means, errors = of_rates(np.arange(20) % 2, np.ones(20), 2)
    assert np.allclose(means, 1.0, atol=1e-6)
    assert np.all(np.isfinite(errors))
