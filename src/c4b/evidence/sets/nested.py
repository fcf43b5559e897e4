"""``nested`` and ``kazerouni``: the paper's ellipsoid of today and of earlier moments, intersected.

With probability at least 1 - delta theta lies in the ellipsoids of all moments at once, so in the
intersection of any of them. Kazerouni et al. (2017) intersect all; kept here are those after 0, 1, 2, 4,
8, ... observations. ``nested`` has the paper's radius (6). ``kazerouni`` has that source's,
``sigma sqrt(d' log((1 + (n + 1) D^2 / lambda) / delta)) + sqrt(lambda) S`` with D the longest row so far
and d' = max(d, 2), which is never smaller than (6): docs/theory.md, "The field".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from c4b._validate import Array
from c4b.evidence.sets.confidence_set import PythonSet, SetView
from c4b.evidence.sets.table import register_set

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

KEPT = 15
"""Earlier ellipsoids; from 2^15 observations on the oldest are replaced."""
LAST, LONGEST = 0, 1
"""Entries of ``extra``: how many ellipsoids were kept so far, and D^2."""
ROUNDING = 1e-9
"""Relative allowance for rounding in a radius."""


def _ridges(model: LinearModel) -> Array:
    return np.full(1 + KEPT, model.ridge)


def _extra_size(dim: int) -> int:
    return 2


def _log_det_radius(view: SetView, log_det: float) -> float:
    """sigma gamma of (6)."""
    model = view.model
    return model.noise * math.sqrt(log_det - 2.0 * math.log(model.delta))


def _source_radius(view: SetView, log_det: float) -> float:
    model = view.model
    growth = 1.0 + (view.count + 1.0) * view.extra[LONGEST] / model.ridge
    return model.noise * math.sqrt(max(model.dim, 2) * math.log(growth / model.delta))


def _remember_longest(view: SetView, x: Array, y: float) -> None:
    view.extra[LONGEST] = max(view.extra[LONGEST], float(x @ x))


def _rebuild(radius: Callable[[SetView, float], float]) -> Callable[[SetView], None]:
    def rebuild(view: SetView) -> None:
        """Today's ellipsoid first, kept once the observations have doubled."""
        model, n = view.model, view.count
        shape = view.gram + model.ridge * np.eye(model.dim)
        sign, log_det = np.linalg.slogdet(shape / model.ridge)
        if sign == 1.0 and math.isfinite(log_det):
            view.inverse[0] = np.linalg.inv(shape)
            view.estimate[0] = view.inverse[0] @ view.moment
            bias = math.sqrt(model.ridge) * model.norm_bound + model.misspecification * math.sqrt(n)
            view.radius[0] = (1.0 + ROUNDING) * (radius(view, max(log_det, 0.0)) + bias)
        else:
            view.radius[0] = np.nan
        if n == 0:
            view.radius[1:] = view.radius[0]
        due = n.bit_length()  # 1 at 1, 2 from 2 on, 3 from 4 on
        if due > view.extra[LAST]:
            slot = 1 + due % KEPT
            view.inverse[slot], view.estimate[slot] = view.inverse[0], view.estimate[0]
            view.radius[slot] = view.radius[0]
            view.extra[LAST] = due

    return rebuild


NESTED = register_set(
    PythonSet(
        "nested",
        "the paper's set, intersected with those of earlier moments",
        _ridges,
        rebuild=_rebuild(_log_det_radius),
        extra_size=_extra_size,
    )
)
KAZEROUNI = register_set(
    PythonSet(
        "kazerouni",
        "the set of Kazerouni et al. (2017): their radius, intersected over time",
        _ridges,
        rebuild=_rebuild(_source_radius),
        update=_remember_longest,
        extra_size=_extra_size,
    )
)
