"""What callers pass as text, turned into the one form that kernels read: UTF-8 bytes and row pointers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError, TextError

Errors = Literal["strict", "replace"]
Surrogates = Literal["raise", "replace"]

#: Zero bytes that follow the text in buffers made here, so that kernels may load whole vectors.
SLACK = 64
_ZEROS = bytes(SLACK)
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")

# Below this many bytes CPython's own decoder validates: no kernel needs to be compiled for a short text.
_SMALL = 1 << 16


class Texts(NamedTuple):
    """Many texts as one buffer of valid UTF-8.

    Attributes
    ----------
    data
        uint8[>= indptr[-1]], read-only. Bytes from ``indptr[-1]`` on belong to no text.
    indptr
        int64[n + 1], rising. Text `i` is ``data[indptr[i]:indptr[i + 1]]``.
    has_slack
        True if at least :data:`SLACK` zero bytes follow the last text inside `data`.
    is_checked
        False if nobody has looked yet whether the bytes are valid; see :func:`check_texts`.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    has_slack: bool
    is_checked: bool = True


def text_from(
    text: object, *, errors: Errors = "strict", surrogates: Surrogates = "raise", validate: bool = True
) -> Texts:
    """Return one str or bytes object as :class:`Texts`.

    Parameters
    ----------
    text
        str, bytes, bytearray or memoryview.
    errors
        What invalid UTF-8 in bytes becomes: "strict" an error, "replace" U+FFFD as Python's decoder does.
    surrogates
        What a lone surrogate in a str becomes: "raise" an error, "replace" U+FFFD, with surrogate pairs
        joined to the character they stand for (as tiktoken does).
    validate
        False to keep bytes as they are, valid or not.

    Raises
    ------
    TextError
        Invalid UTF-8, or a lone surrogate.
    ArgumentTypeError
        Another type.
    """
    _check_policies(errors, surrogates)
    if isinstance(text, str):
        return _one(_encoded(text, 0, surrogates, single=True))
    if isinstance(text, bytes | bytearray | memoryview):
        return _one(bytes(text) if not validate else _checked(bytes(text), 0, errors, single=True))
    raise ArgumentTypeError(f"text: expected str or bytes, got {_type_name(text)}")


def texts_from(
    texts: object,
    *,
    errors: Errors = "strict",
    surrogates: Surrogates = "raise",
    first_number: int = 0,
    check: bool = True,
    validate: bool = True,
) -> Texts:
    """Return a collection of texts as :class:`Texts`.

    Parameters
    ----------
    texts
        An iterable of str or of bytes (list, tuple, generator, NumPy array, pandas or polars Series), a
        pyarrow string or binary array, chunked or not, or a pair ``(data, indptr)`` of NumPy arrays:
        UTF-8 bytes uint8[m] and row pointers int[n + 1]. Arrow and pairs are not copied.
    errors, surrogates
        As in :func:`text_from`.
    first_number
        What messages call the first text.
    check
        False to leave the bytes of pairs and Arrow unchecked where `errors` is "strict".
    validate
        False to keep all bytes as they are, valid or not.

    Raises
    ------
    TextError
        Invalid UTF-8 or a lone surrogate; the message names the text and the position.
    ArgumentTypeError
        `texts` is not a collection, or an item is neither str nor bytes; the message names its index.
    ArgumentError
        Row pointers that do not rise within the data, or nulls in an Arrow array.

    Notes
    -----
    A list of str costs about 0.15 us an item plus the copy of its bytes.
    """
    _check_policies(errors, surrogates)
    if not validate:
        errors, check = "strict", False
    if isinstance(texts, str | bytes | bytearray | memoryview):
        raise ArgumentTypeError(
            f"texts: expected a list of texts, got one {_type_name(texts)}; pass [text], or use encode()"
        )
    if isinstance(texts, Texts):
        return texts
    if isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(part, np.ndarray) for part in texts):
        return _from_pair(*texts, errors, check)
    module = type(texts).__module__
    if module.split(".")[0] == "pyarrow":
        return _from_arrow(texts, errors, check)
    if module.split(".")[0] == "polars" and hasattr(texts, "to_arrow"):
        return _from_arrow(texts.to_arrow(), errors, check)
    if texts is None or isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        raise ArgumentTypeError(f"texts: expected a list of str or bytes, got {_type_name(texts)}")
    if isinstance(texts, np.ndarray) and texts.ndim != 1:
        raise ArgumentError(f"texts: expected an array of one dimension, got {texts.ndim}")
    if hasattr(texts, "tolist"):
        texts = list(texts.tolist())  # NumPy and pandas: plain Python objects, one conversion for all
    sequence: list[Any] | tuple[Any, ...] = texts if isinstance(texts, list | tuple) else list(texts)
    return _from_sequence(sequence, errors, surrogates, first_number, validate)


