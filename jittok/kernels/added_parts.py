"""Text cut at added tokens, and the ids of what is between put together with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, kernel
from jittok.kernels.machine import copy_ids, count_bits, load64

#: The lowest bit of each of eight bytes.
LOW_BITS = np.uint64(0x0101010101010101)


@kernel
def cut_parts(
    document: Any, start: Any, end: Any, token: Any, rows: Any, out_document: Any, out_start: Any, out_end: Any,
    out_token: Any,
) -> int:  # fmt: skip
    """Cut text parts at the added tokens that were found in them.

    Parameters
    ----------
    document, start, end : int64[n]
    token : int32[n]
        The parts, see ``engine.Parts``.
    rows : int64[m, 4]
        As ``find_added_tokens`` gives them, where segment i is the text part number i.
    out_document, out_start, out_end, out_token
        The new parts, ``n + 2 m`` at most: for each text part the text before each of its tokens, which is left out
        where it is empty, each token, and the text after the last, which is left out, too.

    Returns
    -------
    int
        Their number. Linear.
    """
    n = np.int64(0)
    row = np.int64(0)
    n_rows = rows.shape[0]
    number = np.int64(0)
    for part in range(token.shape[0]):
        at = np.int64(start[part])
        is_cut = False
        if token[part] < 0:
            while row < n_rows and rows[row, 0] == number:
                begin = rows[row, 1]
                if at < begin:
                    out_document[n] = document[part]
                    out_start[n] = at
                    out_end[n] = begin
                    out_token[n] = -1
                    n += 1
                at = rows[row, 2]
                out_document[n] = document[part]
                out_start[n] = begin
                out_end[n] = at
                out_token[n] = rows[row, 3]
                n += 1
                row += 1
                is_cut = True
            number += 1
        if not is_cut or at < end[part]:
            out_document[n] = document[part]
            out_start[n] = at
            out_end[n] = end[part]
            out_token[n] = token[part]
            n += 1
    return n


@kernel
def join_parts(document: Any, token: Any, part_end: Any, ids: Any, first: int, ends: Any) -> int:
    """Put the ids of added tokens between those of text parts.

    Parameters
    ----------
    document : int64[n], token : int32[n]
        The parts, see ``engine.Parts``.
    part_end : int64[n_text]
        Where the ids of each text part end in `ids`.
    ids : int32
        Those of the text parts are there, as many places behind `first` as there are tokens; they are moved forward.
    first : int
        Where the ids of the first part are to begin.
    ends : int64[n_documents]
        Receives where the ids of each document end.

    Returns
    -------
    int
        Where the ids of the last part end. Linear.
    """
    n_tokens = np.int64(0)
    for part in range(token.shape[0]):
        n_tokens += token[part] >= 0
    to = np.int64(first)
    at = to + n_tokens
    number = np.int64(0)
    done = np.int64(0)  # documents
    for part in range(token.shape[0]):
        while done < document[part]:
            ends[done] = to
            done += 1
        if token[part] >= 0:
            ids[to] = token[part]
            to += 1
        else:
            end = np.int64(part_end[number])
            number += 1
            if to == at:
                to = at = end
            # Never beyond the end: what follows is still to be moved.
            while at + 16 <= end:
                copy_ids(ids, to, ids, at)
                to += 16
                at += 16
            while at < end:
                ids[np.uint64(to)] = ids[np.uint64(at)]
                to += 1
                at += 1
    while done < ends.shape[0]:
        ends[done] = to
        done += 1
    return to


@helper
def count_codepoints(data: Any, begin: int, end: int) -> int:
    """How many codepoints begin in ``data[begin:end]``."""
    count = np.int64(0)
    at = np.int64(begin)
    while at + 8 <= end:
        eight = load64(data, at)
        inner = (eight >> np.uint64(7)) & ~(eight >> np.uint64(6)) & LOW_BITS
        count += 8 - np.int64(count_bits(inner))
        at += 8
    while at < end:
        count += data[np.uint64(at)] & 0xC0 != 0x80
        at += 1
    return count


@kernel
def find_positions(data: Any, indptr: Any, document: Any, start: Any, end: Any, token: Any, first: Any, after: Any) -> int:
    """Where the parts of documents begin, and where added tokens end, in codepoints of their documents.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    indptr : int64[n_documents + 1]
        Document i is ``data[indptr[i]:indptr[i + 1]]``.
    document, start, end : int64[n]
    token : int32[n]
        The parts, see ``engine.Parts``: text as it was given.
    first, after : int64[n]
        Output; `after` for added tokens only.

    Returns
    -------
    int
        The number of parts. Linear: text behind the last token of a document is not read.
    """
    last_document = np.int64(-1)
    at = np.int64(0)
    position = np.int64(0)
    for part in range(token.shape[0]):
        if document[part] != last_document:
            last_document = document[part]
            at = indptr[last_document]
            position = np.int64(0)
        begin = start[part]
        # White space that two tokens take makes the second begin before the first one ends.
        position += count_codepoints(data, at, begin) - count_codepoints(data, begin, at)
        at = begin
        first[part] = position
        if token[part] >= 0:
            at = end[part]
            position += count_codepoints(data, begin, at)
            after[part] = position
    return token.shape[0]


@kernel
def join_details(document: Any, token: Any, part_end: Any, first: Any, after: Any, spans: Any, words: Any) -> int:
    """Put the spans and the word numbers of added tokens between those of text parts.

    Parameters
    ----------
    document : int64[n], token : int32[n]
        The parts, see ``engine.Parts``.
    part_end : int64[n_text]
        How many ids there are up to the end of each text part.
    first, after : int64[n]
        As :func:`find_positions` gives them.
    spans : int64[n_ids, 2]
        Those of the text parts, in codepoints of each part, are there behind as many places as there are tokens; they
        are moved forward. Where they are not wanted, [0, 2].
    words : int32[n_ids]
        Likewise, pre-tokens numbered in each part; they become numbers in the document. Where not wanted, [0].

    Returns
    -------
    int
        The number of ids. Linear.
    """
    located = spans.shape[0] > 0
    numbered = words.shape[0] > 0
    at = np.int64(0)
    for part in range(token.shape[0]):
        at += token[part] >= 0
    n_tokens = at
    to = np.int64(0)
    number = np.int64(0)
    last_document = np.int64(-1)
    word = np.int64(0)  # of the document so far
    zero = np.uint64(0)
    one = np.uint64(1)
    for part in range(token.shape[0]):
        if document[part] != last_document:
            last_document = document[part]
            word = np.int64(0)
        if token[part] >= 0:
            if located:
                spans[to, 0] = first[part]
                spans[to, 1] = after[part]
            if numbered:
                words[to] = word
            word += 1
            to += 1
            continue
        end = n_tokens + np.int64(part_end[number])
        number += 1
        n = end - at
        if located:
            shift = np.int64(first[part])
            if to < at or shift > 0:
                for i in range(n):
                    spans[np.uint64(to + i), zero] = spans[np.uint64(at + i), zero] + shift
                    spans[np.uint64(to + i), one] = spans[np.uint64(at + i), one] + shift
        if numbered and n > 0:
            before = word
            word += np.int64(words[end - 1]) + 1
            if to < at or before > 0:
                for i in range(n):
                    words[np.uint64(to + i)] = before + np.int64(words[np.uint64(at + i)])
        to += n
        at = end
    return to
