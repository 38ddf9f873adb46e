"""Arrays that grow on disk.

A file is written under a temporary name and gets its own name when it is complete, so that a job that was
stopped leaves nothing that looks finished.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from jittok.cli.arguments import Format
from jittok.errors import OutputError

#: Bytes of the .npy header, wide enough for any length: the file is a multiple of 64 bytes before the data.
_HEADER_SIZE = 128


class ArrayWriter:
    """One one-dimensional array, appended to part by part.

    Parameters
    ----------
    path
        The file to make.
    dtype
        Of the items; stored little-endian.
    file_format
        ``npy``: NumPy's format. ``raw``: the items and nothing else.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, file_format: Format) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = 0
        self._npy = file_format == "npy"
        try:
            self._file: BinaryIO = open(self.temporary, "wb", buffering=1 << 20)
            if self._npy:
                self._file.write(bytes(_HEADER_SIZE))
        except OSError as error:
            raise _output_error(path, error) from error

    def append(self, items: npt.NDArray[Any]) -> None:
        """Add `items` at the end."""
        try:
            self._file.write(np.ascontiguousarray(items, self.dtype).view(np.uint8).data)
        except OSError as error:
            raise _output_error(self.path, error) from error
        self.length += len(items)

    def close(self) -> None:
        """Complete the temporary file on disk."""
        try:
            if self._npy:
                self._file.seek(0)
                self._file.write(_npy_header(self.dtype, self.length))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise _output_error(self.path, error) from error

    def publish(self) -> None:
        """Give the completed file its name."""
        try:
            os.replace(self.temporary, self.path)
        except OSError as error:
            raise _output_error(self.path, error) from error

    def discard(self) -> None:
        """Remove what was written."""
        self._file.close()
        self.temporary.unlink(missing_ok=True)


class TokenWriter:
    """The ids of one corpus file: ``<name>.ids`` and ``<name>.indptr``, int32 and int64.

    Use as a context manager: leaving it normally publishes the files, leaving it by an exception removes them.

    Parameters
    ----------
    directory, name
        Where, and the first part of the file names.
    file_format
        See :class:`ArrayWriter`. With ``raw``, ``<name>.json`` says what the other two hold.
    about
        Further facts for ``<name>.json``.
    """

    def __init__(self, directory: Path, name: str, file_format: Format, about: dict[str, Any]) -> None:
        self.ids_path, self.indptr_path, self.json_path = output_paths(directory, name, file_format)
        self.documents = 0
        self.tokens = 0
        self._about = about
        self._raw = file_format == "raw"
        self._ids = ArrayWriter(self.ids_path, np.int32, file_format)
        try:
            self._indptr = ArrayWriter(self.indptr_path, np.int64, file_format)
        except BaseException:
            self._ids.discard()
            raise

    def __enter__(self) -> TokenWriter:
        self._indptr.append(np.zeros(1, np.int64))
        return self

    def append(self, ids: npt.NDArray[np.int32], indptr: npt.NDArray[np.int64]) -> None:
        """Add one batch."""
        self._ids.append(ids)
        self._indptr.append(np.asarray(indptr[1:]) + self.tokens)
        self.tokens += len(ids)
        self.documents += len(indptr) - 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            self._ids.close()
            self._indptr.close()
            self._ids.publish()
            self._indptr.publish()
            if self._raw:
                self._write_json()
        except BaseException:
            self._discard()
            raise

    def _discard(self) -> None:
        self._ids.discard()
        self._indptr.discard()

    def _write_json(self) -> None:
        """Last, so that its presence says that the other two are complete."""
        arrays = {
            "ids": {"file": self.ids_path.name, "dtype": "int32", "byte_order": "little", "length": self.tokens},
            "indptr": {
                "file": self.indptr_path.name,
                "dtype": "int64",
                "byte_order": "little",
                "length": self.documents + 1,
            },
        }
        temporary = self.json_path.with_name(f".{self.json_path.name}.{os.getpid()}.part")
        try:
            temporary.write_text(json.dumps({**self._about, "arrays": arrays}, indent=2) + "\n", encoding="utf-8")
            os.replace(temporary, self.json_path)
        except OSError as error:
            raise _output_error(self.json_path, error) from error
        finally:
            temporary.unlink(missing_ok=True)


def output_paths(directory: Path, name: str, file_format: Format) -> tuple[Path, Path, Path]:
    """Return the paths of the ids, the row pointers and the description (``raw`` only)."""
    suffix = ".npy" if file_format == "npy" else ".bin"
    return directory / f"{name}.ids{suffix}", directory / f"{name}.indptr{suffix}", directory / f"{name}.json"


def _npy_header(dtype: np.dtype[Any], length: int) -> bytes:
    """Version 1.0 of the format: magic, version, header length, a dict literal padded with blanks, a line end."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    room = _HEADER_SIZE - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1).encode("latin-1") + b"\n"


def _output_error(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {str(path)!r}: {error.strerror or error}. Give a directory that exists or can be made, is"
        " writable and has room."
    )
