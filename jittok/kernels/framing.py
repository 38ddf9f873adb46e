"""Special tokens around the ids of documents, put in where these are, while they are in the processor's cache."""

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
    first: int,
) -> int:
    """Put special tokens around the ids of each document.

    Parameters
    ----------
    before, after
        int32[b], int32[a], read-only: the special tokens.
    room
        How many ids of a document stay, at most.
    keeps_end
        1: the last ones stay, 0: the first.
    ids
        int32[m]: the ids of all documents from place `first` on, and behind them room for special tokens.
    ends
        int64[n]: where those of each document end in `ids`, rising; where its row ends, afterwards.
    first
        Where the first document begins.

    Returns
    -------
    int
        Where the last row ends.

    Notes
    -----
    Linear in the output.
    """
    # What stays moves to the front, as if there were no special tokens.
    end = first
    begin = first
    for row in range(len(ends)):
        stop = np.int64(ends[np.uint64(row)])
        count = stop - begin
        if count > room:
            count = np.int64(room)
            if keeps_end:
                begin = stop - count
        if begin != end:
            for place in range(count):
                ids[np.uint64(end + place)] = ids[np.uint64(begin + place)]
        end += count
        ends[np.uint64(row)] = end
        begin = stop
    # From the last row to the first, as rows move to the back.
    n_before = np.int64(len(before))
    n_after = np.int64(len(after))
    written = end + (n_before + n_after) * len(ends)
    last = written
    for step in range(len(ends)):
        row = np.int64(len(ends)) - 1 - step
        begin = np.int64(first)
        if row > 0:
            begin = np.int64(ends[np.uint64(row - 1)])
        count = end - begin
        ends[np.uint64(row)] = written
        written -= n_after
        for place in range(n_after):
            ids[np.uint64(written + place)] = after[np.uint64(place)]
        written -= count
        # Sixteen are read before they are written, and what they overwrite has moved already.
        left = count
        while left >= 16:
            left -= 16
            copy_ids(ids, written + left, ids, begin + left)
        while left > 0:
            left -= 1
            ids[np.uint64(written + left)] = ids[np.uint64(begin + left)]
        written -= n_before
        for place in range(n_before):
            ids[np.uint64(written + place)] = before[np.uint64(place)]
        end = begin
    return last
