"""Importing compiles nothing; a first call compiles into the cache; an edit starts a new cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4b import _jit

LOOK = """
import sys
import c4b, c4b.testing
from numba.core.dispatcher import Dispatcher
kernels = [v for name, m in list(sys.modules.items()) if name.startswith("c4b")
           for v in vars(m).values() if isinstance(v, Dispatcher)]
assert len(kernels) > 20, len(kernels)
assert not any(k.signatures for k in kernels), [k.__name__ for k in kernels if k.signatures]
"""


def run(code: str, cache: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_importing_compiles_nothing(tmp_path: Path) -> None:
    run(LOOK, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_first_call_fills_the_cache_that_was_asked_for(tmp_path: Path) -> None:
    run("from c4b.evidence.bounds import clipped; clipped(-1.0, 1.0, 2)", tmp_path)
    assert list(tmp_path.rglob("*.nbc"))


def test_whether_a_kernel_is_compiled_is_known_before_it_is_called(tmp_path: Path) -> None:
    start = "from c4b._jit import is_compiled; from c4b.evidence.bounds import clipped; "
    run(
        f"{start}assert not is_compiled(clipped); clipped(-1.0, 1.0, 2); assert is_compiled(clipped)",
        tmp_path,
    )
    run(f"{start}assert is_compiled(clipped) and not clipped.signatures", tmp_path)  # from the cache


def test_an_edit_of_any_file_starts_a_new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba looks at one file only; a kernel inlines others. See c4b._jit."""
    assert Path(_jit.CACHE_FOLDER).name == f"c4b-{_jit._source_fingerprint()}"
    shutil.copytree(_jit._PACKAGE, tmp_path / "c4b", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_jit, "_PACKAGE", tmp_path / "c4b")
    seen = {_jit._source_fingerprint()}
    assert seen == {Path(_jit.CACHE_FOLDER).name.removeprefix("c4b-")}
    for name in ("evidence/bounds.py", "policies/round.py", "errors.py"):
        with open(tmp_path / "c4b" / name, "a") as file:
            file.write("\n")
        seen.add(_jit._source_fingerprint())
    assert len(seen) == 4


def test_rooms_outside_the_fingerprint_have_no_kernels() -> None:
    package = Path(_jit.__file__).parent
    for room in _jit.WITHOUT_KERNELS:
        for path in (package / room).rglob("*.py"):
            text = path.read_text()
            assert "_jit" not in text, path
            assert "numba" not in text, path
