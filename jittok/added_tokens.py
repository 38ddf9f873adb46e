"""Find added tokens in segments of text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.tables import AddedTokenTables, read_only

#: Rows to make room for at first.
_CAPACITY = 256
#: Bytes of text for each row more that there is room for at first.
_BYTES_PER_ROW = 16
#: Segments that are looked at first for whether there are any tokens.
_SEGMENTS = 16


def find_added_tokens(
    tables: AddedTokenTables,
    enabled: NDArray[np.bool_],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find the added tokens in all segments.

    Parameters
    ----------
    tables, enabled, data, starts, ends
        As :func:`jittok.kernels.added_tokens.find_added_tokens` takes them.

    Returns
    -------
    int64[n, 4]
        Rows (segment, start byte, end byte, token id), in order.
    """
    from jittok.kernels.added_tokens import may_hold_added_tokens

    nothing = np.empty((0, 4), dtype=np.int64)
    if not len(tables.ids):
        return nothing
    data, starts, ends = read_only(data), read_only(starts), read_only(ends)
    if not may_hold_added_tokens(tables.endings, data, starts, ends, 0, len(starts)):
        return nothing
    # What is never written costs nothing.
    capacity = _CAPACITY + int((ends - starts).sum()) // _BYTES_PER_ROW
    count = -1
    while count < 0:
        rows = np.empty((capacity, 4), dtype=np.int64)
        count = _find(tables, enabled, data, starts, ends, 0, len(starts), rows)
        capacity = -count
    return rows[:count]


def holds_added_tokens(
    tables: AddedTokenTables,
    enabled: NDArray[np.bool_],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> bool:
    """Whether :func:`find_added_tokens` would find any; where they are many, most of the text need not be read.

    Parameters
    ----------
    tables, enabled, data, starts, ends
        As there.
    """
    from jittok.kernels.added_tokens import may_hold_added_tokens

    if not len(tables.ids) or not len(starts):
        return False
    data, starts, ends = read_only(data), read_only(starts), read_only(ends)
    if not may_hold_added_tokens(tables.endings, data, starts, ends, 0, len(starts)):
        return False
    rows = np.empty((_CAPACITY, 4), dtype=np.int64)
    first, step = 0, _SEGMENTS
    while first < len(starts):
        last = min(first + step, len(starts))
        # Below 0: there are more of them than fit.
        if _find(tables, enabled, data, starts, ends, first, last, rows) != 0:
            return True
        first, step = last, 4 * step
    return False


def _find(
    tables: AddedTokenTables,
    enabled: NDArray[np.bool_],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int,
    last: int,
    rows: NDArray[np.int64],
) -> int:
    """Write the rows of the segments from `first` to `last`; their number, or less than 0 as the kernels say."""
    from jittok.kernels.added_tokens import STATE

    state = np.empty(STATE, np.int64)
    if len(tables.prefixes):
        from jittok.kernels.added_prefixes import PLACES, TOO_MUCH_WORK, find_by_prefixes

        places = np.empty(PLACES, np.int32)
        count = find_by_prefixes(tables, enabled, data, starts, ends, first, last, places, state, rows)
        if count != TOO_MUCH_WORK:
            return int(count)
    from jittok.kernels.added_tokens import find_added_tokens as find_by_automaton

    return int(find_by_automaton(tables, enabled, data, starts, ends, first, last, state, rows))
