"""Where tokens stand in the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel

#: Bytes that are looked at together: whether all of them are ASCII.
BLOCK = 512


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
    lengths : int32
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
        while token < part_end[part]:
            at_token = np.uint64(token)
            length = np.int64(lengths[np.uint64(ids[at_token])]) if by_token else np.int64(lengths[at_token])
            if at >= block_end or at < block_end - BLOCK:
                block_end = min(at + BLOCK, data.size)
                seen = np.int64(0)
                for i in range(at, block_end):
                    seen |= np.int64(data[np.uint64(i)])
                block_is_ascii = seen < 0x80
            if block_is_ascii and at + length <= block_end:
                spans[at_token, np.uint64(0)] = position
                position += length
                at += length
                spans[at_token, np.uint64(1)] = position
                token += 1
                continue
            inside = 1 if length > 0 and data[np.uint64(at)] & 0xC0 == 0x80 else 0
            spans[at_token, np.uint64(0)] = position - inside
            stop = at + length
            for i in range(at, stop):
                if data[np.uint64(i)] & 0xC0 != 0x80:
                    position += 1
            at = stop
            spans[at_token, np.uint64(1)] = position
            token += 1
    return token
