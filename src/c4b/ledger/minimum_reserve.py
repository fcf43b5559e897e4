"""The smallest reserve for which a sequence of fixed certificates is feasible: (14)."""

import math

import numpy as np

from c4b import _validate


def minimum_reserve(certificates: object) -> float:
    """(14): max{0, max_t of -(L_1 + ... + L_t)} for certificates L_1..L_T, shape (T,).

    Where rounding would let a bank that starts with it fall below 0, it is larger by about that much.

    >>> minimum_reserve([-1.0, 0.5, -0.75, 2.0])
    1.25
    """
    values = _validate.series("certificates", certificates)
    if not len(values):
        return 0.0
    reserve, more = max(0.0, float(np.max(-np.cumsum(values)))), 0.0
    while (lowest := float(np.min(np.cumsum([reserve, *values])))) < 0.0:
        more = max(-lowest, 2.0 * more, math.ulp(reserve))  # doubled: a large bank does not see it
        reserve += more
    return reserve
