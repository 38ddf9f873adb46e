"""Tries of strings in a double array over dense character codes, one load for each step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import inlined, kernel
from jittok.kernels.machine import multiply
from jittok.kernels.utf8 import codepoint_at

FACTOR = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)
#: Returned by ``place_nodes`` where the units do not suffice.
NO_ROOM = -1
#: Free units that are tried for the children of one node before they are given up for all later ones.
MOST_TRIES = 64


class Trie(NamedTuple):
    """Nodes of a trie, numbered as they were made; 0 is the root."""

    parent: NDArray[np.int32]  # [capacity]
    label: NDArray[np.int32]  # [capacity] codepoint that leads to the node
    token: NDArray[np.int32]  # [capacity] id of the token that ends here, -1: none
    n_bytes: NDArray[np.int32]  # [capacity] bytes of the string that the node stands for


class Layout(NamedTuple):
    """Where nodes are, and an order in which each comes after its parent."""

    queue: NDArray[np.int32]  # [n] nodes other than the roots, breadth first from both roots at once
    base: NDArray[np.int32]  # [n] by node, 0 for a leaf
    place: NDArray[np.int32]  # [n] number of the node's unit


@kernel
def insert_tokens(
    strings: Any, indptr: Any, ids: Any, edge_keys: Any, edge_nodes: Any, trie: Any, label_count: Any
) -> int:
    """Make a trie of strings, one edge for each codepoint.

    Parameters
    ----------
    strings : uint8[m]
        UTF-8 of all strings, one after another. The first leads to the second root; an empty one to the root itself.
    indptr : int64[n + 1]
        String i is ``strings[indptr[i]:indptr[i + 1]]``.
    ids : int32[n]
        Token id of each string; that of the first is not looked at. Of equal strings, the last one's id is kept.
    edge_keys, edge_nodes : uint64, int32 [power of two, at least twice the codepoints]
        Scratch, zero.
    trie : Trie
        Output, with room for a node for each codepoint, and the root.
    label_count : int32[more than the largest codepoint]
        Output, zero before: edges with each codepoint.

    Returns
    -------
    int
        The number of nodes << 32 | the second root. Linear.
    """
    mask = np.uint64(edge_keys.size - 1)
    trie.parent[0] = -1
    trie.label[0] = 0
    trie.token[0] = -1
    trie.n_bytes[0] = 0
    n = np.int64(1)
    second_root = np.int64(0)
    for i in range(ids.size):
        at = indptr[i]
        end = indptr[i + 1]
        node = np.int64(0)
        while at < end:
            codepoint, length = codepoint_at(strings, at)
            key = (np.uint64(node) << np.uint64(21) | np.uint64(codepoint)) + ONE
            slot = (multiply(key, FACTOR) >> np.uint64(32)) & mask
            while edge_keys[slot] != key and edge_keys[slot] != 0:
                slot = (slot + ONE) & mask
            if edge_keys[slot] == 0:
                edge_keys[slot] = key
                edge_nodes[slot] = n
                trie.parent[n] = node
                trie.label[n] = codepoint
                trie.token[n] = -1
                trie.n_bytes[n] = trie.n_bytes[node] + length
                label_count[codepoint] += 1
                n += 1
            node = edge_nodes[slot]
            at += length
        if i == 0:
            second_root = node
        elif end > indptr[i]:
            trie.token[node] = ids[i]
    return n << 32 | second_root


@inlined
def fits(units: Any, used_base: Any, base: int, codes: Any, children: Any, first: int, last: int) -> bool:
    """Whether children [first, last) can stand at their codes from `base` on."""
    if base < 1 or used_base[base] != 0:
        return False
    for k in range(first, last):
        if units[4 * (base + codes[children[k]])] != -1:
            return False
    return True


@kernel
def place_nodes(
    trie: Any,
    codes: Any,
    second_root: int,
    largest: int,
    child_indptr: Any,
    children: Any,
    units: Any,
    used_base: Any,
    next_free: Any,
    previous_free: Any,
    layout: Any,
) -> int:
    """Find a place in the double array for every node.

    Parameters
    ----------
    trie : Trie
    codes : int32[n]
        Code of the character that leads to each node, from 1 to `largest`.
    second_root : int
        A node that is queued before all others; 0 for none.
    largest : int
    child_indptr, children : int32[n + 2], int32[n]
        Scratch, the first of them zero: children of each node.
    units : int32[4 * n_units]
        Output: the first number of each node's unit; -1 in all others.
    used_base, next_free, previous_free : uint8, int32, int32 [n_units]
        Scratch, the first of them zero.
    layout : Layout
        Output.

    Returns
    -------
    int
        The number of units used, `largest` and one free ones at the end included; or NO_ROOM.

    Notes
    -----
    The children of a node go to the first free units that are as far from each other as their codes. Units that have
    failed for a node with many tries are not tried again, so time is linear in nodes and units.
    """
    n = codes.size
    for node in range(1, n):
        child_indptr[trie.parent[node] + 2] += 1
    for node in range(2, n + 2):
        child_indptr[node] += child_indptr[node - 1]
    for node in range(1, n):
        parent = trie.parent[node] + 1
        children[child_indptr[parent]] = node
        child_indptr[parent] += 1
    # Now the children of v are children[child_indptr[v] : child_indptr[v + 1]].
    n_units = next_free.size
    for i in range(n_units):
        units[4 * i] = -1
        next_free[i] = i + 1
        previous_free[i] = i - 1
    layout.place[0] = 0
    start = np.int64(1)
    queued = np.int64(0)
    taken = np.int64(0)
    highest = np.int64(0)
    # The roots come first; the second root is not queued again as somebody's child.
    for turn in range(-2, n):
        if turn == -2:
            node = np.int64(0)
        elif turn == -1:
            node = np.int64(second_root)
            if node == 0:
                continue
        elif taken == queued:
            break
        else:
            node = layout.queue[taken]
            taken += 1
        first = child_indptr[node]
        last = child_indptr[node + 1]
        layout.base[node] = 0
        if first == last:
            continue
        least = codes[children[first]]
        for k in range(first + 1, last):
            least = min(least, codes[children[k]])
        free = start
        tries = np.int64(0)
        while True:
            if free - least + largest >= n_units:
                return NO_ROOM
            if fits(units, used_base, free - least, codes, children, first, last):
                break
            free = next_free[free]
            tries += 1
        if tries > MOST_TRIES:
            start = free
        base = free - least
        used_base[base] = 1
        layout.base[node] = base
        for k in range(first, last):
            child = children[k]
            place = base + codes[child]
            units[4 * place] = base
            before = previous_free[place]
            after = next_free[place]
            next_free[before] = after
            if after < n_units:
                previous_free[after] = before
            if place == start:
                start = after
            highest = max(highest, place)
            layout.place[child] = place
            if child != second_root:
                layout.queue[queued] = child
                queued += 1
    if highest + largest + 2 > n_units:
        return NO_ROOM
    return highest + largest + 2
