"""Files as streams of bytes, decompressed where they are compressed."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import FormatError, MissingDependencyError, MissingFileError

#: What the names of files end with that can be decompressed.
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
#: How the content of such files begins.
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
#: Bytes read at a time where they are dropped.
_STEP = 1 << 20


def compression_of(path: str) -> str:
    """The suffix of a compressed file's name, "" of another's.

    Parameters
    ----------
    path
        The file's name.
    """
    return next((suffix for suffix in COMPRESSED if path.endswith(suffix)), "")


class Stream:
    """Bytes of a file after decompression, whose errors name the file.

    Parameters
    ----------
    path
        The file; ``-`` is standard input, of which the first bytes say whether it is compressed.
    decompress
        Whether to decompress it.

    Raises
    ------
    MissingFileError
        The file cannot be opened.
    MissingDependencyError
        Nothing is installed that can decompress it.
    """

    def __init__(self, path: str, decompress: bool = True) -> None:
        self.path = path
        self._raw: Any = _open(path)
        self._is_file = path != "-"
        #: Bytes that were read, after decompression.
        self.count = 0
        self._again = b""  # what was given back
        suffix = compression_of(path) if self._is_file else self._compression_of_content()
        self.compression = suffix if decompress else ""
        self._stream: Any = _decompressed(self._raw, self.compression, path)

    def _compression_of_content(self) -> str:
        begin = self._raw.peek(8)
        return next((suffix for magic, suffix in _MAGIC.items() if begin.startswith(magic)), "")

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; b"" at the end.

        Raises
        ------
        FormatError
            The file cannot be decompressed.
        MissingFileError
            It cannot be read.
        """
        content: bytes
        if self._again and size != 0:
            content, self._again = (self._again, b"") if size < 0 else (self._again[:size], self._again[size:])
            self.count += len(content)
            return content + self.read() if size < 0 else content
        try:
            content = self._stream.read(size)
        except Exception as error:  # each module has classes of its own
            raise self._unreadable(error) from error
        self.count += len(content)
        return content

    def _unreadable(self, error: Exception) -> FormatError | MissingFileError:
        if not self.compression:
            return MissingFileError(f"cannot read {self.path!r}: {error}")
        return FormatError(f"{self.path}: cannot be decompressed: {error}; the file is damaged or truncated")

    def readinto(self, buffer: NDArray[np.uint8]) -> int:
        """Read the next bytes into an array, as many as it holds or fewer; return how many, 0 at the end.

        Raises
        ------
        FormatError, MissingFileError
            As :meth:`read`.
        """
        if self._again or not hasattr(self._stream, "readinto"):
            content = self.read(len(buffer))
            buffer[: len(content)] = np.frombuffer(content, np.uint8)
            return len(content)
        try:
            size = int(self._stream.readinto(buffer.data))
        except Exception as error:  # each module has classes of its own
            raise self._unreadable(error) from error
        self.count += size
        return size

    def give_back(self, content: bytes) -> None:
        """Have bytes that were read last be read again."""
        self._again = content + self._again
        self.count -= len(content)

    def skip(self, size: int) -> None:
        """Go `size` bytes on, or to the end."""
        again, self._again = self._again[:size], self._again[size:]
        self.count += len(again)
        size -= len(again)
        if self._is_file and not self.compression and self._raw.seekable():
            self._raw.seek(size, os.SEEK_CUR)
            self.count += size
            return
        while size > 0 and (dropped := self.read(min(size, _STEP))):
            size -= len(dropped)

    def position(self) -> int:
        """How many bytes of the file itself, which may be compressed, have been read; 0 where that is not known."""
        try:
            return self._raw.tell()  # type: ignore[no-any-return]
        except (OSError, ValueError):
            return 0

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._stream is not self._raw:
            self._stream.close()
        if self._is_file:
            self._raw.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _StandardInput(io.RawIOBase):
    """Standard input without the lock of ``sys.stdin``: a thread that waits for input may not keep Python from ending."""

    def __init__(self) -> None:
        try:
            self._file: Any = io.FileIO(sys.stdin.fileno(), closefd=False)
        except (AttributeError, OSError, ValueError):  # replaced by another object
            self._file = sys.stdin.buffer
        self._begin = b""

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        """The first bytes, which are read again."""
        self._begin = self.read(size)
        return self._begin

    def read(self, size: int = -1) -> bytes:
        """Read as many bytes as are wanted, unless the input ends."""
        parts = [self._begin[:size] if size >= 0 else self._begin]
        self._begin = self._begin[len(parts[0]) :]
        wanted = size - len(parts[0])
        while size < 0 or wanted > 0:
            part = self._file.read(min(wanted, _STEP) if size >= 0 else _STEP)
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _open(path: str) -> Any:
    if path == "-":
        return _StandardInput()
    try:
        return open(path, "rb")
    except OSError as error:
        raise MissingFileError(
            f"cannot read {path!r}: {error.strerror}. Give the path of a file, or - for standard input."
        ) from error


def _decompressed(raw: Any, suffix: str, path: str) -> Any:
    if suffix == ".gz":
        import gzip

        return gzip.GzipFile(fileobj=raw)
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2File(raw)
    if suffix == ".xz":
        import lzma

        return lzma.LZMAFile(raw)
    return _zstandard(raw, path) if suffix == ".zst" else raw


def _zstandard(raw: Any, path: str) -> Any:
    """Decompress with whatever there is: Python 3.14's own module, zstandard or pyarrow; several frames in a row too."""
    for name in ("compression.zstd", "zstandard", "pyarrow"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name == "compression.zstd":
            return module.ZstdFile(raw)
        if name == "zstandard":
            return module.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)
        return module.CompressedInputStream(module.PythonFile(raw, "r"), "zstd")
    raise MissingDependencyError(
        f"{path}: to read .zst files, install zstandard or pyarrow, or use Python 3.14; or decompress it first"
    )
