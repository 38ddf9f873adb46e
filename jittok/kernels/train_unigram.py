"""Training of unigram models as sentencepiece 0.2.3 does it: seed pieces, expectation and maximisation, pruning.

Every word is a *lattice*: its edges are the pieces that occur in it, each from the place where it begins to the one where
it ends. These are found once, from the intervals of a suffix array in which the seed pieces are nodes; from then on, edges
of pieces that are given up are taken out, and no text is looked at any more. A piece's own lattice is part of that of a
word in which it occurs.

The reference computes with float32 where it adds scores and counts, so sums depend on their order, which is kept here:
word `i` belongs to *group* ``i mod T`` for the `T` threads of the reference, sums are over the words of a group in order,
and over the groups in order. Groups lie one after another in memory.

Logarithms of sums, ``max + log1p(exp(min - max))``, and exponentials are the bulk of the work. The reference takes them
from the C library in float64 and rounds to float32. Here they come from tables of polynomials with an error below
1e-12; where a rounding boundary of float32 is closer than that, which it is once in tens of thousands of cases, the C
library is asked. So the result is the same, bit for bit.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel

#: Symbols of the text that seed pieces are found in: its end, between words, the end of a sentence; then all others.
END, SEPARATOR, LINE_END, FIRST_LETTER = 0, 1, 2, 3
#: Flags of letters: what pieces may not hold, U+2581, and digits.
IS_OUTSIDE, IS_BLANK, IS_DIGIT = 1, 2, 4
#: Scripts that are none: takes that of the character before; goes with any.
INHERITED, ANY_SCRIPT = 254, 255
#: Flags of pieces: the options of the same names.
BY_SCRIPT, BY_WHITESPACE, BLANK_SUFFIX, BLANKS_ONLY, SINGLE_DIGITS = 1, 2, 4, 8, 16
#: What becomes of a piece in pruning.
DROP, KEEP, CANDIDATE = 0, 1, 2
#: Beyond this number of open hypotheses the reference gives up; no piece of ordinary length comes near.
MOST_OPEN = 9_999
MOST_HYPOTHESES = 100_000
#: Probabilities of longer words are scaled every so many characters: those of so many do not become 0.
SCALED_EVERY = 16

_CELLS_PER_UNIT = 16
_SUM_CELLS = 280
_EXP_CELLS = 1920
_SUM_LIMIT = np.float32(_SUM_CELLS / _CELLS_PER_UNIT)
_EXP_LIMIT = np.float32(_EXP_CELLS / _CELLS_PER_UNIT)
_MARGIN = 2e-12
_UNREACHED = np.float32(-np.inf)


class Letters(NamedTuple):
    """What is known of each symbol of the text; symbols are in the order of the characters' UTF-8."""

    lead: NDArray[np.int32]  # first byte of its UTF-8; 0 at the end of a line, 256 behind the last one
    n_bytes: NDArray[np.int32]  # length of its UTF-8
    script: NDArray[np.uint8]  # number of its script, INHERITED or ANY_SCRIPT
    flags: NDArray[np.uint8]  # IS_OUTSIDE and so on
    piece: NDArray[np.int32]  # id of the letter as a seed piece, -1 for none


class Candidates(NamedTuple):
    """Strings that may be seed pieces; all arrays are of one length, of which a prefix is used."""

    left: NDArray[np.int32]  # ranks of the first and last suffix that begin with it
    right: NDArray[np.int32]
    length: NDArray[np.int32]  # characters
    n_bytes: NDArray[np.int32]  # of its UTF-8
    at_line_end: NDArray[np.uint8]  # 1: found as what only differs in what the next line begins with
    weight: NDArray[np.int64]  # how often it occurs


def new_candidates() -> Candidates:
    """No candidates, and no room for any."""
    left, right, length, n_bytes = (np.empty(0, np.int32) for _ in range(4))
    return Candidates(left, right, length, n_bytes, np.empty(0, np.uint8), np.empty(0, np.int64))


class Lattices(NamedTuple):
    """All words and their edges."""

    begin: NDArray[np.int32]  # [words] place of the first character of each word
    length: NDArray[np.int32]  # [words] characters
    counts: NDArray[np.int64]  # [words] how often each occurs
    starts: NDArray[np.int32]  # [places + 1] the first edge that begins at each place
    edges: NDArray[np.uint32]  # piece << shift | characters, by place and then by length, unknown ones last


class Scratch(NamedTuple):
    """Room for one thread."""

    forward: NDArray[np.float32]  # [longest word + 1]
    backward: NDArray[np.float32]
    forward_linear: NDArray[np.float64]
    backward_linear: NDArray[np.float64]
    scale: NDArray[np.float64]
    path: NDArray[np.int64]  # [longest word + 1]
    node: NDArray[np.int64]  # [4, edges of a word + 1] next in a list, edge, previous node, place
    node_score: NDArray[np.float32]  # [edges of a word + 1]
    lists: NDArray[np.int64]  # [2, longest word + 1] first and last of the nodes that end at each place


class Search(NamedTuple):
    """Room for the best-first search for a piece's second-best segmentation."""

    heap: NDArray[np.int32]  # [MOST_OPEN + 600] open hypotheses
    node: NDArray[np.int32]  # [MOST_HYPOTHESES] the edge that each begins with, -1 behind the end
    following: NDArray[np.int32]  # the hypothesis that it extends
    priority: NDArray[np.float32]
    score: NDArray[np.float32]  # of the path from its edge to the end


class Functions(NamedTuple):
    """Polynomials that stand for functions of the C library, one for each sixteenth."""

    log_sum: NDArray[np.float64]  # [cells * 6] log(1 + exp(-t)) for t from 0 to 17.5
    exp: NDArray[np.float64]  # [cells] exp(-t) in the middle of each cell, for t from 0 to 120


