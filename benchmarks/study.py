"""Speed of the study engine against a plain NumPy loop, side by side in one run. Prints JSON lines.

python benchmarks/study.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from c4b.study.engine import run
from c4b.study.engine.chunk import simulate
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting


def numpy_linucb_episode(rng: np.random.Generator) -> float:
    """Seconds a round of a plain NumPy simulation of ungated LinUCB, draws made beforehand."""
    dim, size, rounds, sigma = 5, 32, 200, 0.3
    theta = np.array([1.0, 0.6, 0.0, 0.0, 0.0])
    pools = np.concatenate([np.ones((rounds, size, 1)), 0.15 * rng.normal(size=(rounds, size, 4))], 2)
    noise = sigma * rng.normal(size=(rounds, size))
    start = time.perf_counter()
    inverse, moment, log_det, reward = np.eye(dim) / 0.1, np.zeros(dim), 0.0, 0.0
    for t in range(rounds):
        x = pools[t]
        radius = sigma * math.sqrt(log_det + 2 * math.log(20)) + math.sqrt(0.1) * 1.5
        width = np.sqrt(np.einsum("kd,de,ke->k", x, inverse, x))
        best = int(np.argmax(x @ (inverse @ moment) + radius * width))
        chosen = x[best]
        mean = chosen @ theta
        reward += mean
        image = inverse @ chosen
        square = chosen @ image
        inverse -= np.outer(image, image) / (1.0 + square)
        log_det += math.log1p(square)
        moment += chosen * (mean + noise[t, best])
    return (time.perf_counter() - start) / rounds


def rounds_of(study: Study) -> int:
    return study.episodes * len(study.methods) * sum(s.rounds for s in study.settings)


def whole_study(study: Study) -> float:
    """Seconds of simulation only, all cores, warm cache."""
    with tempfile.TemporaryDirectory() as folder:
        return float(run.run(study, folder).run["seconds_simulating"])


def one_core(study: Study, episodes: int) -> float:
    """Processor seconds a round of one thread: a busy neighbour or a shared core matters less to it."""
    start = time.process_time()
    simulate(study, 0, episodes)
    return (time.process_time() - start) * study.episodes / episodes / rounds_of(study)


def flops_per_round(count: int = 32, dim: int = 5) -> float:
    """Floating-point operations of a refresh round by count of the formulas.

    Per candidate: x V^-1 x by its symmetric half, three inner products, three expanded norms with a
    square root (counted as one), comparisons; plus the rank-one update and the centre.
    """
    per_candidate = 1.5 * dim * (dim + 1) + 3 * 2 * dim + 3 * 8
    return count * per_candidate + 12 * dim * dim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer episodes, a check that it runs")
    quick = parser.parse_args().quick
    paper = files.load("paper").with_(episodes=16 if quick else 256)
    simulate(paper, 0, 1)  # compile
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(2 if quick else 5):
        reference = statistics.median(numpy_linucb_episode(rng) for _ in range(20))
        seconds = whole_study(paper)
        alone = one_core(paper, 4 if quick else 16)
        pairs.append((seconds, seconds / rounds_of(paper), reference, alone))
    ours = statistics.median(p[1] for p in pairs)
    peak = 2 * 8 * 3e9 * run.available_cores()  # two 256-bit multiply-adds a cycle at 3 GHz
    print(
        json.dumps(
            {
                "what": "NumPy LinUCB round on one core / simulated round, paper's mix, all cores",
                "reference_us": round(1e6 * statistics.median(p[2] for p in pairs), 2),
                "ours_us": round(1e6 * ours, 4),
                "times_faster": round(statistics.median(p[2] / p[1] for p in pairs), 1),
                "times_faster_one_core": round(statistics.median(p[2] / p[3] for p in pairs), 1),
                "cores": run.available_cores(),
                "limit": 60,
                "study_seconds": round(statistics.median(p[0] for p in pairs), 2),
                "episodes": paper.episodes,
                "share_of_float_peak": round(flops_per_round() / ours / peak, 3),
                "peak_estimate": "2 FMA units x 4 doubles x 2 flops x 3 GHz x cores",
            }
        ),
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [sys.executable, "-c", "from c4b.cli.main import main; main()", "reproduce"]
        arguments = ["--out", str(Path(folder) / "out"), "--episodes", str(paper.episodes)]
        subprocess.run([*command, *arguments], check=False, capture_output=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            json.dumps(
                {
                    "what": "c4b reproduce, whole command, warm cache",
                    "seconds": round(time.perf_counter() - start, 1),
                    "peak_memory_mb": round(usage.ru_maxrss / 1024, 1),
                }
            ),
            flush=True,
        )
    one = Study("one", "one", (Method("refresh", "refresh"),), (Setting(),), (), 2, 0)
    sizes = (500, 2000) if quick else (5_000, 50_000)
    memory = []
    for episodes in sizes:
        whole_study(one.with_(episodes=episodes))
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(
        json.dumps(
            {
                "what": "peak memory of one setting and method, MB, after more and more episodes",
                **{f"episodes_{n}": round(mb, 1) for n, mb in zip(sizes, memory, strict=True)},
            }
        )
    )


if __name__ == "__main__":
    main()
