"""What callers hold in their hands, as NumPy takes it: frames, sparse matrices, booleans, decisions.

pandas and Polars frames convert themselves. A sparse matrix, as scikit-learn's encoders return it, does
not; nor does NumPy make a vector of a frame with one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def dense(value: Any) -> Any:
    """A sparse matrix as an array; anything else unchanged."""
    if type(value) is np.ndarray or not hasattr(value, "toarray"):
        return value
    return value.toarray()


def dense_row(value: Any) -> Any:
    """The same for one row of features: a frame or a sparse matrix with one row is that row."""
    if type(value) is np.ndarray or isinstance(value, list | tuple):
        return value
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if len(shape) == 2 and shape[0] == 1 and not isinstance(value, np.ndarray):
        return np.asarray(dense(value))[0]
    return dense(value)


def texts(value: Any) -> Any:
    """Labels in a NumPy array, a Series or an Index as a list; anything else unchanged."""
    for method in ("tolist", "to_list"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def reward(value: Any) -> Any:
    """True and False, as clicks come, as 1.0 and 0.0; anything else unchanged."""
    return float(value) if isinstance(value, bool | np.bool_) else value


def decision_id(value: Any) -> Any:
    """The id of a decision that was given instead of its id; anything else unchanged."""
    return value if isinstance(value, str) else getattr(value, "id", value)
