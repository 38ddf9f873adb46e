"""The same split pattern in the other dialect, and whether two patterns are the same.

tokenizers reads patterns with Oniguruma, tiktoken with fancy-regex: the same text may mean something else there, or
nothing. A pattern is printed again from its syntax tree, and the automata of both decide whether they are equal.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jittok.build.regex_automaton import compile_split
from jittok.build.regex_syntax import (
    Atomic,
    Characters,
    Choice,
    Dialect,
    NextIs,
    Node,
    Repeat,
    Sequence,
    parse,
)
from jittok.errors import RegexError, UnsupportedError
from jittok.tables import SplitAutomaton
from jittok.unicode import classes, intervals
from jittok.unicode.intervals import Intervals

#: Properties that both dialects know by these names and with the same members (Unicode 16.0), larger ones first.
_CATEGORIES = ("L", "M", "N", "P", "S", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No")
_SCRIPTS = ("Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Thai")
_ESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_MOST_NODES = 5000


def translate(pattern: str, source: Dialect, target: Dialect, known: Iterable[str] = ()) -> str:
    """Say in another dialect what a split pattern says.

    Parameters
    ----------
    pattern
        The pattern.
    source, target
        Its dialect, and that of the result.
    known
        Patterns of the target dialect to try first.

    Returns
    -------
    str
        The text itself where it means the same.

    Raises
    ------
    UnsupportedError
        No pattern of the other dialect was found.
    RegexError
        `pattern` is not a regular expression.
    """
    if source == target:
        return pattern
    wanted = compile_split(pattern, source)
    candidates = [*known, pattern]
    for _ in range(2):
        for candidate in candidates:
            try:
                if same_matches(wanted, compile_split(candidate, target)):
                    return candidate
            except (RegexError, UnsupportedError):
                continue
        candidates = [_printed(parse(pattern, source))]
    raise UnsupportedError(f"the split pattern {pattern!r} could not be written in the dialect of the other library")


def same_matches(left: SplitAutomaton, right: SplitAutomaton) -> bool:
    """Whether two automata find the same match at every position of every text.

    Parameters
    ----------
    left, right
        The automata.

    Returns
    -------
    bool

    Notes
    -----
    Both run side by side, over all pairs of states that some text leads to, with a note of whether the last match that
    each has seen ends at the same place.
    """
    codepoints = np.arange(intervals.END)
    pairs = np.unique(_class_of(left, codepoints).astype(np.int64) << 8 | _class_of(right, codepoints))
    columns = [(pair >> 8, pair & 255) for pair in pairs.tolist()]
    first, second = left.transitions.tolist(), right.transitions.tolist()
    seen = {(left.start, right.start, True)}
    todo = list(seen)
    while todo:
        a, b, equal = todo.pop()
        at_end = (first[a + left.end_class] & 1, second[b + right.end_class] & 1)
        if at_end[0] != at_end[1] or not (at_end[0] or equal):
            return False
        for column_a, column_b in columns:
            entry_a, entry_b = first[a + column_a], second[b + column_b]
            match_a, match_b = entry_a & 1, entry_b & 1
            state = (entry_a >> 1, entry_b >> 1, bool(match_a and match_b) or (equal and match_a == match_b))
            if state[:2] == (0, 0):
                if not state[2]:
                    return False
            elif state not in seen:
                seen.add(state)
                todo.append(state)
    return True


def matches_everything(automaton: SplitAutomaton) -> bool:
    """Whether there is a match, not empty, at every position but the end of every text, so that no text is left out."""
    entries = automaton.transitions.tolist()
    if any(entries[automaton.start + column] & 1 for column in range(automaton.end_class)):
        return False
    seen = {automaton.start}
    todo = [automaton.start]
    while todo:
        state = todo.pop()
        for column in range(automaton.end_class + 1):
            entry = entries[state + column]
            if entry & 1 or (column == automaton.end_class and state == automaton.start):
                continue
            if entry >> 1 == 0 or column == automaton.end_class:
                return False
            if entry >> 1 not in seen:
                seen.add(entry >> 1)
                todo.append(entry >> 1)
    return True


def _class_of(automaton: SplitAutomaton, codepoints: NDArray[np.int64]) -> NDArray[np.uint8]:
    page_of, class_of = automaton.classes
    result: NDArray[np.uint8] = class_of[(page_of[codepoints >> 7].astype(np.int64) << 7) | (codepoints & 127)]
    return result


# -------------------------------------------------------------------------------------------------- printing


def _printed(node: Node) -> str:
    """A pattern that means the same in both dialects."""
    if isinstance(node, Characters):
        return _characters(node.members)
    if isinstance(node, NextIs):
        return _look_ahead(node.members)
    if isinstance(node, Sequence):
        return "".join(f"(?:{_printed(item)})" if isinstance(item, Choice) else _printed(item) for item in node.items)
    if isinstance(node, Choice):
        return "|".join(map(_printed, node.items)) if len(node.items) > 1 else f"(?:{_printed(node.items[0])})"
    if isinstance(node, Atomic):
        return f"(?>{_printed(node.item)})"
    assert isinstance(node, Repeat)
    item = _printed(node.item)
    if not isinstance(node.item, Characters):
        item = f"(?:{item})"
    bounds = (node.minimum, node.maximum)
    mark = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(bounds)
    if mark is None:
        mark = f"{{{node.minimum},{'' if node.maximum is None else node.maximum}}}"
    return f"{item}{mark}{'?' if node.lazy else ''}"


def _look_ahead(members: Intervals) -> str:
    outside = intervals.complement(members, intervals.ALL_AND_END)
    if len(intervals.difference(intervals.AT_END, members)):  # not at the end
        return f"(?={_characters(members)})" if len(members) else r"(?![\s\S]|\z)"
    if not len(outside):
        return "(?:)"
    inside = intervals.difference(members, intervals.AT_END)
    return f"(?!{_characters(outside)})" if len(inside) else r"\z"


def _characters(members: Intervals) -> str:
    """A set of codepoints, the shorter of itself and all but the others."""
    if not len(members):
        return r"(?![\s\S]|\z)[\s\S]"
    found = intervals.members(members) if members[-1] - members[0] == 1 else []
    if found:
        return _codepoint(found[0])
    outside = intervals.complement(members)
    if not len(outside):
        return r"[\s\S]"
    own = _members(members)
    others = _members(outside)
    if own in (r"\s",) or (own.startswith(r"\p{") and own.count("{") == 1 and own.endswith("}")):
        return own
    return f"[{own}]" if len(own) <= len(others) else f"[^{others}]"


def _members(members: Intervals) -> str:
    """What stands between the brackets for a set."""
    parts: list[str] = []
    rest = members
    named = [(f"\\p{{{name}}}", classes.general_category(name)) for name in _CATEGORIES]
    named += [(f"\\p{{{name}}}", classes.script(name)) for name in _SCRIPTS]
    for name, found in ((r"\s", classes.binary_property("whitespace")), *named):
        if found is not None and not len(intervals.difference(found, members)) and len(intervals.intersection(found, rest)):
            parts.append(name)
            rest = intervals.difference(rest, found)
    for first, stop in rest.reshape(-1, 2).tolist():
        parts.append(_codepoint(first))
        if stop - first > 1:
            parts.append(("-" if stop - first > 2 else "") + _codepoint(stop - 1))
    return "".join(parts)


def _codepoint(codepoint: int) -> str:
    """One codepoint, inside or outside of brackets."""
    character = chr(codepoint)
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isascii() and character.isalnum():
        return character
    if character.isascii() and character.isprintable():
        return character if character in " '\"/,:;<>=!@%_`" else f"\\{character}"
    return f"\\x{{{codepoint:X}}}"
