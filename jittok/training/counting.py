"""Count words on threads, in bounded memory: tables that grow or go to disk as sorted runs, and merging of runs."""

from __future__ import annotations

import bisect
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok._jit import mask_code
from jittok.build.plan import WordSplit
from jittok.build.split_runs import find_runs
from jittok.encodings import whole_number
from jittok.engine import MUCH_TEXT, PARALLEL_BYTES, segments_of
from jittok.memory import zeros
from jittok.tables import N_MASKS, read_only
from jittok.training.array_file import read_arrays, write_arrays
from jittok.training.progress import Progress
from jittok.training.texts import TextBatch

#: Bits of the number of slots of a new table, for short and for long words; and bytes of these.
_SLOT_BITS, _LONG_BITS, _KEPT = 15, 12, 1 << 18
#: Chunks of about 1,920 codepoints in a call of the kernel: some tenths of a second.
_MOST_CHUNKS = 1 << 13
#: Bytes for each word while a table is sorted, about.
_SORT_BYTES = 64
_RUN = "jittok run of words"
#: Least bytes of each run that are merged at a time.
_LEAST_PART = 1 << 16

T = TypeVar("T")


def checked_memory_limit(memory_limit: object) -> int | None:
    """A number of bytes, or None for no limit.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        It is something else, or less than 1.
    """
    return None if memory_limit is None else whole_number("memory_limit", memory_limit, 1)


class Words(NamedTuple):
    """Words sorted by their bytes, all different, and their counts; see :class:`jittok.WordCounts`."""

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]

    def part(self, first: int, last: int) -> Words:
        """The words `first` to `last` (exclusive), without copying."""
        return Words(self.data, self.indptr[first : last + 1], self.counts[first:last])

    def word(self, i: int) -> bytes:
        """Word `i`."""
        return self.data[int(self.indptr[i]) : int(self.indptr[i + 1])].tobytes()


NO_WORDS = Words(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64))


# ----------------------------------------------------------------------------------------------------- counting


class Counting:
    """Counts the words of texts.

    Parameters
    ----------
    split
        What makes words of texts.
    n_threads
        At most so many threads.
    memory_limit
        Bytes that tables may take, those for sorting included; None: as many as there are.
    folder
        For temporary files.
    """

    def __init__(self, split: WordSplit, n_threads: int, memory_limit: int | None, folder: Path) -> None:
        self._split = split
        self._n_threads = n_threads
        self._memory_limit = memory_limit
        self._folder = folder
        self._lock = threading.Lock()
        self._stopped = False
        self._n_runs = 0
        self._mask_code = 0
        self._has_mask_code = False
        self._bytes_seen = 0

    def run(self, batches: Iterator[TextBatch], progress: Progress) -> Words:
        """The words of all texts.

        Parameters
        ----------
        batches
            The texts.
        progress
            Is told of bytes.
        """
        some = list(islice(batches, 1))
        if sum(int(batch.indptr[-1] - batch.indptr[0]) for batch in some) < PARALLEL_BYTES:
            some += islice(batches, 1)
        n_bytes = sum(int(batch.indptr[-1] - batch.indptr[0]) for batch in some)
        n_threads = self._n_threads if len(some) == 2 or n_bytes >= PARALLEL_BYTES else 1
        source = _pieces(chain(some, batches))
        runs: list[Words | Path] = []
        if n_threads == 1:
            runs += self._work(source, progress, None if self._memory_limit is None else self._memory_limit)
        else:
            limit = None if self._memory_limit is None else self._memory_limit // n_threads
            runs += [run for part in self._run_threads(source, progress, n_threads, limit) for run in part]
        in_memory = [run for run in runs if isinstance(run, Words)]
        if len(in_memory) == len(runs):
            return merged(in_memory)
        assert self._memory_limit is not None
        return merged_by_parts([load_run(run) if isinstance(run, Path) else run for run in runs], self._memory_limit,
                               self._folder)  # fmt: skip

    def _run_threads(
        self, source: Iterator[TextBatch], progress: Progress, n_threads: int, limit: int | None
    ) -> list[list[Words | Path]]:
        results: list[list[Words | Path]] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(self._work(source, progress, limit))
            except BaseException as error:
                errors.append(error)
                self._stopped = True

        threads = [threading.Thread(target=work, name="jittok-count", daemon=True) for _ in range(n_threads)]
        try:
            with self._lock:  # the first would read on, and the others begin that much later
                for thread in threads:
                    thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)  # in turns, so that Ctrl-C is noticed everywhere
        finally:
            self._stopped = True
        if errors:
            raise errors[0]
        return results

    def _work(self, source: Iterator[TextBatch], progress: Progress, limit: int | None) -> list[Words | Path]:
        """What one thread does: count pieces until there are no more."""
        table = _Table(self._split, limit)
        runs: list[Words | Path] = []
        while not self._stopped:
            with self._lock:
                batch = next(source, None)
                if batch is None:
                    break
                n_bytes = int(batch.indptr[-1] - batch.indptr[0])
                self._bytes_seen += n_bytes
                progress.advance(n_bytes)
                table.chunk.code[0] = self._code()
            segments = segments_of(self._split, batch.data, batch.indptr)
            while not table.count(*segments):
                runs.append(self._save(table.take()))
        runs.append(table.take())
        return runs

    def _code(self) -> int:
        """Address of the split's machine code, which is worth making for much text."""
        may_compile = self._bytes_seen >= MUCH_TEXT
        if not self._has_mask_code and (self._mask_code == 0 or may_compile):
            self._mask_code = mask_code(self._split.last_split, may_compile, find_runs)
            self._has_mask_code = may_compile
        return self._mask_code

    def _save(self, words: Words) -> Path:
        with self._lock:
            path = self._folder / f"run-{self._n_runs}"
            self._n_runs += 1
        save_run(words, path)
        return path


