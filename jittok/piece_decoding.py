"""Pieces back to text, as SentencePiece does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .decoding import _SMALL, Decoder, fallback_byte, flat_ids, token_array
from .errors import ArgumentTypeError
from .spec import DecodeSentencePiece, PieceType, SentencePieceModel, TokenizerSpec
from .text import decoded_bytewise
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .rewriting import Rewriter

BLANK = "\u2581"


def make_decoder(spec: TokenizerSpec, vocabulary: Vocabulary) -> Decoder:
    """The decoder of a tokenizer.

    Parameters
    ----------
    spec, vocabulary
        As :class:`~jittok.decoding.Decoder` takes them.
    """
    is_pieces = isinstance(spec.model, SentencePieceModel) and len(spec.decoders) == 1
    if is_pieces and isinstance(spec.decoders[0], DecodeSentencePiece):
        return PieceDecoder(spec, vocabulary)
    return Decoder(spec, vocabulary)


class PieceDecoder(Decoder):
    """Turns ids and pieces of a SentencePiece model into text and bytes.

    Parameters
    ----------
    spec
        Its model is a :class:`~jittok.spec.SentencePieceModel`, its one decoder a
        :class:`~jittok.spec.DecodeSentencePiece`.
    vocabulary
        The tokens.
    """

    def __init__(self, spec: TokenizerSpec, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary)
        assert isinstance(spec.model, SentencePieceModel) and isinstance(spec.decoders[0], DecodeSentencePiece)
        self.step = spec.decoders[0]
        self.types = spec.model.types

    # --------------------------------------------------------------------------------------------- public

    def decode(self, ids: object, skip_special_tokens: bool = False) -> str:
        """Return the text of a sequence of ids.

        Parameters
        ----------
        ids, skip_special_tokens
            As those of :meth:`Decoder.decode`. Control pieces never leave anything; the unknown piece is left out too
            with `skip_special_tokens`.

        Returns
        -------
        str
            Each byte of byte pieces that is in no well-formed character becomes U+FFFD.

        Raises
        ------
        TokenIdError
            An id is not in the vocabulary; the message names it and its position.
        """
        array = token_array(ids, self.vocabulary.size)
        if len(array) > _SMALL:
            return self._denormalized(self._row_texts(array, np.array([0, len(array)]), skip_special_tokens))[0]
        return self._denormalized([self._text(array, skip_special_tokens)])[0]

    def decode_bytes(self, ids: object, skip_special_tokens: bool = False) -> bytes:
        """Return the bytes that a sequence of ids stands for, valid UTF-8 or not.

        Parameters
        ----------
        ids, skip_special_tokens
            As those of :meth:`decode`.

        Returns
        -------
        bytes
            Byte pieces as they are; where the file has a denormalizer, the decoded text as UTF-8.
        """
        if self.step.denormalizer is not None:
            return self.decode(ids, skip_special_tokens).encode()
        array = token_array(ids, self.vocabulary.size)
        if len(array) > _SMALL:
            return self._rows(array, np.array([0, len(array)]), skip_special_tokens)[0]
        return b"".join(self._parts((self._piece(i), i) for i in self._kept(array, skip_special_tokens)))

    def decode_batch(self, batch: object, skip_special_tokens: bool = False) -> list[str]:
        """Return the texts of many sequences of ids; see :meth:`Decoder.decode_batch`.

        Parameters
        ----------
        batch, skip_special_tokens
            As those of :meth:`Decoder.decode_batch`.
        """
        ids, indptr = flat_ids(batch, self.vocabulary.size)
        if len(ids) <= _SMALL:
            bounds = indptr.tolist()
            return [
                self.decode(ids[begin:end], skip_special_tokens)
                for begin, end in zip(bounds, bounds[1:], strict=False)
            ]
        return self._denormalized(self._row_texts(ids, indptr, skip_special_tokens))

    def decode_tokens(self, tokens: Iterable[str]) -> str:
        """Return the text of pieces.

        Parameters
        ----------
        tokens
            Strings; one that is no piece of the model stands for itself.

        Raises
        ------
        ArgumentTypeError
            Something is no str.
        """
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            raise ArgumentTypeError(f"tokens: expected strings, got {type(tokens).__name__}")
        pairs = []
        for number, token in enumerate(tokens):
            if not isinstance(token, str):
                raise ArgumentTypeError(f"tokens[{number}]: expected str, got {type(token).__name__}")
            pairs.append((token, self.vocabulary.token_to_id(token)))
        return self._denormalized([_joined_runs(self._parts(pairs))])[0]

    def decode_aligned(self, pieces: Iterable[tuple[str, int | None]]) -> tuple[str, list[str]]:
        """Return the text of pieces, and what each of them left in it.

        Parameters
        ----------
        pieces
            Strings and their ids; None for a string that is no piece of the model, which stands for itself.

        Returns
        -------
        text : str
            After the file's denormalizer, if there is one.
        surfaces : list of str
            One after another they are the text before that. Of byte pieces that make a character, the last one has it.
        """
        surfaces: list[str] = []
        run = b""
        is_first = True
        for piece, token_id in pieces:
            part, is_first = self.contribution(piece, token_id, is_first)
            if isinstance(part, bytes):
                run += part
                surfaces.append("")
                continue
            _set_characters(surfaces, run, len(surfaces))
            run = b""
            surfaces.append(part)
        _set_characters(surfaces, run, len(surfaces))
        return self._denormalized(["".join(surfaces)])[0], surfaces

    # ------------------------------------------------------------------------------------------- one token

    def contribution(self, piece: str, token_id: int | None, is_first: bool) -> tuple[str | bytes, bool]:
        """Return what a piece contributes to the text, and whether the next one is still the first.

        Parameters
        ----------
        piece
            Its string.
        token_id
            Its id, None if it has none.
        is_first
            Whether nothing came before it that counts.

        Returns
        -------
        contribution : str or bytes
            One byte for a byte piece.
        is_first : bool
        """
        kind = self.types[token_id] if token_id is not None and token_id < len(self.types) else None
        if kind == PieceType.CONTROL:
            return "", is_first
        if kind == PieceType.BYTE:
            byte = fallback_byte(piece)
            assert byte is not None  # checked when the file was read
            return bytes([byte]), False
        if token_id is None or kind == PieceType.UNKNOWN:
            text = piece if token_id is None else self.step.unk_surface
            return text, is_first and not text
        is_dropped = is_first and self.step.drop_first and piece.startswith(BLANK)
        text = piece[is_dropped:].replace(BLANK, " ")
        if is_dropped and not self.step.drop_leading:
            is_first = False
        return text, is_first and not text

    # ---------------------------------------------------------------------------------------------- inside

    def _piece(self, token_id: int) -> str:
        return self.vocabulary.string_of(token_id).decode("utf-8", "replace")

    def _parts(self, pieces: Iterable[tuple[str, int | None]]) -> Iterator[bytes]:
        """What each piece contributes, as UTF-8 or a single byte, which may be of a byte piece."""
        is_first = True
        for piece, token_id in pieces:
            part, is_first = self.contribution(piece, token_id, is_first)
            yield part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")

    def _text(self, ids: NDArray[np.int32], skip_special_tokens: bool) -> str:
        return _joined_runs(self._parts((self._piece(i), i) for i in self._kept(ids, skip_special_tokens)))

    @cached_property
    def _pieces(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
        """The bytes each piece contributes where it is not the first."""
        parts = []
        for token_id in range(self.vocabulary.size):
            part, _ = self.contribution(self._piece(token_id), token_id, is_first=False)
            parts.append(part if isinstance(part, bytes) else part.encode())
        indptr = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=indptr[1:])
        indptr.flags.writeable = False
        nothing = np.zeros(0, dtype=np.uint8)
        nothing.flags.writeable = False
        return np.frombuffer(b"".join(parts) or b"\0", dtype=np.uint8), indptr, nothing

    def _row_texts(
        self, ids: NDArray[np.int32], indptr: NDArray[np.int64], skip_special_tokens: bool
    ) -> list[str]:
        rows = [decoded_bytewise(row) for row in self._rows(ids, indptr, skip_special_tokens)]
        if not skip_special_tokens:
            # A piece that is no byte piece ends a run of those, even if it leaves nothing.
            kinds = np.zeros(self.vocabulary.size, np.uint8)
            kinds[: len(self.types)] = np.frombuffer(self.types, np.uint8)
            is_byte = kinds == PieceType.BYTE
            is_empty = np.diff(self._pieces[1]) == 0
            breaks = np.flatnonzero(is_byte[ids[:-1]] & is_empty[ids[1:]])
            for row in np.unique(np.searchsorted(indptr, breaks, side="right") - 1).tolist():
                if row < len(rows):
                    rows[row] = self._text(ids[indptr[row] : indptr[row + 1]], skip_special_tokens)
        return rows

    def _rows(self, ids: NDArray[np.int32], indptr: NDArray[np.int64], skip_special_tokens: bool) -> list[bytes]:
        """The bytes of each row, by the kernel; only the beginning of a row depends on where its pieces stand."""
        data, out_indptr = self._joined(ids, indptr, skip_special_tokens, raw=False)
        buffer = data.tobytes()
        skip = self._skip_tables[skip_special_tokens]
        piece_indptr = self._pieces[1]
        rows = []
        bounds = zip(out_indptr.tolist(), out_indptr[1:].tolist(), indptr.tolist(), indptr[1:].tolist(), strict=False)
        for begin, end, at, stop in bounds:
            beginning = ""
            is_first = True
            while is_first and at < stop:
                token_id = int(ids[at])
                at += 1
                if skip[token_id]:
                    continue
                part, is_first = self.contribution(self._piece(token_id), token_id, is_first)
                if isinstance(part, bytes):
                    break
                beginning += part
                begin += int(piece_indptr[token_id + 1] - piece_indptr[token_id])
            rows.append(beginning.encode() + buffer[begin:end])
        return rows

    def _denormalized(self, texts: list[str]) -> list[str]:
        return texts if self._denormalizer is None else self._denormalizer.apply_strings(texts)

    @cached_property
    def _denormalizer(self) -> Rewriter | None:
        if self.step.denormalizer is None:
            return None
        from .rewriting import build_rewriter

        return build_rewriter([self.step.denormalizer])


def _joined_runs(parts: Iterable[bytes]) -> str:
    """Join what pieces contribute; bytes make a character only if nothing, not even an empty part, is between them."""
    texts = []
    run = b""
    for part in parts:
        if len(part) == 1:
            run += part
            continue
        if run:
            texts.append(decoded_bytewise(run))
            run = b""
        texts.append(part.decode("utf-8", "surrogatepass"))
    return "".join(texts) + decoded_bytewise(run)


def _set_characters(surfaces: list[str], run: bytes, end: int) -> None:
    """Write the characters that byte pieces make where their last bytes stand: the run ends before `end`."""
    first = end - len(run)
    at = 0
    while at < len(run):
        # Of well-formed characters only the right length decodes to one character.
        for length in range(1, 5):
            try:
                character = run[at : at + length].decode("utf-8")
            except UnicodeDecodeError:
                continue
            break
        else:
            length, character = 1, "\ufffd"
        surfaces[first + at + length - 1] = character
        at += length
