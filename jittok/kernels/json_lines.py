"""Take one field out of JSON lines, straight from their bytes.

What these functions accept is JSON, and is read as Python's ``json`` reads it. Anything that is not, or that is rare
enough, is left to that module: here such a line is only "odd".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, kernel
from jittok.kernels.machine import copy_block, equal_bits, range_bits, trailing_zeros

#: Deeper lines are odd.
MOST_DEEP = 60
#: So are longer numbers, of which Python may not read all.
_LONGEST_NUMBER = 1000

_QUOTE, _BACKSLASH = 0x22, 0x5C
#: What may come next: a key, a key or ``}``, a value, a value or ``]``, a comma or the end of what is open.
_KEY, _FIRST_KEY, _VALUE, _FIRST_VALUE, _COMMA = range(5)


@helper
def skip_white(data: Any, position: Any, end: Any) -> int:
    """The first position that has no blank, TAB, LF or CR."""
    p = np.int64(position)
    while p < end:
        c = int(data[np.uint64(p)])
        if c > 0x20 or not (c == 0x20 or c == 0x09 or c == 0x0A or c == 0x0D):
            break
        p += 1
    return p


@helper
def hex_number(data: Any, position: Any, end: Any) -> int:
    """The number of four hexadecimal digits, or -1."""
    if position + 4 > end:
        return np.int64(-1)
    number = np.int64(0)
    for i in range(4):
        c = int(data[np.uint64(position + i)])
        digit = np.int64(-1)
        if 0x30 <= c <= 0x39:
            digit = np.int64(c - 0x30)
        elif 0x61 <= (c | 0x20) <= 0x66:
            digit = np.int64((c | 0x20) - 0x57)
        if digit < 0:
            return np.int64(-1)
        number = number << 4 | digit
    return number


@helper
def scan_string(data: Any, position: Any, end: Any, out: Any, at: Any, keep: Any) -> tuple[int, int]:
    """Go through a string from behind its opening quote; with `keep`, write what it says to `out` from `at` on.

    Returns the position behind the closing quote, -1 if it is odd, and where what was written ends.
    """
    p = np.int64(position)
    o = np.int64(at)
    size = np.int64(data.size)
    while p < end:
        if p + 64 <= size:
            bits = equal_bits(data, p, _QUOTE) | equal_bits(data, p, _BACKSLASH) | range_bits(data, p, 0, 0x20)
            if keep:
                copy_block(out, o, data, p)
            n = np.int64(64)
            if bits != 0:
                n = np.int64(trailing_zeros(bits))
            p += n
            o += n
            if bits == 0:
                continue
            if p >= end:
                break
        c = int(data[np.uint64(p)])
        if c == _QUOTE:
            return p + 1, o
        if c < 0x20:
            break
        if c != _BACKSLASH:
            if keep:
                out[np.uint64(o)] = c
            o += 1
            p += 1
            continue
        if p + 1 >= end:
            break
        c = int(data[np.uint64(p + 1)])
        p += 2
        value = np.int64(c)
        if c == 0x6E:
            value = np.int64(0x0A)
        elif c == 0x74:
            value = np.int64(0x09)
        elif c == 0x72:
            value = np.int64(0x0D)
        elif c == 0x62:
            value = np.int64(0x08)
        elif c == 0x66:
            value = np.int64(0x0C)
        elif c == 0x75:
            value = hex_number(data, p, end)
            p += 4
            if value < 0:
                break
            if keep and value >> 11 == 0x1B:  # a surrogate: of two, the low one must follow
                low = np.int64(-1)
                if p + 6 <= end and int(data[np.uint64(p)]) == _BACKSLASH and int(data[np.uint64(p + 1)]) == 0x75:
                    low = hex_number(data, p + 2, end)
                if value >= 0xDC00 or low < 0 or low >> 10 != 0x37:
                    break
                p += 6
                value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
        elif c != _QUOTE and c != _BACKSLASH and c != 0x2F:
            break
        if not keep:
            continue
        if value < 0x80:
            out[np.uint64(o)] = value
            o += 1
            continue
        n = np.int64(2)
        lead = np.int64(0xC0)
        if value >= 0x10000:
            n = np.int64(4)
            lead = np.int64(0xF0)
        elif value >= 0x800:
            n = np.int64(3)
            lead = np.int64(0xE0)
        out[np.uint64(o)] = lead | value >> (6 * (n - 1))
        for i in range(1, n):
            out[np.uint64(o + i)] = 0x80 | (value >> (6 * (n - 1 - i)) & 0x3F)
        o += n
    return np.int64(-1), o


@helper
def scan_plain(data: Any, position: Any, end: Any) -> int:
    """The position behind a number, ``true``, ``false`` or ``null``; -1 if there is none, or an odd one."""
    p = np.int64(position)
    c = int(data[np.uint64(p)])
    if c == 0x74 or c == 0x66 or c == 0x6E:
        # the other letters, the last one in the upper byte
        word = np.int64(0x65757274)  # true
        n = np.int64(4)
        if c == 0x6E:
            word = np.int64(0x6C6C756E)
        elif c == 0x66:
            word = np.int64(0x65736C6166)
            n = np.int64(5)
        if p + n > end:
            return np.int64(-1)
        for i in range(n):
            if int(data[np.uint64(p + i)]) != word >> (8 * i) & 0xFF:
                return np.int64(-1)
        return p + n
    if c == 0x2D:
        p += 1
    first = p
    while p < end and 0x30 <= int(data[np.uint64(p)]) <= 0x39:
        p += 1
    if p == first or (p > first + 1 and int(data[np.uint64(first)]) == 0x30):
        return np.int64(-1)
    if p < end and int(data[np.uint64(p)]) == 0x2E:
        p += 1
        first = p
        while p < end and 0x30 <= int(data[np.uint64(p)]) <= 0x39:
            p += 1
        if p == first:
            return np.int64(-1)
    if p < end and int(data[np.uint64(p)]) | 0x20 == 0x65:
        p += 1
        if p < end and (int(data[np.uint64(p)]) == 0x2B or int(data[np.uint64(p)]) == 0x2D):
            p += 1
        first = p
        while p < end and 0x30 <= int(data[np.uint64(p)]) <= 0x39:
            p += 1
        if p == first:
            return np.int64(-1)
    if p - position > _LONGEST_NUMBER:
        return np.int64(-1)
    return p


@helper
def is_key(data: Any, begin: Any, end: Any, keys: Any, first: Any, last: Any) -> int:
    """1 if the bytes ``[begin, end)`` are the key ``[first, last)``, 0 if not, -1 if there is an escape among them."""
    same = np.int64(1 if end - begin == last - first else 0)
    for i in range(end - begin):
        c = int(data[np.uint64(begin + i)])
        if c == _BACKSLASH:
            return np.int64(-1)
        if same and c != int(keys[np.uint64(first + i)]):
            same = np.int64(0)
    return same


@helper
def read_line(
    data: Any, position: Any, end: Any, keys: Any, bounds: Any, places: Any, counts: Any, out: Any, at: Any
) -> int:
    """Read one line; see :func:`read_fields`. Returns where what was written ends, or -1 if the line is odd."""
    length = np.int64(places.size)  # of the path
    p = skip_white(data, position, end)
    if p >= end or int(data[np.uint64(p)]) != 0x7B:
        return np.int64(-1)
    p += 1
    objects = np.uint64(2)  # bit d: what is open at depth d is an object, not an array
    depth = np.int64(1)
    on_path = np.int64(1)  # up to this depth, what is open lies on the path
    wanted = False  # whether the next value does
    found = np.int64(-1)
    state = np.int64(_FIRST_KEY)
    while True:
        p = skip_white(data, p, end)
        if p >= end:
            return np.int64(-1)
        c = int(data[np.uint64(p)])
        is_object = (objects >> np.uint64(depth)) & np.uint64(1) != 0
        closes = c == 0x7D if is_object else c == 0x5D
        if closes and (state == _COMMA or state == _FIRST_KEY or state == _FIRST_VALUE):
            p += 1
            depth -= 1
            on_path = min(on_path, depth)
            state = np.int64(_COMMA)
            if depth == 0:
                return found if skip_white(data, p, end) == end else np.int64(-1)
            continue
        if state == _COMMA:
            if c != 0x2C:
                return np.int64(-1)
            p += 1
            state = np.int64(_KEY if is_object else _VALUE)
            continue
        if state == _KEY or state == _FIRST_KEY:
            if c != _QUOTE:
                return np.int64(-1)
            begin = p + 1
            p, _ = scan_string(data, begin, end, out, at, False)
            if p < 0:
                return np.int64(-1)
            wanted = False
            if on_path == depth:
                same = is_key(data, begin, p - 1, keys, bounds[depth - 1], bounds[depth])
                if same < 0:
                    return np.int64(-1)
                if same:
                    wanted = True
                    found = np.int64(-1)  # the last of equal keys counts
            # a field that has the whole path as its name comes first
            if depth == 1 and bounds[length + 1] > bounds[length]:
                if is_key(data, begin, p - 1, keys, bounds[length], bounds[length + 1]) != 0:
                    return np.int64(-1)
            p = skip_white(data, p, end)
            if p >= end or int(data[np.uint64(p)]) != 0x3A:
                return np.int64(-1)
            p += 1
            state = np.int64(_VALUE)
            continue
        if not is_object:
            wanted = on_path == depth and counts[depth] == places[depth - 1]
            counts[depth] += 1
        state = np.int64(_COMMA)
        if c == _QUOTE:
            keep = wanted and depth == length
            p, o = scan_string(data, p + 1, end, out, at, keep)
            if p < 0:
                return np.int64(-1)
            if keep:
                found = o
        elif c == 0x7B or c == 0x5B:
            if wanted and depth < length and on_path == depth:
                on_path = depth + 1
            depth += 1
            if depth > MOST_DEEP:
                return np.int64(-1)
            counts[depth] = 0
            bit = np.uint64(1) << np.uint64(depth)
            if c == 0x7B:
                objects |= bit
                state = np.int64(_FIRST_KEY)
            else:
                objects &= ~bit
                state = np.int64(_FIRST_VALUE)
            p += 1
        else:
            p = scan_plain(data, p, end)
            if p < 0:
                return np.int64(-1)


@kernel
def read_fields(
    data: Any, indptr: Any, keys: Any, bounds: Any, places: Any, counts: Any, out: Any, ends: Any, odd: Any
) -> int:
    """Write the string that each JSON line has in a field.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    indptr : int64[n + 1]
        Line i is ``data[indptr[i]:indptr[i + 1]]``.
    keys : uint8[q]
        UTF-8 of the keys that lead to the field, and of the whole path as it was written, if that differs.
    bounds : int64[k + 2]
        Key j is ``keys[bounds[j]:bounds[j + 1]]``; the last one is the whole path.
    places : int64[k]
        Each key as a place in an array, -1 if it is none.
    counts : int64[MOST_DEEP + 1]
        Scratch.
    out : uint8[r]
        Receives what the strings say, one after another; at least 64 bytes longer than all lines.
    ends : int64[n + 1]
        Receives where each ends in `out`, from the second item on; the first is 0.
    odd : uint8[n]
        Receives 1 for each line from which nothing was taken: it is not JSON, or not an object with a string in this
        field, or something that is left to another reader.

    Returns
    -------
    int
        Number of odd lines. Linear.
    """
    n_odd = np.int64(0)
    o = np.int64(0)
    for i in range(indptr.size - 1):
        end = read_line(data, indptr[i], indptr[i + 1], keys, bounds, places, counts, out, o)
        odd[i] = 0
        if end < 0:
            odd[i] = 1
            n_odd += 1
        else:
            o = end
        ends[i + 1] = o
    return n_odd
