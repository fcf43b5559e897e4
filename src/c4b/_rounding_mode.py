"""Whether this thread rounds as the proofs assume: to the nearest number, as every process begins."""

from c4b.errors import C4BError

_TINY = 2.0**-60
_ONE = 1.0
"""No literals below: Python would compute with them when it compiles this file."""


def check_rounds_to_nearest() -> None:
    """Raise ``C4BError`` if something in this process, such as interval arithmetic, made this thread
    round up, down or towards zero: then rounding errors are twice as large as is allowed for."""
    if not (_ONE + _TINY == _ONE and _ONE - _TINY == _ONE and -_ONE - _TINY == -_ONE):
        raise C4BError(
            "this thread does not round to nearest, so nothing would be certified; find what changed the "
            "processor's rounding mode (interval arithmetic does) and let it restore FE_TONEAREST"
        )
