"""Special tokens around the ids of documents, while these are copied to their place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel


@kernel
def frame_rows(
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    room: int,
    keeps_end: int,
    ids: NDArray[np.int32],
    ends: NDArray[np.int64],
    base: int,
    out: NDArray[np.int32],
    first: int,
) -> int:
    """Write the ids of each document with special tokens around.

    Parameters
    ----------
    before, after
        int32[b], int32[a]: the special tokens.
    room
        How many ids of a document stay, at most.
    keeps_end
        1: the last ones stay, 0: the first.
    ids
        int32[total], read-only: the ids of all documents.
    ends
        int64[n]: where those of each document end in `ids`, rising from at least 0; where its row ends,
        afterwards, counted from `base`.
    base
        How many ids the rows before these have.
    out
        int32[m] receives the rows from place `first` on; the caller makes it large enough.
    first
        Where the first row begins.

    Returns
    -------
    int
        The number of ids written.

    Notes
    -----
    Linear in the output.
    """
    written = first
    begin = 0
    for row in range(len(ends)):
        end = int(ends[row])
        kept_from = begin
        kept_to = end
        if end - begin > room:
            if keeps_end:
                kept_from = end - room
            else:
                kept_to = begin + room
        for place in range(len(before)):
            out[np.uint64(written + place)] = before[np.uint64(place)]
        written += len(before)
        for place in range(kept_to - kept_from):
            out[np.uint64(written + place)] = ids[np.uint64(kept_from + place)]
        written += kept_to - kept_from
        for place in range(len(after)):
            out[np.uint64(written + place)] = after[np.uint64(place)]
        written += len(after)
        ends[row] = written - first + base
        begin = end
    return written - first
