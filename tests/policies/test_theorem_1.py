"""Theorem 1 on simulated truth: D_t >= B_t >= 0 at every t of every covered path."""

import numpy as np
import pytest

import c4b
from support.oracle_comparison import CONFIDENCES, GATED
from support.oracle_sets import Array

ROUNDS = 150
CARRIED = ("separate", "contrast", "refresh")  # revalue's bank may fall below 0; its truth may not


def paper_pool(rng: np.random.Generator, dim: int, size: int, rho: float) -> Array:
    """Candidates (1, rho u), u uniform on the sphere: the paper's study."""
    u = rng.normal(size=(size, dim - 1))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return np.hstack([np.ones((size, 1)), rho * u])


def covers(theta: Array, features: list[Array], rewards: list[float], model: c4b.LinearModel) -> bool:
    """The event (7) by definition, from all data, in plain NumPy; the paper's or the mixture radius."""
    X, y = np.array(features).reshape(-1, model.dim), np.array(rewards)
    V = model.ridge * np.eye(model.dim) + X.T @ X
    gap = theta - np.linalg.solve(V, X.T @ y)
    log_det = np.linalg.slogdet(V)[1] - model.dim * np.log(model.ridge)
    spread = model.noise**2 * (log_det + 2.0 * np.log(1.0 / model.delta))
    bias = model.ridge * model.norm_bound**2
    plain = model.confidence == "self-normalized"
    square = (np.sqrt(spread) + np.sqrt(bias)) ** 2 if plain else spread + bias
    return bool(gap @ V @ gap <= square)


def deploy(
    name: str, confidence: str, seed: int, adversarial: bool = False, delay: int = 0, noise: float = 0.3
) -> tuple[bool, Array, Array, float]:
    """(covered throughout, D, B, share of fallback); outcomes arrive ``delay`` rounds late."""
    rng = np.random.default_rng([seed, GATED.index(name), CONFIDENCES.index(confidence)])
    theta = np.array([1.0, 0.6, 0.0, 0.0, 0.0])
    model = c4b.LinearModel(5, noise, 1.5, 0.1, 0.05, confidence)
    baseline = np.eye(5)[0]
    X = paper_pool(rng, 5, 20, 1.0) if seed % 2 else np.tile(baseline, (20, 1))
    y = X @ theta + noise * rng.normal(size=20)
    policy = c4b.Policy(name, model, alpha=0.05, reserve=float(seed % 3) / 2.0)
    policy.learn(X, y)
    features, rewards, waiting = list(X), y.tolist(), []
    truth, D, B, covered, falls, luck = policy.reserve, [], [], True, 0, 0.0
    for _ in range(ROUNDS):
        covered &= covers(theta, features, rewards, model)
        pool = paper_pool(rng, 5, 8, 0.4)
        if adversarial:  # the generator has seen every reward, and whether the last was lucky
            toward = policy.estimate if luck > 0.0 else -policy.estimate
            pool[0] = baseline + 0.5 * toward
            pool[1] = 2.0 * baseline - policy.prefix / max(1.0, np.linalg.norm(policy.prefix))
            pool[2, 1:] = -0.8 * np.sign(policy.estimate[1:])
        decision = policy.decide(pool, baseline)
        executed = baseline if decision.action is None else pool[decision.action]
        falls += decision.is_baseline
        truth += float((executed - 0.95 * baseline) @ theta)
        D.append(truth)
        B.append(decision.bank)
        error = noise * (float(rng.normal()) if not adversarial else float(rng.choice([-1.0, 1.0])))
        luck = error
        waiting.append((decision.id, executed, float(executed @ theta) + error))
        while len(waiting) > delay:
            id_, x, reward = waiting.pop(0)
            policy.observe(id_, reward)
            features.append(x)
            rewards.append(reward)
    return covered, np.array(D), np.array(B), falls / ROUNDS


def assert_safe(name: str, covered: bool, D: Array, B: Array) -> None:
    assert covered, "choose another seed: this path is one of the delta that may fail"
    assert np.all(D >= B - 1e-9)
    assert np.all(D >= -1e-9)
    if name in CARRIED:
        assert np.all(B >= 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("name", GATED)
def test_bank_bounds_the_truth(name: str, confidence: str, seed: int) -> None:
    covered, D, B, _ = deploy(name, confidence, seed)
    assert_safe(name, covered, D, B)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", GATED)
def test_pools_chosen_by_an_adversary(name: str, seed: int) -> None:
    covered, D, B, _ = deploy(name, "mixture", seed, adversarial=True, noise=0.1)
    assert_safe(name, covered, D, B)


@pytest.mark.parametrize("name", GATED)
def test_outcomes_that_arrive_late(name: str) -> None:
    covered, D, B, _ = deploy(name, "mixture", seed=3, delay=25)
    assert_safe(name, covered, D, B)


def test_the_simulation_explores_and_could_fail() -> None:
    """Refresh plays candidates in most rounds here, and its bank is close to the truth at times."""
    runs = [deploy("refresh", "mixture", seed) for seed in range(6)]
    assert np.mean([falls for *_, falls in runs]) < 0.5
    assert min(float(np.min(D - B)) for _, D, B, _ in runs) < 0.2


def test_ungated_the_same_world_violates() -> None:
    """LinUCB, no gate, baseline-only history: the constraint is not met for free."""
    worst = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        theta, baseline = np.array([1.0, 0.6, 0.0, 0.0, 0.0]), np.eye(5)[0]
        policy = c4b.Policy("linucb", c4b.LinearModel(5, 0.3, 1.5))
        policy.learn(np.tile(baseline, (20, 1)), 1.0 + 0.3 * rng.normal(size=20))
        truth = 0.0
        for _ in range(30):
            pool = paper_pool(rng, 5, 8, 0.8)
            decision = policy.decide(pool, baseline)
            truth += float((pool[decision.action] - 0.95 * baseline) @ theta)
            worst = min(worst, truth)
            policy.observe(decision.id, float(pool[decision.action] @ theta + 0.3 * rng.normal()))
    assert worst < -0.1
