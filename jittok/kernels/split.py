"""Cut text into pre-tokens, a chunk of about two thousand codepoints at a time.

A chunk holds pieces of segments one after another, each complete segment followed by one *edge* entry, which
stands for the end of one text and the beginning of the next. Entries are codepoints or edges; where the chunk
is ASCII, entry numbers are text offsets too. A boundary found is a true one whatever came before it, so the
next chunk may begin at the last boundary of this one as if a text began there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, kernel
from jittok.kernels.machine import highest_bit, load64, low_bits, trailing_zeros

#: Entries in a chunk, at most.
CHUNK = 2048
#: A segment is begun in the rest of a chunk only if it fits, or at least this many entries are left.
WORTH_STARTING = 256
#: ``fields`` begins with the three codepoints before the first entry: edges.
CONTEXT = 3
RIGHT_SHIFT = np.uint32(14)
LEFT_MASK = np.uint32((1 << 14) - 1)
CLASS_SHIFT = np.uint32(24)

#: Positions in ``Chunk.state``.
SEGMENT = 0  # the segment that the next chunk begins in
POSITION = 1  # the byte of data where it begins
ENTRIES = 2  # entries of the chunk
PIECES = 3
COMPLETE = 4  # 1 if the last piece ends its segment
ASCII = 5  # 1 if entry numbers are text offsets
WORDS = 6  # complete pre-tokens, edges included
LAST_PIECE_FIRST = 7  # first entry of the last piece
STATE_SIZE = 16


class Chunk(NamedTuple):
    """Scratch arrays of one worker for splitting."""

    state: NDArray[np.int64]
    text: NDArray[np.uint8]  # [4 * CHUNK + 80] the chunk's bytes, 0 for an edge
    fields: NDArray[np.uint32]  # [CHUNK + 80]
    index: NDArray[np.uint32]  # [CHUNK + 80]
    decisions: NDArray[np.uint8]  # [CHUNK + 80]
    boundary_bits: NDArray[np.uint64]  # [CHUNK / 64 + 2]
    undecided_bits: NDArray[np.uint64]  # [CHUNK / 64 + 2]
    offset: NDArray[np.int32]  # [CHUNK + 80] text offset of each entry, unless ASCII
    word: NDArray[np.int32]  # [CHUNK + 80] text offset where each pre-token begins, and the end of the last
    piece_segment: NDArray[np.int64]  # [CHUNK]
    piece_end_word: NDArray[np.int32]  # [CHUNK] number of the word that is the piece's edge, or WORDS
    piece_edge: NDArray[np.int32]  # [CHUNK] entry number of the piece's edge
    piece_shift: NDArray[np.int64]  # [CHUNK] data position minus text offset


def new_chunk() -> Chunk:
    """Allocate scratch arrays."""
    return Chunk(
        state=np.zeros(STATE_SIZE, np.int64),
        text=np.zeros(4 * CHUNK + 80, np.uint8),
        fields=np.zeros(CHUNK + 80, np.uint32),
        index=np.zeros(CHUNK + 80, np.uint32),
        decisions=np.zeros(CHUNK + 80, np.uint8),
        boundary_bits=np.zeros(CHUNK // 64 + 2, np.uint64),
        undecided_bits=np.zeros(CHUNK // 64 + 2, np.uint64),
        offset=np.zeros(CHUNK + 80, np.int32),
        word=np.zeros(CHUNK + 80, np.int32),
        piece_segment=np.zeros(CHUNK, np.int64),
        piece_end_word=np.zeros(CHUNK, np.int32),
        piece_edge=np.zeros(CHUNK, np.int32),
        piece_shift=np.zeros(CHUNK, np.int64),
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
def load_chunk(split: Any, data: Any, starts: Any, ends: Any, last: int, chunk: Any) -> int:
    """Fill the chunk from SEGMENT and POSITION on with segments before `last`; returns the number of entries.

    Linear in the bytes taken. Afterwards SEGMENT and POSITION say where the last piece ends (or the next segment
    begins, if that piece is complete).
    """
    text = chunk.text
    fields = chunk.fields
    offset = chunk.offset
    state = chunk.state
    ascii_fields = split.ascii_fields
    edge = split.class_fields[split.numbers[1]]
    segment = state[SEGMENT]
    at = state[POSITION]
    n = np.int64(0)
    size = np.int64(0)
    pieces = 0
    is_ascii = True
    complete = True
    fields[0] = edge
    fields[1] = edge
    fields[2] = edge
    while segment < last and n < CHUNK - 1:
        end = ends[segment]
        room = CHUNK - 1 - n
        if pieces > 0 and room < WORTH_STARTING and end - at > room:
            break
        begin = at
        state[LAST_PIECE_FIRST] = n
        chunk.piece_segment[pieces] = segment
        chunk.piece_shift[pieces] = at - size
        take = min(end - at, room)
        # Unsigned subscripts in these loops: Numba need not test for negative ones, so LLVM vectorises them.
        seen = np.int64(0)
        for i in range(take):
            byte = data[np.uint64(at + i)]
            text[np.uint64(size + i)] = byte
            seen |= np.int64(byte)
        if seen < 0x80:
            for i in range(take):
                fields[np.uint64(CONTEXT + n + i)] = ascii_fields[np.uint64(text[np.uint64(size + i)])]
            if not is_ascii:
                for i in range(take):
                    offset[np.uint64(n + i)] = size + i
            n += take
            at += take
        else:
            if is_ascii:
                is_ascii = False
                for i in range(n):
                    offset[i] = i
            shift = size - at
            while at < end and room > 0:
                if room >= 8 and at + 8 <= end and (load64(data, at) & np.uint64(0x8080808080808080)) == 0:
                    for i in range(8):
                        fields[np.uint64(CONTEXT + n + i)] = ascii_fields[np.uint64(data[np.uint64(at + i)])]
                        offset[np.uint64(n + i)] = at + shift + i
                    n += 8
                    at += 8
                    room -= 8
                    continue
                coded = decode_codepoint(data, at)
                codepoint = coded >> 3
                page = np.int64(split.page_of[np.uint64(codepoint >> 7)])
                kind = split.class_of[np.uint64(page << 7 | (codepoint & 127))]
                fields[np.uint64(CONTEXT + n)] = split.class_fields[np.uint64(kind)]
                offset[np.uint64(n)] = at + shift
                n += 1
                at += coded & 7
                room -= 1
            for i in range(at - begin):
                text[np.uint64(size + i)] = data[np.uint64(begin + i)]
        size += at - begin
        complete = at == end
        if complete:
            fields[CONTEXT + n] = edge
            offset[n] = size
            text[size] = 0
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
    fields[CONTEXT + n] = edge
    state[SEGMENT] = segment
    state[POSITION] = at
    state[ENTRIES] = n
    state[PIECES] = pieces
    state[COMPLETE] = 1 if complete else 0
    state[ASCII] = 1 if is_ascii else 0
    return n


@helper
def match_end(split: Any, fields: Any, first: int, n: int, complete: int) -> int:
    """End of the match that begins at entry `first`; `first` if there is none, -1 if the chunk ends too soon."""
    transitions = split.transitions
    state = split.numbers[0]
    end = first
    at = first
    while at < n:
        entry = np.int64(transitions[state + np.int64(fields[CONTEXT + at] >> CLASS_SHIFT)])
        if entry & 1:
            end = at
        state = entry >> 1
        if state == 0:
            return end
        at += 1
    return end if complete else -1


@helper
def next_boundary(split: Any, fields: Any, first: int, n: int, complete: int) -> int:
    """The boundary after the one at entry `first`, by the automaton; -1 if the chunk ends too soon.

    Codepoints that no match covers make one pre-token, up to the next match (an empty one too) or the edge.
    """
    end = match_end(split, fields, first, n, complete)
    if end != first:
        return end
    at = first + 1
    while at < n:
        kind = np.int64(fields[CONTEXT + at] >> CLASS_SHIFT)
        if kind == split.numbers[1] or split.transitions[split.numbers[0] + kind] & np.uint32(1):
            return at
        end = match_end(split, fields, at, n, complete)
        if end < 0:
            return -1
        if end != at:
            return at
        at += 1
    return at if complete else -1


@helper
def split_chunk(split: Any, chunk: Any) -> int:
    """Find the boundaries of the loaded chunk; returns the number of complete pre-tokens, edges among them.

    ``word[k]`` is the text offset of pre-token `k`, ``word[WORDS]`` the end of the last. SEGMENT and POSITION are
    set back to where the first incomplete pre-token begins. 0 if the chunk is all within one pre-token.
    """
    state = chunk.state
    fields = chunk.fields
    index = chunk.index
    decisions = chunk.decisions
    boundary_bits = chunk.boundary_bits
    undecided_bits = chunk.undecided_bits
    word = chunk.word
    n = state[ENTRIES]
    complete = state[COMPLETE]
    left_row = split.left_row
    decision = split.decision
    mask0 = split.masks[0]
    mask1 = split.masks[1]
    mask2 = split.masks[2]
    mask3 = split.masks[3]
    mask4 = split.masks[4]
    for i in range(n):
        index[np.uint64(i)] = (
            (fields[np.uint64(i)] & mask0)
            | (fields[np.uint64(i + 1)] & mask1)
            | (fields[np.uint64(i + 2)] & mask2)
            | (fields[np.uint64(i + 3)] & mask3)
            | (fields[np.uint64(i + 4)] & mask4)
        )
    for i in range(n):
        value = index[np.uint64(i)]
        decisions[np.uint64(i)] = decision[np.uint64(left_row[np.uint64(value & LEFT_MASK)]) | np.uint64(value >> RIGHT_SHIFT)]
    # The codepoint after the last entry is known only where a segment ends there.
    limit = n if complete else n - 1
    for i in range(limit, n + 64):
        decisions[i] = 0
    blocks = (n + 63) >> 6
    undecided = np.uint64(0)
    for block in range(blocks):
        boundary_bits[block] = low_bits(decisions, block << 6, 0)
        bits = low_bits(decisions, block << 6, 1)
        undecided_bits[block] = bits
        undecided |= bits
    if undecided != 0:
        known = np.int64(-1)
        block = np.int64(0)
        while block < blocks:
            bits = undecided_bits[block]
            if bits == 0:
                block += 1
                continue
            at = (block << 6) + trailing_zeros(bits)
            undecided_bits[block] = bits & (bits - np.uint64(1))
            if at <= known:
                continue
            # The last boundary before it: there always is one, the first entry is a boundary.
            from_block = block
            below = boundary_bits[block] & ((np.uint64(1) << np.uint64(at & 63)) - np.uint64(1))
            while below == 0:
                from_block -= 1
                below = boundary_bits[from_block]
            boundary = (from_block << 6) + highest_bit(below)
            while boundary <= at:
                following = next_boundary(split, fields, boundary, n, complete)
                if following < 0:
                    break
                boundary = following
                if boundary < n:
                    boundary_bits[boundary >> 6] |= np.uint64(1) << np.uint64(boundary & 63)
            known = boundary
            if boundary <= at:
                # The chunk ends before the automaton knows: what follows `boundary` goes into the next chunk.
                limit = boundary + 1
                break
    # Positions of the boundaries.
    k = np.int64(0)
    piece = np.int64(0)
    pieces = state[PIECES]
    edges = pieces if complete else pieces - 1
    for block in range((limit + 63) >> 6):
        bits = boundary_bits[block]
        base = block << 6
        if limit - base < 64:
            bits &= (np.uint64(1) << np.uint64(limit - base)) - np.uint64(1)
        while bits != 0:
            word[np.uint64(k)] = base + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            k += 1
    # Which word is each piece's edge: edges are words of one entry.
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
        word[k] = n
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
    end_class = split.numbers[1]
    state = split.numbers[0]
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
    return np.int64(split.transitions[split.numbers[0] + kind] & np.uint32(1))


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
