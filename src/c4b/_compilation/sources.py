"""Which source files a piece of code consists of: what names a compile cache, and results on disk.

Both must change when, and only when, code that they depend on changes. So the files are found by
following imports, not listed by hand: a list goes stale without anybody noticing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
_IMPORT = re.compile(
    r"^\s*(?:from\s+(c4b[\w.]*)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+(c4b[\w.]*))", re.M
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?\s*(?:#[^\n]*)?(?:,|\s|$)")


def closure(seeds: Iterable[Path]) -> list[Path]:
    """The files ``seeds`` and every module of this package that they import, directly or not, sorted.

    Packages' ``__init__`` files are left out: they hold no code, only names of other modules.
    """
    found: set[Path] = set()
    waiting = [path.resolve() for path in seeds]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path.read_text(encoding="utf-8"))
    return sorted(found)


def _imported(text: str) -> list[Path]:
    """Files of the modules that ``from c4b.x import y`` and ``import c4b.x`` name in a source text."""
    files = []
    for package, names, module in _IMPORT.findall(text):
        candidates = [package or module]
        candidates += (
            [f"{package}.{name}" for name in _NAME.findall(names.strip("()"))] if package else []
        )
        for dotted in candidates:
            path = PACKAGE.joinpath(*dotted.split(".")[1:]).with_suffix(".py")
            if dotted != "c4b" and path.is_file():
                files.append(path.resolve())
    return files


def digest(paths: Iterable[Path]) -> str:
    """Names the content of the files and where in the package each one lies."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.relative_to(PACKAGE.resolve()).as_posix().encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:16]
