"""Constants of ``bounded``, ``bounded-2`` and ``bounded-3``: prior scales, shares of delta, reaches c.

Fixed before any data; docs/theory.md, section "Bounded rewards", says what each is for. A version is 0, 1
or 2.
"""

import math

from c4b._compilation.jit import inlined
from c4b.evidence.ellipsoids import BOUNDED_2, BOUNDED_3, Data, Terms

POWERS = (
    (3.0, 30.0, 300.0, 1500.0, 15000.0),
    (3.0, 30.0, 300.0, 1000.0, 10000.0),
    (0.75, 10.0, 300.0, 1000.0, 10000.0),
)
"""Prior scales l in units of lambda w^2, of ``bounded``, ``bounded-2`` and ``bounded-3``. Small ones suit
few rows."""
SCALES = len(POWERS[0])
SHARES_OF_SECOND = (0.16, 0.05, 0.18, 0.27, 0.04)
"""Share of delta that each prior scale of ``bounded-2`` has."""
FEW_ROWS = 0.36
"""Over d: what the first scale of ``bounded-3`` has more, for few rows of few features. All others, the
sums and the bet have the share 1 - 3 / (7 d) of what they have in ``bounded-2``."""
SUM_SHARE_OF_SECOND = 0.13
"""Share of delta that each of the two sums in ``c4b.evidence.sums.totals`` has there."""
LINEARITY_SHARE = 0.04
"""Share of delta that the alarm against means that are not linear has there."""
LOG_SHARES = ((math.log(7.0),) * SCALES, *(tuple(-math.log(share) for share in SHARES_OF_SECOND),) * 2)
"""log(1 / p) of each prior scale: in ``bounded`` scales and sums have the same share."""
LOG_SUM_SHARES = (math.log(7.0), -math.log(SUM_SHARE_OF_SECOND), -math.log(2.0 * SUM_SHARE_OF_SECOND))
"""log(1 / p) of each sum, in ``bounded-3`` of both together."""
LOG_LINEARITY_SHARE = -math.log(LINEARITY_SHARE)
REACHES = (
    (5.0, 5.0, 5.0, 10.0, 21.0),
    (25.0, 16.0, 12.0, 12.0, 16.0),
    (25.0, 20.0, 12.0, 12.0, 16.0),
)
REACH_OF_A_FEATURE = (3.0, 2.0, 2.0)
"""c^2 of each scale is a constant and so much for each feature. A larger c cuts off less of the average
and asks for more data before squared deviations count."""
REACH_OF_FEW_ROWS = 4.0
"""What the first scale of ``bounded-3`` has more: squared deviations hardly count with few rows."""
SAFE = 1.0 + 1e-9
"""Covers a few hundred roundings in numbers that do not cancel."""


@inlined
def version_of(data: Data) -> int:
    """0 for ``bounded``, 1 for ``bounded-2``, 2 for ``bounded-3``."""
    return 2 if data.code == BOUNDED_3 else 1 if data.code == BOUNDED_2 else 0


@inlined
def reach_squared(version: int, dim: int, j: int) -> float:
    """c^2 of scale j."""
    more = REACH_OF_FEW_ROWS * dim if version > 1 and j == 0 else 0.0
    return float(REACHES[version][j] + REACH_OF_A_FEATURE[version] * dim + more)


@inlined
def prior_scale(data: Data, j: int) -> float:
    """l of scale j."""
    scale: float = POWERS[version_of(data)][j] * data.ridges[0] * data.mixing * data.mixing
    return scale


@inlined
def level_of(log_det: float, terms: Terms, version: int, dim: int, j: int) -> float:
    """log det(W / l) + 2 log(1 / (delta p)) of scale j."""
    log_share = LOG_SHARES[version][j] + spared(version, dim)
    if version > 1 and j == 0:
        log_share = -math.log(SHARES_OF_SECOND[0] + FEW_ROWS / dim)
    return terms.log_term + log_det + 2.0 * log_share


@inlined
def spared(version: int, dim: int) -> float:
    """What all but the first scale have less of delta, as a logarithm."""
    return -math.log1p(-FEW_ROWS / ((1.0 - SHARES_OF_SECOND[0]) * dim)) if version > 1 else 0.0
