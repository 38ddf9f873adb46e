"""Segments to token ids: the loop over the chunks of a text, for any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels import bpe, pieces, unigram, wordpiece
from jittok.kernels.split import (
    ASCII,
    COMPLETE,
    PIECES,
    POSITION,
    SEGMENT,
    load_chunk,
    pre_token_end,
    split_chunk,
)
from jittok.kernels.word_cache import (
    BATCH,
    CARRIED,
    HELD_IDS,
    NEEDED,
    NEW_BYTES,
    NEW_WORDS,
    WORD_NUMBER,
    WRITTEN,
    compare_keys,
    hold_ends,
    is_full,
    is_worth_waiting,
    list_new_words,
    make_keys,
    missed_count,
    take_values,
    write_ids,
    write_word_numbers,
)
from jittok.tables import MERGE_UNKNOWN, UNIGRAM_UNKNOWN

#: What segment encoders return.
DONE = 0
MORE_SCRATCH = 1
MORE_CACHE = 2
#: That there is nothing to return yet.
GO_ON = 3


@inlined
def has_token_lengths(model: Any, scratch: Any) -> bool:
    """Whether the bytes of all tokens but the unknown one are known."""
    return scratch.token_lengths.size > 0


def lengths_writer(encode_word: Callable[..., Any], unknown_at: int) -> Callable[..., int]:
    """Make the `write_lengths` of a model whose tokens have lengths of their own, but for the unknown one.

    Parameters
    ----------
    encode_word
        As in :func:`segment_encoder`.
    unknown_at
        Position of the unknown token's id in the tables' numbers.
    """

    @helper
    def write_lengths(
        model: Any, misses: int, chunk: Any, scratch: Any, out: Any, out_length: Any, written: int, end: int
    ) -> int:
        """Write the bytes that each id of a chunk stands for. Of a word with unknown tokens, these have what is left."""
        lengths = scratch.token_lengths
        unknown = np.int64(model.numbers[unknown_at])
        n_unknown = np.int64(0)
        for i in range(written, end):
            token = np.int64(out[np.uint64(i)])
            out_length[np.uint64(i)] = lengths[np.uint64(token)]
            n_unknown += token == unknown
        if n_unknown == 0:
            return end
        q = np.int64(0)
        k = np.int64(0)
        for piece in range(chunk.state[PIECES]):
            edge = np.int64(chunk.piece_end_word[piece])
            while k < edge:
                count = np.int64(scratch.id_at[np.uint64(k + 1)]) - np.int64(scratch.id_at[np.uint64(k)])
                if q < misses and scratch.missed[np.uint64(q)] == k:
                    q += 1
                    count = np.int64(missed_count(k, scratch))
                first = np.int64(chunk.word[np.uint64(k)])
                rest = np.int64(chunk.word[np.uint64(k + 1)]) - first
                n_unknown = np.int64(0)
                place = np.int64(written)
                for i in range(written, written + count):
                    rest -= np.int64(out_length[np.uint64(i)])
                    if out[np.uint64(i)] == unknown:
                        n_unknown += 1
                        place = np.int64(i)
                if n_unknown == 1:
                    out_length[np.uint64(place)] = rest
                elif n_unknown > 1:
                    encode_word(model, chunk.text, first, np.int64(chunk.word[np.uint64(k + 1)]), scratch)
                    for i in range(count):
                        out_length[np.uint64(written + i)] = scratch.lengths[np.uint64(i)]
                written += count
                k += 1
            if q < misses and scratch.missed[np.uint64(q)] == edge:
                q += 1
            k = edge + 1
        return end

    return write_lengths


def segment_encoder(
    name: str,
    encode_word: Callable[..., Any],
    encode_new_words: Callable[..., Any],
    cut_words: Callable[..., Any],
    knows_lengths: Callable[..., Any],
    write_lengths: Callable[..., Any],
    counts_empty: int,
    *,
    cuts_ascii: bool = False,
) -> Callable[..., int]:
    """Make the kernel that encodes segments with a model.

    Parameters
    ----------
    name
        Name of the kernel: a module-level name here.
    encode_word
        ``(model, data, first, end, scratch)``: leaves the ids of one word in ``scratch.symbols``, with the bytes that
        each stands for in ``scratch.lengths``; returns their number.
    encode_new_words
        ``(model, n, cache, scratch, lanes)``: encodes the first `n` words listed in ``scratch.new_place``, and keeps
        their ids (see ``word_cache.keep_ids``).
    cut_words
        ``(model, chunk, scratch)``: may cut long pre-tokens where their ids do not depend on it; returns the number
        of words.
    knows_lengths
        ``(model, scratch)``: whether there is `write_lengths`; else words are encoded one by one where lengths are wanted.
    write_lengths
        ``(model, misses, chunk, scratch, out, out_length, written, end)``: writes the bytes that each id of a chunk
        stands for, which are ``out[written:end]``.
    counts_empty
        1: a pre-token without ids is a word like others; 0: it is none, and its bytes count to the next id.
    cuts_ascii
        Whether `cut_words` is for chunks of ASCII too.

    Returns
    -------
    kernel
        See :func:`encode_segments`.
    """

    @helper
    def carry(count: int, n_bytes: int, state: Any, scratch: Any) -> int:
        """Have the bytes of pre-tokens without ids count to the next id, where they are no words."""
        if counts_empty == 1:
            return 0
        if count == 0:
            state[CARRIED] += n_bytes
        else:
            scratch.lengths[0] += state[CARRIED]
            state[CARRIED] = 0
        return 0

    @helper
    def write_details(
        model: Any, chunk: Any, scratch: Any, out: Any, out_end: Any, out_word: Any, out_length: Any, written: int
    ) -> int:
        """As the fast steps together, without the cache, and with word numbers and lengths; returns the number of ids."""
        state = chunk.state
        k = np.int64(0)
        for piece in range(state[PIECES]):
            last = np.int64(chunk.piece_end_word[piece])
            while k < last:
                first = np.int64(chunk.word[k])
                end = np.int64(chunk.word[k + 1])
                count = encode_word(model, chunk.text, first, end, scratch)
                carry(count, end - first, state, scratch)
                for i in range(count):
                    out[written + i] = scratch.symbols[i]
                    if out_word.size > 0:
                        out_word[written + i] = state[WORD_NUMBER]
                    if out_length.size > 0:
                        out_length[written + i] = scratch.lengths[i]
                written += count
                state[WORD_NUMBER] += 1 if count > 0 else counts_empty
                k += 1
            k = last + 1
            out_end[chunk.piece_segment[piece]] = written
            if piece < state[PIECES] - 1 or state[COMPLETE]:
                state[WORD_NUMBER] = 0
                state[CARRIED] = 0
        return written

    def encode_segments(
        split: Any,
        model: Any,
        data: Any,
        starts: Any,
        ends: Any,
        last: int,
        chunk: Any,
        cache: Any,
        scratch: Any,
        lanes: Any,
        out: Any,
        out_end: Any,
        out_word: Any,
        out_length: Any,
    ) -> int:
        state = chunk.state
        written = state[WRITTEN]
        wants_details = out_word.size > 0 or out_length.size > 0
        status = GO_ON
        while status == GO_ON:
            first_segment = state[SEGMENT]
            first_position = state[POSITION]
            words = np.int64(-1)
            misses = np.int64(0)
            if first_segment >= last:
                status = DONE
            elif is_full(cache, state[NEW_BYTES]):
                status = MORE_CACHE
            else:
                load_chunk(split, data, starts, ends, last, chunk)
                words = np.int64(split_chunk(split, chunk))
            if words > 0:
                if out_length.size > 0 and not knows_lengths(model, scratch):
                    written = write_details(model, chunk, scratch, out, out_end, out_word, out_length, written)
                    continue
                if (cuts_ascii or state[ASCII] == 0) and out_word.size == 0:
                    words = cut_words(model, chunk, scratch)
                # Keys are compared one batch after they were made, when their slots have come.
                begin = np.int64(0)
                ready = np.int64(0)
                scratch.id_at[0] = state[HELD_IDS]
                while ready < words:
                    end = min(begin + BATCH, words)
                    make_keys(chunk, scratch, cache.slots, begin, end)
                    misses = compare_keys(scratch, cache, ready, begin, misses)
                    ready = begin
                    begin = end
                state[HELD_IDS] = scratch.id_at[np.uint64(words)]
                hold_ends(misses, chunk, scratch)
                if misses > 0:
                    list_new_words(misses, chunk, cache, scratch)
                if state[NEW_WORDS] > 0 and not wants_details and is_worth_waiting(state):
                    continue
            n_new = state[NEW_WORDS]
            if n_new > 0:
                encode_new_words(model, n_new, cache, scratch, lanes)
                state[NEW_WORDS] = 0
                state[NEW_BYTES] = 0
            if wants_details:
                take_values(misses, cache, scratch)
            if out_word.size > 0 and words > 0:
                write_word_numbers(misses, chunk, scratch, out_word, written, counts_empty)
            before = written
            written = write_ids(chunk, cache, scratch, out, out_end, before)
            if out_length.size > 0 and words > 0:
                write_lengths(model, misses, chunk, scratch, out, out_length, before, written)
            if words == 0:
                # One pre-token fills the chunk: find its end, and encode it where it stands.
                end = ends[first_segment]
                stop = pre_token_end(split, data, first_position, end)
                if stop - first_position > scratch.symbols.size:
                    state[SEGMENT] = first_segment
                    state[POSITION] = first_position
                    state[NEEDED] = stop - first_position
                    status = MORE_SCRATCH
                    continue
                count = encode_word(model, data, first_position, stop, scratch)
                carry(count, stop - first_position, state, scratch)
                for i in range(count):
                    out[written + i] = scratch.symbols[i]
                    if out_word.size > 0:
                        out_word[written + i] = state[WORD_NUMBER]
                    if out_length.size > 0:
                        out_length[written + i] = scratch.lengths[i]
                written += count
                state[WORD_NUMBER] += 1 if count > 0 else counts_empty
                state[SEGMENT] = first_segment
                state[POSITION] = stop
                if stop == end:
                    out_end[first_segment] = written
                    state[WORD_NUMBER] = 0
                    state[CARRIED] = 0
                    state[SEGMENT] = first_segment + 1
                    if first_segment + 1 < last:
                        state[POSITION] = starts[first_segment + 1]
        state[WRITTEN] = written
        return status

    encode_segments.__name__ = encode_segments.__qualname__ = name
    encode_segments.__doc__ = _DOCUMENTATION
    return kernel(encode_segments)


_DOCUMENTATION = """Token ids of segments up to `last`, from the place that ``chunk.state`` holds.

    Parameters
    ----------
    split : SplitTables
    model
        The model's tables.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``.
    chunk, cache, scratch, lanes
        One worker's arrays.
    out : int32
        At least EXTRA_ROOM places more than the segments have bytes.
    out_end : int64[n]
        Ids written by the end of each segment.
    out_word : int32
        As large as `out`: number of each id's pre-token inside its segment; or empty, where not wanted.
    out_length : int32
        As large as `out`: bytes of text that each id stands for; or empty, where not wanted. Not for ranked tables of
        merges, with which a token's length is always that of its bytes.

    Returns
    -------
    int
        DONE; or MORE_SCRATCH, with which to call again with scratch for ``state[NEEDED]`` units; or MORE_CACHE, with
        which to call again with a cache that is larger or empty. Nothing is done twice.
"""

encode_segments = segment_encoder(
    "encode_segments",
    bpe.merge_word,
    bpe.merge_new_words,
    bpe.cut_words,
    bpe.knows_lengths,
    bpe.write_lengths,
    counts_empty=1,
)
encode_wordpiece_segments = segment_encoder(
    "encode_wordpiece_segments",
    wordpiece.wordpiece_word,
    wordpiece.cut_new_words,
    wordpiece.leave_words,
    wordpiece.knows_lengths,
    wordpiece.write_lengths,
    counts_empty=0,
)
#: By tokenizers' rule, where each pre-token's score starts from 0.
encode_unigram_words = segment_encoder(
    "encode_unigram_words",
    unigram.unigram_word,
    unigram.encode_new_words,
    wordpiece.leave_words,
    has_token_lengths,
    lengths_writer(unigram.unigram_word, UNIGRAM_UNKNOWN),
    counts_empty=1,
)
encode_piece_segments = segment_encoder(
    "encode_piece_segments",
    pieces.piece_word,
    pieces.piece_new_words,
    pieces.cut_pieces,
    has_token_lengths,
    lengths_writer(pieces.piece_word, MERGE_UNKNOWN),
    counts_empty=1,
    cuts_ascii=True,
)
