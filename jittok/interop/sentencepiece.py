"""The methods of ``sentencepiece.SentencePieceProcessor`` on a jittok tokenizer; sentencepiece itself is not needed.

Both spellings of every name are there, those of sentencepiece 0.2.3 and what earlier versions had besides: immutable
protos, restricted vocabularies, entropies and scored samples.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..encodings import Encoding, frozen, utf8_positions
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingFileError,
    TokenRangeError,
    UnsupportedCallError,
    UnsupportedError,
)
from ..piece_decoding import PieceDecoder
from ..spec import PieceType, SentencePieceModel
from ..text import decoded_bytewise

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

_PROTOS = ("proto", "serialized_proto", "immutable_proto")
_RETURN_TYPES = (int, str, bytes, *_PROTOS, "numpy", "offset_mapping")

_seeds: random.Random | None = None


def set_random_generator_seed(seed: int) -> None:
    """Make the samples that processors draw from now on reproducible.

    Parameters
    ----------
    seed
        The same seed gives the same samples, other ones than sentencepiece draws.
    """
    global _seeds
    _seeds = random.Random(seed)


def _next_seed() -> int | None:
    return None if _seeds is None else _seeds.getrandbits(63)


class Options(NamedTuple):
    """What one call asks for."""

    return_type: Any
    add_bos: bool
    add_eos: bool
    reverse: bool
    emit_unk_piece: bool

    @property
    def ends(self) -> dict[str, Any]:
        """Arguments of the jittok tokenizer's calls."""
        return {"add_bos": self.add_bos, "add_eos": self.add_eos, "reverse": self.reverse}


