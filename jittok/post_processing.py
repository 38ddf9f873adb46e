"""From the tokens of texts to what is handed out: cutting to length, special tokens, spans.

The steps, in the reference's order: texts that are too long are cut into windows, white space is left out
of the spans, and the template puts special tokens around the sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .encodings import (
    Batch,
    EncodedTexts,
    Encoding,
    LaterWords,
    SourceText,
    TextSource,
    frozen,
    text_of,
    whole_number,
)
from .errors import ArgumentError, UnsupportedError
from .spec import Template, TemplatePiece, TokenizerSpec, TrimOffsets
from .tables import STRIPS
from .vocabulary import Vocabulary, outer_white_space

Strategy = Literal["longest_first", "only_first", "only_second"]
Side = Literal["left", "right"]

_ONLY_A = (TemplatePiece(0, "A"),)
_A_AND_B = (TemplatePiece(0, "A"), TemplatePiece(1, "B"))


class TemplateTables(NamedTuple):
    """A template as arrays: one entry for each special token or sequence."""

    kinds: NDArray[np.int8]  # [p], -1 for a special token, 0 for the text, 1 for its pair
    types: NDArray[np.int32]  # [p], the type id of what the entry gives
    ids: NDArray[np.int32]  # [p], the special token's id, -1 for a sequence

    @property
    def num_special(self) -> int:
        """Special tokens that the template adds."""
        return int((self.kinds < 0).sum())

    @property
    def sequences(self) -> list[int]:
        """The texts that stand in it, 0 for the text and 1 for its pair, in its order."""
        kinds: list[int] = self.kinds[self.kinds >= 0].tolist()
        return kinds

    def without_special(self) -> TemplateTables:
        """Return the sequences alone."""
        keep = self.kinds >= 0
        return TemplateTables(
            frozen(self.kinds[keep], np.int8), frozen(self.types[keep], np.int32), frozen(self.ids[keep], np.int32)
        )


class Framing(NamedTuple):
    """What each document becomes: special tokens around its ids, of which only some stay where there are many."""

    before: NDArray[np.int32]
    after: NDArray[np.int32]
    room: int  #: ids of a document that stay, at most
    keeps_end: bool  #: whether the last ones stay, not the first

    @property
    def n_special(self) -> int:
        """Ids put around those of each document."""
        return len(self.before) + len(self.after)

    def n_framed(self, ends: NDArray[np.int64]) -> int:
        """Ids of documents with the special tokens, where the ids of each end at `ends` without."""
        if not len(ends):
            return 0
        kept = int(ends[-1]) if ends[-1] <= self.room else int(np.minimum(np.diff(ends, prepend=0), self.room).sum())
        return kept + self.n_special * len(ends)


class Trimmed(NamedTuple):
    """Tokens with white space left out of their spans."""

    tokens: EncodedTexts
    matched: dict[int, str]  # as that of Encoding


class Truncation(NamedTuple):
    """How texts that are too long are cut; see :func:`check_truncation`."""

    max_length: int | None = None
    stride: int = 0
    strategy: Strategy = "longest_first"
    side: Side = "right"


def check_truncation(
    max_length: object = None,
    stride: object = 0,
    truncation: object = "longest_first",
    truncation_side: object = "right",
) -> Truncation:
    """Return checked settings of one call.

    Parameters
    ----------
    max_length
        Tokens in each window, special tokens included; None to leave texts whole.
    stride
        Tokens that a window repeats of the one before.
    truncation
        Of a pair, which text is cut: "longest_first" the longer one until both fit, "only_first",
        "only_second".
    truncation_side
        The side on which tokens are cut off.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A value is not one of these, or not a whole number of at least 0.
    """
    if truncation not in get_args(Strategy):
        raise ArgumentError(f"truncation={truncation!r}: expected one of {', '.join(get_args(Strategy))}")
    if truncation_side not in get_args(Side):
        raise ArgumentError(f"truncation_side={truncation_side!r}: expected 'left' or 'right'")
    step = whole_number("stride", stride, 0)
    if max_length is None:
        if step:
            raise ArgumentError(f"stride={step} needs max_length=, the number of tokens in each window")
        return Truncation(None, 0, truncation, truncation_side)  # type: ignore[arg-type]
    length = whole_number("max_length", max_length, 0)
    return Truncation(length, step, truncation, truncation_side)  # type: ignore[arg-type]


def windows(length: int, size: int, stride: int, side: Side) -> list[tuple[int, int]]:
    """Return where the windows of one sequence begin and end, the one that is kept first.

    Parameters
    ----------
    length
        Tokens in the sequence.
    size
        Tokens in a window. If 0, there is an empty window and, as in the reference, one of everything.
    stride
        Tokens shared by neighbouring windows.
    side
        The side on which tokens are cut off: windows start from the other side.

    Raises
    ------
    ArgumentError
        The stride leaves a window nothing new.
    """
    if size >= length:
        return [(0, length)]
    if size == 0:
        return [(0, 0), (0, length)]
    if stride >= size:
        raise ArgumentError(
            f"stride={stride} leaves nothing new to a window that has room for {size} tokens of this text; "
            "use a smaller stride or a greater max_length"
        )
    count = 1 + -(-(length - size) // (size - stride))
    steps = [number * (size - stride) for number in range(count)]
    if side == "right":
        return [(begin, min(begin + size, length)) for begin in steps]
    return [(max(length - step - size, 0), length - step) for step in steps]


def room_for(first: int, second: int, room: int, strategy: Strategy) -> tuple[int, int]:
    """Return how many tokens of two sequences stay, when there is room for `room` in all.

    Parameters
    ----------
    first, second
        Tokens in each sequence, more than `room` together.
    room
        Tokens that fit besides the special ones.
    strategy
        Which sequence is cut.

    Raises
    ------
    ArgumentError
        The sequence that is to be cut is too short to make the other one fit.
    """
    if strategy == "longest_first":
        shorter, longer = min(first, second), max(first, second)
        longer = max(shorter, room - shorter)
        if shorter + longer > room:
            shorter = room // 2
            longer = shorter + room % 2
        return (longer, shorter) if first > second else (shorter, longer)
    excess = first + second - room
    target, name = (first, "first") if strategy == "only_first" else (second, "second")
    if target <= excess:
        raise ArgumentError(
            f"truncation='{strategy}': the {name} text has {target} tokens, but {excess} too many are there; "
            "use truncation='longest_first' or a greater max_length"
        )
    return (first - excess, second) if strategy == "only_first" else (first, second - excess)


#: Rows of one text or pair, at most, where windows of two texts are combined, or of one that a template holds twice.
MOST_COMBINED = 1 << 18


def combinations(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return which windows of its sequences make up each row, by their numbers, in the reference's order.

    Parameters
    ----------
    counts
        Windows of each sequence that the template has, in the template's order. A text that stands there
        twice has its windows combined with each other.

    Returns
    -------
    list
        The first windows of all sequences come first; then, of every further sequence, each of its windows with
        each row but the first of those before it, and at last its further windows with their first row.

    Raises
    ------
    ArgumentError
        Windows of more than one sequence make more than MOST_COMBINED rows.
    """
    if counts and max(counts) < math.prod(counts) > MOST_COMBINED:
        raise ArgumentError(
            f"windows of several texts are combined with each other, {' times '.join(f'{n:,}' for n in counts)} rows; "
            f"expected at most {MOST_COMBINED:,}. Give a greater max_length, or leave further windows out"
        )
    rows: list[tuple[int, ...]] = [()]
    for count in counts:
        first, later = rows[0], rows[1:]
        made = [(*row, number) for row in later for number in range(count)]
        rows = [(*first, 0), *made, *((*first, number) for number in range(1, count))]
    return rows


