"""Compile a kernel into a code file (see :mod:`jittok._native`). The only other module that imports Numba.

Numba types and lowers the kernel and all that it calls to LLVM; then everything is optimised once, as one
module, and emitted as one object file, where Numba alone would optimise and emit every function by itself and
again inside each of its callers. The object is linked here: it is small, and refers to nothing but a few C
functions.

This uses private parts of Numba. Whoever calls :func:`compile_kernel` must take any exception for "not
possible", and use Numba's ordinary way instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import codegen
from numba.core import types as numba_types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np import numpy_support

from jittok import _jit
from jittok._linker import link
from jittok._native import MISMATCH, Code, ObjectLayout

types: Any = numba_types
_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Arrays are lent to kernels and never made in them: no reference is counted.
    "_nrt": False,
    # Rewriting is for array expressions, which kernels do not have.
    "no_rewrites": True,
}
_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))


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
    argument_types = tuple(map(_numba_type, arguments))
    kernel = numba.njit(**_OPTIONS)(function)
    matches, unpack = _argument_intrinsics(argument_types, layout)

    def entry(arguments, expected, numbers):  # type: ignore[no-untyped-def]
        if not matches(arguments, expected):
            return np.int64(MISMATCH)
        return np.int64(kernel(*unpack(arguments, numbers)))

    dispatcher = numba.njit(**_OPTIONS)(entry)
    target = cpu_target.target_context
    with global_compiler_lock, _remembered_types():
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
    for defined in module.functions:
        if not defined.is_declaration and defined.name != name:
            defined.linkage = "internal"
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


# ------------------------------------------------------------------------------------------------------- arguments


def _numba_type(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        dtype = numpy_support.from_dtype(argument.dtype)
        return types.Array(dtype, argument.ndim, "C", readonly=not argument.flags.writeable)
    if isinstance(argument, tuple):
        return types.NamedTuple([_numba_type(item) for item in argument], type(argument))
    return types.int64


def _load(builder: Any, address: Any, offset: int, kind: Any = _I64) -> Any:
    pointer = builder.inttoptr(builder.add(address, _I64(offset)), kind.as_pointer())
    return builder.load(pointer)


def _argument_intrinsics(argument_types: tuple[Any, ...], layout: ObjectLayout) -> tuple[Any, Any]:
    """Two intrinsics: whether the objects in a tuple are of these types, and the objects as Numba's values."""

    @intrinsic  # type: ignore[untyped-decorator]
    def matches(context: Any, arguments: Any, expected: Any) -> Any:
        """Whether the objects in the tuple at an address have the types and dtypes expected."""

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            result = builder.alloca(ir.IntType(1))
            builder.store(ir.Constant(ir.IntType(1), 0), result)
            end = builder.append_basic_block("end")
            count = 0

            def require(condition: Any) -> None:
                following = builder.append_basic_block("matching")
                builder.cbranch(condition, following, end)
                builder.position_at_end(following)

            def next_expected() -> Any:
                nonlocal count
                count += 1
                return _load(builder, values[1], 8 * (count - 1))

            def check(holder: Any, kinds: Any) -> None:
                for i, kind in enumerate(kinds):
                    if kind is types.int64:
                        continue
                    item = _load(builder, holder, layout.item + 8 * i)
                    require(builder.icmp_unsigned("==", _load(builder, item, layout.type), next_expected()))
                    if isinstance(kind, types.NamedTuple):
                        check(item, kind.types)
                        continue
                    require(builder.icmp_unsigned("==", _load(builder, item, layout.dtype), next_expected()))
                    ndim = _load(builder, item, layout.ndim, _I32)
                    require(builder.icmp_unsigned("==", ndim, _I32(kind.ndim)))
                    wanted = 0x101 if not kind.mutable else 0x501  # C-contiguous, aligned, writeable
                    flags = builder.and_(_load(builder, item, layout.flags, _I32), _I32(wanted))
                    require(builder.icmp_unsigned("==", flags, _I32(wanted)))

            check(values[0], argument_types)
            builder.store(ir.Constant(ir.IntType(1), 1), result)
            builder.branch(end)
            builder.position_at_end(end)
            return builder.load(result)

        return types.boolean(types.int64, types.int64), code

    packed = types.Tuple(argument_types)

    @intrinsic  # type: ignore[untyped-decorator]
    def unpack(context: Any, arguments: Any, numbers: Any) -> Any:
        """The arguments: arrays lent from their objects, and numbers from an array of their own."""

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            count = 0

            def make(holder: Any, kinds: Any, tuple_type: Any) -> Any:
                nonlocal count
                items = []
                for i, kind in enumerate(kinds):
                    if kind is types.int64:
                        items.append(_load(builder, values[1], 8 * count))
                        count += 1
                        continue
                    item = _load(builder, holder, layout.item + 8 * i)
                    if isinstance(kind, types.NamedTuple):
                        items.append(make(item, kind.types, kind))
                    else:
                        items.append(_borrowed_array(context, builder, kind, item, layout))
                return context.make_tuple(builder, tuple_type, items)

            return make(values[0], argument_types, packed)

        return packed(types.int64, types.int64), code

    return matches, unpack


def _borrowed_array(context: Any, builder: Any, kind: Any, item: Any, layout: ObjectLayout) -> Any:
    """Numba's form of the array object at an address."""
    array = context.make_array(kind)(context, builder)
    shape_at = _load(builder, item, layout.shape)
    shape = [_load(builder, shape_at, 8 * i) for i in range(kind.ndim)]
    size = kind.dtype.bitwidth // 8 if kind.dtype is not types.boolean else 1
    strides = [_I64(size)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    n_items = _I64(1)
    for length in shape:
        n_items = builder.mul(n_items, length)
    data = builder.inttoptr(_load(builder, item, layout.data), array.data.type)
    array.meminfo = ir.Constant(array.meminfo.type, None)
    array.parent = ir.Constant(array.parent.type, None)
    array.nitems = n_items
    array.itemsize = _I64(size)
    array.data = data
    array.shape = ir.Constant(ir.ArrayType(_I64, kind.ndim), ir.Undefined)
    array.strides = ir.Constant(ir.ArrayType(_I64, kind.ndim), ir.Undefined)
    for name, values in (("shape", shape), ("strides", strides)):
        packed = getattr(array, name)
        for i, value in enumerate(values):
            packed = builder.insert_value(packed, value, i)
        setattr(array, name, packed)
    return array._getvalue()
