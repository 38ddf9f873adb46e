"""Learn byte-pair merges from words: the arrays around :mod:`jittok.kernels.train_bpe`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import JIT_DISABLED
from jittok.errors import ArgumentError
from jittok.kernels import train_bpe as kernels
from jittok.kernels import train_wordpiece as likelihood
from jittok.memory import aligned_zeros
from jittok.tables import read_only
from jittok.threads import Helpers
from jittok.token_columns import Columns
from jittok.training.workers import Workers

#: Places that a call of a kernel visits, about: some hundredths of a second.
SLICE = 1 << 20
#: Pairs, and events of a merge, that there is room for at first.
FIRST_PAIRS = 1 << 12
FIRST_EVENTS = 1 << 12
#: Pairs that a new symbol makes, about.
PAIRS_OF_SYMBOL = 8
#: Bytes of words that are worth a thread of their own; most threads, as what is not divided costs more with each; and
#: words that stay together when they are divided: neighbours have much in common.
PART_BYTES = 1 << 17
MOST_PARTS = 4
WORD_BLOCK = 64
#: Pairs of a batch of merges, about.
JOINED = 1 << 17
#: Seconds to wait for a thread that does not run, and most of them for what to do.
NAP = 5e-5
LONG_NAP = 2e-3
#: Bytes of a token, about.
TOKEN_BYTES = 10
#: Counts below this have buckets, see :mod:`jittok.kernels.train_bpe`.
BUCKETS = 1 << 16
#: No limit of a token's letters.
UNLIMITED = 1 << 31
_LARGEST = (1 << 31) - 1
#: Of 64-bit numbers: no count is larger.
_MOST = (1 << 63) - 1


class Words(NamedTuple):
    """Words as symbols.

    Attributes
    ----------
    symbols
        int32[m], symbols of all words, one after another.
    indptr
        int64[n + 1], word `i` is ``symbols[indptr[i]:indptr[i + 1]]``.
    counts
        int64[n], how often each occurs.
    """

    symbols: NDArray[np.int32]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]


class Letters(NamedTuple):
    """Words as text, and which symbol each of their letters is.

    Attributes
    ----------
    data, indptr, counts
        Words in UTF-8, and how often each occurs.
    byte_level
        Whether letters are bytes, not codepoints.
    last_differs
        Whether the last letter of a word is another symbol than elsewhere.
    symbols
        int32[4, letters]; see :func:`jittok.kernels.train_bpe.fill_cells`.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    byte_level: bool
    last_differs: bool
    symbols: NDArray[np.int32]


class Rules(NamedTuple):
    """What restricts merges.

    Attributes
    ----------
    min_frequency
        Least count of a pair.
    max_letters
        Most letters of a token.
    prefix
        What tokens that continue a word begin with, in UTF-8: left out where a token is put behind another.
    by_likelihood
        Whether the next pair is that of the greatest count(ab) / (count(a) count(b)), not of the greatest count(ab).
    """

    min_frequency: int = 1
    max_letters: int = UNLIMITED
    prefix: bytes = b""
    by_likelihood: bool = False


