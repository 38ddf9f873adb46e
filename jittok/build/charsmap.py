"""Charsmaps: the normalization rules of SentencePiece files, as they are stored and as kernels read them.

A charsmap is a length (four bytes, little-endian), a double array of that many bytes, and strings that end with NUL
bytes. The double array maps the UTF-8 of the left side of a rule to where its right side begins among the strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok import tables, unicode
from jittok.errors import ArgumentError, FormatError, UnsupportedError
from jittok.spec import LlamaCppCleanUp, LlamaCppNormalizer, SentencePieceNormalizer
from jittok.tables import CharsmapTables, PrecompiledTables, read_only
from jittok.unicode.graphemes import grapheme_classes
from jittok.unicode.normalization import fold_pages

_LABEL = 0x800000FF
_HAS_VALUE = 0x100
_VALUE = 0x7FFFFFFF
_BLOCK = 256  # units; the size of a double array is a multiple
_SEARCHED = 16 * _BLOCK  # units at the end in which room is looked for
#: Bytes of the left side of a rule; a longer path comes from a cycle.
_LONGEST_KEY = 1000
#: How often a unit may be met at different depths, on average: without cycles it hardly ever is.
_MOST_VISITS = 8
_REMEDY = "get the file again from where it came from"


class Charsmap(NamedTuple):
    """The parts of a charsmap."""

    units: NDArray[np.uint32]
    strings: NDArray[np.uint8]


class _Keys(NamedTuple):
    """What a double array says about the codepoints that keys begin with, and those that come second."""

    codepoints: NDArray[np.int64]  # first ones, each once
    values: NDArray[np.int64]  # of the key that is this codepoint alone, -1: none
    is_longer: NDArray[np.bool_]  # whether a longer key begins with it
    before_ascii: NDArray[np.bool_]  # whether such a key has ASCII as its second codepoint
    second: NDArray[np.int64]  # codepoints, each once


def parse_charsmap(blob: bytes, where: str) -> Charsmap:
    """Take a charsmap apart and check it.

    Parameters
    ----------
    blob
        Not empty.
    where
        What it is part of, for messages.

    Returns
    -------
    Charsmap
        Safe to walk: nothing points outside, every key is whole codepoints of UTF-8, and there are no cycles.

    Raises
    ------
    FormatError
        It is cut short, a value or an offset points outside, or there is a cycle.
    """
    units, strings, _ = _parsed(blob, where)
    return Charsmap(units, strings)


def _parsed(blob: bytes, where: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8], _Keys]:
    def broken(problem: str) -> FormatError:
        return FormatError(f"{where}: {problem}; {_REMEDY}")

    size = int.from_bytes(blob[:4], "little")
    if len(blob) <= 4 or size >= len(blob) - 4:
        raise broken(f"the double array should have {size} bytes, but only {max(len(blob) - 4, 0)} follow its length")
    if size < 4 * _BLOCK or size % (4 * _BLOCK):
        raise broken(f"the double array has {size} bytes; expected a multiple of {4 * _BLOCK}")
    units = np.frombuffer(blob, "<u4", size // 4, 4).astype(np.uint32)
    strings = np.frombuffer(blob, np.uint8, len(blob) - 4 - size, 4 + size).copy()
    if strings[-1] != 0:
        raise broken("the strings do not end with a NUL byte")
    try:
        strings.tobytes().decode()
    except UnicodeDecodeError as error:
        raise broken(f"the strings are not UTF-8 at byte {error.start}") from None
    problem = _check_units(units, strings)
    if problem is None:
        keys = _keys(units)
        if not isinstance(keys, str):
            return read_only(units), read_only(strings), keys
        problem = keys
    raise broken(problem)


def _check_units(units: NDArray[np.uint32], strings: NDArray[np.uint8]) -> str | None:
    """Say what is wrong with the double array, apart from cycles."""
    size = len(units)
    number = np.arange(size, dtype=np.int64)
    label = units & _LABEL
    base = number ^ _offsets(units)
    is_node = label <= 0xFF
    root = int(units[0])
    if label[0] != 0 or root & _HAS_VALUE or base[0] == 0:
        return "the double array does not begin with a root"
    outside = is_node & ((base | 0xFF) >= size)
    if outside.any():
        return f"unit {int(np.argmax(outside))} of the double array points outside of it"
    with_value = np.flatnonzero(is_node & ((units & _HAS_VALUE) != 0))
    if (label[base[with_value]] <= 0xFF).any():
        return "the double array has a unit whose value is missing"
    values = (units & _VALUE)[~is_node].astype(np.int64)
    if (values >= len(strings)).any():
        return f"the double array has the value {int(values.max())}, but the strings have {len(strings)} bytes"
    # Only values in use matter here: between a character's bytes no right side can begin.
    used = (units & _VALUE)[base[with_value]].astype(np.int64)
    if ((strings[used] & 0xC0) == 0x80).any():
        return "a value of the double array points between the bytes of a character"
    return None


def _offsets(units: NDArray[np.uint32]) -> NDArray[np.int64]:
    return (units >> 10).astype(np.int64) << ((units.astype(np.int64) & 0x200) >> 6)


def _keys(units: NDArray[np.uint32], longest: int = _LONGEST_KEY) -> _Keys | str:
    """Walk a checked double array, whose keys have at most so many characters, level by level; a problem as text."""
    number = np.arange(len(units), dtype=np.int64)
    label = (units & _LABEL).astype(np.int64)
    base_of = number ^ _offsets(units)
    nodes = np.flatnonzero(label <= 0xFF)
    parent = nodes ^ label[nodes]
    order = np.argsort(parent, kind="stable")
    nodes, parent = nodes[order], parent[order]
    has_value = (units & _HAS_VALUE) != 0
    value_of = np.where(has_value, (units[base_of % len(units)] & _VALUE).astype(np.int64), -1)

    def children(bases: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For all bases the units below them, and which of the bases each is below."""
        low, high = np.searchsorted(parent, bases, "left"), np.searchsorted(parent, bases, "right")
        counts = high - low
        which = np.repeat(np.arange(len(bases)), counts)
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
        return nodes[places], which

    def one_codepoint(bases: NDArray[np.int64]) -> tuple[Any, ...] | str:
        """Go on by a codepoint: the units reached, which base each comes from, and the codepoints."""
        done: list[tuple[NDArray[np.int64], ...]] = []
        reached, which = children(bases)
        byte = label[reached]
        rest = np.select([byte < 0x80, byte < 0xC2, byte < 0xE0, byte < 0xF0, byte < 0xF5], [0, -1, 1, 2, 3], -1)
        value = np.select([rest == 0, rest == 1, rest == 2], [byte, byte & 0x1F, byte & 0xF], byte & 7)
        while True:
            if (rest < 0).any():
                return "the left side of a rule is not UTF-8"
            whole = rest == 0
            done.append((reached[whole], which[whole], value[whole]))
            reached, which, value, rest = (array[~whole] for array in (reached, which, value, rest))
            if not len(reached):
                return tuple(np.concatenate(parts) for parts in zip(*done, strict=True))
            if has_value[reached].any():
                return "the left side of a rule ends between the bytes of a character"
            below, source = children(base_of[reached])
            if len(np.unique(source)) < len(reached):
                return "the left side of a rule ends between the bytes of a character"
            byte = label[below]
            value = value[source] << 6 | byte & 0x3F
            rest = np.where(byte >> 6 == 2, rest[source] - 1, -1)
            reached, which = below, which[source]

    first = one_codepoint(base_of[:1])
    if isinstance(first, str):
        return first
    reached, _, codepoints = first
    if (codepoints >= 0x110000).any():
        return "the left side of a rule is not UTF-8"
    low, high = np.searchsorted(parent, base_of[reached], "left"), np.searchsorted(parent, base_of[reached], "right")
    is_longer = high > low
    before_ascii = np.zeros(len(reached), np.bool_)
    second = np.zeros(0, np.int64)
    bases, which_base = np.unique(base_of[reached[is_longer]], return_inverse=True)
    n_visited = 0
    for depth in range(longest + 1):  # at the last one there is nothing
        n_visited += len(bases)
        if not len(bases):
            break
        if n_visited > _MOST_VISITS * len(units):
            return "the double array has a cycle"
        following = one_codepoint(bases)
        if isinstance(following, str):
            return following
        if depth == 0:
            has_ascii = np.zeros(len(bases), np.bool_)
            has_ascii[following[1][following[2] < 0x80]] = True
            before_ascii[is_longer] = has_ascii[which_base]
            second = np.unique(following[2])
            if (second >= 0x110000).any():
                return "the left side of a rule is not UTF-8"
        bases = np.unique(base_of[following[0]])
    else:
        return f"the left side of a rule has more than {longest} characters, or the double array has a cycle"
    return _Keys(codepoints, value_of[reached], is_longer, before_ascii, second)


