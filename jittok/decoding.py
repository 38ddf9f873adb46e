"""Ids back to text, as the decoders of the file say.

Byte-level vocabularies, rank files and SentencePiece-like chains are decoded by one kernel over flat ids;
short inputs, and chains of other shapes, by plain Python that does step by step what the file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .encodings import Batch, EncodedTexts, Encoding
from .errors import ArgumentError, ArgumentTypeError
from .spec import (
    DecodeBPE,
    DecodeByteFallback,
    DecodeByteLevel,
    DecodeCTC,
    DecodeFuse,
    DecodeLlamaCpp,
    DecodeMarian,
    DecodeMetaspace,
    DecodeReplace,
    DecodeStrip,
    DecodeWordPiece,
    RankModel,
    Replace,
    TokenizerSpec,
)
from .spec import Decoder as DecoderStep
from .tables import ADDED, PRESENT, SPECIAL
from .vocabulary import Vocabulary, alphabet_bytes, unknown_id

if TYPE_CHECKING:
    from .rewriting import Rewriter

# Up to this many ids plain Python decodes in well under a millisecond, and no kernel needs compiling.
_SMALL = 512
#: Ids whose texts are made together, so that there is not all text twice.
CHUNK_IDS = 1 << 19
#: Bytes that the kernel copies at once: there must be as many more than it needs.
BLOCK = 64


class Decoder:
    """Turns ids into text and bytes.

    Parameters
    ----------
    spec
        Gives the decoder steps and, without any, whether tokens are joined with blanks.
    vocabulary
        The tokens.

    Raises
    ------
    UnsupportedError, RegexError
        A decoder replaces by a regular expression that cannot be compiled.
    """

    def __init__(self, spec: TokenizerSpec, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.steps: tuple[DecoderStep, ...] = spec.decoders
        for step in self.steps:
            if isinstance(step, DecodeReplace) and step.is_regex:
                _match_replacer(step.pattern, step.content)
        #: Tokens are their bytes, and a text is all of them one after another.
        self.is_bytes = isinstance(spec.model, RankModel) or (
            len(self.steps) > 0
            and isinstance(self.steps[0], DecodeByteLevel | DecodeLlamaCpp)
            and all(isinstance(step, DecodeFuse) for step in self.steps[1:])
        )
        self.has_raw_bytes = any(isinstance(step, DecodeByteFallback) for step in self.steps)

    # --------------------------------------------------------------------------------------------- public

    def decode(self, ids: object, skip_special_tokens: bool = False) -> str:
        """Return the text of a sequence of ids.

        Parameters
        ----------
        ids
            An array, list or :class:`~jittok.Encoding`; one id alone is allowed.
        skip_special_tokens
            Leave special tokens out.

        Returns
        -------
        str
            Bytes that are not UTF-8 become U+FFFD, one for each maximal part of a character.

        Raises
        ------
        TokenIdError
            An id is not in the vocabulary; the message names it and its position.
        """
        array = token_array(ids, self.vocabulary.size)
        if self.is_bytes:
            return self._bytes(array, skip_special_tokens).decode("utf-8", "replace")
        if len(array) > _SMALL and self._has_pieces:
            return self._joined_texts(array, np.array([0, len(array)]), skip_special_tokens)[0]
        return self._decode_steps(self._kept(array, skip_special_tokens))

    def decode_bytes(self, ids: object, skip_special_tokens: bool = False) -> bytes:
        """Return the bytes that a sequence of ids stands for, valid UTF-8 or not.

        Parameters
        ----------
        ids, skip_special_tokens
            As in :meth:`decode`.

        Returns
        -------
        bytes
            For byte-level vocabularies and rank files the tokens' bytes; where the file has byte tokens
            such as ``<0x0A>``, these as they are; else the decoded text as UTF-8.
        """
        array = token_array(ids, self.vocabulary.size)
        if self.is_bytes:
            return self._bytes(array, skip_special_tokens)
        if self._has_pieces and self.has_raw_bytes:
            kept = self._kept(array, skip_special_tokens)
            indptr, pieces = self._pieces[1], self._pieces[0].tobytes()
            text = b"".join(pieces[int(indptr[i]) : int(indptr[i + 1])] for i in kept)
            # A lone byte may not be UTF-8, but what is stripped is; surrogates carry bytes through.
            return self._stripped(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return self.decode(array, skip_special_tokens).encode()

    def decode_batch(self, batch: object, skip_special_tokens: bool = False) -> list[str]:
        """Return the texts of many sequences of ids.

        Parameters
        ----------
        batch
            A :class:`~jittok.Batch`, flat ``(ids, indptr)``, a pyarrow list array, an array of two
            dimensions, or an iterable of sequences of ids.
        skip_special_tokens
            Leave special tokens out.

        Returns
        -------
        list of str
        """
        ids, indptr = flat_ids(batch, self.vocabulary.size)
        bounds = indptr.tolist()
        if (self.is_bytes or self._has_pieces) and len(ids) > _SMALL:
            targets = np.arange(int(indptr[0]) + CHUNK_IDS, int(indptr[-1]), CHUNK_IDS)
            cuts = [0, *np.searchsorted(indptr, targets).tolist(), len(bounds) - 1]
            parts = (indptr[first : last + 1] for first, last in pairwise(cuts) if first < last)
            return [text for part in parts for text in self._joined_texts(ids, part, skip_special_tokens)]
        return [
            self.decode(ids[begin:end], skip_special_tokens)
            for begin, end in zip(bounds, bounds[1:], strict=False)
        ]

    # ---------------------------------------------------------------------------------------- one token

    def token_text(self, token_id: int, is_first: bool) -> str | bytes:
        """Return what one token contributes before byte runs are closed and ends are stripped.

        Parameters
        ----------
        token_id
            An id of the vocabulary.
        is_first
            Whether it is the first of its text.

        Returns
        -------
        str or bytes
            One byte as bytes where the token is a raw byte.
        """
        return self._contribution(self.vocabulary.string_of(token_id).decode("utf-8", "replace"), is_first)

    def _contribution(self, text: str, is_first: bool) -> str | bytes:
        steps = self.steps
        for number, step in enumerate(steps):
            if isinstance(step, DecodeByteFallback):
                byte = fallback_byte(text)
                if byte is not None:
                    return bytes([byte])
            elif isinstance(step, DecodeReplace):
                text = replace_all([text], step)[0]
            elif isinstance(step, DecodeMetaspace):
                drop = is_first and step.prepend_scheme != "never"
                text = text.replace(step.replacement, "" if drop else " ")
            elif isinstance(step, DecodeStrip):
                text = strip(text, step)
            elif isinstance(step, DecodeFuse):
                break
            elif isinstance(step, DecodeBPE):
                text = text.replace(step.suffix, " ")
            elif isinstance(step, DecodeWordPiece):
                text = word_piece(text, step, is_first)
            else:
                raise AssertionError(f"step {number} ({type(step).__name__}) is not made for single tokens")
        return text

    # ------------------------------------------------------------------------------------------- inside

    @cached_property
    def _skip_tables(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """For each id 2 for a hole and 0 else; the same with 1 for special tokens."""
        flags = self.vocabulary.tables.flags
        holes = np.where(flags & PRESENT, 0, 2).astype(np.uint8)
        with_special = np.where(flags & SPECIAL, np.maximum(holes, 1), holes).astype(np.uint8)
        holes.flags.writeable = with_special.flags.writeable = False
        return holes, with_special

    def _kept(self, ids: NDArray[np.int32], skip_special_tokens: bool) -> list[int]:
        """Return the ids that are decoded, as a list, or raise for one that is not in the vocabulary."""
        if not len(ids):
            return []
        skip = self._skip_tables[skip_special_tokens]
        if int(ids.min()) < 0 or int(ids.max()) >= len(skip):
            position = int(np.flatnonzero((ids < 0) | (ids >= len(skip)))[0])
            raise unknown_id(int(ids[position]), position, self.vocabulary.size)
        skipped = skip[ids]
        if skipped.any():
            if (skipped == 2).any():
                position = int(np.flatnonzero(skipped == 2)[0])
                raise unknown_id(int(ids[position]), position, self.vocabulary.size)
            ids = ids[skipped == 0]
        kept: list[int] = ids.tolist()
        return kept

    def _bytes(self, ids: NDArray[np.int32], skip_special_tokens: bool) -> bytes:
        if len(ids) > _SMALL:
            data, _ = self._joined(ids, np.array([0, len(ids)]), skip_special_tokens, raw=False)
            return data.tobytes()
        return b"".join(map(self.vocabulary.bytes_of, self._kept(ids, skip_special_tokens)))

    def _joined(
        self, ids: NDArray[np.int32], indptr: NDArray[np.int64], skip_special_tokens: bool, raw: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the concatenated pieces of each text and their row pointers."""
        from .kernels.decode import join_pieces

        pieces, piece_indptr, raw_flags = self._pieces
        skip = self._skip_tables[skip_special_tokens]
        indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        if indptr.flags.writeable:
            indptr = indptr.view()
            indptr.flags.writeable = False
        if not raw:
            raw_flags = np.zeros(0, dtype=np.uint8)
            raw_flags.flags.writeable = False
        out_indptr = np.empty(len(indptr), dtype=np.int64)
        total = int(
            join_pieces(pieces, piece_indptr, skip, raw_flags, ids, indptr, np.empty(0, np.uint8), out_indptr)
        )
        if total < 0:
            position = -1 - total
            row = int(np.searchsorted(indptr, position, side="right")) - 1
            raise unknown_id(int(ids[position]), position - int(indptr[row]), self.vocabulary.size)
        out = np.empty(total + BLOCK, dtype=np.uint8)
        if total:
            total = int(join_pieces(pieces, piece_indptr, skip, raw_flags, ids, indptr, out, out_indptr))
        return out[:total], out_indptr

    def _joined_texts(
        self, ids: NDArray[np.int32], indptr: NDArray[np.int64], skip_special_tokens: bool
    ) -> list[str]:
        """Return the texts of sequences of ids, by the kernel."""
        data, out_indptr = self._joined(ids, indptr, skip_special_tokens, raw=not self.is_bytes)
        buffer = data.data
        ends = out_indptr.tolist()
        if self.is_bytes or not self._first_differs:
            texts = [str(buffer[p:q], "utf-8", "replace") for p, q in zip(ends, ends[1:], strict=False)]
            return texts if self.is_bytes else [self._stripped(text) for text in texts]
        # The first token that is not skipped contributes something else than it would further on.
        base, last = int(indptr[0]), int(indptr[-1])
        kept = base + np.flatnonzero(self._skip_tables[skip_special_tokens][ids[base:last]] == 0)
        kept = np.append(kept, last)[np.searchsorted(kept, indptr[:-1])]
        beginnings: dict[int, str | bytes] = {}
        piece_indptr = self._pieces[1]
        texts = []
        for begin, end, place, stop in zip(ends, ends[1:], kept.tolist(), indptr[1:].tolist(), strict=False):
            text = ""
            if place < stop:
                first = int(ids[place])
                begin += int(piece_indptr[first + 1] - piece_indptr[first])
                beginning = beginnings.get(first)
                if beginning is None:
                    beginning = beginnings[first] = self.token_text(first, is_first=True)
                assert isinstance(beginning, str)  # such decoders have no raw bytes
                text = beginning + str(buffer[begin:end], "utf-8", "replace")
            texts.append(self._stripped(text))
        return texts

    @cached_property
    def _first_differs(self) -> bool:
        """Whether the first token of a text may contribute something else than the same token elsewhere."""
        return any(isinstance(step, DecodeMetaspace | DecodeWordPiece) for step in self.steps)

    @cached_property
    def is_token_wise(self) -> bool:
        """Whether a token's contribution depends on nothing but whether it is the first.

        Runs of raw bytes, and characters stripped from the ends of the whole text, do not count.
        """
        kinds = [type(step) for step in self.steps]
        if any(kind in (DecodeByteLevel, DecodeBPE, DecodeCTC, DecodeMarian) for kind in kinds):
            return False
        fuse = kinds.index(DecodeFuse) if DecodeFuse in kinds else len(kinds)
        before, after = kinds[:fuse], kinds[fuse + 1 :]
        # Steps after ByteFallback see the text of whole runs of bytes.
        if DecodeByteFallback in before[:-1]:
            return False
        return all(kind in (DecodeStrip, DecodeFuse) for kind in after)

    @cached_property
    def _has_pieces(self) -> bool:
        """Whether every token contributes the same bytes wherever it stands, unless it is the first."""
        return self.is_token_wise and len(self.steps) > 0 and not (self._first_differs and self.has_raw_bytes)

    @cached_property
    def _pieces(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
        """The bytes each token contributes, and which tokens are raw bytes."""
        tables = self.vocabulary.tables
        if self.is_bytes:
            return tables.token_bytes, tables.bytes_indptr, np.zeros(0, dtype=np.uint8)
        parts: list[bytes] = []
        raw = np.zeros(self.vocabulary.size, dtype=np.uint8)
        for token_id in range(self.vocabulary.size):
            text = self.token_text(token_id, is_first=False)
            if isinstance(text, bytes):
                raw[token_id] = 1
                parts.append(text)
            else:
                parts.append(text.encode())
        indptr = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=indptr[1:])
        pieces = np.frombuffer(b"".join(parts), dtype=np.uint8)
        indptr.flags.writeable = raw.flags.writeable = False
        return pieces, indptr, raw

    def _stripped(self, text: str) -> str:
        """Return the whole text after the steps that follow a Fuse."""
        after = False
        for step in self.steps:
            if isinstance(step, DecodeFuse):
                after = True
            elif after and isinstance(step, DecodeStrip):
                text = strip(text, step)
        return text

    def _decode_steps(self, ids: list[int]) -> str:
        """Return the text by doing each step on the list of all tokens, as the file says."""
        tokens = [self.vocabulary.string_of(i).decode("utf-8", "replace") for i in ids]
        if not self.steps:
            return " ".join(tokens)
        flags = self.vocabulary.tables.flags
        for number, step in enumerate(self.steps):
            if isinstance(step, DecodeByteLevel):
                # An added token is its own text, even if all its characters are in the byte alphabet; but
                # only as long as tokens are still tokens.
                parts = [alphabet_text(token) for token in tokens]
                if number == 0:
                    for k, token_id in enumerate(ids):
                        if flags[token_id] & ADDED:
                            parts[k] = self.vocabulary.bytes_of(token_id)
                tokens = [b"".join(parts).decode("utf-8", "replace")]
            else:
                tokens = apply_step(step, tokens)
        return "".join(tokens)


