"""Single machine operations that plain array code cannot express: unaligned loads, bit counts, prefetch.

Here they are in plain Python, for runs with the JIT off; compiled, they are the intrinsics of the same names in
:mod:`jittok.kernels.machine_code`, which is imported when something must be compiled.
Offsets are in bytes from the start of the array and are never checked: callers keep them in range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import machine_operation


@machine_operation
def load64(array: Any, offset: int) -> np.uint64:
    """Eight bytes at `offset` of a uint8 array, little-endian."""
    return np.uint64(int.from_bytes(array[int(offset) : int(offset) + 8].tobytes(), "little"))


@machine_operation
def copy_block(target: Any, to: int, source: Any, at: int) -> np.uint64:
    """Copy 64 bytes of a uint8 array into another; returns which of them are 0x80 or more, as a 64-bit mask."""
    block = source[int(at) : int(at) + 64].copy()
    target[int(to) : int(to) + 64] = block
    return np.uint64(sum(1 << i for i, byte in enumerate(block) if byte >= 0x80))


@machine_operation
def put_triples(target: Any, to: int, source: Any, at: int) -> int:
    """Write UTF-8 of eight UTF-16 units, those at byte `at`, to byte `to`, as if each took three bytes; 32 are written.

    Returns how many of the first ones do, surrogates not among them.
    """
    n = 0
    for i in range(8):
        unit = int(source[int(at) + 2 * i]) | int(source[int(at) + 2 * i + 1]) << 8
        if n < i or unit < 0x800 or unit & 0xF800 == 0xD800:
            continue
        target[int(to) + 3 * i] = 0xE0 | unit >> 12
        target[int(to) + 3 * i + 1] = 0x80 | (unit >> 6 & 0x3F)
        target[int(to) + 3 * i + 2] = 0x80 | (unit & 0x3F)
        n += 1
    return n


@machine_operation
def put_characters(target: Any, to: int, source: Any, at: int, kind: int) -> int:
    """Write UTF-8 of eight characters of `kind` bytes each, 2 or 4, those at byte `at`; returns its bytes.

    0 if one is a surrogate. Up to 32 bytes are written. Only where there are wide vectors.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def run_mask_code(address: int, entries: Any, masks: Any, words: int, only_ascii: int) -> None:
    """Call the machine code of a mask program, see :mod:`jittok._mask_code`; never without the JIT."""
    raise AssertionError("machine code where there is no JIT")


@machine_operation
def store_pair(array: Any, index: int, pair: np.uint64) -> None:
    """Write the low and high 32 bits of `pair` to ``array[index]`` and ``array[index + 1]`` (int32)."""
    array[int(index) : int(index) + 2] = np.array([int(pair)], np.uint64).view(np.int32)


@machine_operation
def load_pair(array: Any, index: int) -> np.uint64:
    """``array[index]`` (int32) in the low and ``array[index + 1]`` in the high 32 bits."""
    return np.uint64(int(array[int(index)]) & 0xFFFFFFFF | (int(array[int(index) + 1]) & 0xFFFFFFFF) << 32)


@machine_operation
def load_float(array: Any, index: int) -> np.float32:
    """``array[index]`` (int32), its bits taken as a float32."""
    return array[int(index) : int(index) + 1].view(np.float32)[0]


@machine_operation
def high_float(array: Any, index: int) -> np.float32:
    """The upper 32 bits of ``array[index]`` (uint64), taken as a float32."""
    return array[int(index) : int(index) + 1].view(np.float32)[1]


@machine_operation
def least_of_16(array: Any, index: int) -> int:
    """The least of 16 items of an int32 array from `index`."""
    return int(array[int(index) : int(index) + 16].min())


@machine_operation
def find_in_line(slots: Any, first: int, key: np.uint64) -> np.uint64:
    """Of the eight items of a uint64 array from `first`, the one whose upper 40 bits are `key`; all ones for none."""
    for item in slots[int(first) : int(first) + 8]:
        if int(item) >> 24 == int(key):
            return np.uint64(item)
    return np.uint64(0xFFFFFFFFFFFFFFFF)


