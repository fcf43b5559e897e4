"""Bounds over a box: an interval for every coordinate of theta (``c4b.evidence.sets.box``).

L(v) is the sum of ``v_i low_i`` where v_i > 0 and ``v_i high_i`` where v_i < 0. Where nothing was seen of
coordinate i, ``high_i`` is UNTRIED: certificates take S instead, which every entry of theta is within;
scores take it as it is, so that optimism tries such an arm first.
"""

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.ellipsoids import Region

UNTRIED = 1e12
"""The upper end of an interval without data; any number is sound, because S stands for it."""


@inlined
def is_box(region: Region) -> bool:
    """Whether ``region.totals`` holds intervals: d lower ends, then d upper ends."""
    return not region.spectral and len(region.totals) > 0


@inlined
def _ends(region: Region, dim: int, i: int) -> tuple[float, float]:
    """What coordinate i lies between."""
    high = region.totals[dim + i]
    return region.totals[i], high if high < UNTRIED else region.norm_bound


@called
def box_interval(region: Region, v: Array) -> tuple[float, float]:
    """(L(v), U(v))."""
    low, high, size, dim = 0.0, 0.0, 0.0, len(v)
    for i in range(dim):
        if v[i] != 0.0:
            least, most = _ends(region, dim, i)
            a, b = v[i] * least, v[i] * most
            low += min(a, b)
            high += max(a, b)
            size += max(abs(a), abs(b))
    rounding = (dim + 2) * UNIT * size
    return low - rounding, high + rounding


@called
def pool_box_lower(
    region: Region, pool: Array, base: float, offset: Array, row: int, out: Array, anew: bool
) -> None:
    """out[row, k] = max(out[row, k], base + L(offset + x_k)); pool (d, K), offset (d,) or empty.

    ``base`` has its own rounding taken off already. An entry of the offset may be off by two roundings of
    itself, which do not change its sign; so where nothing is known, L is exactly 0.
    """
    dim, size = pool.shape
    for k in range(size):
        low, terms = 0.0, 0.0
        for i in range(dim):
            shift = offset[i] if len(offset) > 0 else 0.0
            weight = pool[i, k] + shift
            least, most = _ends(region, dim, i)
            part = weight * (least if weight > 0.0 else most)
            low += part
            terms += abs(part)
            if shift * pool[i, k] < 0.0:  # cancelled: rounding may have changed the sign
                terms += abs(shift) * most
        value = base + (low - (dim + 8) * UNIT * (terms + abs(base)))
        if anew or value > out[row, k]:
            out[row, k] = value


@called
def pool_box_interval(region: Region, pool: Array, low_row: int, high_row: int, out: Array) -> None:
    """out[low_row, k] = L(x_k), unless ``low_row`` is negative, and out[high_row, k] = U(x_k) with
    UNTRIED for S: a score."""
    dim, size = pool.shape
    for k in range(size):
        low, high, terms = 0.0, 0.0, 0.0
        for i in range(dim):
            x = pool[i, k]
            if x != 0.0:
                least, most = region.totals[i], region.totals[dim + i]
                low += x * (least if x > 0.0 else most)
                high += x * (most if x > 0.0 else least)
                terms += abs(x) * least
        rounding = (dim + 2) * UNIT
        out[high_row, k] = high + rounding * abs(high) if high < UNTRIED else high
        if low_row >= 0:
            out[low_row, k] = low - rounding * terms


@inlined
def box_contains(region: Region, theta: Array) -> bool:
    """Whether every entry of theta lies in its interval."""
    for i in range(len(theta)):
        if not region.totals[i] <= theta[i] <= region.totals[len(theta) + i]:
            return False
    return True