def apply_step(step: DecoderStep, tokens: list[str]) -> list[str]:
    """Return the tokens after one decoder step other than DecodeByteLevel."""
    if isinstance(step, DecodeFuse):
        return ["".join(tokens)]
    if isinstance(step, DecodeReplace):
        return replace_all(tokens, step)
    if isinstance(step, DecodeStrip):
        return [strip(token, step) for token in tokens]
    if isinstance(step, DecodeMetaspace):
        first = "" if step.prepend_scheme != "never" else " "
        return [token.replace(step.replacement, " " if number else first) for number, token in enumerate(tokens)]
    if isinstance(step, DecodeWordPiece):
        return [word_piece(token, step, not number) for number, token in enumerate(tokens)]
    if isinstance(step, DecodeCTC):
        kept = [token for token, before in zip(tokens, [None, *tokens], strict=False) if token != before]
        return [text for text in (ctc_text(token, step) for token in kept) if text]
    if isinstance(step, DecodeMarian):
        return [marian_text(tokens, step)]
    if isinstance(step, DecodeBPE):
        last = len(tokens) - 1
        return [token.replace(step.suffix, "" if number == last else " ") for number, token in enumerate(tokens)]
    if isinstance(step, DecodeByteFallback):
        result: list[str] = []
        run: list[int] = []
        for token in [*tokens, None]:
            byte = None if token is None else fallback_byte(token)
            if byte is not None:
                run.append(byte)
                continue
            if run:
                result += close_run(bytes(run))
                run = []
            if token is not None:
                result.append(token)
        return result
    raise AssertionError(f"unknown decoder step {type(step).__name__}")


