"""A study's folder while it runs: finished chunks, kept until the three result files are written.

An interrupted or killed run goes on where it stopped, and a finished study can be given more
episodes. Nothing finished is ever overwritten by another study, and rows of other code, of another
pool file or of another plan are never mixed in.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from c4b.errors import C4BError, InvalidInput
from c4b.study.engine.chunk import Chunk
from c4b.study.results import results
from c4b.study.spec import identity
from c4b.study.spec.plan import Study


class OtherStudy(C4BError):
    """The folder holds finished results that this study would destroy."""


class Busy(C4BError):
    """Another process is running a study in this folder."""


class Store:
    """Chunks on disk: a Parquet file of rows and an NPZ of trajectory sums each."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self.folder = study, folder
        self.identity = identity.identity(study)
        self.place = folder / "chunks" / self.identity
        finished = _finished(folder)
        if finished:
            self._refuse_to_destroy(finished)
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            (self.place / "writable.part").touch()
        except OSError as error:
            raise InvalidInput(
                "out", str(folder), f"cannot be written ({error.strerror}); choose another folder"
            ) from error

    def _refuse_to_destroy(self, finished: dict[str, Any]) -> None:
        told = finished["study"]
        size = f"{told['episodes']} episodes, seed {told['seed']}"
        if identity.plan(told) != identity.plan(self.study.to_dict()):
            raise OtherStudy(
                f"{self.folder} holds another study ({told['name']}, {size}); choose another --out, "
                "or delete that folder"
            )
        if told["episodes"] > self.study.episodes:
            raise OtherStudy(
                f"{self.folder} holds more of this study already ({size}); ask for at least as many "
                "--episodes, choose another --out, or delete that folder"
            )

    def _open(self) -> None:
        """Take stock of what is there."""
        for stale in self.place.glob("*.part"):
            stale.unlink()
        self._adopt_finished()
        self.spans: list[tuple[int, int]] = []
        for start, stop in sorted(tuple(map(int, p.stem.split("-"))) for p in self.place.glob("*.npz")):
            # overlapping or surplus chunks of an earlier call are left out, not mixed in
            fits = stop <= self.study.episodes and (not self.spans or start >= self.spans[-1][1])
            if fits and self._rows(start, stop).is_file():
                self.spans.append((start, stop))

    def _adopt_finished(self) -> None:
        """Finished results of this very study with fewer episodes become its first chunk."""
        finished = _finished(self.folder)
        if finished is None or finished.get("identity") != self.identity:
            return
        found = results.read(self.folder)
        stop = found.study.episodes
        shutil.copyfile(self.folder / "results.parquet", self._rows(0, stop))
        self._write_sums(0, stop, *results.trajectory_sums(found))

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
        self._write_sums(chunk.start, chunk.stop, chunk.fallback_sum, chunk.fallback_square_sum)
        self.spans.append((chunk.start, chunk.stop))

    def _write_sums(self, start: int, stop: int, total: Any, squares: Any) -> None:
        target = self._sums(start, stop)
        draft = target.with_suffix(".part")
        with open(draft, "wb") as file:
            np.savez(file, total=total, squares=squares)
        draft.replace(target)

    def finish(self, told: dict[str, Any]) -> None:
        """Write the three result files; ``study.json``, the last, makes them count."""
        shape = (len(self.study.settings), len(self.study.methods), self.study.rounds)
        total, squares = np.zeros((2, *shape), dtype=np.int64)
        self.spans.sort()
        for span in self.spans:
            with np.load(self._sums(*span)) as sums:
                total += sums["total"]
                squares += sums["squares"]
        plan = self.folder / "study.json"
        plan.unlink(missing_ok=True)  # until it is back, the chunks are what counts
        results.write_results([self._rows(*span) for span in self.spans], self.folder / "results.parquet")
        results.write_trajectories(self.study, total, squares, self.folder / "trajectories.parquet")
        text = json.dumps(
            {"study": self.study.to_dict(), "identity": self.identity, "run": told}, indent=1
        )
        draft = plan.with_suffix(".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(plan)
        self._clear()

    def _clear(self) -> None:
        """Remove chunks, also of older code, but nothing that somebody else keeps in such a folder."""
        chunks = self.place.parent
        for path in chunks.iterdir():
            if re.fullmatch("[0-9a-f]{16}", path.name):
                shutil.rmtree(path)
        (chunks / "lock").unlink(missing_ok=True)
        if not any(chunks.iterdir()):
            chunks.rmdir()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Open the folder and hold it against a second process, as long as this one lives."""
        try:
            import fcntl  # noqa: PLC0415 (not on Windows)
        except ImportError:
            self._open()
            yield
            return
        with open(self.folder / "chunks" / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Busy(f"{self.folder}: another c4b is running a study there; wait for it") from error
            self._open()
            yield


def _finished(folder: Path) -> dict[str, Any] | None:
    """The content of ``study.json``; None when the folder holds no finished study."""
    path = folder / "study.json"
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        Study.from_dict(told["study"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (C4BError, OSError, ValueError, KeyError, TypeError) as error:
        raise OtherStudy(
            f"{path} cannot be read ({error}); choose another --out, or delete that folder"
        ) from error
    return told


def is_complete(study: Study, folder: str | Path) -> bool:
    """Whether the folder holds exactly this study, made by this code from these files."""
    told = _finished(Path(folder))
    if told is None or told.get("identity") != identity.identity(study):
        return False
    return results.read(folder).study == study
