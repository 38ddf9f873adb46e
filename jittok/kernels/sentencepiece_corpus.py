"""Texts for SentencePiece's trainers: which count, where no piece may reach across, and how often each word occurs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.charsmap import longest_match
from jittok.kernels.machine import equal_bits, load64, multiply, prefetch, trailing_zeros
from jittok.kernels.utf8 import codepoint_at
from jittok.kernels.word_cache import FACTOR_HIGH, FACTOR_LOW, KEY_BYTES, ONE, find_long, hash_word
from jittok.memory import zeros

#: Positions in ``select_texts``'s `left_out`.
EMPTY, TOO_LONG, RESERVED = 0, 1, 2
#: Where :func:`count_words` cuts: nowhere, before blanks, before runs of them, behind blanks, behind runs.
WHOLE, BEFORE, BEFORE_RUN, BEHIND, BEHIND_RUN = 0, 1, 2, 3, 4
#: Longest keys that one place is compared with, as the reference does.
MOST_SYMBOLS = 64
#: Positions in ``WordTable.numbers``.
SHORT_USED, LONG_USED, KEPT_USED, NEXT_TEXT, NEXT_BYTE = 0, 1, 2, 3, 4
#: What :func:`count_words` says.
DONE, NO_SHORT_ROOM, NO_LONG_ROOM, NO_KEPT_ROOM = 0, 1, 2, 3
#: Words whose slots are asked for before the first is looked at.
BATCH = 64
#: Slots ahead of the one whose word is moved for which memory is asked.
MOVED_AHEAD = 16
#: Bytes that may be read after kept ones.
PADDING = 64
OFFSET_MASK = (1 << 40) - 1


class WordTable(NamedTuple):
    """Words and their counts, in two open-addressing tables that are at most three quarters full.

    A word of up to 15 bytes is its own key; longer ones are found by a hash, with their bytes kept to compare.
    """

    slots: NDArray[np.uint64]  # [4 * 2**k] bytes 0 to 7; bytes 8 to 14 | length << 56, 0 for a free slot; count; 0
    long_slots: NDArray[np.uint64]  # [4 * 2**k] hash | 1, 0 for a free slot; offset | length << 40; count; 0
    kept: NDArray[np.uint8]  # bytes of long words
    keys: NDArray[np.uint64]  # [4 * BATCH] scratch: words on their way to their slots
    key_masks: NDArray[np.uint64]  # [4 * 16] by length: mask of key low, mask of key high, length << 56, 0
    numbers: NDArray[np.int64]  # [8] words and bytes used, and where to go on


def new_word_table(short_bits: int, long_bits: int, kept: int) -> WordTable:
    """Allocate a table with ``2**short_bits`` and ``2**long_bits`` slots and `kept` bytes for long words."""
    return WordTable(
        slots=zeros(4 << short_bits, np.uint64),
        long_slots=zeros(4 << long_bits, np.uint64),
        kept=np.empty(kept + PADDING, np.uint8),
        keys=np.empty(4 * BATCH, np.uint64),
        key_masks=np.array(
            [[(1 << 8 * min(n, 8)) - 1, (1 << 8 * max(n - 8, 0)) - 1, n << 56, 0] for n in range(16)], np.uint64
        ).ravel(),
        numbers=np.zeros(8, np.int64),
    )


@kernel
def select_texts(data: Any, indptr: Any, strips: int, most: int, starts: Any, ends: Any, left_out: Any) -> int:
    """List the texts that are trained on.

    Parameters
    ----------
    data : uint8[n_bytes]
    indptr : int64[n + 1]
    strips
        1 to leave out CR and LF at the end of each text first, else 0.
    most
        Bytes of the longest text that counts.
    starts, ends : int64[n]
        Receive byte ranges.
    left_out : int64[3]
        Receives how many more are empty, too long, and hold U+2585.

    Returns
    -------
    int
        How many texts count. Linear, 64 bytes at a time.
    """
    kept = 0
    for i in range(indptr.shape[0] - 1):
        start = np.int64(indptr[i])
        end = np.int64(indptr[i + 1])
        while strips and end > start and (data[end - 1] == 10 or data[end - 1] == 13):
            end -= 1
        if start == end:
            left_out[EMPTY] += 1
            continue
        if end - start > most:
            left_out[TOO_LONG] += 1
            continue
        at = start
        found = False
        while at + 2 < end and not found:
            if at + 64 <= data.shape[0]:
                leads = equal_bits(data, at, 0xE2)
                while leads and not found:
                    place = at + trailing_zeros(leads)
                    leads &= leads - np.uint64(1)
                    found = place + 2 < end and data[place + 1] == 0x96 and data[place + 2] == 0x85
                at += 64
            else:
                found = data[at] == 0xE2 and data[at + 1] == 0x96 and data[at + 2] == 0x85
                at += 1
        if found:
            left_out[RESERVED] += 1
            continue
        starts[kept] = start
        ends[kept] = end
        kept += 1
    return kept


@kernel
def mark_boundaries(units: Any, first_bytes: Any, data: Any, starts: Any, ends: Any) -> int:
    """Put U+001F in the place of symbols, the longest at each place; texts become shorter where they are.

    Parameters
    ----------
    units : uint32[m]
        A double array of the symbols, UTF-8.
    first_bytes : uint8[k]
        What they begin with, each once.
    data : uint8[n_bytes]
        With 64 bytes to spare.
    starts, ends : int64[n]
        The texts, valid UTF-8. `ends` is changed.

    Returns
    -------
    int
        How many symbols there were. Linear in the text times the longest symbol; 64 bytes at a time where there is
        none.
    """
    marked = 0
    for i in range(starts.shape[0]):
        end = np.int64(ends[i])
        at = np.int64(starts[i])  # what is before has been looked at, and lies before `to`
        to = at
        block = at
        while block < end:
            hits = np.uint64(0)
            for k in range(first_bytes.shape[0]):
                hits |= equal_bits(data, block, first_bytes[k])
            while hits:
                place = block + trailing_zeros(hits)
                hits &= hits - np.uint64(1)
                if place >= end:
                    break
                if place < at:  # inside of a symbol
                    continue
                length, _ = longest_match(units, data, place, end, MOST_SYMBOLS)
                if length > 0:
                    if to < at:
                        for k in range(place - at):
                            data[to + k] = data[at + k]
                    to += place - at
                    # Nothing before `place + length` is needed any more, and at least one byte is free.
                    data[to] = 0x1F
                    to += 1
                    at = place + length
                    marked += 1
            block += 64
        if to < at:
            for k in range(end - at):
                data[to + k] = data[at + k]
            ends[i] = to + end - at
    return marked


@inlined
def short_hash(low: np.uint64, high: np.uint64) -> np.uint64:
    """Where the search for a short word begins, in slots."""
    return multiply(low ^ multiply(high, FACTOR_HIGH), FACTOR_LOW) >> np.uint64(32)


@helper
def count_batch(table: Any, n: int) -> int:
    """Count the `n` words in ``keys``, for which there is room."""
    slots = table.slots
    keys = table.keys
    mask = np.uint64(slots.shape[0] - 1)
    used = np.int64(0)
    for k in range(n):
        key = np.uint64(4 * k)
        low = keys[key]
        high = keys[key + ONE]
        at = keys[key + np.uint64(2)]
        while (slots[at] != low or slots[at + ONE] != high) and slots[at + ONE] != 0:
            at = (at + np.uint64(4)) & mask
        used += slots[at + ONE] == 0
        slots[at] = low
        slots[at + ONE] = high
        slots[at + np.uint64(2)] += keys[key + np.uint64(3)]
    table.numbers[SHORT_USED] += used
    return 0


@kernel
def count_words(data: Any, starts: Any, ends: Any, weights: Any, mode: int, table: Any) -> int:
    """Cut texts into words and count these.

    Parameters
    ----------
    data : uint8[n_bytes]
        With 64 bytes to spare. A blank is U+0020.
    starts, ends : int64[n]
        The texts.
    weights : int64[n] or int64[0]
        How often each text counts; empty: once.
    mode
        Where to cut: `WHOLE`, `BEFORE`, `BEFORE_RUN`, `BEHIND` or `BEHIND_RUN`.
    table : WordTable
        Receives the counts. ``numbers[NEXT_TEXT]`` and ``numbers[NEXT_BYTE]`` say where to begin (0: where that text
        does), and, when room is lacking, where to go on.

    Returns
    -------
    int
        `DONE`, or which room is lacking. Linear.
    """
    slots = table.slots
    keys = table.keys
    key_masks = table.key_masks
    long_slots = table.long_slots
    kept = table.kept
    numbers = table.numbers
    n_keys = np.int64(0)
    mask = np.uint64(slots.shape[0] - 1)
    most_short = 3 * (slots.shape[0] >> 4) - BATCH
    if numbers[SHORT_USED] > most_short:
        return NO_SHORT_ROOM
    most_long = 3 * (long_slots.shape[0] >> 4)
    most_kept = kept.shape[0] - PADDING
    text = np.int64(numbers[NEXT_TEXT])
    word = np.int64(numbers[NEXT_BYTE])
    while text < starts.shape[0]:
        end = np.int64(ends[text])
        if word == 0:
            word = np.int64(starts[text])
        weight = np.uint64(weights[text]) if weights.shape[0] else np.uint64(1)
        first = word
        block = word
        before = np.uint64(0)
        while block <= end and first < end:
            n = min(end - block, 64)
            cuts = np.uint64(0)
            if mode != WHOLE:
                blanks = equal_bits(data, block, 0x20)
                behind = blanks << np.uint64(1) | before
                before = blanks >> np.uint64(63)
                if mode == BEFORE:
                    cuts = blanks
                elif mode == BEFORE_RUN:
                    cuts = blanks & ~behind
                elif mode == BEHIND:
                    cuts = behind
                else:
                    cuts = behind & ~blanks
                if block == first:
                    cuts &= ~np.uint64(1)
            if n < 64:  # the text ends here
                cuts = cuts & ((np.uint64(1) << np.uint64(n)) - np.uint64(1)) | np.uint64(1) << np.uint64(n)
            while cuts:
                cut = block + trailing_zeros(cuts)
                cuts &= cuts - np.uint64(1)
                length = cut - word
                if length <= KEY_BYTES:
                    row = np.uint64(4 * length)
                    low = load64(data, word) & key_masks[row]
                    high = load64(data, word + 8) & key_masks[row + ONE] | key_masks[row + np.uint64(2)]
                    slot = (short_hash(low, high) << np.uint64(2)) & mask
                    prefetch(slots, np.int64(slot))
                    key = np.uint64(4 * n_keys)
                    keys[key] = low
                    keys[key + ONE] = high
                    keys[key + np.uint64(2)] = slot
                    keys[key + np.uint64(3)] = weight
                    n_keys += 1
                    if n_keys == BATCH:
                        count_batch(table, n_keys)
                        n_keys = np.int64(0)
                        if numbers[SHORT_USED] > most_short:
                            numbers[NEXT_TEXT] = text + (cut == end)
                            numbers[NEXT_BYTE] = 0 if cut == end else cut
                            return NO_SHORT_ROOM
                else:
                    tag = hash_word(data, word, length) | ONE
                    at = np.uint64(find_long(data, word, length, tag, long_slots, kept))
                    if long_slots[at] == 0:
                        offset = np.int64(numbers[KEPT_USED])
                        if numbers[LONG_USED] >= most_long or offset + length > most_kept:
                            count_batch(table, n_keys)
                            numbers[NEXT_TEXT] = text
                            numbers[NEXT_BYTE] = word
                            return NO_LONG_ROOM if numbers[LONG_USED] >= most_long else NO_KEPT_ROOM
                        for k in range(length):
                            kept[np.uint64(offset + k)] = data[np.uint64(word + k)]
                        numbers[KEPT_USED] = offset + length
                        long_slots[at] = tag
                        long_slots[at + ONE] = np.uint64(offset) | np.uint64(length) << np.uint64(40)
                        numbers[LONG_USED] += 1
                    long_slots[at + np.uint64(2)] += weight
                word = cut
            block += 64
        text += 1
        word = np.int64(0)
    count_batch(table, n_keys)
    numbers[NEXT_TEXT] = 0
    numbers[NEXT_BYTE] = 0
    return DONE


@kernel
def move_words(table: Any, larger: Any) -> int:
    """Move words to where there are more slots, of short words or of long ones.

    Parameters
    ----------
    table, larger : WordTable
        Where the slots of both have the same number, they are the same. The others of `larger` are empty; its other
        arrays hold what those of `table` do.

    Returns
    -------
    int
        0. Linear in the slots.
    """
    slots = table.slots
    if larger.slots.shape[0] != slots.shape[0]:
        mask = np.uint64(larger.slots.shape[0] - 1)
        for i in range(0, slots.shape[0], 4):
            if i + 4 * MOVED_AHEAD < slots.shape[0]:
                ahead = np.uint64(i + 4 * MOVED_AHEAD)
                prefetch(larger.slots, np.int64((short_hash(slots[ahead], slots[ahead + ONE]) << np.uint64(2)) & mask))
            old = np.uint64(i)
            low = slots[old]
            high = slots[old + ONE]
            if high == 0:
                continue
            at = (short_hash(low, high) << np.uint64(2)) & mask
            while larger.slots[at + ONE] != 0:
                at = (at + np.uint64(4)) & mask
            larger.slots[at] = low
            larger.slots[at + ONE] = high
            larger.slots[at + np.uint64(2)] = slots[old + np.uint64(2)]
    slots = table.long_slots
    if larger.long_slots.shape[0] != slots.shape[0]:
        mask = np.uint64(larger.long_slots.shape[0] - 1)
        for i in range(0, slots.shape[0], 4):
            old = np.uint64(i)
            tag = slots[old]
            if tag == 0:
                continue
            at = ((tag >> np.uint64(32)) << np.uint64(2)) & mask
            while larger.long_slots[at] != 0:
                at = (at + np.uint64(4)) & mask
            for k in range(4):
                larger.long_slots[at + np.uint64(k)] = slots[old + np.uint64(k)]
    return 0


@kernel
def list_words(table: Any, data: Any, indptr: Any, counts: Any) -> int:
    """Write the words of a table one after another, in no particular order.

    Parameters
    ----------
    table : WordTable
    data : uint8[n_bytes]
        Receives their bytes; with 16 bytes to spare.
    indptr : int64[n + 1]
    counts : int64[n]

    Returns
    -------
    int
        The number of bytes.
    """
    n = 0
    written = np.int64(0)
    indptr[0] = 0
    for at in range(0, table.slots.shape[0], 4):
        high = table.slots[at + 1]
        if high == 0:
            continue
        low = table.slots[at]
        length = np.int64(high >> np.uint64(56))
        for k in range(min(length, 8)):
            data[written + k] = np.uint8(low >> np.uint64(8 * k) & np.uint64(255))
        for k in range(8, length):
            data[written + k] = np.uint8(high >> np.uint64(8 * (k - 8)) & np.uint64(255))
        written += length
        counts[n] = np.int64(table.slots[at + 2])
        n += 1
        indptr[n] = written
    for at in range(0, table.long_slots.shape[0], 4):
        if table.long_slots[at] == 0:
            continue
        place = np.int64(table.long_slots[at + 1])
        offset = place & OFFSET_MASK
        length = place >> 40
        for k in range(length):
            data[written + k] = table.kept[offset + k]
        written += length
        counts[n] = np.int64(table.long_slots[at + 2])
        n += 1
        indptr[n] = written
    return written


@kernel
def count_characters(data: Any, indptr: Any, counts: Any, character_counts: Any) -> int:
    """Count the codepoints of counted words.

    Parameters
    ----------
    data : uint8[n_bytes]
        Valid UTF-8.
    indptr : int64[n + 1]
    counts : int64[n]
    character_counts : int64[k]
        Receives the counts.

    Returns
    -------
    int
        The number of codepoints, each word taken once.
    """
    n = 0
    for i in range(counts.shape[0]):
        at = np.int64(indptr[i])
        end = np.int64(indptr[i + 1])
        count = np.int64(counts[i])
        while at < end:
            codepoint, width = codepoint_at(data, at)
            character_counts[codepoint] += count
            at += width
            n += 1
    return n


@kernel
def decode_words(data: Any, indptr: Any, outside: Any, codepoints: Any, codepoint_indptr: Any) -> int:
    """Decode words, with U+2581 for blanks and U+2585 for what is outside of the alphabet.

    Parameters
    ----------
    data : uint8[n_bytes]
        Valid UTF-8; a blank is U+0020.
    indptr : int64[n + 1]
    outside : bool[0x110000]
        Which codepoints are outside.
    codepoints : uint32[m]
    codepoint_indptr : int64[n + 1]

    Returns
    -------
    int
        The number of codepoints.
    """
    n = 0
    codepoint_indptr[0] = 0
    for i in range(indptr.shape[0] - 1):
        at = np.int64(indptr[i])
        end = np.int64(indptr[i + 1])
        while at < end:
            codepoint, width = codepoint_at(data, at)
            if codepoint == 0x20:
                codepoint = 0x2581
            codepoints[n] = 0x2585 if outside[codepoint] else codepoint
            at += width
            n += 1
        codepoint_indptr[i + 1] = n
    return n
