"""How kernels are compiled: once, for everybody who calls them, and cached on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import compiler, compiler_machinery, typed_passes
from numba.extending import intrinsic

from c4b import _compile_cache as cache
from c4b import _compile_notice

F = TypeVar("F", bound=Callable[..., object])

_compile_notice.listen()


def _typed_fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


_make: Any = intrinsic
fma: Callable[[float, float, float], float] = _make(_typed_fma)
"""Fused multiply-add for kernels. Written out where it is wanted: if the compiler contracted products and
sums as it likes, two copies of one kernel could round differently."""


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _LeaveToCallers(compiler_machinery.LoweringPass):
    """Give the function a library that is not optimised."""

    _name = "leave_optimisation_to_callers"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library.enable_object_caching()
        library._optimize_final_module = lambda: None
        state.library = library
        return False


class _Inner(compiler.CompilerBase):
    """Numba's pipeline without the optimiser. A function that is copied into every caller is optimised
    there; to optimise it alone before, on each level of calls, took most of the time of compiling.
    """

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_LeaveToCallers, typed_passes.AnnotateTypes)
        passes.finalize()
        return [passes]


def kernel(function: F) -> F:
    """Compile ``function`` on first call: float64, IEEE semantics (no fast-math), without the GIL.

    For kernels that Python calls. A kernel allocates nothing, so it is compiled without reference
    counts: their atomic operations on every view would cost more than the arithmetic of a round.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def inlined(function: F) -> F:
    """A kernel that kernels call: copied into each of them, because a call would hand over every field of
    every array, some sixty words. Python may call it too, slowly, for tests, unless it returns arrays:
    they would not live long enough.
    """
    return _compiled(function, forceinline=True, _nrt=False, pipeline_class=_Inner)


def called(function: F) -> F:
    """A kernel that stays a function of its own: a large one, for a few calls a round."""
    return _compiled(function, _nrt=False)


def allocating(function: F) -> F:
    """A kernel that makes arrays of its own."""
    return _compiled(function)


def _compiled(function: F, **options: Any) -> F:
    njit: Any = numba.njit
    made: Any = njit(nogil=True, error_model="numpy", **options)(function)
    if hasattr(made, "py_func"):  # not where compiling is switched off
        made._cache = cache.KernelCache(function)
    return cast(F, made)


def is_compiled(function: Callable[..., object]) -> bool:
    """Whether a kernel runs at once: compiled in this process before, or found in the cache."""
    made: Any = function
    if getattr(made, "signatures", True):  # a plain function, where compiling is switched off
        return True
    module = made.py_func.__module__.rsplit(".", 1)[-1]
    return any(Path(cache.FOLDER).rglob(f"{module}.{made.py_func.__qualname__}-*.nbc"))
