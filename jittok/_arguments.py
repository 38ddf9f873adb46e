"""What compiled code has arguments as, and how it takes them from Python's objects. Imports Numba.

Numba has a NamedTuple as all its members, and an array as seven numbers: hundreds of values to hand on in each call,
and most of what there would be to compile. Here a NamedTuple is the address of its members in a table that is filled
at the beginning of a call, and an array its data and shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.core.imputils import lower_getattr
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_builtin, lower_getattr_generic, models, register_model
from numba.np import numpy_support

from jittok._native import ROW, ObjectLayout, n_tuples, n_words

types: Any = numba_types
_I64 = ir.IntType(64)


class _Array(types.Array):
    """An array that is lent to a kernel: aligned, C-contiguous, taken for writeable."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"{dtype}x{ndim}")

    @property
    def key(self) -> str:
        return str(self.name)

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> Any:
        if layout not in (None, "C"):
            raise TypeError("kernels have arrays that are C-contiguous only")
        return _Array(dtype or self.dtype, self.ndim if ndim is None else ndim)


@register_model(_Array)
class _ArrayModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("data", types.CPointer(kind.dtype)), ("shape", types.UniTuple(types.intp, kind.ndim))]
        super().__init__(manager, kind, members)


def _lengths(builder: Any, array: Any) -> list[Any]:
    shape = builder.extract_value(array, 1)
    return [builder.extract_value(shape, i) for i in range(shape.type.count)]


def _item_pointer(context: Any, builder: Any, index_types: Any, array: Any, indices: Any) -> Any:
    """Where the item is; with fewer indices than dimensions, the first one of the items."""
    lengths = _lengths(builder, array)
    place = _I64(0)
    for length, index_type, index in zip(lengths, index_types, indices, strict=False):
        index = context.cast(builder, index, index_type, types.intp if index_type.signed else types.uintp)
        if index_type.signed:
            is_negative = builder.icmp_signed("<", index, _I64(0))
            index = builder.select(is_negative, builder.add(index, length), index)
        place = builder.add(builder.mul(place, length), index)
    place = reduce(builder.mul, lengths[len(indices) :], place)
    return builder.gep(builder.extract_value(array, 0), [place])


def _item(context: Any, builder: Any, kind: Any, array: Any, pointer: Any) -> Any:
    """The item at a pointer: a number, or a row of `array`."""
    if not isinstance(kind, types.Array):
        return context.unpack_value(builder, kind, pointer)
    row = builder.insert_value(ir.Constant(context.get_value_type(kind), ir.Undefined), pointer, 0)
    for i, length in enumerate(_lengths(builder, array)[-kind.ndim :]):
        row = builder.insert_value(row, length, (1, i))
    return row


@lower_builtin(operator.getitem, _Array, types.Integer)
def _get_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    pointer = _item_pointer(context, builder, signature.args[1:], values[0], values[1:])
    return _item(context, builder, signature.return_type, values[0], pointer)


@lower_builtin(operator.getitem, _Array, types.BaseTuple)
def _get_inner_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    indices = cgutils.unpack_tuple(builder, values[1])
    pointer = _item_pointer(context, builder, signature.args[1], values[0], indices)
    return _item(context, builder, signature.return_type, values[0], pointer)


@lower_builtin(operator.setitem, _Array, types.Integer, types.Any)
def _set_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    array, index, kind = signature.args
    pointer = _item_pointer(context, builder, (index,), values[0], values[1:2])
    context.pack_value(builder, array.dtype, context.cast(builder, values[2], kind, array.dtype), pointer)
    return context.get_dummy_value()


@lower_builtin(operator.setitem, _Array, types.BaseTuple, types.Any)
def _set_inner_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    array, indices, kind = signature.args
    pointer = _item_pointer(context, builder, indices, values[0], cgutils.unpack_tuple(builder, values[1]))
    context.pack_value(builder, array.dtype, context.cast(builder, values[2], kind, array.dtype), pointer)
    return context.get_dummy_value()


