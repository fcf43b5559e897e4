"""What results are results *of*: the plan, the files it reads and the code that ran it.

Rows may be reused for a later call only if all three are the same.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from c4b.study import candidates
from c4b.study.plan import Study

_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("evidence", "certificates", "ledger", "policies")
_HERE = ("candidates.py", "draws.py", "engine.py", "simulate.py")


def plan(told: dict[str, Any]) -> dict[str, Any]:
    """A study as plain data, without what leaves its rows alone: names and the number of episodes."""
    plain: dict[str, Any] = json.loads(json.dumps(told))
    return {key: value for key, value in plain.items() if key not in ("name", "title", "episodes")}


@cache
def code() -> str:
    """Names the source of everything that takes part in an episode, and NumPy's streams."""
    paths = [path for room in _ROOMS for path in sorted((_PACKAGE / room).rglob("*.py"))]
    paths += [_PACKAGE / "study" / name for name in _HERE]
    digest = hashlib.sha256(np.__version__.encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def identity(study: Study) -> str:
    digest = hashlib.sha256(code().encode())
    digest.update(json.dumps(plan(study.to_dict()), sort_keys=True).encode())
    for generator, source in sorted({(s.generator, s.source or "") for s in study.settings}):
        digest.update(candidates.content(generator, source))
    return digest.hexdigest()[:16]
