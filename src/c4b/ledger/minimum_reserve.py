"""The smallest reserve for which a sequence of fixed certificates is feasible: (14)."""

import numpy as np

from c4b import _validate


def minimum_reserve(certificates: object) -> float:
    """(14): max{0, max_t of -(L_1 + ... + L_t)} for certificates L_1..L_T, shape (T,).

    >>> minimum_reserve([-1.0, 0.5, -0.75, 2.0])
    1.25
    """
    values = _validate.series("certificates", certificates)
    if not len(values):
        return 0.0
    return max(0.0, float(np.max(-np.cumsum(values))))
