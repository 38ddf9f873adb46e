"""Added tokens to the tables of :func:`jittok.kernels.added_tokens.find_added_tokens`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok import tables
from jittok._jit import is_compiled
from jittok.spec import AddedToken, AddedTokens
from jittok.tables import read_only

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Below this many bytes of tokens, plain Python builds the automaton faster than a kernel is loaded; and compiled.
_TINY = 500
_SMALL = 20_000
#: So many strings whose order the first bytes do not decide are sorted by Python, which compares long ones quickly.
_FEW = 1000
#: Bits of the filter for each token: with two of them set, one in seventy other endings passes.
_BITS_PER_TOKEN = 16
#: Characters that are looked at to find tokens which reach into others: tokens in use need less than a million.
_MOST_LEVEL_WORK = 1 << 26


def build_added_tokens(
    tokens: Iterable[AddedToken], *, skipping: bool = True, ascii_space: bool = False
) -> tables.AddedTokenTables:
    """Build the tables that find `tokens` in text.

    Tokens matched on normalised text and tokens matched on the text as given need tables of their own.

    Parameters
    ----------
    tokens
        Content as it is to be found (normalised already, for such tokens). A token without content is never
        found; of several with the same content the first counts.
    skipping
        What a token that a call does not want does where it is found: True, as in tokenizers, it stays in
        the text and hides the tokens that begin inside it; False, as in tiktoken, the longest wanted token
        at that place is taken, and the search goes on at the next character.
    ascii_space
        Whether the white space that tokens take with them is that of ASCII only, as in llama.cpp.

    Returns
    -------
    tables.AddedTokenTables
        Read-only arrays; `ids`, `flags` and the `enabled` argument of the kernel have the order of `tokens`.

    Notes
    -----
    About 17 bytes for each byte of the tokens, and linear time but for sorting them. The answer for overlapping tokens
    that tiktoken leaves to the order of a hash table is here the longest.
    """
    from jittok.kernels import added_tokens as kernels

    added = AddedTokens.of(tokens)
    contents = [content.encode("utf-8", "surrogatepass") for content in added.contents]
    indptr = np.zeros(len(contents) + 1, dtype=np.int64)
    indptr[1:] = np.cumsum(np.fromiter(map(len, contents), dtype=np.int64, count=len(contents)))
    lengths = np.diff(indptr)
    # Zeros in front, so that eight bytes can be read before any place.
    data = np.frombuffer(bytes(8) + b"".join(contents), dtype=np.uint8)
    indptr += 8
    order = read_only(_sorted_backwards(data, indptr, contents))

    n_bytes = int(lengths[order].sum())
    child_start = np.zeros(n_bytes + 2, dtype=np.int32)
    labels = np.zeros(n_bytes + 1, dtype=np.uint8)
    fallback = np.zeros(n_bytes + 1, dtype=np.int32)
    longest = np.full(n_bytes + 1, -1, dtype=np.int32)
    depths = np.zeros(n_bytes + 1, dtype=np.int32)
    strings = np.zeros(n_bytes, dtype=np.uint8)
    scratch = np.zeros((4, len(order)), dtype=np.int32)
    arguments = (
        order, read_only(indptr), read_only(data), child_start, labels, fallback, longest, depths, strings, scratch
    )  # fmt: skip
    build: Any = kernels.build_automaton
    if n_bytes < _TINY or (n_bytes < _SMALL and not is_compiled(build, *arguments)):
        # Single items of a memoryview are read twice as fast as those of an array.
        views: list[Any] = [memoryview(array) for array in arguments]  # type: ignore[arg-type]
        n_states = getattr(build, "py_func", build)(*views)
    else:
        n_states = build(*arguments)
    # Most tokens begin or end alike, so that far less is used than there might have been.
    used = [array[:n_states].copy() for array in (labels, fallback, longest, depths)]
    child_start = child_start[: n_states + 1].copy()

    root_next = np.zeros(256, dtype=np.int32)
    n_children = int(child_start[1])
    root_next[labels[1:n_children]] = np.arange(1, n_children)
    numbers = np.zeros(tables.ADDED_TOKENS_NUMBERS, dtype=np.int64)
    numbers[tables.ADDED_TOKENS_MAX_LENGTH] = lengths[order].max(initial=0)
    numbers[tables.ADDED_TOKENS_SKIPPING] = int(skipping)
    numbers[tables.ADDED_TOKENS_ASCII_SPACE] = int(ascii_space)
    endings = _endings(_last_bytes(data, indptr[order + 1], lengths[order]), kernels.MAX_ENDINGS)
    gate, seen = np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.uint64)
    if len(order) and not len(endings):
        gate, seen, numbers[tables.ADDED_TOKENS_SHIFT] = _filter(data, indptr[order + 1], lengths[order])
    word_page_of, word_class_of = _word_classes(added)
    return tables.AddedTokenTables(
        ids=read_only(added.ids.astype(np.int32)),
        lengths=read_only(lengths.astype(np.int32)),
        flags=added.flags,
        shorter=read_only(_shorter(contents, order, skipping)),
        child_start=read_only(child_start),
        labels=read_only(used[0]),
        fallback=read_only(used[1]),
        longest=read_only(used[2]),
        depths=read_only(used[3]),
        root_next=read_only(root_next),
        endings=read_only(endings),
        gate=read_only(gate),
        seen=read_only(seen),
        word_page_of=word_page_of,
        word_class_of=word_class_of,
        numbers=read_only(numbers),
    )


def levels(contents: Sequence[str]) -> list[list[int]]:
    """Which tokens to look for one after the other, so that longer ones are found before others that reach into them.

    Parameters
    ----------
    contents
        Strings that all differ.

    Returns
    -------
    list of list of int
        Positions in `contents`. Within a level the longest token at the leftmost place is the one to take, and nearly
        always one level is all: another one begins where a token ends as a longer one, or an earlier one of the same
        length, begins. Quadratic in the lengths of tokens; where that would be too much, one level is made.
    """
    order = sorted(range(len(contents)), key=lambda i: -len(contents[i].encode("utf-8", "surrogatepass")))
    if sum(len(content) ** 2 for content in contents) > _MOST_LEVEL_WORK:
        return [order]
    result: list[list[int]] = [[]]
    # What tokens of this level begin with, and which of these are runs of one character: runs do not disturb each other.
    beginnings: dict[str, set[str]] = {}
    for number in order:
        content = contents[number]
        run = content[0] if content and content == content[0] * len(content) else ""
        endings = (content[start:] for start in range(1, len(content)))
        if any(beginnings.get(ending, set()) - ({run} if run else set()) for ending in endings):
            result.append([])
            beginnings = {}
        result[-1].append(number)
        for end in range(1, len(content)):
            beginnings.setdefault(content[:end], set()).add(run)
    return result


def _sorted_backwards(
    data: NDArray[np.uint8], indptr: NDArray[np.int64], contents: list[bytes]
) -> NDArray[np.int32]:
    """The numbers of all different strings but the empty one, in the order of what they are when read backwards.

    Of equal ones the first is taken. String i is ``data[indptr[i]:indptr[i + 1]]`` and ``contents[i]``.
    """
    if len(contents) <= _FEW:
        kept: list[int] = []
        for content, string in sorted((content[::-1], number) for number, content in enumerate(contents) if content):
            if not kept or contents[kept[-1]][::-1] != content:
                kept.append(string)
        return np.array(kept, np.int32)
    begins, ends = indptr[:-1], indptr[1:]
    order = np.flatnonzero(begins < ends)
    group = np.zeros(len(order), np.int64)  # equal for strings that are not told apart yet
    open_places = np.arange(len(order))
    depth = 0
    while len(open_places):
        if len(open_places) <= _FEW:
            rest = zip(group[open_places].tolist(), order[open_places].tolist(), strict=True)
            sorted_rest = sorted((number, contents[string][::-1], string) for number, string in rest)
            order[open_places] = [string for _, _, string in sorted_rest]
            differs = [True] * len(order)
            for place, before in zip(open_places[1:].tolist(), open_places.tolist(), strict=False):
                differs[place] = contents[order[place]] != contents[order[before]]
            return order[differs].astype(np.int32)
        strings = order[open_places]
        at = ends[strings] - depth
        left = np.minimum(at - begins[strings], 8)
        key = np.zeros(len(strings), np.uint64)
        for i in range(8):
            byte = np.where(i < left, data[np.maximum(at - 1 - i, 0)], 0)
            key |= byte.astype(np.uint64) << np.uint64(56 - 8 * i)
        found = np.lexsort((strings, left, key, group[open_places]))
        order[open_places] = strings[found]
        key, left, groups = key[found], left[found], group[open_places][found]
        is_new = np.ones(len(key), bool)
        is_new[1:] = (key[1:] != key[:-1]) | (left[1:] != left[:-1]) | (groups[1:] != groups[:-1])
        group[open_places] = open_places[np.maximum.accumulate(np.where(is_new, np.arange(len(key)), 0))]
        # Those that are alike so far and have more bytes to look at; of those that end here alike one stays.
        is_alone = is_new & np.append(is_new[1:], True)
        is_copy = ~is_new & (left < 8)
        goes_on = ~is_alone & (left == 8)
        if is_copy.any():
            keep = np.ones(len(order), bool)
            keep[open_places[is_copy]] = False
            mark = np.zeros(len(order), bool)
            mark[open_places[goes_on]] = True
            order, group, open_places = order[keep], group[keep], np.flatnonzero(mark[keep])
        else:
            open_places = open_places[goes_on]
        depth += 8
    return order.astype(np.int32)


def _word_classes(tokens: AddedTokens) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Which codepoints are word characters; where no token asks, a table without any, which is quickly made."""
    if len(tokens.where(tables.TOKEN_SINGLE_WORD)):
        from jittok.unicode.normalization import load_word_classes

        word = load_word_classes()
        return word.page_of, word.class_of
    return _no_word_classes()


