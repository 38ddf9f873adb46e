"""Finding added tokens in text: the longest at the leftmost place, again and again, in linear time.

The automaton is that of Aho and Corasick over the *reversed* tokens, and it reads the text from right to
left. At each position its state then knows the longest token that starts there, whatever the text and the
tokens are; a sweep from left to right picks those that do not overlap. Reading forwards instead would have
to go back after each failed attempt at a longer token, which is quadratic for tokens such as "a" and
"aaaaaaab".

It suits tokens that end alike, as ``<|end|>`` and others of its kind do: places where none ends are passed over
quickly. Tokens that end in many ways are found by how they begin, see :mod:`jittok.kernels.added_prefixes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import equal_bits, highest_bit
from jittok.kernels.utf8 import codepoint_at, is_space, start_before
from jittok.tables import (
    ADDED_TOKENS_ASCII_SPACE,
    ADDED_TOKENS_MAX_LENGTH,
    ADDED_TOKENS_SKIPPING,
    TOKEN_SINGLE_WORD,
    TOKEN_STRIP_LEFT,
    TOKEN_STRIP_RIGHT,
)

#: Text is read in windows of at least this many bytes, which bounds the memory for candidates.
WINDOW = 4096

WORD = 8
SPACE = 16

#: How many kinds of token endings the search compares at most.
MAX_ENDINGS = 8

#: Positions in the state of a search.
BEGIN = 0  # of the segment
END = 1
LOW = 2  # where the next match may start
TAKEN = 3  # end of the previous row
SPACE_START = 4  # a run of white space that was measured already
SPACE_END = 5
COUNT = 6  # rows
WORK = 7  # looks into a table of tokens
STATE = 8


@helper
def _character(word_page_of: Any, word_class_of: Any, data: Any, position: Any) -> int:
    """What stands at `position`: its length in bytes, plus WORD for a word character, plus SPACE."""
    codepoint, width = codepoint_at(data, position)
    if is_space(codepoint):
        return width | SPACE
    page = np.int64(word_page_of[codepoint >> 7])
    return width | (WORD * np.int64(word_class_of[(page << 7) | (codepoint & 127)]))


@helper
def _last_ending(data: Any, low: Any, position: Any, endings: Any) -> int:
    """Where the last place after `low` and up to `position` is that a token may end at; `low` if there is none.

    The byte before the last one of a token is not looked at where it lies in another block.
    """
    one = np.uint64(1)
    while position > low:
        base = position - 64 if position - 64 > low else low
        if base + 64 > data.shape[0]:
            return position  # no room to read a block
        found = np.uint64(0)
        for e in range(endings.shape[0]):
            equal = equal_bits(data, base, endings[e, 0])
            if endings[e, 1]:
                equal &= (equal_bits(data, base, endings[e, 2]) << one) | one
            found |= equal
        if position - base < 64:  # the block holds bytes after `position`
            found &= (one << np.uint64(position - base)) - one
        if found:
            return base + highest_bit(found) + 1
        position = base
    return low


@inlined
def begin_segment(state: Any, begin: int, end: int) -> int:
    """Make ready for another segment."""
    state[BEGIN] = begin
    state[END] = end
    for place in (LOW, TAKEN, SPACE_START, SPACE_END):
        state[place] = begin
    return 0


@inlined
def take_match(tables: Any, enabled: Any, data: Any, segment: int, match: int, token: int, state: Any, out: Any) -> int:
    """Write the row of a match, the leftmost from LOW on and the longest there, if it counts; move LOW behind it."""
    if not enabled[token]:
        if tables.numbers[ADDED_TOKENS_SKIPPING]:
            state[LOW] = match + tables.lengths[token]
            return 0
        while token >= 0 and not enabled[token]:
            token = tables.shorter[token]
        if token < 0:
            return 0
    begin = state[BEGIN]
    end = state[END]
    start = match
    stop = match + tables.lengths[token]
    state[LOW] = stop
    flags = tables.flags[token]
    if flags & TOKEN_SINGLE_WORD:
        touched = 0
        if start > begin:
            touched = _character(tables.word_page_of, tables.word_class_of, data, start_before(data, start))
        if stop < end:
            touched |= _character(tables.word_page_of, tables.word_class_of, data, stop)
        if touched & WORD:
            return 0
    if flags & (TOKEN_STRIP_LEFT | TOKEN_STRIP_RIGHT):
        # A character of white space: its length in bytes with SPACE.
        most_space = SPACE | 1 if tables.numbers[ADDED_TOKENS_ASCII_SPACE] else SPACE | 7
        if flags & TOKEN_STRIP_LEFT:
            taken = state[TAKEN]
            if start < taken:
                start = taken
            while start > taken:
                previous = start_before(data, start)
                character = _character(tables.word_page_of, tables.word_class_of, data, previous)
                if character & SPACE == 0 or character > most_space:
                    break
                start = previous
        if flags & TOKEN_STRIP_RIGHT:
            if stop < state[SPACE_START] or stop > state[SPACE_END]:
                space_end = stop
                while space_end < end:
                    character = _character(tables.word_page_of, tables.word_class_of, data, space_end)
                    if character & SPACE == 0 or character > most_space:
                        break
                    space_end += character & 7
                state[SPACE_START] = stop
                state[SPACE_END] = space_end
            stop = state[SPACE_END]
        if start >= stop:  # its text is all taken already
            return 0
    count = state[COUNT]
    out[count, 0] = segment
    out[count, 1] = start
    out[count, 2] = stop
    out[count, 3] = tables.ids[token]
    state[COUNT] = count + 1
    state[TAKEN] = stop
    return 0


@kernel
def may_hold_added_tokens(endings: Any, data: Any, starts: Any, ends: Any, first: Any, last: Any) -> int:
    """Say whether any of the segments ``first <= i < last`` may hold an added token; see AddedTokenTables.endings.

    Returns 1 or 0, at several GB/s. It is small and so quick to compile; most text needs no more.
    """
    n_endings = endings.shape[0]
    if n_endings == 0:
        return 1
    for segment in range(first, last):
        begin = starts[segment]
        end = ends[segment]
        if begin == end:
            continue
        found = np.uint64(0)
        for e in range(n_endings):
            ending = endings[e, 0]
            has_before = endings[e, 1]
            before = endings[e, 2]
            if has_before == 0 and data[begin] == ending:
                return 1
            base = begin + 1
            while base < end:
                beyond = base + 64 - end
                if beyond > 0:
                    # The last block begins so much earlier; or holds bytes after the segment, which count for nothing.
                    if base - beyond > begin:
                        base -= beyond
                        beyond = 0
                    elif base + 64 > data.shape[0]:
                        return 1  # no room to read a block
                equal = equal_bits(data, base, ending)
                if has_before:
                    equal &= equal_bits(data, base - 1, before)
                if beyond > 0:
                    equal &= (np.uint64(1) << np.uint64(64 - beyond)) - np.uint64(1)
                found |= equal
                base += 64
        if found != 0:
            return 1
    return 0


@kernel
def find_added_tokens(
    tables: Any, enabled: Any, data: Any, starts: Any, ends: Any, first: Any, last: Any, state: Any, out: Any
) -> int:
    """Find the added tokens in segments of text.

    In each segment, tokens are found from left to right, at each place the longest, without overlap. A
    token with TOKEN_SINGLE_WORD counts only where no word character touches it; TOKEN_STRIP_LEFT and
    TOKEN_STRIP_RIGHT extend it over white space, on the left not beyond the end of the previous token. Where
    the white space taken on the right begins another token, that other token is reported too, so rows may
    overlap; the text that remains is what lies between the end of a row and the start of the next, where that
    is positive.

    Parameters
    ----------
    tables : AddedTokenTables
    enabled : bool[n_tokens]
        Which tokens are wanted, in the order they were built from. Where the tables were built with
        `skipping`, another token that is found is left in the text, and nothing is looked for inside it;
        otherwise the longest wanted token at each place is taken.
    data : uint8[n_bytes]
        Valid UTF-8.
    starts, ends : int64[n_segments]
        Segments as byte ranges of `data`, at boundaries of characters.
    first, last : int
        Only the segments ``first <= i < last`` are searched.
    state : int64[STATE]
        Scratch.
    out : int64[capacity, 4]
        Receives rows (segment, start byte, end byte, token id) in order; its end serves as scratch space.

    Returns
    -------
    int
        The number of rows; or a negative number when `out` is too small: call again with a new array of
        that many rows (positive). Sizes at least double, so the total cost stays linear.

    Notes
    -----
    Time is linear in the bytes of the segments, and with tokens of up to `WINDOW` bytes memory is that of
    the rows plus at most `WINDOW` candidates. Where no token is near, a byte costs a look at the kinds of endings, if
    these are few, and the automaton does not run. Built without `skipping`, tokens not enabled that begin with
    each other cost one step for each such prefix. Source: A. Aho, M. Corasick, "Efficient string matching",
    1975; the rules are those of tokenizers 0.23.3 and tiktoken 0.14.0.
    """
    capacity = out.shape[0]
    state[COUNT] = 0
    if tables.ids.shape[0] == 0:
        return 0
    max_length = tables.numbers[ADDED_TOKENS_MAX_LENGTH]
    window = WINDOW if max_length < WINDOW else max_length
    child_start = tables.child_start
    labels = tables.labels
    fallback = tables.fallback
    longest = tables.longest
    root_next = tables.root_next
    endings = tables.endings
    filtered = endings.shape[0] > 0
    for segment in range(first, last):
        begin = starts[segment]
        end = ends[segment]
        begin_segment(state, begin, end)
        low = begin  # start of the window
        while low < end:
            middle = low + window if low + window < end else end
            high = middle + max_length - 1 if middle + max_length - 1 < end else end
            # From right to left: every place where a token starts, and the longest such token, from the end of
            # `out` downwards.
            found = 0
            node = 0
            position = high
            while position > low:
                if node == 0 and filtered:
                    position = _last_ending(data, low, position, endings)
                    if position == low:
                        break
                position -= 1
                byte = data[position]
                child = 0
                while node != 0:
                    child = child_start[node]
                    past = child_start[node + 1]
                    while child < past and labels[child] < byte:
                        half = (child + past) >> 1
                        if labels[half] < byte:
                            child = half + 1
                        else:
                            past = half
                    if child < child_start[node + 1] and labels[child] == byte:
                        break
                    node = fallback[node]
                node = child if node != 0 else root_next[byte]
                if node != 0 and longest[node] >= 0 and position < middle:
                    if state[COUNT] + found == capacity:
                        return -(2 * capacity + WINDOW)
                    found += 1
                    out[capacity - found, 1] = position
                    out[capacity - found, 3] = longest[node]
            # From left to right: those that do not overlap.
            for row in range(capacity - found, capacity):
                match = out[row, 1]
                if match >= state[LOW]:
                    take_match(tables, enabled, data, segment, match, out[row, 3], state, out)
            if state[LOW] < middle:
                state[LOW] = middle
            low = state[LOW]
    return state[COUNT]


@kernel
def build_automaton(
    order: Any, indptr: Any, data: Any, child_start: Any, labels: Any, fallback: Any, longest: Any, strings: Any,
    current: Any,
) -> int:  # fmt: skip
    """Build the automaton of distinct tokens, read backwards.

    Parameters
    ----------
    order : int32[n]
        The tokens, sorted by what they are when read backwards; not empty.
    indptr : int64[n_tokens + 1], data : uint8[m]
        Token i is ``data[indptr[i]:indptr[i + 1]]``.
    child_start : int32[n_bytes + 2], labels : uint8[n_bytes + 1], fallback, longest : int32[n_bytes + 1]
        Output, see :class:`AddedTokenTables`; of the `n_bytes` that these tokens have in all.
    strings : uint8[n_bytes]
        Scratch: the tokens backwards, one after another.
    current : int32[4, n]
        Scratch, for each token that is longer than the present depth: where its next byte and its end are in
        `strings`, its state, and its number.

    Returns
    -------
    int
        The number of states. Time is linear in `n_bytes`, times the logarithm of the number of children.
    """
    n_active = order.shape[0]
    at = 0
    for i in range(n_active):
        token = order[i]
        current[0, i] = at
        for place in range(indptr[token + 1] - 1, indptr[token] - 1, -1):
            strings[at] = data[place]
            at += 1
        current[1, i] = at
        current[2, i] = 0
        current[3, i] = token
    n_states = 1
    fallback[0] = 0
    longest[0] = -1
    child_start[0] = 1
    closed = 0  # states below this one know where their children start
    while n_active > 0:
        kept = 0
        parent = -1
        label = -1
        for i in range(n_active):
            at = int(current[0, i])
            byte = int(strings[at])
            state = int(current[2, i])
            if state != parent or byte != label:
                while closed < state:
                    closed += 1
                    child_start[closed] = n_states
                parent = state
                label = byte
                labels[n_states] = byte
                longest[n_states] = -1
                # The fallback: the first state on the parent's chain that has such a child.
                chain = state
                fallback[n_states] = 0
                while chain != 0:
                    chain = int(fallback[chain])
                    first = int(child_start[chain])
                    last = int(child_start[chain + 1])
                    past = last
                    while first < last:
                        half = (first + last) >> 1
                        if int(labels[half]) < byte:
                            first = half + 1
                        else:
                            last = half
                    if first < past and int(labels[first]) == byte:
                        fallback[n_states] = first
                        break
                n_states += 1
            if at + 1 == int(current[1, i]):
                longest[n_states - 1] = current[3, i]
            else:
                current[0, kept] = at + 1
                current[1, kept] = current[1, i]
                current[2, kept] = n_states - 1
                current[3, kept] = current[3, i]
                kept += 1
        n_active = kept
    while closed < n_states:
        closed += 1
        child_start[closed] = n_states
    for state in range(1, n_states):
        if longest[state] < 0:
            longest[state] = longest[fallback[state]]
    return n_states
