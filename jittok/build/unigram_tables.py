"""The pieces of a unigram model -> UnigramTables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.build.double_array import build_double_array
from jittok.errors import ArgumentError, UnsupportedError
from jittok.tables import (
    CROSSED_FACTOR,
    RULE_SENTENCEPIECE,
    RULE_TOKENIZERS,
    UNIGRAM_BYTE_FALLBACK,
    UNIGRAM_LONGEST,
    UNIGRAM_MISSING,
    UNIGRAM_NUMBERS,
    UNIGRAM_ROOT_BASE,
    UNIGRAM_RULE,
    UNIGRAM_SPACE_FIRST,
    UNIGRAM_UNKNOWN,
    UnigramTables,
    read_only,
)
from jittok.token_columns import columns_of
from jittok.unicode.normalization import fold_pages

#: Types of pieces, with the numbers of the SentencePiece model format.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
RULES = {"sentencepiece": RULE_SENTENCEPIECE, "tokenizers": RULE_TOKENIZERS, "llama.cpp": RULE_TOKENIZERS}
#: Scores are smaller than this.
MOST_SCORE = 1e30
#: What an unknown character costs more than the least likely piece.
_UNKNOWN_PENALTY = 10.0
_BLANK = "\u2581"


def build_unigram_tables(
    pieces: Sequence[str],
    scores: Any,
    types: Any = None,
    *,
    rule: str = "sentencepiece",
    unknown: int | None = None,
    is_missing: bool = False,
    byte_fallback: bool = False,
    space_as_blank: bool = False,
    ids: Sequence[int] | None = None,
) -> UnigramTables:
    """Flatten the vocabulary of a unigram model.

    Parameters
    ----------
    pieces
        The pieces in the order of their ids.
    scores
        float[n], logarithms of their probabilities.
    types
        uint8[n] or a sequence, NORMAL and so on; None: all are normal. ``rule="tokenizers"`` does not look at them.
    rule
        ``"sentencepiece"``: as sentencepiece 0.2.3 does it. Normal and user-defined pieces are looked for in the text; the
        score of a path is a float32 that is added up over the whole text.
        ``"tokenizers"``: as tokenizers 0.23 does it. All pieces are looked for; scores are float64, and start from 0 in
        each pre-token.
        ``"llama.cpp"``: as that does it. Scores are added up as by tokenizers; normal, user-defined and unused pieces are
        looked for, and the score of user-defined ones is 0.
    unknown
        Id of the unknown piece. By default that of type UNKNOWN, if there is one.
    is_missing
        Whether the vocabulary lacks the unknown piece, so that its id stands for an error.
    byte_fallback
        Whether unknown characters become pieces of bytes: those of type BYTE, or with ``rule="tokenizers"`` those named
        ``<0x00>`` and so on.
    space_as_blank
        Whether a space in the text is taken for U+2581, so that normalized text need not be rewritten.
    ids
        The id of each piece, where that is not its position.

    Returns
    -------
    UnigramTables
        Read-only.

    Raises
    ------
    ArgumentError
        An argument is out of range, or lacks something.
    UnsupportedError
        Scores are too large or not finite, or there are too many characters.

    Notes
    -----
    Linear in the characters of the vocabulary. An unknown character has the lowest score less 10: of normal pieces by
    sentencepiece's rule, of all by tokenizers'. A user-defined piece has a score above 0 that grows with its length in
    bytes, or with that in characters where several segmentations are compared (n-best, sampling).
    """
    if rule not in RULES:
        raise ArgumentError(f"rule={rule!r}; expected one of {', '.join(RULES)}")
    n = len(pieces)
    is_sentencepiece, is_llama_cpp = rule == "sentencepiece", rule == "llama.cpp"
    values = np.array(scores, np.float32 if is_sentencepiece else np.float64).reshape(-1)
    kinds = np.full(n, NORMAL, np.uint8) if types is None else np.array(types, np.uint8).reshape(-1)
    if len(values) != n or len(kinds) != n:
        raise ArgumentError(f"{n} pieces with {len(values)} scores and {len(kinds)} types; expected as many of each")
    if not (np.abs(values) < MOST_SCORE).all():
        raise UnsupportedError(f"a score is not a number, or {MOST_SCORE:g} or more in size; expected scores of pieces")
    byte_ids = np.full(256, -1, np.int32)
    columns = columns_of(pieces)
    sizes = np.diff(columns.indptr)
    if rule != "tokenizers":
        if unknown is None and (kinds == UNKNOWN).any():
            unknown = int(np.flatnonzero(kinds == UNKNOWN)[0])
        is_used = (kinds == NORMAL) | (kinds == USER_DEFINED)
        used = np.flatnonzero(is_used | (kinds == UNUSED) if is_llama_cpp else is_used).tolist()
        named_bytes = np.flatnonzero(kinds == BYTE).tolist()
        normal = values[kinds == NORMAL]
        lowest = normal.min() if len(normal) else np.finfo(np.float32).max
        unknown_score = float(np.float32(lowest) - np.float32(_UNKNOWN_PENALTY))
        if is_llama_cpp:
            values[kinds == USER_DEFINED] = 0
    else:
        used = list(range(n))
        named_bytes = used
        unknown_score = float(values.min(initial=np.inf)) - _UNKNOWN_PENALTY if n else 0.0
    if byte_fallback:
        value_of = {f"<0x{byte:02X}>": byte for byte in range(256)}
        # Their names have six characters each.
        named_bytes = [index for index in named_bytes if sizes[index] == 6]
        for index, name in zip(named_bytes, columns.take(np.array(named_bytes, np.int64)).strings(), strict=True):
            byte = value_of.get(name)
            if byte is not None:
                byte_ids[byte] = index
        if is_sentencepiece and byte_ids.min() < 0:
            missing = f"<0x{int(np.argmin(byte_ids)):02X}>"
            raise ArgumentError(f"byte_fallback=True, but there is no piece {missing} of type BYTE; expected all 256")
    if unknown is None and not (byte_fallback and is_sentencepiece):
        raise ArgumentError("there is no unknown piece; expected one of type UNKNOWN, or unknown=, or byte fallback")
    if unknown is not None and unknown < 0:
        raise ArgumentError(f"unknown={unknown}; expected an id")

    lattice_scores = values.astype(np.float64)
    for index in np.flatnonzero(kinds == USER_DEFINED).tolist() if is_sentencepiece else ():
        piece = pieces[index]
        values[index] = np.float32(0.1 * (len(piece.encode("utf-8", "surrogatepass")) - 1))
        lattice_scores[index] = np.float32(0.1 * (len(piece) - 1))

    of_used = np.array(used, np.int64)
    if len(used) < n:
        columns = columns.take(of_used)
    array = build_double_array("", columns, of_used, ord(_BLANK) + 1)
    own_ids = np.arange(n) if ids is None else np.array(ids, np.int64)
    code_of = array.code_of << np.uint32(2)
    blank = int(code_of[ord(_BLANK)])
    if space_as_blank:
        code_of[0x20] = blank

    # Positions are multiplied by four, so that the kernels need not.
    units = array.units.reshape(-1, 4)
    is_node = units[:, 0] >= 0
    units[is_node, 0] *= 4
    units[:, 1] = 0
    units[:, 2] = -1
    place, token = array.layout.place, array.trie.token
    units[place, 1] = 4 * array.layout.base
    units[place, 2] = np.where(token >= 0, np.append(own_ids, -1)[token], token)
    bits = np.full(len(units), -np.inf, np.float32)
    named = np.flatnonzero(token >= 0)
    bits[place[named]] = values[token[named]].astype(np.float32)
    units[:, 3] = bits.view(np.int32)

    numbers = np.zeros(UNIGRAM_NUMBERS, np.int64)
    numbers[UNIGRAM_ROOT_BASE] = 4 * array.layout.base[0]
    numbers[UNIGRAM_RULE] = RULES[rule]
    numbers[UNIGRAM_UNKNOWN] = -1 if unknown is None else unknown
    numbers[UNIGRAM_MISSING] = is_missing
    numbers[UNIGRAM_BYTE_FALLBACK] = byte_fallback
    numbers[UNIGRAM_LONGEST] = max(1, int(columns.character_counts().max(initial=1)))
    inner = (array.trie.label == ord(_BLANK)) & (array.trie.parent > 0)
    is_blank = (array.trie.label == ord(_BLANK)) & (array.trie.parent == 0) & (token >= 0)
    numbers[UNIGRAM_SPACE_FIRST] = bool(is_blank.any()) and not inner.any()

    # Two characters that some piece has next to each other: an edge below the first level, and the one above it.
    inner_nodes = np.flatnonzero(array.trie.parent > 0)
    codes = 4 * array.codes.astype(np.uint64)
    pairs = codes[array.trie.parent[inner_nodes]] << np.uint64(32) | codes[inner_nodes]
    crossed = np.zeros(1 << max(0, int(len(np.unique(pairs)) // 4).bit_length()), np.uint64)
    bit = pairs * np.uint64(CROSSED_FACTOR) >> np.uint64(32) & np.uint64(64 * len(crossed) - 1)
    np.bitwise_or.at(crossed, bit >> np.uint64(6), np.uint64(1) << (bit & np.uint64(63)))

    page_of, kept = fold_pages(code_of)
    return UnigramTables(
        page_of=read_only(page_of),
        code_of=read_only(kept),
        units=read_only(units.ravel()),
        scores=read_only(lattice_scores if ids is None else _by_id(lattice_scores, own_ids)),
        byte_ids=read_only(byte_ids),
        unknown_score=read_only(np.array([unknown_score])),
        crossed=read_only(crossed),
        numbers=read_only(numbers),
    )


def _by_id(scores: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores of pieces by their ids, 0 for other ids."""
    result = np.zeros(int(ids.max(initial=-1)) + 1)
    result[ids] = scores
    return result


