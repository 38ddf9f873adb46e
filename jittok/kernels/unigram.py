"""Unigram models: text to the ids of its most probable segmentation.

Every piece has a score, the logarithm of a probability; that of a segmentation is the sum of its pieces'. The best one
is found by a *forward pass* (Viterbi): from each character on, in order, all pieces of the text are found, and each place
where one ends keeps the best score that any path to it has, and the piece that path ends in. A *backward pass* follows
these from the end. Two forward passes give the same:

- ``nested``: every substring is looked up, so time is quadratic in the length of the text. It is here to be compared with.
- ``trie``: the pieces that begin at a character are the nodes of one walk down the trie, which ends where no piece goes
  on; time is linear in the text, times the length of the longest piece at most.

Both references have rules of their own for what "best" means where sums are rounded, and for what is no piece; they are
reproduced exactly:

- *sentencepiece* 0.2.3: the sum is a float32. A path replaces one that is there only if it is strictly better, so the one
  whose last piece begins first wins. A character is offered as unknown only where it is no piece itself. Where the sum at
  a character is beyond 100,000, it is subtracted from all places reached so far, and goes on from 0.
- *tokenizers* 0.23: the sum is a float64 and never reset. Unknown characters that follow each other are joined, and the
  result looked up again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import load_float
from jittok.kernels.split import SEGMENT
from jittok.kernels.word_cache import NEEDED, WRITTEN, keep_ids
from jittok.kernels.wordpiece import character
from jittok.tables import (
    RULE_TOKENIZERS,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_LONGEST,
    UNIGRAM_MISSING,
    UNIGRAM_ROOT_BASE,
    UNIGRAM_RULE,
    UNIGRAM_UNKNOWN,
)

#: What encoders of segments return.
DONE = 0
MORE_SCRATCH = 1
#: Positions that ``encode_unigram_segments`` needs in its state.
STATE = max(SEGMENT, NEEDED, WRITTEN) + 1
#: Where the running sum of sentencepiece goes back to 0.
RESET = np.float32(100000.0)
#: In place of a piece's id: an unknown character.
UNKNOWN = -1
_START = 0xFFFFFFFF
_UNREACHED = -np.inf


class UnigramScratch(NamedTuple):
    """Scratch arrays for a text of up to `capacity` characters; places are those between characters, and one more."""

    codes: NDArray[np.int32]  # [capacity + 2] code of each character, 0 after the last; then the end of each piece, by start
    best32: NDArray[np.float32]  # [capacity + 2] score of the best path to each place
    best: NDArray[np.float64]  # [capacity + 2] the same by tokenizers' rule
    back: NDArray[np.int64]  # [capacity + 2] the last piece of that path: id << 32 | place where it begins


def new_unigram_scratch(capacity: int, rule: int) -> UnigramScratch:
    """Allocate scratch for texts of up to `capacity` bytes, for tables of one rule."""
    short, double = (1, capacity + 2) if rule == RULE_TOKENIZERS else (capacity + 2, 1)
    return UnigramScratch(
        codes=np.zeros(capacity + 2, np.int32),
        best32=np.zeros(short, np.float32),
        best=np.zeros(double, np.float64),
        back=np.zeros(capacity + 2, np.int64),
    )


@helper
def write_codes(tables: Any, data: Any, first: int, end: int, codes: Any, best: Any) -> int:
    """Write the code of each character of ``data[first:end]``, 0 after the last; returns their number.

    All places but the first become unreached in `best`.
    """
    n = np.int64(0)
    best[0] = 0
    at = np.int64(first)
    while at < end:
        # Most text is of one script, so that the number of bytes is foretold.
        codepoint = np.int64(data[np.uint64(at)])
        length = np.int64(1)
        if codepoint >= 0xE0:
            codepoint = (codepoint & 0xF) << 12 | (np.int64(data[np.uint64(at + 1)]) & 0x3F) << 6
            codepoint |= np.int64(data[np.uint64(at + 2)]) & 0x3F
            length = np.int64(3)
            if data[np.uint64(at)] >= 0xF0:
                codepoint = (codepoint << 6 | (np.int64(data[np.uint64(at + 3)]) & 0x3F)) & 0x1FFFFF
                length = np.int64(4)
        elif codepoint >= 0x80:
            codepoint = (codepoint & 0x1F) << 6 | (np.int64(data[np.uint64(at + 1)]) & 0x3F)
            length = np.int64(2)
        page = np.int64(tables.page_of[np.uint64(codepoint >> 7)])
        codes[np.uint64(n)] = tables.code_of[np.uint64(page << 7 | codepoint & 127)]
        n += 1
        best[np.uint64(n)] = _UNREACHED
        at += length
    codes[n] = 0
    return n


@inlined
def offer(best: Any, back: Any, k: int, candidate: Any, piece: int) -> int:
    """Let a path end at place `k` if it is better than the one before. Without a branch, which would be hard to foretell."""
    old = best[np.uint64(k)]
    is_better = candidate > old
    best[np.uint64(k)] = candidate if is_better else old
    back[np.uint64(k)] ^= (back[np.uint64(k)] ^ piece) & -np.int64(is_better)
    return 0


@helper
def walk_trie_32(tables: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass over `n` characters by sentencepiece's rule."""
    units = tables.units
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    unknown_score = np.float32(tables.unknown_score[0])
    longest = np.int64(tables.numbers[UNIGRAM_LONGEST])
    for i in range(n):
        here = best[np.uint64(i)]
        if here > RESET or here < -RESET:
            for k in range(i + 1, min(n, i + longest) + 1):
                best[k] = np.float32(best[k] - here)
            here = np.float32(0.0)
        k = np.int64(i) + 1
        base = root
        unit = base + np.int64(codes[np.uint64(i)])
        token = np.int64(UNKNOWN)
        score = unknown_score
        if np.int64(units[np.uint64(unit)]) == base:
            token = np.int64(units[np.uint64(unit + 2)])
            base = np.int64(units[np.uint64(unit + 1)])
            if token >= 0:
                score = load_float(units, unit + 3)
            offer(best, back, k, np.float32(score + here), token << 32 | i)
            unit = base + np.int64(codes[np.uint64(k)])
            while np.int64(units[np.uint64(unit)]) == base:
                k += 1
                base = np.int64(units[np.uint64(unit + 1)])
                token = np.int64(units[np.uint64(unit + 2)])
                offer(best, back, k, np.float32(load_float(units, unit + 3) + here), token << 32 | i)
                unit = base + np.int64(codes[np.uint64(k)])
        else:
            offer(best, back, k, np.float32(score + here), token << 32 | i)
    return 0