@machine_operation
def make_key(keys: Any, key: int, text: Any, first: int, masks: Any, row: int) -> None:
    """``keys[key:key + 2]`` becomes 16 bytes of `text` from `first`, and two words of `masks`, or two more of them."""
    for i in range(2):
        keys[int(key) + i] = load64(text, int(first) + 8 * i) & masks[int(row) + i] | masks[int(row) + 2 + i]


@machine_operation
def make_four_keys(keys: Any, key: int, text: Any, word: Any, first: int, mask: int) -> None:
    """Keys of four words, from the one that is ``text[word[first]:word[first + 1]]`` on, and their places in a table.

    ``keys[key:key + 4]`` and so on become what ``word_cache.make_keys`` says. Only where there are wide vectors.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def pack_ids(slots: Any, at: int, ids: Any, first: int, n: int, id_bits: int) -> int:
    """Write the first `n` of eight ids as a slot's two words, as ``word_cache`` packs them; 0 if one has more bits."""
    words = [int(n) << 56, 0]
    found = 0
    for i in range(int(n)):
        found |= int(ids[int(first) + i])
        words[i > 2] |= int(ids[int(first) + i]) << int(id_bits) * (i if i < 3 else i - 3)
    slots[int(at)] = np.uint64(words[0] & 0xFFFFFFFFFFFFFFFF)
    slots[int(at) + 1] = np.uint64(words[1] & 0xFFFFFFFFFFFFFFFF)
    return int(found >> int(id_bits) == 0)


@machine_operation
def put_ids(ids: Any, to: int, low: np.uint64, high: np.uint64, id_bits: int) -> None:
    """Write the ids of a slot's two words, as ``word_cache`` packs them, to an int32 array: eight, some of no meaning."""
    mask = (1 << int(id_bits)) - 1
    for i in range(8):
        word = int(low) if i < 3 else int(high)
        ids[int(to) + i] = word >> int(id_bits) * (i % 3 if i < 6 else i - 3) & mask


@machine_operation
def take_ids(keys: Any, key: int, slots: Any, at: int, ids: Any, to: int, id_bits: int) -> int:
    """The value of a key in one of two slots of four words: ids are written as by ``put_ids``, their number returned.

    -1 if neither slot has the key, or the number there is 255.
    """
    wanted = keys[int(key) : int(key) + 2]
    at = int(at) if (slots[int(at) : int(at) + 2] == wanted).all() else int(at) + 4
    low = int(slots[at + 2])
    put_ids(ids, to, slots[at + 2], slots[at + 3], id_bits)
    found = (slots[at : at + 2] == wanted).all() and low >> 56 != 255
    return low >> 56 if found else -1


@machine_operation
def copy_ids(target: Any, to: int, source: Any, at: int) -> None:
    """Copy 16 items of an int32 array into another."""
    target[int(to) : int(to) + 16] = source[int(at) : int(at) + 16]


@machine_operation
def has_wide_vectors() -> int:
    """1 in code for CPUs with vectors of 64 bytes (AVX-512), else 0: a constant, so that one side of a test falls away."""
    return 0


@machine_operation
def put_places(array: Any, index: int, bits: np.uint64, base: int) -> None:
    """Write `base` plus the number of each set bit to an int32 array from `index` on; up to 16 items more are written.

    Only where there are wide vectors.
    """
    places = [int(base) + i for i in range(64) if int(bits) >> i & 1]
    array[int(index) : int(index) + len(places)] = places


