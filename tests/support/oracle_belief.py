"""What is expected of theta under a prior whose variance is not known, straight from the definition."""

from __future__ import annotations

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def careful_mean(gram: Array, moment: Array, noise: float, norm_bound: float) -> Array:
    """theta (d,) as it is expected from A = ``gram`` and m = ``moment``.

    In the eigenbasis of A the coordinates of m are independent, N(lambda_i theta_i, lambda_i sigma^2).
    theta_i is N(0, s^2), s^2 one of S^2/d, a quarter, a sixteenth and a sixty-fourth of it, each half as
    likely beforehand as the one before. The direction of the largest eigenvalue has s^2 = S^2/d for sure.
    """
    dim = len(moment)
    values, vectors = np.linalg.eigh(gram)
    seen = vectors.T @ moment
    logs, means = [], []
    for j in range(4):
        variance = norm_bound**2 / dim / 4.0**j
        log, coordinates = j * np.log(0.5), np.empty(dim)
        for i in range(dim):
            own = norm_bound**2 / dim if i == dim - 1 else variance
            coordinates[i] = own * seen[i] / (own * values[i] + noise**2)
            if i < dim - 1 and values[i] > 1e-9 * values[-1]:
                spread = values[i] * (values[i] * variance + noise**2)
                log -= 0.5 * (np.log(2.0 * np.pi * spread) + seen[i] ** 2 / spread)
        logs.append(log)
        means.append(coordinates)
    weights = np.exp(np.array(logs) - max(logs))
    return np.asarray(vectors @ (weights @ np.array(means)) / weights.sum())
