"""Added tokens to the tables of :func:`jittok.kernels.added_tokens.find_added_tokens`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok import tables
from jittok.spec import AddedToken
from jittok.tables import read_only

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Below this many bytes of tokens, plain Python builds the automaton faster than a kernel is loaded.
_SMALL = 20_000
#: Characters that are looked at to find tokens which reach into others: tokens in use need less than a million.
_MOST_LEVEL_WORK = 1 << 26


def build_added_tokens(
    tokens: Sequence[AddedToken], *, skipping: bool = True, ascii_space: bool = False
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
    About 13 bytes for each byte of the tokens, and linear time. The answer for overlapping tokens that
    tiktoken leaves to the order of a hash table is here the longest.
    """
    from jittok.kernels import added_tokens as kernels

    contents = [token.content.encode("utf-8", "surrogatepass") for token in tokens]
    # Of equal contents the first counts: it is the last to be put in.
    first_of = {
        content[::-1]: index for index, content in zip(range(len(contents))[::-1], contents[::-1], strict=True)
    }
    first_of.pop(b"", None)
    strings = sorted(first_of)
    order = np.array([first_of[string] for string in strings], dtype=np.int32)
    indptr = np.zeros(len(strings) + 1, dtype=np.int64)
    indptr[1:] = np.cumsum(np.fromiter(map(len, strings), dtype=np.int64, count=len(strings)))
    data = np.frombuffer(b"".join(strings), dtype=np.uint8)

    n_bytes = len(data)
    child_start = np.zeros(n_bytes + 2, dtype=np.int32)
    labels = np.zeros(n_bytes + 1, dtype=np.uint8)
    fallback = np.zeros(n_bytes + 1, dtype=np.int32)
    longest = np.full(n_bytes + 1, -1, dtype=np.int32)
    scratch = np.zeros((2, len(strings)), dtype=np.int32)
    build: Any = kernels.build_automaton
    if n_bytes < _SMALL:
        build = getattr(build, "py_func", build)
    n_states = build(order, indptr, data, child_start, labels, fallback, longest, scratch)
    child_start, labels = child_start[: n_states + 1], labels[:n_states]
    fallback, longest = fallback[:n_states], longest[:n_states]

    root_next = np.zeros(256, dtype=np.int32)
    for child in range(1, int(child_start[1])):
        root_next[labels[child]] = child
    numbers = np.zeros(tables.ADDED_TOKENS_NUMBERS, dtype=np.int64)
    numbers[tables.ADDED_TOKENS_MAX_LENGTH] = max(map(len, strings), default=0)
    numbers[tables.ADDED_TOKENS_SKIPPING] = int(skipping)
    numbers[tables.ADDED_TOKENS_ASCII_SPACE] = int(ascii_space)
    word_page_of, word_class_of = _word_classes(tokens)
    return tables.AddedTokenTables(
        ids=read_only(np.array([token.id for token in tokens], dtype=np.int32)),
        lengths=read_only(np.array(list(map(len, contents)), dtype=np.int32)),
        flags=read_only(
            np.array(
                [
                    (tables.TOKEN_SINGLE_WORD if token.single_word else 0)
                    | (tables.TOKEN_STRIP_LEFT if token.lstrip else 0)
                    | (tables.TOKEN_STRIP_RIGHT if token.rstrip else 0)
                    for token in tokens
                ],
                dtype=np.uint8,
            )
        ),
        shorter=read_only(_shorter(contents, {} if skipping else first_of)),
        child_start=read_only(child_start),
        labels=read_only(labels),
        fallback=read_only(fallback),
        longest=read_only(longest),
        root_next=read_only(root_next),
        endings=read_only(_endings(strings, kernels.MAX_ENDINGS)),
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


def _word_classes(tokens: Sequence[AddedToken]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Which codepoints are word characters; where no token asks, a table without any, which is quickly made."""
    if any(token.single_word for token in tokens):
        from jittok.unicode.normalization import load_word_classes

        word = load_word_classes()
        return word.page_of, word.class_of
    return read_only(np.zeros(0x110000 >> 7, dtype=np.uint16)), read_only(np.zeros(128, dtype=np.uint8))


def _shorter(contents: list[bytes], first_of: dict[bytes, int]) -> NDArray[np.int32]:
    """For each token the longest other token that it begins with, or -1."""
    shorter = np.full(len(contents), -1, dtype=np.int32)
    # In lexical order the tokens that a token begins with are on a stack.
    stack: list[tuple[bytes, int]] = []
    for content, index in sorted((string[::-1], index) for string, index in first_of.items()):
        while stack and not content.startswith(stack[-1][0]):
            stack.pop()
        if stack:
            shorter[index] = stack[-1][1]
        stack.append((content, index))
    return shorter


def _endings(reversed_tokens: list[bytes], limit: int) -> NDArray[np.uint8]:
    """Kinds of token endings as rows (last byte, 1 if the byte before counts, that byte), at most `limit`.

    Where the last two bytes are of too many kinds, those last bytes that have most of them are compared
    alone; where even the last bytes are too many, there are no rows.
    """
    before: dict[int, set[int] | None] = {}  # None: only the last byte is compared
    for ending in sorted({string[:2] for string in reversed_tokens}):  # a single byte sorts first
        known = before.setdefault(ending[0], set() if len(ending) > 1 else None)
        if known is not None:
            known.add(ending[1])

    def count(last: int) -> int:
        kinds = before[last]
        return 1 if kinds is None else len(kinds)

    while before and sum(map(count, before)) > limit and max(map(count, before)) > 1:
        before[max(before, key=count)] = None
    rows: list[tuple[int, int, int]] = []
    for last, kinds in sorted(before.items()):
        rows += [(last, 0, 0)] if kinds is None else [(last, 1, value) for value in sorted(kinds)]
    return np.array(rows if len(rows) <= limit else [], dtype=np.uint8).reshape(-1, 3)
