"""Identifies what a study's rows depend on: the plan, the files it reads and the code that runs it.

A later call may reuse rows only if all three are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import secrets
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from c4b._compilation import sources
from c4b.evidence.sets.confidence_set import PythonSet
from c4b.evidence.sets.table import get_set
from c4b.study.spec.plan import PythonGate, Study
from c4b.study.world import candidate_sources


def plan(study: Study) -> dict[str, Any]:
    """A study as plain data, without the names and the number of episodes.

    The rows do not depend on these.
    """
    plain: dict[str, Any] = json.loads(json.dumps(study.to_dict()))
    return {key: value for key, value in plain.items() if key not in ("name", "title", "episodes")}


@cache
def code() -> str:
    """Digest of the source that runs an episode and of NumPy's version.

    NumPy's version determines the random streams.
    """
    engine = sources.PACKAGE / "study" / "engine" / "chunk.py"
    digest = hashlib.sha256(np.__version__.encode())
    digest.update(sources.digest(sources.closure([engine])).encode())
    return digest.hexdigest()[:16]


def python_code(study: Study) -> str:
    """Digest of the files that define the study's gates and confidence sets in Python.

    Modules that these files import are not included: a change there is not noticed.
    """
    digest = hashlib.sha256()
    for method in study.methods:
        if isinstance(method.parts, PythonGate):
            digest.update(_source(method.parts.factory().make))
            if method.parts.names_a_factory:  # what it makes gates of is in the module beside it
                digest.update(_source(sys.modules[str(method.parts.source).partition(":")[0]]))
    for name in sorted({m.confidence_in(s) or "" for m in study.methods for s in study.settings} - {""}):
        entry = get_set(name)
        if isinstance(entry, PythonSet):
            functions: list[Callable[..., object] | None] = [entry.ridges, entry.mixing]
            functions += [entry.extra_size, entry.rebuild, entry.update]
            for function in functions:
                digest.update(_source(function))
    return digest.hexdigest()


def _source(make: Callable[..., object] | ModuleType | None) -> bytes:
    """The file of a module, a class or a function; where there is none, its own source.

    If neither can be read, a number that no other process has: such rows are never reused.
    """
    if make is None:
        return b""
    function = make.func if isinstance(make, partial) else make
    try:
        file = inspect.getsourcefile(function)
        if file is not None and Path(file).is_file():
            return Path(file).read_bytes()
        if inspect.getfile(function) in ("<string>", "<stdin>"):  # Python 3.13 finds some other text
            return _NO_SOURCE
        return inspect.getsource(function).encode()
    except (OSError, TypeError):
        return _NO_SOURCE


_NO_SOURCE = secrets.token_bytes(16)


def identity(study: Study) -> str:
    """A digest of all that rows depend on: two calls with the same identity give the same rows."""
    digest = hashlib.sha256(code().encode())
    digest.update(python_code(study).encode())
    digest.update(json.dumps(plan(study), sort_keys=True).encode())
    for generator, source in sorted({(s.generator, s.source or "") for s in study.settings}):
        digest.update(candidate_sources.content_digest(generator, source))
    for file in sorted({s.baselines for s in study.settings if s.baselines is not None}):
        digest.update(candidate_sources.content_digest("file", file))
    return digest.hexdigest()[:16]
