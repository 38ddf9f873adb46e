"""SentencePiece's normalization: the longest rule at each place, symbols before rules, and blanks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import copy_block, count_bits, equal_bits, highest_bit, load64, range_bits, trailing_zeros
from jittok.kernels.utf8 import codepoint_at, sequence_length
from jittok.tables import (
    CHARSMAP_BLANK,
    CHARSMAP_COMPACT,
    CHARSMAP_CONTINUES,
    CHARSMAP_HAS_SYMBOLS,
    CHARSMAP_LLAMA_CPP,
    CHARSMAP_LONGER,
    CHARSMAP_MAPPED,
    CHARSMAP_NEWLINE,
    CHARSMAP_OFFSET,
    CHARSMAP_PREFIX,
    CHARSMAP_REMOVES,
    CHARSMAP_SUFFIX,
    CHARSMAP_SYMBOL,
)
from jittok.unicode.graphemes import (
    BREAK,
    CONJUNCT,
    CONSONANT,
    CONTROL,
    CR,
    EXTEND,
    HANGUL_L,
    HANGUL_LV,
    HANGUL_LVT,
    HANGUL_T,
    HANGUL_V,
    LF,
    LINKER,
    PICTOGRAPHIC,
    PREPEND,
    REGIONAL,
    SPACING_MARK,
    ZWJ,
)

#: Rules and symbols that begin one with the other, of which the reference looks at no more.
MOST_RULES = 32
MOST_SYMBOLS = 64
#: Bytes that must be left in the output for one more codepoint, blank or block that is copied.
ROOM = 160
MAPPED_BIT, SYMBOL_BIT, LONGER_BIT, CONTINUES_BIT = (
    flag.bit_length() - 1 for flag in (CHARSMAP_MAPPED, CHARSMAP_SYMBOL, CHARSMAP_LONGER, CHARSMAP_CONTINUES)
)
#: Where a block gives less than FEW bytes, PATIENCE codepoints follow one by one.
FEW = 16
PATIENCE = 24
#: In place of the difference between a codepoint and where it comes from: there was none yet.
NO_SHIFT = np.int64(1 << 40)


@helper
def longest_match(units: Any, data: Any, position: Any, end: Any, most: Any) -> tuple[int, int]:
    """The longest key of a double array that the bytes ``[position, end)`` begin with: its length, 0 for none, and value.

    Of more than `most` keys the shortest `most` are looked at.
    """
    unit = np.int64(units[0])
    node = (unit >> 10) << ((unit & 0x200) >> 6)
    length = np.int64(0)
    value = np.int64(0)
    found = np.int64(0)
    at = np.int64(position)
    while at < end and found < most:
        byte = np.int64(data[at])
        node ^= byte
        unit = np.int64(units[node])
        if unit & 0x800000FF != byte:
            break
        node ^= (unit >> 10) << ((unit & 0x200) >> 6)
        at += 1
        if unit & 0x100:
            found += 1
            length = at - position
            value = np.int64(units[node]) & 0x7FFFFFFF
    return length, value


@helper
def entry_at(page_of: Any, entries: Any, data: Any, position: Any, end: Any) -> int:
    """The width in bytes (3 bits; 0 if not well-formed), and above it the entry, of the codepoint at `position`."""
    lead = np.int64(data[np.uint64(position)])
    width = np.int64(1)
    codepoint = lead
    if lead >= 0x80:
        width = np.int64(sequence_length(data, position, end))
        if width == 0:
            return np.int64(0)
        codepoint, _ = codepoint_at(data, position)
    page = np.int64(page_of[np.uint64(codepoint >> 7)])
    return np.int64(entries[np.uint64(page << 7 | codepoint & 127)]) << 3 | width


@inlined
def entry_inside(page_of: Any, entries: Any, data: Any, position: int, end: int) -> int:
    """As ``entry_at``, where four bytes more are there: without a branch for each byte of most codepoints."""
    lead = np.int64(data[np.uint64(position)])
    second = np.int64(data[np.uint64(position + 1)])
    third = np.int64(data[np.uint64(position + 2)])
    width = np.int64(0)
    codepoint = lead
    if lead < 0x80:
        width = np.int64(1)
    elif lead < 0xE0:
        codepoint = (lead & 0x1F) << 6 | second & 0x3F
        if lead >= 0xC2 and second & 0xC0 == 0x80:
            width = np.int64(2)
    elif lead < 0xF0:
        codepoint = (lead & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F
        is_right = (second & 0xC0) << 8 | third & 0xC0 == 0x8080
        if is_right and codepoint >= 0x800 and codepoint >> 11 != 0xD800 >> 11:
            width = np.int64(3)
    if width == 0:
        return np.int64(entry_at(page_of, entries, data, position, end))
    page = np.int64(page_of[np.uint64(codepoint >> 7)])
    return np.int64(entries[np.uint64(page << 7 | codepoint & 127)]) << 3 | width


@helper
def plain_block(
    page_of: Any, entries: Any, data: Any, position: int, end: int, others: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Which of 64 bytes begin codepoints, and which of these, not ASCII or next to such, are not just copied.

    `others` are the bytes that are not ASCII. The first of what is returned is 0 if the bytes are not valid UTF-8.
    """
    tails = range_bits(data, position, 0x80, 0x40)
    long = range_bits(data, position, 0xC0, 0x40)
    longer = range_bits(data, position, 0xE0, 0x20)
    # Four bytes, and what begins nothing: one by one.
    stop = range_bits(data, position, 0xF0, 0x10)
    error = range_bits(data, position, 0xC0, 2)
    expected = long << np.uint64(1) | longer << np.uint64(2) | stop << np.uint64(3)
    error |= tails ^ expected
    if longer:
        low = range_bits(data, position, 0x80, 0x20)
        error |= (equal_bits(data, position, 0xE0) << np.uint64(1)) & low
        error |= (equal_bits(data, position, 0xED) << np.uint64(1)) & tails & ~low
    if error:
        return np.uint64(0), error
    # What is cut by the end of the block or of the text.
    size = min(np.int64(64), end - position)
    last = np.uint64(1) << np.uint64(size - 1)
    stop |= long & last | longer & (last | last >> np.uint64(1))
    if size < 64:
        stop |= ~((last << np.uint64(1)) - np.uint64(1))
    leads = ~tails
    bits = leads & (others | others << np.uint64(1) | others >> np.uint64(1)) & ~stop
    may_begin = np.uint64(0)  # the codepoint before, if a longer rule may begin there
    while bits:
        bit = bits & (~bits + np.uint64(1))
        at = position + trailing_zeros(bits)
        bits ^= bit
        first = np.int64(data[np.uint64(at)])
        second = np.int64(data[np.uint64(at + 1)]) & 0x3F
        third = np.int64(data[np.uint64(at + 2)]) & 0x3F
        # Without a branch: all ones or 0.
        is_long = (0x7F - first) >> 63
        is_longer = (0xDF - first) >> 63
        codepoint = (first & ~is_long) | (((first & 0x1F) << 6 | second) & is_long & ~is_longer)
        codepoint |= ((first & 0xF) << 12 | second << 6 | third) & is_longer
        page = np.int64(page_of[np.uint64(codepoint >> 7)])
        entry = np.uint64(entries[np.uint64(page << 7 | codepoint & 127)])
        changes = (entry >> np.uint64(MAPPED_BIT) | entry >> np.uint64(SYMBOL_BIT)) & np.uint64(1)
        continues = (entry >> np.uint64(CONTINUES_BIT)) & np.uint64(1)
        stop |= bit & (np.uint64(0) - changes)
        stop |= may_begin & (np.uint64(0) - continues)
        may_begin = bit & (np.uint64(0) - ((entry >> np.uint64(LONGER_BIT)) & np.uint64(1)))
    return leads, stop


