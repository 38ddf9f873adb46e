"""Rewriting where it is a matter of single codepoints; what is not is left to the steps themselves, a stretch at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, kernel
from jittok.kernels.machine import copy_block, equal_bits, load64, range_bits, trailing_zeros
from jittok.kernels.split import HIGH_BITS, copy_bytes
from jittok.kernels.utf8 import codepoint_at, is_space, start_before
from jittok.tables import (
    LOCAL_JOINS,
    LOCAL_KIND,
    LOCAL_MAPPED,
    LOCAL_MARK,
    LOCAL_OFFSET,
    LOCAL_OTHER,
    LOCAL_REACH,
    LOCAL_REPEATED,
)

#: Bytes that must be left in the output for a block that is copied, or for what one codepoint becomes.
ROOM = 320

_LAST = np.uint64(1 << 63)


class LocalText(NamedTuple):
    """Segments rewritten codepoint by codepoint, with holes where more is to be done."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]  # [n_segments]
    ends: NDArray[np.int64]
    hole_indptr: NDArray[np.int64]  # [n_segments + 1] holes of each segment
    hole_start: NDArray[np.int64]  # bytes of the text as given
    hole_end: NDArray[np.int64]
    hole_at: NDArray[np.int64]  # where in `data` what becomes of them belongs


@helper
def local_entry(tables: Any, codepoint: int) -> int:
    """The entry of a codepoint."""
    page = np.int64(tables.page_of[np.uint64(codepoint >> 7)])
    return np.int64(tables.entry[np.uint64(page << 7 | codepoint & 127)])


@kernel
def rewrite_locally(tables: Any, data: Any, starts: Any, ends: Any, out: Any) -> int:
    """Write what segments become, but for holes.

    Parameters
    ----------
    tables : LocalTables
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n_segments]
    out : LocalText

    Returns
    -------
    int
        The number of bytes written; or -1 where there is no room for them, or for holes. Linear, 64 bytes at a time where
        they are ASCII and just copied.
    """
    result = out.data
    stops = tables.stops
    pairs = tables.pairs
    strings = tables.strings
    reach = np.int64(tables.numbers[LOCAL_REACH])
    written = np.int64(0)
    n_holes = np.int64(0)
    out.hole_indptr[0] = 0
    for segment in range(starts.size):
        at = np.int64(starts[segment])
        end = np.int64(ends[segment])
        out.starts[segment] = written
        first_hole = n_holes
        floor = at  # where the segment begins, or the last hole ends
        floor_written = written
        anchor = np.int64(-1)  # the last codepoint since then that does not belong to the one before it, -1: none
        anchor_written = written
        is_joined = False  # whether the codepoint before may belong to others, and others to it
        while at < end:
            if written + ROOM > result.size or n_holes == out.hole_start.size:
                return -1
            if at + 64 <= data.size and load64(data, at) & HIGH_BITS == 0:
                stop = np.uint64(copy_block(result, written, data, at))
                for i in range(stops.shape[0]):
                    stop |= range_bits(data, at, stops[i, 0], stops[i, 1])
                for i in range(pairs.size):
                    equal = equal_bits(data, at, pairs[i])
                    stop |= equal & (equal >> np.uint64(1) | _LAST)
                run = min(np.int64(trailing_zeros(stop)), end - at)
                if run > 0:
                    at += run
                    written += run
                    anchor = at - 1
                    anchor_written = written - 1
                    is_joined = False
                if run == 64 or at == end:
                    continue
            codepoint, width = codepoint_at(data, at)
            entry = np.int64(local_entry(tables, codepoint))
            kind = entry & LOCAL_KIND
            following = at + width
            if (kind == LOCAL_MAPPED or kind == LOCAL_REPEATED) and following < end:
                codepoint, _ = codepoint_at(data, following)
                other = np.int64(local_entry(tables, codepoint)) & LOCAL_KIND
                if other == (LOCAL_MARK if kind == LOCAL_MAPPED else LOCAL_REPEATED):
                    kind = np.int64(LOCAL_OTHER)
            if kind != LOCAL_OTHER:
                joins = kind == LOCAL_MARK or entry & LOCAL_JOINS != 0
                if kind != LOCAL_MARK and not (joins and is_joined):
                    anchor = at
                    anchor_written = written
                is_joined = joins
            if kind == LOCAL_MAPPED:
                place = entry >> LOCAL_OFFSET
                size = np.int64(strings[np.uint64(place)])
                for k in range(size):
                    result[np.uint64(written + k)] = strings[np.uint64(place + 1 + k)]
                written += size
                at = following
            elif kind != LOCAL_OTHER:
                for k in range(width):
                    result[np.uint64(written + k)] = data[np.uint64(at + k)]
                written += width
                at = following
            else:
                # A hole, from the codepoint before on.
                begin = floor
                written = floor_written
                if anchor >= 0:
                    begin = anchor
                    written = anchor_written
                if begin == floor and n_holes > first_hole:
                    n_holes -= 1
                    begin = np.int64(out.hole_start[np.uint64(n_holes)])
                at = following
                calm = np.int64(0)  # codepoints since the last one with influence
                is_inside = True
                while is_inside and at < end:
                    codepoint, width = codepoint_at(data, at)
                    kind = np.int64(local_entry(tables, codepoint)) & LOCAL_KIND
                    if kind == LOCAL_OTHER or kind == LOCAL_REPEATED:
                        calm = np.int64(0)
                    elif kind != LOCAL_MARK:
                        is_inside = calm < reach
                        calm += 1
                    if is_inside:
                        at += width
                out.hole_start[np.uint64(n_holes)] = begin
                out.hole_end[np.uint64(n_holes)] = at
                out.hole_at[np.uint64(n_holes)] = written
                n_holes += 1
                floor = at
                floor_written = written
                anchor = np.int64(-1)
                is_joined = True
        out.ends[segment] = written
        out.hole_indptr[segment + 1] = n_holes
    return written


