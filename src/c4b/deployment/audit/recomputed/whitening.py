"""Whiten matrices above a known one. The inverse always exists, however large their entries are."""

from __future__ import annotations

from typing import Any

import numpy as np

from c4b._validate import Array


def whitened(shapes: Array, least: Any) -> tuple[Array, Array]:
    """(R, log det V), shapes (..., d, d) and (...), with R' R = V^-1 for symmetric V >= ``least`` I.

    Rounding can make an eigenvalue smaller than ``least``, (...) or a number; then it counts as that.
    """
    values, basis = np.linalg.eigh(shapes)
    values = np.maximum(values, np.asarray(least)[..., None])
    rows = np.swapaxes(basis, -1, -2) / np.sqrt(values)[..., None]
    return rows, np.asarray(np.sum(np.log(values), axis=-1))
