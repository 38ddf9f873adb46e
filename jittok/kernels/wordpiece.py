"""WordPiece: words, or running text, to token ids.

A word is cut greedily: its longest prefix that is a token, then the longest token of the rest, written with the
suffix indicator before it, and so on; a word that cannot be cut to its end is one unknown token. Three encoders give
the same ids:

- :func:`max_match`, the definition: for each token, every end of the word from the last one down is tried. Time is
  quadratic in the length of a word.
- :func:`lin_max_match`: each character is read once (Song et al., Fast WordPiece Tokenization, arXiv 2012.15524). The
  trie says for every node what to give out and where to go on when its next character does not match.
- :func:`wordpiece_end_to_end`: the same for running text. Words are found in the same pass over its characters.

The paper leaves open what happens to a word that begins with the suffix indicator as ordinary text: below the suffix
root nodes mean "after other tokens" and, for such a word, "at the start". Both agree but where the word's first token is
not longer than the indicator. So where a word fails before it has given out a token, and begins with the indicator, the
longest token that the indicator begins with is given out, and the rest is read from the suffix root. That happens
once in a word, so time stays linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import helper, inlined, kernel
from jittok.kernels.split import COMPLETE, PIECES, WORDS
from jittok.kernels.word_cache import (
    CARRIED,
    keep_ids,
    missed_count,
)
from jittok.tables import (
    CHARACTER_CODE,
    CHARACTER_KIND,
    CHARACTER_SPACE,
    CHARACTER_WORD,
    WORDPIECE_MAX_BYTES,
    WORDPIECE_MAX_INPUT,
    WORDPIECE_PREFIX_BYTES,
    WORDPIECE_PREFIX_TOKEN,
    WORDPIECE_ROOT,
    WORDPIECE_ROOT_BASE,
    WORDPIECE_SKIP_SPACE,
    WORDPIECE_SUFFIX_BASE,
    WORDPIECE_SUFFIX_ROOT,
    WORDPIECE_UNKNOWN,
)

#: Returned where the output has less room than the words have bytes.
NO_ROOM = -1


@inlined
def character(tables: Any, data: Any, at: int) -> tuple[int, int]:
    """The character at `at`: its number in ``code_of``, and its length in bytes."""
    lead = np.int64(data[np.uint64(at)])
    if lead < 0x80:
        return np.int64(tables.code_of[np.uint64(lead)]), np.int64(1)
    second = np.int64(data[np.uint64(at + 1)]) & 63
    if lead < 0xE0:
        codepoint = (lead & 31) << 6 | second
        length = np.int64(2)
    elif lead < 0xF0:
        codepoint = (lead & 15) << 12 | second << 6 | np.int64(data[np.uint64(at + 2)]) & 63
        length = np.int64(3)
    else:
        codepoint = (lead & 7) << 18 | second << 12 | (np.int64(data[np.uint64(at + 2)]) & 63) << 6
        codepoint |= np.int64(data[np.uint64(at + 3)]) & 63
        length = np.int64(4)
    page = np.int64(tables.page_of[np.uint64(codepoint >> 7)])
    return np.int64(tables.code_of[np.uint64(page << 7 | codepoint & 127)]), length


@helper
def is_too_long(tables: Any, data: Any, first: int, end: int) -> bool:
    """Whether a word is longer than the tables allow. Reads no more of it than that."""
    most = tables.numbers[WORDPIECE_MAX_INPUT]
    if end - first <= most:
        return False
    if tables.numbers[WORDPIECE_MAX_BYTES] == 1:
        return True
    characters = np.int64(0)
    for i in range(first, end):
        if data[i] & 0xC0 != 0x80:
            characters += 1
            if characters > most:
                return True
    return False


@helper
def begins_with_indicator(tables: Any, data: Any, first: int, end: int) -> bool:
    """Whether a word begins with the suffix indicator, which is not empty."""
    indicator = tables.indicator
    if indicator.size == 0 or end - first < indicator.size:
        return False
    for i in range(indicator.size):
        if data[first + i] != indicator[i]:
            return False
    return True


@inlined
def skip_space(tables: Any, data: Any, first: int, end: int) -> int:
    """Where the word in ``data[first:end]`` begins."""
    if tables.numbers[WORDPIECE_SKIP_SPACE] == 1:
        while first < end:
            code, length = character(tables, data, first)
            if code & CHARACTER_KIND != CHARACTER_SPACE:
                break
            first += length
    return first


@inlined
def put_unknown(tables: Any, length: int, ids: Any, lengths: Any, to: int) -> int:
    """Write the unknown token at `to`; returns 1."""
    ids[to] = tables.numbers[WORDPIECE_UNKNOWN]
    lengths[to] = length
    return 1


@helper
def put_pops(tables: Any, pops: int, ids: Any, lengths: Any, to: int) -> int:
    """Write a list of failure pops at `to`, with their lengths in bytes; returns how many they are.

    Lists are linked from the last part to the first, so they are written backwards.
    """
    count = np.int64(tables.pop_count[pops])
    at = to + count
    while pops != 0:
        first = np.int64(tables.pop_indptr[pops])
        k = np.int64(tables.pop_indptr[pops + 1])
        while k > first:
            k -= 1
            at -= 1
            ids[at] = tables.pop_ids[k]
            lengths[at] = tables.pop_lengths[k]
        pops = np.int64(tables.pop_before[pops])
    return count


@inlined
def longest_token(tables: Any, data: Any, first: int, end: int, node: int, base: int) -> tuple[int, int]:
    """The token that ``data[first:end]`` is, read from a node: (id, 1), or (0, 0) if it is none."""
    at = first
    while at < end:
        code, length = character(tables, data, at)
        node = base + (code & CHARACTER_CODE)
        if tables.units[node] != base:
            return 0, 0
        base = np.int64(tables.units[node + 1])
        at += length
    numbers = tables.numbers
    token = np.int64(tables.units[node + 3])
    if token < 0 and node == numbers[WORDPIECE_SUFFIX_ROOT] and numbers[WORDPIECE_PREFIX_BYTES] == end - first:
        token = numbers[WORDPIECE_PREFIX_TOKEN]  # the suffix indicator itself
    if token < 0:
        return 0, 0
    return token, 1


@helper
def max_match_word(tables: Any, data: Any, first: int, end: int, ids: Any, lengths: Any, to: int) -> int:
    """Cut one word by the definition; see :func:`max_match`. As :func:`match_word`."""
    given = first
    first = skip_space(tables, data, first, end)
    if first == end:
        return 0
    if is_too_long(tables, data, first, end):
        return put_unknown(tables, end - given, ids, lengths, to)
    numbers = tables.numbers
    node = numbers[WORDPIECE_ROOT]
    base = numbers[WORDPIECE_ROOT_BASE]
    n = np.int64(0)
    begin = first
    while begin < end:
        stop = end
        while stop > begin:
            token, found = longest_token(tables, data, begin, stop, node, base)
            if found == 1:
                break
            stop -= 1
            while stop > begin and data[stop] & 0xC0 == 0x80:
                stop -= 1
        if stop == begin:
            return put_unknown(tables, end - given, ids, lengths, to)
        ids[to + n] = token
        lengths[to + n] = stop - begin
        n += 1
        begin = stop
        node = numbers[WORDPIECE_SUFFIX_ROOT]
        base = numbers[WORDPIECE_SUFFIX_BASE]
    lengths[to] += first - given
    return n


@helper
def match_word(tables: Any, data: Any, first: int, end: int, ids: Any, lengths: Any, to: int) -> int:
    """Cut one word in linear time; see :func:`lin_max_match`.

    Parameters
    ----------
    tables : WordPieceTables
    data : uint8
        The word is ``data[first:end]``, valid UTF-8, with white space before it if the tables say so.
    first, end : int
    ids, lengths : int32
        The ids go here from position `to` on, with the bytes that each stands for; white space before the word
        counts to the first. As many places as the word has bytes are enough.
    to : int

    Returns
    -------
    int
        The number of ids: 0 for an empty word.
    """
    given = first
    first = skip_space(tables, data, first, end)
    if first == end:
        return 0
    numbers = tables.numbers
    if end - first > numbers[WORDPIECE_MAX_INPUT] and is_too_long(tables, data, first, end):
        return put_unknown(tables, end - given, ids, lengths, to)
    units = tables.units
    suffix_root = numbers[WORDPIECE_SUFFIX_ROOT]
    suffix_base = numbers[WORDPIECE_SUFFIX_BASE]
    node = numbers[WORDPIECE_ROOT]
    base = numbers[WORDPIECE_ROOT_BASE]
    n = to
    begin = first  # of the text that the node stands for
    at = first
    while True:
        while at < end:
            code, length = character(tables, data, at)
            child = base + (code & CHARACTER_CODE)
            if np.int64(units[np.uint64(child)]) != base:
                break
            node = child
            base = np.int64(units[np.uint64(child + 1)])
            at += length
        # The next character does not match, or there is none.
        pops = np.int64(units[np.uint64(node + 3)])
        if pops >= 0:
            ids[np.uint64(n)] = pops
            lengths[np.uint64(n)] = at - begin
            n += 1
            if at == end:
                break
            begin = at
            node = suffix_root
            base = suffix_base
        elif pops < -1:
            count = put_pops(tables, -1 - pops, ids, lengths, n)
            if n == to and begins_with_indicator(tables, data, first, end):
                lengths[n] += tables.indicator.size
            for i in range(count):
                begin += np.int64(lengths[n + i])
            n += count
            node = np.int64(units[np.uint64(node + 2)])
            if begin == end:
                break
            base = np.int64(units[np.uint64(node + 1)])
        elif n == to and numbers[WORDPIECE_PREFIX_TOKEN] >= 0 and begins_with_indicator(tables, data, first, end):
            ids[n] = numbers[WORDPIECE_PREFIX_TOKEN]
            lengths[n] = numbers[WORDPIECE_PREFIX_BYTES]
            n += 1
            begin = first + numbers[WORDPIECE_PREFIX_BYTES]
            if begin == end:
                break
            at = begin
            node = suffix_root
            base = suffix_base
        else:
            return put_unknown(tables, end - given, ids, lengths, to)
    lengths[to] += first - given
    return n - to


@helper
def wordpiece_word(tables: Any, data: Any, first: int, end: int, scratch: Any) -> int:
    """Token ids of one word, left in ``scratch.symbols`` with their byte lengths; returns their number.

    As ``merge_word`` of :mod:`jittok.kernels.bpe`, for WordPiece. The lengths sum to ``end - first`` unless there
    are no ids, as for a word of white space only. `scratch` has room for ``end - first`` ids. Linear.
    """
    return match_word(tables, data, first, end, scratch.symbols, scratch.lengths, 0)


@inlined
def cut_new_words(tables: Any, n_new: int, cache: Any, scratch: Any, lanes: Any) -> int:
    """Cut the new words of a chunk into tokens, and keep these."""
    for q in range(n_new):
        first = np.int64(scratch.new_first[np.uint64(q)])
        end = first + np.int64(scratch.new_length[np.uint64(q)])
        count = np.int64(wordpiece_word(tables, scratch.new_text, first, end, scratch))
        keep_ids(np.int64(scratch.new_place[np.uint64(q)]), cache, scratch.symbols, 0, count)
    return 0


@inlined
def knows_lengths(tables: Any, scratch: Any) -> bool:
    """Whether ``write_lengths`` is possible."""
    return tables.token_lengths.size > 0


@helper
def write_lengths(
    tables: Any, misses: int, chunk: Any, scratch: Any, out: Any, out_length: Any, written: int, end: int
) -> int:
    """Write the bytes that each id of a chunk stands for, whose ids are in `out` from `written` to `end`.

    All but the first token of a word have the length of their string; what is left of the word's bytes is the
    first one's: it has the white space before it, and an unknown token, which is always alone, has the whole word.
    """
    state = chunk.state
    lengths = tables.token_lengths
    q = np.int64(0)
    k = np.int64(0)
    for piece in range(state[PIECES]):
        edge = np.int64(chunk.piece_end_word[piece])
        while k < edge:
            count = np.int64(scratch.id_at[np.uint64(k + 1)]) - np.int64(scratch.id_at[np.uint64(k)])
            if q < misses and scratch.missed[np.uint64(q)] == k:
                q += 1
                count = missed_count(k, scratch)
            rest = np.int64(chunk.word[np.uint64(k + 1)]) - np.int64(chunk.word[np.uint64(k)])
            if count == 0:
                state[CARRIED] += rest
            else:
                for i in range(written + 1, written + count):
                    length = np.int64(lengths[np.uint64(out[np.uint64(i)])])
                    out_length[np.uint64(i)] = length
                    rest -= length
                out_length[np.uint64(written)] = rest + state[CARRIED]
                state[CARRIED] = 0
            written += count
            k += 1
        if q < misses and scratch.missed[np.uint64(q)] == edge:
            q += 1
        k = edge + 1
        if piece < state[PIECES] - 1 or state[COMPLETE] == 1:
            state[CARRIED] = 0
    return written


@inlined
def leave_words(tables: Any, chunk: Any, scratch: Any) -> int:
    """Cut no pre-tokens of a chunk; returns their number."""
    return chunk.state[WORDS]


@kernel
def max_match(tables: Any, data: Any, starts: Any, ends: Any, ids: Any, lengths: Any, word_end: Any) -> int:
    """Cut words by the definition, trying every end of each token from the word's end down.

    Takes and returns what :func:`lin_max_match` does. It is here to be compared with: quadratic in a word's length.
    """
    n = np.int64(0)
    for i in range(starts.size):
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - first > ids.size - n:
            return NO_ROOM
        n += max_match_word(tables, data, first, end, ids, lengths, n)
        word_end[i] = n
    return n


@kernel
def lin_max_match(tables: Any, data: Any, starts: Any, ends: Any, ids: Any, lengths: Any, word_end: Any) -> int:
    """Cut words in linear time (LinMaxMatch).

    Parameters
    ----------
    tables : WordPieceTables
        From :func:`jittok.build.wordpiece_tables.build_wordpiece_tables`.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Word i is ``data[starts[i]:ends[i]]``.
    ids : int32
        Output: ids of all words, one after another. As many places as the words have bytes are enough.
    lengths : int32
        Output, as large as `ids`: bytes of text that each id stands for.
    word_end : int64[n]
        Output: ids written by the end of each word.

    Returns
    -------
    int
        The number of ids, or NO_ROOM.

    Notes
    -----
    Linear: every character is read once, but for those of a word that begins with the suffix indicator as ordinary
    text, which may be read twice. Source: Song et al., Fast WordPiece Tokenization, 2021, algorithm 1.
    """
    n = np.int64(0)
    for i in range(starts.size):
        first = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - first > ids.size - n:
            return NO_ROOM
        n += match_word(tables, data, first, end, ids, lengths, n)
        word_end[i] = n
    return n


@helper
def finish_word(
    tables: Any, data: Any, first: int, end: int, node: int, begin: int, ids: Any, lengths: Any, to: int, n: int
) -> int:
    """End a word whose characters are read, at `node`; returns the number of ids with those of the word.

    The node is -1 where the word has failed already. The ids from `to` on are the word's.
    """
    numbers = tables.numbers
    if is_too_long(tables, data, first, end):
        return to + put_unknown(tables, end - first, ids, lengths, to)
    suffix_root = numbers[WORDPIECE_SUFFIX_ROOT]
    while node >= 0 and (node != suffix_root or n == to):
        pops = np.int64(tables.units[node + 3])
        if pops >= 0:
            ids[n] = pops
            lengths[n] = end - begin
            return n + 1
        if pops == -1:
            node = np.int64(-1)
            break
        count = put_pops(tables, -1 - pops, ids, lengths, n)
        if n == to and begins_with_indicator(tables, data, first, end):
            lengths[n] += tables.indicator.size
        for i in range(count):
            begin += np.int64(lengths[n + i])
        n += count
        node = np.int64(tables.units[node + 2])
    if node >= 0:
        return n
    # It failed. Words that begin with the suffix indicator may yet do: match_word knows.
    return to + match_word(tables, data, first, end, ids, lengths, to)


@kernel
def wordpiece_end_to_end(
    tables: Any, data: Any, starts: Any, ends: Any, ids: Any, lengths: Any, begins: Any, text_end: Any
) -> int:
    """Cut running text into words and these into tokens, in one pass (end-to-end WordPiece).

    Words are what stands between characters of the class CHARACTER_SPACE; a CHARACTER_ISOLATED one is a word of its
    own.

    Parameters
    ----------
    tables : WordPieceTables
        With the classes of the characters.
    data : uint8[m]
        Valid UTF-8.
    starts, ends : int64[n]
        Text i is ``data[starts[i]:ends[i]]``.
    ids : int32
        Output: ids of all texts, one after another. As many places as the texts have bytes are enough.
    lengths : int32
        Output, as large as `ids`: bytes of text that each id stands for.
    begins : int64
        Output, as large as `ids`: position in `data` where these bytes begin. Or empty, where not wanted.
    text_end : int64[n]
        Output: ids written by the end of each text.

    Returns
    -------
    int
        The number of ids, or NO_ROOM.

    Notes
    -----
    Linear. Source: Song et al., Fast WordPiece Tokenization, 2021, section 3.4.
    """
    numbers = tables.numbers
    units = tables.units
    root = numbers[WORDPIECE_ROOT]
    root_base = numbers[WORDPIECE_ROOT_BASE]
    suffix_root = numbers[WORDPIECE_SUFFIX_ROOT]
    suffix_base = numbers[WORDPIECE_SUFFIX_BASE]
    most = numbers[WORDPIECE_MAX_INPUT]
    n = np.int64(0)
    for i in range(starts.size):
        at = np.int64(starts[i])
        end = np.int64(ends[i])
        if end - at > ids.size - n:
            return NO_ROOM
        while at < end:
            code, length = character(tables, data, at)
            kind = code & CHARACTER_KIND
            if kind == CHARACTER_SPACE:
                at += length
                continue
            first = at
            begin = at
            to = n
            node = root
            base = root_base
            while True:
                child = base + (code & CHARACTER_CODE)
                if np.int64(units[np.uint64(child)]) == base:
                    node = child
                    base = np.int64(units[np.uint64(child + 1)])
                    at += length
                    if at >= end or kind != CHARACTER_WORD:
                        break
                    code, length = character(tables, data, at)
                    if code & CHARACTER_KIND != CHARACTER_WORD:
                        break
                    continue
                pops = np.int64(units[np.uint64(node + 3)])
                if pops >= 0:
                    ids[np.uint64(n)] = pops
                    lengths[np.uint64(n)] = at - begin
                    n += 1
                    begin = at
                    node = suffix_root
                    base = suffix_base
                    continue
                if pops < -1:
                    count = put_pops(tables, -1 - pops, ids, lengths, n)
                    if n == to and begins_with_indicator(tables, data, first, end):
                        lengths[n] += tables.indicator.size
                    for j in range(count):
                        begin += np.int64(lengths[n + j])
                    n += count
                    node = np.int64(units[np.uint64(node + 2)])
                    base = np.int64(units[np.uint64(node + 1)])
                    continue
                # No token goes on with this character: look for the end of the word.
                node = np.int64(-1)
                at += length
                while at < end and kind == CHARACTER_WORD:
                    code, length = character(tables, data, at)
                    if code & CHARACTER_KIND != CHARACTER_WORD:
                        break
                    at += length
                break
            pops = np.int64(-1)
            if node >= 0 and at - first <= most:
                pops = np.int64(units[np.uint64(node + 3)])
            if pops >= 0:
                ids[np.uint64(n)] = pops
                lengths[np.uint64(n)] = at - begin
                n += 1
            else:
                n = finish_word(tables, data, first, at, node, begin, ids, lengths, to, n)
            if begins.size > 0:
                for j in range(to, n):
                    begins[j] = first
                    first += np.int64(lengths[j])
        text_end[i] = n
    return n