@kernel
def fill_holes(
    text: Any, filling: Any, filling_starts: Any, filling_ends: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    """Write segments with their holes filled.

    Parameters
    ----------
    text : LocalText
    filling : uint8
        What the holes become: hole `i` is ``filling[filling_starts[i]:filling_ends[i]]``.
    filling_starts, filling_ends : int64[n_holes]
    out : uint8
        Output: with room for both texts, and 64 bytes more.
    out_starts, out_ends : int64[n_segments]
        Output.

    Returns
    -------
    int
        The number of bytes. Linear.
    """
    written = np.int64(0)
    for segment in range(text.starts.size):
        out_starts[segment] = written
        at = np.int64(text.starts[segment])
        for hole in range(text.hole_indptr[segment], text.hole_indptr[segment + 1]):
            size = np.int64(text.hole_at[hole]) - at
            copy_bytes(out, written, text.data, at, size)
            at += size
            written += size
            size = np.int64(filling_ends[hole]) - np.int64(filling_starts[hole])
            copy_bytes(out, written, filling, np.int64(filling_starts[hole]), size)
            written += size
        size = np.int64(text.ends[segment]) - at
        copy_bytes(out, written, text.data, at, size)
        written += size
        out_ends[segment] = written
    return written


@kernel
def trim_ends(left: int, right: int, data: Any, starts: Any, ends: Any) -> int:
    """Move the ends of segments of valid UTF-8 inwards past white space: with `left` 1 the starts, with `right` the ends.

    Parameters
    ----------
    left, right : int
    data : uint8[m]
    starts, ends : int64[n_segments]
        Changed in place.

    Returns
    -------
    int
        0. Linear in what is trimmed.
    """
    for segment in range(starts.size):
        first = np.int64(starts[segment])
        end = np.int64(ends[segment])
        is_blank = left == 1
        while is_blank and first < end:
            codepoint, width = codepoint_at(data, first)
            is_blank = is_space(codepoint)
            if is_blank:
                first += width
        is_blank = right == 1
        while is_blank and first < end:
            before = np.int64(start_before(data, end))
            codepoint, _ = codepoint_at(data, before)
            is_blank = is_space(codepoint)
            if is_blank:
                end = before
        starts[segment] = first
        ends[segment] = end
    return 0