def replace_all(tokens: list[str], step: DecodeReplace) -> list[str]:
    """Return each token with every match of the pattern replaced."""
    if step.is_regex:
        return _match_replacer(step.pattern, step.content).apply_strings(tokens)
    return [token.replace(step.pattern, step.content) for token in tokens] if step.pattern else tokens


@lru_cache(maxsize=64)
def _match_replacer(pattern: str, content: str) -> Rewriter:
    from .rewriting import build_rewriter

    return build_rewriter([Replace(pattern, content, is_regex=True)])


def close_run(run: bytes) -> list[str]:
    """Return the tokens of a run of byte tokens: one of text if it is UTF-8, else U+FFFD for each byte."""
    try:
        return [run.decode()]
    except UnicodeDecodeError:
        return ["\ufffd"] * len(run)


def fallback_byte(token: str) -> int | None:
    """Return the byte that a token such as ``<0x0A>`` stands for, or None for any other token."""
    if len(token) != 6 or not token.startswith("<0x") or token[5] != ">" or not token.isascii():
        return None
    digits = token[3:5]
    # The reference's number parser takes a plus sign for part of the number.
    if digits[0] == "+":
        digits = digits[1:]
    if all(digit in "0123456789abcdefABCDEF" for digit in digits):
        return int(digits, 16)
    return None


