"""Suffix arrays in linear time, and the repeats of a text that differ in what follows them.

The order of all suffixes comes from induced sorting (Nong, Zhang and Chan 2009, "Linear suffix array construction by
almost pure induced-sorting"). Only suffixes at *leftmost S positions* are sorted: positions whose suffix is smaller than
the next one while that of the position before is not. All others follow from them in two sweeps over the array. To sort
these few, the text between each two of them is sorted by the same two sweeps and named by its rank, and the names are a
text of at most half the length, whose suffix array is made in the same way.

A *right-maximal repeat* is a string that occurs at least twice with different symbols behind it. The suffixes that begin
with it are an interval of the suffix array whose neighbours have it as their longest common prefix; all these intervals
nest, and one sweep with a stack finds them (Abouelhoda, Kurtz and Ohlebusch 2004).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel

#: Positions of the state of ``right_maximal_repeats``.
RANK, HEIGHT, FOUND, WEIGHT = 0, 1, 2, 3
REPEATS_STATE = 4
#: The symbol between parts of a text.
SEPARATOR = 1


@helper
def bucket_bounds(sizes: Any, bounds: Any, ends: int) -> int:
    """Where the suffixes that begin with each symbol start, or `ends`, in the suffix array."""
    total = np.int64(0)
    for symbol in range(len(sizes)):
        size = np.int64(sizes[symbol])
        bounds[symbol] = total + (size if ends else 0)
        total += size
    return 0


@helper
def induce(text: Any, order: Any, sizes: Any, bounds: Any) -> int:
    """Sort all suffixes, given those at leftmost S positions at the ends of their buckets, 0 elsewhere.

    A position that is negative (its complement) is one from which the sweep at hand has nothing to induce.
    """
    n = len(text)
    bucket_bounds(sizes, bounds, 0)
    for rank in range(n):
        position = np.int64(order[np.uint64(rank)])
        order[np.uint64(rank)] = ~position
        if position > 0:
            position -= 1
            symbol = np.int64(text[np.uint64(position)])
            at = np.int64(bounds[np.uint64(symbol)])
            bounds[np.uint64(symbol)] = at + 1
            if position > 0 and np.int64(text[np.uint64(position - 1)]) < symbol:
                position = ~position
            order[np.uint64(at)] = position
    bucket_bounds(sizes, bounds, 1)
    for rank in range(n - 1, -1, -1):
        position = np.int64(order[np.uint64(rank)])
        if position > 0:
            position -= 1
            symbol = np.int64(text[np.uint64(position)])
            at = np.int64(bounds[np.uint64(symbol)]) - 1
            bounds[np.uint64(symbol)] = at
            if position == 0 or np.int64(text[np.uint64(position - 1)]) > symbol:
                position = ~position
            order[np.uint64(at)] = position
        else:
            order[np.uint64(rank)] = ~position
    return 0


@kernel
def sort_leftmost(text: Any, sizes: Any, bounds: Any, leftmost: Any, order: Any, names: Any, counts: Any) -> int:
    """First half of induced sorting: find, sort and name the leftmost S positions.

    Parameters
    ----------
    text
        int32[n], n at least 2, symbols below the length of `sizes`. The last one is 0, and the only 0.
    sizes, bounds
        int32[symbols]: `sizes` is set to how often each symbol occurs, `bounds` is scratch.
    leftmost
        uint8[n], zeros: set to 1 at leftmost S positions.
    order
        int32[n], zeros.
    names
        int32[n // 2 + 1], set to the positions' names in the order of the text.
    counts
        int64[2], set to the number of leftmost S positions and that of different names.

    Returns
    -------
    int
        0. O(n) time.
    """
    n = len(text)
    for symbol in range(len(sizes)):
        sizes[symbol] = 0
    for position in range(n):
        sizes[np.uint64(text[np.uint64(position)])] += 1
    bucket_bounds(sizes, bounds, 1)
    found = np.int64(0)
    is_smaller = False  # than the next suffix; the last one is not but counts as leftmost, as all symbols are larger
    after = np.int64(0)
    for position in range(n - 2, -1, -1):
        symbol = np.int64(text[np.uint64(position)])
        if symbol < after or (symbol == after and is_smaller):
            is_smaller = True
        else:
            if is_smaller or position == n - 2:
                leftmost[np.uint64(position + 1)] = 1
                found += 1
                at = np.int64(bounds[np.uint64(after)]) - 1
                bounds[np.uint64(after)] = at
                order[np.uint64(at)] = position + 1
            is_smaller = False
        after = symbol
    induce(text, order, sizes, bounds)
    # The sorted leftmost positions to the front. Two of them are never neighbours, so half a position tells them apart.
    at = np.int64(0)
    for rank in range(n):
        position = np.int64(order[np.uint64(rank)])
        if leftmost[np.uint64(position)]:
            order[np.uint64(at)] = position
            at += 1
    for slot in range(at, n):
        order[np.uint64(slot)] = -1
    name = np.int64(-1)
    before = np.int64(-1)
    for rank in range(found):
        position = np.int64(order[np.uint64(rank)])
        differs = before < 0 or position == n - 1 or before == n - 1
        offset = np.int64(0)
        while not differs:
            if text[np.uint64(position + offset)] != text[np.uint64(before + offset)]:
                differs = True
            elif offset > 0:
                ends = np.int64(leftmost[np.uint64(position + offset)])
                ends_before = np.int64(leftmost[np.uint64(before + offset)])
                if ends == 1 and ends_before == 1:
                    break
                differs = ends != ends_before
            offset += 1
        if differs:
            name += 1
        order[np.uint64(found + (position >> 1))] = name
        before = position
    at = np.int64(0)
    for slot in range(found, n):
        if order[np.uint64(slot)] >= 0:
            names[np.uint64(at)] = order[np.uint64(slot)]
            at += 1
    counts[0] = found
    counts[1] = name + 1
    return 0


@kernel
def sort_all(text: Any, sizes: Any, bounds: Any, leftmost: Any, ranks: Any, places: Any, order: Any) -> int:
    """Second half of induced sorting: the order of all suffixes from that of the leftmost S positions.

    Parameters
    ----------
    text, sizes, bounds, leftmost
        As :func:`sort_leftmost` left them.
    ranks
        int32[k], the suffix array of the names; with all names different, the names themselves will do
        if `places` has been set accordingly.
    places
        int32[k], scratch.
    order
        int32[n], the result.

    Returns
    -------
    int
        0. O(n) time.
    """
    n = len(text)
    found = np.int64(0)
    for position in range(n):
        if leftmost[np.uint64(position)]:
            places[np.uint64(found)] = position
            found += 1
        order[np.uint64(position)] = 0
    bucket_bounds(sizes, bounds, 1)
    for rank in range(found - 1, -1, -1):
        position = np.int64(places[np.uint64(ranks[np.uint64(rank)])])
        symbol = np.int64(text[np.uint64(position)])
        at = np.int64(bounds[np.uint64(symbol)]) - 1
        bounds[np.uint64(symbol)] = at
        order[np.uint64(at)] = position
    induce(text, order, sizes, bounds)
    return 0


def suffix_array(text: NDArray[np.int32], n_symbols: int) -> NDArray[np.int32]:
    """The positions of a text in the order of the suffixes that begin there.

    Parameters
    ----------
    text
        int32[n] with n at least 1, symbols from 0 to ``n_symbols - 1``. The last one is 0, and the only 0.
    n_symbols
        Number of different symbols that are possible.

    Returns
    -------
    ndarray
        int32[n]. O(n + n_symbols) time; the scratch is 9 bytes a symbol of the text and less.
    """
    n = len(text)
    order = np.zeros(n, np.int32)
    if n == 1:
        return order
    sizes = np.empty(n_symbols, np.int32)
    bounds = np.empty(n_symbols, np.int32)
    leftmost = np.zeros(n, np.uint8)
    names = np.empty(n // 2 + 1, np.int32)
    counts = np.zeros(2, np.int64)
    sort_leftmost(text, sizes, bounds, leftmost, order, names, counts)
    found, different = counts.tolist()
    names = names[:found].copy()
    if different < found:
        ranks = suffix_array(names, different)
    else:
        ranks = np.empty(found, np.int32)
        ranks[names] = np.arange(found, dtype=np.int32)
    del names
    sort_all(text, sizes, bounds, leftmost, ranks, np.empty(found, np.int32), order)
    return order


class Repeats(NamedTuple):
    """Intervals of a suffix array; all arrays are of one length, of which a prefix is used."""

    left: NDArray[np.int32]  # rank of the first suffix that begins with the repeat
    right: NDArray[np.int32]  # rank of the last one
    length: NDArray[np.int32]  # symbols of the repeat
    weight: NDArray[np.int64]  # its occurrences, each counted as often as the part of the text that it lies in


def new_repeats(capacity: int) -> Repeats:
    """Allocate room for `capacity` repeats."""
    left, right, length = (np.empty(capacity, np.int32) for _ in range(3))
    return Repeats(left, right, length, np.empty(capacity, np.int64))


@inlined
def common_prefix(text: Any, a: int, b: int, most: int) -> int:
    """Length of the longest common prefix of two suffixes, at most `most`, up to a 0 or 1."""
    length = np.int64(0)
    while length < most:
        symbol = text[np.uint64(a + length)]
        if symbol <= SEPARATOR or symbol != text[np.uint64(b + length)]:
            break
        length += 1
    return length


@kernel
def right_maximal_repeats(
    text: Any, order: Any, part_of: Any, weights: Any, most: int, stop: int, stack: Any, state: Any, repeats: Any
) -> int:
    """Find the right-maximal repeats of a text in parts: none reaches beyond the part that it begins in.

    Parameters
    ----------
    text
        int32[n], symbols from 2 on, a 1 after each part, and a 0 at the end.
    order
        int32[n], its suffix array.
    part_of, weights
        int32[n], int64[parts]: the part of each position, and how often each part counts.
    most
        Repeats of more symbols are left out.
    stop
        The first rank that is not looked at in this call, at most n + 1. The work may be done in slices, of which the
        last one ends at n + 1.
    stack
        int64[most + 3, 3], kept between calls.
    state
        int64[REPEATS_STATE], zeros before the first call; ``state[FOUND]`` is set to the repeats of this call. With
        another rank than 0 in ``state[RANK]``, one at which another first symbol begins, only later ones are looked at:
        so parts of the work may be done apart, each up to one behind the rank where the next one begins.
    repeats
        :class:`Repeats` with room for as many as there are ranks in the slice, and `most` + 1 more. In post-order: those
        inside of an interval come before it, and what lies further left before both.

    Returns
    -------
    int
        0. O(n * most) time, in practice n times the mean common prefix of neighbours.
    """
    n = len(text)
    height = state[HEIGHT]
    weight = state[WEIGHT]
    found = np.int64(0)
    rank = state[RANK]
    position = np.int64(order[np.uint64(max(rank - 1, 0))])
    if height == 0:
        position = np.int64(order[np.uint64(rank)])
        stack[0, 0] = 0
        stack[0, 1] = 0
        stack[0, 2] = 0
        height = 1
        weight = weights[np.uint64(part_of[np.uint64(position)])]
        rank += 1
    while rank < stop:
        before = position
        common = np.int64(0)
        if rank < n:
            position = np.int64(order[np.uint64(rank)])
            common = common_prefix(text, before, position, most + 1)
        left = rank - 1
        begin = weight - weights[np.uint64(part_of[np.uint64(before)])]
        while stack[height - 1, 0] > common:
            height -= 1
            left = stack[height, 1]
            begin = stack[height, 2]
            if stack[height, 0] <= most:
                repeats.left[np.uint64(found)] = left
                repeats.right[np.uint64(found)] = rank - 1
                repeats.length[np.uint64(found)] = stack[height, 0]
                repeats.weight[np.uint64(found)] = weight - begin
                found += 1
        if common > stack[height - 1, 0]:
            stack[height, 0] = common
            stack[height, 1] = left
            stack[height, 2] = begin
            height += 1
        if rank < n:
            weight += weights[np.uint64(part_of[np.uint64(position)])]
        rank += 1
    state[RANK] = rank
    state[HEIGHT] = height
    state[WEIGHT] = weight
    state[FOUND] = found
    return 0
