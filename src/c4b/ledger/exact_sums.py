"""Sums that do not forget what is small beside them: a number as an unevaluated pair high + low."""

from c4b._compilation.jit import inlined


@inlined
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as it rounds, and what rounding took from it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def plus(high: float, low: float, value: float) -> tuple[float, float]:
    """The unevaluated sum high + low, plus value; ``high`` is the sum as it rounds."""
    total, lost = two_sum(high, value)
    return two_sum(total, low + lost)
