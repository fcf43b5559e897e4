"""How kernels are compiled: once, for everybody who calls them, and cached on disk.

A kernel that Python calls is one module of machine code. The kernels that it calls are handed to it as
they were written, are optimised there and nowhere else, and have no machine code of their own.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding, ir
from numba import types
from numba.core import (
    codegen,
    compiler,
    compiler_lock,
    compiler_machinery,
    config,
    registry,
    typed_passes,
)
from numba.core import untyped_passes as untyped
from numba.extending import intrinsic

from c4b._compilation import compile_cache as cache
from c4b._compilation import compile_notice
from c4b._compilation.call_types import remembered_call_types
from c4b._compilation.lean_lowering import LowerWhole, lean_lowering

F = TypeVar("F", bound=Callable[..., object])

compile_notice.listen()


def _typed_fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


_make: Any = intrinsic
_config: Any = config
fma: Callable[[float, float, float], float] = _make(_typed_fma)
"""Fused multiply-add for kernels. Written out where it is wanted: if the compiler contracted products and
sums as it likes, two copies of one kernel could round differently."""


def _typed_larger(_context: Any, a: Any, b: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        known = ("nnan", "nsz")
        is_larger = builder.fcmp_ordered(">", *arguments, flags=known)
        return builder.select(is_larger, *arguments, flags=known)

    return types.float64(types.float64, types.float64), generate


larger: Callable[[float, float], float] = _make(_typed_larger)
"""The larger of two numbers, neither of them NaN; of two zeros either one. The compiler knows that, and
finds the largest of many side by side."""


Four = tuple[float, float, float, float]


def _typed_quotients(_context: Any, a: Any, b: Any) -> Any:
    """Division is exact to the last bit in every lane, so these are the quotients of single numbers."""
    four = types.UniTuple(types.float64, 4)

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        number = ir.DoubleType()
        lanes = [ir.Constant(ir.VectorType(number, 4), ir.Undefined)] * 2
        for n in range(4):
            for side in range(2):
                part = builder.extract_value(arguments[side], n)
                lanes[side] = builder.insert_element(lanes[side], part, ir.Constant(ir.IntType(32), n))
        divided, made = builder.fdiv(*lanes), ir.Constant(ir.ArrayType(number, 4), ir.Undefined)
        for n in range(4):
            part = builder.extract_element(divided, ir.Constant(ir.IntType(32), n))
            made = builder.insert_value(made, part, n)
        return made

    return four(four, four), generate


quotients: Callable[[Four, Four], Four] = _make(_typed_quotients)
"""Four quotients a_n / b_n in the time of one. The compiler does so by itself in loops that are long."""


# -- what Python calls, and what kernels call --------------------------------------------------


def kernel(function: F) -> F:
    """Compile ``function`` on first call: float64, IEEE semantics (no fast-math), without the GIL.

    For kernels that Python calls. A kernel allocates nothing, so it is compiled without reference
    counts: their atomic operations on every view would cost more than the arithmetic of a round.
    """
    return _for_python(function, _Entry, forceinline=True, _nrt=False)


def kernel_of_known_shapes(function: F) -> F:
    """A kernel that Python calls and whose loops are over constant shapes: ``pooled`` kernels are copied
    into it, so that their loops are unrolled. No array that it writes to may share memory with another
    argument: the compiler relies on it, and need not read again what was not written."""
    return _for_python(function, _EntryOfKnownShapes, forceinline=True, _nrt=False)


def allocating(function: F) -> F:
    """A kernel that Python calls and that makes arrays of its own."""
    return _for_python(function, _Entry, forceinline=False)


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


def pooled(function: F) -> F:
    """``called``, except in a ``kernel_of_known_shapes``: for loops over candidates or few features."""
    return _for_kernels(function, _Pooled, forceinline=False, _nrt=False)


def is_compiled(function: Callable[..., object]) -> bool:
    """Whether a kernel runs at once: compiled in this process before, or found in the cache."""
    made: Any = function
    if made.signatures:
        return True
    module = made.py_func.__module__.rsplit(".", 1)[-1]
    return cache.holds(module, made.py_func.__qualname__)


# -- how -----------------------------------------------------------------------------------------


class _Kernel(registry.CPUDispatcher):
    """Compiles one version of a kernel for all constants that kernels call it with."""

    decorator: Callable[[Any], Any]
    """Makes the same kind of kernel from a function."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return super().get_call_template(tuple(types.unliteral(a) for a in args), kws)

    def compile(self, sig: Any) -> Any:
        """With few collections of garbage: they take an eighth of the time and find nothing."""
        with compiler_lock.global_compiler_lock, _switched_on(), remembered_call_types(), lean_lowering():
            before = gc.get_threshold()
            gc.set_threshold(50_000, 20, 100)
            try:
                return super().compile(sig)
            finally:
                gc.set_threshold(*before)


class KernelForKernels(_Kernel):
    """A kernel without machine code of its own, and another one, with it, for calls from Python."""

    def __call__(self, *args: Any) -> Any:
        return self.from_python(*args)

    @property
    def from_python(self) -> Any:
        made = self.__dict__.get("_from_python")
        if made is None:
            counted = self.targetoptions.get("_nrt", True)
            made = self._from_python = _for_python(self.py_func, _Entry, _nrt=counted)
        return made


def _for_python(function: F, pipeline: type, **options: Any) -> F:
    made = _compiled(function, pipeline_class=pipeline, **options)
    made.__class__ = _Kernel
    made.decorator = partial(_for_python, pipeline=pipeline, **options)
    made._cache = cache.KernelCache(function, allocates=options.get("_nrt", True))
    return cast(F, made)


