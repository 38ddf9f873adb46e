"""Learn byte-pair merges from words: the arrays around :mod:`jittok.kernels.train_bpe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.kernels import train_bpe as kernels
from jittok.kernels import train_wordpiece as likelihood
from jittok.tables import read_only
from jittok.token_columns import Columns
from jittok.training.workers import Workers

#: Places that a call of a kernel visits, about: some hundredths of a second.
SLICE = 1 << 20
#: Pairs, and events of a merge, that there is room for at first.
FIRST_PAIRS = 1 << 12
FIRST_EVENTS = 1 << 12
#: Pairs that a new symbol makes, about.
PAIRS_OF_SYMBOL = 8
#: Bytes of words that are worth a thread of their own.
PART_BYTES = 1 << 17
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
        At most so many for the first count of pairs; what is learned does not depend on it.
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
        cells, self._bounds, weights = _cells(words, self._least, self._workers)
        used = self._bounds[-1]
        if used > _LARGEST // 3:
            raise ArgumentError(
                f"the words have {used:,} letters in all, more than {_LARGEST // 3:,}; leave out rare words, or cut texts"
                " into shorter words by a pre-tokenizer"
            )
        self._used = used
        n = len(tokens)
        # No more merges than there are letters to merge.
        capacity = min(max(size, n), n + used) + 1
        numbers = np.zeros(kernels.N_NUMBERS, np.int64)
        numbers[kernels.SYMBOLS] = n
        numbers[kernels.TARGET] = min(size, _MOST)
        numbers[kernels.FLOOR] = min(max(rules.min_frequency, 1), _MOST)
        numbers[kernels.LONGEST] = min(rules.max_letters, UNLIMITED)
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
            places=np.empty(3 * used, np.int32),
            events=np.empty(2 * FIRST_EVENTS, np.int32),
            runs=np.empty(0, np.int32),
            tokens=kernels.Tokens(data, indptr, length, np.full(_power_of_two(2 * capacity), -1, np.int32)),
            stamps=np.zeros(4 * capacity, np.int32),
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
            if len(self._bounds) > 2:
                self._count_pairs_of_parts()
            else:
                self._count_pairs(after_slice)
            self._begin_queue()
            self._is_counted = True
        while True:
            if self._scores is None:
                status = kernels.learn_merges(self._training, self._prefix, SLICE)
            else:
                status = likelihood.learn_merges_by_likelihood(self._training, self._scores, self._prefix, SLICE)
            if status in (kernels.DONE, kernels.EXHAUSTED):
                return bool(status == kernels.DONE)
            if status == kernels.PAUSED:
                after_slice(self.size)
            else:
                self._grow(status)

    def _count_pairs(self, after_slice: Callable[[int], object]) -> None:
        table = np.full(1 << 14, -1, np.int32)
        while not self._is_placing:
            status = kernels.count_pairs(self._training, table, self._used, 4 * SLICE)
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
        while kernels.place_pairs(self._training, self._used, 4 * SLICE) != kernels.DONE:
            after_slice(self.size)

    def _count_pairs_of_parts(self) -> None:
        """The same on threads, each with a part of the cells. What is interrupted cannot go on."""
        training, workers = self._training, self._workers

        def count(part: int) -> tuple[kernels.Pairs, int]:
            numbers = training.numbers.copy()
            numbers[kernels.CELL_AT] = max(self._bounds[part], 1)
            own = training._replace(numbers=numbers, pairs=_no_pairs(FIRST_PAIRS))
            table = np.full(1 << 14, -1, np.int32)
            while not workers.is_stopped.is_set():
                status = kernels.count_pairs(own, table, self._bounds[part + 1], SLICE)
                if status == kernels.MORE_TABLE:
                    table = np.full(2 * len(table), -1, np.int32)
                elif status == kernels.MORE_PAIRS:
                    n = int(numbers[kernels.PAIRS])
                    own = own._replace(pairs=kernels.Pairs(*(_larger(array, n, 2 * n + 4) for array in own.pairs)))
                elif status == kernels.DONE:
                    break
            return own.pairs, int(numbers[kernels.PAIRS])

        parts = list(range(len(self._bounds) - 1))
        counted = list(workers.map(count, parts))
        total = sum(n for _, n in counted) + 1
        self._training = training = training._replace(
            pairs=_no_pairs(total), level=np.empty(total, np.int32), level_key=np.empty(total, np.uint64),
            links=np.empty(2 * total, np.int32),
        )
        number = [np.empty(n, np.int32) for _, n in counted]
        table = np.empty(_power_of_two(2 * total), np.int32)
        for (pairs, n), numbers in zip(counted, number, strict=True):
            table[:] = -1
            kernels.join_pairs(training, table, pairs, n, numbers)
        n_pairs = self._number(kernels.PAIRS)
        sizes = training.pairs.size[:n_pairs]
        begin = np.zeros(n_pairs + 1, np.int32)
        np.cumsum(sizes, out=begin[1:])
        training.numbers[kernels.PLACES] = begin[-1]
        training.pairs.begin[:n_pairs] = begin[:-1]
        following = [begin[:-1].copy()]
        for (pairs, n), numbers in zip(counted[:-1], number, strict=False):
            following.append(following[-1].copy())
            following[-1][numbers] += pairs.size[:n]

        def place(part: int) -> None:
            for first in range(max(self._bounds[part], 1), self._bounds[part + 1], SLICE):
                if not workers.is_stopped.is_set():
                    last = min(first + SLICE, self._bounds[part + 1])
                    kernels.place_part(training, first, last, number[part], following[part])

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
            likelihood.start_scores(self._training, self._scores, self._used)

    def _heap_size(self) -> int:
        """Room in a heap for all pairs and, several times, for those of a symbol."""
        return 4 * self._number(kernels.PAIRS) + 8 * len(self._training.chains) + 64

    def _grow(self, status: int) -> None:
        """Make the arrays larger that a kernel found too small."""
        training = self._training
        if status == kernels.MORE_PAIRS:
            used = self._number(kernels.PAIRS)
            # Most symbols make few pairs; what is not used takes no memory.
            size = 2 * used + PAIRS_OF_SYMBOL * len(training.tokens.length) + 4
            training = training._replace(
                pairs=kernels.Pairs(*(_larger(array, used, size) for array in training.pairs)),
                level=_larger(training.level, self._number(kernels.LEVEL_PAIRS), size),
                level_key=_larger(training.level_key, self._number(kernels.LEVEL_PAIRS), size),
                links=_larger(training.links, 2 * self._number(kernels.LINKED), 2 * size),
            )
        elif status == kernels.MORE_EVENTS:
            training = training._replace(events=np.empty(2 * len(training.events) + 64, np.int32))
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
        symbols = np.empty(self._used, np.int32)
        indptr, counts = np.empty(self._used + 1, np.int64), np.empty(self._used, np.int64)
        n = kernels.symbols_of_cells(
            self._training.cells, self._used, self._training.weights, self._least, symbols, indptr, counts
        )
        return Words(symbols[: int(indptr[n])], indptr[: n + 1], counts[:n])


def _cells(
    words: Words | Letters, least: int, workers: Workers
) -> tuple[NDArray[np.int32], list[int], NDArray[np.int64]]:
    """Words as cells, where the cells of each thread begin and end, and counts that are too large for cells."""
    counts = read_only(np.ascontiguousarray(words.counts, np.int64))
    is_large = counts > kernels.MOST_IN_CELL
    weights = np.zeros(1 + int(is_large.sum()), np.int64)
    indptr = read_only(words.indptr)
    if isinstance(words, Words):
        cells = np.empty(kernels.CELL * (len(words.symbols) + len(indptr)), np.int32)
        used = kernels.fill_cells_of_symbols(read_only(words.symbols), indptr, counts, least, cells, weights)
        return cells, [0, int(used)], weights
    data, symbols, n = read_only(words.data), read_only(words.symbols), len(counts)
    n_parts = min(workers.threads, int(indptr[-1]) // PART_BYTES)
    if n_parts < 2:
        firsts = [0, n]
    else:
        firsts = np.searchsorted(indptr, np.arange(n_parts + 1) * (int(indptr[-1]) / n_parts)).tolist()
        firsts[-1] = n
    # Room for a cell for each byte or codepoint, and one behind each word.
    bounds = [0]
    for first, last in zip(firsts, firsts[1:], strict=False):
        part = data[int(indptr[first]) : int(indptr[last])]
        letters = len(part) if words.byte_level or len(firsts) == 2 else int(np.count_nonzero((part & 0xC0) != 0x80))
        bounds.append(bounds[-1] + letters + last - first + 1)
    cells = np.empty(kernels.CELL * bounds[-1], np.int32)

    def fill(part: int) -> int:
        first, last = firsts[part : part + 2]
        own = cells[kernels.CELL * bounds[part] : kernels.CELL * bounds[part + 1]]
        used = int(
            kernels.fill_cells(
                data, indptr[first : last + 1], counts[first:last], int(words.byte_level), int(words.last_differs),
                symbols, least, own, weights, int(is_large[:first].sum()),
            )  # fmt: skip
        )
        if part < len(firsts) - 2:  # words that are left out leave room before the next part
            rest = own[kernels.CELL * used :].reshape(-1, kernels.CELL)
            rest[:, 0], rest[:, 1] = kernels.BOUNDARY, -1
        return used

    used = list(workers.map(fill, list(range(len(firsts) - 1))))[-1]
    bounds[-1] = bounds[-2] + used
    return cells, bounds, weights


def _no_pairs(capacity: int) -> kernels.Pairs:
    def numbers() -> NDArray[np.int32]:
        return np.empty(capacity, np.int32)

    return kernels.Pairs(numbers(), numbers(), np.empty(capacity, np.int64), numbers(), numbers(), numbers(), numbers())


def _larger(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """A copy of the first `used` items with room for `size`."""
    result = np.empty(max(size, len(array)), array.dtype)
    result[:used] = array[:used]
    return result


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()
