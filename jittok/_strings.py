"""Strings of this Python in memory, so that a kernel can read them (:mod:`jittok.kernels.strings`).

CPython keeps a string's characters inside the object. Where they are is found out by looking at strings whose
content is known, and the kernels are tried on such before they are used; where anything is not as expected
(another Python, a debug or free-threaded build), strings are encoded one by one.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok import _jit
from jittok.text import SLACK

#: Bytes that the array over all memory leaves out at its beginning: nothing can be there. A multiple of pages.
_FIRST = 1 << 12
_MEMORY_BITS = 47


#: With fewer strings, of fewer characters in all, encoding each is as fast, and no kernel has to be there.
_MANY = 4096
_MUCH = 1 << 17


class Strings:
    """Strings that become UTF-8 a part at a time.

    Attributes
    ----------
    items
        The strings; never changed.
    lengths
        int64[n + 1], characters before each.
    sizes
        int64[n + 1], most bytes of UTF-8 before each; None where kernels do not read these strings.
    addresses
        int64[n], where each is in memory; None likewise.
    """

    def __init__(
        self,
        items: list[str],
        lengths: NDArray[np.int64],
        sizes: NDArray[np.int64] | None = None,
        addresses: NDArray[np.int64] | None = None,
    ) -> None:
        self.items = items
        self.lengths = lengths
        self.sizes = sizes
        self.addresses = addresses
        self._of_thread = threading.local()

    def utf8(self, first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """UTF-8 of strings ``first <= i < last``, then :data:`SLACK` zeros, and row pointers.

        None if kernels do not read these strings, or one of them has a surrogate. The thread's next call writes to
        the same memory.
        """
        access = _access()
        if self.sizes is None or self.addresses is None or access is None:
            return None
        from jittok.kernels.strings import copy_strings

        size = int(self.sizes[last] - self.sizes[first]) + SLACK
        data = getattr(self._of_thread, "data", None)
        if data is None or len(data) < size:
            data = self._of_thread.data = np.empty(size + size // 8, np.uint8)
        indptr = np.empty(last - first + 1, np.int64)
        if copy_strings(*access, self.addresses[first:last], data, indptr) < last - first:
            return None
        end = int(indptr[-1])
        data[end : end + SLACK] = 0
        data = data[: end + SLACK]
        data.flags.writeable = indptr.flags.writeable = False
        return data, indptr


def strings_of(texts: list[Any] | tuple[Any, ...]) -> Strings | None:
    """`texts` as :class:`Strings`; None if one of them is none."""
    items = list(texts)
    n = len(items)
    try:
        if n >= _MANY or sum(map(len, items)) >= _MUCH:
            access = _access()
            strings = None if access is None else _measured(items, *access)
            if strings is not None:
                return strings
        lengths = np.zeros(n + 1, np.int64)
        np.cumsum(np.fromiter(map(len, items), np.int64, n), out=lengths[1:])
    except TypeError:
        return None
    return Strings(items, lengths)


def _measured(items: list[Any], memory: NDArray[np.uint8], layout: NDArray[np.int64]) -> Strings | None:
    """Strings that kernels read; None if an item is no plain string."""
    from jittok.kernels.strings import measure_strings

    n = len(items)
    # Behind the head of a list is the address of its items, which stays while none is added.
    place = ctypes.c_int64.from_address(id(items) + list.__basicsize__ - 16).value
    addresses = _array_at(place, n, ctypes.c_int64)
    lengths, sizes = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    if measure_strings(memory, layout, addresses, lengths, sizes) < n:
        return None
    return Strings(items, lengths, sizes, addresses)


def _array_at(address: int, n: int, kind: Any) -> NDArray[Any]:
    """A read-only array of `n` items that lie at an address."""
    array: NDArray[Any] = np.frombuffer((kind * n).from_address(address), kind)
    array.flags.writeable = False
    return array


@cache
def _access() -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
    """All memory as an array, and how strings are laid out in it; None where kernels cannot read strings."""
    if _jit.JIT_DISABLED or sys.implementation.name != "cpython" or sys.byteorder != "little":
        return None
    try:
        layout = string_layout()
        if layout is None:
            return None
        memory = _array_at(_FIRST, (1 << _MEMORY_BITS) - _FIRST, ctypes.c_uint8)
    except (ValueError, TypeError, OverflowError):
        return None
    layout.flags.writeable = False
    samples = _samples()
    strings = _measured(samples, memory, layout)
    return (memory, layout) if strings is not None and _is_true(strings, memory, layout) else None


def _is_true(strings: Strings, memory: NDArray[np.uint8], layout: NDArray[np.int64]) -> bool:
    """Whether kernels read strings as Python does."""
    from jittok.kernels.strings import copy_strings

    assert strings.addresses is not None and strings.sizes is not None
    samples = strings.items
    encoded = [text.encode() for text in samples]
    data = np.empty(int(strings.sizes[-1]) + SLACK, np.uint8)
    indptr = np.empty(len(samples) + 1, np.int64)
    return (
        strings.addresses.tolist() == list(map(id, samples))
        and np.diff(strings.lengths).tolist() == list(map(len, samples))
        and copy_strings(memory, layout, strings.addresses, data, indptr) == len(samples)
        and np.diff(indptr).tolist() == list(map(len, encoded))
        and data[: indptr[-1]].tobytes() == b"".join(encoded)
    )


def _samples() -> list[str]:
    """Strings of every form; made anew, so that no form of theirs is kept beside them."""
    texts = ["", "a", "é", "語", "🙂"]
    return texts + ["".join((text, "bcdefghijklmnop" * k, text * k)) for text in texts for k in range(4)]


def string_layout() -> NDArray[np.int64] | None:
    """Where strings keep what kernels read, as :mod:`jittok.kernels.strings` describes; None if that is not clear.

    Offsets are from a string's address to a place in the array over all memory.
    """
    head = object.__basicsize__
    if head != 16 or list.__basicsize__ != 40 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None  # a debug or free-threaded build, or 32 bits

    def word(text: str, offset: int, kind: Any = ctypes.c_int64) -> int:
        return int(kind.from_address(id(text) + offset).value)

    class Derived(str):
        __slots__ = ()

    samples = {kind: "".join((text, text, text[:1])) for kind, text in ((0, "ab"), (1, "éa"), (2, "語a"), (4, "🙂a"))}
    length, state = head, head + 16  # between them is the hash
    if any(word(text, length) != len(text) for text in samples.values()):
        return None
    # Above the bits in use there may be anything, so the lowest bit that tells strings apart is the one.
    states = {kind: word(text, state, ctypes.c_uint32) for kind, text in samples.items()}
    ascii_bit = _lowest(states[0] & ~states[1] & ~states[2] & ~states[4])
    derived = word(Derived(samples[0]), state, ctypes.c_uint32)
    compact_bit = _lowest(states[0] & states[1] & states[2] & states[4] & ~derived)
    shift = _lowest(states[1] ^ states[2]).bit_length() - 1
    if not ascii_bit or not compact_bit or any((states[kind] >> shift) & 7 != max(kind, 1) for kind in states):
        return None
    ascii_text = sys.getsizeof(samples[0]) - len(samples[0]) - 1
    other_text = sys.getsizeof(samples[2]) - 2 * len(samples[2]) - 2
    if word(samples[0], 8) != id(str) or not (head < ascii_text < 128 and head < other_text < 128):
        return None
    offsets = np.array([8, length, state, ascii_text, other_text], np.int64) - _FIRST
    return np.concatenate([offsets, np.array([ascii_bit, compact_bit, shift, id(str)], np.int64)])


def _lowest(bits: int) -> int:
    """The lowest bit that is set."""
    return bits & -bits
