"""Learning byte-pair merges by SentencePiece's rules.

All words lie in one array of cells, one cell for each letter, with an empty cell between two words and at both ends. A
*symbol* covers the cells of its letters: its first and its last cell hold its number, so that both neighbours of a
symbol are found without links; inner cells hold anything but what could be taken for a symbol that begins there. The
first cell also holds the *pair* of this symbol and the next one. A pair keeps the list of all places where it ever
was, rising; a place counts while its cell still holds the pair.

A merge makes the symbol with the next number. All pairs that it brings contain this symbol, so they are told apart by
their other half: two arrays, indexed by symbols, hold the newest pair to the left and to the right. No pair is ever
looked up otherwise.

Pairs wait in a binary heap if they are frequent enough; when it is empty, less will do. Counts only fall, so an entry
with a count that is no longer right is put back, or left to a later filling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import multiply, prefetch
from jittok.kernels.utf8 import codepoint_at
from jittok.kernels.word_cache import FACTOR_LOW, FACTOR_MIX

#: A cell is four numbers; which is which.
CELL = 4
SYMBOL, PAIR, WEIGHT, LETTER = 0, 1, 2, 3
#: Places ahead of the one that is merged whose cells are asked for.
AHEAD = 12
#: The symbol of an empty cell, and its letter.
NOTHING = 0
#: In the place of a pair that is none, or would make a piece that is not valid.
NO_PAIR = -1
#: The count of pairs that are merged, or make a piece that there is already: it stays far below zero.
GONE = -(1 << 62)

#: Positions in ``Trainer.numbers``.
N_PIECES = 0  # merges made
N_PAIRS = 1  # pairs so far
N_PLACES = 2  # places of pairs used
N_WAITING = 3  # entries of the heap
LEAST = 4  # the count below which pairs do not wait in the heap; -1 before it is first filled
N_LETTERS = 5  # symbols that are letters, the empty one included
LETTER_BITS = 6  # bits of a letter in a key
MOST_LETTERS = 7  # letters of the longest piece
RULES = 8  # the bits below
N_DUPLICATES = 9  # pairs left out because their piece was there already
LAST_COUNT = 10  # of the last merge

#: Bits of ``numbers[RULES]``.
BLANKS_BEHIND, BLANKS_INSIDE, BLANKS_ALONE, ANY_SCRIPTS = 1, 2, 4, 8

#: The parts of ``Trainer.kind``: what a symbol may be joined to.
LENGTH_MASK = 0x3FF
FIRST_SCRIPT, LAST_SCRIPT, SCRIPT_MASK = 10, 18, 0xFF
BARRED, ALONE, BLANK_FIRST, BLANK_LAST, BLANKS = 26, 27, 28, 29, 30
#: Scripts: 0 for none (blanks and marks that take the script before them), 255 for one that goes with any.
NO_SCRIPT, ANY_SCRIPT = 0, 255

#: Bits of a key below the length.
KEY_SHIFT = 54

#: What :func:`merge_pairs` says.
DONE, EXHAUSTED, PAUSED, NO_PAIR_ROOM, NO_PLACE_ROOM, NO_HEAP_ROOM, NO_EVENT_ROOM = 0, 1, 2, 3, 4, 5, 6


class Trainer(NamedTuple):
    """All that training works on."""

    cells: NDArray[np.int32]  # [CELL * m] symbol, pair, weight of the word (negative: of `weights`), letter
    weights: NDArray[np.int64]  # [k] the weights that do not fit: ``weights[-w]``
    kind: NDArray[np.int64]  # [symbols] what a symbol may be joined to
    key: NDArray[np.uint64]  # [symbols] its first letters, the first one in the highest bits
    left_mark: NDArray[np.int32]  # [symbols] merge in which ``left_pair`` was set
    left_pair: NDArray[np.int32]  # [symbols] the pair of this symbol and the newest one
    right_mark: NDArray[np.int32]
    right_pair: NDArray[np.int32]
    count: NDArray[np.int64]  # [pairs]
    pair_key: NDArray[np.uint64]  # [pairs] length << KEY_SHIFT | first letters: the smaller comes first of equal counts
    where: NDArray[np.int32]  # [pairs] a cell at which the pair's letters begin
    left: NDArray[np.int32]  # [pairs] its halves
    right: NDArray[np.int32]  # [pairs]
    begin: NDArray[np.int64]  # [pairs] where its places begin
    n_places: NDArray[np.int32]  # [pairs]
    places: NDArray[np.int32]  # [p] cells
    heap_count: NDArray[np.int64]  # [h]
    heap_pair: NDArray[np.int32]  # [h]
    events: NDArray[np.int32]  # [2 * e] pair and place of what a merge brings
    piece_where: NDArray[np.int32]  # [merges] a cell at which the piece's letters begin
    piece_count: NDArray[np.int64]  # [merges] how often it occurred when it was made
    known: NDArray[np.int32]  # [2**k] hash table of pieces: number + 1
    numbers: NDArray[np.int64]  # [16]


# ----------------------------------------------------------------------------------------------------- laying out


@kernel
def cut_words(
    data: Any,
    indptr: Any,
    counts: Any,
    letter_of: Any,
    kind: Any,
    rules: int,
    first: int,
    starts: Any,
    ends: Any,
    weights: Any,
    n_parts: Any,
) -> int:
    """Cut words where no piece can reach across, so that fewer parts differ; parts of one letter are left out.

    Parameters
    ----------
    data, indptr, counts
        uint8[n_bytes], int64[n + 1], int64[n]: words, UTF-8.
    letter_of : int32[0x110000]
        The letter of each codepoint, `NOTHING` for those that no piece holds.
    kind : int64[letters]
        What they may be joined to.
    rules
        As in ``Trainer.numbers``.
    first
        The first word to cut.
    starts, ends, weights : int64[k]
        Receive where parts lie in `data`, and the counts of their words; `k` is at least the bytes of the longest word.
    n_parts : int64[1]
        Receives how many there are.

    Returns
    -------
    int
        The first word for which there was no room, `n` at the end. Linear.
    """
    n = np.int64(0)
    n_parts[0] = 0
    word = np.int64(first)
    while word < counts.shape[0]:
        at = np.int64(indptr[word])
        end = np.int64(indptr[word + 1])
        if n + end - at > starts.shape[0]:
            return word
        begin = at
        n_letters = 0
        last = np.int64(ANY_SCRIPT)
        while at <= end:
            letter = np.int64(NOTHING)
            width = np.int64(1)
            this = np.int64(0)
            if at < end:
                codepoint, width = codepoint_at(data, at)
                letter = np.int64(letter_of[codepoint])
                this = np.int64(kind[letter])
            script = this >> FIRST_SCRIPT & SCRIPT_MASK
            apart = letter == NOTHING or this & (1 << ALONE | 1 << BARRED) != 0
            if apart or (
                not rules & ANY_SCRIPTS
                and script != NO_SCRIPT
                and script != ANY_SCRIPT
                and last != ANY_SCRIPT
                and script != last
            ):
                if n_letters > 1:
                    starts[n] = begin
                    ends[n] = at
                    weights[n] = counts[word]
                    n += 1
                n_letters = 0
                begin = at + width if apart else at
            last = np.int64(ANY_SCRIPT) if apart else this >> LAST_SCRIPT & SCRIPT_MASK
            n_letters += 0 if apart else 1
            at += width
        word += 1
        n_parts[0] = n
    return word


@kernel
def lay_out_words(data: Any, indptr: Any, counts: Any, letter_of: Any, cells: Any, weights: Any) -> int:
    """Lay words out in cells.

    Parameters
    ----------
    data, indptr, counts
        uint8[n_bytes], int64[n + 1], int64[n]: words, UTF-8.
    letter_of : int32[0x110000]
        The letter of each codepoint, `NOTHING` for those that no piece holds.
    cells : int32[CELL * m]
        Receives them; `m` is two more than the codepoints of all words and their number.
    weights : int64[k]
        Receives counts that need more than 31 bits, from 1 on.

    Returns
    -------
    int
        The number of cells. A letter without a neighbour, which no merge can reach, takes none.
    """
    n = np.int64(1)
    n_weights = 0
    for k in range(CELL):
        cells[k] = NO_PAIR if k == PAIR else 0
    for i in range(counts.shape[0]):
        at = np.int64(indptr[i])
        end = np.int64(indptr[i + 1])
        weight = np.int64(counts[i])
        if weight >= 1 << 31:
            n_weights += 1
            weights[n_weights] = weight
            weight = np.int64(-n_weights)
        first = n
        while at <= end:
            letter = np.int64(NOTHING)
            if at < end:
                codepoint, width = codepoint_at(data, at)
                letter = np.int64(letter_of[codepoint])
                at += width
            else:
                at += 1
            if letter == NOTHING:
                if n - first < 2:
                    n = first
                    continue
            cells[CELL * n + SYMBOL] = letter
            cells[CELL * n + PAIR] = NO_PAIR
            cells[CELL * n + WEIGHT] = weight
            cells[CELL * n + LETTER] = letter
            n += 1
            if letter == NOTHING:
                first = n
    return n


@kernel
def check_cells(trainer: Any) -> int:
    """Whether symbols, pairs and marks, which are in range, agree with each other, so that no merge leaves the cells.

    Parameters
    ----------
    trainer : Trainer

    Returns
    -------
    int
        The number of cells, or that of the first one that is wrong; -1 for a pair, -2 for a mark.

    Notes
    -----
    Linear in cells and pairs.
    """
    cells, kind, numbers = trainer.cells, trainer.kind, trainer.numbers
    for pair in range(numbers[N_PAIRS]):
        length = (kind[trainer.left[pair]] & LENGTH_MASK) + (kind[trainer.right[pair]] & LENGTH_MASK)
        if length != np.int64(trainer.pair_key[pair] >> np.uint64(KEY_SHIFT)) or length > numbers[MOST_LETTERS]:
            return -1
    for symbol in range(kind.size):
        if trainer.left_mark[symbol] > numbers[N_PIECES] or trainer.right_mark[symbol] > numbers[N_PIECES]:
            return -2
    n = cells.size // CELL
    at = np.int64(0)
    while at < n:
        symbol = np.int64(cells[CELL * at + SYMBOL])
        pair = np.int64(cells[CELL * at + PAIR])
        length = max(np.int64(kind[symbol]) & LENGTH_MASK, 1)
        if symbol == NOTHING:
            if pair != NO_PAIR:
                return at
            at += 1
            continue
        # After the last cell of a symbol comes another cell: the last of all is empty.
        if at + length >= n or cells[CELL * (at + length - 1) + SYMBOL] != symbol:
            return at
        for inner in range(at + 1, at + length):
            if cells[CELL * inner + PAIR] != NO_PAIR:
                return inner
        following = cells[CELL * (at + length) + SYMBOL]
        if pair != NO_PAIR and (trainer.left[pair] != symbol or trainer.right[pair] != following):
            return at
        at += length
    return n


@helper
def joined_kind(a: int, b: int, rules: int, most: int) -> int:
    """What a piece of two symbols may be joined to, or -1 if it is not valid."""
    a = np.int64(a)
    b = np.int64(b)
    length = (a & LENGTH_MASK) + (b & LENGTH_MASK)
    blanks = (a >> BLANKS) + (b >> BLANKS)
    first = a >> FIRST_SCRIPT & SCRIPT_MASK
    last = a >> LAST_SCRIPT & SCRIPT_MASK
    second = b >> FIRST_SCRIPT & SCRIPT_MASK
    if (a | b) & (1 << BARRED | 1 << ALONE) or length > most:
        return np.int64(-1)
    starts = a >> BLANK_FIRST & 1
    ends = b >> BLANK_LAST & 1
    if blanks > 0 and not (blanks == length and rules & BLANKS_ALONE):
        if rules & BLANKS_INSIDE:
            if starts if rules & BLANKS_BEHIND else ends:
                return np.int64(-1)
        elif blanks > 1 or not (ends if rules & BLANKS_BEHIND else starts):
            return np.int64(-1)
    if second != NO_SCRIPT:
        if not rules & ANY_SCRIPTS and last != ANY_SCRIPT and second != ANY_SCRIPT and last != second:
            return np.int64(-1)
        last = b >> LAST_SCRIPT & SCRIPT_MASK
        if first == NO_SCRIPT:
            first = second
    return (
        length | first << FIRST_SCRIPT | last << LAST_SCRIPT | starts << BLANK_FIRST | ends << BLANK_LAST | blanks << BLANKS
    )


@helper
def joined_key(trainer: Any, a: int, b: int) -> np.uint64:
    """The first letters of two symbols together."""
    bits = np.int64(trainer.numbers[LETTER_BITS])
    shift = (np.int64(trainer.kind[a]) & LENGTH_MASK) * bits
    key = trainer.key[a]
    if shift < KEY_SHIFT:
        # Whole letters only.
        rest = (np.uint64(1) << np.uint64(KEY_SHIFT % bits)) - np.uint64(1)
        key |= trainer.key[b] >> np.uint64(shift) & ~rest
    return key


@inlined
def new_pair(trainer: Any, a: int, b: int, place: int) -> int:
    """Make the pair of two symbols that lie at `place`, without places or counts; `NO_PAIR` if its piece is not valid."""
    numbers = trainer.numbers
    kind = joined_kind(trainer.kind[a], trainer.kind[b], numbers[RULES], numbers[MOST_LETTERS])
    if kind < 0:
        return np.int64(NO_PAIR)
    pair = np.int64(numbers[N_PAIRS])
    numbers[N_PAIRS] = pair + 1
    trainer.count[pair] = 0
    trainer.pair_key[pair] = np.uint64(kind & LENGTH_MASK) << np.uint64(KEY_SHIFT) | joined_key(trainer, a, b)
    trainer.where[pair] = place
    trainer.left[pair] = a
    trainer.right[pair] = b
    trainer.n_places[pair] = 0
    return pair


@kernel
def find_pairs(trainer: Any, slot_key: Any, slot_pair: Any) -> int:
    """Find and count all pairs of letters.

    Parameters
    ----------
    trainer : Trainer
        With its cells laid out.
    slot_key : uint64[2**k]
        A hash table, zeros; at least twice the room for pairs.
    slot_pair : int32[2**k]
        Scratch.

    Returns
    -------
    int
        `DONE` or `NO_PAIR_ROOM`; then all is to be done again, with more room.
    """
    cells = trainer.cells
    numbers = trainer.numbers
    n_cells = cells.shape[0] // CELL
    n_letters = np.uint64(numbers[N_LETTERS])
    mask = np.uint64(slot_key.shape[0] - 1)
    most = slot_key.shape[0] >> 1
    used = 0
    numbers[N_PAIRS] = 0
    following = np.uint64(0)
    for i in range(n_cells - 1):
        letter = following
        following = np.uint64(cells[np.uint64(CELL * (i + 1) + LETTER)])
        if letter == 0 or following == 0:
            continue
        key = letter * n_letters + following
        at = (multiply(key, FACTOR_LOW) >> np.uint64(32)) & mask
        while slot_key[at] != key and slot_key[at] != 0:
            at = (at + np.uint64(1)) & mask
        if slot_key[at] == 0:
            if used == most or numbers[N_PAIRS] == trainer.count.shape[0]:
                return NO_PAIR_ROOM
            used += 1
            slot_key[at] = key
            slot_pair[at] = new_pair(trainer, np.int64(letter), np.int64(following), i)
        pair = np.int64(slot_pair[at])
        cells[np.uint64(CELL * i + PAIR)] = pair
        if pair >= 0:
            weight = np.int64(cells[np.uint64(CELL * i + WEIGHT)])
            trainer.count[np.uint64(pair)] += weight if weight >= 0 else np.int64(trainer.weights[-weight])
            trainer.n_places[np.uint64(pair)] += 1
    at_place = np.int64(0)
    for pair in range(numbers[N_PAIRS]):
        trainer.begin[pair] = at_place
        at_place += trainer.n_places[pair]
        trainer.n_places[pair] = 0
    numbers[N_PLACES] = at_place
    for i in range(n_cells):
        pair = np.int64(cells[np.uint64(CELL * i + PAIR)])
        if pair >= 0:
            n = np.int64(trainer.n_places[np.uint64(pair)])
            trainer.places[np.uint64(trainer.begin[np.uint64(pair)] + n)] = i
            trainer.n_places[np.uint64(pair)] = n + 1
    numbers[LEAST] = -1
    numbers[N_WAITING] = 0
    return DONE


# ------------------------------------------------------------------------------------------------------- the heap


@helper
def is_before(trainer: Any, p: int, q: int) -> bool:
    """Whether pair `p` goes before `q`, which occurs as often: the shorter piece, then the smaller, then left half."""
    if trainer.pair_key[p] != trainer.pair_key[q]:
        return trainer.pair_key[p] < trainer.pair_key[q]
    length = np.int64(trainer.pair_key[p] >> np.uint64(KEY_SHIFT))
    a = np.int64(trainer.where[p])
    b = np.int64(trainer.where[q])
    k = KEY_SHIFT // np.int64(trainer.numbers[LETTER_BITS])
    while k < length:
        if trainer.cells[CELL * (a + k) + LETTER] != trainer.cells[CELL * (b + k) + LETTER]:
            return trainer.cells[CELL * (a + k) + LETTER] < trainer.cells[CELL * (b + k) + LETTER]
        k += 1
    # The same piece in two ways: the reference takes either.
    left = np.int64(trainer.kind[trainer.left[p]]) & LENGTH_MASK
    return left < np.int64(trainer.kind[trainer.left[q]]) & LENGTH_MASK


@helper
def push(trainer: Any, n: int, count: int, pair: int) -> int:
    """Put an entry into the heap of `n` entries."""
    heap_count = trainer.heap_count
    heap_pair = trainer.heap_pair
    i = np.int64(n)
    while i > 0:
        parent = (i - 1) >> 1
        other = np.int64(heap_count[parent])
        if other > count or (other == count and not is_before(trainer, pair, heap_pair[parent])):
            break
        heap_count[i] = other
        heap_pair[i] = heap_pair[parent]
        i = parent
    heap_count[i] = count
    heap_pair[i] = pair
    return 0


@helper
def pop(trainer: Any, n: int) -> int:
    """Take the first of `n` entries out of the heap."""
    heap_count = trainer.heap_count
    heap_pair = trainer.heap_pair
    last = n - 1
    count = np.int64(heap_count[last])
    pair = np.int64(heap_pair[last])
    i = np.int64(0)
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        c = np.int64(heap_count[child])
        if child + 1 < last:
            d = np.int64(heap_count[child + 1])
            if d > c or (d == c and is_before(trainer, heap_pair[child + 1], heap_pair[child])):
                child += 1
                c = d
        if c < count or (c == count and not is_before(trainer, heap_pair[child], pair)):
            break
        heap_count[i] = c
        heap_pair[i] = heap_pair[child]
        i = child
    heap_count[i] = count
    heap_pair[i] = pair
    return 0


@helper
def fill_heap(trainer: Any) -> int:
    """Lower the least count and put the pairs in that wait now; 1, or 0 if there are none left, or -1 without room."""
    numbers = trainer.numbers
    before = np.int64(numbers[LEAST])
    if before == 0:
        return 0
    most = np.int64(-1)
    n_pairs = np.int64(numbers[N_PAIRS])
    for pair in range(n_pairs):
        most = max(most, np.int64(trainer.count[pair]))
    if most < 0:
        return 0
    least = most - (most >> 1) if most < 8 else most >> 2
    n = np.int64(0)
    for pair in range(n_pairs):
        if trainer.count[pair] >= least:
            n += 1
    if n > trainer.heap_pair.shape[0]:
        return -1
    n = np.int64(0)
    for pair in range(n_pairs):
        if trainer.count[pair] >= least:
            push(trainer, n, trainer.count[pair], pair)
            n += 1
    numbers[LEAST] = least
    numbers[N_WAITING] = n
    return 1


# ------------------------------------------------------------------------------------------------------ merging


@helper
def is_known(trainer: Any, pair: int) -> bool:
    """Whether there is a piece with the letters of a pair; if not, the next piece will be this one."""
    length = np.int64(trainer.pair_key[pair] >> np.uint64(KEY_SHIFT))
    place = np.int64(trainer.where[pair])
    value = np.uint64(length)
    for k in range(length):
        value = multiply(value ^ np.uint64(trainer.cells[CELL * (place + k) + LETTER]), FACTOR_LOW)
        value ^= value >> np.uint64(29)
    value = multiply(value, FACTOR_MIX)
    mask = np.uint64(trainer.known.shape[0] - 1)
    at = (value ^ value >> np.uint64(32)) & mask
    n_letters = np.int64(trainer.numbers[N_LETTERS])
    while trainer.known[at] > 0:
        piece = np.int64(trainer.known[at]) - 1
        if np.int64(trainer.kind[n_letters + piece]) & LENGTH_MASK == length:
            other = np.int64(trainer.piece_where[piece])
            k = np.int64(0)
            while k < length and trainer.cells[CELL * (place + k) + LETTER] == trainer.cells[CELL * (other + k) + LETTER]:
                k += 1
            if k == length:
                return True
        at = (at + np.uint64(1)) & mask
    trainer.known[at] = np.int64(trainer.numbers[N_PIECES]) + 1
    return False


@helper
def merge_everywhere(trainer: Any, pair: int, new: int) -> int:
    """Make a pair one symbol wherever it is, from left to right; how many events this brought.

    Counts of the pairs around are kept right; places of the new pairs are left in ``events``.
    """
    cells = trainer.cells
    count = trainer.count
    kind = trainer.kind
    events = trainer.events
    places = trainer.places
    mark = np.int64(trainer.numbers[N_PIECES]) + 1
    a_length = np.int64(kind[trainer.left[pair]]) & LENGTH_MASK
    length = np.int64(kind[new]) & LENGTH_MASK
    begin = np.int64(trainer.begin[pair])
    end_of_places = begin + np.int64(trainer.n_places[pair])
    n_events = np.int64(0)
    for k in range(begin, end_of_places):
        if k + AHEAD < end_of_places:
            prefetch(cells, CELL * np.int64(places[np.uint64(k + AHEAD)]))
        place = np.int64(places[np.uint64(k)])
        cell = np.uint64(CELL * place)
        if cells[cell + np.uint64(PAIR)] != pair:
            continue
        weight = np.int64(cells[cell + np.uint64(WEIGHT)])
        if weight < 0:
            weight = np.int64(trainer.weights[-weight])
        middle = np.uint64(CELL * (place + a_length))
        end = np.uint64(CELL * (place + length))
        before = np.int64(cells[cell - np.uint64(CELL)])
        after = np.int64(cells[end])
        cells[middle] = new
        cells[end - np.uint64(CELL)] = new
        cells[cell] = new
        old = np.int64(cells[middle + np.uint64(PAIR)])
        cells[middle + np.uint64(PAIR)] = NO_PAIR
        fresh = np.int64(NO_PAIR)
        if after != NOTHING:
            if old >= 0:
                count[np.uint64(old)] -= weight
            if trainer.right_mark[np.uint64(after)] != mark:
                trainer.right_mark[np.uint64(after)] = mark
                trainer.right_pair[np.uint64(after)] = new_pair(trainer, new, after, place)
            fresh = np.int64(trainer.right_pair[np.uint64(after)])
            if fresh >= 0:
                count[np.uint64(fresh)] += weight
                trainer.n_places[np.uint64(fresh)] += 1
                events[np.uint64(2 * n_events)] = fresh
                events[np.uint64(2 * n_events + 1)] = place
                n_events += 1
        cells[cell + np.uint64(PAIR)] = fresh
        if before != NOTHING:
            start = place - (np.int64(kind[np.uint64(before)]) & LENGTH_MASK)
            there = np.uint64(CELL * start + PAIR)
            old = np.int64(cells[there])
            if old >= 0:
                count[np.uint64(old)] -= weight
            if trainer.left_mark[np.uint64(before)] != mark:
                trainer.left_mark[np.uint64(before)] = mark
                trainer.left_pair[np.uint64(before)] = new_pair(trainer, before, new, start)
            fresh = np.int64(trainer.left_pair[np.uint64(before)])
            cells[there] = fresh
            if fresh >= 0:
                count[np.uint64(fresh)] += weight
                trainer.n_places[np.uint64(fresh)] += 1
                events[np.uint64(2 * n_events)] = fresh
                events[np.uint64(2 * n_events + 1)] = start
                n_events += 1
    return n_events


@kernel
def merge_pairs(trainer: Any, n_merges: int, budget: int) -> int:
    """Merge the most frequent pair, again and again.

    Parameters
    ----------
    trainer : Trainer
    n_merges
        Merges to have made in the end, at most as many as there is room for pieces.
    budget
        Places to look at before it pauses.

    Returns
    -------
    int
        `DONE`; `EXHAUSTED` if there are no pairs left; `PAUSED`; or which room is lacking: then it goes on when there
        is twice as much.

    Notes
    -----
    Pairs that do not occur any more come last. A merge costs its places and log(pairs).
    """
    numbers = trainer.numbers
    places = trainer.places
    n_letters = np.int64(numbers[N_LETTERS])
    while numbers[N_PIECES] < n_merges:
        if budget <= 0:
            return PAUSED
        if numbers[N_WAITING] == 0:
            filled = fill_heap(trainer)
            budget -= np.int64(numbers[N_PAIRS]) >> 3
            if filled <= 0:
                return EXHAUSTED if filled == 0 else NO_HEAP_ROOM
        pair = np.int64(trainer.heap_pair[0])
        counted = np.int64(trainer.heap_count[0])
        count = np.int64(trainer.count[pair])
        n_waiting = np.int64(numbers[N_WAITING])
        if counted != count:
            pop(trainer, n_waiting)
            n_waiting -= 1
            if count >= numbers[LEAST]:
                push(trainer, n_waiting, count, pair)
                n_waiting += 1
            numbers[N_WAITING] = n_waiting
            continue
        # Each place brings two pairs and two places at most.
        n = np.int64(trainer.n_places[pair])
        n_pairs = np.int64(numbers[N_PAIRS])
        if n_pairs + 2 * min(n, n_letters + numbers[N_PIECES] + 1) > trainer.count.shape[0]:
            return NO_PAIR_ROOM
        if numbers[N_PLACES] + 2 * n > places.shape[0]:
            return NO_PLACE_ROOM
        if 4 * n > trainer.events.shape[0]:
            return NO_EVENT_ROOM
        if n_waiting + 2 * min(n, n_letters + numbers[N_PIECES] + 1) > trainer.heap_pair.shape[0]:
            return NO_HEAP_ROOM
        pop(trainer, n_waiting)
        n_waiting -= 1
        numbers[N_WAITING] = n_waiting
        if is_known(trainer, pair):
            trainer.count[pair] = GONE
            numbers[N_DUPLICATES] += 1
            continue
        budget -= n + 16
        piece = np.int64(numbers[N_PIECES])
        new = n_letters + piece
        place = np.int64(trainer.where[pair])
        length = np.int64(trainer.pair_key[pair] >> np.uint64(KEY_SHIFT))
        trainer.piece_where[piece] = place
        trainer.piece_count[piece] = count
        trainer.kind[new] = length
        trainer.key[new] = trainer.pair_key[pair] & np.uint64((1 << KEY_SHIFT) - 1)
        trainer.count[pair] = GONE
        if count > 0:
            a = np.int64(trainer.kind[trainer.left[pair]])
            b = np.int64(trainer.kind[trainer.right[pair]])
            trainer.kind[new] = joined_kind(a, b, numbers[RULES], numbers[MOST_LETTERS])
            n_events = merge_everywhere(trainer, pair, new)
            at = np.int64(numbers[N_PLACES])
            for fresh in range(n_pairs, numbers[N_PAIRS]):
                trainer.begin[fresh] = at
                at += trainer.n_places[fresh]
                trainer.n_places[fresh] = 0
                if trainer.count[fresh] >= numbers[LEAST]:
                    push(trainer, n_waiting, trainer.count[fresh], fresh)
                    n_waiting += 1
            for k in range(n_events):
                fresh = np.int64(trainer.events[2 * k])
                places[trainer.begin[fresh] + trainer.n_places[fresh]] = trainer.events[2 * k + 1]
                trainer.n_places[fresh] += 1
            numbers[N_PLACES] = at
            numbers[N_WAITING] = n_waiting
        numbers[N_PIECES] = piece + 1
        numbers[LAST_COUNT] = count
    return DONE
