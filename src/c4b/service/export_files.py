"""Temporary files of exports. What a killed worker left behind is removed when the next one starts."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"c4b-export-(\d+)-.*\.parquet")


def new_file() -> Path:
    """An empty file whose name says which process makes it."""
    with tempfile.NamedTemporaryFile(
        prefix=f"c4b-export-{os.getpid()}-", suffix=".parquet", delete=False
    ) as file:
        return Path(file.name)


def remove_leftovers() -> None:
    """Remove the files of processes that are gone."""
    for path in Path(tempfile.gettempdir()).glob("c4b-export-*.parquet"):
        made = _NAME.fullmatch(path.name)
        if made is not None and not _is_alive(int(made[1])):
            with suppress(OSError):  # of another user, or removed by another worker just now
                path.unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
