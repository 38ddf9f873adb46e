"""Text cut at added tokens, and the ids of what is between put together with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel
from jittok.kernels.machine import copy_ids


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