@helper
def copy_triples(page_of: Any, entries: Any, data: Any, position: int, end: int, result: Any, written: int) -> int:
    """Copy characters of three bytes, up to one that is not just copied; returns the number of bytes."""
    at = np.int64(position)
    stop = min(np.int64(end) - 2, data.size - 8, position + result.size - written - ROOM)
    entry = np.int64(0)
    shift = written - position
    while at < stop:
        eight = np.int64(load64(data, at))
        codepoint = (eight & 0xF) << 12 | (eight >> 2 & 0xFC0) | (eight >> 16 & 0x3F)
        # Well-formed, and neither too long nor a surrogate.
        if eight & 0xC0C0F0 != 0x8080E0 or codepoint < 0x800 or codepoint >> 11 == 0xD800 >> 11:
            break
        before = entry
        page = np.int64(page_of[np.uint64(codepoint >> 7)])
        entry = np.int64(entries[np.uint64(page << 7 | codepoint & 127)])
        if entry & ~CHARSMAP_LONGER != 0:
            entry = before
            break
        result[np.uint64(at + shift)] = eight & 0xFF
        result[np.uint64(at + shift + 1)] = eight >> 8 & 0xFF
        result[np.uint64(at + shift + 2)] = eight >> 16 & 0xFF
        at += 3
    if at > position and entry & CHARSMAP_LONGER and at < end:
        following = np.int64(entry_at(page_of, entries, data, at, end))
        if (following >> 3) & CHARSMAP_CONTINUES:  # it may belong to the last one
            at -= 3
    return at - position