class SentencePieceProcessor:
    """A tokenizer with the methods of ``sentencepiece.SentencePieceProcessor``.

    Parameters
    ----------
    model_file, model_proto
        A SentencePiece model to load: the name of a file, or its content.
    out_type, return_type
        What encoding gives unless a call says otherwise: int, str, bytes, "numpy", "proto", "serialized_proto",
        "immutable_proto" or "offset_mapping".
    add_bos, add_eos, reverse, emit_unk_piece, enable_sampling, nbest_size, alpha, num_threads
        Further arguments of :meth:`Encode`, unless a call says otherwise.
    """

    def __init__(
        self,
        model_file: str | os.PathLike[str] | None = None,
        model_proto: Any = None,
        out_type: Any = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        emit_unk_piece: bool = False,
        enable_sampling: bool = False,
        nbest_size: int = -1,
        alpha: float = 0.1,
        num_threads: int = -1,
        return_type: Any = None,
    ) -> None:
        self._tokenizer: Tokenizer | None = None
        self._return_type = _chosen_type(return_type, out_type, int)
        self._add_bos = add_bos
        self._add_eos = add_eos
        self._reverse = reverse
        self._emit_unk_piece = emit_unk_piece
        self._enable_sampling = enable_sampling
        self._nbest_size = nbest_size
        self._alpha = alpha
        self._num_threads = num_threads
        if model_file or model_proto:
            self.Load(model_file=model_file, model_proto=model_proto)

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, **options: Any) -> SentencePieceProcessor:
        """Return a processor for a tokenizer.

        Parameters
        ----------
        tokenizer
            One from a SentencePiece model.
        **options
            As those of the class.

        Raises
        ------
        UnsupportedError
            It is from another file.
        """
        if not isinstance(tokenizer.spec.model, SentencePieceModel):
            raise UnsupportedError(
                f"as_sentencepiece() is for tokenizers from SentencePiece models; this one is from "
                f"{tokenizer.spec.source_format}"
            )
        result = cls(**options)
        result._use(tokenizer)
        return result

    @classmethod
    def from_file(cls, model_file: str | os.PathLike[str], **kwargs: Any) -> SentencePieceProcessor:
        """Load a model file.

        Parameters
        ----------
        model_file
            Its name.
        **kwargs
            As those of the class.
        """
        _refuse_models(kwargs)
        result = cls(**kwargs)
        result.LoadFromFile(model_file)
        return result

    @classmethod
    def from_proto(cls, model_proto: Any, **kwargs: Any) -> SentencePieceProcessor:
        """Load a model from memory.

        Parameters
        ----------
        model_proto
            The content of a model file, or a protobuf message of it.
        **kwargs
            As those of the class.
        """
        _refuse_models(kwargs)
        result = cls(**kwargs)
        result.LoadFromSerializedProto(model_proto)
        return result

    @property
    def tokenizer(self) -> Tokenizer:
        """The jittok tokenizer that does the work.

        Raises
        ------
        UnsupportedCallError
            No model was loaded.
        """
        if self._tokenizer is None:
            raise UnsupportedCallError("no model is loaded; call Load() first")
        return self._tokenizer

    def _use(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.__dict__.pop("_pieces", None)

    @property
    def _model(self) -> SentencePieceModel:
        model = self.tokenizer.spec.model
        assert isinstance(model, SentencePieceModel)
        return model

    # ------------------------------------------------------------------------------------------------- loading

    def Load(self, model_file: str | os.PathLike[str] | None = None, model_proto: Any = None) -> bool:
        """Load a model.

        Parameters
        ----------
        model_file, model_proto
            One of these, as :meth:`LoadFromFile` and :meth:`LoadFromSerializedProto` take them.

        Raises
        ------
        ArgumentError
            None of them, or both.
        """
        if model_file and model_proto:
            raise ArgumentError("model_file and model_proto: expected one of them, got both")
        if model_proto:
            return self.LoadFromSerializedProto(model_proto)
        if model_file:
            return self.LoadFromFile(model_file)
        raise ArgumentError("model_file and model_proto: expected one of them, got none")

    def LoadFromFile(self, filename: str | os.PathLike[str]) -> bool:
        """Load a model file; True is returned always.

        Parameters
        ----------
        filename
            Its name.

        Raises
        ------
        MissingFileError, FormatError, UnsupportedError
            It cannot be read.
        """
        from ..tokenizer import load

        self._use(load(filename, format="sentencepiece"))
        return True

    def LoadFromSerializedProto(self, serialized: Any) -> bool:
        """Load a model from memory; True is returned always.

        Parameters
        ----------
        serialized
            The content of a model file, or a protobuf message of it.

        Raises
        ------
        FormatError, UnsupportedError
            It cannot be read.
        """
        from ..tokenizer import load_bytes

        if hasattr(serialized, "SerializeToString"):
            serialized = serialized.SerializeToString()
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise ArgumentTypeError(f"serialized: expected bytes, got {type(serialized).__name__}")
        self._use(load_bytes(bytes(serialized), format="sentencepiece"))
        return True

    def serialized_model_proto(self) -> bytes:
        """Return the content of the model's file."""
        from ..formats import sentencepiece_model

        return sentencepiece_model.write(self.tokenizer.spec)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_tokenizer", None)
        state.pop("_pieces", None)
        if self._tokenizer is not None:
            state["model_proto"] = self.serialized_model_proto()
        return state

    def __setstate__(self, state: Any) -> None:
        # The state was once nothing but the model.
        state = dict(state) if isinstance(state, dict) else {"model_proto": state}
        content = state.pop("model_proto", None)
        SentencePieceProcessor.__init__(self)
        if content is not None:
            self.LoadFromSerializedProto(content)
        self.__dict__.update(state)

    # ------------------------------------------------------------------------------------------------ encoding

    def Encode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        enable_sampling: bool | None = None,
        nbest_size: int | None = None,
        alpha: float | None = None,
        num_threads: int | None = None,
        thread_pool: Any = None,
        return_type: Any = None,
        out_type: Any = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """Encode one text, or a list of texts.

        Parameters
        ----------
        input
            str or bytes, or a list of these.
        add_bos, add_eos
            Put the piece for the beginning or end of a text there.
        reverse
            Give the tokens in reverse order.
        emit_unk_piece
            Show unknown pieces as the unknown piece, not as their text.
        enable_sampling, nbest_size, alpha
            Draw a segmentation at random, as :meth:`jittok.Tokenizer.sample_encode` does.
        num_threads, thread_pool
            At most so many threads; below 0 one for each processor.
        return_type, out_type
            What comes back for a text: a list of int, str or bytes, an array ("numpy"), a protobuf message ("proto"),
            its bytes ("serialized_proto"), plain objects ("immutable_proto", whose positions count characters), or a
            dictionary of ids, pieces and offsets ("offset_mapping").
        return_bytes
            Of offset mappings: pieces as bytes, and offsets in bytes. By default if the input is bytes.

        Raises
        ------
        ArgumentError, ArgumentTypeError, TextError, UnsupportedCallError
            An argument or text cannot be used.
        """
        options = self._options(return_type, out_type, add_bos, add_eos, reverse, emit_unk_piece)
        if return_bytes is not None and options.return_type != "offset_mapping":
            raise ArgumentError("return_bytes is for return_type='offset_mapping' only")
        sampling = self._enable_sampling if enable_sampling is None else enable_sampling
        nbest_size = self._nbest_size if nbest_size is None else nbest_size
        alpha = self._alpha if alpha is None else alpha
        threads = self._threads(num_threads, thread_pool)
        if sampling and (nbest_size in (None, 0, 1) or alpha is None):
            raise ArgumentError(
                f"enable_sampling needs nbest_size and alpha: got nbest_size={nbest_size}, alpha={alpha}; "
                "expected a nbest_size below 0 (out of all segmentations) or above 1"
            )
        texts = input if isinstance(input, list) else [_checked_text(input)]
        if return_bytes is None:
            return_bytes = isinstance(texts[0], bytes) if texts else False
        self._check(options)
        tokenizer = self.tokenizer
        if sampling:
            sample = self._sampler(nbest_size, alpha)
            found = [self._shown(sample(_checked_text(text), options.ends), options, return_bytes) for text in texts]
        else:
            is_ids = options.return_type in (int, "numpy")
            for text in texts:
                _checked_text(text)
            if len(set(map(type, texts))) > 1:
                texts = [text.encode() if isinstance(text, str) else text for text in texts]
            batch = tokenizer.encode_batch(texts, spans=not is_ids, threads=threads, errors="replace", **options.ends)
            if options.return_type is int:
                found = batch.to_lists()
            elif options.return_type == "numpy":
                bounds = batch.indptr.tolist()
                found = [batch.ids[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]
            else:
                found = [self._shown(encoding, options, return_bytes) for encoding in batch]
        return found if isinstance(input, list) else found[0]

    def _sampler(self, nbest_size: int, alpha: float) -> Callable[[str | bytes, dict[str, Any]], Encoding]:
        """What draws a segmentation of a text."""
        tokenizer = self.tokenizer
        how: dict[str, Any] = {"alpha": alpha, "nbest_size": nbest_size}
        if self._model.algorithm == "bpe":
            if not 0 <= alpha < float("inf"):
                raise ArgumentError(f"alpha={alpha}: expected a number from 0 up")
            how = {"dropout": min(alpha, 1.0)}

        def sample(text: str | bytes, ends: dict[str, Any]) -> Encoding:
            found = tokenizer.sample_encode(text, n=1, seed=_next_seed(), errors="replace", **how, **ends)
            return found[0]

        return sample

    def _options(
        self,
        return_type: Any,
        out_type: Any,
        add_bos: bool | None,
        add_eos: bool | None,
        reverse: bool | None,
        emit_unk_piece: bool | None,
    ) -> Options:
        return Options(
            _chosen_type(return_type, out_type, self._return_type),
            bool(self._add_bos if add_bos is None else add_bos),
            bool(self._add_eos if add_eos is None else add_eos),
            bool(self._reverse if reverse is None else reverse),
            bool(self._emit_unk_piece if emit_unk_piece is None else emit_unk_piece),
        )

    def _check(self, options: Options) -> None:
        if options.return_type in (*_PROTOS, "offset_mapping") and any(options[1:]):
            raise UnsupportedCallError(
                "add_bos, add_eos, reverse and emit_unk_piece are not for protos and offset mappings"
            )
        if options.emit_unk_piece and options.return_type in (str, bytes) and self._model.unk_id < 0:
            raise ArgumentError("emit_unk_piece: the model has no unknown piece")

    def _threads(self, num_threads: int | None, thread_pool: Any) -> int | None:
        if thread_pool is not None:
            num_threads = thread_pool.num_threads()
        elif num_threads is None:
            num_threads = self._num_threads
        if not isinstance(num_threads, int):
            raise ArgumentTypeError(f"num_threads={num_threads!r}: expected an int")
        return None if num_threads < 0 else max(1, min(num_threads, 1024))

    def _shown(self, encoding: Encoding, options: Options, return_bytes: bool = False) -> Any:
        """One encoding as a call returns it."""
        kind = options.return_type
        if kind is int:
            return list(encoding)
        if kind == "numpy":
            return frozen(encoding.ids, np.int32)
        pieces = encoding.tokens
        if kind in (str, bytes):
            if options.emit_unk_piece:
                # Unknown text that reads as a control piece stays as it is, as in the library.
                unknown = self._model.unk_id
                shown = self._model.pieces[unknown]
                pieces = [shown if self.PieceToId(piece) == unknown else piece for piece in pieces]
            return pieces if kind is str else [piece.encode() for piece in pieces]
        if kind == "offset_mapping":
            spans = encoding.spans_in("bytes" if return_bytes else "characters")
            return {
                "ids": list(encoding),
                "pieces": [piece.encode() for piece in pieces] if return_bytes else pieces,
                "offsets": list(map(tuple, spans.tolist())),
            }
        return self._proto(self._immutable(encoding, pieces), kind)

    def _immutable(self, encoding: Encoding, pieces: list[str]) -> Any:
        from ._sentencepiece_text import ImmutablePiece, ImmutableText

        spans = encoding.spans_in("characters").tolist()
        rows = zip(pieces, encoding, encoding.surfaces, spans, strict=True)
        text = encoding.texts[0] if encoding.texts else ""
        parts = tuple(ImmutablePiece(piece, number, surface, *span) for piece, number, surface, span in rows)
        return ImmutableText(str(text), parts, encoding.score or 0.0, self._bare(parts))

    def _bare(self, parts: Iterable[Any]) -> frozenset[int]:
        """Positions of pieces that messages give no surface: of the bytes of a character only the last one has one."""
        types = self._model.types
        found = []
        missing = 0  # bytes of an open character
        for place, part in enumerate(parts):
            kind = types[part.id] if part.id < len(types) else None
            if kind == PieceType.BYTE:
                byte = int(part.piece[3:5], 16)
                missing = missing - 1 if missing else (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
                if missing:
                    found.append(place)
            elif kind == PieceType.CONTROL:
                found.append(place)
        return frozenset(found)

    def _proto(self, text: Any, kind: str) -> Any:
        if kind == "immutable_proto":
            return text
        from ._sentencepiece_text import message

        made = message(text)
        return made if kind == "proto" else made.SerializeToString()

    def EncodeAsPieces(self, input: Any, **kwargs: Any) -> Any:
        """Encode as strings; see :meth:`Encode`."""
        return self.Encode(input, return_type=str, **kwargs)

    def EncodeAsIds(self, input: Any, **kwargs: Any) -> Any:
        """Encode as ids; see :meth:`Encode`."""
        return self.Encode(input, return_type=int, **kwargs)

    def EncodeAsNumpy(self, input: Any, **kwargs: Any) -> Any:
        """Encode as arrays of ids; see :meth:`Encode`."""
        return self.Encode(input, return_type="numpy", **kwargs)

    def EncodeAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode as protobuf messages; see :meth:`Encode`."""
        return self.Encode(input, return_type="proto", **kwargs)

    def EncodeAsSerializedProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode as protobuf messages in bytes; see :meth:`Encode`."""
        return self.Encode(input, return_type="serialized_proto", **kwargs)

    def EncodeAsImmutableProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode as plain objects; see :meth:`Encode`."""
        return self.Encode(input, return_type="immutable_proto", **kwargs)

    def EncodeAsOffsetMapping(self, input: Any, **kwargs: Any) -> Any:
        """Encode as dictionaries with offsets; see :meth:`Encode`."""
        return self.Encode(input, return_type="offset_mapping", **kwargs)

    # ------------------------------------------------------------------------------------ other segmentations

    def SampleEncodeAsPieces(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as strings; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, str, kwargs)

    def SampleEncodeAsIds(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as ids; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, int, kwargs)

    def SampleEncodeAsNumpy(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as arrays of ids; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, "numpy", kwargs)

    def SampleEncodeAsProto(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as protobuf messages; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, "proto", kwargs)

    def SampleEncodeAsSerializedProto(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as protobuf messages in bytes; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, "serialized_proto", kwargs)

    def SampleEncodeAsImmutableProto(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Draw segmentations, as plain objects; see :meth:`Encode`."""
        return self._sample(input, nbest_size, alpha, "immutable_proto", kwargs)

    def _sample(self, input: Any, nbest_size: int | None, alpha: float | None, kind: Any, kwargs: dict[str, Any]) -> Any:
        return self.Encode(
            input, nbest_size=nbest_size, alpha=alpha, return_type=kind, enable_sampling=True, **kwargs
        )

    def SampleEncodeAndScore(
        self,
        input: Any,
        out_type: Any = None,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        num_samples: int | None = None,
        alpha: float | None = None,
        wor: bool | None = None,
        include_best: bool | None = None,
        return_type: Any = None,
    ) -> Any:
        """Draw segmentations by a unigram model, with their scores.

        Parameters
        ----------
        input
            str or bytes, or a list of these.
        out_type, return_type, add_bos, add_eos, reverse, emit_unk_piece
            As those of :meth:`Encode`.
        num_samples
            How many; 1 by default.
        alpha
            As that of :meth:`Encode`; 1 by default.
        wor, include_best
            Without replacement: not supported.

        Returns
        -------
        list of (segmentation, score)
            For each text.
        """
        if wor or include_best:
            raise UnsupportedCallError("wor and include_best: samples without replacement are not supported")
        options = self._options(return_type, out_type, add_bos, add_eos, reverse, emit_unk_piece)
        self._check(options)
        count = 1 if num_samples is None else num_samples
        if count < 1:
            raise ArgumentError(f"num_samples={num_samples}: expected 1 or more")

        def one(text: Any) -> list[tuple[Any, float | None]]:
            found = self.tokenizer.sample_encode(
                _checked_text(text), n=count, alpha=1.0 if alpha is None else alpha, seed=_next_seed(),
                errors="replace", **options.ends,
            )  # fmt: skip
            return [(self._shown(encoding, options), encoding.score) for encoding in found]

        return [one(text) for text in input] if isinstance(input, list) else one(input)

    def NBestEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        nbest_size: int | None = None,
        return_type: Any = None,
        out_type: Any = None,
    ) -> Any:
        """Return the best segmentations by a unigram model.

        Parameters
        ----------
        input
            str or bytes, or a list of these.
        add_bos, add_eos, reverse, emit_unk_piece, return_type, out_type
            As those of :meth:`Encode`, without offset mappings.
        nbest_size
            How many, up to 512.

        Returns
        -------
        list, or a protobuf message or object with a field `nbests`
            For each text.
        """
        options = self._options(return_type, out_type, add_bos, add_eos, reverse, emit_unk_piece)
        if options.return_type == "offset_mapping":
            raise ArgumentError("return_type='offset_mapping' is not for NBestEncode")
        self._check(options)
        size = max(1, self._nbest_size if nbest_size is None else nbest_size)

        def one(text: Any) -> Any:
            found = self.tokenizer.nbest_encode(_checked_text(text), size, errors="replace", **options.ends)
            if options.return_type not in _PROTOS:
                return [self._shown(encoding, options) for encoding in found]
            from ._sentencepiece_text import ImmutableNBest, nbest_message

            if size == 1:  # the library does not score the only one
                found = [encoding.with_score(0.0) for encoding in found]
            texts = [self._immutable(encoding, encoding.tokens) for encoding in found]
            if options.return_type == "immutable_proto":
                return ImmutableNBest(tuple(texts))
            made = nbest_message(texts)
            return made if options.return_type == "proto" else made.SerializeToString()

        return [one(text) for text in input] if isinstance(input, list) else one(input)

    def NBestEncodeAsPieces(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as strings; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type=str, **kwargs)

    def NBestEncodeAsIds(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as ids; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type=int, **kwargs)

    def NBestEncodeAsNumpy(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as arrays of ids; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type="numpy", **kwargs)

    def NBestEncodeAsProto(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as a protobuf message; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type="proto", **kwargs)

    def NBestEncodeAsSerializedProto(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as a protobuf message in bytes; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type="serialized_proto", **kwargs)

    def NBestEncodeAsImmutableProto(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the best segmentations as a plain object; see :meth:`NBestEncode`."""
        return self.NBestEncode(input, nbest_size=nbest_size, return_type="immutable_proto", **kwargs)

    def CalculateEntropy(self, input: Any, alpha: float, num_threads: int | None = None) -> Any:
        """Return the entropy of the distribution that samples are drawn from, in nats.

        Parameters
        ----------
        input
            str or bytes, or a list of these.
        alpha
            As that of :meth:`Encode`.
        num_threads
            Not used.
        """
        if isinstance(input, list):
            return [self.CalculateEntropy(text, alpha) for text in input]
        return self.tokenizer.entropy(_checked_text(input), alpha=alpha, errors="replace")

    def ParallelEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        chunk_len: int | None = None,
        num_threads: int | None = None,
        thread_pool: Any = None,
        return_type: Any = None,
        out_type: Any = None,
    ) -> Any:
        """Encode long texts; the result is that of :meth:`Encode`, whatever the length of chunks.

        Parameters
        ----------
        input, add_bos, add_eos, reverse, emit_unk_piece, num_threads, thread_pool, return_type, out_type
            As those of :meth:`Encode`, without offset mappings.
        chunk_len
            Has to be positive, and is not used.
        """
        if not isinstance(chunk_len, int) or chunk_len <= 0:
            raise ArgumentError(f"chunk_len={chunk_len!r}: expected a positive number")
        if _chosen_type(return_type, out_type, self._return_type) == "offset_mapping":
            raise ArgumentError("return_type='offset_mapping' is not for ParallelEncode")
        return self.Encode(
            input, add_bos, add_eos, reverse, emit_unk_piece, False,
            num_threads=num_threads, thread_pool=thread_pool, return_type=return_type, out_type=out_type,
        )  # fmt: skip

    def ParallelEncodeAsPieces(self, input: Any, **kwargs: Any) -> Any:
        """Encode long texts as strings; see :meth:`ParallelEncode`."""
        return self.ParallelEncode(input, return_type=str, **kwargs)

    def ParallelEncodeAsIds(self, input: Any, **kwargs: Any) -> Any:
        """Encode long texts as ids; see :meth:`ParallelEncode`."""
        return self.ParallelEncode(input, return_type=int, **kwargs)

    def ParallelEncodeAsNumpy(self, input: Any, **kwargs: Any) -> Any:
        """Encode long texts as arrays of ids; see :meth:`ParallelEncode`."""
        return self.ParallelEncode(input, return_type="numpy", **kwargs)

    def ParallelEncodeAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode long texts as protobuf messages; see :meth:`ParallelEncode`."""
        return self.ParallelEncode(input, return_type="proto", **kwargs)

    # ------------------------------------------------------------------------------------------------ decoding

    def Decode(
        self,
        input: Any,
        return_type: Any = None,
        out_type: Any = None,
        num_threads: int | None = None,
        thread_pool: Any = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """Return the text of ids or pieces.

        Parameters
        ----------
        input
            An id, a piece, a sequence of one of these, or a sequence of sequences.
        return_type, out_type
            str (which gives bytes for pieces in bytes), bytes, "proto", "serialized_proto", "immutable_proto" or
            "offset_mapping".
        num_threads, thread_pool
            Not used.
        return_bytes
            Of offset mappings: text and pieces as bytes, and offsets in bytes; so too if pieces are given as bytes.

        Raises
        ------
        TokenRangeError
            An id is not in the vocabulary.
        ArgumentError, ArgumentTypeError
            An argument cannot be used.
        """
        kind = _chosen_type(return_type, out_type, str)
        if return_bytes is not None and kind != "offset_mapping":
            raise ArgumentError("return_bytes is for return_type='offset_mapping' only")
        self._threads(num_threads, thread_pool)
        if kind in (int, "numpy"):
            raise ArgumentError(f"return_type={kind!r}: expected a form of text")
        if input is None or (isinstance(input, str | bytes) and not input):
            input = []
        if not _is_sequence(input):
            input = [input]
        if isinstance(input, np.ndarray):
            if input.ndim > 2:
                raise ArgumentTypeError(f"input: expected ids in one or two dimensions, got {input.ndim}")
            is_batch = input.ndim == 2
        else:
            input = [input[number] for number in range(len(input))]
            is_batch = len(input) > 0 and _is_sequence(input[0])
        rows = input if is_batch else [input]
        first: Any = next((row for row in rows if len(row)), ())
        is_pieces = len(first) > 0 and isinstance(first[0], str | bytes)
        if is_batch and kind is str and not is_pieces:
            return self.tokenizer.decode_batch([self._ids(row) for row in rows])
        found = [self._decoded(row, is_pieces and len(row) > 0, kind, return_bytes) for row in rows]
        return found if is_batch else found[0]

    def _decoded(self, given: Any, is_pieces: bool, kind: Any, return_bytes: bool | None) -> Any:
        decoder = self.tokenizer.decoder
        assert isinstance(decoder, PieceDecoder)
        if is_pieces:
            if kind == "offset_mapping" and isinstance(given[0], bytes):
                return_bytes = True
            pieces = [_piece_string(piece, number) for number, piece in enumerate(given)]
            if kind in (str, bytes):
                text = decoder.decode_tokens(pieces)
                return text.encode() if kind is bytes or isinstance(given[0], bytes) else text
            found = [self.tokenizer.token_to_id(piece) for piece in pieces]
            ids = [self._model.unk_id if number is None else number for number in found]
            text, surfaces = decoder.decode_aligned(zip(pieces, found, strict=True))
        else:
            ids = self._ids(given).tolist()
            if kind in (str, bytes):
                text = self.tokenizer.decode(ids)
                return text if kind is str else text.encode()
            pieces = [self._pieces[number] for number in ids]
            text, surfaces = decoder.decode_aligned(zip(pieces, ids, strict=True))
        ends = np.cumsum([len(surface) for surface in surfaces], dtype=np.int64).tolist()
        spans = list(zip([0, *ends], ends, strict=False))
        if kind == "offset_mapping":
            if return_bytes:
                positions = utf8_positions("".join(surfaces)).tolist()
                return {
                    "text": text.encode(),
                    "ids": ids,
                    "pieces": [piece.encode() for piece in pieces],
                    "offsets": [(positions[begin], positions[end]) for begin, end in spans],
                }
            return {"text": text, "ids": ids, "pieces": pieces, "offsets": spans}
        from ._sentencepiece_text import ImmutablePiece, ImmutableText

        rows = zip(pieces, ids, surfaces, spans, strict=True)
        parts = tuple(ImmutablePiece(piece, number, surface, *span) for piece, number, surface, span in rows)
        return self._proto(ImmutableText(text, parts, counted="".join(surfaces)), kind)

    def DecodePieces(self, input: Any, return_type: Any = None, **kwargs: Any) -> Any:
        """Return the text of pieces; see :meth:`Decode`."""
        return self.Decode(input, return_type=return_type, **kwargs)

    def DecodeIds(self, input: Any, return_type: Any = None, **kwargs: Any) -> Any:
        """Return the text of ids; see :meth:`Decode`."""
        return self.Decode(input, return_type=return_type, **kwargs)

    def DecodePiecesAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of pieces as a protobuf message; see :meth:`Decode`."""
        return self.Decode(input, return_type="proto", **kwargs)

    def DecodeIdsAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of ids as a protobuf message; see :meth:`Decode`."""
        return self.Decode(input, return_type="proto", **kwargs)

    def DecodePiecesAsSerializedProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of pieces as a protobuf message in bytes; see :meth:`Decode`."""
        return self.Decode(input, return_type="serialized_proto", **kwargs)

    def DecodeIdsAsSerializedProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of ids as a protobuf message in bytes; see :meth:`Decode`."""
        return self.Decode(input, return_type="serialized_proto", **kwargs)

    def DecodePiecesAsImmutableProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of pieces as a plain object; see :meth:`Decode`."""
        return self.Decode(input, return_type="immutable_proto", **kwargs)

    def DecodeIdsAsImmutableProto(self, input: Any, **kwargs: Any) -> Any:
        """Return the text of ids as a plain object; see :meth:`Decode`."""
        return self.Decode(input, return_type="immutable_proto", **kwargs)

    # ----------------------------------------------------------------------------------------------- normalizing

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """Return a text, or each of a list, as the model sees it.

        Parameters
        ----------
        input
            str or bytes, or a list of these.
        with_offsets
            Return the text and, for each of its characters (or bytes, for bytes) and its end, where in the given one
            that comes from.
        """
        if isinstance(input, list):
            return [self.Normalize(text, with_offsets) for text in input]
        given = _checked_text(input)
        text = given if isinstance(given, str) else decoded_bytewise(given)
        if not with_offsets:
            normalized = self.tokenizer.normalize(text)
            return normalized if isinstance(given, str) else normalized.encode()
        normalized, spans = self.tokenizer.normalize_aligned(text)
        offsets = [*spans[:, 0].tolist(), int(spans[-1, 1]) if len(spans) else 0]
        if isinstance(given, str):
            return normalized, offsets
        if not normalized and not text.strip():  # the library gives no offsets then, for bytes
            return b"", []
        positions = utf8_positions(text).tolist()
        lengths = np.diff(utf8_positions(normalized)).tolist()
        found = [positions[at] for at, length in zip(offsets, lengths, strict=False) for _ in range(length)]
        return normalized.encode(), [*found, positions[offsets[-1]]]

    # ---------------------------------------------------------------------------------------------- vocabulary

    @cached_property
    def _pieces(self) -> list[str]:
        vocabulary = self.tokenizer.decoder.vocabulary
        return vocabulary.tokens(np.arange(vocabulary.size))

    def GetPieceSize(self) -> int:
        """Return the number of pieces."""
        return self.tokenizer.decoder.vocabulary.size

    def PieceToId(self, piece: Any) -> Any:
        """Return the id of a piece, or of each of a sequence; that of the unknown piece for other strings.

        Parameters
        ----------
        piece
            str or bytes, or a sequence of these.
        """
        if isinstance(piece, str | bytes):
            number = self.tokenizer.token_to_id(_piece_string(piece, None))
            return self._model.unk_id if number is None else number
        if not _is_sequence(piece):
            raise ArgumentTypeError(f"piece: expected str or bytes, got {type(piece).__name__}")
        return [self.PieceToId(_piece_string(one, number)) for number, one in enumerate(piece)]

    def IdToPiece(self, id: Any) -> Any:
        """Return the piece of an id, or of each of a sequence.

        Parameters
        ----------
        id
            An id, or a sequence of ids.

        Raises
        ------
        TokenRangeError
            An id is not in the vocabulary.
        """
        return self._each(id, lambda number: self._pieces[number])

    def GetScore(self, id: Any) -> Any:
        """Return the score of an id, or of each of a sequence.

        Parameters
        ----------
        id
            As that of :meth:`IdToPiece`.
        """
        scores = self._model.scores
        return self._each(id, lambda number: scores[number] if number < len(scores) else 0.0)

    def IsUnknown(self, id: Any) -> Any:
        """Return whether an id, or each of a sequence, is that of the unknown piece.

        Parameters
        ----------
        id
            As that of :meth:`IdToPiece`.
        """
        return self._each(id, self._is_of_type(PieceType.UNKNOWN))

    def IsControl(self, id: Any) -> Any:
        """Return whether an id, or each of a sequence, is that of a control piece.

        Parameters
        ----------
        id
            As that of :meth:`IdToPiece`.
        """
        return self._each(id, self._is_of_type(PieceType.CONTROL))

    def IsUnused(self, id: Any) -> Any:
        """Return whether an id, or each of a sequence, is that of an unused piece.

        Parameters
        ----------
        id
            As that of :meth:`IdToPiece`.
        """
        return self._each(id, self._is_of_type(PieceType.UNUSED))

    def IsByte(self, id: Any) -> Any:
        """Return whether an id, or each of a sequence, is that of a byte piece.

        Parameters
        ----------
        id
            As that of :meth:`IdToPiece`.
        """
        return self._each(id, self._is_of_type(PieceType.BYTE))

    def _is_of_type(self, kind: PieceType) -> Callable[[int], bool]:
        types = self._model.types
        return lambda number: number < len(types) and types[number] == kind

    def _each(self, given: Any, one: Callable[[int], Any]) -> Any:
        if _is_sequence(given):
            return [one(number) for number in self._ids(given).tolist()]
        return one(int(self._ids([given])[0]))

    def _ids(self, given: Any) -> NDArray[np.int64]:
        """Ids as an array, all of them in the vocabulary."""
        values: NDArray[Any] = given
        if not isinstance(given, np.ndarray):
            given = list(given)
            values = np.array(given) if given else np.empty(0, np.int64)
            if values.dtype.kind not in "iu" or values.ndim != 1:  # say which one is wrong
                values = np.array(_whole_numbers(given), dtype=np.int64)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ArgumentTypeError(f"expected whole numbers in one dimension, got {values.dtype} in {values.ndim}")
        outside = (values < 0) | (values >= self.GetPieceSize())
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise TokenRangeError(
                f"piece id {values[place]} at position {place} is out of range: expected 0 to {self.GetPieceSize() - 1}"
            )
        return values.astype(np.int64)

    def unk_id(self) -> int:
        """Return the id of the unknown piece, -1 for none."""
        return self._model.unk_id

    def bos_id(self) -> int:
        """Return the id of the piece for the beginning of a text, -1 for none."""
        return self._model.bos_id

    def eos_id(self) -> int:
        """Return the id of the piece for the end of a text, -1 for none."""
        return self._model.eos_id

    def pad_id(self) -> int:
        """Return the id of the piece for padding, -1 for none."""
        return self._model.pad_id

    def SetVocabulary(self, valid_vocab: Iterable[str]) -> bool:
        """Use only some pieces from now on, as :meth:`jittok.Tokenizer.with_vocabulary` says; True is returned always.

        Parameters
        ----------
        valid_vocab
            The pieces.
        """
        self._use(self.tokenizer.with_vocabulary(valid_vocab))
        return True

    def ResetVocabulary(self) -> bool:
        """Use all pieces from now on; True is returned always."""
        self._use(self.tokenizer.with_vocabulary(None))
        return True

    def LoadVocabulary(self, filename: str | os.PathLike[str], threshold: int) -> bool:
        """Use only the pieces of a file from now on; True is returned always.

        Parameters
        ----------
        filename
            In each line a piece and, behind a tabulator, how often it was seen (once if there is nothing).
        threshold
            Pieces that were seen less often are not used.

        Raises
        ------
        MissingFileError, ArgumentError
            The file cannot be read, or has something else there.
        """
        path = Path(filename)
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise MissingFileError(f"{path}: cannot be read: {error}") from None
        pieces = []
        for number, line in enumerate(lines, 1):
            piece, _, frequency = line.partition("\t")
            try:
                count = int(frequency.split("\t")[0]) if frequency else 1
            except ValueError:
                raise ArgumentError(f"{path}, line {number}: expected a whole number, got {frequency!r}") from None
            if piece and count >= threshold:
                pieces.append(piece)
        return self.SetVocabulary(pieces)

    def __len__(self) -> int:
        return self.GetPieceSize()

    def __getitem__(self, piece: str) -> int:
        return self.PieceToId(piece)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------ other spellings

    Tokenize = tokenize = encode = Encode
    Detokenize = detokenize = decode = Decode
    load = Load
    load_from_file = LoadFromFile
    load_from_serialized_proto = LoadFromSerializedProto
    encode_as_pieces = EncodeAsPieces
    encode_as_ids = EncodeAsIds
    encode_as_numpy = EncodeAsNumpy
    encode_as_proto = EncodeAsProto
    encode_as_serialized_proto = EncodeAsSerializedProto
    encode_as_immutable_proto = EncodeAsImmutableProto
    encode_as_offset_mapping = EncodeAsOffsetMapping
    sample_encode_as_pieces = SampleEncodeAsPieces
    sample_encode_as_ids = SampleEncodeAsIds
    sample_encode_as_numpy = SampleEncodeAsNumpy
    sample_encode_as_proto = SampleEncodeAsProto
    sample_encode_as_serialized_proto = SampleEncodeAsSerializedProto
    sample_encode_as_immutable_proto = SampleEncodeAsImmutableProto
    sample_encode_and_score = SampleEncodeAndScore
    nbest_encode = NBestEncode
    nbest_encode_as_pieces = NBestEncodeAsPieces
    nbest_encode_as_ids = NBestEncodeAsIds
    nbest_encode_as_numpy = NBestEncodeAsNumpy
    nbest_encode_as_proto = NBestEncodeAsProto
    nbest_encode_as_serialized_proto = NBestEncodeAsSerializedProto
    nbest_encode_as_immutable_proto = NBestEncodeAsImmutableProto
    calculate_entropy = CalculateEntropy
    parallel_encode = ParallelEncode
    parallel_encode_as_pieces = ParallelEncodeAsPieces
    parallel_encode_as_ids = ParallelEncodeAsIds
    parallel_encode_as_numpy = ParallelEncodeAsNumpy
    parallel_encode_as_proto = ParallelEncodeAsProto
    decode_pieces = DecodePieces
    decode_ids = DecodeIds
    decode_pieces_as_proto = DecodePiecesAsProto
    decode_ids_as_proto = DecodeIdsAsProto
    decode_pieces_as_serialized_proto = DecodePiecesAsSerializedProto
    decode_ids_as_serialized_proto = DecodeIdsAsSerializedProto
    decode_pieces_as_immutable_proto = DecodePiecesAsImmutableProto
    decode_ids_as_immutable_proto = DecodeIdsAsImmutableProto
    normalize = Normalize
    get_piece_size = piece_size = vocab_size = GetPieceSize
    piece_to_id = PieceToId
    id_to_piece = IdToPiece
    get_score = GetScore
    is_unknown = IsUnknown
    is_control = IsControl
    is_unused = IsUnused
    is_byte = IsByte
    set_vocabulary = SetVocabulary
    reset_vocabulary = ResetVocabulary
    load_vocabulary = LoadVocabulary


def _chosen_type(return_type: Any, out_type: Any, default: Any) -> Any:
    if out_type is not None:
        if return_type is not None:
            raise ArgumentError("return_type and out_type are the same argument; pass one of them")
        return_type = out_type
    if return_type is None:
        return default
    if return_type not in _RETURN_TYPES:
        names = ", ".join(kind if isinstance(kind, str) else kind.__name__ for kind in _RETURN_TYPES)
        raise ArgumentError(f"return_type={return_type!r}: expected one of {names}")
    return return_type


def _refuse_models(kwargs: dict[str, Any]) -> None:
    for name in ("model_file", "model_proto"):
        if name in kwargs:
            raise ArgumentError(f"{name}: the model is the first argument here")


def _checked_text(text: Any) -> str | bytes:
    if not isinstance(text, str | bytes):
        raise ArgumentTypeError(f"text: expected str or bytes, got {type(text).__name__}")
    return text


def _is_sequence(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, str | bytes)


def _piece_string(piece: Any, number: int | None) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, bytes):
        return piece.decode("utf-8", "surrogateescape")
    where = "piece" if number is None else f"piece {number}"
    raise ArgumentTypeError(f"{where}: expected str or bytes, got {type(piece).__name__}")


def _whole_numbers(given: Sequence[Any]) -> Sequence[int]:
    for number, value in enumerate(given):
        if not isinstance(value, int | np.integer):
            raise ArgumentTypeError(f"id {number}: expected a whole number, got {type(value).__name__}")
        if not -(2**63) <= value < 2**63:
            raise TokenRangeError(f"piece id {value} at position {number} is out of range")
    return given
