"""Damaged files of the cache are compiled again, never executed; a disk that is full hinders nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
CALL = (
    "from c4b.evidence.bounds import clipped; assert clipped(-1e-14, 1.0, 2) > 0.0; "
    "print(len(clipped.from_python.stats.cache_hits))"
)


def call(cache: Path, quiet: str = "1") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "C4B_QUIET": quiet}
    command = [sys.executable, "-c", CALL]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True)


def hits(cache: Path) -> int:
    """How many kernels a process has from the cache."""
    return int(call(cache).stdout)


def flipped(content: bytes) -> bytes:
    """With one bit that is another."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damaged",
    [lambda content: b"", lambda content: content[: len(content) // 2], flipped],
    ids=["emptied", "cut off", "a bit flipped"],
)
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_what_is_damaged_is_compiled_again(
    tmp_path: Path, kind: str, damaged: Callable[[bytes], bytes]
) -> None:
    assert hits(tmp_path) == 0
    assert hits(tmp_path) == 1
    (file,) = tmp_path.rglob(f"*.{kind}")
    file.write_bytes(damaged(file.read_bytes()))
    assert hits(tmp_path) == 0
    assert hits(tmp_path) == 1


def test_another_version_of_numba_finds_nothing(tmp_path: Path) -> None:
    assert hits(tmp_path) == 0
    (index,) = tmp_path.rglob("*.nbi")
    code = f"from numba.core import caching; caching.numba.__version__ = '0.0'; {CALL}"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "0\n"
    assert index.exists()


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    made = call(tmp_path / "file" / "cache", quiet="")
    assert made.stdout == "0\n"
    said = [line for line in made.stderr.splitlines() if "cannot be kept in" in line]
    assert len(said) == 1
    assert "NUMBA_CACHE_DIR" in said[0]
    assert call(tmp_path / "file" / "cache").stderr == ""