@helper
def put_blank(result: Any, at: Any, size: Any) -> None:
    """Write what stands for a blank, of 1 or 3 bytes."""
    if size == 1:
        result[at] = 0x20
    else:
        result[at] = 0xE2
        result[at + 1] = 0x96
        result[at + 2] = 0x81


class NormalizedText(NamedTuple):
    """Segments of normalized text as UTF-8, and where codepoints come from, as *runs* in which it is one after another.

    A codepoint comes from the rule (or the codepoint) that begins at a codepoint of the segment as given, and reaches to
    where the next one comes from. Run `j` says that codepoint ``run_at[j]`` of its segment comes from ``run_source[j]``;
    the codepoints after it, up to the next run, from those after that. The end of a segment is a codepoint in this.
    """

    data: NDArray[np.uint8]  # may have room after the last segment
    starts: NDArray[np.int64]  # [n_segments]
    ends: NDArray[np.int64]
    indptr: NDArray[np.int64]  # [n_segments + 1] codepoints
    run_indptr: NDArray[np.int64]  # [n_segments + 1] runs of each segment, at least one if it has a codepoint
    run_at: NDArray[np.int32]  # as many as there are bytes, and one more for each segment; [0] when not wanted
    run_source: NDArray[np.int32]


@inlined
def note_source(out: Any, n_runs: int, at: int, source: int) -> int:
    """Begin a run; returns how many there are then."""
    out.run_at[np.uint64(n_runs)] = at
    out.run_source[np.uint64(n_runs)] = source
    return n_runs + 1


@helper
def is_blank_text(tables: Any, data: Any, start: int, end: int, result: Any, begin: int, written: int) -> bool:
    """Whether normalized text, ``result[begin:written]``, is blanks only, and none of them U+2581 of ``data[start:end]``."""
    blank_size = tables.numbers[CHARSMAP_BLANK]
    at = begin
    if at == written:
        return False
    while at < written:
        if blank_size == 1:
            if result[at] != 0x20:
                return False
        elif result[at] != 0xE2 or result[at + 1] != 0x96 or result[at + 2] != 0x81:
            return False
        at += blank_size
    page = np.int64(tables.page_of[0x2581 >> 7])
    value = np.int64(tables.entry[page << 7 | 0x2581 & 127]) >> CHARSMAP_OFFSET
    if value > 0 and tables.strings[value] == 0x20:
        return True  # a rule makes blanks of them
    for k in range(start, end - 2):
        if data[k] == 0xE2 and data[k + 1] == 0x96 and data[k + 2] == 0x81:
            return False
    return True


