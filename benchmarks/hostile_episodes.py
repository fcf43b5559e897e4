"""Gated episodes against an adversary who knows theta and sees the estimate. Prints JSON lines.

    python benchmarks/hostile_episodes.py [--episodes 1000000] [--jobs N] [--seed N]

Each episode draws theta, a history and the kind of its noise. In every round the adversary offers
candidates along the current error of the estimate, nearly collinear ones and random ones, and a baseline
that changes. Every noise is sub-Gaussian of the declared scale given the past: signs; normal noise whose
scale depends on features; two points whose skewness follows the current error; signs that stop once the
error is large, so that a lucky deviation is kept. A *miss* is an episode in which theta left the set. A
violation of the constraint may occur in a miss only: ``on_covered`` must be 0, and the smallest D - B
over covered paths must not be negative beyond rounding. Progress goes to standard error.
"""

# ruff: noqa: NPY002 (one seed an episode, set in compiled code)

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np

from c4b._compilation.jit import allocating
from c4b.evidence.absorption import absorb, empty
from c4b.evidence.bounds import contains
from c4b.evidence.ellipsoids import Region, opened
from c4b.evidence.model import LinearModel
from c4b.ledger.books import opening
from c4b.policies import get
from c4b.policies.catalogue.choice_rule import rule_numbers
from c4b.policies.compiled.compiled_round import decide
from c4b.policies.compiled.round_space import space_size
from c4b.policies.rounds.candidate_fields import ROWS
from c4b.study.results.intervals import binomial_upper

Array = np.ndarray[Any, np.dtype[np.float64]]
NOISES = ("signs", "heteroscedastic", "skewed by the error", "signs that stop")
ROUNDING = 1e-9
CHUNK = 250
LEVEL = 0.99
"""One-sided level of the binomial bounds."""


class World(NamedTuple):
    dim: int
    count: int
    rounds: int
    sigma: float
    alpha: float
    reserve: float
    delta: float = 0.05
    norm_bound: float = 1.0


WORLDS = (
    World(2, 4, 60, 0.1, 0.1, 0.0),
    World(2, 4, 60, 0.5, 0.2, 0.5),
    World(3, 6, 120, 0.1, 0.05, 0.2),
    World(5, 8, 60, 0.3, 0.2, 1.0),
)


@numba.njit(nogil=True)
def _noise(kind: int, sigma: float, x: Array, error: float, stopped: bool) -> float:
    if kind == 0 or (kind == 3 and not stopped):
        return sigma if np.random.random() < 0.5 else -sigma
    if kind == 1:
        share = abs(x[0]) / (np.sqrt(np.dot(x, x)) + 1e-12)
        return sigma * (0.1 + 0.9 * share) * np.random.normal()
    if kind == 2:
        p = 0.85 if error > 0.0 else 0.15
        return 2.0 * sigma * (1.0 - p) if np.random.random() < p else -2.0 * sigma * p
    return 0.0


@numba.njit(nogil=True)
def _unit(dim: int) -> Array:
    v = np.random.normal(0.0, 1.0, dim)
    return v / (np.sqrt(np.dot(v, v)) + 1e-12)


@numba.njit(nogil=True)
def _centre(region: Region) -> Array:
    """theta_hat in the coordinates of the features, as ``c4b.evidence.eigenbasis.spectral.theta_hat``."""
    if not region.spectral:
        return region.estimate[0].copy()
    return np.dot(region.basis.T.copy(), region.estimate[0].copy())


