"""Open-addressing tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.memory import zeros
from jittok.tables import read_only

#: An empty slot.
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)
#: Slots in a line of a table of pairs: a cache line.
LINE = 8


def table_size(n: int) -> int:
    """Smallest power of two that keeps `n` entries at most half of the table."""
    return 1 << max(3, int(2 * n - 1).bit_length()) if n else 8


def fill_slots(hashes: NDArray[np.uint64], slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """An open-addressing table of `slots`, each at its hash modulo the size or in the next free place after it.

    Parameters
    ----------
    hashes : uint64[n]
        Start of the probe of each entry, before it is reduced to the table size.
    slots : uint64[n]
        Entries, distinct and not EMPTY.

    Returns
    -------
    uint64[power of two]
        At most half full.
    """
    size = table_size(len(slots))
    table = np.full(size, EMPTY, np.uint64)
    mask = np.uint64(size - 1)
    place = hashes & mask
    pending = np.arange(len(slots))
    while pending.size:
        free = pending[table[place[pending]] == EMPTY]
        table[place[free]] = slots[free]
        pending = pending[table[place[pending]] != slots[pending]]
        place[pending] = (place[pending] + np.uint64(1)) & mask
    return table


def fill_lines(hashes: NDArray[np.uint64], slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A table in lines of LINE slots, each entry in the line of its hash modulo the number of lines.

    An entry whose line is full is in the next line that is not. Slots of a line are used in order, so that a line is
    full if its last slot is in use.

    Parameters
    ----------
    hashes : uint64[n]
        Before they are reduced to the number of lines.
    slots : uint64[n]
        Entries, distinct and not EMPTY.

    Returns
    -------
    uint64[power of two]
        At most 0.45 full.
    """
    size = LINE
    while size * 0.45 < len(slots):
        size *= 2
    from jittok.kernels.hash_tables import put_in_lines

    # Kernels read large tables at random, and would copy them otherwise.
    table = zeros(size, np.uint64)
    table[:] = EMPTY
    put_in_lines(read_only(hashes), read_only(slots), read_only(np.array([EMPTY])), LINE, table)
    return table


def hash_key(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Start of the probe for a packed key, as the merge kernels compute it."""
    with np.errstate(over="ignore"):
        return (key * PAIR_FACTOR) >> np.uint64(32)