# ------------------------------------------------------------------------------------------ Python objects


def _from_sequence(
    texts: list[Any] | tuple[Any, ...], errors: Errors, surrogates: Surrogates, first_number: int, validate: bool
) -> Texts:
    if not texts:
        return _joined([])
    if isinstance(texts[0], str):
        try:
            return _joined(list(map(str.encode, texts)))
        except TypeError:
            raise _wrong_item(texts, str, first_number) from None
        except UnicodeEncodeError:
            pass
        _check_items(texts, str, first_number)
        return _joined([_encoded(text, number, surrogates) for number, text in enumerate(texts, first_number)])
    if isinstance(texts[0], bytes | bytearray | memoryview):
        _check_items(texts, (bytes, bytearray, memoryview), first_number)
        joined = _joined([bytes(text) if isinstance(text, memoryview) else text for text in texts])
        return _validated(joined, errors) if validate else joined
    raise _wrong_item(texts, (str, bytes), first_number)


def _check_items(texts: Iterable[Any], expected: type | tuple[type, ...], first_number: int) -> None:
    if not all(map(isinstance, texts, repeat(expected))):
        raise _wrong_item(texts, expected, first_number)


def _wrong_item(
    texts: Iterable[Any], expected: type | tuple[type, ...], first_number: int
) -> ArgumentTypeError:
    for number, text in enumerate(texts, first_number):
        if not isinstance(text, expected):
            name = "bytes" if isinstance(expected, tuple) and str not in expected else "str"
            return ArgumentTypeError(
                f"texts[{number}]: expected {name}, got {_type_name(text)}"
                + (" (str and bytes cannot be mixed)" if isinstance(text, str | bytes) else "")
            )
    return ArgumentTypeError("texts: expected str or bytes")


