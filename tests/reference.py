"""Slow and obvious twins of what jittok does with tables and kernels."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from jittok.tables import SplitAutomaton

Span = tuple[int, int, bool]  # start, end, whether it is a match

# ------------------------------------------------------------------------------------------------ split patterns


def match_length(automaton: SplitAutomaton, codepoints: Sequence[int], start: int) -> int:
    """Length of the match that starts exactly at `start`; -1 when there is none."""
    page_of, class_of = automaton.classes
    state, best, position = automaton.start, -1, start
    while True:
        if position < len(codepoints):
            codepoint = codepoints[position]
            number = int(class_of[(int(page_of[codepoint >> 7]) << 7) | (codepoint & 127)])
        else:
            number = automaton.end_class
        entry = int(automaton.transitions[state + number])
        if entry & 1:
            best = position - start
        state = entry >> 1
        if state == 0 or position >= len(codepoints):
            return best
        position += 1


def find_matches(length_at: Callable[[int], int], size: int) -> Iterator[tuple[int, int]]:
    """Non-overlapping matches from left to right; an empty one at the end of the last match does not count."""
    position, last_end = 0, -1
    while position <= size:
        length = length_at(position)
        if length < 0 or (length == 0 and position == last_end):
            position += 1
            continue
        yield position, position + length
        position = last_end = position + length


def with_gaps(matches: Iterator[tuple[int, int]], size: int) -> list[Span]:
    """Matches and the text between them. Empty pieces are left out, but an empty match still cuts."""
    result: list[Span] = []
    position = 0
    for start, end in matches:
        if start > position:
            result.append((position, start, False))
        if end > start:
            result.append((start, end, True))
        position = end
    if position < size:
        result.append((position, size, False))
    return result


def split_spans(automaton: SplitAutomaton, text: str) -> list[Span]:
    """Pieces of `text` as the "isolated" behaviour of tokenizers' Split makes them."""
    codepoints = [ord(c) for c in text]
    return with_gaps(find_matches(lambda p: match_length(automaton, codepoints, p), len(text)), len(text))


def split_reference(pattern: str, text: str) -> list[Span]:
    """Do the same by backtracking, with the regex package. Its Unicode version is newer: choose `text` for it."""
    import regex

    compiled = regex.compile(pattern, regex.VERSION1)

    def length_at(position: int) -> int:
        found = compiled.match(text, position)
        return -1 if found is None else found.end() - position

    return with_gaps(find_matches(length_at, len(text)), len(text))


# --------------------------------------------------------------------------------------------------- WordPiece

Piece = tuple[int, int]  # id, characters of the word that it stands for


def word_pieces(
    vocabulary: Mapping[str, int], word: str, unknown: int, indicator: str, max_input: int, in_bytes: bool
) -> list[Piece]:
    """Cut a word greedily, the longest token first."""
    if not word:
        return []
    failed = [(unknown, len(word))]
    if len(word.encode() if in_bytes else word) > max_input:
        return failed
    pieces, start = [], 0
    while start < len(word):
        before = indicator if start else ""
        ends = [end for end in range(len(word), start, -1) if before + word[start:end] in vocabulary]
        if not ends:
            return failed
        pieces.append((vocabulary[before + word[start : ends[0]]], ends[0] - start))
        start = ends[0]
    return pieces


def isolated_words(text: str, space: Set[str], isolated: Set[str]) -> list[tuple[int, str]]:
    """Cut text at white space and around characters that are words of their own: (position, word)."""
    words, word = [], ""
    for position, c in enumerate(text + " "):
        at_end = position == len(text)
        if word and (at_end or c in space or c in isolated):
            words.append((position - len(word), word))
            word = ""
        if at_end or c in space:
            continue
        if c in isolated:
            words.append((position, c))
        else:
            word += c
    return words


# ------------------------------------------------------------------------------------------------ SentencePiece BPE

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def score_order(score: float) -> int:
    """The place of a float32 in the order of its bits, in which -0 is below 0."""
    (bits,) = struct.unpack("<i", struct.pack("<f", score))
    return bits if bits >= 0 else -(bits + (1 << 31)) - 1


