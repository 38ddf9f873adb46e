"""Four ways to apply byte-pair merges to a text, to be read and measured; the engine has its own (``merge.py``).

Symbols are numbers. A table says of two neighbours whether they merge, in which rank, and to which symbol. All four merge
the pair of the lowest rank first, the leftmost of several, until none is left. Source: Becquin, "Byte Pair Encoding and
Data Structures" (2021), written anew from its description.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import helper, kernel

#: What :func:`find_pair` says of neighbours that do not merge: above every rank.
NONE = 1 << 62
_LOW = 0xFFFFFFFF


class PairTable(NamedTuple):
    """Which symbols merge: a hash table with open addresses, at most half full."""

    keys: NDArray[np.int64]  # [2**k] left << 32 | right; -1: free
    values: NDArray[np.int64]  # [2**k] rank << 32 | merged symbol


class Agenda(NamedTuple):
    """A priority queue of merges that may be made: a binary heap whose lowest key is on top."""

    keys: NDArray[np.int64]  # [capacity] rank << 32 | place of the left symbol
    sizes: NDArray[np.int32]  # [capacity] characters of both symbols together


class SymbolTree(NamedTuple):
    """Symbols in the order of the text: a balanced tree in an array, whose node `i` has the children 2i and 2i + 1."""

    alive: NDArray[np.int32]  # [2 * leaves] symbols below each node; the leaves are places of the text


@helper
def find_pair(table: Any, left: int, right: int) -> int:
    """``rank << 32 | merged symbol`` of two neighbours; NONE if they do not merge."""
    key = np.int64(left) << 32 | np.int64(right)
    mask = len(table.keys) - 1
    # The multiplication wraps around, which is what mixes the bits.
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while True:
        found = table.keys[at]
        if found == key:
            return np.int64(table.values[at])
        if found == -1:
            return np.int64(NONE)
        at = (at + 1) & mask


@kernel
def fill_pairs(table: Any, left: NDArray[np.int32], right: NDArray[np.int32], merged: NDArray[np.int32]) -> int:
    """Put pairs, in the order of their ranks, into an empty table; of equal pairs the first counts.

    Parameters
    ----------
    table
        :class:`PairTable`, all keys -1, at least twice as large as there are pairs.
    left, right, merged
        int32[m]: symbols.

    Returns
    -------
    int
        0.
    """
    mask = len(table.keys) - 1
    for rank in range(len(left)):
        key = np.int64(left[rank]) << 32 | np.int64(right[rank])
        at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while table.keys[at] != -1 and table.keys[at] != key:
            at = (at + 1) & mask
        if table.keys[at] == -1:
            table.keys[at] = key
            table.values[at] = np.int64(rank) << 32 | np.int64(merged[rank])
    return 0


@helper
def merge_by_scanning(table: Any, symbols: Any, begin: int, end: int) -> int:
    """Merge ``symbols[begin:end]`` in place; returns where they end then. A look at all pairs for each merge."""
    while True:
        best = np.int64(NONE)
        place = begin
        for i in range(begin, end - 1):
            found = find_pair(table, symbols[i], symbols[i + 1])
            if found < best:
                best = found
                place = i
        if best == NONE:
            return end
        symbols[place] = best & _LOW
        for i in range(place + 1, end - 1):
            symbols[i] = symbols[i + 1]
        end -= 1


@kernel
def bpe_naive(table: Any, symbols: NDArray[np.int32]) -> int:
    """Find the best pair of the whole text, merge it, begin again.

    Parameters
    ----------
    table
        :class:`PairTable`.
    symbols
        int32[n]: the characters' symbols; the result replaces them.

    Returns
    -------
    int
        How many symbols are left.

    Notes
    -----
    Quadratic in the length of the text.
    """
    return np.int64(merge_by_scanning(table, symbols, 0, len(symbols)))


@kernel
def bpe_naive_presplit(table: Any, symbols: NDArray[np.int32], word_ends: NDArray[np.int64]) -> int:
    """As :func:`bpe_naive`, for each word alone: no merge reaches across words.

    Parameters
    ----------
    table, symbols
        As there.
    word_ends
        int64[w]: where each word ends, rising, the last one at n.

    Returns
    -------
    int
        How many symbols are left.

    Notes
    -----
    Quadratic in the length of a word, linear in that of the text.
    """
    written = 0
    begin = 0
    for word in range(len(word_ends)):
        end = np.int64(merge_by_scanning(table, symbols, begin, int(word_ends[word])))
        for i in range(begin, end):
            symbols[written] = symbols[i]
            written += 1
        begin = int(word_ends[word])
    return written


@helper
def add_to_agenda(agenda: Any, n: int, key: int, size: int) -> int:
    """Add a merge to an agenda of `n`; returns how many there are then."""
    child = n
    while child > 0:
        parent = (child - 1) >> 1
        if agenda.keys[parent] <= key:
            break
        agenda.keys[child] = agenda.keys[parent]
        agenda.sizes[child] = agenda.sizes[parent]
        child = parent
    agenda.keys[child] = key
    agenda.sizes[child] = size
    return n + 1


@helper
def drop_top(agenda: Any, n: int) -> int:
    """Take the first merge off an agenda of `n`; returns how many are left."""
    n -= 1
    key, size = agenda.keys[n], agenda.sizes[n]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and agenda.keys[child + 1] < agenda.keys[child]:
            child += 1
        if agenda.keys[child] >= key:
            break
        agenda.keys[at] = agenda.keys[child]
        agenda.sizes[at] = agenda.sizes[child]
        at = child
    agenda.keys[at] = key
    agenda.sizes[at] = size
    return n


@kernel
def bpe_heap_list(
    table: Any,
    symbols: NDArray[np.int32],
    agenda: Any,
    sizes: NDArray[np.int32],
    previous: NDArray[np.int32],
    following: NDArray[np.int32],
) -> int:
    """A queue of merges, and symbols in a linked list.

    A symbol lies at the place of its first character, and the list says what comes before and after it. A merge on the
    agenda may be out of date when its turn comes: one of its symbols has been merged meanwhile, and is longer or gone. Since
    symbols only grow, it is good if the two symbols now there are as long together as they were.

    Parameters
    ----------
    table, symbols
        As for :func:`bpe_naive`.
    agenda
        :class:`Agenda` for 2n merges.
    sizes, previous, following
        int32[n], scratch: characters of each symbol (0: gone), and its neighbours.

    Returns
    -------
    int
        How many symbols are left.

    Notes
    -----
    O(n log n): each merge takes one symbol away and adds two merges to the agenda, which takes O(log n) each.
    """
    n = len(symbols)
    count = 0
    for i in range(n):
        sizes[i] = 1
        previous[i] = i - 1
        following[i] = i + 1
        if i + 1 < n:
            found = find_pair(table, symbols[i], symbols[i + 1])
            if found != NONE:
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | i, 2))
    while count > 0:
        place = np.int64(agenda.keys[0]) & _LOW
        size = np.int64(agenda.sizes[0])
        count = np.int64(drop_top(agenda, count))
        if sizes[place] == 0 or following[place] >= n:
            continue
        right = np.int64(following[place])
        if np.int64(sizes[place]) + np.int64(sizes[right]) != size:
            continue
        symbols[place] = find_pair(table, symbols[place], symbols[right]) & _LOW
        sizes[place] = size
        sizes[right] = 0
        after = np.int64(following[right])
        following[place] = after
        if after < n:
            previous[after] = place
            found = find_pair(table, symbols[place], symbols[after])
            if found != NONE:
                both = size + np.int64(sizes[after])
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | place, both))
        before = np.int64(previous[place])
        if before >= 0:
            found = find_pair(table, symbols[before], symbols[place])
            if found != NONE:
                both = size + np.int64(sizes[before])
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | before, both))
    written = 0
    for i in range(n):
        if sizes[i] > 0:
            symbols[written] = symbols[i]
            written += 1
    return written


@helper
def next_symbol(tree: Any, place: int) -> int:
    """The place of the symbol after one, or -1: up to the first subtree on the right that has one, and down in it."""
    node = len(tree.alive) // 2 + place
    while node > 1:
        if node & 1 == 0 and tree.alive[node + 1] > 0:
            node += 1
            while node < len(tree.alive) // 2:
                node = 2 * node if tree.alive[2 * node] > 0 else 2 * node + 1
            return node - len(tree.alive) // 2
        node >>= 1
    return -1


@helper
def previous_symbol(tree: Any, place: int) -> int:
    """The place of the symbol before one, or -1."""
    node = len(tree.alive) // 2 + place
    while node > 1:
        if node & 1 == 1 and tree.alive[node - 1] > 0:
            node -= 1
            while node < len(tree.alive) // 2:
                node = 2 * node + 1 if tree.alive[2 * node + 1] > 0 else 2 * node
            return node - len(tree.alive) // 2
        node >>= 1
    return -1


@kernel
def bpe_heap_tree(
    table: Any, symbols: NDArray[np.int32], agenda: Any, sizes: NDArray[np.int32], tree: Any
) -> int:
    """A queue of merges, and symbols in a balanced ordered tree.

    As :func:`bpe_heap_list`, but neighbours are looked up in the tree, each time in O(log n).

    Parameters
    ----------
    table, symbols, agenda, sizes
        As there.
    tree
        :class:`SymbolTree` with at least n leaves, all 0.

    Returns
    -------
    int
        How many symbols are left.

    Notes
    -----
    O(n log n).
    """
    n = len(symbols)
    leaves = len(tree.alive) // 2
    for i in range(n):
        tree.alive[leaves + i] = 1
    for node in range(leaves - 1, 0, -1):
        tree.alive[node] = tree.alive[2 * node] + tree.alive[2 * node + 1]
    count = 0
    for i in range(n):
        sizes[i] = 1
        if i + 1 < n:
            found = find_pair(table, symbols[i], symbols[i + 1])
            if found != NONE:
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | i, 2))
    while count > 0:
        place = np.int64(agenda.keys[0]) & _LOW
        size = np.int64(agenda.sizes[0])
        count = np.int64(drop_top(agenda, count))
        if sizes[place] == 0:
            continue
        right = np.int64(next_symbol(tree, place))
        if right < 0 or np.int64(sizes[place]) + np.int64(sizes[right]) != size:
            continue
        symbols[place] = find_pair(table, symbols[place], symbols[right]) & _LOW
        sizes[place] = size
        sizes[right] = 0
        node = leaves + right
        while node > 0:
            tree.alive[node] -= 1
            node >>= 1
        after = np.int64(next_symbol(tree, place))
        if after >= 0:
            found = find_pair(table, symbols[place], symbols[after])
            if found != NONE:
                both = size + np.int64(sizes[after])
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | place, both))
        before = np.int64(previous_symbol(tree, place))
        if before >= 0:
            found = find_pair(table, symbols[before], symbols[place])
            if found != NONE:
                both = size + np.int64(sizes[before])
                count = np.int64(add_to_agenda(agenda, count, found >> 32 << 32 | before, both))
    written = 0
    for i in range(n):
        if sizes[i] > 0:
            symbols[written] = symbols[i]
            written += 1
    return written
