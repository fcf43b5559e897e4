"""Speed of the recommended policy, above all in large pools; ratios side by side. Prints JSON lines.

    python benchmarks/pools.py [--quick]

Both policies play 70 rounds before the clock runs, so that the ledger has its 32 checkpoints. BLAS keeps
its default threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np
from online import Array, gated_rounds, policy, pools, seconds, side_by_side

import c4b

WARM = 70


def warmed(name: str, size: int, dim: int, rng: np.random.Generator, poor: bool = False) -> c4b.Policy:
    """A policy after WARM rounds; ``poor``: without history and reserve, nothing is admissible."""
    if poor:
        model = c4b.LinearModel(dim=dim, noise=0.3, norm_bound=1.5)
        gate = c4b.Policy(name, model, alpha=1e-4)
    else:
        gate = policy(dim, rng, name)
    gated_rounds(gate, pools(rng, WARM, min(size, 100), dim), np.eye(dim)[0])
    return gate


def against_refresh(
    rng: np.random.Generator, size: int, dim: int, quick: bool, poor: bool = False
) -> dict[str, Any]:
    streams = pools(rng, 200 if size < 100 else 10 if size < 5000 else 3, size, dim)
    ours, theirs = warmed("reserve-c4b+", size, dim, rng, poor), warmed("refresh", size, dim, rng, poor)
    baseline = np.eye(dim)[0]
    previews = [ours.preview(x, baseline) for x in streams]
    assert not poor or all(decision.is_baseline for decision in previews)
    found = side_by_side(
        lambda: gated_rounds(ours, streams, baseline),
        lambda: gated_rounds(theirs, streams, baseline),
        3 if quick else 21,
    )
    per_round = 1e6 / len(streams)
    return {
        "what": "round of reserve-c4b+ / refresh round" + (", nothing admissible" if poor else ""),
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] * per_round, 1),
        "reference_us": round(found["reference"] * per_round, 1),
        "margins_computed": statistics.mean(
            float(np.sum(~np.isnan(decision.computed[1]))) for decision in previews
        ),
        "ratio": round(found["ratio"], 2),
    }


def against_a_product(rng: np.random.Generator, size: int, dim: int, quick: bool) -> dict[str, Any]:
    (pool,), gate = pools(rng, 1, size, dim), warmed("reserve-c4b+", size, dim, rng)
    basis, baseline = np.linalg.qr(rng.normal(size=(dim, dim)))[0], np.eye(dim)[0]
    found = side_by_side(lambda: gate.decide(pool, baseline), lambda: pool @ basis, 3 if quick else 21)
    return {
        "what": "decide of reserve-c4b+ / candidates @ Q alone",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] * 1e6, 1),
        "reference_us": round(found["reference"] * 1e6, 1),
        "ratio": round(found["ratio"], 2),
    }


def steadiness(rng: np.random.Generator, rounds: int, size: int, dim: int) -> dict[str, Any]:
    gate, baseline = warmed("reserve-c4b+", size, dim, rng), np.eye(dim)[0]
    streams: list[Array] = pools(rng, 50, size, dim)
    times = sorted(
        seconds(lambda x=streams[n % 50]: gated_rounds(gate, [x], baseline)) for n in range(rounds)
    )
    median = statistics.median(times)
    return {
        "what": f"slowest round of reserve-c4b+ / median round, over {rounds} rounds",
        "K": size,
        "d": dim,
        "ours_us": round(median * 1e6, 1),
        "p99_over_median": round(times[int(0.99 * rounds)] / median, 2),
        "ratio": round(times[-1] / median, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, a check that it runs")
    quick = parser.parse_args().quick
    rng, start = np.random.default_rng(0), time.perf_counter()
    for size, dim, poor in ((32, 5, False), (1000, 50, False), (10_000, 64, False), (1000, 50, True)):
        print(json.dumps(against_refresh(rng, size, dim, quick, poor)), flush=True)
    print(json.dumps(against_a_product(rng, 10_000 if quick else 100_000, 64, quick)), flush=True)
    print(json.dumps(steadiness(rng, 200 if quick else 2000, 10, 200)), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