@helper
def walk_trie_64(tables: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass over `n` characters by tokenizers' rule; returns 1 where an unknown piece is missed, else 0."""
    units = tables.units
    scores = tables.scores
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    missing = np.int64(0)
    for i in range(n):
        here = best[np.uint64(i)]
        k = np.int64(i)
        base = root
        unit = base + np.int64(codes[np.uint64(i)])
        single = False
        while np.int64(units[np.uint64(unit)]) == base:
            k += 1
            base = np.int64(units[np.uint64(unit + 1)])
            token = np.int64(units[np.uint64(unit + 2)])
            if token >= 0:
                candidate = scores[np.uint64(token)] + here
                if candidate > best[np.uint64(k)]:
                    best[np.uint64(k)] = candidate
                    back[np.uint64(k)] = token << 32 | i
                if k == i + 1:
                    single = True
            unit = base + np.int64(codes[np.uint64(k)])
        if not single:
            k = np.int64(i) + 1
            candidate = tables.unknown_score[0] + here
            if candidate > best[np.uint64(k)]:
                best[np.uint64(k)] = candidate
                back[np.uint64(k)] = UNKNOWN << 32 | i
                missing = np.int64(tables.numbers[UNIGRAM_MISSING])
    return missing


@inlined
def find_piece(tables: Any, codes: Any, first: int, end: int) -> int:
    """The node of ``codes[first:end]``, -1 for none."""
    units = tables.units
    base = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    node = np.int64(-1)
    while first < end:
        node = base + np.int64(codes[np.uint64(first)])
        if np.int64(units[np.uint64(node)]) != base:
            return -1
        base = np.int64(units[np.uint64(node + 1)])
        first += 1
    return node


@helper
def try_substrings_32(tables: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass by sentencepiece's rule as ``walk_trie_32``, that looks up every substring."""
    units = tables.units
    for i in range(n):
        here = best[i]
        if here > RESET or here < -RESET:
            for k in range(i + 1, n + 1):
                best[k] = np.float32(best[k] - here)
            here = np.float32(0.0)
        for k in range(i + 1, n + 1):
            node = find_piece(tables, codes, i, k)
            token = np.int64(UNKNOWN)
            score = np.float32(tables.unknown_score[0])
            if node >= 0 and units[node + 2] >= 0:
                token = np.int64(units[node + 2])
                score = load_float(units, node + 3)
            if token >= 0 or k == i + 1:
                candidate = np.float32(score + here)
                if candidate > best[k]:
                    best[k] = candidate
                    back[k] = token << 32 | i
    return 0


@helper
def try_substrings_64(tables: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass by tokenizers' rule as ``walk_trie_64``, that looks up every substring."""
    units = tables.units
    missing = np.int64(0)
    for i in range(n):
        here = best[i]
        for k in range(i + 1, n + 1):
            node = find_piece(tables, codes, i, k)
            token = np.int64(UNKNOWN)
            score = tables.unknown_score[0]
            if node >= 0 and units[node + 2] >= 0:
                token = np.int64(units[node + 2])
                score = tables.scores[token]
            if token >= 0 or k == i + 1:
                candidate = score + here
                if candidate > best[k]:
                    best[k] = candidate
                    back[k] = token << 32 | i
                    if token < 0:
                        missing = np.int64(tables.numbers[UNIGRAM_MISSING])
    return missing


@inlined
def bytes_of(data: Any, at: int, characters: int) -> int:
    """Bytes of so many characters from `at` on."""
    end = at
    for _ in range(characters):
        lead = np.int64(data[np.uint64(end)])
        end += 1
        if lead >= 0xC0:
            end += 1
            if lead >= 0xE0:
                end += 1
                if lead >= 0xF0:
                    end += 1
    return end - at


@inlined
def put_bytes(tables: Any, data: Any, first: int, end: int, ids: Any, lengths: Any, to: int) -> int:
    """Write the pieces of bytes; returns the number of ids then."""
    for at in range(first, end):
        ids[to] = tables.byte_ids[data[at]]
        if lengths.size > 0:
            lengths[to] = 1
        to += 1
    return to


@inlined
def has_bytes(tables: Any, data: Any, first: int, end: int) -> bool:
    """Whether there is a piece for each of some bytes."""
    for at in range(first, end):
        if tables.byte_ids[data[at]] < 0:
            return False
    return True


@helper
def write_path(tables: Any, data: Any, first: int, end: int, n: int, scratch: Any, ids: Any, lengths: Any, to: int) -> int:
    """Backward pass, and the ids of the best path.

    Parameters
    ----------
    tables : UnigramTables
    data : uint8
        The text is ``data[first:end]``, of `n` characters.
    first, end, n : int
    scratch
        Arrays `codes` and `back`, the latter from a forward pass. The former is overwritten.
    ids, lengths : int32
        Output from position `to` on: ids, and the bytes that each stands for; the latter may be empty, where not wanted.
    to : int

    Returns
    -------
    int
        Where the ids end. There are no more of them than bytes.
    """
    back = scratch.back
    next_of = scratch.codes
    k = n
    while k > 0:
        i = np.int64(back[np.uint64(k)] & _START)
        next_of[np.uint64(i)] = k
        k = i
    numbers = tables.numbers
    unknown = np.int64(numbers[UNIGRAM_UNKNOWN])
    rejoins = numbers[UNIGRAM_RULE] == RULE_TOKENIZERS
    fallback = numbers[UNIGRAM_BYTE_FALLBACK] == 1
    # Positions in the text are followed only where they are needed and are not those of characters.
    follows = n < end - first and (fallback or rejoins or lengths.size > 0)
    written = to
    joins = False  # whether the id before is that of unknown text
    at = first
    i = np.int64(0)
    while i < n:
        k = np.int64(next_of[np.uint64(i)])
        token = np.int64(back[np.uint64(k)]) >> 32
        length = k - i
        if follows:
            length = bytes_of(data, at, length)
        if token == UNKNOWN or (rejoins and token == unknown):
            if rejoins:
                # All that is unknown here is one string, which is looked up.
                begin = i
                i = k
                while i < n:
                    following = np.int64(next_of[np.uint64(i)])
                    token = np.int64(back[np.uint64(following)]) >> 32
                    if token != UNKNOWN and token != unknown:
                        break
                    length += bytes_of(data, at + length, following - i)
                    i = following
                token = find_string(tables, data, at, at + length)
                k = i
                if token < 0 and fallback and has_bytes(tables, data, at, at + length):
                    written = put_bytes(tables, data, at, at + length, ids, lengths, written)
                    at += length
                    continue
                if token < 0:
                    token = unknown
                i = begin
            elif fallback:
                written = put_bytes(tables, data, at, at + length, ids, lengths, written)
                at += length
                i = k
                continue
            else:
                if joins:
                    if lengths.size > 0:
                        lengths[np.uint64(written - 1)] += length
                    at += length
                    i = k
                    continue
                token = unknown
                joins = True
        else:
            joins = False
        ids[np.uint64(written)] = token
        if lengths.size > 0:
            lengths[np.uint64(written)] = length
        written += 1
        at += length
        i = k
    return written


@helper
def find_string(tables: Any, data: Any, first: int, end: int) -> int:
    """The id of the piece ``data[first:end]``, -1 for none."""
    units = tables.units
    base = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    node = np.int64(0)
    while first < end:
        code, length = character(tables, data, first)
        node = base + code
        if np.int64(units[node]) != base:
            return -1
        base = np.int64(units[node + 1])
        first += length
    return np.int64(units[node + 2])


@helper
def put_missing(tables: Any, length: int, ids: Any, lengths: Any, to: int) -> int:
    """Write the id that stands for an error; returns where the ids end."""
    ids[to] = tables.numbers[UNIGRAM_UNKNOWN]
    if lengths.size > 0:
        lengths[to] = length
    return to + 1


@inlined
def segment(tables: Any, data: Any, first: int, end: int, scratch: Any, ids: Any, lengths: Any, to: int) -> int:
    """Write the ids of one text; returns where they end."""
    if tables.numbers[UNIGRAM_RULE] == RULE_TOKENIZERS:
        n = write_codes(tables, data, first, end, scratch.codes, scratch.best)
        if walk_trie_64(tables, n, scratch.codes, scratch.best, scratch.back) == 1:
            return put_missing(tables, end - first, ids, lengths, to)
    else:
        n = write_codes(tables, data, first, end, scratch.codes, scratch.best32)
        walk_trie_32(tables, n, scratch.codes, scratch.best32, scratch.back)
    return write_path(tables, data, first, end, n, scratch, ids, lengths, to)


@helper
def unigram_word(tables: Any, data: Any, first: int, end: int, scratch: Any) -> int:
    """Ids of one pre-token by tokenizers' rule, left in ``scratch.symbols`` with their byte lengths; returns their number.

    As ``merge_word`` of :mod:`jittok.kernels.bpe`, for unigram models. The lengths sum to ``end - first``. `scratch` has
    arrays `codes`, `best` and `back` besides, with a place more than ``end - first``; see :class:`UnigramScratch`.
    """
    n = write_codes(tables, data, first, end, scratch.codes, scratch.best)
    if walk_trie_64(tables, n, scratch.codes, scratch.best, scratch.back) == 1:
        return put_missing(tables, end - first, scratch.symbols, scratch.lengths, 0)
    return write_path(tables, data, first, end, n, scratch, scratch.symbols, scratch.lengths, 0)


@inlined
def encode_new_words(tables: Any, n_new: int, cache: Any, scratch: Any, lanes: Any) -> int:
    """Encode the new words of a chunk by tokenizers' rule, and keep their ids."""
    for q in range(n_new):
        first = np.int64(scratch.new_first[np.uint64(q)])
        end = first + np.int64(scratch.new_length[np.uint64(q)])
        count = np.int64(unigram_word(tables, scratch.new_text, first, end, scratch))
        keep_ids(np.int64(scratch.new_place[np.uint64(q)]), cache, scratch.symbols, 0, count)
    return 0


@kernel
def encode_unigram_segments(
    tables: Any,
    data: Any,
    starts: Any,
    ends: Any,
    last: int,
    state: Any,
    scratch: Any,
    out: Any,
    out_end: Any,
    out_length: Any,
) -> int:
    """Ids of segments up to `last`, from the one on that `state` says. Nothing is cached.

    Parameters
    ----------
    tables : UnigramTables
        From :func:`jittok.build.unigram_tables.build_unigram_tables`.
    data : uint8[m]
        Valid UTF-8, normalized: spaces are U+2581, unless the tables take spaces for it.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``.
    last : int
    state : int64[STATE]
        Zero before the first call. SEGMENT: the next segment; WRITTEN: ids written; NEEDED: see MORE_SCRATCH.
    scratch : UnigramScratch
        For the rule of the tables.
    out : int32
        Output: ids of all segments, one after another. As many places as the segments have bytes are enough.
    out_end : int64[n]
        Output: ids written by the end of each segment.
    out_length : int32
        Output, as large as `out`: bytes of text that each id stands for; or empty, where not wanted.

    Returns
    -------
    int
        DONE; or MORE_SCRATCH, with which to call again with scratch for ``state[NEEDED]`` bytes. Nothing is done twice.

    Notes
    -----
    Linear in the text, times the characters of the longest piece at most.
    """
    written = np.int64(state[WRITTEN])
    i = np.int64(state[SEGMENT])
    while i < last:
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - first + 2 > scratch.codes.size:
            state[SEGMENT] = i
            state[WRITTEN] = written
            state[NEEDED] = end - first
            return MORE_SCRATCH
        written = segment(tables, data, first, end, scratch, out, out_length, written)
        out_end[i] = written
        i += 1
    state[SEGMENT] = i
    state[WRITTEN] = written
    return DONE


@kernel
def encode_unigram_nested(
    tables: Any, data: Any, starts: Any, ends: Any, scratch: Any, out: Any, out_end: Any, out_length: Any
) -> int:
    """Ids of texts, by looking up every substring. To be compared with: quadratic in the length of each.

    Takes what :func:`encode_unigram_segments` does, with scratch for the longest text.

    Returns
    -------
    int
        The number of ids.
    """
    written = np.int64(0)
    for i in range(starts.size):
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        missing = np.int64(0)
        if tables.numbers[UNIGRAM_RULE] == RULE_TOKENIZERS:
            n = write_codes(tables, data, first, end, scratch.codes, scratch.best)
            missing = np.int64(try_substrings_64(tables, n, scratch.codes, scratch.best, scratch.back))
        else:
            n = write_codes(tables, data, first, end, scratch.codes, scratch.best32)
            try_substrings_32(tables, n, scratch.codes, scratch.best32, scratch.back)
        if missing == 1:
            written = put_missing(tables, end - first, out, out_length, written)
        else:
            written = write_path(tables, data, first, end, n, scratch, out, out_length, written)
        out_end[i] = written
    return written
