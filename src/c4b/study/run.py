"""Running a study: chunks of episodes on all cores or on a cluster, kept as they finish.

Finished chunks stay in ``chunks/`` until the study is complete, so an interrupted or killed run goes
on where it stopped. Chunks carry an identity of everything but the number of episodes; chunks of
another study are never mixed in.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from importlib import metadata
from pathlib import Path

import numpy as np
import polars as pl

from c4b import _validate
from c4b.study import results
from c4b.study.plan import Study
from c4b.study.simulate import Chunk, simulate

EPISODE_RUNS = 4096
"""Episodes x settings x methods in a chunk, about a third of a second of work."""

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
    """Simulate what is missing and write the three result files into ``out``."""
    workers = available_cores() if jobs is None else _validate.count("jobs", jobs, 1, "at least 1")
    size = _chunk_size(study) if chunk is None else _validate.count("chunk", chunk, 1, "at least 1")
    folder = Path(out)
    store = _Store(study, folder)
    started = time.perf_counter()
    resumed = store.episodes_done
    progress(resumed, study.episodes)
    with _executor(workers, cluster) as executor:
        _work(executor, study, store, size, 2 * workers if cluster is None else 64, progress)
    seconds = time.perf_counter() - started
    store.finish()
    told = {
        "command": command,
        "seconds_simulating": round(seconds, 3),
        "episodes_resumed": resumed,
        "workers": cluster or workers,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        "versions": {name: metadata.version(name) for name in _PACKAGES},
    }
    text = json.dumps({"study": study.to_dict(), "run": told}, indent=1)
    _write(folder / "study.json", text.encode())
    return results.read(folder)


_PACKAGES = ("reserve-c4b", "numpy", "scipy", "numba", "polars")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chunk_size(study: Study) -> int:
    return max(1, min(4096, EPISODE_RUNS // (len(study.settings) * len(study.methods))))


def _executor(workers: int, cluster: str | None) -> Executor:
    """Threads here (kernels hold no lock), or a Dask cluster through the standard interface."""
    if cluster is None:
        return ThreadPoolExecutor(workers)
    from c4b.study.cluster import connect  # noqa: PLC0415 (an optional extra)

    return connect(cluster)


def _work(
    executor: Executor, study: Study, store: _Store, size: int, ahead: int, progress: Progress
) -> None:
    """Keep at most ``ahead`` chunks under way, so that memory does not grow with episodes."""
    todo = iter(store.missing(size))
    under_way: set[Future[Chunk]] = set()
    try:
        while True:
            for start, stop in todo:
                under_way.add(executor.submit(simulate, study, start, stop))
                if len(under_way) >= ahead:
                    break
            if not under_way:
                return
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in finished:
                store.add(future.result())
            progress(store.episodes_done, study.episodes)
    except BaseException:
        for future in under_way:
            future.cancel()
        raise


class _Store:
    """Chunks on disk: a Parquet file of rows and an NPZ of trajectory sums each."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self.folder = study, folder
        self.place = folder / "chunks" / study.draws_identity()
        self.place.mkdir(parents=True, exist_ok=True)
        for stale in self.place.glob("*.part"):
            stale.unlink()
        spans = sorted(tuple(map(int, p.stem.split("-"))) for p in self.place.glob("*.npz"))
        self.spans: list[tuple[int, int]] = []
        for start, stop in spans:
            # overlapping or surplus chunks of an earlier call are left out, not mixed in
            fits = stop <= study.episodes and (not self.spans or start >= self.spans[-1][1])
            if fits and self._rows(start, stop).is_file():
                self.spans.append((start, stop))

    def _rows(self, start: int, stop: int) -> Path:
        return self.place / f"{start:09d}-{stop:09d}.parquet"

    def _sums(self, start: int, stop: int) -> Path:
        return self.place / f"{start:09d}-{stop:09d}.npz"

    @property
    def episodes_done(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    def missing(self, size: int) -> list[tuple[int, int]]:
        """Spans still to do, at most ``size`` episodes each."""
        gaps, at = [], 0
        for start, stop in [*sorted(self.spans), (self.study.episodes, self.study.episodes)]:
            gaps += [(a, min(a + size, start)) for a in range(at, start, size)]
            at = stop
        return gaps

    def add(self, chunk: Chunk) -> None:
        """Rows first, sums last: a chunk counts once its sums are there."""
        rows = self._rows(chunk.start, chunk.stop)
        draft = rows.with_suffix(".part")
        results.chunk_frame(self.study, chunk).write_parquet(draft)
        draft.replace(rows)
        sums = self._sums(chunk.start, chunk.stop)
        with open(draft, "wb") as file:
            np.savez(file, total=chunk.fallback_sum, squares=chunk.fallback_square_sum)
        draft.replace(sums)
        self.spans.append((chunk.start, chunk.stop))

    def finish(self) -> None:
        shape = (len(self.study.settings), len(self.study.methods), self.study.rounds)
        total, squares = np.zeros((2, *shape), dtype=np.int64)
        self.spans.sort()
        for span in self.spans:
            with np.load(self._sums(*span)) as sums:
                total += sums["total"]
                squares += sums["squares"]
        results.write_results([self._rows(*span) for span in self.spans], self.folder / "results.parquet")
        results.write_trajectories(self.study, total, squares, self.folder / "trajectories.parquet")
        shutil.rmtree(self.folder / "chunks")


def _write(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".part")
    draft.write_bytes(content)
    draft.replace(path)


def is_complete(study: Study, out: str | Path) -> bool:
    """Whether ``out`` already holds exactly this study."""
    try:
        found = results.read(out)
    except (results.NoResults, OSError, pl.exceptions.PolarsError):
        return False
    return found.study == study
