"""The table of confidence sets: names to entries, and codes to kernels.

A compiled set is one file in this folder, one line in ``BUILT_IN`` and, where its equations differ, a
branch in the kernels below.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from warnings import warn

import numpy as np

from c4b import _validate
from c4b._compilation.jit import inlined
from c4b._compilation.kernel_parts import BOXES, EIGENBASES
from c4b.errors import InvalidInput
from c4b.evidence.ellipsoids import (
    BOUNDED,
    BOX,
    CONSTRAINED,
    MIXTURE,
    SELF_NORMALIZED,
    SEVERAL_RIDGES,
    UNBIASED,
    Data,
    Region,
    Terms,
)
from c4b.evidence.sets import (
    bounded,
    box,
    constrained,
    mixture,
    self_normalized,
    several_ridges,
    unbiased,
)
from c4b.evidence.sets.bounded import recentre_bounded
from c4b.evidence.sets.box import recentre_box
from c4b.evidence.sets.confidence_set import ConfidenceSet, PythonSet
from c4b.evidence.sets.constrained import recentre_constrained
from c4b.evidence.sets.mixture import recentre_mixture
from c4b.evidence.sets.self_normalized import recentre_self_normalized
from c4b.evidence.sets.several_ridges import recentre_several_ridges
from c4b.evidence.sets.unbiased import recentre_unbiased

BUILT_IN: tuple[ConfidenceSet, ...] = (
    self_normalized.SET, mixture.SET, constrained.SET, unbiased.SET, several_ridges.SET,
    bounded.SET, bounded.SECOND, bounded.THIRD, box.SET,
)  # fmt: skip

CONFIDENCES = tuple(entry.name for entry in BUILT_IN if not (entry.needs_range or entry.one_hot))
"""Names of the compiled sets for any features and noise of a declared scale; each is valid for every t at
once with probability >= 1 - delta."""

ENTRY_POINTS = "c4b.sets"
"""Entry-point group of installed packages that offer sets; each entry point names a ``PythonSet``."""

_TABLE: dict[str, ConfidenceSet] = {entry.name: entry for entry in BUILT_IN}
_loaded_entry_points = False


# -- names -------------------------------------------------------------------------------------


def register_set(entry: PythonSet) -> PythonSet:
    """Make a set written in Python available by its name. Raises ``InvalidInput`` if the name is
    taken."""
    if not isinstance(entry, PythonSet):
        raise InvalidInput("entry", entry, "must be a c4b.evidence.PythonSet")
    if not isinstance(entry.name, str) or not entry.name.strip():
        raise InvalidInput("name", entry.name, "must be a non-empty text")
    if _TABLE.get(entry.name, entry) != entry:
        raise InvalidInput("name", entry.name, "is taken; choose another name")
    _TABLE[entry.name] = entry
    return entry


def set_names() -> list[str]:
    """All known sets: compiled, registered, and offered by installed packages."""
    _load_entry_points()
    return list(_TABLE)


def checked_name(argument: str, value: object) -> str:
    """``value`` if it names a set; else an ``UnknownName`` about ``argument``."""
    if isinstance(value, str) and value in _TABLE:
        return value
    return _validate.name(argument, value, set_names())


def get_set(name: str) -> ConfidenceSet:
    """The entry of a name."""
    return _TABLE[checked_name("confidence", name)]


def is_compiled(name: str) -> bool:
    """Whether a set's observations are absorbed by compiled code."""
    return get_set(name).is_compiled


def _load_entry_points() -> None:
    """Register what installed packages offer, once; what cannot be loaded is left out with a warning."""
    global _loaded_entry_points  # noqa: PLW0603 (a cache of this process)
    if _loaded_entry_points:
        return
    _loaded_entry_points = True
    for point in entry_points(group=ENTRY_POINTS):
        try:
            register_set(point.load())
        except Exception as error:  # noqa: BLE001 (somebody else's code can raise anything)
            warn(f"the set {point.name!r} ({point.value}) cannot be used: {error}", stacklevel=3)


# -- kernels -----------------------------------------------------------------------------------


@inlined
def recentre_by_code(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """Centres and radii; returns m V^-1 m of the first ellipsoid and its centre's rounding error."""
    if EIGENBASES and data.code >= BOUNDED:
        return recentre_bounded(region, data, terms), 0.0
    if EIGENBASES and data.code == SEVERAL_RIDGES:
        return recentre_several_ridges(region, data, terms), 0.0
    return recentre_one_ridge(region, data, terms)


@inlined
def recentre_one_ridge(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """``recentre_by_code`` for the first four sets and ``box``. An unknown code has no radius."""
    if data.code == SELF_NORMALIZED:
        return recentre_self_normalized(region, data, terms)
    if data.code == MIXTURE:
        return recentre_mixture(region, data, terms)
    if EIGENBASES and data.code == CONSTRAINED:
        return recentre_constrained(region, data, terms), 0.0
    if EIGENBASES and data.code == UNBIASED:
        return recentre_unbiased(region, data, terms), 0.0
    if BOXES and data.code == BOX:
        return recentre_box(region, data, terms)
    region.radius[:] = np.nan
    region.reach[:] = np.nan
    return np.nan, np.nan
