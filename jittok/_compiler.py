"""Compile a kernel into a code file (see :mod:`jittok._native`). Imports Numba.

Numba types and lowers the kernel and all that it calls to LLVM; then everything is optimised once, as one
module, and emitted as one object file, where Numba alone would optimise and emit every function by itself and
again inside each of its callers. The object is linked here: it is small, and refers to nothing but a few C
functions.

This uses private parts of Numba. Whoever calls :func:`compile_kernel` must take any exception for "not
possible", and use Numba's ordinary way instead.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import codegen, typed_passes, untyped_passes
from numba.core import types as numba_types
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target

from jittok import _jit
from jittok._arguments import table_filler, table_intrinsics
from jittok._linker import link
from jittok._native import MISMATCH, Code, ObjectLayout

types: Any = numba_types


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's passes, without those that find nothing to do in kernels: inner functions, `with`, array expressions."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("kernel")
        for step in _PASSES:
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
_OPTIONS = {
    "pipeline_class": _Pipeline,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Arrays are lent to kernels and never made in them: no reference is counted.
    "_nrt": False,
}


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The functions of one compilation, as they were lowered: neither optimised nor emitted."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def add_llvm_module(self, ll_module: Any) -> None:
        self._final_module.link_in(ll_module)

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _Codegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    _library_class = _Library

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing to set: the code has no environment."""


def helper_dispatcher(function: Callable[..., Any], inline: bool) -> Any:
    """A dispatcher for a function that kernels call, for use inside :func:`compile_kernel` only."""
    return numba.njit(forceinline=inline, **_OPTIONS)(function)


def compile_kernel(
    function: Callable[..., Any], arguments: tuple[Any, ...], layout: ObjectLayout, level: str
) -> Code:
    """Compile `function` for the types of `arguments`, on CPUs of a level of x86-64.

    Raises
    ------
    Exception
        Of any kind, where it is not possible.
    """
    kernel = numba.njit(**_OPTIONS)(function)
    fill = _table_filler(layout)
    new_table, values_in = table_intrinsics(arguments)

    def entry(arguments, expected, numbers):  # type: ignore[no-untyped-def]
        table = new_table()
        if not fill(table, arguments, expected, numbers):
            return np.int64(MISMATCH)
        return np.int64(kernel(*values_in(table)))

    dispatcher = numba.njit(**_OPTIONS)(entry)
    target = cpu_target.target_context
    with global_compiler_lock, _remembered_types(), _no_search_for_garbage():
        usual = target._internal_codegen
        target._internal_codegen = _Codegen("jittok")
        _jit.compiling_code_file = True
        _jit.compiling_level = level
        try:
            dispatcher.compile((types.int64, types.int64, types.int64))
        finally:
            target._internal_codegen = usual
            _jit.compiling_code_file = False
            _jit.compiling_level = ""
        (result,) = dispatcher.overloads.values()
        module = _linked_module(result._asdict()["library"])
        name = result.fndesc.llvm_func_name
        (result,) = kernel.overloads.values()
        kernel_name = result.fndesc.llvm_func_name
        (result,) = fill.overloads.values()
        fill_name = result.fndesc.llvm_func_name
    for defined in module.functions:
        if defined.name == kernel_name:
            # The entry fills the tables that kernels only read. Were they one function, what is read there would not
            # be invariant any more; and were the kernel internal, its arguments might become what they point to.
            defined.add_function_attribute("noinline")
            defined.linkage = "external"
        elif not defined.is_declaration and defined.name != name:
            defined.linkage = "internal"
        if defined.name == fill_name:
            defined.add_function_attribute("minsize")  # of loops with few rounds, LLVM would make more than is used
            defined.add_function_attribute("optsize")
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="small"
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return link(machine.emit_object(module), name)


@cache
def _table_filler(layout: ObjectLayout) -> Any:
    """The function that fills a call's table, lowered once for all kernels."""
    return numba.njit(**_OPTIONS)(table_filler(layout))


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Numba makes millions of objects that stay, and looking for garbage among them takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _remembered_types() -> Iterator[None]:
    """Let type inference remember what each operation gives: it asks for the same thousands of times."""
    context = cpu_target.typing_context
    resolve = context.resolve_function_type
    known: dict[Any, Any] = {}

    def remembering(function: Any, arguments: Any, keywords: Any) -> Any:
        if keywords:
            return resolve(function, arguments, keywords)
        key = function, tuple(arguments)
        if key not in known:
            known[key] = resolve(function, arguments, keywords)
        return known[key]

    context.resolve_function_type = remembering
    try:
        yield
    finally:
        del context.resolve_function_type


def _linked_module(library: Any) -> Any:
    """One module with the functions of a library and of all libraries that it uses."""
    module = library._final_module.clone()
    seen = {id(library)}
    pending = list(library._linking_libraries)
    while pending:
        other = pending.pop()
        if id(other) in seen:
            continue
        seen.add(id(other))
        pending += other._linking_libraries
        part = other._final_module.clone()
        for function in part.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        module.link_in(part)
    return module