def strip(text: str, step: DecodeStrip) -> str:
    """Return `text` without up to `start` copies of a character at its beginning and `stop` at its end."""
    begin, end = 0, len(text)
    while begin < min(step.start, end) and text[begin] == step.content:
        begin += 1
    while end > begin and len(text) - end < step.stop and text[end - 1] == step.content:
        end -= 1
    return text[begin:end]


#: What ``cleanup`` of a WordPiece decoder replaces, one after the other.
CLEANUP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


def word_piece(token: str, step: DecodeWordPiece, is_first: bool) -> str:
    """Return what a token contributes to the text: the rest of a word, or a blank and a word."""
    if not is_first:
        token = token.removeprefix(step.prefix) if token.startswith(step.prefix) else " " + token
    return clean_up(token) if step.cleanup else token


def ctc_text(token: str, step: DecodeCTC) -> str:
    """Return what a token contributes to the text, if the token before it is another."""
    token = token.replace(step.pad_token, "") if step.pad_token else token
    if step.cleanup:
        token = clean_up(token).replace(step.word_delimiter_token, " ") if step.word_delimiter_token else clean_up(token)
    return token


def marian_text(tokens: list[str], step: DecodeMarian) -> str:
    """Return the text of pieces and special tokens of a Marian pair."""
    parts = []
    is_first = True
    for token in tokens:
        part, is_first = marian_part(token, step, is_first)
        parts.append(part)
    return "".join(parts).strip()