@cache
def _no_word_classes() -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    return read_only(np.zeros(0x110000 >> 7, dtype=np.uint16)), read_only(np.zeros(128, dtype=np.uint8))


def _shorter(contents: list[bytes], order: NDArray[np.int32], skipping: bool) -> NDArray[np.int32]:
    """For each token the longest other token that it begins with, or -1; -1 for all if `skipping`."""
    shorter = np.full(len(contents), -1, dtype=np.int32)
    if skipping:
        return shorter
    # In lexical order the tokens that a token begins with are on a stack.
    stack: list[tuple[bytes, int]] = []
    for content, index in sorted((contents[index], index) for index in order.tolist()):
        while stack and not content.startswith(stack[-1][0]):
            stack.pop()
        if stack:
            shorter[index] = stack[-1][1]
        stack.append((content, index))
    return shorter


def _last_bytes(data: NDArray[np.uint8], ends: NDArray[np.int64], lengths: NDArray[np.int64]) -> set[bytes]:
    """The last two bytes of each token, or the only one."""
    first, last = data[ends - 2], data[ends - 1]
    pairs = set((last.astype(np.int64) << 9 | np.where(lengths > 1, 256 | first.astype(np.int64), 0)).tolist())
    return {bytes([pair & 255, pair >> 9]) if pair & 256 else bytes([pair >> 9]) for pair in pairs}


