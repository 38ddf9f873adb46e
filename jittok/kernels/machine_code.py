"""The operations of :mod:`jittok.kernels.machine` as Numba intrinsics, in LLVM that compiles on any CPU."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from jittok import _jit
from jittok.kernels import machine
from jittok.tables import PREFIX_FACTOR

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_V64 = ir.VectorType(_I8, 64)


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.data_model_manager[array_type].get(builder, array, "data")
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
def put_characters(typing_context: Any, target: Any, to: Any, source: Any, at: Any, kind: Any) -> Any:
    """Write UTF-8 of eight characters of two or four bytes each; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return ir.Constant(_I64, 0)
        eight = ir.VectorType(_I32, 8)

        def every(value: int) -> Any:
            return ir.Constant(eight, [value] * 8)

        def part(shift: int) -> Any:
            return builder.or_(builder.and_(builder.lshr(value, every(shift)), every(0x3F)), every(0x80))

        def joined(lead: int, shift: int) -> Any:
            whole = builder.or_(builder.lshr(value, every(shift)), every(lead))
            for i, low in enumerate(range(shift - 6, -1, -6)):
                whole = builder.or_(whole, builder.shl(part(low), every(8 * i + 8)))
            return whole

        pointer = _byte_pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        wide = builder.icmp_unsigned("==", arguments[4], _I64(4))
        with builder.if_else(wide) as (then, otherwise):
            with then:
                codepoints = builder.load(builder.bitcast(pointer, eight.as_pointer()))
                codepoints.align = 1
                from_four = builder.block
            with otherwise:
                units = builder.load(builder.bitcast(pointer, _UNITS.as_pointer()))
                units.align = 1
                units = builder.zext(units, eight)
                from_two = builder.block
        value = builder.phi(eight)
        value.add_incoming(codepoints, from_four)
        value.add_incoming(units, from_two)
        whole, kept = value, every(0xFF)
        for least, lead, shift, bits in ((0x80, 0xC0, 6, 16), (0x800, 0xE0, 12, 24), (0x10000, 0xF0, 18, 32)):
            longer = builder.icmp_unsigned(">=", value, every(least))
            whole = builder.select(longer, joined(lead, shift), whole)
            kept = builder.select(longer, every((1 << bits) - 1), kept)
        surrogate = builder.icmp_unsigned("==", builder.and_(value, every(0xFFFFF800)), every(0xD800))
        has_none = builder.icmp_unsigned("==", builder.bitcast(surrogate, _I8), _I8(0))
        extract = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I64, [_I64, _I64]), "llvm.x86.bmi.pext.64"
        )
        count = builder.module.declare_intrinsic("llvm.ctpop", [_I64])
        four = ir.VectorType(_I64, 4)
        whole, kept = builder.bitcast(whole, four), builder.bitcast(kept, four)
        size = _I64(0)
        for i in range(4):
            mask = builder.extract_element(kept, _I32(i))
            two = builder.call(extract, [builder.extract_element(whole, _I32(i)), mask])
            into = _byte_pointer(
                context, builder, signature.args[0], arguments[0], builder.add(arguments[1], size)
            )
            builder.store(two, builder.bitcast(into, _I64.as_pointer())).align = 1
            size = builder.add(size, builder.lshr(builder.call(count, [mask]), _I64(3)))
        return builder.select(has_none, size, _I64(0))

    return types.int64(target, types.int64, source, types.int64, types.int64), code


