"""Decoding one id after another, as a language model produces them."""

from __future__ import annotations

import copy
from codecs import getincrementaldecoder, utf_8_decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .decoding import (
    alphabet_text,
    apply_step,
    close_run,
    ctc_text,
    fallback_byte,
    marian_part,
    replace_all,
    strip,
    word_piece,
)
from .piece_decoding import PieceDecoder
from .spec import (
    DecodeBPE,
    DecodeByteFallback,
    DecodeByteLevel,
    DecodeCTC,
    DecodeFuse,
    DecodeMarian,
    DecodeMetaspace,
    DecodeReplace,
    DecodeStrip,
    DecodeWordPiece,
)
from .spec import Decoder as DecoderStep
from .tables import ADDED, SPECIAL
from .vocabulary import token_number, unknown_id

if TYPE_CHECKING:
    from .decoding import Decoder

# A stream of nothing but broken characters must not be held back for ever.
_LONGEST_WAIT = 64


class _HasDecoder(Protocol):
    @property
    def decoder(self) -> Decoder: ...


class DecodeStream:
    """Text from ids that arrive one at a time.

    :meth:`push` returns the text that has become certain: "" while the last character is incomplete, and
    never half a character. All that the calls return, with :meth:`finish` at the end, is what ``decode``
    gives for all the ids.

    Parameters
    ----------
    decoder
        A :class:`~jittok.decoding.Decoder`, or a tokenizer that has one.
    skip_special_tokens
        Leave special tokens out.

    Notes
    -----
    A push costs the same however long the text already is, and raises for ids outside the vocabulary only.
    Where a file has byte tokens such as ``<0x0A>``, a run of them is given out when it ends: if it is not UTF-8, all of
    it becomes U+FFFD. Where a file rewrites the text after all its tokens were joined in a way that what comes later may
    change, everything is given out in the end.
    """

    def __init__(self, decoder: Decoder | _HasDecoder, skip_special_tokens: bool = False) -> None:
        self._decoder: Decoder = getattr(decoder, "decoder", decoder)  # type: ignore[arg-type]
        self._skip_special_tokens = skip_special_tokens
        self._push: Callable[[int], str]
        if isinstance(self._decoder, PieceDecoder):
            self._push = self._push_any if self._decoder.step.denormalizer is not None else self._push_piece
        elif self._decoder.is_bytes:
            self._push = self._push_bytes
        else:
            self._push = self._push_token
        self._start_again()

    def _start_again(self) -> None:
        self._is_first = True
        self._pending = b""  # bytes of text not yet given out
        self._ids: list[int] = []  # only where nothing is certain before the end
        self._stages = [] if isinstance(self._decoder, PieceDecoder) else _stages(self._decoder.steps)

    def push(self, token_id: int) -> str:
        """Return the text that `token_id` makes certain.

        Parameters
        ----------
        token_id
            The next id.

        Returns
        -------
        str
            "" while a character is incomplete, or when the token is skipped.

        Raises
        ------
        TokenIdError
            The id is not in the vocabulary; the stream stays as it was.
        """
        number = token_number(token_id)
        vocabulary = self._decoder.vocabulary
        if not vocabulary.contains_id(number):
            raise unknown_id(number, None, vocabulary.size)
        if self._skip_special_tokens and vocabulary.tables.flags[number] & SPECIAL:
            return ""
        return self._push(number)

    def finish(self) -> str:
        """Return what is still held back, when no more ids come; the stream then starts anew.

        Returns
        -------
        str
            An incomplete character becomes U+FFFD.
        """
        if self._push == self._push_bytes:
            text = self._pending.decode("utf-8", "replace")
        elif self._push == self._push_piece:
            text = "\ufffd" * len(self._pending)
        elif self._push == self._push_any:
            text = self._decoder.decode(self._ids)
        else:
            tokens: list[str] = []
            for stage in self._stages:
                tokens = [part for token in tokens for part in stage.push(token)] + stage.finish()
            text = "".join(tokens)
        self._start_again()
        return text

    def fork(self) -> DecodeStream:
        """Return a stream that has seen the same ids, and goes on alone: for beams that share their beginning."""
        other = copy.copy(self)
        other._push = getattr(other, self._push.__name__)
        other._ids = self._ids.copy()
        other._stages = [stage.fork() for stage in self._stages]
        return other

    # ------------------------------------------------------------------------------- one way for each shape

    def _push_bytes(self, token_id: int) -> str:
        """Tokens are bytes: give out what is pending once it ends with a whole character."""
        self._pending += self._decoder.vocabulary.bytes_of(token_id)
        text, length = utf_8_decode(self._pending, "replace", False)
        if length == len(self._pending):
            self._pending = b""
            return text
        if length < _LONGEST_WAIT:
            return ""
        self._pending = self._pending[length:]
        return text

    def _push_token(self, token_id: int) -> str:
        """Tokens go through one stage for each step of the decoder."""
        vocabulary = self._decoder.vocabulary
        token = vocabulary.string_of(token_id).decode("utf-8", "replace")
        if not self._decoder.steps:
            token = token if self._is_first else " " + token
            self._is_first = False
            return token
        if isinstance(self._decoder.steps[0], DecodeByteLevel) and vocabulary.tables.flags[token_id] & ADDED:
            # Its own text, even if all its characters are in the byte alphabet.
            first = self._stages[0]
            assert isinstance(first, _Bytes)
            tokens = first.push_bytes(vocabulary.bytes_of(token_id))
            rest = self._stages[1:]
        else:
            tokens, rest = [token], self._stages
        for stage in rest:
            if not tokens:
                return ""
            tokens = [part for token in tokens for part in stage.push(token)]
        return "".join(tokens)

    def _push_piece(self, token_id: int) -> str:
        """Pieces of a SentencePiece model: text, or single raw bytes, each of which may turn out to be broken."""
        decoder = self._decoder
        assert isinstance(decoder, PieceDecoder)
        piece = decoder.vocabulary.string_of(token_id).decode("utf-8", "replace")
        part, self._is_first = decoder.contribution(piece, token_id, self._is_first)
        if isinstance(part, bytes):
            self._pending += part
            text, length = utf_8_decode(self._pending, "surrogateescape", False)
            self._pending = self._pending[length:]
            return "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in text)
        text = "\ufffd" * len(self._pending) + part
        self._pending = b""
        return text

    def _push_any(self, token_id: int) -> str:
        """Nothing is certain before the end."""
        self._ids.append(token_id)
        return ""


