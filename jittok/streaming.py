"""Decoding one id after another, as a language model produces them."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .decoding import ctc_text, strip
from .piece_decoding import PieceDecoder
from .spec import DecodeBPE, DecodeByteFallback, DecodeByteLevel, DecodeCTC, DecodeFuse, DecodeStrip
from .tables import SPECIAL
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
    Where a file has byte tokens such as ``<0x0A>``, a character is given out as soon as it is complete;
    should such a run of bytes then turn out not to be UTF-8, only the rest of it becomes U+FFFD, whereas
    ``decode`` replaces the whole run, as its reference does.
    """

    def __init__(self, decoder: Decoder | _HasDecoder, skip_special_tokens: bool = False) -> None:
        self._decoder: Decoder = getattr(decoder, "decoder", decoder)  # type: ignore[arg-type]
        self._skip_special_tokens = skip_special_tokens
        steps = self._decoder.steps
        fuse = next((i for i, step in enumerate(steps) if isinstance(step, DecodeFuse)), len(steps))
        self._strips = [step for step in steps[fuse:] if isinstance(step, DecodeStrip)]
        at_end = [step for step in self._strips if step.stop > 0]
        self._push: Callable[[int], str]
        if isinstance(self._decoder, PieceDecoder):
            self._push = self._push_any if self._decoder.step.denormalizer is not None else self._push_piece
        elif self._decoder.is_bytes:
            self._push = self._push_bytes
        elif self._is_ctc:
            self._push = self._push_ctc
        elif (self._decoder.is_token_wise or self._is_bpe) and len(at_end) < 2:
            self._push = self._push_text
        else:
            self._push = self._push_any
        self._at_end = at_end[0] if at_end else None
        # A chain that does more than strip the beginning of joined text may change what was given out.
        joining = [isinstance(step, DecodeByteLevel | DecodeFuse | DecodeByteFallback) for step in steps]
        first = joining.index(True) if True in joining else len(steps)
        self._may_change = any(
            not isinstance(step, DecodeFuse) and not (isinstance(step, DecodeStrip) and step.stop == 0)
            for step in steps[first + 1 :]
        ) or isinstance(self._decoder, PieceDecoder)
        self._start_again()

    def _start_again(self) -> None:
        self._is_first = True
        self._pending = b""  # bytes of text not yet given out, or of an open run of byte tokens
        self._run_is_broken = False
        self._held = ""  # blanks that would go if the text ended here
        self._to_strip = [step.start for step in self._strips]
        self._last: bytes | None = None  # the token before, for CTC
        self._ids: list[int] = []  # only for decoders of unusual shape
        self._given = 0

    @property
    def _is_bpe(self) -> bool:
        return len(self._decoder.steps) == 1 and isinstance(self._decoder.steps[0], DecodeBPE)

    @property
    def _is_ctc(self) -> bool:
        return len(self._decoder.steps) == 1 and isinstance(self._decoder.steps[0], DecodeCTC)

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
            text = self._decoder.decode(self._ids)[self._given :]
        else:
            text = self._after_fuse(self._close_run())
            if self._at_end is not None:
                text = strip(text + self._held, DecodeStrip(self._at_end.content, 0, self._at_end.stop))
        self._start_again()
        return text

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

    def _push_text(self, token_id: int) -> str:
        """Tokens are text, or single raw bytes."""
        piece = self._decoder.token_text(token_id, self._is_first)
        if isinstance(piece, bytes):
            self._is_first = False
            return self._after_fuse(self._add_to_run(piece))
        text = self._close_run()
        if not self._decoder.steps:
            text += piece if self._is_first else " " + piece
        elif self._is_bpe:
            # The last token's suffix is dropped, so its blank waits for the next token.
            text += self._held + piece.removesuffix(" ")
            self._held = " " if piece.endswith(" ") else ""
        else:
            text += piece
        self._is_first = False
        return self._after_fuse(text)

    def _push_ctc(self, token_id: int) -> str:
        """Of equal tokens in a row the first counts."""
        token = self._decoder.vocabulary.string_of(token_id)
        step = self._decoder.steps[0]
        assert isinstance(step, DecodeCTC)
        is_new, self._last = token != self._last, token
        return ctc_text(token.decode("utf-8", "replace"), step) if is_new else ""

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
        """Decode everything again: for chains of decoders that no real file has."""
        self._ids.append(token_id)
        if self._may_change:
            return ""
        text = self._decoder.decode(self._ids)
        if text.endswith("\ufffd") or len(text) < self._given:
            return ""
        result = text[self._given :]
        self._given = len(text)
        return result

    def _add_to_run(self, byte: bytes) -> str:
        """Return the text that one more raw byte makes certain."""
        self._pending += byte
        if not self._run_is_broken:
            try:
                text, length = utf_8_decode(self._pending, "strict", False)
            except UnicodeDecodeError:
                self._run_is_broken = True
            else:
                self._pending = self._pending[length:]
                return text
        count = len(self._pending)
        self._pending = b""
        return "\ufffd" * count

    def _close_run(self) -> str:
        """Return the text of raw bytes that no more bytes will complete."""
        if self._is_bpe or not (self._pending or self._run_is_broken):
            return ""
        count = len(self._pending)
        self._pending = b""
        self._run_is_broken = False
        return "\ufffd" * count

    def _after_fuse(self, text: str) -> str:
        """Return `text` without what is stripped from the ends of the whole text."""
        for number, step in enumerate(self._strips):
            if not text:
                return ""
            while self._to_strip[number] > 0 and text.startswith(step.content):
                text = text[1:]
                self._to_strip[number] -= 1
            if text:
                self._to_strip[number] = 0
        if self._at_end is None:
            return text
        text = self._held + text
        held = 0
        while held < min(self._at_end.stop, len(text)) and text[-1 - held] == self._at_end.content:
            held += 1
        self._held = text[len(text) - held :]
        return text[: len(text) - held]