# ------------------------------------------------------------------------------------------------------ building


def compile_charsmap(rules: Mapping[str, str]) -> bytes:
    """Make a charsmap.

    Parameters
    ----------
    rules
        Left sides, which are not empty and hold no NUL, to right sides, which hold no NUL.

    Returns
    -------
    bytes
        Empty for no rules, which is how a file says that there are none. About 30 us a rule.

    Raises
    ------
    FormatError
        A rule is not allowed, or more than 31 rules begin one with the other.
    """
    if not rules:
        return b""
    for left, right in rules.items():
        if not left or "\0" in left or "\0" in right:
            raise FormatError(f"the rule {left!r} -> {right!r} is empty on the left or holds a NUL character")
        if sum(left[:length] in rules for length in range(1, len(left) + 1)) > 31:
            raise FormatError(f"more than 31 left sides of rules are beginnings of {left!r}")
    strings = bytearray()
    place: dict[str, int] = {}
    for right in sorted(set(rules.values())):
        place[right] = len(strings)
        strings += right.encode() + b"\0"
    keys = sorted((left.encode(), place[right]) for left, right in rules.items())
    units = build_double_array([key for key, _ in keys], [value for _, value in keys])
    return (4 * len(units)).to_bytes(4, "little") + units.astype("<u4").tobytes() + bytes(strings)


