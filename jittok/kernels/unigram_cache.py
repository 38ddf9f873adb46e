"""Unigram models by sentencepiece's rule, with a cache of words: exactly the ids of the pass over the whole text.

Where U+2581 is only ever the first character of a piece, and a piece itself, no piece reaches from one *word* (what begins
with it) into the next. Then the best path of a word depends on the text before it only by the running sum P, through
rounding: P is a float32, and each addition errs by up to half a step at its size. A path whose exact score is better than
that of every other by more than all these errors is chosen whatever P is, as long as sums stay within the size for which
that was found, and below the threshold where they are reset.

So a word is kept with its ids, and with the largest exponent of sums for which they are right. Any other word - a tie or
nearly one, unknown characters, a reset about to come, more than 31 bytes or 7 pieces - is decoded with its true P. That is
the sum of the scores of the pieces written so far, in order, which is added up only when it is needed: a bound on it
serves in between.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import copy_ids, equal_bits, load64, load_float, load_pair, multiply, prefetch, trailing_zeros
from jittok.kernels.split import SEGMENT
from jittok.kernels.unigram import DONE, MORE_SCRATCH, UNKNOWN, bytes_of, segment, walk_trie_32, write_codes, write_path
from jittok.kernels.word_cache import NEEDED, WRITTEN
from jittok.kernels.wordpiece import character
from jittok.memory import zeros
from jittok.tables import (
    CROSSED_FACTOR,
    RULE_SENTENCEPIECE,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_ROOT_BASE,
    UNIGRAM_RULE,
    UNIGRAM_SPACE_FIRST,
    UNIGRAM_UNKNOWN,
    UnigramTables,
    read_only,
)

#: Bytes of text that are looked at together.
BATCH = 1024
LEAST_BITS = (2 * BATCH).bit_length()
#: Longest word that is kept, in bytes, and its most pieces.
WORD_BYTES = 31
#: Longer words are cut where no piece reaches over.
UNCUT_BYTES = 20
WORD_IDS = 7
#: Numbers of a slot, one cache line: eight with the bytes and their number, seven ids, and at META: the first exponent for
#: which they may be wrong, whether there are unknown ones among them, and how many they are.
SLOT = 16
META = 15
SAFE_SHIFT = 8
JOINED = 128
COUNT = 127
#: The largest exponent of sums below the threshold, and what stands for sums that may reach it.
MOST_EXPONENT = 16
BEYOND = 99
_FACTORS = tuple(
    np.uint64(factor)
    for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)
_F0, _F1, _F2, _F3 = _FACTORS
_CROSSED = np.uint64(CROSSED_FACTOR)

#: Positions in ``UnigramCache.counters``.
WORDS = 0  # words kept
SLOW = 1  # words decoded with their true sum, since the cache was made

#: Positions in ``UnigramCache.bounds``.
BOUND_PIECE = 0  # no piece changes a sum by more than this, nor an unknown character
BOUND_WORD = 1  # nor a word that is kept


class UnigramCache(NamedTuple):
    """Words that one worker has seen, their ids, and what is needed to use them."""

    slots: NDArray[np.int32]  # [SLOT * 2**k + SLOT]
    scores: NDArray[np.float32]  # [n_ids] score of each piece
    lengths: NDArray[np.integer[Any]]  # [n_ids] bytes of text of each; [0] until lengths are wanted
    bounds: NDArray[np.float64]  # [2] see BOUND_*
    counters: NDArray[np.int64]  # [2]
    masks: NDArray[np.uint64]  # [32 * 4] by number of bytes: masks of the four words of a key
    starts: NDArray[np.int64]  # [BATCH + 80] scratch: where words begin
    cuts: NDArray[np.int64]  # [BATCH + 80] scratch: the same, long ones cut
    keys: NDArray[np.uint64]  # [4 * (BATCH + 80)] scratch: their bytes
    places: NDArray[np.int64]  # [BATCH + 80] scratch: their slots
    right: NDArray[np.float64]  # [WORD_BYTES + 1] scratch: score of the best path from each place of a word to its end
    gap: NDArray[np.float64]  # [WORD_BYTES + 1] scratch: how much the best of another piece from there is worse


def new_unigram_cache(tables: UnigramTables, slot_bits: int = 16) -> UnigramCache:
    """Allocate an empty cache with ``2**slot_bits`` slots, but no fewer than twice the words of a batch."""
    slot_bits = max(slot_bits, LEAST_BITS)
    units = tables.units.reshape(-1, 4)
    named = units[units[:, 2] >= 0]
    scores = np.zeros(max(1, len(tables.scores)), np.float32)
    scores[named[:, 2]] = np.ascontiguousarray(named[:, 3]).view(np.float32)
    unknown = int(tables.numbers[UNIGRAM_UNKNOWN])
    if 0 <= unknown < len(scores):
        scores[unknown] = tables.unknown_score[0]
    piece = max(float(np.abs(scores).max()), abs(float(tables.unknown_score[0])))
    masks = [[(1 << 8 * min(max(n - first, 0), 8)) - 1 for first in (0, 8, 16, 24)] for n in range(32)]
    return UnigramCache(
        slots=zeros((SLOT << slot_bits) + SLOT, np.int32),
        scores=scores,
        lengths=read_only(np.zeros(0, np.uint16)),
        bounds=np.array([piece * 1.001 + 0.01, (piece + 1) * (WORD_BYTES + 1)]),
        counters=np.zeros(2, np.int64),
        masks=np.array(masks, np.uint64).ravel(),
        starts=np.zeros(BATCH + 80, np.int64),
        cuts=np.zeros(BATCH + 80, np.int64),
        keys=np.zeros(4 * (BATCH + 80), np.uint64),
        places=np.zeros(BATCH + 80, np.int64),
        right=np.zeros(WORD_BYTES + 1, np.float64),
        gap=np.zeros(WORD_BYTES + 1, np.float64),
    )


@helper
def begins_word(tables: Any, data: Any, at: int) -> bool:
    """Whether a blank stands at `at`, from which three bytes may be read if the first is that of U+2581."""
    byte = data[at]
    if byte == 0xE2:
        return data[at + 1] == 0x96 and data[at + 2] == 0x81
    return byte == 0x20 and tables.code_of[0x20] != 0 and spaces_are_blanks(tables)


@inlined
def spaces_are_blanks(tables: Any) -> bool:
    """Whether a space has the code of U+2581."""
    return tables.code_of[0x20] == tables.code_of[np.int64(tables.page_of[0x2581 >> 7]) << 7 | 0x2581 & 127]


@helper
def find_words(tables: Any, data: Any, first: int, end: int, starts: Any) -> int:
    """Write where words begin in ``data[first:end]``, the first of them at `first`; returns their number."""
    with_spaces = spaces_are_blanks(tables)
    starts[0] = first
    n = np.int64(1)
    block = first + 1
    while block < end:
        bits = np.uint64(0)
        if block + 66 <= data.size:
            bits = equal_bits(data, block, 0xE2)
            if bits != np.uint64(0):
                bits = bits & equal_bits(data, block + 1, 0x96) & equal_bits(data, block + 2, 0x81)
            if with_spaces:
                bits = bits | equal_bits(data, block, 0x20)
        else:
            for i in range(min(np.int64(64), end - block)):
                if begins_word(tables, data, block + i):
                    bits = bits | (np.uint64(1) << np.uint64(i))
        if end - block < 64:
            bits = bits & ((np.uint64(1) << np.uint64(end - block)) - np.uint64(1))
        while bits != np.uint64(0):
            starts[np.uint64(n)] = block + trailing_zeros(bits)
            n += 1
            bits = bits & (bits - np.uint64(1))
        block += 64
    return n


@inlined
def is_crossed(tables: Any, first: int, second: int) -> bool:
    """Whether some piece may have the characters of two codes next to each other."""
    if first == 0 or second == 0:
        return False
    value = multiply(np.uint64(first) << np.uint64(32) | np.uint64(second), _CROSSED) >> np.uint64(32)
    value = value & np.uint64(64 * tables.crossed.size - 1)
    return (tables.crossed[value >> np.uint64(6)] >> (value & np.uint64(63))) & np.uint64(1) != np.uint64(0)


@helper
def cut_words(tables: Any, data: Any, words: int, starts: Any, cuts: Any) -> int:
    """Cut long words between characters that are not next to each other in any piece; returns the number of words.

    The words are from ``starts[k]`` to ``starts[k + 1]``, and in `cuts` then.
    """
    n = np.int64(0)
    for k in range(words):
        at = np.int64(starts[np.uint64(k)])
        end = np.int64(starts[np.uint64(k + 1)])
        cuts[np.uint64(n)] = at
        n += 1
        if end - at <= UNCUT_BYTES:
            continue
        before, length = character(tables, data, at)
        at += length
        # As many as there is room for, with one for each word to come.
        while at < end and n < BATCH - words + k:
            code, length = character(tables, data, at)
            if not is_crossed(tables, before, code):
                cuts[np.uint64(n)] = at
                n += 1
            before = code
            at += length
    cuts[np.uint64(n)] = starts[np.uint64(words)]
    return n


@helper
def judge_word(tables: Any, n: int, scratch: Any, cache: Any) -> int:
    """The best path of a word in exact arithmetic, and how safe it is.

    Leaves the path in ``scratch.back`` as a forward pass does, and returns the first exponent for which float32 sums may
    choose another path, 0 for none that they may be trusted for.
    """
    units = tables.units
    codes = scratch.codes
    back = scratch.back
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    right = cache.right
    gap = cache.gap
    right[n] = 0.0
    for z in range(n):
        i = np.int64(n) - 1 - z
        best = -np.inf
        second = -np.inf
        chosen = np.int64(0)
        base = root
        k = i
        unit = base + np.int64(codes[np.uint64(i)])
        single = False
        while np.int64(units[np.uint64(unit)]) == base:
            k += 1
            base = np.int64(units[np.uint64(unit + 1)])
            token = np.int64(units[np.uint64(unit + 2)])
            if token >= 0:
                candidate = np.float64(load_float(units, unit + 3)) + right[np.uint64(k)]
                if candidate > best:
                    second = best
                    best = candidate
                    chosen = token << 32 | k
                elif candidate > second:
                    second = candidate
                if k == i + 1:
                    single = True
            unit = base + np.int64(codes[np.uint64(k)])
        if not single:
            candidate = tables.unknown_score[0] + right[np.uint64(i + 1)]
            if candidate > best:
                second = best
                best = candidate
                chosen = UNKNOWN << 32 | (i + 1)
            elif candidate > second:
                second = candidate
        right[np.uint64(i)] = best
        gap[np.uint64(i)] = best - second
        back[np.uint64(i)] = chosen
    # From here on `back` is by end, as forward passes have it.
    least = np.inf
    can_keep = True
    i = np.int64(0)
    following = back[0]
    while i < n:
        least = min(least, gap[np.uint64(i)])
        token = following >> 32
        if token == UNKNOWN and tables.numbers[UNIGRAM_BYTE_FALLBACK] == 1:
            can_keep = False
        k = following & 0xFFFFFFFF
        following = back[np.uint64(k)]
        back[np.uint64(k)] = token << 32 | i
        i = k
    if not can_keep:
        return 0
    safe = np.int64(MOST_EXPONENT + 1)
    # Twice n additions, each wrong by half a step: 2**(exponent - 24).
    error = 2.01 * n / 256.0
    while safe > 0 and error + 1e-9 >= least:
        safe -= 1
        error *= 0.5
    return safe


@helper
def exponent_of(total: float, cache: Any) -> int:
    """The exponent that sums have at most in a word that comes after `total`; BEYOND if they may be reset."""
    size = abs(total) + cache.bounds[BOUND_WORD]
    if size >= 99999.0:
        return BEYOND
    exponent = np.int64(0)
    power = 2.0
    while size >= power:
        power *= 2.0
        exponent += 1
    return exponent


@helper
def ids_until(total: float, exponent: int, cache: Any) -> int:
    """How many ids can follow before sums may outgrow the exponent."""
    power = 99999.0
    if exponent < MOST_EXPONENT:
        power = 2.0
        for _ in range(exponent):
            power *= 2.0
    return np.int64((power - abs(total) - cache.bounds[BOUND_WORD]) / cache.bounds[BOUND_PIECE]) - WORD_IDS - 1


@inlined
def add_up(total: Any, out: Any, first: int, last: int, cache: Any) -> Any:
    """The running sum after the pieces ``out[first:last]``."""
    for i in range(first, last):
        total = np.float32(total + cache.scores[np.uint64(out[np.uint64(i)])])
    return total


@helper
def empty(cache: Any) -> int:
    """Forget all words."""
    for i in range(cache.slots.size):
        cache.slots[i] = 0
    cache.counters[WORDS] = 0
    return 0


@helper
def keep(tables: Any, data: Any, first: int, end: int, k: int, slot: int, scratch: Any, cache: Any) -> int:
    """Judge a new word, and keep it in an empty slot."""
    slots = cache.slots
    n = write_codes(tables, data, first, end, scratch.codes, scratch.best32)
    safe = np.int64(judge_word(tables, n, scratch, cache))
    count = np.int64(0)
    i = np.int64(n)
    while i > 0:
        count += 1
        i = scratch.back[i] & 0xFFFFFFFF
    if count > WORD_IDS:
        safe = np.int64(0)
    joined = np.int64(0)
    if safe > 0:
        i = np.int64(n)
        at = slot + 8 + count
        while i > 0:
            at -= 1
            token = scratch.back[i] >> 32
            if token == UNKNOWN:
                token = tables.numbers[UNIGRAM_UNKNOWN]
                joined = np.int64(JOINED)
            slots[at] = token
            i = scratch.back[i] & 0xFFFFFFFF
    for j in range(4):
        key = cache.keys[4 * k + j]
        low = np.int64(key & np.uint64(0xFFFFFFFF))
        high = np.int64(key >> np.uint64(32))
        slots[slot + 2 * j] = low - (low >> 31 << 32)
        slots[slot + 2 * j + 1] = high - (high >> 31 << 32)
    slots[slot + META] = safe << SAFE_SHIFT | joined | count
    cache.counters[WORDS] += 1
    return 0


@inlined
def is_key(slots: Any, slot: int, keys: Any, k: int) -> bool:
    """Whether a slot holds word `k`."""
    different = load_pair(slots, slot) ^ keys[np.uint64(4 * k)]
    different = different | (load_pair(slots, slot + 2) ^ keys[np.uint64(4 * k + 1)])
    different = different | (load_pair(slots, slot + 4) ^ keys[np.uint64(4 * k + 2)])
    different = different | (load_pair(slots, slot + 6) ^ keys[np.uint64(4 * k + 3)])
    return different == np.uint64(0)


@helper
def first_piece(scratch: Any, n: int) -> int:
    """The first piece of the best path that a forward pass has left."""
    k = np.int64(n)
    token = np.int64(0)
    while k > 0:
        token = scratch.back[k] >> 32
        k = scratch.back[k] & 0xFFFFFFFF
    return token


@helper
def encode_words(
    tables: Any, data: Any, first: int, end: int, scratch: Any, cache: Any, out: Any, out_length: Any, written: int
) -> int:
    """Write the ids of one segment, and their lengths if wanted, looking up its words; returns where they end."""
    lengths = cache.lengths
    has_lengths = out_length.size > 0
    slots = cache.slots
    found = cache.starts
    starts = cache.cuts
    keys = cache.keys
    places = cache.places
    mask = np.uint64(slots.size // SLOT - 2)
    unknown = np.int64(tables.numbers[UNIGRAM_UNKNOWN])
    fallback = tables.numbers[UNIGRAM_BYTE_FALLBACK] == 1
    before = np.int64(UNKNOWN)  # the piece before, if that is the unknown one
    total = np.float32(0.0)  # the sum after out[:summed]
    summed = written
    exponent = np.int64(exponent_of(0.0, cache))
    most = written + np.int64(ids_until(0.0, exponent, cache))
    at = first
    while at < end:
        stop = min(at + BATCH, end)
        words = np.int64(find_words(tables, data, at, stop, found))
        if stop < end and words == 1:
            # A word longer than a batch.
            while stop < end and not begins_word(tables, data, stop):
                stop += 1
        elif stop < end:
            words -= 1
            stop = found[words]
        found[np.uint64(words)] = stop
        words = np.int64(cut_words(tables, data, words, found, starts))
        if 2 * (cache.counters[WORDS] + words) > np.int64(mask):
            empty(cache)
        for k in range(words):
            word = np.int64(starts[np.uint64(k)])
            n_bytes = np.int64(starts[np.uint64(k + 1)]) - word
            if n_bytes > WORD_BYTES or word + 32 > data.size:
                places[np.uint64(k)] = -1
                continue
            low = load64(data, word) & cache.masks[np.uint64(4 * n_bytes)]
            second = load64(data, word + 8) & cache.masks[np.uint64(4 * n_bytes + 1)]
            third = load64(data, word + 16) & cache.masks[np.uint64(4 * n_bytes + 2)]
            high = load64(data, word + 24) & cache.masks[np.uint64(4 * n_bytes + 3)]
            high = high | (np.uint64(n_bytes) << np.uint64(56))
            keys[np.uint64(4 * k)] = low
            keys[np.uint64(4 * k + 1)] = second
            keys[np.uint64(4 * k + 2)] = third
            keys[np.uint64(4 * k + 3)] = high
            value = multiply(low, _F0) ^ multiply(second ^ high, _F1) ^ multiply(third, _F2)
            value = multiply(value ^ (value >> np.uint64(32)), _F3)
            place = np.int64((value >> np.uint64(32)) & mask) * SLOT
            places[np.uint64(k)] = place
            prefetch(slots, place)
        for k in range(words):
            slot = np.int64(places[np.uint64(k)])
            safe = np.int64(0)
            count = np.int64(0)
            if slot >= 0:
                while not is_key(slots, slot, keys, k):
                    if slots[np.uint64(slot + 7)] == 0:  # the number of bytes: the slot is empty
                        word = np.int64(starts[np.uint64(k)])
                        keep(tables, data, word, np.int64(starts[np.uint64(k + 1)]), k, slot, scratch, cache)
                        break
                    slot = np.int64(((np.uint64(slot) // np.uint64(SLOT)) + np.uint64(1)) & mask) * SLOT
                meta = np.int64(slots[np.uint64(slot + META)])
                safe = meta >> SAFE_SHIFT
                count = meta & (JOINED | COUNT)
            if safe <= exponent or written > most or count > COUNT:
                total = add_up(total, out, summed, written, cache)
                summed = written
                exponent = np.int64(exponent_of(np.float64(total), cache))
                most = written + np.int64(ids_until(np.float64(total), exponent, cache))
                if safe <= exponent:
                    cache.counters[SLOW] += 1
                    word = np.int64(starts[np.uint64(k)])
                    stop_word = np.int64(starts[np.uint64(k + 1)])
                    n = write_codes(tables, data, word, stop_word, scratch.codes, scratch.best32)
                    scratch.best32[0] = total
                    walk_trie_32(tables, n, scratch.codes, scratch.best32, scratch.back)
                    total = scratch.best32[n]
                    joins = before == unknown and first_piece(scratch, n) == UNKNOWN and not fallback
                    ids = written
                    written = np.int64(write_path(tables, data, word, stop_word, n, scratch, out, out_length, written))
                    if joins:
                        written -= 1
                        for i in range(ids, written):
                            out[i] = out[i + 1]
                        if has_lengths:
                            out_length[ids - 1] += out_length[ids]
                            for i in range(ids, written):
                                out_length[i] = out_length[i + 1]
                    before = np.int64(UNKNOWN)
                    if not fallback and scratch.back[n] >> 32 == UNKNOWN:
                        before = unknown
                    summed = written
                    exponent = np.int64(exponent_of(np.float64(total), cache))
                    most = written + np.int64(ids_until(np.float64(total), exponent, cache))
                    continue
                if count > COUNT:
                    # Unknown pieces that follow each other become one id, but all of them count.
                    place = np.int64(starts[np.uint64(k)])
                    for i in range(count & COUNT):
                        token = np.int64(slots[slot + 8 + i])
                        total = np.float32(total + cache.scores[token])
                        is_new = token != unknown or before != unknown
                        if is_new:
                            out[written] = token
                            written += 1
                        if has_lengths:
                            n_bytes = np.int64(lengths[token])
                            if token == unknown:
                                n_bytes = np.int64(bytes_of(data, place, 1))
                            place += n_bytes
                            out_length[written - 1] = n_bytes + (0 if is_new else np.int64(out_length[written - 1]))
                        before = token
                    summed = written
                    continue
            copy_ids(out, written, slots, slot + 8)
            if has_lengths:
                for i in range(count):
                    out_length[np.uint64(written + i)] = lengths[np.uint64(out[np.uint64(written + i)])]
            written += count
            before = np.int64(UNKNOWN)
        at = stop
    return written


@kernel
def encode_unigram_text(
    tables: Any,
    data: Any,
    starts: Any,
    ends: Any,
    last: int,
    state: Any,
    scratch: Any,
    cache: Any,
    out: Any,
    out_end: Any,
    out_length: Any,
) -> int:
    """Ids of segments up to `last` by sentencepiece's rule, from the one on that `state` says, with a cache of words.

    Takes and returns what :func:`jittok.kernels.unigram.encode_unigram_segments` does, which does the work where the model's
    pieces may reach over words; and these besides:

    Parameters
    ----------
    cache : UnigramCache
        Of the same tables. It changes, but no ids depend on what is in it.
    out : int32
        EXTRA_ROOM places more than the segments have bytes.
    """
    written = np.int64(state[WRITTEN])
    i = np.int64(state[SEGMENT])
    numbers = tables.numbers
    has_words = numbers[UNIGRAM_SPACE_FIRST] == 1 and numbers[UNIGRAM_RULE] == RULE_SENTENCEPIECE
    has_words = has_words and (out_length.size == 0 or cache.lengths.size > 0)
    while i < last:
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - first >= scratch.codes.size:
            state[SEGMENT] = i
            state[WRITTEN] = written
            state[NEEDED] = end - first
            return MORE_SCRATCH
        if has_words:
            written = np.int64(encode_words(tables, data, first, end, scratch, cache, out, out_length, written))
        else:
            written = np.int64(segment(tables, data, first, end, scratch, out, out_length, written))
        out_end[i] = written
        i += 1
    state[SEGMENT] = i
    state[WRITTEN] = written
    return DONE