class MergeLearner:
    """A vocabulary that grows by merges.

    Parameters
    ----------
    words
        What to learn from.
    tokens
        Strings of the symbols that there are, by id. All differ.
    lengths
        Letters of each.
    rules
        What restricts merges.
    size
        Number of tokens to have in the end.
    threads
        At most so many; what is learned does not depend on it.
    """

    def __init__(
        self,
        words: Words | Letters,
        tokens: Sequence[str],
        lengths: Sequence[int],
        rules: Rules,
        size: int,
        threads: int = 1,
    ) -> None:
        self._prefix = np.frombuffer(rules.prefix, np.uint8)
        # A word of one letter has no pairs, but counts for its letter's likelihood.
        self._least = 1 if rules.by_likelihood else 2
        self._workers = Workers(threads)
        # Scores are of the whole text.
        n_parts = 1 if rules.by_likelihood or isinstance(words, Words) else _number_of_parts(words, threads)
        cells, self._parts, weights = _cells(words, self._least, n_parts, self._workers)
        n_parts = len(self._parts)
        used = sum(end - begin for begin, end in self._parts)
        room = self._parts[-1][1]
        if room > _LARGEST // 3:
            raise ArgumentError(
                f"the words have {used:,} letters in all, more than {_LARGEST // 3:,}; leave out rare words, or cut texts"
                " into shorter words by a pre-tokenizer"
            )
        self._used = used
        n = len(tokens)
        # No more merges than there are letters to merge.
        capacity = min(max(size, n), n + used) + 1
        numbers = aligned_zeros(kernels.N_NUMBERS * n_parts, np.int64)
        rows = numbers.reshape(n_parts, kernels.N_NUMBERS)
        rows[:, kernels.PART_BITS] = n_parts.bit_length() - 1
        rows[:, kernels.LONGEST] = min(rules.max_letters, UNLIMITED)
        rows[:, kernels.STAMPS] = 4 * capacity
        rows[:, kernels.EVENTS] = 2 * FIRST_EVENTS
        rows[:, kernels.PLACES] = [3 * begin for begin, _ in self._parts]
        numbers[kernels.SYMBOLS] = n
        numbers[kernels.TARGET] = min(size, _MOST)
        numbers[kernels.FLOOR] = min(max(rules.min_frequency, 1), _MOST)
        numbers[kernels.PREFIX] = len(rules.prefix)
        numbers[kernels.CELL_AT] = 1
        strings = [token.encode("utf-8", "surrogatepass") for token in tokens]
        text = b"".join(strings)
        numbers[kernels.BYTES] = len(text)
        data = np.empty(len(text) + TOKEN_BYTES * (capacity - n) + kernels.SLACK, np.uint8)
        data[: len(text)] = np.frombuffer(text, np.uint8)
        indptr = np.zeros(capacity + 1, np.int64)
        np.cumsum(np.array([len(string) for string in strings], np.int64), out=indptr[1 : n + 1])
        length = np.empty(capacity, np.int32)
        length[:n] = lengths
        n_pairs = FIRST_PAIRS
        self._training = kernels.Training(
            numbers=numbers,
            cells=cells,
            weights=weights,
            pairs=_no_pairs(n_pairs),
            # All there ever are; memory that is not used is not taken.
            places=np.empty(3 * room, np.int32),
            events=np.empty(n_parts * 2 * FIRST_EVENTS, np.int32),
            runs=np.empty(0, np.int32),
            tokens=kernels.Tokens(data, indptr, length, np.full(_power_of_two(2 * capacity), -1, np.int32)),
            stamps=np.zeros(n_parts * 4 * capacity, np.int32),
            sides=np.zeros(2 * capacity, np.int32),
            batch=np.zeros(kernels.BATCHED * kernels.MOST_BATCH, np.int32),
            joined=np.full(JOINED if n_parts > 1 else 1, -1, np.int32),
            chains=np.full(2 * capacity, -1, np.int32),
            links=np.empty(2 * n_pairs, np.int32),
            buckets=np.full(BUCKETS, -1, np.int32),
            level=np.empty(n_pairs, np.int32),
            level_key=np.empty(n_pairs, np.uint64),
            heap_count=np.empty(0, np.int64),
            heap_pair=np.empty(0, np.int32),
            merges=np.empty(3 * (capacity - n + 64), np.int32),
        )
        kernels.fill_token_table(self._training.tokens, n)
        self._scores: likelihood.Scores | None = None
        if rules.by_likelihood:
            self._scores = likelihood.Scores(np.zeros(capacity, np.int64), np.empty(0, np.float64), np.empty(0, np.int32))
        self._is_placing = self._is_counted = False
        self._signals = aligned_zeros(kernels.SIGNAL * (n_parts + 1), np.int64)

    # ------------------------------------------------------------------------------------------------------- running

    def run(self, after_slice: Callable[[int], object] = lambda size: None) -> bool:
        """Learn merges until there are as many tokens as wanted, or no pair is left.

        Parameters
        ----------
        after_slice
            Called every few hundredths of a second, with the number of tokens. When it raises, nothing is lost: learning
            goes on with another call.

        Returns
        -------
        bool
            Whether there are as many tokens as wanted.
        """
        if not self._is_counted:
            if len(self._parts) > 1:
                self._count_pairs_of_parts()
            else:
                self._count_pairs(after_slice)
            self._begin_queue()
            self._is_counted = True
        # Without the JIT one thread would only wait for the other.
        helpers = None if len(self._parts) == 1 or JIT_DISABLED else Helpers(len(self._parts) - 1)
        while True:
            if self._scores is None:
                status = self._learn(helpers)
            else:
                status = likelihood.learn_merges_by_likelihood(self._training, self._scores, self._prefix, SLICE)
            if status in (kernels.DONE, kernels.EXHAUSTED):
                return bool(status == kernels.DONE)
            if status == kernels.PAUSED:
                after_slice(self.size)
            else:
                self._grow(status)

    def _learn(self, helpers: Helpers | None) -> int:
        """Learn merges by counts, for a while; what the kernel says."""
        training, signals = self._training, self._signals
        if helpers is None or self._number(kernels.NEXT_ALONE) > kernels.MOST_ALONE:
            return int(kernels.learn_merges(training, self._prefix, signals, SLICE))

        def help_with(part: int) -> None:
            done = kernels.MERGED_BATCH + kernels.SIGNAL * (part - 1)
            nap, last = NAP, -1
            while kernels.help_merges(training, signals, part) == kernels.PAUSED:
                nap = NAP if signals[done] != last else min(2 * nap, LONG_NAP)
                last = int(signals[done])
                time.sleep(nap)

        signals[kernels.STOPPED] = 0
        tasks = [helpers.submit(help_with, part) for part in range(1, len(self._parts))]
        try:
            while True:
                status = kernels.learn_merges(training, self._prefix, signals, SLICE)
                if status != kernels.WAITING:
                    return int(status)
                time.sleep(NAP)
        finally:
            signals[kernels.STOPPED] = 1
            for task in tasks:
                if not task.cancel():
                    task.wait()

    def _count_pairs(self, after_slice: Callable[[int], object]) -> None:
        table = np.full(1 << 14, -1, np.int32)
        used = self._parts[0][1]
        while not self._is_placing:
            status = kernels.count_pairs(self._training, table, used, 4 * SLICE)
            if status == kernels.DONE:
                self._training.numbers[kernels.CELL_AT] = 1
                self._is_placing = True
            elif status == kernels.PAUSED:
                after_slice(self.size)
            elif status == kernels.MORE_TABLE:
                table = np.full(2 * len(table), -1, np.int32)
            else:
                self._grow(status)
        del table
        while kernels.place_pairs(self._training, used, 4 * SLICE) != kernels.DONE:
            after_slice(self.size)

    def _count_pairs_of_parts(self) -> None:
        """The same on threads, each with a part of the cells. What is interrupted cannot go on."""
        training, workers = self._training, self._workers

        def count(part: int) -> tuple[kernels.Pairs, int]:
            numbers = training.numbers[: kernels.N_NUMBERS].copy()
            begin, end = self._parts[part]
            numbers[kernels.CELL_AT] = begin
            own = training._replace(numbers=numbers, pairs=_no_pairs(FIRST_PAIRS))
            table = np.full(1 << 14, -1, np.int32)
            while not workers.is_stopped.is_set():
                status = kernels.count_pairs(own, table, end, SLICE)
                if status == kernels.MORE_TABLE:
                    table = np.full(2 * len(table), -1, np.int32)
                elif status == kernels.MORE_PAIRS:
                    n = int(numbers[kernels.PAIRS])
                    own = own._replace(pairs=kernels.Pairs(*(_larger(array, n, 2 * n + 4) for array in own.pairs)))
                elif status == kernels.DONE:
                    break
            return own.pairs, int(numbers[kernels.PAIRS])

        parts = list(range(len(self._parts)))
        counted = list(workers.map(count, parts))
        table = np.full(_power_of_two(2 * sum(n for _, n in counted) + 2), -1, np.int32)
        most = max(n for _, n in counted) + kernels.BLOCK_MASK + 1  # blocks of all parts take turns
        size = len(parts) * most
        self._training = training = training._replace(
            pairs=_no_pairs(size), level=np.empty(size, np.int32), level_key=np.empty(size, np.uint64),
            links=np.empty(2 * size, np.int32),
        )
        for part, (pairs, n) in zip(parts, counted, strict=True):
            kernels.join_pairs(training, table, pairs, n, part)

        def place(part: int) -> None:
            begin, end = self._parts[part]
            for first in range(begin, end, SLICE):
                if not workers.is_stopped.is_set():
                    kernels.place_part(training, first, min(first + SLICE, end), part, int(first == begin))

        for _ in workers.map(place, parts):
            pass

    def _begin_queue(self) -> None:
        """Let all pairs wait."""
        heap = self._heap_size()
        self._training = self._training._replace(heap_count=np.empty(heap, np.int64), heap_pair=np.empty(heap, np.int32))
        if self._scores is None:
            kernels.start_queue(self._training)
        else:
            self._scores = self._scores._replace(heap_score=np.empty(heap, np.float64), heap_pair=np.empty(heap, np.int32))
            likelihood.start_scores(self._training, self._scores, self._parts[0][1])

    def _heap_size(self) -> int:
        """Room in a heap for all pairs and, several times, for those of a symbol."""
        return 4 * self._n_pairs() + 8 * len(self._training.chains) + 64

    def _grow(self, status: int) -> None:
        """Make the arrays larger that a kernel found too small."""
        training = self._training
        if status == kernels.MORE_PAIRS:
            used = min(self._n_pairs() if len(self._parts) == 1 else _LARGEST, len(training.level))
            # Most symbols make few pairs; what is not used takes no memory.
            blocks = len(self._parts) * (kernels.BLOCK_MASK + 1) if len(self._parts) > 1 else 4
            # A pair that comes up in two parts has two numbers.
            size = 2 * used + PAIRS_OF_SYMBOL * len(training.tokens.length) * (len(self._parts) + 1) // 2 + blocks
            training = training._replace(
                pairs=kernels.Pairs(*(_larger(array, used, size) for array in training.pairs)),
                level=_larger(training.level, self._number(kernels.LEVEL_PAIRS), size),
                level_key=_larger(training.level_key, self._number(kernels.LEVEL_PAIRS), size),
                links=_larger(training.links, 2 * used if self._number(kernels.LINKED) else 0, 2 * size),
            )
        elif status == kernels.MORE_EVENTS:
            size = 2 * self._number(kernels.EVENTS) + 64
            training.numbers[kernels.EVENTS :: kernels.N_NUMBERS] = size
            training = training._replace(events=np.empty(len(self._parts) * size, np.int32))
        elif status == kernels.MORE_JOINED:
            training = training._replace(joined=np.full(2 * len(training.joined), -1, np.int32))
        elif status == kernels.MORE_RUNS:
            used = kernels.RUN * self._number(kernels.RUNS)
            training = training._replace(runs=_larger(training.runs, used, 2 * len(training.runs) + 64 * kernels.RUN))
        elif status == kernels.MORE_MERGES:
            used = 3 * self._number(kernels.MERGES)
            training = training._replace(merges=_larger(training.merges, used, 2 * used + 192))
        elif status == kernels.MORE_BYTES:
            used = self._number(kernels.BYTES)
            longest = 2 * int(np.diff(training.tokens.indptr[: self.size + 1]).max())
            data = _larger(training.tokens.data, used, 2 * used + longest + kernels.SLACK)
            training = training._replace(tokens=training.tokens._replace(data=data))
        elif self._scores is not None:
            assert status == kernels.MORE_HEAP, status
            used, size = self._number(kernels.SCORED), self._heap_size()
            self._scores = self._scores._replace(
                heap_score=_larger(self._scores.heap_score, used, size),
                heap_pair=_larger(self._scores.heap_pair, used, size),
            )
        else:
            assert status == kernels.MORE_HEAP, status
            used = self._number(kernels.HEAP)
            size = 2 * used + self._heap_size()
            training = training._replace(
                heap_count=_larger(training.heap_count, used, size), heap_pair=_larger(training.heap_pair, used, size)
            )
        self._training = training

    # ------------------------------------------------------------------------------------------------------- results

    def _number(self, name: int) -> int:
        return int(self._training.numbers[name])

    def _n_pairs(self) -> int:
        return int(self._training.numbers[kernels.PAIRS :: kernels.N_NUMBERS].sum())

    @property
    def size(self) -> int:
        """Number of tokens by now."""
        return self._number(kernels.SYMBOLS)

    @property
    def merges(self) -> NDArray[np.int32]:
        """int32[merges, 3]: left, right and resulting token of each, in the order in which they were learned."""
        return self._training.merges[: 3 * self._number(kernels.MERGES)].reshape(-1, 3)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Letters of each token."""
        return self._training.tokens.length[: self.size]

    def columns(self) -> Columns:
        """The strings of all tokens."""
        tokens = self._training.tokens
        indptr = tokens.indptr[: self.size + 1].copy()
        return Columns(read_only(tokens.data[: int(indptr[-1])].copy()), read_only(indptr))

    @property
    def tokens(self) -> list[str]:
        """The strings of all tokens."""
        return self.columns().strings()

    def words(self) -> Words:
        """The words as they are by now: with these, and the tokens, learning can go on elsewhere."""
        parts = []
        for begin, end in self._parts:
            used = end - begin
            symbols = np.empty(used, np.int32)
            indptr, counts = np.empty(used + 1, np.int64), np.empty(used, np.int64)
            cells = self._training.cells[kernels.CELL * begin : kernels.CELL * end]
            n = kernels.symbols_of_cells(cells, used, self._training.weights, self._least, symbols, indptr, counts)
            parts.append(Words(symbols[: int(indptr[n])], indptr[: n + 1], counts[:n]))
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        indptr = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=indptr[1:])
        return Words(
            np.concatenate([part.symbols for part in parts]), indptr, np.concatenate([part.counts for part in parts])
        )


def _number_of_parts(words: Letters, threads: int) -> int:
    """Into how many parts to divide words, a power of two."""
    most = min(threads, MOST_PARTS, int(words.indptr[-1]) // PART_BYTES)
    return 1 << (max(most, 1).bit_length() - 1)


def _cells(
    words: Words | Letters, least: int, n_parts: int, workers: Workers
) -> tuple[NDArray[np.int32], list[tuple[int, int]], NDArray[np.int64]]:
    """Words as cells, where the cells of each part begin and end, and counts that are too large for cells."""
    counts = read_only(np.ascontiguousarray(words.counts, np.int64))
    is_large = counts > kernels.MOST_IN_CELL
    weights = np.zeros(1 + int(is_large.sum()), np.int64)
    indptr = read_only(words.indptr)
    if isinstance(words, Words):
        cells = np.empty(kernels.CELL * (len(words.symbols) + len(indptr)), np.int32)
        used = kernels.fill_cells_of_symbols(read_only(words.symbols), indptr, counts, least, cells, weights)
        return cells, [(0, int(used))], weights
    data, symbols, n = read_only(words.data), read_only(words.symbols), len(counts)
    # Blocks of words go to the parts in turn.
    firsts = np.append(np.arange(0, n, WORD_BLOCK), n)
    sizes = np.diff(indptr[firsts]) + np.diff(firsts)  # room for a cell for each byte, and one behind each word
    bounds, larges = [0], [0]
    for part in range(n_parts):
        bounds.append(bounds[-1] + int(sizes[part::n_parts].sum()) + 1)
        part_of = np.arange(n) // WORD_BLOCK % n_parts if len(weights) > 1 else None
        larges.append(larges[-1] + (0 if part_of is None else int(is_large[part_of == part].sum())))
    cells = np.empty(kernels.CELL * bounds[-1], np.int32)

    def fill(part: int) -> tuple[int, int]:
        own = cells[kernels.CELL * bounds[part] : kernels.CELL * bounds[part + 1]]
        used = kernels.fill_cells(
            data, indptr, counts, int(words.byte_level), int(words.last_differs), symbols, least, WORD_BLOCK, part,
            n_parts, own, weights, larges[part],
        )  # fmt: skip
        return bounds[part], bounds[part] + int(used)

    return cells, list(workers.map(fill, list(range(n_parts)))), weights


def _no_pairs(capacity: int) -> kernels.Pairs:
    def numbers() -> NDArray[np.int32]:
        return np.empty(capacity, np.int32)

    count = np.empty(capacity, np.int64)
    return kernels.Pairs(numbers(), numbers(), count, numbers(), numbers(), numbers(), numbers(), numbers())


def _larger(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """A copy of the first `used` items with room for `size`."""
    result = np.empty(max(size, len(array)), array.dtype)
    result[:used] = array[:used]
    return result


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()