def build_double_array(keys: list[bytes], values: list[int]) -> NDArray[np.uint32]:
    """Build a double array; see :class:`~jittok.tables.CharsmapTables`.

    Parameters
    ----------
    keys
        Sorted, all different, not empty, without NUL bytes.
    values
        From 0 to 2**31 - 1.

    Returns
    -------
    uint32[n]
        `n` is a multiple of 256, which every reader of such arrays may rely on.
    """
    nodes, root = _minimal_trie(keys, values)
    if not keys:
        return read_only(np.zeros(_BLOCK, np.uint32))
    units = np.zeros(_BLOCK, np.int64)
    used = np.zeros(_BLOCK, np.bool_)
    used[0] = True
    is_base = np.zeros(_BLOCK, np.bool_)
    base_of: dict[int, int] = {}
    first_free = 1
    queue = [root]
    base_of[root] = -1
    for node in queue:
        value, below = nodes[node]
        wanted = np.array(([0] if value >= 0 else []) + [byte for byte, _ in below], np.int64)
        start = max(first_free, len(used) - _SEARCHED)
        while True:
            candidates = np.flatnonzero(~used[start:]) + start
            # The free unit goes to the first label; its block stays the same, as labels are below 256.
            bases = candidates ^ int(wanted[0])
            fits = ~is_base[bases] & (bases > 0) & ~used[bases[:, None] ^ wanted].any(axis=1)
            if fits.any():
                base = int(bases[np.argmax(fits)])
                break
            start = len(used)
            units = np.append(units, np.zeros(_BLOCK, np.int64))
            used, is_base = (np.append(array, np.zeros(_BLOCK, np.bool_)) for array in (used, is_base))
        base_of[node] = base
        is_base[base] = True
        used[base ^ wanted] = True
        while first_free < len(used) and used[first_free]:
            first_free += 1
        for _, child in below:
            if child not in base_of:
                base_of[child] = -1
                queue.append(child)
    for node, base in base_of.items():
        value, below = nodes[node]
        if value >= 0:
            units[base] = value | 1 << 31
        for byte, child in below:
            units[base ^ byte] = byte | _link(base ^ byte, base_of[child], nodes[child][0] >= 0)
    units[0] = _link(0, base_of[root], False)
    # Units that are not used must not look like the child of any: no other base is the exclusive or of the two.
    free = np.flatnonzero(~used)
    for block in np.unique(free // _BLOCK).tolist():
        inside = free[free // _BLOCK == block]
        taken = np.flatnonzero(is_base[block * _BLOCK : (block + 1) * _BLOCK])
        spare = np.setdiff1d(np.arange(_BLOCK), taken)
        nowhere = block * _BLOCK + int(spare[0]) if len(spare) else block * _BLOCK
        units[inside] = (inside ^ nowhere) & 0xFF
    # Every node's offset must stay inside, leaves and unused units included; theirs is 0.
    return read_only(units.astype(np.uint32))


def _link(place: int, base: int, has_value: bool) -> int:
    """The upper bits of the unit at `place` whose children are around `base`."""
    offset = place ^ base
    if offset < 1 << 21:
        return offset << 10 | has_value * _HAS_VALUE
    if offset & 0xFF or offset >= 1 << 29:
        raise UnsupportedError("too many rules for a double array")
    return (offset >> 8) << 10 | 0x200 | has_value * _HAS_VALUE


_Node = tuple[int, tuple[tuple[int, int], ...]]


def _minimal_trie(keys: list[bytes], values: list[int]) -> tuple[list[_Node], int]:
    """Nodes as (value or -1, ((byte, child), ...)), of which no two are equal, and the number of the root."""
    nodes: list[_Node] = []
    numbers: dict[_Node, int] = {}
    path: list[tuple[int, int, list[tuple[int, int]]]] = [(0, -1, [])]  # byte that leads there, value, children

    def close(depth: int) -> None:
        while len(path) > depth:
            byte, value, below = path.pop()
            node = (value, tuple(below))
            number = numbers.setdefault(node, len(nodes))
            if number == len(nodes):
                nodes.append(node)
            path[-1][2].append((byte, number))

    before = b""
    for key, value in zip(keys, values, strict=True):
        shared = 0
        while shared < min(len(before), len(key)) and before[shared] == key[shared]:
            shared += 1
        close(shared + 1)
        for position in range(shared, len(key)):
            path.append((key[position], value if position == len(key) - 1 else -1, []))
        before = key
    close(1)
    nodes.append((-1, tuple(path[0][2])))
    return nodes, len(nodes) - 1


def rules_of(blob: bytes, where: str = "charsmap") -> dict[str, str]:
    """The rules of a charsmap: the opposite of :func:`compile_charsmap`.

    Parameters
    ----------
    blob
        A charsmap; empty for no rules.
    where
        What it is part of, for messages.

    Raises
    ------
    FormatError
        The charsmap is not sound.
    """
    if not blob:
        return {}
    units, strings = parse_charsmap(blob, where)
    label = (units & _LABEL).astype(np.int64)
    base_of = np.arange(len(units)) ^ _offsets(units)
    below: dict[int, list[int]] = {}
    nodes = np.flatnonzero(label <= 0xFF)
    for node, parent in zip(nodes.tolist(), (nodes ^ label[nodes]).tolist(), strict=True):
        below.setdefault(parent, []).append(node)
    bases, labels, packed, text = base_of.tolist(), label.tolist(), units.tolist(), strings.tobytes()
    rules: dict[str, str] = {}
    stack = [(bases[0], b"")]
    while stack:
        base, key = stack.pop()
        for node in below.get(base, ()):
            longer = key + bytes((labels[node],))
            if packed[node] & _HAS_VALUE:
                place = packed[bases[node]] & _VALUE
                rules[longer.decode()] = text[place : text.index(b"\0", place)].decode()
            stack.append((bases[node], longer))
    return rules


# ------------------------------------------------------------------------------------------------------- tables


@lru_cache(maxsize=16)
def charsmap_tables(step: SentencePieceNormalizer, compact: bool = False) -> CharsmapTables:
    """Build the tables of SentencePiece's normalizer.

    Parameters
    ----------
    step
        What to do.
    compact
        Write U+0020 for every U+2581, with which there is no other U+0020: words are shorter, and blanks need not be
        rewritten. Only if the step escapes white space.

    Raises
    ------
    FormatError
        The charsmap is not sound.
    """
    entry = np.zeros(0x110000, np.uint32)
    before_ascii = np.zeros(128, np.bool_)
    nothing = build_double_array([], [])
    rules, symbols, strings = nothing, nothing, np.zeros(1, np.uint8)
    if step.charsmap:
        rules, strings, keys = _parsed(step.charsmap, "charsmap")
        _mark(entry, before_ascii, keys, tables.CHARSMAP_MAPPED)
        mapped = keys.values >= 0
        entry[keys.codepoints[mapped]] |= (keys.values[mapped] << tables.CHARSMAP_OFFSET).astype(np.uint32)
    if step.symbols:
        encoded = sorted({symbol.encode() for symbol in step.symbols})
        symbols = build_double_array(encoded, [0] * len(encoded))
        keys_of_symbols = _keys(symbols, max(map(len, step.symbols)))
        assert not isinstance(keys_of_symbols, str)  # it was made here
        _mark(entry, before_ascii, keys_of_symbols, tables.CHARSMAP_SYMBOL)
    if step.escape_whitespaces and compact and not entry[0x2581] & tables.CHARSMAP_MAPPED:
        # Not just copied: a kernel looks at what becomes of it.
        entry[0x2581] |= len(strings) << tables.CHARSMAP_OFFSET | tables.CHARSMAP_MAPPED
        strings = np.concatenate([strings, np.frombuffer("\u2581\0".encode(), np.uint8)])
    page_of, pages = fold_pages(entry)
    numbers = np.zeros(tables.CHARSMAP_NUMBERS, np.int64)
    numbers[tables.CHARSMAP_PREFIX] = step.add_dummy_prefix and not step.treat_whitespace_as_suffix
    numbers[tables.CHARSMAP_SUFFIX] = step.add_dummy_prefix and step.treat_whitespace_as_suffix
    numbers[tables.CHARSMAP_REMOVES] = step.remove_extra_whitespaces
    numbers[tables.CHARSMAP_BLANK] = 3 if step.escape_whitespaces and not compact else 1
    numbers[tables.CHARSMAP_COMPACT] = step.escape_whitespaces and compact
    numbers[tables.CHARSMAP_HAS_SYMBOLS] = len(step.symbols) > 0
    numbers[tables.CHARSMAP_LLAMA_CPP] = isinstance(step, LlamaCppNormalizer)
    newline = int(entry[10])
    if newline & 15 == tables.CHARSMAP_MAPPED:
        place = newline >> tables.CHARSMAP_OFFSET
        numbers[tables.CHARSMAP_NEWLINE] = bool(strings[place] == 0x20 and strings[place + 1] == 0)
    # A single-character symbol is copied even if there is a rule for it.
    changes = (entry[:128] & (tables.CHARSMAP_MAPPED | tables.CHARSMAP_SYMBOL)) == tables.CHARSMAP_MAPPED
    return CharsmapTables(
        page_of,
        pages,
        read_only(strings),
        rules,
        symbols,
        read_only(_ranges(np.concatenate([changes | before_ascii, np.ones(128, np.bool_)]))),
        read_only(numbers),
    )


@lru_cache(maxsize=4)
def clean_up_rules(step: LlamaCppCleanUp) -> CharsmapTables:
    """Build the tables of llama.cpp's clean-up: rules for single codepoints, a blank before each word, no other ones.

    Parameters
    ----------
    step
        What to do.
    """
    from jittok.unicode.llama_cpp import clean_up

    entry = np.zeros(0x110000, np.uint32)
    strings = bytearray(b"\0")
    places: dict[str, int] = {}
    content = clean_up(step.lowercase, step.strip_accents)
    for codepoint in np.flatnonzero(content != None).tolist():  # noqa: E711  (an array of objects)
        text = content[codepoint]
        if text not in places:
            places[text] = len(strings)
            strings += text.encode() + b"\0"
        entry[codepoint] = places[text] << tables.CHARSMAP_OFFSET | tables.CHARSMAP_MAPPED
    page_of, pages = fold_pages(entry)
    numbers = np.zeros(tables.CHARSMAP_NUMBERS, np.int64)
    numbers[[tables.CHARSMAP_PREFIX, tables.CHARSMAP_REMOVES]] = 1
    numbers[tables.CHARSMAP_BLANK] = 3
    numbers[[tables.CHARSMAP_NEWLINE, tables.CHARSMAP_LLAMA_CPP]] = 1
    changes = entry[:128] != 0
    nothing = build_double_array([], [])
    return CharsmapTables(
        page_of,
        pages,
        read_only(np.frombuffer(bytes(strings), np.uint8)),
        nothing,
        nothing,
        read_only(_ranges(np.concatenate([changes, np.ones(128, np.bool_)]))),
        read_only(numbers),
    )


def _mark(entry: NDArray[np.uint32], before_ascii: NDArray[np.bool_], keys: _Keys, alone: int) -> None:
    """Set the flags of the codepoints of keys; `alone` for those that are a key by themselves."""
    entry[keys.codepoints[keys.values >= 0]] |= alone
    entry[keys.codepoints[keys.is_longer]] |= tables.CHARSMAP_LONGER
    entry[keys.second] |= tables.CHARSMAP_CONTINUES
    first = keys.codepoints[keys.before_ascii]
    before_ascii[first[first < 128]] = True


def _ranges(wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Runs of True, as first place and length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
    return np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1).astype(np.int64)


def read_rules(text: Iterable[str], where: str) -> dict[str, str]:
    """Read a table of rules as SentencePiece takes it: hexadecimal codepoints, a TAB, hexadecimal codepoints.

    Parameters
    ----------
    text
        Lines. What follows a second TAB is a comment; without a first one the left side is left out of texts.
    where
        Name of the file, for messages.

    Raises
    ------
    FormatError
        A line has no left side, or something that is not a codepoint.
    """
    rules: dict[str, str] = {}
    for number, line in enumerate(text, 1):
        fields = line.rstrip("\n").split("\t")
        try:
            sides = ["".join(chr(int(code.removeprefix("U+"), 16)) for code in side.split()) for side in fields[:2]]
        except ValueError:
            raise FormatError(f"{where}: line {number}: expected hexadecimal codepoints, got {line!r}") from None
        if not sides[0]:
            raise FormatError(f"{where}: line {number}: the left side of the rule is empty")
        if len(sides[0]) > _LONGEST_KEY:
            raise FormatError(f"{where}: line {number}: expected at most {_LONGEST_KEY} codepoints on the left side")
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in "".join(sides)):
            raise FormatError(f"{where}: line {number}: neither 0000 nor D800 to DFFF can be in text; got {line!r}")
        rules[sides[0]] = sides[1] if len(sides) > 1 else ""
    return rules


@lru_cache(maxsize=16)
def precompiled_tables(charsmap: bytes) -> PrecompiledTables:
    """Build the tables of tokenizers' Precompiled normalizer.

    Parameters
    ----------
    charsmap
        Not empty.

    Raises
    ------
    FormatError
        The charsmap is not sound.
    """
    rules, strings, keys = _parsed(charsmap, "precompiled_charsmap")
    page_of, pages = fold_pages(_entries(keys))
    return PrecompiledTables(page_of, pages, *fold_pages(grapheme_classes()), strings, rules)


def precompiled_suspicion(charsmap: bytes) -> NDArray[np.uint8]:
    """SUSPICION_* of each codepoint, uint8[0x110000], for tokenizers' Precompiled normalizer.

    Parameters
    ----------
    charsmap
        Not empty.
    """
    entry = _entries(_parsed(charsmap, "precompiled_charsmap")[2])
    # A longer rule needs something that comes second in one.
    changes = (entry & (tables.CHARSMAP_MAPPED | tables.CHARSMAP_CONTINUES)) != 0
    return np.where(changes, np.uint8(tables.SUSPICION_CHANGES), np.uint8(tables.SUSPICION_NONE))


def _entries(keys: _Keys) -> NDArray[np.uint32]:
    """An entry for each codepoint, from the rules."""
    entry = np.zeros(0x110000, np.uint32)
    _mark(entry, np.zeros(128, np.bool_), keys, tables.CHARSMAP_MAPPED)
    mapped = keys.values >= 0
    entry[keys.codepoints[mapped]] |= (keys.values[mapped] << tables.CHARSMAP_OFFSET).astype(np.uint32)
    return entry


# -------------------------------------------------------------------------------------------------- named rules

#: What the rules of a name that begins with "nmt_" make blanks of, and leave out, before all else.
_NMT_TO_BLANK = (9, 10, 12, 13, 0x61C, 0x1680, 0x200B, 0x200C, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)
_NMT_REMOVED = (*range(1, 9), 11, *range(14, 0x20), 0x7F, 0x8F, 0x9F)
#: Full-width tilde, which they leave alone.
_NMT_KEPT = 0xFF5E

RULE_NAMES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")


def named_rules(name: str) -> dict[str, str]:
    """The rules that SentencePiece knows by a name, of Unicode 17.0 as in its version 0.2.3.

    Parameters
    ----------
    name
        One of :data:`RULE_NAMES`.

    Returns
    -------
    dict
        Left sides to right sides; none for "identity".

    Raises
    ------
    ArgumentError
        There is no such name.
    """
    if name not in RULE_NAMES:
        raise ArgumentError(f"unknown normalization rules {name!r}; expected one of {', '.join(RULE_NAMES)}")
    if name == "identity":
        return {}
    stored = _stored_rules()
    rules = rules_of(stored["charsmap"].tobytes())
    folded = dict(zip(stored["fold_from"].tolist(), stored["fold_to"].tolist(), strict=True))
    if name.startswith("nmt_"):
        rules.update((chr(codepoint), " ") for codepoint in _NMT_TO_BLANK)
        rules.update((chr(codepoint), "") for codepoint in _NMT_REMOVED)
        rules.pop(chr(_NMT_KEPT))
        rules = without_redundant(rules)
    if name.endswith("_cf"):
        rules = {source: target.translate(folded) for source, target in rules.items()}
        for source, target in folded.items():
            rules.setdefault(chr(source), chr(target))
        rules = without_redundant(rules)
    return rules


def _stored_rules() -> dict[str, NDArray[Any]]:
    """The arrays of ``sentencepiece_rules.npz``; ``scripts/build_sentencepiece_rules.py`` says what they are."""
    with np.load(Path(unicode.__file__).parent / "sentencepiece_rules.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


@lru_cache(maxsize=8)
def named_charsmap(name: str) -> bytes:
    """The charsmap of named rules; see :func:`named_rules`.

    Those of "nfkc" and "nmt_nfkc" are stored; for the others it takes some seconds, once.

    Parameters
    ----------
    name
        One of :data:`RULE_NAMES`.
    """
    if name in ("nfkc", "nmt_nfkc"):
        return _stored_rules()["charsmap" if name == "nfkc" else "nmt_charsmap"].tobytes()
    return compile_charsmap(named_rules(name))


def without_redundant(rules: Mapping[str, str]) -> dict[str, str]:
    """Leave out rules for sequences that shorter rules get right.

    Parameters
    ----------
    rules
        Left sides to right sides.
    """
    kept = {left: right for left, right in rules.items() if len(left) == 1}
    longest = max(map(len, rules), default=0)
    for length in range(2, longest + 1):
        candidates = {left: right for left, right in rules.items() if len(left) == length}
        kept.update(
            [(left, right) for left, right in candidates.items() if _applied(kept, left, length - 1) != right]
        )
    return kept


def _applied(rules: Mapping[str, str], text: str, longest: int) -> str:
    """Apply the longest rule of at most `longest` characters at each place."""
    parts = []
    at = 0
    while at < len(text):
        for length in range(min(longest, len(text) - at), 0, -1):
            right = rules.get(text[at : at + length])
            if right is not None:
                parts.append(right)
                at += length
                break
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)
