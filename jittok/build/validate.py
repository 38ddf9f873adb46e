"""Checks of tables that come from a file: after them no kernel reads outside an array, and every loop ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.build.hash_tables import EMPTY
from jittok.errors import FormatError
from jittok.tables import (
    MASK_AHEAD,
    MASK_AND,
    MASK_BACK,
    MASK_OR,
    MERGE_BYTE_FALLBACK,
    MERGE_DIRECT,
    MERGE_NUMBERS,
    MERGE_RANKED,
    MERGE_UNIT,
    MERGE_UNKNOWN,
    MERGE_VARIANTS,
    SPLIT_NUMBERS,
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
    MergeTables,
    SplitTables,
    VocabularyTables,
    WordPieceTables,
)

_PAGES = 0x110000 >> 7
_NO_MERGE = (1 << 24) - 1
#: As many as the longest program that is ever built may need.
_MOST_MASKS = 2048


class _Checker:
    """Raises a FormatError that names the array when a condition does not hold."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __call__(self, condition: Any, name: str, expected: str) -> None:
        if not condition:
            raise FormatError(f"{self.where}: {name} is not valid: expected {expected}; the file is damaged")

    def arrays(self, tables: Any, dtypes: dict[str, Any]) -> None:
        """One dimension and the dtype that kernels are compiled for."""
        for name, dtype in dtypes.items():
            array = getattr(tables, name)
            self(array.ndim == 1 and array.dtype == dtype, name, f"a flat array of {np.dtype(dtype)}")

    def indptr(self, indptr: NDArray[Any], last: int, name: str) -> None:
        """Row pointers that begin at 0, never fall and end within `last`."""
        self(len(indptr) >= 1 and indptr[0] == 0, name, "a first value of 0")
        self((indptr[1:] >= indptr[:-1]).all(), name, "values that never fall")
        self(indptr[-1] <= last, name, f"a last value of at most {last}")

    def power_of_two(self, array: NDArray[Any], name: str) -> None:
        self(len(array) >= 8 and len(array) & (len(array) - 1) == 0, name, "a length that is a power of two")

    def below(self, array: NDArray[Any], limit: int, name: str) -> None:
        if len(array):
            self(int(array.max()) < limit and int(array.min()) >= 0, name, f"values from 0 to {limit - 1}")


def check_split(tables: SplitTables, where: str) -> None:
    """Check that a split kernel can trust `tables`.

    Raises
    ------
    FormatError
        Naming the array.
    """
    check = _Checker(where)
    check.arrays(
        tables,
        {
            "page_of": np.uint16, "class_of": np.uint8, "transitions": np.uint32, "entry_class": np.uint8,
            "program": np.int32, "numbers": np.int64,
        },
    )  # fmt: skip
    check(len(tables.numbers) == SPLIT_NUMBERS, "numbers", f"{SPLIT_NUMBERS} values")
    start, end_class, decided, undecided, n_masks = (int(n) for n in tables.numbers)
    n_pages, rest = divmod(len(tables.class_of), 128)
    check(len(tables.page_of) == _PAGES and tables.page_of[0] == 0, "page_of", f"{_PAGES} pages, the first of them 0")
    check(rest == 0 and n_pages > 0, "class_of", "whole pages")
    check.below(tables.page_of, n_pages, "page_of")
    check(0 < end_class < 127, "numbers", "an end class from 1 to 126")
    check.below(tables.class_of, end_class, "class_of")
    row = 1 << int(end_class).bit_length()
    check(len(tables.transitions) >= 2 * row and len(tables.transitions) % row == 0, "transitions", f"rows of {row}")
    following = tables.transitions >> 1
    check((following % row == 0).all(), "transitions", "next states that begin a row")
    check.below(following, len(tables.transitions), "transitions")
    check((following.reshape(-1, row)[:, end_class] == 0).all(), "transitions", "no way on after the end of the text")
    check(start % row == 0 and 0 < start < len(tables.transitions), "numbers", "a start state")
    check(end_class < n_masks <= _MOST_MASKS, "numbers", f"a mask for each class, and up to {_MOST_MASKS}")
    check(len(tables.entry_class) == 256, "entry_class", "256 values")
    check.below(tables.entry_class, end_class + 1, "entry_class")
    check(0 <= decided < n_masks and 0 <= undecided < n_masks, "numbers", "masks that there are")
    check(decided != undecided, "numbers", "two different masks")
    check(len(tables.program) % 4 == 0, "program", "rows of four values")
    operation, result, first, second = tables.program.reshape(-1, 4).T
    check.below(operation, MASK_AHEAD + 1, "program")
    check.below(result, n_masks, "program")
    check.below(first, n_masks, "program")
    check.below(second[(operation == MASK_OR) | (operation == MASK_AND)], n_masks, "program")
    back = second[operation == MASK_BACK]
    check(len(back) == 0 or (back.min() >= 1 and back.max() <= 3), "program", "shifts by 1 to 3 places")


