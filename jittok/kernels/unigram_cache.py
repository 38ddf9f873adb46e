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
from jittok.kernels.machine import (
    choose,
    equal_bits,
    high_float,
    load64,
    load_float,
    load_pair,
    multiply,
    prefetch,
    store_pair,
    trailing_zeros,
)
from jittok.kernels.split import SEGMENT
from jittok.kernels.unigram import DONE, MORE_SCRATCH, RESET, UNKNOWN, bytes_of, write_codes
from jittok.kernels.word_cache import NEEDED, WRITTEN
from jittok.kernels.wordpiece import character
from jittok.memory import zeros
from jittok.tables import (
    CROSSED_FACTOR,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_LONGEST,
    UNIGRAM_ROOT_BASE,
    UNIGRAM_SPACE_FIRST,
    UNIGRAM_UNKNOWN,
    UnigramTables,
    read_only,
)

#: Bytes of text that are looked at together.
BATCH = 1024
#: The same of a word that is running text, of which nothing is kept.
LONG_BATCH = 4 * BATCH
LEAST_BITS = (2 * BATCH).bit_length()
#: Longest word that is kept, in bytes. Longer ones are cut where no piece reaches over.
WORD_BYTES = 31
#: Pieces of a word that fit into its slot.
WORD_IDS = 7
#: Numbers of a slot, one cache line: eight with the bytes and their number, seven ids, and at META: the first exponent for
#: which they may be wrong, whether there are unknown ones among them, and how many they are. Where they are more than
#: seven, the first is their place among ``UnigramCache.more``.
SLOT = 16
IDS = 8
META = 15
SAFE_SHIFT = 8
JOINED = 128
COUNT = 127
#: Room for ids of words with more than WORD_IDS, for each slot.
MORE_IDS = 4
#: Characters of new words that are judged together, and the pieces that may begin at one.
NEW_CHARACTERS = 128
DEPTHS = 32
#: The largest exponent of sums below the threshold, and what stands for sums that may reach it.
MOST_EXPONENT = 16
BEYOND = 99
_FACTORS = tuple(
    np.uint64(factor) for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)
_F0, _F1, _F2, _F3 = _FACTORS
_CROSSED = np.uint64(CROSSED_FACTOR)
_ONE = np.uint64(1)
_UNKNOWN = np.uint64(0xFFFFFFFF00000000)  # UNKNOWN << 32

#: Positions in ``UnigramCache.counters``.
WORDS = 0  # words kept
SLOW = 1  # words decoded with their true sum, since the cache was made
MORE_USED = 2  # ids in ``more``
MOST_WORDS = 3  # more words than this, and a larger cache is asked for

#: Positions in ``UnigramCache.bounds``.
BOUND_PIECE = 0  # no piece changes a sum by more than this, nor an unknown character
BOUND_WORD = 1  # nor a word that is kept

#: What ``encode_unigram_text`` returns besides DONE and MORE_SCRATCH.
MORE_CACHE = 2


class UnigramCache(NamedTuple):
    """Words that one worker has seen, their ids, and what is needed to use them."""

    slots: NDArray[np.int32]  # [SLOT * 2**k + SLOT]
    more: NDArray[np.int32]  # [MORE_IDS * 2**k] ids of words that have more than fit into a slot
    scores: NDArray[np.float32]  # [n_ids] score of each piece
    lengths: NDArray[np.integer[Any]]  # [n_ids] bytes of text of each; [0] until lengths are wanted
    roots: NDArray[np.int32]  # [4 * codes] for each character as the first of pieces: see ``root_units``
    bounds: NDArray[np.float64]  # [2] see BOUND_*
    counters: NDArray[np.int64]  # [4] see WORDS and so on
    masks: NDArray[np.uint64]  # [32 * 4] by number of bytes: masks of the four words of a key
    starts: NDArray[np.int64]  # [BATCH + 80] scratch: where words begin
    cuts: NDArray[np.int64]  # [BATCH + 80] scratch: the same, long ones cut
    keys: NDArray[np.uint64]  # [4 * (BATCH + 80)] scratch: their bytes
    places: NDArray[np.int64]  # [BATCH + 80] scratch: their slots
    new: NDArray[np.int64]  # [BATCH + 80] scratch: words that were not kept yet
    first: NDArray[np.int64]  # [BATCH + 80] scratch: of new words that are judged together, the first character of each
    codes: NDArray[np.int32]  # [NEW_CHARACTERS + 80] scratch: their characters, 0 after each word
    walking: NDArray[np.int64]  # [NEW_CHARACTERS + 80] scratch: base << 32 | first character of walks down the trie
    ends: NDArray[np.uint64]  # [NEW_CHARACTERS + 80] scratch: at which depths a piece ends, by its first character
    found: NDArray[np.uint64]  # [DEPTHS * (NEW_CHARACTERS + 80)] scratch: pieces there: score and id of a node
    right: NDArray[np.float64]  # [NEW_CHARACTERS + 80] scratch: score of the best path from a character to its word's end
    gap: NDArray[np.float64]  # [NEW_CHARACTERS + 80] scratch: how much the best of another piece from there is worse
    chosen: NDArray[np.int64]  # [NEW_CHARACTERS + 80] scratch: the first piece of the best path: id << 32 | its end


