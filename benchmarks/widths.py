"""Widths of intervals against the exact ones, over six decades of lambda, sigma and S; prints JSON.

    python benchmarks/widths.py [--set unbiased] [--configurations 400] [--seed 0]

``exact``: width from ``Evidence.lower`` to ``upper`` over the exact width of the same event, 1 at best.
``stack``: the same for the set's list of ellipsoids alone, which policies use. The exact interval comes
from an interior-point method that follows the definition (tests/support/exact_interval.py), in float64
without any allowance for rounding. ``unbiased``: over the exact width of the set ``unbiased``.
Intervals that the norm ball bounds alone count in ``intervals`` only. ``typical``: median of ``unbiased``
for lambda = 1, S = 1.5, sigma from .1 to 1, features of norm 1. ``skewed`` features span two decades,
their eigenvalues four.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import c4b
from c4b.evidence import bounds
from support.exact_interval import ExactInterval
from support.oracle_sets import Array, EmptySet
from support.oracle_several_ridges import OracleSeveralRidges

DELTA = 0.05
SPECTRA = ("gaussian", "baseline only", "few directions", "skewed")
WORK = 4_000_000
"""Rows times squared features at most."""


class World(NamedTuple):
    """A model without its set, the rows and rewards that it learns, which kind of rows they are."""

    ridge: float
    noise: float
    bound: float
    features: Array
    rewards: Array
    spectrum: str


def drawn(rng: np.random.Generator) -> World:
    """lambda, sigma and S from 1e-3 to 1e3 each, 1 to 50 features, up to 1e5 rows."""
    ridge, noise, bound = (float(x) for x in 10.0 ** rng.uniform(-3.0, 3.0, size=3))
    dim = int(rng.choice([1, 2, 3, 5, 10, 20, 50]))
    rows = min(int(rng.choice([0, 1, 5, 20, 100, 1000, 10_000, 100_000])), WORK // dim**2)
    spectrum = str(rng.choice(SPECTRA))
    x = rng.normal(size=(rows, dim)) / np.sqrt(dim)
    if spectrum == "baseline only":
        x[:, 1:] = 0.0
        x[:, 0] = 1.0
        x[: rows // 10] += rng.choice([0.0, 0.1]) * rng.normal(size=(rows // 10, dim))
    elif spectrum == "few directions":
        x[:, rng.random(dim) < 0.5] = 0.0
    elif spectrum == "skewed":
        x *= 10.0 ** -rng.uniform(0.0, 2.0, size=dim)
    x *= 1.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-2.0, 2.0)
    share = float(rng.choice([0.3, 0.7, 0.95]))
    return explained(rng, ridge, noise, bound, x, share, spectrum)


def explained(
    rng: np.random.Generator,
    ridge: float,
    noise: float,
    bound: float,
    x: Array,
    share: float,
    spectrum: str,
) -> World:
    """The world of these features with a theta of norm ``share`` S and Gaussian noise."""
    theta = rng.normal(size=x.shape[1])
    theta *= share * bound / np.linalg.norm(theta)
    return World(ridge, noise, bound, x, x @ theta + noise * rng.normal(size=len(x)), spectrum)


def directions(rng: np.random.Generator, x: Array) -> Array:
    """At random, known best and least, and what is known best with a little of everything."""
    dim = x.shape[1]
    basis = np.linalg.eigh(x.T @ x)[1].T
    mixed = [basis[-1] + 10.0 ** rng.uniform(-3.0, 0.0) * rng.normal(size=dim) for _ in range(2)]
    return np.array([rng.normal(size=dim), rng.normal(size=dim), basis[0], basis[-1], *mixed])


def exact(world: World, confidence: str) -> ExactInterval:
    """The event of the set, within the ball."""
    given = (world.features, world.rewards, world.bound, world.noise, DELTA)
    if confidence == "constrained":
        return ExactInterval.constrained(*given, world.ridge)
    if confidence == "unbiased":
        return ExactInterval.several_ridges(*given, np.array([3.0 * world.ridge]), np.ones(1))
    fixed = OracleSeveralRidges(world.features.shape[1], world.noise, world.bound, world.ridge, DELTA)
    return ExactInterval.several_ridges(*given, fixed.ridges, fixed.weights)


def compared(world: World, confidence: str, vectors: Array, thorough: bool) -> dict[str, Array] | None:
    """Certified width over reference widths; None where a set is empty."""
    model = c4b.LinearModel(
        world.features.shape[1], world.noise, world.bound, world.ridge, DELTA, confidence
    )
    evidence = c4b.Evidence(model)
    evidence.learn(world.features, world.rewards)
    try:
        unbiased = exact(world, "unbiased")
        own = exact(world, confidence) if thorough else unbiased
    except EmptySet:
        return None
    if evidence.alarm:
        return None
    width = np.array([evidence.upper(v) - evidence.lower(v) for v in vectors])
    stack = np.array(
        [bounds.upper(evidence.region, v) - bounds.lower(evidence.region, v) for v in vectors]
    )
    found = {"unbiased": width / np.array([unbiased.width(v) for v in vectors])}
    if thorough:
        wide = np.array([own.width(v) for v in vectors])
        found |= {"exact": width / wide, "stack": stack / wide, "wide": wide}
    return found


def summary(ratios: list[float]) -> dict[str, float]:
    values = np.array(ratios)
    shares = {"median": 0.5, "p95": 0.95, "p99": 0.99, "worst": 1.0}
    return {name: round(float(np.quantile(values, q)), 5) for name, q in shares.items()}


def six_decades(confidence: str, configurations: int, seed: int) -> dict[str, Any]:
    ratios: dict[str, list[float]] = defaultdict(list)
    by_spectrum: dict[str, list[float]] = defaultdict(list)
    intervals = empty = 0
    for k in range(configurations):
        rng = np.random.default_rng([seed, k, 61])
        world = drawn(rng)
        vectors = directions(rng, world.features)
        found = compared(world, confidence, vectors, thorough=True)
        if found is None:
            empty += 1
            continue
        wide = found.pop("wide")
        intervals += len(vectors)
        informed = wide < 2.0 * world.bound * np.linalg.norm(vectors, axis=1) * (1.0 - 1e-6)
        for name, values in found.items():
            ratios[name] += values[informed].tolist()
        by_spectrum[world.spectrum] += found["exact"][informed].tolist()
    report: dict[str, Any] = {"intervals": intervals, "empty": empty, "informed": len(ratios["exact"])}
    report |= {name: summary(values) for name, values in ratios.items()}
    report["exact_by_features"] = {
        name: summary(by_spectrum[name]) for name in SPECTRA if by_spectrum[name]
    }
    return report


def typical(confidence: str, seed: int) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for dim in (1, 5, 20):
        row = {}
        for rows in (20, 100, 1000, 5000):
            ratios: list[float] = []
            for k in range(20):
                rng = np.random.default_rng([seed, dim, rows, k])
                x = rng.normal(size=(rows, dim))
                x /= np.linalg.norm(x, axis=1, keepdims=True)
                world = explained(
                    rng, 1.0, float(10.0 ** rng.uniform(-1.0, 0.0)), 1.5, x, 0.6, "gaussian"
                )
                found = compared(world, confidence, rng.normal(size=(4, dim)), thorough=False)
                if found is not None:
                    ratios += found["unbiased"].tolist()
            row[f"n={rows}"] = round(float(np.median(ratios)), 4)
        table[f"d={dim}"] = row
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--set", default="unbiased", choices=["constrained", "unbiased", "several-ridges"]
    )
    parser.add_argument("--configurations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    report = {
        "set": given.set,
        "configurations": given.configurations,
        "seed": given.seed,
        **six_decades(given.set, given.configurations, given.seed),
        "typical": typical(given.set, given.seed),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