@kernel
def apply_charsmap(tables: Any, data: Any, starts: Any, ends: Any, out: Any) -> int:
    """Normalize segments as SentencePiece does.

    Parameters
    ----------
    tables : CharsmapTables
    data : uint8[n_bytes]
        Need not be valid UTF-8: a byte that begins no well-formed sequence becomes U+FFFD, without rules, and counts
        as a codepoint where alignment is concerned. Blocks of 64 bytes are read where they lie inside.
    starts, ends : int64[n_segments]
    out : NormalizedText

    Returns
    -------
    int
        The number of bytes, or, when the output has no room, minus the number of bytes to try next. Linear in the
        text times the longest rule; 64 bytes at a time where they are ASCII that is just copied.
    """
    page_of = tables.page_of
    entries = tables.entry
    strings = tables.strings
    stops = tables.stops
    numbers = tables.numbers
    prefix = numbers[CHARSMAP_PREFIX] != 0
    suffix = numbers[CHARSMAP_SUFFIX] != 0
    removes = numbers[CHARSMAP_REMOVES] != 0
    blank_size = numbers[CHARSMAP_BLANK]
    compact = numbers[CHARSMAP_COMPACT] != 0
    has_symbols = numbers[CHARSMAP_HAS_SYMBOLS] != 0
    aligned = out.run_at.shape[0] > 0
    n_runs = np.int64(0)
    n_stops = stops.shape[0]
    newline_is_blank = numbers[CHARSMAP_NEWLINE] != 0
    is_llama_cpp = numbers[CHARSMAP_LLAMA_CPP] != 0
    blank = np.int64(entries[np.int64(page_of[0]) << 7 | 0x20])
    blank_is_longer = np.int64(blank & CHARSMAP_LONGER != 0)
    blank_is_plain = blank & (CHARSMAP_LONGER | CHARSMAP_MAPPED | CHARSMAP_SYMBOL) == 0
    # Copying goes on behind blanks of three bytes; characters at the end of a block are read.
    last_block = data.shape[0] - (72 if blank_size == 1 else 136)
    result = out.data
    capacity = result.shape[0]
    written = np.int64(0)
    count = np.int64(0)
    out.indptr[0] = 0
    out.run_indptr[0] = 0
    for segment in range(starts.shape[0]):
        position = np.int64(starts[segment])
        end = np.int64(ends[segment])
        begin = written
        first = count
        source = np.int64(0)
        shift = NO_SHIFT  # source - count, as last noted
        out.starts[segment] = written
        is_front = position < end  # nothing came yet; blanks are left out even before the prefix
        after_blank = removes
        ahead_of = np.int64(-1)  # the place whose entry is known already
        ahead = np.int64(0)
        patience = np.int64(0)  # codepoints to come before whole blocks are tried again
        if is_front and not removes:
            is_front = False
            if written + ROOM > capacity:
                return -(2 * capacity + ROOM)
            if prefix:
                put_blank(result, written, blank_size)
                if aligned:
                    n_runs = note_source(out, n_runs, np.int64(0), np.int64(0))
                    shift = -count
                written += blank_size
                count += 1
        if is_front and blank_is_plain:
            while position <= last_block and position < end:
                length = min(trailing_zeros(~equal_bits(data, position, 0x20)), end - position)
                position += length
                source += length
                if length < 64:
                    break
        while position < end:
            if not is_front and data[np.uint64(position)] & 0xF0 == 0xE0:
                length = np.int64(copy_triples(page_of, entries, data, position, end, result, written))
                if length > 0:
                    n = length // 3
                    if aligned and source - count != shift:
                        n_runs = note_source(out, n_runs, count - first, source)
                        shift = source - count
                    position += length
                    written += length
                    source += n
                    count += n
                    after_blank = False
                    if position >= end:
                        break
                patience = max(patience, np.int64(1))  # what stopped that comes by itself
            # Whole blocks, up to what is not just copied. The codepoint before that may belong to it.
            while patience <= 0 and not is_front and position <= last_block and position < end:
                stop = np.uint64(0)
                for k in range(n_stops):
                    stop |= range_bits(data, position, stops[k, 0], stops[k, 1])
                leads = ~np.uint64(0)
                others = range_bits(data, position, 0x80, 0x80)
                if others != np.uint64(0):
                    leads, other_stop = plain_block(page_of, entries, data, position, end, others)
                    stop = stop & ~others | other_stop
                    if leads == np.uint64(0):
                        patience = np.int64(PATIENCE)
                        break
                blanks = equal_bits(data, position, 0x20)
                newlines = np.uint64(0)
                if newline_is_blank:
                    newlines = equal_bits(data, position, 0x0A)
                    stop &= ~newlines
                    blanks |= newlines
                length = trailing_zeros(stop)
                if position + length >= end:
                    length = end - position
                elif (
                    length == 64
                    or data[position + length] >= 0x80
                    or entries[np.int64(page_of[0]) << 7 | np.int64(data[position + length])] & CHARSMAP_CONTINUES
                ):
                    if length < 64:
                        leads &= (np.uint64(1) << np.uint64(length)) - np.uint64(1)
                    length = max(np.int64(0), highest_bit(leads))
                skipped = np.int64(0)
                if removes:
                    double = blanks & (blanks << np.uint64(1) | np.uint64(after_blank))
                    place = trailing_zeros(double)
                    if place < length:
                        # A run of blanks, of which the rest is left out, as far as it can be seen here.
                        skipped = min(trailing_zeros(~(blanks >> np.uint64(place))), length - place) - blank_is_longer
                        skipped = max(skipped, np.int64(0))
                        length = place
                        after_blank = True
                if length + skipped < FEW and others != np.uint64(0):
                    patience = np.int64(PATIENCE)
                if length + skipped <= 0:
                    break
                if length < 64:
                    blanks &= (np.uint64(1) << np.uint64(length)) - np.uint64(1)
                    leads &= (np.uint64(1) << np.uint64(length)) - np.uint64(1)
                if written + 3 * 64 + ROOM > capacity:
                    return -(2 * capacity + 3 * 64 + ROOM)
                if blank_size == 1:
                    copy_block(result, written, data, position)
                    newlines &= blanks
                    while newlines:
                        result[np.uint64(written + trailing_zeros(newlines))] = 0x20
                        newlines &= newlines - np.uint64(1)
                    written += length
                else:
                    done = np.int64(0)
                    while blanks:
                        place = trailing_zeros(blanks)
                        copy_block(result, written, data, position + done)
                        written += place - done
                        result[np.uint64(written)] = 0xE2
                        result[np.uint64(written + 1)] = 0x96
                        result[np.uint64(written + 2)] = 0x81
                        written += 3
                        done = place + 1
                        blanks &= blanks - np.uint64(1)
                    copy_block(result, written, data, position + done)
                    written += length - done
                n = count_bits(leads)
                if aligned and length > 0 and source - count != shift:
                    n_runs = note_source(out, n_runs, count - first, source)
                    shift = source - count
                if length > 0:
                    last = data[np.uint64(position + length - 1)]
                    after_blank = removes and (last == 0x20 or (newline_is_blank and last == 0x0A))
                position += length + skipped
                source += n + skipped
                count += n
            if position >= end:
                break
            patience = max(patience, np.int64(1))
            if not is_front and position + 8 <= end:
                # Codepoints that are copied, and blanks; the entry of the next one is known when one is looked at.
                if ahead_of != position:
                    ahead = entry_inside(page_of, entries, data, position, end)
                while position + 8 <= end and patience > 0:
                    width = ahead & 7
                    entry = ahead >> 3
                    if entry & ~(CHARSMAP_CONTINUES | CHARSMAP_LONGER) != 0 or width == 0:
                        break
                    following = entry_inside(page_of, entries, data, position + width, end)
                    if entry & CHARSMAP_LONGER and following >> 3 & CHARSMAP_CONTINUES:
                        break
                    if written + ROOM > capacity:
                        return -(2 * capacity + ROOM)
                    if data[np.uint64(position)] == 0x20:
                        if not after_blank:
                            put_blank(result, written, blank_size)
                            if aligned and source - count != shift:
                                n_runs = note_source(out, n_runs, count - first, source)
                                shift = source - count
                            written += blank_size
                            count += 1
                        after_blank = removes
                    else:
                        # Four loads before four stores, so that they are one of each; what is too much is overwritten.
                        byte0 = data[np.uint64(position)]
                        byte1 = data[np.uint64(position + 1)]
                        byte2 = data[np.uint64(position + 2)]
                        byte3 = data[np.uint64(position + 3)]
                        result[np.uint64(written)] = byte0
                        result[np.uint64(written + 1)] = byte1
                        result[np.uint64(written + 2)] = byte2
                        result[np.uint64(written + 3)] = byte3
                        if aligned and source - count != shift:
                            n_runs = note_source(out, n_runs, count - first, source)
                            shift = source - count
                        written += width
                        count += 1
                        after_blank = False
                    position += width
                    source += 1
                    patience -= 1
                    ahead = following
                ahead_of = position
                if patience <= 0:
                    continue
            patience -= 1
            # One codepoint, rule or symbol: what it becomes is bytes [at, at + size) of the text or the strings.
            if ahead_of == position:
                entry = ahead
            else:
                entry = entry_at(page_of, entries, data, position, end)
            width = entry & 7
            entry >>= 3
            consumed = max(width, np.int64(1))
            from_rule = False
            value = np.int64(0)
            if entry & (CHARSMAP_LONGER | CHARSMAP_SYMBOL | CHARSMAP_MAPPED):
                goes_on = False
                following = position + width
                if entry & CHARSMAP_LONGER and following < end:
                    ahead = entry_at(page_of, entries, data, following, end)
                    ahead_of = following
                    goes_on = (ahead >> 3) & CHARSMAP_CONTINUES != 0
                length = np.int64(0)
                if has_symbols and (goes_on or entry & CHARSMAP_SYMBOL):
                    length, _ = longest_match(tables.symbols, data, position, end, MOST_SYMBOLS)
                if length > 0:
                    consumed = length
                else:
                    if goes_on:
                        length, value = longest_match(tables.rules, data, position, end, MOST_RULES)
                    if length > 0:
                        consumed = length
                        from_rule = True
                    elif entry & CHARSMAP_MAPPED:
                        value = entry >> CHARSMAP_OFFSET
                        from_rule = True
            size = consumed
            if from_rule:
                size = np.int64(0)
                while strings[value + size] != 0:
                    size += 1
            if is_front:
                byte = np.int64(0)
                if size == 1:
                    byte = np.int64(strings[value]) if from_rule else np.int64(data[position])
                if byte == 0x20:
                    for k in range(consumed):
                        source += np.int64(data[position + k]) & 0xC0 != 0x80
                    position += consumed
                    continue
                is_front = False
                if written + ROOM > capacity:
                    return -(2 * capacity + ROOM)
                if prefix:
                    put_blank(result, written, blank_size)
                    if aligned and source - count != shift:
                        n_runs = note_source(out, n_runs, count - first, source)
                        shift = source - count
                    written += blank_size
                    count += 1
            if written + 3 * size + ROOM > capacity:
                return -(2 * capacity + 3 * size + ROOM)
            if width == 0:
                result[written] = 0xEF
                result[written + 1] = 0xBF
                result[written + 2] = 0xBD
                if aligned and source - count != shift:
                    n_runs = note_source(out, n_runs, count - first, source)
                    shift = source - count
                written += 3
                count += 1
                after_blank = False
            else:
                k = np.int64(0)
                while k < size:
                    byte = np.int64(strings[value + k]) if from_rule else np.int64(data[position + k])
                    is_blank = byte == 0x20
                    if is_blank and after_blank:  # stays so until something else comes
                        k += 1
                        continue
                    if compact and byte == 0xE2 and k + 2 < size:
                        second = np.int64(strings[value + k + 1]) if from_rule else np.int64(data[position + k + 1])
                        third = np.int64(strings[value + k + 2]) if from_rule else np.int64(data[position + k + 2])
                        if second == 0x96 and third == 0x81:
                            is_blank = True
                            k += 2
                    origin = source
                    if is_llama_cpp and is_blank and 0 < k == size - 1:
                        origin += 1
                    if aligned and byte & 0xC0 != 0x80 and origin - count != shift:
                        n_runs = note_source(out, n_runs, count - first, origin)
                        shift = origin - count
                    count += byte & 0xC0 != 0x80
                    if is_blank:
                        put_blank(result, written, blank_size)
                        written += blank_size
                    else:
                        result[written] = byte
                        written += 1
                    # Only blanks at the beginning of what one rule gives are left out.
                    after_blank = False
                    k += 1
                if removes and size > 0:
                    byte = np.int64(strings[value + size - 1]) if from_rule else np.int64(data[position + size - 1])
                    after_blank = byte == 0x20
            # Codepoints of what was consumed.
            source += 1
            for k in range(max(width, np.int64(1)), consumed):
                source += np.int64(data[position + k]) & 0xC0 != 0x80
            position += consumed
        final = source
        if removes:
            while written - begin >= blank_size:
                if is_llama_cpp and not after_blank:
                    break
                after_blank = False
                if blank_size == 1:
                    if result[written - 1] != 0x20:
                        break
                elif result[written - 3] != 0xE2 or result[written - 2] != 0x96 or result[written - 1] != 0x81:
                    break
                written -= blank_size
                count -= 1
                if aligned:
                    while n_runs - 1 > out.run_indptr[segment] and np.int64(out.run_at[n_runs - 1]) > count - first:
                        n_runs -= 1
                    shift = np.int64(out.run_source[n_runs - 1]) - np.int64(out.run_at[n_runs - 1]) - first
                    final = count + shift
        elif is_llama_cpp and prefix and is_blank_text(tables, data, starts[segment], end, result, begin, written):
            written -= blank_size
            count -= 1
            if aligned:
                n_runs = note_source(out, np.int64(out.run_indptr[segment]), np.int64(0), np.int64(0))
                shift = -first
        if suffix and not is_front and starts[segment] < end:
            if written + ROOM > capacity:
                return -(2 * capacity + ROOM)
            put_blank(result, written, blank_size)
            if aligned and final - count != shift:
                n_runs = note_source(out, n_runs, count - first, final)
                shift = final - count
            written += blank_size
            count += 1
        if aligned and count > first and final - count != shift:
            n_runs = note_source(out, n_runs, count - first, final)
        out.run_indptr[segment + 1] = n_runs
        out.ends[segment] = written
        out.indptr[segment + 1] = count
    return written