class PieceNumbers(NamedTuple):
    """What a cache takes from the tables, as the fields of :class:`UnigramCache` of the same names."""

    scores: NDArray[np.float32]
    roots: NDArray[np.int32]
    bounds: NDArray[np.float64]


def piece_numbers(tables: UnigramTables) -> PieceNumbers:
    """Scores of pieces by id and by their first character, and bounds on sums of them."""
    units = tables.units.reshape(-1, 4)
    named = units[units[:, 2] >= 0]
    scores = np.zeros(max(1, len(tables.scores)), np.float32)
    scores[named[:, 2]] = np.ascontiguousarray(named[:, 3]).view(np.float32)
    unknown = int(tables.numbers[UNIGRAM_UNKNOWN])
    if 0 <= unknown < len(scores):
        scores[unknown] = tables.unknown_score[0]
    piece = max(float(np.abs(scores).max()), abs(float(tables.unknown_score[0])))
    bounds = np.array([piece * 1.001 + 0.01, (piece + 1) * (WORD_BYTES + 1)])
    return PieceNumbers(scores, root_units(tables), bounds)


def new_unigram_cache(
    tables: UnigramTables, slot_bits: int = 16, *, grows: bool = False, numbers: PieceNumbers | None = None
) -> UnigramCache:
    """Allocate an empty cache with ``2**slot_bits`` slots, but no fewer than twice the words of a batch.

    If it `grows`, a larger one is asked for when it is more than half full; else it is emptied when three quarters are.
    `numbers` are what :func:`piece_numbers` gives for the tables.
    """
    slot_bits = max(slot_bits, LEAST_BITS)
    pieces = piece_numbers(tables) if numbers is None else numbers
    masks = [[(1 << 8 * min(max(n - first, 0), 8)) - 1 for first in (0, 8, 16, 24)] for n in range(32)]
    words, characters = BATCH + 80, NEW_CHARACTERS + 80
    most = (1 << slot_bits) * 3 // 5 if grows else 1 << slot_bits
    return UnigramCache(
        slots=zeros((SLOT << slot_bits) + SLOT, np.int32),
        more=zeros(MORE_IDS << slot_bits, np.int32),
        scores=pieces.scores,
        lengths=read_only(np.zeros(0, np.uint16)),
        roots=pieces.roots,
        bounds=pieces.bounds,
        counters=np.array([0, 0, 0, most], np.int64),
        masks=np.array(masks, np.uint64).ravel(),
        starts=np.zeros(words, np.int64),
        cuts=np.zeros(words, np.int64),
        keys=np.zeros(4 * words, np.uint64),
        places=np.zeros(words, np.int64),
        new=np.zeros(words, np.int64),
        first=np.zeros(words, np.int64),
        codes=np.zeros(characters, np.int32),
        walking=np.zeros(characters, np.int64),
        ends=np.zeros(characters, np.uint64),
        found=np.zeros(DEPTHS * characters, np.uint64),
        right=np.zeros(characters, np.float64),
        gap=np.zeros(characters, np.float64),
        chosen=np.zeros(characters, np.int64),
    )


