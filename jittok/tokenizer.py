"""The tokenizer: what :func:`load` returns."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ._strings import strings_of
from .build.plan import Plan, build_plan, can_wait, normalizer_of
from .encodings import Batch, EncodedTexts, Encoding, LaterWords, SourceText, TextSource, text_of, whole_number
from .engine import Engine, Source
from .errors import ArgumentError, ArgumentTypeError, FormatError, OutputError, RegexError, UnsupportedError
from .piece_decoding import PieceDecoder, make_decoder
from .post_processing import PostProcessor, check_truncation, merged_words, reversed_texts
from .spec import (
    AddedToken,
    AddedTokens,
    BPEModel,
    ByteLevel,
    MarianModel,
    Metaspace,
    PieceType,
    Prepend,
    SentencePieceModel,
    SentencePieceNormalizer,
    Strip,
    TokenizerSpec,
    UnigramModel,
)
from .streaming import DecodeStream
from .tables import TOKEN_NORMALIZED, TOKEN_SPECIAL
from .text import (
    Errors,
    Surrogates,
    Texts,
    arrow_chunks,
    check_texts,
    decoded_bytewise,
    find_invalid,
    taken,
    text_from,
    texts_from,
)
from .vocabulary import Vocabulary, build_vocabulary, byte_alphabet, check_vocabulary

if TYPE_CHECKING:
    from .engine import Words
    from .formats.jittok_file import Stored
    from .interop.huggingface import HfTokenizer
    from .interop.sentencepiece import SentencePieceProcessor
    from .interop.tiktoken import TiktokenEncoding
    from .rewriting import Rewriter
    from .segmentations import Drawn, Segmentations
    from .tables import VocabularyTables

SpecialPolicy = Literal["parse", "text", "raise"] | Collection[str]
Strategy = Literal["longest_first", "only_first", "only_second"]
Side = Literal["left", "right"]

#: Changes when the same spec would be encoded otherwise.
_FINGERPRINT_VERSION = 1

#: Fields of a spec and its model that are hashed from the tables instead, or say nothing about ids.
_NOT_FINGERPRINTED = frozenset(
    "vocab merges ranks model messages dropout source_format stored_truncation stored_padding extra".split()
)

#: Formats that :meth:`Tokenizer.save` writes, by suffix.
_SUFFIXES = {
    ".json": "tokenizer.json",
    ".model": "sentencepiece",
    ".spm": "sentencepiece",
    ".tiktoken": "tiktoken",
    ".txt": "vocab.txt",
    ".jittok": "jittok",
}
#: Names of one of several files that a format is written as.
_FILE_NAMES = {"vocab.json": "merges", "merges.txt": "merges"}


class _Shown:
    """What tokens are shown as that stand for text as the model saw it.

    It knows no tokenizer, whose memory is free at once when nobody has it any more: Python finds no circle in it.
    """

    def __init__(self, spec: TokenizerSpec) -> None:
        self.spec = spec

    def surface(self, text: str) -> str:
        """A part of a text as the model saw it."""
        return self.surfaces([text])[0]

    def surfaces(self, texts: Sequence[str]) -> list[str]:
        """Parts of texts as the model saw them."""
        rewriter = self._inner_normalizer
        results = list(texts) if rewriter is None else rewriter.apply_strings(texts)
        for step in self.spec.pre_tokenizers:
            if isinstance(step, Metaspace):
                results = [result.replace(" ", step.replacement) for result in results]
            elif isinstance(step, ByteLevel):
                letters = byte_alphabet().tolist()
                results = ["".join(chr(letters[byte]) for byte in result.encode()) for result in results]
        return results

    @cached_property
    def _inner_normalizer(self) -> Rewriter | None:
        """What is done to text that is neither the beginning nor the end."""
        from .rewriting import build_rewriter

        steps: list[Any] = []
        for step in self.spec.normalizers:
            if isinstance(step, SentencePieceNormalizer):
                steps.append(replace(step, add_dummy_prefix=False, remove_extra_whitespaces=False))
            elif not isinstance(step, Prepend | Strip):
                steps.append(step)
        return build_rewriter(steps) if steps else None

    def content(self, token_id: int) -> str:
        """What an added token is shown as."""
        return self._contents[token_id]

    @cached_property
    def _contents(self) -> dict[int, str]:
        """By id; those found in normalised text are normalised."""
        added = self.spec.added
        contents: Sequence[str] = added.contents
        normalizer = normalizer_of(self.spec)
        if normalizer is not None:
            normalized = normalizer.apply_strings(contents)
            triples = zip(contents, normalized, (added.flags & TOKEN_NORMALIZED).tolist(), strict=True)
            contents = [text if is_normalized else content for content, text, is_normalized in triples]
        return dict(zip(added.ids.tolist(), contents, strict=True))


class Ends(NamedTuple):
    """What is put around the tokens of a text, and whether these are reversed."""

    post_processor: PostProcessor
    add_special_tokens: bool
    reverse: bool

    def ordered(self, encoded: EncodedTexts) -> EncodedTexts:
        """Return the tokens in the order that is wanted."""
        return reversed_texts(encoded) if self.reverse else encoded


#: What :meth:`Tokenizer.deferred` leaves out.
_DEFERRED = ("plan", "decoder", "_engine", "_vocabulary", "_post_processor")


class Tokenizer:
    """Turns text into ids and ids into text, exactly as the library does that its file was made for.

    Made by :func:`jittok.load`. A tokenizer never changes: all settings are arguments of the call that they
    are for. It can be pickled, and used in threads and in forked processes.

    Parameters
    ----------
    spec
        What the tokenizer is.
    plan, vocabulary
        Its tables, where they are built already.

    Attributes
    ----------
    spec
        The same.
    plan
        The steps that text goes through, with the tables of each.

    Examples
    --------
    >>> import jittok
    >>> tok = jittok.load_default()
    >>> tok.decode(tok.encode("To be, or not to be"))
    'To be, or not to be'
    """

    def __init__(
        self, spec: TokenizerSpec, *, plan: Plan | None = None, vocabulary: VocabularyTables | None = None
    ) -> None:
        self.spec = spec
        # Faults are found now; tables are built when a text is encoded if they are small, else now, too: processes
        # that are forked share them.
        if plan is not None or not can_wait(spec):
            self.plan = build_plan(spec) if plan is None else plan
            self._engine = Engine(self.plan)
        if vocabulary is None:
            check_vocabulary(spec)  # its tables are built when a token is looked up
        unknown = spec.model.unk_id if isinstance(spec.model, SentencePieceModel | UnigramModel) else None
        if spec.reference == "llama.cpp":  # which shows tokens as they are
            unknown = None
        shown = _Shown(spec)
        self._vocabulary = Vocabulary(
            partial(build_vocabulary, spec) if vocabulary is None else vocabulary,
            spec.added_tokens,
            shown.content,
            -1 if unknown is None else unknown,
            None if unknown is None else shown.surface,
        )
        self.decoder = make_decoder(spec, self._vocabulary)
        self._post_processor = PostProcessor(spec, self._vocabulary)

    @classmethod
    def deferred(cls, spec: TokenizerSpec) -> Tokenizer:
        """A tokenizer whose tables are built when it is first used: one that was trained is often only saved.

        Parameters
        ----------
        spec
            What it is.
        """
        tokenizer = cls.__new__(cls)
        tokenizer.spec = spec
        return tokenizer

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Build what :meth:`deferred` or the small tables of a plan left out."""
            known = vars(self)
            if name in _DEFERRED and "spec" in known:
                if "_post_processor" not in known:  # the last one that is set
                    self.__init__(self.spec)
                # Two threads may do it at once; each result will do.
                if name == "plan" and name not in known:
                    self.plan = build_plan(self.spec)
                elif name == "_engine" and name not in known:
                    self._engine = Engine(self.plan)
                return known[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ----------------------------------------------------------------------------------------------- encoding

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
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> Encoding:
        """Encode one text, or a pair of texts.

        Parameters
        ----------
        text, pair
            str, or bytes in UTF-8; with `is_split_into_words`, a list of words.
        add_special_tokens
            Put the special tokens of the file's template around the text.
        special
            What a special token that is written in the text becomes: "parse" its id, "text" ordinary text,
            "raise" an error, a set of tokens: those parsed, the others text. None: as the file's own library
            does by default (tokenizers parses, tiktoken raises).
        max_length
            Cut to this many tokens, special tokens included; the further windows are in ``overflowing``.
        stride
            Tokens that a window repeats of the one before.
        truncation
            Which text of a pair is cut: "longest_first", "only_first" or "only_second".
        truncation_side
            The side on which tokens are cut off, "right" or "left".
        is_split_into_words
            Each word is encoded for itself; ``word_ids`` are the numbers of the words, and spans count from
            the beginning of each word.
        add_bos, add_eos, reverse
            Only for single texts and tokenizers from SentencePiece models: put the model's piece for the beginning or
            the end of a text there; give the tokens (but not these two) in reverse order, before they are cut.
        errors
            What invalid UTF-8 in bytes becomes: "strict" an error, "replace" U+FFFD, as the file's own library (one
            for each byte by sentencepiece, one for each cut-off character elsewhere).
        surrogates
            What a lone surrogate in a str becomes: "raise" an error, "replace" U+FFFD. None: as the file's
            own library (tokenizers raises, tiktoken replaces).

        Returns
        -------
        Encoding

        Raises
        ------
        TextError
            Invalid UTF-8 or a lone surrogate.
        SpecialTokenError
            A special token is in the text, and `special` is "raise".
        ArgumentError, ArgumentTypeError
            An argument has an impossible value or type.
        UnsupportedError
            An argument is for SentencePiece models only.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> enc = tok.encode("To be, or not to be")
        >>> enc.tokens[:2], enc.spans[:2].tolist()
        (['To', 'Ġbe'], [[0, 2], [2, 5]])
        >>> window = tok.encode("To be, or not to be", max_length=4, stride=1)
        >>> window.tokens, window.overflowing[0].tokens
        (['To', 'Ġbe', ',', 'Ġor'], ['Ġor', 'Ġnot', 'Ġto', 'Ġbe'])
        """
        settings = check_truncation(max_length, stride, truncation, truncation_side)
        ends = self._ends(add_special_tokens, add_bos, add_eos, reverse, pair is not None)
        ends.post_processor.check(settings, pair is not None, ends.add_special_tokens)
        policy = self.spec.default_special if special is None else special
        parts = []
        texts: list[SourceText] = []
        for name, value in (("text", text), ("pair", pair)):
            if name == "pair" and value is None:
                continue
            encoded, source = self._encode_one(name, value, is_split_into_words, policy, errors, surrogates)
            parts.append(ends.ordered(encoded))
            texts.append(source)
        return ends.post_processor.process(
            *parts, add_special_tokens=ends.add_special_tokens, truncation=settings, texts=tuple(texts)
        )

    def encode_batch(
        self,
        texts: Any,
        pairs: Any = None,
        *,
        spans: bool = False,
        threads: int | None = None,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        max_length: int | None = None,
        stride: int = 0,
        truncation: Strategy = "longest_first",
        truncation_side: Side = "right",
        overflowing: bool = False,
        is_split_into_words: bool = False,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> Batch:
        """Encode many texts.

        Parameters
        ----------
        texts
            A list (or other iterable) of str or of bytes, a pyarrow string array, or ``(data, indptr)``:
            UTF-8 bytes uint8[m] and row pointers int64[n + 1]. With `is_split_into_words`, an iterable of lists of words.
        pairs
            As many texts again, to encode pairs.
        spans
            Compute spans, word ids, type ids and masks too.
        threads
            At most so many threads; None for one for each processor. The result is the same for any number.
        overflowing
            Keep the further windows of texts that are cut, as rows of their own; ``document_ids`` says whose
            they are.
        add_special_tokens, special, max_length, stride, truncation, truncation_side, is_split_into_words, add_bos, add_eos
        reverse, errors, surrogates
            As in :meth:`encode`.

        Returns
        -------
        Batch

        Raises
        ------
        TextError, SpecialTokenError, ArgumentError, ArgumentTypeError, UnsupportedError
            As :meth:`encode`; the message names the text.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> batch = tok.encode_batch(["one text", "", "another one"])
        >>> len(batch), batch.ids.dtype.name, batch[1].ids.tolist()
        (3, 'int32', [])
        """
        settings = check_truncation(max_length, stride, truncation, truncation_side)
        ends = self._ends(add_special_tokens, add_bos, add_eos, reverse, pairs is not None)
        ends.post_processor.check(settings, pairs is not None, ends.add_special_tokens)
        policy = self.spec.default_special if special is None else special
        threads = None if threads is None else whole_number("threads", threads, 1)
        asks_for_more = spans or reverse or overflowing or is_split_into_words or pairs is not None
        if not asks_for_more and not isinstance(self.spec.model, MarianModel):
            framing = ends.post_processor.framing(ends.add_special_tokens, settings)
            if framing is not None:
                # Special tokens are put in while chunks are copied: by all threads, and from memory near by.
                source, _ = self._source(texts, errors, surrogates, False)
                if ends.post_processor.adds_nothing(ends.add_special_tokens, settings):
                    framing = None
                encoded = self._engine.encode_source(source, special=policy, threads=threads, framing=framing)
                vocabulary = ends.post_processor.vocabulary
                return Batch(encoded.ids, encoded.indptr, vocabulary=vocabulary, pad_id=self._pad_id)
        parts: list[EncodedTexts] = []
        kept: list[TextSource] = []
        later_words = None
        for name, given in (("texts", texts),) if pairs is None else (("texts", texts), ("pairs", pairs)):
            if is_split_into_words:
                words_of, shown_words = self._encode_words(
                    name, _listed(name, given), spans, policy, errors, surrogates, threads
                )
                parts.append(ends.ordered(words_of))
                kept.append(shown_words)
                continue
            source, shown = self._source(given, errors, surrogates)
            words = spans
            if spans:
                kept.append(shown)
                # Strings never change, so that their words can be numbered when someone asks.
                adds_nothing = ends.post_processor.adds_nothing(ends.add_special_tokens, settings)
                if pairs is None and isinstance(shown, list) and adds_nothing and not reverse:
                    later_words = LaterWords(
                        lambda source=source: self._word_ids(source, policy, threads)  # type: ignore[misc]
                    )
                    words = False
            encoded = self._engine.encode_source(source, spans=spans, words=words, special=policy, threads=threads)
            encoded = self._with_known_ids(encoded, source, policy)
            parts.append(ends.ordered(encoded))
        return ends.post_processor.process_batch(
            *parts,
            add_special_tokens=ends.add_special_tokens,
            truncation=settings,
            overflowing=overflowing,
            texts=tuple(kept),
            pad_id=self._pad_id,
            later_words=later_words,
        )

    def encode_arrow(self, data: Any, column: str | None = None, *, output: str = "input_ids", **settings: Any) -> Any:
        """Encode Arrow data to Arrow data; the text is not copied, nor are the ids.

        Parameters
        ----------
        data
            A pyarrow Array or ChunkedArray of strings (string, large_string, string_view, the binary types with UTF-8 in
            them, or a dictionary of these), or a RecordBatch or Table. A null has no ids: its row is null.
        column
            The column with the text, of a RecordBatch or Table.
        output
            The name of the column with the ids.
        **settings
            As in :meth:`encode_batch`: threads, add_special_tokens, special, max_length, truncation, truncation_side,
            add_bos, add_eos, errors, surrogates.

        Returns
        -------
        pyarrow.ListArray, pyarrow.ChunkedArray, pyarrow.RecordBatch or pyarrow.Table
            ``list<int32>`` (``large_list`` from 2**31 ids on), in chunks as `data` has them; a RecordBatch or Table with
            that column put after its others.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        ArgumentError, ArgumentTypeError
            There is no such column, or one named `output` already; or the data are no texts.
        TextError, SpecialTokenError
            As :meth:`encode_batch`; the message names the row, of a dictionary the entry.

        Examples
        --------
        >>> import jittok, pyarrow
        >>> tok = jittok.load_default()
        >>> table = pyarrow.table({"id": [1, 2], "text": ["one text", None]})
        >>> tok.encode_arrow(table, "text").column_names
        ['id', 'text', 'input_ids']
        """
        from .interop.arrow import encode_arrow

        return encode_arrow(self, data, column, output, settings)

    def _word_ids(self, source: Source, policy: SpecialPolicy, threads: int | None) -> NDArray[np.int32]:
        words = self._engine.encode_source(source, words=True, special=policy, threads=threads).word_ids
        assert words is not None
        return words

    def encode_piece(self, piece: bytes) -> NDArray[np.int32]:
        """Return the ids of bytes as one piece, which is not split and need not be UTF-8.

        Parameters
        ----------
        piece
            Any bytes.

        Returns
        -------
        int32[n]

        Raises
        ------
        UnsupportedError
            The model does not merge bytes by their ranks, as those of rank files and byte-level ones do.
        ArgumentTypeError
            It is not bytes.
        """
        if not isinstance(piece, bytes):
            raise ArgumentTypeError(f"piece: expected bytes, got {type(piece).__name__}")
        return self._engine.encode_piece(piece)

    # ------------------------------------------------------------------------------------ other segmentations

    def nbest_encode(
        self,
        text: str | bytes,
        n: int,
        *,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> list[Encoding]:
        """Return the best segmentations of a text by a unigram model, the best one first.

        Parameters
        ----------
        text
            str, or bytes in UTF-8.
        n
            How many, up to 512; there may be fewer.
        add_special_tokens, special, add_bos, add_eos, reverse, errors, surrogates
            As in :meth:`encode`.

        Returns
        -------
        list of Encoding
            Each with its ``score``, which never rises. For SentencePiece models they are those of sentencepiece's
            ``nbest_encode``, those of equal score in the same order; n=1 gives what :meth:`encode` gives.

        Raises
        ------
        UnsupportedError
            The model is no unigram model.
        TextError, SpecialTokenError, ArgumentError, ArgumentTypeError
            As :meth:`encode`.

        Examples
        --------
        >>> from jittok.spec import TokenizerSpec, UnigramModel
        >>> model = UnigramModel(("<unk>", "a", "b", "ab"), (0.0, -1.0, -2.0, -2.5), unk_id=0)
        >>> [(enc.tokens, enc.score) for enc in Tokenizer(TokenizerSpec(model)).nbest_encode("ab", 2)]
        [(['ab'], -2.5), (['a', 'b'], -3.0)]
        """
        n = whole_number("n", n, 1)
        ends = self._ends(add_special_tokens, add_bos, add_eos, reverse, False)
        words, shown = self._words(text, special, errors, surrogates)
        return [self._finished(ends, words, drawn, shown) for drawn in self._segmentations.n_best(words, n)]

    @overload
    def sample_encode(
        self,
        text: str | bytes,
        *,
        seed: int | None = None,
        alpha: float | None = None,
        dropout: float | None = None,
        nbest_size: int = -1,
        n: None = None,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> Encoding: ...
    @overload
    def sample_encode(
        self,
        text: str | bytes,
        *,
        n: int,
        seed: int | None = None,
        alpha: float | None = None,
        dropout: float | None = None,
        nbest_size: int = -1,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> list[Encoding]: ...
    def sample_encode(
        self,
        text: str | bytes,
        *,
        seed: int | None = None,
        alpha: float | None = None,
        dropout: float | None = None,
        nbest_size: int = -1,
        n: int | None = None,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> Encoding | list[Encoding]:
        """Draw a segmentation of a text at random, for subword regularisation.

        Parameters
        ----------
        text
            str, or bytes in UTF-8.
        seed
            The same seed draws the same segmentation; None: any.
        alpha
            Of unigram models (Kudo 2018): a segmentation's probability is proportional to the exponential of alpha
            times its score. 0 makes all alike, 1 is the model's own distribution, a large number leaves only the best.
            By default 0.1.
        dropout
            Of byte-pair models (Provilkov et al. 2020): the probability with which a merge is left out, by the rule
            of the file's own library. By default what the file says, else 0.1; 0 is :meth:`encode`, 1 leaves the
            smallest units.
        nbest_size
            Of unigram models: below 0 to draw from all segmentations, 0 or 1 for the best one, else from so many of
            the best, up to 512.
        n
            How many to draw; None for one that is not in a list.
        add_special_tokens, special, add_bos, add_eos, reverse, errors, surrogates
            As in :meth:`encode`.

        Returns
        -------
        Encoding, or list of Encoding

        Raises
        ------
        UnsupportedError
            The model has no other segmentations than the one of :meth:`encode`.
        TextError, SpecialTokenError, ArgumentError, ArgumentTypeError
            As :meth:`encode`.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> tok.sample_encode("or not to be", seed=2, dropout=0.5).tokens
        ['o', 'r', 'Ġ', 'n', 'o', 't', 'Ġto', 'Ġ', 'be']
        """
        size = 1 if n is None else whole_number("n", n, 0)
        ends = self._ends(add_special_tokens, add_bos, add_eos, reverse, False)
        words, shown = self._words(text, special, errors, surrogates)
        draws = self._segmentations.draw(
            words, size, alpha=alpha, dropout=dropout, nbest_size=nbest_size, seed=seed
        )
        found = [self._finished(ends, words, drawn, shown) for drawn in draws]
        return found[0] if n is None else found

    def sample_encode_batch(
        self,
        texts: Any,
        *,
        seed: int | None = None,
        alpha: float | None = None,
        dropout: float | None = None,
        nbest_size: int = -1,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> Batch:
        """Draw a segmentation of each of many texts; see :meth:`sample_encode`.

        Parameters
        ----------
        texts
            As in :meth:`encode_batch`.
        seed
            The same seed and texts give the same batch; None: any.
        alpha, dropout, nbest_size, add_special_tokens, special, add_bos, add_eos, reverse, errors, surrogates
            As in :meth:`sample_encode`.

        Returns
        -------
        Batch
            With spans.
        """
        ends = self._ends(add_special_tokens, add_bos, add_eos, reverse, False)
        policy = self.spec.default_special if special is None else special
        source, shown = self._source(texts, errors, surrogates)
        data, indptr = source.make(0, source.n_documents)
        words = self._engine.words(data[int(indptr[0]) :], indptr - indptr[0], special=policy)
        draws = self._segmentations.draw(words, 1, alpha=alpha, dropout=dropout, nbest_size=nbest_size, seed=seed)
        ids, lengths, id_ends, _ = draws[0]
        return ends.post_processor.process_batch(
            ends.ordered(self._with_known_ids(self._engine.with_ids(words, ids, lengths, id_ends))),
            add_special_tokens=ends.add_special_tokens,
            texts=(shown,),
            pad_id=self._pad_id,
        )

    def entropy(
        self,
        text: str | bytes,
        *,
        alpha: float = 1.0,
        special: SpecialPolicy | None = None,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> float:
        """Return the entropy of the distribution that :meth:`sample_encode` draws from, in nats.

        Parameters
        ----------
        text, alpha, special, errors, surrogates
            As in :meth:`sample_encode`, out of all segmentations.

        Raises
        ------
        UnsupportedError
            The model is no unigram model.

        Examples
        --------
        >>> from jittok.spec import TokenizerSpec, UnigramModel
        >>> model = UnigramModel(("<unk>", "a", "b", "ab"), (0.0, -1.0, -2.0, -3.0), unk_id=0)
        >>> round(Tokenizer(TokenizerSpec(model)).entropy("ab"), 6)  # two alike: log 2
        0.693147
        """
        words, _ = self._words(text, special, errors, surrogates)
        return self._segmentations.entropy(words, alpha)

    def score(self, segmentation: Encoding | Iterable[str]) -> float:
        """Return the score of a segmentation by a unigram model: the sum of those of its pieces.

        Parameters
        ----------
        segmentation
            An encoding, or pieces. A string that is no piece counts as so many unknown characters.

        Returns
        -------
        float
            The logarithm of the segmentation's probability, but for a constant of the text. Control pieces and added
            tokens count nothing.

        Raises
        ------
        UnsupportedError
            The model is no unigram model.
        """
        if isinstance(segmentation, Encoding):
            return self._segmentations.score(segmentation.ids.tolist(), segmentation.tokens)
        if isinstance(segmentation, str | bytes) or not isinstance(segmentation, Iterable):
            raise ArgumentTypeError(
                f"segmentation: expected an Encoding or strings, got {type(segmentation).__name__}"
            )
        pieces = list(segmentation)
        for number, piece in enumerate(pieces):
            if not isinstance(piece, str):
                raise ArgumentTypeError(f"segmentation[{number}]: expected str, got {type(piece).__name__}")
        ids = [self.token_to_id(piece) for piece in pieces]
        return self._segmentations.score([-1 if token is None else token for token in ids], pieces)

    def count(
        self,
        text: str | bytes,
        pair: str | bytes | None = None,
        *,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> int:
        """Return how many tokens :meth:`encode` gives, without making spans or keeping ids.

        Parameters
        ----------
        text, pair, add_special_tokens, special, errors, surrogates
            As those of :meth:`encode`.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> tok.count("Words, words, words.") == len(tok.encode("Words, words, words."))
        True
        """
        chosen = self._surrogates(surrogates)
        total = self._post_processor.template(pair is not None, add_special_tokens).num_special
        for value in (text,) if pair is None else (text, pair):
            source, _ = self._given(value, errors, chosen)
            total += len(self._encode_texts(source, False, special, 1).ids)
        return total

    def count_batch(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        add_special_tokens: bool = True,
        special: SpecialPolicy | None = None,
        errors: Errors = "strict",
        surrogates: Surrogates | None = None,
    ) -> NDArray[np.int64]:
        """Return how many tokens each text has.

        Parameters
        ----------
        texts, threads, add_special_tokens, special, errors, surrogates
            As in :meth:`encode_batch`.

        Returns
        -------
        int64[n]

        Examples
        --------
        >>> import jittok
        >>> jittok.load_default().count_batch(["", "to be"]).tolist()
        [0, 2]
        """
        source, _ = self._source(texts, errors, surrogates)
        policy = self.spec.default_special if special is None else special
        if threads is not None:
            threads = whole_number("threads", threads, 1)
        counts = self._engine.count_source(source, special=policy, threads=threads)
        return counts + self._post_processor.template(False, add_special_tokens).num_special

    # ----------------------------------------------------------------------------------------------- decoding

    def decode(self, ids: Any, skip_special_tokens: bool = False) -> str:
        """Return the text of a sequence of ids.

        Parameters
        ----------
        ids
            An :class:`Encoding`, an array, a list, or one id.
        skip_special_tokens
            Leave special tokens out.

        Returns
        -------
        str
            Bytes that are no valid UTF-8 become U+FFFD.

        Raises
        ------
        TokenIdError
            An id is not in the vocabulary.
        """
        return self.decoder.decode(ids, skip_special_tokens)

    def decode_bytes(self, ids: Any, skip_special_tokens: bool = False) -> bytes:
        """Return the bytes that a sequence of ids stands for; see :meth:`decode`.

        Parameters
        ----------
        ids, skip_special_tokens
            As those of :meth:`decode`.
        """
        return self.decoder.decode_bytes(ids, skip_special_tokens)

    def decode_batch(self, batch: Any, skip_special_tokens: bool = False) -> list[str]:
        """Return the texts of many sequences of ids.

        Parameters
        ----------
        batch
            A :class:`Batch`, ``(ids, indptr)``, or a list of sequences of ids.
        skip_special_tokens
            As that of :meth:`decode`.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> tok.decode_batch(tok.encode_batch(["one", "two"]))
        ['one', 'two']
        """
        return self.decoder.decode_batch(batch, skip_special_tokens)

    def decode_tokens(self, tokens: Iterable[str]) -> str:
        """Return the text of token strings, which only SentencePiece models define.

        Parameters
        ----------
        tokens
            Pieces; a string that is none of the model's stands for itself.

        Raises
        ------
        UnsupportedError
            The tokenizer is not from a SentencePiece model.
        ArgumentTypeError
            Something is no str.
        """
        if not isinstance(self.decoder, PieceDecoder):
            raise UnsupportedError("only tokenizers from SentencePiece models decode token strings; decode ids")
        return self.decoder.decode_tokens(tokens)

    def decode_stream(self, skip_special_tokens: bool = False) -> DecodeStream:
        """Return a decoder for ids that arrive one at a time.

        Parameters
        ----------
        skip_special_tokens
            As that of :meth:`decode`.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> stream = tok.decode_stream()
        >>> "".join(stream.push(i) for i in tok.encode("naïve"))
        'naïve'
        """
        return DecodeStream(self.decoder, skip_special_tokens)

    # --------------------------------------------------------------------------------------------- vocabulary

    @property
    def vocab_size(self) -> int:
        """The size of the vocabulary, added tokens included, as the file's own library counts it.

        That is the number of different tokens; for a rank file one more than the greatest id, which is larger
        where ids have holes.
        """
        return self._vocabulary.size if self.spec.reference == "tiktoken" else len(self._vocabulary)

    @property
    def id_limit(self) -> int:
        """One more than the greatest id, whatever :attr:`vocab_size` says: rows that an embedding table needs."""
        return self._vocabulary.size

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token string of `token_id`, or None where there is no such token."""
        return self._vocabulary.id_to_token(token_id)

    def token_to_id(self, token: str | bytes) -> int | None:
        """Return the id of a token string, or None; for a rank file, of a token's text or bytes."""
        return self._vocabulary.token_to_id(token)

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids, in order of id."""
        return self._vocabulary.special_tokens

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return how many special tokens ``add_special_tokens`` adds to one text, or to a pair."""
        return self._post_processor.num_special_tokens_to_add(pair)

    def normalize(self, text: str) -> str:
        """Return `text` after the file's normalizers.

        Raises
        ------
        ArgumentTypeError, TextError
            It is no str, or has a lone surrogate (which becomes U+FFFD where :meth:`encode` makes that of it).
        """
        if not isinstance(text, str):
            raise ArgumentTypeError(f"text: expected str, got {type(text).__name__}")
        if not text.isascii():
            source = text_from(text, surrogates=self._surrogates(None))
            text = source.data[: int(source.indptr[-1])].tobytes().decode()
        normalizer = self.plan.normalizer
        return text if normalizer is None else normalizer.apply_strings([text])[0]

    def normalize_aligned(self, text: str) -> tuple[str, NDArray[np.int64]]:
        """Return `text` after the file's normalizers, and where each character of the result comes from.

        Parameters
        ----------
        text
            A string without lone surrogates.

        Returns
        -------
        normalized : str
        spans : int64[n, 2]
            For each character of `normalized` the characters of `text` that it comes from. Neither end ever
            decreases, so a stretch of the result comes from the first one's start to the last one's end.

        Raises
        ------
        ArgumentTypeError, TextError
            It is no str, or has a lone surrogate.
        """
        source = text_from(text, errors="strict", surrogates="raise")
        normalizer = self.plan.normalizer
        if normalizer is None:
            own = np.arange(len(text), dtype=np.int64)
            return text, np.stack([own, own + 1], axis=1)
        return normalizer.apply_aligned(source.data[: int(source.indptr[-1])].tobytes())

    # ------------------------------------------------------------------------------------------- other objects

    def with_added_tokens(self, tokens: Iterable[str | AddedToken], special: bool = False) -> Tokenizer:
        """Return a tokenizer that has more added tokens.

        Parameters
        ----------
        tokens
            Strings, or :class:`~jittok.spec.AddedToken` whose ids are ignored. One that is in the vocabulary
            keeps its id; others get the next free ids.
        special
            Whether the strings become special tokens, which are not looked for in normalised text.

        Returns
        -------
        Tokenizer

        Raises
        ------
        ArgumentError, ArgumentTypeError
            A token is empty or no str.

        Examples
        --------
        >>> import jittok
        >>> tok = jittok.load_default()
        >>> more = tok.with_added_tokens(["<tool>"], special=True)
        >>> more.encode("a<tool>b").tokens
        ['a', '<tool>', 'b']
        """
        if isinstance(tokens, str):
            raise ArgumentTypeError("tokens: expected a list of tokens, got one str")
        contents, flags = list(self.spec.added.contents), self.spec.added.flags.tolist()
        ids = self.spec.added.ids.tolist()
        places = {content: place for place, content in enumerate(contents)}
        new, new_flags = _contents_and_flags(tokens, special)
        following = self._vocabulary.size
        for content, flag, own in zip(new, new_flags, self._vocabulary.ids_of(new).tolist(), strict=True):
            place = places.get(content)
            if place is not None:
                # As in the reference, a token that was special stays so.
                flags[place] = flag | (flags[place] & TOKEN_SPECIAL)
                continue
            if own < 0:
                own = following
                following += 1
            places[content] = len(contents)
            contents.append(content)
            flags.append(flag)
            ids.append(own)
        added = AddedTokens(contents, np.array(ids, np.int64), np.array(flags, np.uint8))
        spec = replace(self.spec, added_tokens=added.take(np.argsort(added.ids, kind="stable")))
        return Tokenizer(spec, plan=self.plan.with_added_tokens(spec))

    def with_vocabulary(self, pieces: Iterable[str] | None) -> Tokenizer:
        """Return a tokenizer that uses only some pieces of this one's SentencePiece model.

        What a subword vocabulary with a frequency threshold is for (Sennrich et al. 2017): text is cut into pieces that
        were seen often enough in training.

        Parameters
        ----------
        pieces
            The pieces to use; what is no piece of the model counts nothing. None: all of them.

        Returns
        -------
        Tokenizer
            Of its pieces, control, unknown, user-defined and byte pieces stay as they are; the others are normal if
            they are wanted or a single character, else unused, as after sentencepiece's ``SetVocabulary`` (and all are
            normal as after ``ResetVocabulary``). An unused piece of a byte-pair model is taken apart again. Ids stay.

        Raises
        ------
        UnsupportedError
            The tokenizer is not from a SentencePiece model of type unigram or bpe.
        ArgumentTypeError
            Something is no str.
        """
        model = self.spec.model
        if not isinstance(model, SentencePieceModel) or model.algorithm not in ("unigram", "bpe"):
            raise UnsupportedError("only SentencePiece models of type unigram or bpe can be given a vocabulary")
        wanted: set[str] = set()
        if pieces is not None:
            if isinstance(pieces, str | bytes) or not isinstance(pieces, Iterable):
                raise ArgumentTypeError(f"pieces: expected strings, got {type(pieces).__name__}")
            for number, piece in enumerate(pieces):
                if not isinstance(piece, str):
                    raise ArgumentTypeError(f"pieces[{number}]: expected str, got {type(piece).__name__}")
                wanted.add(piece)
        types = bytearray(model.types)
        for token_id, piece in enumerate(model.pieces):
            if types[token_id] in (PieceType.NORMAL, PieceType.UNUSED) and "\0" not in piece:
                is_used = pieces is None or piece in wanted or len(piece) == 1
                types[token_id] = PieceType.NORMAL if is_used else PieceType.UNUSED
        spec = replace(self.spec, model=model.with_types(bytes(types)))
        return Tokenizer(spec, vocabulary=self._vocabulary.tables)

    def as_hf(self, like: Literal["tokenizers", "transformers"] = "tokenizers", **options: Any) -> HfTokenizer:
        """Return an object with the methods of ``tokenizers.Tokenizer``, and of transformers' fast tokenizers.

        Truncation and padding that are stored in the file hold there, until they are switched off.

        Parameters
        ----------
        like
            Whose `encode` and `decode` it has: tokenizers' give an encoding, and leave special tokens out of texts;
            transformers' give a list of ids, and leave special tokens in.
        **options
            Attributes that transformers' tokenizers have, as `pad_token`, `eos_token` and `model_max_length`.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            An argument is none of these.

        Examples
        --------
        >>> import jittok
        >>> hf = jittok.load_default().as_hf()
        >>> hf.encode("to be").offsets
        [(0, 2), (2, 5)]
        >>> hf(["to be"])["input_ids"] == [hf.encode("to be").ids]
        True
        """
        from .interop.huggingface import HfFastTokenizer, HfTokenizer

        if like not in ("tokenizers", "transformers"):
            raise ArgumentError(f"like={like!r}: expected 'tokenizers' or 'transformers'")
        return (HfTokenizer if like == "tokenizers" else HfFastTokenizer)(self, **options)

    def as_sentencepiece(self, **options: Any) -> SentencePieceProcessor:
        """Return an object with the methods of ``sentencepiece.SentencePieceProcessor``.

        Parameters
        ----------
        **options
            What its calls do unless they say otherwise: `out_type`, `add_bos`, `add_eos`, `reverse`, `emit_unk_piece`,
            `enable_sampling`, `nbest_size`, `alpha` and `num_threads`.

        Raises
        ------
        UnsupportedError
            The tokenizer is not from a SentencePiece model.
        """
        from .interop.sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor.from_tokenizer(self, **options)

    def as_tiktoken(self, name: str | None = None) -> TiktokenEncoding:
        """Return an object with the methods of ``tiktoken.Encoding`` (lists of ints, tiktoken's arguments).

        Parameters
        ----------
        name
            Its `name`; None: that of a published encoding, or "jittok".

        Examples
        --------
        >>> import jittok
        >>> encoding = jittok.load_default().as_tiktoken()
        >>> encoding.decode(encoding.encode_ordinary("to be"))
        'to be'
        """
        from .interop.tiktoken import TiktokenEncoding

        return TiktokenEncoding(self, name)

    def save(
        self, path: str | os.PathLike[str], format: str | None = None, *, exact: bool = False, template: bool = True
    ) -> None:
        """Write the tokenizer to a file or directory, in its own or another format.

        Parameters
        ----------
        path
            A file name. An existing file is replaced once the new one is complete. With the formats "merges" and
            "vocab.txt" also a directory, made if need be, where a tokenizer_config.json is written too.
        format
            "tokenizer.json", "sentencepiece", "tiktoken" (ranks only: the pattern and special tokens must be passed when it
            is loaded), "merges" (vocab.json, merges.txt and a tokenizer_config.json in a directory), "vocab.txt" (which as a
            file holds a WordPiece vocabulary and nothing else) or "jittok"; None: by suffix (.json, .model or .spm,
            .tiktoken, .txt, .jittok) or name (vocab.json and merges.txt).
        exact
            Refuse where ids may differ for some texts, for which otherwise there is a warning.
        template
            Keep the special tokens that are put around texts. If false they are left out, for formats that have none.

        Raises
        ------
        UnsupportedError
            The format cannot hold this tokenizer; the message says why.
        ConversionError
            With `exact`: ids would differ for some texts.
        ArgumentError
            The suffix or format is not known.
        OutputError
            The file cannot be written.

        Warns
        -----
        ConversionWarning
            Ids may differ for some texts; the message says for which.
        """
        if not isinstance(path, str | os.PathLike):
            raise ArgumentTypeError(f"path: expected a str or a path object, got {type(path).__name__}")
        file = Path(os.fsdecode(path))
        chosen = format_of(file, format)
        if chosen == "jittok" and template:
            _write_file(file, self._as_file(chosen))
            return
        from .formats.conversion import content_of, convert, files_of

        in_directory = chosen == "merges" or (chosen == "vocab.txt" and (file.is_dir() or not file.suffix))
        spec, notes = convert(self.spec, chosen, exact=exact, template=template, alone=not in_directory)
        if in_directory:
            directory = file.parent if file.suffix in (".json", ".txt") and not file.is_dir() else file
            contents = files_of(spec, chosen)
            _make_directory(directory)
            for name, content in contents.items():
                _write_file(directory / name, content)
        elif chosen == "jittok":
            _write_file(file, Tokenizer(spec)._as_file("jittok"))
        else:
            _write_file(file, content_of(spec, chosen))
        if notes:
            import warnings

            from .errors import ConversionWarning

            message = f"{file}: ids are not the same for all texts in this format: {'; '.join(notes)}"
            warnings.warn(message, ConversionWarning, stacklevel=2)

    def _as_file(self, format: str) -> bytes:
        if format == "jittok":
            from .formats import jittok_file

            return jittok_file.write(self.spec, self.plan, self._vocabulary.tables)
        from .formats.conversion import content_of, convert

        return content_of(convert(self.spec, format, exact=False)[0], format)

    # ----------------------------------------------------------------------------------------------- identity

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 (64 hexadecimal digits) that is equal for tokenizers that encode alike.

        It depends on the content of the file, not on how or where it was stored.
        """
        import hashlib
        import json

        digest = hashlib.sha256(b"jittok %d\n" % _FINGERPRINT_VERSION)
        model = self.spec.model
        tables = self._vocabulary.tables
        for array in (tables.strings, tables.string_indptr, tables.flags):
            digest.update(array.tobytes())
        if isinstance(model, BPEModel):
            digest.update(json.dumps(list(model.merges)).encode("utf-8", "surrogatepass"))
        for part in (model, self.spec):
            for field in fields(part):
                # How the file was written, and what native calls never apply, is no part of it.
                if field.name not in _NOT_FINGERPRINTED:
                    digest.update(f"{field.name}={getattr(part, field.name)!r}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self._as_file("jittok"),)

    def __repr__(self) -> str:
        model = type(self.spec.model).__name__.removesuffix("Model")
        return f"Tokenizer({model}, {self.vocab_size:,} tokens, from {self.spec.source_format})"

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        arrays = {}
        for group in (*self.plan.table_groups(), self._vocabulary.tables):
            arrays.update({id(array): array.nbytes for array in group})
        return sum(arrays.values())

    def clear_cache(self) -> None:
        """Forget the words that earlier calls left in the bounded caches."""
        self._engine.clear_cache()

    # ------------------------------------------------------------------------------------------------- inside

    def _ends(
        self, add_special_tokens: bool, add_bos: bool, add_eos: bool, reverse: bool, has_pair: bool
    ) -> Ends:
        if not (add_bos or add_eos or reverse):
            return Ends(self._post_processor, add_special_tokens, False)
        model = self.spec.model
        if not isinstance(model, SentencePieceModel):
            raise UnsupportedError(
                "add_bos, add_eos and reverse are for tokenizers from SentencePiece models; here the file says what "
                "add_special_tokens puts around a text"
            )
        if has_pair:
            raise ArgumentError("add_bos, add_eos and reverse are for single texts; encode each text of the pair alone")
        for name, is_wanted, number in (("add_bos", add_bos, model.bos_id), ("add_eos", add_eos, model.eos_id)):
            if is_wanted and number < 0:
                raise ArgumentError(f"{name}: the model has no control piece for that (its {name[4:]}_id is -1)")
        post_processor = self._post_processor.with_ends(
            model.bos_id if add_bos else None, model.eos_id if add_eos else None
        )
        return Ends(post_processor, True, reverse)

    @cached_property
    def _segmentations(self) -> Segmentations:
        from .segmentations import Segmentations

        return Segmentations(self.spec, self.plan)

    def _words(
        self, text: Any, special: SpecialPolicy | None, errors: Errors, surrogates: Surrogates | None
    ) -> tuple[Words, str]:
        """What the model is given of one text, and the text as spans count it."""
        policy = self.spec.default_special if special is None else special
        source, shown = self._one_source(text, errors, self._surrogates(surrogates))
        return self._engine.words(source.data, source.indptr, special=policy), shown

    def _finished(self, ends: Ends, words: Words, drawn: Drawn, shown: str) -> Encoding:
        encoded = self._with_known_ids(self._engine.with_ids(words, drawn.ids, drawn.lengths, drawn.ends))
        encoded = ends.ordered(encoded)
        encoding = ends.post_processor.process(
            encoded, add_special_tokens=ends.add_special_tokens, texts=(shown,)
        )
        return encoding.with_score(drawn.score)

    def _one_source(self, text: Any, errors: Errors, surrogates: Surrogates) -> tuple[Texts, str]:
        """One text for the engine, and as spans count it."""
        source, shown = self._given(text, errors, surrogates)
        if shown is not None:
            return source, shown
        if isinstance(text, str) and text.isascii():
            return source, text
        return source, source.data[: int(source.indptr[-1])].tobytes().decode()

    def _given(self, text: Any, errors: Errors, surrogates: Surrogates) -> tuple[Texts, str | None]:
        """One text for the engine; and as spans count it, if that is something else."""
        if errors == "replace" and self.spec.reference == "sentencepiece" and not isinstance(text, str):
            source, texts = self._bytewise(text_from(text, errors=errors, surrogates=surrogates, validate=False))
            return source, None if texts is None else texts[0]
        return text_from(text, errors=errors, surrogates=surrogates), None

    def _given_batch(self, texts: Any, errors: Errors, surrogates: Surrogates) -> tuple[Texts, list[str] | None]:
        """As :meth:`_given`, for many texts."""
        if errors == "replace" and self.spec.reference == "sentencepiece":
            return self._bytewise(texts_from(texts, errors=errors, surrogates=surrogates, validate=False))
        return texts_from(texts, errors=errors, surrogates=surrogates, check=False), None

    def _bytewise(self, source: Texts) -> tuple[Texts, list[str] | None]:
        """Texts whose bytes may be invalid, for the engine, and with U+FFFD for each byte, if there is such a one.

        In SentencePiece's own models its normalizer puts U+FFFD there, to which the rules that the file may have for that
        character do not apply.
        """
        if find_invalid(source) < 0:
            return source._replace(is_checked=True), None
        bounds = source.indptr.tolist()
        texts = [
            decoded_bytewise(source.data[begin:end].tobytes()) for begin, end in zip(bounds, bounds[1:], strict=False)
        ]
        plan = self.plan
        is_normalized = plan.normalizer is not None and plan.normalizer.always and plan.raw_tokens is None
        if not is_normalized or plan.blank_prefix is not None:
            source = texts_from(texts)
        return source._replace(is_checked=True), texts

    def _surrogates(self, surrogates: Surrogates | None) -> Surrogates:
        if surrogates is None:
            return "replace" if self.spec.reference in ("tiktoken", "mistral_common") else "raise"
        return surrogates

    def _source(
        self, texts: Any, errors: Errors, surrogates: Surrogates | None, shows: bool = True
    ) -> tuple[Source, TextSource]:
        """Texts for the engine, and for a batch to show if it `shows` any.

        Strings become bytes a chunk at a time, while these are in the processor's cache.
        """
        chosen = self._surrogates(surrogates)
        parts = arrow_chunks(texts) if not shows and errors == "strict" else None
        if parts is not None:
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(part.indptr) - 1 for part in parts])])
            lengths = np.concatenate([np.diff(part.indptr) for part in parts])

            def take(first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
                part = taken(parts, starts, first, last)
                check_texts(part, first)
                return part.data, part.indptr

            return Source(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), take), []
        if isinstance(texts, list | tuple) and len(texts) > 1 and isinstance(texts[0], str):
            strings = strings_of(texts)
            if strings is not None:

                def make(first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
                    done = strings.utf8(first, last)
                    if done is not None:
                        return done
                    part = strings.items[first:last]
                    given = texts_from(part, errors=errors, surrogates=chosen, first_number=first)
                    return given.data, given.indptr

                return Source(strings.lengths, make), strings.items
        whole, replaced = self._given_batch(texts, errors, chosen)
        shown = whole.data, whole.indptr
        if whole.is_checked:
            return Source.of_arrays(*shown), shown if replaced is None else replaced

        def checked(first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
            part = whole._replace(indptr=whole.indptr[first : last + 1])
            check_texts(part, first)
            return part.data, part.indptr

        return Source(whole.indptr, checked), shown

    def _encode_texts(
        self, texts: Texts, spans: bool, special: SpecialPolicy | None, threads: int | None
    ) -> EncodedTexts:
        policy = self.spec.default_special if special is None else special
        if threads is not None:
            threads = whole_number("threads", threads, 1)
        encoded = self._engine.encode(
            texts.data, texts.indptr, spans=spans, words=spans, special=policy, threads=threads
        )
        return self._with_known_ids(encoded, Source.of_arrays(texts.data, texts.indptr), policy)

    def _with_known_ids(
        self, encoded: EncodedTexts, source: Source | None = None, special: SpecialPolicy = "parse"
    ) -> EncodedTexts:
        """Encoded texts with ids of the vocabulary for those that only the tables of a Marian pair know.

        Without `source`, which texts they are, unknown characters are not looked up in the vocabulary.
        """
        model = self.spec.model
        if not isinstance(model, MarianModel):
            return encoded
        others = np.flatnonzero(encoded.ids >= model.unknown_text)
        if not len(others):
            return encoded
        ids = encoded.ids.copy()
        ids[others] = model.unk_id
        # Unknown characters that stand together are one piece, and the vocabulary may have that from the other side.
        unknown = others[encoded.ids[others] == model.unknown_text]
        documents = np.searchsorted(encoded.indptr, unknown, side="right") - 1
        bounds = [0, *(np.flatnonzero(np.diff(documents)) + 1).tolist(), len(documents)]
        surfaces: dict[int, str] = {}
        parts: dict[int, str] = {}
        for first, last in zip(bounds, bounds[1:], strict=False) if source is not None and len(unknown) else ():
            assert source is not None
            document = int(documents[first])
            data, indptr = source.make(document, document + 1)
            again = self._engine.encode(data, indptr, spans=True, special=special, threads=1)
            text = data[int(indptr[0]) : int(indptr[1])].tobytes().decode()
            places = np.flatnonzero(again.ids == model.unknown_text).tolist()
            for row, place in zip(unknown[first:last].tolist(), places, strict=True):
                assert again.spans is not None
                surface = (again.shown or {}).get(place)
                if surface is None:
                    begin, end = again.spans[place].tolist()
                    parts[row] = text[begin:end]
                else:
                    surfaces[row] = surface
        if parts:
            # All at once: a call for each costs far more than the text does.
            different = list(dict.fromkeys(parts.values()))
            as_seen = dict(zip(different, _Shown(self.spec).surfaces(different), strict=True))
            surfaces.update((row, as_seen[part]) for row, part in parts.items())
        for row, surface in surfaces.items():
            ids[row] = model.vocab.get(surface, model.unk_id)
        ids.flags.writeable = False
        return encoded._replace(ids=ids)

    def _encode_one(
        self,
        name: str,
        text: Any,
        is_split_into_words: bool,
        special: SpecialPolicy,
        errors: Errors,
        surrogates: Surrogates | None,
    ) -> tuple[EncodedTexts, SourceText]:
        if is_split_into_words:
            encoded, shown_words = self._encode_words(name, [text], True, special, errors, surrogates, 1)
            return encoded, shown_words[0]
        source, shown = self._one_source(text, errors, self._surrogates(surrogates))
        encoded = self._encode_texts(source, True, special, None)
        return encoded, shown

    def _encode_words(
        self,
        name: str,
        documents: list[Any],
        spans: bool,
        special: SpecialPolicy,
        errors: Errors,
        surrogates: Surrogates | None,
        threads: int | None,
    ) -> tuple[EncodedTexts, list[tuple[str, ...]]]:
        """Encode documents that are given as words; and, with `spans`, the words as spans count in them."""
        flat: list[Any] = []
        bounds = [0]
        for number, words in enumerate(documents):
            if isinstance(words, str | bytes) or not isinstance(words, Iterable):
                which = name if name in ("text", "pair") else f"{name}[{number}]"
                raise ArgumentTypeError(
                    f"{which}: expected a list of words with is_split_into_words, got {type(words).__name__}"
                )
            flat.extend(words)
            bounds.append(len(flat))
        source, shown = self._source(flat, errors, surrogates)
        encoded = self._engine.encode_source(source, spans=spans, special=special, threads=threads)
        shown_words = [text_of(shown, number) for number in range(len(flat))] if spans else []
        pairs = zip(bounds, bounds[1:], strict=False)
        merged = merged_words(encoded, np.array(bounds, np.int64), spans)
        return merged, [tuple(shown_words[begin:end]) for begin, end in pairs]

    @cached_property
    def _pad_id(self) -> int | None:
        stored = self.spec.stored_padding
        if stored is not None and isinstance(stored.get("pad_id"), int):
            return int(stored["pad_id"])
        if isinstance(self.spec.model, SentencePieceModel) and self.spec.model.pad_id >= 0:
            return self.spec.model.pad_id
        special = self.special_tokens
        return next((special[token] for token in ("<pad>", "[PAD]") if token in special), None)


def _listed(name: str, documents: Any) -> list[Any]:
    """Many documents of some kind as a list."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise ArgumentTypeError(f"{name}: expected an iterable of lists of words, got {type(documents).__name__}")
    return list(documents)


def _contents_and_flags(tokens: Iterable[str | AddedToken], special: bool) -> tuple[list[str], list[int]]:
    """What :meth:`Tokenizer.with_added_tokens` is given, checked: contents, and ``TOKEN_*`` bits."""
    tokens = list(tokens)
    if set(map(type, tokens)) <= {str} and all(tokens):
        return tokens, [TOKEN_SPECIAL if special else TOKEN_NORMALIZED] * len(tokens)  # type: ignore[return-value]
    given = []
    for number, token in enumerate(tokens):
        if isinstance(token, str):
            token = AddedToken(0, token, special=special, normalized=not special)
        if not isinstance(token, AddedToken):
            raise ArgumentTypeError(f"tokens[{number}]: expected str or AddedToken, got {type(token).__name__}")
        if not token.content:
            raise ArgumentError(f"tokens[{number}] is empty; it would be found everywhere")
        given.append(token)
    columns = AddedTokens.of(given)
    return list(columns.contents), columns.flags.tolist()


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    side: Literal["source", "target"] | None = None,
) -> Tokenizer:
    """Load a tokenizer from a file or directory; its content decides the format.

    Parameters
    ----------
    path
        tokenizer.json, a directory with tokenizer.json, vocab.txt, or vocab.json and merges.txt, a SentencePiece
        model, a .tiktoken rank file, a tekken.json, a GGUF file, the directory of a Marian pair (source.spm, target.spm,
        vocab.json), or a jittok file.
    format
        Its name, to skip detection: "tokenizer.json", "sentencepiece", "merges", "vocab.txt", "tiktoken", "tekken",
        "gguf", "marian" or "jittok".
    pattern, special_tokens
        Of a rank file, which says neither: the name of a known encoding or a regular expression, and the
        special tokens with their ids.
    side
        Of a Marian pair: whose text it is for, "source" (the default) or "target".

    Returns
    -------
    Tokenizer

    Raises
    ------
    MissingFileError, FormatError, UnknownFormatError, UnsupportedError, RegexError
        The file cannot be read; the message names the field and what was expected.
    ArgumentError
        An argument is for files of another format, or has no such value.
    """
    from .formats.detect import find, read_located

    located = find(path, format)
    if located.format == "jittok":
        from .formats import jittok_file

        return _from_stored(jittok_file.read(located.file))
    spec = read_located(located, pattern=pattern, special_tokens=special_tokens, side=side)
    try:
        return Tokenizer(spec)
    except (FormatError, RegexError, UnsupportedError) as error:
        # Found when the tables are built, where the file's name is not known.
        raise type(error)(f"{located.name}: {error}") from error


def load_bytes(
    data: bytes,
    *,
    format: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Tokenizer:
    """Load a tokenizer from the content of a file: tokenizer.json, SentencePiece model, rank file, tekken.json or GGUF.

    Parameters
    ----------
    data
        The whole content.
    format, pattern, special_tokens
        As in :func:`load`.

    Returns
    -------
    Tokenizer

    Raises
    ------
    FormatError, UnknownFormatError, UnsupportedError, RegexError
        The content cannot be read; the message names the field and what was expected.
    """
    from .formats.detect import read_spec_bytes

    return Tokenizer(read_spec_bytes(data, format=format, pattern=pattern, special_tokens=special_tokens))


def load_default() -> Tokenizer:
    """Load the built-in tokenizer: byte-level BPE, made from public-domain text.

    Examples
    --------
    >>> import jittok
    >>> jittok.load_default().vocab_size > 16_000
    True
    """
    return load(Path(__file__).parent / "data" / "default.jittok")


def _from_stored(stored: Stored) -> Tokenizer:
    return Tokenizer(stored.spec, plan=stored.plan, vocabulary=stored.vocabulary)


def _from_bytes(content: bytes) -> Tokenizer:
    """A tokenizer from the content of a jittok file: what pickling keeps."""
    from .formats import jittok_file

    return _from_stored(jittok_file.parse(content, "pickled tokenizer"))


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format that :meth:`Tokenizer.save` writes a file in.

    Parameters
    ----------
    path
        The file, whose suffix counts if `format` is None.
    format
        Its name.

    Raises
    ------
    ArgumentError
        The suffix or format is not known.
    """
    file = Path(os.fsdecode(path))
    chosen = _FILE_NAMES.get(file.name, _SUFFIXES.get(file.suffix)) if format is None else format
    known = (*dict.fromkeys(_SUFFIXES.values()), "merges")
    if chosen is None or chosen not in known:
        raise ArgumentError(
            f"cannot tell a format from {file.name!r} and format={format!r}; pass format= one of {', '.join(known)}"
        )
    return chosen


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be made: {error.strerror or error}") from None


def _write_file(file: Path, content: bytes) -> None:
    """Write a file under a temporary name beside its place, and move it there when complete."""
    import tempfile

    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, file)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(f"{file}: cannot be written: {error.strerror or error}") from None
