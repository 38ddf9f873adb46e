"""Sampled segmentations of text that is already normalised."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.tables import PIECE_ALL_PAIRS, PieceTables, read_only

#: Random numbers have so many bits.
CHANCE_BITS = 53


class Sampled(NamedTuple):
    """Ids of segments, one segment after another."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]  # bytes of text that each id stands for
    ends: NDArray[np.int64]  # [n_segments] ids written by the end of each


def sample_piece_ids(
    tables: PieceTables,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    dropout: float,
    seed: int,
    first_segment: int = 0,
) -> Sampled:
    """Encode segments with BPE dropout (Provilkov et al. 2020), as sentencepiece does.

    The pair that is merged next is left out with probability `dropout`, and is not looked at again until one of its
    symbols is merged with another one.

    Parameters
    ----------
    tables : PieceTables
        With all pairs.
    data : uint8[m]
        Valid UTF-8, and four bytes more.
    starts, ends : int64[n]
        Segment i is ``data[starts[i]:ends[i]]``; it is encoded as a whole.
    dropout
        From 0, which gives the ids of encoding, to 1, which merges nothing.
    seed
        Segment i depends on `seed` and ``first_segment + i`` only: how segments are shared out changes nothing.
    first_segment
        Number of the first segment.

    Raises
    ------
    ArgumentError
        `dropout` is not from 0 to 1, or the tables are pruned.
    """
    from jittok.kernels.pieces import sample_pieces
    from jittok.kernels.word_cache import new_word_scratch

    if not 0 <= dropout <= 1:
        raise ArgumentError(f"dropout={dropout!r}; expected a number from 0 to 1")
    if not tables.numbers[PIECE_ALL_PAIRS]:
        raise ArgumentError("sampling needs tables with all pairs; build them with all_pairs=True")
    starts, ends = read_only(starts), read_only(ends)
    sizes = ends - starts
    total = int(sizes.sum())
    ids, lengths = np.empty(total, np.int32), np.empty(total, np.int32)
    ends_of_ids = np.zeros(len(starts), np.int64)
    n = sample_pieces(
        tables,
        read_only(data),
        starts,
        ends,
        round(dropout * (1 << CHANCE_BITS)),
        seed & ((1 << 63) - 1),
        first_segment,
        new_word_scratch(max(8192, int(sizes.max(initial=0)))),
        np.zeros(1, np.uint64),
        np.zeros(max(len(tables.merge_rank), 1), np.uint64),
        ids,
        lengths,
        ends_of_ids,
    )
    return Sampled(ids[:n], lengths[:n], ends_of_ids)
