"""Speed of the online policy, as ratios measured side by side in one run. Prints JSON lines.

    python benchmarks/online.py [--quick]

Absolute times mean little on a shared machine; each ratio is the median over repetitions in which both
sides are timed alternately. BLAS keeps its default threads: the matrix product is timed as NumPy runs it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import c4b

Array = NDArray[np.float64]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def side_by_side(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    repetitions: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of both, and the median of the paired ratios."""
    ours(), theirs()
    pairs = [(seconds(ours, clock), seconds(theirs, clock)) for _ in range(repetitions)]
    return {
        "ours": statistics.median(a for a, _ in pairs),
        "reference": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(a / b for a, b in pairs),
    }


def pools(rng: np.random.Generator, rounds: int, size: int, dim: int) -> list[Array]:
    return [np.c_[np.ones(size), 0.15 * rng.normal(size=(size, dim - 1))] for _ in range(rounds)]


def policy(
    dim: int, rng: np.random.Generator, name: str = "refresh", confidence: str | None = None
) -> c4b.Policy:
    model = c4b.LinearModel(dim=dim, noise=0.3, norm_bound=1.5, confidence=confidence)
    gate = c4b.Policy(name, model, reserve=1.0)
    history = np.c_[np.ones(4 * dim), rng.normal(size=(4 * dim, dim - 1))]
    gate.learn(history, history[:, 0] + 0.3 * rng.normal(size=4 * dim))
    return gate


def numpy_linucb(streams: list[Array], dim: int) -> None:
    """A plain ungated LinUCB round: one einsum, one argmax, one Sherman-Morrison update."""
    inverse, moment, radius = np.eye(dim) / 0.1, np.zeros(dim), 1.5
    for x in streams:
        width = np.sqrt(np.einsum("kd,de,ke->k", x, inverse, x))
        best = int(np.argmax(x @ (inverse @ moment) + radius * width))
        chosen = x[best]
        image = inverse @ chosen
        inverse -= np.outer(image, image) / (1.0 + chosen @ image)
        moment += chosen * 0.5


def gated_rounds(gate: c4b.Policy, streams: list[Array], baseline: Array) -> None:
    for x in streams:
        gate.observe(gate.decide(x, baseline).id, 0.5)


def small(rng: np.random.Generator, quick: bool) -> dict[str, object]:
    dim, size = 5, 32
    streams = pools(rng, 200 if quick else 1000, size, dim)
    gate, baseline = policy(dim, rng), np.eye(dim)[0]
    found = side_by_side(
        lambda: gated_rounds(gate, streams, baseline),
        lambda: numpy_linucb(streams, dim),
        5 if quick else 21,
    )
    per_round = {key: found[key] / len(streams) * 1e6 for key in ("ours", "reference")}
    return {
        "what": "decide + observe (refresh) / plain NumPy ungated LinUCB round",
        "K": size,
        "d": dim,
        "ours_us": round(per_round["ours"], 2),
        "reference_us": round(per_round["reference"], 2),
        "ratio": round(found["ratio"], 3),
        "limit": 1.0,
    }


def large(rng: np.random.Generator, size: int, dim: int, quick: bool) -> dict[str, object]:
    streams = pools(rng, 3, size, dim)
    gate, baseline = policy(dim, rng), np.eye(dim)[0]
    inverse = np.linalg.inv(np.eye(dim) + streams[0].T @ streams[0])
    found = side_by_side(
        lambda: gated_rounds(gate, streams, baseline),
        lambda: [x @ inverse for x in streams],
        5 if quick else 41,
    )
    return {
        "what": "decide + observe (refresh) / candidates @ V^-1 alone",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] / 3 * 1e6, 1),
        "reference_us": round(found["reference"] / 3 * 1e6, 1),
        "ratio": round(found["ratio"], 3),
        "limit": 2.5,
    }