# -------------------------------------------------------------------------------------------- steps of a decoder


class _Stage:
    """One step of a decoder: takes tokens, and gives those out that later ones cannot change.

    Behind a step that joins all tokens into one, what is pushed are parts of that one.
    """

    def push(self, token: str) -> list[str]:
        """The tokens that one more makes certain."""
        raise NotImplementedError

    def finish(self) -> list[str]:
        """The tokens that were held back."""
        return []

    def fork(self) -> _Stage:
        """A stage in the same state."""
        return copy.copy(self)


def _stages(steps: tuple[DecoderStep, ...]) -> list[_Stage]:
    """The stages of the steps, of which those that keep a joined text as it is need none."""
    stages: list[_Stage] = []
    is_joined = False
    for number, step in enumerate(steps):
        if isinstance(step, DecodeFuse):
            is_joined = True
        elif is_joined:
            if isinstance(step, DecodeStrip):
                stages.append(_Ends(step))
            elif isinstance(step, DecodeMetaspace):
                stages.append(_Characters(step.replacement, "" if step.prepend_scheme != "never" else " "))
            elif isinstance(step, DecodeReplace) and not step.is_regex and len(step.pattern) == 1:
                stages.append(_Characters(step.pattern, step.content))
            else:
                stages.append(_Rest(steps[number:]))
                break
        elif isinstance(step, DecodeByteLevel):
            stages.append(_Bytes())
            is_joined = True
        elif isinstance(step, DecodeByteFallback):
            stages.append(_Runs())
        elif isinstance(step, DecodeBPE):
            stages.append(_Suffixes(step))
        elif isinstance(step, DecodeCTC):
            stages.append(_Repeated(step))
        elif isinstance(step, DecodeMarian):
            stages.append(_Marian(step))
        else:
            stages.append(_Each(step))
    return stages


class _Each(_Stage):
    """A step that does the same to every token, but for the first one."""

    def __init__(self, step: DecoderStep) -> None:
        self._step = step
        self._is_first = True

    def push(self, token: str) -> list[str]:
        step, is_first = self._step, self._is_first
        self._is_first = False
        if isinstance(step, DecodeWordPiece):
            return [word_piece(token, step, is_first)]
        if isinstance(step, DecodeMetaspace):
            return [token.replace(step.replacement, "" if is_first and step.prepend_scheme != "never" else " ")]
        if isinstance(step, DecodeStrip):
            return [strip(token, step)]
        assert isinstance(step, DecodeReplace)
        return replace_all([token], step)


