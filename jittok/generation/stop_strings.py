"""Text of a sequence as it grows, and the strings that end it, wherever tokens begin and end."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.tables import read_only

if TYPE_CHECKING:
    from jittok.streaming import DecodeStream
    from jittok.tokenizer import Tokenizer

_MOST_BYTES = 1 << 16
_STATE = (1 << 32) - 1


class StopStrings:
    """An automaton over bytes that finds any of some strings.

    Parameters
    ----------
    strings
        One, several or none; none of them empty.

    Attributes
    ----------
    strings
        The same, as a tuple.
    following : int32[states, 256]
        The state after each byte; state 0 is the beginning.
    found : int32[states]
        Bytes of the longest string that ends in a state, 0 for none.
    depth : int32[states]
        Bytes of the longest beginning of a string that a state stands for.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A string is empty, or not text, or all together are longer than 65,536 bytes.

    Notes
    -----
    Source: Aho and Corasick, "Efficient string matching" (1975). A kilobyte for each byte of the strings.
    """

    def __init__(self, strings: str | Sequence[str] | None) -> None:
        if isinstance(strings, str):
            strings = (strings,)
        try:
            self.strings: tuple[str, ...] = () if strings is None else tuple(strings)
        except TypeError:
            raise ArgumentTypeError(f"stop_strings={strings!r}: expected a text, or a list of texts") from None
        contents = []
        room = _MOST_BYTES
        for string in self.strings:
            if not isinstance(string, str):
                raise ArgumentTypeError(f"stop_strings: {string!r} is not str")
            if not string:
                raise ArgumentError("stop_strings: an empty string would end every sequence before its first token")
            try:
                data = string.encode()
            except UnicodeEncodeError:
                raise ArgumentError(f"stop_strings: {string!r} has a lone surrogate, which no text has") from None
            room -= len(data)
            if room < 0:
                raise ArgumentError(f"stop_strings: more than {_MOST_BYTES} bytes together")
            contents.append(data)
        table = np.full((1 + sum(map(len, contents)), 256), -1, np.int32)
        found, depth = [0], [0]
        for data in contents:
            state = 0
            for byte in data:
                if table[state, byte] < 0:
                    table[state, byte] = len(found)
                    found.append(0)
                    depth.append(depth[state] + 1)
                state = table[state, byte]
            found[state] = len(data)
        table = table[: len(found)]
        table[0][table[0] < 0] = 0
        # Breadth first: where a state has no way on, it goes the way of its longest ending that is a state.
        fallback = np.zeros(len(table), np.int32)
        queue = deque(sorted(set(table[0].tolist()) - {0}))
        while queue:
            state = queue.popleft()
            behind = table[fallback[state]]
            found[state] = max(found[state], found[fallback[state]])
            children = np.flatnonzero(table[state] >= 0)
            fallback[table[state][children]] = behind[children]
            queue.extend(table[state][children].tolist())
            table[state] = np.where(table[state] >= 0, table[state], behind)
        self.following = read_only(table)
        self.found = read_only(np.array(found, np.int32))
        self.depth = read_only(np.array(depth, np.int32))


class TextStream:
    """Text of one sequence, token by token: what is certain, and before any stop string.

    Parameters
    ----------
    tokenizer
        Its decoder is used.
    prompt_ids
        What stands before; its text is not given out.
    stops
        What ends the text.
    skip_special_tokens
        Leave special tokens out.

    Attributes
    ----------
    is_stopped
        Whether a stop string was found; nothing is given out from then on.

    Examples
    --------
    >>> import jittok
    >>> from jittok.generation import StopStrings, TextStream
    >>> tok = jittok.load_default()
    >>> stream = TextStream(tok, stops=StopStrings("END"))
    >>> "".join(stream.push(int(i)) for i in tok.encode("one two EN three END four").ids)
    'one two EN three '
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt_ids: Any = (),
        stops: StopStrings | None = None,
        skip_special_tokens: bool = True,
    ) -> None:
        self._vocabulary = tokenizer.decoder.vocabulary
        self._stream: DecodeStream = tokenizer.decode_stream(skip_special_tokens=skip_special_tokens)
        self._stops = stops if stops is not None and stops.strings else None
        self._state = 0
        self._held = b""  # the beginning of what may be a stop string
        self.is_stopped = False
        for token in prompt_ids:
            self._decode(int(token))
        # Text of the prompt that its decoder still holds back.
        rest = self._stream.fork().finish() if len(prompt_ids) else ""
        self._to_skip = len(rest) if rest.strip("\ufffd") else 0

    def _decode(self, token: int) -> str:
        # A model may have more tokens than its tokenizer: those have no text.
        return self._stream.push(token) if self._vocabulary.contains_id(token) else ""

    def push(self, token_id: int) -> str:
        """Return the text that `token_id` makes certain.

        Parameters
        ----------
        token_id
            The next token; one that the tokenizer does not have has no text.
        """
        return "" if self.is_stopped else self._match(self._decode(int(token_id)))

    def finish(self) -> str:
        """Return what was held back, when no more tokens come."""
        if self.is_stopped:
            return ""
        text = self._match(self._stream.finish())
        held, self._held = self._held, b""
        return text if self.is_stopped else text + held.decode()

    def fork(self) -> TextStream:
        """Return a stream that has seen the same tokens, and goes on alone."""
        other = copy.copy(self)
        other._stream = self._stream.fork()
        return other

    def _match(self, text: str) -> str:
        if self._to_skip and text:
            skipped = min(self._to_skip, len(text))
            self._to_skip -= skipped
            text = text[skipped:]
        stops = self._stops
        if stops is None or not text:
            return text
        from jittok.kernels.stop_strings import FOUND_SHIFT, find_stop

        data = text.encode("utf-8", "replace")
        packed = int(find_stop(np.frombuffer(data, np.uint8), stops.following, stops.found, self._state))
        self._state = packed & _STATE
        found = int(stops.found[self._state])
        seen = self._held + data[: packed >> FOUND_SHIFT]
        if found:
            self.is_stopped, self._held = True, b""
            return seen[: len(seen) - found].decode()
        kept = len(seen) - int(stops.depth[self._state])
        self._held = seen[kept:]
        return seen[:kept].decode()
