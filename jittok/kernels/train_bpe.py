"""Byte-pair encoding learned from words with counts (Sennrich, Haddow and Birch 2016), in time that does not grow with
words times merges.

The words stand one after another in *cells*, three int32 each: the symbol that begins there, the number of the pair
that it makes with the next one, and how often the word occurs. A symbol of `n` cells has ``-n`` in its second and in its
last cell instead of symbols, so both neighbours are found from any symbol, whatever the length of the word. A word has
a cell with :data:`BOUNDARY` before it and one after it.

Each pair has a count, always exact, and a *run* of places, the cells where it came up; one whose cell has another pair
by now is passed over. A merge visits the places of its pair only, which lie one after another, so that cells are asked
for some places ahead. What a merge brings is listed first, and then put in runs. All merges together bring two places
for each letter at most: each takes a symbol away, and brings two pairs.

A pair that comes up in a merge holds the new symbol, so it is found by its other symbol alone, in a row of *stamps*
that say in which step they were written: there is no hash table of pairs after the start. Only where a merge makes a
string that is a token already, the pairs of that token are found by their chains, and have several runs.

The next pair is the one of the greatest count, and among these of the least ids. Counts only fall, but for that rare
case, so pairs wait in a bucket for each count, unsorted; only those of the greatest count are in a heap. Pairs whose
counts are above the buckets, or have risen, wait in a heap of their own. Both are checked when a pair comes out, and
it goes to where it belongs. M merges of N cells cost O(N log N + M) in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import copy_block, load64, multiply, prefetch

#: Instead of a symbol, before and after each word.
BOUNDARY = 0x7FFFFFFF
#: Integers of a cell.
CELL = 3
#: The greatest count of a word that a cell holds; of others it holds ``-k``, and the count is ``weights[k]``.
MOST_IN_CELL = (1 << 31) - 1
#: In ``Pairs.begin`` of a pair that was merged; it never comes back, its successor gets a number of its own.
MERGED = -2
#: In ``Pairs.begin`` of a pair whose newest run has no places yet.
NOWHERE = -1
#: Integers of an older run: where it begins, its number of places, the run before it or -1.
RUN = 3
#: Places ahead of the one that is merged whose cells are asked for.
AHEAD = 8

#: Positions in ``Training.numbers``.
SYMBOLS = 0  # number of symbols, ids 0 to SYMBOLS - 1
PAIRS = 1  # number of pairs
PLACES = 2  # number of places of all runs
HEAP = 3  # entries of the heap
LEVEL = 4  # the count whose pairs are in the level's heap
LEVEL_PAIRS = 5  # their number
MERGES = 6  # merges learned
BYTES = 7  # bytes of all tokens
LINKED = 8  # pairs that are in the chains of their symbols
STEP = 9  # number of the merge being done, counted from 1
TARGET = 10  # number of symbols to stop at
FLOOR = 11  # least count of a pair that is merged
LONGEST = 12  # most letters of a token
PREFIX = 13  # bytes of the prefix that is left out of a token on the right
CELL_AT = 14  # where `count_pairs` and `place_pairs` go on
APPLIED = 15  # how often the last merge was applied in the text
SCORED = 16  # entries of the heap of jittok.kernels.train_wordpiece
RUNS = 17  # number of older runs
N_NUMBERS = 18

#: Bytes behind the strings of tokens, which are copied in blocks.
SLACK = 128

#: What the kernels return.
DONE = 0  # as many symbols as wanted
PAUSED = 1  # the budget is used up
EXHAUSTED = 2  # no pair is left
MORE_PAIRS = 3  # arrays are too small, see `Training`
MORE_EVENTS = 4
MORE_MERGES = 5
MORE_BYTES = 6
MORE_HEAP = 7
MORE_TABLE = 8
MORE_RUNS = 9

MIX = np.uint64(0x9E3779B97F4A7C15)


class Pairs(NamedTuple):
    """Pairs of symbols, in the order in which they came up."""

    left: NDArray[np.int32]  # [capacity]
    right: NDArray[np.int32]  # [capacity]
    count: NDArray[np.int64]  # [capacity] how often it is in the text now
    begin: NDArray[np.int32]  # [capacity] where its newest run begins, NOWHERE, MERGED
    size: NDArray[np.int32]  # [capacity] places of its newest run
    older: NDArray[np.int32]  # [capacity] the run before that, -1 for none
    waiting: NDArray[np.int32]  # [capacity] the next pair in the bucket, -1 for none


class Tokens(NamedTuple):
    """Symbols as strings. The number of a symbol is its id."""

    data: NDArray[np.uint8]  # [capacity] UTF-8, one after another, and SLACK bytes
    indptr: NDArray[np.int64]  # [capacity + 1]
    length: NDArray[np.int32]  # [capacity] in letters; 0 for one that no word has had
    table: NDArray[np.int32]  # [2**k] hash table of symbols by their strings, -1 for none


class Training(NamedTuple):
    """All that changes in training."""

    numbers: NDArray[np.int64]  # [N_NUMBERS]
    cells: NDArray[np.int32]  # [CELL * cells]
    weights: NDArray[np.int64]  # [k] how often words occur for which a cell is too small
    pairs: Pairs
    places: NDArray[np.int32]  # [3 * cells] cells, run by run
    events: NDArray[np.int32]  # [2 * capacity] what a merge brings: pair and cell
    runs: NDArray[np.int32]  # [RUN * capacity] older runs
    tokens: Tokens
    stamps: NDArray[np.int32]  # [4 * symbols] step and pair (symbol, newest), step and pair (newest, symbol)
    chains: NDArray[np.int32]  # [2 * symbols] newest pair with the symbol on the left, on the right
    links: NDArray[np.int32]  # [2 * pairs] next pair of the same left symbol, of the same right symbol
    buckets: NDArray[np.int32]  # [k] by count: the pairs that wait, linked by Pairs.waiting
    level: NDArray[np.int32]  # [pairs] heap of the pairs of the greatest count
    level_key: NDArray[np.uint64]  # [pairs] their symbols, as one number
    heap_count: NDArray[np.int64]  # [capacity] heap of other pairs: their counts when they were put in
    heap_pair: NDArray[np.int32]  # [capacity]
    merges: NDArray[np.int32]  # [3 * capacity] left, right, result


# ---------------------------------------------------------------------------------------------------- the letters


@kernel
def count_letters(data: Any, indptr: Any, counts: Any, is_byte_level: int, last_differs: int, totals: Any, seen: Any) -> int:
    """Count the letters of words.

    Parameters
    ----------
    data, indptr, counts
        Words in UTF-8, and how often each occurs: uint8[m], int64[n + 1], int64[n].
    is_byte_level
        1: letters are bytes. 0: codepoints.
    last_differs
        1 if the last letter of a word is another symbol than elsewhere.
    totals
        int64[letters], how often each occurs is added to it.
    seen
        uint8[letters], 1 is put in for those that are in the middle of a word, 2 for those that begin one, 4 for those that
        end one, 8 for those that are one.

    Returns
    -------
    int
        0. Linear in `data`.
    """
    for word in range(indptr.size - 1):
        at, end = np.int64(indptr[word]), np.int64(indptr[word + 1])
        is_first = 1
        while at < end:
            letter, size = next_letter(data, at, is_byte_level)
            at += size
            kind = is_first
            if at == end and last_differs != 0:
                kind |= 2
            totals[letter] += counts[word]
            seen[letter] |= 1 << kind
            is_first = 0
    return 0


@inlined
def next_letter(data: Any, at: int, is_byte_level: int) -> tuple[int, int]:
    """The byte or codepoint at a position of valid UTF-8, and its number of bytes."""
    first = np.int64(data[np.uint64(at)])
    if is_byte_level != 0 or first < 0x80:
        return first, 1
    second = np.int64(data[np.uint64(at + 1)]) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, 2
    third = np.int64(data[np.uint64(at + 2)]) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, 3
    return (first & 0x07) << 18 | second << 12 | third << 6 | np.int64(data[np.uint64(at + 3)]) & 0x3F, 4


@kernel
def fill_cells(
    data: Any, indptr: Any, counts: Any, is_byte_level: int, last_differs: int, symbols: Any, least: int, cells: Any,
    weights: Any, n_weights: int,
) -> int:  # fmt: skip
    """Write words as cells of letters.

    Parameters
    ----------
    data, indptr, counts, is_byte_level, last_differs
        As for :func:`count_letters`.
    symbols
        int32[4, letters]: the symbol of each letter in the middle of a word, as its first, as its last, and as its only one;
        -1 for letters that are left out.
    least
        Words of fewer letters are left out, and those of count 0.
    cells
        int32[CELL * (m + n + 1)]: written.
    weights
        int64[k + 1]: receives the counts of 2**31 and more, from ``n_weights + 1`` on.
    n_weights
        Those of other words.

    Returns
    -------
    int
        Number of cells. Linear in `data`.
    """
    cells[0] = BOUNDARY
    cells[1] = -1
    used = 1
    n_weights = np.int64(n_weights)
    for word in range(indptr.size - 1):
        at, end = np.int64(indptr[word]), np.int64(indptr[word + 1])
        weight = np.int64(counts[word])
        if weight > MOST_IN_CELL:
            n_weights += 1
            weights[n_weights] = weight
            weight = np.int64(-n_weights)
        begin = used
        is_first = 1
        while at < end:
            letter, size = next_letter(data, at, is_byte_level)
            at += size
            kind = is_first
            if at == end and last_differs != 0:
                kind |= 2
            symbol = symbols[kind, letter]
            is_first = 0
            if symbol >= 0:
                cells[CELL * used] = symbol
                cells[CELL * used + 1] = -1
                cells[CELL * used + 2] = weight
                used += 1
        if used - begin < least or counts[word] <= 0:
            used = begin
            continue
        cells[CELL * used] = BOUNDARY
        cells[CELL * used + 1] = -1
        used += 1
    return used


@kernel
def fill_cells_of_symbols(symbols: Any, indptr: Any, counts: Any, least: int, cells: Any, weights: Any) -> int:
    """Write words that are symbols already as cells; one cell for each symbol.

    Parameters
    ----------
    symbols, indptr, counts
        int32[m], int64[n + 1], int64[n]: the symbols of each word, and how often it occurs.
    least
        Words of fewer symbols are left out, and those of count 0.
    cells
        int32[CELL * (m + n + 1)]: written.
    weights
        As for :func:`fill_cells`.

    Returns
    -------
    int
        Number of cells.
    """
    cells[0] = BOUNDARY
    cells[1] = -1
    used = 1
    n_weights = 0
    for word in range(indptr.size - 1):
        at, end = np.int64(indptr[word]), np.int64(indptr[word + 1])
        if end - at < least or counts[word] <= 0:
            continue
        weight = np.int64(counts[word])
        if weight > MOST_IN_CELL:
            n_weights += 1
            weights[n_weights] = weight
            weight = np.int64(-n_weights)
        for i in range(at, end):
            cells[CELL * used] = symbols[i]
            cells[CELL * used + 1] = -1
            cells[CELL * used + 2] = weight
            used += 1
        cells[CELL * used] = BOUNDARY
        cells[CELL * used + 1] = -1
        used += 1
    return used


@kernel
def symbols_of_cells(cells: Any, used: int, weights: Any, least: int, symbols: Any, indptr: Any, words: Any) -> int:
    """Read the words that cells hold by now: what :func:`fill_cells_of_symbols` takes.

    Parameters
    ----------
    cells, used
        Cells, and their number.
    weights
        As :func:`fill_cells` left them.
    least
        Words of fewer symbols are left out.
    symbols, indptr, words
        int32[used], int64[used + 1], int64[used]: written. The last are the counts of the words.

    Returns
    -------
    int
        Number of words.
    """
    n_words = 0
    written = 0
    indptr[0] = 0
    at = 1
    while at < used:
        first = written
        weight = weight_of(cells, weights, at)
        while np.int64(cells[CELL * at]) != BOUNDARY:
            symbols[written] = cells[CELL * at]
            written += 1
            at = following(cells, at)
        at += 1
        if written - first < least:
            written = first
            continue
        words[n_words] = weight
        n_words += 1
        indptr[n_words] = written
    return n_words


@inlined
def weight_of(cells: Any, weights: Any, at: int) -> int:
    """How often the word of a cell occurs."""
    weight = np.int64(cells[np.uint64(CELL * at + 2)])
    return weight if weight >= 0 else np.int64(weights[-weight])


@inlined
def following(cells: Any, at: int) -> int:
    """The cell where the symbol after that at `at` begins, or the word's end."""
    mark = np.int64(cells[np.uint64(CELL * (at + 1))])
    return at + 1 if mark >= 0 else at - mark