def _for_kernels(function: F, pipeline: type, **options: Any) -> F:
    made = _compiled(function, pipeline_class=pipeline, no_cpython_wrapper=True, **options)
    made.__class__ = KernelForKernels
    made.decorator = partial(_for_kernels, pipeline=pipeline, **options)
    return cast(F, made)


def _compiled(function: Any, **options: Any) -> Any:
    njit: Any = numba.njit
    with _switched_on():
        return njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


@contextmanager
def _switched_on() -> Iterator[None]:
    """Also where NUMBA_DISABLE_JIT is set, which people do to debug kernels of their own. Python has no
    fused multiply-add, and would raise where a kernel gets an infinity."""
    before, _config.DISABLE_JIT = _config.DISABLE_JIT, False
    try:
        yield
    finally:
        _config.DISABLE_JIT = before


class _Library(codegen.JITCodeLibrary):
    """Functions are tidied before they are linked, and optimised only after that."""

    def _optimize_functions(self, ll_module: Any) -> None:
        if not hasattr(binding, "create_new_function_pass_manager"):  # llvmlite < 0.45
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes = binding.create_new_function_pass_manager()
                passes.add_sroa_pass()
                passes.add_simplify_cfg_pass()
                passes.add_instruction_combine_pass()
                passes.run(function, builder)


class _InnerLibrary(_Library):
    """What callers copy. It is neither linked nor optimised, nor made into machine code."""

    functions: set[str] | None = None
    """Names of all functions in libraries of this kind, where that matters."""

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        self._finalized = True

    def add_llvm_module(self, ll_module: Any) -> None:
        if self.functions is not None:
            self.functions.update(f.name for f in ll_module.functions if not f.is_declaration)
        super().add_llvm_module(ll_module)

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment()


class _WithoutEnvironment:
    """Takes the environment that machine code would have; Numba's functions need it for objects only."""

    def set_env(self, _name: str, _environment: Any) -> None:
        pass


class _CalledLibrary(_InnerLibrary):
    functions = set()  # noqa: RUF012 (of all libraries)


class _PooledLibrary(_InnerLibrary):
    functions = set()  # noqa: RUF012 (of all libraries)


class _EntryLibrary(_Library):
    """The machine code of a kernel that Python calls.

    Everything else in it is local, so that the optimiser may drop what no call needs: arguments that are
    not used, functions that were copied everywhere.
    """

    known_shapes = False

    def add_ir_module(self, ir_module: Any) -> None:
        names = {function.name for function in ir_module.functions if not function.is_declaration}
        self.own_names = self.__dict__.get("own_names", set()) | names
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        libraries = dict.fromkeys(self._linking_libraries)
        waiting = list(libraries)
        while waiting:
            library = waiting.pop()
            if isinstance(library, _InnerLibrary):
                more = [other for other in library._linking_libraries if other not in libraries]
                libraries.update(dict.fromkeys(more))
                waiting += more
        self._linking_libraries = list(libraries)
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self.own_names:
                function.linkage = "internal"
                if function.name in _CalledLibrary.functions:
                    function.add_function_attribute("noinline")
                elif function.name in _PooledLibrary.functions:
                    function.add_function_attribute("alwaysinline" if self.known_shapes else "noinline")
        super()._optimize_final_module()


class _EntryOfKnownShapesLibrary(_EntryLibrary):
    """Loops over few features are unrolled here; what they leave is made into vectors again, without
    changing any order of operations."""

    known_shapes = True

    def _optimize_final_module(self) -> None:
        before, _config.SLP_VECTORIZE = _config.SLP_VECTORIZE, 1
        try:
            super()._optimize_final_module()
        finally:
            _config.SLP_VECTORIZE = before


_NEEDLESS = (
    untyped.WithLifting,
    untyped.InlineClosureLikes,
    untyped.RewriteSemanticConstants,
    untyped.MakeFunctionToJitFunction,
    untyped.InlineInlinables,
    untyped.FindLiterallyCalls,
    untyped.LiteralUnroll,
    untyped.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
)
"""Numba's passes for what no kernel contains: closures, contexts, literal types, fused array expressions.
They take a tenth of the time."""


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringWhole(typed_passes.NativeLowering):
    """Numba's, for kernels that are copied into their callers."""

    _name = "lowering_whole"

    @property
    def lowering_class(self) -> type[LowerWhole]:
        return LowerWhole


def _pipeline(name: str, library: type[codegen.JITCodeLibrary]) -> type[compiler.CompilerBase]:
    """Numba's pipeline with libraries of a class of ours, and without passes that find nothing."""

    @compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
    class Into(compiler_machinery.LoweringPass):
        _name = f"into_{name}"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            state.flags.noalias = library is _EntryOfKnownShapesLibrary
            return False

    class Pipeline(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [entry for entry in passes.passes if entry[0] not in _NEEDLESS]
            if library is _InnerLibrary:
                passes.passes = [
                    (_LoweringWhole, what) if done is typed_passes.NativeLowering else (done, what)
                    for done, what in passes.passes
                ]
            passes.add_pass_after(Into, typed_passes.AnnotateTypes)
            passes.finalize()
            return [passes]

    return Pipeline


_Entry = _pipeline("entry", _EntryLibrary)
_EntryOfKnownShapes = _pipeline("entry_of_known_shapes", _EntryOfKnownShapesLibrary)
_Inner = _pipeline("inner", _InnerLibrary)
_Called = _pipeline("called", _CalledLibrary)
_Pooled = _pipeline("pooled", _PooledLibrary)
