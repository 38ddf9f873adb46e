"""The operations of :mod:`jittok.kernels.machine` as Numba intrinsics, in LLVM that compiles on any CPU."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from jittok.kernels import machine

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_V64 = ir.VectorType(_I8, 64)


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _I8.as_pointer()), [offset])


@intrinsic
def load64(typing_context: Any, array: Any, offset: Any) -> Any:
    """Eight bytes at `offset` of a uint8 array, little-endian."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        value = builder.load(builder.bitcast(pointer, _I64.as_pointer()))
        value.align = 1
        return value

    return types.uint64(array, types.int64), code


@intrinsic
def copy_block(typing_context: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    """Copy 64 bytes of a uint8 array into another; returns which of them are 0x80 or more, as a 64-bit mask."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        pointer = _byte_pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        block = builder.load(builder.bitcast(pointer, _V64.as_pointer()))
        block.align = 1
        builder.store(block, builder.bitcast(into, _V64.as_pointer())).align = 1
        return builder.bitcast(builder.icmp_signed("<", block, ir.Constant(_V64, [0] * 64)), _I64)

    return types.uint64(target, types.int64, source, types.int64), code


_I16 = ir.IntType(16)
_UNITS = ir.VectorType(_I16, 8)
_BYTES = ir.VectorType(_I8, 8)


@intrinsic
def put_triples(typing_context: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    """Write UTF-8 of eight UTF-16 units as if each took three bytes; returns how many of the first ones do."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        pointer = _byte_pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        units = builder.load(builder.bitcast(pointer, _UNITS.as_pointer()))
        units.align = 1

        def every(value: int) -> Any:
            return ir.Constant(_UNITS, [value] * 8)

        high = builder.and_(units, every(0xF800))
        is_triple = builder.and_(
            builder.icmp_unsigned("!=", high, every(0)), builder.icmp_unsigned("!=", high, every(0xD800))
        )
        lead = builder.or_(builder.lshr(units, every(12)), every(0xE0))
        second = builder.or_(builder.and_(builder.lshr(units, every(6)), every(0x3F)), every(0x80))
        third = builder.or_(builder.and_(units, every(0x3F)), every(0x80))
        parts = [builder.trunc(part, _BYTES) for part in (lead, second, third)]

        def places(numbers: list[int]) -> Any:
            return ir.Constant(ir.VectorType(_I32, len(numbers)), numbers)

        both = builder.shuffle_vector(parts[0], parts[1], places(list(range(16))))
        rest = builder.shuffle_vector(parts[2], parts[2], places(list(range(16))))
        order = [8 * part + i for i in range(8) for part in range(3)]
        whole = builder.shuffle_vector(both, rest, places([*order, *order[:8]]))
        builder.store(whole, builder.bitcast(into, ir.VectorType(_I8, 32).as_pointer())).align = 1
        others = builder.zext(builder.not_(builder.bitcast(is_triple, _I8)), _I64)
        function = builder.module.declare_intrinsic("llvm.cttz", [_I64], ir.FunctionType(_I64, [_I64, _I1]))
        return builder.call(function, [builder.or_(others, ir.Constant(_I64, 256)), ir.Constant(_I1, 0)])

    return types.int64(target, types.int64, source, types.int64), code


@intrinsic
def run_mask_code(
    typing_context: Any, address: Any, entries: Any, masks: Any, words: Any, only_ascii: Any
) -> Any:
    """Call the machine code of a mask program, see :mod:`jittok._mask_code`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 4)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        addresses = [
            builder.ptrtoint(context.make_array(signature.args[i])(context, builder, arguments[i]).data, _I64)
            for i in (1, 2)
        ]
        builder.call(function, [*addresses, arguments[3], arguments[4]])
        return context.get_dummy_value()

    return types.void(types.int64, entries, masks, types.int64, types.int64), code


@intrinsic
def store_pair(typing_context: Any, array: Any, index: Any, pair: Any) -> Any:
    """Write the low and high 32 bits of `pair` to ``array[index]`` and ``array[index + 1]`` (int32)."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[1], ir.Constant(_I64, 2))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        builder.store(arguments[2], builder.bitcast(pointer, _I64.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), code


@intrinsic
def load_float(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index]`` (int32), its bits taken as a float32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[1], ir.Constant(_I64, 2))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        value = builder.load(builder.bitcast(pointer, ir.FloatType().as_pointer()))
        value.align = 4
        return value

    return types.float32(array, types.int64), code


