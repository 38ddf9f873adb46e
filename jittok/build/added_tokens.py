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
#: Tokens of more bytes than this are found by the automaton where the trie would take too much work.
_LONG = 64
#: Bits of each bitmap for every entry, at least; and at most, where it is small.
_BITS_PER_ENTRY = 8
_MOST_BITS_PER_ENTRY = 64
#: Bits of the index of a bitmap that stays in the first-level cache; and of the largest one.
_SMALL_BITMAP = 17
_LARGE_BITMAP = 23
#: Of a byte that some tokens do not have, these bits count, so that what follows such a token is one of few.
_CLASS = 7
#: Entries of `beginnings`, for each token and in all.
_MOST_FOLLOWING = 32
_MOST_ENTRIES = 1 << 20
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
    Tokens with few kinds of endings, and sets with long ones, become an automaton: about 13 bytes for each byte of the
    tokens, and linear time but for sorting them. Those with many kinds of endings become a trie: 50 to 100 bytes for each
    token of up to eight bytes, in linear time. The answer for overlapping tokens
    that tiktoken leaves to the order of a hash table is here the longest.
    """
    from jittok.kernels import added_tokens as kernels

    added = AddedTokens.of(tokens)
    contents = [content.encode("utf-8", "surrogatepass") for content in added.contents]
    # Zeros around, so that eight bytes can be read at any place, and before it.
    data = read_only(np.frombuffer(bytes(8) + b"".join(contents) + bytes(8), dtype=np.uint8))
    lengths = np.array([*map(len, contents)], dtype=np.int64)
    indptr = np.full(len(contents) + 1, 8, dtype=np.int64)
    indptr[1:] += np.cumsum(lengths)
    indptr = read_only(indptr)
    max_length = max(map(len, contents), default=0)
    if len(contents) <= _FEW:
        ends = {content[-2:] for content in contents if content}
    else:
        order = np.flatnonzero(lengths)
        ends = _last_bytes(data, indptr[order + 1], lengths[order])
    endings = _endings(ends, kernels.MAX_ENDINGS)
    has_trie = max_length > 0 and not len(endings)
    numbers = np.zeros(tables.ADDED_TOKENS_NUMBERS, dtype=np.int64)
    numbers[tables.ADDED_TOKENS_MAX_LENGTH] = max_length
    numbers[tables.ADDED_TOKENS_SKIPPING] = int(skipping)
    numbers[tables.ADDED_TOKENS_ASCII_SPACE] = int(ascii_space)
    automaton = _automaton(data, indptr, contents, has_trie and max_length <= _LONG)
    trie = _trie(data, indptr, numbers) if has_trie else _no_trie(numbers)
    word_page_of, word_class_of = _word_classes(added)
    return tables.AddedTokenTables(
        ids=read_only(added.ids.astype(np.int32)),
        lengths=read_only(lengths.astype(np.int32)),
        flags=added.flags,
        shorter=read_only(_shorter(contents, skipping)),
        endings=read_only(endings),
        word_page_of=word_page_of,
        word_class_of=word_class_of,
        numbers=read_only(numbers),
        **{name: read_only(array) for name, array in (automaton | trie).items()},
    )


def _automaton(
    data: NDArray[np.uint8], indptr: NDArray[np.int64], contents: list[bytes], is_empty: bool
) -> dict[str, NDArray[Any]]:
    """The automaton's fields of :class:`~jittok.tables.AddedTokenTables`; `is_empty`: of one without tokens."""
    from jittok.kernels import added_tokens as kernels

    if not is_empty and len(data) < _TINY:
        return _tiny_automaton(contents)
    order = np.zeros(0, np.int32) if is_empty else _sorted_backwards(data, indptr, contents)
    n_bytes = int(np.diff(indptr)[order].sum())
    child_start = np.zeros(n_bytes + 2, dtype=np.int32)
    labels = np.zeros(n_bytes + 1, dtype=np.uint8)
    fallback = np.zeros(n_bytes + 1, dtype=np.int32)
    longest = np.full(n_bytes + 1, -1, dtype=np.int32)
    strings = np.zeros(n_bytes, dtype=np.uint8)
    scratch = np.zeros((4, len(order)), dtype=np.int32)
    arguments = (read_only(order), indptr, data, child_start, labels, fallback, longest, strings, scratch)
    n_states = _choose(kernels.build_automaton, n_bytes, arguments)(*arguments)
    # Most tokens begin or end alike, so that far less is used than there might have been.
    used = {
        name: array[:n_states].copy()
        for name, array in (("labels", labels), ("fallback", fallback), ("longest", longest))
    }
    child_start = child_start[: n_states + 1].copy()
    root_next = np.zeros(256, dtype=np.int32)
    n_children = int(child_start[1])
    root_next[labels[1:n_children]] = np.arange(1, n_children)
    return {"child_start": child_start, "root_next": root_next, **used}