@inlined
def preceding(cells: Any, at: int) -> int:
    """The cell where the symbol before that at `at` begins, or the boundary before the word."""
    mark = np.int64(cells[np.uint64(CELL * (at - 1))])
    return at - 1 if mark >= 0 else at + mark


# ------------------------------------------------------------------------------------------------------ the pairs


@inlined
def pair_slot(left: int, right: int, mask: np.uint64) -> np.uint64:
    """Where the search for a pair in a hash table begins."""
    return (multiply(np.uint64(left) << np.uint64(32) | np.uint64(right), MIX) >> np.uint64(32)) & mask


@kernel
def count_pairs(training: Any, table: Any, used: int, budget: int) -> int:
    """Count the pairs of cells that have no pairs yet, from ``numbers[CELL_AT]`` on.

    Parameters
    ----------
    training : Training
    table
        int32[2**k], a hash table of pairs; where it is larger than before, all -1.
    used
        Number of cells.
    budget
        Cells after which to pause.

    Returns
    -------
    int
        DONE, PAUSED, MORE_PAIRS or MORE_TABLE.
    """
    numbers, cells, pairs = training.numbers, training.cells, training.pairs
    lengths = training.tokens.length
    mask = np.uint64(table.size - 1)
    n_pairs = numbers[PAIRS]
    longest = numbers[LONGEST]
    if n_pairs > 0 and table[pair_slot(pairs.left[0], pairs.right[0], mask)] < 0:
        for pair in range(n_pairs):
            slot = pair_slot(pairs.left[pair], pairs.right[pair], mask)
            while table[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            table[slot] = pair
    at = numbers[CELL_AT]
    limit = min(used - 1, at + budget)
    status = DONE
    while at < limit:
        left = np.int64(cells[CELL * at])
        right = np.int64(cells[CELL * at + CELL])
        if left == BOUNDARY or right == BOUNDARY or np.int64(lengths[left]) + np.int64(lengths[right]) > longest:
            at += 1
            continue
        slot = pair_slot(left, right, mask)
        pair = np.int64(table[slot])
        while pair >= 0 and (np.int64(pairs.left[pair]) != left or np.int64(pairs.right[pair]) != right):
            slot = (slot + np.uint64(1)) & mask
            pair = np.int64(table[slot])
        if pair < 0:
            if n_pairs * 2 >= table.size:
                status = MORE_TABLE
                break
            if n_pairs >= pairs.left.size:
                status = MORE_PAIRS
                break
            pair = n_pairs
            table[slot] = pair
            new_pair(pairs, pair, left, right)
            n_pairs += 1
        pairs.count[pair] += weight_of(cells, training.weights, at)
        pairs.size[pair] += 1
        cells[CELL * at + 1] = pair
        at += 1
    numbers[PAIRS] = n_pairs
    numbers[CELL_AT] = at
    if status == DONE and at < used - 1:
        status = PAUSED
    return status


@kernel
def place_pairs(training: Any, used: int, budget: int) -> int:
    """List the places of all pairs that ``count_pairs`` counted, from ``numbers[CELL_AT]`` on, which is 1 at first.

    Parameters
    ----------
    training : Training
        Its places have room for one a cell.
    used
        Number of cells.
    budget
        Cells after which to pause.

    Returns
    -------
    int
        DONE or PAUSED.
    """
    numbers, cells = training.numbers, training.cells
    at = numbers[CELL_AT]
    if at == 1:
        numbers[PLACES] = 0
        begin_runs(training, 0)
    limit = min(used - 1, at + budget)
    while at < limit:
        pair = np.int64(cells[np.uint64(CELL * at + 1)])
        if pair >= 0:
            add_place(training, pair, at)
        at += 1
    numbers[CELL_AT] = at
    return DONE if at >= used - 1 else PAUSED


@kernel
def join_pairs(training: Any, table: Any, others: Any, n_others: int, number: Any) -> int:
    """Add the pairs that ``count_pairs`` counted in another part of the cells.

    Parameters
    ----------
    training : Training
        It has room for them.
    table
        int32[2**k], all -1: scratch, twice as large as all pairs together.
    others : Pairs
        Those of the other part.
    n_others
        Their number.
    number
        int32[n_others], set: which pair each is here.

    Returns
    -------
    int
        0.
    """
    numbers, pairs = training.numbers, training.pairs
    mask = np.uint64(table.size - 1)
    n_pairs = numbers[PAIRS]
    for pair in range(n_pairs):
        slot = pair_slot(pairs.left[pair], pairs.right[pair], mask)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = pair
    for other in range(n_others):
        left, right = np.int64(others.left[other]), np.int64(others.right[other])
        slot = pair_slot(left, right, mask)
        pair = np.int64(table[slot])
        while pair >= 0 and (np.int64(pairs.left[pair]) != left or np.int64(pairs.right[pair]) != right):
            slot = (slot + np.uint64(1)) & mask
            pair = np.int64(table[slot])
        if pair < 0:
            pair = n_pairs
            table[slot] = pair
            new_pair(pairs, pair, left, right)
            n_pairs += 1
        pairs.count[pair] += others.count[other]
        pairs.size[pair] += others.size[other]
        number[other] = pair
    numbers[PAIRS] = n_pairs
    return 0


@kernel
def place_part(training: Any, first: int, last: int, number: Any, following_place: Any) -> int:
    """List the places of pairs in a part of the cells.

    Parameters
    ----------
    training : Training
    first, last
        The cells, ``[first, last)``.
    number
        int32[k]: which pair is meant by a number that the cells hold; they hold the pair afterwards.
    following_place
        int32[pairs]: where in ``Training.places`` the next place of each pair belongs.

    Returns
    -------
    int
        0.
    """
    cells, places = training.cells, training.places
    for at in range(first, last):
        pair = np.int64(cells[np.uint64(CELL * at + 1)])
        if pair >= 0:
            pair = np.int64(number[np.uint64(pair)])
            cells[np.uint64(CELL * at + 1)] = pair
            place = np.int64(following_place[np.uint64(pair)])
            following_place[np.uint64(pair)] = place + 1
            places[np.uint64(place)] = at
    return 0


@inlined
def new_pair(pairs: Any, pair: int, left: int, right: int) -> None:
    """Begin a pair."""
    where = np.uint64(pair)
    pairs.left[where] = left
    pairs.right[where] = right
    pairs.count[where] = 0
    pairs.begin[where] = NOWHERE
    pairs.size[where] = 0
    pairs.older[where] = -1


@inlined
def begin_run(training: Any, pair: int) -> None:
    """Make room for the places of a pair, whose number is in ``Pairs.size``; that is 0 afterwards."""
    pairs, where = training.pairs, np.uint64(pair)
    pairs.begin[where] = training.numbers[PLACES]
    training.numbers[PLACES] += pairs.size[where]
    pairs.size[where] = 0


@inlined
def begin_runs(training: Any, first: int) -> None:
    """Make room for the places of all pairs from `first` on."""
    for pair in range(first, training.numbers[PAIRS]):
        begin_run(training, pair)


@inlined
def add_place(training: Any, pair: int, at: int) -> None:
    """Add a cell to the run of a pair."""
    pairs, where = training.pairs, np.uint64(pair)
    size = np.int64(pairs.size[where])
    training.places[np.uint64(np.int64(pairs.begin[where]) + size)] = at
    pairs.size[where] = size + 1


# ------------------------------------------------------------------------------------------------------ the queue


@inlined
def is_before(pairs: Any, one: int, other: int) -> bool:
    """Whether of two pairs of one count the first is merged first."""
    left, other_left = pairs.left[np.uint64(one)], pairs.left[np.uint64(other)]
    return left < other_left or (left == other_left and pairs.right[np.uint64(one)] < pairs.right[np.uint64(other)])


@helper
def push_heap(training: Any, count: int, pair: int) -> None:
    """Put a pair into the heap of other pairs."""
    numbers, counts, items = training.numbers, training.heap_count, training.heap_pair
    at = numbers[HEAP]
    numbers[HEAP] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if counts[above] > count or (counts[above] == count and not is_before(training.pairs, pair, items[above])):
            break
        counts[at] = counts[above]
        items[at] = items[above]
        at = above
    counts[at] = count
    items[at] = pair


@helper
def pop_heap(training: Any) -> None:
    """Take the first pair out of the heap of other pairs."""
    numbers, counts, items = training.numbers, training.heap_count, training.heap_pair
    size = numbers[HEAP] - 1
    numbers[HEAP] = size
    if size == 0:
        return
    count, pair = counts[size], items[size]
    at = np.int64(0)
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and (
            counts[below + 1] > counts[below]
            or (counts[below + 1] == counts[below] and is_before(training.pairs, items[below + 1], items[below]))
        ):
            below += 1
        if counts[below] < count or (counts[below] == count and not is_before(training.pairs, items[below], pair)):
            break
        counts[at] = counts[below]
        items[at] = items[below]
        at = below
    counts[at] = count
    items[at] = pair


@inlined
def pair_key(pairs: Any, pair: int) -> np.uint64:
    """A number that is in the order in which pairs of one count are merged."""
    left, right = np.uint64(pairs.left[np.uint64(pair)]), np.uint64(pairs.right[np.uint64(pair)])
    return left << np.uint64(32) | right


@inlined
def sift_level(training: Any, at: int, size: int, pair: int, key: np.uint64) -> None:
    """Put a pair into the level's heap at `at` or below."""
    items, keys = training.level, training.level_key
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[np.uint64(below + 1)] < keys[np.uint64(below)]:
            below += 1
        if keys[np.uint64(below)] >= key:
            break
        items[np.uint64(at)] = items[np.uint64(below)]
        keys[np.uint64(at)] = keys[np.uint64(below)]
        at = below
    items[np.uint64(at)] = pair
    keys[np.uint64(at)] = key


@helper
def pop_level(training: Any) -> None:
    """Take the first pair out of the level's heap."""
    size = training.numbers[LEVEL_PAIRS] - 1
    training.numbers[LEVEL_PAIRS] = size
    if size > 0:
        sift_level(training, np.int64(0), size, training.level[size], training.level_key[size])


@helper
def next_level(training: Any) -> None:
    """Go down to the next count, and make a heap of the pairs that still have it."""
    numbers, pairs, level = training.numbers, training.pairs, training.level
    numbers[LEVEL] -= 1
    count = numbers[LEVEL]
    pair = np.int64(training.buckets[count])
    training.buckets[count] = -1
    size = 0
    while pair >= 0:
        after = np.int64(pairs.waiting[pair])
        now = pairs.count[pair]
        if pairs.begin[pair] != MERGED:
            if now == count:
                level[size] = pair
                training.level_key[size] = pair_key(pairs, pair)
                size += 1
            elif now < count and now >= numbers[FLOOR]:
                pairs.waiting[pair] = training.buckets[now]
                training.buckets[now] = pair
        pair = after
    numbers[LEVEL_PAIRS] = size
    for at in range((size >> 1) - 1, -1, -1):
        sift_level(training, at, size, level[at], training.level_key[at])


@inlined
def put_in_queue(training: Any, pair: int) -> None:
    """Let a new pair wait."""
    count = training.pairs.count[np.uint64(pair)]
    numbers = training.numbers
    if count < numbers[FLOOR]:
        return
    if count < numbers[LEVEL]:
        training.pairs.waiting[np.uint64(pair)] = training.buckets[np.uint64(count)]
        training.buckets[np.uint64(count)] = pair
        return
    if count > numbers[LEVEL] or count >= training.buckets.size:
        push_heap(training, count, pair)
        return
    at = numbers[LEVEL_PAIRS]
    numbers[LEVEL_PAIRS] = at + 1
    key = pair_key(training.pairs, pair)
    while at > 0:
        above = (at - 1) >> 1
        if training.level_key[np.uint64(above)] <= key:
            break
        training.level[np.uint64(at)] = training.level[np.uint64(above)]
        training.level_key[np.uint64(at)] = training.level_key[np.uint64(above)]
        at = above
    training.level[np.uint64(at)] = pair
    training.level_key[np.uint64(at)] = key


@kernel
def start_queue(training: Any) -> int:
    """Let all pairs wait.

    Parameters
    ----------
    training : Training
        Its buckets are all -1, its heap has room for all pairs.

    Returns
    -------
    int
        0.
    """
    numbers = training.numbers
    numbers[LEVEL] = training.buckets.size
    numbers[LEVEL_PAIRS] = 0
    numbers[HEAP] = 0
    for pair in range(numbers[PAIRS]):
        put_in_queue(training, pair)
    return 0


@helper
def first_in_queue(training: Any) -> int:
    """The pair to merge next, which stays in the queue; -1 if there is none."""
    numbers, pairs = training.numbers, training.pairs
    heap_count = np.int64(0)
    while numbers[HEAP] > 0:
        pair = np.int64(training.heap_pair[0])
        heap_count = training.heap_count[0]
        now = pairs.count[pair]
        if pairs.begin[pair] != MERGED and now == heap_count:
            break
        heap_count = 0
        pop_heap(training)
        if pairs.begin[pair] != MERGED and now >= numbers[FLOOR]:
            push_heap(training, now, pair)
    while True:
        while numbers[LEVEL_PAIRS] > 0:
            pair = np.int64(training.level[0])
            now = pairs.count[pair]
            if pairs.begin[pair] != MERGED and now == numbers[LEVEL]:
                if heap_count > now or (heap_count == now and is_before(pairs, training.heap_pair[0], pair)):
                    return np.int64(training.heap_pair[0])
                return pair
            pop_level(training)
            # one whose count has risen is in the heap
            if pairs.begin[pair] != MERGED and now < numbers[LEVEL] and now >= numbers[FLOOR]:
                pairs.waiting[pair] = training.buckets[now]
                training.buckets[now] = pair
        if heap_count >= numbers[LEVEL] and heap_count > 0:
            return np.int64(training.heap_pair[0])
        if numbers[LEVEL] <= numbers[FLOOR]:
            return np.int64(training.heap_pair[0]) if heap_count > 0 else np.int64(-1)
        next_level(training)


# ----------------------------------------------------------------------------------------------------- the tokens


@inlined
def word_of(data: Any, first: int, n: int) -> np.uint64:
    """The first eight of `n` bytes as a number; of fewer, zeros stand for the rest."""
    value = load64(data, first)
    if n < 8:
        value &= (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)
    return value


@inlined
def copy_bytes(data: Any, to: int, first: int, last: int) -> int:
    """Copy ``data[first:last]``, and some bytes behind it, to where it is not; returns where the copy ends."""
    for at in range(first, last, 64):
        copy_block(data, to + at - first, data, at)
    return to + last - first


@helper
def token_slot(tokens: Any, first: int, n: int) -> np.uint64:
    """Where in the table the string ``tokens.data[first:first + n]`` is or would be."""
    value = multiply(np.uint64(n), MIX)
    for i in range(0, n, 8):
        value = multiply(value ^ word_of(tokens.data, first + i, n - i), MIX)
        value ^= value >> np.uint64(32)
    mask = np.uint64(tokens.table.size - 1)
    slot = value & mask
    while tokens.table[slot] >= 0:
        symbol = np.int64(tokens.table[slot])
        at = tokens.indptr[symbol]
        if tokens.indptr[symbol + 1] - at == n:
            i = np.int64(0)
            while i < n and word_of(tokens.data, at + i, n - i) == word_of(tokens.data, first + i, n - i):
                i += 8
            if i >= n:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def fill_token_table(tokens: Any, n: int) -> int:
    """Enter the first `n` tokens in their table, which is all -1.

    Parameters
    ----------
    tokens : Tokens
    n
        Number of tokens.

    Returns
    -------
    int
        0.
    """
    for symbol in range(n):
        slot = token_slot(tokens, tokens.indptr[symbol], tokens.indptr[symbol + 1] - tokens.indptr[symbol])
        if tokens.table[slot] < 0:
            tokens.table[slot] = symbol
    return 0


@helper
def write_token(training: Any, left: int, right: int, prefix: Any) -> int:
    """Write the string that merging makes behind those of all tokens; returns where it ends."""
    numbers, tokens = training.numbers, training.tokens
    used = numbers[BYTES]
    used = copy_bytes(tokens.data, used, tokens.indptr[left], tokens.indptr[left + 1])
    begin = tokens.indptr[right]
    if numbers[PREFIX] > 0 and tokens.indptr[right + 1] - begin >= numbers[PREFIX]:
        i = 0
        while i < numbers[PREFIX] and tokens.data[begin + i] == prefix[i]:
            i += 1
        if i == numbers[PREFIX]:
            begin += i
    return copy_bytes(tokens.data, used, begin, tokens.indptr[right + 1])


@helper
def merged_token(training: Any, left: int, right: int, slot: np.uint64, end: int) -> int:
    """The symbol of the string that merging makes: a token that is there, or a new one at the end.

    The string is written already and ends at `end`; `slot` is its place in the table.
    """
    numbers, tokens = training.numbers, training.tokens
    length = tokens.length[left] + tokens.length[right]
    if tokens.table[slot] >= 0:
        known = np.int64(tokens.table[slot])
        if tokens.length[known] == 0:
            tokens.length[known] = length
        return known
    symbol = numbers[SYMBOLS]
    tokens.table[slot] = symbol
    tokens.indptr[symbol + 1] = end
    tokens.length[symbol] = length
    numbers[BYTES] = end
    numbers[SYMBOLS] = symbol + 1
    return symbol


# ----------------------------------------------------------------------------------------------------- the merges


@helper
def link_pairs(training: Any) -> None:
    """Put those pairs into the chains of their symbols that are not there yet."""
    numbers, pairs, chains, links = training.numbers, training.pairs, training.chains, training.links
    for pair in range(numbers[LINKED], numbers[PAIRS]):
        left, right = np.int64(pairs.left[pair]), np.int64(pairs.right[pair])
        links[2 * pair] = chains[2 * left]
        chains[2 * left] = pair
        links[2 * pair + 1] = chains[2 * right + 1]
        chains[2 * right + 1] = pair
    numbers[LINKED] = numbers[PAIRS]


@helper
def pairs_of_token(training: Any, symbol: int) -> int:
    """How many pairs the chains of a token hold."""
    link_pairs(training)
    n = 0
    for side in range(2):
        pair = np.int64(training.chains[2 * symbol + side])
        while pair >= 0:
            n += 1
            pair = np.int64(training.links[2 * pair + side])
    return n


@helper
def stamp_known_pairs(training: Any, symbol: int, step: int) -> None:
    """Write the stamps of all pairs of a token that was there before, and begin new runs for them."""
    pairs, chains, links, stamps = training.pairs, training.chains, training.links, training.stamps
    for side in range(2):
        pair = np.int64(chains[2 * symbol + side])
        while pair >= 0:
            if pairs.begin[pair] != MERGED:
                other = np.int64(pairs.right[pair] if side == 0 else pairs.left[pair])
                # side 0: (symbol, other); side 1: (other, symbol)
                stamps[4 * other + 2 - 2 * side] = step
                stamps[4 * other + 3 - 2 * side] = pair
                if pairs.size[pair] > 0:
                    run = training.numbers[RUNS]
                    training.numbers[RUNS] = run + 1
                    training.runs[RUN * run] = pairs.begin[pair]
                    training.runs[RUN * run + 1] = pairs.size[pair]
                    training.runs[RUN * run + 2] = pairs.older[pair]
                    pairs.older[pair] = run
                    pairs.size[pair] = 0
                pairs.begin[pair] = NOWHERE
            pair = np.int64(links[2 * pair + side])


@helper
def begin_known_runs(training: Any, symbol: int) -> None:
    """Make room for the places that the pairs of a token that was there before have got in a merge."""
    pairs = training.pairs
    for side in range(2):
        pair = np.int64(training.chains[2 * symbol + side])
        while pair >= 0:
            if pairs.begin[pair] == NOWHERE:
                begin_run(training, pair)
            pair = np.int64(training.links[2 * pair + side])


@helper
def requeue_known_pairs(training: Any, symbol: int) -> None:
    """Let those pairs of a token wait again whose counts have risen: those that have places in the run of this merge."""
    pairs = training.pairs
    for side in range(2):
        pair = np.int64(training.chains[2 * symbol + side])
        while pair >= 0:
            if pairs.begin[pair] != MERGED and pairs.size[pair] > 0 and pairs.count[pair] >= training.numbers[FLOOR]:
                push_heap(training, pairs.count[pair], pair)
            pair = np.int64(training.links[2 * pair + side])


@inlined
def pair_with(training: Any, other: int, newest: int, is_right: int, step: int) -> int:
    """The pair (other, newest), or (newest, other) with `is_right` 2; -1 where it is too long."""
    stamps = training.stamps
    where = np.uint64(4 * other + is_right)
    if np.int64(stamps[where]) == step:
        return np.int64(stamps[where + np.uint64(1)])
    numbers, lengths = training.numbers, training.tokens.length
    pair = np.int64(-1)
    if np.int64(lengths[np.uint64(other)]) + np.int64(lengths[np.uint64(newest)]) <= numbers[LONGEST]:
        pair = numbers[PAIRS]
        numbers[PAIRS] = pair + 1
        if is_right == 0:
            new_pair(training.pairs, pair, other, newest)
        else:
            new_pair(training.pairs, pair, newest, other)
    stamps[where] = step
    stamps[where + np.uint64(1)] = pair
    return pair


@inlined
def note_event(training: Any, n_events: int, pair: int, weight: int, at: int) -> int:
    """Say that a pair comes up at a cell, unless it is -1; returns the number of events."""
    if pair < 0:
        return n_events
    where = np.uint64(pair)
    training.pairs.count[where] += weight
    training.pairs.size[where] += 1
    training.events[np.uint64(2 * n_events)] = pair
    training.events[np.uint64(2 * n_events + 1)] = at
    return n_events + 1


@helper
def merge_run(training: Any, pair: int, begin: int, size: int, newest: int, step: int, n_events: int) -> int:
    """Merge a pair at the places of one of its runs; returns the number of events so far."""
    numbers, cells, pairs, places = training.numbers, training.cells, training.pairs, training.places
    is_double = pairs.left[pair] == pairs.right[pair]
    applied = numbers[APPLIED]
    for k in range(begin, begin + size):
        if k + AHEAD < begin + size:
            prefetch(cells, CELL * np.int64(places[np.uint64(k + AHEAD)]))
        at = np.int64(places[np.uint64(k)])
        if np.int64(cells[np.uint64(CELL * at + 1)]) != pair:
            continue
        weight = weight_of(cells, training.weights, at)
        before = preceding(cells, at)
        if is_double:
            # of a run of equal symbols, pairs are merged from its left end, whichever of them comes first here
            while np.int64(cells[np.uint64(CELL * before + 1)]) == pair:
                at = before
                before = preceding(cells, at)
        while True:
            applied += weight
            second = following(cells, at)
            after = following(cells, second)
            left = np.int64(cells[np.uint64(CELL * before)])
            if left != BOUNDARY:
                old = np.int64(cells[np.uint64(CELL * before + 1)])
                if old >= 0:
                    pairs.count[np.uint64(old)] -= weight
                new = pair_with(training, left, newest, 2 if left == newest else 0, step)
                cells[np.uint64(CELL * before + 1)] = new
                n_events = note_event(training, n_events, new, weight, before)
            right = np.int64(cells[np.uint64(CELL * after)])
            old = np.int64(cells[np.uint64(CELL * second + 1)])
            new = np.int64(-1)
            if right != BOUNDARY:
                if old >= 0:
                    pairs.count[np.uint64(old)] -= weight
                new = pair_with(training, right, newest, 2, step)
                n_events = note_event(training, n_events, new, weight, at)
            cells[np.uint64(CELL * second + 1)] = -1
            cells[np.uint64(CELL * at)] = newest
            cells[np.uint64(CELL * at + 1)] = new
            cells[np.uint64(CELL * (at + 1))] = at - after
            cells[np.uint64(CELL * (after - 1))] = at - after
            if old != pair:
                break
            before = at
            at = after
            if np.int64(cells[np.uint64(CELL * at + 1)]) != pair:
                break
    numbers[APPLIED] = applied
    return n_events


@helper
def merge_pair(training: Any, pair: int, merge: Any, step: int) -> int:
    """Merge a pair everywhere, and note the places of the pairs that come up; returns the number of places visited.

    `merge` is what :func:`begin_merge` returned.
    """
    numbers, pairs = training.numbers, training.pairs
    newest, is_known = merge
    first_pair = numbers[PAIRS]
    begin, size, run = np.int64(pairs.begin[pair]), np.int64(pairs.size[pair]), np.int64(pairs.older[pair])
    pairs.begin[pair] = MERGED
    numbers[APPLIED] = 0
    visited = size
    n_events = merge_run(training, pair, begin, size, newest, step, np.int64(0))
    while run >= 0:
        begin, size = np.int64(training.runs[RUN * run]), np.int64(training.runs[RUN * run + 1])
        visited += size
        n_events = merge_run(training, pair, begin, size, newest, step, n_events)
        run = np.int64(training.runs[RUN * run + 2])
    begin_runs(training, first_pair)
    if is_known:
        begin_known_runs(training, newest)
    for k in range(n_events):
        add_place(training, np.int64(training.events[np.uint64(2 * k)]), training.events[np.uint64(2 * k + 1)])
    return visited


@helper
def places_of(training: Any, pair: int) -> int:
    """The number of places of a pair, those where it is no more included."""
    n = np.int64(training.pairs.size[pair])
    run = np.int64(training.pairs.older[pair])
    while run >= 0:
        n += np.int64(training.runs[RUN * run + 1])
        run = np.int64(training.runs[RUN * run + 2])
    return n


@helper
def missing_room(training: Any, pair: int) -> int:
    """Which arrays are too small for a merge; DONE for none."""
    numbers, pairs, tokens = training.numbers, training.pairs, training.tokens
    room = 2 * places_of(training, pair)
    if 2 * room > training.events.size:
        return MORE_EVENTS
    # a pair for each symbol on each side at most, and those that become known pairs again wait once more
    most = 2 * numbers[SYMBOLS] + 2
    if numbers[PAIRS] + min(room, most) > pairs.left.size:
        return MORE_PAIRS
    if numbers[HEAP] + most > training.heap_pair.size:
        return MORE_HEAP
    if numbers[MERGES] * 3 >= training.merges.size:
        return MORE_MERGES
    left, right = np.int64(pairs.left[pair]), np.int64(pairs.right[pair])
    size = tokens.indptr[left + 1] - tokens.indptr[left] + tokens.indptr[right + 1] - tokens.indptr[right]
    if numbers[BYTES] + size + SLACK > tokens.data.size:
        return MORE_BYTES
    return DONE


@helper
def begin_merge(training: Any, pair: int, prefix: Any) -> tuple[int, bool]:
    """Write a merge down, and make its token, or write the stamps of a known one.

    Returns the token, and whether it was there before; -1 for it where there is no room for more runs.
    """
    numbers, pairs = training.numbers, training.pairs
    left, right = np.int64(pairs.left[pair]), np.int64(pairs.right[pair])
    end = write_token(training, left, right, prefix)
    slot = token_slot(training.tokens, numbers[BYTES], end - numbers[BYTES])
    known = np.int64(training.tokens.table[slot])
    if known >= 0 and RUN * (numbers[RUNS] + pairs_of_token(training, known)) > training.runs.size:
        return np.int64(-1), True
    newest = merged_token(training, left, right, slot, end)
    merge = 3 * numbers[MERGES]
    training.merges[merge] = left
    training.merges[merge + 1] = right
    training.merges[merge + 2] = newest
    numbers[MERGES] += 1
    numbers[STEP] += 1
    pairs.count[pair] = 0
    if known >= 0:
        begin = pairs.begin[pair]
        pairs.begin[pair] = MERGED
        stamp_known_pairs(training, newest, numbers[STEP])
        pairs.begin[pair] = begin
    return newest, known >= 0


@kernel
def learn_merges(training: Any, prefix: Any, budget: int) -> int:
    """Merge the first pair of the queue, and the next, until there are as many symbols as wanted.

    Parameters
    ----------
    training : Training
    prefix
        uint8[numbers[PREFIX]], what tokens that continue a word begin with.
    budget
        Places after which to pause.

    Returns
    -------
    int
        DONE, PAUSED, EXHAUSTED, or which arrays must grow before the next call: MORE_PAIRS (then those by pair),
        MORE_EVENTS, MORE_MERGES, MORE_BYTES, MORE_HEAP, MORE_RUNS.
    """
    numbers = training.numbers
    while numbers[SYMBOLS] < numbers[TARGET]:
        if budget <= 0:
            return PAUSED
        pair = first_in_queue(training)
        if pair < 0:
            return EXHAUSTED
        status = missing_room(training, pair)
        if status != DONE:
            return status
        n_pairs = numbers[PAIRS]
        merge = begin_merge(training, pair, prefix)
        newest, is_known = merge
        if newest < 0:
            return MORE_RUNS
        budget -= merge_pair(training, pair, merge, numbers[STEP]) + 8
        for new in range(n_pairs, numbers[PAIRS]):
            put_in_queue(training, new)
        if is_known:
            requeue_known_pairs(training, newest)
    return DONE
