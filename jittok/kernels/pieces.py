"""SentencePiece BPE of words: what the batch encoder (:mod:`jittok.kernels.segments`) asks of a model.

Also the character model, which has no merges, the word model, and sampling (BPE dropout, Provilkov et al. 2020). See
:class:`~jittok.tables.PieceTables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels.bpe import find_direct, find_long_words, is_crossed, put_cuts
from jittok.kernels.machine import least_of_16, multiply, trailing_zeros
from jittok.kernels.merge import (
    EMPTY,
    HASH_SHIFT,
    LAST_MERGE,
    MOST_BYTES,
    NO_MERGE,
    NO_PACKED,
    NO_SYMBOL,
    ONE,
    PAIR_FACTOR,
    PLACE_BITS,
    find_merge,
    look_up_merges,
    pair_key,
    push,
    sift_down,
    take_merge,
)
from jittok.kernels.split import WORDS, copy_bytes, decode_codepoint
from jittok.kernels.word_cache import ZERO, keep_ids, word_length
from jittok.tables import (
    MERGE_BYTE_FALLBACK,
    MERGE_CUT,
    MERGE_DIRECT,
    MERGE_FUSE_UNKNOWN,
    MERGE_UNKNOWN,
    PIECE_FIRST,
    PIECE_MARK,
    PIECE_TIED,
    UNIT_BEGINS,
    UNIT_UNKNOWN,
)

#: The space symbol of SentencePiece.
MARK = 0x2581
#: Of the user-defined symbols that begin at a place, sentencepiece looks at so many, the shortest ones.
MOST_PREFIXES = 64
#: Unused pieces within unused pieces are taken apart down to this depth, as in sentencepiece.
MOST_DEPTH = 100
#: Chances are compared with 53 random bits.
CHANCE_SHIFT = np.uint64(11)
CHANCE_BITS = np.uint64(53)
SEED = np.uint64(0x9E3779B97F4A7C15)


@inlined
def find_edge(slots: Any, node: int, byte: int) -> int:
    """The child of a trie node for a byte, -1 if there is none."""
    key = np.uint64(node << 8 | byte)
    mask = np.uint64(slots.size - 1)
    at = (multiply(key, PAIR_FACTOR) >> HASH_SHIFT) & mask
    while True:
        slot = slots[at]
        if slot >> HASH_SHIFT == key:
            return np.int64(slot & np.uint64(0xFFFFFFFF))
        if slot == EMPTY:
            return -1
        at = (at + ONE) & mask


@helper
def find_defined(pieces: Any, data: Any, first: int, end: int) -> int:
    """The longest user-defined symbol at byte `first`: ``symbol << 32 | bytes``; -1 if there is none."""
    node = np.int64(0)
    found = np.int64(-1)
    n_found = 0
    at = first
    while at < end and n_found < MOST_PREFIXES:
        node = np.int64(find_edge(pieces.edge_slots, node, np.int64(data[np.uint64(at)])))
        if node < 0:
            break
        at += 1
        symbol = np.int64(pieces.node_symbol[np.uint64(node)])
        if symbol >= 0:
            found = symbol << 32 | (at - first)
            n_found += 1
    return found


@inlined
def unit_entry(pieces: Any, codepoint: int) -> int:
    """The entry of a character in ``symbol_of``."""
    page = np.int64(pieces.page_of[np.uint64(codepoint >> 7)])
    return np.int64(pieces.symbol_of[np.uint64(page << 7 | (codepoint & 127))])


@helper
def load_words(pieces: Any, data: Any, first: int, end: int, symbols: Any, lengths: Any) -> int:
    """Word models: the symbols of words that begin at each U+2581; returns their number."""
    n = np.int64(0)
    at = first
    while at < end:
        stop = at + (np.int64(decode_codepoint(data, at)) & 7)
        while stop < end:
            coded = np.int64(decode_codepoint(data, stop))
            if coded >> 3 == MARK:
                break
            stop += coded & 7
        symbols[n] = np.int64(find_direct(pieces, data, at, stop)) + 1
        lengths[n] = stop - at
        n += 1
        at = stop
    return n


@helper
def load_pieces(pieces: Any, data: Any, first: int, end: int, symbols: Any, lengths: Any) -> int:
    """Initial symbols of bytes [first, end), and how many bytes each stands for; returns their number."""
    if pieces.numbers[MERGE_DIRECT] > 0:
        return np.int64(load_words(pieces, data, first, end, symbols, lengths))
    n = np.int64(0)
    at = first
    while at < end:
        coded = np.int64(decode_codepoint(data, at))
        entry = np.int64(unit_entry(pieces, coded >> 3))
        symbol = entry >> 2
        length = coded & 7
        if entry & UNIT_BEGINS:
            found = np.int64(find_defined(pieces, data, at, end))
            if found >= 0:
                symbol = found >> 32
                length = found & 0xFFFFFFFF
        symbols[n] = symbol
        lengths[n] = length
        n += 1
        at += length
    return n


@inlined
def mix_bits(value: np.uint64) -> np.uint64:
    """A one-to-one function of 64 bits in which each bit of the result depends on all (splitmix64's)."""
    value = multiply(value ^ (value >> np.uint64(30)), np.uint64(0xBF58476D1CE4E5B9))
    value = multiply(value ^ (value >> np.uint64(27)), np.uint64(0x94D049BB133111EB))
    return value ^ (value >> np.uint64(31))


@inlined
def random_bits(state: Any) -> np.uint64:
    """64 random bits (xorshift64*, Vigna 2016) from ``state[0]``, which is not 0 and goes on."""
    value = state[0]
    value ^= value >> np.uint64(12)
    value ^= value << np.uint64(25)
    value ^= value >> np.uint64(27)
    state[0] = value
    return multiply(value, np.uint64(0x2545F4914F6CDD1D))


@helper
def merge_pieces(
    pieces: Any, n: int, scratch: Any, chance: np.uint64, random: Any, tracked: int, reverse: Any
) -> int:
    """Merge `n` symbols in place with a heap of (rank, place); returns how many are left.

    Cost n log n. ``scratch.pending[place]`` is the number of the merge in the heap for a place and its successor, or
    NO_MERGE: an entry of another rank is stale, and is thrown out when it comes up, or when the heap is full. A pair has
    one chance.

    Parameters
    ----------
    pieces : PieceTables
    n : int
        Symbols, in ``scratch.symbols``, with their bytes in ``scratch.lengths``.
    scratch : WordScratch
        ``heap`` holds at least ``n + n // 2 + 8`` entries. ``ranks[LAST_MERGE]`` becomes the place of the last merge, and
        ``pending[n - 1]`` and ``following`` are of no use afterwards.
    chance
        Of 2**53: how often a merge is left out.
    random : uint64[1]
        State of the generator; not touched if `chance` is 0.
    tracked : int
        1: fill in `reverse`.
    reverse : uint64[n_merges]
        Output: the pair, as ``pair_key``, that was last found for each merge.
    """
    symbols = scratch.symbols
    lengths = scratch.lengths
    previous = scratch.previous
    following = scratch.following
    pending = scratch.pending
    heap = scratch.heap
    slots = pieces.pair_slots
    merge_rank = pieces.merge_rank
    first_symbols = pieces.numbers[PIECE_FIRST]
    size = np.int64(0)
    for i in range(n):
        previous[i] = i - 1
        following[i] = i + 1
        pending[i] = NO_MERGE
        if i + 1 < n:
            key = pair_key(symbols[i], symbols[i + 1])
            number = np.int64(find_merge(slots, key))
            if number != NO_MERGE:
                if tracked:
                    reverse[number] = key
                pending[i] = number
                heap[size] = np.int64(merge_rank[number]) << 32 | i
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
        number = np.int64(pending[at])
        if number == NO_MERGE or merge_rank[number] != top >> 32:
            continue
        pending[at] = NO_MERGE
        if chance != ZERO:
            if random_bits(random) >> CHANCE_SHIFT < chance:
                continue
        right = np.int64(following[at])
        symbols[at] = first_symbols + number
        scratch.ranks[LAST_MERGE] = at
        lengths[at] += lengths[right]
        symbols[right] = -1
        pending[right] = NO_MERGE
        beyond = np.int64(following[right])
        following[at] = beyond
        if beyond < n:
            previous[beyond] = at
        if size + 2 > capacity:
            kept = np.int64(0)
            for i in range(size):
                waiting = np.int64(pending[heap[i] & 0xFFFFFFFF])
                if waiting != NO_MERGE and merge_rank[waiting] == heap[i] >> 32:
                    heap[kept] = heap[i]
                    kept += 1
            size = kept
            for i in range(size // 2 - 1, -1, -1):
                sift_down(heap, i, size, heap[i])
        for side in range(2):
            place = np.int64(at) if side else np.int64(previous[at])
            if place < 0 or following[place] >= n:
                continue
            key = pair_key(symbols[place], symbols[following[place]])
            number = np.int64(find_merge(slots, key))
            pending[place] = number
            if number != NO_MERGE:
                if tracked:
                    reverse[number] = key
                size = np.int64(push(heap, size, np.int64(merge_rank[number]) << 32 | place))
    left = np.int64(0)
    i = np.int64(0)
    while i < n:
        symbols[left] = symbols[i]
        lengths[left] = lengths[i]
        left += 1
        i = np.int64(following[i])
    return left


@helper
def write_pieces(
    pieces: Any, data: Any, first: int, end: int, n: int, scratch: Any, tracked: int, reverse: Any
) -> int:
    """Turn the `n` symbols of bytes [first, end) into ids, in place, with the bytes of each; returns their number.

    Unused pieces are taken apart: by `reverse`, where `tracked` says that ``merge_pieces`` filled it in, else by the
    lists of the tables. Unknown characters become bytes or the unknown token, and neighbours that are unknown become
    one. A symbol has at most one id for each byte, so that symbols moved to the end of the arrays are read before ids
    are written over them. Linear.
    """
    symbols = scratch.symbols
    lengths = scratch.lengths
    stack = scratch.heap
    unknown = pieces.numbers[MERGE_UNKNOWN]
    joins = pieces.numbers[MERGE_FUSE_UNKNOWN]
    by_bytes = pieces.numbers[MERGE_BYTE_FALLBACK]
    first_symbols = pieces.numbers[PIECE_FIRST]
    shift = (end - first) - n
    for i in range(n - 1, -1, -1):
        symbols[i + shift] = symbols[i]
        lengths[i + shift] = lengths[i]
    count = np.int64(0)
    at = first
    was_unknown = False
    for i in range(shift, shift + n):
        symbol = np.int64(symbols[i])
        whole_length = np.int64(lengths[i])
        token = np.int64(pieces.symbol_token[symbol])
        if token >= 0:
            symbols[count] = token
            lengths[count] = whole_length
            count += 1
            at += whole_length
            was_unknown = False
            continue
        size = np.int64(1)
        stack[0] = symbol << 8
        if token < -1 and not tracked:
            first_part = np.int64(pieces.list_indptr[-2 - token])
            size = np.int64(pieces.list_indptr[-1 - token]) - first_part
            for j in range(size):
                stack[j] = np.int64(pieces.list_symbols[first_part + size - 1 - j]) << 8 | 255
        while size > 0:
            size -= 1
            part = stack[size] >> 8
            depth = stack[size] & 255
            token = np.int64(pieces.symbol_token[part])
            if token < -1:
                if depth <= MOST_DEPTH:
                    pair = reverse[part - first_symbols]
                    stack[size] = np.int64(pair & np.uint64(0xFFFFF)) << 8 | (depth + 1)
                    stack[size + 1] = np.int64(pair >> np.uint64(20)) << 8 | (depth + 1)
                    size += 2
                    continue
                token = np.int64(pieces.list_token[-2 - token])
            length = whole_length
            if part != symbol:
                length = np.int64(pieces.symbol_bytes[part])
            if token >= 0:
                symbols[count] = token
                lengths[count] = length
                count += 1
                was_unknown = False
            elif by_bytes:
                for j in range(length):
                    symbols[count] = pieces.fallback_token[data[at + j]]
                    lengths[count] = 1
                    count += 1
                was_unknown = False
            elif was_unknown and joins:
                lengths[count - 1] += length
            else:
                symbols[count] = unknown
                lengths[count] = length
                count += 1
                was_unknown = True
            at += length
    return count


@helper
def piece_word(pieces: Any, data: Any, first: int, end: int, scratch: Any) -> int:
    """Ids of one word, left in ``scratch.symbols`` with their byte lengths; returns their number."""
    n = np.int64(load_pieces(pieces, data, first, end, scratch.symbols, scratch.lengths))
    unused = scratch.key_masks
    n = np.int64(merge_pieces(pieces, n, scratch, ZERO, unused, 0, unused))
    return np.int64(write_pieces(pieces, data, first, end, n, scratch, 0, unused))


@helper
def merge_in_step(pieces: Any, text: Any, n_words: int, lanes: Any, scratch: Any) -> int:
    """Merge many words of at most MOST_BYTES characters, all of them a step at a time, as ``merge.merge_ranked`` does.

    The first `n_words` words of ``scratch.new_first`` and ``new_length``. The ids of word w are in ``scratch.new_ids``
    from ``lanes.base[w]`` on, and ``new_length[w]`` becomes their number; or -1 if a symbol of it is no id.
    """
    symbols = lanes.symbols
    packed = lanes.packed
    alive = lanes.alive
    active = lanes.active
    places = lanes.places
    pairs = lanes.pairs
    bases = lanes.base
    pair_slots = pieces.pair_slots
    first_symbols = pieces.numbers[PIECE_FIRST]
    tied = pieces.numbers[PIECE_TIED] << PLACE_BITS
    base = np.int64(0)
    for w in range(n_words):
        at = np.int64(scratch.new_first[w])
        end = at + np.int64(scratch.new_length[w])
        row = base + 2 * w
        symbols[np.uint64(row)] = NO_SYMBOL
        n = np.int64(0)
        while at < end:
            codepoint = np.int64(text[np.uint64(at)])
            length = np.int64(1)
            if codepoint >= 0x80:
                coded = np.int64(decode_codepoint(text, at))
                codepoint = coded >> 3
                length = coded & 7
            entry = np.int64(unit_entry(pieces, codepoint))
            if entry & UNIT_BEGINS:
                found = np.int64(find_defined(pieces, text, at, end))
                if found >= 0:
                    entry = found >> 32 << 2
                    length = found & 0xFFFFFFFF
            n += 1
            symbols[np.uint64(row + n)] = entry >> 2
            at += length
        symbols[np.uint64(row + n + 1)] = NO_SYMBOL
        blocks = (n + 15) >> 4
        for i in range(blocks << 4):
            packed[np.uint64(base + i)] = NO_PACKED
        left = np.int64(symbols[np.uint64(row + 1)])
        for i in range(1, n):
            right = np.int64(symbols[np.uint64(row + i + 1)])
            if left | right < 256:
                packed[np.uint64(base + i)] = (
                    np.int64(pieces.unit_pair[np.uint64(left | right << 8)]) << PLACE_BITS | i
                )
            else:
                packed[np.uint64(base + i)] = np.int64(find_merge(pair_slots, pair_key(left, right))) << PLACE_BITS | i
            left = right
        alive[w] = (ONE << np.uint64(n + 2)) - ONE
        active[w] = w
        bases[w] = base
        scratch.new_length[w] = n
        base += blocks << 4
    bases[n_words] = base
    n_active = n_words
    while n_active > 0:
        kept = 0
        for q in range(n_active):
            w = np.int64(active[np.uint64(q)])
            base = np.int64(bases[np.uint64(w)])
            until = np.int64(bases[np.uint64(w + 1)])
            least = least_of_16(packed, base)
            for block in range(base + 16, until, 16):
                least = min(least, least_of_16(packed, block))
            if least >= NO_PACKED:
                continue
            if least >= tied:
                # Of all merges of this score, the leftmost.
                rank = pieces.merge_rank[np.uint64(least >> PLACE_BITS)]
                for i in range(base + 1, until):
                    other = np.int64(packed[np.uint64(i)])
                    if other < NO_PACKED and pieces.merge_rank[np.uint64(other >> PLACE_BITS)] == rank:
                        least = other
                        break
            take_merge(
                w, base, least, first_symbols, pair_slots, symbols, packed, alive, active, places, pairs, kept
            )
            kept += 1
        look_up_merges(kept, pair_slots, packed, active, places, pairs, bases)
        n_active = kept
    for w in range(n_words):
        base = np.int64(bases[w])
        row = base + 2 * w
        n = np.int64(scratch.new_length[w])
        bits = alive[w] & ((ONE << np.uint64(n + 1)) - np.uint64(2))
        count = base
        least_token = np.int64(0)
        while bits != 0:
            symbol = np.int64(symbols[np.uint64(row + trailing_zeros(bits))])
            token = np.int64(pieces.symbol_token[np.uint64(symbol)])
            least_token = min(least_token, token)
            scratch.new_ids[np.uint64(count)] = token
            bits &= bits - ONE
            count += 1
        scratch.new_length[w] = count - base if least_token >= 0 else -1
    return 0


@inlined
def piece_new_words(pieces: Any, n_new: int, cache: Any, scratch: Any, lanes: Any) -> int:
    """Encode the new words of a few chunks, and keep them. Most of them merge in step."""
    text = scratch.new_text
    new_place = scratch.new_place
    new_first = scratch.new_first
    new_length = scratch.new_length
    in_step = np.int64(0)
    longest = MOST_BYTES if pieces.numbers[MERGE_DIRECT] == 0 else 0
    for q in range(n_new):
        place = np.int64(new_place[np.uint64(q)])
        first = np.int64(new_first[np.uint64(q)])
        length = np.int64(new_length[np.uint64(q)])
        if length <= longest:
            new_place[np.uint64(in_step)] = place
            new_first[np.uint64(in_step)] = first
            new_length[np.uint64(in_step)] = length
            in_step += 1
            continue
        count = np.int64(piece_word(pieces, text, first, first + length, scratch))
        keep_ids(place, cache, scratch.symbols, 0, count)
    if in_step == 0:
        return 0
    merge_in_step(pieces, text, in_step, lanes, scratch)
    for q in range(in_step):
        place = np.int64(new_place[np.uint64(q)])
        base = np.int64(lanes.base[np.uint64(q)])
        count = np.int64(new_length[np.uint64(q)])
        if count >= 0:
            keep_ids(place, cache, scratch.new_ids, base, count)
        else:
            first = np.int64(new_first[np.uint64(q)])
            count = np.int64(piece_word(pieces, text, first, first + word_length(place, cache), scratch))
            keep_ids(place, cache, scratch.symbols, 0, count)
    return 0


@inlined
def cut_pieces(pieces: Any, chunk: Any, scratch: Any) -> int:
    """Cut words that do not fit a key between characters that no symbol spans; returns the number of words.

    Merges only ever make pieces, so none can reach across such a junction. A user-defined symbol does not either, and so
    one begins at the junction, or none that began before it covers it. Two unknown characters may become one
    token, so that they stay together where unknown tokens are joined. Linear in the bytes cut.
    """
    words = np.int64(chunk.state[WORDS])
    if pieces.numbers[MERGE_CUT] == 0:
        return words
    word = chunk.word
    text = chunk.text
    crossed = pieces.crossed
    marked = pieces.numbers[PIECE_MARK]
    joins = np.int64(pieces.numbers[MERGE_FUSE_UNKNOWN]) & ~np.int64(pieces.numbers[MERGE_BYTE_FALLBACK])
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
        coded = np.int64(decode_codepoint(text, at))
        left = coded >> 3
        if left == MARK and marked:
            left = np.int64(0x20)
        at += coded & 7
        while at < end and n_cut < room:
            coded = np.int64(decode_codepoint(text, at))
            right = coded >> 3
            if right == MARK and marked:
                right = np.int64(0x20)
            if not is_crossed(crossed, left, right):
                both = joins
                if joins:
                    both = np.int64(unit_entry(pieces, left)) & np.int64(unit_entry(pieces, right)) & UNIT_UNKNOWN
                if both == 0:
                    cut[np.uint64(n_cut)] = at
                    n_cut += 1
            left = right
            at += coded & 7
        long[np.uint64(n_parted)] = k
        n_parted += np.int64(n_cut > before)
    return np.int64(put_cuts(chunk, cut, n_cut, long, n_parted))


@kernel
def find_last_pairs(
    pieces: Any, data: Any, indptr: Any, scratch: Any, reverse: Any, left: Any, right: Any
) -> int:
    """Merge the text of each piece that merges may make, and note the pair of the last merge if that makes the piece.

    Parameters
    ----------
    pieces : PieceTables
        With all pairs.
    data : uint8
        Texts of what the merges make, in the order of their numbers.
    indptr : int64[n_merges + 1]
        Text i is ``data[indptr[i]:indptr[i + 1]]``.
    scratch : WordScratch
        With room for the longest piece.
    reverse : uint64[n_merges]
        Scratch.
    left, right : int32[n_merges]
        Output: the two symbols, or -1 if merging the text does not give the piece.

    Returns
    -------
    int
        How many are given. Cost: n log n of each piece.
    """
    n_found = 0
    for i in range(left.size):
        n = np.int64(load_pieces(pieces, data, indptr[i], indptr[i + 1], scratch.symbols, scratch.lengths))
        merges = np.int64(merge_pieces(pieces, n, scratch, ZERO, scratch.key_masks, 1, reverse))
        left[i] = -1
        right[i] = -1
        if n > 1 and merges == 1 and scratch.symbols[0] == pieces.numbers[PIECE_FIRST] + i:
            left[i] = np.int64(reverse[i] >> np.uint64(20))
            right[i] = np.int64(reverse[i] & np.uint64(0xFFFFF))
            n_found += 1
    return n_found


@kernel
def sample_pieces(
    pieces: Any,
    data: Any,
    starts: Any,
    ends: Any,
    chance: int,
    seed: int,
    first_segment: int,
    scratch: Any,
    state: Any,
    reverse: Any,
    out: Any,
    out_length: Any,
    out_end: Any,
) -> int:
    """Ids of segments with BPE dropout: a merge that is next is left out with a probability.

    As sentencepiece does it: the pair is not looked at again, until one of its symbols is merged with another.

    Parameters
    ----------
    pieces : PieceTables
        With all pairs.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``, and is encoded as a whole.
    chance
        Of 2**53: how often a merge is left out; 2**53 makes none.
    seed
        Segment i has random numbers of its own, which depend on `seed` and ``first_segment + i`` only.
    first_segment
        Number of the first segment.
    scratch : WordScratch
        With room for the longest segment.
    state : uint64[1]
        Scratch.
    reverse : uint64[n_merges]
        Scratch.
    out : int32
        Output: at least as many places as the segments have bytes.
    out_length : int32
        Output: bytes of text that each id stands for.
    out_end : int64[n]
        Output: ids written by the end of each segment.

    Returns
    -------
    int
        Number of ids. Cost: n log n of each segment.
    """
    limit = np.uint64(chance)
    written = np.int64(0)
    for i in range(starts.size):
        state[0] = mix_bits(mix_bits(np.uint64(seed) ^ SEED) ^ np.uint64(first_segment + i)) | ONE
        first = starts[i]
        end = ends[i]
        n = np.int64(load_pieces(pieces, data, first, end, scratch.symbols, scratch.lengths))
        if limit >> CHANCE_BITS == ZERO:
            n = np.int64(merge_pieces(pieces, n, scratch, limit, state, 1, reverse))
        n = np.int64(write_pieces(pieces, data, first, end, n, scratch, 1, reverse))
        for j in range(n):
            out[written + j] = scratch.symbols[j]
            out_length[written + j] = scratch.lengths[j]
        written += n
        out_end[i] = written
    return written


@kernel
def insert_blanks(
    data: Any, starts: Any, ends: Any, unless_marked: int, wanted: Any, out: Any, out_starts: Any, out_ends: Any
) -> int:
    """Copy segments, with a blank before each that is not empty.

    Parameters
    ----------
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``.
    unless_marked : int
        1: a segment that begins with a blank or U+2581 gets none.
    wanted : bool[n]
        Segments without it get none; [0]: no such segments.
    out : uint8
        Output: at least as many bytes as all segments have, one more for each, and 64 more.
    out_starts, out_ends : int64[n]
        Output: where the segments are in `out`.

    Returns
    -------
    int
        Bytes written. Linear.
    """
    size = np.int64(0)
    for i in range(starts.size):
        first = starts[i]
        n = ends[i] - first
        out_starts[i] = size
        if n > 0:
            marked = wanted.size > 0 and not wanted[i]
            if unless_marked and not marked:
                byte = np.int64(data[first])
                marked = byte == 0x20
                if byte == 0xE2 and n >= 3:
                    marked = np.int64(decode_codepoint(data, first)) >> 3 == MARK
            if not marked:
                out[size] = 0x20
                size += 1
            copy_bytes(out, size, data, first, n)
            size += n
        out_ends[i] = size
    return size
