"""Temporary folders. What a killed process left behind is removed when the next service starts."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"c4b-(?:export|metrics)-(\d+)-\w+")


def new_folder(purpose: str) -> Path:
    """An empty folder whose name says what it is for ("export", "metrics") and which process made it."""
    return Path(tempfile.mkdtemp(prefix=f"c4b-{purpose}-{os.getpid()}-"))


def remove(folder: Path) -> None:
    """Remove the folder and what is in it; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove the folders of processes that are gone."""
    for path in Path(tempfile.gettempdir()).glob("c4b-*-*-*"):
        made = _NAME.fullmatch(path.name)
        if made is not None and not is_alive(int(made[1])):
            remove(path)


def is_alive(process: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or no number of a process
        return True
    return True