def check_merges(tables: MergeTables, where: str) -> None:
    """Check that a merge kernel can trust `tables`; see :func:`check_split`."""
    check = _Checker(f"{where}: merges")
    check.arrays(
        tables,
        {
            "pair_slots": np.uint64, "byte_pair": np.int32, "merge_result": np.int32, "symbol_token": np.int32,
            "unit_slots": np.uint64, "fallback_symbol": np.int32, "direct_slots": np.uint64, "token_bytes": np.uint8,
            "token_indptr": np.int64, "reachable": np.uint8, "crossed": np.uint64, "numbers": np.int64,
        },
    )  # fmt: skip
    check(len(tables.numbers) == MERGE_NUMBERS, "numbers", f"{MERGE_NUMBERS} values")
    n_tokens = len(tables.token_indptr) - 1
    n_symbols, n_merges = len(tables.symbol_token), len(tables.merge_result)
    check.indptr(tables.token_indptr, len(tables.token_bytes) - 64, "token_indptr")
    check(n_symbols < 1 << 20, "symbol_token", "fewer than 2**20 symbols")
    check(n_merges < _NO_MERGE, "merge_result", "fewer merges")
    check.below(tables.symbol_token, n_tokens, "symbol_token")
    check.below(tables.merge_result, n_symbols, "merge_result")
    check(len(tables.reachable) == n_tokens, "reachable", "a value for each token")
    for name in ("pair_slots", "unit_slots", "direct_slots"):
        check.power_of_two(getattr(tables, name), name)
    check((tables.pair_slots[7::8] == EMPTY).any(), "pair_slots", "a line of eight slots that is not full")
    pairs = tables.pair_slots[tables.pair_slots != EMPTY]
    made = (pairs & np.uint64(_NO_MERGE)).astype(np.int64)
    left, right = (pairs >> np.uint64(44)).astype(np.int64), (pairs >> np.uint64(24) & np.uint64(0xFFFFF)).astype(np.int64)
    check.below(made, n_merges, "pair_slots")
    check.below(left, n_symbols, "pair_slots")
    check.below(right, n_symbols, "pair_slots")
    units = tables.unit_slots[tables.unit_slots != EMPTY]
    check(len(units) < len(tables.unit_slots), "unit_slots", "an empty slot")
    if len(units):
        check(int((units & np.uint64(0xFFFFFFFF)).max()) < n_symbols, "unit_slots", "numbers of symbols")
    direct = tables.direct_slots[tables.direct_slots != EMPTY]
    check(len(direct) < len(tables.direct_slots), "direct_slots", "an empty slot")
    if len(direct):
        check(int((direct & np.uint64(0xFFFFFFFF)).max()) < n_tokens, "direct_slots", "ids of tokens")
    check(len(tables.fallback_symbol) == 256, "fallback_symbol", "256 values")
    check(int(tables.fallback_symbol.max()) < n_symbols, "fallback_symbol", "numbers of symbols")
    check(len(tables.crossed) >= 1 and len(tables.crossed) & (len(tables.crossed) - 1) == 0, "crossed", "a power of two")
    numbers = [int(n) for n in tables.numbers]
    check(numbers[MERGE_RANKED] in (0, 1) and numbers[MERGE_UNIT] in (0, 1), "numbers", "flags of 0 or 1")
    check(-1 <= numbers[MERGE_UNKNOWN] < n_symbols, "numbers", "an unknown token")
    check(0 <= numbers[MERGE_VARIANTS] <= 3, "numbers", "variants from 0 to 3")
    check(numbers[MERGE_BYTE_FALLBACK] in (0, 1) and numbers[MERGE_DIRECT] >= 0, "numbers", "flags of 0 or 1")
    if numbers[MERGE_RANKED]:
        check(n_symbols == 256 + n_merges, "symbol_token", "the bytes and one symbol for each merge")
        check((tables.merge_result == np.arange(256, n_symbols)).all(), "merge_result", "a symbol for each merge, in order")
        check(len(tables.byte_pair) == 1 << 16, "byte_pair", "65536 values")
        known = tables.byte_pair[tables.byte_pair != _NO_MERGE]
        check.below(known, n_merges, "byte_pair")
        # Spans add up the lengths of tokens, so these must be the lengths of the text that is merged.
        lengths = np.diff(tables.token_indptr)[tables.symbol_token]
        check((lengths[:256] == 1).all(), "token_indptr", "one byte for each symbol of a byte")
        check((lengths[256 + known] == 2).all(), "byte_pair", "merges that make tokens of two bytes")
        check(
            (lengths[256 + made] == lengths[left] + lengths[right]).all(),
            "pair_slots",
            "merges whose token is as long as its two parts",
        )


