"""What callers hold in their hands, as NumPy takes it: frames, sparse matrices, booleans, decisions.

pandas and Polars frames convert themselves. A sparse matrix, as scikit-learn's encoders return it, does
not; nor does NumPy make a vector of a frame with one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from c4b.errors import InvalidInput


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


def check_names(prefix: str, candidates: Any, baseline: Any) -> None:
    """Refuse a frame and a baseline whose features have names, but not the same in the same order: names
    are not looked at otherwise."""
    if isinstance(candidates, list | np.ndarray) or isinstance(baseline, list | np.ndarray):
        return
    ours, theirs = _names(candidates, "columns"), _names(baseline, "columns") or _names(baseline, "index")
    if ours and theirs and ours != theirs:
        remedy = f"must have the features of the candidates in the same order: {', '.join(ours)}"
        raise InvalidInput(f"{prefix}baseline", theirs, remedy)


def check_rows(features: Any, rewards: Any) -> None:
    """Refuse a frame and a Series of the same rows in another order: pandas would align them by their
    index, which is not looked at otherwise."""
    ours: Any = getattr(features, "index", None)
    theirs: Any = getattr(rewards, "index", None)
    if not (hasattr(ours, "equals") and hasattr(theirs, "equals")) or len(ours) != len(theirs):
        return
    if not ours.equals(theirs) and ours.isin(theirs).all():
        remedy = "has the rows of the features in another order; align them, or give arrays"
        raise InvalidInput("rewards", rewards, remedy)


def _names(value: Any, attribute: str) -> list[str]:
    """Names of features: a frame's columns, or the index of a Series. Empty if they are no texts."""
    names = getattr(value, attribute, None)
    if names is None or callable(names):  # as is the method of lists and tuples
        return []
    listed = list(names)
    return listed if all(isinstance(name, str) for name in listed) else []


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
