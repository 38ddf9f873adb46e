"""A WordPiece vocabulary as a trie in a double array, with failure links and pops; see ``tables.WordPieceTables``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel


class Pops(NamedTuple):
    """Lists of failure pops; see ``tables.WordPieceTables``."""

    indptr: NDArray[np.int32]
    before: NDArray[np.int32]
    count: NDArray[np.int32]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]


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
