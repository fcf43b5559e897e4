"""Kernels without the parts that a caller does not need: there is less to compile.

A part is a module's constant, True, that stands in the conditions of the branches which it needs:
``if BOXES and is_box(region)``. In a specialised kernel it is False, and what only that branch calls is
not compiled. What remains is the same code, with the same bits.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from c4b._compilation.jit import KernelForKernels

F = TypeVar("F", bound=Callable[..., object])


def specialised(kernel: F, name: str, without: tuple[str, ...]) -> F:
    """A copy of a kernel that Python calls, named ``name``, and of all kernels that it calls, in which
    the constants ``without`` are False. Kernels that do not depend on them are shared, not copied."""
    if not hasattr(kernel, "py_func"):  # compiling is switched off
        return kernel
    return cast(F, _copied(kernel, name, without, {}))


def _copied(made: Any, name: str, without: tuple[str, ...], copies: dict[int, Any]) -> Any:
    if id(made) not in copies:
        function = made.py_func
        own = {key: function.__globals__.get(key) for key in function.__code__.co_names}
        changed = {key: False for key, value in own.items() if value is True and key in without}
        for key, value in own.items():
            if isinstance(value, KernelForKernels):
                copy = _copied(value, value.py_func.__qualname__, without, copies)
                if copy is not value:
                    changed[key] = copy
        copies[id(made)] = _remade(made, name, changed) if changed else made
    return copies[id(made)]


def _remade(made: Any, name: str, changed: dict[str, Any]) -> Any:
    function = made.py_func
    copy = FunctionType(
        function.__code__,
        function.__globals__ | changed,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__qualname__, copy.__module__, copy.__doc__ = name, function.__module__, function.__doc__
    return made.decorator(copy)
