"""Importing compiles nothing; a first call compiles into the cache; an edit starts a new cache."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from c4b._compilation import compile_cache, sources
from c4b._compilation.jit import called, inlined, kernel
from c4b.study.spec import identity

LOOK = """
import sys
import c4b.cli.main, c4b.testing
from numba.core.dispatcher import Dispatcher
kernels = [v for name, m in list(sys.modules.items()) if name.startswith("c4b")
           for v in vars(m).values() if isinstance(v, Dispatcher)]
assert len(kernels) > 20, len(kernels)
assert not any(k.signatures for k in kernels), [k.__name__ for k in kernels if k.signatures]
assert not {"matplotlib", "scipy.stats"} & set(sys.modules)
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


def test_importing_compiles_nothing_and_leaves_slow_imports_to_who_needs_them(tmp_path: Path) -> None:
    run(LOOK, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_kernels_are_compiled_where_numba_is_told_to_compile_nothing(tmp_path: Path) -> None:
    """People say so to debug kernels of their own."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom c4b._compilation.jit import fma, kernel\n"
        "@kernel\ndef f(x):\n    return fma(np.sqrt(x[0]), np.sum(x), 0.0)\n"
        "assert f(np.ones(2)) == 2.0\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-W", "error", str(script)], env=environment, check=True)


@pytest.fixture
def nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary space of a user who has no home and may not write beside the package."""
    (tmp_path / "package").write_text("no folder")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(compile_cache.sources, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    return tmp_path / "tmp"


def test_a_user_without_a_home_has_a_cache_in_temporary_space(nowhere_else: Path) -> None:
    folder = Path(compile_cache._folder())
    assert folder.parent == nowhere_else
    assert folder.stat().st_mode & 0o777 == 0o700
    assert compile_cache._folder() == str(folder)  # the next process finds it


@pytest.mark.parametrize("how", ["open to all", "a link", "a file"])
def test_what_somebody_else_has_put_into_temporary_space_is_not_executed(
    nowhere_else: Path, how: str
) -> None:
    planted = nowhere_else / f"{compile_cache.NAME}-{os.getuid()}"
    if how == "open to all":
        planted.mkdir()
        planted.chmod(0o777)
    elif how == "a link":
        (nowhere_else / "other").mkdir()
        planted.symlink_to(nowhere_else / "other")
    else:
        planted.write_text("")
    folder = Path(compile_cache._folder())
    assert folder != planted
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_first_call_fills_the_cache_that_was_asked_for(tmp_path: Path) -> None:
    run("from c4b.evidence.bounds import clipped; clipped(-1.0, 1.0, 2)", tmp_path)
    assert list(tmp_path.rglob("*.nbc"))


@pytest.mark.slow
def test_whether_a_kernel_is_compiled_is_known_before_it_is_called(tmp_path: Path) -> None:
    start = (
        "from c4b._compilation.jit import is_compiled; from c4b.evidence.bounds import clipped; "
        "clipped = clipped.from_python; "
    )
    run(
        f"{start}assert not is_compiled(clipped); clipped(-1.0, 1.0, 2); assert is_compiled(clipped)",
        tmp_path,
    )
    run(f"{start}assert is_compiled(clipped) and not clipped.signatures", tmp_path)  # from the cache


@pytest.mark.slow
def test_what_is_in_the_cache_runs_without_what_compiles(tmp_path: Path) -> None:
    first = "import sys; from c4b.evidence import bounds; assert bounds.clipped(-1e-14, 1.0, 2) > 0.0; "
    run(first, tmp_path)
    look = "assert bounds.clipped.from_python.stats.cache_hits and 'numba.np.arrayobj' not in sys.modules"
    compiles = "from c4b.evidence.pools.pool_forms import form_rows; assert form_rows(1, 2, True, 3) > 0"
    run(f"{first}{look}; {compiles}", tmp_path)


@pytest.mark.slow
def test_what_was_compiled_when_the_package_was_installed_serves_users_who_may_not_write_there(
    tmp_path: Path,
) -> None:
    shutil.copytree(
        sources.PACKAGE, tmp_path / "site" / "c4b", ignore=shutil.ignore_patterns("__pycache__")
    )
    mine = {"PYTHONPATH": str(tmp_path / "site"), "TMPDIR": str(tmp_path / "tmp"), "C4B_QUIET": "1"}
    environment = {name: os.environ[name] for name in os.environ if name != "NUMBA_CACHE_DIR"} | mine
    (tmp_path / "tmp").mkdir()
    call = "from c4b.evidence.bounds import clipped; clipped(-1.0, 1.0, 2)"
    subprocess.run([sys.executable, "-c", call], env=environment, check=True)
    denied = "import os; os.access = lambda *_: False; "
    look = f"{denied}{call}; print(len(clipped.from_python.stats.cache_hits))"
    command = [sys.executable, "-c", look]
    assert subprocess.check_output(command, env=environment, text=True) == "1\n"
    assert not list((tmp_path / "tmp").rglob("*.nbc"))


@pytest.mark.slow
def test_a_cache_serves_another_installation_of_the_same_source(tmp_path: Path) -> None:
    look = (
        "from c4b.evidence.bounds import clipped; clipped = clipped.from_python; "
        "clipped(-1.0, 1.0, 2); print(len(clipped.stats.cache_hits))"
    )
    shutil.copytree(
        sources.PACKAGE, tmp_path / "site" / "c4b", ignore=shutil.ignore_patterns("__pycache__")
    )
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    hits = [
        subprocess.run(
            [sys.executable, "-c", look],
            env=os.environ | cache | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for path in (str(sources.PACKAGE.parent), str(tmp_path / "site"))
    ]
    assert hits == ["0", "1"]


NOTICED = """
import time
from c4b._compilation import compile_notice
from c4b._compilation.jit import kernel
from c4b.evidence.bounds import clipped
compile_notice.PATIENCE = 0.0
clipped(-1.0, 1.0, 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "lines"), [({}, 1), ({"C4B_QUIET": "1"}, 0)])
def test_compiling_says_so_once_unless_silenced(
    tmp_path: Path, setting: dict[str, str], lines: int
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "C4B_QUIET"}
    run_ = subprocess.run(
        [sys.executable, "-c", NOTICED],
        env=environment | {"NUMBA_CACHE_DIR": str(tmp_path)} | setting,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run_.stderr.count("c4b: compiling") == lines


def test_a_kernel_is_compiled_once_for_all_constants_that_kernels_call_it_with() -> None:
    @inlined
    def scaled(x: float, times: int, negated: bool) -> float:
        return -times * x if negated else times * x

    @called
    def shifted(x: float, by: int) -> float:
        return x + by

    @kernel
    def combined(x: float) -> float:
        first = scaled(x, 2, False) + scaled(x, 3, True)
        return shifted(first, 1) + shifted(x, 2)

    assert combined(10.0) == 3.0
    assert len(scaled.signatures) == len(shifted.signatures) == 1  # type: ignore[attr-defined]
    assert scaled(10.0, 2, True) == -20.0  # from Python, after kernels have called it
    assert shifted(1.0, 1) == 2.0


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package that the fingerprints are taken from."""
    package = tmp_path / "c4b"
    shutil.copytree(sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    with monkeypatch.context() as patched:
        patched.setattr(sources, "PACKAGE", package)
        yield package
    identity.code.cache_clear()  # else later tests would see the edited copy's


def kernels() -> str:
    return sources.digest(compile_cache.kernel_files())


def results() -> str:
    identity.code.cache_clear()
    return identity.code()


def edited(path: Path) -> None:
    with open(path, "r+", encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        file.write("\n")


@pytest.mark.parametrize(
    "name",
    [
        "evidence/bounds.py",
        "policies/compiled/compiled_round.py",
        "_compilation/shaped_view.py",
        "errors.py",
    ],
)
def test_an_edit_of_any_file_that_kernels_use_starts_a_new_cache(copied: Path, name: str) -> None:
    """Numba looks at one file only; a kernel inlines others. See c4b._compilation.compile_cache."""
    assert Path(compile_cache.FOLDER).name == f"c4b-{kernels()}"
    edited(copied / name)
    assert Path(compile_cache.FOLDER).name != f"c4b-{kernels()}"


@pytest.mark.parametrize(
    "name", ["study/report/figure_style.py", "service/routing/routes.py", "cli/main.py"]
)
def test_an_edit_elsewhere_keeps_cache_and_results(copied: Path, name: str) -> None:
    before = kernels(), results()
    edited(copied / name)
    assert (kernels(), results()) == before


@pytest.mark.parametrize(
    "name",
    [
        "study/spec/plan.py",
        "_compilation/shaped_view.py",
        "_compilation/jit.py",
        "study/world/draws.py",
        "ledger/ledger_kernels.py",
    ],
)
def test_an_edit_of_what_runs_an_episode_is_another_study(copied: Path, name: str) -> None:
    before = results()
    edited(copied / name)
    assert results() != before
