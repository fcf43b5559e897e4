"""How kernels are compiled: once, for everybody who calls them, and cached on disk.

A kernel that Python calls is one module of machine code. The kernels that it calls are handed to it as
they were written, are optimised there and nowhere else, and have no machine code of their own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import codegen, compiler, compiler_machinery, registry, typed_passes
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


# -- what Python calls, and what kernels call --------------------------------------------------


def kernel(function: F) -> F:
    """Compile ``function`` on first call: float64, IEEE semantics (no fast-math), without the GIL.

    For kernels that Python calls. A kernel allocates nothing, so it is compiled without reference
    counts: their atomic operations on every view would cost more than the arithmetic of a round.
    """
    return _for_python(function, forceinline=True, _nrt=False)


def allocating(function: F) -> F:
    """A kernel that Python calls and that makes arrays of its own."""
    return _for_python(function, forceinline=False)


def inlined(function: F) -> F:
    """A kernel that kernels call: copied into each of them, because a call would hand over every field of
    every array. Python may call it too, slowly, for tests, unless it returns arrays: they would not live
    long enough.
    """
    return _for_kernels(function, _Inner, forceinline=True, _nrt=False)


def called(function: F) -> F:
    """A kernel that stays a function of its own: a large one, or one that many places call."""
    return _for_kernels(function, _Called, forceinline=False, _nrt=False)


def called_allocating(function: F) -> F:
    """``called``, for a kernel that makes arrays of its own."""
    return _for_kernels(function, _Called, forceinline=False)


def is_compiled(function: Callable[..., object]) -> bool:
    """Whether a kernel runs at once: compiled in this process before, or found in the cache."""
    made: Any = function
    if getattr(made, "signatures", True):  # a plain function, where compiling is switched off
        return True
    module = made.py_func.__module__.rsplit(".", 1)[-1]
    return any(Path(cache.FOLDER).rglob(f"{module}.{made.py_func.__qualname__}-*.nbc"))


# -- how -----------------------------------------------------------------------------------------


class _Kernel(registry.CPUDispatcher):
    """Compiles one version of a kernel for all constants that kernels call it with."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return super().get_call_template(tuple(types.unliteral(a) for a in args), kws)


class _KernelForKernels(_Kernel):
    """A kernel without machine code of its own, and another one, with it, for calls from Python."""

    def __call__(self, *args: Any) -> Any:
        return self.from_python(*args)

    @property
    def from_python(self) -> Any:
        made = self.__dict__.get("_from_python")
        if made is None:
            made = self._from_python = _for_python(self.py_func, _nrt=self.targetoptions.get("_nrt", True))
        return made


def _for_python(function: F, **options: Any) -> F:
    made = _compiled(function, pipeline_class=_Entry, **options)
    if hasattr(made, "py_func"):  # not where compiling is switched off
        made.__class__ = _Kernel
        made._cache = cache.KernelCache(function)
    return cast(F, made)


def _for_kernels(function: F, pipeline: type, **options: Any) -> F:
    made = _compiled(function, pipeline_class=pipeline, no_cpython_wrapper=True, **options)
    if hasattr(made, "py_func"):
        made.__class__ = _KernelForKernels
    return cast(F, made)


def _compiled(function: Any, **options: Any) -> Any:
    njit: Any = numba.njit
    return njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


class _EntryLibrary(codegen.JITCodeLibrary):
    """The machine code of a kernel that Python calls.

    Everything else in it is local, so that the optimiser may drop what no call needs: arguments that are
    not used, functions that were copied everywhere.
    """

    def _optimize_final_module(self) -> None:
        own = self.__dict__.get("own_names", ())
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in own:
                function.linkage = "internal"
        super()._optimize_final_module()

    def add_ir_module(self, ir_module: Any) -> None:
        names = {function.name for function in ir_module.functions if not function.is_declaration}
        self.own_names = self.__dict__.get("own_names", set()) | names
        super().add_ir_module(ir_module)


class _InnerLibrary(codegen.JITCodeLibrary):
    """What callers copy. It is neither optimised nor made into machine code."""

    stays_a_function = False

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def add_llvm_module(self, ll_module: Any) -> None:
        if self.stays_a_function:
            for function in ll_module.functions:
                if not function.is_declaration:
                    function.add_function_attribute("noinline")
        super().add_llvm_module(ll_module)

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment()


class _CalledLibrary(_InnerLibrary):
    stays_a_function = True


class _WithoutEnvironment:
    """Takes the environment that machine code would have; Numba's functions need it for objects only."""

    def set_env(self, _name: str, _environment: Any) -> None:
        pass


class _Pipeline(compiler.CompilerBase):
    """Numba's pipeline with a library of ours."""

    into: type[compiler_machinery.CompilerPass]

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(self.into, typed_passes.AnnotateTypes)
        passes.finalize()
        return [passes]


class _Into(compiler_machinery.LoweringPass):
    library: type[codegen.JITCodeLibrary]

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _IntoEntry(_Into):
    _name = "into_entry_library"
    library = _EntryLibrary


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _IntoInner(_Into):
    _name = "into_inner_library"
    library = _InnerLibrary


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _IntoCalled(_Into):
    _name = "into_called_library"
    library = _CalledLibrary


class _Entry(_Pipeline):
    into = _IntoEntry


class _Inner(_Pipeline):
    into = _IntoInner


class _Called(_Pipeline):
    into = _IntoCalled
