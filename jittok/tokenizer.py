"""The tokenizer: one object for encoding, decoding and look-ups."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.build.plan import Plan, build_plan, with_added_tokens
from jittok.decoding import Decoder
from jittok.encodings import Batch, EncodedTexts, Encoding
from jittok.engine import Engine, SpecialPolicy
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.post_processing import PostProcessor, check_truncation, merged_words
from jittok.spec import AddedToken, TokenizerSpec
from jittok.streaming import DecodeStream
from jittok.text import Errors, text_from, texts_from
from jittok.vocabulary import Vocabulary, build_vocabulary

Strategy = Literal["longest_first", "only_first", "only_second"]
Side = Literal["left", "right"]


class Tokenizer:
    """Turns text into token ids and back, exactly as the reference library of its file does.

    A tokenizer is immutable, and safe to share between threads, to pickle and to use after a fork. Settings of
    one call are arguments of that call. Made by :func:`jittok.load`.

    Parameters
    ----------
    spec
        What the tokenizer's file says.

    Examples
    --------
    >>> import jittok
    >>> tok = jittok.load_default()
    >>> enc = tok.encode("To be, or not to be")
    >>> tok.decode(enc.ids)
    'To be, or not to be'
    """

    def __init__(
        self, spec: TokenizerSpec, *, _plan: Plan | None = None, _vocabulary: Vocabulary | None = None
    ) -> None:
        self.spec = spec
        self.plan = build_plan(spec) if _plan is None else _plan
        shown = self.plan.shown_tokens()
        self.vocabulary = Vocabulary(build_vocabulary(spec), spec.added_tokens, shown) if _vocabulary is None else _vocabulary
        self._engine = Engine(self.plan)
        self._surrogates: Literal["raise", "replace"] = "replace" if spec.reference == "tiktoken" else "raise"

    # ------------------------------------------------------------------------------------------- encoding

    def encode(
        self,
        text: str | bytes | Sequence[str],
        pair: str | bytes | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        max_length: int | None = None,
        stride: int = 0,
        truncation: Strategy = "longest_first",
        truncation_side: Side = "right",
        is_split_into_words: bool = False,
        errors: Errors = "strict",
    ) -> Encoding:
        """Encode one text, or a pair of texts.

        Parameters
        ----------
        text, pair
            str, or bytes of UTF-8; a list of words with `is_split_into_words`.
        add_special_tokens
            Put the special tokens of the file's template around the text.
        special
            What a special token written in the text becomes: "parse" its id, "text" ordinary text, "raise" an
            error, a set of special tokens: those parsed, the others text. None: what the file's reference does.
        max_length
            Most tokens of the result, special tokens included; the rest goes to ``overflowing``.
        stride
            Tokens that each further window repeats.
        truncation
            Of a pair, what is cut: "longest_first", "only_first" or "only_second".
        truncation_side
            Where: "right" or "left".
        is_split_into_words
            `text` and `pair` are lists of words; ``word_ids`` are their numbers.
        errors
            For bytes that are not UTF-8: "strict" an error, "replace" U+FFFD.

        Returns
        -------
        Encoding
            Acts as a sequence of ids.

        Raises
        ------
        TextError
            Invalid UTF-8 or, for files of tokenizers, a lone surrogate.
        SpecialTokenError
            `special` is "raise" and the text holds a special token.
        ArgumentError, ArgumentTypeError
            An argument is none of the values allowed.
        """
        cut = check_truncation(max_length, stride, truncation, truncation_side)
        first, source = self._encode_one(text, special, is_split_into_words, errors)
        if pair is None:
            second, sources = None, (source,)
        else:
            second, pair_source = self._encode_one(pair, special, is_split_into_words, errors)
            sources = (source, pair_source)
        return self._post_processor.process(
            first, second, add_special_tokens=add_special_tokens, truncation=cut, texts=sources
        )

    def _encode_one(
        self, text: object, special: SpecialPolicy | None, is_split_into_words: bool, errors: Errors
    ) -> tuple[EncodedTexts, str | tuple[str, ...]]:
        policy = self.spec.default_special if special is None else special
        if is_split_into_words:
            if isinstance(text, str | bytes) or not isinstance(text, Iterable):
                raise ArgumentTypeError(
                    f"with is_split_into_words the text must be a list of words, got {type(text).__name__}"
                )
            words = list(text)
            texts = texts_from(words, errors=errors, surrogates=self._surrogates)
            encoded = self._engine.encode(
                texts.data, texts.indptr, spans=True, words=True, special=policy, threads=1
            )
            return merged_words(encoded), tuple(
                w if isinstance(w, str) else bytes(w).decode("utf-8", "replace") for w in words
            )
        texts = text_from(text, errors=errors, surrogates=self._surrogates)
        encoded = self._engine.encode(texts.data, texts.indptr, spans=True, words=True, special=policy, threads=1)
        if isinstance(text, str):
            return encoded, text
        return encoded, texts.data[: int(texts.indptr[-1])].tobytes().decode("utf-8", "replace")

    def encode_batch(
        self,
        texts: Any,
        pairs: Any = None,
        *,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        spans: bool = False,
        words: bool = False,
        max_length: int | None = None,
        stride: int = 0,
        truncation: Strategy = "longest_first",
        truncation_side: Side = "right",
        overflowing: bool = False,
        threads: int | None = None,
        errors: Errors = "strict",
        pad_id: int | None = None,
    ) -> Batch:
        """Encode many texts.

        Parameters
        ----------
        texts, pairs
            list[str], list[bytes], a pyarrow string array, or (uint8 data, int64 indptr).
        add_special_tokens, special, max_length, stride, truncation, truncation_side, errors
            As for :meth:`encode`.
        spans, words
            Whether to compute character spans and pre-token numbers.
        overflowing
            Keep the further windows of texts that are cut, as rows of their own.
        threads
            At most so many; None: one for each processor (one inside a worker process). Results do not
            depend on it.
        pad_id
            The default of :meth:`Batch.pad`.

        Returns
        -------
        Batch
            Flat arrays: ``ids``, ``indptr``, ``spans``.

        Raises
        ------
        TextError, SpecialTokenError, ArgumentError, ArgumentTypeError
            As for :meth:`encode`, naming the text's number.
        """
        cut = check_truncation(max_length, stride, truncation, truncation_side)
        policy = self.spec.default_special if special is None else special
        sources, encoded = [], []
        for given in (texts,) if pairs is None else (texts, pairs):
            source = texts_from(given, errors=errors, surrogates=self._surrogates)
            sources.append((source.data, source.indptr))
            encoded.append(
                self._engine.encode(
                    source.data, source.indptr, spans=spans, words=words, special=policy, threads=threads
                )
            )
        return self._post_processor.process_batch(
            encoded[0],
            encoded[1] if pairs is not None else None,
            add_special_tokens=add_special_tokens,
            truncation=cut,
            overflowing=overflowing,
            texts=tuple(sources),
            pad_id=self._pad_id if pad_id is None else pad_id,
        )

    def count(
        self, text: str | bytes, *, add_special_tokens: bool = True, special: SpecialPolicy | None = None
    ) -> int:
        """Number of tokens of a text.

        Parameters
        ----------
        text, add_special_tokens, special
            As for :meth:`encode`.

        Examples
        --------
        >>> import jittok
        >>> jittok.load_default().count("hello") == len(jittok.load_default().encode("hello"))
        True
        """
        policy = self.spec.default_special if special is None else special
        source = text_from(text, surrogates=self._surrogates)
        encoded = self._engine.encode(source.data, source.indptr, special=policy, threads=1)
        return len(encoded.ids) + (self.num_special_tokens_to_add() if add_special_tokens else 0)

    def count_batch(
        self,
        texts: Any,
        *,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        threads: int | None = None,
        errors: Errors = "strict",
    ) -> NDArray[np.int64]:
        """Number of tokens of each text, int64[n], without keeping ids.

        Parameters
        ----------
        texts, add_special_tokens, special, threads, errors
            As for :meth:`encode_batch`.
        """
        policy = self.spec.default_special if special is None else special
        source = texts_from(texts, errors=errors, surrogates=self._surrogates)
        counts = self._engine.count(source.data, source.indptr, special=policy, threads=threads)
        return counts + (self.num_special_tokens_to_add() if add_special_tokens else 0)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Number of special tokens that the template puts around a text, or a pair."""
        return self._post_processor.num_special_tokens_to_add(pair)

    def normalize(self, text: str) -> str:
        """The text as the file's normalizers leave it."""
        if not isinstance(text, str):
            raise ArgumentTypeError(f"normalize takes a str, got {type(text).__name__}")
        if self.plan.normalizer is None:
            return text
        return self.plan.normalizer.apply_strings([text])[0]

    # ------------------------------------------------------------------------------------------- decoding

    def decode(self, ids: Any, skip_special_tokens: bool = False) -> str:
        """The text of a sequence of ids.

        Parameters
        ----------
        ids
            Any sequence or array of ids, or an :class:`Encoding`.
        skip_special_tokens
            Leave special tokens out.

        Raises
        ------
        TokenIdError
            An id is outside the vocabulary.
        """
        return self.decoder.decode(ids, skip_special_tokens)

    def decode_bytes(self, ids: Any, skip_special_tokens: bool = False) -> bytes:
        """The bytes of a sequence of ids, which need not be UTF-8 as a whole. See :meth:`decode`."""
        return self.decoder.decode_bytes(ids, skip_special_tokens)

    def decode_batch(self, batch: Any, skip_special_tokens: bool = False) -> list[str]:
        """The texts of a :class:`Batch`, or of several sequences of ids. See :meth:`decode`."""
        return self.decoder.decode_batch(batch, skip_special_tokens)

    def decode_stream(self, skip_special_tokens: bool = False) -> DecodeStream:
        """A decoder for ids that arrive one at a time; its ``push(id)`` never gives half a character."""
        return DecodeStream(self.decoder, skip_special_tokens)

    @cached_property
    def decoder(self) -> Decoder:
        """Turns ids into text."""
        return Decoder(self.spec, self.vocabulary)

    @cached_property
    def _post_processor(self) -> PostProcessor:
        return PostProcessor(self.spec, self.vocabulary)

    # ------------------------------------------------------------------------------------------ vocabulary

    @property
    def vocab_size(self) -> int:
        """Number of ids: one more than the greatest. A few of them may have no token."""
        return self.vocabulary.size

    def __len__(self) -> int:
        return self.vocab_size

    def id_to_token(self, token_id: int) -> str | None:
        """The token of an id, as the vocabulary writes it; None for an id without one."""
        return self.vocabulary.id_to_token(token_id)

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token, or None."""
        return self.vocabulary.token_to_id(token)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Special tokens and their ids."""
        return self.vocabulary.special_tokens

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """All tokens that are looked for in the text before the model sees it."""
        return self.spec.added_tokens

    @property
    def _pad_id(self) -> int | None:
        stored = self.spec.stored_padding
        return int(stored["pad_id"]) if stored and "pad_id" in stored else None

    def with_added_tokens(self, tokens: Iterable[str | AddedToken], special: bool = False) -> Tokenizer:
        """A new tokenizer that also finds `tokens` in the text.

        Parameters
        ----------
        tokens
            Contents, or :class:`~jittok.spec.AddedToken` (whose ids are not looked at). A content that the
            vocabulary has keeps its id; others get the next free ids.
        special
            For contents: make them special tokens.

        Returns
        -------
        Tokenizer
            This one is not changed.
        """
        spec = with_added_tokens(self.spec, tokens, special, self.token_to_id, self.vocab_size)
        plan = self.plan.with_added_tokens(spec)
        vocabulary = Vocabulary(build_vocabulary(spec), spec.added_tokens, plan.shown_tokens())
        return Tokenizer(spec, _plan=plan, _vocabulary=vocabulary)

    # ------------------------------------------------------------------------------------------------ rest

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the tokenizer to a file.

        Parameters
        ----------
        path
            Where.
        format
            "jittok", "tokenizer.json" or "tiktoken"; None: by the name's ending (.jittok, .json, .tiktoken).

        Raises
        ------
        ArgumentError
            The ending says no format.
        UnsupportedError
            The tokenizer cannot be stated in that format.
        OutputError
            The file cannot be written.
        """
        from jittok.formats.saving import save

        save(self, Path(path), format)

    def clear_cache(self) -> None:
        """Forget the pre-tokens seen so far. Results do not depend on it."""
        self._engine.clear_cache()

    @property
    def nbytes(self) -> int:
        """Bytes of all tables, and of the caches of threads that are idle."""
        arrays: dict[int, NDArray[Any]] = {}
        for group in (*self.plan.table_groups(), self.vocabulary.tables):
            arrays.update((id(array), array) for array in group)
        return sum(array.nbytes for array in arrays.values()) + self._engine.cache_bytes()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides the results, as hexadecimal digits: equal for equal tokenizers."""
        from jittok.formats.jittok_file import fingerprint

        return fingerprint(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        from jittok.formats.jittok_file import from_bytes, to_bytes

        return from_bytes, (to_bytes(self),)

    def __repr__(self) -> str:
        return (
            f"<jittok.Tokenizer {self.spec.source_format}, {self.vocab_size} ids, "
            f"{len(self.special_tokens)} special tokens>"
        )


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Tokenizer:
    """Load a tokenizer.

    Parameters
    ----------
    path
        tokenizer.json, a directory, vocab.json with merges.txt beside it, a .tiktoken file, or a jittok file.
        The content decides the format.
    format
        The format by name, if the content is not to decide.
    pattern
        For rank files that are not known by content: the split pattern, as a regex or a known encoding's name.
    special_tokens
        For rank files: special tokens and their ids.

    Returns
    -------
    Tokenizer

    Raises
    ------
    FormatError
        The file is malformed; the message names the place.
    UnsupportedError
        The file asks for something that jittok does not have; the message names it.
    MissingFileError
        There is no such file.
    """
    from jittok.formats.detect import locate, read_spec

    if locate(path, format)[0] == "jittok":
        from jittok.formats.jittok_file import read

        return read(locate(path, format)[1])
    return Tokenizer(read_spec(path, format=format, pattern=pattern, special_tokens=special_tokens))


def load_default() -> Tokenizer:
    """The built-in tokenizer: a byte-level BPE of 32,768 tokens, trained on public-domain text."""
    folder = Path(__file__).parent / "data"
    for name in ("default.jittok", "default.tokenizer.json"):
        if (folder / name).exists():
            return load(folder / name)
    raise ArgumentError(f"the built-in tokenizer is missing from {folder}; install jittok again")
