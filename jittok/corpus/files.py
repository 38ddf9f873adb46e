"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jittok.errors import OutputError

#: Bytes of the header of a .npy file, wide enough for any shape: a multiple of 64 before the data.
_HEADER_SIZE = 128
_BUFFER = 1 << 20


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
        try:
            self.stream: BinaryIO = open(self.temporary, "wb", buffering=_BUFFER)
        except OSError as error:
            raise output_error(path, error) from error

    def write(self, content: Any) -> None:
        """Add bytes, or the bytes of an array."""
        try:
            self.stream.write(content)
        except OSError as error:
            raise output_error(self.path, error) from error

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
        """Name, size and SHA-256 of the completed temporary file."""
        digest = hashlib.sha256()
        try:
            with open(self.temporary, "rb", buffering=0) as file:
                while content := file.read(_BUFFER):
                    digest.update(content)
            size = self.temporary.stat().st_size
        except OSError as error:
            raise output_error(self.path, error) from error
        return {"file": self.path.name, "bytes": size, "sha256": digest.hexdigest()}


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
        self.write(np.ascontiguousarray(items, self.dtype).reshape(-1).view(np.uint8).data)
        self.length += items.size

    def close(self) -> None:
        """Complete the temporary file on disk."""
        if self._npy:
            shape = (self.length,) if self._columns is None else (self.length // self._columns, self._columns)
            try:
                self.stream.seek(0)
            except OSError as error:
                raise output_error(self.path, error) from error
            self.write(npy_header(self.dtype, shape))
        super().close()


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
        " writable and has room."
    )