@intrinsic
def run_mask_code(
    typing_context: Any, address: Any, entries: Any, masks: Any, words: Any, only_ascii: Any
) -> Any:
    """Call the machine code of a mask program, see :mod:`jittok._mask_code`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 4)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        addresses = [
            builder.ptrtoint(_byte_pointer(context, builder, signature.args[i], arguments[i], _I64(0)), _I64)
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
_EIGHT = ir.VectorType(_I1, 8)


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
_LINE = ir.VectorType(_I64, 8)
#: As in kernels.word_cache, which imports these operations.
_KEY_BYTES = 15
_KEY_SHIFT = 38
_FACTOR_LOW = 0x9E3779B97F4A7C15
_FACTOR_HIGH = 0xC2B2AE3D27D4EB4F


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
def make_four_keys(
    typing_context: Any, keys: Any, key: Any, text: Any, word: Any, first: Any, mask: Any
) -> Any:
    """Keys of four words, and their places in a table; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return context.get_dummy_value()
        four = ir.VectorType(_I32, 4)

        def order(numbers: list[int]) -> Any:
            return ir.Constant(ir.VectorType(_I32, len(numbers)), numbers)

        def words(low: int, high: int) -> Any:
            return ir.Constant(_LINE, [low, high] * 4)

        def splat(number: int) -> Any:
            return words(number, number)

        # Where the words begin, and their lengths, 0 for those that are too long.
        at = _byte_pointer(context, builder, signature.args[3], arguments[3], builder.shl(arguments[4], _I64(2)))
        starts = builder.load(builder.bitcast(at, four.as_pointer()))
        following = builder.gep(at, [_I64(4)])
        ends = builder.load(builder.bitcast(following, four.as_pointer()))
        starts.align = ends.align = 4
        length = builder.sub(ends, starts)
        fits = builder.icmp_unsigned("<=", length, ir.Constant(four, [_KEY_BYTES] * 4))
        length = builder.select(fits, length, ir.Constant(four, [0] * 4))
        # From here on, two items for each word: the low and the high half of its key.
        length = builder.shuffle_vector(length, length, order([0, 0, 1, 1, 2, 2, 3, 3]))
        length = builder.zext(length, _LINE)
        excess = builder.sub(words(64, 128), builder.shl(length, splat(3)))
        excess = builder.select(builder.icmp_signed(">", excess, splat(0)), excess, splat(0))
        shift = cgutils.get_or_insert_function(  # by 64 or more gives 0, unlike lshr
            builder.module, ir.FunctionType(_LINE, [_LINE, _LINE]), "llvm.x86.avx512.psrlv.q.512"
        )
        kept = builder.call(shift, [splat(-1), excess])
        halves = []
        for i in range(4):
            place = builder.gep(at, [_I64(4 * i)])
            begin = builder.load(builder.bitcast(place, _I32.as_pointer()))
            begin.align = 4
            halves.append(
                _load_two(context, builder, signature.args[2], arguments[2], builder.sext(begin, _I64), 1)
            )
        pairs = [builder.shuffle_vector(halves[i], halves[i + 1], order([0, 1, 2, 3])) for i in (0, 2)]
        value = builder.shuffle_vector(*pairs, order(list(range(8))))
        marked = builder.and_(builder.shl(length, splat(56)), words(0, -1))
        one = builder.select(builder.icmp_unsigned("==", length, splat(0)), words(1, 0), splat(0))
        value = builder.or_(builder.and_(value, kept), builder.or_(marked, one))
        # As in key_slot; the places are in the items of the low halves.
        mixed = builder.mul(value, words(1, _FACTOR_HIGH))
        mixed = builder.xor(mixed, builder.shuffle_vector(mixed, mixed, order([1, 0, 3, 2, 5, 4, 7, 6])))
        mixed = builder.mul(mixed, splat(_FACTOR_LOW))
        single = builder.insert_element(ir.Constant(_LINE, ir.Undefined), arguments[5], _I32(0))
        mask = builder.shuffle_vector(single, single, order([0] * 8))
        places = builder.and_(builder.lshr(mixed, splat(_KEY_SHIFT)), mask)
        for i, row in enumerate(([0, 1, 8, 9, 2, 3, 10, 11], [4, 5, 12, 13, 6, 7, 14, 15])):
            offset = builder.shl(builder.add(arguments[1], _I64(8 * i)), _I64(3))
            pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], offset)
            rows = builder.shuffle_vector(value, places, order(row))
            builder.store(rows, builder.bitcast(pointer, _LINE.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(keys, types.int64, text, word, types.int64, types.int64), code


def _store_ids(
    context: Any, builder: Any, array_type: Any, ids: Any, to: Any, value: Any, id_bits: Any
) -> None:
    """Write the eight ids that a slot's two words may hold."""

    def numbers(values: list[int]) -> Any:
        return ir.Constant(ir.VectorType(_I32, 8), values)

    words = builder.shuffle_vector(value, value, numbers([0, 0, 0, 1, 1, 1, 1, 1]))
    single = builder.insert_element(ir.Constant(_LINE, ir.Undefined), id_bits, _I32(0))
    width = builder.shuffle_vector(single, single, numbers([0] * 8))
    shifts = builder.mul(width, ir.Constant(_LINE, [0, 1, 2, 0, 1, 2, 3, 3]))
    mask = builder.sub(builder.shl(ir.Constant(_LINE, [1] * 8), width), ir.Constant(_LINE, [1] * 8))
    found = builder.and_(builder.lshr(words, shifts), mask)
    eight = ir.VectorType(_I32, 8)
    pointer = _byte_pointer(context, builder, array_type, ids, builder.shl(to, _I64(2)))
    builder.store(builder.trunc(found, eight), builder.bitcast(pointer, eight.as_pointer())).align = 4


@intrinsic
def pack_ids(
    typing_context: Any, slots: Any, at: Any, ids: Any, first: Any, n: Any, id_bits: Any
) -> Any:
    """Write the first `n` of eight ids as a slot's two words; 0 if one has more than `id_bits` bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        eight = ir.VectorType(_I32, 8)

        def splat(value: Any) -> Any:
            single = builder.insert_element(ir.Constant(_LINE, ir.Undefined), value, _I32(0))
            return builder.shuffle_vector(single, single, ir.Constant(eight, [0] * 8))

        def union(values: Any) -> Any:
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_I64, [_LINE]), "llvm.vector.reduce.or.v8i64"
            )
            return builder.call(function, [values])

        pointer = _byte_pointer(
            context, builder, signature.args[2], arguments[2], builder.shl(arguments[3], _I64(2))
        )
        value = builder.load(builder.bitcast(pointer, eight.as_pointer()))
        value.align = 4
        none = ir.Constant(_LINE, [0] * 8)
        wanted = builder.icmp_signed("<", ir.Constant(_LINE, list(range(8))), splat(arguments[4]))
        value = builder.select(wanted, builder.zext(value, _LINE), none)
        # The last is never wanted.
        shifts = builder.mul(splat(arguments[5]), ir.Constant(_LINE, [0, 1, 2, 0, 1, 2, 3, 0]))
        words = builder.shl(value, shifts)
        is_low = ir.Constant(ir.VectorType(_I1, 8), [1] * 3 + [0] * 5)
        low = builder.or_(union(builder.select(is_low, words, none)), builder.shl(arguments[4], _I64(56)))
        high = union(builder.select(is_low, none, words))
        pair = builder.insert_element(ir.Constant(_PAIR, ir.Undefined), low, _I32(0))
        pair = builder.insert_element(pair, high, _I32(1))
        pointer = _byte_pointer(
            context, builder, signature.args[0], arguments[0], builder.shl(arguments[1], _I64(3))
        )
        builder.store(pair, builder.bitcast(pointer, _PAIR.as_pointer())).align = 8
        excess = builder.lshr(union(value), arguments[5])
        return builder.zext(builder.icmp_unsigned("==", excess, _I64(0)), _I64)

    return types.int64(slots, types.int64, ids, types.int64, types.int64, types.int64), code


@intrinsic
def put_ids(typing_context: Any, ids: Any, to: Any, low: Any, high: Any, id_bits: Any) -> Any:
    """Write the ids of a slot's two words to an int32 array: eight, some of no meaning."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.insert_element(ir.Constant(_PAIR, ir.Undefined), arguments[2], _I32(0))
        value = builder.insert_element(value, arguments[3], _I32(1))
        _store_ids(context, builder, signature.args[0], *arguments[:2], value, arguments[4])
        return context.get_dummy_value()

    return types.void(ids, types.int64, types.uint64, types.uint64, types.int64), code


def _take_ids_wide(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """As ``take_ids``: both slots are one line, compared at once."""
    three = _I64(3)
    wanted = _load_two(context, builder, signature.args[0], arguments[0], builder.shl(arguments[1], three), 8)
    wanted = builder.shuffle_vector(wanted, wanted, ir.Constant(ir.VectorType(_I32, 8), [0, 1] * 4))
    line = _byte_pointer(context, builder, signature.args[2], arguments[2], builder.shl(arguments[3], three))
    slots = builder.load(builder.bitcast(line, _LINE.as_pointer()))
    slots.align = 8
    equal = builder.zext(builder.bitcast(builder.icmp_unsigned("==", slots, wanted), _I8), _I64)
    equal = builder.and_(equal, builder.lshr(equal, _I64(1)))
    offset = builder.add(builder.shl(builder.and_(equal, _I64(16)), _I64(1)), _I64(16))
    found = builder.icmp_unsigned("!=", builder.and_(equal, _I64(17)), _I64(0))
    pointer = builder.bitcast(builder.gep(line, [offset]), _PAIR.as_pointer())
    value = builder.load(pointer)
    value.align = 8
    count = builder.ashr(builder.extract_element(value, _I32(0)), _I64(56))
    _store_ids(context, builder, signature.args[4], *arguments[4:6], value, arguments[6])
    return builder.select(found, count, _I64(-1))


@intrinsic
def take_ids(
    typing_context: Any, keys: Any, key: Any, slots: Any, at: Any, ids: Any, to: Any, id_bits: Any
) -> Any:
    """The value of a key in one of two slots of four words: ids are written, their number returned, or -1."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _is_wide():
            return _take_ids_wide(context, builder, signature, arguments)
        eight = ir.Constant(_I64, 3)
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
        _store_ids(context, builder, signature.args[4], *arguments[4:6], value, arguments[6])
        return builder.or_(count, builder.sext(builder.and_(*differ), _I64))

    return types.int64(keys, types.int64, slots, types.int64, ids, types.int64, types.int64), code


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


@intrinsic
def has_wide_vectors(typing_context: Any) -> Any:
    """1 in code for CPUs with vectors of 64 bytes (AVX-512), else 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _I64(int(_is_wide()))

    return types.int64(), code


def _is_wide() -> bool:
    return _jit.compiling_level == "x86-64-v4"

_LANES = ir.VectorType(_I1, 16)


def _compress_items(builder: Any) -> Any:
    """LLVM's function that moves those of sixteen items to the front that a mask has."""
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_IDS, [_IDS, _LANES, _IDS]), "llvm.experimental.vector.compress.v16i32"
    )


def _sixteen_places(builder: Any, bits: Any, first: int, base: Any) -> tuple[Any, Any]:
    """`base` plus the number of each of 16 bits from `first` on that is set, at the front of a vector; and those bits."""
    part = builder.trunc(builder.lshr(bits, _I64(first)), _I16)
    places = builder.add(base, ir.Constant(_IDS, list(range(first, first + 16))))
    return builder.call(_compress_items(builder), [places, builder.bitcast(part, _LANES), base]), part


@intrinsic
def put_places(typing_context: Any, array: Any, index: Any, bits: Any, base: Any) -> Any:
    """Write `base` plus the number of each set bit to an int32 array from `index` on; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return context.get_dummy_value()
        count = builder.module.declare_intrinsic("llvm.ctpop", [_I64])
        index, bits = arguments[1], arguments[2]
        base = _spread(builder, arguments[3])
        for first in range(0, 64, 16):
            places, part = _sixteen_places(builder, bits, first, base)
            pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], builder.shl(index, _I64(2)))
            builder.store(places, builder.bitcast(pointer, _IDS.as_pointer())).align = 4
            index = builder.add(index, builder.call(count, [builder.zext(part, _I64)]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64, types.int64), code


@intrinsic
def put_entries(
    typing_context: Any,
    entries: Any,
    offset: Any,
    n: Any,
    data: Any,
    at: Any,
    base: Any,
    page_of: Any,
    class_of: Any,
) -> Any:
    """Write the entries of characters that begin in 64 bytes of text, and their places; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return _I64(0)
        kinds = signature.args

        def load(array: int, place: Any, kind: Any) -> Any:
            pointer = _byte_pointer(context, builder, kinds[array], arguments[array], place)
            value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
            value.align = 1
            return value

        def store(value: Any, array: int, place: Any) -> None:
            pointer = _byte_pointer(context, builder, kinds[array], arguments[array], place)
            builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 1

        def every(byte: int) -> Any:
            return ir.Constant(_V64, [byte] * 64)

        def byte_of(value: Any, number: int) -> Any:
            return builder.and_(builder.lshr(value, _I64(8 * number)), _I64(0xFF))

        def equal(block: Any, byte: Any, always: Any = None) -> Any:
            bits = builder.bitcast(
                builder.icmp_unsigned("==", block, _splat(builder, builder.trunc(byte, _I8))), _I64
            )
            return bits if always is None else builder.or_(bits, builder.sext(always, _I64))

        n, at, base = arguments[2], arguments[4], arguments[5]
        blocks = [load(3, builder.add(at, _I64(i)), _V64) for i in range(3)]
        leads = builder.bitcast(builder.icmp_signed(">", blocks[0], every(0xBF - 256)), _I64)
        beyond_ascii = builder.bitcast(builder.icmp_signed("<", blocks[0], every(0)), _I64)
        todo = builder.and_(leads, beyond_ascii)
        one = ir.FunctionType(_I64, [_I64, _I1])
        trailing = builder.module.declare_intrinsic("llvm.cttz", [_I64], one)
        before = builder.block
        body, after = (builder.append_basic_block(name) for name in ("classes", "put"))
        builder.cbranch(builder.icmp_unsigned("!=", todo, _I64(0)), body, after)
        # The first character beyond ASCII, and all like it, those of the same 64 codepoints; then the first of the others.
        builder.position_at_end(body)
        shuffle = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_V64, [_V64, _V64]), "llvm.x86.avx512.pshuf.b.512"
        )
        quarter = ir.VectorType(_I8, 16)
        repeated = ir.Constant(ir.VectorType(_I32, 64), [*range(16)] * 4)

        def classes_like(place: Any) -> tuple[Any, Any]:
            character = builder.zext(load(3, builder.add(at, place), _I32), _I64)
            first, second, third = (byte_of(character, number) for number in range(3))
            is_two = builder.icmp_unsigned("<", first, _I64(0xE0))
            is_short = builder.icmp_unsigned("<", first, _I64(0xF0))
            low_second, low_third = (builder.and_(byte, _I64(63)) for byte in (second, third))
            of_three = builder.or_(builder.shl(builder.and_(first, _I64(15)), _I64(6)), low_second)
            of_four = builder.or_(
                builder.shl(builder.and_(first, _I64(7)), _I64(12)),
                builder.or_(builder.shl(low_second, _I64(6)), low_third),
            )
            row = builder.select(
                is_two, builder.and_(first, _I64(31)), builder.select(is_short, of_three, of_four)
            )
            same = builder.and_(equal(blocks[0], first), equal(blocks[1], second, is_two))
            same = builder.and_(same, equal(blocks[2], third, is_short))
            page = builder.zext(load(6, builder.and_(row, _I64(-2)), _I16), _I64)
            row = builder.add(builder.shl(page, _I64(7)), builder.shl(builder.and_(row, _I64(1)), _I64(6)))
            ahead = builder.add(
                builder.zext(builder.not_(is_two), _I64), builder.zext(builder.not_(is_short), _I64)
            )
            last = load(3, builder.add(builder.add(at, _I64(1)), ahead), _V64)
            # By the last byte: by its lower four bits in four rows of 16, of which two bits tell one.
            low = builder.and_(last, every(15))
            rows = []
            for i in range(4):
                part = load(7, builder.add(row, _I64(16 * i)), quarter)
                whole = builder.shuffle_vector(part, ir.Constant(quarter, ir.Undefined), repeated)
                rows.append(builder.call(shuffle, [whole, low]))
            has_16, has_32 = (
                builder.icmp_unsigned("!=", builder.and_(last, every(bit)), every(0)) for bit in (16, 32)
            )
            found = builder.select(
                has_32, builder.select(has_16, rows[3], rows[2]), builder.select(has_16, rows[1], rows[0])
            )
            return same, builder.or_(found, every(0x80))

        left, now = todo, blocks[0]
        for _ in range(2):
            same, found = classes_like(builder.call(trailing, [left, _I1(0)]))
            same = builder.and_(same, left)
            now = builder.select(builder.bitcast(same, ir.VectorType(_I1, 64)), found, now)
            left = builder.xor(left, same)
        from_body = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        rest, block = builder.phi(_I64), builder.phi(_V64)
        for phi, of_none, of_some in ((rest, todo, left), (block, blocks[0], now)):
            phi.add_incoming(of_none, before)
            phi.add_incoming(of_some, from_body)
        # Of the bytes that characters begin with, up to the first that is none of these.
        done = builder.call(trailing, [rest, _I1(0)])
        lower = builder.sub(builder.and_(rest, builder.sub(_I64(0), rest)), _I64(1))
        leads = builder.and_(leads, lower)
        # Classes eight bytes at a time, places sixteen at a time.
        move = ir.FunctionType(_I64, [_I64, _I64])
        extract = cgutils.get_or_insert_function(builder.module, move, "llvm.x86.bmi.pext.64")
        count = builder.module.declare_intrinsic("llvm.ctpop", [_I64])
        begin = _spread(builder, builder.add(at, base))
        # Written and read again, which is faster than taking vectors apart. What is written for eight bytes never reaches
        # the next eight.
        first = n
        store(block, 0, first)
        store(builder.sext(builder.bitcast(leads, ir.VectorType(_I1, 64)), _V64), 0, builder.add(first, _I64(64)))
        for i in range(8):
            if i % 2 == 0:
                places, _ = _sixteen_places(builder, leads, 8 * i, begin)
                store(places, 1, builder.shl(n, _I64(2)))
            eight, mask = (load(0, builder.add(first, _I64(place)), _I64) for place in (8 * i, 64 + 8 * i))
            store(builder.call(extract, [eight, mask]), 0, n)
            n = builder.add(n, builder.call(count, [builder.and_(builder.lshr(leads, _I64(8 * i)), _I64(0xFF))]))
        return builder.or_(builder.shl(done, _I64(32)), n)

    whole = types.int64
    return whole(entries, offset, whole, data, whole, whole, page_of, class_of), code


