"""Checks of the public surface. Kernels assume what these functions return."""

import math
import os
from collections.abc import Iterable, Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b.errors import InvalidInput, UnknownName

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_FLOAT64 = np.dtype(np.float64)
LARGEST = 1e100
"""Largest magnitude of a feature or reward: squares and sums of squares stay far from overflow."""
PICTURES = (".png", ".pdf", ".svg")
"""How the names of files end that hold a picture."""


def number(argument: str, value: object, remedy: str) -> float:
    """A finite real number; booleans and text are not numbers, nor are durations, which NumPy counts
    among the integers."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        raise InvalidInput(argument, value, remedy)
    try:
        result = float(value)
    except OverflowError as error:  # an int or fraction that no float can hold
        raise InvalidInput(argument, value, remedy) from error
    if not math.isfinite(result):
        raise InvalidInput(argument, value, remedy)
    return result


def positive(argument: str, value: object, remedy: str) -> float:
    result = number(argument, value, remedy)
    if not 0.0 < result <= LARGEST:
        raise InvalidInput(argument, value, remedy)
    return result


def nonnegative(argument: str, value: object, remedy: str) -> float:
    result = number(argument, value, remedy)
    if not 0.0 <= result <= LARGEST:
        raise InvalidInput(argument, value, remedy)
    return result


def fraction(argument: str, value: object, remedy: str) -> float:
    """A number strictly between 0 and 1."""
    result = number(argument, value, remedy)
    if not 0.0 < result < 1.0:
        raise InvalidInput(argument, value, remedy)
    return result


def boolean(argument: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(argument, value, "must be True or False")
    return bool(value)


def count(argument: str, value: object, least: int, remedy: str) -> int:
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, int | np.integer):
        raise InvalidInput(argument, value, remedy)
    if value < least:
        raise InvalidInput(argument, value, remedy)
    return int(value)


def name(argument: str, value: object, known: Iterable[str]) -> str:
    known = list(known)
    if not isinstance(value, str) or value not in known:
        raise UnknownName(argument, value, "must be one of " + ", ".join(map(repr, known)))
    return value


_NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64, np.complexfloating)
"""What NumPy makes a number of, if it finds it among objects."""


def _is_masked(value: object) -> bool:
    """Whether an entry is masked, of an array or of the arrays in a list."""
    if not isinstance(value, list | tuple):
        return bool(np.ma.is_masked(value))
    kinds = set(map(type, value))  # few, so that most lists take little time
    return any(issubclass(kind, np.ma.MaskedArray) for kind in kinds) and any(map(np.ma.is_masked, value))


def converted(argument: str, value: object, remedy: str) -> Array:
    """To float64 if nothing is lost: NumPy itself reads text and dates, and drops masks and imaginary
    parts."""
    try:
        raw = np.asarray(value)
        lossy = raw.dtype.kind not in "buifO" or _is_masked(value)
        if type(value) is list and raw.dtype == np.float64 and not lossy:  # nothing to convert
            return raw
        if raw.dtype == object:
            lossy = lossy or any(isinstance(each, _NO_NUMBERS) for each in raw.flat)
        with np.errstate(over="ignore"):  # becomes infinite, which is refused as such
            array = None if lossy else raw.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(argument, value, remedy) from error
    if array is None:
        raise InvalidInput(argument, value, remedy)
    return array


def is_ready(candidates: Any, baseline: Any, dim: int) -> bool:
    """Whether both are arrays as ``pool`` and ``point`` return them, so that nothing is to be done."""
    return (
        type(candidates) is np.ndarray
        and type(baseline) is np.ndarray
        and candidates.dtype is baseline.dtype is _FLOAT64
        and baseline.shape == (dim,)
        and candidates.ndim == 2
        and candidates.shape[1] == dim
        and candidates.flags.carray
        and baseline.flags.carray
    )


def _floats(argument: str, value: object, remedy: str) -> Array:
    """An aligned, writeable, C-contiguous float64 array: the one kind the kernels are compiled for."""
    if type(value) is np.ndarray and value.dtype == np.float64:  # the usual case, cheaply
        array: Array = value
    else:
        array = converted(argument, value, remedy)
    if not array.flags.carray:
        array = np.array(array, dtype=np.float64, order="C")
    return array


def _within(argument: str, array: Array, value: object) -> None:
    if array.size and not np.all(np.abs(array) <= LARGEST):  # NaN compares false
        where = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= LARGEST))[0])
        place = f"{argument}{list(where)}" if where else argument
        raise InvalidInput(
            place, float(array[where]), f"must be finite and at most {LARGEST:g} in magnitude"
        )


def point(argument: str, value: Any, dim: int) -> Array:
    """Shape (dim,). Finiteness is left to the kernel, as for ``pool``."""
    remedy = f"must be a vector of {dim} finite numbers, shape ({dim},)"
    array = _floats(argument, value, remedy)
    if array.shape != (dim,):
        raise InvalidInput(argument, value, f"{remedy}; got shape {array.shape}")
    return array


def vector(argument: str, value: object, dim: int) -> Array:
    """Shape (dim,), finite, within LARGEST."""
    array = point(argument, value, dim)
    _within(argument, array, value)
    return array


def pool(argument: str, value: Any, dim: int) -> Array:
    """Shape (K, dim), K >= 0. Finiteness is left to the kernel, which sees every entry anyway."""
    remedy = f"must be a table of K candidates with {dim} features each, shape (K, {dim})"
    array = _floats(argument, value, remedy)
    if array.ndim == 1 and array.size == 0:
        return np.empty((0, dim))
    if array.ndim != 2 or array.shape[1] != dim:
        raise InvalidInput(argument, value, f"{remedy}; got shape {array.shape}")
    return array


def table(argument: str, value: object, dim: int) -> Array:
    """Shape (n, dim), n >= 0, finite, within LARGEST."""
    array = pool(argument, value, dim)
    _within(argument, array, value)
    return array


def series(argument: str, value: object, length: int | None = None) -> Array:
    """Shape (n,), finite, within LARGEST; n is ``length`` when that is given."""
    remedy = "must be a sequence of finite numbers"
    if length is not None:
        remedy += f", one for each of the {length} rows"
    array = _floats(argument, value, remedy)
    if array.ndim != 1 or (length is not None and array.shape[0] != length):
        raise InvalidInput(argument, value, f"{remedy}; got shape {array.shape}")
    _within(argument, array, value)
    return array


def several(argument: str, value: object, remedy: str) -> Iterator[Any]:
    """What can be looped over; arrays without a dimension only seem so."""
    if not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and not value.ndim):
        raise InvalidInput(argument, value, remedy)
    return iter(value)


def pairs(argument: str, value: object, remedy: str) -> list[tuple[Any, Any]]:
    result: list[tuple[Any, Any]] = []
    for n, item in enumerate(several(argument, value, remedy)):
        try:
            first, second = item
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{argument}[{n}]", item, remedy) from error
        result.append((first, second))
    return result


def reward(argument: str, value: object) -> float:
    if type(value) is float and -LARGEST <= value <= LARGEST:  # the usual case, cheaply
        return value
    remedy = f"must be a finite number of at most {LARGEST:g} in magnitude"
    result = number(argument, value, remedy)
    if abs(result) > LARGEST:
        raise InvalidInput(argument, value, remedy)
    return result


def picture_path(argument: str, path: str | os.PathLike[str]) -> None:
    """Refuse a file name whose ending is of no picture."""
    if Path(path).suffix.lower() not in PICTURES:
        raise InvalidInput(argument, os.fspath(path), f"must end in {', '.join(PICTURES)}")
