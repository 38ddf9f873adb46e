"""From logits to tokens: what generation does to the rows of ``float32[batch, vocab]``.

A row is copied to scratch, edited where single tokens are concerned (penalties, bans), and then filtered: what is left
of it lies at the front of the scratch arrays, with the tokens' numbers beside it. The order of the steps is that of
transformers' ``generate``. Rows are read as int32 of the same bits, whose order is that of the floats but for a sign,
because LLVM compares only whole numbers many at a time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels.machine import (
    bits_from,
    bits_of,
    load_float,
    multiply,
    put_exponentials,
    trailing_zeros,
)
from jittok.kernels.merge import push, sift_down

#: Places of `Rules.numbers`.
TEMPERATURE, TOP_P, LOG_MIN_P, TYPICAL_P, REPETITION, DIVERSITY = range(6)
#: Places of `Rules.sizes`.
TOP_K, NGRAM, LEAST_KEPT, LOG_SOFTMAX, FORCED_FIRST, FORCED_LAST, SAMPLE = range(7)
#: Of a row: it may not end yet, its next token is the first one, or the last one.
NO_END, IS_FIRST, IS_LAST = 1, 2, 4
#: What can be wrong with a row; a status is ``-(FAULTS * row + fault)``.
NOT_FINITE, ALL_MASKED, FAULTS = 1, 2, 4
#: Scratch has this many items more than the vocabulary, so that 64 can be read anywhere.
ROOM = 128
#: Bins that masses are gathered in.
BINS = 2048

_INFINITY_BITS = np.int32(0x7F800000)
_LEAST_KEY = np.int32(-0x7F800001)  # of minus infinity
_MASK_31 = np.int32(0x7FFFFFFF)
_SHIFT_31 = np.int32(31)
_LOWEST = np.float32(-3.4028235e38)
_NOTHING = np.float32(-np.inf)
_ZERO = np.float32(0)
_U0, _U1, _U11, _U32 = (np.uint64(number) for number in (0, 1, 11, 32))
_LOW_32 = np.uint64(0xFFFFFFFF)
_PHILOX_A, _PHILOX_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_A, _WEYL_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_UNIT = 1.0 / 9007199254740992.0


class Rules(NamedTuple):
    """What is done to a row, in the order of the steps.

    Attributes
    ----------
    numbers : float64[6]
        Temperature (1: none), top-p (1: none), logarithm of min-p (minus infinity: none), typical-p (1: none), repetition
        penalty (1: none), diversity penalty.
    sizes : int64[7]
        top-k (0: none), size of n-grams that may not recur (0: any may), tokens that every filter keeps (>= 1), whether
        the row becomes logarithms of probabilities first, forced first and last token (-1: none), whether to sample.
    end_tokens : int32[e]
        Tokens that end a sequence.
    words : int32[w]
        Sequences that may not occur, one after another.
    word_starts : int64[n + 1]
        Where each begins.
    """

    numbers: Any
    sizes: Any
    end_tokens: Any
    words: Any
    word_starts: Any


class Rows(NamedTuple):
    """What the rows stand behind.

    Attributes
    ----------
    history : int32[rows, capacity]
        Tokens so far, the prompt's first; those that the vocabulary lacks are left alone.
    lengths : int64[rows]
        How many there are.
    flags : uint8[rows]
        NO_END, IS_FIRST, IS_LAST.
    streams : uint64[rows]
        What random numbers a row has: they depend on it, the seed and the position only.
    taken : int32[rows, t]
        Tokens that other groups of beams take in this step, each of which costs the diversity penalty; those outside of
        the vocabulary are passed over. Mostly empty.
    """

    history: Any
    lengths: Any
    flags: Any
    streams: Any
    taken: Any


class Work(NamedTuple):
    """Scratch for one thread, for a vocabulary of V tokens. What it holds between calls has no meaning but for `seen`.

    Attributes
    ----------
    value, value_bits : float32[V + ROOM], int32[V + ROOM]
        The row, and the same memory as whole numbers.
    token : int32[V + ROOM]
        The token of each value, once some are gone.
    mass, order, order_bits : float32[V + ROOM], float32[V + ROOM], int32[V + ROOM]
        Exponentials of the values; what else they are ordered by.
    heap : int64[max(V, C) + ROOM]
        The best ones; at most C continuations of the beams of one prompt.
    bins : float64[BINS]
        Masses.
    seen : int64[V + 1]
        By token, the last row that had it; the number of rows so far at the end.
    spare : int32[4]
        Single numbers.
    """

    value: Any
    value_bits: Any
    token: Any
    mass: Any
    order: Any
    order_bits: Any
    heap: Any
    bins: Any
    seen: Any
    spare: Any


class Pool(NamedTuple):
    """What is left of all the beams of one prompt, for drawing without replacement.

    Attributes
    ----------
    value, weight : float32[beams * (V + 64)]
        Score of a sequence with one more token; its weight.
    source : int64[beams * (V + 64)]
        ``beam << 32 | token``.
    """

    value: Any
    weight: Any
    source: Any


def new_work(vocab_size: int, candidates: int = 0) -> Work:
    """Scratch for one thread.

    Parameters
    ----------
    vocab_size
        Length of a row.
    candidates
        Continuations that :func:`best_continuations` is to find for each prompt: with many beams or end tokens, and a
        small vocabulary, more than a row has tokens.
    """
    room = vocab_size + ROOM
    value, mass, order = (np.zeros(room, np.float32) for _ in range(3))
    token, spare = np.zeros(room, np.int32), np.zeros(4, np.int32)
    heap = np.zeros(max(vocab_size, candidates) + ROOM, np.int64)
    bins, seen = np.zeros(BINS, np.float64), np.zeros(vocab_size + 1, np.int64)
    return Work(value, value.view(np.int32), token, mass, order, order.view(np.int32), heap, bins, seen, spare)


def new_pool(beams: int, vocab_size: int) -> Pool:
    """Room for what is left of all the beams of one prompt.

    Parameters
    ----------
    beams
        How many.
    vocab_size
        Length of a row.
    """
    room = beams * (vocab_size + 64) + ROOM
    return Pool(np.zeros(room, np.float32), np.zeros(room, np.float32), np.zeros(room, np.int64))


# ------------------------------------------------------------------------------------------------ order of floats


@inlined
def _key_of(bits: int) -> int:
    """Bits of a float as a whole number that is ordered as the floats are; both zeros have the same."""
    return bits if bits >= 0 else (bits ^ 0x7FFFFFFF) + 1


@inlined
def _float_of_key(work: Any, key: int) -> np.float32:
    work.spare[0] = key if key >= 0 else (key - 1) ^ 0x7FFFFFFF
    return load_float(work.spare, 0)


@helper
def load_row(bits: Any, row: int, work: Any) -> int:
    """Copy a row to ``work.value``, behind which comes minus infinity; returns a fault, or 0.

    The largest value stays in ``work.spare`` until another one is looked for.
    """
    n = np.uint64(bits.shape[1])
    to = work.value_bits
    high = np.int32(-0x80000000)
    low = np.int32(0x7FFFFFFF)
    for i in range(n):
        item = bits[np.uint64(row), np.uint64(i)]
        to[np.uint64(i)] = item
        key = np.int32(item ^ ((item >> _SHIFT_31) & _MASK_31))
        high = max(high, key)
        low = min(low, key)
    fill_behind(work, np.int64(n))
    work.spare[0] = np.int64(high) if high >= 0 else np.int64(high) ^ 0x7FFFFFFF
    if high >= _INFINITY_BITS or low < _LEAST_KEY:
        return NOT_FINITE
    return 0 if high > _LEAST_KEY else ALL_MASKED


@inlined
def fill_behind(work: Any, n: int) -> None:
    """Minus infinity behind the first `n` values."""
    for i in range(64):
        work.value[n + i] = _NOTHING


@helper
def largest(work: Any, n: int) -> np.float32:
    """The largest of the first `n` values."""
    high = np.int32(-0x80000000)
    bits = work.value_bits
    for i in range(np.uint64(n)):
        item = bits[np.uint64(i)]
        high = max(high, np.int32(item ^ ((item >> _SHIFT_31) & _MASK_31)))
    work.spare[0] = np.int64(high) if high >= 0 else np.int64(high) ^ 0x7FFFFFFF
    return load_float(work.spare, 0)


@helper
def put_masses(work: Any, n: int, top: np.float32) -> float:
    """``work.mass`` becomes the exponentials of the first `n` values less `top`, and 0 behind; returns their sum."""
    total = np.float64(0)
    for i in range(0, n, 64):
        total += np.float64(put_exponentials(work.mass, i, work.value, i, top))
    return total


@helper
def to_logarithms(work: Any, n: int) -> None:
    """The first `n` values become logarithms of probabilities, as float32; directly after :func:`load_row`."""
    top = load_float(work.spare, 0)
    log_total = np.float32(math.log(put_masses(work, n, top)))
    value = work.value
    for i in range(np.uint64(n)):
        value[np.uint64(i)] = value[np.uint64(i)] - top - log_total


# --------------------------------------------------------------------------------------------- edits of single tokens


@inlined
def _force(work: Any, n: int, token: int) -> None:
    for i in range(n):
        work.value[i] = _NOTHING
    work.value[token] = _ZERO


@helper
def edit_row(work: Any, n: int, rules: Any, rows: Any, row: int) -> int:
    """Penalties and bans for the row of a vocabulary of `n` tokens; returns a fault, or 0.

    Cost: the length of the history, times that of a banned n-gram where it occurs.
    """
    value = work.value
    history = rows.history
    length = np.int64(rows.lengths[row])
    flags = np.int64(rows.flags[row])
    if (
        rows.taken.shape[1] == 0
        and rules.numbers[REPETITION] == 1.0
        and rules.sizes[NGRAM] == 0
        and rules.word_starts.size == 1
        and (flags & NO_END == 0 or rules.end_tokens.size == 0)
        and (flags & IS_FIRST == 0 or rules.sizes[FORCED_FIRST] < 0)
        and (flags & IS_LAST == 0 or rules.sizes[FORCED_LAST] < 0)
    ):
        return 0
    penalty = np.float32(rules.numbers[DIVERSITY])
    for i in range(rows.taken.shape[1]):
        token = np.int64(rows.taken[row, i])
        if 0 <= token < n:  # a group that is done takes the padding token, which the logits need not have
            value[token] = value[token] - penalty
    penalty = np.float32(rules.numbers[REPETITION])
    if penalty != np.float32(1):
        stamp = np.int64(work.seen[n]) + 1
        work.seen[n] = stamp
        for i in range(length):
            token = np.int64(history[row, i])
            if 0 <= token < n and work.seen[token] != stamp:
                work.seen[token] = stamp
                item = value[token]
                value[token] = item * penalty if item < _ZERO else item / penalty
    size = np.int64(rules.sizes[NGRAM])
    if size > 0:
        for first in range(length - size + 1):
            is_equal = True
            for i in range(size - 1):
                if history[row, first + i] != history[row, length - size + 1 + i]:
                    is_equal = False
                    break
            token = np.int64(history[row, first + size - 1])
            if is_equal and 0 <= token < n:
                value[token] = _NOTHING
    for word in range(rules.word_starts.size - 1):
        begin = np.int64(rules.word_starts[word])
        size = np.int64(rules.word_starts[word + 1]) - begin
        if size - 1 > length:
            continue
        is_equal = True
        for i in range(size - 1):
            if history[row, length - size + 1 + i] != rules.words[begin + i]:
                is_equal = False
                break
        token = np.int64(rules.words[begin + size - 1])
        if is_equal and token < n:
            value[token] = _NOTHING
    if flags & NO_END:
        for i in range(rules.end_tokens.size):
            value[np.int64(rules.end_tokens[i])] = _NOTHING
    if flags & IS_FIRST and rules.sizes[FORCED_FIRST] >= 0:
        _force(work, n, rules.sizes[FORCED_FIRST])
    if flags & IS_LAST and rules.sizes[FORCED_LAST] >= 0:
        _force(work, n, rules.sizes[FORCED_LAST])
    top = largest(work, n)
    if not top < np.float32(np.inf):  # a penalty that overflows
        return NOT_FINITE
    return 0 if top > _NOTHING else ALL_MASKED


# ---------------------------------------------------------------------------------------------------------- filters


@helper
def kth_largest(work: Any, n: int, k: int) -> np.float32:
    """The `k`-th largest of the first `n` values, k <= n, equal ones counted each.

    Cost: n, and log k for each of the values that were among the largest so far; for values in random order these are
    ``k log(n / k)``.
    """
    heap = work.heap
    size = np.int64(0)
    least = _NOTHING
    for block in range(0, n, 64):
        mask = bits_from(work.value, block, least)
        while mask != _U0:
            at = block + trailing_zeros(mask)
            mask &= mask - _U1
            if at >= n:
                break
            key = _key_of(np.int64(work.value_bits[at]))
            if size < k:
                size = np.int64(push(heap, size, key))
            elif key > heap[0]:
                sift_down(heap, 0, size, key)
            else:
                continue
            if size == k:
                least = _float_of_key(work, np.int64(heap[0]))
    return _float_of_key(work, np.int64(heap[0]))


@helper
def count_above(work: Any, n: int, threshold: np.float32) -> int:
    """How many of the first `n` values are above a threshold; in the upper 32 bits, how many equal it."""
    above = np.int64(0)
    equal = np.int64(0)
    for i in range(n):
        above += np.int64(work.value[i] > threshold)
        equal += np.int64(work.value[i] == threshold)
    return above | equal << 32


@helper
def keep_from(work: Any, n: int, is_whole: int, threshold: np.float32, skipped: int) -> int:
    """Keep the values from a threshold on, but not the first `skipped` of those that equal it; returns how many.

    Parameters
    ----------
    work : Work
        What is kept moves to the front of `value` and `token`, in its order.
    n : int
        Number of values.
    is_whole : int
        Whether nothing was taken out yet, so that value i is that of token i.
    threshold : float32
        Minus infinity for all that are not minus infinity.
    skipped : int
        At least 0.
    """
    value = work.value
    least = max(threshold, _LOWEST)
    kept = np.int64(0)
    for block in range(0, n, 64):
        mask = bits_from(value, block, least)
        while mask != _U0:
            at = block + trailing_zeros(mask)
            mask &= mask - _U1
            if skipped > 0 and value[at] == threshold:
                skipped -= 1
                continue
            token = at if is_whole else np.int64(work.token[at])
            value[kept] = value[at]
            work.token[kept] = token
            kept += 1
    fill_behind(work, kept)
    return kept


@helper
def keep_at_least(work: Any, n: int, is_whole: int, threshold: np.float32, skipped: int, least: int) -> int:
    """As :func:`keep_from`, but the `least` largest stay: of equal ones those with the higher numbers."""
    counts = np.int64(count_above(work, n, threshold))
    if (counts & 0xFFFFFFFF) + (counts >> 32) - skipped < least and threshold > _NOTHING:
        threshold = kth_largest(work, n, min(least, n))
        counts = np.int64(count_above(work, n, threshold))
        skipped = max(0, (counts & 0xFFFFFFFF) + (counts >> 32) - least)
    return keep_from(work, n, is_whole, threshold, skipped)


@helper
def mass_threshold(bits: Any, mass: Any, n: int, target: float, bins: Any, above: Any) -> int:
    """Where the largest ones, taken in turn, have a mass of `target`, found digit by digit.

    Parameters
    ----------
    bits : int32
        Bits of the floats that decide the order.
    mass : float32
        What each weighs.
    n : int
        How many.
    target : float
        The mass.
    bins : float64[BINS]
        Scratch.
    above : float64[1]
        Output: the mass of all that are larger.

    Returns
    -------
    int
        Key of the one that reaches it, or of the least one.
    """
    prefix = np.int64(0)
    total = np.float64(0)
    for level in range(3):
        shift = 21 - 11 * level if level < 2 else 0
        width = 11 if level < 2 else 10
        count = np.int64(1) << width
        for i in range(count):
            bins[i] = 0.0
        lowest = count - 1
        for i in range(n):
            key = _key_of(np.int64(bits[i])) + 0x80000000
            if key >> (shift + width) == prefix:
                digit = key >> shift & (count - 1)
                bins[digit] += np.float64(mass[i])
                lowest = min(lowest, digit)
        digit = count - 1
        while digit > lowest and (bins[digit] == 0.0 or total + bins[digit] < target):
            total += bins[digit]
            digit -= 1
        prefix = prefix << width | digit
    above[0] = total
    return prefix - 0x80000000


@helper
def keep_top_p(work: Any, n: int, is_whole: int, share: float, least: int) -> int:
    """Keep the fewest largest values whose probabilities add up to `share`; returns how many.

    Of equal ones at the threshold those with higher numbers are kept, as after a stable sort.
    """
    top = largest(work, n)
    total = put_masses(work, n, top)
    above = work.bins  # its first item is free after the search
    key = np.int64(mass_threshold(work.value_bits, work.mass, n, share * total, work.bins, above))
    threshold = _float_of_key(work, key)
    equal = np.int64(count_above(work, n, threshold)) >> 32
    one = np.float64(0)
    for i in range(n):
        if work.value[i] == threshold:
            one = np.float64(work.mass[i])
            break
    kept = equal
    if share * total - above[0] < one * equal:
        kept = max(np.int64(1), np.int64(math.ceil((share * total - above[0]) / one)))
    return keep_at_least(work, n, is_whole, threshold, equal - kept, least)


@helper
def keep_typical(work: Any, n: int, is_whole: int, share: float, least: int) -> int:
    """Keep the values whose information is nearest to the entropy, up to a mass of `share`; returns how many."""
    top = largest(work, n)
    total = put_masses(work, n, top)
    log_total = np.float32(math.log(total))
    entropy = np.float64(0)
    for i in range(n):
        logarithm = work.value[i] - top - log_total
        if work.mass[i] > _ZERO:
            entropy -= np.float64(logarithm) * np.float64(work.mass[i]) / total
    middle = np.float32(entropy)
    for i in range(n):
        logarithm = work.value[i] - top - log_total
        work.order[i] = -abs(-logarithm - middle)
    above = work.bins
    key = np.int64(mass_threshold(work.order_bits, work.mass, n, share * total, work.bins, above))
    threshold = _float_of_key(work, key)
    count = np.int64(0)
    for i in range(n):
        count += np.int64(work.order[i] >= threshold)
    wanted = np.int64(0)  # how many of those at the threshold are kept; the rest of them has higher numbers
    if count < least:
        heap = work.heap
        size = np.int64(0)
        for i in range(n):
            item = _key_of(np.int64(work.order_bits[i]))
            if size < min(least, n):
                size = np.int64(push(heap, size, item))
            elif item > heap[0]:
                sift_down(heap, 0, size, item)
        threshold = _float_of_key(work, np.int64(heap[0]))
        wanted = size
        for i in range(n):
            wanted -= np.int64(work.order[i] > threshold)
    else:
        wanted = n
    kept = np.int64(0)
    for i in range(n):
        if not work.order[i] >= threshold:
            continue
        if work.order[i] == threshold:
            if wanted <= 0:
                continue
            wanted -= 1
        if work.value[i] == _NOTHING:
            continue
        token = i if is_whole else np.int64(work.token[i])
        work.value[kept] = work.value[i]
        work.token[kept] = token
        kept += 1
    fill_behind(work, kept)
    return kept


@helper
def filter_row(work: Any, n: int, rules: Any) -> int:
    """Temperature and filters of a row; returns how many values are left, -1 if none was taken out, -2 for a fault."""
    least = np.int64(rules.sizes[LEAST_KEPT])
    kept = n
    is_whole = 1
    if rules.numbers[TEMPERATURE] != 1.0:
        temperature = np.float32(rules.numbers[TEMPERATURE])
        for i in range(np.uint64(n)):
            work.value[np.uint64(i)] = work.value[np.uint64(i)] / temperature
        top = largest(work, n)
        if not _NOTHING < top < np.float32(np.inf):
            return -2
    k = max(np.int64(rules.sizes[TOP_K]), least) if rules.sizes[TOP_K] > 0 else np.int64(0)
    if 0 < k < n:
        kept = np.int64(keep_from(work, n, 1, kth_largest(work, n, k), 0))
        is_whole = 0
    if rules.numbers[TOP_P] < 1.0:
        kept = np.int64(keep_top_p(work, kept, is_whole, rules.numbers[TOP_P], least))
        is_whole = 0
    if rules.numbers[LOG_MIN_P] > -np.inf:
        threshold = largest(work, kept) + np.float32(rules.numbers[LOG_MIN_P])
        kept = np.int64(keep_at_least(work, kept, is_whole, threshold, 0, least))
        is_whole = 0
    if rules.numbers[TYPICAL_P] < 1.0:
        kept = np.int64(keep_typical(work, kept, is_whole, rules.numbers[TYPICAL_P], least))
        is_whole = 0
    return -1 if is_whole else kept


@helper
def prepare_row(bits: Any, source: int, rules: Any, rows: Any, row: int, work: Any) -> int:
    """Load and edit a row: row `source` of the logits, `row` of all else; returns a fault, or 0."""
    n = bits.shape[1]
    fault = np.int64(load_row(bits, source, work))
    if fault != 0:
        return fault
    if rules.sizes[LOG_SOFTMAX]:
        to_logarithms(work, n)
    return edit_row(work, n, rules, rows, row)


@kernel
def process_logits(logits: Any, bits: Any, rules: Any, rows: Any, work: Any) -> int:
    """Apply the rules to all rows, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output; a token that is out has minus infinity.
    bits : int32[rows, vocab]
        The same memory.
    rules : Rules
        What is done.
    rows : Rows
        What each row stands behind.
    work : Work
        Scratch.

    Returns
    -------
    int
        0, or ``-(FAULTS * row + fault)``; rows from that one on are as they were. Cost: some passes over the rows.
    """
    n = logits.shape[1]
    for row in range(logits.shape[0]):
        fault = np.int64(prepare_row(bits, row, rules, rows, row, work))
        if fault != 0:
            return -(FAULTS * row + fault)
        kept = np.int64(filter_row(work, n, rules))
        if kept == -2:
            return -(FAULTS * row + NOT_FINITE)
        if kept < 0:
            for i in range(np.uint64(n)):
                logits[np.uint64(row), np.uint64(i)] = work.value[np.uint64(i)]
            continue
        for i in range(np.uint64(n)):
            logits[np.uint64(row), np.uint64(i)] = _NOTHING
        for i in range(kept):
            logits[row, work.token[i]] = work.value[i]
    return 0


# ----------------------------------------------------------------------------------------------------- random numbers


@helper
def philox(a: np.uint64, b: np.uint64, key: np.uint64) -> np.uint64:
    """64 random bits for a counter of 128 bits and a key of 64: the first two words of Philox4x32-10.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    first, second = a & _LOW_32, a >> _U32
    third, fourth = b & _LOW_32, b >> _U32
    low_key, high_key = key & _LOW_32, key >> _U32
    for _ in range(10):
        product, other = multiply(_PHILOX_A, first), multiply(_PHILOX_B, third)
        first = (other >> _U32) ^ second ^ low_key
        second = other & _LOW_32
        third = (product >> _U32) ^ fourth ^ high_key
        fourth = product & _LOW_32
        low_key = (low_key + _WEYL_A) & _LOW_32
        high_key = (high_key + _WEYL_B) & _LOW_32
    return first | second << _U32


