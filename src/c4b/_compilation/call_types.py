"""Types of calls, remembered while kernels are compiled.

Numba looks for the type of ``a * b`` anew at every place, among all functions that are registered for the
operator; that is a fifth of the time that a kernel takes to compile. The answer depends only on
the types of the operands and on the flags of compilation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core import targetconfig

_functions: Any = types.Function
_stack: Any = targetconfig.ConfigStack
_plain: Any = _functions.get_call_type
_known: dict[Any, tuple[Any, Any]] = {}
"""(function, types of arguments, flags) -> signature, and the key of what implements it."""


def _remembered(self: Any, context: Any, args: Any, kws: Any) -> Any:
    flags = _stack.top_or_none()
    if kws or flags is None:
        return _plain(self, context, args, kws)
    key = self, args, context, str(flags._values)
    if key not in _known:
        found = _plain(self, context, args, kws)
        _known[key] = found, self.get_impl_key(found)
    signature, implementation = _known[key]
    self._impl_keys[signature.args] = implementation
    return signature


@contextmanager
def remembered_call_types() -> Iterator[None]:
    """For the holder of the compiler's lock: nobody else compiles meanwhile."""
    outermost = "get_call_type" not in types.Function.__dict__
    if outermost:
        _functions.get_call_type = _remembered
    try:
        yield
    finally:
        if outermost:
            del _functions.get_call_type
            _known.clear()
