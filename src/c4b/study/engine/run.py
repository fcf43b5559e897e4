"""Runs a study: chunks of episodes on all cores or on a cluster, saved as they finish."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from c4b import _validate
from c4b._compilation import jit
from c4b.study.engine.chunk import Chunk, simulate
from c4b.study.engine.prepared_setting import prepare
from c4b.study.results import results
from c4b.study.results.results_folder import ResultsFolder
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting

EPISODE_RUNS = 4096
"""Episodes x settings x methods in a chunk, about a third of a second of work."""
PYTHON_RUNS = 64
"""Compiled episodes that take about as long as one in plain Python."""

Progress = Callable[[int, int], None]
"""Called with (episodes done, episodes in all)."""


def run(
    study: Study,
    out: str | Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    chunk: int | None = None,
    progress: Progress = lambda done, total: None,
    command: str = "",
) -> results.Results:
    """Simulate the episodes that are missing in ``out``, and write the three result files there.

    Parameters
    ----------
    jobs: number of threads; by default one for each core.
    cluster: address of a Dask scheduler; without it, the study runs on this machine.
    chunk: number of episodes that are simulated and saved together.
    progress: called with (episodes done, episodes in all).
    command: text that is stored with the results.
    """
    workers = threads(jobs)
    size = _chunk_size(study) if chunk is None else _validate.count("chunk", chunk, 1, "at least 1")
    folder = ResultsFolder(study, Path(out))
    with folder.locked():
        started, resumed = time.perf_counter(), folder.episodes_done
        progress(resumed, study.episodes)
        with _executor(study, workers, cluster) as executor:
            _run_missing(executor, study, folder, size, 2 * workers if cluster is None else 64, progress)
        folder.finish(
            {
                "command": command,
                "seconds_simulating": round(time.perf_counter() - started, 3),
                "episodes_resumed": resumed,
                "workers": cluster or workers,
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
                "versions": {name: metadata.version(name) for name in _PACKAGES},
            }
        )
    return results.read(out)


def threads(jobs: int | None) -> int:
    """Return ``jobs``, or the number of cores if it is None. Raises ``InvalidInput`` for less than 1."""
    return available_cores() if jobs is None else _validate.count("jobs", jobs, 1, "at least 1")


def must_compile(study: Study) -> bool:
    """Whether the first episode has to wait for the compiler. Later processes use the cache on disk."""
    prepared = (prepare(setting, study.methods).compiled for setting in study.settings)
    return not all(jit.is_compiled(compiled.run) for compiled in prepared if compiled is not None)


def warm_up() -> None:
    """Compile what studies need and is not cached yet, by a short study of each kind of kernel."""
    usual = Setting(rounds=2)
    methods = (Method("refresh", "refresh"),)
    settings = (replace(usual, count=usual.count + 1), usual)
    simulate(Study("warm-up", "", methods, settings, (), episodes=2, seed=0), 0, 1)


_PACKAGES = ("reserve-c4b", "numpy", "scipy", "numba", "polars")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chunk_size(study: Study) -> int:
    python = sum(len(prepare(setting, study.methods).python) for setting in study.settings)
    runs = len(study.settings) * len(study.methods) + (PYTHON_RUNS - 1) * python
    return max(1, min(4096, EPISODE_RUNS // runs))


def _executor(study: Study, workers: int, cluster: str | None) -> Executor:
    """Threads of this process (kernels release the GIL), or a Dask cluster."""
    if cluster is None:
        return ThreadPoolExecutor(workers)
    from c4b.study.engine.cluster import connect  # noqa: PLC0415 (an optional extra)

    return connect(cluster, study)


def _run_missing(
    executor: Executor, study: Study, folder: ResultsFolder, size: int, ahead: int, progress: Progress
) -> None:
    """Run what is missing. At most ``ahead`` chunks are submitted at a time: memory stays bounded."""
    spans = iter(folder.missing(size))
    running: set[Future[Chunk]] = set()
    try:
        while True:
            for start, stop in spans:
                running.add(executor.submit(simulate, study, start, stop))
                if len(running) >= ahead:
                    break
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                folder.add(future.result())
            progress(folder.episodes_done, study.episodes)
    except BaseException:
        for future in running:
            future.cancel()
        raise
