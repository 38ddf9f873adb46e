"""Where tokens stand in the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel
from jittok.kernels.machine import count_bits, load64

#: Bytes that are looked at together: whether all of them are ASCII.
BLOCK = 512
#: The lowest bit of each of eight bytes.
LOW_BITS = np.uint64(0x0101010101010101)


@kernel
def find_spans(
    data: Any, starts: Any, origins: Any, part_end: Any, ids: Any, lengths: Any, by_token: int, spans: Any
) -> int:
    """Codepoint positions of tokens, from the bytes each stands for.

    A token that begins or ends inside a character takes in the whole character.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    starts : int64[p]
        Byte of `data` where each part's tokens begin; never falling.
    origins : int64[p]
        Byte of `data` that positions of the part are counted from; ``origins[i] <= starts[i]``, never falling.
    part_end : int64[p]
        Number of tokens up to the end of each part.
    ids : int32[n]
        Token ids.
    lengths : uint16 or int32
        Bytes of a token: by id if `by_token`, else by its place in `ids`.
    spans : int64[n, 2]
        Output.

    Returns
    -------
    int
        Number of tokens. Linear in bytes and tokens.
    """
    token = np.int64(0)
    origin = np.int64(-1)
    at = np.int64(0)  # byte whose position is known
    position = np.int64(0)  # codepoints that begin in [origin, at)
    block_end = np.int64(0)  # a stretch of text up to here was looked at
    block_is_ascii = False  # and each of its bytes is a codepoint
    readable = data.size - 8  # eight bytes can be read from here
    for part in range(starts.size):
        if origins[part] != origin:
            origin = origins[part]
            at = origin
            position = np.int64(0)
        begin = starts[part]
        while at < begin:
            if data[np.uint64(at)] & 0xC0 != 0x80:
                position += 1
            at += 1
        last = part_end[part]
        while token < last:
            if at >= block_end or at < block_end - BLOCK:
                block_end = min(at + BLOCK, data.size)
                seen = np.int64(0)
                for i in range(at, block_end):
                    seen |= np.int64(data[np.uint64(i)])
                block_is_ascii = seen < 0x80
            if block_is_ascii:
                shift = position - at
                while token < last:
                    at_token = np.uint64(token)
                    stop = at + np.int64(lengths[np.uint64(ids[at_token]) if by_token else at_token])
                    if stop > block_end:
                        break
                    spans[at_token, np.uint64(0)] = at + shift
                    spans[at_token, np.uint64(1)] = stop + shift
                    at = stop
                    token += 1
                position = at + shift
                if token == last:
                    break
            # Tokens that are not all in a block of ASCII. Codepoints are the bytes but those that continue one.
            at_token = np.uint64(token)
            length = np.int64(lengths[np.uint64(ids[at_token]) if by_token else at_token])
            stop = at + length
            first = position
            if length > 0 and data[np.uint64(at)] & 0xC0 == 0x80:
                first -= 1
            position += length
            while at < stop:
                if at <= readable:
                    eight = load64(data, at)
                    inner = (eight >> np.uint64(7)) & ~(eight >> np.uint64(6)) & LOW_BITS
                    if stop - at < 8:
                        inner <<= np.uint64(8 * (8 - (stop - at)))
                    position -= count_bits(inner)
                    at += 8
                else:
                    if data[np.uint64(at)] & 0xC0 == 0x80:
                        position -= 1
                    at += 1
            at = stop
            spans[at_token, np.uint64(0)] = first
            spans[at_token, np.uint64(1)] = position
            token += 1
    return token