@cache
def functions() -> Functions:
    """Make the tables of the functions, by Taylor's formula in the middle of each cell."""
    middle = (np.arange(_SUM_CELLS) + 0.5) / _CELLS_PER_UNIT
    logistic = 1 / (1 + np.exp(middle))
    columns = [np.log1p(np.exp(-middle))]
    derivative = np.polynomial.Polynomial([0, -1])  # of log(1 + exp(-t)), in the logistic function of -t
    falling = np.polynomial.Polynomial([0, -1, 1])  # the derivative of that function, in itself
    for degree in range(1, 6):
        columns.append(derivative(logistic) / math.factorial(degree))
        derivative = derivative.deriv() * falling
    exponentials = np.array([math.exp(-(cell + 0.5) / _CELLS_PER_UNIT) for cell in range(_EXP_CELLS)])
    return Functions(np.ascontiguousarray(np.stack(columns, axis=1)).reshape(-1), exponentials)


def new_scratch(longest: int, most_edges: int) -> Scratch:
    """Allocate scratch for words of up to `longest` characters and `most_edges` edges."""
    n = longest + 1
    return Scratch(
        forward=np.empty(n, np.float32),
        backward=np.empty(n, np.float32),
        forward_linear=np.empty(n, np.float64),
        backward_linear=np.empty(n, np.float64),
        scale=np.empty(n, np.float64),
        path=np.empty(n, np.int64),
        node=np.empty((4, most_edges + 1), np.int64),
        node_score=np.empty(most_edges + 1, np.float32),
        lists=np.empty((2, n), np.int64),
    )


def new_search() -> Search:
    """Allocate room for searches."""
    node, following = (np.empty(MOST_HYPOTHESES, np.int32) for _ in range(2))
    priority, score = (np.empty(MOST_HYPOTHESES, np.float32) for _ in range(2))
    return Search(np.empty(MOST_OPEN + 600, np.int32), node, following, priority, score)


# ------------------------------------------------------------------------------------------------------ seed pieces


@kernel
def copy_last_words(data: Any, starts: Any, ends: Any, joins: int, last: Any, words: Any, indptr: Any) -> int:
    """Copy what follows the last blank of each sentence, that blank first.

    Parameters
    ----------
    data, starts, ends
        uint8[m], int64[n], int64[n]: the sentences, with U+0020 for blanks.
    joins
        1: runs of blanks stay together; else 0.
    last
        int64[n], set to where each last word begins.
    words, indptr
        uint8[k], int64[n + 1], set to the words; there is room.

    Returns
    -------
    int
        The bytes of all words.
    """
    size = np.int64(0)
    for sentence in range(len(starts)):
        start = np.int64(starts[sentence])
        end = np.int64(ends[sentence])
        at = max(end - 1, start)
        while at > start and data[np.uint64(at)] != 0x20:
            at -= 1
        while joins and at > start and data[np.uint64(at)] == 0x20 and data[np.uint64(at - 1)] == 0x20:
            at -= 1
        last[sentence] = at
        for k in range(at, end):
            words[np.uint64(size)] = data[np.uint64(k)]
            size += 1
        indptr[sentence + 1] = size
    return size


@kernel
def pack_characters(
    codepoints: Any, indptr: Any, code_of: Any, strings: Any, first: int, bits: int, n: int, keys: Any
) -> int:
    """Write the characters from `first` on of some strings as numbers that sort as they do.

    Parameters
    ----------
    codepoints, indptr
        uint32[m], int64[k + 1]: all strings.
    code_of
        int32[0x110000], the number of each character, from 1 on.
    strings
        int64[j], the strings to take.
    first, bits, n
        Number of the first character, bits for each, and how many. Where a string has no more, a 0 stands.
    keys
        int64[j], set.

    Returns
    -------
    int
        0.
    """
    for k in range(len(strings)):
        string = np.int64(strings[k])
        at = np.int64(indptr[np.uint64(string)]) + first
        end = np.int64(indptr[np.uint64(string + 1)])
        key = np.int64(0)
        for _ in range(n):
            key <<= bits
            if at < end:
                key |= np.int64(code_of[np.uint64(codepoints[np.uint64(at)])])
                at += 1
        keys[k] = key
    return 0


@kernel
def write_parts(
    codepoints: Any, indptr: Any, symbol_of: Any, part_word: Any, part_follow: Any, text: Any, begin: Any
) -> int:
    """Write words, each with what follows it, as the text in which seed pieces are found.

    Parameters
    ----------
    codepoints, indptr
        uint32[m], int64[words + 1]: the words.
    symbol_of
        int32[0x110000], the symbol of each codepoint.
    part_word, part_follow
        int32[parts]: the word of each part, and the symbol that follows it, plus 2**24 if that begins the next line.
    text
        int32[n], set: n is the sum of the words' lengths and 2 or, at line ends, 3 for each part, and 1.
    begin
        int32[parts], set to where each part begins.

    Returns
    -------
    int
        The length of the text.
    """
    at = np.int64(0)
    for part in range(len(part_word)):
        word = np.int64(part_word[part])
        begin[part] = at
        for k in range(indptr[np.uint64(word)], indptr[np.uint64(word + 1)]):
            text[np.uint64(at)] = symbol_of[np.uint64(codepoints[np.uint64(k)])]
            at += 1
        follow = np.int64(part_follow[part])
        if follow >> 24:
            text[np.uint64(at)] = LINE_END
            at += 1
        text[np.uint64(at)] = follow & 0xFFFFFF
        text[np.uint64(at + 1)] = SEPARATOR
        at += 2
    text[np.uint64(at)] = END
    return at + 1


