"""Where compiled kernels are kept: named by content, so that a cache is never stale and can be copied.

Numba's own cache looks only at the file a function is written in. A kernel inlines kernels of other
files, so an edit there would leave old machine code in use: a certificate computed by code that is no
longer in the source. Here the cache folder is named after the content of every file that holds a kernel
and of every module that such a file imports: an edit there starts a new cache, other edits do not. Inside
the folder a kernel is named by its place in the package, not by where the package is installed or when:
the folder serves every installation of the same source on the same kind of processor.

A wheel may carry such a folder, compiled for the least processor that it supports. What it carries is
used if it was compiled from this source, for this Python and these versions of the compiler, and if this
processor has every instruction of that one; else kernels are compiled as ever.
"""

import functools
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core import caching

from c4b._compilation import compile_notice, sources
from c4b._compilation.cache_files import CheckedFiles

_DECORATORS = (
    "kernel|kernel_of_known_shapes|inlined|called|called_allocating|pooled|allocating|specialised"
)
_DECORATED = re.compile(rf"^(?:@|\w+ = )(?:{_DECORATORS})\b", re.M)


def kernel_files() -> list[Path]:
    """The files with kernels in them, and all modules of this package that those import."""
    every = sources.PACKAGE.rglob("*.py")
    return sources.closure(p for p in every if _DECORATED.search(p.read_text(encoding="utf-8")))


NAME = f"c4b-{sources.digest(kernel_files())}"
"""Of the folder: the content that its kernels were compiled from."""
BESIDE = sources.PACKAGE / "__pycache__" / NAME
"""What ``c4b compile`` made when the package was installed, perhaps by another user."""


def _folder() -> str:
    """Beside the package if it can be written, else in the user's or the machine's temporary space."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return str(Path(chosen) / NAME)
    parents = [sources.PACKAGE / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home, as in many containers
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        parents.append(home / "reserve-c4b")
    for parent in parents:
        try:
            (parent / NAME).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / NAME, os.W_OK):
            return str(parent / NAME)
    return _own_temporary_folder()


def _own_temporary_folder() -> str:
    """One that the next process finds again, if nobody else can write there: what is in it is executed.
    Else a new one."""
    user = os.getuid() if hasattr(os, "getuid") else None  # Windows has temporary space for each user
    try:
        path = Path(tempfile.gettempdir()) / (NAME if user is None else f"{NAME}-{user}")
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
        is_own = user is None or (found.st_uid == user and not found.st_mode & 0o022)
        if stat.S_ISDIR(found.st_mode) and is_own:
            return str(path)
        return tempfile.mkdtemp(prefix=f"{NAME}-")
    except OSError:  # nothing can be written here; saving will say so
        return str(BESIDE)


FOLDER = _folder()
CARRIED = sources.PACKAGE / "_compiled"
"""What a wheel carries: a folder ``NAME``, and ``TARGET``, which says for what it was compiled."""
TARGET = "target.json"


def compilers() -> dict[str, str]:
    """The versions that compiled code depends on, besides the source."""
    python = sys.implementation.cache_tag or ""
    return {"python": python, "numba": numba.__version__, "llvmlite": llvmlite.__version__}


def target_of(codegen: Any) -> dict[str, Any]:
    """What ``TARGET`` holds for kernels that this process compiles."""
    triple, processor, features = codegen.magic_tuple()
    return compilers() | {"name": NAME, "triple": triple, "processor": processor, "features": features}


@functools.cache
def _carried_target() -> tuple[str, str, str] | None:
    """Triple, processor and features that carried kernels were compiled for; None if they cannot run."""
    try:
        target = json.loads((CARRIED / TARGET).read_text(encoding="utf-8"))
        wanted = [name[1:] for name in target["features"].split(",") if name.startswith("+")]
        fits = target["name"] == NAME and compilers().items() <= target.items()
        here = binding.get_host_cpu_features()
        if fits and target["triple"] == binding.get_process_triple() and all(here.get(f) for f in wanted):
            return target["triple"], target["processor"], target["features"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        pass
    return None


class _ByContent(caching.UserProvidedCacheLocator):
    """A kernel's place below ``root``: its module's, or, outside the package, a name for its file."""

    root: str

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        path = Path(file).resolve()
        self.is_ours = path.is_relative_to(sources.PACKAGE.resolve())
        if self.is_ours:
            place = path.parent.relative_to(sources.PACKAGE.resolve()).as_posix()
        else:
            place = "elsewhere-" + hashlib.sha256(str(path).encode()).hexdigest()[:16]
        self._cache_path = str(Path(self.root) / place)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_ByContent":
        return cls(function, file)

    def get_source_stamp(self) -> Any:
        return NAME if self.is_ours else super().get_source_stamp()


def _below(folder: str) -> type[caching.CompileResultCacheImpl]:
    """How Numba is told where a cache lies."""

    class Locator(_ByContent):
        root = folder

    class Implementation(caching.CompileResultCacheImpl):
        _locator_classes = [Locator]  # noqa: RUF012 (as Numba has it)

    return Implementation


class _Cache(caching.FunctionCache):
    """Numba's, with files that are checked."""

    _impl_class: Any

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        place, base = self._impl.locator, self._impl.filename_base
        self._cache_file = CheckedFiles(self._cache_path, base, place.get_source_stamp())


class _BesideCache(_Cache):
    """Kernels that this process may read, not write."""

    root = str(BESIDE)
    _impl_class = _below(root)


class _CarriedCache(_Cache):
    """Kernels that the wheel carries, compiled for the processor ``_carried_target``."""

    root = str(CARRIED / NAME)
    _impl_class = _below(root)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        _, _, code = super()._index_key(sig, codegen)
        return sig, _carried_target(), code


class KernelCache(_Cache):
    """What a kernel's dispatcher asks for machine code before it compiles."""

    _impl_class = _below(FOLDER)
    uses_carried = True
    """Whether carried kernels count; False: compile for the very processor that is here."""

    def __init__(self, function: Any, allocates: bool) -> None:
        super().__init__(function)
        self._allocates = allocates

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Numba would first import all that it can compile, a third of the time to a first decision.
        Machine code needs only what makes arrays; whoever compiles imports the rest then."""
        if self._allocates:
            return super().load_overload(sig, target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)
        for other in _others():
            if found is None:
                found = other(self._py_func)._load_overload(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """A disk that is full keeps nobody from deciding."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            compile_notice.NOTICE.not_kept(FOLDER, error)


def _others() -> list[type[_BesideCache | _CarriedCache]]:
    """Where else to look for machine code."""
    others: list[type[_BesideCache | _CarriedCache]] = []
    if str(BESIDE) != FOLDER and not os.environ.get("NUMBA_CACHE_DIR"):
        others.append(_BesideCache)
    if KernelCache.uses_carried and _carried_target() is not None:
        others.append(_CarriedCache)
    return others


def holds(module: str, function: str) -> bool:
    """Whether there is machine code of a kernel on disk."""
    roots = [FOLDER, *(other.root for other in _others())]
    return any(found for root in roots for found in Path(root).rglob(f"{module}.{function}-*.nbc"))