class PostProcessor:
    """Applies the post-processors of a file.

    Parameters
    ----------
    spec
        Its `post_processors` are read.
    vocabulary
        For the white space at the ends of tokens.

    Raises
    ------
    UnsupportedError
        There is more than one template.
    """

    def __init__(self, spec: TokenizerSpec, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        templates = [step for step in spec.post_processors if isinstance(step, Template)]
        if len(templates) > 1:
            raise UnsupportedError("post_processor: a Sequence of more than one template is not supported")
        self._template = templates[0] if templates else Template(_ONLY_A, None)
        self.takes_pairs = bool(spec.extra.get("takes_pairs", True))
        self.trims = tuple(step for step in spec.post_processors if isinstance(step, TrimOffsets))

    @cached_property
    def single(self) -> TemplateTables:
        """The template of one text."""
        return _template_tables(self._template.single)

    @cached_property
    def pair(self) -> TemplateTables:
        """The template of a pair: the two texts one after the other where the file has none."""
        return _template_tables(_A_AND_B if self._template.pair is None else self._template.pair)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return how many special tokens the template adds to one text, or to a pair."""
        return (self.pair if pair else self.single).num_special

    def template(self, pair: bool, add_special_tokens: bool) -> TemplateTables:
        """Return the template for one call.

        Raises
        ------
        ArgumentError
            There is none for pairs.
        """
        if pair and not self.takes_pairs:
            raise ArgumentError("the file's post-processors, one after another, cannot take pairs of texts; pass pair=None")
        chosen = self.pair if pair else self.single
        return chosen if add_special_tokens else chosen.without_special()

    def with_ends(self, first: int | None, last: int | None) -> PostProcessor:
        """Return one that puts an id before and after single texts, instead of what the file's template says.

        Parameters
        ----------
        first, last
            The ids; None for none.
        """
        import copy

        pieces = [TemplatePiece(0, None, (number,)) for number in (first, last) if number is not None]
        result = copy.copy(self)
        result.single = _template_tables([*pieces[: first is not None], *_ONLY_A, *pieces[first is not None :]])
        return result

    def check(self, truncation: Truncation, pair: bool, add_special_tokens: bool) -> None:
        """Refuse settings that no text could be encoded with, before one is.

        Raises
        ------
        ArgumentError
            As :meth:`room`.
        """
        if truncation.max_length is not None:
            self.room(self.template(pair, add_special_tokens), truncation)

    # ------------------------------------------------------------------------------------------- one text

    def process(
        self,
        first: EncodedTexts,
        second: EncodedTexts | None = None,
        *,
        add_special_tokens: bool = True,
        truncation: Truncation | None = None,
        texts: tuple[SourceText, ...] = (),
    ) -> Encoding:
        """Return the finished encoding of one text or of a pair.

        Parameters
        ----------
        first, second
            The tokens of the text and of its pair, one text each.
        add_special_tokens
            Put the template's special tokens in.
        truncation
            How to cut; the further windows are in ``overflowing``. With a pair, every window of the text
            is combined with every window of the pair, see :func:`combinations`.
        texts
            What was encoded, for byte spans and token strings.

        Raises
        ------
        ArgumentError
            No text fits into max_length, or the stride is too great.
        """
        truncation = truncation or Truncation()
        template = self.template(second is not None, add_special_tokens)
        parts = [first] if second is None else [first, second]
        cuts = self._cuts([len(part.ids) for part in parts], template, truncation)

        def piece(number: int, cut: tuple[int, int]) -> Trimmed:
            window = _window(parts[number], *cut)
            return self._trimmed(window, lambda row: _text_slice(texts, number, window, row))

        # Each window of each sequence is trimmed once, however many windows of the other it meets.
        made = [[piece(number, cut) for cut in sequence] for number, sequence in enumerate(cuts)]
        sequences = [made[kind] for kind in template.sequences]
        rows = [
            [sequence[number] for sequence, number in zip(sequences, numbers, strict=True)]
            for numbers in combinations([len(sequence) for sequence in sequences])
        ]
        encodings = [self._assembled(template, row, texts) for row in rows]
        if len(encodings) == 1:
            return encodings[0]
        return self._assembled(template, rows[0], texts, encodings[1:])

    def _cuts(
        self, lengths: list[int], template: TemplateTables, truncation: Truncation
    ) -> list[list[tuple[int, int]]]:
        """Return the windows of each sequence."""
        if truncation.max_length is None:
            return [[(0, length)] for length in lengths]
        room = self.room(template, truncation)
        if sum(lengths) <= room:
            return [[(0, length)] for length in lengths]
        sizes: Sequence[int]
        if room == 0:
            sizes = [0] * len(lengths)
        elif len(lengths) == 1:
            if truncation.strategy == "only_second":
                raise ArgumentError("truncation='only_second' needs a pair, but there is only one text")
            sizes = [room]
        else:
            sizes = room_for(lengths[0], lengths[1], room, truncation.strategy)
        return [
            windows(length, size, truncation.stride, truncation.side)
            for length, size in zip(lengths, sizes, strict=True)
        ]

    def room(self, template: TemplateTables, truncation: Truncation) -> int:
        """Return how many tokens of text fit into max_length, or raise if the settings are impossible.

        Raises
        ------
        ArgumentError
            The special tokens alone are longer, or the stride is not less than the room.
        """
        assert truncation.max_length is not None
        room = truncation.max_length - template.num_special
        if room < 0:
            raise ArgumentError(
                f"max_length={truncation.max_length} is less than the {template.num_special} special tokens "
                "that are added; use a greater max_length or add_special_tokens=False"
            )
        if truncation.stride and truncation.stride >= room:
            raise ArgumentError(
                f"stride={truncation.stride} must be less than the {room} tokens of text that fit into "
                f"max_length={truncation.max_length} besides {template.num_special} special tokens"
            )
        return room

    def _assembled(
        self,
        template: TemplateTables,
        parts: Sequence[Trimmed],
        texts: tuple[SourceText, ...],
        overflowing: Sequence[Encoding] = (),
    ) -> Encoding:
        """Return the encoding of one row: the plain twin of the kernel ``fill_template``.

        ``parts`` are the windows of the template's sequences, in its order.
        """
        if len(template.kinds) == 1 and template.kinds[0] == 0 and template.types[0] == 0:
            only = parts[0].tokens
            return Encoding(
                only.ids,
                only.spans,
                only.word_ids,
                overflowing=overflowing,
                texts=texts,
                vocabulary=self.vocabulary,
                matched=parts[0].matched,
            )
        kinds = template.kinds.tolist()
        if not kinds:  # a template may be empty
            nothing = np.zeros(0, dtype=np.int32)
            spans_of_nothing = np.zeros((0, 2), dtype=np.int64)
            return Encoding(nothing, spans_of_nothing, nothing, texts=texts, vocabulary=self.vocabulary)
        special = np.array([-1], dtype=np.int32)
        ids: list[NDArray[np.int32]] = []
        spans: list[NDArray[np.int64]] = []
        words: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        matched: dict[int, str] = {}
        left = iter(parts)
        for number, kind in enumerate(kinds):
            if kind < 0:
                ids.append(template.ids[number : number + 1])
                spans.append(np.zeros((1, 2), np.int64))
                words.append(special)
            else:
                part = next(left)
                begin = sum(lengths)
                matched.update((begin + row, text) for row, text in part.matched.items())
                ids.append(part.tokens.ids)
                if part.tokens.spans is not None:
                    spans.append(part.tokens.spans)
                if part.tokens.word_ids is not None:
                    words.append(part.tokens.word_ids)
            lengths.append(len(ids[-1]))
        sequence_ids = np.repeat(template.kinds, lengths).astype(np.int32)
        return Encoding(
            np.concatenate(ids),
            np.concatenate(spans) if len(spans) == len(ids) else None,
            np.concatenate(words) if len(words) == len(ids) else None,
            sequence_ids=sequence_ids,
            type_ids=np.repeat(template.types, lengths),
            special_tokens_mask=(sequence_ids < 0).astype(np.uint8),
            overflowing=overflowing,
            texts=texts,
            vocabulary=self.vocabulary,
            matched=matched,
        )

    # ---------------------------------------------------------------------------------------------- a batch

    def adds_nothing(self, add_special_tokens: bool, truncation: Truncation) -> bool:
        """Whether single texts keep their tokens as they are, and get no others."""
        template = self.template(False, add_special_tokens)
        plain = len(template.kinds) == 1 and bool(template.types[0] == 0)
        return plain and truncation.max_length is None

    def framing(self, add_special_tokens: bool, truncation: Truncation) -> Framing | None:
        """What single texts become, where it is tokens around those of a text that may be cut; None: something else."""
        template = self.template(False, add_special_tokens)
        sequences = np.flatnonzero(template.kinds >= 0)
        room = np.iinfo(np.int64).max
        if truncation.max_length is not None:
            room = self.room(template, truncation)
            if truncation.strategy == "only_second":
                return None
        if len(sequences) != 1 or room <= 0:
            return None
        at = int(sequences[0])
        before, after = frozen(template.ids[:at], np.int32), frozen(template.ids[at + 1 :], np.int32)
        return Framing(before, after, int(room), truncation.side == "left")

    def process_batch(
        self,
        first: EncodedTexts,
        second: EncodedTexts | None = None,
        *,
        add_special_tokens: bool = True,
        truncation: Truncation | None = None,
        overflowing: bool = False,
        texts: tuple[TextSource, ...] = (),
        pad_id: int | None = None,
        later_words: LaterWords | None = None,
    ) -> Batch:
        """Return the finished batch.

        Parameters
        ----------
        first, second
            The tokens of all texts, and of the second texts of all pairs.
        add_special_tokens
            Put the template's special tokens in.
        truncation
            How to cut.
        overflowing
            Keep all windows of a text that is cut, as rows of their own in the order of
            :meth:`process`; ``document_ids`` then says whose they are. Else only the first one stays.
        texts
            The inputs of `first` and `second`, for byte spans and token strings.
        pad_id
            For :meth:`Batch.pad`.
        later_words
            Makes the word ids of `first`; only where :meth:`adds_nothing`.

        Raises
        ------
        ArgumentError
            As :meth:`process`, naming the text.
        """
        truncation = truncation or Truncation()
        template = self.template(second is not None, add_special_tokens)
        if second is None and self.adds_nothing(add_special_tokens, truncation):
            done, found = self._trimmed(first, lambda row: _batch_slice(texts, first, row))
            return Batch(
                done.ids, done.indptr, done.spans, done.word_ids,
                document_ids=np.arange(len(first.indptr) - 1) if overflowing else None,
                vocabulary=self.vocabulary, texts=texts, matched=found, pad_id=pad_id,
                later_words=None if later_words is None else (later_words, 0),
            )  # fmt: skip

        from .kernels.post_processing import fill_template

        ranges, documents = self._ranges(first, second, template, truncation, overflowing)
        both = first if second is None else _both(first, second)
        spans = np.zeros((0, 2), dtype=np.int64) if both.spans is None else both.spans
        words = np.zeros(0, dtype=np.int32) if both.word_ids is None else both.word_ids
        total = len(ranges) * template.num_special + int((ranges[:, :, 1] - ranges[:, :, 0]).sum())
        out_indptr = np.empty(len(ranges) + 1, dtype=np.int64)
        out_ids = np.empty(total, dtype=np.int32)
        out_spans = np.empty((total if both.spans is not None else 0, 2), dtype=np.int64)
        out_words = np.empty(total if both.word_ids is not None else 0, dtype=np.int32)
        marks = np.empty((3, total if both.spans is not None else 0), dtype=np.int32)
        fill_template(
            template.kinds, template.types, template.ids,
            frozen(both.ids, np.int32), frozen(spans, np.int64), frozen(words, np.int32), frozen(ranges, np.int64),
            out_indptr, out_ids, out_spans, out_words, marks,
        )  # fmt: skip
        has_marks = both.spans is not None
        result = EncodedTexts(
            out_ids,
            out_indptr,
            out_spans if both.spans is not None else None,
            out_words if both.word_ids is not None else None,
            _moved(both.shown, template, ranges, out_indptr) if both.shown else None,
        )
        matched: dict[int, str] = {}
        if has_marks:
            result, matched = self._trim_rows(result, template, ranges, marks[2], documents, texts)
        return Batch(
            result.ids,
            result.indptr,
            result.spans,
            result.word_ids,
            type_ids=marks[0] if has_marks else None,
            special_tokens_mask=marks[1].astype(np.uint8) if has_marks else None,
            sequence_ids=marks[2] if has_marks and second is not None else None,
            document_ids=documents if overflowing else None,
            vocabulary=self.vocabulary,
            texts=texts,
            matched=matched,
            pad_id=pad_id,
        )

    def _ranges(
        self,
        first: EncodedTexts,
        second: EncodedTexts | None,
        template: TemplateTables,
        truncation: Truncation,
        overflowing: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the template's sequences lie in every row, int64[n, s, 2], and the text of every row."""
        count = len(first.indptr) - 1
        if second is not None and len(second.indptr) - 1 != count:
            raise ArgumentError(f"{count} texts, but {len(second.indptr) - 1} texts to pair them with")
        whole = np.zeros((count, 1 if second is None else 2, 2), dtype=np.int64)
        whole[:, 0, 0], whole[:, 0, 1] = first.indptr[:-1], first.indptr[1:]
        if second is not None:
            shift = len(first.ids)
            whole[:, 1, 0], whole[:, 1, 1] = second.indptr[:-1] + shift, second.indptr[1:] + shift
        kinds = template.sequences
        ranges = whole[:, kinds]
        documents = np.arange(count, dtype=np.int64)
        if truncation.max_length is None:
            return ranges, documents
        room = self.room(template, truncation)
        lengths = whole[:, :, 1] - whole[:, :, 0]
        long = np.flatnonzero(lengths.sum(axis=1) > room)
        if second is None and not overflowing and room > 0 and truncation.strategy != "only_second":
            if truncation.side == "right":
                ranges[long, :, 1] = ranges[long, :, 0] + room
            else:
                ranges[long, :, 0] = ranges[long, :, 1] - room
            return ranges, documents
        replaced: dict[int, NDArray[np.int64]] = {}
        for row in long.tolist():
            try:
                cuts = self._cuts(lengths[row].tolist(), template, truncation)
                chosen = combinations([len(cuts[kind]) for kind in kinds]) if overflowing else [(0,) * len(kinds)]
            except ArgumentError as error:
                raise ArgumentError(f"text {row}: {error}") from None
            made = [[cuts[kind][number] for kind, number in zip(kinds, numbers, strict=True)] for numbers in chosen]
            replaced[row] = np.array(made, dtype=np.int64).reshape(len(chosen), len(kinds), 2)
        if not replaced:
            return ranges, documents
        counts = np.ones(count, dtype=np.int64)
        for row, cut in replaced.items():
            counts[row] = len(cut)
        documents = np.repeat(documents, counts)
        begins = ranges[:, :, :1]
        result = np.repeat(ranges, counts, axis=0)
        at = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        for row, cut in replaced.items():
            result[int(at[row]) : int(at[row + 1])] = begins[row] + cut
        return result, documents

    # ----------------------------------------------------------------------------------------------- trimming

    def _trimmed(self, encoded: EncodedTexts, slice_of: Callable[[int], str | None]) -> Trimmed:
        """Return `encoded` with white space left out of its spans, if the file says so.

        ``slice_of(row)`` gives the text under a token before trimming.
        """
        if not self.trims or encoded.spans is None or not len(encoded.ids):
            return Trimmed(encoded, dict(encoded.shown or {}))
        from .kernels.post_processing import trim_spans

        leading, trailing, places = self.vocabulary.trim_counts(encoded.ids)
        ids = frozen(encoded.ids, np.int32)
        indptr = frozen(encoded.indptr, np.int64)
        spans = encoded.spans.copy()
        shown = encoded.shown or {}
        flags = self.vocabulary.tables.flags
        # Tokens whose white space is not that of their string in the vocabulary.
        matched: dict[int, str] = dict(shown)
        counted: dict[int, str] = dict(shown)
        for row, string in shown.items():
            if flags[ids[row]] & STRIPS and ids[row] != self.vocabulary.unknown:
                piece = slice_of(row)
                if piece and len(piece) != len(string):
                    counted[row] = piece  # white space that a normalizer made, or left out, is not in the text
        # Unknown text is shown as it is, and trimmed as it is shown.
        for row in np.flatnonzero(ids == self.vocabulary.unknown).tolist() if self.vocabulary.unknown >= 0 else ():
            if row not in shown:
                piece = self.vocabulary.surface_of(slice_of(row))
                if piece:
                    matched[row] = counted[row] = piece
        for step in self.trims:
            before = spans[list(counted)].tolist()
            trim_spans(leading, trailing, step.add_prefix_space, places, indptr, spans)
            for (row, piece), (begin, end) in zip(counted.items(), before, strict=True):
                left, right = outer_white_space(piece, "\u0120")  # the blank of the byte alphabet
                if step.add_prefix_space and left == 1 and (begin == 0 or row in indptr):
                    left = 0
                begin = min(begin + left, end)
                spans[row] = begin, max(end - right, begin) if end >= right else end
        return Trimmed(encoded._replace(spans=spans), matched)

    def _trim_rows(
        self,
        encoded: EncodedTexts,
        template: TemplateTables,
        ranges: NDArray[np.int64],
        sequence_ids: NDArray[np.int32],
        documents: NDArray[np.int64],
        texts: tuple[TextSource, ...],
    ) -> Trimmed:
        """Return rows with special tokens in them trimmed, each sequence of a row for itself."""
        if not self.trims:
            return Trimmed(encoded, dict(encoded.shown or {}))
        # Special tokens count as sequences of their own.
        lengths = np.ones((len(ranges), len(template.kinds)), dtype=np.int64)
        lengths[:, template.kinds >= 0] = ranges[:, :, 1] - ranges[:, :, 0]
        bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])

        def slice_of(position: int) -> str | None:
            assert encoded.spans is not None
            number = int(sequence_ids[position])
            if not 0 <= number < len(texts):
                return None
            row = int(np.searchsorted(encoded.indptr, position, side="right")) - 1
            return _under(text_of(texts[number], int(documents[row])), encoded, position)

        trimmed, matched = self._trimmed(encoded._replace(indptr=bounds), slice_of)
        return Trimmed(trimmed._replace(indptr=encoded.indptr), matched)


