"""Three ways to learn byte-pair merges that give the same merges at a different cost, as plain Python."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from jittok.errors import ArgumentError, ArgumentTypeError

TrainingAlgorithm = Literal["textbook", "incremental", "heap"]
TRAINING_ALGORITHMS: tuple[TrainingAlgorithm, ...] = get_args(TrainingAlgorithm)

Pair = tuple[str, str]


def learn_merges(words: Mapping[str, int], n_merges: int, algorithm: TrainingAlgorithm = "heap") -> list[Pair]:
    """Learn byte-pair merges from words and how often each occurs.

    The next merge is the pair that occurs most often, of equally frequent ones the first in the order of strings; all
    pairs of neighbours count, overlapping ones too ("aaa" has "aa" twice). A pair is merged from left to right.

    Parameters
    ----------
    words
        Occurrences by word; a word that never occurs has no pairs. No pair reaches across words.
    n_merges
        How many merges to learn; fewer if nothing is left to merge.
    algorithm
        With N letters in all different words, M merges, P different pairs:

        - "textbook": count all pairs of all words anew before each merge. O(N M).
        - "incremental": keep the counts, and the words in which each pair is; a merge changes those words only. Looking for
          the greatest count still goes through all pairs. O(N + M P), and what the changes cost.
        - "heap": the same with a priority queue, whose entries are checked when they are taken out: a count that has sunk
          since is put back. O(N log N), nearly whatever M is.

    Returns
    -------
    list of (str, str)
        The merges in the order in which they were learned.

    Raises
    ------
    ArgumentError
        There is no such algorithm, or `n_merges` or a count is negative.
    ArgumentTypeError
        `words` are not strings with whole numbers.

    Notes
    -----
    `jittok.train_bpe` learns the same in another way: its kernels keep places instead of words, and pairs in a bucket for
    each count. It breaks ties by ids, as tokenizers does, not by strings.

    Examples
    --------
    >>> from jittok.study import learn_merges
    >>> learn_merges({"hello": 2, "hell": 3, "low": 4}, 4)
    [('l', 'o'), ('e', 'l'), ('h', 'el'), ('lo', 'w')]
    """
    if n_merges < 0:
        raise ArgumentError(f"n_merges={n_merges}: expected 0 or more")
    if not isinstance(words, Mapping):
        raise ArgumentTypeError(f"words: expected a dict of word to count, got {type(words).__name__}")
    for word, count in words.items():
        if not isinstance(word, str) or not isinstance(count, int):
            raise ArgumentTypeError(f"words: expected str and its count, got {word!r}: {count!r}")
        if count < 0:
            raise ArgumentError(f"words: {word!r} has the count {count}; expected 0 or more")
    words = {word: count for word, count in words.items() if count > 0}
    learners: dict[str, Callable[[Mapping[str, int], int], list[Pair]]] = {
        "textbook": _textbook,
        "incremental": _incremental,
        "heap": _heap,
    }
    if algorithm not in learners:
        raise ArgumentError(f"algorithm={algorithm!r}: expected one of {', '.join(TRAINING_ALGORITHMS)}")
    return learners[algorithm](words, n_merges)


def _order(item: tuple[Pair, int]) -> tuple[int, Pair]:
    """What the next merge has the least of."""
    pair, count = item
    return -count, pair


def _textbook(words: Mapping[str, int], n_merges: int) -> list[Pair]:
    split = [(list(word), count) for word, count in words.items()]
    merges: list[Pair] = []
    while len(merges) < n_merges:
        counts: Counter[Pair] = Counter()
        for symbols, count in split:
            for pair in zip(symbols, symbols[1:], strict=False):
                counts[pair] += count
        if not counts:
            break
        best, _ = min(counts.items(), key=_order)
        merges.append(best)
        split = [(_merged(symbols, best), count) for symbols, count in split]
    return merges


class _Counts:
    """Counts of pairs, kept up to date while words change."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self.words = [list(word) for word in words]
        self.occurrences = list(words.values())
        self.counts: Counter[Pair] = Counter()
        self.found_in: defaultdict[Pair, set[int]] = defaultdict(set)
        for number, symbols in enumerate(self.words):
            for pair in zip(symbols, symbols[1:], strict=False):
                self.counts[pair] += self.occurrences[number]
                self.found_in[pair].add(number)

    def merge(self, best: Pair) -> set[Pair]:
        """Merge a pair in all words that have it; return the pairs whose counts have risen."""
        risen = set()
        for number in sorted(self.found_in.pop(best)):
            before = self.words[number]
            after = self.words[number] = _merged(before, best)
            for pair in zip(before, before[1:], strict=False):
                self.counts[pair] -= self.occurrences[number]
            for pair in zip(after, after[1:], strict=False):
                self.counts[pair] += self.occurrences[number]
                self.found_in[pair].add(number)
                risen.add(pair)
        del self.counts[best]
        return risen - {best}


def _incremental(words: Mapping[str, int], n_merges: int) -> list[Pair]:
    known = _Counts(words)
    merges: list[Pair] = []
    while len(merges) < n_merges:
        best, count = min(known.counts.items(), key=_order, default=(("", ""), 0))
        if count <= 0:
            break
        merges.append(best)
        known.merge(best)
    return merges


def _heap(words: Mapping[str, int], n_merges: int) -> list[Pair]:
    known = _Counts(words)
    queue = [_order(item) for item in known.counts.items()]
    heapq.heapify(queue)
    merges: list[Pair] = []
    while queue and len(merges) < n_merges:
        negative, pair = heapq.heappop(queue)
        count = known.counts[pair]
        if count <= 0:
            continue
        if count != -negative:
            # Where the count has risen, another entry says so; where it has sunk, this one does.
            if count < -negative:
                heapq.heappush(queue, (-count, pair))
            continue
        merges.append(pair)
        for changed in known.merge(pair):
            heapq.heappush(queue, (-known.counts[changed], changed))
    return merges


def _merged(symbols: list[str], pair: Pair) -> list[str]:
    """Symbols of a word with a pair merged from left to right."""
    merged: list[str] = []
    i = 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged
