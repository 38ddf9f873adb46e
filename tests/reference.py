"""Slow and obvious twins of what jittok does with tables and kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
