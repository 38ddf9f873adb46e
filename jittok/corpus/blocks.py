"""Documents of text files, in blocks that are cut between documents.

A block is the two arrays that :meth:`Tokenizer.encode_batch` takes: the documents' bytes one after another,
and where each begins. Memory stays near the block size, whatever the size of the file, unless one document
is longer than a block: a document is gathered whole, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from jittok.corpus.streams import Stream
from jittok.memory import Buffers
from jittok.tables import read_only

Part: TypeAlias = bytes | bytearray | memoryview
Separator = Literal["newline", "nul", "blank-line", "none-per-file"]

#: What to do about records that are too long.
LONGER = "--max-record allows longer ones, and --separator and --field say what a record is"
#: Bytes read at a time.
BLOCK_SIZE = 4 << 20
#: Bytes looked through at a time: what is made of them stays in the processor's cache.
_STEP = 1 << 18

#: Files are read in such parts where a kernel cuts them: what is read is still in the processor's cache when it does.
_PART = 1 << 18
#: Files from this size on are cut by a kernel, which need not be compiled for smaller ones.
_MUCH = 1 << 18
#: Bytes behind what is written at which whole blocks may be.
_SLACK = 64
_buffers = Buffers(1 << 26)
_MARKS: dict[str, bytes] = {"newline": b"\n", "nul": b"\0"}
_BLANK_LINES = re.compile(rb"\n\r?\n(?:\r?\n)*")


class Problem(NamedTuple):
    """A record that is no document.

    Attributes
    ----------
    number
        Of the record in its file, from 0; documents are counted with it.
    position
        Where it begins, in bytes of the decompressed file; of a table, its row.
    kind
        What is wrong, in a word or two: the same for all problems of a kind.
    reason
        What is wrong with this one.
    """

    number: int
    position: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole documents of a file.

    Attributes
    ----------
    data
        uint8[m], the documents' UTF-8 bytes, separators left out unless they were to be kept.
    indptr
        int64[documents + 1]; document i is ``data[indptr[i]:indptr[i + 1]]``.
    numbers
        int64[documents], rising: the number of each in the file, from 0.
    starts, ends
        int64[documents], where each begins in the file, in bytes, and where to go on after it.
    problems
        Records between them that are too long.
    """

    data: npt.NDArray[np.uint8]
    indptr: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    problems: tuple[Problem, ...] = ()


def read_blocks(
    path: str,
    separator: Separator | bytes,
    block_size: int | None = None,
    *,
    keep_separators: bool = False,
    decompress: bool = False,
    limit: int | None = None,
    position: int = 0,
    number: int = 0,
) -> Iterator[Block]:
    """Yield the documents of the file `path` (``-``: standard input), block by block.

    Parameters
    ----------
    path
        The file.
    separator
        ``newline`` and ``nul``, or any bytes: every line (NUL-terminated piece) is a document, empty ones too; a
        separator at the end of the file ends the last document and begins no other. ``blank-line``: documents are
        apart by one or more empty lines; empty documents do not exist. ``none-per-file``: the file is one
        document.
    block_size
        Bytes to read at a time; :data:`BLOCK_SIZE` by default.
    keep_separators
        Whether a document ends with the newline, NUL or bytes that ended it.
    decompress
        Whether a file whose name ends with .gz, .bz2, .xz or .zst is decompressed.
    limit
        Most bytes of a document. A longer one is passed over, without being held, and is a problem.
    position, number
        Where to begin: the end of a document, in bytes of the decompressed file, and the number of the next.

    Raises
    ------
    MissingFileError
        The file does not exist or cannot be read.
    FormatError
        It cannot be decompressed.
    MissingDependencyError
        Python has nothing installed that can decompress it.
    """
    with Stream(path, decompress) as stream:
        yield from blocks_of(stream, separator, block_size, keep_separators, limit, position, number)


