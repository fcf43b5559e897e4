"""The folder of a study while it runs: finished chunks, kept until the result files are written.

An interrupted or killed run goes on where it stopped, and a finished study can be given more
episodes. Finished results are never overwritten by another study. Rows that other code, another
candidate file or another plan has made are never reused.
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

from c4b._validate import Counts
from c4b._whole_files import written_whole
from c4b.errors import C4BError, InvalidInput
from c4b.study.engine.chunk import Chunk
from c4b.study.results import parquet_files, results
from c4b.study.spec import identity
from c4b.study.spec.plan import Study


class OtherStudy(C4BError):
    """The folder holds finished results that this study would destroy."""


class Busy(C4BError):
    """Another process is running a study in this folder."""


class ResultsFolder:
    """Chunks on disk: a Parquet file of rows and an NPZ file of trajectory sums for each."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self.folder = study, folder
        self.identity = identity.identity(study)
        self.chunks = folder / "chunks" / self.identity
        document = _read_document(folder)
        if document:
            self._refuse_to_destroy(document["study"])
        try:
            self.chunks.mkdir(parents=True, exist_ok=True)
            (self.chunks / "writable.part").touch()
        except OSError as error:
            raise InvalidInput(
                "out", str(folder), f"cannot be written ({error.strerror}); choose another folder"
            ) from error

    def _refuse_to_destroy(self, existing: dict[str, Any]) -> None:
        size = f"{existing['episodes']} episodes, seed {existing['seed']}"
        if not _same_plan(existing, self.study):
            raise OtherStudy(
                f"{self.folder} holds another study ({existing['name']}, {size}); choose another --out, "
                "or delete that folder"
            )
        if existing["episodes"] > self.study.episodes:
            raise OtherStudy(
                f"{self.folder} holds more of this study already ({size}); ask for at least as many "
                "--episodes, choose another --out, or delete that folder"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against other processes; ``spans`` is known from here on."""
        try:
            import fcntl  # noqa: PLC0415 (not on Windows)
        except ImportError:
            self._find_chunks()
            yield
            return
        with open(self.folder / "chunks" / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Busy(f"{self.folder}: another c4b is running a study there; wait for it") from error
            self._find_chunks()
            yield

    def _find_chunks(self) -> None:
        """Set ``spans`` to the episodes (start, stop) that earlier calls have finished."""
        for unfinished in (*self.chunks.glob("*.tmp"), *self.chunks.glob("*.part")):  # of whom was killed
            unfinished.unlink()
        self._reuse_finished()
        self.spans: list[tuple[int, int]] = []
        for start, stop in sorted(tuple(map(int, p.stem.split("-"))) for p in self.chunks.glob("*.npz")):
            # overlapping or surplus chunks of an earlier call are left out, not mixed in
            fits = stop <= self.study.episodes and (not self.spans or start >= self.spans[-1][1])
            if fits and self._rows_file(start, stop).is_file():
                self.spans.append((start, stop))

    def _reuse_finished(self) -> None:
        """Finished results of this very study with fewer episodes become its first chunk."""
        document = _read_document(self.folder)
        if document is None or document.get("identity") != self.identity:
            return
        finished = results.read(self.folder)
        stop = finished.study.episodes
        shutil.copyfile(self.folder / "results.parquet", self._rows_file(0, stop))
        sums = parquet_files.trajectory_sums(finished.study, finished.trajectories)
        self._write_sums(0, stop, *sums)

    def _rows_file(self, start: int, stop: int) -> Path:
        return self.chunks / f"{start:09d}-{stop:09d}.parquet"

    def _sums_file(self, start: int, stop: int) -> Path:
        return self.chunks / f"{start:09d}-{stop:09d}.npz"

    @property
    def episodes_done(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    def missing(self, size: int) -> list[tuple[int, int]]:
        """Spans still to do, at most ``size`` episodes each."""
        gaps, done = [], 0
        for start, stop in [*sorted(self.spans), (self.study.episodes, self.study.episodes)]:
            gaps += [(a, min(a + size, start)) for a in range(done, start, size)]
            done = stop
        return gaps

    def add(self, chunk: Chunk) -> None:
        """Save a chunk. It counts once its sums are written, which is done last."""
        rows = self._rows_file(chunk.start, chunk.stop)
        with written_whole(rows) as draft:
            parquet_files.chunk_frame(self.study, chunk).write_parquet(draft)
        self._write_sums(chunk.start, chunk.stop, chunk.fallback_sum, chunk.fallback_square_sum)
        self.spans.append((chunk.start, chunk.stop))

    def _write_sums(self, start: int, stop: int, total: Counts, squares: Counts) -> None:
        target = self._sums_file(start, stop)
        with written_whole(target) as draft, open(draft, "wb") as file:
            np.savez(file, total=total, squares=squares)

    def finish(self, run: dict[str, Any]) -> None:
        """Write the three result files; ``study.json``, the last, makes them count.

        ``run`` says how and where the study was run.
        """
        shape = (len(self.study.settings), len(self.study.methods), self.study.rounds)
        total, squares = np.zeros((2, *shape), dtype=np.int64)
        self.spans.sort()
        for span in self.spans:
            with np.load(self._sums_file(*span)) as sums:
                total += sums["total"]
                squares += sums["squares"]
        target = self.folder / "study.json"
        target.unlink(missing_ok=True)  # until it is back, the chunks are what counts
        rows = [self._rows_file(*span) for span in self.spans]
        parquet_files.write_results(rows, self.folder / "results.parquet")
        trajectories = self.folder / "trajectories.parquet"
        parquet_files.write_trajectories(self.study, total, squares, trajectories)
        text = json.dumps(
            {"study": self.study.to_dict(), "identity": self.identity, "run": run}, indent=1
        )
        draft = target.with_suffix(".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(target)
        self._remove_chunks()

    def _remove_chunks(self) -> None:
        """Remove chunks, also of older code, but nothing that somebody else keeps in such a folder."""
        parent = self.chunks.parent
        for path in parent.iterdir():
            if re.fullmatch("[0-9a-f]{16}", path.name):
                shutil.rmtree(path)
        (parent / "lock").unlink(missing_ok=True)
        if not any(parent.iterdir()):
            parent.rmdir()


def _read_document(folder: Path) -> dict[str, Any] | None:
    """The content of ``study.json``; None when the folder holds no finished study."""
    path = folder / "study.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        Study.from_dict(document["study"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (C4BError, OSError, ValueError, KeyError, TypeError) as error:
        raise OtherStudy(
            f"{path} cannot be read ({error}); choose another --out, or delete that folder"
        ) from error
    return document


def unusable_rows(study: Study, folder: str | Path) -> str | None:
    """A sentence on rows of this study in the folder that cannot be reused; None if there are none."""
    own, chunks = identity.identity(study), Path(folder) / "chunks"
    document = _read_document(Path(folder))
    if document is not None:
        if document.get("identity") == own or not _same_plan(document["study"], study):
            return None
        rows = f"{document['study']['episodes']} episodes of this study"
    elif any(path.parent.name != own for path in chunks.glob("*/*.npz")):
        rows = "an unfinished run"
    else:
        return None
    return (
        f"{folder} holds {rows} from another version of the code, or of a file that the study reads: "
        f"none of them is reused, all {study.episodes} episodes are simulated."
    )


def _same_plan(existing: dict[str, Any], study: Study) -> bool:
    return identity.plan(Study.from_dict(existing)) == identity.plan(study)


def is_complete(study: Study, folder: str | Path) -> bool:
    """Whether the folder holds exactly this study, made by this code from these files."""
    document = _read_document(Path(folder))
    if document is None or document.get("identity") != identity.identity(study):
        return False
    return results.read(folder).study == study