def _tiny_automaton(contents: list[bytes]) -> dict[str, NDArray[Any]]:
    """What the kernel ``build_automaton`` makes of some bytes, which takes longer to be loaded."""
    labels, fallback, longest, child_start = [0], [0], [-1], [1]
    children: list[dict[int, int]] = [{}]
    active = [(contents[number][::-1], 0, number) for number in _few_backwards(contents)]
    depth = 0
    while active:
        longer = []
        for string, state, number in active:
            byte = string[depth]
            child = children[state].get(byte)
            if child is None:
                child = children[state][byte] = len(labels)
                while len(child_start) <= state:
                    child_start.append(child)
                # The fallback: the first state on the parent's chain that has such a child.
                chain = state
                target = 0
                while chain and not target:
                    chain = fallback[chain]
                    target = children[chain].get(byte, 0)
                labels.append(byte)
                fallback.append(target)
                longest.append(-1)
                children.append({})
            if len(string) == depth + 1:
                longest[child] = number
            else:
                longer.append((string, child, number))
        active = longer
        depth += 1
    n_states = len(labels)
    child_start += [n_states] * (n_states + 1 - len(child_start))
    for state in range(1, n_states):
        if longest[state] < 0:
            longest[state] = longest[fallback[state]]
    root_next = [0] * 256
    for byte, child in children[0].items():
        root_next[byte] = child
    return {
        "child_start": np.array(child_start, np.int32),
        "root_next": np.array(root_next, np.int32),
        "labels": np.array(labels, np.uint8),
        "fallback": np.array(fallback, np.int32),
        "longest": np.array(longest, np.int32),
    }


def _choose(kernel: Any, n_bytes: int, arguments: tuple[Any, ...]) -> Any:
    """The kernel, or its plain Python where that is done sooner."""
    if n_bytes < _TINY or (n_bytes < _SMALL and not is_compiled(kernel, *arguments)):
        return getattr(kernel, "py_func", kernel)
    return kernel


