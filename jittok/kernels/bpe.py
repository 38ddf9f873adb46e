"""Byte-pair encoding of words: what the batch encoder (:mod:`jittok.kernels.segments`) asks of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import has_wide_vectors, load64, multiply, prefetch, trailing_zeros
from jittok.kernels.merge import (
    LANE_BYTES,
    MOST_BYTES,
    SHORT_WORD,
    load_symbols,
    merge_long,
    merge_ranked,
    merge_short,
    merge_windows,
)
from jittok.kernels.merge_lanes import merge_in_lanes
from jittok.kernels.split import PIECES, WORDS, decode_codepoint
from jittok.kernels.word_cache import (
    COUNT_SHIFT,
    FACTOR_LOW,
    KEY_BYTES,
    ONE,
    PRELOADED,
    USED,
    ZERO,
    find_slot,
    hash_bytes,
    keep_ids,
    key_mask,
    key_slot,
)
from jittok.tables import EDGE_BYTE, MERGE_CUT, MERGE_DIRECT, MERGE_RANKED

#: Marks the first or last byte of a codepoint that a token holds a part of, where a codepoint could stand.
PARTIAL = 1 << 21
#: Tokens ahead of the one that is put into a cache, whose slots are asked for.
AHEAD = 12


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
    if merges.numbers[MERGE_RANKED] == 1 and end - first > SHORT_WORD:
        n = merge_windows(merges, data, first, end, scratch)
    else:
        n = load_symbols(merges, data, first, end, symbols, lengths)
        if n <= SHORT_WORD:
            n = merge_short(merges, n, symbols, lengths, scratch.ranks)
        else:
            n = merge_long(merges, n, scratch)
    for i in range(n):
        symbols[i] = merges.symbol_token[symbols[i]]
    return n


@kernel
def merge_bytes(merges: Any, data: Any, scratch: Any, out: Any) -> int:
    """Token ids of bytes that are merged as one word, by a model of byte ranks; returns their number.

    Parameters
    ----------
    merges : MergeTables
        With ``numbers[MERGE_RANKED]`` 1.
    data : uint8[m]
        Any bytes.
    scratch : WordScratch
        For words of m units.
    out : int32[m]
        Ids.
    """
    n = np.int64(merge_word(merges, data, 0, data.size, scratch))
    for i in range(n):
        out[i] = scratch.symbols[i]
    return n


@inlined
def junction_bit(crossed: Any, left: int, right: int) -> np.uint64:
    """1 if some token may span the junction of two codepoints, else 0; see ``build.junctions``."""
    shift = np.uint64(58) - np.uint64(trailing_zeros(np.uint64(crossed.size)))
    value = multiply(np.uint64(left) << np.uint64(22) | np.uint64(right), FACTOR_LOW) >> shift
    return (crossed[value >> np.uint64(6)] >> (value & np.uint64(63))) & ONE


@inlined
def is_crossed(crossed: Any, left: int, right: int) -> bool:
    """Whether some token may span the junction of two codepoints."""
    return junction_bit(crossed, left, right) != 0


@inlined
def find_long_words(chunk: Any, long: Any) -> int:
    """Write the numbers of pre-tokens that do not fit a key to `long`; returns how many there are."""
    word = chunk.word
    n = np.int64(0)
    for k in range(chunk.state[WORDS]):
        long[np.uint64(n)] = k
        n += np.int64(np.int64(word[np.uint64(k + 1)]) - np.int64(word[np.uint64(k)]) > KEY_BYTES)
    return n


@inlined
def put_cuts(chunk: Any, cut: Any, n_cut: int, parted: Any, n_parted: int) -> int:
    """Let words begin at the rising text offsets `cut` too, all inside the words `parted`; returns the number of words.

    Linear in the words behind the first cut; nothing if there is none.
    """
    state = chunk.state
    word = chunk.word
    words = np.int64(state[WORDS])
    if n_cut == 0:
        return words
    before = np.int64(0)
    for piece in range(state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        while before < n_cut and cut[np.uint64(before)] < word[np.uint64(edge)]:
            before += 1
        chunk.piece_end_word[piece] = edge + before
    # From the last word on, so that nothing is overwritten that is not moved yet.
    left = np.int64(n_cut)
    last = words
    for q in range(n_parted):
        k = np.int64(parted[np.uint64(n_parted - 1 - q)])
        while last > k:
            word[np.uint64(last + left)] = word[np.uint64(last)]
            last -= 1
        while left > 0 and cut[np.uint64(left - 1)] > word[np.uint64(k)]:
            word[np.uint64(k + left)] = cut[np.uint64(left - 1)]
            left -= 1
    state[WORDS] = words + n_cut
    return words + n_cut


@inlined
def cut_words(merges: Any, chunk: Any, scratch: Any) -> int:
    """Cut pre-tokens that do not fit a key between codepoints that no token spans; returns the number of words.

    Merges only ever make tokens, so none can reach across such a junction, and the parts can be merged one by one:
    in scripts without blanks, whole sentences become short words that the cache soon knows. Linear in the bytes cut.
    """
    words = np.int64(chunk.state[WORDS])
    if merges.numbers[MERGE_CUT] == 0:
        return words
    word = chunk.word
    text = chunk.text
    crossed = merges.crossed
    long = scratch.missed
    cut = scratch.id_at
    n_long = np.int64(find_long_words(chunk, long))
    n_cut = np.int64(0)
    room = word.size - 80 - words
    n_parted = np.int64(0)
    for q in range(n_long):
        k = np.int64(long[np.uint64(q)])
        before = n_cut
        at = np.int64(word[np.uint64(k)])
        end = np.int64(word[np.uint64(k + 1)])
        coded = decode_codepoint(text, at)
        left = coded >> 3
        at += coded & 7
        while at < end and n_cut < room:
            coded = decode_codepoint(text, at)
            right = coded >> 3
            left_end = left if left < 0x80 else PARTIAL | np.int64(text[np.uint64(at - 1)])
            right_begin = right if right < 0x80 else PARTIAL | np.int64(text[np.uint64(at)])
            # Without branches: about every other junction is one.
            cut[np.uint64(n_cut)] = at
            n_cut += 1 - np.int64(
                junction_bit(crossed, left, right)
                | junction_bit(crossed, left_end, right)
                | junction_bit(crossed, left, right_begin)
                | junction_bit(crossed, left_end, right_begin)
            )
            left = right
            at += coded & 7
        long[np.uint64(n_parted)] = k
        n_parted += np.int64(n_cut > before)
    return np.int64(put_cuts(chunk, cut, n_cut, long, n_parted))


@inlined
def knows_lengths(merges: Any, scratch: Any) -> bool:
    """Whether the bytes of a word's ids follow from the ids: not so for unknown and byte-fallback tokens."""
    return False


