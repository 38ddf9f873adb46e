"""Where ids go: what threads write at once becomes one array, with little left to be done at the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.memory import Buffers, Idle, move_rows
from jittok.post_processing import Framing
from jittok.ranges import Chunk, Ranges
from jittok.threads import Task


class Output:
    """Ids of chunks one after another, and their spans and pre-token numbers where wanted.

    It grows, so that kernels write where the results stay; memory that nothing was written to costs nothing.

    Parameters
    ----------
    expected
        Ids that there will be, about; 0 where one chunk is all.
    spans, words
        What is wanted besides ids.
    buffers
        Where memory for the ids comes from; None: from nowhere in particular.

    Attributes
    ----------
    share
        Which part of all text the chunks done make, with the one at hand.
    """

    __slots__ = ("buffers", "expected", "ids", "share", "shown", "spans", "used", "words")

    def __init__(self, expected: int, spans: bool, words: bool, buffers: Buffers | None = None) -> None:
        self.used = 0
        self.buffers = buffers
        #: As in :class:`EncodedTexts`.
        self.shown: dict[int, str] = {}
        self.expected = expected
        self.share = 1.0
        self.ids = np.empty(0, np.int32)
        self.spans = np.empty((0, 2), np.int64) if spans else None
        self.words = np.empty(0, np.int32) if words else None

    def reserve(self, n: int) -> None:
        """Make room for at least `n` ids after those in use, and their pre-token numbers."""
        if self.used + n <= len(self.ids):
            return
        size = self._expected() + n
        self.ids = _larger(self.ids, self.used, size, self.buffers)
        if self.words is not None:
            self.words = _larger(self.words, self.used, size)

    def new_spans(self, first: int) -> NDArray[np.int64]:
        """The spans of the ids from `first` on, yet to be written."""
        assert self.spans is not None
        if self.used > len(self.spans):
            self.spans = _larger(self.spans, first, self._expected())
        return self.spans[first : self.used]

    def make_room(self, n: int, buffers: Buffers | None = None) -> None:
        """Allocate all arrays, which are empty, for `n` ids; those from `buffers` where it is given."""
        self.ids = np.empty(n, np.int32) if buffers is None else buffers.empty(n, np.int32)
        self.spans = None if self.spans is None else np.empty((n, 2), np.int64)
        self.words = None if self.words is None else np.empty(n, np.int32)

    def _expected(self) -> int:
        """How many ids there will be, as far as can be told."""
        if self.used == 0 or self.share >= 1:
            return max(self.expected, self.used)
        # Growing by a part of what is there keeps the cost linear whatever the share says.
        return max(int(self.used / self.share * 1.05), self.used * 5 // 4)

    def add(
        self,
        ids: NDArray[np.int32],
        spans: NDArray[np.int64] | None,
        words: NDArray[np.int32] | None,
        shown: dict[int, str] | None = None,
    ) -> None:
        """Append ids, and what else is wanted."""
        first, n = self.used, len(ids)
        if shown:
            self.shown.update((first + row, text) for row, text in shown.items())
        self.reserve(n)
        self.used += n
        self.ids[first : self.used] = ids
        if spans is not None:
            self.new_spans(first)[:] = spans
        if words is not None and self.words is not None:
            self.words[first : self.used] = words


class _Piece(NamedTuple):
    """Ids of neighbouring documents that are together already."""

    first: int  # these documents
    last: int
    output: Output
    at: int  # where they begin in that
    place: int  # and where in the arrays of all; -1: not in these
    is_backward: bool


class Outputs:
    """The outputs of ranges of documents, which threads write to, and at last that of all.

    Each range has a stretch of the same arrays. The ranges that are done backward are written to from the ends of
    theirs, so that the two in the middle meet from the start, and all others have to be moved only by what was
    too much room between. What does not fit any more has outputs of its own, and so have chunks that other threads
    took.

    Parameters
    ----------
    ranges
        The ranges.
    rooms
        Ids that there will be in each, about.
    spans, words
        What is wanted besides ids.
    buffers
        Where memory for the ids comes from.
    framing
        Special tokens put around the ids of each document, which goes without `spans` and `words`.
    """

    def __init__(
        self, ranges: Ranges, rooms: list[int], spans: bool, words: bool, buffers: Buffers, framing: Framing | None = None
    ) -> None:  # fmt: skip
        self._ranges = ranges
        self._wanted = spans, words
        self._buffers = buffers
        self._framing = framing
        self._all = Output(rooms[0] if len(rooms) == 1 else 0, spans, words, buffers)
        self._own = [self._all]
        #: Outputs that chunks are encoded to before their ids are copied: few, so that these are in a processor's cache.
        self._passing: Idle[Output] = Idle()
        self._apart: list[list[tuple[Chunk, Output]]] = [[] for _ in rooms]
        self._is_full = [False] * len(rooms)
        self._places = [0]
        self._given: list[NDArray[np.int32]] = []
        if len(rooms) > 1:
            # Stretches begin at cache lines, of which else two threads would write the same.
            rooms = [-(-room // 16) * 16 for room in rooms]
            self._places = [sum(rooms[:number]) for number in range(len(rooms))]
            self._all.make_room(sum(rooms), buffers)
            self._own = [self._part(place, room) for place, room in zip(self._places, rooms, strict=True)]
            self._given = [output.ids for output in self._own]

    def _part(self, place: int, room: int) -> Output:
        """An output that writes to a stretch of the arrays of all."""
        output = Output(room, *self._wanted, self._all.buffers)
        stretch = slice(place, place + room)
        output.ids = self._all.ids[stretch]
        output.spans = None if self._all.spans is None else self._all.spans[stretch]
        output.words = None if self._all.words is None else self._all.words[stretch]
        return output

    def of(self, chunk: Chunk, room: int) -> Output:
        """What the ids of a chunk are written to, for which there must be `room` at first; :meth:`put` takes it."""
        number = chunk.number
        own = self._own[number]
        if chunk.in_order and number >= self._ranges.n_backward and not self._is_full[number]:
            begin = self._ranges.bounds[number]
            own.share = self._ranges.size(begin, chunk.last) / max(self._ranges.size(begin, chunk.end), 1)
            is_last = number == len(self._own) - 1
            if self._framing is None and (is_last or own.used + room <= len(own.ids)):
                return own
        output = self._passing.take() or Output(0, *self._wanted, self._buffers)
        output.used = 0
        output.shown = {}
        return output

    def put(self, chunk: Chunk, output: Output, ends: NDArray[np.int64]) -> None:
        """Take the output of a chunk, and make `ends` those in the output of its range if it is added to that.

        For a range that is done backward, they count from the end of that, and are negative or 0.
        """
        number = chunk.number
        own = self._own[number]
        if output is own:
            return
        n = output.used if self._framing is None else self._framing.n_framed(ends)
        if chunk.in_order and not self._is_full[number]:
            if number == len(self._own) - 1:
                own.reserve(n)
            if own.used + n <= len(own.ids):
                if number < self._ranges.n_backward:
                    self._copy(output, ends, own, len(own.ids) - own.used - n, n, -own.used - n)
                else:
                    self._copy(output, ends, own, own.used, n, own.used)
                own.used += n
                self._passing.give(output)
                return
            self._is_full[number] = True
        if self._framing is not None:
            framed = Output(0, *self._wanted)
            framed.reserve(n)
            self._copy(output, ends, framed, 0, n, 0)
            framed.used = n
            self._passing.give(output)
            output = framed
        self._apart[number].append((chunk, output))

    def _copy(self, output: Output, ends: NDArray[np.int64], target: Output, at: int, n: int, first: int) -> None:
        """Write what becomes of a chunk's output, `n` ids, to a place of another; `first` is what `ends` count from then."""
        if self._framing is not None:
            from jittok.kernels.framing import frame_rows

            before, after, room, keeps_end = self._framing
            frame_rows(before, after, room, int(keeps_end), output.ids, ends, target.ids[at : at + n], first)
            return
        ends += first
        place = slice(at, at + n)
        target.ids[place] = output.ids[:n]
        if target.spans is not None and output.spans is not None:
            if at + n > len(target.spans):
                target.spans = _larger(target.spans, at, len(target.ids))
            target.spans[place] = output.spans[:n]
        if target.words is not None and output.words is not None:
            target.words[place] = output.words[:n]
        if output.shown:
            target.shown.update((first + row, text) for row, text in output.shown.items())

    def whole(self, ends: NDArray[np.int64], submit: Callable[..., Task] | None = None) -> Output:
        """The output of all documents, and `ends` as they are there, instead of those of each output.

        `submit` runs a function on another thread.
        """
        whole = self._all
        if len(self._own) == 1:
            return whole
        n_backward = self._ranges.n_backward
        pieces = [piece for number in range(len(self._own)) for piece in self._pieces(number)]
        middle = self._ranges.bounds[n_backward]
        begin = self._places[n_backward] - sum(piece.output.used for piece in pieces if piece.first < middle)
        size = sum(piece.output.used for piece in pieces)
        if begin < 0 or begin + size > len(whole.ids):
            begin = 0
            whole = Output(0, *self._wanted)
            whole.make_room(size)
            pieces = [piece._replace(place=-1) for piece in pieces]
        targets = list(accumulate((piece.output.used for piece in pieces), initial=begin))
        for piece in pieces:
            # Ids that outgrew their stretch have left it, but their spans may be there still, where others go now.
            spans = piece.output.spans
            if piece.place < 0 and spans is not None and np.may_share_memory(spans, whole.spans):
                piece.output.spans = spans[: piece.at + piece.output.used].copy()
        moves = [
            (to, piece.place, piece.output.used)
            for to, piece in zip(targets, pieces, strict=False)
            if piece.place >= 0
        ]  # fmt: skip
        # In this order none overwrites one that is not moved yet.
        to_end = [move for move in reversed(moves) if move[0] > move[1]]
        for move in (*to_end, *(move for move in moves if move[0] < move[1])):
            for array in (whole.ids, whole.spans, whole.words):
                if array is not None:
                    move_rows(array, *move, submit)
        for (to, end), piece in zip(pairwise(targets), pieces, strict=True):
            output, rows = piece.output, slice(piece.at, piece.at + piece.output.used)
            shift = (end if piece.is_backward else to) - begin
            ends[piece.first : piece.last] += shift
            whole.shown.update((shift + row, text) for row, text in output.shown.items())
            if piece.place < 0:
                whole.ids[to:end] = output.ids[rows]
                if whole.spans is not None and output.spans is not None:
                    whole.spans[to:end] = output.spans[rows]
                if whole.words is not None and output.words is not None:
                    whole.words[to:end] = output.words[rows]
        whole.ids = whole.ids[begin : begin + size]
        whole.spans = None if whole.spans is None else whole.spans[begin : begin + size]
        whole.words = None if whole.words is None else whole.words[begin : begin + size]
        whole.used = size
        return whole

    def _pieces(self, number: int) -> list[_Piece]:
        """The pieces of a range."""
        begin, end = self._ranges.bounds[number : number + 2]
        output, place = self._own[number], self._places[number]
        chunks = sorted(self._apart[number], key=lambda pair: pair[0].first)
        apart = [_Piece(chunk.first, chunk.last, other, 0, -1, False) for chunk, other in chunks]
        if number < self._ranges.n_backward:
            at = len(output.ids) - output.used
            return [*apart, _Piece(apart[-1].last if apart else begin, end, output, at, place + at, True)]
        place = place if output.ids is self._given[number] else -1
        return [_Piece(begin, apart[0].first if apart else end, output, 0, place, False), *apart]


def _larger(array: NDArray[Any], used: int, size: int, buffers: Buffers | None = None) -> NDArray[Any]:
    """A new array of that size, which begins with what is used of another one."""
    new = np.empty((size, *array.shape[1:]), array.dtype) if buffers is None else buffers.empty(size, array.dtype)
    new[:used] = array[:used]
    return new