@allocating
def play(
    first: int, stop: int, seed: int, evidence: Array, ledger: Array, rule: Array, space: Array,
    size: int, rounds: int, sigma: float, alpha: float, reserve: float, norm_bound: float, out: Array,
) -> None:  # fmt: skip
    """Episodes first..stop-1; out[i]: kind, covered, violated, least D - B, share of plays."""
    for episode in range(first, stop):
        np.random.seed((seed * 1_000_003 + episode) % 2**32)
        flat, books = evidence.copy(), ledger.copy()
        region, data, _ = opened(flat)
        dim = region.estimate.shape[1]
        theta = _unit(dim) * norm_bound * (1.0 if np.random.random() < 0.5 else np.random.random())
        kind = episode % 4
        for _n in range(np.random.randint(0, 12)):
            x = _unit(dim)
            error = np.dot(x, _centre(region) - theta)
            absorb(flat, x, np.dot(x, theta) + _noise(kind, sigma, x, error, False))
        credit, least, slack, covered, played = reserve, np.inf, np.inf, True, 0
        pool, details = np.empty((size, dim)), np.empty((ROWS, size))
        for _t in range(rounds):
            inside = contains(region, data, theta)
            covered = covered and inside
            wrong = _centre(region) - theta
            length = np.sqrt(np.dot(wrong, wrong)) + 1e-12
            stopped = length > 2.0 * sigma
            baseline = _unit(dim) * (0.2 + np.random.random())
            if np.dot(baseline, theta) < 0.0:
                baseline = -baseline
            for k in range(size):
                style = k % 3
                if style == 0:  # the estimate promises most where it is most wrong
                    scale = 0.05 + np.random.random()
                    pool[k] = (1.0 - alpha) * baseline + scale * wrong / length
                elif style == 1:
                    pool[k] = baseline * (0.9 + 0.2 * np.random.random()) + 0.05 * _unit(dim)
                else:
                    pool[k] = _unit(dim) * (0.2 + np.random.random())
            action, _c, margin, _b, _u, _r, _was, _all, _alarm = decide(
                flat, books, rule, np.empty(0), pool, baseline, np.nan, True, 0, 0, details, space
            )
            executed = baseline if action < 0 else pool[action]
            played += action >= 0
            mean = np.dot(executed, theta)
            credit += mean - (1.0 - alpha) * np.dot(baseline, theta)
            least, slack = min(least, credit), min(slack, credit - margin)
            absorb(flat, executed, mean + _noise(kind, sigma, executed, np.dot(executed, wrong), stopped))
        row = out[episode - first]
        row[0], row[1], row[2], row[3], row[4] = kind, covered, least < -ROUNDING, slack, played / rounds


def run_chunk(world: World, seed: int, first: int, stop: int) -> Array:
    composition = get("reserve-c4b+")
    model = LinearModel(
        dim=world.dim, noise=world.sigma, norm_bound=world.norm_bound, delta=world.delta,
        confidence=composition.confidence,
    )  # fmt: skip
    ledger = opening(composition.account(world.alpha, world.reserve), world.dim, composition.checkpoints)
    out = np.empty((stop - first, 5))
    rule, evidence = rule_numbers(composition.rule(world.dim, world.sigma)), empty(model)
    space = np.empty(space_size(evidence, ledger, world.count))
    play(
        first, stop, seed, evidence, ledger, rule, space, world.count, world.rounds, world.sigma,
        world.alpha, world.reserve, world.norm_bound, out,
    )  # fmt: skip
    return out


def hostile(episodes: int, seed: int, jobs: int) -> Iterator[dict[str, Any]]:
    """One row for each world, then one for each kind of noise and one for all."""
    each = -(-episodes // len(WORLDS))
    done, started, everything = 0, time.perf_counter(), []
    with ThreadPoolExecutor(jobs) as pool:
        for number, world in enumerate(WORLDS):
            starts = range(0, each, CHUNK)
            chunks = pool.map(
                lambda at, w=world, n=number: run_chunk(w, seed + n, at, min(at + CHUNK, each)), starts
            )
            found = []
            for chunk in chunks:
                found.append(chunk)
                done += len(chunk)
                rate = done / (time.perf_counter() - started)
                print(
                    f"\r{done:,} of {each * len(WORLDS):,} episodes, {rate:,.0f} a second, "
                    f"{int(sum(_on_covered(c).sum() for c in found))} violations on covered paths here",
                    end="", file=sys.stderr, flush=True,
                )  # fmt: skip
            everything.append(np.concatenate(found))
            yield {**world._asdict(), **_counted(everything[-1], world.delta)}
    print(file=sys.stderr)
    together = np.concatenate(everything)
    for kind, name in enumerate(NOISES):
        yield {"noise": name, **_counted(together[together[:, 0] == kind], WORLDS[0].delta)}
    yield {"noise": "all", **_counted(together, WORLDS[0].delta)}


def _on_covered(rows: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    violated: np.ndarray[Any, np.dtype[np.bool_]] = (rows[:, 1] != 0.0) & (rows[:, 2] != 0.0)
    return violated


def _counted(rows: Array, delta: float) -> dict[str, Any]:
    covered = rows[:, 1] != 0.0
    misses = int((~covered).sum())
    return {
        "episodes": len(rows),
        "misses": misses,
        "miss_rate": misses / len(rows),
        "miss_bound_99": binomial_upper(misses, len(rows), LEVEL),
        "delta": delta,
        "violations": int(rows[:, 2].sum()),
        "on_covered": int(_on_covered(rows).sum()),
        "min_slack": float(rows[covered, 3].min()),
        "candidates_played": float(rows[:, 4].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1_000_000, help="in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=9_100_000)
    arguments = parser.parse_args()
    started = time.perf_counter()
    for row in hostile(arguments.episodes, arguments.seed, arguments.jobs):
        print(json.dumps(row), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - started, 1), "jobs": arguments.jobs}))


if __name__ == "__main__":
    main()
