"""Split patterns as syntax trees.

Two dialects are read, as their reference libraries read them: "oniguruma" (tokenizers 0.23, which uses
Oniguruma's own syntax) and "rust" (tiktoken 0.14, which uses fancy-regex over regex-syntax). A third, "llama.cpp", is
the latter with the general categories of Unicode 15.1, and no other properties. Character classes, properties and case
variants become sets of codepoints here, so that the tree has six kinds of node.

What cannot become a DFA with one codepoint of look-ahead is refused with :class:`~jittok.errors.UnsupportedError`
that names the construct; what the reference library itself refuses is a :class:`~jittok.errors.RegexError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

from jittok.errors import RegexError, UnsupportedError
from jittok.unicode import classes, intervals
from jittok.unicode.intervals import Intervals

Dialect = Literal["oniguruma", "rust", "llama.cpp"]

#: Groups deeper than this, and longer rows of quantifiers, are refused: no pattern may overflow Python's stack.
MAX_DEPTH = 50
MAX_QUANTIFIERS = 8
#: Length of the longest pattern; the longest known in use has about 2,000 characters.
MAX_LENGTH = 50_000
#: Oniguruma's own limit on a repeat count.
MAX_REPEAT = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    """One codepoint of a set. `literal` is the codepoint that a case-insensitive literal was written as."""

    members: Intervals
    literal: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NextIs:
    """No codepoint, but the next one (or the end of the text, END) must be in a set."""

    members: Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """All items one after another; the empty sequence matches the empty string."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the items, earlier ones preferred."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """`item` from `minimum` to `maximum` times (None: no limit), more preferred unless `lazy`."""

    item: Node
    minimum: int
    maximum: int | None
    lazy: bool


@dataclass(frozen=True, slots=True, eq=False)
class Atomic:
    """`item`, of which only the preferred match counts."""

    item: Node


Node = Characters | NextIs | Sequence | Choice | Repeat | Atomic

EMPTY = Sequence(())

_POSIX_NAMES = (
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "word", "xdigit",
)  # fmt: skip

#: POSIX brackets of the rust dialect, which are ASCII only.
_ASCII_CLASSES = {
    "alnum": "09AZaz", "alpha": "AZaz", "ascii": "\0\x7f", "blank": "\t\t  ", "cntrl": "\0\x1f\x7f\x7f",
    "digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ",
    "upper": "AZ", "word": "09AZaz__", "xdigit": "09AFaf",
}  # fmt: skip

_DIGITS = "0123456789"
_OCTAL_DIGITS = "01234567"
_HEX_DIGITS = "0123456789abcdefABCDEF"

_SIMPLE_ESCAPES = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}

#: Escapes of either dialect that look at the text before, at word bounds or at the match itself.
_REFUSED_ESCAPES = {
    "A": "the start of the text", "B": "no word boundary", "G": "the start of the match", "K": "keep",
    "X": "a grapheme cluster", "Y": "no text segment boundary", "Z": "the end of the text before a last newline",
    "b": "a word boundary", "g": "a subexpression call", "k": "a back-reference", "y": "a text segment boundary",
    "<": "a word start", ">": "a word end",
}  # fmt: skip

#: Codepoints that Oniguruma takes for word characters outside brackets only.
_WORD_EXCEPTION = intervals.from_codepoints([0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE])

_NEWLINE = intervals.from_codepoints([10])
_HEX = intervals.from_ranges([(48, 57), (65, 70), (97, 102)])


def _category(name: str) -> Intervals:
    members = classes.general_category(name)
    assert members is not None, name
    return members


def _binary(name: str) -> Intervals:
    members = classes.binary_property(name)
    assert members is not None, name
    return members


def _union(*sets: Intervals) -> Intervals:
    result = intervals.EMPTY
    for members in sets:
        result = intervals.union(result, members)
    return result


def posix_class(name: str) -> Intervals | None:
    """Return Oniguruma's meaning of a POSIX bracket; None when there is no such name."""
    if name == "alnum":
        return _union(_binary("Alphabetic"), _category("Nd"))
    if name == "blank":
        return _union(_category("Zs"), intervals.from_codepoints([9]))
    if name in ("graph", "print"):
        unprintable = _union(_category("Cc"), _category("Cs"), _category("Cn"), _binary("White_Space"))
        visible = intervals.complement(unprintable)
        return visible if name == "graph" else _union(visible, _category("Zs"))
    if name == "word":
        return _union(_binary("Alphabetic"), _category("M"), _category("Nd"), _category("Pc"))
    if name == "xdigit":
        return _HEX
    if name == "punct":
        return _union(_category("P"), _category("S"))
    if name in ("cntrl", "digit"):
        return _category({"cntrl": "Cc", "digit": "Nd"}[name])
    property_name = {
        "alpha": "Alphabetic",
        "lower": "Lowercase",
        "upper": "Uppercase",
        "space": "White_Space",
        "ascii": "ASCII",
    }.get(name)
    return None if property_name is None else _binary(property_name)


