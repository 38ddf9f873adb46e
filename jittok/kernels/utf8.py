"""UTF-8: single characters of valid text, white space, and validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, kernel


@helper
def codepoint_at(data: Any, position: Any) -> tuple[int, int]:
    """The codepoint of the valid UTF-8 sequence at `position`, and its length in bytes."""
    lead = int(data[position])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (int(data[position + 1]) & 0x3F), 2
    if lead < 0xF0:
        return ((lead & 0xF) << 12) | ((int(data[position + 1]) & 0x3F) << 6) | (int(data[position + 2]) & 0x3F), 3
    high = ((lead & 7) << 18) | ((int(data[position + 1]) & 0x3F) << 12)
    return high | ((int(data[position + 2]) & 0x3F) << 6) | (int(data[position + 3]) & 0x3F), 4


@helper
def start_before(data: Any, position: Any) -> int:
    """Where the UTF-8 sequence that ends at `position` begins."""
    position -= 1
    while (int(data[position]) & 0xC0) == 0x80:
        position -= 1
    return position


@helper
def is_space(codepoint: Any) -> bool:
    """Unicode White_Space, the same 25 codepoints in every version since 6.3."""
    if codepoint < 0x85:
        return codepoint == 0x20 or (9 <= codepoint <= 13)
    if codepoint < 0x2000:
        return codepoint == 0x85 or codepoint == 0xA0 or codepoint == 0x1680
    return (
        codepoint <= 0x200A
        or codepoint == 0x2028
        or codepoint == 0x2029
        or codepoint == 0x202F
        or codepoint == 0x205F
        or codepoint == 0x3000
    )


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
    Linear. Whole blocks are checked by comparing each byte with the three before it, in loops without
    branches that LLVM turns into vectors; only a block with a fault, and the last bytes of the range, are
    walked sequence by sequence.
    """
    position = start  # where the first sequence that is not yet checked begins
    block = start
    while block + 128 <= end:
        # Unsigned indices spare Numba's test for negative ones, which would keep LLVM from making vectors.
        has_high = False
        for k in range(128):
            has_high |= data[np.uint64(block + k)] >= 0x80
        wrong = False
        if position < block or (has_high and block > start):
            for k in range(128):
                byte = data[np.uint64(block + k)]
                before = data[np.uint64(block + k - 1)]
                is_inner = (byte & 0xC0) == 0x80
                needs_inner = (
                    (before >= 0xC0)
                    | (data[np.uint64(block + k - 2)] >= 0xE0)
                    | (data[np.uint64(block + k - 3)] >= 0xF0)
                )
                wrong |= is_inner != needs_inner
                wrong |= (byte == 0xC0) | (byte == 0xC1) | (byte >= 0xF5)
                wrong |= (before == 0xE0) & (byte < 0xA0)
                wrong |= (before == 0xED) & (byte >= 0xA0)
                wrong |= (before == 0xF0) & (byte < 0x90)
                wrong |= (before == 0xF4) & (byte >= 0x90)
            if wrong:
                break
        elif has_high:
            # The first block has nothing before it to be compared with.
            while position < block + 128:
                length = sequence_length(data, position, end)
                if length == 0:
                    return position
                position += length
            block = position
            continue
        block += 128
        # The sequence that reaches over the end of the block, if any, begins in its last three bytes.
        position = block
        if int(data[block - 1]) >= 0xC0:
            position = block - 1
        elif int(data[block - 2]) >= 0xE0:
            position = block - 2
        elif int(data[block - 3]) >= 0xF0:
            position = block - 3
    while position < end:
        length = sequence_length(data, position, end)
        if length == 0:
            return position
        position += length
    return -1
