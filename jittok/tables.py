"""The arrays that kernels read: their meaning, unit, range and invariants.

Every table is a NamedTuple of read-only, C-contiguous arrays, built once by :mod:`jittok.build` from a
:class:`~jittok.spec.TokenizerSpec`, validated once, and saved and memory-mapped as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CodepointClasses(NamedTuple):
    """A number below 256 for every codepoint, in two levels.

    ``class_of[(page_of[cp >> 7] << 7) | (cp & 127)]`` is the class of codepoint `cp`. Page 0 is that of
    ASCII, so ``class_of[cp]`` is right for ``cp < 128``.
    """

    page_of: NDArray[np.uint16]  # [8704], page number, < number of pages
    class_of: NDArray[np.uint8]  # [128 * number of pages]


class SplitAutomaton(NamedTuple):
    """A leftmost-first DFA over codepoint classes, equal to a split regex matched at one position.

    ``entry = transitions[state + class]``, where states are already multiplied by the row length. Bit 0 of
    an entry says that a match ends *before* the codepoint of that class; ``entry >> 1`` is the next state.
    State 0 is dead: the last match seen is the match. The last class, ``end_class``, stands for the end of
    the text. Look-ahead by one codepoint and ``$`` are resolved on the transition. The whole match is the
    one the regex's own engine prefers (leftmost-first), not the longest.
    """

    classes: CodepointClasses
    transitions: NDArray[np.uint32]  # [n_states << row_shift]
    start: int  # the start state, a multiple of 1 << row_shift
    row_shift: int  # log2 of the row length, which is at least end_class + 1
    end_class: int  # the class of the end of the text


#: Bits of :attr:`VocabularyTables.flags`.
PRESENT = 1  # the id has a token
ADDED = 2  # an added token
SPECIAL = 4  # a special token: left out by skip_special_tokens
STRIPS = 8  # an added token that takes white space around it into its match (lstrip or rstrip)
NORMALIZED = 16  # an added token looked for in the normalised text


class VocabularyTables(NamedTuple):
    """Every token by id, and every id by token.

    Ids without a token (holes) have empty strings and no ``PRESENT`` bit. Strings are UTF-8, in the byte
    alphabet where the file is byte-level; only a rank file's tokens may be any bytes. ``token_bytes`` and
    ``strings`` are the same arrays where a token stands for its own string.
    """

    strings: NDArray[np.uint8]  # the token strings, one after another in order of id
    string_indptr: NDArray[np.int64]  # [size + 1], token i is strings[string_indptr[i]:string_indptr[i + 1]]
    token_bytes: NDArray[np.uint8]  # the bytes of text that each token stands for
    bytes_indptr: NDArray[np.int64]  # [size + 1]
    flags: NDArray[np.uint8]  # [size], see PRESENT, ADDED, ...
    hashes: NDArray[np.uint32]  # [n tokens], CRC-32 of the strings, rising
    hash_ids: NDArray[np.int32]  # [n tokens], the id of each hash