@inlined
def uniform(stream: np.uint64, position: int, draw: int, seed: np.uint64) -> float:
    """A number from [0, 1) that depends on these four only."""
    words = philox(stream, np.uint64(position) | np.uint64(draw) << _U32, seed)
    return np.float64(np.int64(words >> _U11)) * _UNIT


# ------------------------------------------------------------------------------------------------- tokens for rows


@kernel
def choose_tokens(
    bits: Any, rules: Any, rows: Any, seed: Any, positions: Any, first: int, last: int, work: Any, out: Any, scores: Any
) -> int:
    """The next token of each row: the best one, or a draw.

    Parameters
    ----------
    bits : int32[rows, vocab]
        Logits, as the bits of float32. They stay as they are.
    rules : Rules
        What is done to them.
    rows : Rows
        What each row stands behind.
    seed : uint64[1]
        Of the random numbers.
    positions : int64[rows]
        Tokens that were drawn before.
    first, last : int
        Rows to work on.
    work : Work
        Scratch.
    out : int32[rows]
        Output: the tokens. Of equally good ones the first.
    scores : float32[rows]
        Output: the logarithm of the token's probability after processing.

    Returns
    -------
    int
        0, or ``-(FAULTS * row + fault)``. Cost: some passes over the rows.
    """
    n = bits.shape[1]
    for row in range(first, last):
        fault = np.int64(prepare_row(bits, row, rules, rows, row, work))
        if fault != 0:
            return -(FAULTS * row + fault)
        kept = np.int64(filter_row(work, n, rules)) if rules.sizes[SAMPLE] else np.int64(-1)
        if kept == -2:
            return -(FAULTS * row + NOT_FINITE)
        count = n if kept < 0 else kept
        top = largest(work, count)
        total = put_masses(work, count, top)
        chosen = np.int64(-1)
        if rules.sizes[SAMPLE]:
            target = uniform(rows.streams[row], positions[row], 0, seed[0]) * total
            passed = np.float64(0)
            for block in range(0, count, 64):
                mass = np.float64(put_exponentials(work.mass, block, work.value, block, top))
                if passed + mass > target:
                    for i in range(block, min(block + 64, count)):
                        if work.mass[i] > _ZERO:
                            chosen = np.int64(i)  # the last one if rounding passes all
                            passed += np.float64(work.mass[i])
                            if passed > target:
                                break
                    break
                passed += mass
        if chosen < 0:
            for block in range(0, count, 64):
                mask = bits_from(work.value, block, top)
                if mask != _U0:
                    chosen = block + trailing_zeros(mask)
                    break
        out[row] = chosen if kept < 0 else work.token[chosen]
        scores[row] = work.value[chosen] - top - np.float32(math.log(total))
    return 0


