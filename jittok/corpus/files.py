"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jittok.errors import OutputError

#: Bytes of the header of a .npy file, wide enough for any shape: a multiple of 64 before the data.
_HEADER_SIZE = 128
#: Of a file: larger parts go to the system as they are.
_BUFFER = 1 << 16
#: Bytes written at a time: what the checksum has read is still in the processor's cache.
_STEP = 1 << 18
#: Bytes after which the system is told to begin writing them to disk, so that little is left when a file is complete.
_AHEAD = 1 << 25


class OutputFile:
    """A file under a temporary name, until it is published.

    Parameters
    ----------
    path
        Its name when it is complete.

    Raises
    ------
    OutputError
        Here and in all methods: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.part")
        #: Bytes written, those of which the system knows that they are complete, and the CRC-32 of all.
        self.size = self._sent = self._checksum = 0
        try:
            self.stream: BinaryIO = open(self.temporary, "wb", buffering=_BUFFER)
        except OSError as error:
            raise output_error(path, error) from error

    def write(self, content: Any) -> int:
        """Add bytes, or the bytes of an array; return how many there are."""
        parts = memoryview(content).cast("B")
        try:
            for begin in range(0, len(parts), _STEP):
                part = parts[begin : begin + _STEP]
                self._checksum = zlib.crc32(part, self._checksum)
                self.stream.write(part)
            self.size += len(parts)
            if self.size - self._sent >= _AHEAD:
                self.stream.flush()
                send(self.stream.fileno(), self._sent, self.size - self._sent)
                self._sent = self.size
        except OSError as error:
            raise output_error(self.path, error) from error
        return len(parts)

    def replace_begin(self, content: bytes, old: bytes) -> None:
        """Write `content` over the first bytes, which are `old`."""
        rest = self.size - len(old)
        # the checksum of zeros in place of `old`, as it were, is what remains without it
        after = self._checksum ^ shifted_checksum(zlib.crc32(old), rest)
        try:
            self.stream.seek(0)
            self.stream.write(content)
            self.stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise output_error(self.path, error) from error
        self._checksum = shifted_checksum(zlib.crc32(content), rest) ^ after

    def close(self) -> None:
        """Complete the temporary file on disk."""
        try:
            self.stream.flush()
            os.fsync(self.stream.fileno())
            self.stream.close()
        except OSError as error:
            raise output_error(self.path, error) from error

    def publish(self) -> None:
        """Give the completed file its name."""
        try:
            os.replace(self.temporary, self.path)
        except OSError as error:
            raise output_error(self.path, error) from error

    def discard(self) -> None:
        """Remove what was written."""
        try:
            self.stream.close()
        except OSError:  # what is left to write has no room
            pass
        self.temporary.unlink(missing_ok=True)

    def about(self) -> dict[str, Any]:
        """Name, size and CRC-32 of the completed file."""
        return {"file": self.path.name, "bytes": self.size, "crc32": f"{self._checksum:08x}"}


class Sink:
    """An output file as pyarrow takes files to write to.

    Parameters
    ----------
    file
        It stays open.
    """

    closed = False
    mode = "wb"

    def __init__(self, file: OutputFile) -> None:
        self._file = file

    def write(self, content: Any) -> int:
        """Add bytes."""
        return self._file.write(content)

    def tell(self) -> int:
        """How many bytes there are."""
        return self._file.size

    def flush(self) -> None:
        """Nothing: the file is flushed when it is completed."""

    def close(self) -> None:
        """Nothing: who opened the file completes it."""

    def writable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """False."""
        return False

    def seekable(self) -> bool:
        """False."""
        return False


class ArrayFile(OutputFile):
    """An array, appended to part by part.

    Parameters
    ----------
    path
        The file to make.
    dtype
        Of the items; stored little-endian.
    npy
        Whether it is NumPy's format, or the items and nothing else.
    columns
        Length of the rows of an array of two dimensions, whose items come one row after another.
    """

    def __init__(self, path: Path, dtype: DTypeLike, npy: bool = True, columns: int | None = None) -> None:
        super().__init__(path)
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = 0
        self._npy, self._columns = npy, columns
        if npy:
            self.write(bytes(_HEADER_SIZE))

    def append(self, items: NDArray[Any]) -> None:
        """Add `items` at the end."""
        items = items.reshape(-1)
        if items.dtype == self.dtype and items.flags.c_contiguous:
            self.write(items.view(np.uint8).data)
        else:
            # converted in parts, whose memory is used again
            for begin in range(0, len(items), _STEP):
                self.write(items[begin : begin + _STEP].astype(self.dtype).view(np.uint8).data)
        self.length += len(items)

    def close(self) -> None:
        """Complete the temporary file on disk."""
        if self._npy:
            shape = (self.length,) if self._columns is None else (self.length // self._columns, self._columns)
            self.replace_begin(npy_header(self.dtype, shape), bytes(_HEADER_SIZE))
        super().close()


def send(descriptor: int, begin: int, size: int) -> None:
    """Have part of a file that is being written go to disk, without waiting for it, where the system can do that.

    Parameters
    ----------
    descriptor
        Of the file.
    begin, size
        Which bytes.
    """
    if hasattr(os, "posix_fadvise"):
        try:
            os.posix_fadvise(descriptor, begin, size, os.POSIX_FADV_DONTNEED)
        except OSError:  # a file system that takes no advice
            pass


def shifted_checksum(checksum: int, length: int) -> int:
    """What the CRC-32 of bytes adds to the CRC-32 of these and `length` more: ``crc(a + b) == shifted(crc(a)) ^ crc(b)``.

    Parameters
    ----------
    checksum
        Of the first bytes.
    length
        How many follow.
    """
    # Bits are coefficients of a polynomial, the highest power in the lowest bit: 1 << 31 is one, 1 << 23 is x to the
    # power of 8, which is a byte.
    power, square = 1 << 31, 1 << 23
    while length:
        if length & 1:
            power = _product(power, square)
        square = _product(square, square)
        length >>= 1
    return _product(power, checksum)


def _product(a: int, b: int) -> int:
    """The product of two polynomials, modulo that of CRC-32."""
    result = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            result ^= b
        b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
    return result


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Version 1.0 of the format: magic, version, header length, a dict literal padded with blanks, a line end.

    Parameters
    ----------
    dtype, shape
        Of the array.
    """
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    room = _HEADER_SIZE - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1).encode("latin-1") + b"\n"


def write_whole(path: Path, content: bytes) -> OutputFile:
    """Write a small file, and complete it under its temporary name.

    Parameters
    ----------
    path
        The file to make.
    content
        All of it.
    """
    file = OutputFile(path)
    try:
        file.write(content)
        file.close()
    except BaseException:
        file.discard()
        raise
    return file


def publish(files: Iterable[OutputFile]) -> None:
    """Give completed files their names, and make that last.

    Parameters
    ----------
    files
        Of one folder.
    """
    files = list(files)
    for file in files:
        file.publish()
    for folder in {file.path.parent for file in files}:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the system can do that.

    Parameters
    ----------
    folder
        The folder.
    """
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise output_error(folder, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it.

    Parameters
    ----------
    folder
        Its name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the directory {str(folder)!r}: {error.strerror}. Give another --out."
        ) from error


def output_error(path: Path, error: OSError) -> OutputError:
    """What to say where a file cannot be written.

    Parameters
    ----------
    path
        The file.
    error
        The system's error.
    """
    return OutputError(
        f"cannot write {str(path)!r}: {error.strerror or error}. Give a directory that exists or can be made, is"
        " writable and has room. What the manifest lists is complete, and the same command goes on from there."
    )
