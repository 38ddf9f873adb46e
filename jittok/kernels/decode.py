"""Token ids back to bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import helper, kernel
from .machine import copy_block
from .utf8 import sequence_length


@helper
def _close_run(out: NDArray[np.uint8], run: int, length: int) -> int:
    """Return the length after ``out[run:length]``, replaced by U+FFFD for each byte unless valid UTF-8."""
    position = run
    while position < length:
        step = sequence_length(out, position, length)
        if step == 0:
            break
        position += step
    if position >= length:
        return length
    count = length - run
    for k in range(count):
        out[run + 3 * k] = 0xEF
        out[run + 3 * k + 1] = 0xBF
        out[run + 3 * k + 2] = 0xBD
    return run + 3 * count


@kernel
def join_pieces(
    pieces: NDArray[np.uint8],
    piece_indptr: NDArray[np.int64],
    skip: NDArray[np.uint8],
    raw: NDArray[np.uint8],
    ids: NDArray[np.int32],
    indptr: NDArray[np.int64],
    out: NDArray[np.uint8],
    out_indptr: NDArray[np.int64],
) -> int:
    """Concatenate what each token stands for, text by text.

    Parameters
    ----------
    pieces, piece_indptr
        uint8[], int64[size + 1]: token `i` stands for ``pieces[piece_indptr[i]:piece_indptr[i + 1]]``.
    skip
        uint8[size]: 1 for ids that are left out, 2 for ids without a token.
    raw
        uint8[size], or uint8[0] for none: 1 for tokens that are one raw byte. A run of them that is not
        valid UTF-8 becomes U+FFFD once for each byte.
    ids, indptr
        int32[total], int64[n + 1]: text `d` is ``ids[indptr[d]:indptr[d + 1]]``.
    out
        uint8[m] receives the bytes, and up to 64 of any value behind them. If m is 0 nothing is written: the call
        only measures.
    out_indptr
        int64[n + 1] receives the row pointers of `out`; when measuring, upper bounds of them.

    Returns
    -------
    int
        The number of bytes (when measuring, an upper bound of it), or ``-1 - p`` if ``ids[p]`` is not an
        id of the vocabulary.

    Notes
    -----
    Linear in the output. Measure first: with ``m > 0`` less than 64 above the measure, writing is unchecked.
    """
    size = len(skip)
    writing = len(out) > 0
    has_raw = len(raw) > 0
    blocks = np.int64(len(pieces)) - 64  # the last place where a block begins
    length = np.int64(0)
    out_indptr[0] = 0
    for document in range(len(indptr) - 1):
        run = length  # where the current run of raw bytes began
        for position in range(np.int64(indptr[document]), np.int64(indptr[document + 1])):
            token = np.int64(ids[np.uint64(position)])
            if token < 0 or token >= size or skip[np.uint64(token)] == 2:
                return -1 - position
            if skip[np.uint64(token)] == 1:
                continue
            begin = np.int64(piece_indptr[np.uint64(token)])
            end = np.int64(piece_indptr[np.uint64(token + 1)])
            is_raw = has_raw and raw[np.uint64(token)] == 1
            if not writing:
                length += 3 if is_raw else end - begin
                continue
            if has_raw and not is_raw:
                length = np.int64(_close_run(out, run, length))
            # Whole blocks; the next token overwrites what is too much.
            after = length + end - begin
            while begin < end and begin <= blocks:
                copy_block(out, length, pieces, begin)
                begin += 64
                length += 64
            while begin < end:
                out[np.uint64(length)] = pieces[np.uint64(begin)]
                begin += 1
                length += 1
            length = after
            if not is_raw:
                run = length
        if writing and has_raw:
            length = np.int64(_close_run(out, run, length))
        out_indptr[document + 1] = length
    return length
