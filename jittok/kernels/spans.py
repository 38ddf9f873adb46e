"""Where tokens stand in the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel


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
            length = np.int64(lengths[ids[token]]) if by_token else np.int64(lengths[token])
            inside = 1 if length > 0 and data[np.uint64(at)] & 0xC0 == 0x80 else 0
            spans[token, 0] = position - inside
            stop = at + length
            for i in range(at, stop):
                if data[np.uint64(i)] & 0xC0 != 0x80:
                    position += 1
            at = stop
            spans[token, 1] = position
            token += 1
    return token