@kernel
def copy_strings(text: Any, begin: Any, indptr: Any, strings: Any) -> int:
    """Copy string `i`, which begins at ``begin[i]`` of `text`, to ``strings[indptr[i]:indptr[i + 1]]``."""
    for k in range(len(begin)):
        at = np.int64(begin[np.uint64(k)]) - indptr[np.uint64(k)]
        for to in range(indptr[np.uint64(k)], indptr[np.uint64(k + 1)]):
            strings[np.uint64(to)] = text[np.uint64(at + to)]
    return 0


@helper
def is_piece(text: Any, first: int, length: int, letters: Any, flags: int) -> bool:
    """Whether ``text[first:first + length]`` may be a piece."""
    script_before = np.int64(ANY_SCRIPT)
    all_blank = True
    for k in range(length):
        all_blank = all_blank and letters.flags[np.uint64(text[np.uint64(first + k)])] & IS_BLANK != 0
    for k in range(length):
        symbol = np.uint64(text[np.uint64(first + k)])
        letter = np.int64(letters.flags[symbol])
        if letter & IS_OUTSIDE:
            return False
        if letter & IS_BLANK:
            if flags & BLANKS_ONLY and all_blank:
                continue
            if flags & BLANK_SUFFIX:
                if k < length - 1 and (flags & BY_WHITESPACE or k == 0):
                    return False
            elif k > 0 and (flags & BY_WHITESPACE or k == length - 1):
                return False
            continue
        script = np.int64(letters.script[symbol])
        if script == INHERITED:
            script = script_before
        if letter & IS_DIGIT and flags & SINGLE_DIGITS and length > 1:
            return False
        if flags & BY_SCRIPT and script != ANY_SCRIPT and script_before != ANY_SCRIPT and script != script_before:
            return False
        script_before = script
    return True


@kernel
def keep_pieces(
    text: Any, order: Any, repeats: Any, n_repeats: int, letters: Any, flags: int, most: int, candidates: Any, found: int
) -> int:
    """Take over those repeats that may be pieces.

    The reference looks for repeats of bytes, so what follows must differ in its first byte.

    Parameters
    ----------
    text, order, repeats, n_repeats
        What :func:`~jittok.kernels.suffix_array.right_maximal_repeats` found.
    letters, flags
        What may be a piece.
    most
        Characters of the longest piece.
    candidates, found
        Those so far, and their number; there is room for `n_repeats` more.

    Returns
    -------
    int
        Their new number.
    """
    for k in range(n_repeats):
        length = np.int64(repeats.length[k])
        first = np.int64(order[np.uint64(repeats.left[k])])
        symbol = np.int64(text[np.uint64(first + length)])
        last = np.int64(order[np.uint64(repeats.right[k])])
        other = np.int64(text[np.uint64(last + length)])
        if letters.lead[np.uint64(symbol)] == letters.lead[np.uint64(other)]:
            continue
        at_line_end = np.int64(0)
        if text[np.uint64(first + length - 1)] == LINE_END:
            at_line_end = 1
            length -= 1
        if length < 2 or length > most or not is_piece(text, first, length, letters, flags):
            continue
        n_bytes = np.int64(0)
        for j in range(length):
            n_bytes += letters.n_bytes[np.uint64(text[np.uint64(first + j)])]
        candidates.left[np.uint64(found)] = repeats.left[k]
        candidates.right[np.uint64(found)] = repeats.right[k]
        candidates.length[np.uint64(found)] = length
        candidates.n_bytes[np.uint64(found)] = n_bytes
        candidates.at_line_end[np.uint64(found)] = at_line_end
        candidates.weight[np.uint64(found)] = repeats.weight[k]
        found += 1
    return found


@kernel
def valid_pieces(text: Any, indptr: Any, letters: Any, flags: int, most: int, valid: Any) -> int:
    """Say which strings may be pieces.

    Parameters
    ----------
    text, indptr
        int32[m], int64[n + 1]: symbols of all strings, and where each begins.
    letters, flags
        What may be a piece.
    most
        Characters of the longest piece.
    valid
        uint8[n], set: 1 for those that may.

    Returns
    -------
    int
        0. Linear.
    """
    for k in range(len(valid)):
        length = indptr[k + 1] - indptr[k]
        valid[k] = 1 if 0 < length <= most and is_piece(text, indptr[k], length, letters, flags) else 0
    return 0


@inlined
def first_rank(text: Any, order: Any, string: Any, first: int, length: int, is_behind: int) -> int:
    """The first suffix that does not come before a string; with `is_behind` 1, that comes behind all that begin with it."""
    low, high = np.int64(0), np.int64(len(order))
    while low < high:
        middle = (low + high) >> 1
        at = np.int64(order[np.uint64(middle)])
        k = np.int64(0)
        difference = np.int64(0)
        while k < length and difference == 0:
            # The last symbol of the text is smaller than all that strings have, so that none goes beyond it.
            difference = np.int64(text[np.uint64(at + k)]) - np.int64(string[np.uint64(first + k)])
            k += 1
        if difference < 0 or (difference == 0 and is_behind != 0):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def find_strings(text: Any, order: Any, strings: Any, indptr: Any, begin: int, end: int, left: Any, right: Any) -> int:
    """Find where strings occur.

    Parameters
    ----------
    text, order
        int32[n], and its suffix array; its last symbol is its least.
    strings, indptr
        int32[m], int64[k + 1]: symbols of all strings, none of which is the least, and where each begins.
    begin, end
        The strings to look for, ``[begin, end)``.
    left, right
        int32[k], set: the first and last rank of the suffixes that begin with it; the last is before the first where it
        does not occur.

    Returns
    -------
    int
        0. A string takes log n comparisons.
    """
    for k in range(begin, end):
        length = indptr[k + 1] - indptr[k]
        left[k] = first_rank(text, order, strings, indptr[k], length, 0)
        right[k] = first_rank(text, order, strings, indptr[k], length, 1) - 1
    return 0


