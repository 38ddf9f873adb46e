"""Stop strings found in text that arrives in pieces, by an automaton over bytes (Aho and Corasick 1975)."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel

#: A state below this has found a string.
FOUND_SHIFT = 32


@kernel
def find_stop(data: Any, following: Any, found: Any, state: int) -> int:
    """Read bytes until a string is found.

    Parameters
    ----------
    data : uint8[n]
        What comes next.
    following : int32[states, 256]
        The state after each byte.
    found : int32[states]
        Bytes of the longest string that ends in a state, 0 for none.
    state : int
        Before the first byte; 0 at the beginning.

    Returns
    -------
    int
        ``read << 32 | state``: how many bytes were read up to the end of the first string that ends, or all of them.
    """
    for i in range(data.size):
        state = np.int64(following[state, data[i]])
        if found[state] > 0:
            return (i + 1) << FOUND_SHIFT | state
    return np.int64(data.size) << FOUND_SHIFT | state
