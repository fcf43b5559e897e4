"""Policies of the compiled family that need neither arms nor a horizon."""

from c4b.evidence import is_compiled
from c4b.policies import Composition, get, names

_FOUND = [spec for name in names() if isinstance(spec := get(name), Composition)]
COMPOSITIONS = [spec.name for spec in _FOUND if spec.needs <= {"baseline_mean"}]
"""Names of those that play with any features, under any terms, for any number of rounds."""
COMPILED = [
    spec.name
    for spec in _FOUND
    if spec.name in COMPOSITIONS and (spec.confidence is None or is_compiled(spec.confidence))
]
"""Of these, the names of those whose set is compiled, too."""