@helper
def offer_row(work: Any, n: int, score: np.float32, beam: int, size: int, k: int) -> int:
    """Put the best continuations of a beam among the `k` best of all; returns how many these are.

    ``work.heap`` holds them as ``key of the score << 32 | ~(beam * n + token)``, so that of equal ones the first is better.
    """
    heap = work.heap
    least = _NOTHING
    if size == k:
        least = _float_of_key(work, np.int64(heap[0]) >> 32)
    # Sums are rounded: what is a little too small is looked at too.
    limit = max(least - score - np.float32(1e-5) * (abs(least) + abs(score)), _LOWEST) if size == k else _LOWEST
    for block in range(0, n, 64):
        mask = bits_from(work.value, block, limit)
        while mask != _U0:
            at = block + trailing_zeros(mask)
            mask &= mask - _U1
            total = np.float32(score + work.value[at])
            item = _key_of(np.int64(bits_of(total))) << 32 | (0xFFFFFFFF - (beam * n + at))
            if size < k:
                size = np.int64(push(heap, size, item))
            elif item > heap[0]:
                sift_down(heap, 0, size, item)
            else:
                continue
            if size == k:
                least = _float_of_key(work, np.int64(heap[0]) >> 32)
                limit = max(least - score - np.float32(1e-5) * (abs(least) + abs(score)), _LOWEST)
    return size