def _encoded(text: str, number: int, surrogates: Surrogates, single: bool = False) -> bytes:
    """Return `text` as UTF-8, its lone surrogates dealt with."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if surrogates == "replace":
            # UTF-16 joins a high and a low surrogate into the character that they encode.
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
        place = "text" if single else f"texts[{number}]"
        raise TextError(
            f"{place}: lone surrogate U+{ord(text[error.start]):04X} at character {error.start}; it has no "
            "UTF-8 form. Remove it, or replace it by U+FFFD"
        ) from None


def _one(text: bytes) -> Texts:
    indptr = np.array([0, len(text)], dtype=np.int64)
    indptr.flags.writeable = False
    return Texts(np.frombuffer(text + _ZEROS, dtype=np.uint8), indptr, True)


def _joined(parts: list[bytes] | list[Any]) -> Texts:
    indptr = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=indptr[1:])
    data = np.frombuffer(b"".join([*parts, _ZEROS]), dtype=np.uint8)
    return Texts(data, _read_only(indptr), True)


# ------------------------------------------------------------------------------------------- bytes of others


def _from_pair(data: NDArray[Any], indptr: NDArray[Any], errors: Errors, check: bool) -> Texts:
    if data.dtype != np.uint8 or data.ndim != 1:
        raise ArgumentTypeError(f"data: expected uint8[m], got {data.dtype} of {data.ndim} dimensions")
    if indptr.dtype.kind not in "iu" or indptr.ndim != 1:
        raise ArgumentTypeError(f"indptr: expected int64[n + 1], got {indptr.dtype} of {indptr.ndim} dimensions")
    if not len(indptr):
        raise ArgumentError("indptr: expected n + 1 row pointers for n texts, got none")
    data = np.ascontiguousarray(data)
    # Widened first: differences of small or unsigned integers would wrap around.
    pointers = np.ascontiguousarray(indptr, dtype=np.int64)
    falls = np.flatnonzero(np.diff(pointers) < 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise ArgumentError(f"indptr: falls from {pointers[at - 1]} to {pointers[at]} at {at}")
    if pointers[0] < 0 or pointers[-1] > len(data):
        raise ArgumentError(f"indptr: runs from {pointers[0]} to {pointers[-1]}, but data has {len(data)} bytes")
    found = Texts(_read_only(data), _read_only(pointers), False, False)
    return _validated(found, errors) if check or errors != "strict" else found


def _from_arrow(array: Any, errors: Errors, check: bool) -> Texts:
    import pyarrow

    if isinstance(array, pyarrow.Scalar):
        raise ArgumentTypeError(f"texts: expected a list of texts, got one {_type_name(array)}")
    if not isinstance(array, pyarrow.Array | pyarrow.ChunkedArray):
        raise ArgumentTypeError(
            f"texts: expected a pyarrow string array, got {_type_name(array)}; pass one column"
        )
    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
        array = array.cast(kind)
    types = pyarrow.types
    simple = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    views = (getattr(types, "is_string_view", None), getattr(types, "is_binary_view", None))
    if any(check(kind) for check in views if check is not None):
        array = array.cast(pyarrow.large_binary() if types.is_binary_view(kind) else pyarrow.large_string())
    elif types.is_null(kind) and len(array) == 0:
        return _joined([])
    elif not any(check(kind) for check in simple):
        raise ArgumentTypeError(f"texts: expected an Arrow array of strings, got {kind}")
    if array.null_count:
        first = array.is_null().to_pylist().index(True)
        raise ArgumentError(
            f"texts[{first}] is null, and {array.null_count} in all; a null has no tokens. "
            "Use array.drop_null() or array.fill_null('')"
        )
    if isinstance(array, pyarrow.ChunkedArray):
        if array.num_chunks != 1:
            # 64-bit offsets, because all chunks together may pass 2 GB.
            wide = pyarrow.large_binary() if "binary" in str(array.type) else pyarrow.large_string()
            array = pyarrow.concat_arrays([pyarrow.array([], wide), *(chunk.cast(wide) for chunk in array.chunks)])
        else:
            array = array.chunk(0)
    _, offsets, values = array.buffers()
    if len(array) == 0 or offsets is None:
        return _joined([])
    width = np.int64 if "large" in str(array.type) else np.int32
    pointers = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    data = np.zeros(0, dtype=np.uint8) if values is None else np.frombuffer(values, dtype=np.uint8)
    return _from_pair(data, pointers, errors, check)


def arrow_chunks(array: Any) -> list[Texts] | None:
    """The chunks of a pyarrow ChunkedArray of texts without nulls, each in its own memory; None: it is something else.

    Their bytes are unchecked; see :func:`check_texts`.
    """
    if type(array).__module__.split(".")[0] != "pyarrow" or not hasattr(array, "chunks"):
        return None
    if array.null_count or array.num_chunks < 2:
        return None
    return [_from_arrow(chunk, "strict", False) for chunk in array.chunks]


def taken(parts: list[Texts], starts: NDArray[np.int64], first: int, last: int) -> Texts:
    """Texts `first` to `last` of several buffers as one; a view where they lie in one of them.

    Parameters
    ----------
    parts
        The buffers.
    starts : int64[n + 1]
        The number of the first text of each of them, and of all texts.
    first, last
        A range; it may be empty.
    """
    begin = min(int(np.searchsorted(starts, first, side="right")) - 1, len(parts) - 1)
    part = parts[begin]
    offset = int(starts[begin])
    if last <= int(starts[begin + 1]):
        return part._replace(indptr=part.indptr[first - offset : last - offset + 1])
    pieces, lengths = [], []
    while first < last:
        part, offset = parts[begin], int(starts[begin])
        to = min(last, int(starts[begin + 1]))
        indptr = part.indptr[first - offset : to - offset + 1]
        if to > first:
            pieces.append(part.data[int(indptr[0]) : int(indptr[-1])])
            lengths.append(np.diff(indptr))
        first, begin = to, begin + 1
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    data = np.concatenate([*pieces, np.zeros(SLACK, np.uint8)])
    return Texts(_read_only(data), _read_only(bounds), True, all(part.is_checked for part in parts))


def codepoints_below(data: NDArray[np.uint8]) -> int:
    """A number that all codepoints of valid UTF-8 are below, at most 0x110000: arrays of all of them fill slowly.

    Parameters
    ----------
    data
        uint8[m].
    """
    most = int(data.max(initial=0))
    if most < 0xE0:
        return 0x80 if most < 0x80 else 0x800
    return 0x10000 if most < 0xF0 else min((most - 0xEF) << 18, 0x110000)


def check_texts(texts: Texts, first_number: int) -> None:
    """Raise unless all bytes of `texts`, the first of which is number `first_number`, are valid UTF-8.

    Raises
    ------
    TextError
        They are not; the message names the text and the position.
    """
    _validated(texts, "strict", first_number)


def find_invalid(texts: Texts) -> int:
    """The number of the first of `texts` that is not valid UTF-8, or -1."""
    data, indptr = texts.data, texts.indptr
    if int(indptr[-1]) - int(indptr[0]) < _SMALL:
        return _first_invalid_small(data, indptr)
    return _first_invalid(data, indptr)


def decoded_bytewise(data: bytes) -> str:
    """Return UTF-8 as str; each byte that is in no well-formed character becomes U+FFFD.

    Parameters
    ----------
    data
        Any bytes.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ESCAPED_BYTE.sub("\ufffd", data.decode("utf-8", "surrogateescape"))


