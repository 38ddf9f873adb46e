"""Pre-tokens to token ids through a bounded cache, a chunk at a time.

Each step is a loop of its own over arrays that stay in the first-level cache: make keys and ask for their cache
lines, compare keys and take the ids, resolve what was not found, put all ids in order. A pre-token of at most 15
bytes is a key of 16 bytes (its bytes and its length) in an open-addressing table of 32-byte slots; longer ones go
to a second table by a 64-bit hash, with their bytes kept to compare. A chunk never starts with a table that it could
fill by more than half, so a probe ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import copy_ids, load64, multiply, prefetch, store_pair, trailing_zeros
from jittok.kernels.merge import MOST_PLACES, SHORT_WORD, load_symbols, merge_long, merge_ranked, merge_short
from jittok.kernels.split import (
    ASCII,
    CHUNK,
    COMPLETE,
    PIECES,
    POSITION,
    SEGMENT,
    WORDS,
    decode_codepoint,
    load_chunk,
    pre_token_end,
    split_chunk,
)
from jittok.memory import zeros
from jittok.tables import EDGE_BYTE, MERGE_CUT, MERGE_DIRECT, MERGE_RANKED

#: Bytes of a pre-token that fit a key.
KEY_BYTES = 15
#: Places in ``merge_ranked`` of a word that fits a key.
SHORT_PLACES = 16
#: New words that do not fit a key, merged together.
LONG_AT_ONCE = 64
#: Marks the first or last byte of a codepoint that a token holds a part of, where a codepoint could stand.
PARTIAL = 1 << 21
#: Pre-tokens whose keys are made at once: their slots, of one cache line each, stay in the first-level cache.
BATCH = 128
#: Tokens ahead of the one that is put into a cache, whose slots are asked for.
AHEAD = 12
#: Places after the ids that may be written over.
EXTRA_ROOM = 16
#: Words for each pre-token in ``MergeScratch.keys``.
KEY_WORDS = 4
#: Words of a slot: two for the key, two for up to four ids and their number.
SLOT_WORDS = 4
#: In the number's place: the ids are in the arena, not in the slot.
IN_ARENA = 255
COUNT_SHIFT = np.uint64(56)
VALUE_MASK = np.uint64((1 << 56) - 1)
ARENA_SHIFT = np.uint64(40)
ARENA_MASK = np.uint64((1 << 40) - 1)
FACTOR_LOW = np.uint64(0x9E3779B97F4A7C15)
FACTOR_HIGH = np.uint64(0xC2B2AE3D27D4EB4F)
FACTOR_MIX = np.uint64(0xD6E8FEB86659FD93)
ZERO = np.uint64(0)
ONE = np.uint64(1)
#: Most bytes that one chunk can add to the arena, or to the kept bytes of long words.
CHUNK_BYTES = 4 * CHUNK + 256

#: Positions in ``WordCache.counters``.
USED = 0
ARENA_USED = 1
LONG_USED = 2
KEPT_USED = 3
PRELOADED = 4  # 1 when the tokens that merging makes are in

#: Positions in ``Chunk.state`` (continued from kernels.split).
WRITTEN = 8  # ids written so far
NEEDED = 9  # scratch units that a long pre-token needs
WORD_NUMBER = 10  # number of the next pre-token inside its segment

#: What ``encode_segments`` returns.
DONE = 0
MORE_SCRATCH = 1
MORE_CACHE = 2


class WordCache(NamedTuple):
    """The pre-tokens that one worker has seen, and their ids."""

    slots: NDArray[np.uint64]  # [SLOT_WORDS * 2**k] key low, key high | length << 56, value, value
    long_slots: NDArray[np.uint64]  # [4 * 2**k] hash | 1, kept offset | length << 40, arena offset | count << 40, 0
    arena: NDArray[np.int32]  # ids of words with more than four
    kept: NDArray[np.uint8]  # bytes of long words, for comparison
    counters: NDArray[np.int64]  # [8]


class MergeScratch(NamedTuple):
    """Scratch arrays for merging one word, and for the words of a chunk."""

    symbols: NDArray[np.int32]  # [capacity]
    lengths: NDArray[np.int32]  # [capacity] bytes of each symbol
    ranks: NDArray[np.int32]  # [64]
    previous: NDArray[np.int32]  # [capacity]
    following: NDArray[np.int32]  # [capacity]
    heap: NDArray[np.int64]  # [capacity * 3 / 2 + 8]
    keys: NDArray[np.uint64]  # [(CHUNK + 80) * KEY_WORDS] by pre-token: key low, key high, slot; missed: value, value
    ids: NDArray[np.int32]  # [CHUNK_BYTES] the chunk's ids, but for those of missed pre-tokens
    id_at: NDArray[np.int32]  # [CHUNK + 81] by pre-token: where its ids begin in `ids`
    missed: NDArray[np.int32]  # [CHUNK + 80] pre-tokens that were not found at once
    new_word: NDArray[np.int32]  # [CHUNK + 80] those of them that must be merged
    new_first: NDArray[np.int32]  # [CHUNK + 80] text offset of each new word
    new_length: NDArray[np.int32]  # [CHUNK + 80] its bytes, then its number of ids
    new_ids: NDArray[np.int32]  # [CHUNK * SHORT_PLACES]
    long_first: NDArray[np.int32]  # [LONG_AT_ONCE] the same of new words that do not fit a key
    long_length: NDArray[np.int32]  # [LONG_AT_ONCE]
    long_word: NDArray[np.int32]  # [LONG_AT_ONCE] their numbers in the chunk
    key_masks: NDArray[np.uint64]  # [16 * KEY_WORDS] by length: mask of key low, mask of key high, length << 56


def new_word_cache(slot_bits: int, long_bits: int, arena: int, kept: int) -> WordCache:
    """Allocate an empty cache with ``2**slot_bits`` slots for short and ``2**long_bits`` for long pre-tokens."""
    return WordCache(
        slots=zeros(SLOT_WORDS << slot_bits, np.uint64),
        long_slots=zeros(4 << long_bits, np.uint64),
        arena=zeros(arena + CHUNK_BYTES, np.int32),
        kept=zeros(kept + CHUNK_BYTES, np.uint8),
        counters=np.zeros(8, np.int64),
    )


def new_merge_scratch(capacity: int = CHUNK_BYTES) -> MergeScratch:
    """Allocate scratch for words of up to `capacity` units."""
    return MergeScratch(
        symbols=np.zeros(capacity, np.int32),
        lengths=np.zeros(capacity, np.int32),
        ranks=np.zeros(64, np.int32),
        previous=np.zeros(capacity, np.int32),
        following=np.zeros(capacity, np.int32),
        heap=np.zeros(capacity + capacity // 2 + 8, np.int64),
        keys=np.zeros((CHUNK + 80) * KEY_WORDS, np.uint64),
        ids=np.zeros(CHUNK_BYTES, np.int32),
        id_at=np.zeros(CHUNK + 81, np.int32),
        missed=np.zeros(CHUNK + 80, np.int32),
        new_word=np.zeros(CHUNK + 80, np.int32),
        new_first=np.zeros(CHUNK + 80, np.int32),
        new_length=np.zeros(CHUNK + 80, np.int32),
        new_ids=np.zeros(CHUNK * SHORT_PLACES, np.int32),
        long_first=np.zeros(LONG_AT_ONCE, np.int32),
        long_length=np.zeros(LONG_AT_ONCE, np.int32),
        long_word=np.zeros(LONG_AT_ONCE, np.int32),
        key_masks=np.array(
            [[(1 << 8 * min(n, 8)) - 1, (1 << 8 * max(n - 8, 0)) - 1, n << 56, 0] for n in range(16)], np.uint64
        ).ravel(),
    )


@helper
def hash_bytes(data: Any, first: int, n: int) -> np.uint64:
    """A 64-bit hash of `n` bytes."""
    value = multiply(np.uint64(n), FACTOR_HIGH)
    at = np.int64(0)
    while at + 8 <= n:
        value = multiply(value ^ load64(data, first + at), FACTOR_LOW)
        value ^= value >> np.uint64(32)
        at += 8
    if at < n:
        rest = ZERO
        for i in range(n - at):
            rest |= np.uint64(data[first + at + i]) << np.uint64(8 * i)
        value = multiply(value ^ rest, FACTOR_LOW)
        value ^= value >> np.uint64(32)
    value = multiply(value, FACTOR_MIX)
    return value ^ (value >> np.uint64(29))


@helper
def find_direct(merges: Any, data: Any, first: int, end: int) -> int:
    """The token that a word is as a whole although merging would not make it, -1 if it is none.

    A hash tag finds the candidate, whose bytes are compared.
    """
    tag = hash_bytes(data, first, end - first)
    mask = np.uint64(merges.direct_slots.size - 1)
    at = (tag >> np.uint64(32)) & mask
    while True:
        slot = merges.direct_slots[at]
        if slot == np.uint64(0xFFFFFFFFFFFFFFFF):
            return -1
        if slot >> np.uint64(32) == tag & np.uint64(0xFFFFFFFF):
            token = np.int64(slot & np.uint64(0xFFFFFFFF))
            begin = merges.token_indptr[token]
            if merges.token_indptr[token + 1] - begin == end - first:
                i = np.int64(0)
                while i < end - first and merges.token_bytes[begin + i] == data[first + i]:
                    i += 1
                if i == end - first:
                    return token
        at = (at + ONE) & mask


@helper
def merge_word(merges: Any, data: Any, first: int, end: int, scratch: Any) -> int:
    """Token ids of one word, left in ``scratch.symbols`` with their byte lengths; returns their number."""
    symbols = scratch.symbols
    lengths = scratch.lengths
    if merges.numbers[MERGE_DIRECT] > 0:
        token = find_direct(merges, data, first, end)
        if token >= 0:
            symbols[0] = token
            lengths[0] = end - first
            return 1
    n = load_symbols(merges, data, first, end, symbols, lengths)
    if n <= SHORT_WORD:
        n = merge_short(merges, n, symbols, lengths, scratch.ranks)
    else:
        n = merge_long(merges, n, scratch)
    for i in range(n):
        symbols[i] = merges.symbol_token[symbols[i]]
    return n


@inlined
def is_crossed(crossed: Any, left: int, right: int) -> bool:
    """Whether some token may span the junction of two codepoints; see ``build.junctions``."""
    shift = np.uint64(58) - np.uint64(trailing_zeros(np.uint64(crossed.size)))
    value = multiply(np.uint64(left) << np.uint64(22) | np.uint64(right), FACTOR_LOW) >> shift
    return (crossed[value >> np.uint64(6)] >> (value & np.uint64(63))) & ONE != 0


@inlined
def cut_words(merges: Any, chunk: Any, scratch: Any) -> int:
    """Cut pre-tokens that do not fit a key between codepoints that no token spans; returns the number of words.

    Merges only ever make tokens, so none can reach across such a junction, and the parts can be merged one by one:
    in scripts without blanks, whole sentences become short words that the cache soon knows. Linear in the bytes cut.
    """
    state = chunk.state
    word = chunk.word
    text = chunk.text
    old = scratch.missed
    crossed = merges.crossed
    words = state[WORDS]
    for k in range(words + 1):
        old[np.uint64(k)] = word[np.uint64(k)]
    n = np.int64(0)
    piece = 0
    limit = word.size - 80
    for k in range(words):
        while piece < state[PIECES] and chunk.piece_end_word[piece] <= k:
            if chunk.piece_end_word[piece] == k:
                chunk.piece_end_word[piece] = n
                piece += 1
            else:
                break
        first = np.int64(old[np.uint64(k)])
        end = np.int64(old[np.uint64(k + 1)])
        word[np.uint64(n)] = first
        n += 1
        if end - first <= KEY_BYTES:
            continue
        coded = decode_codepoint(text, first)
        left = coded >> 3
        at = first + (coded & 7)
        # Room for the words still to come, each of which is one at least.
        while at < end and n + (words - k) < limit:
            coded = decode_codepoint(text, at)
            right = coded >> 3
            left_end = left if left < 0x80 else PARTIAL | np.int64(text[np.uint64(at - 1)])
            right_begin = right if right < 0x80 else PARTIAL | np.int64(text[np.uint64(at)])
            if not (
                is_crossed(crossed, left, right)
                or is_crossed(crossed, left_end, right)
                or is_crossed(crossed, left, right_begin)
                or is_crossed(crossed, left_end, right_begin)
            ):
                word[np.uint64(n)] = at
                n += 1
            left = right
            at += coded & 7
    while piece < state[PIECES]:
        chunk.piece_end_word[piece] = n
        piece += 1
    word[np.uint64(n)] = old[np.uint64(words)]
    state[WORDS] = n
    return n


@inlined
def key_slot(low: np.uint64, high: np.uint64, mask: np.uint64) -> np.uint64:
    """The slot, an even number, where the search for a key begins."""
    return (multiply(low ^ multiply(high, FACTOR_HIGH), FACTOR_LOW) >> np.uint64(40)) & mask


@inlined
def make_keys(chunk: Any, scratch: Any, slots: Any, begin: int, end: int) -> int:
    """Key, and slot number, of pre-tokens [begin, end) of the chunk; a pre-token too long has an all-zero key."""
    text = chunk.text
    word = chunk.word
    mask = np.uint64((slots.size >> 2) - 2)
    keys = scratch.keys
    key_masks = scratch.key_masks
    first = np.int64(word[np.uint64(begin)])
    for k in range(begin, end):
        following = np.int64(word[np.uint64(k + 1)])
        length = np.uint64(following - first)
        if length > np.uint64(KEY_BYTES):
            length = ZERO
        row = length << np.uint64(2)
        low = load64(text, first) & key_masks[row]
        high = load64(text, first + 8) & key_masks[row + ONE] | key_masks[row + np.uint64(2)]
        slot = key_slot(low, high, mask)
        key = np.uint64(k) << np.uint64(2)
        keys[key] = low
        keys[key + ONE] = high
        keys[key + np.uint64(2)] = slot
        prefetch(slots, np.int64(slot << np.uint64(2)))
        first = following
    return 0


@inlined
def compare_keys(scratch: Any, slots: Any, begin: int, end: int, misses: int) -> int:
    """Take the ids of pre-tokens found in either of two slots; list the others; returns their number so far.

    Others are those further on in the table or not in it, too long for a key, or with more ids than a slot holds.
    ``id_at[begin]`` says where the ids go. No branch depends on what is found.
    """
    keys = scratch.keys
    ids = scratch.ids
    id_at = scratch.id_at
    missed = scratch.missed
    written = np.int64(id_at[begin])
    for k in range(begin, end):
        key = np.uint64(k) << np.uint64(2)
        low = keys[key]
        high = keys[key + ONE]
        at = keys[key + np.uint64(2)] << np.uint64(2)
        first_differs = (slots[at] ^ low) | (slots[at + ONE] ^ high)
        second_differs = (slots[at + np.uint64(4)] ^ low) | (slots[at + np.uint64(5)] ^ high)
        value_low = slots[at + np.uint64(2)] if first_differs == 0 else slots[at + np.uint64(6)]
        value_high = slots[at + np.uint64(3)] if first_differs == 0 else slots[at + np.uint64(7)]
        count = np.int64(value_low >> COUNT_SHIFT)
        missing = ((first_differs != 0) & (second_differs != 0)) | (high == 0) | (count == IN_ARENA)
        store_pair(ids, written, value_low & VALUE_MASK)
        store_pair(ids, written + 2, value_high)
        missed[np.uint64(misses)] = k
        misses += 1 if missing else 0
        written += 0 if missing else count
        id_at[np.uint64(k + 1)] = written
    return misses


@inlined
def find_slot(slots: Any, slot: np.uint64, low: np.uint64, high: np.uint64) -> int:
    """Position in `slots` of a key, or of the free slot where it belongs (whose second word is 0)."""
    mask = np.uint64(slots.size - 1)
    at = slot << np.uint64(2)
    while True:
        if (slots[at] == low and slots[at + ONE] == high) or slots[at + ONE] == 0:
            return np.int64(at)
        at = (at + np.uint64(4)) & mask


@inlined
def put_word(
    slots: Any, arena: Any, counters: Any, at: int, low: np.uint64, high: np.uint64, ids: Any, first: int, n: int
) -> int:
    """Store `n` ids from `first` on under a key at a free slot; the arena has room (checked when a chunk begins)."""
    value_low = ZERO
    value_high = ZERO
    if n <= 4:
        if n > 0:
            value_low = np.uint64(ids[first])
        if n > 1:
            value_low |= np.uint64(ids[first + 1]) << np.uint64(32)
        if n > 2:
            value_high = np.uint64(ids[first + 2])
        if n > 3:
            value_high |= np.uint64(ids[first + 3]) << np.uint64(32)
        value_low |= np.uint64(n) << COUNT_SHIFT
    else:
        value_low = np.uint64(IN_ARENA) << COUNT_SHIFT
        value_high = put_arena(arena, counters, ids, first, n)
    slots[at] = low
    slots[at + 1] = high
    slots[at + 2] = value_low
    slots[at + 3] = value_high
    counters[USED] += 1
    return 0


@inlined
def put_arena(arena: Any, counters: Any, ids: Any, first: int, n: int) -> np.uint64:
    """Append `n` ids from `first` on to the arena; returns offset | count << 40."""
    offset = counters[ARENA_USED]
    for i in range(n):
        arena[np.uint64(offset + i)] = ids[np.uint64(first + i)]
    counters[ARENA_USED] = offset + n
    return np.uint64(offset) | np.uint64(n) << ARENA_SHIFT


@inlined
def hash_word(text: Any, first: int, n: int) -> np.uint64:
    """As ``hash_bytes``, for text after which seven more bytes can be read."""
    value = multiply(np.uint64(n), FACTOR_HIGH)
    at = np.int64(0)
    while at < n:
        block = load64(text, first + at)
        if at + 8 > n:
            block &= (ONE << np.uint64(8 * (n - at))) - ONE
        value = multiply(value ^ block, FACTOR_LOW)
        value ^= value >> np.uint64(32)
        at += 8
    value = multiply(value, FACTOR_MIX)
    return value ^ (value >> np.uint64(29))


@inlined
def find_long(text: Any, first: int, n: int, tag: np.uint64, long_slots: Any, kept: Any) -> int:
    """Position in `long_slots` of a word that does not fit a key, or of the free place where it belongs."""
    mask = np.uint64(long_slots.size - 1)
    at = ((tag >> np.uint64(32)) << np.uint64(2)) & mask
    while long_slots[at] != 0:
        if long_slots[at] == tag:
            place = long_slots[at + ONE]
            if np.int64(place >> ARENA_SHIFT) == n:
                offset = np.int64(place & ARENA_MASK)
                # Eight bytes at a time, the last of them again: such a word has more than eight.
                i = np.int64(0)
                while i < n - 8 and load64(kept, offset + i) == load64(text, first + i):
                    i += 8
                if i >= n - 8 and load64(kept, offset + n - 8) == load64(text, first + n - 8):
                    break
        at = (at + np.uint64(4)) & mask
    return np.int64(at)


@inlined
def put_long(
    long_slots: Any,
    kept: Any,
    arena: Any,
    counters: Any,
    at: int,
    tag: np.uint64,
    text: Any,
    first: int,
    length: int,
    ids: Any,
    first_id: int,
    n: int,
) -> int:
    """Store `n` ids from `first_id` on for a word that does not fit a key, at a free place of `long_slots`."""
    offset = counters[KEPT_USED]
    for i in range(length):
        kept[np.uint64(offset + i)] = text[np.uint64(first + i)]
    counters[KEPT_USED] = offset + length
    long_slots[at] = tag
    long_slots[at + 1] = np.uint64(offset) | np.uint64(length) << ARENA_SHIFT
    long_slots[at + 2] = put_arena(arena, counters, ids, first_id, n)
    counters[LONG_USED] += 1
    return 0


@inlined
def resolve_misses(merges: Any, misses: int, chunk: Any, cache: Any, scratch: Any, lanes: Any) -> int:
    """Look further for, or merge and remember, the pre-tokens that ``compare_keys`` listed.

    Their keys become values: ids as in a slot.
    """
    text = chunk.text
    word = chunk.word
    slots = cache.slots
    arena = cache.arena
    kept = cache.kept
    long_slots = cache.long_slots
    counters = cache.counters
    keys = scratch.keys
    missed = scratch.missed
    new_word = scratch.new_word
    new_first = scratch.new_first
    new_length = scratch.new_length
    symbols = scratch.symbols
    ranked = merges.numbers[MERGE_RANKED] == 1
    n_direct = merges.numbers[MERGE_DIRECT]
    n_new = np.int64(0)
    n_long = np.int64(0)
    for q in range(misses):
        k = np.uint64(missed[np.uint64(q)])
        key = k << np.uint64(2)
        low = keys[key]
        high = keys[key + ONE]
        first = np.int64(word[k])
        if high != 0:
            at = find_slot(slots, keys[key + np.uint64(2)], low, high)
            if slots[at + 1] != 0:
                keys[key] = slots[at + 2]
                keys[key + ONE] = slots[at + 3]
            elif text[np.uint64(first)] == EDGE_BYTE:
                put_word(slots, arena, counters, at, low, high, symbols, 0, 0)
                keys[key] = ZERO
                keys[key + ONE] = ZERO
            elif ranked and n_direct > 0 and find_direct(merges, text, first, np.int64(word[k + ONE])) >= 0:
                symbols[0] = find_direct(merges, text, first, np.int64(word[k + ONE]))
                put_word(slots, arena, counters, at, low, high, symbols, 0, 1)
                keys[key] = slots[at + 2]
                keys[key + ONE] = slots[at + 3]
            elif ranked:
                new_first[np.uint64(n_new)] = first
                new_length[np.uint64(n_new)] = np.int64(word[k + ONE]) - first
                new_word[np.uint64(n_new)] = np.int64(k)
                n_new += 1
            else:
                count = merge_word(merges, text, first, np.int64(word[k + ONE]), scratch)
                put_word(slots, arena, counters, at, low, high, symbols, 0, count)
                keys[key] = slots[at + 2]
                keys[key + ONE] = slots[at + 3]
            continue
        length = np.int64(word[k + ONE]) - first
        tag = hash_word(text, first, length) | ONE
        at = find_long(text, first, length, tag, long_slots, kept)
        if long_slots[at] == 0:
            if ranked and n_direct == 0 and length < MOST_PLACES:
                if n_long == LONG_AT_ONCE:
                    keep_long(merges, n_long, chunk, cache, scratch, lanes)
                    n_long = np.int64(0)
                scratch.long_first[n_long] = first
                scratch.long_length[n_long] = length
                scratch.long_word[n_long] = np.int64(k)
                n_long += 1
                continue
            count = merge_word(merges, text, first, first + length, scratch)
            put_long(long_slots, kept, arena, counters, at, tag, text, first, length, symbols, 0, count)
        keys[key] = np.uint64(IN_ARENA) << COUNT_SHIFT
        keys[key + ONE] = long_slots[at + 2]
    if n_long > 0:
        keep_long(merges, n_long, chunk, cache, scratch, lanes)
    if n_new > 0:
        merge_ranked(
            text,
            new_first,
            new_length,
            n_new,
            SHORT_PLACES,
            merges.byte_pair,
            merges.pair_slots,
            merges.symbol_token,
            lanes,
            scratch.new_ids,
        )
        for q in range(n_new):
            key = np.uint64(new_word[np.uint64(q)]) << np.uint64(2)
            low = keys[key]
            high = keys[key + ONE]
            at = find_slot(slots, keys[key + np.uint64(2)], low, high)
            if slots[at + 1] == 0:
                count = np.int64(new_length[np.uint64(q)])
                put_word(slots, arena, counters, at, low, high, scratch.new_ids, q * SHORT_PLACES, count)
            keys[key] = slots[at + 2]
            keys[key + ONE] = slots[at + 3]
    return 0


@helper
def keep_long(merges: Any, n: int, chunk: Any, cache: Any, scratch: Any, lanes: Any) -> int:
    """Merge and remember the words listed in ``scratch.long_first``."""
    text = chunk.text
    long_length = scratch.long_length
    merge_ranked(
        text,
        scratch.long_first,
        long_length,
        n,
        MOST_PLACES,
        merges.byte_pair,
        merges.pair_slots,
        merges.symbol_token,
        lanes,
        scratch.new_ids,
    )
    long_slots = cache.long_slots
    for q in range(n):
        k = np.int64(scratch.long_word[q])
        first = np.int64(chunk.word[k])
        length = np.int64(chunk.word[k + 1]) - first
        tag = hash_word(text, first, length) | ONE
        at = find_long(text, first, length, tag, long_slots, cache.kept)
        if long_slots[at] == 0:
            put_long(
                long_slots,
                cache.kept,
                cache.arena,
                cache.counters,
                at,
                tag,
                text,
                first,
                length,
                scratch.new_ids,
                q * MOST_PLACES,
                np.int64(long_length[q]),
            )
        scratch.keys[KEY_WORDS * k] = np.uint64(IN_ARENA) << COUNT_SHIFT
        scratch.keys[KEY_WORDS * k + 1] = long_slots[at + 2]
    return 0


@inlined
def write_ids(misses: int, chunk: Any, cache: Any, scratch: Any, out: Any, out_end: Any, written: int) -> int:
    """Write the ids of all pre-tokens in order, and where pieces end; returns the new number of ids.

    Ids lie ready but for those of the pre-tokens listed. Sixteen at a time are copied, so that EXTRA_ROOM places past
    the last may be touched.
    """
    keys = scratch.keys
    ids = scratch.ids
    id_at = scratch.id_at
    missed = scratch.missed
    arena = cache.arena
    taken = np.int64(0)
    q = np.int64(0)
    for piece in range(chunk.state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        while True:
            k = edge
            if q < misses and missed[np.uint64(q)] < edge:
                k = np.int64(missed[np.uint64(q)])
            until = np.int64(id_at[np.uint64(k)])
            for i in range(0, until - taken, 16):
                copy_ids(out, written + i, ids, taken + i)
            written += until - taken
            taken = until
            if k == edge:
                break
            q += 1
            value_low = keys[np.uint64(k) << np.uint64(2)]
            value_high = keys[np.uint64(k) << np.uint64(2) | ONE]
            count = np.int64(value_low >> COUNT_SHIFT)
            if count != IN_ARENA:
                store_pair(out, written, value_low & VALUE_MASK)
                store_pair(out, written + 2, value_high)
            else:
                offset = np.int64(value_high & ARENA_MASK)
                count = np.int64(value_high >> ARENA_SHIFT)
                for i in range(0, count, 16):
                    copy_ids(out, written + i, arena, offset + i)
            written += count
        if q < misses and missed[np.uint64(q)] == edge:
            q += 1
        out_end[chunk.piece_segment[piece]] = written
    return written


@helper
def write_word_numbers(misses: int, chunk: Any, scratch: Any, out_word: Any, written: int) -> int:
    """Write the number of its pre-token for every id, as ``write_ids`` writes these from `written` on."""
    state = chunk.state
    q = np.int64(0)
    k = np.int64(0)
    for piece in range(state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        number = state[WORD_NUMBER]
        while k < edge:
            count = np.int64(scratch.id_at[k + 1]) - np.int64(scratch.id_at[k])
            if q < misses and scratch.missed[q] == k:
                q += 1
                count = np.int64(scratch.keys[KEY_WORDS * k] >> COUNT_SHIFT)
                if count == IN_ARENA:
                    count = np.int64(scratch.keys[KEY_WORDS * k + 1] >> ARENA_SHIFT)
            for i in range(count):
                out_word[written + i] = number
            written += count
            number += 1
            k += 1
        if q < misses and scratch.missed[q] == edge:
            q += 1
        k = edge + 1
        ends_segment = piece < state[PIECES] - 1 or state[COMPLETE] == 1
        state[WORD_NUMBER] = 0 if ends_segment else number
    return written


@helper
def write_details(
    merges: Any, chunk: Any, scratch: Any, out: Any, out_end: Any, out_word: Any, out_length: Any, written: int
) -> int:
    """As the fast steps together, without the cache, and with word numbers and lengths; returns the number of ids."""
    state = chunk.state
    k = np.int64(0)
    for piece in range(state[PIECES]):
        last = np.int64(chunk.piece_end_word[piece])
        while k < last:
            count = merge_word(merges, chunk.text, np.int64(chunk.word[k]), np.int64(chunk.word[k + 1]), scratch)
            for i in range(count):
                out[written + i] = scratch.symbols[i]
                if out_word.size > 0:
                    out_word[written + i] = state[WORD_NUMBER]
                if out_length.size > 0:
                    out_length[written + i] = scratch.lengths[i]
            written += count
            state[WORD_NUMBER] += 1
            k += 1
        k = last + 1
        out_end[chunk.piece_segment[piece]] = written
        if piece < state[PIECES] - 1 or state[COMPLETE]:
            state[WORD_NUMBER] = 0
    return written


@inlined
def is_full(cache: Any) -> bool:
    """Whether a whole chunk more might not fit into the cache."""
    counters = cache.counters
    return (
        counters[USED] + CHUNK > cache.slots.size >> 3
        or counters[LONG_USED] + CHUNK // 8 > cache.long_slots.size >> 3
        or counters[ARENA_USED] + CHUNK_BYTES > cache.arena.size
        or counters[KEPT_USED] + CHUNK_BYTES > cache.kept.size
    )


@helper
def empty_cache(cache: Any) -> int:
    """Forget all words."""
    for i in range(cache.slots.size):
        cache.slots[i] = ZERO
    for i in range(cache.long_slots.size):
        cache.long_slots[i] = ZERO
    for i in range(cache.counters.size):
        cache.counters[i] = 0
    return 0


@inlined
def token_key(merges: Any, token: int) -> tuple[np.uint64, np.uint64]:
    """The key of a token as a pre-token; zero for one that is none."""
    first = merges.token_indptr[np.uint64(token)]
    length = np.uint64(merges.token_indptr[np.uint64(token + 1)] - first)
    if merges.reachable[np.uint64(token)] == 0 or length > np.uint64(KEY_BYTES) or length == ZERO:
        return ZERO, ZERO
    # The token bytes go on far enough to be read past a token.
    low = load64(merges.token_bytes, first)
    high = load64(merges.token_bytes, first + 8)
    if length <= np.uint64(8):
        low &= ~ZERO >> (np.uint64(64) - np.uint64(8) * length)
        high = ZERO
    else:
        high &= ~ZERO >> (np.uint64(128) - np.uint64(8) * length)
    return low, high | length << COUNT_SHIFT


@kernel
def fill_cache(merges: Any, old: Any, new: Any) -> int:
    """Put the short words of one cache, and the tokens that merging makes, into a new one that is still empty.

    Parameters
    ----------
    merges : MergeTables
        With ranked tables, a word that is a reachable token is that token; others are not filled in.
    old, new : WordCache
        The new one has room for the words of the old one.

    Returns
    -------
    int
        Number of words in the new cache. Linear in the slots of the old one and the vocabulary.
    """
    slots = new.slots
    counters = new.counters
    mask = np.uint64((slots.size >> 2) - 2)
    for row in range(0, old.slots.size, SLOT_WORDS):
        low = old.slots[row]
        high = old.slots[row + 1]
        if high == 0:
            continue
        at = find_slot(slots, key_slot(low, high, mask), low, high)
        slots[at] = low
        slots[at + 1] = high
        slots[at + 2] = old.slots[row + 2]
        value = old.slots[row + 3]
        if old.slots[row + 2] >> COUNT_SHIFT == IN_ARENA:
            value = put_arena(
                new.arena, counters, old.arena, np.int64(value & ARENA_MASK), np.int64(value >> ARENA_SHIFT)
            )
        slots[at + 3] = value
        counters[USED] += 1
    counters[PRELOADED] = old.counters[PRELOADED]
    if merges.numbers[MERGE_RANKED] == 0 or merges.numbers[MERGE_DIRECT] > 0 or counters[PRELOADED] == 1:
        return counters[USED]
    counters[PRELOADED] = 1
    n_tokens = merges.reachable.size
    for token in range(n_tokens):
        # Room is left for three times as many words: tokens beyond that are found when they come.
        if counters[USED] >= slots.size >> 4:
            break
        if token + AHEAD < n_tokens:
            low, high = token_key(merges, token + AHEAD)
            prefetch(slots, np.int64(key_slot(low, high, mask) << np.uint64(2)))
        low, high = token_key(merges, token)
        if high == 0 or merges.token_bytes[merges.token_indptr[token]] == EDGE_BYTE:
            continue  # the byte of an edge, as a pre-token, is an edge, which has no ids
        at = find_slot(slots, key_slot(low, high, mask), low, high)
        if slots[at + 1] == 0:
            slots[at] = low
            slots[at + 1] = high
            slots[at + 2] = np.uint64(token) | ONE << COUNT_SHIFT
            slots[at + 3] = ZERO
            counters[USED] += 1
    return counters[USED]


@kernel
def encode_segments(
    split: Any,
    merges: Any,
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
    """Token ids of segments up to `last`, from the place that ``chunk.state`` holds.

    Parameters
    ----------
    split, merges
        Tables.
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
        As large as `out`: bytes of text that each id stands for; or empty, where not wanted. General tables
        only: it does without the cache. With ranked tables a token's length is always that of its bytes.

    Returns
    -------
    int
        DONE; or MORE_SCRATCH, with which to call again with scratch for ``state[NEEDED]`` units; or MORE_CACHE, with
        which to call again with a cache that is larger or empty. Nothing is done twice.
    """
    state = chunk.state
    written = state[WRITTEN]
    while state[SEGMENT] < last:
        if is_full(cache):
            state[WRITTEN] = written
            return MORE_CACHE
        first_segment = state[SEGMENT]
        first_position = state[POSITION]
        load_chunk(split, data, starts, ends, last, chunk)
        words = split_chunk(split, chunk)
        if words == 0:
            # One pre-token fills the chunk: find its end, and merge it where it stands.
            end = ends[first_segment]
            stop = pre_token_end(split, data, first_position, end)
            if stop - first_position > scratch.symbols.size:
                state[SEGMENT] = first_segment
                state[POSITION] = first_position
                state[NEEDED] = stop - first_position
                state[WRITTEN] = written
                return MORE_SCRATCH
            count = merge_word(merges, data, first_position, stop, scratch)
            for i in range(count):
                out[written + i] = scratch.symbols[i]
                if out_word.size > 0:
                    out_word[written + i] = state[WORD_NUMBER]
                if out_length.size > 0:
                    out_length[written + i] = scratch.lengths[i]
            written += count
            state[WORD_NUMBER] += 1
            state[SEGMENT] = first_segment
            state[POSITION] = stop
            if stop == end:
                out_end[first_segment] = written
                state[WORD_NUMBER] = 0
                state[SEGMENT] = first_segment + 1
                if first_segment + 1 < last:
                    state[POSITION] = starts[first_segment + 1]
            continue
        if out_length.size > 0:
            written = write_details(merges, chunk, scratch, out, out_end, out_word, out_length, written)
            continue
        if merges.numbers[MERGE_CUT] == 1 and state[ASCII] == 0 and out_word.size == 0:
            words = cut_words(merges, chunk, scratch)
        # Keys are compared one batch after they were made, when their slots have come.
        misses = np.int64(0)
        begin = np.int64(0)
        ready = np.int64(0)
        scratch.id_at[0] = 0
        while ready < words:
            end = min(begin + BATCH, words)
            make_keys(chunk, scratch, cache.slots, begin, end)
            misses = compare_keys(scratch, cache.slots, ready, begin, misses)
            ready = begin
            begin = end
        if misses > 0:
            resolve_misses(merges, misses, chunk, cache, scratch, lanes)
        if out_word.size > 0:
            write_word_numbers(misses, chunk, scratch, out_word, written)
        written = write_ids(misses, chunk, cache, scratch, out, out_end, written)
    state[WRITTEN] = written
    return DONE