@lower_builtin(len, _Array)
def _length(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _lengths(builder, values[0])[0]


@lower_getattr(_Array, "size")
def _size(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return reduce(builder.mul, _lengths(builder, array))


@lower_getattr(_Array, "shape")
def _shape(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return builder.extract_value(array, 1)


class _Table(types.Type):
    """A NamedTuple, as the address of its members: of each array the data and the shape, each in 64 bits."""

    _numbers: ClassVar[dict[Any, int]] = {}

    def __init__(self, argument: Any) -> None:
        members = tuple(map(_numba_type, argument))
        number = self._numbers.setdefault((type(argument), members), len(self._numbers))
        super().__init__(name=f"{type(argument).__name__}.{number}")
        self.members = {}
        place = 0
        for field, member, kind in zip(argument._fields, argument, members, strict=True):
            self.members[field] = place, kind
            place += n_words(member)


@register_model(_Table)
class _TableModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _I64.as_pointer())


@infer_getattr
class _Members(AttributeTemplate):
    key = _Table

    def generic_resolve(self, table: Any, name: str) -> Any:
        return table.members[name][1] if name in table.members else None


@lower_getattr_generic(_Table)
def _get_member(context: Any, builder: Any, table: Any, address: Any, name: str) -> Any:
    place, kind = table.members[name]
    return _member(context, builder, kind, builder.gep(address, [_I64(place)]), is_invariant=True)


def _member(context: Any, builder: Any, kind: Any, address: Any, is_invariant: bool = False) -> Any:
    """The value whose words are at an address. `is_invariant`: where this is run, nothing writes there."""

    def load(i: int, kind: Any = _I64) -> Any:
        pointer = builder.gep(address, [_I64(i)])
        loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
        if is_invariant:
            loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(kind, _Table):
        return address
    if not isinstance(kind, _Array):
        return load(0)
    array = ir.Constant(context.get_value_type(kind), ir.Undefined)
    array = builder.insert_value(array, load(0, array.type.elements[0]), 0)
    for i in range(kind.ndim):
        array = builder.insert_value(array, load(1 + i), (1, i))
    return array


def _numba_type(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return _Array(numpy_support.from_dtype(argument.dtype), argument.ndim)
    if isinstance(argument, tuple):
        return _Table(argument)
    return types.int64


@intrinsic
def _load(context: Any, address: Any) -> Any:
    """The 64 bits at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], _I64.as_pointer()))

    return types.int64(types.int64), code


@intrinsic
def _store(context: Any, address: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], _I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


def table_filler(layout: ObjectLayout) -> Callable[..., bool]:
    """Make the function that fills a call's table."""
    type_at, data_at, ndim_at, shape_at, dtype_at, flags_at = (
        getattr(layout, name) for name in ("type", "data", "ndim", "shape", "dtype", "flags")
    )
    row_bytes = 8 * ROW

    def fill(table, arguments, expected, numbers):
        """Fill the table at an address from the tuple at another; False if not all is as `expected_objects` says."""
        _store(table + _load(expected + 16), arguments)
        row = expected + 24
        for _ in range(_load(expected)):
            item = _load(_load(table + _load(row)) + _load(row + 8))
            place = table + _load(row + 24)
            dtype = _load(row + 32)
            if _load(item + type_at) != _load(row + 16):
                return False
            if dtype == 0:
                _store(place, item)
            else:
                ndim = _load(row + 40)
                flags = _load(row + 48)
                if (
                    _load(item + dtype_at) != dtype
                    or _load(item + ndim_at) & 0xFFFFFFFF != ndim
                    or _load(item + flags_at) & flags != flags
                ):
                    return False
                _store(place, _load(item + data_at))
                shape = _load(item + shape_at)
                for i in range(ndim):
                    _store(place + 8 * i + 8, _load(shape + 8 * i))
            row += row_bytes
        for i in range(_load(expected + 8)):
            _store(table + _load(row + 8 * i), _load(numbers + 8 * i))
        return True

    return fill


def table_intrinsics(arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Two intrinsics: room for a call's table, and the arguments as values of kernels, from a table that is filled."""
    argument_types = tuple(map(_numba_type, arguments))
    packed = types.Tuple(argument_types)

    @intrinsic
    def new_table(context: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            room = _I64(n_words(arguments) + n_tuples(arguments))
            return builder.ptrtoint(cgutils.alloca_once(builder, _I64, size=room), _I64)

        return types.int64(), code

    @intrinsic
    def values_in(context: Any, table: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = builder.inttoptr(values[0], _I64.as_pointer())
            items = []
            for argument, kind in zip(arguments, argument_types, strict=True):
                items.append(_member(context, builder, kind, address))
                address = builder.gep(address, [_I64(n_words(argument))])
            return context.make_tuple(builder, packed, items)

        return packed(types.int64), code

    return new_table, values_in
