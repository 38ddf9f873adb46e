"""Python strings to UTF-8, read where CPython keeps them: many strings cost no Python step, and no lock, each."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import inlined, kernel
from jittok.kernels.machine import (
    copy_block,
    has_wide_vectors,
    load64,
    prefetch,
    put_characters,
    put_triples,
    trailing_zeros,
)

#: Positions in `layout`: what to add to a string's address for the place in `memory`
TYPE = 0  # of its type pointer,
LENGTH = 1  # of its length in characters (int64),
STATE = 2  # of its state (uint32),
ASCII_TEXT = 3  # of the characters of an ASCII string,
OTHER_TEXT = 4  # and of another one;
ASCII_BIT = 5  # the bit of the state that says that all is ASCII,
COMPACT_BIT = 6  # the bit that says that the characters are in the object itself,
KIND_SHIFT = 7  # and the number of the lowest of the three bits that hold the bytes of a character (1, 2 or 4).
STR = 8  # The address of the type str itself.
LAYOUT_SIZE = 9

#: Strings whose first cache line is asked for ahead.
AHEAD = 6
#: Memory is there, or not, a page of at least so many bytes at a time.
PAGE = 4096
BYTES_80 = np.uint64(0x8080808080808080)
UNITS_80 = np.uint64(0xFF80FF80FF80FF80)


@kernel
def measure_strings(memory: Any, layout: Any, addresses: Any, lengths: Any, sizes: Any) -> int:
    """Running totals of the lengths of strings.

    Parameters
    ----------
    memory : uint8
        All memory.
    layout : int64[LAYOUT_SIZE]
        How this Python lays out strings.
    addresses : int64[n]
        Addresses of Python objects, which the caller keeps alive.
    lengths : int64[n + 1]
        Output: characters before each string.
    sizes : int64[n + 1]
        Output: bytes of UTF-8 before each string, at most.

    Returns
    -------
    int
        `n`, or the number of the first object that is no str, or one of an unusual form.
    """
    length = np.int64(0)
    size = np.int64(0)
    lengths[0] = 0
    sizes[0] = 0
    last = addresses.size - 1
    compact = np.uint64(layout[COMPACT_BIT])
    is_ascii = np.uint64(layout[ASCII_BIT])
    for i in range(addresses.size):
        prefetch(memory, addresses[np.uint64(min(i + AHEAD, last))])
        at = addresses[np.uint64(i)]
        state = load64(memory, at + layout[STATE])
        if np.int64(load64(memory, at + layout[TYPE])) != layout[STR] or state & compact == 0:
            return i
        n = np.int64(load64(memory, at + layout[LENGTH]))
        length += n
        if state & is_ascii == 0:
            kind = np.int64(state >> np.uint64(layout[KIND_SHIFT])) & 7
            n *= 2 if kind == 1 else 3 if kind == 2 else 4
        size += n
        lengths[np.uint64(i + 1)] = length
        sizes[np.uint64(i + 1)] = size
    return addresses.size


@inlined
def put_codepoint(data: Any, n: int, codepoint: int) -> int:
    """Write a codepoint as UTF-8; returns the position after it. Four bytes are written whatever its length.

    Without branches: text of many scripts is mixed with blanks, at which a branch would be mispredicted.
    """
    two = codepoint >> 6 | (codepoint << 8 & 0x3F00) | 0x80C0
    three = codepoint >> 12 | (codepoint << 2 & 0x3F00) | (codepoint << 16 & 0x3F0000) | 0x8080E0
    high = codepoint >> 18 | (codepoint >> 4 & 0x3F00)
    four = high | (codepoint << 10 & 0x3F0000) | (codepoint << 24 & 0x3F000000) | 0x808080F0
    size = 1
    code = codepoint
    if codepoint >= 0x80:
        code = two
        size = 2
    if codepoint >= 0x800:
        code = three
        size = 3
    if codepoint >= 0x10000:
        code = four
        size = 4
    data[np.uint64(n)] = code & 0xFF
    data[np.uint64(n + 1)] = code >> 8 & 0xFF
    data[np.uint64(n + 2)] = code >> 16 & 0xFF
    data[np.uint64(n + 3)] = code >> 24
    return n + size


@kernel
def copy_strings(memory: Any, layout: Any, addresses: Any, data: Any, indptr: Any) -> int:
    """UTF-8 of strings, one after another.

    Parameters
    ----------
    memory : uint8
        All memory.
    layout : int64[LAYOUT_SIZE]
        How this Python lays out strings.
    addresses : int64[n]
        Addresses of strings that ``measure_strings`` accepts, and which the caller keeps alive.
    data : uint8
        Output; 64 bytes larger than ``measure_strings`` says, at least.
    indptr : int64[n + 1]
        Output: where each string begins in `data`, and the end of the last.

    Returns
    -------
    int
        `n`, or the number of the first string with a surrogate, which has no UTF-8 form. Linear.
    """
    n = np.int64(0)
    indptr[0] = 0
    last = addresses.size - 1
    is_ascii = np.uint64(layout[ASCII_BIT])
    for i in range(addresses.size):
        prefetch(memory, addresses[np.uint64(min(i + AHEAD, last))])
        at = addresses[np.uint64(i)]
        length = np.int64(load64(memory, at + layout[LENGTH]))
        state = load64(memory, at + layout[STATE])
        k = np.int64(0)
        if state & is_ascii != 0:
            source = at + layout[ASCII_TEXT]
            while k < length:
                # Whole blocks; what is read past the end of the string is on its page, and overwritten by the next.
                if k + 64 <= length or (source + k) & (PAGE - 1) <= PAGE - 64:
                    copy_block(data, n + k, memory, source + k)
                    k += 64
                else:
                    data[np.uint64(n + k)] = memory[np.uint64(source + k)]
                    k += 1
            n += length
        else:
            kind = np.int64(state >> np.uint64(layout[KIND_SHIFT])) & 7
            source = at + layout[OTHER_TEXT]
            if has_wide_vectors() and kind != 1:
                while k + 8 <= length:
                    size = np.int64(put_characters(data, n, memory, source + kind * k, kind))
                    if size == 0:
                        return i
                    n += size
                    k += 8
            if kind == 1:
                while k < length:
                    if k + 64 <= length:
                        # As many bytes as are ASCII, up to 64.
                        ready = trailing_zeros(copy_block(data, n, memory, source + k))
                        n += ready
                        k += ready
                        if ready == 64:
                            continue
                    elif k + 8 <= length:
                        # Eight bytes, of which those before the first that is not ASCII count.
                        eight = load64(memory, source + k)
                        for j in range(8):
                            data[np.uint64(n + j)] = eight >> np.uint64(8 * j) & np.uint64(0xFF)
                        eight &= BYTES_80
                        ready = trailing_zeros(eight) >> 3
                        n += ready
                        k += ready
                        if eight == 0:
                            continue
                    n = put_codepoint(data, n, np.int64(memory[np.uint64(source + k)]))
                    k += 1
            elif kind == 2:
                while k < length:
                    first = source + 2 * k
                    low = np.int64(memory[np.uint64(first)])
                    high = np.int64(memory[np.uint64(first + 1)])
                    if high >= 8:
                        if k + 8 <= length:
                            # As many as take three bytes, up to eight.
                            ready = np.int64(put_triples(data, n, memory, first))
                            if ready > 0:
                                n += 3 * ready
                                k += ready
                                continue
                        if high & 0xF8 == 0xD8:
                            return i
                        data[np.uint64(n)] = 0xE0 | high >> 4
                        data[np.uint64(n + 1)] = 0x80 | (high << 2 & 0x3C) | low >> 6
                        data[np.uint64(n + 2)] = 0x80 | (low & 0x3F)
                        n += 3
                        k += 1
                    elif high != 0 or low >= 0x80:
                        data[np.uint64(n)] = 0xC0 | high << 2 | low >> 6
                        data[np.uint64(n + 1)] = 0x80 | (low & 0x3F)
                        n += 2
                        k += 1
                    elif k + 8 <= length and (load64(memory, first) | load64(memory, first + 8)) & UNITS_80 == 0:
                        for j in range(8):
                            data[np.uint64(n + j)] = memory[np.uint64(first + 2 * j)]
                        n += 8
                        k += 8
                    else:
                        data[np.uint64(n)] = low
                        n += 1
                        k += 1
            else:
                while k < length:
                    first = source + 4 * k
                    codepoint = (
                        np.int64(memory[np.uint64(first)])
                        | np.int64(memory[np.uint64(first + 1)]) << 8
                        | np.int64(memory[np.uint64(first + 2)]) << 16
                    )
                    if codepoint & 0xFFF800 == 0xD800:
                        return i
                    n = put_codepoint(data, n, codepoint)
                    k += 1
        indptr[np.uint64(i + 1)] = n
    return addresses.size