@intrinsic
def high_float(typing_context: Any, array: Any, index: Any) -> Any:
    """The upper 32 bits of ``array[index]`` (uint64), taken as a float32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.or_(builder.shl(arguments[1], ir.Constant(_I64, 3)), ir.Constant(_I64, 4))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        value = builder.load(builder.bitcast(pointer, ir.FloatType().as_pointer()))
        value.align = 4
        return value

    return types.float32(array, types.int64), code


_IDS = ir.VectorType(_I32, 16)
_LINE = ir.VectorType(_I64, 8)


@intrinsic
def load_pair(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index]`` (int32) in the low and ``array[index + 1]`` in the high 32 bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[1], ir.Constant(_I64, 2))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        value = builder.load(builder.bitcast(pointer, _I64.as_pointer()))
        value.align = 4
        return value

    return types.uint64(array, types.int64), code


@intrinsic
def least_of_16(typing_context: Any, array: Any, index: Any) -> Any:
    """The least of 16 items of an int32 array from `index`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[1], ir.Constant(_I64, 2))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        value = builder.load(builder.bitcast(pointer, _IDS.as_pointer()))
        value.align = 4
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I32, [_IDS]), "llvm.vector.reduce.smin.v16i32"
        )
        return builder.sext(builder.call(function, [value]), _I64)

    return types.int64(array, types.int64), code


@intrinsic
def find_in_line(typing_context: Any, slots: Any, first: Any, key: Any) -> Any:
    """Of the eight items of a uint64 array from `first`, the one whose upper 40 bits are `key`; all ones for none."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[1], ir.Constant(_I64, 3))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        line = builder.load(builder.bitcast(pointer, _LINE.as_pointer()))
        line.align = 8
        undefined = ir.Constant(_LINE, ir.Undefined)
        single = builder.insert_element(undefined, arguments[2], ir.Constant(_I32, 0))
        keys = builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(_I32, 8), [0] * 8))
        equal = builder.icmp_unsigned("==", builder.lshr(line, ir.Constant(_LINE, [24] * 8)), keys)
        bits = builder.zext(builder.bitcast(equal, _I8), _I64)
        zeros = builder.module.declare_intrinsic("llvm.cttz", [_I64], ir.FunctionType(_I64, [_I64, _I1]))
        place = builder.call(zeros, [builder.or_(bits, ir.Constant(_I64, 128)), ir.Constant(_I1, 1)])
        items = builder.bitcast(pointer, _I64.as_pointer())
        item = builder.load(builder.gep(items, [place]))
        item.align = 8
        # Not a selection, which LLVM would make a branch, mispredicted at every other pair.
        none = builder.ashr(builder.sub(bits, ir.Constant(_I64, 1)), ir.Constant(_I64, 63))
        return builder.or_(item, none)

    return types.uint64(slots, types.int64, types.uint64), code


_PAIR = ir.VectorType(_I64, 2)
_I128 = ir.IntType(128)


def _load_two(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, align: int) -> Any:
    pointer = _byte_pointer(context, builder, array_type, array, offset)
    value = builder.load(builder.bitcast(pointer, _PAIR.as_pointer()))
    value.align = align
    return value


@intrinsic
def make_key(typing_context: Any, keys: Any, key: Any, text: Any, first: Any, masks: Any, row: Any) -> Any:
    """``keys[key:key + 2]`` becomes 16 bytes of `text` from `first`, and two words of `masks`, or two more of them."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset = builder.shl(arguments[5], ir.Constant(_I64, 3))
        value = _load_two(context, builder, signature.args[2], arguments[2], arguments[3], 1)
        mask = _load_two(context, builder, signature.args[4], arguments[4], offset, 8)
        offset = builder.add(offset, ir.Constant(_I64, 16))
        added = _load_two(context, builder, signature.args[4], arguments[4], offset, 8)
        value = builder.or_(builder.and_(value, mask), added)
        offset = builder.shl(arguments[1], ir.Constant(_I64, 3))
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
        builder.store(value, builder.bitcast(pointer, _PAIR.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(keys, types.int64, text, types.int64, masks, types.int64), code


@intrinsic
def take_ids(typing_context: Any, keys: Any, key: Any, slots: Any, at: Any, ids: Any, to: Any) -> Any:
    """The value of a key in one of two slots of four words: ids are written, their number returned, or -1."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        eight, two = ir.Constant(_I64, 3), ir.Constant(_I64, 2)
        offset = builder.shl(arguments[3], eight)
        wanted = _load_two(
            context, builder, signature.args[0], arguments[0], builder.shl(arguments[1], eight), 8
        )
        wanted = builder.bitcast(wanted, _I128)
        differ = []
        for distance in (0, 32):
            place = builder.add(offset, ir.Constant(_I64, distance))
            found = _load_two(context, builder, signature.args[2], arguments[2], place, 8)
            differ.append(builder.icmp_unsigned("!=", builder.bitcast(found, _I128), wanted))
        distance = builder.select(differ[0], ir.Constant(_I64, 48), ir.Constant(_I64, 16))
        place = builder.add(offset, distance)
        value = _load_two(context, builder, signature.args[2], arguments[2], place, 8)
        count = builder.ashr(builder.extract_element(value, ir.Constant(_I32, 0)), ir.Constant(_I64, 56))
        value = builder.and_(value, ir.Constant(_PAIR, [(1 << 56) - 1, -1]))
        pointer = _byte_pointer(context, builder, signature.args[4], arguments[4], builder.shl(arguments[5], two))
        builder.store(value, builder.bitcast(pointer, _PAIR.as_pointer())).align = 4
        return builder.or_(count, builder.sext(builder.and_(*differ), _I64))

    return types.int64(keys, types.int64, slots, types.int64, ids, types.int64), code


@intrinsic
def copy_ids(typing_context: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    """Copy 16 items of an int32 array into another."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [
            _byte_pointer(
                context, builder, signature.args[i], arguments[i], builder.shl(arguments[i + 1], ir.Constant(_I64, 2))
            )
            for i in (0, 2)
        ]
        into, pointer = (builder.bitcast(p, _IDS.as_pointer()) for p in pointers)
        value = builder.load(pointer)
        value.align = 4
        builder.store(value, into).align = 4
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), code


