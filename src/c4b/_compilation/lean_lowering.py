"""Less work for Numba where it writes code for the optimiser; what is written means the same.

An array is seven numbers and a set is ten arrays. To take them apart at a call and to put them together
behind it is a quarter of all instructions that are written. A kernel that is copied into its callers has
no call in the end, so its arguments are handed over whole. The sizes of types are remembered, and texts
of errors that nobody will read are not coloured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import base, errors, lowering

_context: Any = base.BaseContext
_plain_packer: Any = _context.get_arg_packer
_plain_size: Any = _context.get_abi_sizeof
_errors: Any = errors
_lower: Any = lowering.Lower


class Whole(tuple[Any, ...]):
    """Types of arguments that are handed over whole."""

    __slots__ = ()


class LowerWhole(_lower):  # type: ignore[misc]  # Numba has no types
    """Writes a function that takes its arguments whole."""

    def __init__(self, context: Any, library: Any, fndesc: Any, *rest: Any, **options: Any) -> None:
        fndesc.argtypes = Whole(fndesc.argtypes)
        super().__init__(context, library, fndesc, *rest, **options)


class _WholePacker:
    """Does nothing, where Numba's would take arguments apart."""

    def __init__(self, models: Any, kinds: Whole) -> None:
        self.argument_types = tuple(models[kind].get_value_type() for kind in kinds)

    def as_arguments(self, _builder: Any, values: Any) -> tuple[Any, ...]:
        return tuple(values)

    def from_arguments(self, _builder: Any, values: Any) -> list[Any]:
        return list(values)

    def assign_names(self, values: Any, names: Any) -> None:
        for value, name in zip(values, names, strict=True):
            value.name = name


class _Colourless:
    """Numba's scheme of colours, without any."""

    def __getattr__(self, _name: str) -> Any:
        return str


def _packer(self: Any, kinds: Any) -> Any:
    if isinstance(kinds, Whole):
        return _WholePacker(self.data_model_manager, kinds)
    return _plain_packer(self, kinds)


@contextmanager
def lean_lowering() -> Iterator[None]:
    """For the holder of the compiler's lock: nobody else compiles meanwhile."""
    if _context.get_arg_packer is not _plain_packer:  # not the outermost
        yield
        return
    sizes: dict[str, int] = {}

    def size(self: Any, kind: Any) -> int:
        text = str(kind)
        if text not in sizes:
            sizes[text] = _plain_size(self, kind)
        return sizes[text]

    colours = _errors._termcolor_inst
    _context.get_arg_packer, _context.get_abi_sizeof = _packer, size
    _errors._termcolor_inst = _Colourless()
    try:
        yield
    finally:
        _context.get_arg_packer, _context.get_abi_sizeof = _plain_packer, _plain_size
        _errors._termcolor_inst = colours