def blocks_of(
    stream: Stream,
    separator: Separator | bytes,
    block_size: int | None = None,
    keep_separators: bool = False,
    limit: int | None = None,
    position: int = 0,
    number: int = 0,
) -> Iterator[Block]:
    """Yield the documents of an open file from `position` on; see :func:`read_blocks`.

    Parameters
    ----------
    stream
        At its beginning.
    separator, block_size, keep_separators, limit, position, number
        As there.
    """
    block_size = block_size or BLOCK_SIZE
    splitter = _splitter(separator, keep_separators)
    if splitter.is_whole and number:
        return
    stream.skip(position)
    pending = bytearray()  # begins at a document's first byte, unless `lost`
    if isinstance(splitter, _Marked) and splitter.is_byte and block_size >= _MUCH:
        begin = stream.read(_MUCH)
        if len(begin) == _MUCH:
            yield from _lines(stream, splitter.mark[0], block_size, limit, position, number, begin)
            return
        stream.give_back(begin)
    start = position  # of `pending`
    lost = -1  # where a document began that is too long to be held
    searched = 0
    while chunk := stream.read(block_size):
        head: bytes | bytearray = pending
        tail: bytes | bytearray = chunk
        if splitter.overlap:  # a separator may lie across both
            pending += chunk
            head, tail = b"", pending
        cut = splitter.last_cut(tail, searched if splitter.overlap else 0)
        if cut:
            first = 0
            problems: tuple[Problem, ...] = ()
            if lost >= 0:  # and `head` is empty
                first = splitter.first_cut(tail)
                cut = max(first, cut)
                problems = (_too_long(number, lost, limit),)
                number += 1
                lost = -1
            block = _limited(splitter.split(head, memoryview(tail)[first:cut], start + first, number), limit, problems)
            if len(block.numbers) or block.problems:
                number = _last_number(block) + 1
                yield block
            start += len(head) + cut
            pending = bytearray(memoryview(tail)[cut:])
        elif not splitter.overlap:
            pending += chunk
        searched = max(0, len(pending) - splitter.overlap)
        if lost >= 0 or (limit is not None and len(pending) > limit + splitter.overlap + 2):
            # the tail may hold the beginning of a separator
            lost = start if lost < 0 else lost
            start += searched
            del pending[:searched]
            searched = 0
    if lost >= 0:
        yield _with(_block_of(b"", [], start, number), slice(None), (_too_long(number, lost, limit),))
    elif pending or splitter.is_whole:
        block = _limited(splitter.split(b"", memoryview(pending), start, number), limit)
        if len(block.numbers) or block.problems:
            yield block


def _lines(
    stream: Stream, mark: int, block_size: int, limit: int | None, start: int, number: int, begin: bytes
) -> Iterator[Block]:
    """As :func:`blocks_of`, where a byte ends documents and does not belong to them, and `begin` has been read."""
    from jittok.kernels.texts import copy_lines

    part = np.empty(_PART, np.uint8)
    room = block_size + 2 * _PART + _SLACK
    out = _buffers.empty(room, np.uint8)
    ends = np.zeros(2 + block_size // 4 + _PART, np.int64)  # pages that are not used take no memory
    used = n = 0  # bytes of `out`, which begin at `start` of the file but for separators, and documents complete in it
    lost = -1  # where a document began that is too long to be held
    problems: tuple[Problem, ...] = ()
    got = 0
    while True:
        if begin:
            source, got, begin = np.frombuffer(begin[:_PART], np.uint8), min(len(begin), _PART), begin[_PART:]
        else:
            source, got = part, stream.readinto(part)
        if not got:
            break
        source = read_only(source)
        at = 0
        if lost >= 0:
            at = source[:got].tobytes().find(mark) + 1
            if not at:
                start += got
                continue
            start += at
            problems += (_too_long(number, lost, limit),)
            number, lost = number + 1, -1
        elif used + got + _SLACK > len(out) or n + got + 2 > len(ends):
            whole = int(ends[n])
            old, used = out[whole:used], used - whole
            if n:
                block = _block_of_lines(out, ends[: n + 1], number, start)
                yield _limited(block, limit, problems)
                start, number, n, problems = int(block.ends[-1]), number + n, 0, ()
            if limit is not None and used > limit:
                lost, start, used = start, start + used, 0
                out = _buffers.empty(room, np.uint8)
                begin = source[:got].tobytes() + begin
                continue
            out = _buffers.empty(max(room, 2 * used + got + _SLACK), np.uint8)
            out[:used] = old
        found = int(copy_lines(source, at, got, mark, out, used, ends[n + 1 :]))
        used += got - at - found
        n += found
    if lost >= 0:
        problems += (_too_long(number, lost, limit),)
        yield _with(_block_of(b"", [], start, number), slice(None), problems)
        return
    is_ended = used == ends[n]
    if not is_ended:
        n += 1
        ends[n] = used
    if n or problems:
        block = _block_of_lines(out, ends[: n + 1], number, start)
        if not is_ended:
            block.ends[-1] -= 1
        yield _limited(block, limit, problems)


def _block_of_lines(out: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], number: int, start: int) -> Block:
    """Documents that end at `ends`, each followed by one byte of the file."""
    data = out[: ends[-1]]
    data.flags.writeable = False
    rows = np.arange(len(ends))
    bounds = ends + rows + start
    return Block(data, ends.copy(), number + rows[:-1], bounds[:-1], bounds[1:])