@kernel
def place_pieces(order: Any, candidates: Any, piece: Any, stack: Any, parent: Any, occurrence: Any, lowest: Any) -> int:
    """Find the longest seed piece that begins at each position, and for each piece the next shorter one.

    Parameters
    ----------
    order
        int32[n], the suffix array.
    candidates
        In post-order, as :func:`keep_pieces` leaves them.
    piece
        int32[candidates], the piece that each became, -1 for none.
    stack
        int64[longest piece + 2].
    parent
        int32[candidates], set for pieces: the candidate of the longest piece that it begins with, -1 for none.
    occurrence
        int32[candidates], set for pieces: the first position where it occurs.
    lowest
        int32[places], set: the candidate of the longest piece at each position, -1 for none. Later positions count as no
        occurrences; every candidate has an earlier one.

    Returns
    -------
    int
        0. O(n) time.
    """
    height = np.int64(0)
    following = np.int64(len(piece)) - 1
    for rank in range(len(order) - 1, -1, -1):
        while height > 0 and candidates.left[np.uint64(stack[height - 1])] > rank:
            height -= 1
            if height > 0:
                top = np.int64(stack[height])
                below = np.int64(stack[height - 1])
                occurrence[np.uint64(below)] = min(occurrence[np.uint64(below)], occurrence[np.uint64(top)])
        while following >= 0 and candidates.right[np.uint64(following)] >= rank:
            if piece[np.uint64(following)] >= 0:
                parent[np.uint64(following)] = stack[height - 1] if height > 0 else -1
                occurrence[np.uint64(following)] = 0x7FFFFFFF
                stack[height] = following
                height += 1
            following -= 1
        position = np.int64(order[np.uint64(rank)])
        if height > 0:
            top = np.int64(stack[height - 1])
            if position < len(lowest):
                lowest[np.uint64(position)] = top
                if position < occurrence[np.uint64(top)]:
                    occurrence[np.uint64(top)] = position
        elif position < len(lowest):
            lowest[np.uint64(position)] = -1
    while height > 1:
        height -= 1
        top = np.int64(stack[height])
        below = np.int64(stack[height - 1])
        occurrence[np.uint64(below)] = min(occurrence[np.uint64(below)], occurrence[np.uint64(top)])
    return 0


@kernel
def count_edges(begin: Any, length: Any, lowest: Any, parent: Any, starts: Any) -> int:
    """Set where the edges of each place begin, and return their number.

    Parameters
    ----------
    begin, length
        int32[words].
    lowest, parent
        What :func:`place_pieces` found.
    starts
        int32[places + 1], set, which takes less than 2**31 edges.

    Returns
    -------
    int
        The number of edges: those of seed pieces, and one of a single character at each place.
    """
    total = np.int64(0)
    at = np.int64(0)
    for word in range(len(begin)):
        first = np.int64(begin[word])
        end = first + length[word]
        while at < first:
            starts[np.uint64(at)] = total
            at += 1
        for place in range(first, end):
            starts[np.uint64(place)] = total
            node = np.int64(lowest[np.uint64(place)])
            total += 1
            while node >= 0:
                total += 1
                node = np.int64(parent[np.uint64(node)])
        at = end
    while at < len(starts):
        starts[np.uint64(at)] = total
        at += 1
    return total


@kernel
def write_edges(
    text: Any, lattices: Any, first_word: int, last_word: int, lowest: Any, parent: Any, candidate_length: Any, piece: Any,
    letter_piece: Any, unknown: int, shift: int,
) -> int:  # fmt: skip
    """Write the edges that :func:`count_edges` counted, of the words `first_word` to `last_word` (exclusive).

    A letter that is no piece is an edge of piece `unknown`.
    """
    edges = lattices.edges
    for word in range(first_word, last_word):
        first = np.int64(lattices.begin[word])
        end = first + lattices.length[word]
        for place in range(first, end):
            at = np.int64(lattices.starts[np.uint64(place + 1)])
            node = np.int64(lowest[np.uint64(place)])
            letter = np.int64(letter_piece[np.uint64(text[np.uint64(place)])])
            if letter < 0:  # no piece begins with it either
                edges[np.uint64(at - 1)] = unknown << shift | 1
                continue
            while node >= 0:
                at -= 1
                edges[np.uint64(at)] = np.int64(piece[np.uint64(node)]) << shift | candidate_length[np.uint64(node)]
                node = np.int64(parent[np.uint64(node)])
            edges[np.uint64(at - 1)] = letter << shift | 1
    return 0


@kernel
def check_edges(lattices: Any, n_pieces: int, shift: int) -> int:
    """Whether all edges are of pieces, unknown characters among them, and stay within their words: 0, else 1."""
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    for word in range(len(lattices.begin)):
        first = np.int64(lattices.begin[word])
        end = first + lattices.length[word]
        for place in range(first, end):
            begin = np.int64(starts[np.uint64(place)])
            stop = np.int64(starts[np.uint64(place + 1)])
            if begin < 0 or begin >= stop or stop > len(edges):
                return 1
            has_letter = False
            for at in range(begin, stop):
                edge = np.int64(edges[np.uint64(at)])
                size = edge & mask
                if size == 0 or place + size > end or edge >> shift > n_pieces:
                    return 1
                has_letter = has_letter or size == 1
            if not has_letter:
                return 1
    return 0


@kernel
def to_log_probabilities(counts: Any, scores: Any) -> int:
    """Scores of the seed pieces from their weights, both float32[n], added in float64 in order."""
    total = 0.0
    for k in range(len(counts)):
        total += np.float64(counts[np.uint64(k)])
    log_total = math.log(total)
    for k in range(len(counts)):
        scores[np.uint64(k)] = np.float32(math.log(np.float64(counts[np.uint64(k)])) - log_total)
    return 0