def marian_part(token: str, step: DecodeMarian, is_first: bool) -> tuple[str, bool]:
    """Return what a token of a Marian pair contributes, but for blanks at the ends of the whole text.

    Parameters
    ----------
    token, step
        The token and its decoder.
    is_first
        Whether nothing came since the last special token that counts.

    Returns
    -------
    part : str
    is_first : bool
        The same for the next token.
    """
    if token in step.special:
        return token + " ", True
    if token in step.hidden:
        return "", is_first
    dropped = is_first and step.drop_first and token.startswith("\u2581")
    text = token[dropped:]
    return text.replace("\u2581", " "), is_first and not text and dropped and step.drop_leading


def clean_up(token: str) -> str:
    """Return a token without the blanks before English punctuation and contractions."""
    if " " in token:
        for pattern, content in CLEANUP:
            token = token.replace(pattern, content)
    return token


def alphabet_text(token: str) -> bytes:
    """Return the bytes of a token in the byte alphabet; its UTF-8 if any character is outside of it."""
    table = _alphabet()
    values = [table.get(char, -1) for char in token]
    return bytes(values) if -1 not in values else token.encode()


_ALPHABET: dict[str, int] = {}


def _alphabet() -> dict[str, int]:
    if not _ALPHABET:
        _ALPHABET.update((chr(i), byte) for i, byte in enumerate(alphabet_bytes().tolist()) if byte >= 0)
    return _ALPHABET


# ------------------------------------------------------------------------------------------------------- ids


