"""How kernels are compiled: once, cached on disk, never stale.

Numba's own cache looks only at the file a function is written in. A kernel inlines kernels of other
files, so an edit there would leave old machine code in use: a certificate computed by code that is no
longer in the source. Here the cache folder is named after the content of every file that holds a kernel
and of every module that such a file imports: an edit there starts a new cache, other edits do not.
"""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import intrinsic

from c4b import _sources as sources

F = TypeVar("F", bound=Callable[..., object])

_DECORATED = re.compile(r"^(?:@|\w+ = )(?:kernel|inlined|outlined|allocating)\b", re.M)


def kernel_files() -> list[Path]:
    """The files with kernels in them, and all modules of this package that those import."""
    every = sources.PACKAGE.rglob("*.py")
    return sources.closure(p for p in every if _DECORATED.search(p.read_text(encoding="utf-8")))


def _cache_folder() -> str:
    """Beside the package if it can be written, else in the user's or the machine's temporary space."""
    name = f"c4b-{sources.digest(kernel_files())}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return str(Path(chosen) / name)
    beside = sources.PACKAGE / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for parent in (beside, home / "reserve-c4b"):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return str(parent / name)
    return str(Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}")


CACHE_FOLDER = _cache_folder()


def _typed_fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


_make: Any = intrinsic
fma: Callable[[float, float, float], float] = _make(_typed_fma)
"""Fused multiply-add for kernels. Written out where it is wanted: if the compiler contracted products and
sums as it likes, two copies of one kernel could round differently."""


def kernel(function: F) -> F:
    """Compile ``function`` on first call: float64, IEEE semantics (no fast-math), without the GIL.

    A kernel allocates nothing, so it is compiled without reference counts: their atomic operations
    on every view would cost more than the arithmetic of a round. For the same reason the compiler is
    told to inline it: a call hands over every field of every array, some sixty words.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def inlined(function: F) -> F:
    """A small kernel that is copied into its callers before they are compiled."""
    return _compiled(function, inline="always", _nrt=False)


def outlined(function: F) -> F:
    """A kernel that is called where it is used, and so compiled once: for what few methods need."""
    return _compiled(function, _nrt=False)


def allocating(function: F) -> F:
    """A kernel that makes arrays of its own."""
    return _compiled(function)


def _compiled(function: F, **options: Any) -> F:
    settings: Any = numba.config
    njit: Any = numba.njit
    before = settings.CACHE_DIR
    settings.CACHE_DIR = CACHE_FOLDER
    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy", **options)(function))
    finally:
        settings.CACHE_DIR = before


def is_compiled(function: Callable[..., object]) -> bool:
    """Whether a kernel runs at once: compiled in this process before, or found in the cache."""
    made: Any = function
    if getattr(made, "signatures", True):  # a plain function, where compiling is switched off
        return True
    module = made.py_func.__module__.rsplit(".", 1)[-1]
    return any(Path(CACHE_FOLDER).rglob(f"{module}.{made.py_func.__qualname__}-*.nbc"))