# --------------------------------------------------------------------------------------------------- expectation


@helper
def log_sum_exactly(greater: Any, less: Any) -> Any:
    """The logarithm of the sum of two probabilities, given theirs, by the C library's functions."""
    if greater > np.float32(less + np.float32(50)):
        return greater
    return np.float32(np.float64(greater) + math.log1p(math.exp(np.float64(np.float32(less - greater)))))


@inlined
def log_sum(a: Any, b: Any, table: Any) -> Any:
    """The same from a table, with the same result."""
    greater = a if a > b else b
    less = b if a > b else a
    gap = np.float32(greater - less)
    if greater < np.float32(-1.0):
        if gap < _SUM_LIMIT:
            t = np.float64(gap)
            cell = np.int64(t * _CELLS_PER_UNIT)
            r = t - (np.float64(cell) * (1.0 / _CELLS_PER_UNIT) + 0.5 / _CELLS_PER_UNIT)
            at = np.uint64(cell * 6)
            r2 = r * r
            low = table[at] + table[at + np.uint64(1)] * r
            middle = table[at + np.uint64(2)] + table[at + np.uint64(3)] * r
            high = table[at + np.uint64(4)] + table[at + np.uint64(5)] * r
            total = np.float64(greater) + (low + r2 * (middle + r2 * high))
            rounded = np.float32(total + total * _MARGIN)
            if rounded == np.float32(total - total * _MARGIN):
                return rounded
        else:
            return greater  # what is added is less than half a step of a float32 beyond -1
    return log_sum_exactly(greater, less)


@inlined
def add_probability(expected: Any, at: Any, count: Any, x: Any, table: Any) -> None:
    """``expected[at] += count * exp(x)``, the sum rounded to float32."""
    before = np.float64(expected[at])
    t = -np.float64(x)
    if x < np.float32(0.01) and t < _EXP_LIMIT:
        cell = np.int64(t * _CELLS_PER_UNIT)
        r = (np.float64(cell) * (1.0 / _CELLS_PER_UNIT) + 0.5 / _CELLS_PER_UNIT) - t
        r2 = r * r
        low = 1.0 + r
        middle = 0.5 + r * (1.0 / 6)
        high = 1.0 / 24 + r * (1.0 / 120) + r2 * (1.0 / 720)
        term = count * table[np.uint64(cell)] * (low + r2 * (middle + r2 * high))
        rounded = np.float32(before + term * (1.0 + _MARGIN))
        if rounded == np.float32(before + term * (1.0 - _MARGIN)):
            expected[at] = rounded
            return
    expected[at] = np.float32(before + count * math.exp(np.float64(x)))