@kernel
def write_sources(text: Any, source_start: Any, source_end: Any) -> int:
    """Where each codepoint of normalized text comes from.

    Parameters
    ----------
    text : NormalizedText
    source_start, source_end : int32[n_codepoints]
        Output: the codepoint at which the rule (or the codepoint) begins that it comes from, and that of the next one:
        where SentencePiece has pieces begin and end.

    Returns
    -------
    int
        Number of codepoints. Linear.
    """
    for segment in range(text.starts.shape[0]):
        first = np.int64(text.indptr[segment])
        last = np.int64(text.indptr[segment + 1])
        shift = np.int64(0)
        at = first
        for run in range(text.run_indptr[segment], text.run_indptr[segment + 1]):
            begin = first + np.int64(text.run_at[run])
            for k in range(at, begin):
                source_start[k] = k + shift
            at = begin
            shift = np.int64(text.run_source[run]) - begin
        for k in range(at, last):
            source_start[k] = k + shift
        for k in range(first, last - 1):
            source_end[k] = source_start[k + 1]
        if last > first:
            source_end[last - 1] = last + shift
    return text.indptr[text.starts.shape[0]]


@helper
def is_cluster_end(before: Any, after: Any, pictographic: Any, conjunct: Any, is_odd: Any) -> bool:
    """Whether a grapheme cluster ends between two codepoints of these classes.

    `pictographic` is 2 where a pictographic codepoint, and marks, and a joiner end here; `conjunct` 2 where a consonant
    does, with a linker among the marks after it; `is_odd` says that an odd number of regional indicators does.
    """
    first = before & BREAK
    second = after & BREAK
    if first == CR and second == LF:
        return False
    if CR <= first <= CONTROL or CR <= second <= CONTROL:
        return True
    if EXTEND <= second <= SPACING_MARK or first == PREPEND:
        return False
    if first == HANGUL_L and (HANGUL_L <= second <= HANGUL_V or HANGUL_LV <= second <= HANGUL_LVT):
        return False
    if (first == HANGUL_LV or first == HANGUL_V) and HANGUL_V <= second <= HANGUL_T:
        return False
    if (first == HANGUL_LVT or first == HANGUL_T) and second == HANGUL_T:
        return False
    if conjunct == 2 and after & CONJUNCT == CONSONANT:
        return False
    if pictographic == 2 and second == PICTOGRAPHIC:
        return False
    return not (is_odd and second == REGIONAL)


