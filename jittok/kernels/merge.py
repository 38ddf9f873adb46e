"""Byte-pair merges of one word: by a linear scan when it is short, by a heap over a linked list when it is long.

Both do the lowest-numbered merge present, leftmost first, until none is left (Sennrich et al. 2016, with ranks).
See :class:`~jittok.tables.MergeTables` for symbols and merge numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined
from jittok.kernels.machine import (
    find_in_line,
    highest_bit,
    least_of_16,
    load64,
    multiply,
    prefetch,
    trailing_zeros,
)
from jittok.memory import aligned_zeros
from jittok.tables import (
    MERGE_BYTE_FALLBACK,
    MERGE_FUSE_UNKNOWN,
    MERGE_RANKED,
    MERGE_UNIT,
    MERGE_UNKNOWN,
    MERGE_VARIANTS,
)

#: No merge: larger than any merge number.
NO_MERGE = (1 << 24) - 1
#: Words of at most this many units are merged by the linear scan.
SHORT_WORD = 48
#: A symbol that no pair has.
NO_SYMBOL = (1 << 20) - 1
#: In ``merge_ranked``: most bytes of a word, which a bit mask of 64 has besides two sentinels and one above.
MOST_BYTES = 61
#: A merge number and a place share one number.
PLACE_BITS = 6
PLACE_MASK = (1 << PLACE_BITS) - 1
NO_PACKED = NO_MERGE << PLACE_BITS
#: In ``merge_lanes``: most bytes of a word, and groups of sixteen words that are merged at once.
LANE_BYTES = 14
GROUPS = 8
#: Place in ``ranks`` where the number of the last merge is left.
LAST_MERGE = 63

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)
PAIR_SHIFT = np.uint64(40)
ONE = np.uint64(1)
MERGE_BITS = np.uint64(24)
MERGE_MASK = np.uint64((1 << 24) - 1)
HASH_SHIFT = np.uint64(32)
SYMBOL_BITS = 20
#: The key of a pair with NO_SYMBOL, whichever its other symbol is: always the same line is looked up for it.
NO_PAIR = np.uint64((1 << 2 * SYMBOL_BITS) - 1)


class MergeLanes(NamedTuple):
    """Scratch for merging many short words at once."""

    symbols: NDArray[np.int32]  # [places + 2 * words]
    packed: NDArray[np.int32]  # [places]
    alive: NDArray[np.uint64]  # [words]
    active: NDArray[np.int32]  # [words]
    places: NDArray[np.int32]  # [words]
    pairs: NDArray[np.uint64]  # [2 * words] by active word: keys of its new symbol with the one after, the one before
    base: NDArray[np.int32]  # [words + 1] where the places of each word begin
    # Of `merge_lanes`, by group, place and lane: place p of lane l of group g is at 256 * g + 16 * p + l.
    lane_symbols: NDArray[np.int32]  # [256 * GROUPS]
    lane_packed: NDArray[np.int32]  # [256 * GROUPS]
    lane_alive: NDArray[np.int32]  # [16 * GROUPS] by lane, as the next three
    lane_order: NDArray[np.int32]  # [16 * GROUPS] number of the word
    lane_first: NDArray[np.int32]  # [16 * GROUPS] where it begins
    lane_length: NDArray[np.int32]  # [16 * GROUPS] its bytes
    lane_pairs: NDArray[np.uint64]  # [32 * GROUPS + 16] keys of pairs to look up
    lane_items: NDArray[np.int32]  # [32 * GROUPS + 16] where in lane_packed their merges belong
    lane_groups: NDArray[np.int32]  # [GROUPS] those that are not done
    lane_counts: NDArray[np.int32]  # [LANE_BYTES + 2] where words of each length go


def new_merge_lanes(n_words: int, n_places: int) -> MergeLanes:
    """Allocate scratch for `n_words` words with `n_places` places in all."""
    return MergeLanes(
        symbols=np.zeros(n_places + 2 * n_words, np.int32),
        packed=aligned_zeros(n_places, np.int32),
        alive=np.zeros(n_words, np.uint64),
        active=np.zeros(n_words, np.int32),
        places=np.zeros(n_words, np.int32),
        pairs=np.zeros(2 * n_words, np.uint64),
        base=np.zeros(n_words + 1, np.int32),
        lane_symbols=aligned_zeros(256 * GROUPS, np.int32),
        lane_packed=aligned_zeros(256 * GROUPS, np.int32),
        lane_alive=aligned_zeros(16 * GROUPS, np.int32),
        lane_order=aligned_zeros(16 * GROUPS, np.int32),
        lane_first=aligned_zeros(16 * GROUPS, np.int32),
        lane_length=aligned_zeros(16 * GROUPS, np.int32),
        lane_pairs=np.zeros(32 * GROUPS + 16, np.uint64),
        lane_items=np.zeros(32 * GROUPS + 16, np.int32),
        lane_groups=np.zeros(GROUPS, np.int32),
        lane_counts=np.zeros(LANE_BYTES + 2, np.int32),
    )


@inlined
def pair_line(slots: Any, key: np.uint64) -> np.uint64:
    """The line of eight slots where the search for a pair begins."""
    return (multiply(key, PAIR_FACTOR) >> PAIR_SHIFT) & np.uint64((slots.size >> 3) - 1)


@inlined
def find_merge(slots: Any, key: np.uint64) -> int:
    """Number of the merge of two symbols, ``left << 20 | right``; NO_MERGE if there is none.

    A pair is in its line of eight slots; or, if that is full, in the next. Most pairs that are looked up are in
    none, and few lines are full, so one vector comparison nearly always settles it, and no branch is mispredicted.
    """
    line = pair_line(slots, key)
    while True:
        entry = find_in_line(slots, np.int64(line << np.uint64(3)), key)
        if slots[line << np.uint64(3) | np.uint64(7)] == EMPTY or entry != EMPTY:
            return np.int64(entry & MERGE_MASK)
        line = (line + ONE) & np.uint64((slots.size >> 3) - 1)


@inlined
def pair_key(left: int, right: int) -> np.uint64:
    """Two symbols as one number."""
    return np.uint64(left) << np.uint64(20) | np.uint64(right)


@inlined
def neighbour_key(left: int, right: int, neighbour: int) -> np.uint64:
    """The key of two symbols, of which `neighbour` may be NO_SYMBOL: then it is NO_PAIR, which is in no table."""
    return (pair_key(left, right) | np.uint64(-((neighbour + 1) >> SYMBOL_BITS))) & NO_PAIR


@helper
def find_unit(slots: Any, variant: int, unit: int) -> int:
    """Symbol of a unit (a byte or a codepoint) in one of its forms, -1 if the vocabulary lacks it."""
    key = np.uint64(variant << 21 | unit)
    mask = np.uint64(slots.size - 1)
    at = (multiply(key, PAIR_FACTOR) >> HASH_SHIFT) & mask
    while True:
        slot = slots[at]
        if slot >> np.uint64(32) == key:
            return np.int64(slot & np.uint64(0xFFFFFFFF))
        if slot == EMPTY:
            return -1
        at = (at + np.uint64(1)) & mask


@helper
def load_symbols(merges: Any, data: Any, first: int, end: int, symbols: Any, lengths: Any) -> int:
    """Initial symbols of the word in bytes [first, end), and how many bytes each stands for; returns their number.

    At most one symbol for each byte. Units that the vocabulary lacks become byte tokens, the unknown token, or
    nothing, in tokenizers' order: an unknown token is held back until the next known unit. One that becomes
    nothing has no length, so that the others in its word stand too far left, as in tokenizers.
    """
    if merges.numbers[MERGE_RANKED]:
        for i in range(end - first):
            symbols[i] = data[first + i]
            lengths[i] = 1
        return end - first
    n = np.int64(0)
    held = np.int64(0)  # bytes of the unknown token held back
    unknown = merges.numbers[MERGE_UNKNOWN]
    variants = merges.numbers[MERGE_VARIANTS]
    at = first
    while at < end:
        unit = np.int64(data[at])
        length = np.int64(1)
        if merges.numbers[MERGE_UNIT] and unit >= 0x80:
            if unit < 0xE0:
                unit = (unit & 31) << 6 | (np.int64(data[at + 1]) & 63)
                length = np.int64(2)
            elif unit < 0xF0:
                unit = (unit & 15) << 12 | (np.int64(data[at + 1]) & 63) << 6 | (np.int64(data[at + 2]) & 63)
                length = np.int64(3)
            else:
                unit = (unit & 7) << 18 | (np.int64(data[at + 1]) & 63) << 12
                unit |= (np.int64(data[at + 2]) & 63) << 6 | (np.int64(data[at + 3]) & 63)
                length = np.int64(4)
        variant = variants & ((1 if at > first else 0) | (2 if at + length == end else 0))
        symbol = find_unit(merges.unit_slots, variant, unit)
        if symbol >= 0:
            if held > 0:
                symbols[n] = unknown
                lengths[n] = held
                n += 1
                held = np.int64(0)
            symbols[n] = symbol
            lengths[n] = length
            n += 1
        else:
            found = False
            if merges.numbers[MERGE_BYTE_FALLBACK]:
                found = True
                for i in range(length):
                    found = found and merges.fallback_symbol[data[at + i]] >= 0
                if found:
                    for i in range(length):
                        symbols[n] = merges.fallback_symbol[data[at + i]]
                        lengths[n] = 1
                        n += 1
            if not found and unknown >= 0:
                if held > 0 and not merges.numbers[MERGE_FUSE_UNKNOWN]:
                    symbols[n] = unknown
                    lengths[n] = held
                    n += 1
                    held = np.int64(0)
                held += length
        at += length
    if held > 0:
        symbols[n] = unknown
        lengths[n] = held
        n += 1
    return n


@inlined
def take_merge(
    w: int,
    base: int,
    least: int,
    first_symbol: int,
    pair_slots: Any,
    symbols: Any,
    packed: Any,
    alive: Any,
    active: Any,
    places: Any,
    pairs: Any,
    kept: int,
) -> int:
    """Do the next merge of word `w` in lock-step merging, and ask for the table lines of its new neighbours.

    `least` is the merge, as in ``packed``; merge `m` makes symbol ``first_symbol + m``. What ``look_up_merges`` needs to
    know goes to place `kept` of `active` and `places`, and ``pairs[2 * kept]``.
    """
    row = base + 2 * w
    at = np.uint64(least & PLACE_MASK)
    symbol = (least >> PLACE_BITS) + first_symbol
    bits = alive[np.uint64(w)]
    above = (bits >> at >> ONE) << at << ONE
    right = np.uint64(trailing_zeros(above))
    above &= above - ONE
    bits ^= ONE << right
    alive[np.uint64(w)] = bits
    beyond = np.uint64(trailing_zeros(above))
    before = np.uint64(highest_bit(bits & ((ONE << at) - ONE)))
    symbols[np.uint64(row) + at] = symbol
    packed[np.uint64(base) + right] = NO_PACKED
    right_symbol = np.int64(symbols[np.uint64(row) + beyond])
    left_symbol = np.int64(symbols[np.uint64(row) + before])
    to_right = neighbour_key(symbol, right_symbol, right_symbol)
    to_left = neighbour_key(left_symbol, symbol, left_symbol)
    pairs[np.uint64(2 * kept)] = to_right
    pairs[np.uint64(2 * kept + 1)] = to_left
    prefetch(pair_slots, np.int64(pair_line(pair_slots, to_right) << np.uint64(3)))
    prefetch(pair_slots, np.int64(pair_line(pair_slots, to_left) << np.uint64(3)))
    active[np.uint64(kept)] = w
    places[np.uint64(kept)] = np.int64(at | before << np.uint64(8))
    return 0


@inlined
def look_up_merges(
    kept: int, pair_slots: Any, packed: Any, active: Any, places: Any, pairs: Any, bases: Any
) -> int:
    """Find the merges of the symbols that ``take_merge`` made for `kept` words with their neighbours."""
    for q in range(kept):
        w = np.int64(active[np.uint64(q)])
        base = np.int64(bases[np.uint64(w)])
        at = np.int64(places[np.uint64(q)]) & 255
        before = np.int64(places[np.uint64(q)]) >> 8
        right_number = find_merge(pair_slots, pairs[np.uint64(2 * q)])
        left_number = find_merge(pair_slots, pairs[np.uint64(2 * q + 1)])
        packed[np.uint64(base + at)] = right_number << PLACE_BITS | at
        # The sentinel's place is 0: no pair has it, so what is written there counts for nothing.
        packed[np.uint64(base + before)] = left_number << PLACE_BITS | before
    return 0


@helper
def merge_ranked(
    text: Any,
    first: Any,
    lengths: Any,
    begin: int,
    n_words: int,
    byte_pair: Any,
    pair_slots: Any,
    tokens: Any,
    lanes: Any,
    ids: Any,
) -> int:
    """Merge many words of at most MOST_BYTES bytes by ranked tables, all of them a step at a time.

    A look-up misses the nearer caches, so each step first finds the next merge of every word and asks for the table
    lines that it needs, then looks up. Merged symbols are not moved: a bit mask says which places still hold one,
    with a sentinel at either end. The merge at each place is ``number << PLACE_BITS | place``, so that the least of
    a word is its next merge, leftmost first. A word has one place for each byte, in blocks of 16.

    Parameters
    ----------
    text : uint8
        The words' bytes.
    first, lengths : int32[n_words]
        Where each word is.
    begin
        Words before this one are left alone.
    byte_pair, pair_slots, tokens
        Of :class:`~jittok.tables.MergeTables`.
    lanes : MergeLanes
        Scratch for so many words of so many places.
    ids : int32
        Output: the token ids of word w from ``lanes.base[w]`` on; ``lengths[w]`` becomes their number.
    """
    symbols = lanes.symbols
    packed = lanes.packed
    alive = lanes.alive
    active = lanes.active
    places = lanes.places
    pairs = lanes.pairs
    bases = lanes.base
    base = np.int64(begin << 4)
    for w in range(begin, n_words):
        at = np.int64(first[w])
        n = np.int64(lengths[w])
        row = base + 2 * w
        blocks = (n + 15) >> 4
        for i in range(blocks << 4):
            packed[np.uint64(base + i)] = NO_PACKED
        symbols[np.uint64(row)] = NO_SYMBOL
        byte = np.int64(text[np.uint64(at)])
        symbols[np.uint64(row + 1)] = byte
        for i in range(1, n):
            following = np.int64(text[np.uint64(at + i)])
            symbols[np.uint64(row + i + 1)] = following
            packed[np.uint64(base + i)] = np.int64(byte_pair[np.uint64(byte | following << 8)]) << PLACE_BITS | i
            byte = following
        symbols[np.uint64(row + n + 1)] = NO_SYMBOL
        alive[w] = (ONE << np.uint64(n + 2)) - ONE
        active[w - begin] = w
        bases[w] = base
        base += blocks << 4
    bases[n_words] = base
    n_active = n_words - begin
    while n_active > 0:
        kept = 0
        for q in range(n_active):
            w = np.int64(active[np.uint64(q)])
            base = np.int64(bases[np.uint64(w)])
            least = least_of_16(packed, base)
            for block in range(base + 16, np.int64(bases[np.uint64(w + 1)]), 16):
                least = min(least, least_of_16(packed, block))
            if least >= NO_PACKED:
                continue
            take_merge(w, base, least, 256, pair_slots, symbols, packed, alive, active, places, pairs, kept)
            kept += 1
        look_up_merges(kept, pair_slots, packed, active, places, pairs, bases)
        n_active = kept
    for w in range(begin, n_words):
        base = np.int64(bases[w])
        row = base + 2 * w
        n = np.int64(lengths[w])
        bits = alive[w] & ((ONE << np.uint64(n + 1)) - np.uint64(2))
        count = base
        while bits != 0:
            symbol = np.int64(symbols[np.uint64(row + trailing_zeros(bits))])
            ids[np.uint64(count)] = tokens[np.uint64(symbol)]
            bits &= bits - ONE
            count += 1
        lengths[w] = count - base
    return 0


@helper
def merge_short(merges: Any, n: int, symbols: Any, lengths: Any, ranks: Any) -> int:
    """Merge `n` symbols in place by scanning for the lowest merge; returns how many are left. Cost n squared.

    ``ranks[LAST_MERGE]`` is the number of the last merge made.
    """
    slots = merges.pair_slots
    for i in range(n - 1):
        ranks[i] = find_merge(slots, pair_key(symbols[i], symbols[i + 1]))
    while n > 1:
        best = NO_MERGE
        at = 0
        for i in range(n - 1):
            if ranks[i] < best:
                best = ranks[i]
                at = i
        if best == NO_MERGE:
            break
        symbol = merges.merge_result[best]
        ranks[LAST_MERGE] = best
        symbols[at] = symbol
        lengths[at] += lengths[at + 1]
        n -= 1
        for i in range(at + 1, n):
            symbols[i] = symbols[i + 1]
            lengths[i] = lengths[i + 1]
            ranks[i] = ranks[i + 1]
        if at + 1 < n:
            ranks[at] = find_merge(slots, pair_key(symbol, symbols[at + 1]))
        if at > 0:
            ranks[at - 1] = find_merge(slots, pair_key(symbols[at - 1], symbol))
    return n


@inlined
def push(heap: Any, size: int, value: int) -> int:
    """Add a value to a min-heap of `size`; returns the new size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent] <= value:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = value
    return size + 1


