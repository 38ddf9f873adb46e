"""The pre-tokens of a chunk and their ids, through a bounded cache; any model fills in what it does not know.

Each step is a loop of its own over arrays that stay in the first-level cache: make keys and ask for their cache
lines, compare keys and take the ids, look further for the others, have the model encode new words, put all ids in
order. A pre-token of at most 15 bytes is a key of 16 bytes (its bytes and its length) in an open-addressing table of
32-byte slots; longer ones go to a second table by a 64-bit hash, with their bytes kept to compare. A chunk never
starts with a table that it could fill by more than half, so a probe ends.

New words get their slot at once, and wait until there are enough of them, for a few chunks at most: together they cost
half as much. Until then the ids of these chunks are *held*, with a *gap* for each pre-token that was not found at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import (
    copy_block,
    copy_ids,
    has_wide_vectors,
    load64,
    make_four_keys,
    make_key,
    multiply,
    pack_ids,
    prefetch,
    put_ids,
    store_pair,
    take_ids,
)
from jittok.kernels.split import CHUNK, COMPLETE, PIECES
from jittok.memory import aligned_zeros, zeros
from jittok.tables import EDGE_BYTE, read_only

#: Bytes of a pre-token that fit a key.
KEY_BYTES = 15
#: Pre-tokens whose keys are made at once: their slots, of one cache line each, stay in the first-level cache.
BATCH = 128
#: Places after the ids that may be written over.
EXTRA_ROOM = 16
#: Words for each pre-token in ``WordScratch.keys``.
KEY_WORDS = 4
#: Words of a slot: two for the key, two for ids and their number: the first has three ids, and the number above
#: COUNT_SHIFT; the second has as many as fit. How many bits an id takes, the cache says.
SLOT_WORDS = 4
LOW_IDS = 3
#: Bits of an id: for most vocabularies, of which a slot holds six ids, and for small ones, of which it holds seven.
ID_BITS = 18
FEW_ID_BITS = 16
#: In the number's place: the ids are in the arena, not in the slot.
IN_ARENA = 255
COUNT_SHIFT = np.uint64(56)
ARENA_SHIFT = np.uint64(40)
ARENA_MASK = np.uint64((1 << 40) - 1)
FACTOR_LOW = np.uint64(0x9E3779B97F4A7C15)
FACTOR_HIGH = np.uint64(0xC2B2AE3D27D4EB4F)
KEY_SHIFT = np.uint64(38)
FACTOR_MIX = np.uint64(0xD6E8FEB86659FD93)
ZERO = np.uint64(0)
ONE = np.uint64(1)
#: Most bytes that one chunk can add to the arena, or to the kept bytes of long words.
CHUNK_BYTES = 4 * CHUNK + 256
#: New words, their bytes, ids, gaps and ends of segments that are held before another chunk, at most.
WAITING_WORDS = 96
WAITING_BYTES = 2048
HELD_IDS_BEFORE = 6144
HELD_GAPS_BEFORE = 1024
HELD_ENDS_BEFORE = 256
#: New words at once, at most, and the places that ``merge_ranked`` takes for them.
NEW_WORDS_ROOM = WAITING_WORDS + CHUNK + 80
NEW_BYTES_ROOM = WAITING_BYTES + CHUNK_BYTES
NEW_PLACES = 16 * NEW_WORDS_ROOM + NEW_BYTES_ROOM

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
CARRIED = 11  # bytes of pre-tokens without ids before the next id
HELD_IDS = 12  # ids, gaps and ends of pieces that are held
HELD_GAPS = 13
HELD_ENDS = 14
NEW_WORDS = 15  # words that wait to be encoded, and their bytes
NEW_BYTES = 16


class WordCache(NamedTuple):
    """The pre-tokens that one worker has seen, and their ids."""

    slots: NDArray[np.uint64]  # [SLOT_WORDS * 2**k] key low, key high | length << 56, value, value
    long_slots: NDArray[np.uint64]  # [4 * 2**k] hash | 1, kept offset | length << 40, arena offset | count << 40, 0
    arena: NDArray[np.int32]  # ids of words with more than four
    kept: NDArray[np.uint8]  # bytes of long words, for comparison
    counters: NDArray[np.int64]  # [8]
    id_bits: NDArray[np.int64]  # [1] bits of an id in a slot; words with larger ids have theirs in the arena


class WordScratch(NamedTuple):
    """Scratch arrays for the units of one word, and for the words of a chunk."""

    symbols: NDArray[np.int32]  # [capacity]
    lengths: NDArray[np.int32]  # [capacity] bytes of each symbol
    ranks: NDArray[np.int32]  # [64]
    previous: NDArray[np.int32]  # [capacity]
    following: NDArray[np.int32]  # [capacity]
    pending: NDArray[np.int32]  # [capacity] merge waiting in the heap for each place
    heap: NDArray[np.int64]  # [capacity * 3 / 2 + 16]
    keys: NDArray[np.uint64]  # [(CHUNK + 80) * KEY_WORDS] by pre-token: key low, key high, place in slots; or value, value
    ids: NDArray[np.int32]  # [HELD_IDS_BEFORE + CHUNK_BYTES] the ids held, but for those of missed pre-tokens
    id_at: NDArray[np.int32]  # [CHUNK + 81] by pre-token of the chunk: where its ids begin in `ids`
    missed: NDArray[np.int32]  # [CHUNK + 80] pre-tokens of the chunk that were not found at once
    gap_at: NDArray[np.int32]  # [HELD_GAPS_BEFORE + CHUNK + 80] where in `ids` those of missed pre-tokens belong
    gap_place: NDArray[np.int64]  # as long: where these are, in `slots`; in `long_slots`: -1 minus that
    end_at: NDArray[np.int32]  # [HELD_ENDS_BEFORE + CHUNK] where in `ids` pieces end
    end_gap: NDArray[np.int32]  # as long: gaps before that
    end_segment: NDArray[np.int64]  # as long: segments of these pieces
    new_place: NDArray[np.int64]  # [NEW_WORDS_ROOM] as `gap_place`, of words that must be encoded
    new_first: NDArray[np.int32]  # [NEW_WORDS_ROOM] where each begins in `new_text`
    new_length: NDArray[np.int32]  # [NEW_WORDS_ROOM] its bytes, then its number of ids
    new_text: NDArray[np.uint8]  # [NEW_BYTES_ROOM] their bytes
    new_ids: NDArray[np.int32]  # [NEW_PLACES]
    key_masks: NDArray[np.uint64]  # [16 * KEY_WORDS] by length: masks of key low and high, what they are or-ed with
    codes: NDArray[np.int32]  # [capacity + 1] unigram models only, as the two others; see kernels.unigram
    best: NDArray[np.float64]  # [capacity + 1]
    back: NDArray[np.int64]  # [capacity + 1]
    token_lengths: NDArray[np.integer[Any]]  # [n_ids] bytes of each token, 0 for the unknown one; [0]: not known


def new_word_cache(slot_bits: int, long_bits: int, arena: int, kept: int, id_bits: int = ID_BITS) -> WordCache:
    """Allocate an empty cache with ``2**slot_bits`` slots for short and ``2**long_bits`` for long pre-tokens.

    An `id_bits` of FEW_ID_BITS suits vocabularies of 2**16 ids.
    """
    return WordCache(
        slots=zeros(SLOT_WORDS << slot_bits, np.uint64),
        long_slots=zeros(4 << long_bits, np.uint64),
        arena=zeros(arena + CHUNK_BYTES, np.int32),
        kept=zeros(kept + CHUNK_BYTES, np.uint8),
        counters=np.zeros(8, np.int64),
        id_bits=read_only(np.array([id_bits], np.int64)),
    )


def new_key_masks() -> NDArray[np.uint64]:
    """By length of a pre-token: masks of key low and key high, and what these are or-ed with; see ``make_keys``."""
    rows = [[(1 << 8 * min(n, 8)) - 1, (1 << 8 * max(n - 8, 0)) - 1, 0 if n else 1, n << 56] for n in range(16)]
    return np.array(rows, np.uint64).ravel()


def new_word_scratch(capacity: int = CHUNK_BYTES, unigram: bool = False) -> WordScratch:
    """Allocate scratch for words of up to `capacity` units, with what only unigram models need or without."""
    places = capacity + 1 if unigram else 1
    return WordScratch(
        symbols=np.zeros(capacity, np.int32),
        lengths=np.zeros(capacity, np.int32),
        ranks=np.zeros(64, np.int32),
        previous=np.zeros(capacity, np.int32),
        following=np.zeros(capacity, np.int32),
        pending=np.zeros(capacity, np.int32),
        heap=np.zeros(capacity + capacity // 2 + 16, np.int64),
        keys=aligned_zeros((CHUNK + 80) * KEY_WORDS, np.uint64),
        ids=np.zeros(HELD_IDS_BEFORE + CHUNK_BYTES, np.int32),
        id_at=np.zeros(CHUNK + 81, np.int32),
        missed=np.zeros(CHUNK + 80, np.int32),
        gap_at=np.zeros(HELD_GAPS_BEFORE + CHUNK + 80, np.int32),
        gap_place=np.zeros(HELD_GAPS_BEFORE + CHUNK + 80, np.int64),
        end_at=np.zeros(HELD_ENDS_BEFORE + CHUNK, np.int32),
        end_gap=np.zeros(HELD_ENDS_BEFORE + CHUNK, np.int32),
        end_segment=np.zeros(HELD_ENDS_BEFORE + CHUNK, np.int64),
        new_place=np.zeros(NEW_WORDS_ROOM, np.int64),
        new_first=np.zeros(NEW_WORDS_ROOM, np.int32),
        new_length=np.zeros(NEW_WORDS_ROOM, np.int32),
        new_text=np.zeros(NEW_BYTES_ROOM, np.uint8),
        new_ids=np.zeros(NEW_PLACES, np.int32),
        key_masks=new_key_masks(),
        codes=np.zeros(places, np.int32),
        best=np.zeros(places, np.float64),
        back=np.zeros(places, np.int64),
        token_lengths=read_only(np.zeros(0, np.uint16)),
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


@inlined
def key_slot(low: np.uint64, high: np.uint64, mask: np.uint64) -> np.uint64:
    """Where in `slots` the search for a key begins, at the first of two slots; `mask` is that of ``key_mask``."""
    return (multiply(low ^ multiply(high, FACTOR_HIGH), FACTOR_LOW) >> KEY_SHIFT) & mask


@inlined
def key_mask(slots: Any) -> np.uint64:
    """What ``key_slot`` needs of a table."""
    return np.uint64(slots.size - 2 * SLOT_WORDS)


@inlined
def make_keys(chunk: Any, scratch: Any, slots: Any, begin: int, end: int) -> int:
    """Key and place in `slots` of pre-tokens [begin, end) of the chunk; the key of one too long is 1, which no slot has."""
    text = chunk.text
    word = chunk.word
    mask = key_mask(slots)
    keys = scratch.keys
    key_masks = scratch.key_masks
    fours = begin
    if has_wide_vectors():
        fours = end - (end - begin) % 4
        for k in range(begin, fours, 4):
            make_four_keys(keys, np.int64(k) << 2, text, word, k, np.int64(mask))
        for k in range(begin, fours):
            prefetch(slots, np.int64(keys[np.uint64(k) << np.uint64(2) | np.uint64(2)]))
    first = np.int64(word[np.uint64(fours)])
    for k in range(fours, end):
        following = np.int64(word[np.uint64(k + 1)])
        length = np.uint64(following - first)
        if length > np.uint64(KEY_BYTES):
            length = ZERO
        row = length << np.uint64(2)
        key = np.uint64(k) << np.uint64(2)
        make_key(keys, np.int64(key), text, first, key_masks, np.int64(row))
        slot = key_slot(keys[key], keys[key + ONE], mask)
        keys[key + np.uint64(2)] = slot
        prefetch(slots, np.int64(slot))
        first = following
    return 0


@inlined
def compare_keys(scratch: Any, cache: Any, begin: int, end: int, misses: int) -> int:
    """Take the ids of pre-tokens found in either of two slots; list the others; returns their number so far.

    Others are those further on in the table or not in it, too long for a key, or with more ids than a slot holds.
    ``id_at[begin]`` says where the ids go. No branch depends on what is found.
    """
    slots = cache.slots
    id_bits = np.int64(cache.id_bits[0])
    keys = scratch.keys
    ids = scratch.ids
    id_at = scratch.id_at
    missed = scratch.missed
    written = np.int64(id_at[begin])
    for k in range(begin, end):
        key = np.uint64(k) << np.uint64(2)
        at = keys[key + np.uint64(2)]
        count = np.int64(take_ids(keys, np.int64(key), slots, np.int64(at), ids, written, id_bits))
        missed[np.uint64(misses)] = k
        missing = count >> 63
        misses -= missing
        written += count & ~missing
        id_at[np.uint64(k + 1)] = written
    return misses


@inlined
def find_slot(slots: Any, at: np.uint64, low: np.uint64, high: np.uint64) -> int:
    """Position in `slots`, from `at` on, of a key or of the free slot where it belongs (whose second word is 0)."""
    mask = np.uint64(slots.size - 1)
    while True:
        if (slots[at] == low and slots[at + ONE] == high) or slots[at + ONE] == 0:
            return np.int64(at)
        at = (at + np.uint64(4)) & mask


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
def put_long(long_slots: Any, kept: Any, counters: Any, at: int, tag: np.uint64, text: Any, first: int, n: int) -> int:
    """Put a word that does not fit a key at a free place of `long_slots`, as yet without ids."""
    offset = counters[KEPT_USED]
    for i in range(n):
        kept[np.uint64(offset + i)] = text[np.uint64(first + i)]
    counters[KEPT_USED] = offset + n
    long_slots[at] = tag
    long_slots[at + 1] = np.uint64(offset) | np.uint64(n) << ARENA_SHIFT
    long_slots[at + 2] = ZERO
    counters[LONG_USED] += 1
    return 0


@inlined
def hold_ends(misses: int, chunk: Any, scratch: Any) -> int:
    """Hold where the chunk's pieces end, after ``compare_keys`` and before ``list_new_words``."""
    state = chunk.state
    gaps = np.int64(state[HELD_GAPS])
    held = np.int64(state[HELD_ENDS])
    q = np.int64(0)
    last = np.int64(scratch.missed[np.uint64(max(misses - 1, 0))])
    for piece in range(state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        if last < edge:
            q = misses
        while q < misses and scratch.missed[np.uint64(q)] < edge:
            q += 1
        scratch.end_at[np.uint64(held)] = scratch.id_at[np.uint64(edge)]
        scratch.end_gap[np.uint64(held)] = gaps + q
        scratch.end_segment[np.uint64(held)] = chunk.piece_segment[piece]
        held += 1
    state[HELD_ENDS] = held
    return 0


@inlined
def list_new_words(misses: int, chunk: Any, cache: Any, scratch: Any) -> int:
    """Look further for the pre-tokens that ``compare_keys`` listed: each is a gap. List those that are new.

    A new word is put where it belongs, as yet without ids, so that it is found from then on. What the cache may need
    for its ids is counted as NEW_BYTES.
    """
    state = chunk.state
    text = chunk.text
    word = chunk.word
    slots = cache.slots
    long_slots = cache.long_slots
    keys = scratch.keys
    long_mask = np.uint64(long_slots.size - 1)
    gap = np.int64(state[HELD_GAPS])
    n_new = np.int64(state[NEW_WORDS])
    size = np.int64(state[NEW_BYTES])
    # Hashes of those too long for a key, listed for now where new words will be.
    long_words = scratch.new_length
    n_long = np.int64(n_new)
    for q in range(misses):
        k = np.int64(scratch.missed[np.uint64(q)])
        long_words[np.uint64(n_long)] = k
        n_long += keys[np.uint64(k) << np.uint64(2) | ONE] == 0
    for q in range(n_new, n_long):
        k = np.uint64(long_words[np.uint64(q)])
        first = np.int64(word[k])
        tag = hash_word(text, first, np.int64(word[k + ONE]) - first) | ONE
        keys[k << np.uint64(2)] = tag
        prefetch(long_slots, np.int64(((tag >> np.uint64(32)) << np.uint64(2)) & long_mask))
    for q in range(misses):
        k = np.uint64(scratch.missed[np.uint64(q)])
        key = k << np.uint64(2)
        low = keys[key]
        high = keys[key + ONE]
        first = np.int64(word[k])
        length = np.int64(word[k + ONE]) - first
        is_new = 0
        if high != 0:
            at = np.int64(find_slot(slots, keys[key + np.uint64(2)], low, high))
            place = at
            if slots[at + 1] == 0:
                slots[at] = low
                slots[at + 1] = high
                slots[at + 2] = np.uint64(IN_ARENA) << COUNT_SHIFT
                slots[at + 3] = ZERO
                cache.counters[USED] += 1
                is_new = 1
                if text[np.uint64(first)] == EDGE_BYTE:
                    slots[at + 2] = ZERO
                    is_new = 0
        else:
            at = np.int64(find_long(text, first, length, low, long_slots, cache.kept))
            place = -1 - at
            if long_slots[at] == 0:
                put_long(long_slots, cache.kept, cache.counters, at, low, text, first, length)
                is_new = 1
        scratch.gap_at[np.uint64(gap)] = scratch.id_at[k]
        scratch.gap_place[np.uint64(gap)] = place
        gap += 1
        if is_new == 1:
            scratch.new_place[np.uint64(n_new)] = place
            scratch.new_first[np.uint64(n_new)] = size
            scratch.new_length[np.uint64(n_new)] = length
            for i in range(0, length, 64):
                copy_block(scratch.new_text, size + i, text, first + i)
            n_new += 1
            size += length
    state[HELD_GAPS] = gap
    state[NEW_WORDS] = n_new
    state[NEW_BYTES] = size
    return 0


@inlined
def word_length(place: int, cache: Any) -> int:
    """Bytes of a word in the cache. `place` is that of ``list_new_words``."""
    if place >= 0:
        return np.int64(cache.slots[np.uint64(place + 1)] >> COUNT_SHIFT)
    return np.int64(cache.long_slots[np.uint64(-place)] >> ARENA_SHIFT)


@inlined
def keep_ids(place: int, cache: Any, ids: Any, first: int, n: int) -> int:
    """Give a new word its `n` ids, from `first` on. `place` is that of ``list_new_words``.

    The arena has room (checked when a chunk begins). Eight ids are read.
    """
    if place >= 0:
        id_bits = np.int64(cache.id_bits[0])
        fits = n <= LOW_IDS + 64 // id_bits and pack_ids(cache.slots, place + 2, ids, first, n, id_bits) != 0
        if not fits:
            value = put_arena(cache.arena, cache.counters, ids, first, n)
            cache.slots[np.uint64(place + 2)] = np.uint64(IN_ARENA) << COUNT_SHIFT
            cache.slots[np.uint64(place + 3)] = value
    else:
        cache.long_slots[1 - place] = put_arena(cache.arena, cache.counters, ids, first, n)
    return 0


@inlined
def write_ids(chunk: Any, cache: Any, scratch: Any, out: Any, out_end: Any, written: int) -> int:
    """Write the ids held, in order, and where pieces end; returns the new number of ids. Nothing is held afterwards.

    Sixteen at a time are copied, so that EXTRA_ROOM places past the last may be touched.
    """
    state = chunk.state
    ids = scratch.ids
    slots = cache.slots
    arena = cache.arena
    id_bits = np.int64(cache.id_bits[0])
    taken = np.int64(0)
    gap = np.int64(0)
    for end in range(state[HELD_ENDS]):
        last_gap = np.int64(scratch.end_gap[np.uint64(end)])
        while True:
            until = np.int64(scratch.end_at[np.uint64(end)])
            if gap < last_gap:
                until = np.int64(scratch.gap_at[np.uint64(gap)])
            for i in range(0, until - taken, 16):
                copy_ids(out, written + i, ids, taken + i)
            written += until - taken
            taken = until
            if gap >= last_gap:
                break
            place = np.int64(scratch.gap_place[np.uint64(gap)])
            gap += 1
            if place >= 0:
                value_low = slots[np.uint64(place + 2)]
                value_high = slots[np.uint64(place + 3)]
                count = np.int64(value_low >> COUNT_SHIFT)
                if count != IN_ARENA:
                    put_ids(out, written, value_low, value_high, id_bits)
                    written += count
                    continue
            else:
                value_high = cache.long_slots[np.uint64(1 - place)]
            offset = np.int64(value_high & ARENA_MASK)
            count = np.int64(value_high >> ARENA_SHIFT)
            for i in range(0, count, 16):
                copy_ids(out, written + i, arena, offset + i)
            written += count
        out_end[scratch.end_segment[np.uint64(end)]] = written
    state[HELD_IDS] = 0
    state[HELD_GAPS] = 0
    state[HELD_ENDS] = 0
    return written


@inlined
def take_values(misses: int, cache: Any, scratch: Any) -> int:
    """Replace the keys of the chunk's missed pre-tokens, which alone are held and known by now, by their values."""
    keys = scratch.keys
    for q in range(misses):
        key = np.uint64(scratch.missed[np.uint64(q)]) << np.uint64(2)
        place = np.int64(scratch.gap_place[np.uint64(q)])
        if place >= 0:
            keys[key] = cache.slots[np.uint64(place + 2)]
            keys[key + ONE] = cache.slots[np.uint64(place + 3)]
        else:
            keys[key] = np.uint64(IN_ARENA) << COUNT_SHIFT
            keys[key + ONE] = cache.long_slots[np.uint64(1 - place)]
    return 0


@inlined
def missed_count(k: int, scratch: Any) -> int:
    """Number of ids of a pre-token that ``compare_keys`` listed, after ``take_values``."""
    key = np.uint64(k) << np.uint64(2)
    count = np.int64(scratch.keys[key] >> COUNT_SHIFT)
    if count == IN_ARENA:
        count = np.int64(scratch.keys[key | ONE] >> ARENA_SHIFT)
    return count


@inlined
def is_worth_waiting(state: Any) -> bool:
    """Whether what is held leaves room for another chunk, and few words wait."""
    return (
        state[NEW_WORDS] < WAITING_WORDS
        and state[NEW_BYTES] < WAITING_BYTES
        and state[HELD_IDS] < HELD_IDS_BEFORE
        and state[HELD_GAPS] < HELD_GAPS_BEFORE
        and state[HELD_ENDS] < HELD_ENDS_BEFORE
    )


@inlined
def write_word_numbers(
    misses: int, chunk: Any, scratch: Any, out_word: Any, written: int, counts_empty: int
) -> int:
    """Write the number of its pre-token for every id, as ``write_ids`` writes these from `written` on.

    With `counts_empty` 0, pre-tokens without ids have no number.
    Four at a time, and most pre-tokens have no more: EXTRA_ROOM places past the last may be touched.
    """
    state = chunk.state
    id_at = scratch.id_at
    missed = scratch.missed
    q = np.int64(0)
    k = np.int64(0)
    for piece in range(state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        number = state[WORD_NUMBER]
        while k < edge:
            count = np.int64(id_at[np.uint64(k + 1)]) - np.int64(id_at[np.uint64(k)])
            if q < misses and missed[np.uint64(q)] == k:
                q += 1
                count = missed_count(k, scratch)
            pair = np.uint64(number) << np.uint64(32) | np.uint64(number)
            store_pair(out_word, written, pair)
            store_pair(out_word, written + 2, pair)
            for i in range(4, count):
                out_word[np.uint64(written + i)] = number
            written += count
            number += 1 if count > 0 else counts_empty
            k += 1
        if q < misses and missed[np.uint64(q)] == edge:
            q += 1
        k = edge + 1
        ends_segment = piece < state[PIECES] - 1 or state[COMPLETE] == 1
        state[WORD_NUMBER] = 0 if ends_segment else number
    return written


@inlined
def is_full(cache: Any, waiting: int) -> bool:
    """Whether a whole chunk more might not fit into the cache, when new words of `waiting` bytes have their ids."""
    counters = cache.counters
    return (
        counters[USED] + CHUNK > cache.slots.size >> 3
        or counters[LONG_USED] + CHUNK // 8 > cache.long_slots.size >> 3
        or counters[ARENA_USED] + waiting + CHUNK_BYTES > cache.arena.size
        or counters[KEPT_USED] + CHUNK_BYTES > cache.kept.size
    )


@kernel
def refill_cache(old: Any, new: Any) -> int:
    """Put the short words of one cache into a new one that is still empty, and has room for them.

    Parameters
    ----------
    old, new : WordCache

    Returns
    -------
    int
        Number of words. Linear in the slots of the old one.
    """
    slots = new.slots
    counters = new.counters
    mask = key_mask(slots)
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
    return counters[USED]


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
