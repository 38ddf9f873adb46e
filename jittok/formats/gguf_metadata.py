"""The metadata of a GGUF file: named values of simple types, and arrays of them; tensors are not looked at.

Layout: the bytes ``GGUF``, a version, the number of tensors and that of values, and then the values: the name, a type and
what that says. Numbers are little-endian, strings have their length in bytes before them. Every count is compared with
the bytes that are left before anything is made of it, so that reading takes no more memory than the file has.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from jittok.errors import FormatError, UnsupportedError

_BOOL, _STRING, _ARRAY = 7, 8, 9
#: Types of numbers as NumPy has them; a truth value is a byte.
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"), 1: np.dtype("<i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), 4: np.dtype("<u4"),
    5: np.dtype("<i4"), 6: np.dtype("<f4"), _BOOL: np.dtype("<u1"), 10: np.dtype("<u8"), 11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}  # fmt: skip
#: The least bytes that a value takes: an empty name, a type and one byte.
_LEAST_VALUE = 13
_REMEDY = "get the file again from where it came from"


class Metadata:
    """The values of a GGUF file that someone asked for.

    Parameters
    ----------
    data
        The file, or as much of it as holds the metadata: bytes or a memory map.
    where
        Its name, for messages.
    wanted
        Names, or with a star at the end what names begin with; other values are passed over.

    Raises
    ------
    FormatError
        It is cut short, or not well-formed; the message names the value and the place.
    UnsupportedError
        It is of a version that llama.cpp does not read either, or big-endian.
    """

    def __init__(self, data: Any, where: str, wanted: Collection[str]) -> None:
        self.where = where
        self._data = data
        self._end = len(data)
        self._at = 0
        self._place = "the header"
        self._values: dict[str, tuple[int, Any]] = {}
        names = {name for name in wanted if not name.endswith("*")}
        beginnings = tuple(name[:-1] for name in wanted if name.endswith("*"))
        if self._take(4) != b"GGUF":
            self._fail("expected the bytes GGUF")
        version = self._number("<I")
        if version & 0xFFFF == 0 and version:
            raise UnsupportedError(f"{where}: a big-endian GGUF file; convert it to little-endian (gguf_convert_endian)")
        if version not in (2, 3):
            raise UnsupportedError(f"{where}: a GGUF file of version {version}; versions 2 and 3 are read")
        self._number("<q")  # of tensors, which come after the values
        count = self._number("<q")
        if not 0 <= count <= (self._end - self._at) // _LEAST_VALUE:
            self._fail(f"{count} values, but {self._end - self._at} bytes are left")
        seen: set[str] = set()
        for number in range(count):
            self._place = f"the name of value {number}"
            name = self._string().decode("utf-8", "replace")
            self._place = f"the value {name!r}"
            if name in seen:
                self._fail("it comes twice")
            seen.add(name)
            kind = self._number("<I")
            is_wanted = name in names or name.startswith(beginnings)
            value = self._value(kind, is_wanted)
            if is_wanted:
                self._values[name] = kind, value

    # ------------------------------------------------------------------------------------------------ values

    def __contains__(self, name: str) -> bool:
        """Return whether there is a value of this name."""
        return name in self._values

    def string(self, name: str, default: str | None = None) -> str:
        """Return a string; `default`, if given, where there is no such value."""
        kind, value = self._given(name, default is not None)
        if kind < 0:
            assert default is not None
            return default
        if kind != _STRING:
            self._wrong(name, "a string")
        return self.text(value, name)

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value, or `default`."""
        kind, value = self._given(name, True)
        if kind < 0:
            return default
        if kind != _BOOL:
            self._wrong(name, "a truth value")
        return bool(value)

    def number(self, name: str) -> int | None:
        """Return a whole number, or None."""
        kind, value = self._given(name, True)
        if kind < 0:
            return None
        if kind not in _NUMBERS or kind == _BOOL or _NUMBERS[kind].kind == "f":
            self._wrong(name, "a whole number")
        return int(value)

    def strings(self, name: str) -> list[bytes]:
        """Return an array of strings, which must be there, as bytes up to the first NUL, as in C."""
        kind, value = self._given(name, False)
        if kind != _ARRAY or not isinstance(value, list):
            self._wrong(name, "an array of strings")
        return [string if b"\0" not in string else string[: string.index(b"\0")] for string in value]

    def numbers(self, name: str, kinds: str, least: int = 0) -> NDArray[Any] | None:
        """Return an array of numbers, or None.

        Parameters
        ----------
        name
            Its name.
        kinds
            What its type may be, as NumPy calls it: ``"i4 f4"``.
        least
            As many elements must be there.
        """
        kind, value = self._given(name, True)
        if kind < 0:
            return None
        if kind != _ARRAY or isinstance(value, list) or value.dtype.str[1:] not in kinds.split():
            self._wrong(name, f"an array of {' or '.join(kinds.split())}")
        if len(value) < least:
            raise FormatError(f"{self.where}: {name} has {len(value)} elements; expected one for each of {least} tokens")
        array: NDArray[Any] = value
        return array

    def text(self, value: bytes, name: str) -> str:
        """Return a string that must be UTF-8."""
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise FormatError(f"{self.where}: {name}: expected UTF-8, got {value[:20]!r}; {_REMEDY}") from None

    def _given(self, name: str, may_lack: bool) -> tuple[int, Any]:
        if name not in self._values and not may_lack:
            raise FormatError(f"{self.where}: there is no value {name!r}; expected a GGUF file with a vocabulary")
        return self._values.get(name, (-1, None))

    def _wrong(self, name: str, expected: str) -> NoReturn:
        kind, value = self._values[name]
        if isinstance(value, list):
            got = "an array of strings"
        elif kind == _ARRAY:
            got = f"an array of {value.dtype.str[1:]}"
        else:
            got = "a string" if kind == _STRING else "a truth value" if kind == _BOOL else f"a number ({value})"
        raise FormatError(f"{self.where}: {name}: expected {expected}, got {got}")

    # ----------------------------------------------------------------------------------------------- reading

    def _fail(self, problem: str) -> NoReturn:
        raise FormatError(f"{self.where}: {self._place} (at byte {self._at}): {problem}; {_REMEDY}")

    def _take(self, size: int) -> bytes:
        if size > self._end - self._at:
            self._fail(f"{size} bytes are needed, but {self._end - self._at} are left: the file is cut short")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def _number(self, layout: str) -> int:
        size = struct.calcsize(layout)
        return int(struct.unpack(layout, self._take(size))[0])

    def _string(self) -> bytes:
        return self._take(self._number("<Q"))

    def _value(self, kind: int, is_wanted: bool) -> Any:
        if kind == _STRING:
            return self._string()
        if kind in _NUMBERS:
            return np.frombuffer(self._take(_NUMBERS[kind].itemsize), _NUMBERS[kind])[0]
        if kind != _ARRAY:
            self._fail(f"a value of the type {kind}, which is not known")
        inner, count = self._number("<I"), self._number("<Q")
        if inner == _STRING:
            return self._array_of_strings(count, is_wanted)
        if inner not in _NUMBERS:
            self._fail(f"an array of the type {inner}, which is not known")
        size = count * _NUMBERS[inner].itemsize
        if not is_wanted and size <= self._end - self._at:
            self._at += size
            return None
        return np.frombuffer(self._take(size), _NUMBERS[inner])

    def _array_of_strings(self, count: int, is_wanted: bool) -> list[bytes]:
        if count > (self._end - self._at) // 8:
            self._fail(f"{count} strings are said to be there, but {self._end - self._at} bytes are left")
        data, at, end = self._data, self._at, self._end
        length_of = struct.Struct("<Q").unpack_from
        found = []
        for number in range(count):
            begin = at + 8
            if begin <= end:
                at = begin + length_of(data, at)[0]
            if begin > end or at > end:
                self._at = min(begin, end)
                self._fail(f"string {number} ends beyond the end of the file: the file is cut short")
            if is_wanted:
                found.append(data[begin:at])
        self._at = at
        return found