def _prefix_code(both: bool) -> Any:
    """Code for ``prefix_bits``, or for ``prefix_bits_of_two`` with `both`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return _I64(0)

        def every(number: int) -> Any:
            return ir.Constant(_IDS, [number] * 16)

        def splat(value: Any) -> Any:
            single = builder.insert_element(ir.Constant(_IDS, ir.Undefined), builder.trunc(value, _I32), _I32(0))
            return builder.shuffle_vector(single, single, every(0))

        base = _byte_pointer(context, builder, signature.args[2], arguments[2], _I64(0))
        kind = ir.FunctionType(_IDS, [_IDS, base.type, _IDS, _LANES, _I32])
        gather = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.mask.gather.dpi.512")
        low, high, shift = (splat(value) for value in arguments[3:6])

        def words(offset: int) -> Any:  # at every fourth place from there on
            place = builder.add(arguments[1], _I64(offset))
            pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], place)
            value = builder.load(builder.bitcast(pointer, _IDS.as_pointer()))
            value.align = 1
            return value

        found = every(0)
        for i in (1, 3) if both else range(4):
            rest = builder.shl(builder.and_(words(i + 4), high), every(5))
            mixed = builder.xor(builder.and_(words(i), low), rest)
            place = builder.lshr(builder.mul(mixed, every(PREFIX_FACTOR)), shift)
            if both:
                place = builder.shl(place, every(1))
            index = builder.lshr(place, every(5))
            word = builder.call(gather, [every(0), base, index, ir.Constant(_LANES, [1] * 16), _I32(4)])
            bits = builder.lshr(word, builder.and_(place, every(31)))
            if both:  # the lower bit is for the place before
                bits = builder.or_(builder.and_(bits, every(1)), builder.shl(builder.and_(bits, every(2)), every(7)))
                bits = builder.shl(bits, every(8 * (i - 1)))
            else:
                bits = builder.shl(builder.and_(bits, every(1)), every(8 * i))
            found = builder.or_(found, bits)
        is_found = builder.icmp_unsigned("!=", builder.bitcast(found, _V64), ir.Constant(_V64, [0] * 64))
        return builder.bitcast(is_found, _I64)

    return code


def _prefix_type(array: Any, prefixes: Any) -> Any:
    return types.uint64(array, types.int64, prefixes, types.int64, types.int64, types.int64)


@intrinsic
def prefix_bits(
    typing_context: Any, array: Any, index: Any, prefixes: Any, low: Any, high: Any, shift: Any
) -> Any:
    """Which of the 64 places from `index` have their bit in a bitmap of beginnings; only with wide vectors."""
    return _prefix_type(array, prefixes), _prefix_code(False)


@intrinsic
def prefix_bits_of_two(
    typing_context: Any, array: Any, index: Any, prefixes: Any, low: Any, high: Any, shift: Any
) -> Any:
    """As ``prefix_bits``, where two neighbours share a look; only with wide vectors."""
    return _prefix_type(array, prefixes), _prefix_code(True)


_W32 = ir.VectorType(_I64, 32)


def _mask_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.data_model_manager[array_type].get(builder, array, "data")
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


#: As in kernels.merge.
_NO_SYMBOL = (1 << 20) - 1
_PLACE_BITS = 6
_NO_MERGE = (1 << 24) - 1


def _sixteen(number: int) -> Any:
    return ir.Constant(_IDS, [number] * 16)


def _spread(builder: Any, value: Any) -> Any:
    """The low half of a number, sixteen times."""
    undefined = ir.Constant(_IDS, ir.Undefined)
    single = builder.insert_element(undefined, builder.trunc(value, _I32), _I32(0))
    return builder.shuffle_vector(single, undefined, _sixteen(0))


def _lane_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to sixteen items of an int32 array."""
    pointer = _byte_pointer(context, builder, array_type, array, builder.shl(index, _I64(2)))
    return builder.bitcast(pointer, _IDS.as_pointer())