def initial_symbols(pieces: Sequence[str], types: Sequence[int], text: str) -> list[tuple[str, bool]]:
    """Characters and user-defined symbols, the longest that begin at each place, and whether they are the latter."""
    defined = [piece for piece, kind in zip(pieces, types, strict=True) if kind == USER_DEFINED]
    symbols, at = [], 0
    while at < len(text):
        found = max((piece for piece in defined if text.startswith(piece, at)), key=len, default="")
        symbols.append((found or text[at], bool(found)))
        at += len(found or text[at])
    return symbols


def sentencepiece_bpe(
    pieces: Sequence[str],
    scores: Sequence[float],
    types: Sequence[int],
    text: str,
    is_merged: Callable[[], bool] = lambda: True,
) -> list[Piece]:
    """Merge the pair with the best score, leftmost first, again and again: (id, characters), unknown characters alone.

    `is_merged` may leave a pair out once. Unused pieces are taken apart into the pair last seen for them.
    """
    ids = {piece: i for i, piece in enumerate(pieces)}
    symbols = [(text, frozen, False) for text, frozen in initial_symbols(pieces, types, text)]
    parts: dict[str, tuple[str, str]] = {}
    unknown = types.index(UNKNOWN)

    def merged(left: tuple[str, bool, bool], right: tuple[str, bool, bool]) -> int:
        found = ids.get(left[0] + right[0], unknown)
        return found if types[found] in (NORMAL, UNUSED) and not left[1] and not right[1] else -1

    def look_at(i: int) -> None:
        if 0 <= i < len(symbols) - 1 and merged(symbols[i], symbols[i + 1]) >= 0:
            parts[symbols[i][0] + symbols[i + 1][0]] = symbols[i][0], symbols[i + 1][0]

    for i in range(len(symbols)):
        look_at(i)
    while True:
        best = None
        for i in range(len(symbols) - 1):
            found = merged(symbols[i], symbols[i + 1])
            # The third of a symbol is whether its pair with the next one was left out.
            if found >= 0 and not symbols[i][2] and (best is None or score_order(scores[found]) > best[0]):
                best = score_order(scores[found]), i
        if best is None:
            break
        at = best[1]
        if not is_merged():
            symbols[at] = (*symbols[at][:2], True)
            continue
        symbols[at : at + 2] = [(symbols[at][0] + symbols[at + 1][0], False, False)]
        if at > 0:
            symbols[at - 1] = (*symbols[at - 1][:2], False)
        look_at(at - 1)
        look_at(at)

    def expand(piece: str) -> list[Piece]:
        found = ids.get(piece, unknown)
        if types[found] == UNUSED and piece in parts:
            return [part for half in parts[piece] for part in expand(half)]
        return [(found if types[found] in (NORMAL, USER_DEFINED) else unknown, len(piece))]

    return [part for symbol in symbols for part in expand(symbol[0])]


def sentencepiece_characters(pieces: Sequence[str], types: Sequence[int], text: str) -> list[Piece]:
    """Each character or user-defined symbol, or the unknown token."""
    known = {p: i for i, (p, kind) in enumerate(zip(pieces, types, strict=True)) if kind in (NORMAL, USER_DEFINED)}
    unknown = types.index(UNKNOWN)
    return [(known.get(symbol, unknown), len(symbol)) for symbol, _ in initial_symbols(pieces, types, text)]


def sentencepiece_words(pieces: Sequence[str], types: Sequence[int], text: str) -> list[Piece]:
    """Words that begin at each U+2581."""
    known = {p: i for i, (p, kind) in enumerate(zip(pieces, types, strict=True)) if kind in (NORMAL, USER_DEFINED)}
    words: list[str] = []
    for c in text:
        if not words or c == "\u2581":
            words.append(c)
        else:
            words[-1] += c
    return [(known.get(word, types.index(UNKNOWN)), len(word)) for word in words]


def with_unknown(result: Sequence[Piece], unknown: int, text: str, fallback: Sequence[int]) -> list[Piece]:
    """Unknown tokens joined, or as bytes if `fallback` has their ids: (id, bytes)."""
    out: list[Piece] = []
    at, before = 0, -1
    for token, size in result:
        data = text[at : at + size].encode()
        at += size
        if token == unknown and fallback:
            out += [(fallback[byte], 1) for byte in data]
        elif token == unknown and before == unknown:
            out[-1] = token, out[-1][1] + len(data)
        else:
            out.append((token, len(data)))
        before = token
    return out
