"""Words that begin with U+2581, in text that has a blank for it: what Metaspace makes, in one pass over the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel
from jittok.kernels.machine import copy_block, equal_bits, range_bits, trailing_zeros
from jittok.kernels.utf8 import codepoint_at, is_space

#: U+2581.
MARK = 0x2581
#: What a block may write beyond the end of the text.
ROOM = 64

_LAST = np.uint64(1 << 63)


@kernel
def mark_words(
    data: Any, starts: Any, ends: Any, separates: int, prefixed: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    """Write segments with U+0020 for each U+2581 that tokenizers' Metaspace has, and no other U+0020.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``.
    separates : int
        1: white space (Unicode White_Space) separates words and is left out, as by WhitespaceSplit, and each word that
        does not begin with U+2581 gets one in front. 0: blanks are U+2581, and other white space is text.
    prefixed : bool[n]
        Where nothing `separates`: which segments get U+2581 in front if they begin with neither that nor a blank.
    out : uint8
        Output: at least as many bytes as all segments have, one more for each, and ROOM more.
    out_starts, out_ends : int64[n]
        Output: where the segments are in `out`.

    Returns
    -------
    int
        Bytes written. Linear, 64 bytes at a time where they are just copied.
    """
    written = np.int64(0)
    for i in range(starts.size):
        at = np.int64(starts[i])
        end = np.int64(ends[i])
        out_starts[i] = written
        space_end = np.int64(-1)  # where white space ended for which a blank is written
        if separates == 1:
            space_end = at
            out[np.uint64(written)] = 0x20
            written += 1
        elif at < end and prefixed[i]:
            codepoint, _ = codepoint_at(data, at)
            if codepoint != 0x20 and codepoint != MARK:
                out[np.uint64(written)] = 0x20
                written += 1
        while at < end:
            if at + 64 <= data.size:
                wide = copy_block(out, written, data, at)
                stop = np.uint64(0)
                if separates == 1:
                    blanks = equal_bits(data, at, 0x20)
                    stop = blanks & (blanks << np.uint64(1) | np.uint64(space_end == at))
                    stop |= range_bits(data, at, 9, 5)
                if wide != 0:
                    # What may begin U+2581, or white space; the rest of it may be in the next block.
                    second = equal_bits(data, at, 0x96)
                    if separates == 1:
                        second |= range_bits(data, at, 0x80, 2)
                        others = equal_bits(data, at, 0x85) | equal_bits(data, at, 0xA0)
                        stop |= equal_bits(data, at, 0xC2) & (others >> np.uint64(1) | _LAST)
                        stop |= equal_bits(data, at, 0xE1) & (equal_bits(data, at, 0x9A) >> np.uint64(1) | _LAST)
                        stop |= equal_bits(data, at, 0xE3) & (equal_bits(data, at, 0x80) >> np.uint64(1) | _LAST)
                    stop |= equal_bits(data, at, 0xE2) & (second >> np.uint64(1) | _LAST)
                run = min(np.int64(trailing_zeros(stop)), end - at)
                written += run
                at += run
                if separates == 1 and run > 0 and data[np.uint64(at - 1)] == 0x20:
                    space_end = at
                if run == 64 or at == end:
                    continue
            codepoint, width = codepoint_at(data, at)
            if codepoint == MARK:
                if space_end != at:  # else the blank that is there stands for it
                    out[np.uint64(written)] = 0x20
                    written += 1
                at += width
            elif separates == 1 and is_space(codepoint):
                if space_end != at:
                    out[np.uint64(written)] = 0x20
                    written += 1
                at += width
                space_end = at
            else:
                for k in range(width):
                    out[np.uint64(written + k)] = data[np.uint64(at + k)]
                written += width
                at += width
        if space_end == end:
            written -= 1
        out_ends[i] = written
    return written