def _trie(
    data: NDArray[np.uint8], indptr: NDArray[np.int64], numbers: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """The trie's fields of :class:`~jittok.tables.AddedTokenTables`. What belongs to it of `numbers` is written."""
    from jittok.kernels.added_prefixes import insert_tokens

    lengths = np.diff(indptr)
    n_edges = int(((lengths + 7) >> 3).sum())
    bits = max(2 * n_edges, 2).bit_length()
    shift = numbers[tables.ADDED_TOKENS_SLOT_SHIFT] = 64 - bits
    slots = np.zeros(2 << bits, dtype=np.uint64)
    edge_tokens, edge_nodes = np.full(1 << bits, -1, dtype=np.int32), np.full(1 << bits, -1, dtype=np.int32)
    node_kinds = np.zeros(n_edges + 1, dtype=np.uint8)
    arguments = indptr, data, int(shift), slots, edge_tokens, edge_nodes, node_kinds
    n_nodes = _choose(insert_tokens, int(lengths.sum()), arguments)(*arguments)
    # The edges from the root are the beginnings of all tokens, each once.
    owners = slots[1::2]
    at_root = np.flatnonzero((owners > 0) & (owners < 16))
    length = owners[at_root].astype(np.int64)
    chunks = slots[::2][at_root]
    words = chunks >> (np.uint64(64) - np.uint64(8) * length.astype(np.uint64))
    factor = np.uint64(tables.SEEN_FACTOR)
    bits = _index_bits(len(words))
    shift = numbers[tables.ADDED_TOKENS_SEEN_SHIFT] = 64 - bits
    seen = _bitmap((chunks ^ length.astype(np.uint64)) * factor >> np.uint64(shift), bits)
    return {
        "prefixes": _prefixes(words, length, numbers),
        "beginnings": _beginnings(words, length, numbers),
        "seen": seen.view(np.uint64),
        "slots": slots,
        "edge_tokens": edge_tokens,
        "edge_nodes": edge_nodes,
        "node_kinds": node_kinds[:n_nodes].copy(),
    }


def _no_trie(numbers: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The same of a trie of no tokens."""
    numbers[tables.ADDED_TOKENS_SLOT_SHIFT] = 62
    numbers[tables.ADDED_TOKENS_SEEN_SHIFT] = 58
    return _empty_trie()


@cache
def _empty_trie() -> dict[str, NDArray[Any]]:
    nothing = read_only(np.full(4, -1, dtype=np.int32))
    return {
        "prefixes": read_only(np.zeros(0, dtype=np.uint32)),
        "beginnings": read_only(np.zeros(1, dtype=np.uint64)),
        "seen": read_only(np.zeros(1, dtype=np.uint64)),
        "slots": read_only(np.zeros(8, dtype=np.uint64)),
        "edge_tokens": nothing,
        "edge_nodes": nothing,
        "node_kinds": read_only(np.zeros(1, dtype=np.uint8)),
    }


def _index_bits(n_entries: int) -> int:
    """Bits of the index of a bitmap with so many entries."""
    bits = (_BITS_PER_ENTRY * n_entries).bit_length()
    if bits < _SMALL_BITMAP:
        bits = min((_MOST_BITS_PER_ENTRY * n_entries).bit_length(), _SMALL_BITMAP)
    return min(max(bits, 6), _LARGE_BITMAP)


def _bitmap(places: NDArray[np.uint64], bits: int) -> NDArray[np.uint8]:
    """Bytes of a bitmap of ``2**bits`` bits."""
    is_set = np.zeros(1 << bits, dtype=np.bool_)
    is_set[places.astype(np.int64)] = True
    return np.packbits(is_set, bitorder="little")


def _prefixes(words: NDArray[np.uint64], lengths: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    """`prefixes` of :class:`~jittok.tables.AddedTokenTables`, from the first bytes of tokens, little-endian."""
    least = min(int(lengths.min()), 4)
    pairs = int(lengths.min() > 4)
    masks = [0xFF] * least + [_CLASS] * (5 - least)
    groups = [_following(words >> np.uint64(8 * i), lengths - i, masks) for i in range(1 + pairs)]
    bits = _index_bits(sum(map(len, groups)))
    shift = 32 + pairs - bits
    numbers[tables.ADDED_TOKENS_LOW_MASK] = _joined(masks[:4])
    numbers[tables.ADDED_TOKENS_HIGH_MASK] = _joined(masks[4:])
    numbers[tables.ADDED_TOKENS_PREFIX_SHIFT] = shift
    numbers[tables.ADDED_TOKENS_PREFIX_PAIRS] = pairs
    places = []
    for entries in groups:
        mixed = (entries ^ (entries >> np.uint64(32) << np.uint64(5))) * np.uint64(tables.PREFIX_FACTOR)
        places.append((mixed & np.uint64(0xFFFFFFFF)) >> np.uint64(shift))
    if pairs:
        places = [places[1] << np.uint64(1), places[0] << np.uint64(1) | np.uint64(1)]
    return _bitmap(np.concatenate(places), bits).view(np.uint32)


def _beginnings(words: NDArray[np.uint64], lengths: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """`beginnings` of :class:`~jittok.tables.AddedTokenTables`: of as many bytes as there is room for."""
    masks = [0xFF] * min(int(lengths.min()), 7)  # a mask of all eight would not fit in a number
    entries = _following(words, lengths, masks)
    most = min(_MOST_FOLLOWING * len(words), _MOST_ENTRIES)
    while len(masks) < 8:
        # What shorter tokens are followed by is one of eight more, each.
        n = len(masks) + 1
        if sum(int((lengths == k).sum()) << (3 * (n - k)) for k in range(1, n)) + int((lengths >= n).sum()) > most:
            break
        masks.append(_CLASS)
        entries = _following(words, lengths, masks)
    bits = _index_bits(len(entries))
    numbers[tables.ADDED_TOKENS_BEGINNING_MASK] = _joined(masks)
    numbers[tables.ADDED_TOKENS_BEGINNING_SHIFT] = 64 - bits
    return _bitmap(entries * np.uint64(tables.SEEN_FACTOR) >> np.uint64(64 - bits), bits).view(np.uint64)


def _following(words: NDArray[np.uint64], lengths: NDArray[np.int64], masks: list[int]) -> NDArray[np.uint64]:
    """The first bytes of tokens under masks; of shorter ones, with everything that may follow them."""
    words = words & np.uint64(_joined(masks))
    groups = [words[lengths >= len(masks)]]
    for n in range(int(lengths.min()), len(masks)):
        some = words[lengths == n]
        for place in range(n, len(masks)):
            following = np.arange(masks[place] + 1, dtype=np.uint64) << np.uint64(8 * place)
            some = (some[:, None] | following).ravel()
        groups.append(some)
    return np.concatenate(groups)


def _joined(masks: list[int]) -> int:
    return sum(mask << (8 * place) for place, mask in enumerate(masks))


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
        return np.array(_few_backwards(contents), np.int32)
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


def _few_backwards(contents: list[bytes]) -> list[int]:
    """As :func:`_sorted_backwards`, of a few strings."""
    kept: list[int] = []
    last = b""
    for content, number in sorted([(content[::-1], number) for number, content in enumerate(contents)]):
        if content != last:
            kept.append(number)
        last = content
    return kept


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


def _shorter(contents: list[bytes], skipping: bool) -> NDArray[np.int32]:
    """For each token the longest other token that it begins with, or -1; -1 for all if `skipping`.

    Of equal tokens the first counts.
    """
    shorter = np.full(len(contents), -1, dtype=np.int32)
    if skipping:
        return shorter
    # In lexical order the tokens that a token begins with are on a stack.
    stack: list[tuple[bytes, int]] = []
    for content, index in sorted((content, index) for index, content in enumerate(contents) if content):
        while stack and not content.startswith(stack[-1][0]):
            stack.pop()
        if stack and stack[-1][0] == content:
            continue
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