@machine_operation
def put_entries(
    entries: Any, offset: Any, n: int, data: Any, at: int, base: int, page_of: Any, class_of: Any
) -> int:
    """Write the entries of characters that begin in 64 bytes of text from `at` on, see :mod:`jittok.kernels.split`.

    Those beyond ASCII are of at most two kinds: a kind has all bytes in common but the last. The first character of
    another kind ends them. Their places in the text, plus `base`, go to `offset`. Both are written from `n` on, and up to
    128 items, whatever their number. Six bytes after the block are read. Returns the place after the last entry, and times
    ``2**32`` how many bytes were taken, 64 if all. Only where there are wide vectors.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def prefix_bits(array: Any, index: int, prefixes: Any, low: int, high: int, shift: int) -> np.uint64:
    """Which of the 64 places from `index` of a uint8 array have their bit in a bitmap; see ``AddedTokenTables.prefixes``.

    Reads 71 bytes. Only where there are wide vectors.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def prefix_bits_of_two(array: Any, index: int, prefixes: Any, low: int, high: int, shift: int) -> np.uint64:
    """As ``prefix_bits``, where the bitmap has pairs of bits, by the bytes at the second of two places."""
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def or_masks(words: Any, result: int, a: int, b: int) -> None:
    """The 32 words from `result` become those from `a` or those from `b`."""
    words[int(result) : int(result) + 32] = words[int(a) : int(a) + 32] | words[int(b) : int(b) + 32]


@machine_operation
def and_masks(words: Any, result: int, a: int, b: int) -> None:
    """The 32 words from `result` become those from `a` and those from `b`."""
    words[int(result) : int(result) + 32] = words[int(a) : int(a) + 32] & words[int(b) : int(b) + 32]


@machine_operation
def not_mask(words: Any, result: int, a: int) -> None:
    """The 32 words from `result` become the complement of those from `a`."""
    words[int(result) : int(result) + 32] = ~words[int(a) : int(a) + 32]


@machine_operation
def mask_back(words: Any, result: int, a: int, places: int) -> None:
    """The 32 words from `result` become those from `a` moved up by `places` bits; the word before is read."""
    low = words[int(a) - 1 : int(a) + 31] >> np.uint64(64 - int(places))
    words[int(result) : int(result) + 32] = words[int(a) : int(a) + 32] << np.uint64(places) | low


@machine_operation
def mask_ahead(words: Any, result: int, a: int) -> None:
    """The 32 words from `result` become those from `a` moved down by one bit; the word after is read."""
    high = words[int(a) + 1 : int(a) + 33] << np.uint64(63)
    words[int(result) : int(result) + 32] = words[int(a) : int(a) + 32] >> np.uint64(1) | high


@machine_operation
def equal_bits(array: Any, index: int, value: int) -> np.uint64:
    """Which of the 64 bytes from `index` equal `value`, as a 64-bit mask."""
    block = array[int(index) : int(index) + 64] == value
    return np.uint64(sum(int(b) << i for i, b in enumerate(block)))


@machine_operation
def range_bits(array: Any, index: int, low: int, span: int) -> np.uint64:
    """Which of the 64 bytes from `index` are at least `low` and less than ``low + span``, as a 64-bit mask."""
    block = array[int(index) : int(index) + 64].astype(np.int64) - int(low)
    return np.uint64(sum(1 << i for i, b in enumerate(block) if 0 <= b < int(span)))


@machine_operation
def clean_block(result: Any, at: int, data: Any, index: int, lowers: int, cleans: int) -> np.uint64:
    """Write 64 bytes from `index` of `data` to `result`, cleaned up; which of them that is right for, as a mask.

    With `lowers` 1, A to Z become lower case. With `cleans` 1, TAB, LF and CR become blanks, and of other control
    characters, DEL among them, nothing is known; nor is it, in either case, of bytes from 0x80 on.
    """
    block = data[int(index) : int(index) + 64].astype(np.int64)
    blank = ((block == 9) | (block == 10) | (block == 13)) & bool(cleans)
    lower = np.where((block >= 0x41) & (block <= 0x5A) & bool(lowers), block + 0x20, block)
    result[int(at) : int(at) + 64] = np.where(blank, 0x20, lower)
    right = (block >= 0x20) & (block < 0x7F) | blank if cleans else block < 0x80
    return np.uint64(sum(1 << i for i, b in enumerate(right) if b))


@machine_operation
def choose(condition: Any, one: int, other: int) -> int:
    """`one` if the condition holds, else `other` (int64): never by a branch, so for what nobody could foretell."""
    return int(one) if condition else int(other)


@machine_operation
def trailing_zeros(value: np.uint64) -> int:
    """Number of zero bits below the lowest set bit; 64 for 0."""
    number = int(value)
    return 64 if number == 0 else (number & -number).bit_length() - 1