def _validated(texts: Texts, errors: Errors, first_number: int = 0) -> Texts:
    """Return `texts` if they are valid UTF-8, else raise or replace."""
    data, indptr = texts.data, texts.indptr
    number = find_invalid(texts)
    if number < 0:
        return texts._replace(is_checked=True)
    if errors == "replace":
        bounds = indptr.tolist()
        parts = [data[p:q].tobytes() for p, q in zip(bounds, bounds[1:], strict=False)]
        return _joined([part.decode("utf-8", "replace").encode() for part in parts])
    _checked(data[int(indptr[number]) : int(indptr[number + 1])].tobytes(), first_number + number, errors)
    raise AssertionError("unreachable: two UTF-8 decoders disagree")


def _first_invalid_small(data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> int:
    """Return the number of the first text that CPython cannot decode, or -1."""
    buffer = data.data
    bounds = indptr.tolist()
    for number, (begin, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        try:
            str(buffer[begin:end], "utf-8")
        except UnicodeDecodeError:
            return number
    return -1


def _first_invalid(data: NDArray[np.uint8], indptr: NDArray[np.int64]) -> int:
    """Return the number of the first text that is not valid UTF-8, or -1, in one pass over all bytes."""
    from .kernels.utf8 import find_invalid_utf8

    begin, end = int(indptr[0]), int(indptr[-1])
    position = int(find_invalid_utf8(data, begin, end))
    # Valid as a whole, each text is valid too unless a character lies across two of them.
    first, last = np.searchsorted(indptr, begin, side="right"), np.searchsorted(indptr, end if position < 0 else position)
    inner = indptr[first:last]
    torn = inner[(data[inner] & 0xC0) == 0x80]
    if len(torn):
        position = int(torn[0]) - 1  # a byte of the text that is cut off
    if position < 0:
        return -1
    return int(np.searchsorted(indptr, position, side="right")) - 1


def _checked(text: bytes, number: int, errors: Errors, single: bool = False) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if errors == "replace":
            return text.decode("utf-8", "replace").encode()
        place = "text" if single else f"texts[{number}]"
        raise TextError(
            f"{place}: invalid UTF-8 at byte {error.start} (0x{text[error.start]:02X}, {error.reason}); "
            "pass valid UTF-8, or errors='replace' to put U+FFFD there"
        ) from None
    return text


def _check_policies(errors: str, surrogates: str) -> None:
    if errors not in ("strict", "replace"):
        raise ArgumentError(f"errors={errors!r}: expected 'strict' or 'replace'")
    if surrogates not in ("raise", "replace"):
        raise ArgumentError(f"surrogates={surrogates!r}: expected 'raise' or 'replace'")


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _type_name(value: object) -> str:
    return "None" if value is None else type(value).__name__
