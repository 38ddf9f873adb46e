"""A WordPiece vocabulary -> WordPieceTables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.build.double_array import build_double_array
from jittok.errors import ArgumentError
from jittok.tables import (
    CHARACTER_CODE,
    CHARACTER_ISOLATED,
    CHARACTER_SPACE,
    WORDPIECE_MAX_BYTES,
    WORDPIECE_MAX_INPUT,
    WORDPIECE_MISSING,
    WORDPIECE_NUMBERS,
    WORDPIECE_PREFIX_BYTES,
    WORDPIECE_PREFIX_TOKEN,
    WORDPIECE_ROOT,
    WORDPIECE_ROOT_BASE,
    WORDPIECE_SKIP_SPACE,
    WORDPIECE_SUFFIX_BASE,
    WORDPIECE_SUFFIX_ROOT,
    WORDPIECE_UNKNOWN,
    WordPieceTables,
    read_only,
)
from jittok.token_columns import columns_of, id_bounds, ids_of
from jittok.unicode.intervals import EMPTY, Intervals
from jittok.unicode.normalization import fold_pages

_MOST_ID = (1 << 31) - 1
_N_CODEPOINTS = 0x110000


def build_wordpiece_tables(
    vocabulary: Mapping[str, int],
    *,
    unknown: int,
    is_missing: bool = False,
    suffix_indicator: str = "##",
    max_input: int = 100,
    max_input_in_bytes: bool = False,
    space: Intervals = EMPTY,
    isolated: Intervals = EMPTY,
    skip_space: bool = False,
) -> WordPieceTables:
    """Flatten a WordPiece vocabulary.

    Parameters
    ----------
    vocabulary
        Tokens, those inside a word with the suffix indicator before them, and their ids. Two tokens may share an
        id. An empty token is left out: it would cut nothing off. A token that is the suffix indicator alone can
        only be the first of a word.
    unknown
        The id that stands for a word that cannot be cut, or is too long.
    is_missing
        Whether the vocabulary lacks that token, so that its id stands for an error.
    suffix_indicator
        May be empty: then every token may stand anywhere.
    max_input
        Longest word that is looked at, in characters (as in tokenizers), or in bytes (as in TF Text).
    max_input_in_bytes
        Which of the two.
    space, isolated
        Characters that divide words, and those that are words of their own; for ``wordpiece_end_to_end``.
    skip_space
        Whether a single word may come with white space before it, which then counts to its first token.

    Returns
    -------
    WordPieceTables
        Read-only.

    Raises
    ------
    ArgumentError
        An id or `max_input` is out of range.
    UnsupportedError
        The vocabulary is too large for the tables.

    Notes
    -----
    Linear in the characters of the vocabulary. See :mod:`jittok.kernels.wordpiece_build`.
    """
    from jittok.kernels.wordpiece_build import Pops, link_nodes

    least_id, greatest_id = id_bounds(vocabulary)
    if min(least_id, unknown) < 0 or max(greatest_id, unknown) > _MOST_ID:
        raise ArgumentError("a token id of the vocabulary is negative or above 2**31 - 1; expected ids from 0 up")
    if max_input < 0:
        raise ArgumentError(f"max_input={max_input}; expected the length of the longest word, 0 or more")
    kinds = ((space, CHARACTER_SPACE), (isolated, CHARACTER_ISOLATED))
    least = max(int(characters[-1]) if len(characters) else 0 for characters, _ in kinds)
    columns = columns_of(vocabulary)
    array = build_double_array(suffix_indicator, columns, ids_of(vocabulary), min(least, _N_CODEPOINTS))
    trie, layout, suffix_root, units = array.trie, array.layout, array.second_root, array.units
    code_of = array.code_of << np.uint32(2)
    for characters, kind in kinds:
        for first, stop in characters.reshape(-1, 2).tolist():
            code_of[first : min(stop, _N_CODEPOINTS)] |= np.uint32(kind)

    n = len(array.codes)
    most_ids = array.n_characters + len(vocabulary) + 2
    pops = Pops(*(np.zeros(n + 2, np.int32) for _ in range(3)), *(np.zeros(most_ids, np.int32) for _ in range(2)))
    below = np.zeros(n, np.uint8)
    link, lists = np.zeros(n, np.int32), np.zeros(n, np.int32)
    n_lists = link_nodes(trie, array.codes, suffix_root, layout, below, link, lists, units, pops)
    n_ids = int(pops.indptr[n_lists])

    numbers = np.zeros(WORDPIECE_NUMBERS, np.int64)
    numbers[WORDPIECE_ROOT] = 4 * layout.place[0]
    numbers[WORDPIECE_ROOT_BASE] = 4 * layout.base[0]
    numbers[WORDPIECE_SUFFIX_ROOT] = 4 * layout.place[suffix_root]
    numbers[WORDPIECE_SUFFIX_BASE] = 4 * layout.base[suffix_root]
    numbers[WORDPIECE_UNKNOWN] = unknown
    numbers[WORDPIECE_MAX_INPUT] = min(max_input, _MOST_ID)
    numbers[WORDPIECE_MAX_BYTES] = max_input_in_bytes
    numbers[WORDPIECE_MISSING] = is_missing
    numbers[WORDPIECE_SKIP_SPACE] = skip_space
    node = suffix_root
    while node > 0 and trie.token[node] < 0:
        node = int(trie.parent[node])
    numbers[WORDPIECE_PREFIX_TOKEN] = trie.token[node]  # -1 at the root
    numbers[WORDPIECE_PREFIX_BYTES] = trie.n_bytes[node]

    page_of, kept = fold_pages(code_of)
    return WordPieceTables(
        page_of=read_only(page_of),
        code_of=read_only(kept),
        units=read_only(units),
        pop_indptr=read_only(pops.indptr[: n_lists + 1].copy()),
        pop_before=read_only(pops.before[:n_lists].copy()),
        pop_count=read_only(pops.count[:n_lists].copy()),
        pop_ids=read_only(pops.ids[:n_ids].copy()),
        pop_lengths=read_only(pops.lengths[:n_ids].copy()),
        token_lengths=read_only(_token_lengths(trie, below, suffix_root, unknown)),
        indicator=read_only(np.frombuffer(suffix_indicator.encode("utf-8", "surrogatepass"), np.uint8)),
        numbers=read_only(numbers),
    )


def _token_lengths(trie: Any, below: NDArray[np.uint8], suffix_root: int, unknown: int) -> NDArray[np.int32]:
    """Bytes of each token by id, without the suffix indicator; nothing if tokens of one id have several lengths."""
    nodes = np.flatnonzero(trie.token >= 0)
    ids = trie.token[nodes]
    inside = (below[nodes] != 0) & (nodes != suffix_root)
    lengths = trie.n_bytes[nodes] - np.where(inside, trie.n_bytes[suffix_root], 0).astype(np.int32)
    by_id = np.zeros(max(int(ids.max(initial=-1)), unknown) + 1, np.int32)
    by_id[ids] = lengths
    return by_id if (by_id[ids] == lengths).all() else np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the trie.

    Attributes
    ----------
    pops
        Ids that are given out where no child matches.
    link
        The string of the node that goes on then; None if there is none.
    """

    pops: tuple[int, ...]
    link: str | None


