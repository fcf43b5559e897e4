"""Shaped views of flat vectors that cost nothing in compiled code.

NumPy's ``reshape`` hides the new shape from the compiler behind a library call. ``shaped_view`` hands it
over as it is: a shape of constants stays constant, so loops over a handful of features are unrolled.
Results cannot depend on that, because no kernel lets the compiler reorder or contract floating-point
operations.
"""

import importlib
import math
from typing import Any

import numba.extending
from numba import types
from numba.core import cgutils

from c4b._validate import Array

_numba: Any = numba.extending
_tools: Any = cgutils


def shaped_view(flat: Array, start: int, shape: tuple[int, ...]) -> Array:
    """``shape`` numbers of a contiguous array from ``start`` on; writing to them writes to it.

    Compiled code does not check that they are there.
    """
    part: Array = flat.reshape(-1)[start : start + math.prod(shape)].reshape(shape)
    return part


@_numba.type_callable(shaped_view)  # type: ignore[untyped-decorator]  # Numba has no types
def _typed(_context: Any) -> Any:
    def window_type(flat: Any, _start: Any, shape: Any) -> Any:
        return types.Array(flat.dtype, len(shape), "C") if flat.layout == "C" else None

    return window_type


@_numba.lower_builtin(shaped_view, types.Array, types.Integer, types.BaseTuple)  # type: ignore[untyped-decorator]
def _lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    arrays: Any = importlib.import_module("numba.np.arrayobj")  # slow: only where something compiles
    source = context.make_array(signature.args[0])(context, builder, arguments[0])
    shape = _tools.unpack_tuple(builder, arguments[2])
    stride = itemsize = context.get_constant(types.intp, context.get_abi_sizeof(source.data.type.pointee))
    strides: list[Any] = []
    for length in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, length)
    made = context.make_array(signature.return_type)(context, builder)
    data = builder.gep(source.data, [arguments[1]], inbounds=True)
    arrays.populate_array(made, data, shape, strides, itemsize, None)
    return made._getvalue()
