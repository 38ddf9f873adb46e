"""What encoding gives back: flat arrays of ids, with views of single texts.

:class:`EncodedTexts` is what the engine returns, :class:`Encoding` one text with everything a caller may
ask about it, :class:`Batch` many texts. Arrays are the native form and read-only; Python lists are made
only on request.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from .text import SLACK, text_from

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

Unit = Literal["characters", "bytes"]
Side = Literal["left", "right"]


class EncodedTexts(NamedTuple):
    """The ids of many texts, one after another, without special tokens around them.

    Attributes
    ----------
    ids
        int32[total].
    indptr
        int64[n + 1]. Text `i` is ``ids[indptr[i]:indptr[i + 1]]``.
    spans
        int64[total, 2], begin and end of each token in codepoints of its own text, or None.
    word_ids
        int32[total], the number of the token's pre-token inside its text, or None.
    shown
        By position in `ids`, the strings of tokens that do not follow from their ids and spans: unknown pieces that
        are a part of what a character was normalised to, and added tokens as they were found in the text, where that is not
        their content. None if there are none, or without spans.
    """

    ids: NDArray[np.int32]
    indptr: NDArray[np.int64]
    spans: NDArray[np.int64] | None = None
    word_ids: NDArray[np.int32] | None = None
    shown: dict[int, str] | None = None


def frozen(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return `array` C-contiguous, of `dtype` and read-only, without copying where it already is."""
    array = np.ascontiguousarray(array, dtype=dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def utf8_positions(text: str) -> NDArray[np.int64]:
    """Return the UTF-8 byte position of every codepoint boundary of `text`.

    Parameters
    ----------
    text
        Any string; a lone surrogate counts as three bytes.

    Returns
    -------
    int64[len(text) + 1]
    """
    codepoints = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lengths = 1 + (codepoints >= 0x80).astype(np.int64) + (codepoints >= 0x800) + (codepoints >= 0x10000)
    positions = np.zeros(len(text) + 1, dtype=np.int64)
    np.cumsum(lengths, out=positions[1:])
    return positions


def text_of(source: TextSource, document: int) -> Any:
    """Return one text of many as str, or as the tuple of words that it was given as."""
    if isinstance(source, list):
        text = source[document]
        if isinstance(text, tuple):
            return text
        try:
            return text.encode().decode()
        except UnicodeEncodeError:
            return text_from(text, surrogates="replace").data[:-SLACK].tobytes().decode()
    data, indptr = source
    return data[int(indptr[document]) : int(indptr[document + 1])].tobytes().decode("utf-8", "replace")


def _texts_between(source: TextSource, start: int, stop: int) -> TextSource:
    """Return a range of many texts."""
    return source[start:stop] if isinstance(source, list) else (source[0], source[1][start : stop + 1])


#: What the tokens of one sequence point into: its text, or its words when they were given one by one.
SourceText = str | tuple[str, ...] | None

#: Many texts: UTF-8 data uint8[m] and row pointers int64[n + 1], or strings.
TextSource = tuple[NDArray[np.uint8], NDArray[np.int64]] | list[str] | list[tuple[str, ...]]


class Encoding(Sequence[int]):
    """The ids of one text, or of a pair of texts, and where they come from.

    It behaves as a sequence of ids: ``len(enc)``, ``enc[i]``, ``list(enc)``, ``np.asarray(enc)`` and
    ``enc == [15339, 1917]`` work. All arrays are read-only.

    Parameters
    ----------
    ids
        int32[n].
    spans
        int64[n, 2] in characters, or None.
    word_ids, sequence_ids, type_ids, special_tokens_mask, attention_mask
        [n] each, or None for their usual values (no words, all of the first text, type 0, no special
        tokens, all attended to).
    overflowing
        The further windows of a truncated text.
    texts
        The text of sequence 0 and, for a pair, of sequence 1: needed for byte spans and for tokens that
        take white space of the text with them.
    vocabulary
        Gives the token strings.
    matched
        What tokens are shown as, by position, where that does not, or no longer, follow from their ids and spans.
    score
        See :attr:`score`.

    Attributes
    ----------
    ids
        int32[n].
    """

    __slots__ = (
        "_attention_mask",
        "_later_words",
        "_matched",
        "_overflowing",
        "_score",
        "_sequence_ids",
        "_spans",
        "_special_tokens_mask",
        "_texts",
        "_tokens",
        "_type_ids",
        "_vocabulary",
        "_word_ids",
        "ids",
    )

    ids: NDArray[np.int32]

    def __init__(
        self,
        ids: NDArray[np.int32],
        spans: NDArray[np.int64] | None = None,
        word_ids: NDArray[np.int32] | None = None,
        *,
        sequence_ids: NDArray[np.int32] | None = None,
        type_ids: NDArray[np.int32] | None = None,
        special_tokens_mask: NDArray[np.uint8] | None = None,
        attention_mask: NDArray[np.uint8] | None = None,
        overflowing: Sequence[Encoding] = (),
        texts: tuple[SourceText, ...] = (),
        vocabulary: Vocabulary | None = None,
        matched: Mapping[int, str] | None = None,
        later_words: tuple[LaterWords, int] | None = None,
        score: float | None = None,
    ) -> None:
        self.ids = frozen(ids, np.int32)
        self._score = score
        self._later_words = later_words
        self._spans = None if spans is None else frozen(spans, np.int64)
        self._word_ids = None if word_ids is None else frozen(word_ids, np.int32)
        self._sequence_ids = None if sequence_ids is None else frozen(sequence_ids, np.int32)
        self._type_ids = None if type_ids is None else frozen(type_ids, np.int32)
        self._special_tokens_mask = None if special_tokens_mask is None else frozen(special_tokens_mask, np.uint8)
        self._attention_mask = None if attention_mask is None else frozen(attention_mask, np.uint8)
        self._overflowing = tuple(overflowing)
        self._texts = texts
        self._vocabulary = vocabulary
        self._matched = matched or {}
        self._tokens: tuple[str, ...] | None = None

    # ------------------------------------------------------------------------------------ what is known

    @property
    def tokens(self) -> list[str]:
        """The token strings, as the vocabulary writes them.

        An added token that was found in the text is shown as it was found, as the reference does: with the white space
        around it that it takes (`lstrip`, `rstrip`), and normalised if it was looked for in normalised text.
        """
        if self._tokens is None:
            if self._vocabulary is None:
                raise ArgumentError("this Encoding was made without a vocabulary, so it has no token strings")
            self._tokens = tuple(self._vocabulary.tokens_in_text(self.ids, self.spans, self._slice, self._matched))
        return list(self._tokens)

    @property
    def surfaces(self) -> list[str]:
        """The text of each token: what is under its span, "" for tokens that a template put in.

        Raises
        ------
        ArgumentError
            This encoding has no spans, or not its text.
        """
        if self._spans is None:
            raise ArgumentError("this Encoding has no spans; encode with spans=True")
        found = []
        self._need_texts("surfaces")
        sequences = self.sequence_ids.tolist()
        words = self.word_ids.tolist() if any(isinstance(text, tuple) for text in self._texts) else []
        for row, (begin, end) in enumerate(self._spans.tolist()):
            text = self._texts[sequences[row]] if 0 <= sequences[row] < len(self._texts) else ""
            if isinstance(text, tuple):
                text = text[words[row]]
            found.append("" if text is None else text[begin:end])
        return found

    @property
    def texts(self) -> tuple[SourceText, ...]:
        """What was encoded: the text and, for a pair, the second one; empty if they were not kept."""
        return self._texts

    @property
    def score(self) -> float | None:
        """The score of the segmentation, where n-best encoding or a sample of a unigram model gave it."""
        return self._score

    def with_score(self, score: float | None) -> Encoding:
        """Return this encoding with a score.

        Parameters
        ----------
        score
            Its :attr:`score`.
        """
        import copy

        result = copy.copy(self)
        result._score = score
        return result

    @property
    def spans(self) -> NDArray[np.int64] | None:
        """int64[n, 2]: begin and end of each token in characters of the input text; None if not computed.

        A special token that a template put in has the span (0, 0). With a pair, the spans of the second
        text count from its own beginning; with words given one by one, from each word's beginning.
        """
        return self._spans

    def spans_in(self, unit: Unit = "characters") -> NDArray[np.int64]:
        """Return the spans in characters or in UTF-8 bytes.

        Parameters
        ----------
        unit
            "characters" (codepoints) or "bytes" (of the text encoded as UTF-8).

        Returns
        -------
        int64[n, 2]

        Raises
        ------
        ArgumentError
            The unit is another one, or this encoding has no spans, or not its text, as one from a pickled batch.
        """
        if self._spans is None:
            raise ArgumentError("this Encoding has no spans; encode with spans=True")
        if unit == "characters":
            return self._spans
        if unit != "bytes":
            raise ArgumentError(f"unit={unit!r}: expected 'characters' or 'bytes'")
        self._need_texts("byte spans")
        result = self._spans.copy()
        sequence_ids = self.sequence_ids
        for sequence, text in enumerate(self._texts):
            where = np.flatnonzero(sequence_ids == sequence)
            if isinstance(text, tuple):
                words = self.word_ids
                for word in np.unique(words[where]):
                    rows = where[words[where] == word]
                    result[rows] = utf8_positions(text[word])[result[rows]]
            elif text is not None:
                result[where] = utf8_positions(text)[result[where]]
        return frozen(result, np.int64)

    @property
    def type_ids(self) -> NDArray[np.int32]:
        """int32[n]: the type of each token, as the file's template says; 0 without one."""
        if self._type_ids is None:
            self._type_ids = frozen(np.zeros(len(self.ids)), np.int32)
        return self._type_ids

    @property
    def attention_mask(self) -> NDArray[np.uint8]:
        """uint8[n]: 1 for every token (padding would be 0; see :meth:`Batch.pad`)."""
        if self._attention_mask is None:
            self._attention_mask = frozen(np.ones(len(self.ids)), np.uint8)
        return self._attention_mask

    @property
    def special_tokens_mask(self) -> NDArray[np.uint8]:
        """uint8[n]: 1 for special tokens that the template added, 0 for those found in the text."""
        if self._special_tokens_mask is None:
            self._special_tokens_mask = frozen(np.zeros(len(self.ids)), np.uint8)
        return self._special_tokens_mask

    @property
    def word_ids(self) -> NDArray[np.int32]:
        """int32[n]: number of the pre-token (or of the given word) inside its text; -1 for special tokens."""
        if self._word_ids is None:
            if self._later_words is None:
                raise ArgumentError("this Encoding has no word ids; encode with spans=True")
            words, first = self._later_words
            self._word_ids = frozen(words.between(first, first + len(self.ids)), np.int32)
            self._later_words = None
        return self._word_ids

    @property
    def sequence_ids(self) -> NDArray[np.int32]:
        """int32[n]: 0 for the text, 1 for its pair, -1 for special tokens."""
        if self._sequence_ids is None:
            self._sequence_ids = frozen(-self.special_tokens_mask.astype(np.int32), np.int32)
        return self._sequence_ids

    @property
    def overflowing(self) -> list[Encoding]:
        """The further windows of a truncated text, in the reference's order; empty if all fitted."""
        return list(self._overflowing)

    # ------------------------------------------------------------------------------- behaves as a sequence

    def __len__(self) -> int:
        return len(self.ids)

    @overload  # type: ignore[override]
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> NDArray[np.int32]: ...
    def __getitem__(self, index: int | slice) -> int | NDArray[np.int32]:
        if isinstance(index, slice):
            return self.ids[index]
        return int(self.ids[operator.index(index)])

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is None or np.dtype(dtype) == self.ids.dtype:
            return self.ids.copy() if copy else self.ids
        if copy is False:
            raise ValueError(f"ids are int32; {np.dtype(dtype)} needs a copy")
        return self.ids.astype(dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Encoding):
            return bool(np.array_equal(self.ids, other.ids))
        if isinstance(other, list | tuple | np.ndarray):
            return len(other) == len(self.ids) and self.ids.tolist() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.ids[:8].tolist()))
        more = ", ..." if len(self.ids) > 8 else ""
        windows = f", {len(self._overflowing)} overflowing" if self._overflowing else ""
        return f"Encoding({len(self.ids)} tokens: [{shown}{more}]{windows})"

    def _repr_html_(self) -> str:
        """The text with its tokens painted on it, for notebooks."""
        from jittok.painting import as_html

        try:
            return as_html(self)
        except ArgumentError:
            import html

            return f"<code>{html.escape(repr(self))}</code>"

    def __reduce__(self) -> tuple[Any, ...]:
        # The vocabulary stays behind: it is megabytes, and all it is needed for are the token strings.
        tokens = self._tokens if self._vocabulary is None else tuple(self.tokens)
        fields = {
            "sequence_ids": self._sequence_ids,
            "type_ids": self._type_ids,
            "special_tokens_mask": self._special_tokens_mask,
            "attention_mask": self._attention_mask,
            "overflowing": self._overflowing,
            "texts": self._texts,
            "score": self._score,
        }
        words = self._word_ids if self._later_words is None else self.word_ids
        return _restore_encoding, (self.ids, self._spans, words, fields, tokens)

    def _need_texts(self, what: str) -> None:
        """Refuse `what` where tokens are from texts that were not kept."""
        n_texts = int(self.sequence_ids.max(initial=-1)) + 1
        if n_texts > len(self._texts) or any(text is None for text in self._texts[:n_texts]):
            raise ArgumentError(
                f"this Encoding was made without its text, so it has no {what}; a pickled Batch keeps no texts"
            )

    def _slice(self, row: int) -> str | None:
        """Return the piece of text under token `row`, or None where that is not known."""
        if self._spans is None:
            return None
        sequence = int(self.sequence_ids[row])
        if not 0 <= sequence < len(self._texts):
            return None
        text = self._texts[sequence]
        if isinstance(text, tuple):
            text = text[int(self.word_ids[row])]
        return None if text is None else text[int(self._spans[row, 0]) : int(self._spans[row, 1])]