@helper
def string_codepoints(strings: Any, at: Any, codepoints: Any, written: Any, room: Any) -> int:
    """Decode the string at `at` to ``codepoints[written:]``; how many, or -1 for more than `room`."""
    n = 0
    while strings[at] != 0:
        if n == room:
            return -1
        codepoint, width = codepoint_at(strings, at)
        codepoints[written + n] = codepoint
        n += 1
        at += width
    return n


@kernel
def apply_precompiled(tables: Any, text: Any, out: Any) -> int:
    """Apply a charsmap as tokenizers does.

    A grapheme cluster shorter than six bytes becomes what the *shortest* rule says that it begins with, all of it; in
    others, and where no rule fits, each codepoint becomes what its own rule says.

    Parameters
    ----------
    tables : PrecompiledTables
    text, out : AlignedText

    Returns
    -------
    int
        Codepoints written, or minus the capacity to try next. Linear.

    Notes
    -----
    The k-th codepoint of what comes out of a rule comes from the k-th of what went in, further ones from the last one,
    and the last one from all that is left.
    """
    aligned = text.source_start.shape[0] > 0
    capacity = out.codepoints.shape[0]
    entries = tables.entry
    strings = tables.strings
    written = 0
    out.indptr[0] = 0
    for segment in range(text.indptr.shape[0] - 1):
        i = np.int64(text.indptr[segment])
        last = np.int64(text.indptr[segment + 1])
        codepoint = np.int64(0)
        before = np.int64(0)
        if i < last:
            codepoint = np.int64(text.codepoints[i])
            page = np.int64(tables.break_page_of[codepoint >> 7])
            before = np.int64(tables.break_class[page << 7 | codepoint & 127])
        while i < last:
            # The cluster [i, j) and its bytes; the class of what follows it is `before` of the next one.
            j = i
            n_bytes = np.int64(0)
            pictographic = 0
            conjunct = 0
            is_odd = False
            is_inside = True
            while is_inside:
                n_bytes += 1 + (codepoint >= 0x80) + (codepoint >= 0x800) + (codepoint >= 0x10000)
                kind = before & BREAK
                if kind == PICTOGRAPHIC:
                    pictographic = 1
                elif kind == ZWJ and pictographic == 1:
                    pictographic = 2
                elif kind != EXTEND or pictographic == 2:
                    pictographic = 0
                if before & CONJUNCT == CONSONANT:
                    conjunct = 1
                elif before & CONJUNCT == LINKER and conjunct > 0:
                    conjunct = 2
                elif before & CONJUNCT == 0:
                    conjunct = 0
                is_odd = kind == REGIONAL and not is_odd
                j += 1
                is_inside = False
                if j < last:
                    codepoint = np.int64(text.codepoints[j])
                    page = np.int64(tables.break_page_of[codepoint >> 7])
                    after = np.int64(tables.break_class[page << 7 | codepoint & 127])
                    is_inside = not is_cluster_end(before, after, pictographic, conjunct, is_odd)
                    before = after
            first = i
            if j > i + 1 and n_bytes < 6:
                # The shortest rule: of the first codepoint, or of some.
                unit = np.int64(tables.rules[0])
                node = (unit >> 10) << ((unit & 0x200) >> 6)
                k = i
                value = np.int64(-1)
                while k < j and node >= 0 and value < 0:
                    one = np.int64(text.codepoints[k])
                    width = 1 + (one >= 0x80) + (one >= 0x800) + (one >= 0x10000)
                    for m in range(width):
                        byte = one
                        if width > 1:
                            byte = 0x80 | (one >> (6 * (width - 1 - m))) & 0x3F
                            if m == 0:
                                byte = (0xF00 >> width) & 0xFF | one >> (6 * (width - 1))
                        if node >= 0:
                            node ^= byte
                            unit = np.int64(tables.rules[node])
                            if unit & 0x800000FF != byte or byte == 0:
                                node = np.int64(-1)
                            else:
                                node ^= (unit >> 10) << ((unit & 0x200) >> 6)
                                if unit & 0x100:
                                    value = np.int64(tables.rules[node]) & 0x7FFFFFFF
                    k += 1
                if value >= 0:
                    n = string_codepoints(strings, value, out.codepoints, written, capacity - written)
                    if n < 0:
                        return -(2 * capacity + 64)
                    if aligned:
                        for m in range(n):
                            source = min(i + m, j - 1)
                            out.source_start[written + m] = text.source_start[source]
                            out.source_end[written + m] = text.source_end[source]
                        if n > 0 and n < j - i:
                            out.source_end[written + n - 1] = text.source_end[j - 1]
                    written += n
                    first = j  # else each codepoint by itself
            for k in range(first, j):
                one = np.int64(text.codepoints[k])
                page = np.int64(tables.page_of[one >> 7])
                entry = np.int64(entries[page << 7 | one & 127])
                n = 1
                if entry & CHARSMAP_MAPPED:
                    value = entry >> CHARSMAP_OFFSET
                    n = string_codepoints(strings, value, out.codepoints, written, capacity - written)
                    if n < 0:
                        return -(2 * capacity + 64)
                else:
                    if written == capacity:
                        return -(2 * capacity + 64)
                    out.codepoints[written] = one
                if aligned:
                    for m in range(n):
                        out.source_start[written + m] = text.source_start[k]
                        out.source_end[written + m] = text.source_end[k]
                written += n
            i = j
        out.indptr[segment + 1] = written
    return written
