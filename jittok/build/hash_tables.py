"""Open-addressing tables, filled with NumPy so that building them compiles nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: An empty slot.
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)


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


def fill_two_choices(
    first: NDArray[np.uint64], second: NDArray[np.uint64], slots: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """A table in which every entry is at one of its two hashes modulo the size (cuckoo hashing).

    Entries that meet in one place are moved to their other place, all at once and again, until none meet. At a
    load below one half this ends after a few tens of rounds; if it does not, the table is doubled.

    Parameters
    ----------
    first, second : uint64[n]
        The two hashes of each entry, before they are reduced to the table size.
    slots : uint64[n]
        Entries, distinct and not EMPTY.

    Returns
    -------
    uint64[power of two]
        At most 0.45 full.
    """
    size = 8
    while size * 0.45 < len(slots):
        size *= 2
    while True:
        mask = np.uint64(size - 1)
        choices = np.stack([first & mask, second & mask]).astype(np.int64)
        owner = np.full(size, -1, np.int64)
        side = np.zeros(len(slots), np.int64)
        pending = np.arange(len(slots))
        for _ in range(500):
            if not pending.size:
                table = np.full(size, EMPTY, np.uint64)
                held = np.flatnonzero(owner >= 0)
                table[held] = slots[owner[held]]
                return table
            place = choices[side[pending], pending]
            before = owner[place]
            owner[place] = pending  # of several that come to one place, one stays
            winners = owner[place] == pending
            evicted = np.unique(before[winners & (before >= 0)])
            losers = pending[~winners]
            pending = np.concatenate([losers, evicted])
            side[pending] ^= 1
        size *= 2


def hash_key(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Start of the probe for a packed key, as the merge kernels compute it."""
    with np.errstate(over="ignore"):
        return (key * PAIR_FACTOR) >> np.uint64(32)
