"""Strings -> a trie in a double array over dense character codes, to be finished by the models that use one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.errors import UnsupportedError
from jittok.tables import read_only

if TYPE_CHECKING:
    from jittok.kernels.double_array import Layout, Trie

#: Positions in units are int32.
MOST_UNITS = (1 << 29) - 1
_N_CODEPOINTS = 0x110000


@dataclass(frozen=True, slots=True)
class DoubleArray:
    """Nodes of a trie, and where they are.

    Attributes
    ----------
    trie, layout
        By node.
    codes
        int32[n], code of the character that leads to each node, 0 for the root.
    code_of
        uint32[0x110000], code of each codepoint, 0 for those in no string.
    largest
        The largest code.
    second_root
        The node of the first string.
    units
        int32[4 * n_units]: the first number of each unit is the base of the parent of the node that is there, -1
        where there is none. The other three are for the model.
    n_characters
        Of all strings.
    """

    trie: Trie
    layout: Layout
    codes: NDArray[np.int32]
    code_of: NDArray[np.uint32]
    largest: int
    second_root: int
    units: NDArray[np.int32]
    n_characters: int


def build_double_array(strings: Iterable[str], ids: Iterable[int]) -> DoubleArray:
    """Make the trie of some strings and lay it out.

    Parameters
    ----------
    strings
        The first leads to the second root, the others are tokens. Lone surrogates, which a JSON file may hold, match
        no text. Empty ones are left out.
    ids
        A number from 0 up for each string; that of the first is not looked at. Of equal strings, the last one's
        counts.

    Returns
    -------
    DoubleArray

    Raises
    ------
    UnsupportedError
        There are too many characters.

    Notes
    -----
    Linear in the characters. See :mod:`jittok.kernels.double_array`.
    """
    from jittok.kernels.double_array import NO_ROOM, Layout, Trie, insert_tokens, place_nodes

    strings = list(strings)
    joined = "".join(strings)
    data = np.frombuffer(joined.encode("utf-8", "surrogatepass"), np.uint8)
    if len(joined) > MOST_UNITS >> 2:
        raise UnsupportedError(f"the vocabulary has {len(joined)} characters; expected at most {MOST_UNITS >> 2}")
    indptr = np.zeros(len(strings) + 1, np.int64)
    if len(data) == len(joined):
        sizes = [len(string) for string in strings]
    else:
        sizes = [len(string.encode("utf-8", "surrogatepass")) for string in strings]
    np.cumsum(sizes, out=indptr[1:])

    most = len(joined) + 1
    slots = 1 << max(3, (2 * most).bit_length())
    trie = Trie(*(np.zeros(most, np.int32) for _ in Trie._fields))
    label_count = np.zeros(_N_CODEPOINTS, np.int32)
    edge_keys, edge_nodes = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    numbers = read_only(np.fromiter(ids, np.int32, len(strings)))
    found = insert_tokens(read_only(data), read_only(indptr), numbers, edge_keys, edge_nodes, trie, label_count)
    n, second_root = found >> 32, found & 0xFFFFFFFF
    del edge_keys, edge_nodes
    trie = Trie(*(array[:n] for array in trie))

    # Frequent characters get low codes, so that the children of most nodes are near each other.
    labels = np.flatnonzero(label_count)
    labels = labels[np.argsort(-label_count[labels], kind="stable")]
    code_of = np.zeros(_N_CODEPOINTS, np.uint32)
    code_of[labels] = np.arange(1, len(labels) + 1)
    codes = code_of[trie.label].astype(np.int32)
    codes[0] = 0

    layout = Layout(*(np.zeros(n, np.int32) for _ in Layout._fields))
    n_units = n + n // 4 + 2 * len(labels) + 64
    while True:
        if n_units > MOST_UNITS:
            raise UnsupportedError(f"the vocabulary takes more than {MOST_UNITS} places in the trie")
        units = np.empty(4 * n_units, np.int32)
        scratch = (np.zeros(n_units, np.uint8), np.empty(n_units, np.int32), np.empty(n_units, np.int32))
        children = (np.zeros(n + 2, np.int32), np.empty(n, np.int32))
        used = place_nodes(trie, codes, second_root, len(labels), *children, units, *scratch, layout)
        if used != NO_ROOM:
            break
        n_units *= 2
    return DoubleArray(
        trie, layout, codes, code_of, len(labels), second_root, units[: 4 * used].copy(), len(joined)
    )
