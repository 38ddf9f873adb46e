"""Special tokens around the ids of documents, put in while these are copied to their place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel
from .machine import copy_ids


@kernel
def frame_rows(
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    room: int,
    keeps_end: int,
    ids: NDArray[np.int32],
    ends: NDArray[np.int64],
    out: NDArray[np.int32],
    first: int,
) -> int:
    """Write the ids of each document, with special tokens around them.

    Parameters
    ----------
    before, after
        int32[b], int32[a], read-only: the special tokens.
    room
        How many ids of a document stay, at most.
    keeps_end
        1: the last ones stay, 0: the first.
    ids
        int32: the ids of all documents, from the first place on.
    ends
        int64[n]: where those of each document end in `ids`, rising; where its row ends in `out`, plus `first`, afterwards.
    out
        int32: other memory than `ids`, with room for all rows.
    first
        What is added to `ends`.

    Returns
    -------
    int
        Number of ids written.

    Notes
    -----
    Linear in the output.
    """
    begin = np.int64(0)
    written = np.int64(0)
    for row in range(len(ends)):
        stop = np.int64(ends[np.uint64(row)])
        source = begin
        count = stop - begin
        if count > room:
            count = np.int64(room)
            if keeps_end:
                source = stop - count
        begin = stop
        for place in range(len(before)):
            out[np.uint64(written + place)] = before[np.uint64(place)]
        written += np.int64(len(before))
        if count >= 16:
            # The last sixteen may have been copied in part before.
            for step in range(count >> 4):
                copy_ids(out, written + 16 * step, ids, source + 16 * step)
            copy_ids(out, written + count - 16, ids, source + count - 16)
        else:
            for place in range(count):
                out[np.uint64(written + place)] = ids[np.uint64(source + place)]
        written += count
        for place in range(len(after)):
            out[np.uint64(written + place)] = after[np.uint64(place)]
        written += np.int64(len(after))
        ends[np.uint64(row)] = written + first
    return written