class _Flags(NamedTuple):
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False  # rust only: Oniguruma's $ always looks for line ends
    swap_greed: bool = False  # rust only
    extended: bool = False


def parse(pattern: str, dialect: Dialect) -> Node:
    """Read a split pattern.

    Raises
    ------
    RegexError
        The pattern is not a regular expression of the dialect.
    UnsupportedError
        It is one, with a construct that no :class:`~jittok.tables.SplitAutomaton` can hold.
    """
    return _Parser(pattern, dialect).parse()


class _Parser:
    """A recursive-descent parser; `position` is that of the next character to read."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.oniguruma = dialect == "oniguruma"
        self.llama_cpp = dialect == "llama.cpp"
        self.position = 0
        self.depth = 0
        self.final_flags = _Flags()  # those at the end of the alternation read last

    # ------------------------------------------------------------------------------------------------ errors

    def invalid(self, reason: str, position: int | None = None) -> NoReturn:
        place = self.position if position is None else position
        raise RegexError(
            f"invalid regular expression: {reason} at position {place} of {_shown(self.pattern)}; "
            "correct the pattern in the tokenizer file"
        )

    def unsupported(self, construct: str, position: int | None = None) -> NoReturn:
        place = self.position if position is None else position
        raise UnsupportedError(
            f"split pattern {_shown(self.pattern)} uses {construct} at position {place}, which jittok cannot "
            "compile to a table; rewrite the pattern without it"
        )

    # ------------------------------------------------------------------------------------------------ reading

    def peek(self, length: int = 1) -> str:
        return self.pattern[self.position : self.position + length]

    def accept(self, text: str) -> bool:
        if self.pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def skip_extended(self) -> None:
        """Skip blanks and comments of the extended syntax."""
        while self.position < len(self.pattern):
            c = self.pattern[self.position]
            if c in " \t\n\r\f\v":
                self.position += 1
            elif c == "#":
                end = self.pattern.find("\n", self.position)
                self.position = len(self.pattern) if end < 0 else end + 1
            else:
                return

    # ------------------------------------------------------------------------------------------------ grammar

    def parse(self) -> Node:
        if len(self.pattern) > MAX_LENGTH:
            self.unsupported(f"more than {MAX_LENGTH} characters", MAX_LENGTH)
        node = self.alternation(_Flags())
        if self.position < len(self.pattern):
            self.invalid("a closing parenthesis without an opening one")
        return node

    def alternation(self, flags: _Flags) -> Node:
        """Read alternatives up to a closing parenthesis (not consumed) or the end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.unsupported(f"groups nested more than {MAX_DEPTH} deep")
        alternatives: list[Node] = []
        while True:
            node, flags = self.sequence(flags)
            alternatives.append(node)
            if not self.accept("|"):
                break
        self.depth -= 1
        self.final_flags = flags
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def sequence(self, flags: _Flags) -> tuple[Node, _Flags]:
        items: list[Node] = []
        while True:
            if flags.extended:
                self.skip_extended()
            if self.position >= len(self.pattern) or self.peek() in ("|", ")"):
                break
            if self.accept("(?#"):
                end = self.pattern.find(")", self.position)
                if end < 0:
                    self.invalid("a comment without end")
                self.position = end + 1
                continue
            changed = self.flag_group(flags)
            if changed is not None:
                flags = changed
                if self.oniguruma:
                    # The flags hold to the end of the group, and the alternatives that follow belong to
                    # this sequence: a(?i)b|c is a(?i:b|c).
                    self._append(items, self.alternation(flags))
                    break
                continue
            self._append(items, self.quantified(flags))
        if self.oniguruma and flags.ignore_case:
            items = self.expand_full_folds(items)
        return (items[0] if len(items) == 1 else Sequence(tuple(items))), flags

    @staticmethod
    def _append(items: list[Node], node: Node) -> None:
        if isinstance(node, Sequence):
            items.extend(node.items)
        else:
            items.append(node)

    def flag_group(self, flags: _Flags) -> _Flags | None:
        """Read ``(?i)`` and the like; None, with nothing consumed, when something else follows."""
        if self.peek(2) != "(?":
            return None
        start = self.position
        end = start + 2
        while self.pattern[end : end + 1].isalpha() or self.pattern[end : end + 1] == "-":
            end += 1
        if self.pattern[end : end + 1] != ")" or end == start + 2:
            return None
        self.position += 2
        changed = self.flags(flags)
        self.position = end + 1
        return changed

    def flags(self, flags: _Flags) -> _Flags:
        """Read flag letters up to the character after them."""
        value = True
        known = {"i": "ignore_case", "x": "extended"}
        known.update(
            {"m": "dot_all"} if self.oniguruma else {"m": "multi_line", "s": "dot_all", "U": "swap_greed"}
        )
        while True:
            c = self.peek()
            if c == "-" and (value or self.oniguruma):
                value = False
                if not self.oniguruma and self.pattern[self.position + 1 : self.position + 2] in (":", ")"):
                    self.invalid("a minus without flags")
            elif c in known:
                flags = flags._replace(**{known[c]: value})
            elif c == "u" and not self.oniguruma and value:
                pass  # Unicode mode is always on
            elif c and c in ("WDSPyCIL" if self.oniguruma else "Ru"):
                self.unsupported(f"the flag '{c}'")
            elif c and c in ":)":
                return flags
            else:
                self.invalid(f"unknown flag {c!r}" if c else "a group without end")
            self.position += 1

    def quantified(self, flags: _Flags) -> Node:
        """Read an atom and the quantifiers after it."""
        start = self.position
        if self.peek() in ("*", "+", "?") or (self.oniguruma and self.interval(flags, consume=False) is not None):
            self.invalid("a quantifier with nothing before it")
        node = self.atom(flags)
        count = 0
        while True:
            if flags.extended:
                self.skip_extended()
            place = self.position
            bounds: tuple[int, int | None] | None
            possessive = False
            fixed = False
            c = self.peek()
            if c in ("*", "+", "?"):
                self.position += 1
                bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[c]
                possessive_allowed = True
            else:
                if count and not self.oniguruma:
                    return node  # a second {n} is literal text
                interval = self.interval(flags, consume=True)
                if interval is None:
                    return node
                minimum, maximum, fixed = interval
                bounds = (minimum, maximum)
                possessive_allowed = not self.oniguruma
                if maximum is not None and maximum < minimum:
                    if not self.oniguruma:
                        self.unsupported(f"the repeat {self.pattern[place : self.position]}", place)
                    bounds = (maximum, minimum)
                    possessive = True
            if count and not self.oniguruma:
                self.invalid("a quantifier after a quantifier", place)
            if self.oniguruma and _is_assertion(node):
                self.invalid("a quantifier after an assertion", place)
            if isinstance(node, NextIs):
                self.unsupported("a quantifier after an assertion", place)
            lazy = False
            # In Oniguruma a{n}? is an optional a{n}, and a{n,m}+ repeats a{n,m}: the mark is the next quantifier.
            if not possessive and not (self.oniguruma and fixed) and self.accept("?"):
                lazy = True
            if possessive_allowed and not (lazy and self.oniguruma) and self.accept("+"):
                possessive = True
            if flags.swap_greed:
                lazy = not lazy
            node = Repeat(node, bounds[0], bounds[1], lazy)
            if possessive:
                node = Atomic(node)
            count += 1
            if count > MAX_QUANTIFIERS:
                self.unsupported(f"more than {MAX_QUANTIFIERS} quantifiers in a row", start)

    def interval(self, flags: _Flags, consume: bool) -> tuple[int, int | None, bool] | None:
        """Read ``{n}``, ``{n,}``, ``{,m}`` or ``{n,m}``; None, with nothing consumed, when it is literal text."""
        if self.peek() != "{":
            return None
        end = self.pattern.find("}", self.position, self.position + 100)
        text = self.pattern[self.position + 1 : max(end, self.position + 1)]
        if flags.extended and not self.oniguruma:
            text = "".join(text.split())
        low, comma, high = text.partition(",")
        if end < 0 or not (low or high) or not set(low + high) <= set(_DIGITS):
            return None
        if max(len(low), len(high)) > 6 or int(low or 0) > MAX_REPEAT or int(high or 0) > MAX_REPEAT:
            if self.oniguruma:
                self.invalid("a repeat count above 100000")
            self.unsupported("a repeat count above 100000")
        if consume:
            self.position = end + 1
        minimum = int(low or 0)
        return minimum, (int(high) if high else None) if comma else minimum, not comma

    def atom(self, flags: _Flags) -> Node:
        start = self.position
        c = self.peek()
        self.position += 1
        if c == "(":
            return self.group(flags)
        if c == "[":
            return self.bracket(flags)
        if c == ".":
            return Characters(intervals.ALL if flags.dot_all else intervals.complement(_NEWLINE))
        if c == "^":
            self.unsupported("the anchor ^", start)
        if c == "$":
            if self.oniguruma or flags.multi_line:
                return NextIs(intervals.union(_NEWLINE, intervals.AT_END))
            return NextIs(intervals.AT_END)
        if c == "\\":
            return self.escape(flags)
        return self.literal(ord(c), flags)

    def literal(self, codepoint: int, flags: _Flags) -> Node:
        if not flags.ignore_case:
            return Characters(intervals.from_codepoints([codepoint]))
        return Characters(intervals.from_codepoints(classes.case_variants(codepoint)), literal=codepoint)

    def group(self, flags: _Flags) -> Node:
        """Read a group whose opening parenthesis is consumed."""
        start = self.position - 1
        if self.peek() == "*" and self.oniguruma:
            self.unsupported("a callout", start)
        if not self.accept("?"):
            # One alternative: case folding of adjacent letters does not reach into a capturing group.
            return Choice((self.rest_of_group(flags),))
        if self.accept(":"):
            return self.rest_of_group(flags, flag_scope=True)
        if self.accept(">"):
            return Atomic(self.rest_of_group(flags))
        if self.peek(2) in ("<=", "<!"):
            self.unsupported("look-behind", start)
        if self.accept("="):
            return NextIs(self.look_ahead(self.rest_of_group(flags), start))
        if self.accept("!"):
            members = self.look_ahead(self.rest_of_group(flags), start)
            return NextIs(intervals.complement(members, intervals.ALL_AND_END))
        if self.peek() in ("~", "(", "|", "&", "@", "R", "{", "+") or self.peek().isdigit():
            self.unsupported(f"the group (?{self.peek()}", start)
        if self.peek() in ("<", "'") or (self.peek(2) == "P<" and not self.oniguruma):
            self.accept("P")
            closing = ">" if self.peek() == "<" else "'"
            end = self.pattern.find(closing, self.position + 1)
            name = self.pattern[self.position + 1 : max(end, 0)]
            if end < 0 or not name or not all(c.isalnum() or c == "_" for c in name):
                self.invalid("a group name that is not a word")
            if name[0].isdigit():
                self.unsupported("a numbered group name", start)
            self.position = end + 1
            return Choice((self.rest_of_group(flags),))
        if self.peek(2) in ("P<", "P>", "P="):
            if self.oniguruma:
                self.invalid(f"the group (?{self.peek(2)}", start)
            self.unsupported(f"the group (?{self.peek(2)}", start)
        inner = self.flags(flags)
        if not self.accept(":"):
            self.invalid("flags without a colon")
        return self.rest_of_group(inner, flag_scope=True)

    def rest_of_group(self, flags: _Flags, flag_scope: bool = False) -> Node:
        start = self.position
        node = self.alternation(flags)
        if not self.accept(")"):
            self.invalid("an opening parenthesis without a closing one", start)
        if not (self.oniguruma or flag_scope) and self.final_flags != flags:
            # fancy-regex forgets to restore them after all groups but (?:...).
            self.unsupported("flags that change inside a group other than (?:...)", start)
        return node

    def look_ahead(self, node: Node, start: int) -> Intervals:
        members = next_codepoints(node)
        if members is None:
            self.unsupported("look-ahead over more than one codepoint", start)
        return members

    # ------------------------------------------------------------------------------------------------ escapes

    def escape(self, flags: _Flags) -> Node:
        """Read an escape outside brackets; the backslash is consumed."""
        start = self.position - 1
        c = self.peek()
        if c == "w" or c == "W":
            self.position += 1
            return Characters(self.negated(self.word(in_bracket=False), c == "W"))
        if c and c in "pP" and (members := self.property(flags, in_bracket=False)) is not None:
            return Characters(members)
        if (members := self.class_escape()) is not None:
            return Characters(members)
        if c == "z":
            self.position += 1
            return NextIs(intervals.AT_END)
        if c == "R":
            self.position += 1
            newline = Sequence(tuple(Characters(intervals.from_codepoints([v])) for v in (13, 10)))
            other = Characters(intervals.from_codepoints([10, 11, 12, 13, 0x85, 0x2028, 0x2029]))
            return Atomic(Choice((newline, other)))
        if c == "N" or c == "O":
            self.position += 1
            return Characters(intervals.complement(_NEWLINE) if c == "N" else intervals.ALL)
        literal_here = self.oniguruma and (
            c in ("<", ">") or (c in ("g", "k") and self.peek(2)[1:] not in ("<", "'"))
        )
        if c in _REFUSED_ESCAPES and not literal_here:
            self.unsupported(f"\\{c} ({_REFUSED_ESCAPES[c]})", start)
        if c and c in _DIGITS and not (self.oniguruma and c == "0"):
            self.unsupported(f"the back-reference \\{c}", start)
        return self.literal(self.single_escape(), flags)

    def word(self, in_bracket: bool) -> Intervals:
        members = posix_class("word")
        assert members is not None
        if not self.oniguruma:
            return intervals.union(members, _binary("Join_Control"))
        return members if in_bracket else intervals.union(members, _WORD_EXCEPTION)

    @staticmethod
    def negated(members: Intervals, negate: bool) -> Intervals:
        return intervals.complement(members) if negate else members

    def class_escape(self) -> Intervals | None:
        r"""Read \\d \\s \\h and their complements; None, with nothing consumed, when something else follows."""
        c = self.peek()
        if c and c in "dDsShH":
            self.position += 1
            lower = c.lower()
            members = _category("Nd") if lower == "d" else _binary("White_Space") if lower == "s" else _HEX
            return self.negated(members, c != lower)
        return None

    def single_escape(self) -> int:
        """Read an escape that stands for one codepoint; the backslash is consumed."""
        start = self.position - 1
        c = self.peek()
        if not c:
            self.invalid("a backslash at the end", start)
        self.position += 1
        if c in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[c]
        if c == "x":
            return self.hexadecimal(2, start)
        if c == "u":
            return self.hexadecimal(4, start)
        if self.oniguruma:
            if c in _OCTAL_DIGITS:
                self.position -= 1
                return self.octal(start)
            if c == "o" and self.peek() == "{":
                return self.braced(8, start)
            if c == "c" or (c == "C" and self.peek() == "-"):
                if c == "C":
                    self.position += 1
                control = self.peek()
                if not control or control == "\\":
                    self.unsupported("a control escape", start)
                self.position += 1
                return 127 if control == "?" else ord(control) & 0x1F
            if c in ("C", "M"):
                self.unsupported(f"the escape \\{c}", start)
            return ord(c)
        if c == "U":
            return self.hexadecimal(8, start)
        if c.isascii() and c.isalnum():
            self.invalid(f"unknown escape \\{c}", start)
        return ord(c)

    def octal(self, start: int) -> int:
        end = self.position
        while end < len(self.pattern) and end - self.position < 3 and self.pattern[end] in _OCTAL_DIGITS:
            end += 1
        value = int(self.pattern[self.position : end], 8)
        if value > 0x7F:
            self.unsupported("an octal byte above 177", start)
        self.position = end
        return value

    def braced(self, base: int, start: int) -> int:
        end = self.pattern.find("}", self.position)
        digits = self.pattern[self.position + 1 : max(end, self.position + 1)]
        allowed = _HEX_DIGITS if base == 16 else _OCTAL_DIGITS
        if end < 0 or not digits:
            if self.oniguruma:
                self.unsupported("an escape without digits or closing brace", start)
            self.invalid("an escape without digits or closing brace", start)
        if not set(digits) <= set(allowed):
            if self.oniguruma and set(digits) <= set(allowed + " -\n"):
                self.unsupported("a list of codepoints in one escape", start)
            self.invalid("an escape with a wrong digit", start)
        self.position = end + 1
        return self.scalar_value(int(digits, base), start)

    def scalar_value(self, value: int, start: int) -> int:
        if value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
            return value
        if self.oniguruma:
            self.unsupported("an escape for something that is not a character", start)
        self.invalid("an escape for something that is not a character", start)

    def hexadecimal(self, length: int, start: int) -> int:
        r"""Read the digits of \\x, \\u or \\U."""
        if self.peek() == "{" and not (self.oniguruma and length == 4):
            return self.braced(16, start)
        end = self.position
        while end < len(self.pattern) and end - self.position < length and self.pattern[end] in _HEX_DIGITS:
            end += 1
        digits = self.pattern[self.position : end]
        if len(digits) < length:
            if not self.oniguruma:
                self.invalid(f"an escape with fewer than {length} digits", start)
            if length != 2 or not digits:
                self.unsupported(f"an escape with fewer than {length} digits", start)
        value = self.scalar_value(int(digits, 16), start)
        if self.oniguruma and length == 2 and value > 0x7F:
            self.unsupported("\\x for a byte above 7F", start)
        self.position = end
        return value

    def property(self, flags: _Flags, in_bracket: bool) -> Intervals | None:
        r"""Read \\p or \\P; None, with nothing consumed, when it is a literal p."""
        start = self.position - 1
        negate = self.peek() == "P"
        if self.pattern[self.position + 1 : self.position + 2] != "{":
            if self.oniguruma:
                return None
            name = self.pattern[self.position + 1 : self.position + 2]
            end = self.position + 1
        else:
            end = self.pattern.find("}", self.position)
            name = self.pattern[self.position + 2 : max(end, self.position + 2)]
        if end < 0 or not name:
            self.invalid("a property without a name", start)
        if name.startswith("^"):
            negate = not negate
            name = name[1:]
        self.position = end + 1
        if self.oniguruma:
            members = self.oniguruma_property(name, start, in_bracket)
        else:
            members = self.rust_property(name, start)
            if flags.ignore_case:
                members = classes.close_under_case(members)
        return self.negated(members, negate)

    def oniguruma_property(self, name: str, start: int, in_bracket: bool) -> Intervals:
        loose = classes.loose_name(name)
        if loose == "word":
            return self.word(in_bracket)
        if loose in ("punct", "posixpunct"):
            members = posix_class("punct") if loose == "posixpunct" else _category("P")
        else:
            members = posix_class(loose)
        for lookup in (classes.general_category, classes.script, classes.binary_property):
            if members is None:
                members = lookup(loose)
        if members is None:
            self.unsupported(f"the unknown property {name!r}", start)
        return members

    def rust_property(self, name: str, start: int) -> Intervals:
        if self.llama_cpp:
            from jittok.unicode import llama_cpp

            known = llama_cpp.category(name)
            if known is None:
                self.unsupported(f"the unknown property {name!r}", start)
            return known
        key, separator, value = name.partition("=")
        if not separator:
            key, separator, value = name.partition(":")
        negate = key.endswith("!")
        loose = classes.loose_name(key.removesuffix("!"))
        members: Intervals | None = None
        if separator:
            if loose in ("sc", "script"):
                members = classes.script(value)
            elif loose in ("gc", "generalcategory"):
                members = classes.general_category(value)
            if members is None:
                self.unsupported(f"the unknown property {name!r}", start)
            return self.negated(members, negate)
        if loose == "word":
            return self.word(in_bracket=True)
        if loose in ("alnum", "blank"):
            members = posix_class(loose)
        for candidate in (loose, loose.removeprefix("is")):
            for lookup in (classes.general_category, classes.script, classes.binary_property):
                if members is None:
                    members = lookup(candidate)
        if members is None:
            self.unsupported(f"the unknown property {name!r}", start)
        return members

    # ------------------------------------------------------------------------------------------------ brackets

    def bracket(self, flags: _Flags) -> Node:
        """Read a bracket expression whose opening bracket is consumed."""
        negate, members = self.bracket_body(flags)
        if not self.oniguruma or not flags.ignore_case:
            return Characters(self.negated(members, negate))
        # Oniguruma folds the whole expression, and adds letters that fold to several when it is not negated.
        members = classes.close_under_case(members)
        if negate:
            return Characters(intervals.complement(members))
        expansions = self.full_fold_expansions(members)
        return Choice((Characters(members), *expansions)) if expansions else Characters(members)

    def bracket_body(self, flags: _Flags) -> tuple[bool, Intervals]:
        """Read up to the closing bracket; return whether the members are to be complemented, and them."""
        start = self.position - 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.unsupported(f"brackets nested more than {MAX_DEPTH} deep")
        negate = self.accept("^")
        result: Intervals | None = None
        operator = ""
        union = intervals.EMPTY
        ranges: list[tuple[int, int]] = []
        first = True
        while True:
            if self.position >= len(self.pattern):
                self.invalid("a bracket expression without end", start)
            closing = self.peek() == "]" and not first
            if self.peek() == "]" and first and self.pattern.find("]", self.position + 1) < 0:
                self.invalid("an empty bracket expression", start)
            found = "" if closing else self.set_operator()
            if closing or found:
                # An operand is complete.
                operand = intervals.union(union, intervals.from_ranges(ranges))
                if flags.ignore_case and not self.oniguruma:
                    operand = classes.close_under_case(operand)
                result = operand if result is None else self.operate(operator, result, operand)
                operator, union, ranges, first = found, intervals.EMPTY, [], False
                self.position += len(found) or 1
                if closing:
                    self.depth -= 1
                    return negate, result
                continue
            first = False
            item = self.bracket_item(flags)
            if isinstance(item, int):
                last = self.range_end(item, flags)
                ranges.append((item, item if last is None else last))
                continue
            union = intervals.union(union, item)

    def set_operator(self) -> str:
        pair = self.peek(2)
        if pair == "&&" or (not self.oniguruma and pair in ("--", "~~")):
            return pair
        return ""

    @staticmethod
    def operate(operator: str, left: Intervals, right: Intervals) -> Intervals:
        if operator == "&&":
            return intervals.intersection(left, right)
        if operator == "--":
            return intervals.difference(left, right)
        return intervals.symmetric_difference(left, right)

    def bracket_item(self, flags: _Flags) -> int | Intervals:
        """Read one member of a bracket expression: a codepoint, or a set."""
        c = self.peek()
        self.position += 1
        members: Intervals | None
        if c == "[":
            members = self.posix_bracket()
            if members is None:
                negate, inner = self.bracket_body(flags)
                return self.negated(inner, negate)
            return self.no_range_after(members) if self.oniguruma else members
        if c != "\\":
            return ord(c)
        c = self.peek()
        if c and c in "pP":
            members = self.property(flags, in_bracket=True)
            if members is not None:
                return self.no_range_after(members)
        if c and c in "wW":
            self.position += 1
            return self.no_range_after(self.negated(self.word(in_bracket=True), c == "W"))
        members = self.class_escape()
        if members is not None:
            return self.no_range_after(members)
        if c == "b":
            self.position += 1
            return 8
        if not self.oniguruma and c and c in "ABGKRkz":
            self.position += 1
            return ord(c)
        return self.single_escape()

    def no_range_after(self, members: Intervals) -> Intervals:
        if self.peek() == "-" and self.peek(2) != "-]" and (self.oniguruma or self.peek(2) != "--"):
            if not self.oniguruma:
                self.invalid("a range that starts with a class")
            self.unsupported("a hyphen between a class and something else in brackets")
        return members

    def range_end(self, first: int, flags: _Flags) -> int | None:
        """Read ``-x`` of a range that starts with `first`; None, with nothing consumed, when there is no range."""
        if self.peek() != "-" or self.peek(2) == "-]" or (not self.oniguruma and self.peek(2) == "--"):
            return None
        if self.oniguruma and self.peek(3) == "-&&":
            return None
        start = self.position
        self.position += 1
        if self.position >= len(self.pattern):
            self.invalid("a bracket expression without end")
        if self.peek() == "[":
            self.unsupported("a bracket expression after a hyphen", start)
        last = self.bracket_item(flags)
        if not isinstance(last, int):
            self.invalid("a range that ends with a class", start)
        if last < first:
            self.invalid("a range whose end is before its start", start)
        return last

    def posix_bracket(self) -> Intervals | None:
        """Read ``[:name:]`` whose first bracket is consumed; None, with nothing consumed, when there is none."""
        if self.peek() != ":":
            return None
        end = self.pattern.find(":]", self.position + 1, self.position + 30)
        name = self.pattern[self.position + 1 : max(end, self.position + 1)]
        plain = name.removeprefix("^")
        if end < 0 or not all(c.isalpha() for c in plain):
            return None
        if plain not in _POSIX_NAMES:
            if self.oniguruma:
                self.invalid(f"the unknown POSIX bracket {name!r}")
            return None
        self.position = end + 2
        if self.oniguruma:
            members = posix_class(plain)
        else:
            spans = _ASCII_CLASSES[plain]
            members = intervals.from_ranges((ord(a), ord(b)) for a, b in zip(spans[::2], spans[1::2], strict=True))
        assert members is not None
        return self.negated(members, name != plain)

    # ------------------------------------------------------------------------------- full case folding (Oniguruma)

    def full_fold_expansions(self, members: Intervals) -> list[Node]:
        """Return the sequences of letters that single members of a case-insensitive set fold to."""
        folds = classes.full_folds()
        targets = {folds[c] for c in folds if intervals.contains(members, _as_array(c))[0]}
        return [
            Sequence(tuple(Characters(intervals.from_codepoints(classes.case_variants(c))) for c in target))
            for target in sorted(targets)
        ]

    def expand_full_folds(self, items: list[Node]) -> list[Node]:
        """Let adjacent case-insensitive letters also match the one letter that folds to them, and the reverse."""
        by_target: dict[tuple[int, ...], list[int]] = {}
        for source, target in classes.full_folds().items():
            by_target.setdefault(tuple(_fold(c) for c in target), []).append(source)
        result: list[Node] = []
        index = 0
        while index < len(items):
            run: list[int] = []
            for item in items[index : index + 3]:
                if not isinstance(item, Characters) or item.literal is None:
                    break
                run.append(_fold(item.literal))
            # Oniguruma takes the longest fold at a position and goes on after it.
            length = next((n for n in (3, 2) if n <= len(run) and tuple(run[:n]) in by_target), 0)
            item = items[index]
            if isinstance(item, Characters) and item.literal is not None:
                expansions = self.full_fold_expansions(item.members)
                if expansions and (length or len(run) > 1 or self.follows_literal(result)):
                    self.unsupported("a letter with a multi-character case fold beside other letters")
                if expansions:
                    item = Choice((item, *expansions))
            if length:
                sources = by_target[tuple(run[:length])]
                letters = Sequence(tuple(items[index : index + length]))
                item = Choice((letters, Characters(intervals.from_codepoints(sources))))
            result.append(item)
            index += length or 1
        return result

    @staticmethod
    def follows_literal(items: list[Node]) -> bool:
        """Tell whether the last of `items` came from a case-insensitive letter."""
        return bool(items) and isinstance(items[-1], Characters) and items[-1].literal is not None


