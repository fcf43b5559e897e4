"""A replay that goes on where it was interrupted."""

from __future__ import annotations

import json
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from c4b._whole_files import written_whole
from c4b.errors import InvalidInput
from c4b.policies import Policy
from c4b.replay.result import Recorder

SECONDS = 30.0
"""Between two times that a run is saved."""
_SERIES = ("rewards", "banks", "baseline_rewards", "fell_back")


class InterruptibleRun:
    """A policy on its way through a log: what it earned, and how many rows it has read.

    With a folder its state is saved there now and then, as a whole or not at all. ``terms`` is plain
    data that says which replay this is: a folder of another one is refused.
    """

    def __init__(self, name: str, terms: dict[str, Any], folder: Path | None) -> None:
        self.name, self.terms, self.folder = name, terms, folder
        self.rows = 0
        self.used: list[int] = []
        """In a replay by queues, how many outcomes of each action were used."""
        self._saved_at = time.monotonic()

    def resume(self) -> bool:
        """Continue from the folder, if it holds a state of this run."""
        if self.folder is None or not self._file("json").is_file():
            return False
        saved = json.loads(self._file("json").read_text())
        if {**self.terms, **saved["terms"]} != self.terms:  # earlier versions said less
            remedy = "holds a replay of other rows, features or numbers; choose another folder"
            raise InvalidInput("resume", str(self.folder), remedy)
        place = self.folder / saved["place"]
        self.recorder = Recorder(Policy.load(place / "policy.npz"))
        for series in _SERIES:
            stored = np.load(place / f"{series}.npy")
            kept: array[Any] = getattr(self.recorder, series)
            kept.frombytes(stored.tobytes())
        self.rows, self.used = saved["rows"], saved["used"]
        return True

    def start(self, policy: Policy) -> None:
        """From the first row."""
        self.recorder = Recorder(policy)

    def advance(self, rows: int) -> None:
        """So many rows more are read. Saves the state if that was long ago."""
        self.rows += rows
        if self.folder is not None and time.monotonic() - self._saved_at > SECONDS:
            self.save()

    def save(self) -> None:
        """Write the state into a folder of its own; one file that names it makes it valid."""
        assert self.folder is not None
        place = self.folder / f"{self.name}-{self.rows}-{len(self.recorder.rewards)}"
        place.mkdir(parents=True, exist_ok=True)
        self.recorder.policy.save(place / "policy.npz")
        for series in _SERIES:
            kept: array[Any] = getattr(self.recorder, series)
            np.save(place / f"{series}.npy", np.frombuffer(kept, dtype=kept.typecode))
        told = {"terms": self.terms, "place": place.name, "rows": self.rows, "used": self.used}
        with written_whole(self._file("json")) as draft:
            draft.write_text(json.dumps(told))
        self._remove_older(place)
        self._saved_at = time.monotonic()

    def _remove_older(self, current: Path) -> None:
        assert self.folder is not None
        for other in self.folder.glob(f"{self.name}-*-*"):
            if other != current and other.is_dir():
                for file in other.iterdir():
                    file.unlink()
                other.rmdir()

    def _file(self, suffix: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.name}.{suffix}"