@inlined
def write_lengths(
    merges: Any, misses: int, chunk: Any, scratch: Any, out: Any, out_length: Any, written: int, end: int
) -> int:
    """Nothing; see ``knows_lengths``."""
    return written


@inlined
def short_words_first(n_new: int, scratch: Any) -> int:
    """Have new words of at most LANE_BYTES bytes stand before others; returns their number."""
    new_place = scratch.new_place
    new_first = scratch.new_first
    new_length = scratch.new_length
    q = np.int64(0)
    end = np.int64(n_new)
    while q < end:
        length = np.int64(new_length[np.uint64(q)])
        if length <= LANE_BYTES:
            q += 1
            continue
        end -= 1
        place = np.int64(new_place[np.uint64(q)])
        first = np.int64(new_first[np.uint64(q)])
        new_place[np.uint64(q)] = new_place[np.uint64(end)]
        new_first[np.uint64(q)] = new_first[np.uint64(end)]
        new_length[np.uint64(q)] = new_length[np.uint64(end)]
        new_place[np.uint64(end)] = place
        new_first[np.uint64(end)] = first
        new_length[np.uint64(end)] = length
    return q


@inlined
def merge_new_words(merges: Any, n_new: int, cache: Any, scratch: Any, lanes: Any) -> int:
    """Merge the new words of a few chunks, and keep them. With ranked tables most of them merge in step."""
    text = scratch.new_text
    symbols = scratch.symbols
    new_place = scratch.new_place
    new_first = scratch.new_first
    new_length = scratch.new_length
    ranked = merges.numbers[MERGE_RANKED] == 1
    n_direct = merges.numbers[MERGE_DIRECT]
    in_lanes = np.int64(0)
    if has_wide_vectors() and ranked and n_direct == 0:
        in_lanes = np.int64(short_words_first(n_new, scratch))
        merge_in_lanes(
            text,
            new_first,
            new_length,
            in_lanes,
            merges.byte_pair,
            merges.pair_slots,
            merges.symbol_token,
            lanes,
            scratch.new_ids,
        )
        for q in range(in_lanes):
            place = np.int64(new_place[np.uint64(q)])
            keep_ids(place, cache, scratch.new_ids, 16 * q, np.int64(new_length[np.uint64(q)]))
    in_step = in_lanes
    for q in range(in_lanes, n_new):
        place = np.int64(new_place[np.uint64(q)])
        first = np.int64(new_first[np.uint64(q)])
        length = np.int64(new_length[np.uint64(q)])
        token = np.int64(-1)
        if ranked and n_direct > 0:
            token = np.int64(find_direct(merges, text, first, first + length))
        if ranked and token < 0 and length <= MOST_BYTES:
            new_place[np.uint64(in_step)] = place
            new_first[np.uint64(in_step)] = first
            new_length[np.uint64(in_step)] = length
            in_step += 1
            continue
        count = np.int64(1)
        if token >= 0:
            symbols[0] = token
        else:
            count = np.int64(merge_word(merges, text, first, first + length, scratch))
        keep_ids(place, cache, symbols, 0, count)
    if in_step == in_lanes:
        return 0
    merge_ranked(
        text,
        new_first,
        new_length,
        in_lanes,
        in_step,
        merges.byte_pair,
        merges.pair_slots,
        merges.symbol_token,
        lanes,
        scratch.new_ids,
    )
    for q in range(in_lanes, in_step):
        base = np.int64(lanes.base[np.uint64(q)])
        keep_ids(
            np.int64(new_place[np.uint64(q)]), cache, scratch.new_ids, base, np.int64(new_length[np.uint64(q)])
        )
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
def preload_tokens(merges: Any, cache: Any, most: int) -> int:
    """Put the tokens that merging makes into a cache, as far as there is room for three times as many words.

    Parameters
    ----------
    merges : MergeTables
        With ranked tables, a word that is a reachable token is that token; others are not filled in.
    cache : WordCache
        Changed.
    most : int
        Tokens from this one on are left out: they are found when they come.

    Returns
    -------
    int
        Number of words in the cache. Linear in the vocabulary.
    """
    slots = cache.slots
    counters = cache.counters
    mask = key_mask(slots)
    if merges.numbers[MERGE_RANKED] == 0 or merges.numbers[MERGE_DIRECT] > 0 or counters[PRELOADED] == 1:
        return counters[USED]
    counters[PRELOADED] = 1
    n_tokens = min(merges.reachable.size, most)
    for token in range(n_tokens):
        # Room is left for three times as many words: tokens beyond that are found when they come.
        if counters[USED] >= slots.size >> 4:
            break
        if token + AHEAD < n_tokens:
            low, high = token_key(merges, token + AHEAD)
            prefetch(slots, np.int64(key_slot(low, high, mask)))
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
