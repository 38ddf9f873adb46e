"""Files of documents, in blocks that are cut between documents.

A block is the two arrays that :meth:`Tokenizer.encode_batch` takes: the documents' bytes one after another,
and where each begins. Memory stays near the block size, whatever the size of the file, unless one document
is longer than a block: a document is always read whole.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from jittok.errors import FormatError, MissingDependencyError, MissingFileError

Separator = Literal["newline", "nul", "blank-line", "none-per-file"]

#: What the names of files end with that can be decompressed.
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
#: Bytes read at a time.
BLOCK_SIZE = 8 << 20

#: Blocks that are cut without a kernel, which need not be compiled then.
_SMALL = 1 << 16
_BYTES: dict[Separator, bytes] = {"newline": b"\n", "nul": b"\0"}
_BLANK_LINES = re.compile(rb"\n\r?\n(?:\r?\n)*")


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole documents of a file.

    Attributes
    ----------
    data
        uint8[n], the documents' UTF-8 bytes, separators left out unless they were to be kept.
    indptr
        int64[documents + 1]; document i is ``data[indptr[i]:indptr[i + 1]]``.
    raw
        The same part of the file as it is there.
    start
        Position of `raw` in the file, in bytes.
    """

    data: npt.NDArray[np.uint8]
    indptr: npt.NDArray[np.int64]
    raw: bytes
    start: int


def read_blocks(
    path: str,
    separator: Separator,
    block_size: int | None = None,
    *,
    keep_separators: bool = False,
    decompress: bool = False,
) -> Iterator[Block]:
    """Yield the documents of the file `path` (``-``: standard input), block by block.

    Parameters
    ----------
    path
        The file.
    separator
        ``newline`` and ``nul``: every line (NUL-terminated piece) is a document, empty ones too; a separator
        at the end of the file ends the last document and begins no other. ``blank-line``: documents are
        apart by one or more empty lines; empty documents do not exist. ``none-per-file``: the file is one
        document.
    block_size
        Bytes to read at a time; :data:`BLOCK_SIZE` by default.
    keep_separators
        Whether a document ends with the newline or NUL that ended it.
    decompress
        Whether a file whose name ends with .gz, .bz2, .xz or .zst is decompressed.

    Raises
    ------
    MissingFileError
        The file does not exist or cannot be read.
    FormatError
        It cannot be decompressed.
    MissingDependencyError
        Python has nothing installed that can decompress it.
    """
    block_size = block_size or BLOCK_SIZE
    try:
        if path == "-":
            yield from _blocks(sys.stdin.buffer, separator, block_size, keep_separators)
        else:
            with open_binary(path) if decompress else open(path, "rb") as file:
                yield from _blocks(file, separator, block_size, keep_separators)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise MissingFileError(
            f"cannot read {path!r}: {error.strerror}. Give the path of a text file, or - for standard input."
        ) from error


def open_binary(path: str) -> BinaryIO:
    """Open a file to read bytes, decompressed where its name ends with .gz, .bz2, .xz or .zst.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    MissingDependencyError
        Nothing is installed that can decompress it.
    OSError
        It cannot be opened.
    """
    stream: Any
    if path.endswith(".gz"):
        import gzip

        stream = gzip.open(path)
    elif path.endswith(".bz2"):
        import bz2

        stream = bz2.open(path)
    elif path.endswith(".xz"):
        import lzma

        stream = lzma.open(path)
    elif path.endswith(".zst"):
        stream = _open_zstandard(path)
    else:
        return open(path, "rb")
    return _Decompressed(stream, path)  # type: ignore[return-value]