def load_run(path: Path) -> Words:
    """Words that were written to a temporary file, mapped into memory."""
    _, arrays = read_arrays(path, _RUN, 1)
    return Words(**arrays)


def _pieces(batches: Iterable[TextBatch]) -> Iterator[TextBatch]:
    """Batches cut into pieces of a size that threads take in turns."""
    for data, indptr in batches:
        n = len(indptr) - 1
        first = 0
        while first < n:
            last = n
            if int(indptr[n] - indptr[first]) > 2 * PARALLEL_BYTES:
                last = int(np.searchsorted(indptr, indptr[first] + PARALLEL_BYTES, side="left"))
                last = min(max(last, first + 1), n)
            yield TextBatch(data, indptr[first : last + 1])
            first = last


class _Table:
    """The table of one thread."""

    def __init__(self, split: WordSplit, limit: int | None) -> None:
        from jittok.kernels.split import new_chunk
        from jittok.kernels.word_counting import new_count_scratch, new_word_table

        self._split = split
        self._limit = limit
        self.chunk = new_chunk(int(split.last_split.numbers[N_MASKS]))
        self._scratch = new_count_scratch()
        self._bits = _SLOT_BITS, _LONG_BITS, _KEPT
        self._table = new_word_table(*self._bits)
        self._segments: Any = None  # those that are being counted

    def count(self, data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]) -> bool:
        """Count the words of segments; False if the table is to be emptied before this goes on with the same segments."""
        from jittok.kernels.split import POSITION, SEGMENT
        from jittok.kernels.word_cache import NEEDED
        from jittok.kernels.word_counting import MORE_ROOM, PAUSED, count_segments

        if not len(start):
            return True
        state = self.chunk.state
        if self._segments is not start:
            self._segments = start
            state[:] = 0
            state[SEGMENT] = 0
            state[POSITION] = start[0]
        split = self._split.last_split
        while True:
            status = count_segments(split, data, start, end, self.chunk, self._table, self._scratch, _MOST_CHUNKS)
            if status == MORE_ROOM:
                if not self._grow(int(state[NEEDED])):
                    return False
            elif status != PAUSED:
                break
        self._segments = None
        return True

    def _grow(self, needed: int) -> bool:
        """Make room where the table is full, and `needed` bytes for a long word; False if memory does not allow it."""
        from jittok.kernels.split import CHUNK
        from jittok.kernels.word_cache import CHUNK_BYTES, SLOT_WORDS
        from jittok.kernels.word_counting import KEPT_USED, LONG_USED, USED, move_words

        used, long_used, kept_used = (int(self._table.counters[i]) for i in (USED, LONG_USED, KEPT_USED))
        slot_bits, long_bits, kept = self._bits
        table = self._table
        # Four times as many places while the table is small: moving words costs little in all.
        if used + CHUNK > 1 << (slot_bits - 1):
            slot_bits += 2 if slot_bits < 17 else 1
        if long_used + CHUNK // 8 > 1 << (long_bits - 1):
            long_bits += 2 if long_bits < 16 else 1
        if kept_used + max(needed, CHUNK_BYTES) > kept:
            kept = max(2 * kept, kept_used + max(needed, CHUNK_BYTES))
        size = (32 << slot_bits) + (32 << long_bits) + kept
        sorting = _SORT_BYTES * (used + long_used) + 32 * used + 2 * kept_used
        if self._limit is not None and size + max(sorting, size // 2) > self._limit and used + long_used > 1:
            return False
        before, self._bits = self._bits, (slot_bits, long_bits, kept)
        if slot_bits != before[0]:
            table = table._replace(slots=zeros(SLOT_WORDS << slot_bits, np.uint64))
        if long_bits != before[1]:
            table = table._replace(long_slots=zeros(SLOT_WORDS << long_bits, np.uint64))
        if kept != before[2]:
            table = table._replace(kept=zeros(kept, np.uint8))
            table.kept[:kept_used] = self._table.kept[:kept_used]
        move_words(self._table, table)
        self._table = table
        return True

    def take(self) -> Words:
        """All words so far; the table is empty afterwards, and small."""
        from jittok.kernels.word_counting import (
            BLANKS,
            KEPT_USED,
            LONG_USED,
            USED,
            list_words,
            new_word_table,
            sort_words,
        )

        table = self._table
        used, long_used, kept_used = (int(table.counters[i]) for i in (USED, LONG_USED, KEPT_USED))
        n = used + long_used
        if n == 0:
            return NO_WORDS
        out = np.empty(18 * used + kept_used + 2 * long_used, np.uint8)
        start, size, counts = (np.empty(n, np.int64) for _ in range(3))
        prefix = np.empty(n, np.uint64)
        n = int(list_words(table, BLANKS.index(self._split.blanks), out, start, size, counts, prefix))
        self._bits = _SLOT_BITS, _LONG_BITS, _KEPT
        self._table = new_word_table(*self._bits)
        order = np.argsort(prefix[:n])
        data = np.empty(int(size[:n].sum()), np.uint8)
        indptr = np.empty(n + 1, np.int64)
        out_counts = np.empty(n, np.int64)
        n = int(sort_words(out, start, size, counts, prefix, order, np.empty(n, np.int64), data, indptr, out_counts))
        return _shortened(Words(data, indptr, out_counts), n)


# ------------------------------------------------------------------------------------------------------ merging


def _shortened(words: Words, n: int) -> Words:
    """The first `n` words, without the memory that is left over if that is much."""
    used = int(words.indptr[n])
    if n > len(words.counts) * 3 // 4:
        return Words(words.data[:used], words.indptr[: n + 1], words.counts[:n])
    return Words(words.data[:used].copy(), words.indptr[: n + 1].copy(), words.counts[:n].copy())


def merged(runs: Sequence[Words]) -> Words:
    """The words of several runs together, in memory.

    Parameters
    ----------
    runs
        Sorted words. Nothing is copied if there is one only.
    """
    waiting = deque(runs or [NO_WORDS])
    while len(waiting) > 1:
        waiting.append(_merged_pair(waiting.popleft(), waiting.popleft()))
    return waiting[0]


def _merged_pair(one: Words, other: Words) -> Words:
    from jittok.kernels.word_counting import merge_words

    n = len(one.counts) + len(other.counts)
    n_bytes = sum(int(words.indptr[-1] - words.indptr[0]) for words in (one, other))
    out = Words(np.empty(n_bytes, np.uint8), np.empty(n + 1, np.int64), np.empty(n, np.int64))
    first, second = (Words(*(read_only(array) for array in words)) for words in (one, other))
    size = merge_words(
        first.data, first.indptr, first.counts, second.data, second.indptr, second.counts, out.data, out.indptr, out.counts
    )
    return _shortened(out, int(size))


def sorted_words(data: NDArray[np.uint8], indptr: NDArray[np.int64], counts: NDArray[np.int64]) -> Words:
    """Words in the order of their bytes, equal ones counted together.

    Parameters
    ----------
    data, indptr, counts
        uint8[m], int64[n + 1], int64[n], in any order.
    """
    from jittok.kernels.word_counting import sort_words

    n = len(counts)
    start, size = indptr[:-1].copy(), np.diff(indptr)
    prefix = np.zeros(n, np.uint64)
    for i in range(8):
        prefix <<= np.uint64(8)
        within = size > i
        prefix[within] |= data[start[within] + i]
    order = np.argsort(prefix)
    out = Words(np.empty(int(indptr[-1]), np.uint8), np.empty(n + 1, np.int64), np.empty(n, np.int64))
    n = int(sort_words(data, start, size, counts.copy(), prefix, order, np.empty(n, np.int64), *out))
    return _shortened(out, n)


def save_run(words: Words, path: Path) -> None:
    """Write sorted words to a temporary file, for :func:`load_run`."""
    write_arrays(path, _RUN, 1, {}, words._asdict(), durable=False)


def merged_by_parts(runs: Sequence[Words], memory_limit: int, folder: Path, spare: int = 0) -> Words:
    """The words of several runs together, mapped from a file; it takes little memory to make it.

    Parameters
    ----------
    runs
        Sorted words.
    memory_limit
        Bytes to use, about.
    folder
        For temporary files. The result may be used after it is gone, where the system lets open files be removed.
    spare
        Bytes behind those of the words.
    """
    names = ("counts", "indptr", "data")
    paths = {name: folder / f"merged-{name}" for name in names}
    n_words = n_bytes = 0
    with open(paths["counts"], "wb") as counts, open(paths["indptr"], "wb") as indptr, open(paths["data"], "wb") as data:
        indptr.write(np.zeros(1, "<i8").tobytes())
        for part in _merged_parts(runs, max(memory_limit // (8 * max(len(runs), 1)), _LEAST_PART)):
            counts.write(part.counts.astype("<i8", copy=False).data)
            indptr.write((part.indptr[1:] + n_bytes).astype("<i8", copy=False).data)
            data.write(part.data.data)
            n_words += len(part.counts)
            n_bytes += len(part.data)
        data.write(bytes(spare))
    mapped = [
        _mapped(paths[name], dtype, n)
        for name, dtype, n in (("data", "u1", n_bytes + spare), ("indptr", "<i8", n_words + 1), ("counts", "<i8", n_words))
    ]
    return Words(*mapped)


def _mapped(path: Path, dtype: str, n: int) -> NDArray[Any]:
    """A file as an array."""
    if n == 0:  # which cannot be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, "r", shape=(n,)))


def _merged_parts(runs: Sequence[Words], part_bytes: int) -> Iterator[Words]:
    """Merged words in order, made of about so many bytes of each run at a time."""
    at = [0] * len(runs)
    while True:
        ends = []
        bounds = []
        for run, first in zip(runs, at, strict=True):
            n = len(run.counts)
            # A word costs its bytes, and 16 bytes more.
            last = int(np.searchsorted(run.indptr, run.indptr[min(first, n)] + part_bytes // 2, side="left"))
            last = min(max(last, first + 1), first + part_bytes // 32, n)
            ends.append(last)
            if last < n:
                bounds.append(run.word(last - 1))
        if all(first == len(run.counts) for run, first in zip(runs, at, strict=True)):
            return
        parts = []
        for i, run in enumerate(runs):
            last = ends[i]
            if bounds:
                last = bisect.bisect_right(_Bytes(run), min(bounds), at[i], last)
            if last > at[i]:
                parts.append(run.part(at[i], last))
                at[i] = last
        yield merged(parts) if len(parts) != 1 else _own(parts[0])


def _own(words: Words) -> Words:
    """A copy whose words begin where its data does."""
    first, last = int(words.indptr[0]), int(words.indptr[-1])
    return Words(words.data[first:last].copy(), words.indptr - first, words.counts.copy())


class _Bytes(Sequence[bytes]):
    """Words as bytes, to search in."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def __len__(self) -> int:
        return len(self._words.counts)

    def __getitem__(self, i: Any) -> Any:
        return self._words.word(i)