def _restore_encoding(
    ids: NDArray[np.int32],
    spans: NDArray[np.int64] | None,
    word_ids: NDArray[np.int32] | None,
    fields: dict[str, Any],
    tokens: tuple[str, ...] | None,
) -> Encoding:
    encoding = Encoding(ids, spans, word_ids, **fields)
    encoding._tokens = tokens
    return encoding


class _Rectangle(NamedTuple):
    ids: NDArray[np.int32]
    mask: NDArray[np.bool_]


class PaddedBatch(_Rectangle):
    """Texts as one rectangle, for a model: the pair ``(ids, mask)``, which also has what else models take.

    Attributes
    ----------
    ids : int32[n, L]
        The ids, filled up.
    mask : bool[n, L]
        True where there is a token.
    type_ids : int32[n, L]
        The type of each token, 0 for padding.
    """

    type_ids: NDArray[np.int32]

    @classmethod
    def make(cls, ids: NDArray[np.int32], mask: NDArray[np.bool_], type_ids: NDArray[np.int32]) -> PaddedBatch:
        """A rectangle with types.

        Parameters
        ----------
        ids, mask, type_ids
            See above.
        """
        padded = cls(ids, mask)
        padded.type_ids = type_ids
        return padded

    @property
    def attention_mask(self) -> NDArray[np.int64]:
        """int64[n, L]: 1 where there is a token, 0 where there is padding."""
        return self.mask.astype(np.int64)

    @property
    def position_ids(self) -> NDArray[np.int64]:
        """int64[n, L]: the number of each token in its text, from 0 on; 0 for padding."""
        return np.where(self.mask, np.cumsum(self.mask, axis=1, dtype=np.int64) - 1, 0)

    def model_inputs(self, *names: str) -> dict[str, NDArray[np.int64]]:
        """Arrays of int64 by the names that transformers and ONNX exports give them.

        Parameters
        ----------
        *names
            Of "input_ids", "attention_mask", "position_ids", "token_type_ids"; none for the first two.
        """
        arrays = {
            "input_ids": self.ids,
            "attention_mask": self.mask,
            "position_ids": self.position_ids,
            "token_type_ids": self.type_ids,
        }
        unknown = [name for name in names if name not in arrays]
        if unknown:
            raise ArgumentError(f"model_inputs: {unknown[0]!r} is none of {', '.join(arrays)}")
        return {name: arrays[name].astype(np.int64) for name in names or ("input_ids", "attention_mask")}


