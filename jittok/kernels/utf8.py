"""Single characters of valid UTF-8 text, and white space: helpers that several kernels share."""

from __future__ import annotations

import numpy as np

from jittok._jit import helper


@helper
def codepoint_at(data, position, end):
    """The codepoint of the valid UTF-8 sequence at `position`, and its length in bytes."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (np.int64(data[position + 1]) & 0x3F), 2
    if lead < 0xF0:
        return ((lead & 0xF) << 12) | ((np.int64(data[position + 1]) & 0x3F) << 6) | (
            np.int64(data[position + 2]) & 0x3F
        ), 3
    high = ((lead & 7) << 18) | ((np.int64(data[position + 1]) & 0x3F) << 12)
    return high | ((np.int64(data[position + 2]) & 0x3F) << 6) | (np.int64(data[position + 3]) & 0x3F), 4


@helper
def start_before(data, position):
    """Where the UTF-8 sequence that ends at `position` begins."""
    position -= 1
    while (np.int64(data[position]) & 0xC0) == 0x80:
        position -= 1
    return position


@helper
def is_space(codepoint):
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