def reversed_texts(encoded: EncodedTexts) -> EncodedTexts:
    """Return the tokens of each text in reverse order.

    Parameters
    ----------
    encoded
        Any texts.
    """
    starts, ends = encoded.indptr[:-1], encoded.indptr[1:]
    order = np.repeat(starts + ends - 1, ends - starts) - np.arange(len(encoded.ids))
    spans, words = encoded.spans, encoded.word_ids
    return EncodedTexts(
        encoded.ids[order],
        encoded.indptr,
        None if spans is None else spans[order],
        None if words is None else words[order],
        encoded.shown and {int(order[row]): text for row, text in encoded.shown.items()},
    )


def merged_words(encoded: EncodedTexts, bounds: NDArray[np.int64], words: bool) -> EncodedTexts:
    """Return words that were encoded one by one as the texts that they make.

    Parameters
    ----------
    encoded
        One "text" for each word.
    bounds : int64[n + 1]
        Text i is made of the words ``bounds[i]`` to ``bounds[i + 1]``.
    words
        Whether `word_ids` are wanted.

    Returns
    -------
    EncodedTexts
        `word_ids` are the numbers of the words in each text, and spans still count from each word's beginning.
    """
    numbers = None
    if words:
        own = np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))
        numbers = np.repeat(own.astype(np.int32), np.diff(encoded.indptr))
    return encoded._replace(indptr=encoded.indptr[bounds], word_ids=numbers)


