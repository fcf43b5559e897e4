"""Stores finished steps of a plan in a folder, so that an interrupted plan can continue."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from c4b._whole_files import written_whole
from c4b.errors import InvalidInput

Step = TypeVar("Step", bound=NamedTuple)


class KeptSteps:
    """Each step is a named tuple of arrays and numbers, in a file that is written as a whole or not.

    Without a folder nothing is kept. ``identity`` is plain data that says which plan this is: a folder of
    another one is refused.
    """

    def __init__(self, folder: Path | None, identity: dict[str, Any]) -> None:
        self.folder = folder
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        told, wanted = folder / "plan.json", json.dumps(identity, sort_keys=True)
        if not told.is_file():
            with written_whole(told) as draft:
                draft.write_text(wanted, encoding="utf-8")
        elif not _is_told(json.loads(wanted), told.read_text(encoding="utf-8")):
            remedy = "holds a plan of other rows, features or numbers; choose another folder"
            raise InvalidInput("resume", str(folder), remedy)

    def step(self, name: str, kind: type[Step], compute: Callable[[], Step]) -> Step:
        """The kept result, or a new one that is kept from now on."""
        found = self.find(name, kind)
        if found is None:
            found = compute()
            self.keep(name, found)
        return found

    def find(self, name: str, kind: type[Step]) -> Step | None:
        """What was kept under this name; None if nothing was, or if a crash of the machine damaged it."""
        if self.folder is None or not self._file(name).is_file():
            return None
        try:
            with np.load(self._file(name), allow_pickle=False) as stored:
                return kind._make(_plain(stored[key]) for key in kind._fields)
        except (ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def keep(self, name: str, found: NamedTuple) -> None:
        """Write a result, if there is a folder."""
        if self.folder is not None:
            arrays: dict[str, Any] = {key: np.asarray(value) for key, value in found._asdict().items()}
            with written_whole(self._file(name)) as draft, open(draft, "wb") as file:
                np.savez(file, **arrays)

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.npz"


def _is_told(wanted: dict[str, Any], text: str) -> bool:
    """Whether a folder says this; earlier versions said less."""
    try:
        told = json.loads(text)
    except ValueError:
        return False
    return isinstance(told, dict) and {**wanted, **told} == wanted


def _plain(stored: Any) -> Any:
    return stored.item() if stored.ndim == 0 else stored
