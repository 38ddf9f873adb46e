"""Cut text into pre-tokens, a chunk of up to 1,920 codepoints at a time.

A chunk holds pieces of segments one after another, each complete segment followed by one *edge* entry, which
stands for the end of one text and the beginning of the next. Entries are codepoints or edges. They have *places*
from LEAD on, and masks have a bit for each place; where the chunk is ASCII, places are text offsets too. A boundary
found is a true one whatever came before it, so the next chunk may begin at the last boundary of this one as if a text
began there.

An entry is a byte: that of an ASCII character, ``0x80 | class`` for any other codepoint, EDGE_BYTE for an edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import (
    and_masks,
    copy_block,
    count_bits,
    equal_bits,
    has_wide_vectors,
    highest_bit,
    load64,
    mask_ahead,
    mask_back,
    not_mask,
    or_masks,
    put_entries,
    put_places,
    run_mask_code,
    trailing_zeros,
)
from jittok.memory import aligned_zeros
from jittok.tables import (
    DECIDED,
    EDGE_BYTE,
    END_CLASS,
    MASK_AHEAD,
    MASK_AND,
    MASK_BACK,
    MASK_BASE,
    MASK_OR,
    MASK_STRIDE,
    START,
    UNDECIDED,
)

#: Entries in a chunk, at most: with 64 edges before and at least one after, they fill masks of 2,048 bits.
CHUNK = 1920
#: Places before the first entry: edges, so that masks can look back.
LEAD = 64
#: A segment is begun in the rest of a chunk only if it fits, or at least this many entries are left.
WORTH_STARTING = 256

#: Of a block of 64 bytes, so few are no gain; after such a block, so many bytes are loaded character by character.
FEW_TAKEN = 24
ONE_BY_ONE = 512

HIGH_BITS = np.uint64(0x8080808080808080)

#: Positions in ``Chunk.state``.
SEGMENT = 0  # the segment that the next chunk begins in
POSITION = 1  # the byte of data where it begins
STOP = 2  # the place after the last entry
PIECES = 3
COMPLETE = 4  # 1 if the last piece ends its segment
ASCII = 5  # 1 if places are text offsets
WORDS = 6  # complete pre-tokens, edges included
STATE_SIZE = 24


class Chunk(NamedTuple):
    """Scratch arrays of one worker for splitting."""

    state: NDArray[np.int64]
    text: NDArray[np.uint8]  # [4 * CHUNK + 256] LEAD edges, then the chunk's bytes and edges
    entries: NDArray[np.uint8]  # [2048 + 128] the entry at each place, unless ASCII: then they are the text
    classes: NDArray[np.uint8]  # [2048 + 128] the class of the entry at each place, where the automaton needs it
    masks: NDArray[np.uint64]  # [MASK_BASE + n_masks * MASK_STRIDE]
    offset: NDArray[np.int32]  # [2048 + 80] text offset of the entry at each place, unless ASCII
    word: NDArray[np.int32]  # [CHUNK + 80] text offset where each pre-token begins, and the end of the last
    piece_segment: NDArray[np.int64]  # [CHUNK]
    piece_end_word: NDArray[np.int32]  # [CHUNK] number of the word that is the piece's edge, or WORDS
    piece_edge: NDArray[np.int32]  # [CHUNK] place of the piece's edge
    piece_shift: NDArray[np.int64]  # [CHUNK] data position minus text offset
    code: NDArray[np.int64]  # [1] address of the mask program's machine code; 0: there is none


def new_chunk(n_masks: int) -> Chunk:
    """Allocate scratch arrays for a mask program with so many masks."""
    text = aligned_zeros(4 * CHUNK + 256, np.uint8)
    text[:] = EDGE_BYTE
    return Chunk(
        state=np.zeros(STATE_SIZE, np.int64),
        text=text,
        entries=np.full(2048 + 128, EDGE_BYTE, np.uint8),
        classes=np.zeros(2048 + 128, np.uint8),
        masks=aligned_zeros(MASK_BASE + n_masks * MASK_STRIDE, np.uint64),
        offset=np.zeros(2048 + 80, np.int32),
        word=np.zeros(CHUNK + 80, np.int32),
        piece_segment=np.zeros(CHUNK, np.int64),
        piece_end_word=np.zeros(CHUNK, np.int32),
        piece_edge=np.zeros(CHUNK, np.int32),
        piece_shift=np.zeros(CHUNK, np.int64),
        code=np.zeros(1, np.int64),
    )


@helper
def decode_codepoint(data: Any, at: int) -> int:
    """The codepoint at byte `at`, times 8, plus its length in bytes. The bytes must be valid UTF-8."""
    first = np.int64(data[np.uint64(at)])
    if first < 0x80:
        return first << 3 | 1
    second = np.int64(data[np.uint64(at + 1)]) & 63
    if first < 0xE0:
        return ((first & 31) << 6 | second) << 3 | 2
    third = np.int64(data[np.uint64(at + 2)]) & 63
    if first < 0xF0:
        return ((first & 15) << 12 | second << 6 | third) << 3 | 3
    return ((first & 7) << 18 | second << 12 | third << 6 | (np.int64(data[np.uint64(at + 3)]) & 63)) << 3 | 4


@helper
def copy_bytes(target: Any, to: int, source: Any, at: int, n: int) -> np.uint64:
    """Copy `n` bytes of a uint8 array into another; returns a number that is not 0 if one of them is 0x80 or more."""
    beyond_ascii = np.uint64(0)
    if n >= 64:
        for i in range(0, n - 63, 64):
            beyond_ascii |= copy_block(target, to + i, source, at + i)
        beyond_ascii |= copy_block(target, to + n - 64, source, at + n - 64)
    else:
        for i in range(n):
            byte = source[np.uint64(at + i)]
            target[np.uint64(to + i)] = byte
            beyond_ascii |= np.uint64(byte & 0x80)
    return beyond_ascii


@inlined
def load_chunk(split: Any, data: Any, starts: Any, ends: Any, last: int, chunk: Any) -> int:
    """Fill the chunk from SEGMENT and POSITION on with segments before `last`; returns the place after its last entry.

    Linear in the bytes taken. Afterwards SEGMENT and POSITION say where the last piece ends (or the next segment
    begins, if that piece is complete).
    """
    text = chunk.text
    entries = chunk.entries
    offset = chunk.offset
    state = chunk.state
    class_of = split.class_of
    segment = state[SEGMENT]
    at = state[POSITION]
    n = np.int64(LEAD)
    size = np.int64(LEAD)
    pieces = 0
    is_ascii = True
    complete = True
    while segment < last and n < LEAD + CHUNK - 1:
        end = ends[segment]
        room = LEAD + CHUNK - 1 - n
        if pieces > 0 and room < WORTH_STARTING and end - at > room:
            break
        begin = at
        chunk.piece_segment[pieces] = segment
        chunk.piece_shift[pieces] = at - size
        take = min(end - at, room)
        beyond_ascii = copy_bytes(text, size, data, at, take)
        if beyond_ascii == 0 and is_ascii:
            n += take
            at += take
        else:
            if is_ascii:
                # From here on the chunk has entries of its own, and offsets; what is loaded already is given them.
                is_ascii = False
                copy_bytes(entries, LEAD, text, LEAD, n - LEAD)
                for i in range(LEAD, n):
                    offset[np.uint64(i)] = i
            shift = size - at
            one_by_one = at
            while at < end and room > 0:
                if has_wide_vectors() and at >= one_by_one and room >= 64 and at + 72 <= end:
                    both = np.int64(put_entries(entries, offset, n, data, at, shift, split.page_of, class_of))
                    n = both & 0xFFFFFFFF
                    taken = both >> 32
                    if taken < 64:
                        at += taken
                        if taken < FEW_TAKEN:
                            # Characters of many kinds, as Chinese text has: one by one is faster for a while.
                            one_by_one = at + ONE_BY_ONE
                    else:
                        # Not `taken`, so that the next block need not wait for this one.
                        at += 64
                        # The last character may reach beyond the block, by three bytes at most.
                        rest = load64(data, at)
                        reaches = np.int64(rest & np.uint64(0xC0) == np.uint64(0x80))
                        at += reaches
                        reaches &= np.int64(rest & np.uint64(0xC000) == np.uint64(0x8000))
                        at += reaches
                        at += reaches & np.int64(rest & np.uint64(0xC00000) == np.uint64(0x800000))
                    room = LEAD + CHUNK - 1 - n
                    continue
                byte = np.int64(data[np.uint64(at)])
                if byte >= 0x80:
                    coded = decode_codepoint(data, at)
                    codepoint = coded >> 3
                    page = np.int64(split.page_of[np.uint64(codepoint >> 7)])
                    entries[np.uint64(n)] = class_of[np.uint64(page << 7 | (codepoint & 127))] | 0x80
                    offset[np.uint64(n)] = at + shift
                    n += 1
                    at += coded & 7
                    room -= 1
                elif room >= 64 and at + 64 <= end and load64(data, at) & HIGH_BITS == 0:
                    # ASCII for a while: 64 entries at once, of which those before the next other codepoint count.
                    run = trailing_zeros(copy_block(entries, n, data, at))
                    for i in range(64):
                        offset[np.uint64(n + i)] = at + shift + i
                    n += run
                    at += run
                    room -= run
                else:
                    entries[np.uint64(n)] = byte
                    offset[np.uint64(n)] = at + shift
                    n += 1
                    at += 1
                    room -= 1
            if at - begin > take:
                copy_bytes(text, size + take, data, begin + take, at - begin - take)
        size += at - begin
        complete = at == end
        if complete:
            entries[n] = EDGE_BYTE
            offset[n] = size
            text[size] = EDGE_BYTE
            chunk.piece_edge[pieces] = n
            n += 1
            size += 1
            segment += 1
            if segment < last:
                at = starts[segment]
        pieces += 1
        if not complete:
            break
    offset[n] = size
    # Edges up to the end of the word after the last entry.
    if is_ascii:
        for i in range(n, (n + 128) & ~63):
            text[np.uint64(i)] = EDGE_BYTE
    else:
        for i in range(n, (n + 128) & ~63):
            entries[np.uint64(i)] = EDGE_BYTE
    state[SEGMENT] = segment
    state[POSITION] = at
    state[STOP] = n
    state[PIECES] = pieces
    state[COMPLETE] = 1 if complete else 0
    state[ASCII] = 1 if is_ascii else 0
    return n


@inlined
def match_end(
    transitions: Any, entry_class: Any, start: int, entries: Any, first: int, stop: int, complete: int
) -> int:
    """End of the match that begins at place `first`; `first` if there is none, -1 if the chunk ends too soon."""
    state = np.uint64(start)
    end = first
    at = first
    while at < stop:
        entry = transitions[state + np.uint64(entry_class[np.uint64(entries[np.uint64(at)])])]
        if entry & np.uint32(1):
            end = at
        state = np.uint64(entry >> np.uint32(1))
        if state == 0:
            return end
        at += 1
    return end if complete else -1


@inlined
def next_boundary(
    transitions: Any,
    entry_class: Any,
    start: int,
    entries: Any,
    first: int,
    stop: int,
    complete: int,
    end_class: int,
) -> int:
    """The boundary after the one at place `first`, by the automaton; -1 if the chunk ends too soon.

    Codepoints that no match covers make one pre-token, up to the next match (an empty one too) or the edge.
    """
    end = match_end(transitions, entry_class, start, entries, first, stop, complete)
    if end != first:
        return end
    at = first + 1
    while at < stop:
        kind = np.int64(entry_class[np.uint64(entries[np.uint64(at)])])
        if kind == end_class or transitions[np.uint64(start + kind)] & np.uint32(1):
            return at
        end = match_end(transitions, entry_class, start, entries, at, stop, complete)
        if end < 0:
            return -1
        if end != at:
            return at
        at += 1
    return at if complete else -1


@inlined
def find_classes(split: Any, chunk: Any) -> int:
    """Fill ``chunk.classes`` from the entries, up to the end of the word after the last."""
    classes = chunk.classes
    entry_class = split.entry_class
    entries = chunk.text if chunk.state[ASCII] else chunk.entries
    for i in range((chunk.state[STOP] + 128) & ~63):
        classes[np.uint64(i)] = entry_class[np.uint64(entries[np.uint64(i)])]
    return 0


@inlined
def run_program(split: Any, chunk: Any, words: int) -> int:
    """Run the mask program over the places of the chunk, whose classes are known; `words` of each mask matter.

    The masks of the classes come first. Then each operation costs a few vector instructions, on whole masks. This
    serves until there is machine code for the program, see :mod:`jittok._mask_code`.
    """
    masks = chunk.masks
    program = split.program
    for kind in range(split.numbers[END_CLASS] + 1):
        result = MASK_BASE + kind * MASK_STRIDE
        for word in range(words):
            masks[np.uint64(result + word)] = equal_bits(chunk.classes, word << 6, kind)
    for row in range(0, program.size, 4):
        operation = program[row]
        result = MASK_BASE + np.int64(program[row + 1]) * MASK_STRIDE
        first = MASK_BASE + np.int64(program[row + 2]) * MASK_STRIDE
        other = np.int64(program[row + 3])
        second = MASK_BASE + other * MASK_STRIDE
        if operation == MASK_OR:
            or_masks(masks, result, first, second)
        elif operation == MASK_AND:
            and_masks(masks, result, first, second)
        elif operation == MASK_BACK:
            mask_back(masks, result, first, other)
        elif operation == MASK_AHEAD:
            mask_ahead(masks, result, first)
        else:
            not_mask(masks, result, first)
    return 0


@inlined
def settle(split: Any, chunk: Any, decided: int, undecided: int, limit: int) -> int:
    """Run the automaton where the masks do not decide, and add the boundaries it finds.

    Returns the place up to which all is settled: `limit`, or less if the chunk ends before the automaton knows.
    """
    masks = chunk.masks
    transitions = split.transitions
    entry_class = split.entry_class
    entries = chunk.text if chunk.state[ASCII] else chunk.entries
    start = split.numbers[START]
    end_class = split.numbers[END_CLASS]
    stop = chunk.state[STOP]
    complete = chunk.state[COMPLETE]
    known = np.int64(-1)
    word = np.int64(1)
    while word << 6 < limit:
        bits = masks[undecided + word]
        if bits == 0:
            word += 1
            continue
        masks[undecided + word] = bits & (bits - np.uint64(1))
        at = (word << 6) + trailing_zeros(bits)
        if at >= limit:
            break
        if at <= known:
            continue
        # The last boundary before it: there always is one, the first entry is a boundary.
        from_word = word
        below = masks[decided + word] & ((np.uint64(1) << np.uint64(at & 63)) - np.uint64(1))
        while below == 0:
            from_word -= 1
            below = masks[decided + from_word]
        boundary = (from_word << 6) + highest_bit(below)
        while boundary < at:
            following = next_boundary(
                transitions, entry_class, start, entries, boundary, stop, complete, end_class
            )
            if following < 0:
                # What follows `boundary` goes into the next chunk.
                return boundary + 1
            boundary = following
            masks[decided + (boundary >> 6)] |= np.uint64(1) << np.uint64(boundary & 63)
        known = boundary
    return limit


@inlined
def split_chunk(split: Any, chunk: Any) -> int:
    """Find the boundaries of the loaded chunk; returns the number of complete pre-tokens, edges among them.

    ``word[k]`` is the text offset of pre-token `k`, ``word[WORDS]`` the end of the last. SEGMENT and POSITION are
    set back to where the first incomplete pre-token begins. 0 if the chunk is all within one pre-token.
    """
    state = chunk.state
    masks = chunk.masks
    word = chunk.word
    stop = state[STOP]
    complete = state[COMPLETE]
    decided = MASK_BASE + split.numbers[DECIDED] * MASK_STRIDE
    undecided = MASK_BASE + split.numbers[UNDECIDED] * MASK_STRIDE
    last_word = (stop + 127) >> 6
    if chunk.code[0] == 0:
        find_classes(split, chunk)
        run_program(split, chunk, last_word)
    elif state[ASCII]:
        run_mask_code(chunk.code[0], chunk.text, masks, last_word, 1)
    else:
        run_mask_code(chunk.code[0], chunk.entries, masks, last_word, 0)
    # Texts begin and end where they do, whatever the program of a damaged file says: all else relies on it.
    masks[decided + 1] |= np.uint64(1)
    masks[undecided + 1] &= ~np.uint64(1)
    for piece in range(state[PIECES] if complete else state[PIECES] - 1):
        for place in range(chunk.piece_edge[piece], chunk.piece_edge[piece] + 2):
            bit = np.uint64(1) << np.uint64(place & 63)
            masks[decided + (place >> 6)] |= bit
            masks[undecided + (place >> 6)] &= ~bit
    # The codepoint after the last entry is known only where a segment ends there.
    limit = stop if complete else stop - 1
    any_undecided = np.uint64(0)
    for i in range(1, (limit + 63) >> 6):
        any_undecided |= masks[np.uint64(undecided + i)]
    if any_undecided != 0:
        limit = settle(split, chunk, decided, undecided, limit)
    # Places of the boundaries, eight at a time: a word has one or two times eight in most text, so that this
    # loop is predicted well. What is written past the last boundary is overwritten.
    k = np.int64(0)
    for i in range(1, (limit + 63) >> 6):
        bits = masks[np.uint64(decided + i)]
        base = i << 6
        if limit - base < 64:
            bits &= (np.uint64(1) << np.uint64(limit - base)) - np.uint64(1)
        total = count_bits(bits)
        if has_wide_vectors():
            put_places(word, k, bits, base)
            k += total
            continue
        filled = np.int64(0)
        while filled < total:
            for j in range(8):
                word[np.uint64(k + filled + j)] = base + trailing_zeros(bits)
                bits &= bits - np.uint64(1)
            filled += 8
        k += total
    # Which word is each piece's edge: edges are words of one entry.
    piece = np.int64(0)
    pieces = state[PIECES]
    edges = pieces if complete else pieces - 1
    at = np.int64(0)
    while piece < edges:
        edge = chunk.piece_edge[piece]
        low = at
        high = k
        while low < high:
            middle = (low + high) >> 1
            if word[middle] < edge:
                low = middle + 1
            else:
                high = middle
        chunk.piece_end_word[piece] = low
        at = low
        piece += 1
    if complete:
        word[k] = stop
        words = k
    else:
        words = k - 1
        chunk.piece_end_word[pieces - 1] = words
    if not state[ASCII]:
        offset = chunk.offset
        for i in range(words + 1):
            word[np.uint64(i)] = offset[np.uint64(word[np.uint64(i)])]
    if not complete:
        state[SEGMENT] = chunk.piece_segment[pieces - 1]
        state[POSITION] = word[words] + chunk.piece_shift[pieces - 1]
    state[WORDS] = words
    return words


@helper
def match_in_text(split: Any, data: Any, first: int, end: int) -> int:
    """End of the match that begins at byte `first` of a segment that ends at byte `end`; `first` if there is none."""
    transitions = split.transitions
    end_class = split.numbers[END_CLASS]
    state = split.numbers[START]
    match = first
    at = first
    while state != 0:
        if at < end:
            coded = decode_codepoint(data, at)
            codepoint = coded >> 3
            page = np.int64(split.page_of[codepoint >> 7])
            kind = np.int64(split.class_of[page << 7 | (codepoint & 127)])
            length = coded & 7
        else:
            # Every state dies at the end of the text.
            kind = end_class
            length = np.int64(1)
        entry = np.int64(transitions[state + kind])
        if at - first > 64 and entry >> 1 == state and length == 1:
            # The same byte again leads to the same state again: past eight of them at a time.
            while at + 9 <= end and load64(data, at) == load64(data, at + 1):
                at += 8
        if entry & 1:
            match = at
        state = entry >> 1
        at += length
    return match


@helper
def pre_token_end(split: Any, data: Any, first: int, end: int) -> int:
    """End of the pre-token that begins at byte `first` of a segment that ends at byte `end`, by the automaton alone.

    Codepoints that no match covers make one pre-token, up to the next match (an empty one too).
    """
    match = match_in_text(split, data, first, end)
    if match != first:
        return match
    at = first + (decode_codepoint(data, first) & 7)
    while at < end and not matches_empty(split, data, at) and match_in_text(split, data, at, end) == at:
        at += decode_codepoint(data, at) & 7
    return at


@helper
def matches_empty(split: Any, data: Any, at: int) -> int:
    """1 if the pattern can match the empty string before the codepoint at byte `at`, else 0."""
    codepoint = decode_codepoint(data, at) >> 3
    page = np.int64(split.page_of[codepoint >> 7])
    kind = np.int64(split.class_of[page << 7 | (codepoint & 127)])
    return np.int64(split.transitions[split.numbers[START] + kind] & np.uint32(1))


#: What becomes of matches (``behavior`` of ``split_segments``), as the reference names them.
REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS = range(5)


@kernel
def split_segments(
    split: Any, behavior: int, invert: int, data: Any, starts: Any, ends: Any, out_start: Any, out_end: Any, out_from: Any
) -> int:
    """Cut segments at the matches of a pattern, by the automaton alone.

    Parameters
    ----------
    split : SplitTables
    behavior : int
        One of REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS.
    invert : int
        1: what lies between matches is treated as a match, and matches as what lies between.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segments.
    out_start, out_end, out_from : int64[capacity]
        Pieces that are not empty, in order, and the number of the segment each comes from.

    Returns
    -------
    int
        Number of pieces; or minus the number of segments done so far, less one, if the capacity was too small.
    """
    n = np.int64(0)
    for segment in range(starts.size):
        end = ends[segment]
        at = starts[segment]
        if n + (end - at) > out_start.size:
            return -segment - 1
        match_stop = np.int64(-1)  # end of the last match: an empty match there does not count
        first_piece = n
        before_matched = False
        # One turn for each match, empty ones too, and for each stretch between matches.
        while at < end:
            stop = match_in_text(split, data, at, end)
            matched = stop != at or (at != match_stop and matches_empty(split, data, at) == 1)
            if matched:
                match_stop = stop
            else:
                stop = at + (decode_codepoint(data, at) & 7)
                while stop < end and not matches_empty(split, data, stop):
                    if match_in_text(split, data, stop, end) != stop:
                        break
                    stop += decode_codepoint(data, stop) & 7
            if invert:
                matched = not matched
            extend = False
            if n > first_piece:
                if behavior == CONTIGUOUS:
                    extend = matched == before_matched
                elif behavior == MERGED_WITH_PREVIOUS:
                    extend = matched and not before_matched
                elif behavior == MERGED_WITH_NEXT:
                    extend = before_matched and not matched
            if extend:
                out_end[n - 1] = stop
            elif not (matched and behavior == REMOVED):
                if n > first_piece and out_start[n - 1] == out_end[n - 1]:
                    n -= 1  # an empty piece that nothing was joined to
                out_start[n] = at
                out_end[n] = stop
                out_from[n] = segment
                n += 1
            before_matched = matched
            at = stop
        if n > first_piece and out_start[n - 1] == out_end[n - 1]:
            n -= 1
    return n
