"""Rounds of any shape for tests that compare two computations."""

from __future__ import annotations

import numpy as np

from support.oracle_sets import Array


def random_stream(
    rng: np.random.Generator, dim: int, rounds: int, max_candidates: int
) -> tuple[Array, list[tuple[Array, Array]]]:
    """theta_star (norm <= 1) and its rounds (candidates (K, dim), baseline (dim,)): K changes and
    includes 0 and 1 (given 2 rounds); every baseline mean is nonnegative."""
    theta = rng.normal(size=dim)
    theta *= rng.uniform(0.5, 1.0) / np.linalg.norm(theta)
    counts = rng.integers(0, max_candidates + 1, size=rounds)
    for place, count in zip(rng.permutation(rounds)[:2], (0, 1), strict=False):
        counts[place] = min(count, max_candidates)
    stream = []
    for count in counts:
        baseline = rng.normal(size=dim)
        baseline *= rng.uniform(0.5, 1.0) / np.linalg.norm(baseline)
        if baseline @ theta < 0.0:
            baseline = -baseline
        spread = rng.choice([0.05, 0.3, 1.0])  # near the baseline, or anywhere
        candidates = baseline + spread * rng.normal(size=(int(count), dim)) / np.sqrt(dim)
        stream.append((candidates, baseline))
    return theta, stream
