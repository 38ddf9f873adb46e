"""A WordPiece vocabulary as a trie in a double array, with failure links and pops; see ``tables.WordPieceTables``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
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
    """Where nodes are, and the order in which links are made."""

    queue: NDArray[np.int32]  # [n] nodes other than the roots, breadth first from both roots at once
    base: NDArray[np.int32]  # [n] by node, 0 for a leaf
    place: NDArray[np.int32]  # [n] number of the node's unit


class Pops(NamedTuple):
    """Lists of failure pops; see ``tables.WordPieceTables``."""

    indptr: NDArray[np.int32]
    before: NDArray[np.int32]
    count: NDArray[np.int32]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]


@kernel
def insert_tokens(
    strings: Any, indptr: Any, ids: Any, edge_keys: Any, edge_nodes: Any, trie: Any, label_count: Any
) -> int:
    """Make a trie of strings, one edge for each codepoint.

    Parameters
    ----------
    strings : uint8[m]
        UTF-8 of all strings, one after another. The first is the suffix indicator.
    indptr : int64[n + 1]
        String i is ``strings[indptr[i]:indptr[i + 1]]``.
    ids : int32[n]
        Token id of each string; -1 for the suffix indicator. Of equal strings, the last one's id is kept.
    edge_keys, edge_nodes : uint64, int32 [power of two, at least twice the codepoints]
        Scratch, zero.
    trie : Trie
        Output, with room for a node for each codepoint, and the root.
    label_count : int32[0x110000]
        Output, zero before: edges with each codepoint.

    Returns
    -------
    int
        The number of nodes << 32 | the node of the suffix indicator. Linear.
    """
    mask = np.uint64(edge_keys.size - 1)
    trie.parent[0] = -1
    trie.label[0] = 0
    trie.token[0] = -1
    trie.n_bytes[0] = 0
    n = np.int64(1)
    suffix_root = np.int64(0)
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
            suffix_root = node
        elif end > indptr[i]:
            trie.token[node] = ids[i]
    return n << 32 | suffix_root


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
    suffix_root: int,
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
    suffix_root, largest : int
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
    # The roots come first; the suffix root is not queued again as somebody's child.
    for turn in range(-2, n):
        if turn == -2:
            node = np.int64(0)
        elif turn == -1:
            node = np.int64(suffix_root)
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
            if child != suffix_root:
                layout.queue[queued] = child
                queued += 1
    if highest + largest + 2 > n_units:
        return NO_ROOM
    return highest + largest + 2


@helper
def own_list(trie: Any, suffix_root: int, below: Any, lists: Any, pops: Any, n_lists: int, node: int) -> int:
    """See to it that a token has a list of its own, to be part of others; returns the number of lists."""
    if lists[node] != 0:
        return n_lists
    at = pops.indptr[n_lists]
    length = trie.n_bytes[node]
    if below[node] == 1:
        length -= trie.n_bytes[suffix_root]
    pops.ids[at] = trie.token[node]
    pops.lengths[at] = length
    pops.before[n_lists] = 0
    pops.count[n_lists] = 1
    pops.indptr[n_lists + 1] = at + 1
    lists[node] = n_lists
    return n_lists + 1


@helper
def add_pops(pops: Any, source: int, to: int) -> int:
    """Append list `source` to the ids from `to` on; returns where they end then."""
    end = to + pops.count[source]
    at = end
    while source != 0:
        k = pops.indptr[source + 1]
        while k > pops.indptr[source]:
            k -= 1
            at -= 1
            pops.ids[at] = pops.ids[k]
            pops.lengths[at] = pops.lengths[k]
        source = pops.before[source]
    return end


@inlined
def child_of(units: Any, layout: Any, node: int, code: int) -> int:
    """The child of a node, -1 if there is none. The third number of each unit is that of its node."""
    base = layout.base[node]
    at = 4 * (base + code)
    if base > 0 and units[at] == base:
        return units[at + 2]
    return -1


@kernel
def link_nodes(
    trie: Any, codes: Any, suffix_root: int, layout: Any, below: Any, link: Any, lists: Any, units: Any, pops: Any
) -> int:
    """Failure links and pops of every node, by the paper's precomputation.

    Parameters
    ----------
    trie : Trie
    codes : int32[n]
    suffix_root : int
    layout : Layout
        As ``place_nodes`` left it.
    below : uint8[n]
        Scratch: 1 for nodes below the suffix root.
    link, lists : int32[n]
        Scratch: failure link of each node, as a node; number of its list of pops.
    units : int32[4 * n_units]
        Its first numbers as ``place_nodes`` left them. Output: the others.
    pops : Pops
        Output. Room for a list for each node, twice, and for as many ids as the vocabulary has characters and tokens.

    Returns
    -------
    int
        The number of lists.

    Notes
    -----
    For a node v that the character c leads to from u: if v is a token, that is popped and the suffix root is next.
    Otherwise what u pops comes first, and then the pops of u's link, of that one's link and so on, up to the first
    of them that has a child for c, which is the link of v.

    Along the path of one token, each new pop stands for a character at least, and each step up the links brings a
    new pop: time and memory are linear in the characters of the vocabulary. Source: Song et al., Fast WordPiece
    Tokenization, 2021, algorithm 2.
    """
    n = codes.size
    for i in range(units.size >> 2):
        units[4 * i + 1] = 0
        units[4 * i + 2] = -1
        units[4 * i + 3] = -1
    for node in range(n):
        at = 4 * layout.place[node]
        units[at + 2] = node  # until the links are there
        link[node] = -1
        lists[node] = 0
        below[node] = 0
    pops.indptr[0] = 0
    pops.indptr[1] = 0
    pops.before[0] = 0
    pops.count[0] = 0
    n_lists = np.int64(1)
    n_queued = n - 1 if suffix_root == 0 else n - 2
    for turn in range(n_queued):
        node = layout.queue[turn]
        parent = trie.parent[node]
        if parent == suffix_root or below[parent] == 1:
            below[node] = 1
        if trie.token[node] >= 0:
            link[node] = suffix_root
            continue
        code = codes[node]
        up = link[parent]
        target = np.int64(-1)
        while up >= 0:
            target = child_of(units, layout, up, code)
            if target >= 0:
                break
            if link[up] >= 0:
                n_lists = own_list(trie, suffix_root, below, lists, pops, n_lists, up)
            up = link[up]
        if target < 0:
            continue
        link[node] = target
        n_lists = own_list(trie, suffix_root, below, lists, pops, n_lists, parent)
        begin = pops.indptr[n_lists]
        written = begin
        up = link[parent]
        while child_of(units, layout, up, code) < 0:
            written = add_pops(pops, lists[up], written)
            up = link[up]
        if written == begin:
            lists[node] = lists[parent]
            continue
        pops.before[n_lists] = lists[parent]
        pops.count[n_lists] = pops.count[lists[parent]] + written - begin
        pops.indptr[n_lists + 1] = written
        lists[node] = n_lists
        n_lists += 1
    for node in range(n):
        at = 4 * layout.place[node]
        # The automaton takes positions of units, so that it need not multiply.
        units[at + 1] = 4 * layout.base[node]
        units[at + 2] = -1
        if units[at] >= 0:
            units[at] = 4 * units[at]
        if link[node] >= 0:
            units[at + 2] = 4 * layout.place[link[node]]
            units[at + 3] = trie.token[node] if trie.token[node] >= 0 else -1 - lists[node]
    return n_lists
