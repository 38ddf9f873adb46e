"""JSON input with errors that name the file and the place in it."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import itemgetter
from typing import Any, NoReturn

from jittok.errors import FormatError

#: Token ids are below this in every file that jittok reads: what a larger id would need (arrays of that
#: length) is out of proportion to any real vocabulary, and a hostile file could ask for it in ten bytes.
MAX_TOKEN_ID = 1 << 24

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


def decode_utf8(data: bytes, where: str) -> str:
    """Return `data` as text; raise `FormatError` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{where}: not UTF-8 at byte {error.start} ({data[error.start : error.start + 4]!r}); "
            "save the file as UTF-8"
        ) from None


@contextmanager
def paused_collection() -> Iterator[None]:
    """Keep the cyclic garbage collector from walking a big tree of lists again and again while it grows.

    Reading a tokenizer.json of 11 MB takes a third less time with it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def parse_json(data: bytes, where: str, *, parse_float: Callable[[str], float] | None = None) -> Node:
    """Parse JSON as strictly as the reference does: UTF-8, no NaN, no lone surrogates, no byte-order mark.

    Parameters
    ----------
    data
        The whole file.
    where
        Name of the file, for messages.
    parse_float
        Reads numbers that are not whole; None: the nearest float.

    Returns
    -------
    Node
        The root value.

    Raises
    ------
    FormatError
        The text is not JSON, is cut short, or is nested too deeply.
    """
    text = decode_utf8(data, where)
    if text.startswith("\ufeff"):
        raise FormatError(f"{where}: starts with a byte-order mark; save it as UTF-8 without one")
    try:
        value = _decoder(parse_float).decode(text)
    except _ConstantError as error:
        raise FormatError(f"{where}: {error} is not JSON; expected a number or null") from None
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 20]
        cut = not near.strip() or error.msg.startswith("Unterminated")
        what = "where the file ends (is it truncated?)" if cut else f"near {near!r}"
        raise FormatError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg} {what}"
        ) from None
    except RecursionError:
        raise FormatError(f"{where}: JSON nested too deeply") from None
    except ValueError:
        raise FormatError(f"{where}: a number has too many digits") from None  # beyond int()'s own limit
    if b"\\u" in data and _SURROGATE_ESCAPE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise FormatError(f"{where}: a \\u escape is one half of a surrogate pair without the other") from None
        except RecursionError:
            raise FormatError(f"{where}: JSON nested too deeply") from None
    return Node(value, where, "")


class _ConstantError(Exception):
    """NaN or Infinity."""


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


@cache
def _decoder(parse_float: Callable[[str], float] | None) -> json.JSONDecoder:
    """A decoder, which takes longer to make than a small file to decode."""
    return json.JSONDecoder(parse_float=parse_float, parse_constant=_refuse_constant)


def describe(value: Any) -> str:
    """Say in a few words what a JSON value is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    if isinstance(value, int) and not -(10**30) < value < 10**30:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Node:
    """A JSON value together with its place, so that a check that fails can say where."""

    __slots__ = ("_parent", "_step", "value", "where")

    def __init__(self, value: Any, where: str, step: str | int, parent: Node | None = None) -> None:
        self.value = value
        self.where = where
        self._step = step  # from the parent, or the path if there is none
        self._parent = parent

    @property
    def path(self) -> str:
        """The way to this value, which only messages need."""
        if self._parent is None:
            return str(self._step)
        before = self._parent.path
        if isinstance(self._step, int):
            return f"{before}[{self._step}]"
        return f"{before}.{self._step}" if before else self._step

    def error(self, message: str) -> FormatError:
        """Make an error that starts with the file and the path of this value."""
        return FormatError(f"{self.place}: {message}")

    def wrong(self, expected: str) -> FormatError:
        """Make an error that says what was expected and what is there."""
        return self.error(f"expected {expected}, got {describe(self.value)}")

    @property
    def place(self) -> str:
        """File and path, for messages."""
        return f"{self.where}: {self.path or 'top level'}"

    def child(self, key: str) -> Node:
        """Return a field of an object, which must be there."""
        fields = self.value if type(self.value) is dict else self.mapping()
        if key not in fields:
            raise self.error(f"the field {key!r} is missing")
        return Node(fields[key], self.where, key, self)

    def optional(self, key: str) -> Node | None:
        """Return a field of an object, or None where it is missing or null."""
        value = self.mapping().get(key)
        return None if value is None else Node(value, self.where, key, self)

    def mapping(self) -> dict[str, Any]:
        """Check that this is an object and return it."""
        if type(self.value) is not dict:
            raise self.wrong("an object")
        return self.value

    def array(self) -> list[Any]:
        """Check that this is an array and return it."""
        if type(self.value) is not list:
            raise self.wrong("an array")
        return self.value

    def item(self, index: int) -> Node:
        """Return one item of an array."""
        return Node(self.value[index], self.where, index, self)

    def items(self) -> Iterator[Node]:
        """Check that this is an array and go through it."""
        return map(self.item, range(len(self.array())))

    def string(self) -> str:
        """Check that this is a string and return it."""
        if type(self.value) is not str:
            raise self.wrong("a string")
        return self.value

    def character(self) -> str:
        """Check that this is a string of one character and return it."""
        if len(self.string()) != 1:
            raise self.wrong("a string of one character")
        return self.string()

    def boolean(self) -> bool:
        """Check that this is true or false and return it."""
        if type(self.value) is not bool:
            raise self.wrong("true or false")
        return self.value

    def integer(self, *, limit: int = 1 << 32) -> int:
        """Check that this is an integer, 0 <= value < `limit`, and return it."""
        if type(self.value) is not int or not 0 <= self.value < limit:
            raise self.wrong(f"an integer from 0 to {limit - 1}")
        return self.value

    def one_of(self, *names: str) -> str:
        """Check that this is one of the strings `names` and return it."""
        if self.value not in names:
            raise self.wrong("one of " + ", ".join(names))
        return self.string()


_CHECKS: dict[type, Callable[[Node], Any]] = {str: Node.string, bool: Node.boolean}


class Fields:
    """Two or more fields that an object must have, with the type of each, str or bool: checked all at once."""

    def __init__(self, **kinds: type) -> None:
        self._kinds = kinds
        self._types = tuple(kinds.values())
        self._get = itemgetter(*kinds)

    def of(self, node: Node) -> Any:
        """Return the values in this order, or raise for the first that is missing or wrong."""
        try:
            values = self._get(node.value)
            if tuple(map(type, values)) == self._types:
                return values
        except (KeyError, TypeError):
            pass
        return tuple(_CHECKS[kind](node.child(name)) for name, kind in self._kinds.items())
