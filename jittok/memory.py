"""Large arrays in large pages of memory: tables that are read at random otherwise wait for address look-ups."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jittok.threads import Task

T = TypeVar("T")

#: The size of a large page on most systems; smaller arrays are allocated as usual.
LARGE_PAGE = 1 << 21
CACHE_LINE = 64


def aligned_zeros(size: int, dtype: Any) -> NDArray[Any]:
    """An array of zeros that begins at a cache line, so that vectors in it do not straddle two.

    Parameters
    ----------
    size
        Number of items.
    dtype
        Their type.
    """
    kind = np.dtype(dtype)
    data = np.zeros(size * kind.itemsize + CACHE_LINE, np.uint8)
    begin = -data.__array_interface__["data"][0] % CACHE_LINE
    return data[begin : begin + size * kind.itemsize].view(kind)


def zeros(size: int, dtype: Any) -> NDArray[Any]:
    """An array of zeros that begins at a cache line, in large pages where the system has them and it fills half of one.

    Parameters
    ----------
    size
        Number of items.
    dtype
        Their type.
    """
    kind = np.dtype(dtype)
    n_bytes = size * kind.itemsize
    if n_bytes < CACHE_LINE:
        return np.zeros(size, kind)
    if n_bytes < LARGE_PAGE // 2 or not hasattr(mmap, "MADV_HUGEPAGE"):
        return aligned_zeros(size, kind)
    try:
        # Private: a forked process must not write into this one's arrays.
        area = mmap.mmap(-1, n_bytes + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return aligned_zeros(size, kind)
    data = np.frombuffer(area, np.uint8)
    begin = -data.ctypes.data % LARGE_PAGE
    return data[begin : begin + n_bytes].view(kind)


def large_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy of an array in large pages, where :func:`zeros` gives them; the array itself if it is in them."""
    if array.nbytes >= LARGE_PAGE // 2 and array.ctypes.data % LARGE_PAGE == 0 and not array.flags.writeable:
        return array
    copy = zeros(array.size, array.dtype)
    copy[:] = array
    copy.flags.writeable = False
    return copy


def move_rows(
    array: NDArray[Any], to: int, at: int, n: int, submit: Callable[..., Task] | None = None
) -> None:
    """Move rows of an array over others, or over themselves.

    Parameters
    ----------
    array
        C-contiguous.
    to, at, n
        Rows ``array[at : at + n]`` become ``array[to : to + n]``.
    submit
        What runs a function on another thread, which then moves half of much that moves towards the beginning.
    """
    if to == at or n == 0:
        return
    row = array.nbytes // len(array)
    size, gap = int(n) * row, int(at - to) * row  # NumPy's numbers are none of ctypes'
    source = array.ctypes.data + int(at) * row
    target, half = source - gap, size // 2
    if submit is None or size < LARGE_PAGE or not 0 < gap < half:
        ctypes.memmove(target, source, size)
        return
    # The other half is written over the end of this one.
    kept = np.empty(gap, np.uint8)
    end = kept.ctypes.data
    ctypes.memmove(end, source + half - gap, gap)
    other = submit(ctypes.memmove, target + half, source + half, size - half)
    ctypes.memmove(target, source, half - gap)
    ctypes.memmove(target + half - gap, end, gap)
    if other.cancel():  # the other thread has not come to it
        ctypes.memmove(target + half, source + half, size - half)
    else:
        other.wait()


class Idle(Generic[T]):
    """What threads take and give back: each gets its own again, which is in its processor's cache, if it can."""

    def __init__(self) -> None:
        #: By the thread that each belongs to, and a number. Every change is one atomic operation: a lock would be
        #: held for ever in a process forked at the wrong moment.
        self._things: dict[tuple[int, int], T] = {}
        self._numbers = itertools.count()

    def take(self) -> T | None:
        """One of them, or None if none is idle."""
        mine = threading.get_ident()
        for key in list(self._things):
            if key[0] == mine:
                try:
                    return self._things.pop(key)
                except KeyError:  # another thread was faster
                    pass
        try:
            return self._things.popitem()[1]
        except KeyError:
            return None

    def give(self, thing: T, thread: int | None = None) -> None:
        """Let others take it, and a thread, this one unless it is said, before others."""
        self._things[threading.get_ident() if thread is None else thread, next(self._numbers)] = thing

    def clear(self) -> None:
        """Forget all that are idle."""
        self._things.clear()

    def all(self) -> list[T]:
        """Return those that are idle now."""
        return list(self._things.values())


class Buffers:
    """Arrays whose memory is used again once nobody holds them: fresh memory is paid for page by page.

    Parameters
    ----------
    limit
        Bytes that wait to be used again, at most. Memory that was never written to counts too.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: Only its own methods touch it, each atomic: arrays come back whenever the interpreter drops them.
        self._spare: deque[NDArray[np.uint8]] = deque()

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """An array of any content.

        Parameters
        ----------
        size
            Number of items.
        dtype
            Their type.
        """
        kind = np.dtype(dtype)
        n_bytes = size * kind.itemsize
        if not LARGE_PAGE <= n_bytes <= self._limit:
            return np.empty(size, kind)
        found = None
        try:
            for _ in range(len(self._spare)):
                area = self._spare.popleft()
                if found is None and area.nbytes >= n_bytes:
                    found = area
                else:
                    self._spare.append(area)
        except IndexError:  # another thread was faster
            pass
        return np.asarray(_Lent(np.empty(n_bytes, np.uint8) if found is None else found, self))[:n_bytes].view(kind)

    def take_back(self, area: NDArray[np.uint8]) -> None:
        """Keep memory for the next array, instead of what waits longest if it is too much."""
        self._spare.append(area)
        try:
            while sum(spare.nbytes for spare in tuple(self._spare)) > self._limit:
                self._spare.popleft()
        except (IndexError, RuntimeError):  # another thread was faster
            pass

    def clear(self) -> None:
        """Give all spare memory back."""
        self._spare.clear()


class _Lent:
    """What arrays of :class:`Buffers` are views of: its end is that of the last of them."""

    def __init__(self, area: NDArray[np.uint8], owner: Buffers) -> None:
        self._area, self._owner = area, owner
        self.__array_interface__ = area.__array_interface__

    def __del__(self) -> None:
        self._owner.take_back(self._area)