def _endings(ends: Iterable[bytes], limit: int) -> NDArray[np.uint8]:
    """Kinds of token endings as rows (last byte, 1 if the byte before counts, that byte), at most `limit`.

    `ends` are the last two bytes of tokens, or the only one. Where they are of too many kinds, those last bytes that have
    most of them are compared alone; where even the last bytes are too many, there are no rows.
    """
    before: dict[int, set[int] | None] = {}  # None: only the last byte is compared
    for end in sorted({end[::-1] for end in ends}):  # a single byte sorts first
        known = before.setdefault(end[0], set() if len(end) > 1 else None)
        if known is not None:
            known.add(end[1])

    def count(last: int) -> int:
        kinds = before[last]
        return 1 if kinds is None else len(kinds)

    while before and sum(map(count, before)) > limit and max(map(count, before)) > 1:
        before[max(before, key=count)] = None
    rows: list[tuple[int, int, int]] = []
    for last, kinds in sorted(before.items()):
        rows += [(last, 0, 0)] if kinds is None else [(last, 1, value) for value in sorted(kinds)]
    return np.array(rows if len(rows) <= limit else [], dtype=np.uint8).reshape(-1, 3)


def _filter(
    data: NDArray[np.uint8], ends: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint64], int]:
    """`gate`, `seen` and the shift of :class:`~jittok.tables.AddedTokenTables`."""
    gate = np.zeros(1 << 16, dtype=np.uint8)
    for last in np.unique(data[ends[lengths == 1] - 1]).tolist():
        gate[last << 8 : (last + 1) << 8] = 1
    long = lengths > 1
    ends, lengths = ends[long], np.minimum(lengths[long], 8)
    pairs = (data[ends - 1].astype(np.int64) << 8) | data[ends - 2]
    for length in range(2, 9):
        gate[pairs[lengths == length]] |= np.uint8(1 << (length - 2))
    bits = max(10, (_BITS_PER_TOKEN * len(ends)).bit_length())
    seen = np.zeros(1 << bits, dtype=np.bool_)
    # Of longer ones, the last four bytes as if they were all, with a length that none has.
    four = ends[lengths > 4]
    key = np.zeros(len(four), np.uint64)
    for i in range(4):
        key |= data[four - 1 - i].astype(np.uint64) << np.uint64(56 - 8 * i)
    seen[key * np.uint64(tables.SEEN_FACTOR) >> np.uint64(64 - bits)] = True
    long = lengths > 2
    ends, lengths = ends[long], lengths[long]
    key = np.zeros(len(ends), np.uint64)
    for i in range(8):
        byte = np.where(i < lengths, data[ends - 1 - i], 0)
        key |= byte.astype(np.uint64) << np.uint64(56 - 8 * i)
    hashed = (key ^ lengths.astype(np.uint64)) * np.uint64(tables.SEEN_FACTOR)
    seen[hashed >> np.uint64(64 - bits)] = True
    seen[(hashed >> np.uint64(64 - 2 * bits)) & np.uint64((1 << bits) - 1)] = True
    return gate, np.packbits(seen, bitorder="little").view("<u8").astype(np.uint64), 64 - bits
