"""What is expected of theta under a prior whose variance is not known, straight from the definition."""

from __future__ import annotations

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def expected_theta(
    gram: Array,
    moment: Array,
    pool: Array,
    baseline: Array,
    noise: float,
    norm_bound: float,
    level: bool = True,
) -> Array:
    """theta (d,) as it is expected from A = ``gram`` and m = ``moment``, where this pool (K, d), K at
    most 64, and this baseline are offered.

    In one direction theta is N(0, S^2/d): that of the point of least norm between the baseline and the
    mean of the pool, or, not ``level``, that of the sum of them all. Across it N(0, s^2 I), s^2 one of
    S^2/d, a quarter, a sixteenth and a sixty-fourth of it, each half as likely beforehand as the one
    before. Given A, m is N(0, A C A + sigma^2 A) if the prior's covariance is C. Where A is singular, m
    lies in its range. Where that point is 0, there is no such direction.
    """
    dim, common = len(moment), baseline + pool.sum(axis=0)
    if level:
        shares = np.linspace(0.0, 1.0, 3)
        mean = pool.mean(axis=0) if len(pool) else baseline
        # the square of a norm on a line is a parabola: three points say where it is least
        squares = [float(np.sum((baseline + share * (mean - baseline)) ** 2)) for share in shares]
        bend = squares[0] - 2.0 * squares[1] + squares[2]
        least = 0.5 - 0.25 * (squares[2] - squares[0]) / bend if bend > 0.0 else 0.0
        common = baseline + min(max(least, 0.0), 1.0) * (mean - baseline)
    length = np.linalg.norm(common)
    unit = common / length if length > 1e-6 * np.abs(baseline).sum() else np.zeros(dim)
    values, vectors = np.linalg.eigh(gram)
    seen = vectors[:, values > 1e-9 * values[-1]]
    logs, means = [], []
    for j in range(4):
        variance = norm_bound**2 / dim
        prior = variance * np.outer(unit, unit)
        prior += variance / 4.0**j * (np.eye(dim) - np.outer(unit, unit))
        spread = seen.T @ (gram @ prior @ gram + noise**2 * gram) @ seen
        _, volume = np.linalg.slogdet(2.0 * np.pi * spread)
        value = seen.T @ moment
        logs.append(j * np.log(0.5) - 0.5 * (volume + value @ np.linalg.solve(spread, value)))
        precision = np.linalg.inv(prior) + gram / noise**2
        means.append(np.linalg.solve(precision, moment / noise**2))
    weights = np.exp(np.array(logs) - max(logs))
    return np.asarray(weights @ np.array(means) / weights.sum())
