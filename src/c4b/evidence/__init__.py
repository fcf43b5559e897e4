"""Observations -> a confidence set -> bounds of linear functions.

It does not depend on budget, baseline or time.
"""

from c4b.evidence.evidence import Evidence
from c4b.evidence.model import LinearModel
from c4b.evidence.sets.adaptive import SET as _ADAPTIVE
from c4b.evidence.sets.confidence_set import ConfidenceSet, PythonSet, SetView
from c4b.evidence.sets.table import CONFIDENCES, is_compiled, register_set, set_names

from c4b.evidence.sets import nested  # isort: skip  (registers its sets)

register_set(_ADAPTIVE)

__all__ = [
    "CONFIDENCES",
    "ConfidenceSet",
    "Evidence",
    "LinearModel",
    "PythonSet",
    "SetView",
    "is_compiled",
    "nested",
    "register_set",
    "set_names",
]
