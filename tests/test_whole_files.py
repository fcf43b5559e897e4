"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from c4b._whole_files import written_whole

FULL = """
import os, pathlib, resource, sys
import numpy as np, polars as pl
from c4b._whole_files import written_whole
target = pathlib.Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with written_whole(target) as draft:
        pl.DataFrame({"x": np.random.default_rng(0).random(10_000)}).write_parquet(draft)
except OSError as error:
    print(error.strerror, error.filename == str(target))
"""


def test_half_a_file_is_removed_and_the_error_is_the_systems(tmp_path: Path) -> None:
    target = tmp_path / "table.parquet"
    target.write_text("of yesterday")
    said = subprocess.check_output([sys.executable, "-c", FULL, str(target)], text=True)
    assert said == "File too large True\n"
    assert os.listdir(tmp_path) == [target.name]
    assert target.read_text() == "of yesterday"


def test_other_errors_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "a") as draft:
        draft.write_text(str(1 / 0))
    assert os.listdir(tmp_path) == []


def test_a_durable_file_has_its_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, sync, synced = tmp_path / "a", os.fsync, []

    def watched(descriptor: int) -> None:
        sync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, target.exists()))

    monkeypatch.setattr(os, "fsync", watched)
    with written_whole(target, durably=True) as draft:
        draft.write_text("whole")
    assert synced == [(target.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