def _open_zstandard(path: str) -> Any:
    """Open a .zst file with whatever there is: Python 3.14's own module, zstandard or pyarrow."""
    for name in ("compression.zstd", "zstandard", "pyarrow"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name == "pyarrow":
            return module.input_stream(path, compression="zstd")
        return module.open(path, "rb")
    raise MissingDependencyError(
        f"{path}: to read .zst files, install zstandard or pyarrow, or use Python 3.14; or decompress it first"
    )


class _Decompressed:
    """A stream whose errors name the file."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream, self._path = stream, path

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)  # type: ignore[no-any-return]
        except Exception as error:  # each module has classes of its own
            raise FormatError(f"{self._path}: cannot be decompressed: {error}; the file is damaged or truncated") from None

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> _Decompressed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _blocks(file: BinaryIO, separator: Separator, block_size: int, keep_separators: bool) -> Iterator[Block]:
    split = _SPLITS_THAT_KEEP.get(separator, _SPLITS[separator]) if keep_separators else _SPLITS[separator]
    pending = bytearray()  # begins at a document's first byte
    start = 0
    searched = 0
    while chunk := file.read(block_size):
        if separator in _BYTES:
            cut = chunk.rfind(_BYTES[separator]) + 1
            if cut:
                raw = b"".join((pending, memoryview(chunk)[:cut]))
                yield split(raw, start)
                start += len(raw)
                pending.clear()
            pending += memoryview(chunk)[cut:]
            continue
        pending += chunk
        cut = _last_cut(pending, searched) if separator == "blank-line" else 0
        # the tail of this search is repeated, as a separator can lie across two reads
        searched = max(0, len(pending) - 4)
        if cut:
            yield split(bytes(pending[:cut]), start)
            del pending[:cut]
            start += cut
            searched = 0
    if pending or separator == "none-per-file":
        yield split(bytes(pending), start)


def _last_cut(pending: bytearray, searched: int) -> int:
    """Where the last document of `pending` that a blank line ends does so, that line included; 0 if none does."""
    position = pending.rfind(b"\n\n", searched)
    other = pending.rfind(b"\n\r\n", searched)
    return max(position + 2 if position >= 0 else 0, other + 3 if other >= 0 else 0)


def _split_at_byte(value: int) -> Callable[[bytes, int], Block]:
    def split(raw: bytes, start: int) -> Block:
        everything = np.frombuffer(raw, np.uint8)
        ends = np.flatnonzero(everything == value)
        ended = raw.endswith(bytes([value]))
        count = len(ends) + (not ended)
        indptr = np.zeros(count + 1, np.int64)
        # each separator before a document's end is one byte that `data` does not have
        indptr[1 : len(ends) + 1] = ends - np.arange(len(ends))
        if not ended:
            indptr[-1] = len(raw) - len(ends)
        data = everything[everything != value]
        return Block(data, indptr, raw, start)

    return split


def _split_after_byte(value: int) -> Callable[[bytes, int], Block]:
    def split(raw: bytes, start: int) -> Block:
        data = np.frombuffer(raw, np.uint8)
        if len(data) < _SMALL:
            ends = np.flatnonzero(data == value) + 1
        else:
            from jittok.kernels.texts import find_ends

            ends = np.empty(len(data), np.int64)
            ends = ends[: find_ends(data, value, ends)]
        bounds = np.zeros(len(ends) + 1 + (not raw.endswith(bytes([value]))), np.int64)
        bounds[1 : len(ends) + 1] = ends
        bounds[-1] = len(raw)
        return Block(data, bounds, raw, start)

    return split


def _split_at_blank_lines(raw: bytes, start: int) -> Block:
    documents = [text for piece in _BLANK_LINES.split(raw) if (text := piece.strip(b"\r\n"))]
    return _block_of(documents, raw, start)


def _whole(raw: bytes, start: int) -> Block:
    return _block_of([raw], raw, start)


def _block_of(documents: list[bytes], raw: bytes, start: int) -> Block:
    indptr = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=indptr[1:])
    return Block(np.frombuffer(b"".join(documents), np.uint8), indptr, raw, start)


_SPLITS: dict[Separator, Callable[[bytes, int], Block]] = {
    "newline": _split_at_byte(0x0A),
    "nul": _split_at_byte(0x00),
    "blank-line": _split_at_blank_lines,
    "none-per-file": _whole,
}
_SPLITS_THAT_KEEP: dict[Separator, Callable[[bytes, int], Block]] = {
    "newline": _split_after_byte(0x0A),
    "nul": _split_after_byte(0x00),
}
