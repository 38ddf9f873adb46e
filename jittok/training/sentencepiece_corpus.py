"""Texts as SentencePiece's trainers see them: normalised, cut into words, counted, rare characters put aside."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentError
from jittok.rewriting import Rewriter, build_rewriter
from jittok.tables import read_only
from jittok.text import texts_from
from jittok.training.sentencepiece_options import BLANK, BOUNDARY, OUTSIDE, SentencePieceOptions

_NO_WEIGHTS = read_only(np.zeros(0, np.int64))
#: Texts that a worker takes at a time.
BATCH_TEXTS = 1 << 13
_SHORT_BITS, _LONG_BITS, _KEPT_BYTES = 12, 10, 1 << 14


@dataclass(frozen=True)
class CountedWords:
    """Words before the alphabet is known, in no particular order.

    Attributes
    ----------
    data, indptr
        uint8[m + padding], int64[n + 1]: word `i` is ``data[indptr[i]:indptr[i + 1]]``, UTF-8, with U+0020 for U+2581
        and U+001F for boundaries.
    counts
        int64[n], how often each occurs.
    notes
        What was left out: reasons and how many texts.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    notes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Alphabet:
    """The characters that become pieces.

    Attributes
    ----------
    letters
        uint32[k], codepoints, the most frequent first, of equals the smaller one. U+2581 is one of them, U+2585 and
        U+001F never are. Empty with ``auto_character_coverage``, where all characters stay.
    counts
        int64[k], how often each occurs; 0 for required characters that do not.
    characters, character_counts
        uint32[j], int64[j]: all characters of the words, by codepoint, U+001F among them.
    """

    letters: NDArray[np.uint32]
    counts: NDArray[np.int64]
    characters: NDArray[np.uint32]
    character_counts: NDArray[np.int64]


@dataclass(frozen=True)
class SentencePieceCorpus:
    """Counted words and the alphabet.

    Attributes
    ----------
    letters, letter_counts
        See :class:`Alphabet`.
    codepoints, indptr, counts
        uint32[m], int64[n + 1], int64[n]: word `i` is ``codepoints[indptr[i]:indptr[i + 1]]`` and occurs ``counts[i]``
        times. U+2585 stands for every character outside of the alphabet and for boundaries. Sorted by count, the
        largest first, then by their UTF-8; each once. With ``split_by_whitespace=False`` these are whole texts, in
        the order in which the reference has them, not counted together.
    notes
        What was left out: reasons and how many texts.
    """

    letters: NDArray[np.uint32]
    letter_counts: NDArray[np.int64]
    codepoints: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    notes: dict[str, int] = field(default_factory=dict)


