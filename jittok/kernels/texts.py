"""Go through the texts of a corpus: where lines end, and what is odd about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel
from jittok.kernels.machine import copy_block, equal_bits, trailing_zeros

#: Positions in what ``survey_texts`` writes.
BLANK, LONG, WITH_NUL, WITH_LINE_SEPARATOR = range(4)


@kernel
def copy_lines(data: Any, begin: int, size: int, value: int, out: Any, at: int, ends: Any) -> int:
    """Copy text without the bytes that end its lines.

    Parameters
    ----------
    data : uint8[m]
        The text.
    begin, size : int
        Where to begin, and the number of bytes up to which to go.
    value : int
        The byte that ends lines.
    out : uint8[n]
        Receives the lines, from `at` on, and what follows the last end of one; at least 64 bytes longer than
        ``at + size - begin``, as whole blocks are copied.
    at : int
        Bytes that are there already.
    ends : int64[k]
        Receives where each line ends in `out`; at least as many as there are.

    Returns
    -------
    int
        Number of ends of lines. Linear.
    """
    n = np.int64(0)
    o = np.int64(at)
    first = np.int64(begin)
    # What is copied for the last line of a block may lie up to 64 bytes behind the block.
    while first + 128 <= size:
        bits = equal_bits(data, first, value)
        copy_block(out, o, data, first)
        at_line = np.int64(0)
        while bits != 0:
            end = trailing_zeros(bits)
            o += end - at_line
            ends[np.uint64(n)] = o
            n += 1
            at_line = end + 1
            copy_block(out, o, data, first + at_line)
            bits &= bits - np.uint64(1)
        o += 64 - at_line
        first += 64
    for i in range(first, size):
        if int(data[np.uint64(i)]) == value:
            ends[np.uint64(n)] = o
            n += 1
        else:
            out[np.uint64(o)] = data[np.uint64(i)]
            o += 1
    return n


@kernel
def ends_of_lines(data: Any, value: int, ends: Any) -> int:
    """Find where lines end.

    Parameters
    ----------
    data : uint8[m]
        The text.
    value : int
        The byte that ends lines.
    ends : int64[k]
        Receives the place behind each such byte; as many as there are, m at most.

    Returns
    -------
    int
        Their number. Linear.
    """
    n = np.int64(0)
    first = np.int64(0)
    while first + 64 <= data.size:
        bits = equal_bits(data, first, value)
        while bits != 0:
            ends[np.uint64(n)] = first + trailing_zeros(bits) + 1
            n += 1
            bits &= bits - np.uint64(1)
        first += 64
    for i in range(first, data.size):
        if int(data[np.uint64(i)]) == value:
            ends[np.uint64(n)] = i + 1
            n += 1
    return n


@kernel
def survey_texts(data: Any, indptr: Any, long: int, out: Any) -> int:
    """Count texts by what is odd about them: those that are blank, or long, or hold NUL, or U+2028.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    indptr : int64[n + 1]
        Text i is ``data[indptr[i]:indptr[i + 1]]``.
    long : int
        Texts of more bytes are long.
    out : int64[4]
        Receives the numbers, as the constants of this module name them.

    Returns
    -------
    int
        0. Linear.
    """
    for i in range(4):
        out[i] = 0
    for i in range(indptr.size - 1):
        begin = indptr[i]
        length = indptr[i + 1] - begin
        if length > long:
            out[LONG] += 1
        elif length == 0 or (length == 1 and int(data[begin]) == 0x0A):
            out[BLANK] += 1
        elif length == 2 and int(data[begin]) == 0x0D and int(data[begin + 1]) == 0x0A:
            out[BLANK] += 1
    at = indptr[0]
    first = at
    end = indptr[indptr.size - 1]
    # The text after the last one that was counted: each counts once.
    nul_text = np.int64(0)
    separator_text = np.int64(0)
    while at < end:
        # Of U+2028, E2 80 A8, the last byte is the rarest.
        nul = np.uint64(0)
        last = np.uint64(0)
        if at + 64 <= end:
            nul = equal_bits(data, at, 0)
            last = equal_bits(data, at, 0xA8)
        else:
            for i in range(end - at):
                nul |= np.uint64(1 if int(data[at + i]) == 0 else 0) << np.uint64(i)
                last |= np.uint64(1 if int(data[at + i]) == 0xA8 else 0) << np.uint64(i)
        while nul != 0:
            place = at + trailing_zeros(nul)
            if place >= indptr[nul_text]:
                while indptr[nul_text] <= place:
                    nul_text += 1
                out[WITH_NUL] += 1
            nul &= nul - np.uint64(1)
        while last != 0:
            place = at + trailing_zeros(last)
            if place >= max(first + 2, indptr[separator_text]):
                if int(data[place - 1]) == 0x80 and int(data[place - 2]) == 0xE2:
                    while indptr[separator_text] <= place:
                        separator_text += 1
                    out[WITH_LINE_SEPARATOR] += 1
            last &= last - np.uint64(1)
        at += 64
    return 0