def piece_nodes(tables: UnigramTables) -> dict[int, tuple[str, float]]:
    """Each piece that is looked for, by its id: its string, and its score as float32. To look at; slow.

    Examples
    --------
    >>> tables = build_unigram_tables(["<unk>", "a", "ab"], [0.0, -1.0, -1.5], [2, 1, 1])
    >>> piece_nodes(tables)
    {1: ('a', -1.0), 2: ('ab', -1.5)}
    """
    units = tables.units.reshape(-1, 4)
    found: dict[int, tuple[str, float]] = {}
    character_of = _characters(tables)
    owner = {int(base): int(at) for at, base in enumerate(units[:, 1]) if base > 0}
    for at in np.flatnonzero(units[:, 2] >= 0).tolist():
        string, node = "", at
        while units[node, 0] >= 0:
            string = character_of[4 * node - int(units[node, 0])] + string
            node = owner[int(units[node, 0])]
        found[int(units[at, 2])] = (string, float(units[at, 3:4].view(np.float32)[0]))
    return dict(sorted(found.items()))


def piece_lengths(tables: UnigramTables, *, marks: bool = False) -> NDArray[np.integer[Any]]:
    """Bytes of text of each piece that is looked for, by its id, 0 for others; a blank is one byte if a space may be it.

    Parameters
    ----------
    tables
        The model's.
    marks
        Whether no space of the text is a blank: then U+2581 is always three bytes.

    Returns
    -------
    uint16[n] or int32[n]
        Read-only. Linear in the trie.

    Examples
    --------
    >>> tables = build_unigram_tables(["<unk>", "a", "a\u00e9"], [0.0, -1.0, -1.5], [2, 1, 1])
    >>> piece_lengths(tables).tolist()
    [0, 1, 3]
    """
    units = tables.units.reshape(-1, 4)
    root = int(tables.numbers[UNIGRAM_ROOT_BASE])
    characters = _characters(tables)
    bytes_of = np.zeros(max(characters, default=0) // 4 + 1, np.int32)
    for code, character in characters.items():
        bytes_of[code // 4] = len(character.encode("utf-8", "surrogatepass"))
    space, blank = (int(tables.code_of[int(tables.page_of[c >> 7]) << 7 | c & 127]) for c in (0x20, ord(_BLANK)))
    if space != 0 and space == blank and not marks:
        bytes_of[space // 4] = 1
    nodes = np.flatnonzero((units[:, 0] >= 0) & (np.arange(0, 4 * len(units), 4) > units[:, 0]))
    own = np.zeros(len(units), np.int32)
    own[nodes] = bytes_of[nodes - units[nodes, 0] // 4]
    # No two nodes that have children share a base.
    owner = np.zeros(int(units[:, 1].max(initial=0)) // 4 + 1, np.int64)
    owner[units[nodes, 1] // 4] = nodes
    named = nodes[units[nodes, 2] >= 0]
    lengths = np.zeros(max(len(tables.scores), 1), np.int32)
    at, token = named, units[named, 2]
    while len(at):
        lengths[token] += own[at]
        is_inner = units[at, 0] != root
        at, token = owner[units[at[is_inner], 0] // 4], token[is_inner]
    return read_only(lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths)


def _characters(tables: UnigramTables) -> dict[int, str]:
    """The character of each code; U+2581 where a space has the same."""
    pages = tables.code_of.reshape(-1, 128)
    # Pages are kept once; those with codes in them are the page of one number each.
    number = np.zeros(len(pages), np.int64)
    number[tables.page_of] = np.arange(len(tables.page_of))
    row, column = np.nonzero(pages)
    codepoints = number[row] << 7 | column
    order = np.argsort(codepoints)  # a blank comes after the space
    return dict(zip(pages[row, column][order].tolist(), map(chr, codepoints[order].tolist()), strict=True))