def _load_lanes(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    value = builder.load(_lane_pointer(context, builder, array_type, array, index))
    value.align = 4
    return value


def _store_lanes(context: Any, builder: Any, array_type: Any, array: Any, index: Any, value: Any) -> None:
    builder.store(value, _lane_pointer(context, builder, array_type, array, index)).align = 4


def _gather(context: Any, builder: Any, array_type: Any, array: Any, first: Any, items: Any, mask: Any, other: Any) -> Any:
    """Four bytes from ``array[first + item]`` on, for each lane in the mask; those of `other` for the rest."""
    size = array_type.dtype.bitwidth // 8
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_IDS, [_IDS, _I8.as_pointer(), _IDS, _LANES, _I32]),
        "llvm.x86.avx512.mask.gather.dpi.512",
    )
    pointer = _byte_pointer(context, builder, array_type, array, builder.mul(first, _I64(size)))
    return builder.call(function, [other, pointer, items, mask, _I32(size)])


def _scatter(
    context: Any, builder: Any, array_type: Any, array: Any, first: Any, items: Any, mask: Any, values: Any
) -> None:
    """``array[first + item]`` of an int32 array becomes the value, for each lane in the mask."""
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _LANES, _IDS, _IDS, _I32]),
        "llvm.x86.avx512.mask.scatter.dpi.512",
    )
    pointer = _byte_pointer(context, builder, array_type, array, builder.shl(first, _I64(2)))
    builder.call(function, [pointer, mask, items, values, _I32(4)])


