"""Filling hash tables; see :mod:`jittok.build.hash_tables` and :mod:`jittok.vocabulary`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel


@kernel
def put_in_lines(hashes: Any, slots: Any, empty: Any, line: int, table: Any) -> int:
    """Put each entry into the line of its hash, or the next line that is not full.

    Parameters
    ----------
    hashes, slots : uint64[n]
        As for ``build.hash_tables.fill_lines``.
    empty : uint64[1]
        What an empty slot holds.
    line : int
        Slots in a line.
    table : uint64[power of two]
        Output, empty: more than n slots.

    Returns
    -------
    int
        n. Linear time.
    """
    nothing = empty[0]
    mask = np.uint64(table.shape[0] - 1)
    for i in range(slots.shape[0]):
        at = hashes[i] * np.uint64(line) & mask
        while table[at] != nothing:
            # Slots of a line are used in order, so that the one after a line that is full is in the next.
            at = (at + np.uint64(1)) & mask
        table[at] = slots[i]
    return np.int64(slots.shape[0])


@kernel
def check_sums(data: Any, indptr: Any, remainders: Any, sums: Any) -> int:
    """CRC-32 of strings, as :func:`zlib.crc32` has it.

    Parameters
    ----------
    data : uint8[m], indptr : int64[n + 1]
        String i is ``data[indptr[i]:indptr[i + 1]]``.
    remainders : uint32[256]
        Of each byte, for the reversed polynomial 0xEDB88320.
    sums : uint32[n]
        Output.

    Returns
    -------
    int
        n. Linear time.
    """
    for i in range(sums.shape[0]):
        value = np.uint32(0xFFFFFFFF)
        for at in range(indptr[i], indptr[i + 1]):
            value = remainders[(value ^ np.uint32(data[at])) & np.uint32(255)] ^ (value >> np.uint32(8))
        sums[i] = value ^ np.uint32(0xFFFFFFFF)
    return np.int64(sums.shape[0])
