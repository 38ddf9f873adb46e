"""Rewriting text: normalization forms, lower case, replacement, and white space at the ends.

Segments are decoded once to codepoints (:func:`decode_segments`), each step reads one :class:`AlignedText`
and writes another, and the last one is encoded (:func:`encode_text`). With every codepoint goes where it
comes from: a range of codepoints of the segment as it was given. Both ends of these ranges never decrease
along a segment, so the source of a stretch of text is from its first codepoint's start to its last one's end.

A step returns the number of codepoints it wrote, or, when the output has no room, a negative number: minus
the capacity to try next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, kernel
from jittok.kernels.machine import clean_block, range_bits, trailing_zeros
from jittok.kernels.utf8 import codepoint_at, is_space, start_before
from jittok.tables import (
    CLEAN_UP_BYTES,
    CLEAN_UP_CLEANS,
    CLEAN_UP_CODEPOINTS,
    CLEAN_UP_COMBINING,
    CLEAN_UP_CONTENT,
    CLEAN_UP_EXPANSION,
    CLEAN_UP_HANGUL,
    CLEAN_UP_KEPT,
    CLEAN_UP_KIND,
    CLEAN_UP_LOWERS,
    CLEAN_UP_MARK,
    CLEAN_UP_PADDED,
    CLEAN_UP_REMOVED,
    CLEAN_UP_SELF,
    SUBSTITUTION_COMPOSES,
    SUBSTITUTION_EXPANDS,
    SUBSTITUTION_HANGUL,
    SUBSTITUTION_REORDERS,
    SUBSTITUTION_SECOND,
    SUSPICION_ALWAYS,
    SUSPICION_ASCII,
    SUSPICION_CHANGES,
    SUSPICION_NONE,
    SUSPICION_PREFIX,
    SUSPICION_PREFIX_2,
    SUSPICION_STRIP_LEFT,
    SUSPICION_STRIP_RIGHT,
)

CODEPOINT_MASK = 0x1FFFFF
CLASS_SHIFT = 21
CLASS_MASK = 0xFF
#: Bit of a packed codepoint that is not the first of its expansion.
ADDED = 1 << 29
#: Bit of a packed codepoint that may compose with what stands before it.
SECOND = 1 << 30


class AlignedText(NamedTuple):
    """Segments of text as codepoints, with the place each comes from."""

    codepoints: NDArray[np.uint32]  # all segments one after another; may have room after the last
    indptr: NDArray[np.int64]  # [n_segments + 1]
    source_start: NDArray[np.int32]  # as codepoints, relative to the segment as given; [0] when not wanted
    source_end: NDArray[np.int32]


@kernel
def may_change(
    suspicion: Any, forms: Any, data: Any, starts: Any, ends: Any, first: Any, last: Any, out: Any
) -> int:
    """Say which segments the steps may change; quick, and never wrong about one that they do change.

    Parameters
    ----------
    suspicion : SuspicionTables
    forms : SubstitutionTables
        Of the normalization form that SUSPICION_CONTEXT is about.
    data : uint8[n_bytes]
        Valid UTF-8.
    starts, ends : int64[n_segments]
    first, last : int
        Only the segments ``first <= i < last`` are looked at.
    out : bool[n_segments]

    Returns
    -------
    int
        How many may change. Linear, 64 bytes at a time where the text is ASCII and ASCII never changes.
    """
    numbers = suspicion.numbers
    ascii_changes = numbers[SUSPICION_ASCII] != 0
    composes = forms.numbers[SUBSTITUTION_COMPOSES] != 0
    n_pairs = forms.pairs.shape[0]
    count = 0
    for segment in range(first, last):
        begin = starts[segment]
        end = ends[segment]
        changes = False
        if begin < end:
            changes = numbers[SUSPICION_ALWAYS] != 0
            codepoint, _ = codepoint_at(data, begin)
            changes |= numbers[SUSPICION_PREFIX] >= 0 and codepoint != numbers[SUSPICION_PREFIX]
            changes |= numbers[SUSPICION_PREFIX_2] >= 0 and codepoint != numbers[SUSPICION_PREFIX_2]
            changes |= numbers[SUSPICION_STRIP_LEFT] != 0 and is_space(codepoint)
            if numbers[SUSPICION_STRIP_RIGHT]:
                codepoint, _ = codepoint_at(data, start_before(data, end))
                changes |= is_space(codepoint)
        position = begin
        starter = -1  # the last codepoint of combining class 0
        last_class = 0
        while position < end and not changes:
            if not ascii_changes and np.int64(data[position]) < 0x80:
                if position + 64 <= data.shape[0]:  # may look beyond the segment
                    position += trailing_zeros(range_bits(data, position, 0x80, 0x80))
                    if position > end:
                        position = end
                else:
                    position += 1
                starter = np.int64(data[position - 1])
                last_class = 0
                continue
            codepoint, width = codepoint_at(data, position)
            position += width
            page = np.int64(suspicion.page_of[codepoint >> 7])
            kind = suspicion.class_of[(page << 7) | (codepoint & 127)]
            if kind == SUSPICION_NONE:
                starter = codepoint
                last_class = 0
                continue
            if kind == SUSPICION_CHANGES:
                changes = True
                break
            page = np.int64(forms.page_of[codepoint >> 7])
            number = np.int64(forms.class_of[(page << 7) | (codepoint & 127)])
            combining = np.int64(forms.combining[number])
            if combining and combining < last_class:
                changes = True  # not in canonical order
            elif composes and starter >= 0 and forms.flags[number] & SUBSTITUTION_SECOND:
                page = np.int64(forms.page_of[starter >> 7])
                before = np.int64(forms.class_of[(page << 7) | (starter & 127)])
                if forms.flags[before] & SUBSTITUTION_EXPANDS or 0xAC00 <= starter < 0xD7A4:
                    changes = True  # its parts may compose in another way
                elif 0x1100 <= starter < 0x1113 and 0x1161 <= codepoint < 0x1176:
                    changes = True
                else:
                    key = (starter << 21) | codepoint
                    low = 0
                    high = n_pairs
                    while low < high:
                        half = (low + high) >> 1
                        if forms.pairs[half] < key:
                            low = half + 1
                        else:
                            high = half
                    changes = low < n_pairs and forms.pairs[low] == key
            last_class = combining
            if combining == 0:
                starter = codepoint
        out[segment] = changes
        count += changes
    return count


@kernel
def decode_segments(data: Any, starts: Any, ends: Any, out: Any) -> int:
    """Decode segments of valid UTF-8.

    Parameters
    ----------
    data : uint8[n_bytes]
    starts, ends : int64[n_segments]
    out : AlignedText
        With room for as many codepoints as the segments have bytes.

    Returns
    -------
    int
        The number of codepoints.
    """
    aligned = out.source_start.shape[0] > 0
    count = 0
    out.indptr[0] = 0
    for segment in range(starts.shape[0]):
        position = starts[segment]
        end = ends[segment]
        first = count
        while position < end:
            lead = np.int64(data[position])
            if lead < 0x80:
                out.codepoints[count] = lead
                position += 1
            else:
                codepoint, width = codepoint_at(data, position)
                out.codepoints[count] = codepoint
                position += width
            count += 1
        if aligned:
            for i in range(first, count):
                out.source_start[i] = i - first
                out.source_end[i] = i - first + 1
        out.indptr[segment + 1] = count
    return count


@kernel
def encode_text(text: Any, data: Any, starts: Any, ends: Any) -> int:
    """Encode to UTF-8.

    Parameters
    ----------
    text : AlignedText
    data : uint8[at least 4 * n_codepoints]
        Output.
    starts, ends : int64[n_segments]
        Output: segments one after another.

    Returns
    -------
    int
        The number of bytes.
    """
    position = 0
    for segment in range(starts.shape[0]):
        starts[segment] = position
        for i in range(text.indptr[segment], text.indptr[segment + 1]):
            codepoint = np.int64(text.codepoints[i])
            if codepoint < 0x80:
                data[position] = codepoint
                position += 1
            elif codepoint < 0x800:
                data[position] = 0xC0 | (codepoint >> 6)
                data[position + 1] = 0x80 | (codepoint & 0x3F)
                position += 2
            elif codepoint < 0x10000:
                data[position] = 0xE0 | (codepoint >> 12)
                data[position + 1] = 0x80 | ((codepoint >> 6) & 0x3F)
                data[position + 2] = 0x80 | (codepoint & 0x3F)
                position += 3
            else:
                data[position] = 0xF0 | (codepoint >> 18)
                data[position + 1] = 0x80 | ((codepoint >> 12) & 0x3F)
                data[position + 2] = 0x80 | ((codepoint >> 6) & 0x3F)
                data[position + 3] = 0x80 | (codepoint & 0x3F)
                position += 4
        ends[segment] = position
    return position


@helper
def _sort_marks(packed: Any, first: Any, last: Any, scratch: Any) -> None:
    """Sort the packed codepoints [first, last) by combining class, stably; at most 55 passes, one a class."""
    for i in range(first, last):
        scratch[i - first] = packed[i]
    written = first
    key = 0
    while written < last:
        following = CLASS_MASK + 1
        for i in range(last - first):
            combining = (np.int64(scratch[i]) >> CLASS_SHIFT) & CLASS_MASK
            if combining == key:
                packed[written] = scratch[i]
                written += 1
            elif key < combining < following:
                following = combining
        key = following


@helper
def _composed(pairs: Any, results: Any, before: Any, codepoint: Any) -> int:
    """What two codepoints compose to, or -1."""
    if 0x1100 <= before < 0x1113 and 0x1161 <= codepoint < 0x1176:
        return 0xAC00 + ((before - 0x1100) * 21 + (codepoint - 0x1161)) * 28
    if 0xAC00 <= before < 0xD7A4 and 0x11A8 <= codepoint < 0x11C3 and (before - 0xAC00) % 28 == 0:
        return before + (codepoint - 0x11A7)
    key = (before << 21) | codepoint
    low = 0
    high = pairs.shape[0]
    while low < high:
        half = (low + high) >> 1
        if pairs[half] < key:
            low = half + 1
        else:
            high = half
    if low < pairs.shape[0] and pairs[low] == key:
        return np.int64(results[low])
    return -1


@helper
def _compose(
    pairs: Any, results: Any, codepoints: Any, source_start: Any, source_end: Any, first: Any, last: Any
) -> int:
    """Compose the packed, ordered codepoints [first, last) in place; returns the new end."""
    aligned = source_start.shape[0] > 0
    written = first
    starter = -1  # where the codepoint is that others may compose with
    last_class = 0  # of what stands between it and the present one; 0: nothing
    for i in range(first, last):
        packed = np.int64(codepoints[i])
        codepoint = packed & CODEPOINT_MASK
        combining = (packed >> CLASS_SHIFT) & CLASS_MASK
        if packed & SECOND and starter >= 0 and (last_class == 0 or last_class < combining):
            result = _composed(pairs, results, np.int64(codepoints[starter]), codepoint)
            if result >= 0:
                codepoints[starter] = result
                if aligned:
                    # What follows the starter may not end before it does.
                    reach = source_end[i]
                    k = starter
                    while k < written and source_end[k] < reach:
                        source_end[k] = reach
                        k += 1
                continue
        if combining == 0:
            starter = written
        last_class = combining
        codepoints[written] = codepoint
        if aligned:
            source_start[written] = source_start[i]
            source_end[written] = source_end[i]
        written += 1
    return written


@kernel
def substitute(tables: Any, text: Any, out: Any, scratch: Any) -> int:
    """Apply a normalization form or lower case.

    Parameters
    ----------
    tables : SubstitutionTables
    text, out : AlignedText
    scratch : uint32[capacity of out]
        Used for runs of combining marks that are not in order.

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next. Linear for every text.

    Notes
    -----
    Source: Unicode Standard Annex 15, with tables of Unicode 9.0. Where codepoints are taken apart or change
    places, the k-th that stands for a new source is given the k-th source, as in tokenizers. A composed
    codepoint comes from all of its parts, which tokenizers gets wrong.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    hangul = tables.numbers[SUBSTITUTION_HANGUL] != 0
    reorders = tables.numbers[SUBSTITUTION_REORDERS] != 0
    composes = tables.numbers[SUBSTITUTION_COMPOSES] != 0
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        first = text.indptr[segment]
        last = text.indptr[segment + 1]
        packed_first = -1  # the first codepoint that is packed
        run = written  # where the present run of combining marks begins
        run_source = first  # what its first codepoint with a new source comes from
        last_class = 0
        ordered = True
        i = first - 1
        while i < last:
            i += 1
            if last_class == 0:  # copy what stays as it is
                while i < last and written + 3 <= capacity:
                    codepoint = np.int64(text.codepoints[i])
                    page = np.int64(tables.page_of[codepoint >> 7])
                    number = np.int64(tables.class_of[(page << 7) | (codepoint & 127)])
                    if number != 0 or (hangul and 0xAC00 <= codepoint < 0xD7A4):
                        break
                    out.codepoints[written] = codepoint
                    if aligned:
                        out.source_start[written] = text.source_start[i]
                        out.source_end[written] = text.source_end[i]
                    written += 1
                    i += 1
            begin = written
            number = 0
            if i < last:
                if written + 3 > capacity:
                    return -(2 * capacity + 64)
                codepoint = np.int64(text.codepoints[i])
                page = np.int64(tables.page_of[codepoint >> 7])
                number = np.int64(tables.class_of[(page << 7) | (codepoint & 127)])
                if number == 0 and hangul and 0xAC00 <= codepoint < 0xD7A4:
                    syllable = codepoint - 0xAC00
                    out.codepoints[written] = 0x1100 + syllable // 588
                    out.codepoints[written + 1] = (0x1161 + syllable % 588 // 28) | ADDED | SECOND
                    written += 2
                    if syllable % 28:
                        out.codepoints[written] = (0x11A7 + syllable % 28) | ADDED | SECOND
                        written += 1
                    if packed_first < 0:
                        packed_first = begin
                elif number == 0:
                    out.codepoints[written] = codepoint
                    written += 1
                else:
                    if packed_first < 0:
                        packed_first = begin
                    if tables.flags[number] & SUBSTITUTION_EXPANDS:
                        lower = np.int64(tables.expansion_indptr[number])
                        upper = np.int64(tables.expansion_indptr[number + 1])
                        if written + upper - lower > capacity:
                            return -(2 * capacity + 64)
                        for k in range(lower, upper):
                            out.codepoints[written] = np.int64(tables.expansion[k]) | (ADDED if k > lower else 0)
                            written += 1
                    else:
                        packed = codepoint | (np.int64(tables.combining[number]) << CLASS_SHIFT)
                        if tables.flags[number] & SUBSTITUTION_SECOND:
                            packed |= SECOND
                        out.codepoints[written] = packed
                        written += 1
                if aligned:
                    for k in range(begin, written):
                        out.source_start[k] = text.source_start[i]
                        out.source_end[k] = text.source_end[i]
                if not reorders or (number == 0 and last_class == 0):
                    continue
            # Close runs of combining marks; the end of the segment closes the last one.
            for k in range(begin, written if i < last else written + 1):
                combining = 0
                if k < written:
                    combining = (np.int64(out.codepoints[k]) >> CLASS_SHIFT) & CLASS_MASK
                if combining == 0:
                    if not ordered:
                        _sort_marks(out.codepoints, run, k, scratch)
                        if aligned:
                            source = run_source
                            for m in range(run, k):
                                if np.int64(out.codepoints[m]) & ADDED:
                                    out.source_start[m] = text.source_start[source - 1]
                                    out.source_end[m] = text.source_end[source - 1]
                                else:
                                    out.source_start[m] = text.source_start[source]
                                    out.source_end[m] = text.source_end[source]
                                    source += 1
                        ordered = True
                elif last_class == 0:
                    run = k
                    run_source = i + 1 if k > begin else i
                elif combining < last_class:
                    ordered = False
                last_class = combining
        if packed_first >= 0:
            # What stands before the first packed codepoint may compose with it.
            if packed_first > out.indptr[segment]:
                packed_first -= 1
            if composes:
                written = _compose(
                    tables.pairs,
                    tables.composed,
                    out.codepoints,
                    out.source_start,
                    out.source_end,
                    packed_first,
                    written,
                )
            else:
                for k in range(packed_first, written):
                    out.codepoints[k] = np.int64(out.codepoints[k]) & CODEPOINT_MASK
        out.indptr[segment + 1] = written
    return written


@helper
def after_white_space(codepoints: Any, first: Any, last: Any) -> int:
    """The first codepoint from `first` on, up to `last`, before which all is white space."""
    at = np.int64(first)
    while at < last and is_space(np.int64(codepoints[at])):
        at += 1
    return at


@kernel
def replace_literal(pattern: Any, failure: Any, content: Any, text: Any, out: Any) -> int:
    """Replace every occurrence of a string, leftmost first, without overlap.

    Parameters
    ----------
    pattern : uint32[m]
        Without codepoints, it is found before each codepoint and at the end.
    failure : int32[m]
        For each prefix of `pattern` the length of its longest proper prefix that is also its suffix.
    content : uint32[k]
    text, out : AlignedText

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next.

    Notes
    -----
    Linear: Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977. The replacement comes from all that
    it replaces (in tokenizers only from the last codepoint of it, so that a span leaves text out), but for white space
    in front: of a run of blanks that becomes one, the last is that one, as in the reference.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    length = pattern.shape[0]
    size = content.shape[0]
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        first = text.indptr[segment]
        last = text.indptr[segment + 1]
        matched = 0
        if length == 1 and size == 1 and written + last - first <= capacity:
            for i in range(first, last):
                codepoint = text.codepoints[i]
                out.codepoints[written + i - first] = content[0] if codepoint == pattern[0] else codepoint
            if aligned:
                for i in range(first, last):
                    out.source_start[written + i - first] = text.source_start[i]
                    out.source_end[written + i - first] = text.source_end[i]
            written += last - first
            out.indptr[segment + 1] = written
            continue
        for i in range(first, last + 1):
            if written + size + 1 > capacity:
                return -(2 * capacity + size + 64)
            if length == 0:
                if first < last:
                    for k in range(size):
                        out.codepoints[written] = content[k]
                        if aligned:
                            out.source_start[written] = text.source_start[i - 1] if i > first else 0
                            out.source_end[written] = text.source_end[i - 1] if i > first else 0
                        written += 1
            if i == last:
                break
            out.codepoints[written] = text.codepoints[i]
            if aligned:
                out.source_start[written] = text.source_start[i]
                out.source_end[written] = text.source_end[i]
            written += 1
            if length == 0:
                continue
            if matched == 0 and text.codepoints[i] != pattern[0]:
                continue
            while matched > 0 and pattern[matched] != text.codepoints[i]:
                matched = np.int64(failure[matched - 1])
            if pattern[matched] == text.codepoints[i]:
                matched += 1
            if matched == length:
                matched = 0
                written -= length
                begin = after_white_space(text.codepoints, i - length + 1, i)
                for k in range(size):
                    out.codepoints[written] = content[k]
                    if aligned:
                        out.source_start[written] = text.source_start[begin]
                        out.source_end[written] = text.source_end[i]
                    written += 1
        out.indptr[segment + 1] = written
    return written


@kernel
def replace_matches(automaton: Any, content: Any, text: Any, out: Any) -> int:
    """Replace every match of a regular expression, leftmost first, without overlap.

    Parameters
    ----------
    automaton : SplitAutomaton
    content : uint32[k]
    text, out : AlignedText

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next.

    Notes
    -----
    A match without codepoints counts unless the match before it ends there. The cost is that of the attempts:
    linear for patterns that fail after a bounded number of codepoints or only fail at the first. Sources are
    as in :func:`replace_literal`.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    size = content.shape[0]
    page_of = automaton.classes.page_of
    class_of = automaton.classes.class_of
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        first = text.indptr[segment]
        last = text.indptr[segment + 1]
        position = first
        match_end = -1  # of the match before
        while position <= last and first < last:
            if written + size + 1 > capacity:
                return -(2 * capacity + size + 64)
            best = -1
            state = automaton.start
            i = position
            while True:
                if i < last:
                    codepoint = np.int64(text.codepoints[i])
                    number = np.int64(class_of[(np.int64(page_of[codepoint >> 7]) << 7) | (codepoint & 127)])
                else:
                    number = automaton.end_class
                entry = np.int64(automaton.transitions[state + number])
                if entry & 1:
                    best = i
                state = entry >> 1
                if state == 0 or i == last:
                    break
                i += 1
            if best >= 0 and (best > position or best != match_end):
                begin = np.int64(best) - 1
                if best > position:
                    begin = after_white_space(text.codepoints, position, best - 1)
                for k in range(size):
                    out.codepoints[written] = content[k]
                    if aligned:
                        out.source_start[written] = text.source_start[begin] if best > first else 0
                        out.source_end[written] = text.source_end[best - 1] if best > first else 0
                    written += 1
                match_end = best
                if best > position:
                    position = best
                    continue
            if position < last:
                out.codepoints[written] = text.codepoints[position]
                if aligned:
                    out.source_start[written] = text.source_start[position]
                    out.source_end[written] = text.source_end[position]
                written += 1
            position += 1
        out.indptr[segment + 1] = written
    return written


@kernel
def map_bytes(alphabet: Any, text: Any, out: Any) -> int:
    """Write each byte of the text's UTF-8 as a character of the byte alphabet.

    Parameters
    ----------
    alphabet : uint32[256]
        The codepoint that stands for each byte.
    text, out : AlignedText

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        for i in range(text.indptr[segment], text.indptr[segment + 1]):
            if written + 4 > capacity:
                return -(2 * capacity + 64)
            codepoint = np.int64(text.codepoints[i])
            begin = written
            if codepoint < 0x80:
                out.codepoints[written] = alphabet[codepoint]
                written += 1
            else:
                shift = 6 if codepoint < 0x800 else 12 if codepoint < 0x10000 else 18
                lead = 0xC0 if codepoint < 0x800 else 0xE0 if codepoint < 0x10000 else 0xF0
                out.codepoints[written] = alphabet[lead | codepoint >> shift]
                written += 1
                while shift > 0:
                    shift -= 6
                    out.codepoints[written] = alphabet[0x80 | codepoint >> shift & 63]
                    written += 1
            if aligned:
                for k in range(begin, written):
                    out.source_start[k] = text.source_start[i]
                    out.source_end[k] = text.source_end[i]
        out.indptr[segment + 1] = written
    return written


@kernel
def edit_ends(
    strip_left: Any, strip_right: Any, prefix: Any, unless: Any, at_start: Any, text: Any, out: Any
) -> int:
    """Remove white space at the ends of each segment, then put `prefix` before what is not empty.

    Parameters
    ----------
    strip_left, strip_right : int
        1: remove.
    prefix : uint32[k]
    unless : int
        Segments that begin with this codepoint get no prefix; -1: no such codepoint.
    at_start : bool[n_segments]
        Segments without it get no prefix.
    text, out : AlignedText

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next. The prefix comes from where the first codepoint
        comes from, as tokenizers has it.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    size = prefix.shape[0]
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        first = text.indptr[segment]
        last = text.indptr[segment + 1]
        if strip_left:
            while first < last and is_space(np.int64(text.codepoints[first])):
                first += 1
        if strip_right:
            while first < last and is_space(np.int64(text.codepoints[last - 1])):
                last -= 1
        if written + size + last - first > capacity:
            return -(2 * capacity + size + last - first)
        if first < last and at_start[segment] and np.int64(text.codepoints[first]) != unless:
            for k in range(size):
                out.codepoints[written] = prefix[k]
                if aligned:
                    out.source_start[written] = text.source_start[first]
                    out.source_end[written] = text.source_end[first]
                written += 1
        for i in range(first, last):
            out.codepoints[written] = text.codepoints[i]
            if aligned:
                out.source_start[written] = text.source_start[i]
                out.source_end[written] = text.source_end[i]
            written += 1
        out.indptr[segment + 1] = written
    return written


class CleanText(NamedTuple):
    """Segments of text as UTF-8, with the place each codepoint comes from."""

    data: NDArray[np.uint8]  # may have room after the last segment
    starts: NDArray[np.int64]  # [n_segments]
    ends: NDArray[np.int64]
    indptr: NDArray[np.int64]  # [n_segments + 1] number of codepoints before each segment
    source_start: NDArray[np.int32]  # as in AlignedText
    source_end: NDArray[np.int32]
    state: NDArray[np.int64]  # [1] 1: every codepoint became one that is as long, so nothing moved


#: What :func:`clean_up` returns where NFD would change the order of combining marks.
OUT_OF_ORDER = -1
PLAIN_BLOCK = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def clean_up(tables: Any, data: Any, starts: Any, ends: Any, source_start: Any, source_end: Any, out: Any) -> int:
    """Apply BERT's clean-up to segments of UTF-8.

    Parameters
    ----------
    tables : CleanUpTables
    data : uint8[n_bytes]
        Valid UTF-8.
    starts, ends : int64[n_segments]
    source_start, source_end : int32[n_codepoints]
        Where the codepoints of the segments come from, one segment after another; [0]: from themselves.
    out : CleanText
        With room for three times as many bytes (and codepoints, where sources are wanted), and 64 more.

    Returns
    -------
    int
        The number of bytes, or OUT_OF_ORDER: then the steps must be done one by one. Linear; 64 bytes at a time where
        the text is ASCII.

    Notes
    -----
    Marks in a run are sorted by their combining classes, and then many are left out. Only one that stays can show
    that, and there are few of those; a run with such a mark that is not sorted already is what OUT_OF_ORDER is for.
    """
    numbers = tables.numbers
    lowers = numbers[CLEAN_UP_LOWERS]
    cleans = numbers[CLEAN_UP_CLEANS]
    aligned = out.source_start.shape[0] > 0
    given = source_start.shape[0] > 0
    page_of = tables.page_of
    entries = tables.entry
    last_block = data.shape[0] - 64
    result = out.data
    written = np.int64(0)
    count = np.int64(0)  # of codepoints written
    source = np.int64(0)  # number of the codepoint read
    stays = True
    out.indptr[0] = 0
    for segment in range(starts.shape[0]):
        position = starts[segment]
        end = ends[segment]
        out.starts[segment] = written
        if not given:
            source = np.int64(0)
        last_class = np.int64(0)  # of the marks of this run, the greatest
        has_kept = False
        is_plain = True  # the codepoint before was ASCII
        while position < end:
            if is_plain and position <= last_block:
                # What is written beyond the plain bytes is overwritten. Whole blocks in a loop of their own, in which
                # nothing waits for a position that depends on what is found.
                length = np.int64(0)
                block = np.int64(64)
                while block == 64 and position + length <= last_block:
                    right = clean_block(result, written + length, data, position + length, lowers, cleans)
                    if right != PLAIN_BLOCK:
                        block = trailing_zeros(~right)
                    length += block
                    if position + length >= end:
                        length = end - position
                        break
                if length > 0:
                    if aligned:
                        for k in range(length):
                            out.source_start[count + k] = source_start[source + k] if given else source + k
                            out.source_end[count + k] = source_end[source + k] if given else source + k + 1
                    position += length
                    written += length
                    count += length
                    source += length
                    last_class = np.int64(0)
                    continue
            lead = np.int64(data[np.uint64(position)])
            width = np.int64(1)
            codepoint = lead
            if lead >= 0x80:
                second = np.int64(data[np.uint64(position + 1)]) & 0x3F
                if lead < 0xE0:
                    codepoint = (lead & 0x1F) << 6 | second
                    width = np.int64(2)
                else:
                    third = np.int64(data[np.uint64(position + 2)]) & 0x3F
                    if lead < 0xF0:
                        codepoint = (lead & 0xF) << 12 | second << 6 | third
                        width = np.int64(3)
                    else:
                        fourth = np.int64(data[np.uint64(position + 3)]) & 0x3F
                        codepoint = (lead & 7) << 18 | second << 12 | third << 6 | fourth
                        width = np.int64(4)
            is_plain = width == 1
            page = np.int64(page_of[np.uint64(codepoint >> 7)])
            entry = entries[np.uint64((page << 7) | (codepoint & 127))]
            if entry == 0 and position <= last_block:
                # Four loads before four stores, so that they are one of each; what is too much is overwritten.
                byte0 = data[np.uint64(position)]
                byte1 = data[np.uint64(position + 1)]
                byte2 = data[np.uint64(position + 2)]
                byte3 = data[np.uint64(position + 3)]
                result[np.uint64(written)] = byte0
                result[np.uint64(written + 1)] = byte1
                result[np.uint64(written + 2)] = byte2
                result[np.uint64(written + 3)] = byte3
                size = width
                n = np.int64(1)
                last_class = np.int64(0)
            elif entry == CLEAN_UP_PADDED and position <= last_block:
                byte0 = data[np.uint64(position)]
                byte1 = data[np.uint64(position + 1)]
                byte2 = data[np.uint64(position + 2)]
                byte3 = data[np.uint64(position + 3)]
                result[np.uint64(written)] = 0x20
                result[np.uint64(written + 1)] = byte0
                result[np.uint64(written + 2)] = byte1
                result[np.uint64(written + 3)] = byte2
                result[np.uint64(written + 4)] = byte3
                result[np.uint64(written + 1 + width)] = 0x20
                size = width + 2
                n = np.int64(3)
                last_class = np.int64(0)
                stays = False
            else:
                kind = (entry >> CLEAN_UP_KIND) & 7
                size = np.int64(0)
                n = np.int64(0)
                if kind != CLEAN_UP_REMOVED:
                    combining = (entry >> CLEAN_UP_COMBINING) & 0xFF
                    keeps = (entry & CLEAN_UP_KEPT) != 0
                    if (entry & CLEAN_UP_MARK) == 0:
                        last_class = np.int64(0)
                        has_kept = False
                    if last_class > 0:
                        has_kept |= keeps
                        if combining < last_class:
                            if has_kept:
                                return OUT_OF_ORDER
                            combining = last_class
                    else:
                        has_kept = keeps
                    last_class = combining
                padded = (entry & CLEAN_UP_PADDED) != 0
                if padded:
                    result[written] = 0x20
                    written += 1
                if kind == CLEAN_UP_CONTENT:
                    size = (entry >> CLEAN_UP_BYTES) & 7
                    n = (entry >> CLEAN_UP_CODEPOINTS) & 31
                    for k in range(4):
                        result[np.uint64(written + k)] = (entry >> (8 * k)) & 0xFF
                elif kind == CLEAN_UP_SELF or kind == 0:
                    for k in range(width):
                        result[written + k] = data[position + k]
                    size = width
                    n = np.int64(1)
                elif kind == CLEAN_UP_EXPANSION:
                    begin = entry & 0xFFFFFFFF
                    size = np.int64(tables.expansion[begin])
                    n = (entry >> CLEAN_UP_CODEPOINTS) & 31
                    for k in range(size):
                        result[written + k] = tables.expansion[begin + 1 + k]
                elif kind == CLEAN_UP_HANGUL:
                    syllable = codepoint - 0xAC00
                    n = np.int64(3) if syllable % 28 else np.int64(2)
                    size = 3 * n
                    for k in range(n):
                        jamo = 0x1100 + syllable // 588
                        if k == 1:
                            jamo = 0x1161 + syllable % 588 // 28
                        elif k == 2:
                            jamo = 0x11A7 + syllable % 28
                        result[written + 3 * k] = 0xE0 | (jamo >> 12)
                        result[written + 3 * k + 1] = 0x80 | ((jamo >> 6) & 0x3F)
                        result[written + 3 * k + 2] = 0x80 | (jamo & 0x3F)
                if padded:
                    result[written + size] = 0x20
                    written += 1
                    n += 2
                stays &= size == width and n == 1
            if aligned:
                for k in range(n):
                    out.source_start[count + k] = source_start[source] if given else source
                    out.source_end[count + k] = source_end[source] if given else source + 1
            position += width
            written += size
            count += n
            source += 1
        out.ends[segment] = written
        out.indptr[segment + 1] = count
    out.state[0] = stays
    return written