# --------------------------------------------------------------------------------------------------- helpers


def _template_tables(pieces: Sequence[TemplatePiece]) -> TemplateTables:
    kinds: list[int] = []
    types: list[int] = []
    ids: list[int] = []
    for piece in pieces:
        numbers = piece.ids if piece.sequence is None else (-1,)
        kind = -1 if piece.sequence is None else "AB".index(piece.sequence)
        for number in numbers:
            kinds.append(kind)
            types.append(piece.type_id)
            ids.append(number)
    return TemplateTables(
        frozen(np.array(kinds), np.int8),
        frozen(np.array(types), np.int32),
        frozen(np.array(ids), np.int32),
    )


def _window(encoded: EncodedTexts, begin: int, end: int) -> EncodedTexts:
    """Return tokens `begin` to `end` of a single text."""
    return EncodedTexts(
        encoded.ids[begin:end],
        np.array([0, end - begin], dtype=np.int64),
        None if encoded.spans is None else encoded.spans[begin:end],
        None if encoded.word_ids is None else encoded.word_ids[begin:end],
        encoded.shown and {row - begin: text for row, text in encoded.shown.items() if begin <= row < end},
    )


def _both(first: EncodedTexts, second: EncodedTexts) -> EncodedTexts:
    """Return the tokens of `second` after those of `first`; row pointers are of no use then."""
    spans = words = None
    if first.spans is not None and second.spans is not None:
        spans = np.concatenate([first.spans, second.spans])
    if first.word_ids is not None and second.word_ids is not None:
        words = np.concatenate([first.word_ids, second.word_ids])
    shown = first.shown
    if second.shown:
        shown = {**(shown or {}), **{len(first.ids) + row: text for row, text in second.shown.items()}}
    return EncodedTexts(np.concatenate([first.ids, second.ids]), first.indptr, spans, words, shown)