class _Reader:
    """What is done with every batch of texts; immutable, shared by threads."""

    def __init__(self, options: SentencePieceOptions):
        self.options = options
        self.rewriter: Rewriter = build_rewriter((options.normalizer(),), compact=True)
        meta = [piece for piece, _ in options.meta_pieces().values()]
        self.symbols = [_symbol_tables(symbols) for symbols in (meta, [options.pretokenization_delimiter])]

    def read(
        self, data: NDArray[np.uint8], indptr: NDArray[np.int64], strips: bool, left_out: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Choose and normalise texts, and mark boundaries: data, starts, ends and numbers of the texts that are left."""
        from jittok.kernels.sentencepiece_corpus import mark_boundaries, select_texts

        n = len(indptr) - 1
        starts, ends, number = (np.empty(n, np.int64) for _ in range(3))
        data = read_only(data)
        most = self.options.max_sentence_length
        kept = int(select_texts(data, read_only(indptr), int(strips), most, starts, ends, number, left_out))
        done = self.rewriter.apply(data, starts[:kept], ends[:kept], alignment=False)
        for tables in self.symbols:
            if tables is not None:
                mark_boundaries(*tables, done.data, done.starts, done.ends)
        return done.data, done.starts, done.ends, number[:kept]


def _symbol_tables(symbols: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]] | None:
    """A double array of symbols as they look in normalised text with U+0020 for U+2581, and their first bytes."""
    from jittok.build.charsmap import build_double_array

    # There is no U+0020 in text that the reference searches.
    keys = sorted({symbol.replace(BLANK, " ").encode() for symbol in symbols if symbol and " " not in symbol})
    if not keys:
        return None
    first = np.array(sorted({key[0] for key in keys}), np.uint8)
    return read_only(build_double_array(keys, [0] * len(keys))), read_only(first)


class WordCounter:
    """Counts words; grows as needed. For one thread at a time."""

    def __init__(self, mode: int):
        from jittok.kernels.sentencepiece_corpus import new_word_table

        self.mode = mode
        self.table = new_word_table(_SHORT_BITS, _LONG_BITS, _KEPT_BYTES)

    def add(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        weights: NDArray[np.int64] = _NO_WEIGHTS,
        mode: int | None = None,
    ) -> None:
        """Count the words of texts; `data` has 64 bytes to spare."""
        from jittok.kernels import sentencepiece_corpus as kernels

        arguments = read_only(data), read_only(starts), read_only(ends), read_only(weights)
        mode = self.mode if mode is None else mode
        while (status := int(kernels.count_words(*arguments, mode, self.table))) != kernels.DONE:
            self._grow(status)

    def _grow(self, lacking: int) -> None:
        from jittok.kernels import sentencepiece_corpus as kernels

        table = self.table
        slots, long_slots, kept = len(table.slots), len(table.long_slots), len(table.kept)
        if lacking == kernels.NO_KEPT_ROOM:
            # At least the longest text fits then.
            more = np.empty(2 * kept + (1 << 20 if kept > 1 << 18 else 0), np.uint8)
            more[:kept] = table.kept
            self.table = table._replace(kept=more)
            return
        grows_short = lacking == kernels.NO_SHORT_ROOM
        larger = kernels.new_word_table(
            (slots >> 2).bit_length() - (not grows_short), (long_slots >> 2).bit_length() - grows_short, 0
        )._replace(kept=table.kept)
        kernels.move_words(table, larger)
        self.table = larger

    def words(self) -> CountedWords:
        """All words so far."""
        from jittok.kernels import sentencepiece_corpus as kernels

        numbers = self.table.numbers
        n = int(numbers[kernels.SHORT_USED] + numbers[kernels.LONG_USED])
        size = 15 * int(numbers[kernels.SHORT_USED]) + int(numbers[kernels.KEPT_USED])
        data = np.empty(size + kernels.PADDING, np.uint8)
        indptr = np.empty(n + 1, np.int64)
        counts = np.empty(n, np.int64)
        size = int(kernels.list_words(self.table, data, indptr, counts))
        data[size : size + kernels.PADDING] = 0
        return CountedWords(data[: size + kernels.PADDING], indptr, counts)


def word_mode(options: SentencePieceOptions) -> int:
    """Where texts are cut into words, as the kernels call it."""
    from jittok.kernels import sentencepiece_corpus as kernels

    if not options.split_by_whitespace:
        return kernels.WHOLE
    if options.treat_whitespace_as_suffix:
        return kernels.BEHIND_RUN if options.allow_whitespace_only_pieces else kernels.BEHIND
    return kernels.BEFORE_RUN if options.allow_whitespace_only_pieces else kernels.BEFORE


def batches(texts: Any) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Texts, some at a time."""
    rest = iter(texts)
    while part := list(itertools.islice(rest, BATCH_TEXTS)):
        found = texts_from(part)
        yield found.data, found.indptr


def count_texts(texts: Iterable[str | bytes], options: SentencePieceOptions, *, threads: int = 1) -> CountedWords:
    """Count the words of texts.

    Parameters
    ----------
    texts
        One sentence each.
    options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.
    threads
        Workers; the words do not depend on it, their order does.

    Returns
    -------
    CountedWords

    Raises
    ------
    ArgumentError
        Nothing is left.
    """
    from concurrent.futures import ThreadPoolExecutor

    reader = _Reader(options)
    mode = word_mode(options)
    free: list[WordCounter] = []
    every: list[WordCounter] = []
    left_out = np.zeros(3, np.int64)
    vanished = 0

    def work(batch: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> tuple[NDArray[np.int64], int]:
        counter = free.pop() if free else WordCounter(mode)
        if counter not in every:
            every.append(counter)
        reasons = np.zeros(3, np.int64)
        data, starts, ends, _ = reader.read(*batch, True, reasons)
        counter.add(data, starts, ends)
        free.append(counter)
        return reasons, int((starts == ends).sum())

    if threads == 1:
        for batch in batches(texts):
            reasons, gone = work(batch)
            left_out += reasons
            vanished += gone
    else:
        with ThreadPoolExecutor(threads) as pool:
            pending = []
            for batch in batches(texts):
                pending.append(pool.submit(work, batch))
                if len(pending) > 2 * threads:
                    reasons, gone = pending.pop(0).result()
                    left_out += reasons
                    vanished += gone
            for future in pending:
                reasons, gone = future.result()
                left_out += reasons
                vanished += gone
    if not every:
        raise ArgumentError("texts: nothing is left to train on; expected at least one text that is not empty")
    from jittok.kernels.sentencepiece_corpus import WHOLE

    first = every[0]
    for other in every[1:]:
        words = other.words()
        first.add(words.data, words.indptr[:-1], words.indptr[1:], words.counts, WHOLE)
    words = first.words()
    reasons = [int(number) for number in left_out] + [vanished]
    names = ("empty", "too long", "with U+2585", "nothing after normalization")
    notes = {name: number for name, number in zip(names, reasons, strict=True) if number}
    return CountedWords(words.data, words.indptr, words.counts, notes)


def alphabet_of(words: CountedWords, options: SentencePieceOptions) -> Alphabet:
    """Choose the alphabet.

    Parameters
    ----------
    words
        All of them.
    options
        Its coverage, required characters, and size of the vocabulary.

    Raises
    ------
    ArgumentError
        There are no characters, or more than the vocabulary has room for.
    """
    from jittok.kernels.sentencepiece_corpus import count_characters

    dense = np.zeros(0x110000, np.int64)
    count_characters(read_only(words.data), read_only(words.indptr), read_only(words.counts), dense)
    dense[ord(BLANK)] += dense[ord(" ")]
    dense[ord(" ")] = 0
    characters = np.flatnonzero(dense)
    character_counts = dense[characters]
    meta = len(options.meta_pieces())
    if options.auto_character_coverage:
        if meta >= options.vocab_size:
            raise ArgumentError(f"vocab_size={options.vocab_size}: there are {meta} meta pieces; expected more")
        nothing = np.zeros(0, np.int64)
        letters = counts = nothing
    else:
        letters, counts = _letters(dense, options)
        if len(letters) + meta > options.vocab_size:
            raise ArgumentError(
                f"vocab_size={options.vocab_size}: the alphabet has {len(letters)} characters and there are {meta} meta "
                "pieces; expected at least as many together, or a smaller character_coverage"
            )
    return Alphabet(letters.astype(np.uint32), counts, characters.astype(np.uint32), character_counts)


def _letters(dense: NDArray[np.int64], options: SentencePieceOptions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The alphabet and its counts, the most frequent first."""
    dense[0] = 0
    total = int(dense.sum())
    if total == 0:
        raise ArgumentError("texts: there is nothing but empty texts and NUL characters; expected other text")
    required = np.zeros(len(dense), np.bool_)
    required[[ord(letter) for letter in options.required_chars if letter != "\0"]] = True
    found = np.flatnonzero((dense > 0) | required)
    order = found[np.lexsort((found, -dense[found], ~required[found]))]
    before = np.cumsum(dense[order]) - dense[order]
    # As the reference computes it: float64 division, rounded to float32.
    covered = (before / total).astype(np.float32) >= np.float32(options.character_coverage)
    order = order[: int(np.argmax(covered)) if covered.any() else len(order)]
    if (order == ord(OUTSIDE)).any():
        raise ArgumentError("normalization: the rules make U+2585, which is reserved; leave that rule out")
    order = order[order != ord(BOUNDARY)]
    order = order[np.lexsort((order, -dense[order]))]
    return order, dense[order]


def load_corpus(texts: Iterable[str | bytes], options: SentencePieceOptions, *, threads: int = 1) -> SentencePieceCorpus:
    """Read texts as the reference's trainers do.

    Parameters
    ----------
    texts
        One sentence each.
    options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.
    threads
        Workers; the result does not depend on it.

    Returns
    -------
    SentencePieceCorpus

    Raises
    ------
    ArgumentError
        Nothing is left, or the alphabet is larger than the vocabulary.
    """
    if options.split_by_whitespace:
        words = count_texts(texts, options, threads=threads)
        alphabet = alphabet_of(words, options)
        codepoints, indptr = decoded_words(words, alphabet)
        codepoints, indptr, counts = _in_order(codepoints, indptr, words.counts)
    else:
        words = _whole_texts(texts, options)
        alphabet = alphabet_of(words, options)
        codepoints, indptr = decoded_words(words, alphabet)
        counts = words.counts
    return SentencePieceCorpus(alphabet.letters, alphabet.counts, codepoints, indptr, counts, words.notes)


def _whole_texts(texts: Iterable[str | bytes], options: SentencePieceOptions) -> CountedWords:
    """Whole texts, each counted once, in the order in which the reference has them."""
    reader = _Reader(options)
    left_out = np.zeros(3, np.int64)
    kept: list[bytes] = []
    for batch in batches(texts):
        data, starts, ends, _ = reader.read(*batch, True, left_out)
        content = data.tobytes()
        kept += [content[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    at = vanished = 0
    while at < len(kept):  # the last one comes in the place of one that is empty
        if kept[at]:
            at += 1
        else:
            vanished += 1
            kept[at] = kept[-1]
            kept.pop()
    if not kept:
        raise ArgumentError("texts: nothing is left to train on; expected at least one text that is not empty")
    indptr = np.cumsum([0] + [len(text) for text in kept])
    names = ("empty", "too long", "with U+2585", "nothing after normalization")
    reasons = zip(names, [*left_out.tolist(), vanished], strict=True)
    notes = {name: number for name, number in reasons if number}
    joined = np.frombuffer(b"".join(kept) + bytes(64), np.uint8)
    return CountedWords(joined, indptr, np.ones(len(kept), np.int64), notes)


def decoded_words(words: CountedWords, alphabet: Alphabet) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Words as codepoints, with U+2585 for what is outside of the alphabet; and where each begins."""
    from jittok.kernels.sentencepiece_corpus import decode_words

    outside = np.ones(0x110000, np.bool_)
    outside[alphabet.letters if len(alphabet.letters) else alphabet.characters] = False
    codepoints = np.empty(int(words.indptr[-1]), np.uint32)
    indptr = np.empty(len(words.indptr), np.int64)
    size = int(decode_words(read_only(words.data), read_only(words.indptr), outside, codepoints, indptr))
    return codepoints[:size].copy(), indptr


def _in_order(
    codepoints: NDArray[np.uint32], indptr: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Words in order of their counts and then of their UTF-8, those that became equal counted together."""
    text = codepoints.tobytes().decode("utf-32-le")
    bounds = indptr.tolist()
    joined: dict[str, int] = {}
    for begin, end, count in zip(bounds, bounds[1:], counts.tolist(), strict=False):
        word = text[begin:end]
        joined[word] = joined.get(word, 0) + count
    # The order of strings is that of their UTF-8.
    order = sorted(joined.items(), key=lambda item: (-item[1], item[0]))
    lengths = np.array([len(word) for word, _ in order], np.int64)
    return (
        np.frombuffer("".join(word for word, _ in order).encode("utf-32-le"), np.uint32),
        np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        np.array([count for _, count in order], np.int64),
    )
