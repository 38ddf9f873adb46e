"""BPE dropout (Provilkov et al. 2020) by the rule of tokenizers, over tables with all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import kernel
from jittok.kernels.merge import NO_MERGE, find_merge, load_symbols, pair_key, push, sift_down
from jittok.kernels.pieces import CHANCE_SHIFT, ONE, SEED, mix_bits, random_bits


@kernel
def sample_merges(
    merges: Any,
    data: Any,
    starts: Any,
    ends: Any,
    chance: int,
    seed: int,
    first_segment: int,
    scratch: Any,
    heap: Any,
    skipped: Any,
    state: Any,
    out: Any,
    out_length: Any,
    out_end: Any,
) -> int:
    """Ids of pre-tokens, where a merge that is next is skipped with a probability.

    As tokenizers does it: what was skipped waits until something else that is next is not skipped, and then takes part
    again. Entries whose pair is gone are next, and may be skipped, like others.

    Parameters
    ----------
    merges : MergeTables
        General ones, with all pairs.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Pre-token i is ``data[starts[i]:ends[i]]``.
    chance : int
        Of 2**53: from 0, which skips nothing, to 2**53, which merges nothing.
    seed : int
        At least 0. Pre-token i has random numbers of its own, which depend on `seed` and ``first_segment + i`` only.
    first_segment : int
        Number of the first pre-token.
    scratch : WordScratch
        With room for the longest pre-token.
    heap, skipped : int64
        Scratch: three places for each byte of the longest pre-token.
    state : uint64[1]
        Scratch.
    out : int32
        Output: at least as many places as the pre-tokens have bytes.
    out_length : int32
        Output: bytes of text that each id stands for.
    out_end : int64[n]
        Output: ids written by the end of each pre-token.

    Returns
    -------
    int
        Number of ids. Cost: n log n of each pre-token, divided by the chance that a merge is made.
    """
    symbols = scratch.symbols
    lengths = scratch.lengths
    previous = scratch.previous
    following = scratch.following
    slots = merges.pair_slots
    written = np.int64(0)
    for segment in range(starts.size):
        state[0] = mix_bits(mix_bits(np.uint64(seed) ^ SEED) ^ np.uint64(first_segment + segment)) | ONE
        n = np.int64(load_symbols(merges, data, starts[segment], ends[segment], symbols, lengths))
        size = np.int64(0)
        for i in range(n):
            previous[i] = i - 1
            following[i] = i + 1
            if i + 1 < n:
                number = np.int64(find_merge(slots, pair_key(symbols[i], symbols[i + 1])))
                if number != NO_MERGE:
                    size = np.int64(push(heap, size, number << 32 | i))
        waiting = np.int64(0)
        while size > 0:
            top = np.int64(heap[0])
            size -= 1
            if size > 0:
                sift_down(heap, 0, size, heap[size])
            if np.int64(random_bits(state) >> CHANCE_SHIFT) < chance:
                skipped[waiting] = top
                waiting += 1
                continue
            for i in range(waiting):
                size = np.int64(push(heap, size, skipped[i]))
            waiting = np.int64(0)
            at = top & 0xFFFFFFFF
            right = np.int64(following[at])
            if symbols[at] < 0 or right >= n:
                continue
            symbol = np.int64(merges.merge_result[top >> 32])
            number = np.int64(find_merge(slots, pair_key(symbols[at], symbols[right])))
            if number == NO_MERGE or merges.merge_result[number] != symbol:
                continue
            symbols[at] = symbol
            lengths[at] += lengths[right]
            symbols[right] = -1
            beyond = np.int64(following[right])
            following[at] = beyond
            if beyond < n:
                previous[beyond] = at
            for side in range(2):
                place = np.int64(at) if side else np.int64(previous[at])
                if place < 0 or following[place] >= n:
                    continue
                number = np.int64(find_merge(slots, pair_key(symbols[place], symbols[following[place]])))
                if number != NO_MERGE:
                    size = np.int64(push(heap, size, number << 32 | place))
        i = np.int64(0)
        while i < n:
            out[written] = merges.symbol_token[symbols[i]]
            out_length[written] = lengths[i]
            written += 1
            i = np.int64(following[i])
        out_end[segment] = written
    return written
