"""All segmentations of a text by a unigram model: the n best, samples, their distribution.

A *lattice* has a place between any two characters, and an edge for each piece of the text, from the place where it begins
to that where it ends; a path from the first place to the last is a segmentation. Edges are listed by where they begin, then
by length, and again by where they end (`by_end`, `end_indptr`), in the same order.

Scores are in float32 by sentencepiece's rule, in float64 by tokenizers': that of the array which holds them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import multiply
from jittok.kernels.unigram import UNKNOWN, write_codes, write_path
from jittok.tables import UNIGRAM_ROOT_BASE

#: Returned where arrays are too small.
NO_ROOM = -1
#: In place of an edge: the beginning and the end of the text.
BEGIN = -1
END = -2
NONE = -1
#: Hypotheses of an n-best search are thinned out where as many wait, or as many are kept; see ``search_best``.
MOST_WAITING = 10000
MOST_KEPT = 100000
LEAST_WAITING = 512

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Lattice(NamedTuple):
    """The edges of a lattice."""

    start: NDArray[np.int32]  # [capacity] place where each begins
    stop: NDArray[np.int32]  # [capacity] place where it ends
    token: NDArray[np.int32]  # [capacity] id of its piece, UNKNOWN for an unknown character
    score: NDArray[np.floating]  # [capacity]
    by_end: NDArray[np.int32]  # [capacity] edges that end at place k: by_end[end_indptr[k] : end_indptr[k + 1]]
    end_indptr: NDArray[np.int32]  # [places + 2]


class Search(NamedTuple):
    """The hypotheses of an n-best search: paths from some edge to the end of the text."""

    edge: NDArray[np.int32]  # [capacity] first edge of the path
    following: NDArray[np.int32]  # [capacity] hypothesis that is the rest of it
    done: NDArray[np.floating]  # [capacity] score of the path
    total: NDArray[np.floating]  # [capacity] the same with that of the best path to its beginning
    heap: NDArray[np.int32]  # [capacity] those that wait, the best of them first
    kept: NDArray[np.int32]  # [capacity] scratch


@kernel
def list_edges(tables: Any, data: Any, scratch: Any, best: Any, lattice: Any) -> int:
    """Find all edges of a text.

    Parameters
    ----------
    tables : UnigramTables
    data : uint8[n]
        The text, normalized, valid UTF-8.
    scratch : UnigramScratch
        For `n` bytes.
    best : float[n + 1]
        Scratch.
    lattice : Lattice
        Output, with room for ``n + 2`` places.

    Returns
    -------
    int
        The number of edges << 32 | the number of characters. If the former is more than there is room for, only the
        numbers are right.
    """
    units = tables.units
    codes = scratch.codes
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    capacity = lattice.start.size
    n = write_codes(tables, data, 0, data.size, codes, best)
    for k in range(n + 2):
        lattice.end_indptr[k] = 0
    edges = np.int64(0)
    for i in range(n):
        k = np.int64(i)
        base = root
        unit = base + np.int64(codes[i])
        single = False
        while np.int64(units[unit]) == base:
            k += 1
            base = np.int64(units[unit + 1])
            token = np.int64(units[unit + 2])
            if token >= 0:
                if edges < capacity:
                    lattice.start[edges] = i
                    lattice.stop[edges] = k
                    lattice.token[edges] = token
                    lattice.score[edges] = tables.scores[token]
                lattice.end_indptr[k + 1] += 1
                edges += 1
                if k == i + 1:
                    single = True
            unit = base + np.int64(codes[k])
        if not single:
            if edges < capacity:
                lattice.start[edges] = i
                lattice.stop[edges] = i + 1
                lattice.token[edges] = UNKNOWN
                lattice.score[edges] = tables.unknown_score[0]
            lattice.end_indptr[i + 2] += 1
            edges += 1
    if edges <= capacity:
        for k in range(1, n + 2):
            lattice.end_indptr[k] += lattice.end_indptr[k - 1]
        for edge in range(edges):
            k = np.int64(lattice.stop[edge])
            lattice.by_end[lattice.end_indptr[k]] = edge
            lattice.end_indptr[k] += 1
        # Each entry has moved on to where the next began.
        for z in range(n + 1):
            lattice.end_indptr[n + 1 - z] = lattice.end_indptr[n - z]
        lattice.end_indptr[0] = 0
    return edges << 32 | n


@helper
def push(search: Any, waiting: int, hypothesis: int, hole: int) -> int:
    """Put a hypothesis at `hole` of the heap or above; returns `waiting`."""
    heap = search.heap
    total = search.total[hypothesis]
    while hole > 0:
        parent = (hole - 1) >> 1
        if not search.total[heap[parent]] < total:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = hypothesis
    return waiting


@helper
def pop(search: Any, waiting: int) -> int:
    """Take the best hypothesis from a heap of so many.

    The hole goes down to a leaf along the better children (of equal ones the right), and the last of the heap up from there.
    So equal totals leave in the order in which they leave the priority queue of GNU's C++ library.
    """
    heap = search.heap
    top = heap[0]
    last = heap[waiting - 1]
    n = waiting - 1
    hole = np.int64(0)
    child = np.int64(2)
    while child < n:
        if search.total[heap[child]] < search.total[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole + 2
    if child == n:
        heap[hole] = heap[child - 1]
        hole = child - 1
    if n > 0:
        push(search, n, last, hole)
    return np.int64(top)


@helper
def thin_out(search: Any, waiting: int, keep: int) -> int:
    """Keep the best `keep` waiting hypotheses, and what they go on with; returns the number of all that are left."""
    for turn in range(keep):
        search.kept[turn] = pop(search, waiting - turn)
    # Mark what is left, then move it together; what a hypothesis goes on with stands before it.
    n = np.int64(0)
    for turn in range(keep):
        hypothesis = np.int64(search.kept[turn])
        while hypothesis != NONE and search.edge[hypothesis] > -10:
            n = max(n, hypothesis + 1)
            search.edge[hypothesis] = -10 - (search.edge[hypothesis] + 2)
            hypothesis = np.int64(search.following[hypothesis])
    left = np.int64(0)
    for hypothesis in range(n):
        if search.edge[hypothesis] <= -10:
            following = np.int64(search.following[hypothesis])
            search.edge[left] = -10 - search.edge[hypothesis] - 2
            search.following[left] = search.heap[following] if following != NONE else NONE
            search.done[left] = search.done[hypothesis]
            search.total[left] = search.total[hypothesis]
            search.heap[hypothesis] = left
            left += 1
    for turn in range(keep):
        search.kept[turn] = search.heap[search.kept[turn]]
    for turn in range(keep):
        push(search, turn + 1, np.int64(search.kept[turn]), turn)
    return left


@kernel
def search_best(
    tables: Any,
    data: Any,
    n: int,
    size: int,
    scratch: Any,
    best: Any,
    lattice: Any,
    search: Any,
    out: Any,
    out_end: Any,
    out_length: Any,
    out_score: Any,
) -> int:
    """The best segmentations of a text, in order (A* from the end of the lattice).

    Parameters
    ----------
    tables : UnigramTables
    data : uint8[m]
        The text.
    n : int
        Its characters, at least 1.
    size : int
        How many segmentations are wanted, at least 1.
    scratch : UnigramScratch
        For `m` bytes.
    best : float[n + 1]
        Scratch: score of the best path to each place.
    lattice : Lattice
        From ``list_edges``.
    search : Search
        Scratch.
    out, out_length : int32
        Output: ids of all segmentations, and the bytes of each.
    out_end : int64[size]
        Output: ids written by the end of each segmentation.
    out_score : float[size]
        Output: their scores.

    Returns
    -------
    int
        The number of segmentations, fewer than `size` if there are no more; or NO_ROOM, if the search or the output
        needs more.

    Notes
    -----
    A hypothesis is a path from some edge to the end, and the best of them is extended first; what the best path from the
    beginning to it adds is known exactly, so complete paths come in order. Where many wait, all but the best of them, ten
    times as many as are wanted, are dropped: none of these would have been reached.
    """
    indptr = lattice.end_indptr
    best[0] = 0
    for k in range(1, n + 1):
        for at in range(indptr[k], indptr[k + 1]):
            edge = lattice.by_end[at]
            candidate = best[lattice.start[edge]] + lattice.score[edge]
            if at == indptr[k] or candidate > best[k]:
                best[k] = candidate
    capacity = search.edge.size
    search.edge[0] = END
    search.following[0] = NONE
    search.done[0] = 0
    search.total[0] = best[n]
    search.heap[0] = 0
    waiting = np.int64(1)
    used = np.int64(1)
    most_used = np.int64(MOST_KEPT)
    least = min(LEAST_WAITING, 10 * size)
    found = np.int64(0)
    written = np.int64(0)
    while waiting > 0:
        top = pop(search, waiting)
        waiting -= 1
        edge = np.int64(search.edge[top])
        if edge == BEGIN:
            if data.size > out.size - written:
                return NO_ROOM
            step = np.int64(search.following[top])
            while search.following[step] != NONE:
                edge = np.int64(search.edge[step])
                scratch.back[lattice.stop[edge]] = np.int64(lattice.token[edge]) << 32 | np.int64(lattice.start[edge])
                step = np.int64(search.following[step])
            written = write_path(tables, data, 0, data.size, n, scratch, out, out_length, written)
            out_end[found] = written
            out_score[found] = search.total[top]
            found += 1
            if found == size:
                break
            continue
        place = np.int64(n) if edge == END else np.int64(lattice.start[edge])
        count = np.int64(1) if place == 0 else np.int64(indptr[place + 1] - indptr[place])
        if used + count > capacity:
            return NO_ROOM
        for k in range(count):
            if place == 0:
                search.edge[used] = BEGIN
                search.done[used] = search.done[top]
                search.total[used] = search.done[top]
            else:
                edge = np.int64(lattice.by_end[indptr[place] + k])
                search.edge[used] = edge
                search.done[used] = lattice.score[edge] + search.done[top]
                search.total[used] = (best[lattice.start[edge]] + lattice.score[edge]) + search.done[top]
            search.following[used] = top
            push(search, waiting + 1, used, waiting)
            waiting += 1
            used += 1
        if waiting >= MOST_WAITING or (waiting > least and used >= most_used):
            keep = min(waiting, least)
            used = np.int64(thin_out(search, waiting, keep))
            waiting = np.int64(keep)
            most_used = used + MOST_KEPT
    return found


@inlined
def next_random(state: Any) -> float:
    """A number from 0 up to 1, of 53 random bits (SplitMix64)."""
    state[0] = state[0] + _GOLDEN
    value = state[0]
    value = multiply(value ^ (value >> np.uint64(30)), _MIX_1)
    value = multiply(value ^ (value >> np.uint64(27)), _MIX_2)
    value = value ^ (value >> np.uint64(31))
    return np.float64(np.int64(value >> np.uint64(11))) * (1.0 / 9007199254740992.0)


class Weights(NamedTuple):
    """Weights of edges and of all paths to a place: numbers with exponents of their own, which no text is too long for."""

    fraction: NDArray[np.float64]  # [edges] weight of an edge is fraction * 2**exponent, fraction from 1 to 2
    exponent: NDArray[np.int64]  # [edges]
    power: NDArray[np.float64]  # [POWERS] 2**(2 - i), 0 at the end
    total: NDArray[np.float64]  # [places] weight of all paths to a place is total * 2**total_exponent
    total_exponent: NDArray[np.int64]  # [places]
    mean: NDArray[np.float64]  # [places] mean score of a path to a place


#: Negligible from this power of two down.
POWERS = 1000


@inlined
def share(lattice: Any, weights: Any, edge: int, exponent: int) -> float:
    """The weight of all paths to the end of an edge that come by it, divided by ``2**exponent``."""
    start = np.int64(lattice.start[edge])
    down = exponent - (weights.total_exponent[start] + weights.exponent[edge]) + 2
    return weights.total[start] * weights.fraction[edge] * weights.power[min(down, POWERS - 1)]


@kernel
def sum_paths(n: int, lattice: Any, weights: Any) -> int:
    """Sum the weights of all paths to each place, by a forward pass.

    Parameters
    ----------
    n : int
        Characters.
    lattice : Lattice
    weights : Weights
        The first three filled in; output: the others.

    Returns
    -------
    int
        0.
    """
    indptr = lattice.end_indptr
    weights.total[0] = 1.0
    weights.total_exponent[0] = 0
    weights.mean[0] = 0.0
    for k in range(1, n + 1):
        first = np.int64(indptr[k])
        last = np.int64(indptr[k + 1])
        edge = np.int64(lattice.by_end[first])
        exponent = weights.total_exponent[lattice.start[edge]] + weights.exponent[edge]
        for at in range(first + 1, last):
            edge = np.int64(lattice.by_end[at])
            exponent = max(exponent, weights.total_exponent[lattice.start[edge]] + weights.exponent[edge])
        total = 0.0
        mean = 0.0
        for at in range(first, last):
            edge = np.int64(lattice.by_end[at])
            part = share(lattice, weights, edge, exponent)
            total += part
            mean += part * (weights.mean[lattice.start[edge]] + lattice.score[edge])
        weights.mean[k] = mean / total
        while total >= 2.0:
            total *= 0.5
            exponent += 1
        weights.total[k] = total
        weights.total_exponent[k] = exponent
    return 0


@kernel
def sample_paths(
    tables: Any,
    data: Any,
    n: int,
    size: int,
    scratch: Any,
    lattice: Any,
    weights: Any,
    random: Any,
    out: Any,
    out_end: Any,
    out_length: Any,
    out_score: Any,
) -> int:
    """Draw segmentations of a text, independently (forward filtering, backward sampling).

    Parameters
    ----------
    tables : UnigramTables
    data : uint8[m]
        The text.
    n : int
        Its characters.
    size : int
        How many segmentations are drawn.
    scratch : UnigramScratch
        For `m` bytes.
    lattice : Lattice
        From ``list_edges``.
    weights : Weights
        From ``sum_paths``: a path's probability is its weight's share of all.
    random : uint64[1]
        State of the random numbers; any value will do.
    out, out_length : int32
        Output: ids of all segmentations, and the bytes of each; ``size * m`` places are enough.
    out_end : int64[size]
        Output: ids written by the end of each segmentation.
    out_score : float64[size]
        Output: their scores.

    Returns
    -------
    int
        `size`, or NO_ROOM.
    """
    indptr = lattice.end_indptr
    written = np.int64(0)
    for turn in range(size):
        if data.size > out.size - written:
            return NO_ROOM
        score = 0.0
        k = np.int64(n)
        while k > 0:
            exponent = weights.total_exponent[k]
            left = next_random(random) * weights.total[k]
            chosen = np.int64(lattice.by_end[indptr[k + 1] - 1])
            for at in range(indptr[k], indptr[k + 1] - 1):
                edge = np.int64(lattice.by_end[at])
                left -= share(lattice, weights, edge, exponent)
                if left < 0.0:
                    chosen = edge
                    break
            score += lattice.score[chosen]
            i = np.int64(lattice.start[chosen])
            scratch.back[k] = np.int64(lattice.token[chosen]) << 32 | i
            k = i
        written = write_path(tables, data, 0, data.size, n, scratch, out, out_length, written)
        out_end[turn] = written
        out_score[turn] = score
    return size
