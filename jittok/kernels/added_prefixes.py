"""Finding added tokens by how they begin, for tokens of many kinds: words, names, codes.

A place of the text goes through three tests, each of which leaves few places to the next one: 64 places at a time in a
bitmap by about five bytes; then, each of those left, in one by a few more; at last in the table of tokens. That table is
a trie whose edges are eight bytes, or fewer at the end of a token: a hash table of (node, number of bytes, the bytes).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import inlined, kernel
from jittok.kernels.added_tokens import COUNT, LOW, WORK, begin_segment, take_match
from jittok.kernels.machine import (
    count_bits,
    has_wide_vectors,
    load64,
    multiply,
    prefix_bits,
    prefix_bits_of_two,
    trailing_zeros,
)
from jittok.tables import (
    ADDED_TOKENS_BEGINNING_MASK,
    ADDED_TOKENS_BEGINNING_SHIFT,
    ADDED_TOKENS_HIGH_MASK,
    ADDED_TOKENS_LOW_MASK,
    ADDED_TOKENS_PREFIX_PAIRS,
    ADDED_TOKENS_PREFIX_SHIFT,
    ADDED_TOKENS_SEEN_SHIFT,
    ADDED_TOKENS_SLOT_SHIFT,
    NODE_FACTOR,
    PREFIX_FACTOR,
    SEEN_FACTOR,
)

#: Places of the text that go through each test together.
WINDOW = 4096
#: Size of the scratch array for them.
PLACES = WINDOW + 64
#: Returned by :func:`find_by_prefixes` where the automaton is to be taken instead.
TOO_MUCH_WORK = -1
#: Looks into the table for each byte of text, on average, that are not too much; and so many more.
WORK_PER_BYTE = 8
WORK_AT_FIRST = 1 << 16
#: Bytes that a look at 64 places may read.
BLOCK = 72

ONE = np.uint64(1)
_FACTOR = np.uint64(SEEN_FACTOR)
_NODE_FACTOR = np.uint64(NODE_FACTOR)
_PREFIX_FACTOR = np.uint64(PREFIX_FACTOR)
_LOW_HALF = np.uint64(0xFFFFFFFF)


@inlined
def _word_at(data: Any, at: int) -> np.uint64:
    """The eight bytes from `at` on, zeros behind the end of `data`."""
    if at + 8 <= data.shape[0]:
        return load64(data, at)
    word = np.uint64(0)
    for i in range(at, data.shape[0]):
        word |= np.uint64(data[np.uint64(i)]) << np.uint64(8 * (i - at))
    return word


@inlined
def _hash(word: np.uint64, length: int, node: int) -> np.uint64:
    """The hash of an edge: the first `length` bytes of `word`, from a node."""
    chunk = (word << np.uint64(64 - 8 * length)) ^ np.uint64(length)
    return multiply(chunk ^ multiply(np.uint64(node), _NODE_FACTOR), _FACTOR)


@inlined
def _prefix_bits(prefixes: Any, data: Any, at: int, low: int, high: int, shift: int, pairs: int) -> np.uint64:
    """``prefix_bits``, or ``prefix_bits_of_two`` with `pairs` 1."""
    found = np.uint64(0)
    for i in range(pairs, 64, 1 + pairs):
        word = load64(data, at + i)
        mixed = (word & np.uint64(low)) ^ ((word >> np.uint64(32) & np.uint64(high)) << np.uint64(5))
        place = (multiply(mixed, _PREFIX_FACTOR) & _LOW_HALF) >> np.uint64(shift) << np.uint64(pairs)
        bits = np.uint64(prefixes[place >> np.uint64(5)]) >> (place & np.uint64(31))
        found |= (bits & np.uint64(1 + 2 * pairs)) << np.uint64(i - pairs)
    return found


@inlined
def _longest_token(tables: Any, data: Any, at: int, end: int, state: Any) -> int:
    """The longest token that begins at `at` and ends at or before `end`; -1 if there is none."""
    slots = tables.slots
    mask = np.uint64(slots.shape[0] - 1)
    slot_shift = np.uint64(tables.numbers[ADDED_TOKENS_SLOT_SHIFT])
    seen = tables.seen
    seen_shift = np.uint64(tables.numbers[ADDED_TOKENS_SEEN_SHIFT])
    token = np.int64(-1)
    node = np.int64(0)
    while node >= 0:
        word = _word_at(data, at)
        kinds = np.int64(tables.node_kinds[np.uint64(node)])
        is_root = node == 0
        if end - at < 8:
            kinds &= (1 << (end - at)) - 1
        following = np.int64(-1)
        length = 8
        while kinds != 0:
            if kinds & 128:
                state[WORK] += 1
                hashed = _hash(word, length, node)
                bit = hashed >> seen_shift
                if is_root and seen[bit >> np.uint64(6)] >> (bit & np.uint64(63)) & ONE == 0:
                    kinds = kinds << 1 & 255
                    length -= 1
                    continue
                key = word << np.uint64(64 - 8 * length)
                owner = np.uint64(node) << np.uint64(4) | np.uint64(length)
                place = hashed >> slot_shift << ONE
                while slots[place | ONE] != 0 and (slots[place] != key or slots[place | ONE] != owner):
                    place = (place + np.uint64(2)) & mask
                if slots[place | ONE] != 0:
                    if length == 8:
                        following = np.int64(tables.edge_nodes[place >> ONE])
                    if tables.edge_tokens[place >> ONE] >= 0:
                        token = np.int64(tables.edge_tokens[place >> ONE])
                        break
            kinds = kinds << 1 & 255
            length -= 1
        node = following
        at += 8
    return token


@kernel
def find_by_prefixes(
    tables: Any, enabled: Any, data: Any, starts: Any, ends: Any, first: Any, last: Any, places: Any, state: Any,
    out: Any,
) -> int:  # fmt: skip
    """Find the added tokens in segments of text, as ``added_tokens.find_added_tokens`` does.

    Parameters
    ----------
    tables, enabled, data, starts, ends, first, last, state
        As there; the tables have prefixes.
    places : int32[PLACES]
        Scratch.
    out : int64[capacity, 4]
        Receives rows (segment, start byte, end byte, token id) in order.

    Returns
    -------
    int
        The number of rows; or a number below -1 when `out` is too small: call again with a new array of that many rows
        (positive); or TOO_MUCH_WORK, if the tables hold an automaton.

    Notes
    -----
    Where no token is near, 64 places cost one look at the bitmap. A place that passes all tests costs up to nine looks
    for each eight bytes of the longest token, so the time is linear in the text; where tokens are long there is an
    automaton, and TOO_MUCH_WORK comes back after work that is linear in the text whatever they are.
    """
    state[COUNT] = 0
    state[WORK] = 0
    capacity = out.shape[0]
    size = data.shape[0]
    numbers = tables.numbers
    prefixes = tables.prefixes
    low = np.int64(numbers[ADDED_TOKENS_LOW_MASK])
    high = np.int64(numbers[ADDED_TOKENS_HIGH_MASK])
    shift = np.int64(numbers[ADDED_TOKENS_PREFIX_SHIFT])
    pairs = np.int64(numbers[ADDED_TOKENS_PREFIX_PAIRS])
    beginnings = tables.beginnings
    beginning_mask = np.uint64(numbers[ADDED_TOKENS_BEGINNING_MASK])
    beginning_shift = np.uint64(numbers[ADDED_TOKENS_BEGINNING_SHIFT])
    bounded = tables.child_start.shape[0] > 2
    allowed = np.int64(WORK_AT_FIRST)
    for segment in range(first, last):
        position = np.int64(starts[segment])
        end = np.int64(ends[segment])
        begin_segment(state, position, end)
        while position < end:
            stop = min(position + WINDOW, end)
            n = np.int64(0)
            for base in range(position, stop, 64):
                bits = ~np.uint64(0)
                if base + BLOCK <= size:
                    if not has_wide_vectors():
                        bits = _prefix_bits(prefixes, data, base, low, high, shift, pairs)
                    elif pairs == 1:
                        bits = prefix_bits_of_two(data, base, prefixes, low, high, shift)
                    else:
                        bits = prefix_bits(data, base, prefixes, low, high, shift)
                if base + 64 > stop:
                    bits &= (ONE << np.uint64(stop - base)) - ONE
                # Four are written in any case, some of no meaning: no branch depends on how many there are.
                after = n + count_bits(bits)
                for i in range(4):
                    places[np.uint64(n + i)] = base - position + trailing_zeros(bits)
                    bits &= bits - ONE
                n += 4
                while bits != 0:
                    places[np.uint64(n)] = base - position + trailing_zeros(bits)
                    bits &= bits - ONE
                    n += 1
                n = after
            # All are written, and those that pass stay.
            kept = np.int64(0)
            for i in range(n):
                at = np.int64(places[np.uint64(i)])
                places[np.uint64(kept)] = at
                place = multiply(_word_at(data, position + at) & beginning_mask, _FACTOR) >> beginning_shift
                kept += np.int64(beginnings[place >> np.uint64(6)] >> (place & np.uint64(63)) & ONE)
            allowed += WORK_PER_BYTE * (stop - position)
            for i in range(kept):
                match = position + np.int64(places[np.uint64(i)])
                if match < state[LOW]:
                    continue
                token = _longest_token(tables, data, match, end, state)
                if token >= 0:
                    if state[COUNT] == capacity:
                        return -(2 * capacity + WINDOW)
                    take_match(tables, enabled, data, segment, match, token, state, out)
                if bounded and state[WORK] > allowed:
                    return TOO_MUCH_WORK
            position = max(stop, np.int64(state[LOW]))
    return state[COUNT]


@kernel
def insert_tokens(
    indptr: Any, data: Any, slot_shift: int, slots: Any, edge_tokens: Any, edge_nodes: Any, node_kinds: Any
) -> int:
    """Make the trie of tokens.

    Parameters
    ----------
    indptr : int64[n_tokens + 1], data : uint8[m]
        Token i is ``data[indptr[i]:indptr[i + 1]]``. Of equal ones the first counts, empty ones are left out.
    slot_shift : int
        64 less the bits of the number of edges that there is room for, twice as many as there will be.
    slots, edge_tokens, edge_nodes, node_kinds
        Output, see :class:`AddedTokenTables`; `edge_tokens` and `edge_nodes` are -1 before, the others 0.

    Returns
    -------
    int
        The number of nodes. Time is linear in the bytes.
    """
    mask = np.uint64(slots.shape[0] - 1)
    n_nodes = 1
    for token in range(indptr.shape[0] - 1):
        at = np.int64(indptr[token])
        end = np.int64(indptr[token + 1])
        node = 0
        while at < end:
            length = min(end - at, 8)
            word = _word_at(data, at)
            key = word << np.uint64(64 - 8 * length)
            owner = np.uint64(node) << np.uint64(4) | np.uint64(length)
            place = _hash(word, length, node) >> np.uint64(slot_shift) << ONE
            while slots[place | ONE] != 0 and (slots[place] != key or slots[place | ONE] != owner):
                place = (place + np.uint64(2)) & mask
            if slots[place | ONE] == 0:
                slots[place] = key
                slots[place | ONE] = owner
                node_kinds[node] |= np.uint8(1 << (length - 1))
            edge = np.int64(place >> ONE)
            at += length
            if at == end:
                if edge_tokens[edge] < 0:
                    edge_tokens[edge] = token
            else:
                if edge_nodes[edge] < 0:
                    edge_nodes[edge] = n_nodes
                    n_nodes += 1
                node = np.int64(edge_nodes[edge])
    return n_nodes