def _highest_bits(builder: Any, value: Any) -> Any:
    zeros = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_IDS, [_IDS, _I1]), "llvm.ctlz.v16i32")
    return builder.sub(_sixteen(31), builder.call(zeros, [value, _I1(0)]))


def _lowest_bit(builder: Any, value: Any) -> Any:
    """The value that has only the lowest bit."""
    return builder.and_(value, builder.sub(_sixteen(0), value))


def _lane_items(builder: Any, places: Any) -> Any:
    """Where the places of each lane's word are."""
    return builder.add(builder.shl(places, _sixteen(4)), ir.Constant(_IDS, list(range(16))))


@intrinsic
def load_lane_bytes(
    typing_context: Any,
    symbols: Any,
    packed: Any,
    group: Any,
    place: Any,
    text: Any,
    firsts: Any,
    lengths: Any,
    lane: Any,
    byte_pair: Any,
) -> Any:
    """The symbols at one place of sixteen words, and their merges with the next; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return context.get_dummy_value()
        kinds = signature.args
        first = _load_lanes(context, builder, kinds[5], arguments[5], arguments[7])
        length = _load_lanes(context, builder, kinds[6], arguments[6], arguments[7])
        place = _spread(builder, arguments[3])
        row = builder.add(arguments[2], builder.shl(arguments[3], _I64(4)))
        inside = builder.icmp_signed("<=", place, length)
        at = builder.sub(builder.add(first, place), _sixteen(1))
        value = _gather(context, builder, kinds[4], arguments[4], _I64(0), at, inside, _sixteen(0))
        symbol = builder.select(inside, builder.and_(value, _sixteen(255)), _sixteen(_NO_SYMBOL))
        _store_lanes(context, builder, kinds[0], arguments[0], row, symbol)
        paired = builder.icmp_signed("<", place, length)
        pair = builder.and_(value, _sixteen(0xFFFF))
        number = _gather(
            context, builder, kinds[8], arguments[8], _I64(0), pair, paired, _sixteen(_NO_MERGE)
        )
        merge = builder.or_(builder.shl(number, _sixteen(_PLACE_BITS)), place)
        _store_lanes(context, builder, kinds[1], arguments[1], row, merge)
        return context.get_dummy_value()

    return types.void(
        symbols, packed, types.int64, types.int64, text, firsts, lengths, types.int64, byte_pair
    ), code


@intrinsic
def fill_lanes(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Sixteen items of an int32 array from `index` become one value; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _is_wide():
            _store_lanes(
                context, builder, signature.args[0], arguments[0], arguments[1], _spread(builder, arguments[2])
            )
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), code


@intrinsic
def take_lane_merges(
    typing_context: Any,
    symbols: Any,
    packed: Any,
    alive: Any,
    lane: Any,
    group: Any,
    first_symbol: Any,
    pairs: Any,
    items: Any,
    kept: Any,
) -> Any:
    """The next merge of each of sixteen words; pairs to look up are listed; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return arguments[8]
        kinds = signature.args
        group = arguments[4]
        least_of = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_IDS, [_IDS, _IDS]), "llvm.smin.v16i32"
        )
        rows = [
            _load_lanes(context, builder, kinds[1], arguments[1], builder.add(group, _I64(16 * place)))
            for place in range(1, 14)
        ]
        while len(rows) > 1:
            rows = [builder.call(least_of, rows[i : i + 2]) for i in range(0, len(rows) - 1, 2)] + (
                rows[-1:] if len(rows) % 2 else []
            )
        least = rows[0]
        active = builder.icmp_signed("<", least, _sixteen(_NO_MERGE << _PLACE_BITS))
        at = builder.and_(least, _sixteen((1 << _PLACE_BITS) - 1))
        symbol = builder.add(builder.ashr(least, _sixteen(_PLACE_BITS)), _spread(builder, arguments[5]))
        bits = _load_lanes(context, builder, kinds[2], arguments[2], arguments[3])
        bit = builder.shl(_sixteen(1), at)
        below = builder.sub(bit, _sixteen(1))
        above = builder.and_(bits, builder.xor(builder.or_(below, bit), _sixteen(-1)))
        right = _lowest_bit(builder, above)
        above = builder.xor(above, right)
        beyond = _highest_bits(builder, _lowest_bit(builder, above))
        before = _highest_bits(builder, builder.and_(bits, below))
        bits = builder.xor(bits, builder.select(active, right, _sixteen(0)))
        _store_lanes(context, builder, kinds[2], arguments[2], arguments[3], bits)
        right = _highest_bits(builder, right)
        beyond, before, right, at = (_lane_items(builder, places) for places in (beyond, before, right, at))
        nothing = _sixteen(_NO_SYMBOL)
        after_it = _gather(context, builder, kinds[0], arguments[0], group, beyond, active, nothing)
        before_it = _gather(context, builder, kinds[0], arguments[0], group, before, active, nothing)
        _scatter(context, builder, kinds[0], arguments[0], group, at, active, symbol)
        # Until its merge is looked up, a place has none.
        none = _sixteen(_NO_MERGE << _PLACE_BITS)
        _scatter(context, builder, kinds[1], arguments[1], group, at, active, none)
        _scatter(context, builder, kinds[1], arguments[1], group, right, active, none)
        compress_items = _compress_items(builder)
        compress_pairs = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_LINE, [_LINE, _EIGHT, _LINE]),
            "llvm.experimental.vector.compress.v8i64",
        )
        count = builder.module.declare_intrinsic("llvm.ctpop", [_I64])
        kept = arguments[8]
        base = _spread(builder, group)
        for left, other, place, wanted in (
            (symbol, after_it, at, after_it),
            (before_it, symbol, before, before_it),
        ):
            found = builder.icmp_signed("!=", wanted, nothing)
            place = builder.call(compress_items, [builder.add(place, base), found, place])
            _store_lanes(context, builder, kinds[7], arguments[7], kept, place)
            for half in range(2):
                order = ir.Constant(ir.VectorType(_I32, 8), list(range(8 * half, 8 * half + 8)))
                both = [builder.zext(builder.shuffle_vector(v, v, order), _LINE) for v in (left, other)]
                key = builder.or_(builder.shl(both[0], ir.Constant(_LINE, [20] * 8)), both[1])
                part = builder.shuffle_vector(found, found, order)
                key = builder.call(compress_pairs, [key, part, key])
                pointer = _byte_pointer(context, builder, kinds[6], arguments[6], builder.shl(kept, _I64(3)))
                builder.store(key, builder.bitcast(pointer, _LINE.as_pointer())).align = 8
                number = builder.call(count, [builder.zext(builder.bitcast(part, _I8), _I64)])
                kept = builder.add(kept, number)
        return kept

    return types.int64(
        symbols, packed, alive, types.int64, types.int64, types.int64, pairs, items, types.int64
    ), code


