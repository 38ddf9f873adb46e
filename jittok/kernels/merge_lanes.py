"""Byte-pair merges of many short words at once, sixteen in the lanes of each vector, where vectors have 64 bytes.

The same steps as in :func:`jittok.kernels.merge.merge_ranked`, which says why they are right. There each word has vectors
of its own, and finding the least merge and the neighbours is done word by word; here place `i` of sixteen words is one
vector, so that these operations serve sixteen words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper
from jittok.kernels.machine import (
    count_bits,
    fill_lanes,
    load_lane_bytes,
    prefetch,
    put_lane_tokens,
    take_lane_merges,
)
from jittok.kernels.merge import (
    GROUPS,
    LANE_BYTES,
    NO_PACKED,
    NO_SYMBOL,
    PLACE_BITS,
    find_merge,
    pair_line,
)


@helper
def merge_in_lanes(
    text: Any,
    first: Any,
    lengths: Any,
    n_words: int,
    byte_pair: Any,
    pair_slots: Any,
    tokens: Any,
    lanes: Any,
    ids: Any,
) -> int:
    """Merge words of at most LANE_BYTES bytes by ranked tables. Only where there are wide vectors.

    Words are taken by length, as all sixteen of a group take as many steps as the one that takes most.

    Parameters
    ----------
    text : uint8
        The words' bytes. Three bytes after a word can be read.
    first, lengths : int32[n_words]
        Where each word is.
    byte_pair, pair_slots, tokens
        Of :class:`~jittok.tables.MergeTables`.
    lanes : MergeLanes
        Scratch.
    ids : int32
        Output: the token ids of word w from ``16 * w`` on; ``lengths[w]`` becomes their number.
    """
    symbols = lanes.lane_symbols
    packed = lanes.lane_packed
    alive = lanes.lane_alive
    order = lanes.lane_order
    firsts = lanes.lane_first
    sizes = lanes.lane_length
    pairs = lanes.lane_pairs
    items = lanes.lane_items
    groups = lanes.lane_groups
    counts = lanes.lane_counts
    for begin in range(0, n_words, GROUPS << 4):
        n = min(np.int64(n_words - begin), np.int64(GROUPS << 4))
        # By length: the number of words of each, then where those of each begin.
        for i in range(LANE_BYTES + 2):
            counts[i] = 0
        for q in range(begin, begin + n):
            counts[np.uint64(lengths[np.uint64(q)] + 1)] += 1
        for i in range(LANE_BYTES + 1):
            counts[i + 1] += counts[i]
        for q in range(begin, begin + n):
            length = np.int64(lengths[np.uint64(q)])
            at = np.int64(counts[np.uint64(length)])
            counts[np.uint64(length)] = at + 1
            order[np.uint64(at)] = q
            firsts[np.uint64(at)] = first[np.uint64(q)]
            sizes[np.uint64(at)] = length
            alive[np.uint64(at)] = (1 << (length + 2)) - 1
        n_active = (n + 15) >> 4
        for at in range(n, n_active << 4):
            order[np.uint64(at)] = 0
            firsts[np.uint64(at)] = 0
            sizes[np.uint64(at)] = 0
            alive[np.uint64(at)] = 3
        for g in range(n_active):
            groups[np.uint64(g)] = g
            row = g << 8
            most = np.int64(sizes[np.uint64(min(16 * g + 15, n - 1))])
            fill_lanes(symbols, row, NO_SYMBOL)
            for place in range(1, most + 2):
                load_lane_bytes(symbols, packed, row, place, text, firsts, sizes, 16 * g, byte_pair)
            for place in range(most + 2, LANE_BYTES + 1):
                fill_lanes(packed, row + 16 * place, NO_PACKED)
        while n_active > 0:
            kept = np.int64(0)
            still = 0
            for q in range(n_active):
                g = np.int64(groups[np.uint64(q)])
                before = kept
                kept = np.int64(
                    take_lane_merges(symbols, packed, alive, 16 * g, g << 8, 256, pairs, items, kept)
                )
                groups[np.uint64(still)] = g
                still += kept > before
            n_active = still
            for k in range(kept):
                prefetch(pair_slots, np.int64(pair_line(pair_slots, pairs[np.uint64(k)]) << np.uint64(3)))
            for k in range(kept):
                item = np.int64(items[np.uint64(k)])
                number = find_merge(pair_slots, pairs[np.uint64(k)])
                place = (item >> 4) & 15
                packed[np.uint64(item)] = number << PLACE_BITS | place
        for g in range((n + 15) >> 4):
            for at in range(16 * g, min(16 * g + 16, n)):
                q = np.int64(order[np.uint64(at)])
                lengths[np.uint64(q)] = np.int64(count_bits(np.uint64(alive[np.uint64(at)]))) - 2
            number = np.int64(0)
            while put_lane_tokens(symbols, alive, 16 * g, g << 8, tokens, order, ids, number) != 0:
                number += 1
    return 0
