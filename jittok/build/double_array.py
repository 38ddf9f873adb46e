"""Strings -> a trie in a double array over dense character codes, to be finished by the models that use one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import UnsupportedError
from jittok.tables import read_only
from jittok.text import codepoints_below
from jittok.token_columns import Columns

if TYPE_CHECKING:
    from jittok.kernels.double_array import Layout, Trie

#: Positions in units are int32.
MOST_UNITS = (1 << 29) - 1


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
        uint32[k], code of each codepoint, 0 for those in no string, as are all from the k-th on; k is a multiple of 128.
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


def build_double_array(root: str, strings: Columns, ids: NDArray[np.integer[Any]], least: int = 0) -> DoubleArray:
    """Make the trie of some strings and lay it out.

    Parameters
    ----------
    root
        Leads to the second root.
    strings
        The tokens. Lone surrogates, which a JSON file may hold, match no text. Empty ones are left out.
    ids
        A number from 0 up for each string. Of equal strings, the last one's counts.
    least
        So many codepoints are in `code_of` at least.

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

    first = np.frombuffer(root.encode("utf-8", "surrogatepass"), np.uint8)
    data = np.concatenate([first, strings.data])
    indptr = np.concatenate([[0], strings.indptr + len(first)])
    n_characters = int(np.count_nonzero((data & 0xC0) != 0x80))
    if n_characters > MOST_UNITS >> 2:
        raise UnsupportedError(f"the vocabulary has {n_characters} characters; expected at most {MOST_UNITS >> 2}")

    most = n_characters + 1
    slots = 1 << max(3, (2 * most).bit_length())
    trie = Trie(*(np.zeros(most, np.int32) for _ in Trie._fields))
    label_count = np.zeros(codepoints_below(data), np.int32)
    edge_keys, edge_nodes = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    numbers = read_only(np.concatenate([[-1], ids]).astype(np.int32))
    found = insert_tokens(read_only(data), read_only(indptr), numbers, edge_keys, edge_nodes, trie, label_count)
    n, second_root = found >> 32, found & 0xFFFFFFFF
    del edge_keys, edge_nodes
    trie = Trie(*(array[:n] for array in trie))

    # Frequent characters get low codes, so that the children of most nodes are near each other.
    n_codepoints = (max(int(trie.label.max()) + 1, least) + 127) & ~127
    labels = np.flatnonzero(label_count[:n_codepoints])
    labels = labels[np.argsort(-label_count[labels], kind="stable")]
    code_of = np.zeros(n_codepoints, np.uint32)
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
        trie, layout, codes, code_of, len(labels), second_root, units[: 4 * used].copy(), n_characters
    )
