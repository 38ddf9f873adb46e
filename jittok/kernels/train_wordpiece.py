"""Merges learned by likelihood: the next pair is that of the greatest count(ab) / (count(a) count(b)).

Words and merges are as in :mod:`jittok.kernels.train_bpe`. A merge changes the counts of two symbols, and so the scores
of all pairs that hold one of them, upwards as well as downwards: these are found by the chains of the two symbols, and
put into the heap with their new scores. An entry of the heap counts only if its score is the pair's by now.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import helper, inlined, kernel
from jittok.kernels.train_bpe import (
    APPLIED,
    BOUNDARY,
    CELL,
    DONE,
    EXHAUSTED,
    FLOOR,
    MERGED,
    MORE_HEAP,
    MORE_RUNS,
    PAIRS,
    PAUSED,
    SCORED,
    STEP,
    SYMBOLS,
    TARGET,
    begin_merge,
    is_before,
    link_pairs,
    merge_pair,
    missing_room,
    weight_of,
)


class Scores(NamedTuple):
    """What learning by likelihood needs besides a Training."""

    symbol_counts: NDArray[np.int64]  # [symbols] how often each is in the text now
    heap_score: NDArray[np.float64]  # [capacity]
    heap_pair: NDArray[np.int32]  # [capacity]


@inlined
def score_of(training: Any, scores: Any, pair: int) -> float:
    """The score of a pair by now."""
    left = np.uint64(training.pairs.left[np.uint64(pair)])
    right = np.uint64(training.pairs.right[np.uint64(pair)])
    both = np.float64(scores.symbol_counts[left]) * np.float64(scores.symbol_counts[right])
    return np.float64(training.pairs.count[np.uint64(pair)]) / both


@inlined
def is_first(training: Any, score: float, pair: int, other_score: float, other: int) -> bool:
    """Whether an entry of the heap comes before another."""
    return score > other_score or (score == other_score and is_before(training.pairs, pair, other))


@helper
def push_score(training: Any, scores: Any, pair: int) -> None:
    """Put a pair into the heap by its score."""
    numbers, heap, items = training.numbers, scores.heap_score, scores.heap_pair
    score = score_of(training, scores, pair)
    at = numbers[SCORED]
    numbers[SCORED] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if not is_first(training, score, pair, heap[above], np.int64(items[above])):
            break
        heap[at] = heap[above]
        items[at] = items[above]
        at = above
    heap[at] = score
    items[at] = pair


@helper
def pop_score(training: Any, scores: Any) -> None:
    """Take the first entry out of the heap."""
    numbers, heap, items = training.numbers, scores.heap_score, scores.heap_pair
    size = numbers[SCORED] - 1
    numbers[SCORED] = size
    if size == 0:
        return
    score, pair = heap[size], np.int64(items[size])
    at = np.int64(0)
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and is_first(
            training, heap[below + 1], np.int64(items[below + 1]), heap[below], np.int64(items[below])
        ):
            below += 1
        if not is_first(training, heap[below], np.int64(items[below]), score, pair):
            break
        heap[at] = heap[below]
        items[at] = items[below]
        at = below
    heap[at] = score
    items[at] = pair


@helper
def push_pairs_of(training: Any, scores: Any, symbol: int) -> int:
    """Put all pairs of a symbol into the heap anew, and take those out of its chains that are gone; returns their number."""
    pairs, chains, links = training.pairs, training.chains, training.links
    seen = 0
    for side in range(2):
        last = np.int64(-1)
        pair = np.int64(chains[2 * symbol + side])
        while pair >= 0:
            after = np.int64(links[2 * pair + side])
            seen += 1
            if pairs.begin[pair] == MERGED or pairs.count[pair] == 0:
                pairs.begin[pair] = MERGED  # nothing of it is left; if it comes up again, it is a new pair
                if last < 0:
                    chains[2 * symbol + side] = after
                else:
                    links[2 * last + side] = after
            else:
                last = pair
                if pairs.count[pair] >= training.numbers[FLOOR]:
                    push_score(training, scores, pair)
            pair = after
    return seen


@kernel
def start_scores(training: Any, scores: Any, used: int) -> int:
    """Count symbols, and put all pairs into the heap, which has room for them.

    Parameters
    ----------
    training : Training
        Its pairs are counted.
    scores : Scores
        Its counts are 0.
    used
        Number of cells.

    Returns
    -------
    int
        0.
    """
    cells = training.cells
    for at in range(used):
        symbol = np.int64(cells[CELL * at])
        if symbol != BOUNDARY:
            scores.symbol_counts[symbol] += weight_of(cells, training.weights, at)
    fill_scores(training, scores)
    return 0


@helper
def fill_scores(training: Any, scores: Any) -> None:
    """Make the heap anew."""
    training.numbers[SCORED] = 0
    for pair in range(training.numbers[PAIRS]):
        if training.pairs.begin[pair] != MERGED and training.pairs.count[pair] >= training.numbers[FLOOR]:
            push_score(training, scores, pair)


@kernel
def learn_merges_by_likelihood(training: Any, scores: Any, prefix: Any, budget: int) -> int:
    """Merge the pair of the greatest score, and the next, until there are as many symbols as wanted.

    Parameters
    ----------
    training : Training
    scores : Scores
    prefix
        uint8[numbers[PREFIX]], what tokens that continue a word begin with.
    budget
        Pairs and places after which to pause.

    Returns
    -------
    int
        As :func:`jittok.kernels.train_bpe.learn_merges`; MORE_HEAP is about that of `scores`, which must have room for
        twice the pairs and six times the symbols.
    """
    numbers, pairs = training.numbers, training.pairs
    while numbers[SYMBOLS] < numbers[TARGET]:
        if budget <= 0:
            return PAUSED
        # Of two symbols all pairs may be put in, and all new ones.
        if numbers[SCORED] + 6 * numbers[SYMBOLS] + 6 > scores.heap_pair.size:
            if numbers[PAIRS] * 2 + 6 * numbers[SYMBOLS] + 6 > scores.heap_pair.size:
                return MORE_HEAP
            budget -= numbers[PAIRS]
            fill_scores(training, scores)
        pair = np.int64(-1)
        while numbers[SCORED] > 0:
            pair = np.int64(scores.heap_pair[0])
            if (
                pairs.begin[pair] != MERGED
                and pairs.count[pair] >= numbers[FLOOR]
                and score_of(training, scores, pair) == scores.heap_score[0]
            ):
                break
            pair = np.int64(-1)
            pop_score(training, scores)
        if pair < 0:
            return EXHAUSTED
        status = missing_room(training, pair)
        if status != DONE:
            return status
        left, right = np.int64(pairs.left[pair]), np.int64(pairs.right[pair])
        merge = begin_merge(training, pair, prefix)
        newest, _ = merge
        if newest < 0:
            return MORE_RUNS
        budget -= merge_pair(training, pair, merge, numbers[STEP]) + 8
        scores.symbol_counts[left] -= numbers[APPLIED]
        scores.symbol_counts[right] -= numbers[APPLIED]
        scores.symbol_counts[newest] += numbers[APPLIED]
        link_pairs(training)
        # Those with the newest symbol, if it was there before, are among the pairs that change too.
        budget -= push_pairs_of(training, scores, newest)
        if left != newest:
            budget -= push_pairs_of(training, scores, left)
        if right != left and right != newest:
            budget -= push_pairs_of(training, scores, right)
    return DONE