@helper
def sift_down(heap: Any, at: int, size: int, value: int) -> int:
    """Put `value` into a min-heap of `size` at or below the free place `at`."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return at


@helper
def merge_long(merges: Any, n: int, scratch: Any) -> int:
    """Merge `n` symbols in place with a heap of (merge number, place); returns how many are left.

    Cost n log n. ``scratch.heap`` holds at least ``n + n // 2 + 8`` entries: each is ``merge number << 32 | place``,
    and stale entries are thrown out when it is full. ``scratch.ranks[LAST_MERGE]`` is the last merge made.
    """
    symbols = scratch.symbols
    lengths = scratch.lengths
    previous = scratch.previous
    following = scratch.following
    heap = scratch.heap
    slots = merges.pair_slots
    size = np.int64(0)
    for i in range(n):
        previous[i] = i - 1
        following[i] = i + 1
        if i + 1 < n:
            number = np.int64(find_merge(slots, pair_key(symbols[i], symbols[i + 1])))
            if number != NO_MERGE:
                heap[size] = number << 32 | i
                size += 1
    for i in range(size // 2 - 1, -1, -1):
        sift_down(heap, i, size, heap[i])
    capacity = n + n // 2 + 8
    while size > 0:
        top = heap[0]
        size -= 1
        if size > 0:
            sift_down(heap, 0, size, heap[size])
        at = top & 0xFFFFFFFF
        number = top >> 32
        # An entry is stale if its place is gone, or its pair is another now.
        if symbols[at] < 0:
            continue
        right = following[at]
        if right >= n or find_merge(slots, pair_key(symbols[at], symbols[right])) != number:
            continue
        symbols[at] = merges.merge_result[number]
        scratch.ranks[LAST_MERGE] = number
        lengths[at] += lengths[right]
        symbols[right] = -1
        beyond = following[right]
        following[at] = beyond
        if beyond < n:
            previous[beyond] = at
        if size + 2 > capacity:
            kept = np.int64(0)
            for i in range(size):
                place = heap[i] & 0xFFFFFFFF
                if symbols[place] >= 0 and following[place] < n:
                    if find_merge(slots, pair_key(symbols[place], symbols[following[place]])) == heap[i] >> 32:
                        heap[kept] = heap[i]
                        kept += 1
            size = kept
            for i in range(size // 2 - 1, -1, -1):
                sift_down(heap, i, size, heap[i])
        for side in range(2):
            place = np.int64(at) if side else np.int64(previous[at])
            if place < 0 or following[place] >= n:
                continue
            number = np.int64(find_merge(slots, pair_key(symbols[place], symbols[following[place]])))
            if number == NO_MERGE:
                continue
            size = np.int64(push(heap, size, number << 32 | place))
    left = np.int64(0)
    i = np.int64(0)
    while i < n:
        symbols[left] = symbols[i]
        lengths[left] = lengths[i]
        left += 1
        i = following[i]
    return left


@helper
def merge_windows(merges: Any, data: Any, first: int, end: int, scratch: Any) -> int:
    """Merge a long word, bytes [first, end), by ranked tables, a window at a time; returns how many symbols are left.

    The first merge that would reach across two of the tokens of a text depends on nothing but these two: so tokens are
    what a text merges to if each two neighbours are what their own bytes merge to. Neighbours within a window are.
    Each window begins with the last token accepted of the one before, and if it begins with that same token, then
    that token and the next are neighbours in a window too. If it does not, tokens are given up and the next window
    begins earlier: one more token each time. The last tokens of a window may depend on what follows, and are not
    accepted. A window with the bytes of the one before, as in a run of blanks, has its tokens.

    Linear but where tokens are long or many windows do not fit each other; after so much work all is merged by the heap.
    The tokens accepted are kept at the end of ``scratch.heap``, the last one first: ``symbol << 32 | bytes``.
    """
    symbols = scratch.symbols
    lengths = scratch.lengths
    heap = scratch.heap
    top = heap.size - 1
    count = np.int64(0)
    at = np.int64(first)  # where the last token accepted begins, and the window
    size = np.int64(SHORT_WORD)
    least_stop = np.int64(0)
    given_up = np.int64(1)
    work = np.int64(8 * (end - first) + 4096)
    # Of the window before: where it was, its size, which tokens were accepted of it, and how far that went.
    before = np.int64(first)
    before_size = np.int64(0)
    before_first = np.int64(0)
    n_before = np.int64(0)
    advance = np.int64(0)
    while True:
        stop = min(max(at + size, least_stop), end)
        if n_before > 0 and stop - at == before_size and stop < end:
            i = np.int64(0)
            while i < before_size and load64(data, before + i) == load64(data, at + i):
                i += 8
            if i >= before_size and heap[top - count + 1] == heap[top - before_first + 1]:
                for k in range(n_before):
                    heap[top - count] = heap[top - before_first - k]
                    count += 1
                at += advance
                continue
        n = np.int64(load_symbols(merges, data, at, stop, symbols, lengths))
        if n <= SHORT_WORD:
            n = np.int64(merge_short(merges, n, symbols, lengths, scratch.ranks))
        else:
            n = np.int64(merge_long(merges, n, scratch))
        work -= stop - at
        n_before = np.int64(0)
        if count > 0 and symbols[0] != heap[top - count + 1] >> 32:
            if work < 0:
                n = np.int64(load_symbols(merges, data, first, end, symbols, lengths))
                return merge_long(merges, n, scratch)
            least_stop = stop
            for _ in range(given_up):
                if count > 0:
                    count -= 1
                    if count > 0:
                        at -= heap[top - count + 1] & 0xFFFFFFFF
            given_up += 1
            continue
        begin = np.int64(1) if count > 0 else np.int64(0)
        kept = n
        if stop < end:
            unsure = np.int64(0)
            while kept > 2 and unsure < size >> 3:
                kept -= 1
                unsure += np.int64(lengths[kept])
            kept = min(kept, n - 1)
            if kept < 2:
                # No way to go on without a larger window.
                size *= 2
                least_stop = np.int64(0)
                continue
        before = at
        before_first = count
        for i in range(begin, kept):
            heap[top - count] = np.int64(symbols[i]) << 32 | np.int64(lengths[i])
            count += 1
        if stop == end:
            break
        for i in range(kept - 1):
            at += np.int64(lengths[i])
        before_size = stop - before
        if begin == 1 and before_size & 7 == 0:
            n_before = count - before_first
        advance = at - before
        least_stop = np.int64(0)
        given_up = np.int64(1)
    for k in range(count):
        entry = heap[top - k]
        symbols[k] = entry >> 32
        lengths[k] = entry & 0xFFFFFFFF
    return count