def list_nodes(tables: WordPieceTables) -> dict[str, Node]:
    """All nodes of the trie by the strings that they stand for. To look at; slow.

    Examples
    --------
    >>> nodes = list_nodes(build_wordpiece_tables({"a": 0, "abc": 1, "##b": 2}, unknown=3))
    >>> nodes["ab"]
    Node(pops=(0,), link='##b')
    """
    units = tables.units.tolist()
    codes = (tables.code_of & np.uint32(CHARACTER_CODE & 0xFFFFFFFF)).reshape(-1, 128)[tables.page_of].ravel()
    character_of = {int(codes[c]): chr(c) for c in np.flatnonzero(codes).tolist()}
    root = int(tables.numbers[WORDPIECE_ROOT])
    nodes = [root, *(at for at in range(0, len(units), 4) if units[at] >= 0)]
    owner = {units[at + 1]: at for at in nodes if units[at + 1] > 0}
    names = {}
    for node in nodes:
        string, at = "", node
        while at != root:
            string = character_of[at - units[at]] + string
            at = owner[units[at]]
        names[node] = string
    return {names[at]: Node(_pops(tables, units[at + 3]), names.get(units[at + 2])) for at in nodes}


def _pops(tables: WordPieceTables, pops: int) -> tuple[int, ...]:
    """The ids of a unit's fourth number."""
    if pops >= 0:
        return (pops,)
    parts: list[NDArray[np.int32]] = []
    at = -1 - pops
    while at:
        parts.insert(0, tables.pop_ids[tables.pop_indptr[at] : tables.pop_indptr[at + 1]])
        at = int(tables.pop_before[at])
    return tuple(int(i) for part in parts for i in part)
