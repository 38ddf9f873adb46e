"""Where tokens stand in the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import inlined, kernel
from jittok.kernels.machine import count_bits, load64
from jittok.kernels.split import decode_codepoint
from jittok.tables import CHARACTER_KIND, CHARACTER_SPACE

#: Bytes that are looked at together: whether all of them are ASCII.
BLOCK = 512
#: Options of ``find_spans``: lengths are given for each id, not for each token.
LENGTHS_BY_ID = 1
#: A token that ends inside a character is empty, and stands where that begins, as sentencepiece has it.
EMPTY_BYTES = 2
#: After every codepoint.
NO_RUN = np.int64(1 << 40)
#: The lowest bit of each of eight bytes.
LOW_BITS = np.uint64(0x0101010101010101)


@inlined
def is_blank(blanks: Any, data: Any, at: int) -> bool:
    """Whether the character at a byte is one of `blanks`."""
    codepoint = decode_codepoint(data, at) >> 3
    page = np.int64(blanks.page_of[np.uint64(codepoint >> 7)])
    return np.int64(blanks.code_of[np.uint64(page << 7 | (codepoint & 127))]) & CHARACTER_KIND == CHARACTER_SPACE


@kernel
def find_spans(
    data: Any,
    starts: Any,
    origins: Any,
    part_end: Any,
    ids: Any,
    lengths: Any,
    options: int,
    blanks: Any,
    spans: Any,
) -> int:
    """Codepoint positions of tokens, from the bytes each stands for.

    A token that begins or ends inside a character takes in the whole character; but see EMPTY_BYTES.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    starts : int64[p]
        Byte of `data` where each part's tokens begin; never falling.
    origins : int64[p]
        Byte of `data` that positions of the part are counted from; ``origins[i] <= starts[i]``, never falling.
    part_end : int64[p]
        Number of tokens up to the end of each part.
    ids : int32[n]
        Token ids.
    lengths : uint16 or int32
        Bytes of a token, by its place in `ids`; or by id, see `options`.
    options : int
        LENGTHS_BY_ID, EMPTY_BYTES, or both added up.
    blanks : Blanks
        Characters at the beginning of a token's bytes that it does not stand for.
    spans : int64[n, 2]
        Output.

    Returns
    -------
    int
        Number of tokens. Linear in bytes and tokens.
    """
    by_token = options & LENGTHS_BY_ID
    bytes_are_empty = options & EMPTY_BYTES
    may_skip = blanks.code_of.size > 0
    token = np.int64(0)
    origin = np.int64(-1)
    at = np.int64(0)  # byte whose position is known
    position = np.int64(0)  # codepoints that begin in [origin, at)
    block_end = np.int64(0)  # a stretch of text up to here was looked at
    block_is_ascii = False  # and each of its bytes is a codepoint
    readable = data.size - 8  # eight bytes can be read from here
    for part in range(starts.size):
        if origins[part] != origin:
            origin = origins[part]
            at = origin
            position = np.int64(0)
        begin = starts[part]
        while at < begin:
            if data[np.uint64(at)] & 0xC0 != 0x80:
                position += 1
            at += 1
        last = part_end[part]
        while token < last:
            if at >= block_end or at < block_end - BLOCK:
                block_end = min(at + BLOCK, data.size)
                seen = np.int64(0)
                for i in range(at, block_end):
                    seen |= np.int64(data[np.uint64(i)])
                block_is_ascii = seen < 0x80
            if block_is_ascii:
                shift = position - at
                while token < last:
                    at_token = np.uint64(token)
                    stop = at + np.int64(lengths[np.uint64(ids[at_token]) if by_token else at_token])
                    if stop > block_end:
                        break
                    begin = at
                    while may_skip and begin < stop and is_blank(blanks, data, begin):
                        begin += 1
                    spans[at_token, np.uint64(0)] = begin + shift
                    spans[at_token, np.uint64(1)] = stop + shift
                    at = stop
                    token += 1
                position = at + shift
                if token == last:
                    break
            # Tokens that are not all in a block of ASCII. Codepoints are the bytes but those that continue one.
            at_token = np.uint64(token)
            length = np.int64(lengths[np.uint64(ids[at_token]) if by_token else at_token])
            stop = at + length
            while may_skip and at < stop and is_blank(blanks, data, at):
                at += decode_codepoint(data, at) & 7
                position += 1
            length = stop - at
            first = position
            if length > 0 and data[np.uint64(at)] & 0xC0 == 0x80:
                first -= 1
            position += length
            while at < stop:
                if at <= readable:
                    eight = load64(data, at)
                    inner = (eight >> np.uint64(7)) & ~(eight >> np.uint64(6)) & LOW_BITS
                    if stop - at < 8:
                        inner <<= np.uint64(8 * (8 - (stop - at)))
                    position -= count_bits(inner)
                    at += 8
                else:
                    if data[np.uint64(at)] & 0xC0 == 0x80:
                        position -= 1
                    at += 1
            at = stop
            spans[at_token, np.uint64(0)] = first
            spans[at_token, np.uint64(1)] = position
            if bytes_are_empty and stop < data.size and data[np.uint64(stop)] & 0xC0 == 0x80:
                spans[at_token, np.uint64(1)] = first
            token += 1
    return token


@kernel
def follow_runs(spans: Any, part_end: Any, run_indptr: Any, run_at: Any, run_source: Any) -> int:
    """Make spans in normalized texts those in the texts as given.

    Parameters
    ----------
    spans : int64[n, 2]
        In codepoints of each normalized text, never falling from one to the next; overwritten.
    part_end : int64[p]
        Number of tokens up to the end of each text.
    run_indptr, run_at, run_source
        See :class:`jittok.kernels.charsmap.NormalizedText`.

    Returns
    -------
    int
        Number of tokens. Linear in tokens and runs.
    """
    token = np.int64(0)
    zero = np.uint64(0)
    one = np.uint64(1)
    for part in range(part_end.size):
        last = np.int64(part_end[part])
        if token == last:
            continue
        run = np.int64(run_indptr[part])
        until = np.int64(run_indptr[part + 1])
        shift = np.int64(0)
        following = np.int64(0)  # where the next run begins, the first one at 0
        while token < last:
            at = np.uint64(token)
            for side in (zero, one):
                position = spans[at, side]
                while position >= following:
                    shift = np.int64(run_source[np.uint64(run)]) - following
                    run += 1
                    following = np.int64(run_at[np.uint64(run)]) if run < until else NO_RUN
                spans[at, side] = position + shift
            token += 1
    return token


@kernel
def drop_prefixes(spans: Any, part_end: Any, prefixes: Any) -> int:
    """Make spans in texts that some got one codepoint in front those in the texts as they were.

    What stands for that codepoint alone gets the span of the first one after it, as tokenizers has it.

    Parameters
    ----------
    spans : int64[n, 2]
        In codepoints; overwritten.
    part_end : int64[p]
        Number of tokens up to the end of each text.
    prefixes : int64[p]
        1 for each text that got one in front, else 0.

    Returns
    -------
    int
        Number of tokens. Linear in tokens.
    """
    token = np.int64(0)
    zero = np.uint64(0)
    one = np.uint64(1)
    for part in range(part_end.size):
        shift = np.int64(prefixes[part])
        last = np.int64(part_end[part])
        if shift == 0:
            token = last
        while token < last:
            at = np.uint64(token)
            spans[at, zero] = max(spans[at, zero] - 1, np.int64(0))
            spans[at, one] = max(spans[at, one] - 1, np.int64(1))
            token += 1
    return token


@kernel
def own_positions(data: Any, indptr: Any, number: Any, start: Any, end: Any) -> int:
    """Number the codepoints of documents, and say where each stands in its document.

    Parameters
    ----------
    data : uint8
        Valid UTF-8.
    indptr : int64[n_documents + 1]
        Documents, one after another from byte 0 on; ``data`` may be longer.
    number : int32[indptr[-1] + 1]
        Output: how many codepoints begin before each byte.
    start, end : int32[n_codepoints]
        Output; [0] where only the numbers are wanted.

    Returns
    -------
    int
        Number of codepoints. Linear.
    """
    located = start.size > 0
    count = np.int64(0)
    number[0] = 0
    for document in range(indptr.size - 1):
        first = count
        for i in range(indptr[document], indptr[document + 1]):
            if data[np.uint64(i)] & 0xC0 != 0x80:
                if located:
                    start[np.uint64(count)] = count - first
                    end[np.uint64(count)] = count - first + 1
                count += 1
            number[np.uint64(i + 1)] = count
    return count


@kernel
def follow_sources(
    indptr: Any, first: Any, source_start: Any, source_end: Any, old_start: Any, old_end: Any, out_start: Any, out_end: Any
) -> int:
    """Where codepoints of rewritten segments come from in their documents.

    Parameters
    ----------
    indptr : int64[n_segments + 1]
        Codepoints of the segments as rewritten.
    first : int32[n_segments]
        Number of the codepoint that each segment began with before.
    source_start, source_end : int32[n_codepoints]
        Where each comes from, in codepoints of its segment as it was.
    old_start, old_end : int32
        Where those came from, by their numbers.
    out_start, out_end : int32[n_codepoints]
        Output.

    Returns
    -------
    int
        Number of codepoints.
    """
    n_old = old_start.size
    for segment in range(first.size):
        base = first[segment]
        for i in range(indptr[segment], indptr[segment + 1]):
            at = np.uint64(i)
            begin = base + np.int64(source_start[at])
            stop = base + np.int64(source_end[at])
            # The end of the last segment is no codepoint.
            position = np.int64(0)
            if begin < n_old:
                position = old_start[np.uint64(begin)]
            elif n_old > 0:
                position = old_end[n_old - 1]
            out_start[at] = position
            out_end[at] = old_end[np.uint64(stop - 1)] if stop > begin else position
    return indptr[first.size]


@kernel
def find_source_spans(
    data: Any,
    starts: Any,
    part_end: Any,
    ids: Any,
    lengths: Any,
    options: int,
    word_starts: Any,
    blanks: Any,
    sources: Any,
    spans: Any,
) -> int:
    """As :func:`find_spans`, for text whose codepoints come from elsewhere.

    Parameters
    ----------
    data, starts, part_end, ids, lengths, options, blanks
        As there.
    word_starts : int64[n]
        Byte where each token's pre-token begins; [0] where no pre-token is without tokens.
    sources : Sources
        See :class:`jittok.engine.Sources`.
    spans : int64[n, 2]
        Output.

    Returns
    -------
    int
        Number of tokens. Linear.
    """
    by_token = options & LENGTHS_BY_ID
    bytes_are_empty = options & EMPTY_BYTES
    may_skip = blanks.code_of.size > 0
    number = sources.number
    token = np.int64(0)
    for part in range(starts.size):
        at = starts[part]
        word = np.int64(-1)
        while token < part_end[part]:
            at_token = np.uint64(token)
            if word_starts.size > 0 and word_starts[at_token] != word:
                word = word_starts[at_token]
                at = word
            length = np.int64(lengths[np.uint64(ids[at_token])]) if by_token else np.int64(lengths[at_token])
            stop = at + length
            while may_skip and at < stop and is_blank(blanks, data, at):
                at += decode_codepoint(data, at) & 7
            first = number[np.uint64(at + 1)] - 1
            at = stop
            last = max(number[np.uint64(at)] - 1, first)
            spans[at_token, np.uint64(0)] = sources.start[np.uint64(first)]
            if bytes_are_empty and stop < data.size and data[np.uint64(stop)] & 0xC0 == 0x80:
                spans[at_token, np.uint64(1)] = sources.start[np.uint64(first)]
            else:
                spans[at_token, np.uint64(1)] = sources.end[np.uint64(last)]
            token += 1
    return token