def root_units(tables: UnigramTables) -> NDArray[np.int32]:
    """Four numbers for each code: base, score (float32 bits), 0 and unit of the piece that is this character.

    The unit of an unknown one is that at the end, which is free.
    """
    units = tables.units.reshape(-1, 4)
    root = int(tables.numbers[UNIGRAM_ROOT_BASE]) // 4
    places = root + np.arange(int(tables.code_of.max()) // 4 + 1)
    own = units[places]
    is_node = own[:, 0] == 4 * root
    is_piece = is_node & (own[:, 2] >= 0)
    unknown = np.float32(tables.unknown_score[0]).view(np.int32)
    columns = (
        np.where(is_node, own[:, 1], 0),
        np.where(is_piece, own[:, 3], unknown),
        np.zeros(len(own)),
        np.where(is_piece, 4 * places, 4 * len(units) - 4),
    )
    return read_only(np.stack(columns, axis=1).astype(np.int32).ravel())


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


@inlined
def is_running_text(data: Any, first: int, end: int) -> bool:
    """Whether a long word is probably text of a script without spaces: its parts are found sooner than they are cut."""
    return data[np.uint64((first + end) >> 1)] >= 0x80


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
        if end - at <= WORD_BYTES or is_running_text(data, at, end):
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
def list_characters(tables: Any, data: Any, words: int, begin: int, cache: Any) -> int:
    """Codes of the characters of new words from number `begin` on; returns the number of the first that has no room."""
    codes = cache.codes
    n = np.int64(0)
    q = np.int64(begin)
    while q < words and n <= NEW_CHARACTERS:
        k = cache.new[np.uint64(q)]
        cache.first[np.uint64(q)] = n
        value = np.int64(0)
        n -= 1
        # As in ``unigram.write_codes``.
        for at in range(np.int64(cache.cuts[np.uint64(k)]), np.int64(cache.cuts[np.uint64(k + 1)])):
            byte = np.int64(data[np.uint64(at)])
            goes_on = byte & 0xC0 == 0x80
            value = (value << 6 if goes_on else np.int64(0)) | (byte if byte < 0x80 else byte & 63)
            n += 0 if goes_on else 1
            codepoint = value - (0x20000 if value >> 16 == 2 else 0)
            codepoint -= 0xC00000 if codepoint >= 0xC00000 else 0
            page = np.int64(tables.page_of[np.uint64(codepoint >> 7)])
            codes[np.uint64(n)] = tables.code_of[np.uint64(page << 7 | codepoint & 127)]
        codes[np.uint64(n + 1)] = 0
        n += 2
        q += 1
    cache.first[np.uint64(q)] = n
    return q


@helper
def find_pieces(tables: Any, n: int, cache: Any) -> int:
    """All pieces among `n` characters, by where they begin: all walks down the trie take a step at a time together."""
    units = tables.units
    codes = cache.codes
    walking = cache.walking
    ends = cache.ends
    found = cache.found
    root = np.int64(tables.numbers[UNIGRAM_ROOT_BASE])
    for i in range(n):
        walking[np.uint64(i)] = root << 32 | i
        ends[np.uint64(i)] = 0
    left = np.int64(n)
    depth = np.int64(0)
    while left > 0:
        still = np.int64(0)
        for w in range(left):
            i = walking[np.uint64(w)] & 0xFFFFFFFF
            base = walking[np.uint64(w)] >> 32
            unit = base + np.int64(codes[np.uint64(i + depth)])
            head = load_pair(units, unit)
            piece = load_pair(units, unit + 2)
            # Without a branch: what is found is written, and whether it counts besides. 1 if the unit's parent is `base`:
            other = (head ^ np.uint64(base)) & np.uint64(0xFFFFFFFF)
            is_node = (other - _ONE) >> np.uint64(63)
            found[np.uint64(i << 5 | depth)] = piece
            ends[np.uint64(i)] |= ((~piece >> np.uint64(31)) & is_node) << np.uint64(depth)
            walking[np.uint64(still)] = np.int64(head & np.uint64(0xFFFFFFFF00000000)) | i
            still += np.int64(is_node)
        left = still
        depth += 1
    return 0


@inlined
def find_best(tables: Any, first: int, last: int, cache: Any) -> int:
    """The best path of a word, characters [first, last), in exact arithmetic, left in ``cache.chosen``."""
    right = cache.right
    gap = cache.gap
    chosen = cache.chosen
    unknown_score = tables.unknown_score[0]
    right[np.uint64(last)] = 0.0
    for z in range(last - first):
        i = np.int64(last) - 1 - z
        bits = cache.ends[np.uint64(i)]
        best = -np.inf
        second = -np.inf
        piece = np.uint64(0)
        if bits & _ONE == np.uint64(0):
            best = unknown_score + right[np.uint64(i + 1)]
            piece = _UNKNOWN | np.uint64(i + 1)
        while bits != np.uint64(0):
            depth = trailing_zeros(bits)
            bits = bits & (bits - _ONE)
            at = i << 5 | depth
            entry = cache.found[np.uint64(at)]
            candidate = high_float(cache.found, at) + right[np.uint64(i + depth + 1)]
            is_better = candidate > best
            worse = best if is_better else candidate
            best = candidate if is_better else best
            second = worse if worse > second else second
            # Without a branch, which would be hard to foretell.
            new = entry << np.uint64(32) | np.uint64(i + depth + 1)
            piece ^= (piece ^ new) & (np.uint64(0) - np.uint64(is_better))
        right[np.uint64(i)] = best
        gap[np.uint64(i)] = best - second
        chosen[np.uint64(i)] = np.int64(piece)
    return 0


@helper
def keep_new_words(tables: Any, data: Any, words: int, cache: Any) -> int:
    """Find the ids of the new words that are listed, and put them into the slots that they have been given."""
    begin = np.int64(0)
    while begin < words:
        end = np.int64(list_characters(tables, data, words, begin, cache))
        find_pieces(tables, cache.first[np.uint64(end)], cache)
        for q in range(begin, end):
            keep(tables, cache.places[np.uint64(cache.new[np.uint64(q)])], q, cache)
        begin = end
    return 0


@helper
def keep(tables: Any, slot: int, q: int, cache: Any) -> int:
    """Put the ids of new word `q`, of which all pieces are known, into its slot, with the exponent they are safe up to."""
    slots = cache.slots
    chosen = cache.chosen
    gap = cache.gap
    first = np.int64(cache.first[np.uint64(q)])
    last = np.int64(cache.first[np.uint64(q + 1)]) - 1
    find_best(tables, first, last, cache)
    margin = np.inf
    count = np.int64(0)
    signs = np.int64(0)
    i = first
    while i < last:
        piece = np.int64(chosen[np.uint64(i)])
        margin = min(margin, gap[np.uint64(i)])
        slots[np.uint64(slot + IDS + min(count, WORD_IDS - 1))] = piece >> 32
        signs |= piece
        count += 1
        i = piece & 0xFFFFFFFF
    safe = np.int64(MOST_EXPONENT + 1)
    # Twice n additions, each wrong by half a step: 2**(exponent - 24).
    error = 2.01 * (last - first) / 256.0
    while safe > 0 and error + 1e-9 >= margin:
        safe -= 1
        error *= 0.5
    joined = np.int64(0)
    if count > WORD_IDS:
        to = np.int64(cache.counters[MORE_USED])
        if to + count + 8 > cache.more.size:
            safe = np.int64(0)
        else:
            slots[np.uint64(slot + IDS)] = to
            cache.counters[MORE_USED] += count
            i = first
            while i < last:
                piece = np.int64(chosen[np.uint64(i)])
                cache.more[np.uint64(to)] = piece >> 32
                to += 1
                i = piece & 0xFFFFFFFF
            if signs < 0:
                name_unknown(cache.more, to - count, to, tables.numbers[UNIGRAM_UNKNOWN])
    elif signs < 0:
        name_unknown(slots, slot + IDS, slot + IDS + count, tables.numbers[UNIGRAM_UNKNOWN])
    if signs < 0:
        joined = np.int64(JOINED)
        if tables.numbers[UNIGRAM_BYTE_FALLBACK] == 1:
            safe = np.int64(0)
    slots[np.uint64(slot + META)] = safe << SAFE_SHIFT | joined | count
    return 0


@helper
def name_unknown(ids: Any, first: int, end: int, unknown: int) -> int:
    """Put the unknown piece's id where UNKNOWN stands."""
    for i in range(first, end):
        if ids[i] == UNKNOWN:
            ids[i] = unknown
    return 0


@helper
def exponent_of(total: float, bounds: Any) -> int:
    """The exponent that sums have at most in a word that comes after `total`; BEYOND if they may be reset."""
    size = abs(total) + bounds[BOUND_WORD]
    if size >= 99999.0:
        return BEYOND
    exponent = np.int64(0)
    power = 2.0
    while size >= power:
        power *= 2.0
        exponent += 1
    return exponent


@helper
def ids_until(total: float, exponent: int, bounds: Any) -> int:
    """How many ids can follow before sums may outgrow the exponent."""
    power = 99999.0
    if exponent < MOST_EXPONENT:
        power = 2.0
        for _ in range(exponent):
            power *= 2.0
    return np.int64((power - abs(total) - bounds[BOUND_WORD]) / bounds[BOUND_PIECE]) - WORD_BYTES - 1


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
    cache.counters[MORE_USED] = 0
    return 0


@inlined
def copy_8(target: Any, to: int, source: Any, at: int) -> int:
    """Copy eight ids. Loads before stores, so that they become one of each."""
    first = load_pair(source, at)
    second = load_pair(source, at + 2)
    third = load_pair(source, at + 4)
    last = load_pair(source, at + 6)
    store_pair(target, to, first)
    store_pair(target, to + 2, second)
    store_pair(target, to + 4, third)
    store_pair(target, to + 6, last)
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
def batch_end(tables: Any, data: Any, first: int, end: int) -> int:
    """Where to cut a text that begins with a word longer than a batch: after the batch, as soon as it may be cut."""
    at = np.int64(first) + BATCH
    while np.int64(data[np.uint64(at)]) & 0xC0 == 0x80:
        at -= 1
    code = np.int64(0)
    is_crossing = True
    while at < end and is_crossing:
        before = code
        code, length = character(tables, data, at)
        is_crossing = (at <= first + BATCH or is_crossed(tables, before, code)) and not begins_word(tables, data, at)
        at += length if is_crossing else 0
    return at


@helper
def find_slots(words: int, cache: Any) -> int:
    """Find the slots of words, or give them one; returns how many are new, which are listed."""
    slots = cache.slots
    keys = cache.keys
    places = cache.places
    mask = np.uint64(slots.size // SLOT - 2)
    n_new = np.int64(0)
    for k in range(words):
        slot = np.int64(places[np.uint64(k)])
        if slot < 0:
            continue
        while not is_key(slots, slot, keys, k):
            if slots[np.uint64(slot + 7)] == 0:  # the number of bytes: the slot is empty
                for j in range(4):
                    store_pair(slots, slot + 2 * j, keys[np.uint64(4 * k + j)])
                cache.new[np.uint64(n_new)] = k
                n_new += 1
                break
            slot = np.int64(((np.uint64(slot) // np.uint64(SLOT)) + _ONE) & mask) * SLOT
        places[np.uint64(k)] = slot
    cache.counters[WORDS] += n_new
    return n_new


@inlined
def word_slot(low: np.uint64, second: np.uint64, third: np.uint64, high: np.uint64, mask: np.uint64) -> int:
    """Where to look first for a word of which the 32 bytes of the key are given."""
    value = multiply(low, _F0) ^ multiply(second ^ high, _F1) ^ multiply(third, _F2)
    value = multiply(value ^ (value >> np.uint64(32)), _F3)
    return np.int64((value >> np.uint64(32)) & mask) * SLOT


@helper
def make_word_keys(data: Any, words: int, cache: Any) -> int:
    """Write the keys of words, and the slots where they are looked for; -1 for those that are not kept."""
    slots = cache.slots
    starts = cache.cuts
    keys = cache.keys
    places = cache.places
    mask = np.uint64(slots.size // SLOT - 2)
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
        place = np.int64(word_slot(low, second, third, high, mask))
        places[np.uint64(k)] = place
        prefetch(slots, place)
    return 0


@helper
def join_unknown(out: Any, out_length: Any, first: int, end: int, unknown: int, before: int) -> int:
    """Leave one of unknown ids that follow each other, `before` being the one before; returns where the ids end."""
    to = np.int64(first)
    for i in range(first, end):
        token = np.int64(out[np.uint64(i)])
        is_joined = token == unknown and before == unknown
        if out_length.size > 0:
            if is_joined:
                out_length[np.uint64(to - 1)] += out_length[np.uint64(i)]
            else:
                out_length[np.uint64(to)] = out_length[np.uint64(i)]
        out[np.uint64(to)] = token
        to += 0 if is_joined else 1
        before = token
    return to


@helper
def put_lengths(
    lengths: Any, data: Any, place: int, unknown: int, out: Any, out_length: Any, first: int, end: int
) -> int:
    """Write the bytes that each id of a word stands for, which begins at `place`."""
    for i in range(first, end):
        token = np.int64(out[np.uint64(i)])
        n_bytes = np.int64(lengths[np.uint64(token)])
        if token == unknown:
            n_bytes = np.int64(bytes_of(data, place, 1))
        out_length[np.uint64(i)] = n_bytes
        place += n_bytes
    return 0


@helper
def walk_text(tables: Any, roots: Any, bounds: Any, n: int, codes: Any, best: Any, back: Any) -> int:
    """Forward pass over `n` characters, as ``unigram.walk_trie_32``, where most pieces have one or two characters.

    Sums at the two places to come are not in memory, and pieces of two characters are offered without a branch. In `back`
    then: at each place the last piece on the best path, its unit << 32 | the place where it begins.
    """
    units = tables.units
    longest = np.int64(tables.numbers[UNIGRAM_LONGEST])
    nothing = np.int64(units.size) - 4  # a free unit
    here = best[0]
    reach = np.float32(-np.inf)  # best sum at the next place, from places before this one
    step = np.int64(0)  # and the piece that it ends in
    code = np.int64(codes[0])
    codes[np.uint64(n + 1)] = 0
    following = np.int64(codes[1])
    i = np.int64(0)
    while i < n:
        if here > RESET or here < -RESET:
            reach = np.float32(reach - here)
            for k in range(i + 2, min(n, i + longest) + 1):
                best[np.uint64(k)] = np.float32(best[np.uint64(k)] - here)
            here = np.float32(0.0)
        # No sum is beyond the threshold for so many characters.
        left = np.int64((99999.0 - abs(np.float64(here))) / bounds[BOUND_PIECE]) - 2 * longest - 2
        stop = min(n, i + max(left, np.int64(1)))
        while i < stop:
            base = np.int64(roots[np.uint64(code)])
            candidate = np.float32(load_float(roots, code + 1) + here)
            is_better = candidate > reach
            total = candidate if is_better else reach
            back[np.uint64(i + 1)] = choose(is_better, np.int64(load_pair(roots, code + 2)) | i, step)
            unit = base + following
            code = following
            following = np.int64(codes[np.uint64(i + 2)])
            unit = choose(np.int64(units[np.uint64(unit)]) == base, unit, nothing)
            base = np.int64(units[np.uint64(unit + 1)])
            candidate = np.float32(load_float(units, unit + 3) + here)
            far = best[np.uint64(i + 2)]  # from longer pieces
            is_better = candidate > far
            reach = candidate if is_better else far
            step = choose(is_better, unit << 32 | i, np.int64(back[np.uint64(i + 2)]))
            unit = base + following
            k = np.int64(i) + 2
            while np.int64(units[np.uint64(unit)]) == base:
                k += 1
                candidate = np.float32(load_float(units, unit + 3) + here)
                if candidate > best[np.uint64(k)]:
                    best[np.uint64(k)] = candidate
                    back[np.uint64(k)] = unit << 32 | i
                base = np.int64(units[np.uint64(unit + 1)])
                unit = base + np.int64(codes[np.uint64(k)])
            here = total
            i += 1
    best[np.uint64(n)] = here
    return 0


@helper
def write_text(
    tables: Any, data: Any, first: int, end: int, n: int, back: Any, piece_lengths: Any, ids: Any, lengths: Any, to: int
) -> int:
    """Ids of the best path after ``walk_text``, and their lengths if wanted, from `to` on.

    Returns where they end, and in the lowest bit, below that, whether there are unknown ones that must be joined.
    """
    units = tables.units
    fallback = tables.numbers[UNIGRAM_BYTE_FALLBACK] == 1
    at = to + n
    k = np.int64(n)
    signs = np.int64(0)
    while k > 0:
        step = np.int64(back[np.uint64(k)])
        token = np.int64(units[np.uint64((step >> 32) + 2)])
        signs |= token
        at -= 1
        ids[np.uint64(at)] = token
        k = step & 0xFFFFFFFF
    count = to + n - at
    if (signs < 0 and fallback) or (lengths.size > 0 and piece_lengths.size == 0):
        # Another time, with places in the text.
        at = to + end - first
        k = np.int64(n)
        last = np.int64(end)
        while k > 0:
            step = np.int64(back[np.uint64(k)])
            token = np.int64(units[np.uint64((step >> 32) + 2)])
            before = last
            while k > step & 0xFFFFFFFF:
                before -= 1
                while np.int64(data[np.uint64(before)]) & 0xC0 == 0x80:
                    before -= 1
                k -= 1
            if token == UNKNOWN and fallback:
                for place in range(before, last):
                    ids[np.uint64(at - last + place)] = tables.byte_ids[np.uint64(data[np.uint64(place)])]
                    if lengths.size > 0:
                        lengths[np.uint64(at - last + place)] = 1
                at -= last - before
            else:
                at -= 1
                ids[np.uint64(at)] = token
                if lengths.size > 0:
                    lengths[np.uint64(at)] = last - before
            last = before
        count = to + end - first - at
        for i in range(count if lengths.size > 0 else 0):
            lengths[np.uint64(to + i)] = lengths[np.uint64(at + i)]
    for i in range(0, count, 8):
        copy_8(ids, to + i, ids, at + i)
    if signs < 0 and not fallback:
        name_unknown(ids, to, to + count, tables.numbers[UNIGRAM_UNKNOWN])
    if lengths.size > 0 and piece_lengths.size > 0 and not (signs < 0 and fallback):
        put_lengths(piece_lengths, data, first, tables.numbers[UNIGRAM_UNKNOWN], ids, lengths, to, to + count)
    return (to + count) << 1 | np.int64(signs < 0 and not fallback)


@helper
def encode_words(
    tables: Any, data: Any, first: int, end: int, scratch: Any, cache: Any, out: Any, out_length: Any, written: int
) -> int:
    """Write the ids of one segment, and their lengths if wanted, looking up its words; returns where they end."""
    has_lengths = out_length.size > 0
    slots = cache.slots
    found = cache.starts
    starts = cache.cuts
    places = cache.places
    unknown = np.int64(tables.numbers[UNIGRAM_UNKNOWN])
    joins = tables.numbers[UNIGRAM_BYTE_FALLBACK] != 1
    bounds = cache.bounds
    before = np.int64(UNKNOWN)  # the last id of the batches before
    total = np.float32(0.0)  # the sum after out[:summed]
    summed = written
    exponent = np.int64(exponent_of(0.0, bounds))
    most = written + np.int64(ids_until(0.0, exponent, bounds))
    at = first
    while at < end:
        stop = min(at + BATCH, end)
        words = np.int64(find_words(tables, data, at, stop, found))
        while stop < end and words == 1 and stop - at < LONG_BATCH and is_running_text(data, at, stop):
            before_stop = stop
            stop = min(stop + BATCH, end)
            words = np.int64(find_words(tables, data, before_stop - 1, stop, found))
            found[0] = at
        if stop < end and words == 1:
            stop = np.int64(batch_end(tables, data, stop - BATCH, end))
        elif stop < end:
            words -= 1
            stop = found[words]
        found[np.uint64(words)] = stop
        words = np.int64(cut_words(tables, data, words, found, starts))
        if 4 * (cache.counters[WORDS] + words) > 3 * (slots.size // SLOT):
            empty(cache)
        make_word_keys(data, words, cache)
        n_new = np.int64(find_slots(words, cache))
        if n_new > 0:
            keep_new_words(tables, data, n_new, cache)
        begin = written
        has_unknown = np.int64(0)
        for k in range(words):
            slot = np.int64(places[np.uint64(k)])
            meta = np.int64(0)
            if slot >= 0:
                meta = np.int64(slots[np.uint64(slot + META)])
            if meta >> SAFE_SHIFT <= exponent or written > most:
                # The sum is needed; and perhaps the word must be decoded with it.
                total = add_up(total, out, summed, written, cache)
                summed = written
                exponent = np.int64(exponent_of(np.float64(total), bounds))
                most = written + np.int64(ids_until(np.float64(total), exponent, bounds))
                if meta >> SAFE_SHIFT <= exponent:
                    cache.counters[SLOW] += 1
                    word = np.int64(starts[np.uint64(k)])
                    stop_word = np.int64(starts[np.uint64(k + 1)])
                    n = write_codes(tables, data, word, stop_word, scratch.codes, scratch.best32)
                    scratch.best32[0] = total
                    walk_text(tables, cache.roots, cache.bounds, n, scratch.codes, scratch.best32, scratch.back)
                    total = scratch.best32[n]
                    back = scratch.back
                    written = np.int64(
                        write_text(tables, data, word, stop_word, n, back, cache.lengths, out, out_length, written)
                    )
                    has_unknown |= JOINED if written & 1 else 0
                    written >>= 1
                    summed = written
                    exponent = np.int64(exponent_of(np.float64(total), bounds))
                    most = written + np.int64(ids_until(np.float64(total), exponent, bounds))
                    continue
            count = meta & COUNT
            has_unknown |= meta
            if count > WORD_IDS:
                place = np.int64(slots[np.uint64(slot + IDS)])
                for i in range(0, count, 8):
                    copy_8(out, written + i, cache.more, place + i)
            else:
                copy_8(out, written, slots, slot + IDS)
            if has_lengths:
                put_lengths(cache.lengths, data, starts[np.uint64(k)], unknown, out, out_length, written, written + count)
            written += count
        if has_unknown & JOINED and joins:
            # All of them count in the sum, but one id is left of those that follow each other.
            total = add_up(total, out, summed, written, cache)
            written = np.int64(join_unknown(out, out_length, begin, written, unknown, before))
            summed = written
            exponent = np.int64(exponent_of(np.float64(total), bounds))
            most = written + np.int64(ids_until(np.float64(total), exponent, bounds))
        if written > begin:
            before = np.int64(out[np.uint64(written - 1)])
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

    Takes and returns what :func:`jittok.kernels.unigram.encode_unigram_segments` does, for tables with this rule; and these
    besides. Where the model's pieces may reach over words, nothing is cached.

    Parameters
    ----------
    cache : UnigramCache
        Of the same tables. It changes, but no ids depend on what is in it.
    out : int32
        EXTRA_ROOM places more than the segments have bytes.

    Returns
    -------
    int
        DONE, MORE_SCRATCH; or MORE_CACHE, with which to call again with a larger cache, see :func:`refill_unigram_cache`.
    """
    written = np.int64(state[WRITTEN])
    i = np.int64(state[SEGMENT])
    numbers = tables.numbers
    has_words = numbers[UNIGRAM_SPACE_FIRST] == 1
    has_words = has_words and (out_length.size == 0 or cache.lengths.size > 0)
    while i < last:
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - first + 2 > scratch.codes.size:
            state[SEGMENT] = i
            state[WRITTEN] = written
            state[NEEDED] = end - first
            return MORE_SCRATCH
        if cache.counters[WORDS] > cache.counters[MOST_WORDS]:
            state[SEGMENT] = i
            state[WRITTEN] = written
            return MORE_CACHE
        if has_words:
            written = np.int64(encode_words(tables, data, first, end, scratch, cache, out, out_length, written))
        else:
            n = write_codes(tables, data, first, end, scratch.codes, scratch.best32)
            walk_text(tables, cache.roots, cache.bounds, n, scratch.codes, scratch.best32, scratch.back)
            begin = written
            written = np.int64(
                write_text(tables, data, first, end, n, scratch.back, cache.lengths, out, out_length, written)
            )
            has_unknown = written & 1
            written >>= 1
            if has_unknown:
                unknown = np.int64(numbers[UNIGRAM_UNKNOWN])
                written = np.int64(join_unknown(out, out_length, begin, written, unknown, UNKNOWN))
        out_end[i] = written
        i += 1
    state[SEGMENT] = i
    state[WRITTEN] = written
    return DONE


@kernel
def refill_unigram_cache(old: Any, new: Any) -> int:
    """Put the words of one cache into a larger one that is still empty.

    Parameters
    ----------
    old, new : UnigramCache
        Of the same tables.

    Returns
    -------
    int
        Number of words. Linear in the slots of the old one.
    """
    slots = new.slots
    mask = np.uint64(slots.size // SLOT - 2)
    for at in range(0, old.slots.size, SLOT):
        if old.slots[np.uint64(at + 7)] == 0:
            continue
        slot = np.int64(
            word_slot(
                load_pair(old.slots, at),
                load_pair(old.slots, at + 2),
                load_pair(old.slots, at + 4),
                load_pair(old.slots, at + 6),
                mask,
            )
        )
        while slots[np.uint64(slot + 7)] != 0:
            slot = np.int64(((np.uint64(slot) // np.uint64(SLOT)) + _ONE) & mask) * SLOT
        copy_8(slots, slot, old.slots, at)
        copy_8(slots, slot + 8, old.slots, at + 8)
    for i in range(old.counters[MORE_USED]):
        new.more[np.uint64(i)] = old.more[np.uint64(i)]
    for i in range(MOST_WORDS):
        new.counters[i] = old.counters[i]
    return new.counters[WORDS]