def _moved(
    shown: dict[int, str], template: TemplateTables, ranges: NDArray[np.int64], indptr: NDArray[np.int64]
) -> dict[int, str]:
    """Return the strings of tokens by their positions in rows that ``fill_template`` wrote."""
    result: dict[int, str] = {}
    rows = np.array(sorted(shown), dtype=np.int64)
    begins = indptr[:-1].copy()
    sequence = 0
    for kind in template.kinds.tolist():
        if kind < 0:
            begins += 1
            continue
        starts, ends = ranges[:, sequence, 0], ranges[:, sequence, 1]
        first, last = np.searchsorted(rows, starts), np.searchsorted(rows, ends)
        for window in np.flatnonzero(first < last).tolist():
            shift = int(begins[window] - starts[window])
            result.update((row + shift, shown[row]) for row in rows[first[window] : last[window]].tolist())
        begins += ends - starts
        sequence += 1
    return result


def _text_slice(texts: tuple[SourceText, ...], number: int, window: EncodedTexts, row: int) -> str | None:
    """Return the text under a token of sequence `number`, or None."""
    if number >= len(texts) or window.spans is None:
        return None
    return _under(texts[number], window, row)


def _under(text: SourceText, encoded: EncodedTexts, position: int) -> str | None:
    """Return the part of a text, or of one of its words, that the token at a position stands for."""
    if isinstance(text, tuple):
        text = None if encoded.word_ids is None else text[int(encoded.word_ids[position])]
    if text is None or encoded.spans is None:
        return None
    begin, end = encoded.spans[position].tolist()
    return text[begin:end]


def _batch_slice(texts: tuple[TextSource, ...], encoded: EncodedTexts, position: int) -> str | None:
    """Return the text under a token of a batch, or None."""
    if not texts or encoded.spans is None:
        return None
    document = int(np.searchsorted(encoded.indptr, position, side="right")) - 1
    return _under(text_of(texts[0], document), encoded, position)