@helper
def draw_from_pool(
    pool: Any, ends: Any, k: int, stream: np.uint64, position: int, seed: np.uint64, work: Any, n: int
) -> int:
    """Draw up to `k` of a pool without replacement, each with a probability that is proportional to its weight.

    Parameters
    ----------
    pool : Pool
        Each beam's part begins at a multiple of 64; weights are changed.
    ends : int64[beams]
        Where each beam's part ends.
    k : int
        How many.
    stream, position, seed
        Of the random numbers.
    work : Work
        ``heap`` gets what :func:`offer_row` puts there; ``bins`` holds the weight of each beam.
    n : int
        Size of the vocabulary.

    Returns
    -------
    int
        How many have a weight above zero, and were drawn. Cost: k times the longest part.
    """
    top = _NOTHING
    beams = ends.size
    for beam in range(beams):
        begin = np.int64(0) if beam == 0 else (np.int64(ends[beam - 1]) + 63) & -64
        for i in range(begin, ends[beam]):
            top = max(top, pool.value[i])
    for beam in range(beams):
        begin = np.int64(0) if beam == 0 else (np.int64(ends[beam - 1]) + 63) & -64
        total = np.float64(0)
        for i in range(begin, ends[beam], 64):
            total += np.float64(put_exponentials(pool.weight, i, pool.value, i, top))
        work.bins[beam] = total
    size = np.int64(0)
    for draw in range(k):
        total = np.float64(0)
        for beam in range(beams):
            total += work.bins[beam]
        target = uniform(stream, position, draw, seed) * total
        chosen = np.int64(-1)
        owner = np.int64(0)
        for beam in range(beams):
            if not work.bins[beam] > 0.0:
                continue
            begin = np.int64(0) if beam == 0 else (np.int64(ends[beam - 1]) + 63) & -64
            is_last = True
            for other in range(beam + 1, beams):
                is_last = is_last and not work.bins[other] > 0.0
            if target >= work.bins[beam] and not is_last:
                target -= work.bins[beam]
                continue
            owner = beam
            passed = np.float64(0)
            for i in range(begin, ends[beam]):
                if pool.weight[i] > _ZERO:
                    chosen = np.int64(i)
                    passed += np.float64(pool.weight[i])
                    if passed > target:
                        break
            break
        if chosen < 0:
            break
        pool.weight[chosen] = _ZERO
        begin = np.int64(0) if owner == 0 else (np.int64(ends[owner - 1]) + 63) & -64
        rest = np.float64(0)
        for i in range(begin, ends[owner]):
            rest += np.float64(pool.weight[i])
        work.bins[owner] = rest
        source = np.int64(pool.source[chosen])
        place = (source >> 32) * n + (source & 0xFFFFFFFF)
        item = _key_of(np.int64(bits_of(pool.value[chosen]))) << 32 | (0xFFFFFFFF - place)
        size = np.int64(push(work.heap, size, item))
    return size


