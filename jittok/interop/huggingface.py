"""The methods of ``tokenizers.Tokenizer`` on a jittok tokenizer; tokenizers itself is not needed.

Here, unlike in jittok's own calls, truncation and padding are settings of the object, as in that library, and begin with
what the file stores. Encodings are views of the arrays of their batch: what nobody asks for is never made.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..encodings import Batch, Encoding, whole_number
from ..errors import ArgumentError, ArgumentTypeError, UnsupportedError
from ..post_processing import check_truncation, room_for, windows
from ..spec import (
    AddedToken,
    BPEModel,
    RankModel,
    Template,
    TemplatePiece,
    UnigramModel,
    WordLevelModel,
    WordPieceModel,
)
from ..streaming import DecodeStream
from ..tables import PRESENT
from ..vocabulary import token_number
from .transformers import NAMED_TOKENS, TransformersCalls

if TYPE_CHECKING:
    from ..spec import TokenizerSpec
    from ..tokenizer import Tokenizer

_STRATEGIES = {"longest_first": "LongestFirst", "only_first": "OnlyFirst", "only_second": "OnlySecond"}
_STRATEGY_NAMES = {value: name for name, value in _STRATEGIES.items()}

Span = tuple[int, int]


class Padding(NamedTuple):
    """What fills an encoding up to its length."""

    left: int
    right: int
    pad_id: int
    pad_type_id: int
    pad_token: str

    def values(self) -> dict[str, Any]:
        """What each list of an encoding is filled up with."""
        return {
            "ids": self.pad_id,
            "type_ids": self.pad_type_id,
            "tokens": self.pad_token,
            "word_ids": None,
            "offsets": (0, 0),
            "special_tokens_mask": 1,
            "attention_mask": 0,
        }


@dataclass
class Columns:
    """All of an encoding as lists, for one that was changed by itself."""

    ids: list[int] = field(default_factory=list)
    type_ids: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    word_ids: list[int | None] = field(default_factory=list)
    offsets: list[Span] = field(default_factory=list)
    special_tokens_mask: list[int] = field(default_factory=list)
    attention_mask: list[int] = field(default_factory=list)
    #: Where the tokens of each text stand; empty: all are of the first one.
    ranges: dict[int, Span] = field(default_factory=dict)

    @classmethod
    def of(cls, lists: Callable[[str], list[Any]], ranges: dict[int, Span]) -> Columns:
        """Columns from what gives the list of a name."""
        result = cls(ranges=ranges)
        for name in _LISTS:
            setattr(result, name, lists(name))
        return result

    def part(self, begin: int, end: int) -> Columns:
        """The tokens [begin, end), of which it is not known any more whose they are."""
        return Columns.of(lambda name: getattr(self, name)[begin:end], {})

    def extend(self, other: Columns, shift: int) -> None:
        """Put other tokens behind these, their offsets `shift` further right."""
        first = len(self.ids)
        for name in _LISTS:
            values = getattr(other, name)
            if name == "offsets" and shift:
                values = [(begin + shift, end + shift) for begin, end in values]
            getattr(self, name).extend(values)
        self.ranges.update({text: (begin + first, end + first) for text, (begin, end) in other.ranges.items()})


_LISTS = ("ids", "type_ids", "tokens", "word_ids", "offsets", "special_tokens_mask", "attention_mask")


class Rows:
    """The encodings of one batch, of which all but the ids is made when someone asks for it.

    Parameters
    ----------
    batch
        The ids.
    make_full
        Gives the same batch with spans.
    """

    __slots__ = ("_bounds", "_flat", "_full", "_lists", "_make_full", "batch")

    def __init__(self, batch: Batch, make_full: Callable[[], Batch]) -> None:
        self.batch = batch
        self._bounds: list[int] = batch.indptr.tolist()
        self._flat: list[int] | None = None
        self._lists: dict[str, list[Any]] = {}
        self._full: Batch | None = None
        self._make_full: Callable[[], Batch] | None = make_full

    def ids(self, row: int) -> list[int]:
        """The ids of a row."""
        if self._flat is None:
            self._flat = self.batch.ids.tolist()
        return self._flat[self._bounds[row] : self._bounds[row + 1]]

    def length(self, row: int) -> int:
        """The number of tokens of a row."""
        return self._bounds[row + 1] - self._bounds[row]

    def values(self, name: str, row: int) -> list[Any]:
        """One of the lists of a row, other than the ids."""
        if name == "tokens":
            return self.encoding(row).tokens
        values = self._lists.get(name)
        if values is None:
            values = self._lists[name] = _values_of(self._whole(), name)
        return values[self._bounds[row] : self._bounds[row + 1]]

    def encoding(self, row: int) -> Encoding:
        """All of a row."""
        return self._whole()[row]

    def _whole(self) -> Batch:
        full, make = self._full, self._make_full
        if full is None:
            assert make is not None
            self._full = full = make()
        return full


class OneRow:
    """The encoding of one text, with the methods of :class:`Rows`."""

    __slots__ = ("_encoding",)

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    def ids(self, row: int) -> list[int]:
        """The ids."""
        return list(self._encoding)

    def length(self, row: int) -> int:
        """The number of tokens."""
        return len(self._encoding.ids)

    def values(self, name: str, row: int) -> list[Any]:
        """One of the lists, other than the ids."""
        return self._encoding.tokens if name == "tokens" else _values_of(self._encoding, name)

    def encoding(self, row: int) -> Encoding:
        """All of it."""
        return self._encoding


def _values_of(encoded: Batch | Encoding, name: str) -> list[Any]:
    """A list of what all tokens have, other than their ids and strings."""
    if name == "offsets":
        assert encoded.spans is not None
        return list(zip(encoded.spans[:, 0].tolist(), encoded.spans[:, 1].tolist(), strict=True))
    if name == "word_ids":
        assert encoded.word_ids is not None
        words: list[Any] = encoded.word_ids.tolist()
        return [None if word < 0 else word for word in words] if -1 in words else words
    array = getattr(encoded, name)
    return [0] * len(encoded.ids) if array is None else list(array.tolist())


class HfEncoding:
    """What ``tokenizers.Encoding`` is: the tokens of one text or pair.

    Made by :class:`HfTokenizer`; without arguments an empty one. Lists are made anew each time that one is asked for.

    Parameters
    ----------
    source, row
        The arrays, and the row of them that this is.
    n_sequences
        1, or 2 for a pair.
    overflowing
        The further windows of a text that was cut.
    """

    __slots__ = ("__weakref__", "_columns", "_n_sequences", "_overflowing", "_padding", "_row", "_source")

    def __init__(
        self,
        source: Rows | OneRow | None = None,
        row: int = 0,
        n_sequences: int = 1,
        overflowing: Sequence[HfEncoding] = (),
    ) -> None:
        self._source = source
        self._row = row
        self._n_sequences = n_sequences
        self._overflowing: Sequence[HfEncoding] = overflowing
        self._padding: Padding | None = None
        self._columns: Columns | None = Columns() if source is None else None

    # ------------------------------------------------------------------------------------------------- lists

    def __len__(self) -> int:
        if self._columns is not None:
            return len(self._columns.ids)
        assert self._source is not None
        padding = self._padding
        return self._source.length(self._row) + (0 if padding is None else padding.left + padding.right)

    @property
    def ids(self) -> list[int]:
        """The ids."""
        if self._padding is None and self._source is not None:
            return self._source.ids(self._row)
        return self._list("ids")

    @property
    def type_ids(self) -> list[int]:
        """The type of each token, as the template of the file says."""
        return self._list("type_ids")

    @property
    def tokens(self) -> list[str]:
        """The token strings."""
        return self._list("tokens")

    @property
    def words(self) -> list[int | None]:
        """The same as :attr:`word_ids`; deprecated, as in tokenizers."""
        import warnings

        warnings.warn("Encoding.words is deprecated; use Encoding.word_ids", DeprecationWarning, stacklevel=2)
        return self._list("word_ids")

    @property
    def word_ids(self) -> list[int | None]:
        """For each token the number of its pre-token, or of the word that was given; None for special tokens."""
        return self._list("word_ids")

    @property
    def sequence_ids(self) -> list[int | None]:
        """For each token the number of its text; None for special tokens."""
        result: list[int | None] = [None] * len(self)
        for text in range(self.n_sequences):
            begin, end = self._range(text)
            result[begin:end] = [text] * (end - begin)
        return result

    @property
    def offsets(self) -> list[Span]:
        """Begin and end of each token in characters of its text; (0, 0) for special tokens."""
        return self._list("offsets")

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for tokens that the template or padding put in, else 0."""
        return self._list("special_tokens_mask")

    @property
    def attention_mask(self) -> list[int]:
        """0 for padding, else 1."""
        return self._list("attention_mask")

    @property
    def overflowing(self) -> list[HfEncoding]:
        """The further windows of a text that was cut."""
        return list(self._overflowing)

    @property
    def n_sequences(self) -> int:
        """The number of texts: 2 for a pair."""
        if self._columns is not None:
            return len(self._columns.ranges) or 1
        return self._n_sequences

    def _list(self, name: str) -> list[Any]:
        """One of the lists, a new one."""
        if self._columns is not None:
            return list(getattr(self._columns, name))
        assert self._source is not None
        if name == "ids":
            values: list[Any] = self._source.ids(self._row)
        elif name == "attention_mask":
            values = [1] * self._source.length(self._row)
        else:
            values = self._source.values(name, self._row)
        if self._padding is not None:
            fill = [self._padding.values()[name]]
            values = fill * self._padding.left + values + fill * self._padding.right
        return values

    def _ranges(self) -> dict[int, Span]:
        """Where the tokens of each text stand."""
        if self._columns is not None:
            return self._columns.ranges
        assert self._source is not None
        before = 0 if self._padding is None else self._padding.left
        sequence_ids = self._source.encoding(self._row).sequence_ids
        result = {}
        for text in range(self._n_sequences):
            where = np.flatnonzero(sequence_ids == text)
            result[text] = (before + int(where[0]), before + int(where[-1]) + 1) if len(where) else (0, 0)
        return result

    def _range(self, text: int) -> Span:
        return self._ranges().get(text, (0, len(self)))

    # --------------------------------------------------------------------------------- texts, words and tokens

    def token_to_sequence(self, token_index: int) -> int | None:
        """Return the number of the text that a token is of; None for special tokens.

        Parameters
        ----------
        token_index
            The token's position.
        """
        ranges = self._ranges()
        if not ranges:
            return 0 if token_index <= len(self) else None
        return next((text for text, (begin, end) in ranges.items() if begin <= token_index < end), None)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return the range of tokens of a word, or None.

        Parameters
        ----------
        word_index, sequence_index
            The word, and the text that it is of.
        """
        begin, end = self._range(sequence_index)
        words = self._list("word_ids")
        where = []
        for place in range(begin, end):
            word = words[place]
            if word is not None and word > word_index:
                break
            if word == word_index:
                where.append(place)
        return (where[0], where[-1] + 1) if where else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return the span of a word in its text, or None.

        Parameters
        ----------
        word_index, sequence_index
            The word, and the text that it is of.
        """
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        offsets = self._list("offsets")
        return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

    def token_to_chars(self, token_index: int) -> Span | None:
        """Return the span of a token in its text; None for special tokens.

        Parameters
        ----------
        token_index
            The token's position.
        """
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        span: Span = self._list("offsets")[token_index]
        return span

    def token_to_word(self, token_index: int) -> int | None:
        """Return the word that a token is of; None for special tokens.

        Parameters
        ----------
        token_index
            The token's position.
        """
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        word: int | None = self._list("word_ids")[token_index]
        return word

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the position of the token that a character is in, or None.

        Parameters
        ----------
        char_pos, sequence_index
            The character, and the text that it is of.
        """
        begin, end = self._range(sequence_index)
        offsets = self._list("offsets")
        return next((place for place in range(begin, end) if offsets[place][0] <= char_pos < offsets[place][1]), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the word that a character is in, or None.

        Parameters
        ----------
        char_pos, sequence_index
            The character, and the text that it is of.
        """
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    # ---------------------------------------------------------------------------------------------- changing

    def _changed(self) -> Columns:
        """Lists of its own, which may be changed."""
        if self._columns is None:
            self._columns = Columns.of(self._list, self._ranges())
            self._source, self._padding = None, None
        return self._columns

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say of which text all the tokens are.

        Parameters
        ----------
        sequence_id
            The number of the text.
        """
        self._changed().ranges[sequence_id] = (0, len(self))

    def pad(
        self,
        length: int,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Fill this encoding, and its further windows, up to a length.

        Parameters
        ----------
        length
            Tokens wanted; an encoding that has so many stays as it is.
        direction
            The side on which the padding goes, "right" or "left".
        pad_id, pad_type_id, pad_token
            What it is filled up with.

        Raises
        ------
        ArgumentError
            The direction is another one.
        """
        _check_direction(direction)
        self._pad(whole_number("length", length, 0), direction, pad_id, pad_type_id, pad_token)

    def _pad(self, length: int, direction: str, pad_id: int, pad_type_id: int, pad_token: str) -> None:
        for window in self._overflowing:
            window._pad(length, direction, pad_id, pad_type_id, pad_token)
        missing = length - len(self)
        if missing <= 0:
            return
        left = missing if direction == "left" else 0
        padding = Padding(left, missing - left, pad_id, pad_type_id, pad_token)
        if self._columns is None and self._padding is None:
            self._padding = padding
            return
        columns = self._changed()
        for name, value in padding.values().items():
            setattr(columns, name, [value] * left + getattr(columns, name) + [value] * padding.right)
        if left:
            columns.ranges = {text: (begin + left, end + left) for text, (begin, end) in columns.ranges.items()}

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Cut this encoding; what was cut off is then in :attr:`overflowing`.

        Parameters
        ----------
        max_length
            Tokens that stay.
        stride
            Tokens that a window repeats of the one before.
        direction
            The side on which tokens are cut off, "right" or "left".

        Raises
        ------
        ArgumentError
            The direction is another one, or the stride is not less than the length.
        """
        if direction not in ("left", "right"):
            raise ArgumentError(f"Invalid truncation direction value : {direction}")
        columns = self._changed()
        if whole_number("max_length", max_length, 0) >= len(columns.ids):
            return
        if max_length == 0:
            whole = HfEncoding(overflowing=self._overflowing)
            whole._columns = columns
            self._columns, self._overflowing = Columns(), (whole,)
            return
        cuts = windows(len(columns.ids), max_length, whole_number("stride", stride, 0), direction)  # type: ignore[arg-type]
        parts = []
        for begin, end in cuts:
            part = HfEncoding()
            part._columns = columns.part(begin, end)
            parts.append(part)
        self._columns, self._overflowing = parts[0]._columns, tuple(parts[1:])

    @staticmethod
    def merge(encodings: Iterable[HfEncoding], growing_offsets: bool = True) -> HfEncoding:
        """Return the tokens of several encodings as one.

        Parameters
        ----------
        encodings
            Any number.
        growing_offsets
            Whether the offsets of each begin where those of the one before end.
        """
        result = HfEncoding()
        for encoding in encodings:
            result._merge_with(encoding, growing_offsets)
        return result

    def _merge_with(self, other: HfEncoding, growing_offsets: bool) -> None:
        combined = []
        for window in self._overflowing:
            for follower in (other, *other._overflowing):
                combined.append(window._merged(follower, growing_offsets))
        for follower in other._overflowing:
            combined.append(self._merged(follower, growing_offsets))
        columns = self._changed()
        shift = columns.offsets[-1][1] if growing_offsets and columns.offsets else 0
        columns.extend(other._copied(), shift)
        self._overflowing = tuple(combined)

    def _merged(self, other: HfEncoding, growing_offsets: bool) -> HfEncoding:
        result = HfEncoding()
        result._columns = copy.deepcopy(self._copied())
        alone = HfEncoding()
        alone._columns = other._copied()
        result._merge_with(alone, growing_offsets)
        return result

    def _copied(self) -> Columns:
        if self._columns is not None:
            return self._columns
        return Columns.of(self._list, self._ranges())

    def __repr__(self) -> str:
        names = "ids, type_ids, tokens, offsets, attention_mask, special_tokens_mask, overflowing"
        return f"Encoding(num_tokens={len(self)}, attributes=[{names}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_encoding, (self._copied(), tuple(self._overflowing))


def _restore_encoding(columns: Columns, overflowing: tuple[HfEncoding, ...]) -> HfEncoding:
    encoding = HfEncoding(overflowing=overflowing)
    encoding._columns = columns
    return encoding


class HfAddedToken:
    """What ``tokenizers.AddedToken`` is: a token that is looked for in the text before the model sees it.

    Parameters
    ----------
    content
        Its text.
    single_word
        Whether it is only found where it is a word of its own.
    lstrip, rstrip
        Whether it takes the white space before or after it.
    normalized
        Whether it is looked for in normalised text; None: if it is not special.
    special
        Whether decoding may leave it out.
    """

    __slots__ = ("_normalized", "content", "lstrip", "rstrip", "single_word", "special")

    def __init__(
        self,
        content: str = "",
        *,
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
    ) -> None:
        self.content = content
        self.single_word = single_word
        self.lstrip = lstrip
        self.rstrip = rstrip
        self._normalized = normalized
        self.special = special

    @property
    def normalized(self) -> bool:
        """Whether it is looked for in normalised text."""
        return not self.special if self._normalized is None else self._normalized

    def _fields(self) -> tuple[Any, ...]:
        return _added_token_fields(self)

    def __eq__(self, other: object) -> bool:
        return hasattr(other, "single_word") and _added_token_fields(other) == self._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        return (
            f'AddedToken("{self.content}", rstrip={self.rstrip}, lstrip={self.lstrip}, '
            f"single_word={self.single_word}, normalized={self.normalized}, special={self.special})"
        )


def _added_token_fields(token: Any) -> tuple[Any, ...]:
    names = ("content", "special", "single_word", "lstrip", "rstrip", "normalized")
    return tuple(getattr(token, name) for name in names)


class HfDecodeStream:
    """What ``tokenizers.decoders.DecodeStream`` is: text from ids that arrive one after another.

    Parameters
    ----------
    ids
        Ids that came before, whose text is not given out.
    skip_special_tokens
        Leave special tokens out.
    """

    def __init__(self, ids: Iterable[int] | None = None, skip_special_tokens: bool = False) -> None:
        self._before = list(ids or ())
        self._skip_special_tokens = skip_special_tokens
        self._stream: DecodeStream | None = None

    def step(self, tokenizer: HfTokenizer, id: int | Sequence[int]) -> str | None:
        """Return the text that one more id, or several, make certain; None while a character is incomplete.

        Parameters
        ----------
        tokenizer
            The same one each time.
        id
            The id, or a list of some.
        """
        before = ""
        if self._stream is None:
            self._stream = tokenizer.tokenizer.decode_stream(self._skip_special_tokens)
            text = "".join(map(self._stream.push, self._before))
            # As in tokenizers, text before an incomplete character does not count as given out.
            if self._before and tokenizer.tokenizer.decode(self._before, self._skip_special_tokens).endswith("\ufffd"):
                before = text
        numbers = id if isinstance(id, Sequence) else [id]
        return before + "".join(map(self._stream.push, numbers)) or None

    def __copy__(self) -> HfDecodeStream:
        result = HfDecodeStream(self._before, self._skip_special_tokens)
        if self._stream is not None:
            decoder = self._stream._decoder
            result._stream = copy.deepcopy(self._stream, {id(decoder): decoder})
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> HfDecodeStream:
        return self.__copy__()


class HfTokenizer(TransformersCalls):
    """A tokenizer with the methods of ``tokenizers.Tokenizer``, and those of transformers' fast tokenizers besides.

    Where both have a method of one name, :meth:`encode` and :meth:`decode`, it is that of tokenizers; see
    :class:`HfFastTokenizer`.

    Parameters
    ----------
    tokenizer
        Any jittok tokenizer; or a model, as :attr:`model` takes it.
    **options
        Attributes of :class:`~jittok.interop.transformers.TransformersCalls`, as `pad_token`. A token that is not in the
        vocabulary becomes an added one.

    Attributes
    ----------
    tokenizer
        The jittok tokenizer that does the work: another one after tokens were added.
    encode_special_tokens
        Whether special tokens in a text are ordinary text.
    """

    def __init__(self, tokenizer: Tokenizer, **options: Any) -> None:
        if not hasattr(tokenizer, "spec"):
            document = {"version": "1.0", "model": _block_of(tokenizer, "model")}
            tokenizer = _loaded(document)
        self.tokenizer = tokenizer
        self.encode_special_tokens = False
        self._truncation = _read_truncation(tokenizer.spec.stored_truncation)
        self._padding = _read_padding(tokenizer.spec.stored_padding)
        self._set_up(options)

    # ---------------------------------------------------------------------------------------- files and strings

    @classmethod
    def from_file(cls, path: str) -> HfTokenizer:
        """Load a tokenizer from any file that :func:`jittok.load` reads.

        Parameters
        ----------
        path
            The file.
        """
        from ..tokenizer import load

        return cls(load(path))

    @classmethod
    def from_str(cls, json: str) -> HfTokenizer:
        """Load a tokenizer from the content of a tokenizer.json.

        Parameters
        ----------
        json
            The content.
        """
        return cls.from_buffer(json.encode())

    @classmethod
    def from_buffer(cls, buffer: bytes) -> HfTokenizer:
        """Load a tokenizer from the content of a tokenizer.json.

        Parameters
        ----------
        buffer
            The content, UTF-8.
        """
        from ..tokenizer import load_bytes

        return cls(load_bytes(buffer, format="tokenizer.json"))

    @classmethod
    def from_pretrained(cls, identifier: str, revision: str = "main", token: str | None = None) -> HfTokenizer:
        """Load a tokenizer from a folder; nothing is ever downloaded.

        Parameters
        ----------
        identifier
            The folder.
        revision, token
            Not used.
        """
        return cls.from_file(identifier)

    def to_str(self, pretty: bool = False) -> str:
        """Return the tokenizer as a tokenizer.json.

        Parameters
        ----------
        pretty
            With line breaks and indentation.

        Raises
        ------
        UnsupportedError
            That format cannot hold this tokenizer.
        """
        from ..formats import tokenizer_json

        text = tokenizer_json.write(self._spec()).decode()
        return _indented(text) if pretty else text

    def save(self, path: str, pretty: bool = True) -> None:
        """Write a tokenizer.json.

        Parameters
        ----------
        path
            The file.
        pretty
            With line breaks and indentation.

        Raises
        ------
        UnsupportedError, OutputError
            As :meth:`jittok.Tokenizer.save`.
        """
        from ..tokenizer import _write_file

        if not isinstance(path, str | os.PathLike):
            raise ArgumentTypeError(f"path: expected a str or a path object, got {type(path).__name__}")
        _write_file(Path(os.fsdecode(path)), self.to_str(pretty).encode())

    def _spec(self) -> TokenizerSpec:
        return replace(
            self.tokenizer.spec,
            stored_truncation=_write_truncation(self._truncation),
            stored_padding=_write_padding(self._padding),
        )

    def __repr__(self) -> str:
        return f"<HfTokenizer of {self.tokenizer!r}>"

    # ---------------------------------------------------------------------------------------------- components

    @property
    def normalizer(self) -> dict[str, Any] | None:
        """The field of a tokenizer.json; may be set to one, to a component of tokenizers, to a type's name, or to None."""
        return self._component("normalizer")

    @normalizer.setter
    def normalizer(self, value: Any) -> None:
        from ..formats.tokenizer_json import read_normalizers

        block = _block_of(value, "normalizer")
        self._change(normalizers=() if block is None else read_normalizers(block))

    @property
    def pre_tokenizer(self) -> dict[str, Any] | None:
        """As :attr:`normalizer`."""
        return self._component("pre_tokenizer")

    @pre_tokenizer.setter
    def pre_tokenizer(self, value: Any) -> None:
        from ..formats.tokenizer_json import read_pre_tokenizers

        block = _block_of(value, "pre_tokenizer")
        self._change(pre_tokenizers=() if block is None else read_pre_tokenizers(block))

    @property
    def post_processor(self) -> dict[str, Any] | None:
        """As :attr:`normalizer`; its ids are those of known tokens."""
        return self._component("post_processor")

    @post_processor.setter
    def post_processor(self, value: Any) -> None:
        from ..formats.tokenizer_json import read_post_processors

        block = _block_of(value, "post_processor")
        spec = self.tokenizer.spec
        known = {*np.flatnonzero(self.tokenizer._vocabulary.tables.flags & PRESENT).tolist()}
        extra = {name: fact for name, fact in spec.extra.items() if name != "takes_pairs"}
        self._change(post_processors=() if block is None else read_post_processors(block, known), extra=extra)

    @property
    def decoder(self) -> dict[str, Any] | None:
        """As :attr:`normalizer`."""
        return self._component("decoder")

    @decoder.setter
    def decoder(self, value: Any) -> None:
        from ..formats.tokenizer_json import read_decoders

        block = _block_of(value, "decoder")
        self._change(decoders=() if block is None else read_decoders(block))

    @property
    def model(self) -> dict[str, Any]:
        """The field of a tokenizer.json, with the whole vocabulary; may be set to one, or to a model of tokenizers."""
        return dict(json.loads(self.to_str())["model"])

    @model.setter
    def model(self, value: Any) -> None:
        document = json.loads(self.to_str())
        block = _block_of(value, "model")
        if block is None:
            raise ArgumentTypeError("model: expected a model, got None")
        self.tokenizer = _loaded({**document, "model": block})

    def _component(self, name: str) -> dict[str, Any] | None:
        from ..formats.tokenizer_json import component

        self._check_components()
        return component(self.tokenizer.spec, name)

    def _change(self, **steps: Any) -> None:
        from ..tokenizer import Tokenizer

        self._check_components()
        self.tokenizer = Tokenizer(replace(self.tokenizer.spec, **steps))

    def _check_components(self) -> None:
        model = self.tokenizer.spec.model
        if not isinstance(model, BPEModel | WordPieceModel | WordLevelModel | UnigramModel):
            raise UnsupportedError(
                f"a tokenizer of {type(model).__name__} has no components of tokenizers'; save it as a tokenizer.json, and "
                "load that"
            )

    # ------------------------------------------------------------------------------------------------ training

    def train(self, files: Iterable[str], trainer: Any = None) -> None:
        """Learn another vocabulary from files, line by line.

        Parameters
        ----------
        files
            Paths.
        trainer
            A trainer of tokenizers, or of :mod:`jittok.interop.hf_training`; None for the model's with its defaults.

        Raises
        ------
        ArgumentError, ArgumentTypeError, MissingFileError, TextError
            The trainer does not fit, or a file cannot be read.
        UnsupportedError
            For Unigram, whose trainer in tokenizers has other rules than jittok's.
        """
        paths = [files] if isinstance(files, str) else list(files)
        training = _training()
        training.train(self, training.lines_of(paths), trainer)

    def train_from_iterator(self, iterator: Iterable[Any], trainer: Any = None, length: int | None = None) -> None:
        """Learn another vocabulary from texts.

        Parameters
        ----------
        iterator
            Texts, or lists of texts.
        trainer
            As for :meth:`train`.
        length
            Not used.

        Raises
        ------
        ArgumentError, ArgumentTypeError, UnsupportedError
            As :meth:`train`.
        """
        training = _training()
        training.train(self, training.texts_of(iterator), trainer)

    def train_new_from_iterator(
        self,
        text_iterator: Iterable[Any],
        vocab_size: int,
        length: int | None = None,
        new_special_tokens: Sequence[Any] | None = None,
        special_tokens_map: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> HfTokenizer:
        """Return a tokenizer with the same components and a vocabulary learned from texts, as transformers does.

        Parameters
        ----------
        text_iterator
            Texts, or lists of texts.
        vocab_size
            Tokens wanted.
        length
            Not used.
        new_special_tokens
            Special tokens besides those that there are.
        special_tokens_map
            New names of special tokens.
        **kwargs
            Further attributes of the trainer.

        Raises
        ------
        ArgumentError, ArgumentTypeError, UnsupportedError
            As :meth:`train`.
        """
        training = _training()
        texts = training.texts_of(text_iterator)
        result: HfTokenizer = training.train_new(
            self, texts, vocab_size, new_special_tokens, special_tokens_map, **kwargs
        )
        return result

    # ------------------------------------------------------------------------------------ truncation and padding

    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Cut texts from now on.

        Parameters
        ----------
        max_length
            Tokens that stay, special tokens included; further windows are in ``overflowing``.
        stride
            Tokens that a window repeats of the one before.
        strategy
            Which text of a pair is cut: "longest_first", "only_first" or "only_second".
        direction
            The side on which tokens are cut off, "right" or "left".

        Raises
        ------
        ArgumentError, ArgumentTypeError
            A value is not one of these, or the stride is greater than the room for text.
        """
        checked = check_truncation(max_length, stride, strategy, direction)
        room = max_length - self.tokenizer.num_special_tokens_to_add()
        if checked.stride > room:
            raise ArgumentError(
                f"stride={stride} is greater than the {room} tokens of text that fit into max_length={max_length}"
            )
        self._truncation = {
            "max_length": checked.max_length,
            "stride": checked.stride,
            "strategy": checked.strategy,
            "direction": checked.side,
        }

    def no_truncation(self) -> None:
        """Leave texts whole from now on."""
        self._truncation = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The arguments of :meth:`enable_truncation` that hold, or None."""
        return None if self._truncation is None else dict(self._truncation)

    def enable_padding(
        self,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Fill up encodings from now on.

        Parameters
        ----------
        direction
            The side on which the padding goes, "right" or "left".
        pad_id, pad_type_id, pad_token
            What it is filled up with.
        length
            Tokens wanted; None for those of the longest one of each batch.
        pad_to_multiple_of
            Round that up to a multiple of this.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            A value is not one of these.
        """
        _check_direction(direction)
        self._padding = {
            "length": None if length is None else whole_number("length", length, 0),
            "pad_to_multiple_of": None
            if pad_to_multiple_of is None
            else whole_number("pad_to_multiple_of", pad_to_multiple_of, 0),
            "pad_id": whole_number("pad_id", pad_id, 0),
            "pad_token": pad_token,
            "pad_type_id": whole_number("pad_type_id", pad_type_id, 0),
            "direction": direction,
        }

    def no_padding(self) -> None:
        """Leave encodings as long as they are from now on."""
        self._padding = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """The arguments of :meth:`enable_padding` that hold, or None."""
        return None if self._padding is None else dict(self._padding)

    # ------------------------------------------------------------------------------------------------ encoding

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> HfEncoding:
        """Encode a text or a pair of texts.

        Parameters
        ----------
        sequence, pair
            Strings; lists of words with `is_pretokenized`.
        is_pretokenized
            See there.
        add_special_tokens
            Put the special tokens of the file's template around the texts.

        Raises
        ------
        TextError, ArgumentError, ArgumentTypeError
            As :meth:`jittok.Tokenizer.encode`.
        """
        given = _words_of if is_pretokenized else _text_of
        first = given(sequence)
        second = None if pair is None else given(pair)
        options = _options(add_special_tokens, self._truncation, self.encode_special_tokens)
        encoding = self._one(first, second, is_pretokenized, options)
        _pad_all([encoding], self._padding)
        return encoding

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[HfEncoding]:
        """Encode many texts or pairs.

        Parameters
        ----------
        input
            Strings, and tuples of two for pairs; with `is_pretokenized` lists of words, and tuples of two such.
        is_pretokenized
            See there.
        add_special_tokens
            Put the special tokens of the file's template around the texts.

        Raises
        ------
        TextError, ArgumentError, ArgumentTypeError
            As :meth:`jittok.Tokenizer.encode_batch`.
        """
        split = self.encode_special_tokens
        return self._many(input, is_pretokenized, add_special_tokens, self._truncation, self._padding, split)

    def encode_batch_fast(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[HfEncoding]:
        """Encode many texts or pairs: the same as :meth:`encode_batch`, which makes no offsets unless asked for either.

        Parameters
        ----------
        input, is_pretokenized, add_special_tokens
            As there.
        """
        return self.encode_batch(input, is_pretokenized, add_special_tokens)

    async def async_encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> HfEncoding:
        """Call :meth:`encode` in a thread.

        Parameters
        ----------
        sequence, pair, is_pretokenized, add_special_tokens
            As there.
        """
        import asyncio

        return await asyncio.to_thread(self.encode, sequence, pair, is_pretokenized, add_special_tokens)

    async def async_encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[HfEncoding]:
        """Call :meth:`encode_batch` in a thread.

        Parameters
        ----------
        input, is_pretokenized, add_special_tokens
            As there.
        """
        import asyncio

        return await asyncio.to_thread(self.encode_batch, input, is_pretokenized, add_special_tokens)

    async def async_encode_batch_fast(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[HfEncoding]:
        """Call :meth:`encode_batch_fast` in a thread.

        Parameters
        ----------
        input, is_pretokenized, add_special_tokens
            As there.
        """
        return await self.async_encode_batch(input, is_pretokenized, add_special_tokens)

    def _one(self, first: Any, second: Any, is_pretokenized: bool, options: dict[str, Any]) -> HfEncoding:
        encoding = self.tokenizer.encode(first, second, is_split_into_words=is_pretokenized, **options)
        n_texts = 1 if second is None else 2
        later = tuple(HfEncoding(OneRow(window), 0, n_texts) for window in encoding.overflowing)
        return HfEncoding(OneRow(encoding), 0, n_texts, later)

    def _many(
        self,
        input: Iterable[Any],
        is_pretokenized: bool,
        add_special_tokens: bool,
        truncation: Mapping[str, Any] | None,
        padding: Mapping[str, Any] | None,
        split_special_tokens: bool,
    ) -> list[HfEncoding]:
        if isinstance(input, str | bytes) or not isinstance(input, Iterable):
            raise ArgumentTypeError(f"input: expected a list of texts, got {type(input).__name__}")
        given = list(input)
        options = _options(add_special_tokens, truncation, split_special_tokens)
        if is_pretokenized:
            encodings = []
            for number, item in enumerate(given):
                first, second = _words_or_pair(item, number)
                encodings.append(self._one(first, second, True, options))
        elif set(map(type, given)) <= {str}:
            encodings = self._rows(given, None, options)
        else:
            # Singles and pairs are two batches, whose encodings then come in the order of the input.
            parts = [_text_or_pair(item, number) for number, item in enumerate(given)]
            singles = [first for first, second in parts if second is None]
            pairs = [(first, second) for first, second in parts if second is not None]
            alone = iter(self._rows(singles, None, options) if singles else ())
            paired: Iterable[HfEncoding] = ()
            if pairs:
                paired = self._rows([first for first, _ in pairs], [second for _, second in pairs], options)
            both = iter(paired)
            encodings = [next(alone if second is None else both) for _, second in parts]
        _pad_all(encodings, padding)
        return encodings

    def _rows(self, texts: list[str], pairs: list[str] | None, options: dict[str, Any]) -> list[HfEncoding]:
        tokenizer = self.tokenizer
        cuts = "max_length" in options
        batch = tokenizer.encode_batch(texts, pairs, overflowing=cuts, **options)
        rows = Rows(batch, lambda: tokenizer.encode_batch(texts, pairs, spans=True, overflowing=cuts, **options))
        n_texts = 1 if pairs is None else 2
        if batch.document_ids is None:
            return [HfEncoding(rows, row, n_texts) for row in range(len(batch))]
        ends: list[int] = np.searchsorted(batch.document_ids, np.arange(len(texts)), side="right").tolist()
        result = []
        begin = 0
        for end in ends:
            later = tuple(HfEncoding(rows, row, n_texts) for row in range(begin + 1, end))
            result.append(HfEncoding(rows, begin, n_texts, later))
            begin = end
        return result

    def post_process(
        self, encoding: HfEncoding, pair: HfEncoding | None = None, add_special_tokens: bool = True
    ) -> HfEncoding:
        """Return encodings that were made without special tokens cut, with special tokens and padding.

        Parameters
        ----------
        encoding, pair
            The encodings, which stay as they are.
        add_special_tokens
            Put the special tokens of the file's template around them.
        """
        parts = [copy.deepcopy(part) for part in (encoding, pair) if part is not None]
        template = self._template(pair is not None)
        if self._truncation is not None:
            special = sum(len(piece.ids) for piece in template) if add_special_tokens else 0
            self._cut(parts, self._truncation, special)
        result = HfEncoding()
        for piece in template:
            if piece.sequence is not None:
                number = "AB".index(piece.sequence)
                part = copy.deepcopy(parts[number])
                for window in (part, *part._overflowing):
                    columns = window._changed()
                    columns.ranges = {number: (0, len(columns.ids))}
                    if piece.type_id >= 0:
                        columns.type_ids = [piece.type_id] * len(columns.ids)
            elif add_special_tokens:
                count = len(piece.ids)
                part = HfEncoding()
                part._columns = Columns(
                    list(piece.ids), [piece.type_id] * count, list(piece.tokens), [None] * count,
                    [(0, 0)] * count, [1] * count, [1] * count,
                )  # fmt: skip
            else:
                continue
            result._merge_with(part, False)
        _pad_all([result], self._padding)
        return result

    def _template(self, has_pair: bool) -> tuple[TemplatePiece, ...]:
        if has_pair:
            self.tokenizer._post_processor.template(True, True)  # or an error, where the file has none for pairs
        for step in self.tokenizer.spec.post_processors:
            if isinstance(step, Template):
                if not has_pair:
                    return step.single
                if step.pair is not None:
                    return step.pair
        # Without a template the types stay what they are.
        return (TemplatePiece(-1, "A"), TemplatePiece(-1, "B"))[: 1 + has_pair]

    def _cut(self, parts: list[HfEncoding], truncation: Mapping[str, Any], special: int) -> None:
        room = truncation["max_length"] - special
        lengths = [len(part) for part in parts]
        if room < 0:
            raise ArgumentError(f"max_length={truncation['max_length']} is less than the {special} special tokens")
        if sum(lengths) <= room:
            return
        if room == 0:
            sizes: Sequence[int] = [0] * len(parts)
        elif len(parts) == 1:
            if truncation["strategy"] == "only_second":
                raise ArgumentError("strategy='only_second' needs a pair, but there is only one text")
            sizes = [room]
        else:
            sizes = room_for(lengths[0], lengths[1], room, truncation["strategy"])
        for part, size in zip(parts, sizes, strict=True):
            part.truncate(size, truncation["stride"], truncation["direction"])

    # ------------------------------------------------------------------------------------------------ decoding

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        """Return the text of a sequence of ids.

        Parameters
        ----------
        ids
            A list or array; ids that are not in the vocabulary leave nothing.
        skip_special_tokens
            Leave special tokens out.
        """
        return self.tokenizer.decode(self._known(ids), skip_special_tokens)

    def decode_batch(self, sequences: Iterable[Any], skip_special_tokens: bool = True) -> list[str]:
        """Return the texts of many sequences of ids.

        Parameters
        ----------
        sequences
            Lists or arrays.
        skip_special_tokens
            Leave special tokens out.
        """
        return self.tokenizer.decode_batch([self._known(ids) for ids in sequences], skip_special_tokens)

    async def async_decode_batch(self, sequences: Iterable[Any], skip_special_tokens: bool = True) -> list[str]:
        """Call :meth:`decode_batch` in a thread.

        Parameters
        ----------
        sequences, skip_special_tokens
            As there.
        """
        import asyncio

        return await asyncio.to_thread(self.decode_batch, sequences, skip_special_tokens)

    def _known(self, ids: Any) -> Any:
        """Ids without those that are not in the vocabulary."""
        from ..decoding import token_array

        flags = self.tokenizer.decoder.vocabulary.tables.flags
        values = np.asarray(ids)
        if values.size and values.dtype.kind not in "iu":
            token_array(ids, len(flags))  # says what is wrong
        values = values.ravel() if values.size else np.empty(0, np.int64)
        inside = (values >= 0) & (values < len(flags))
        inside[inside] = (flags[values[inside]] & PRESENT) != 0
        return values[inside].astype(np.int32)

    # ---------------------------------------------------------------------------------------------- vocabulary

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token string, or None.

        Parameters
        ----------
        token
            The string.
        """
        return self.tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """Return the token string of an id, or None.

        Parameters
        ----------
        id
            The id.
        """
        return self.tokenizer.id_to_token(token_number(id))

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return all token strings and their ids.

        Parameters
        ----------
        with_added_tokens
            Added tokens too.
        """
        model = self.tokenizer.spec.model
        if isinstance(model, RankModel):
            result = {token.decode("utf-8", "replace"): number for token, number in model.ranks.items()}
        else:
            result = dict(model.vocab)
        if with_added_tokens:
            result.update((token.content, token.id) for token in self.tokenizer.spec.added_tokens)
        return result

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Return the number of tokens.

        Parameters
        ----------
        with_added_tokens
            Count added tokens too.
        """
        if with_added_tokens:
            return len(self.tokenizer.decoder.vocabulary)
        model = self.tokenizer.spec.model
        return len(model.ranks if isinstance(model, RankModel) else model.vocab)

    def get_added_tokens_decoder(self) -> dict[int, HfAddedToken]:
        """Return the added tokens by their ids."""
        return {
            token.id: HfAddedToken(
                token.content,
                single_word=token.single_word,
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                normalized=token.normalized,
                special=token.special,
            )
            for token in sorted(self.tokenizer.spec.added_tokens, key=lambda token: token.id)
        }

    def add_tokens(self, tokens: Iterable[Any], special_tokens: bool = False) -> int:
        """Add tokens.

        Parameters
        ----------
        tokens
            Strings, or objects with the attributes of an :class:`HfAddedToken`.
        special_tokens
            Whether all become special.

        Returns
        -------
        int
            How many are added tokens now that were not before; empty ones are ignored.
        """
        return self._add(tokens, special_tokens)

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """Add special tokens.

        Parameters
        ----------
        tokens
            As those of :meth:`add_tokens`; all become special. A dictionary, as of `pad_token` to "[PAD]", also says what
            they are for.

        Returns
        -------
        int
            As there.
        """
        if isinstance(tokens, Mapping):
            given, tokens = tokens, []
            for name, value in given.items():
                if name in NAMED_TOKENS:
                    setattr(self, name, value)
                    tokens.append(value)
                elif name in ("extra_special_tokens", "additional_special_tokens"):
                    self.extra_special_tokens += map(str, value)
                    tokens += value
                else:
                    raise ArgumentError(f"{name}: expected one of {', '.join(NAMED_TOKENS)}, extra_special_tokens")
        return self._add(tokens, True)

    def _add(self, tokens: Iterable[Any], special: bool) -> int:
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise ArgumentTypeError(f"tokens: expected a list of tokens, got {type(tokens).__name__}")
        known = {token.content: token for token in self.tokenizer.spec.added_tokens}
        wanted = []
        for number, token in enumerate(tokens):
            if isinstance(token, str):
                token = HfAddedToken(token, special=special)
            elif not hasattr(token, "single_word"):
                raise ArgumentTypeError(
                    f"tokens[{number}]: expected str or an added token, got {type(token).__name__}"
                )
            elif special and isinstance(token, AddedToken):
                token = replace(token, special=True)
            elif special:
                token.special = True
            content, is_special, single_word, lstrip, rstrip, normalized = _added_token_fields(token)
            if content and (content not in known or _added_token_fields(known[content]) != _added_token_fields(token)):
                added = AddedToken(0, content, is_special, single_word, lstrip, rstrip, normalized)
                known[content] = added
                wanted.append(added)
        if wanted:
            self.tokenizer = self.tokenizer.with_added_tokens(wanted)
        return len(wanted)

    def num_special_tokens_to_add(self, is_pair: bool = False, pair: bool = False) -> int:
        """Return how many special tokens the template adds.

        Parameters
        ----------
        is_pair, pair
            To a pair, not to one text.
        """
        return self.tokenizer.num_special_tokens_to_add(is_pair or pair)


class HfFastTokenizer(HfTokenizer):
    """The same with the :meth:`encode` and :meth:`decode` of transformers' fast tokenizers.

    Parameters
    ----------
    tokenizer, **options
        As those of :class:`HfTokenizer`.
    """

    def encode(  # type: ignore[override]
        self, text: Any, text_pair: Any = None, add_special_tokens: bool = True, **kwargs: Any
    ) -> Any:
        """Return the ids of a text or a pair.

        Parameters
        ----------
        text, text_pair, add_special_tokens
            As those of :meth:`HfTokenizer.encode`.
        **kwargs
            As those of calling the tokenizer.
        """
        return self(text, text_pair, add_special_tokens=add_special_tokens, **kwargs)["input_ids"]

    def decode(  # type: ignore[override]
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the text of an id or of a sequence of ids, or the texts of a list of sequences.

        Parameters
        ----------
        token_ids
            A number, a list or array, or what calling the tokenizer gave.
        skip_special_tokens, clean_up_tokenization_spaces, **kwargs
            As those of :meth:`batch_decode`.
        """
        if isinstance(token_ids, Mapping):
            token_ids = token_ids["input_ids"]
        if hasattr(token_ids, "tolist"):
            token_ids = token_ids.tolist()
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        is_batch = len(token_ids) > 0 and not isinstance(token_ids[0], int | np.integer)
        texts = self.batch_decode(
            token_ids if is_batch else [token_ids], skip_special_tokens, clean_up_tokenization_spaces
        )
        return texts if is_batch else texts[0]


# ---------------------------------------------------------------------------------------------------- helpers


def _training() -> Any:
    """The module that knows the trainers, which stand above this one."""
    return importlib.import_module("jittok.interop.hf_training")


def _block_of(component: Any, role: str) -> dict[str, Any] | None:
    """A component as a tokenizer.json has it: those of tokenizers are pickled as that."""
    if component is None:
        return None
    if isinstance(component, str):
        return {"type": component}
    if isinstance(component, Mapping):
        return dict(component)
    try:
        block = json.loads(component.__getstate__())
    except Exception as error:
        raise ArgumentTypeError(
            f"{role}: expected the object that a tokenizer.json has, or a component of tokenizers that can be pickled, got "
            f"{type(component).__name__}"
        ) from error
    return dict(block)


def _loaded(document: Mapping[str, Any]) -> Tokenizer:
    from ..tokenizer import load_bytes

    return load_bytes(json.dumps(document).encode("utf-8", "surrogatepass"), format="tokenizer.json")


def _options(add_special_tokens: bool, truncation: Mapping[str, Any] | None, split_special_tokens: bool) -> dict[str, Any]:
    """Arguments of the jittok tokenizer's calls."""
    options: dict[str, Any] = {"add_special_tokens": add_special_tokens}
    options["special"] = "text" if split_special_tokens else "parse"
    if truncation is not None:
        options["max_length"] = truncation["max_length"]
        options["stride"] = truncation["stride"]
        options["truncation"] = truncation["strategy"]
        options["truncation_side"] = truncation["direction"]
    return options


def _check_direction(direction: str) -> None:
    if direction not in ("left", "right"):
        raise ArgumentError(f"Unknown `direction`: {direction!r}; expected 'left' or 'right'")


def _pad_all(encodings: Sequence[HfEncoding], padding: Mapping[str, Any] | None) -> None:
    if padding is None or not encodings:
        return
    length = padding["length"]
    if length is None:
        length = max(map(len, encodings))
    multiple = padding["pad_to_multiple_of"]
    if multiple:
        length = -(-length // multiple) * multiple
    for encoding in encodings:
        encoding._pad(length, padding["direction"], padding["pad_id"], padding["pad_type_id"], padding["pad_token"])


def _text_of(given: Any) -> str:
    if not isinstance(given, str):
        raise ArgumentTypeError(f"TextInputSequence must be str, got {type(given).__name__}")
    return str(given)


def _is_words(given: Any) -> bool:
    is_list = isinstance(given, list | tuple | np.ndarray)
    return is_list and all(isinstance(word, str) for word in given)


def _words_of(given: Any) -> list[str]:
    if not _is_words(given):
        raise ArgumentTypeError(
            f"PreTokenizedInputSequence must be Union[List[str], Tuple[str]], got {type(given).__name__}"
        )
    return [str(word) for word in given]


def _text_or_pair(given: Any, number: int) -> tuple[str, str | None]:
    if isinstance(given, str):
        return str(given), None
    if isinstance(given, list | tuple | np.ndarray) and len(given) == 2 and _is_words(given):
        return str(given[0]), str(given[1])
    raise ArgumentTypeError(f"TextEncodeInput {number} must be a str or a pair of them, got {type(given).__name__}")


def _words_or_pair(given: Any, number: int) -> tuple[list[str], list[str] | None]:
    if _is_words(given):
        return _words_of(given), None
    if isinstance(given, list | tuple | np.ndarray) and len(given) == 2:
        return _words_of(given[0]), _words_of(given[1])
    raise ArgumentTypeError(
        f"PreTokenizedEncodeInput {number} must be a list of words or a pair of them, got {type(given).__name__}"
    )


def _read_truncation(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    return {
        "max_length": stored["max_length"],
        "stride": stored["stride"],
        "strategy": _STRATEGY_NAMES[stored["strategy"]],
        "direction": stored["direction"].lower(),
    }


def _write_truncation(truncation: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if truncation is None:
        return None
    return {
        "direction": truncation["direction"].capitalize(),
        "max_length": truncation["max_length"],
        "strategy": _STRATEGIES[truncation["strategy"]],
        "stride": truncation["stride"],
    }


def _read_padding(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    strategy = stored["strategy"]
    return {
        "length": strategy["Fixed"] if isinstance(strategy, Mapping) else None,
        "pad_to_multiple_of": stored["pad_to_multiple_of"],
        "pad_id": stored["pad_id"],
        "pad_token": stored["pad_token"],
        "pad_type_id": stored["pad_type_id"],
        "direction": stored["direction"].lower(),
    }


def _write_padding(padding: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if padding is None:
        return None
    return {
        "strategy": "BatchLongest" if padding["length"] is None else {"Fixed": padding["length"]},
        "direction": padding["direction"].capitalize(),
        "pad_to_multiple_of": padding["pad_to_multiple_of"],
        "pad_id": padding["pad_id"],
        "pad_type_id": padding["pad_type_id"],
        "pad_token": padding["pad_token"],
    }


_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _indented(text: str) -> str:
    """JSON with line breaks; numbers stay as they are written, which parsing and writing them would not promise."""
    pieces: list[str] = []
    parts = _PARTS.findall(text)
    depth = 0
    for number, part in enumerate(parts):
        if part in ("}", "]"):
            depth -= 1
            if parts[number - 1] not in ("{", "["):
                pieces.append("\n" + "  " * depth)
            pieces.append(part)
        elif part == ",":
            pieces.append(",\n" + "  " * depth)
        elif part == ":":
            pieces.append(": ")
        else:
            pieces.append(part)
            if part in ("{", "["):
                depth += 1
                if parts[number + 1] not in ("}", "]"):
                    pieces.append("\n" + "  " * depth)
    return "".join(pieces)
