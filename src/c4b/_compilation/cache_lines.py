"""Working space for kernels, from the beginning of a line of cache on: its vectors are read faster."""

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array

LINE = 8
"""Numbers in a line of cache."""


def new_space(size: int) -> Array:
    """So many numbers, from the beginning of a line of cache on."""
    raw = np.empty(size + LINE)
    first = -(raw.ctypes.data // raw.itemsize) % LINE
    return raw[first : first + size]


@inlined
def whole_lines(start: int) -> int:
    """``start``, or where the next line of cache begins in a ``new_space``."""
    return (start + LINE - 1) // LINE * LINE