def _too_long(number: int, position: int, limit: int | None) -> Problem:
    return Problem(number, position, "too long", f"longer than {limit:,} bytes; {LONGER}")


def _last_number(block: Block) -> int:
    last = int(block.numbers[-1]) if len(block.numbers) else -1
    return max(last, block.problems[-1].number if block.problems else -1)


def _limited(block: Block, limit: int | None, problems: tuple[Problem, ...] = ()) -> Block:
    """Return the block without documents that are too long, which become problems after `problems`."""
    if limit is None or len(block.data) <= limit:
        return block if not problems else _with(block, slice(None), problems)
    lengths = np.diff(block.indptr)
    long = np.flatnonzero(lengths > limit)
    if not len(long):
        return block if not problems else _with(block, slice(None), problems)
    found = tuple(_too_long(int(block.numbers[i]), int(block.starts[i]), limit) for i in long)
    return _with(block, lengths <= limit, problems + found)


def _with(block: Block, rows: Any, problems: tuple[Problem, ...]) -> Block:
    """Return some documents of a block, with problems."""
    lengths = np.diff(block.indptr)
    if isinstance(rows, slice):
        data, indptr = block.data, block.indptr
    else:
        data = block.data[np.repeat(rows, lengths)]
        indptr = np.zeros(int(rows.sum()) + 1, np.int64)
        np.cumsum(lengths[rows], out=indptr[1:])
    return Block(data, indptr, block.numbers[rows], block.starts[rows], block.ends[rows], problems)


# ---------------------------------------------------------------------------------------------------- separators


def _splitter(separator: Separator | bytes, keep: bool) -> _Marked | _BlankLines | _Whole:
    if separator == "blank-line":
        return _BlankLines()
    if separator == "none-per-file":
        return _Whole()
    return _Marked(separator if isinstance(separator, bytes) else _MARKS[separator], keep)


