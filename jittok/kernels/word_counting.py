"""Count the pre-tokens of text in a table; sort and merge what was counted.

The table is like that of :mod:`jittok.kernels.word_cache`, with a count where that has ids: a word of at most 15 bytes
is a key of 16 bytes (its bytes and its length) in an open-addressing table of 32-byte slots; longer ones go to a second
table by a 64-bit hash, with their bytes kept to compare. Tables grow between calls. Counts are 64-bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import copy_block, load64, prefetch
from jittok.kernels.split import (
    CHUNK,
    POSITION,
    SEGMENT,
    load_chunk,
    pre_token_end,
    split_chunk,
)
from jittok.kernels.utf8 import codepoint_at, is_space
from jittok.kernels.word_cache import (
    BATCH,
    CHUNK_BYTES,
    KEY_WORDS,
    NEEDED,
    ONE,
    SLOT_WORDS,
    ZERO,
    find_slot,
    hash_bytes,
    hash_word,
    key_mask,
    key_slot,
    make_keys,
    new_key_masks,
)
from jittok.memory import zeros
from jittok.tables import EDGE_BYTE

#: What ``count_segments`` returns.
DONE, MORE_ROOM, PAUSED = range(3)

BLANK = np.uint64(0x20)

#: Positions in ``WordTable.counters``.
USED, LONG_USED, KEPT_USED = range(3)

#: What becomes of blanks at the beginning of words: they are kept, or left out, or U+2581 is written for one.
BLANKS = ("kept", "skipped", "marked")
SKIPPED = 1
MARKED = 2

#: Slots ahead of the one whose word is moved for which memory is asked.
MOVED_AHEAD = 16
#: Runs of words with the same first eight bytes that are sorted by insertion.
_SHORT_RUN = 16


class WordTable(NamedTuple):
    """Words and their counts."""

    slots: NDArray[np.uint64]  # [SLOT_WORDS * 2**k] key low, key high | length << 56, count, 0
    long_slots: NDArray[np.uint64]  # [SLOT_WORDS * 2**k] hash | 1, offset in `kept`, length, count
    kept: NDArray[np.uint8]  # bytes of long words
    counters: NDArray[np.int64]  # [3] words in `slots` and in `long_slots`; bytes of `kept`


class CountScratch(NamedTuple):
    """Scratch arrays for the words of a chunk."""

    keys: NDArray[np.uint64]  # [(CHUNK + 80) * KEY_WORDS] by pre-token: key low, key high, slot
    key_masks: NDArray[np.uint64]  # [16 * KEY_WORDS] as in word_cache.WordScratch
    missed: NDArray[np.int32]  # [CHUNK + 80] pre-tokens that were not found at once


def new_word_table(slot_bits: int, long_bits: int, kept: int) -> WordTable:
    """Allocate an empty table with ``2**slot_bits`` slots for short and ``2**long_bits`` for long words."""
    return WordTable(
        slots=zeros(SLOT_WORDS << slot_bits, np.uint64),
        long_slots=zeros(SLOT_WORDS << long_bits, np.uint64),
        kept=zeros(kept, np.uint8),
        counters=np.zeros(3, np.int64),
    )


def new_count_scratch() -> CountScratch:
    """Allocate scratch arrays."""
    return CountScratch(
        keys=np.zeros((CHUNK + 80) * KEY_WORDS, np.uint64),
        key_masks=new_key_masks(),
        missed=np.zeros(CHUNK + 80, np.int32),
    )


@inlined
def has_room(table: Any) -> bool:
    """Whether the words of a whole chunk more fit: a table is never filled by more than half, so that a probe ends."""
    counters = table.counters
    return (
        counters[USED] + CHUNK <= table.slots.size >> 3
        and counters[LONG_USED] + CHUNK // 8 <= table.long_slots.size >> 3
        and counters[KEPT_USED] + CHUNK_BYTES <= table.kept.size
    )


@inlined
def count_keys(scratch: Any, slots: Any, begin: int, end: int, misses: int) -> int:
    """Count pre-tokens found in either of two slots; list the others; returns their number so far.

    Others are those further on in the table or not in it, or too long for a key. No branch depends on what is found.
    """
    keys = scratch.keys
    missed = scratch.missed
    for k in range(begin, end):
        key = np.uint64(k) << np.uint64(2)
        low = keys[key]
        high = keys[key + ONE]
        at = keys[key + np.uint64(2)]
        first_differs = (slots[at] ^ low) | (slots[at + ONE] ^ high)
        second_differs = (slots[at + np.uint64(4)] ^ low) | (slots[at + np.uint64(5)] ^ high)
        place = at + np.uint64(2) if first_differs == 0 else at + np.uint64(6)
        missing = ((first_differs != 0) & (second_differs != 0)) | (high == 0)
        slots[place] += ZERO if missing else ONE
        missed[np.uint64(misses)] = k
        misses += 1 if missing else 0
    return misses


@helper
def count_long(table: Any, text: Any, first: int, n: int, tag: np.uint64, count: np.uint64) -> int:
    """Count a word of more than KEY_BYTES bytes, whose hash is `tag`; there is room for it."""
    slots = table.long_slots
    kept = table.kept
    counters = table.counters
    mask = np.uint64(slots.size - 1)
    at = ((tag >> np.uint64(32)) << np.uint64(2)) & mask
    while slots[at] != 0:
        if slots[at] == tag and np.int64(slots[at + np.uint64(2)]) == n:
            offset = np.int64(slots[at + ONE])
            # Eight bytes at a time, the last of them again.
            i = np.int64(0)
            while i < n - 8 and load64(kept, offset + i) == load64(text, first + i):
                i += 8
            if i >= n - 8 and load64(kept, offset + n - 8) == load64(text, first + n - 8):
                slots[at + np.uint64(3)] += count
                return 0
        at = (at + np.uint64(4)) & mask
    offset = counters[KEPT_USED]
    for i in range(n):
        kept[np.uint64(offset + i)] = text[np.uint64(first + i)]
    counters[KEPT_USED] = offset + n
    slots[at] = tag
    slots[at + ONE] = np.uint64(offset)
    slots[at + np.uint64(2)] = np.uint64(n)
    slots[at + np.uint64(3)] = count
    counters[LONG_USED] += 1
    return 0


@inlined
def count_short(table: Any, slot: np.uint64, low: np.uint64, high: np.uint64, count: np.uint64) -> int:
    """Count a word that fits a key, whose search begins at `slot`; there is room for it."""
    slots = table.slots
    at = find_slot(slots, slot, low, high)
    if slots[at + 1] == 0:
        slots[at] = low
        slots[at + 1] = high
        table.counters[USED] += 1
    slots[at + 2] += count
    return 0


@inlined
def count_missed(misses: int, chunk: Any, table: Any, scratch: Any) -> int:
    """Count the pre-tokens that ``count_keys`` listed."""
    word = chunk.word
    keys = scratch.keys
    for q in range(misses):
        k = np.uint64(scratch.missed[np.uint64(q)])
        key = k << np.uint64(2)
        high = keys[key + ONE]
        if high != 0:
            count_short(table, keys[key + np.uint64(2)], keys[key], high, ONE)
        else:
            first = np.int64(word[k])
            n = np.int64(word[k + ONE]) - first
            count_long(table, chunk.text, first, n, hash_word(chunk.text, first, n) | ONE, ONE)
    return 0


@kernel
def count_segments(
    split: Any, data: Any, starts: Any, ends: Any, chunk: Any, table: Any, scratch: Any, most_chunks: int
) -> int:
    """Count the pre-tokens of segments, from the place that ``chunk.state`` holds.

    Parameters
    ----------
    split : SplitTables
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``.
    chunk : Chunk
    table : WordTable
        What is counted already. The end of each segment counts as the word ``EDGE_BYTE``.
    scratch : CountScratch
    most_chunks : int
        How much to do at most, in chunks of about CHUNK codepoints.

    Returns
    -------
    int
        DONE; or MORE_ROOM, with which to call again with a larger or empty table that has ``state[NEEDED]`` bytes more
        of ``kept`` than are used; or PAUSED, with which to call again. Nothing is counted twice. Linear.
    """
    state = chunk.state
    while state[SEGMENT] < starts.size:
        if not has_room(table):
            state[NEEDED] = 0
            return MORE_ROOM
        if most_chunks == 0:
            return PAUSED
        most_chunks -= 1
        first_segment = state[SEGMENT]
        first_position = state[POSITION]
        load_chunk(split, data, starts, ends, starts.size, chunk)
        words = split_chunk(split, chunk)
        if words == 0:
            # One pre-token fills the chunk: find its end, and count it where it stands.
            end = ends[first_segment]
            stop = pre_token_end(split, data, first_position, end)
            n = stop - first_position
            state[SEGMENT] = first_segment
            state[POSITION] = first_position
            if table.counters[KEPT_USED] + n > table.kept.size:
                state[NEEDED] = n
                return MORE_ROOM
            count_long(table, data, first_position, n, hash_bytes(data, first_position, n) | ONE, ONE)
            state[POSITION] = stop
            if stop == end:
                state[SEGMENT] = first_segment + 1
                if first_segment + 1 < starts.size:
                    state[POSITION] = starts[first_segment + 1]
            continue
        # Keys are compared one batch after they were made, when their slots have come.
        misses = np.int64(0)
        begin = np.int64(0)
        ready = np.int64(0)
        while ready < words:
            end = min(begin + BATCH, words)
            make_keys(chunk, scratch, table.slots, begin, end)
            misses = count_keys(scratch, table.slots, ready, begin, misses)
            ready = begin
            begin = end
        count_missed(misses, chunk, table, scratch)
    return DONE


@kernel
def move_words(old: Any, new: Any) -> int:
    """Move words to where there are more slots, of short words, of long ones or of both.

    Parameters
    ----------
    old, new : WordTable
        Where the slots of both have the same number, they are the same. The others of `new` are empty; its other arrays
        hold what those of the old one do.

    Returns
    -------
    int
        0. Linear in the slots of the old one.
    """
    slots = old.slots
    if new.slots.size != slots.size:
        mask = key_mask(new.slots)
        for row in range(0, slots.size, SLOT_WORDS):
            ahead = row + MOVED_AHEAD * SLOT_WORDS
            if ahead < slots.size:
                prefetch(new.slots, np.int64(key_slot(slots[ahead], slots[ahead + 1], mask)))
            low = slots[row]
            high = slots[row + 1]
            if high != 0:
                at = find_slot(new.slots, key_slot(low, high, mask), low, high)
                new.slots[at] = low
                new.slots[at + 1] = high
                new.slots[at + 2] = slots[row + 2]
    slots = old.long_slots
    if new.long_slots.size != slots.size:
        mask = np.uint64(new.long_slots.size - 1)
        for row in range(0, slots.size, SLOT_WORDS):
            tag = slots[row]
            if tag == 0:
                continue
            at = ((tag >> np.uint64(32)) << np.uint64(2)) & mask
            while new.long_slots[at] != 0:
                at = (at + np.uint64(4)) & mask
            for k in range(SLOT_WORDS):
                new.long_slots[at + np.uint64(k)] = slots[row + k]
    return 0


@inlined
def blank_end(data: Any, first: int, end: int) -> int:
    """Where the white space at the beginning of ``data[first:end]`` ends."""
    while first < end:
        codepoint, length = codepoint_at(data, first)
        if not is_space(codepoint):
            break
        first += length
    return first


@inlined
def prefix_of(data: Any, first: int, n: int) -> np.uint64:
    """The first eight of `n` bytes, as a number that is in the order of the bytes; missing ones are 0."""
    prefix = ZERO
    for i in range(8):
        prefix = prefix << np.uint64(8)
        if i < n:
            prefix |= np.uint64(data[np.uint64(first + i)])
    return prefix


@inlined
def write_mark(out: Any, at: int) -> int:
    """Write U+2581 over the blank at place `at` and the two bytes before it; returns where it begins."""
    out[np.uint64(at - 2)] = 0xE2
    out[np.uint64(at - 1)] = 0x96
    out[np.uint64(at)] = 0x81
    return at - 2


@inlined
def note_word(
    n: int, at: int, length: int, marked: bool, blanks: int, start: Any, size: Any, prefix: Any, out: Any
) -> bool:
    """Note where word `n` of a list is, whose `length` bytes are in `out` from `at` on; False for blanks alone."""
    first = at
    end = at + length
    if marked:
        first = write_mark(out, at)
    if blanks == SKIPPED:
        first = blank_end(out, first, end)
        if first == end:
            return False
    start[n] = first
    size[n] = end - first
    prefix[n] = prefix_of(out, first, end - first)
    return True


@kernel
def list_words(table: Any, blanks: int, out: Any, start: Any, size: Any, counts: Any, prefix: Any) -> int:
    """List the words of a table in no order.

    Parameters
    ----------
    table : WordTable
    blanks : int
        SKIPPED: white space at the beginning of a word is not part of it. MARKED: U+2581 is written for a blank there.
        With either, a word may be listed several times.
    out : uint8[m]
        Receives their bytes; 18 bytes for each word of ``table.slots``, 2 for each of ``table.long_slots``, and as many
        as ``table.kept`` uses.
    start, size, counts : int64[n]
        Receive where each word begins in `out`, its length in bytes, and its count. The ends of segments are not listed.
    prefix : uint64[n]
        Receives the first eight bytes of each, so that order is kept.

    Returns
    -------
    int
        Number of words listed. Linear in the slots.
    """
    n = np.int64(0)
    used = np.int64(0)
    edge = np.uint64(1) << np.uint64(56)
    for row in range(0, table.slots.size, SLOT_WORDS):
        high = table.slots[row + 1]
        if high == 0 or (table.slots[row] == np.uint64(EDGE_BYTE) and high == edge):
            continue
        length = np.int64(high >> np.uint64(56))
        low = table.slots[row]
        marked = blanks == MARKED and low & np.uint64(255) == BLANK
        if marked:
            used += 2
        for i in range(8):
            out[np.uint64(used + i)] = np.uint8(low >> np.uint64(8 * i) & np.uint64(255))
            out[np.uint64(used + 8 + i)] = np.uint8(high >> np.uint64(8 * i) & np.uint64(255))
        counts[n] = np.int64(table.slots[row + 2])
        if note_word(n, used, length, marked, blanks, start, size, prefix, out):
            n += 1
            used += length
    for row in range(0, table.long_slots.size, SLOT_WORDS):
        if table.long_slots[row] == 0:
            continue
        offset = np.int64(table.long_slots[row + 1])
        length = np.int64(table.long_slots[row + 2])
        marked = blanks == MARKED and np.uint64(table.kept[offset]) == BLANK
        if marked:
            used += 2
        for i in range(length):
            out[np.uint64(used + i)] = table.kept[np.uint64(offset + i)]
        counts[n] = np.int64(table.long_slots[row + 3])
        if note_word(n, used, length, marked, blanks, start, size, prefix, out):
            n += 1
            used += length
    return n


@helper
def compare_words(data: Any, first: int, n: int, other: Any, other_first: int, other_n: int, same: int) -> int:
    """Negative, 0 or positive, as one word is before, equal to or behind another; `same` bytes are known to be equal."""
    shorter = min(n, other_n)
    i = np.int64(min(same, shorter))
    while i < shorter:
        a = np.int64(data[np.uint64(first + i)])
        b = np.int64(other[np.uint64(other_first + i)])
        if a != b:
            return a - b
        i += 1
    return n - other_n


@inlined
def copy_word(target: Any, to: int, source: Any, at: int, n: int) -> int:
    """Copy `n` bytes; up to 64 bytes from `to` on may be touched."""
    if n <= 64 and at + 64 <= source.size and to + 64 <= target.size:
        copy_block(target, to, source, at)
    else:
        for i in range(n):
            target[np.uint64(to + i)] = source[np.uint64(at + i)]
    return 0


@kernel
def sort_words(data: Any, start: Any, size: Any, counts: Any, prefix: Any, order: Any, spare: Any, out: Any, indptr: Any,
               out_counts: Any) -> int:  # fmt: skip
    """Write words in the order of their bytes, equal ones as one.

    Parameters
    ----------
    data, start, size, counts, prefix
        As ``list_words`` lists them.
    order : int64[n]
        Numbers of the words, sorted by prefix; afterwards sorted.
    spare : int64[n]
        Scratch.
    out : uint8[m]
        Receives the words; as many bytes as they have.
    indptr : int64[n + 1]
        Receives where each begins in `out`, and where the last ends.
    out_counts : int64[n]
        Receives the counts.

    Returns
    -------
    int
        Number of words written. n log n comparisons at worst.
    """
    n = order.size
    run = np.int64(0)
    while run < n:
        stop = run + 1
        while stop < n and prefix[order[stop]] == prefix[order[run]]:
            stop += 1
        if stop - run > 1:
            # Insertion into short stretches, then merging of neighbours from `order` to `spare` and back.
            for begin in range(run, stop, _SHORT_RUN):
                for i in range(begin + 1, min(begin + _SHORT_RUN, stop)):
                    word = order[i]
                    j = i
                    while j > begin and compare_words(
                        data, start[word], size[word], data, start[order[j - 1]], size[order[j - 1]], 8
                    ) < 0:  # fmt: skip
                        order[j] = order[j - 1]
                        j -= 1
                    order[j] = word
            width = np.int64(_SHORT_RUN)
            while width < stop - run:
                for begin in range(run, stop, 2 * width):
                    middle = min(begin + width, stop)
                    end = min(begin + 2 * width, stop)
                    left = begin
                    right = middle
                    for i in range(begin, end):
                        takes_left = right == end
                        if left < middle and right < end:
                            a = order[left]
                            b = order[right]
                            takes_left = compare_words(data, start[a], size[a], data, start[b], size[b], 8) <= 0
                        if takes_left:
                            spare[i] = order[left]
                            left += 1
                        else:
                            spare[i] = order[right]
                            right += 1
                for i in range(run, stop):
                    order[i] = spare[i]
                width *= 2
        run = stop
    written = np.int64(0)
    used = np.int64(0)
    indptr[0] = 0
    for i in range(n):
        word = order[i]
        if written > 0:
            before = order[i - 1]
            if prefix[before] == prefix[word] and compare_words(
                data, start[word], size[word], data, start[before], size[before], 8
            ) == 0:  # fmt: skip
                out_counts[written - 1] += counts[word]
                continue
        first = start[word]
        copy_word(out, used, data, first, size[word])
        used += size[word]
        out_counts[written] = counts[word]
        written += 1
        indptr[written] = used
    return written


@kernel
def first_unordered(data: Any, indptr: Any) -> int:
    """Find a word that is not behind the one before it in the order of bytes.

    Parameters
    ----------
    data : uint8[m]
    indptr : int64[n + 1]
        Word i is ``data[indptr[i]:indptr[i + 1]]``.

    Returns
    -------
    int
        Its number, or -1.
    """
    for i in range(1, indptr.size - 1):
        before, first = indptr[i - 1], indptr[i]
        if compare_words(data, before, first - before, data, first, indptr[i + 1] - first, 0) >= 0:
            return i
    return -1


@kernel
def merge_words(data: Any, indptr: Any, counts: Any, other: Any, other_indptr: Any, other_counts: Any, out: Any,
                out_indptr: Any, out_counts: Any) -> int:  # fmt: skip
    """Merge two sorted lists of words; the counts of those in both are added.

    Parameters
    ----------
    data : uint8[m]
    indptr : int64[n + 1]
        Word i is ``data[indptr[i]:indptr[i + 1]]``.
    counts : int64[n]
    other, other_indptr, other_counts
        Likewise.
    out, out_indptr, out_counts
        Receive the result; as large as both together.

    Returns
    -------
    int
        Number of words. Linear.
    """
    n = counts.size
    n_other = other_counts.size
    i = np.int64(0)
    j = np.int64(0)
    written = np.int64(0)
    used = np.int64(0)
    out_indptr[0] = 0
    while i < n or j < n_other:
        order = np.int64(-1) if j == n_other else np.int64(1)
        if i < n and j < n_other:
            order = compare_words(
                data,
                indptr[i],
                indptr[i + 1] - indptr[i],
                other,
                other_indptr[j],
                other_indptr[j + 1] - other_indptr[j],
                0,
            )
        if order <= 0:
            first = indptr[i]
            length = indptr[i + 1] - first
            copy_word(out, used, data, first, length)
            count = counts[i]
            i += 1
            if order == 0:
                count += other_counts[j]
                j += 1
        else:
            first = other_indptr[j]
            length = other_indptr[j + 1] - first
            copy_word(out, used, other, first, length)
            count = other_counts[j]
            j += 1
        used += length
        out_counts[written] = count
        written += 1
        out_indptr[written] = used
    return written