def token_array(ids: object, size: int) -> NDArray[np.int32]:
    """Return ids as a read-only int32 array; raise for what is no sequence of whole numbers.

    Parameters
    ----------
    ids
        An :class:`~jittok.Encoding`, an array, a sequence of whole numbers, or one whole number.
    size
        The size of the vocabulary, for the message about ids that do not fit in int32.
    """
    if isinstance(ids, Encoding):
        return ids.ids
    if isinstance(ids, str | bytes):
        raise ArgumentTypeError(f"ids: expected token ids, got {type(ids).__name__}; encode() takes text")
    if isinstance(ids, Iterable) and not isinstance(ids, Sequence | np.ndarray) and not hasattr(ids, "__array__"):
        ids = list(ids)
    try:
        array = np.asarray(ids)
    except ValueError:
        raise ArgumentTypeError(
            "ids: expected one sequence of whole numbers; decode_batch() takes several"
        ) from None
    except OverflowError:
        raise ArgumentTypeError("ids: expected whole numbers") from None
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ArgumentTypeError(
            f"ids: expected one sequence of ids, got {array.ndim} dimensions; decode_batch() takes several"
        )
    if array.dtype == np.int32:
        return _read_only(array)
    if len(array) == 0:
        return _read_only(np.zeros(0, dtype=np.int32))
    if array.dtype.kind not in "iu":
        if array.dtype.kind == "O":
            bad = [i for i, value in enumerate(array.tolist()) if not isinstance(value, int)]
            if not bad:  # whole numbers, one of them beyond 64 bits
                worst = max(range(len(array)), key=lambda i: abs(array[i]))
                raise unknown_id(array[worst], worst, size)
            raise ArgumentTypeError(f"ids[{bad[0]}]: expected a whole number, got {type(array[bad[0]]).__name__}")
        raise ArgumentTypeError(f"ids: expected whole numbers, got {array.dtype}")
    outside = (array < 0) | (array > 2**31 - 1)
    if outside.any():
        position = int(np.argmax(outside))
        raise unknown_id(int(array[position]), position, size)
    return _read_only(array.astype(np.int32))


def flat_ids(batch: object, size: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return many sequences of ids as one flat array and row pointers; see :meth:`Decoder.decode_batch`."""
    if isinstance(batch, Batch | EncodedTexts):
        return batch.ids, batch.indptr
    if isinstance(batch, tuple) and len(batch) == 2 and all(isinstance(part, np.ndarray) for part in batch):
        ids, indptr = token_array(batch[0], size), np.asarray(batch[1])
        if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or not len(indptr):
            raise ArgumentTypeError("indptr: expected int64[n + 1] row pointers")
        indptr = indptr.astype(np.int64)
        if indptr[0] < 0 or indptr[-1] > len(ids) or (np.diff(indptr) < 0).any():
            raise ArgumentError(f"indptr: expected row pointers that rise from 0 to at most {len(ids)}")
        return ids, indptr
    if type(batch).__module__.split(".")[0] == "pyarrow":
        return _from_arrow(batch, size)
    if isinstance(batch, str | bytes) or not isinstance(batch, Iterable):
        raise ArgumentTypeError(f"batch: expected sequences of token ids, got {type(batch).__name__}")
    rows = []
    for number, row in enumerate(batch):
        if isinstance(row, int | np.integer):
            raise ArgumentTypeError(
                f"batch[{number}]: expected a sequence of ids, got one id; decode() takes those"
            )
        rows.append(token_array(row, size))
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return _read_only(np.concatenate([np.zeros(0, dtype=np.int32), *rows])), indptr


def _from_arrow(array: Any, size: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    import pyarrow

    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):
            array = pyarrow.concat_arrays(array.chunks)
    if not isinstance(array, pyarrow.ListArray | pyarrow.LargeListArray):
        raise ArgumentTypeError(f"batch: expected an Arrow array of lists of ids, got {array.type}")
    if array.null_count or array.values.null_count:
        raise ArgumentError("batch: the Arrow array has nulls; drop them first")
    return token_array(array.values.to_numpy(), size), array.offsets.to_numpy().astype(np.int64)


def _read_only(array: NDArray[np.int32]) -> NDArray[np.int32]:
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
