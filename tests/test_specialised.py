"""A specialised kernel is the same code without parts, and Numba is left as it was."""

import pytest
from numba import types
from numba.core import base, errors

from c4b._compilation import compile_cache
from c4b._compilation.jit import inlined, kernel
from c4b._compilation.specialised import specialised

PART: bool = True
OTHER: bool = True


@inlined
def _seldom(x: float) -> float:
    return 2.0 * x


@inlined
def _shared(x: float) -> float:
    return x + 1.0


@inlined
def _branch(x: float) -> float:
    if PART and x > 1.0:
        return _seldom(x)
    return _shared(x)


@kernel
def whole(x: float) -> float:
    """Calls all of them."""
    return _branch(x) if OTHER else -1.0


def test_a_part_that_is_left_out_is_not_compiled() -> None:
    assert whole(3.0) == 6.0
    before = len(_seldom.signatures)  # type: ignore[attr-defined]
    smaller = specialised(whole, "smaller", ("PART",))
    assert smaller(0.5) == whole(0.5) == 1.5
    assert smaller(3.0) == 4.0
    assert len(_seldom.signatures) == before  # type: ignore[attr-defined]
    assert smaller.__name__ == "whole"
    assert smaller.py_func.__qualname__ == "smaller"  # type: ignore[attr-defined]


def test_kernels_without_the_part_are_shared() -> None:
    smaller = specialised(whole, "smaller", ("PART",)).py_func.__globals__  # type: ignore[attr-defined]
    assert smaller["_branch"] is not _branch
    assert smaller["_branch"].py_func.__globals__["_shared"] is _shared
    assert specialised(whole, "same", ("NOBODY",)) is whole


def test_numba_is_left_as_it_was() -> None:
    context, colours = base.BaseContext, errors._termcolor_inst
    before = context.get_arg_packer, context.get_abi_sizeof
    assert whole(3.0) == 6.0
    assert "get_call_type" not in types.Function.__dict__

    @kernel
    def impossible(x: float) -> float:
        return x + "text"  # type: ignore[operator]

    with pytest.raises(Exception, match="No implementation"):
        impossible(1.0)
    assert "get_call_type" not in types.Function.__dict__
    assert (context.get_arg_packer, context.get_abi_sizeof) == before
    assert errors._termcolor_inst is colours


def test_what_is_left_out_is_part_of_the_caches_name() -> None:
    names = {path.name for path in compile_cache.kernel_files()}
    assert {
        "decide_kernels.py",
        "specialised.py",
        "kernel_parts.py",
        "call_types.py",
    } <= names
    assert "lean_lowering.py" in names