class _Runs(_Stage):
    """Runs of byte tokens become text when they end."""

    def __init__(self) -> None:
        self._run = bytearray()

    def push(self, token: str) -> list[str]:
        byte = fallback_byte(token)
        if byte is None:
            return [*self.finish(), token]
        self._run.append(byte)
        return []

    def finish(self) -> list[str]:
        run, self._run = bytes(self._run), bytearray()
        return close_run(run) if run else []

    def fork(self) -> _Runs:
        """A stage with a run of its own."""
        other = copy.copy(self)
        other._run = bytearray(self._run)
        return other


class _Suffixes(_Stage):
    """The last token's suffix becomes nothing, those of others a blank: so the last one waits."""

    def __init__(self, step: DecodeBPE) -> None:
        self._suffix = step.suffix
        self._last: str | None = None

    def push(self, token: str) -> list[str]:
        last, self._last = self._last, token
        return [] if last is None else [last.replace(self._suffix, " ")]

    def finish(self) -> list[str]:
        last, self._last = self._last, None
        return [] if last is None else [last.replace(self._suffix, "")]


class _Repeated(_Stage):
    """Of equal tokens in a row the first counts."""

    def __init__(self, step: DecodeCTC) -> None:
        self._step = step
        self._last: str | None = None

    def push(self, token: str) -> list[str]:
        is_new, self._last = token != self._last, token
        text = ctc_text(token, self._step) if is_new else ""
        return [text] if text else []


class _Marian(_Stage):
    """Pieces and special tokens of a Marian pair; white space that would go if the text ended is held back."""

    def __init__(self, step: DecodeMarian) -> None:
        self._step = step
        self._is_first = True
        self._has_begun = False
        self._held = ""

    def push(self, token: str) -> list[str]:
        part, self._is_first = marian_part(token, self._step, self._is_first)
        if not self._has_begun:
            part = part.lstrip()
            self._has_begun = part != ""
        kept = part.rstrip()
        if not kept:
            self._held += part
            return []
        text, self._held = self._held + kept, part[len(kept) :]
        return [text]


class _Bytes(_Stage):
    """Letters of the byte alphabet become bytes, and these one text, a character when it is complete."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def push(self, token: str) -> list[str]:
        return self.push_bytes(alphabet_text(token))

    def push_bytes(self, data: bytes) -> list[str]:
        """As `push`, of what is bytes already."""
        text = self._decoder.decode(data)
        return [text] if text else []

    def finish(self) -> list[str]:
        text = self._decoder.decode(b"", True)
        return [text] if text else []

    def fork(self) -> _Bytes:
        """A stage with a decoder of its own, which has the same bytes pending."""
        other = _Bytes()
        other._decoder.setstate(self._decoder.getstate())
        return other


class _Characters(_Stage):
    """A character of the joined text is replaced."""

    def __init__(self, character: str, content: str) -> None:
        self._character = character
        self._content = content

    def push(self, token: str) -> list[str]:
        return [token.replace(self._character, self._content)]


class _Ends(_Stage):
    """Copies of a character go from the beginning and from the end of the joined text."""

    def __init__(self, step: DecodeStrip) -> None:
        self._step = step
        self._to_strip = step.start
        self._held = ""  # copies that would go if the text ended here

    def push(self, token: str) -> list[str]:
        step = self._step
        if self._to_strip:
            stripped = strip(token, DecodeStrip(step.content, self._to_strip, 0))
            self._to_strip = 0 if stripped else self._to_strip - len(token)
            token = stripped
        text = self._held + token
        kept = strip(text, DecodeStrip(step.content, 0, step.stop))
        self._held = text[len(kept) :]
        return [kept] if kept else []


class _Rest(_Stage):
    """All steps from one on, on the whole text: what they make of it may change with every character."""

    def __init__(self, steps: tuple[DecoderStep, ...]) -> None:
        self._steps = steps
        self._parts: list[str] = []

    def push(self, token: str) -> list[str]:
        self._parts.append(token)
        return []

    def finish(self) -> list[str]:
        tokens = ["".join(self._parts)]
        for step in self._steps:
            if isinstance(step, DecodeByteLevel):
                tokens = [b"".join(map(alphabet_text, tokens)).decode("utf-8", "replace")]
            else:
                tokens = apply_step(step, tokens)
        self._parts = []
        return tokens

    def fork(self) -> _Rest:
        """A stage with parts of its own."""
        other = copy.copy(self)
        other._parts = self._parts.copy()
        return other
