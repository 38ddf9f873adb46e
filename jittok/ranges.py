"""Documents shared out to threads: to each a range of its own, so that its ids are written one after another."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Chunk(NamedTuple):
    """Documents that are encoded at once."""

    number: int  #: of the range that they belong to
    first: int
    last: int  #: one more than the last of them
    in_order: bool  #: whether its thread took them, one after another, and did not come to help
    end: int  #: one more than the last of those that are still in the range, or were taken from its beginning


class Ranges:
    """Which documents each thread is to do next.

    A thread begins a range and does it a chunk at a time: ranges of the first half of the documents from the end to the
    beginning, the others from the beginning to the end, so that what becomes of them stands together from the start.
    When no range is left to begin, a thread takes chunks from the other side of what others have left. Chunks
    get smaller towards the end of the work, so that threads end together.

    Parameters
    ----------
    positions : int64[n + 1]
        Where each document begins, in bytes or about.
    n_ranges
        Number of ranges, of about the same size.
    chunk_bytes
        Size of a chunk.
    """

    def __init__(self, positions: NDArray[np.int64], n_ranges: int, chunk_bytes: int) -> None:
        n = len(positions) - 1
        self._positions = positions
        self._chunk_bytes = chunk_bytes
        begin, size = int(positions[0]), int(positions[-1] - positions[0])
        cuts = [int(np.searchsorted(positions, begin + size * i // n_ranges)) for i in range(1, n_ranges)]
        #: Range i is documents bounds[i] to bounds[i + 1].
        self.bounds = [0, *(min(cut, n) for cut in cuts), n]
        #: So many of the first ranges are done from the end to the beginning.
        self.n_backward = n_ranges // 2
        self._first, self._last = self.bounds[:-1], self.bounds[1:]
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of ranges."""
        return len(self._first)

    def size(self, first: int, last: int) -> int:
        """Bytes of documents, or about."""
        return int(self._positions[last] - self._positions[first])

    def chunks(self) -> Iterator[Chunk]:
        """What a thread is to do, until nothing is left; each document goes to one of those that ask."""
        for number in self._numbers:  # each number goes to one of them
            if number >= len(self):
                break
            while chunk := self._take(number, True):
                yield chunk
        while chunk := self._steal():
            yield chunk

    def drop(self, first: int) -> None:
        """Give out no document from `first` on any more."""
        with self._lock:
            self._last = [max(min(last, first), begin) for begin, last in zip(self._first, self._last, strict=True)]

    def _take(self, number: int, in_order: bool) -> Chunk | None:
        """The next chunk of a range, or that from its other side; None: nothing is left."""
        positions = self._positions
        with self._lock:
            first, last = self._first[number], self._last[number]
            if first >= last:
                return None
            size = self._chunk_size()
            if self.size(first, last) <= size + size // 2:
                self._first[number] = last
                return Chunk(number, first, last, in_order, last)
            if in_order == (number < self.n_backward):
                cut = int(np.searchsorted(positions, positions[last] - size, side="right")) - 1
                self._last[number] = cut
                return Chunk(number, cut, last, in_order, cut)
            cut = int(np.searchsorted(positions, positions[first] + size))
            self._first[number] = cut
            return Chunk(number, first, cut, in_order, last)

    def _chunk_size(self) -> int:
        """Size of the next chunk."""
        if len(self) == 1:
            return self._chunk_bytes
        left = sum(map(self.size, self._first, self._last))
        return min(max(left // (2 * len(self)), self._chunk_bytes // 8, 1), self._chunk_bytes)

    def _steal(self) -> Chunk | None:
        """A chunk from the other side of the range that has most left."""
        while True:
            pairs = list(enumerate(zip(self._first, self._last, strict=True)))
            left = [(self.size(first, last), number) for number, (first, last) in pairs if first < last]
            if not left:
                return None
            chunk = self._take(max(left)[1], False)
            if chunk is not None:  # else another thread was faster
                return chunk