@kernel
def best_continuations(
    bits: Any,
    sources: Any,
    rules: Any,
    rows: Any,
    beam_scores: Any,
    seed: Any,
    position: int,
    first: int,
    last: int,
    work: Any,
    pool: Any,
    ends: Any,
    scores: Any,
    beams: Any,
    tokens: Any,
    counts: Any,
    done: Any,
) -> int:
    """The best continuations of all the beams of each prompt, or draws from them, in falling order of their scores.

    Parameters
    ----------
    bits : int32[r, vocab]
        Logits, as the bits of float32. They stay as they are.
    sources : int64[prompts, beams]
        The row of the logits that each beam has.
    rules : Rules
        What is done to the logarithms of the probabilities.
    rows : Rows
        What each beam stands behind; of beam b of prompt p it is row ``p * beams + b``.
    beam_scores : float32[prompts, beams]
        Sum of the scores of the tokens so far; minus infinity for a beam that there is not.
    seed : uint64[1]
        Of the random numbers.
    position : int
        Tokens so far.
    first, last : int
        Prompts to work on.
    work : Work
        Scratch, made for k candidates, or for all that there can be: ``beams * vocab``.
    pool : Pool
        Scratch, with places only where samples are drawn.
    ends : int64[beams]
        Scratch.
    scores, beams, tokens : float32, int32, int32 [prompts, k]
        Output: score of the sequence, its beam, its new token.
    counts : int64[prompts]
        Output: how many there are, at most k. Others have minus infinity or no weight.
    done : uint8[prompts]
        Prompts that are left out.

    Returns
    -------
    int
        0, or ``-(FAULTS * row + fault)`` with the row of the logits. Cost: some passes over the rows.
    """
    n = bits.shape[1]
    width = sources.shape[1]
    k = scores.shape[1]
    for prompt in range(first, last):
        if done[prompt]:
            continue
        size = np.int64(0)
        end = np.int64(0)
        for beam in range(width):
            ends[beam] = end
            score = beam_scores[prompt, beam]
            if not score > _NOTHING:
                continue
            source = np.int64(sources[prompt, beam])
            fault = np.int64(prepare_row(bits, source, rules, rows, prompt * width + beam, work))
            if fault == ALL_MASKED:
                continue  # this beam ends here; others may go on
            if fault != 0:
                return -(FAULTS * source + fault)
            if not rules.sizes[SAMPLE]:
                size = np.int64(offer_row(work, n, score, beam, size, k))
                continue
            kept = np.int64(filter_row(work, n, rules))
            if kept == -2:
                return -(FAULTS * source + NOT_FINITE)
            end = (end + 63) & -64
            count = n if kept < 0 else kept
            for i in range(count):
                token = np.int64(i) if kept < 0 else np.int64(work.token[i])
                pool.value[end + i] = np.float32(score + work.value[i])
                pool.source[end + i] = np.int64(beam) << 32 | token
            for i in range(64):
                pool.value[end + count + i] = _NOTHING
            end += count
            ends[beam] = end
        if rules.sizes[SAMPLE]:
            size = np.int64(draw_from_pool(pool, ends, k, rows.streams[prompt * width], position, seed[0], work, n))
        if size == 0:
            return -(FAULTS * np.int64(sources[prompt, 0]) + ALL_MASKED)
        counts[prompt] = size
        heap = work.heap
        while size > 0:
            item = np.int64(heap[0])
            size -= 1
            if size > 0:
                sift_down(heap, 0, size, heap[size])
            place = 0xFFFFFFFF - (item & 0xFFFFFFFF)
            scores[prompt, size] = _float_of_key(work, item >> 32)
            beams[prompt, size] = place // n
            tokens[prompt, size] = place % n
    return 0
