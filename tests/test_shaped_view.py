"""``shaped_view``: the same numbers in Python and in compiled code, and truly a view."""

import numpy as np
import pytest

from c4b._compilation.jit import kernel
from c4b._compilation.shaped_view import shaped_view


@kernel
def written(flat: np.ndarray, start: int, rows: int, columns: int) -> float:
    part = shaped_view(flat, start, (rows, columns))
    total = 0.0
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            total += part[i, j]
            part[i, j] = 10.0 * i + j
    return total


@pytest.mark.parametrize(("start", "rows", "columns"), [(0, 1, 1), (3, 2, 4), (5, 3, 2), (0, 0, 7)])
def test_compiled_and_plain_windows_agree(start: int, rows: int, columns: int) -> None:
    flat = np.arange(1.0, 15.0)
    plain = shaped_view(flat, start, (rows, columns))
    assert plain.shape == (rows, columns)
    assert plain.sum() == written(flat, start, rows, columns)
    assert np.array_equal(plain, np.add.outer(10.0 * np.arange(rows), np.arange(columns)))
    inside = np.zeros(14, dtype=bool)
    inside[start : start + rows * columns] = True
    assert np.array_equal(flat[~inside], np.arange(1.0, 15.0)[~inside])