def tighter(
    rng: np.random.Generator, name: str, confidence: str | None, size: int, dim: int, quick: bool
) -> dict[str, object]:
    """A round with a tighter set or ledger against the paper's refresh round."""
    streams = pools(rng, 200 if size < 100 else 3, size, dim)
    ours, theirs = policy(dim, rng, name, confidence), policy(dim, rng)
    baseline = np.eye(dim)[0]
    found = side_by_side(
        lambda: gated_rounds(ours, streams, baseline),
        lambda: gated_rounds(theirs, streams, baseline),
        5 if quick else 21,
    )
    return {
        "what": f"round of {name} with the {ours.model.confidence} set / paper's refresh round",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] / len(streams) * 1e6, 1),
        "reference_us": round(found["reference"] / len(streams) * 1e6, 1),
        "ratio": round(found["ratio"], 2),
        **({"limit": 6.0} if name == "refresh" and dim == 5 else {}),
    }


def clicks(rng: np.random.Generator, quick: bool) -> dict[str, object]:
    """A round of `clicks` with `bounded-3` against one of `reserve-c4b+` with its own set."""
    dim, size, baseline = 5, 32, np.eye(5)[0]
    streams = pools(rng, 200, size, dim)
    models = c4b.LinearModel.bounded(dim, 1.0), c4b.LinearModel(dim, 0.5, 1.0)
    gates = [
        c4b.Policy(name, model) for name, model in zip(("clicks", "reserve-c4b+"), models, strict=True)
    ]
    for gate in gates:
        gate.learn(np.tile(baseline, (200, 1)), rng.random(200) < 0.1)
    found = side_by_side(
        lambda: gated_rounds(gates[0], streams, baseline),
        lambda: gated_rounds(gates[1], streams, baseline),
        5 if quick else 21,
    )
    return {
        "what": "round of clicks with the bounded-3 set / round of reserve-c4b+",
        "K": size,
        "d": dim,
        "ours_us": round(found["ours"] / len(streams) * 1e6, 1),
        "reference_us": round(found["reference"] / len(streams) * 1e6, 1),
        "ratio": round(found["ratio"], 2),
        "limit": 2.0,
    }


def flat_cost(rng: np.random.Generator, quick: bool) -> dict[str, object]:
    """Time of late rounds against early rounds, and memory over the rounds between."""
    total = 20_000 if quick else 1_000_000
    streams, baseline = pools(rng, 1000, 8, 5), np.eye(5)[0]
    gate = policy(5, rng)
    gated_rounds(gate, streams, baseline)
    early = statistics.median(seconds(lambda: gated_rounds(gate, streams, baseline)) for _ in range(5))
    tracemalloc.start()
    gated_rounds(gate, streams, baseline)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    for _ in range(total // len(streams)):
        gated_rounds(gate, streams, baseline)
    late = statistics.median(seconds(lambda: gated_rounds(gate, streams, baseline)) for _ in range(5))
    tracemalloc.start()
    gated_rounds(gate, streams, baseline)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {
        "what": f"a round after {total:,} rounds / a round at the start",
        "K": 8,
        "d": 5,
        "ratio": round(late / early, 3),
        "state_floats": len(gate.evidence.flat) + len(gate.gate.ledger),
        "traced_bytes_at_start": before,
        "traced_bytes_at_end": after,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, a check that it runs")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    print(json.dumps(small(rng, quick)), flush=True)
    print(json.dumps(large(rng, 1000, 50, quick)), flush=True)
    print(json.dumps(large(rng, 10_000, 64, quick)), flush=True)
    for name, confidence, size, dim in (
        ("refresh", "mixture", 32, 5),
        ("refresh", "constrained", 32, 5),
        ("refresh", "unbiased", 32, 5),
        ("reserve-c4b+", None, 32, 5),
        ("refresh", "constrained", 1000, 50),
        ("refresh", "unbiased", 1000, 50),
        ("reserve-c4b+", None, 1000, 50),
    ):
        print(json.dumps(tighter(rng, name, confidence, size, dim, quick)), flush=True)
    print(json.dumps(clicks(rng, quick)), flush=True)
    print(json.dumps(flat_cost(rng, quick)), flush=True)


if __name__ == "__main__":
    main()
