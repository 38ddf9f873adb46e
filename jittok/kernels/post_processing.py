"""Special tokens around sequences, and white space left out of spans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel


@kernel
def trim_spans(
    leading: NDArray[np.int32],
    trailing: NDArray[np.int32],
    keep_first: bool,
    ids: NDArray[np.int32],
    indptr: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> int:
    """Leave the white space at the ends of tokens out of their spans.

    Parameters
    ----------
    leading, trailing
        int32[size]: characters of white space that each token string begins and ends with.
    keep_first
        Whether a single leading blank of the first token of a text was put there before splitting, so that
        it is not in the span. A token whose span begins at 0 counts as first.
    ids, indptr
        int32[total], int64[n + 1]: text `d` is ``ids[indptr[d]:indptr[d + 1]]``. All ids < size.
    spans
        int64[total, 2], changed in place.

    Returns
    -------
    int
        0.

    Notes
    -----
    Linear. Source: measured on tokenizers' ByteLevel and RobertaProcessing post-processors.
    """
    for document in range(len(indptr) - 1):
        first = int(indptr[document])
        for position in range(first, int(indptr[document + 1])):
            token = int(ids[position])
            before = int(leading[token])
            after = int(trailing[token])
            if before == 0 and after == 0:
                continue
            begin = int(spans[position, 0])
            end = int(spans[position, 1])
            if keep_first and before == 1 and (position == first or begin == 0):
                before = 0
            begin = min(begin + before, end)
            if end >= after:
                end = max(end - after, begin)
            spans[position, 0] = begin
            spans[position, 1] = end
    return 0


@kernel
def fill_template(
    piece_kinds: NDArray[np.int8],
    piece_types: NDArray[np.int32],
    piece_ids: NDArray[np.int32],
    ids: NDArray[np.int32],
    spans: NDArray[np.int64],
    word_ids: NDArray[np.int32],
    ranges: NDArray[np.int64],
    out_indptr: NDArray[np.int64],
    out_ids: NDArray[np.int32],
    out_spans: NDArray[np.int64],
    out_word_ids: NDArray[np.int32],
    out_marks: NDArray[np.int32],
) -> int:
    """Write each row as its template says: special tokens, the text's tokens, the pair's tokens.

    Parameters
    ----------
    piece_kinds, piece_types, piece_ids
        [p]: the template, one entry for each special token or sequence. Kind -1 is the special token of
        that id, 0 the first sequence, 1 the second; the type is the type id of what the entry gives.
    ids, spans, word_ids
        int32[total], int64[total, 2], int32[total]: all sequences; spans and words may have length 0.
    ranges
        int64[n, s, 2]: where each of the template's sequences, in its order, begins and ends in `ids`.
    out_indptr
        int64[n + 1] receives the row pointers.
    out_ids, out_spans, out_word_ids
        [m] receive the row's tokens; special tokens have the span (0, 0) and the word -1. Spans and words
        of length 0 are left alone.
    out_marks
        int32[3, m] receives type ids, the mask of special tokens, and sequence ids (-1 for special
        tokens); int32[3, 0] if they are not wanted.

    Returns
    -------
    int
        The number of tokens written. The caller makes the outputs large enough.

    Notes
    -----
    Linear in the output.
    """
    has_spans = len(out_spans) > 0
    has_words = len(out_word_ids) > 0
    has_marks = out_marks.shape[1] > 0
    written = 0
    out_indptr[0] = 0
    for row in range(len(ranges)):
        sequence = 0
        for piece in range(len(piece_kinds)):
            kind = int(piece_kinds[piece])
            begin = 0
            end = 1
            if kind >= 0:
                begin = int(ranges[row, sequence, 0])
                end = int(ranges[row, sequence, 1])
                sequence += 1
            for position in range(begin, end):
                if kind < 0:
                    out_ids[written] = piece_ids[piece]
                    if has_spans:
                        out_spans[written, 0] = 0
                        out_spans[written, 1] = 0
                    if has_words:
                        out_word_ids[written] = -1
                else:
                    out_ids[written] = ids[position]
                    if has_spans:
                        out_spans[written, 0] = spans[position, 0]
                        out_spans[written, 1] = spans[position, 1]
                    if has_words:
                        out_word_ids[written] = word_ids[position]
                if has_marks:
                    out_marks[0, written] = piece_types[piece]
                    out_marks[1, written] = 1 if kind < 0 else 0
                    out_marks[2, written] = kind
                written += 1
        out_indptr[row + 1] = written
    return written