_W32 = ir.VectorType(_I64, 32)


def _mask_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _W32.as_pointer())


def _load_mask(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    value = builder.load(_mask_pointer(context, builder, array_type, array, index))
    value.align = 8
    return value


def _binary(name: str, doc: str, operation: Any) -> Any:
    def typed(typing_context: Any, words: Any, result: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type = signature.args[0]
            left = _load_mask(context, builder, array_type, arguments[0], arguments[2])
            right = _load_mask(context, builder, array_type, arguments[0], arguments[3])
            pointer = _mask_pointer(context, builder, array_type, arguments[0], arguments[1])
            builder.store(operation(builder, left, right), pointer).align = 8
            return context.get_dummy_value()

        return types.void(words, types.int64, types.int64, types.int64), code

    typed.__name__ = name
    typed.__doc__ = doc
    return intrinsic(typed)


or_masks = _binary(
    "or_masks", "The 32 words become those from `a` or those from `b`.", lambda b, x, y: b.or_(x, y)
)
and_masks = _binary(
    "and_masks", "The 32 words become those from `a` and those from `b`.", lambda b, x, y: b.and_(x, y)
)


def _splat_words(value: int) -> Any:
    return ir.Constant(_W32, [value] * 32)


@intrinsic
def not_mask(typing_context: Any, words: Any, result: Any, a: Any) -> Any:
    """The 32 words from `result` become the complement of those from `a`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        value = _load_mask(context, builder, array_type, arguments[0], arguments[2])
        pointer = _mask_pointer(context, builder, array_type, arguments[0], arguments[1])
        builder.store(builder.not_(value), pointer).align = 8
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), code


@intrinsic
def mask_back(typing_context: Any, words: Any, result: Any, a: Any, places: Any) -> Any:
    """The 32 words from `result` become those from `a` moved up by `places` bits; the word before is read."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        value = _load_mask(context, builder, array_type, arguments[0], arguments[2])
        before = builder.sub(arguments[2], ir.Constant(_I64, 1))
        low = _load_mask(context, builder, array_type, arguments[0], before)
        undefined = ir.Constant(_W32, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(_I32, 32), [0] * 32)
        single = builder.insert_element(undefined, arguments[3], ir.Constant(_I32, 0))
        places32 = builder.shuffle_vector(single, undefined, zeros)
        rest = builder.sub(_splat_words(64), places32)
        moved = builder.or_(builder.shl(value, places32), builder.lshr(low, rest))
        pointer = _mask_pointer(context, builder, array_type, arguments[0], arguments[1])
        builder.store(moved, pointer).align = 8
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, types.int64), code


@intrinsic
def mask_ahead(typing_context: Any, words: Any, result: Any, a: Any) -> Any:
    """The 32 words from `result` become those from `a` moved down by one bit; the word after is read."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        value = _load_mask(context, builder, array_type, arguments[0], arguments[2])
        after = builder.add(arguments[2], ir.Constant(_I64, 1))
        high = _load_mask(context, builder, array_type, arguments[0], after)
        moved = builder.or_(builder.lshr(value, _splat_words(1)), builder.shl(high, _splat_words(63)))
        pointer = _mask_pointer(context, builder, array_type, arguments[0], arguments[1])
        builder.store(moved, pointer).align = 8
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), code


def _splat(builder: Any, byte: Any) -> Any:
    undefined = ir.Constant(_V64, ir.Undefined)
    single = builder.insert_element(undefined, byte, ir.Constant(_I32, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(_I32, 64), [0] * 64))


@intrinsic
def equal_bits(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Which of the 64 bytes from `index` equal `value`, as a 64-bit mask."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        block = builder.load(builder.bitcast(pointer, _V64.as_pointer()))
        block.align = 1
        value = _splat(builder, builder.trunc(arguments[2], _I8))
        return builder.bitcast(builder.icmp_unsigned("==", block, value), _I64)

    return types.uint64(array, types.int64, types.int64), code


@intrinsic
def range_bits(typing_context: Any, array: Any, index: Any, low: Any, span: Any) -> Any:
    """Which of the 64 bytes from `index` are at least `low` and less than ``low + span``, as a 64-bit mask."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        block = builder.load(builder.bitcast(pointer, _V64.as_pointer()))
        block.align = 1
        lowest = _splat(builder, builder.trunc(arguments[2], _I8))
        size = _splat(builder, builder.trunc(arguments[3], _I8))
        return builder.bitcast(builder.icmp_unsigned("<", builder.sub(block, lowest), size), _I64)

    return types.uint64(array, types.int64, types.int64, types.int64), code


@intrinsic
def clean_block(
    typing_context: Any, result: Any, at: Any, data: Any, index: Any, lowers: Any, cleans: Any
) -> Any:
    """Write 64 bytes from `index` of `data` to `result`, cleaned up; which of them that is right for, as a mask."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def constant(value: int) -> Any:
            return ir.Constant(_V64, [value] * 64)

        def chosen(flag: Any, one: int, other: int) -> Any:
            is_set = builder.icmp_unsigned("!=", flag, ir.Constant(_I64, 0))
            return _splat(builder, builder.select(is_set, ir.Constant(_I8, one), ir.Constant(_I8, other)))

        def in_range(first: Any, span: Any) -> Any:
            return builder.icmp_unsigned("<", builder.sub(block, first), span)

        result_type, data_type = signature.args[0], signature.args[2]
        pointer = _byte_pointer(context, builder, data_type, arguments[2], arguments[3])
        block = builder.load(builder.bitcast(pointer, _V64.as_pointer()))
        block.align = 1
        is_upper = in_range(constant(0x41), chosen(arguments[4], 26, 0))
        lower = builder.or_(block, builder.select(is_upper, constant(0x20), constant(0)))
        # Where nothing is to be cleaned, the comparison with CR is one with a blank, which stays one.
        is_return = builder.icmp_unsigned("==", block, chosen(arguments[5], 13, 0x20))
        is_blank = builder.or_(in_range(constant(9), chosen(arguments[5], 2, 0)), is_return)
        target = _byte_pointer(context, builder, result_type, arguments[0], arguments[1])
        cleaned = builder.select(is_blank, constant(0x20), lower)
        builder.store(cleaned, builder.bitcast(target, _V64.as_pointer())).align = 1
        is_printable = in_range(chosen(arguments[5], 0x20, 0), chosen(arguments[5], 0x5F, 0x80))
        return builder.bitcast(builder.or_(is_printable, is_blank), _I64)

    signature = types.uint64(result, types.int64, data, types.int64, types.int64, types.int64)
    return signature, code


@intrinsic
def choose(typing_context: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one` if the condition holds, else `other`: a selection that LLVM is told not to make a branch of."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.int64(types.boolean, types.int64, types.int64), code


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """Number of zero bits below the lowest set bit; 64 for 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.cttz", [_I64], ir.FunctionType(_I64, [_I64, _I1]))
        return builder.call(function, [arguments[0], ir.Constant(_I1, 0)])

    return types.int64(types.uint64), code


@intrinsic
def highest_bit(typing_context: Any, value: Any) -> Any:
    """Number of the highest set bit; -1 for 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.ctlz", [_I64], ir.FunctionType(_I64, [_I64, _I1]))
        zeros = builder.call(function, [arguments[0], ir.Constant(_I1, 0)])
        return builder.sub(ir.Constant(_I64, 63), zeros)

    return types.int64(types.uint64), code


@intrinsic
def count_bits(typing_context: Any, value: Any) -> Any:
    """Number of set bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [_I64]), [arguments[0]])

    return types.int64(types.uint64), code


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]`` ahead of its use."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        size = ir.Constant(_I64, array_type.dtype.bitwidth // 8)
        offset = builder.mul(arguments[1], size)
        pointer = _byte_pointer(context, builder, array_type, arguments[0], offset)
        signature_ = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        builder.call(function, [pointer, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code


@intrinsic
def multiply(typing_context: Any, a: Any, b: Any) -> Any:
    """Product modulo 2**64."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.mul(arguments[0], arguments[1])

    return types.uint64(types.uint64, types.uint64), code


_FLOAT = ir.FloatType()
_F64 = ir.VectorType(_FLOAT, 64)


def _float_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, kind: Any) -> Any:
    pointer = _byte_pointer(context, builder, array_type, array, builder.shl(index, ir.Constant(_I64, 2)))
    return builder.bitcast(pointer, kind.as_pointer())


def _same_floats(builder: Any, value: Any, kind: Any) -> Any:
    """A vector whose items are all `value`."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count))


@intrinsic
def bits_from(typing_context: Any, values: Any, index: Any, least: Any) -> Any:
    """Which of the 64 items from `index` of a float32 array are `least` or more, as a 64-bit mask."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _float_pointer(context, builder, signature.args[0], arguments[0], arguments[1], _F64)
        block = builder.load(pointer)
        block.align = 4
        return builder.bitcast(builder.fcmp_ordered(">=", block, _same_floats(builder, arguments[2], _F64)), _I64)

    return types.uint64(values, types.int64, types.float32), code


@intrinsic
def bits_of(typing_context: Any, value: Any) -> Any:
    """The bits of a float32, as an int32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.bitcast(arguments[0], _I32), _I64)

    return types.int64(types.float32), code


@intrinsic
def put_exponentials(typing_context: Any, target: Any, to: Any, source: Any, at: Any, top: Any) -> Any:
    """Write the exponentials of 64 items of a float32 array, each less `top`, to another; returns their sum."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = _float_pointer(context, builder, signature.args[0], arguments[0], arguments[1], _F64)
        block = builder.load(_float_pointer(context, builder, signature.args[2], arguments[2], arguments[3], _F64))
        block.align = 4

        def every(number: Any) -> Any:
            return ir.Constant(_F64, [float(number)] * 64)

        whole_numbers = ir.VectorType(_I32, 64)
        value = builder.fsub(block, _same_floats(builder, arguments[4], _F64))
        is_small = builder.fcmp_unordered("<", value, every(machine.EXP_LEAST))
        value = builder.select(is_small, every(0), value)
        power = builder.fptosi(builder.fsub(builder.fmul(value, every(machine.EXP_FACTOR)), every(0.5)), whole_numbers)
        whole = builder.sitofp(power, _F64)
        value = builder.fsub(value, builder.fmul(whole, every(machine.EXP_HIGH)))
        value = builder.fsub(value, builder.fmul(whole, every(machine.EXP_LOW)))
        sums = every(machine.EXP_TERMS[0])
        for term in machine.EXP_TERMS[1:]:
            sums = builder.fadd(builder.fmul(sums, value), every(term))
        sums = builder.fadd(builder.fmul(sums, builder.fmul(value, value)), value)
        sums = builder.bitcast(builder.fadd(sums, every(1)), whole_numbers)
        sums = builder.add(sums, builder.shl(power, ir.Constant(whole_numbers, [23] * 64)))
        sums = builder.select(is_small, every(0), builder.bitcast(sums, _F64))
        builder.store(sums, into).align = 4
        width = 32
        while width:
            halves = [
                builder.shuffle_vector(sums, sums, ir.Constant(ir.VectorType(_I32, width), list(range(part, part + width))))
                for part in (0, width)
            ]
            sums = builder.fadd(*halves)
            width //= 2
        return builder.extract_element(sums, ir.Constant(_I32, 0))

    return types.float32(target, types.int64, source, types.int64, types.float32), code