@intrinsic
def put_lane_tokens(
    typing_context: Any,
    symbols: Any,
    alive: Any,
    lane: Any,
    group: Any,
    tokens: Any,
    order: Any,
    ids: Any,
    number: Any,
) -> Any:
    """Write the token that is next of each of sixteen words; returns 0 when all are; only with wide vectors."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not _is_wide():
            return _I64(0)
        kinds = signature.args
        bits = _load_lanes(context, builder, kinds[1], arguments[1], arguments[2])
        # The first bit left is that of the sentinel, or of the token before; the last one is a sentinel's.
        bits = builder.xor(bits, _lowest_bit(builder, bits))
        _store_lanes(context, builder, kinds[1], arguments[1], arguments[2], bits)
        low = _lowest_bit(builder, bits)
        found = builder.icmp_signed("!=", bits, low)
        place = _lane_items(builder, _highest_bits(builder, low))
        symbol = _gather(context, builder, kinds[0], arguments[0], arguments[3], place, found, _sixteen(0))
        token = _gather(context, builder, kinds[4], arguments[4], _I64(0), symbol, found, _sixteen(0))
        words = _load_lanes(context, builder, kinds[5], arguments[5], arguments[2])
        to = builder.shl(words, _sixteen(4))
        _scatter(context, builder, kinds[6], arguments[6], arguments[7], to, found, token)
        return builder.zext(builder.bitcast(found, _I16), _I64)

    return types.int64(symbols, alive, types.int64, types.int64, tokens, order, ids, types.int64), code