class LaterWords:
    """Word ids that are made when they are first asked for: seldom needed, and dear to make with all else.

    Parameters
    ----------
    make
        Gives the word ids of all tokens of a batch.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], NDArray[np.int32]]) -> None:
        self._make: Callable[[], NDArray[np.int32]] | None = make
        self._made: NDArray[np.int32] | None = None

    def between(self, begin: int, end: int) -> NDArray[np.int32]:
        """Word ids of the tokens [begin, end) of the batch."""
        make = self._make
        if self._made is None and make is not None:
            self._made = make()
            self._make = None  # what it refers to is needed no more
        assert self._made is not None
        return self._made[begin:end]


class Batch(Sequence[Encoding]):
    """The ids of many texts in flat arrays (CSR, as in SciPy).

    ``len(batch)``, ``batch[i]`` (an :class:`Encoding`), ``batch[i:j]`` (a batch) and iteration work. All
    arrays are read-only, and views of single texts copy nothing. A pickled batch keeps the arrays, but neither the texts nor
    the vocabulary, so that it has no token strings, surfaces and byte spans.

    Parameters
    ----------
    ids
        int32[total].
    indptr
        int64[n + 1], rising from 0 to `total`.
    spans, word_ids, type_ids, special_tokens_mask
        int64[total, 2] and [total], or None where not computed.
    later_words
        Makes the word ids when they are asked for, and where those of this batch begin; instead of `word_ids`.
    sequence_ids
        int32[total], or None where there are no pairs.
    document_ids
        int64[n]: the number of the input text that each row is a window of, or None where row `i` is
        text `i`.
    vocabulary
        Gives the token strings.
    texts
        The input, as (uint8 data, int64 indptr) or strings; for pairs two of them. Empty if not kept.
    matched
        As in :class:`Encoding`, by position in `ids`.
    pad_id
        The default of :meth:`pad`.
    """

    __slots__ = (
        "_later_words",
        "_matched",
        "_pad_id",
        "_sequence_ids",
        "_texts",
        "_vocabulary",
        "_word_ids",
        "document_ids",
        "ids",
        "indptr",
        "spans",
        "special_tokens_mask",
        "type_ids",
    )

    def __init__(
        self,
        ids: NDArray[np.int32],
        indptr: NDArray[np.int64],
        spans: NDArray[np.int64] | None = None,
        word_ids: NDArray[np.int32] | None = None,
        *,
        type_ids: NDArray[np.int32] | None = None,
        special_tokens_mask: NDArray[np.uint8] | None = None,
        sequence_ids: NDArray[np.int32] | None = None,
        document_ids: NDArray[np.int64] | None = None,
        vocabulary: Vocabulary | None = None,
        texts: tuple[TextSource, ...] = (),
        matched: Mapping[int, str] | None = None,
        pad_id: int | None = None,
        later_words: tuple[LaterWords, int] | None = None,
    ) -> None:
        self._later_words = later_words
        self.ids: NDArray[np.int32] = frozen(ids, np.int32)
        self.indptr: NDArray[np.int64] = frozen(indptr, np.int64)
        self.spans: NDArray[np.int64] | None = None if spans is None else frozen(spans, np.int64)
        self._word_ids = None if word_ids is None else frozen(word_ids, np.int32)
        self.type_ids: NDArray[np.int32] | None = None if type_ids is None else frozen(type_ids, np.int32)
        self.special_tokens_mask: NDArray[np.uint8] | None = (
            None if special_tokens_mask is None else frozen(special_tokens_mask, np.uint8)
        )
        self.document_ids: NDArray[np.int64] | None = (
            None if document_ids is None else frozen(document_ids, np.int64)
        )
        self._sequence_ids = None if sequence_ids is None else frozen(sequence_ids, np.int32)
        self._vocabulary = vocabulary
        self._texts = texts
        self._matched = matched or {}
        self._pad_id = pad_id

    @property
    def word_ids(self) -> NDArray[np.int32] | None:
        """int32[total]: number of each token's pre-token inside its text, -1 for special tokens; None if not computed."""
        if self._word_ids is None and self._later_words is not None:
            words, first = self._later_words
            self._word_ids = frozen(words.between(first, first + len(self.ids)), np.int32)
            self._later_words = None
        return self._word_ids

    def _words_later(self, begin: int) -> tuple[LaterWords, int] | None:
        return None if self._later_words is None else (self._later_words[0], self._later_words[1] + begin)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @overload
    def __getitem__(self, index: int) -> Encoding: ...
    @overload
    def __getitem__(self, index: slice) -> Batch: ...
    def __getitem__(self, index: int | slice) -> Encoding | Batch:
        if isinstance(index, slice):
            return self._rows(index)
        row = operator.index(index)
        if not -len(self) <= row < len(self):
            raise IndexError(f"text {row} of a batch of {len(self)}")
        row %= len(self)
        begin, end = int(self.indptr[row]), int(self.indptr[row + 1])

        def part(array: Any) -> Any:
            return None if array is None else array[begin:end]

        return Encoding(
            self.ids[begin:end],
            part(self.spans),
            part(self._word_ids),
            later_words=self._words_later(begin),
            sequence_ids=part(self._sequence_ids),
            type_ids=part(self.type_ids),
            special_tokens_mask=part(self.special_tokens_mask),
            texts=self._text(row),
            vocabulary=self._vocabulary,
            matched=self._matched
            and {p - begin: self._matched[p] for p in range(begin, end) if p in self._matched},
        )

    def _rows(self, index: slice) -> Batch:
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise ArgumentError(f"batch[{start}:{stop}:{step}]: only a step of 1 is possible without copying")
        stop = max(start, stop)
        begin, end = int(self.indptr[start]), int(self.indptr[stop])

        def part(array: Any) -> Any:
            return None if array is None else array[begin:end]

        texts = self._texts
        if self.document_ids is None:
            texts = tuple(_texts_between(source, start, stop) for source in texts)
        return Batch(
            self.ids[begin:end],
            self.indptr[start : stop + 1] - begin,
            part(self.spans),
            part(self._word_ids),
            later_words=self._words_later(begin),
            type_ids=part(self.type_ids),
            special_tokens_mask=part(self.special_tokens_mask),
            sequence_ids=part(self._sequence_ids),
            document_ids=None if self.document_ids is None else self.document_ids[start:stop],
            vocabulary=self._vocabulary,
            texts=texts,
            matched={p - begin: text for p, text in self._matched.items() if begin <= p < end},
            pad_id=self._pad_id,
        )

    def _text(self, row: int) -> tuple[SourceText, ...]:
        document = row if self.document_ids is None else int(self.document_ids[row])
        return tuple(text_of(source, document) for source in self._texts)

    def __iter__(self) -> Iterator[Encoding]:
        for row in range(len(self)):
            yield self[row]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Batch):
            return np.array_equal(self.indptr, other.indptr) and np.array_equal(self.ids, other.ids)
        if isinstance(other, list | tuple):
            return len(other) == len(self) and all(self[i] == row for i, row in enumerate(other))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Batch({len(self)} texts, {len(self.ids)} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {
            "type_ids": self.type_ids,
            "special_tokens_mask": self.special_tokens_mask,
            "sequence_ids": self._sequence_ids,
            "document_ids": self.document_ids,
            "pad_id": self._pad_id,
        }
        return _restore_batch, (self.ids, self.indptr, self.spans, self.word_ids, fields)

    # ---------------------------------------------------------------------------------------- other forms

    def to_lists(self) -> list[list[int]]:
        """Return the ids as a list of lists of Python ints (slow: about 90 ns a token)."""
        flat = self.ids.tolist()
        bounds = self.indptr.tolist()
        return [flat[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]

    def to_arrow(self) -> Any:
        """Return the ids as a pyarrow ``ListArray<int32>`` that shares their memory.

        Returns
        -------
        pyarrow.ListArray
            A ``LargeListArray`` where the batch has 2**31 tokens or more.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise MissingDependencyError("to_arrow() needs pyarrow: pip install 'jittok[arrow]'") from None
        values = pyarrow.Array.from_buffers(pyarrow.int32(), len(self.ids), [None, pyarrow.py_buffer(self.ids)])
        if len(self.ids) < 2**31:
            offsets = pyarrow.array(self.indptr.astype(np.int32))
            return pyarrow.ListArray.from_arrays(offsets, values)
        return pyarrow.LargeListArray.from_arrays(pyarrow.array(self.indptr), values)

    def pad(
        self,
        length: int | None = None,
        multiple_of: int | None = None,
        side: Side = "right",
        pad_id: int | None = None,
        *,
        max_length: int | None = None,
    ) -> PaddedBatch:
        """Return the ids as one rectangle, filled up with `pad_id`.

        Parameters
        ----------
        length
            Tokens in each row; None for the longest text of the batch.
        multiple_of
            Round the row length up to a multiple of this.
        side
            The side on which the padding goes.
        pad_id
            None for the padding token that the tokenizer's file names.
        max_length
            Another name of `length`, as transformers has it with ``padding="max_length"``.

        Returns
        -------
        ids : int32[n, L]
        mask : bool[n, L]
            True where there is a token, False where there is padding. The pair has `attention_mask`, `position_ids` and
            `type_ids` too: see :class:`PaddedBatch`.

        Raises
        ------
        ArgumentError
            A text is longer than `length`, a number is not positive, or there is no padding id.
        """
        if side not in ("left", "right"):
            raise ArgumentError(f"side={side!r}: expected 'left' or 'right'")
        if max_length is not None:
            if length is not None:
                raise ArgumentError(f"length={length!r} and max_length={max_length!r}: give one of them")
            length = whole_number("max_length", max_length, 0)
        lengths = np.diff(self.indptr)
        longest = int(lengths.max()) if len(lengths) else 0
        width = longest if length is None else whole_number("length", length, 0)
        if longest > width:
            raise ArgumentError(
                f"text {int(np.argmax(lengths))} has {longest} tokens, more than length={width}; "
                "encode with max_length= to cut it, or pad to a greater length"
            )
        if multiple_of is not None:
            step = whole_number("multiple_of", multiple_of, 1)
            width = -(-width // step) * step
        columns = np.arange(width)
        mask = columns < lengths[:, None] if side == "right" else columns >= width - lengths[:, None]
        if pad_id is None:
            pad_id = self._pad_id
        if pad_id is None:
            if not mask.all():
                raise ArgumentError("this tokenizer names no padding token; say which id to use: pad_id=")
            pad_id = 0
        pad_id = whole_number("pad_id", pad_id, -(2**31))
        if pad_id >= 2**31:
            raise ArgumentError(f"pad_id={pad_id} does not fit in int32")
        ids = np.full(mask.shape, pad_id, dtype=np.int32)
        ids[mask] = self.ids
        type_ids = np.zeros(mask.shape, dtype=np.int32)
        if self.type_ids is not None:
            type_ids[mask] = self.type_ids
        return PaddedBatch.make(ids, mask, type_ids)

    def spans_in(self, unit: Unit = "characters") -> NDArray[np.int64]:
        """Return the spans of all texts in characters or in UTF-8 bytes; see :meth:`Encoding.spans_in`.

        Parameters
        ----------
        unit
            "characters" (codepoints) or "bytes" (of the text encoded as UTF-8).
        """
        if self.spans is None:
            raise ArgumentError("this Batch has no spans; encode with spans=True")
        if unit == "characters":
            return self.spans
        parts = [self[row].spans_in(unit) for row in range(len(self))]
        return frozen(np.concatenate([np.empty((0, 2), dtype=np.int64), *parts]), np.int64)


def _restore_batch(
    ids: NDArray[np.int32],
    indptr: NDArray[np.int64],
    spans: NDArray[np.int64] | None,
    word_ids: NDArray[np.int32] | None,
    fields: dict[str, Any],
) -> Batch:
    return Batch(ids, indptr, spans, word_ids, **fields)


def whole_number(name: str, value: object, least: int) -> int:
    """Return `value` as an int that is at least `least`, or raise naming the argument."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"{name}={value!r}: expected a whole number, got {type(value).__name__}") from None
    if isinstance(value, bool) or number < least:
        raise ArgumentError(f"{name}={value!r}: expected a whole number of at least {least}")
    return number
