"""Speed of the recommended policy, above all in large pools; ratios side by side. Prints JSON lines.

    python benchmarks/pools.py [--quick]

Both policies play 70 rounds before the clock runs, so that the ledger has its 32 checkpoints. Rounds
are timed by the processor time of their thread, which a busy machine disturbs least; the matrix product,
which runs in the threads that BLAS likes, by the clock on the wall.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from online import Array, pools, seconds, side_by_side

import c4b

WARM = 70
GATE_OPEN = "gate open"
ALL_WORSE = "all candidates worse than the baseline"
NOTHING_ADMISSIBLE = "nothing admissible"


def play(gate: c4b.Policy, streams: list[Array], baseline: Array, theta: Array) -> None:
    for x in streams:
        decision = gate.decide(x, baseline)
        played = baseline if decision.action is None else x[decision.action]
        gate.observe(decision.id, float(played @ theta))


def warmed(name: str, case: str, dim: int, rng: np.random.Generator, theta: Array) -> c4b.Policy:
    """A policy after WARM rounds."""
    model = c4b.LinearModel(dim=dim, noise=0.3, norm_bound=1.5)
    if case == NOTHING_ADMISSIBLE:
        gate = c4b.Policy(name, model, alpha=1e-4)
    else:
        gate = c4b.Policy(name, model, reserve=10.0)
        history = np.c_[np.ones(4 * dim), rng.normal(size=(4 * dim, dim - 1))]
        gate.learn(history, history @ theta + 0.3 * rng.normal(size=4 * dim))
    play(gate, pools(rng, WARM, 100, dim), np.eye(dim)[0], theta)
    return gate


def against_refresh(
    rng: np.random.Generator, size: int, dim: int, case: str, quick: bool
) -> dict[str, Any]:
    streams, baseline = pools(rng, 100 if size < 100 else 10, size, dim), np.eye(dim)[0]
    theta = np.r_[0.8, np.zeros(dim - 1)]
    if case == ALL_WORSE:
        for x in streams:
            x[:, 0] = 0.5
    if case == GATE_OPEN:
        theta[1:] = rng.normal(size=dim - 1)
        theta[1:] *= 0.5 / np.linalg.norm(theta[1:])
    ours, theirs = (warmed(name, case, dim, rng, theta) for name in ("reserve-c4b+", "refresh"))
    found = side_by_side(
        lambda: play(ours, streams, baseline, theta),
        lambda: play(theirs, streams, baseline, theta),
        3 if quick else 11,
        time.thread_time,
    )
    previews = [ours.preview(x, baseline) for x in streams]
    per_round = 1e6 / len(streams)
    return {
        "what": f"round of reserve-c4b+ / refresh round, {case}",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] * per_round, 1),
        "reference_us": round(found["reference"] * per_round, 1),
        "margins_computed": statistics.mean(
            float(np.sum(~np.isnan(decision.computed[1]))) for decision in previews
        ),
        "baseline_played": statistics.mean(decision.is_baseline for decision in previews),
        "ratio": round(found["ratio"], 2),
    }


def bounded(rng: np.random.Generator, size: int, dim: int, reference: str, quick: bool) -> dict[str, Any]:
    """reserve-c4b+ with rewards in a declared range against a policy with a declared noise."""
    theta, baseline = np.r_[0.5, np.full(dim - 1, 0.02)], np.eye(dim)[0]
    streams, before = pools(rng, 100 if size < 100 else 10, size, dim), pools(rng, WARM, 100, dim)

    def rounds(gate: c4b.Policy, pools_: list[Array]) -> None:
        for x in pools_:
            decision = gate.decide(x, baseline)
            played = baseline if decision.action is None else x[decision.action]
            gate.observe(decision.id, min(max(float(played @ theta), 0.0), 1.0))

    ours = c4b.Policy("reserve-c4b+", c4b.LinearModel.bounded(dim, 1.5), reserve=10.0)
    model = c4b.LinearModel(dim=dim, noise=0.3, norm_bound=1.5)
    theirs = c4b.Policy(reference, model, reserve=10.0)
    history = np.c_[np.ones(4 * dim), rng.normal(size=(4 * dim, dim - 1))]
    for gate in (ours, theirs):
        gate.learn(history, np.clip(history @ theta, 0.0, 1.0))
        rounds(gate, before)
    found = side_by_side(
        lambda: rounds(ours, streams),
        lambda: rounds(theirs, streams),
        3 if quick else 11,
        time.thread_time,
    )
    per_round = 1e6 / len(streams)
    return {
        "what": f"round with the set {ours.model.confidence} / {reference} round",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] * per_round, 1),
        "reference_us": round(found["reference"] * per_round, 1),
        "baseline_played": statistics.mean(ours.preview(x, baseline).is_baseline for x in streams),
        "ratio": round(found["ratio"], 2),
    }


def rested(work: Callable[[], object]) -> float:
    """Seconds of ``work`` after a pause. For a tenth of a second after a product, a thread of BLAS looks
    for more to do, on a core that ``work`` would use."""
    time.sleep(0.2)
    return seconds(work)


def against_a_product(rng: np.random.Generator, size: int, dim: int, quick: bool) -> dict[str, Any]:
    (pool,), theta = pools(rng, 1, size, dim), np.r_[0.8, np.full(dim - 1, 0.06)]
    gate = warmed("reserve-c4b+", GATE_OPEN, dim, rng, theta)
    basis, baseline = np.linalg.qr(rng.normal(size=(dim, dim)))[0], np.eye(dim)[0]
    gate.decide(pool, baseline), pool @ basis
    pairs = [
        (rested(lambda: gate.decide(pool, baseline)), rested(lambda: pool @ basis))
        for _ in range(3 if quick else 21)
    ]
    return {
        "what": "decide of reserve-c4b+ / candidates @ Q alone",
        "K": size,
        "d": dim,
        "ours_us": round(statistics.median(ours for ours, _ in pairs) * 1e6, 1),
        "reference_us": round(statistics.median(theirs for _, theirs in pairs) * 1e6, 1),
        "ratio": round(statistics.median(ours / theirs for ours, theirs in pairs), 2),
    }


def steadiness(rng: np.random.Generator, rounds: int, size: int, dim: int) -> dict[str, Any]:
    """The same rounds from the same state three times: of each round the least time counts, which is what
    its work takes. What else the machine did in the meantime is in few rounds all three times."""
    baseline, theta = np.eye(dim)[0], np.r_[0.8, np.full(dim - 1, 0.03)]
    gate = warmed("reserve-c4b+", GATE_OPEN, dim, rng, theta)
    streams: list[Array] = pools(rng, 50, size, dim)
    repeated = []
    for _ in range(3):
        again = copy.deepcopy(gate)
        repeated.append(
            [
                seconds(
                    lambda x=streams[n % 50], gate=again: play(gate, [x], baseline, theta),
                    time.thread_time,
                )
                for n in range(rounds)
            ]
        )
    times = sorted(min(each) for each in zip(*repeated, strict=True))
    single = [max(each) / statistics.median(each) for each in repeated]
    median = statistics.median(times)
    return {
        "what": f"slowest round of reserve-c4b+ / median round, over {rounds} rounds",
        "K": size,
        "d": dim,
        "ours_us": round(median * 1e6, 1),
        "p99_over_median": round(times[int(0.99 * rounds)] / median, 2),
        "each_repetition_alone": [round(one, 2) for one in single],
        "ratio": round(times[-1] / median, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, a check that it runs")
    quick = parser.parse_args().quick
    rng, start = np.random.default_rng(0), time.perf_counter()
    for size, dim, case in (
        (32, 5, GATE_OPEN),
        (1000, 50, GATE_OPEN),
        (10_000, 64, GATE_OPEN),
        (1000, 50, ALL_WORSE),
        (1000, 50, NOTHING_ADMISSIBLE),
    ):
        print(json.dumps(against_refresh(rng, size, dim, case, quick)), flush=True)
    print(json.dumps(bounded(rng, 1000, 50, "refresh", quick)), flush=True)
    print(json.dumps(bounded(rng, 32, 5, "reserve-c4b+", quick)), flush=True)
    print(json.dumps(against_a_product(rng, 10_000 if quick else 100_000, 64, quick)), flush=True)
    print(json.dumps(steadiness(rng, 200 if quick else 2000, 10, 200)), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
