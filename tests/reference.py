"""Slow and obvious twins of what jittok does with tables and kernels."""

from __future__ import annotations

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
