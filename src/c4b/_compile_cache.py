"""Where compiled kernels are kept: named by content, so that a cache is never stale and can be copied.

Numba's own cache looks only at the file a function is written in. A kernel inlines kernels of other
files, so an edit there would leave old machine code in use: a certificate computed by code that is no
longer in the source. Here the cache folder is named after the content of every file that holds a kernel
and of every module that such a file imports: an edit there starts a new cache, other edits do not. Inside
the folder a kernel is named by its place in the package, not by where the package is installed: the
folder serves every installation of the same source on the same kind of processor.
"""

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from numba.core import caching

from c4b import _sources as sources

_DECORATED = re.compile(r"^(?:@|\w+ = )(?:kernel|inlined|called|called_allocating|allocating)\b", re.M)


def kernel_files() -> list[Path]:
    """The files with kernels in them, and all modules of this package that those import."""
    every = sources.PACKAGE.rglob("*.py")
    return sources.closure(p for p in every if _DECORATED.search(p.read_text(encoding="utf-8")))


def _folder() -> str:
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


FOLDER = _folder()


class _ByContent(caching.UserProvidedCacheLocator):
    """A kernel's place below ``FOLDER``: its module's, or, outside the package, a name for its file."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        path = Path(file).resolve()
        try:
            place = path.parent.relative_to(sources.PACKAGE.resolve()).as_posix()
        except ValueError:
            place = "elsewhere-" + hashlib.sha256(str(path).encode()).hexdigest()[:16]
        self._cache_path = str(Path(FOLDER) / place)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_ByContent":
        return cls(function, file)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_ByContent]  # noqa: RUF012 (as Numba has it)


class KernelCache(caching.FunctionCache):
    """What a kernel's dispatcher asks for machine code before it compiles."""

    _impl_class = _Implementation