@kernel
def expect(
    lattices: Any, first: int, last: int, scores: Any, shift: int, tables: Any, scratch: Any, expected: Any, objective: Any
) -> int:
    """Add the expected counts of all pieces in some words.

    Parameters
    ----------
    lattices
        All words.
    first, last
        The words to take, ``[first, last)``, of one group.
    scores
        float32[pieces + 1], the last of which is that of unknown characters.
    shift
        Of the edges.
    tables
        :func:`functions`.
    scratch
        Of this thread.
    expected
        float32[pieces], added to; what unknown characters get falls to piece 0, as in the reference.
    objective
        float64[1], added to: the logarithm of the words' probability.

    Returns
    -------
    int
        0. O(edges) time.
    """
    forward = scratch.forward
    backward = scratch.backward
    edges = lattices.edges
    starts = lattices.starts
    table = tables.log_sum
    mask = (1 << shift) - 1
    unknown = np.int64(len(expected))
    total = 0.0
    for word in range(first, last):
        base = np.int64(lattices.begin[word])
        n = np.int64(lattices.length[word])
        count = np.float64(np.float32(lattices.counts[word]))
        forward[0] = 0
        for k in range(1, n + 1):
            forward[np.uint64(k)] = _UNREACHED
        backward[np.uint64(n)] = 0
        # Both directions in turn: two chains that wait for their own results only.
        for k in range(n):
            here = forward[np.uint64(k)]
            for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                to = np.uint64(k + (edge & mask))
                value = np.float32(scores[np.uint64(edge >> shift)] + here)
                forward[to] = log_sum(forward[to], value, table)
            back = n - 1 - k
            here = _UNREACHED
            for at in range(starts[np.uint64(base + back)], starts[np.uint64(base + back + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                value = np.float32(scores[np.uint64(edge >> shift)] + backward[np.uint64(back + (edge & mask))])
                here = log_sum(here, value, table)
            backward[np.uint64(back)] = here
        whole = forward[np.uint64(n)]
        for k in range(n):
            here = forward[np.uint64(k)]
            for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                piece = edge >> shift
                x = np.float32(here + scores[np.uint64(piece)])
                x = np.float32(np.float32(x + backward[np.uint64(k + (edge & mask))]) - whole)
                add_probability(expected, np.uint64(0 if piece == unknown else piece), count, x, tables.exp)
        total += count * np.float64(whole)
    objective[0] += total
    return 0


@kernel
def expect_linear(
    lattices: Any, first: int, last: int, probabilities: Any, shift: int, longest: int, scratch: Any, expected: Any,
    objective: Any,
) -> int:  # fmt: skip
    """As :func:`expect`, with probabilities instead of their logarithms: faster, but not bit for bit the reference's.

    Parameters
    ----------
    lattices, first, last, shift, scratch, objective
        As there.
    probabilities
        float64[pieces + 1].
    longest
        Characters of the longest piece.
    expected
        float64[pieces], added to.

    Returns
    -------
    int
        0. O(edges) time.
    """
    forward = scratch.forward_linear
    backward = scratch.backward_linear
    scale = scratch.scale
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    unknown = np.int64(len(expected))
    total = 0.0
    for word in range(first, last):
        base = np.int64(lattices.begin[word])
        n = np.int64(lattices.length[word])
        is_long = n > SCALED_EVERY
        count = np.float64(lattices.counts[word])
        scaled = 0.0
        for k in range(n + 1):
            forward[np.uint64(k)] = 0
            scale[np.uint64(k)] = 1
        forward[0] = 1
        backward[np.uint64(n)] = 1
        for k in range(n):
            if is_long and k % SCALED_EVERY == 0 and k > 0:
                # From here on all is as if the way to here were certain.
                factor = 1 / forward[k]
                scale[k] = factor
                scaled += math.log(factor)
                for j in range(k, min(k + longest, n) + 1):
                    forward[j] *= factor
            here = forward[np.uint64(k)]
            for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                forward[np.uint64(k + (edge & mask))] += here * probabilities[np.uint64(edge >> shift)]
        share = count / forward[np.uint64(n)]
        for k in range(n - 1, -1, -1):
            here = forward[np.uint64(k)] * share
            sum_from_here = 0.0
            for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                piece = edge >> shift
                to = k + (edge & mask)
                value = probabilities[np.uint64(piece)] * backward[np.uint64(to)]
                if is_long:
                    for j in range(k + 1, to):
                        value *= scale[j]
                sum_from_here += value
                expected[np.uint64(0 if piece == unknown else piece)] += here * value
            backward[np.uint64(k)] = sum_from_here * scale[np.uint64(k)]
        total += count * (math.log(forward[np.uint64(n)]) - scaled)
    objective[0] += total
    return 0


@helper
def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function, by the reference's formula."""
    result = 0.0
    while x < 7:
        result -= 1 / x
        x += 1
    x -= 1.0 / 2.0
    xx = 1.0 / x
    xx2 = xx * xx
    xx4 = xx2 * xx2
    return result + (
        math.log(x) + (1.0 / 24.0) * xx2 - (7.0 / 960.0) * xx4 + (31.0 / 8064.0) * xx4 * xx2 - (127.0 / 30720.0) * xx4 * xx4
    )


@kernel
def maximize(expected: Any, kept: Any, scores: Any) -> int:
    """New scores from expected counts; pieces of less than a half are given up.

    Parameters
    ----------
    expected
        float32[pieces].
    kept
        int64[pieces], set to the pieces that stay.
    scores
        float32[pieces], set to their scores: the digamma function of the count less that of the sum, which acts as a
        sparse prior (Liang and Klein 2007).

    Returns
    -------
    int
        How many stay.
    """
    total = np.float32(0)
    found = np.int64(0)
    for piece in range(len(expected)):
        count = expected[np.uint64(piece)]
        if count < np.float32(0.5):
            continue
        kept[np.uint64(found)] = piece
        scores[np.uint64(found)] = count
        found += 1
        total = np.float32(total + count)
    log_total = np.float64(np.float32(digamma(np.float64(total))))
    for k in range(found):
        scores[np.uint64(k)] = np.float32(digamma(np.float64(scores[np.uint64(k)])) - log_total)
    return found


@kernel
def drop_edges(lattices: Any, first: int, last: int, new_piece: Any, shift: int) -> int:
    """Take the edges of given-up pieces out of some words, in place; single characters become unknown.

    Parameters
    ----------
    lattices
        All words.
    first, last
        A whole group of words, ``[first, last)``.
    new_piece
        int32[pieces + 1], the new number of each piece, -1 for none; the last one is that of unknown characters.
    shift
        Of the edges.

    Returns
    -------
    int
        The edges that are left in the group.
    """
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    unknown = np.int64(new_piece[len(new_piece) - 1])
    to = np.int64(0)
    begin = np.int64(0)
    if first < last:
        to = np.int64(starts[np.uint64(lattices.begin[first])])
        begin = to
    for word in range(first, last):
        place = np.int64(lattices.begin[word])
        end = place + lattices.length[word]
        at = np.int64(starts[np.uint64(place)])
        while place < end:
            stop = np.int64(starts[np.uint64(place + 1)])
            starts[np.uint64(place)] = to
            lost_letter = False
            while at < stop:
                edge = np.int64(edges[np.uint64(at)])
                piece = np.int64(new_piece[np.uint64(edge >> shift)])
                if piece >= 0:
                    edges[np.uint64(to)] = piece << shift | edge & mask
                    to += 1
                elif edge & mask == 1:
                    lost_letter = True
                at += 1
            if lost_letter:
                edges[np.uint64(to)] = unknown << shift | 1
                to += 1
            place += 1
        starts[np.uint64(end)] = to
    return to - begin


# -------------------------------------------------------------------------------------------------------- pruning


@helper
def best_path_by_nodes(lattices: Any, base: int, n: int, scores: Any, shift: int, scratch: Any) -> int:
    """The best path where sums are so close that it matters which of them are rounded; see :func:`count_best`.

    The reference keeps a score for each edge, the greatest rounded sum of its own score and that of an edge that ends where
    it begins; of equal ones, the edge that comes first. The pieces go to ``scratch.path``, their number is returned.
    """
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    for k in range(n + 1):
        scratch.lists[0, k] = -1
    nodes = np.int64(0)
    for k in range(n):
        for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
            edge = np.int64(edges[np.uint64(at)])
            score = scores[np.uint64(edge >> shift)]
            best = np.float32(0)
            previous = np.int64(-1)
            node = scratch.lists[0, k]
            while node >= 0:
                value = np.float32(scratch.node_score[node] + score)
                if previous < 0 or value > best:
                    best = value
                    previous = node
                node = scratch.node[0, node]
            scratch.node_score[nodes] = best if k > 0 else score
            scratch.node[1, nodes] = edge >> shift
            scratch.node[2, nodes] = previous
            to = k + (edge & mask)
            if scratch.lists[0, to] < 0:
                scratch.lists[0, to] = nodes
            else:
                scratch.node[0, scratch.lists[1, to]] = nodes
            scratch.lists[1, to] = nodes
            scratch.node[0, nodes] = -1
            nodes += 1
    best = np.float32(0)
    previous = np.int64(-1)
    node = scratch.lists[0, n]
    while node >= 0:
        if previous < 0 or scratch.node_score[node] > best:
            best = scratch.node_score[node]
            previous = node
        node = scratch.node[0, node]
    found = np.int64(0)
    while previous >= 0:
        scratch.path[found] = scratch.node[1, previous]
        found += 1
        previous = scratch.node[2, previous]
    return found


@kernel
def count_best(lattices: Any, first: int, last: int, scores: Any, shift: int, scratch: Any, counts: Any) -> int:
    """Add how often each piece is in the best segmentation of some words.

    Parameters
    ----------
    lattices, first, last, scores, shift, scratch
        As for :func:`expect`.
    counts
        float32[pieces], added to.

    Returns
    -------
    int
        0. O(edges) time.
    """
    best = scratch.forward
    back = scratch.path
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    unknown = np.int64(len(counts))
    for word in range(first, last):
        base = np.int64(lattices.begin[word])
        n = np.int64(lattices.length[word])
        count = np.float32(lattices.counts[word])
        best[0] = 0
        for k in range(1, n + 1):
            best[np.uint64(k)] = _UNREACHED
        is_close = False
        for k in range(n):
            here = best[np.uint64(k)]
            for at in range(starts[np.uint64(base + k)], starts[np.uint64(base + k + 1)]):
                edge = np.int64(edges[np.uint64(at)])
                to = np.uint64(k + (edge & mask))
                value = np.float32(scores[np.uint64(edge >> shift)] + here)
                if value > best[to]:
                    # A sum with another score may round both to the same.
                    is_close = is_close or value - best[to] < (np.float32(60) - value) * np.float32(3e-7)
                    best[to] = value
                    back[to] = edge
        if is_close:
            found = best_path_by_nodes(lattices, base, n, scores, shift, scratch)
            for k in range(found):
                piece = np.uint64(0 if scratch.path[k] == unknown else scratch.path[k])
                counts[piece] = np.float32(counts[piece] + count)
            continue
        k = n
        while k > 0:
            edge = back[np.uint64(k)]
            piece = edge >> shift
            piece = 0 if piece == unknown else piece
            counts[np.uint64(piece)] = np.float32(counts[np.uint64(piece)] + count)
            k -= edge & mask
    return 0


@helper
def push(search: Any, size: int, hypothesis: int) -> int:
    """Put a hypothesis on the heap of `size`, above those that are less; returns the new size."""
    heap = search.heap
    hole = size
    priority = search.priority[hypothesis]
    while hole > 0:
        above = (hole - 1) >> 1
        if not search.priority[heap[above]] < priority:
            break
        heap[hole] = heap[above]
        hole = above
    heap[hole] = hypothesis
    return size + 1


@helper
def pop(search: Any, size: int) -> int:
    """Take the top off the heap of `size` and return it; equal ones come in the order of the C++ library's heaps.

    The hole goes down to a leaf, always to the greater child, of equal ones the right one; the last item is put there and
    goes up again.
    """
    heap = search.heap
    top = np.int64(heap[0])
    size -= 1
    if size == 0:
        return top
    last = np.int64(heap[size])
    hole = np.int64(0)
    while 2 * hole + 2 < size:
        child = 2 * hole + 2
        if search.priority[heap[child]] < search.priority[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if 2 * hole + 2 == size:
        heap[hole] = heap[size - 1]
        hole = size - 1
    priority = search.priority[last]
    while hole > 0:
        above = (hole - 1) >> 1
        if not search.priority[heap[above]] < priority:
            break
        heap[hole] = heap[above]
        hole = above
    heap[hole] = last
    return top


@helper
def collect_nodes(lattices: Any, place: int, n: int, scores: Any, shift: int, scratch: Any) -> int:
    """List the edges within `n` characters from a place, with the best scores of paths that end in each.

    ``scratch.node[1]`` is set to the pieces, ``[3]`` to where they begin; ``lists[0]`` to the first edge that ends at each
    place and ``node[0]`` to the next one, -1 for none; ``node_score`` to the scores. Returns the number of edges.
    """
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    best = scratch.forward
    for k in range(n + 1):
        scratch.lists[0, k] = -1
        best[k] = _UNREACHED
    best[0] = 0
    nodes = np.int64(0)
    for k in range(n):
        for at in range(starts[np.uint64(place + k)], starts[np.uint64(place + k + 1)]):
            edge = np.int64(edges[np.uint64(at)])
            to = k + (edge & mask)
            if to > n:
                continue
            value = np.float32(best[k] + scores[np.uint64(edge >> shift)])
            scratch.node_score[nodes] = value
            scratch.node[1, nodes] = edge >> shift
            scratch.node[3, nodes] = k
            if scratch.lists[0, to] < 0:
                scratch.lists[0, to] = nodes
            else:
                scratch.node[0, scratch.lists[1, to]] = nodes
            scratch.lists[1, to] = nodes
            scratch.node[0, nodes] = -1
            best[to] = max(best[to], value)
            nodes += 1
    return nodes


@helper
def second_best(lattices: Any, place: int, n: int, scores: Any, shift: int, scratch: Any, search: Any) -> int:
    """The second-best path over `n` characters from a place, if the best one is a single edge.

    By the reference's best-first search from the end, whose order decides between equal ones. The pieces go to
    ``scratch.path`` in order, their number is returned; 0 if there is no second path, -1 if the best one has several
    edges, -2 if the search has no room.
    """
    collect_nodes(lattices, place, n, scores, shift, scratch)
    made = np.int64(1)
    search.node[0] = -1
    search.following[0] = -1
    search.score[0] = 0
    search.priority[0] = scratch.forward[n]
    size = push(search, np.int64(0), np.int64(0))
    results = 0
    while size > 0:
        top = pop(search, size)
        size -= 1
        place_of_top = n if search.node[top] == -1 else scratch.node[3, search.node[top]]
        if search.node[top] == -2:  # the beginning
            found = np.int64(0)
            at = np.int64(search.following[top])
            while search.node[at] != -1:
                scratch.path[found] = scratch.node[1, search.node[at]]
                found += 1
                at = np.int64(search.following[at])
            results += 1
            if results == 2:
                return found
            if found > 1:
                return -1
            continue
        if size + n + 2 > MOST_OPEN or made + n + 2 > MOST_HYPOTHESES:
            return -2
        if place_of_top == 0:
            search.node[made] = -2
            search.score[made] = search.score[top]
            search.priority[made] = search.score[top]
            search.following[made] = top
            size = push(search, size, made)
            made += 1
            continue
        node = scratch.lists[0, place_of_top]
        while node >= 0:
            search.node[made] = node
            search.score[made] = np.float32(scores[np.uint64(scratch.node[1, node])] + search.score[top])
            search.priority[made] = np.float32(scratch.node_score[node] + search.score[top])
            search.following[made] = top
            size = push(search, size, made)
            made += 1
            node = scratch.node[0, node]
    return 0


@helper
def without_itself(lattices: Any, place: int, n: int, scores: Any, shift: int, best: Any, back: Any) -> Any:
    """The score of the best path over `n` characters from a place that has more than one edge; its edges go to `back`."""
    edges = lattices.edges
    starts = lattices.starts
    mask = (1 << shift) - 1
    best[0] = 0
    for k in range(1, n + 1):
        best[k] = _UNREACHED
    for k in range(n):
        here = best[k]
        for at in range(starts[np.uint64(place + k)], starts[np.uint64(place + k + 1)]):
            edge = np.int64(edges[np.uint64(at)])
            size = edge & mask
            if k + size > n or size == n:
                continue
            value = np.float32(scores[np.uint64(edge >> shift)] + here)
            if value > best[k + size]:
                best[k + size] = value
                back[k + size] = edge
    return best[n]


@kernel
def lose(
    lattices: Any, first: int, last: int, scores: Any, shift: int, place: Any, length: Any, counts: Any, total: Any,
    scratch: Any, search: Any, action: Any, loss: Any,
) -> int:  # fmt: skip
    """What giving up each of some pieces would cost.

    Parameters
    ----------
    lattices, scores, shift, scratch
        As for :func:`expect`.
    first, last
        The pieces to take, ``[first, last)``.
    place, length
        int32[pieces]: a place where each occurs, and its characters.
    counts
        float32[pieces], how often each is in the best segmentation of a word.
    total
        float32[1], their sum.
    search
        Of this thread.
    action, loss
        uint8[pieces], float32[pieces], set: DROP, KEEP, or CANDIDATE and then the loss of likelihood if all
        occurrences were replaced with the piece's second-best segmentation.

    Returns
    -------
    int
        0.
    """
    whole = total[0]
    log_whole = np.float64(np.float32(math.log(np.float64(whole))))
    unknown = np.int64(len(counts))
    mask = (1 << shift) - 1
    for piece in range(first, last):
        count = counts[np.uint64(piece)]
        n = np.int64(length[np.uint64(piece)])
        action[np.uint64(piece)] = DROP
        if count == 0:
            continue
        if n == 1:
            action[np.uint64(piece)] = KEEP
            continue
        at = np.int64(place[np.uint64(piece)])
        parts = second_best(lattices, at, n, scores, shift, scratch, search)
        if parts == -2:
            # The reference shrinks its search here, in a way that is not followed.
            best = without_itself(lattices, at, n, scores, shift, scratch.forward, scratch.node[1])
            parts = -1 if best > scores[np.uint64(piece)] else 0
            k = n
            while parts >= 0 and k > 0:
                edge = scratch.node[1, k]
                scratch.path[parts] = edge >> shift
                parts += 1
                k -= edge & mask
        if parts < 0:
            continue
        if parts == 0:
            action[np.uint64(piece)] = KEEP
            continue
        more = np.float32(count * np.float32(parts - 1))
        log_more = np.float64(np.float32(math.log(np.float64(np.float32(whole + more)))))
        other = np.float32(0)
        for k in range(parts):
            part = scratch.path[k]
            part = 0 if part == unknown else part
            share = np.float32(counts[np.uint64(part)] + count)
            other = np.float32(np.float64(other) + (math.log(np.float64(share)) - log_more))
        own = np.float32(math.log(np.float64(count)) - log_whole)
        action[np.uint64(piece)] = CANDIDATE
        loss[np.uint64(piece)] = np.float32(np.float32(count / whole) * np.float32(own - other))
    return 0


@kernel
def find_unreachable(
    lattices: Any, first: int, last: int, scores: Any, shift: int, place: Any, length: Any, scratch: Any, unreachable: Any
) -> int:
    """Mark pieces whose own characters have a better segmentation without them.

    Parameters
    ----------
    lattices, first, last, scores, shift, place, length, scratch
        As for :func:`lose`.
    unreachable
        uint8[pieces], set for these pieces.

    Returns
    -------
    int
        How many are.
    """
    found = np.int64(0)
    for piece in range(first, last):
        n = np.int64(length[piece])
        best = _UNREACHED
        if n > 1:
            best = without_itself(lattices, np.int64(place[piece]), n, scores, shift, scratch.forward, scratch.path)
        unreachable[piece] = 1 if best > scores[piece] else 0
        found += unreachable[piece]
    return found
