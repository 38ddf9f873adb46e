"""Files of arrays with a checksum: word counts, and checkpoints.

Eight bytes of MAGIC, the length of the header (uint64, little-endian), the header (JSON: ``kind``, ``version``,
``metadata``, and of each array its ``dtype``, ``shape`` and ``offset`` after the header), the arrays, each at a
multiple of eight bytes, and at the end the 32 bytes of the BLAKE2b checksum of all that. The same content gives the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import FormatError, MissingFileError, OutputError

MAGIC = b"jtarrays"
_DIGEST = 32
_MOST_HEADER_BYTES = 1 << 26
#: Bytes that are copied, or read for the checksum, at a time.
_PIECE = 1 << 22


def write_arrays(
    path: Path,
    kind: str,
    version: int,
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    durable: bool = True,
) -> None:
    """Write a file, which appears under its name only when it is complete.

    Parameters
    ----------
    path
        Where it goes.
    kind, version
        What it is.
    metadata
        JSON values.
    arrays
        By name.
    durable
        Whether it is on the disk when this returns; a temporary file need not be.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    stated: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        stated[name] = {"dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape), "offset": offset}
        offset += -(-array.nbytes // 8) * 8
    header = {"kind": kind, "version": version, "metadata": metadata, "arrays": stated}
    encoded = json.dumps(header, sort_keys=True, ensure_ascii=True).encode()
    encoded += b" " * (-len(encoded) % 8)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        digest = hashlib.blake2b(digest_size=_DIGEST)
        with open(handle, "wb") as file:

            def write(data: Any) -> int:
                digest.update(data)
                file.write(data)
                return len(data)

            write(MAGIC + len(encoded).to_bytes(8, "little") + encoded)
            for array in arrays.values():
                size = sum(write(piece) for piece in _bytes_of(array))
                write(bytes(-size % 8))
            file.write(digest.digest())
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _bytes_of(array: NDArray[Any]) -> Iterable[memoryview]:
    """The array's bytes, little-endian, in pieces."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    flat = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
    for first in range(0, len(flat), _PIECE):
        yield flat[first : first + _PIECE].data


def read_arrays(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a file that :func:`write_arrays` wrote: metadata, and arrays that are mapped into memory, read-only.

    Parameters
    ----------
    path
        The file.
    kind, version
        What it is expected to be.

    Raises
    ------
    MissingFileError
        It cannot be opened.
    FormatError
        It is something else, of another version, truncated or altered.
    """
    try:
        with open(path, "rb") as file:
            content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise FormatError(f"{path}: the file is empty; expected {kind}") from None
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    size = len(content)
    if size < len(MAGIC) + 8 + _DIGEST or content[: len(MAGIC)] != MAGIC:
        raise FormatError(f"{path}: this is no file of {kind}")
    end = size - _DIGEST
    digest = hashlib.blake2b(digest_size=_DIGEST)
    view = memoryview(content)
    for first in range(0, end, _PIECE):
        digest.update(view[first : min(first + _PIECE, end)])
    if digest.digest() != content[end:]:
        raise FormatError(f"{path}: the checksum does not fit: the file is truncated or was altered; make it anew")
    first = len(MAGIC) + 8
    length = int.from_bytes(content[len(MAGIC) : first], "little")
    try:
        if length > min(_MOST_HEADER_BYTES, end - first):
            raise ValueError("the header is too long")
        header = json.loads(content[first : first + length])
        if header["kind"] != kind:
            raise FormatError(f"{path}: this is a file of {header['kind']}, not of {kind}")
        if header["version"] != version:
            raise FormatError(
                f"{path}: version {header['version']} of {kind}, but this jittok reads version {version}; make it anew"
            )
        data = np.frombuffer(view, np.uint8)[first + length : end]
        arrays = {name: _array(data, entry) for name, entry in header["arrays"].items()}
        return dict(header["metadata"]), arrays
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: the header is wrong ({type(error).__name__}: {error}); make it anew") from None


def _array(data: NDArray[np.uint8], entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(str(entry["dtype"]))
    if dtype.kind not in "biuf":
        raise ValueError(f"an array of {dtype}")
    shape, offset = [int(n) for n in entry["shape"]], int(entry["offset"])
    n_bytes = dtype.itemsize
    for n in shape:
        n_bytes *= n
    if offset < 0 or min(shape, default=0) < 0 or offset + n_bytes > len(data):
        raise ValueError("an array lies outside of the file")
    array: NDArray[Any] = data[offset : offset + n_bytes].view(dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)
