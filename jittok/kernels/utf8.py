"""Validation of UTF-8."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import helper, kernel


@helper
def sequence_length(data: NDArray[np.uint8], position: int, end: int) -> int:
    """Return the length of the well-formed UTF-8 sequence at `position`, or 0 if there is none.

    Parameters
    ----------
    data
        uint8[m].
    position, end
        ``0 <= position < end <= m``. Bytes from `end` on are not read.

    Notes
    -----
    Source: The Unicode Standard, table 3-7 (well-formed UTF-8 byte sequences).
    """
    lead = int(data[position])
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    if position + 1 >= end:
        return 0
    second = int(data[position + 1])
    if lead < 0xE0:
        if 0x80 <= second <= 0xBF:
            return 2
        return 0
    low = 0x80
    high = 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if second < low or second > high or position + 2 >= end:
        return 0
    if int(data[position + 2]) & 0xC0 != 0x80:
        return 0
    if lead < 0xF0:
        return 3
    if position + 3 >= end or int(data[position + 3]) & 0xC0 != 0x80:
        return 0
    return 4


@kernel
def find_invalid_utf8(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the position of the first byte that does not begin a well-formed UTF-8 sequence.

    Parameters
    ----------
    data
        uint8[m].
    start, end
        The range to look at, ``0 <= start <= end <= m``. A sequence cut off by `end` is invalid.

    Returns
    -------
    int
        A position in [start, end), or -1 if the whole range is valid.

    Notes
    -----
    Linear. Stretches of ASCII are skipped 32 bytes at a time in a loop that LLVM turns into vectors.
    """
    position = start
    while position < end:
        while position + 32 <= end:
            union = 0
            for offset in range(32):
                union |= int(data[position + offset])
            if union >= 0x80:
                break
            position += 32
        # The rest of this block of 32, or the last bytes of the range.
        stop = min(position + 32, end)
        while position < stop:
            length = sequence_length(data, position, end)
            if length == 0:
                return position
            position += length
    return -1
