"""Which pairs of neighbouring codepoints some token spans: a bitmap of their hashes.

Long pre-tokens may be cut at junctions that no token spans. A token of a byte-level vocabulary may begin or end inside
a codepoint; of that one only the byte next to the junction is kept, marked as a part. A text then has up to four forms
of a junction (whole or part, on either side), and it is not crossed if none of the four is in the bitmap. Different
junctions that share a bit only lose a place to cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.unicode.intervals import sorted_unique

#: Marks a part of a codepoint, as in ``kernels.bpe``.
PARTIAL = 1 << 21
FACTOR = np.uint64(0x9E3779B97F4A7C15)
#: Pairs of codepoints below this one, those of the Latin, Greek and Cyrillic scripts among them, are marked in a table.
_NEAR = 0x530
#: Of fewer pairs, sorting all costs less.
_MANY = 1 << 14
#: Bits of the bitmap for each junction, and the largest bitmap, 1 MiB.
BITS_PER_JUNCTION = 16
MOST_BITS = 1 << 23


def crossed_junctions(
    token_bytes: NDArray[np.uint8], token_indptr: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """The bitmap of the junctions inside tokens.

    Parameters
    ----------
    token_bytes, token_indptr
        All tokens, as in :class:`~jittok.tables.MergeTables`.
    chosen : bool[n_tokens]
        The tokens that merges can make.

    Returns
    -------
    uint64[power of two]
        Bit ``h`` is set if a junction ``left << 22 | right`` has the hash h (the highest bits of its product with
        FACTOR).
    """
    lengths = np.diff(token_indptr)
    stop = int(token_indptr[-1])
    byte = token_bytes[:stop]
    begins = np.zeros(stop, np.bool_)
    begins[token_indptr[:-1][lengths > 0]] = True
    # A unit is a codepoint or a part of one: it begins at a leading byte, or at the beginning of a token.
    at = np.flatnonzero(((byte & 0xC0) != 0x80) | begins)
    right = byte[at].astype(np.int64)
    left = right.copy()
    other = np.flatnonzero(right >= 0x80)  # all others are ASCII, and whole
    if len(other):
        place, first = at[other], right[other]
        end = token_indptr[np.searchsorted(token_indptr, place, side="right")]
        size = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
        second, third, fourth = (byte[np.minimum(place + i, stop - 1)].astype(np.int64) & 63 for i in (1, 2, 3))
        whole = np.select(
            [size == 1, size == 2, size == 3],
            [first, (first & 31) << 6 | second, (first & 15) << 12 | second << 6 | third],
            (first & 7) << 18 | second << 12 | third << 6 | fourth,
        )
        is_whole = ((first & 0xC0) != 0x80) & (place + size <= end)
        last_byte = byte[np.append(at[1:], stop)[other] - 1].astype(np.int64)
        right[other] = np.where(is_whole, whole, PARTIAL | first)
        left[other] = np.where(is_whole, whole, PARTIAL | last_byte)
    inside = ~begins[at[1:]] & np.repeat(chosen, lengths)[at[1:]]
    return junction_bitmap(left[:-1][inside], right[1:][inside])


def distinct_pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different pairs of codepoints, or parts of them, in no particular order.

    Parameters
    ----------
    left, right : int64[n]
        Less than 1 << 22.
    """
    near = np.zeros(0, np.int64)
    if len(left) >= _MANY:
        is_near = np.maximum(left, right) < _NEAR
        is_there = np.zeros(_NEAR * _NEAR, np.bool_)
        is_there[(left * _NEAR + right)[is_near]] = True
        near = np.flatnonzero(is_there)
        left, right = left[~is_near], right[~is_near]
    far = sorted_unique(left << 22 | right)
    return np.concatenate([near // _NEAR, far >> 22]), np.concatenate([near % _NEAR, far & (1 << 22) - 1])


def junction_bitmap(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The same of junctions, as :func:`crossed_junctions` says what they are.

    Parameters
    ----------
    left, right : int64[n]
        What stands on their sides, in any order, and any number of times.
    """
    left, right = distinct_pairs(left, right)
    keys = (left << 22 | right).astype(np.uint64)
    bits = max(64, min(1 << int(BITS_PER_JUNCTION * max(len(keys), 1) - 1).bit_length(), MOST_BITS))
    with np.errstate(over="ignore"):
        hashes = keys * FACTOR >> np.uint64(64 - (bits.bit_length() - 1))
    flags = np.zeros(bits, np.uint8)
    flags[hashes.astype(np.int64)] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)