def _as_array(codepoint: int) -> Intervals:
    return intervals.from_codepoints([codepoint])[:1]


def _fold(codepoint: int) -> int:
    """Return a representative of the letters that differ by case only."""
    return classes.case_variants(codepoint)[0]


def _is_assertion(node: Node) -> bool:
    """Tell whether Oniguruma refuses to repeat `node`. Groups with one alternative are capturing ones."""
    if isinstance(node, Choice):
        return len(node.items) > 1 and any(_is_assertion(item) for item in node.items)
    return isinstance(node, NextIs)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 200 else pattern[:200] + "...")


def always_matches(node: Node) -> bool:
    """Tell whether `node` matches at every position, possibly the empty string."""
    if isinstance(node, Characters):
        return False
    if isinstance(node, NextIs):
        return len(intervals.complement(node.members, intervals.ALL_AND_END)) == 0
    if isinstance(node, Sequence):
        return all(always_matches(item) for item in node.items)
    if isinstance(node, Choice):
        return any(always_matches(item) for item in node.items)
    if isinstance(node, Repeat):
        return node.minimum == 0 or always_matches(node.item)
    return always_matches(node.item)


def can_be_empty(node: Node) -> bool:
    """Tell whether `node` can match the empty string somewhere."""
    if isinstance(node, Characters):
        return False
    if isinstance(node, NextIs):
        return True
    if isinstance(node, Sequence):
        return all(can_be_empty(item) for item in node.items)
    if isinstance(node, Choice):
        return any(can_be_empty(item) for item in node.items)
    if isinstance(node, Repeat):
        return node.minimum == 0 or can_be_empty(node.item)
    return can_be_empty(node.item)


def next_codepoints(node: Node) -> Intervals | None:
    """Return the set of next codepoints (END included) before which `node` matches.

    None when more than the next codepoint decides it.
    """
    if isinstance(node, Characters | NextIs):
        return node.members
    if isinstance(node, Atomic):
        return next_codepoints(node.item)
    if isinstance(node, Choice):
        result = intervals.EMPTY
        for item in node.items:
            members = next_codepoints(item)
            if members is None:
                return None
            result = intervals.union(result, members)
        return result
    if isinstance(node, Repeat):
        if always_matches(node):
            return intervals.ALL_AND_END
        return next_codepoints(node.item) if node.minimum == 1 else None
    allowed = intervals.ALL_AND_END
    for number, item in enumerate(node.items):
        if isinstance(item, NextIs):
            allowed = intervals.intersection(allowed, item.members)
            continue
        members = next_codepoints(item)
        if members is None or not all(always_matches(later) for later in node.items[number + 1 :]):
            return None
        return intervals.intersection(allowed, members)
    return allowed
