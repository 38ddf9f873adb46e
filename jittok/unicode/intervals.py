r"""Sets of codepoints as sorted boundaries.

A set is an int32 array of even length: codepoints from entry 0 on are inside, from entry 1 on outside, from
entry 2 on inside again, and so on. Codepoint ``END`` (0x110000) is not a character; it stands for the end of the
text, so that a look-ahead such as ``(?=\s|$)`` is one set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Intervals = NDArray[np.int32]

#: The end of the text, one past the last codepoint.
END = 0x110000

EMPTY: Intervals = np.zeros(0, np.int32)
ALL: Intervals = np.array([0, END], np.int32)
ALL_AND_END: Intervals = np.array([0, END + 1], np.int32)
AT_END: Intervals = np.array([END, END + 1], np.int32)


def from_ranges(ranges: Iterable[tuple[int, int]]) -> Intervals:
    """Make a set from inclusive (first, last) pairs in any order, which may overlap."""
    flat: list[int] = []
    for first, last in sorted(ranges):
        if flat and first <= flat[-1]:
            flat[-1] = max(flat[-1], last + 1)
        else:
            flat += [first, last + 1]
    return np.array(flat, np.int32)


def from_codepoints(codepoints: Iterable[int]) -> Intervals:
    """Make a set from single codepoints."""
    return from_ranges((c, c) for c in codepoints)


def contains(intervals: Intervals, codepoints: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell for each of `codepoints` whether it is in the set."""
    inside: NDArray[np.bool_] = (np.searchsorted(intervals, codepoints, side="right") & 1).astype(np.bool_)
    return inside


Integers = TypeVar("Integers", bound=np.integer[Any])


def sorted_unique(values: NDArray[Integers]) -> NDArray[Integers]:
    """Return the different values in order (several times as fast as np.unique)."""
    ordered = np.sort(values)
    different = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=different[1:])
    return ordered[different]


def _combine(left: Intervals, right: Intervals, operation: np.ufunc) -> Intervals:
    boundaries = sorted_unique(np.concatenate((left, right)))
    inside = operation(contains(left, boundaries), contains(right, boundaries))
    changes = inside.copy()
    np.not_equal(inside[1:], inside[:-1], out=changes[1:])
    result: Intervals = boundaries[changes].astype(np.int32)
    return result


def union(left: Intervals, right: Intervals) -> Intervals:
    """Return the codepoints in either set."""
    if not len(left):
        return right
    return _combine(left, right, np.logical_or) if len(right) else left


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Return the codepoints in both sets."""
    return _combine(left, right, np.logical_and)


def symmetric_difference(left: Intervals, right: Intervals) -> Intervals:
    """Return the codepoints in exactly one of the sets."""
    return _combine(left, right, np.logical_xor)


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Return the codepoints in `left` and not in `right`."""
    return intersection(left, complement(right, ALL_AND_END))


def complement(intervals: Intervals, universe: Intervals = ALL) -> Intervals:
    """Return the codepoints of `universe` that are not in the set."""
    return _combine(intersection(intervals, universe), universe, np.logical_xor)


def members(intervals: Intervals) -> list[int]:
    """List the codepoints of a (small) set."""
    pairs = intervals.reshape(-1, 2).tolist()
    return [codepoint for first, stop in pairs for codepoint in range(first, stop)]