def check_vocabulary(tables: VocabularyTables, where: str) -> None:
    """Check the look-up tables of tokens; see :func:`check_split`."""
    check = _Checker(f"{where}: vocabulary")
    check.arrays(
        tables,
        {
            "strings": np.uint8, "string_indptr": np.int64, "token_bytes": np.uint8, "bytes_indptr": np.int64,
            "flags": np.uint8, "hashes": np.uint32, "hash_ids": np.int32,
        },
    )  # fmt: skip
    size = len(tables.flags)
    check(len(tables.string_indptr) == size + 1, "string_indptr", f"{size + 1} values")
    check(len(tables.bytes_indptr) == size + 1, "bytes_indptr", f"{size + 1} values")
    check.indptr(tables.string_indptr, len(tables.strings), "string_indptr")
    check.indptr(tables.bytes_indptr, len(tables.token_bytes), "bytes_indptr")
    check(len(tables.hashes) == len(tables.hash_ids), "hash_ids", "an id for each hash")
    check((tables.hashes[1:] >= tables.hashes[:-1]).all(), "hashes", "values that never fall")
    check.below(tables.hash_ids, size, "hash_ids")


def check_wordpiece(tables: WordPieceTables, size: int, where: str) -> None:
    """Check that a WordPiece kernel can trust `tables`; see :func:`check_split`. Ids are to be below `size`."""
    check = _Checker(f"{where}: wordpiece")
    check.arrays(
        tables,
        {
            "page_of": np.uint16, "code_of": np.uint32, "units": np.int32, "pop_indptr": np.int32,
            "pop_before": np.int32, "pop_count": np.int32, "pop_ids": np.int32, "pop_lengths": np.int32,
            "token_lengths": np.int32, "indicator": np.uint8, "numbers": np.int64,
        },
    )  # fmt: skip
    check(len(tables.numbers) == WORDPIECE_NUMBERS, "numbers", f"{WORDPIECE_NUMBERS} values")
    numbers = [int(n) for n in tables.numbers]
    n_pages, rest = divmod(len(tables.code_of), 128)
    check(rest == 0 and n_pages > 0, "code_of", "whole pages")
    check(len(tables.page_of) == _PAGES and tables.page_of[0] == 0, "page_of", f"{_PAGES} pages, the first of them 0")
    check.below(tables.page_of, n_pages, "page_of")
    codes = (tables.code_of >> np.uint32(2)).reshape(-1, 128)[tables.page_of].ravel()
    coded = np.flatnonzero(codes)
    largest = int(codes.max())
    check(largest <= 0x110000 and len(tables.units) % 4 == 0, "code_of", "codes of codepoints")
    n_bytes = np.zeros(largest + 1, np.int64)
    n_bytes[codes[coded]] = 1 + (coded >= 0x80) + (coded >= 0x800) + (coded >= 0x10000)
    check(np.count_nonzero(n_bytes) == len(coded), "code_of", "a code of its own for each codepoint that has one")

    units = tables.units.reshape(-1, 4)
    owner_base, base, link, pops = units.T.astype(np.int64)
    check(len(units) > largest, "units", "room for every code")
    check((base % 4 == 0).all(), "units", "bases that are multiples of four")
    check.below(base // 4, len(units) - largest, "units")
    roots = numbers[WORDPIECE_ROOT], numbers[WORDPIECE_SUFFIX_ROOT]
    check(all(node % 4 == 0 for node in roots), "numbers", "roots at multiples of four")
    root, suffix_root = (node // 4 for node in roots)
    for value, own in ((root, WORDPIECE_ROOT_BASE), (suffix_root, WORDPIECE_SUFFIX_BASE)):
        check(0 <= value < len(units) and base[value] == numbers[own], "numbers", "roots, and their bases")
    nodes = np.flatnonzero(owner_base >= 0)
    check(owner_base[root] == -1 and (owner_base[nodes] > 0).all(), "units", "parents that have bases")
    inner = np.flatnonzero((base > 0) & ((owner_base > 0) | (np.arange(len(units)) == root)))
    owner = np.full(len(units), -1, np.int64)
    owner[base[inner] // 4] = inner
    check(np.count_nonzero(owner >= 0) == len(inner), "units", "another base for each node")
    # Every node leads up to the root, in as many steps as its string has characters.
    parent, depth = np.full(len(units), root), np.zeros(len(units), np.int64)
    check.below(owner_base[nodes] // 4, len(units), "units")
    parent[nodes] = owner[owner_base[nodes] // 4]
    code = nodes - owner_base[nodes] // 4
    check(len(nodes) == 0 or int(parent[nodes].min()) >= 0, "units", "parents that there are")
    check.below(code, largest + 1, "units")
    check((n_bytes[code] > 0).all(), "units", "codes of characters")
    depth[nodes] = n_bytes[code]
    below = np.arange(len(units)) == suffix_root
    for _ in range(int(len(nodes)).bit_length() + 1):
        depth, below, parent = depth + depth[parent], below | below[parent], parent[parent]
    check((parent == root).all(), "units", "nodes that lead up to the root")
    check(len(tables.indicator) == depth[suffix_root], "indicator", "the string of the suffix root")
    depth[below] -= depth[suffix_root]

    # What is given out and what goes on stand for the characters read: so an output never grows beyond the text.
    n_lists = len(tables.pop_before)
    check(len(tables.pop_count) == n_lists > 0, "pop_count", "a value for each list")
    check(len(tables.pop_indptr) == n_lists + 1, "pop_indptr", f"{n_lists + 1} values")
    check.indptr(tables.pop_indptr, len(tables.pop_ids), "pop_indptr")
    check(len(tables.pop_lengths) == len(tables.pop_ids), "pop_lengths", "a length for each id")
    check.below(tables.pop_ids, size, "pop_ids")
    check(len(tables.pop_lengths) == 0 or int(tables.pop_lengths.min()) > 0, "pop_lengths", "lengths above 0")
    before = tables.pop_before.astype(np.int64)
    check(before[0] == 0 and tables.pop_count[0] == 0 and tables.pop_indptr[1] == 0, "pop_count", "an empty first list")
    check((before[1:] < np.arange(1, n_lists)).all() and before.min() >= 0, "pop_before", "earlier lists")
    count = np.diff(tables.pop_indptr).astype(np.int64)
    total = np.concatenate(([0], np.cumsum(tables.pop_lengths, dtype=np.int64)))
    length = np.diff(total[tables.pop_indptr])
    for _ in range(n_lists.bit_length()):
        count, length, before = count + count[before], length + length[before], before[before]
    check((count == tables.pop_count).all() and (count[1:] > 0).all(), "pop_count", "the number of ids of each list")
    check.below(pops[pops >= 0], size, "units")
    check.below(-1 - pops[pops < 0], n_lists, "units")
    check((depth[nodes][pops[nodes] >= 0] > 0).all(), "units", "tokens that are not empty")
    check(pops[[root, suffix_root]].max() < 0, "units", "roots that are no tokens")
    linked = np.flatnonzero(pops < -1)
    check((link[linked] % 4 == 0).all(), "units", "links to nodes")
    target = link[linked] // 4
    check.below(target, len(units), "units")
    check(below[target].all(), "units", "links below the suffix root")
    right = length[-1 - pops[linked]] + depth[target] == depth[linked]
    check(right.all(), "units", "links and pops that stand for the whole string")

    check(0 <= numbers[WORDPIECE_UNKNOWN] < size, "numbers", "an unknown token")
    if len(tables.token_lengths):
        tokens = nodes[pops[nodes] >= 0]
        known = len(tables.token_lengths) > max(
            numbers[WORDPIECE_UNKNOWN], int(pops[tokens].max(initial=-1)), int(tables.pop_ids.max(initial=-1))
        )
        check(known, "token_lengths", "a length for each id")
        # Tokens of a word but the first take their length from here, and the first what is left.
        right = (tables.token_lengths[pops[tokens]] == depth[tokens]).all()
        right &= (tables.token_lengths[tables.pop_ids] == tables.pop_lengths).all()
        check(bool(right), "token_lengths", "the bytes of tokens")
    check(-1 <= numbers[WORDPIECE_PREFIX_TOKEN] < size, "numbers", "a token")
    first = numbers[WORDPIECE_PREFIX_BYTES]
    if numbers[WORDPIECE_PREFIX_TOKEN] >= 0:
        check(0 < first <= len(tables.indicator), "numbers", "a part of the suffix indicator")
        cut = first < len(tables.indicator) and tables.indicator[first] & 0xC0 == 0x80
        check(not cut, "numbers", "whole characters of the suffix indicator")
    check(numbers[WORDPIECE_MAX_INPUT] >= 0, "numbers", "a longest word")
    check(numbers[WORDPIECE_MAX_BYTES] in (0, 1) and numbers[WORDPIECE_SKIP_SPACE] in (0, 1), "numbers", "flags of 0 or 1")
    check(numbers[WORDPIECE_MISSING] in (0, 1), "numbers", "flags of 0 or 1")