@machine_operation
def highest_bit(value: np.uint64) -> int:
    """Number of the highest set bit; -1 for 0."""
    return int(value).bit_length() - 1


@machine_operation
def count_bits(value: np.uint64) -> int:
    """Number of set bits."""
    return bin(int(value)).count("1")


@machine_operation
def prefetch(array: Any, index: int) -> None:
    """Ask for the cache line of ``array[index]`` ahead of its use."""


@machine_operation
def multiply(a: np.uint64, b: np.uint64) -> np.uint64:
    """Product modulo 2**64."""
    return np.uint64((int(a) * int(b)) & 0xFFFFFFFFFFFFFFFF)


@machine_operation
def bits_from(values: Any, index: int, least: np.float32) -> np.uint64:
    """Which of the 64 items from `index` of a float32 array are `least` or more, as a 64-bit mask."""
    block = values[int(index) : int(index) + 64] >= least
    return np.uint64(sum(int(b) << i for i, b in enumerate(block)))


@machine_operation
def bits_of(value: np.float32) -> int:
    """The bits of a float32, as an int32."""
    return int(np.float32(value).view(np.int32))


@machine_operation
def put_exponentials(target: Any, to: int, source: Any, at: int, top: np.float32) -> np.float32:
    """Write the exponentials of 64 items of a float32 array, each less `top`, to another; returns their sum.

    None may be above `top` by more than rounding. Below -87 they are 0. By Cephes' polynomial for float32, to 2 units in
    the last place; not contracted, so the same on every CPU.
    """
    value = source[int(at) : int(at) + 64] - np.float32(top)
    is_small = ~(value >= EXP_LEAST)
    value = np.where(is_small, np.float32(0), value)
    power = (value * EXP_FACTOR - np.float32(0.5)).astype(np.int32)
    whole = power.astype(np.float32)
    value = value - whole * EXP_HIGH - whole * EXP_LOW
    sums = np.full(64, EXP_TERMS[0], np.float32)
    for term in EXP_TERMS[1:]:
        sums = sums * value + term
    sums = sums * (value * value) + value + np.float32(1)
    sums = np.where(is_small, np.float32(0), (sums.view(np.int32) + (power << 23)).view(np.float32))
    target[int(to) : int(to) + 64] = sums
    width = 32
    while width:
        sums = sums[:width] + sums[width : 2 * width]
        width //= 2
    return sums[0]


#: Of :func:`put_exponentials`: the least exponent, 1 / log 2, log 2 in two parts, the polynomial's terms.
EXP_LEAST = np.float32(-87.0)
EXP_FACTOR = np.float32(1.44269504)
EXP_HIGH = np.float32(0.693359375)
EXP_LOW = np.float32(-2.12194440e-4)
EXP_TERMS = tuple(
    np.float32(term)
    for term in (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
)


@machine_operation
def load_lane_bytes(
    symbols: Any,
    packed: Any,
    group: int,
    place: int,
    text: Any,
    firsts: Any,
    lengths: Any,
    lane: int,
    byte_pair: Any,
) -> None:
    """The symbols at one place of sixteen words, and their merges with the next, as ``merge_lanes`` keeps them.

    Only where there are wide vectors, as the three that follow.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def fill_lanes(array: Any, index: int, value: int) -> None:
    """Sixteen items of an int32 array, from `index` on, become one value."""
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def take_lane_merges(
    symbols: Any,
    packed: Any,
    alive: Any,
    lane: int,
    group: int,
    first_symbol: int,
    pairs: Any,
    items: Any,
    kept: int,
) -> int:
    """Do the next merge of each of sixteen words; list pairs to look up from `kept` on, and where their merges belong.

    Returns the new number of pairs. A word that adds none is done.
    """
    raise AssertionError("wide vectors where there is no JIT")


@machine_operation
def put_lane_tokens(
    symbols: Any, alive: Any, lane: int, group: int, tokens: Any, order: Any, ids: Any, number: int
) -> int:
    """Write token `number` of each of sixteen words; returns 0 if none has so many."""
    raise AssertionError("wide vectors where there is no JIT")
