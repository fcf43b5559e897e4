"""Random settings: their parameters depend on a seed, so that methods cannot be tuned to them."""

from __future__ import annotations

import numpy as np

from c4b.study.spec.setting import NUMBERED, SHUFFLED, Setting

MOST_WORK = 1_000_000
"""Rounds x features x (candidates + features) in a drawn world: the larger a round, the fewer."""
_STREAM = 0x776F726C6473


def drawn_world(seed: int, number: int) -> Setting:
    """World ``number`` of a seed. It does not depend on other numbers or on the rest of the study."""
    rng = np.random.default_rng([_STREAM, seed, number])
    arms = rng.random() < 0.2
    dim = int(rng.choice([3, 5, 10, 20] if arms else [2, 5, 10, 20, 50]))
    count = dim - 1 if arms else round(_log_uniform(rng, 2.0, 500.0))
    most = max(200.0, min(10_000.0, MOST_WORK / (dim * (count + dim))))
    rounds = round(_log_uniform(rng, 200.0, most)) if most > 200.0 else 200
    theta = _arm_means(rng, dim) if arms else _linear_theta(rng, dim)
    first = 1.0 if arms else rng.uniform(0.9, 1.15)
    spread = 0.0 if arms or rng.random() < 0.75 else rng.uniform(0.05, 0.4)
    generator = "one-hot" if arms else str(rng.choice(["sphere", "sphere", "gaussian"]))
    alike = generator == "sphere" and rng.random() < 0.4
    return Setting(
        history=str(rng.choice(["baseline", "diverse"])) if not arms else "baseline",
        history_size=int(rng.integers(0, 100)),
        rho=rng.uniform(0.1, 0.9),
        sigma=_log_uniform(rng, 0.05, 1.0),
        alpha=_log_uniform(rng, 0.01, 0.2),
        norm_bound=float(np.linalg.norm(theta)) * rng.uniform(1.05, 1.5),
        noise=str(rng.choice(["gaussian", "uniform", "rademacher", "heteroscedastic", "skewed"])),
        generator=generator,
        count=count,
        rounds=rounds,
        theta=tuple(theta.tolist()),
        baseline=(first, *([0.0] * (dim - 1))),
        listing=SHUFFLED if arms else NUMBERED,
        correlation=rng.uniform(0.3, 0.95) if alike else 0.0,
        baseline_spread=spread,
        world=f"drawn {number}: {'arms' if arms else generator}, d {dim}, K {count}, T {rounds}",
    )


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _linear_theta(rng: np.random.Generator, dim: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """1 for the first feature, and a random direction of length 0.2 to 0.9 for the others."""
    rest = rng.standard_normal(dim - 1)
    return np.concatenate([[1.0], rng.uniform(0.2, 0.9) * rest / np.linalg.norm(rest)])


def _arm_means(rng: np.random.Generator, dim: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """1 for the incumbent, 0.7 to 1.3 for the other arms."""
    return np.concatenate([[1.0], rng.uniform(0.7, 1.3, dim - 1)])