class _Marked:
    """Every document ends with some bytes, but for the last."""

    is_whole = False

    def __init__(self, mark: bytes, keep: bool) -> None:
        self._keep = keep
        self.mark, self.is_byte = mark, len(mark) == 1 and not keep
        # What has been seen has no separator, so the first one there is begins where the search goes on; if two may
        # overlap, the last one that counts is found from the first on.
        self._pattern = re.compile(re.escape(mark))
        self._may_overlap = any(mark[:n] == mark[-n:] for n in range(1, len(mark)))
        #: Bytes at the end of what was searched in which a separator may begin.
        self.overlap = len(mark) - 1

    def last_cut(self, pending: bytes | bytearray, searched: int) -> int:
        """Where the last document that is complete ends, with its separator; 0 if none is."""
        if self._may_overlap:
            return max((found.end() for found in self._pattern.finditer(pending, searched)), default=0)
        at = pending.rfind(self.mark, searched)
        return 0 if at < 0 else at + len(self.mark)

    def first_cut(self, pending: bytes | bytearray) -> int:
        """Where the first document ends, with its separator."""
        return pending.find(self.mark) + len(self.mark)

    def split(self, head: Part, tail: Part, start: int, number: int) -> Block:
        """The documents of two parts, which begin at `start` of the file; no separator ends in the first."""
        raw = b"".join((head, tail))
        mark = len(self.mark)
        cuts = self._cuts(raw)
        is_ended = len(cuts) > 0 and cuts[-1] == len(raw)
        bounds = np.zeros(len(cuts) + 1 + (len(raw) > 0 and not is_ended), np.int64)
        bounds[1 : len(cuts) + 1] = cuts
        bounds[-1] = len(raw)
        n = len(bounds) - 1
        data, indptr = np.frombuffer(raw, np.uint8), bounds
        if not self._keep:
            # each document before another is followed by a separator that `data` does not have
            indptr = bounds - mark * np.arange(n + 1)
            indptr[-1] = len(raw) - mark * len(cuts)
            data = np.frombuffer(raw.replace(self.mark, b""), np.uint8)
        return Block(data, indptr, number + np.arange(n), start + bounds[:-1], start + bounds[1:])

    def _cuts(self, raw: bytes) -> npt.NDArray[np.int64]:
        """Where separators end."""
        if len(self.mark) > 1:
            return np.array([found.end() for found in self._pattern.finditer(raw)], np.int64)
        data = np.frombuffer(raw, np.uint8)
        if len(raw) >= _MUCH:
            from jittok.kernels.texts import ends_of_lines

            ends = np.empty(len(raw), np.int64)  # what is not used takes no memory; counting would take longer
            return ends[: int(ends_of_lines(read_only(data), self.mark[0], ends))]
        parts = range(0, len(data), _STEP)
        found = [np.flatnonzero(data[begin : begin + _STEP] == self.mark[0]) + (begin + 1) for begin in parts]
        return np.concatenate(found) if found else np.zeros(0, np.int64)


class _BlankLines:
    """Documents are apart by empty lines."""

    is_whole = False
    overlap = 4

    def last_cut(self, pending: bytes | bytearray, searched: int) -> int:
        """Where the last document that a blank line ends does so, that line included; 0 if none does."""
        position = pending.rfind(b"\n\n", searched)
        other = pending.rfind(b"\n\r\n", searched)
        return max(position + 2 if position >= 0 else 0, other + 3 if other >= 0 else 0)

    def first_cut(self, pending: bytes | bytearray) -> int:
        """Where the first document ends."""
        found = _BLANK_LINES.search(pending)
        return found.end() if found else 0

    def split(self, head: Part, tail: Part, start: int, number: int) -> Block:
        """The documents of two parts."""
        raw = b"".join((head, tail))
        spans = []
        at = 0
        gaps = [found.span() for found in _BLANK_LINES.finditer(raw)]
        for end, following in [*gaps, (len(raw), len(raw))]:
            piece = raw[at:end]
            text = piece.strip(b"\r\n")
            if text:
                begin = at + len(piece) - len(piece.lstrip(b"\r\n"))
                spans.append((begin, begin + len(text)))
            at = following
        return _block_of(raw, spans, start, number)


class _Whole:
    """The file is one document."""

    is_whole = True
    overlap = 0

    def last_cut(self, pending: bytes | bytearray, searched: int) -> int:
        """0: no document is complete before the end."""
        return 0

    def first_cut(self, pending: bytes | bytearray) -> int:
        """0."""
        return 0

    def split(self, head: Part, tail: Part, start: int, number: int) -> Block:
        """The document."""
        raw = b"".join((head, tail))
        return _block_of(raw, [(0, len(raw))], start, number)


def _block_of(raw: bytes, spans: list[tuple[int, int]], start: int, number: int) -> Block:
    """Documents at some places of `raw`."""
    places = np.array(spans, np.int64).reshape(-1, 2)
    indptr = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(places[:, 1] - places[:, 0], out=indptr[1:])
    data = raw if spans == [(0, len(raw))] else b"".join(raw[begin:end] for begin, end in spans)
    numbers = number + np.arange(len(spans))
    return Block(np.frombuffer(data, np.uint8), indptr, numbers, start + places[:, 0], start + places[:, 1])
