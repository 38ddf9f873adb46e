"""Large arrays in large pages of memory: tables that are read at random otherwise wait for address look-ups."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    begin = -data.ctypes.data % CACHE_LINE
    return data[begin : begin + size * kind.itemsize].view(kind)


def zeros(size: int, dtype: Any) -> NDArray[Any]:
    """An array of zeros, in large pages where the system has them and it fills at least one.

    Parameters
    ----------
    size
        Number of items.
    dtype
        Their type.
    """
    kind = np.dtype(dtype)
    n_bytes = size * kind.itemsize
    if n_bytes < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(size, kind)
    try:
        # Private: a forked process must not write into this one's arrays.
        area = mmap.mmap(-1, n_bytes + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return np.zeros(size, kind)
    data = np.frombuffer(area, np.uint8)
    begin = -data.ctypes.data % LARGE_PAGE
    return data[begin : begin + n_bytes].view(kind)


def large_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy of an array in large pages, where :func:`zeros` gives them."""
    copy = zeros(array.size, array.dtype)
    copy[:] = array
    copy.flags.writeable = False
    return copy
