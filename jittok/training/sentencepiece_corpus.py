"""Texts as SentencePiece's trainers see them: normalised, cut into words, counted, rare characters put aside."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.engine import thread_count
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.memory import zeros
from jittok.rewriting import Rewriter, build_rewriter
from jittok.tables import read_only
from jittok.text import codepoints_below, texts_from
from jittok.training.counting import checked_memory_limit, load_run, merged_by_parts, save_run, sorted_words
from jittok.training.progress import Progress
from jittok.training.sentencepiece_options import BLANK, BOUNDARY, OUTSIDE, SentencePieceOptions
from jittok.training.texts import TextBatch, TextReport, read_texts
from jittok.training.word_counts import WordCounts, check_order, check_words
from jittok.training.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future

_NO_WEIGHTS = read_only(np.zeros(0, np.int64))
#: Bytes of text that a worker takes at a time.
BATCH_BYTES = 1 << 20
#: Bits of the number of slots of a new table, and bytes for its long words.
_SHORT_BITS, _LONG_BITS, _KEPT_BYTES = 14, 10, 1 << 14
#: As long as a table has fewer slots, it grows fourfold: moving words costs little in all.
_MANY_SLOTS = 1 << 18
#: Options that say what becomes of texts before the alphabet is chosen: counts are of equal ones.
_WORD_OPTIONS = (
    *("max_sentence_length", "split_by_whitespace", "treat_whitespace_as_suffix", "allow_whitespace_only_pieces"),
    *("pretokenization_delimiter", "normalization_rule_name", "normalization_rule_tsv", "add_dummy_prefix"),
    "remove_extra_whitespaces",
)
_REASONS = ("empty", "longer than max_sentence_length", "with U+2585, which is reserved")
_VANISHED = "without anything but blanks"


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
    report
        What was found in the texts, and left out.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    report: TextReport = field(default_factory=TextReport)


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
    report
        What was found in the texts, and left out.
    """

    letters: NDArray[np.uint32]
    letter_counts: NDArray[np.int64]
    codepoints: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    report: TextReport = field(default_factory=TextReport)


class _Reader:
    """What is done with every batch of texts; immutable, shared by threads."""

    def __init__(self, options: SentencePieceOptions):
        self.options = options
        self.rewriter: Rewriter = build_rewriter((options.normalizer(),), compact=True)
        meta = [piece for piece, _ in options.meta_pieces().values()]
        self.symbols = [_symbol_tables(symbols) for symbols in (meta, [options.pretokenization_delimiter])]

    def read(
        self, batch: TextBatch, strips: bool, left_out: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Choose and normalise texts, and mark boundaries: data, starts and ends of the texts that are left."""
        from jittok.kernels.sentencepiece_corpus import mark_boundaries

        data, starts, ends = _select(batch, strips, self.options.max_sentence_length, left_out)
        done = self.rewriter.apply(data, starts, ends, alignment=False)
        for tables in self.symbols:
            if tables is not None:
                mark_boundaries(*tables, done.data, done.starts, done.ends)
        return done.data, done.starts, done.ends


def _select(
    batch: TextBatch, strips: bool, most: int, left_out: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The texts that are trained on: data, starts and ends."""
    from jittok.kernels.sentencepiece_corpus import select_texts

    n = len(batch.indptr) - 1
    starts, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    data = read_only(batch.data)
    kept = int(select_texts(data, read_only(batch.indptr), int(strips), most, starts, ends, left_out))
    return data, starts[:kept], ends[:kept]


def _symbol_tables(symbols: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]] | None:
    """A double array of symbols as they look in normalised text with U+0020 for U+2581, and their first bytes."""
    from jittok.build.charsmap import build_double_array

    # There is no U+0020 in text that the reference searches.
    keys = sorted({symbol.replace(BLANK, " ").encode() for symbol in symbols if symbol and " " not in symbol})
    if not keys:
        return None
    first = np.array(sorted({key[0] for key in keys}), np.uint8)
    return read_only(build_double_array(keys, [0] * len(keys))), read_only(first)


class Spill:
    """Where words go that are too many for memory: sorted runs in a folder, merged in the end.

    Parameters
    ----------
    limit
        Bytes that the tables of a counter may take.
    folder
        For temporary files.
    """

    def __init__(self, limit: int, folder: Path) -> None:
        self.limit = limit
        self.folder = folder
        self._runs: list[Path] = []
        self._lock = threading.Lock()

    def save(self, words: CountedWords) -> None:
        """Write a run of words."""
        with self._lock:
            path = self.folder / f"run-{len(self._runs)}"
            self._runs.append(path)
        save_run(sorted_words(words.data, words.indptr, words.counts), path)

    def merged(self, counters: Sequence[WordCounter]) -> CountedWords | None:
        """The words of all runs and of some counters; None if there are no runs."""
        from jittok.kernels.sentencepiece_corpus import PADDING

        if not self._runs:
            return None
        for counter in counters:
            self.save(counter.words())
        words = merged_by_parts([load_run(path) for path in self._runs], self.limit, self.folder, PADDING)
        return CountedWords(*words)


class WordCounter:
    """Counts words; grows as needed. For one thread at a time.

    Parameters
    ----------
    mode
        Where texts are cut, see :func:`word_mode`.
    spill
        Where words go when tables would take more than so many bytes; None: they take as many as there are.
    """

    def __init__(self, mode: int, spill: Spill | None = None):
        from jittok.kernels.sentencepiece_corpus import new_word_table

        self.mode = mode
        self.spill = spill
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
        used = int(table.numbers[kernels.SHORT_USED] + table.numbers[kernels.LONG_USED])
        # A larger table of slots is there besides the old one; sorting takes as much.
        size = 8 * (slots + long_slots) * (3 if lacking != kernels.NO_KEPT_ROOM else 2) + 4 * kept
        if self.spill is not None and size > self.spill.limit and used > 1:
            self.spill.save(self.words())
            self.table = kernels.new_word_table(_SHORT_BITS, _LONG_BITS, _KEPT_BYTES)
            for place in (kernels.NEXT_TEXT, kernels.NEXT_BYTE):
                self.table.numbers[place] = table.numbers[place]
            return
        if lacking == kernels.NO_KEPT_ROOM:
            # At least the longest text fits then.
            longer = np.empty(2 * kept + (1 << 20 if kept > 1 << 18 else 0), np.uint8)
            longer[:kept] = table.kept
            self.table = table._replace(kept=longer)
            return
        if lacking == kernels.NO_SHORT_ROOM:
            larger = table._replace(slots=zeros(slots << (2 if slots >> 2 < _MANY_SLOTS else 1), np.uint64))
        else:
            more = 2 if long_slots >> 2 < _MANY_SLOTS >> 2 else 1
            larger = table._replace(long_slots=zeros(long_slots << more, np.uint64))
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


def taken_from(free: list[WordCounter]) -> WordCounter | None:
    """One of the counters that no thread has, which is taken out; None if there are none."""
    try:
        return free.pop()
    except IndexError:
        return None


def merged_counters(counters: list[WordCounter]) -> WordCounter:
    """Add all words to the counter that has the most."""
    from jittok.kernels.sentencepiece_corpus import WHOLE

    counters = sorted(counters, key=lambda counter: -int(counter.table.numbers[0]))
    counters[0].spill = None  # all are in memory
    for other in counters[1:]:
        words = other.words()
        counters[0].add(words.data, words.indptr[:-1], words.indptr[1:], words.counts, WHOLE)
    return counters[0]


def word_mode(options: SentencePieceOptions) -> int:
    """Where texts are cut into words, as the kernels call it."""
    from jittok.kernels import sentencepiece_corpus as kernels

    if not options.split_by_whitespace:
        return kernels.WHOLE
    if options.treat_whitespace_as_suffix:
        return kernels.BEHIND_RUN if options.allow_whitespace_only_pieces else kernels.BEHIND
    return kernels.BEFORE_RUN if options.allow_whitespace_only_pieces else kernels.BEFORE


def _no_more_than(batch: TextBatch, n_bytes: int) -> Iterator[TextBatch]:
    """Cut a batch into smaller ones of about so many bytes."""
    data, indptr = batch
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + n_bytes, side="left"))
        last = min(max(last, first + 1), n)
        yield TextBatch(data, indptr[first : last + 1])
        first = last


class TextCounter:
    """Counts the words of batches, on several threads."""

    def __init__(self, options: SentencePieceOptions, report: TextReport, strips: bool, spill: Spill | None = None):
        self.reader = _Reader(options)
        self.report = report
        self._strips = strips
        self._spill = spill
        self._mode = word_mode(options)
        self._free: list[WordCounter] = []

    def work(self, batch: TextBatch) -> tuple[NDArray[np.int64], int, int]:
        """Count a batch: how many texts were left out, how many were nothing but blanks, and bytes."""
        counter = taken_from(self._free) or WordCounter(self._mode, self._spill)
        left_out = np.zeros(3, np.int64)
        data, starts, ends = self.reader.read(batch, self._strips, left_out)
        counter.add(data, starts, ends)
        self._free.append(counter)
        return left_out, int((starts == ends).sum()), int(batch.indptr[-1] - batch.indptr[0])

    def take(self, result: tuple[NDArray[np.int64], int, int]) -> int:
        """Note what :meth:`work` gave; the bytes."""
        left_out, vanished, n_bytes = result
        for reason, n in zip((*_REASONS, _VANISHED), [*left_out.tolist(), vanished], strict=True):
            self.report.skip(reason, n)
        return n_bytes

    def run(self, batches: Iterable[TextBatch], threads: int, bar: Progress) -> None:
        """Count all batches."""
        if threads == 1:
            for batch in batches:
                bar.advance(self.take(self.work(batch)))
            return
        from concurrent.futures import ThreadPoolExecutor

        pending: list[Future[tuple[NDArray[np.int64], int, int]]] = []
        with ThreadPoolExecutor(threads, thread_name_prefix="jittok") as pool:
            try:
                for batch in batches:
                    pending.append(pool.submit(self.work, batch))
                    while len(pending) > 2 * threads:
                        bar.advance(self.take(pending.pop(0).result()))
                for future in pending:
                    bar.advance(self.take(future.result()))
            except BaseException:
                for future in pending:
                    future.cancel()
                raise

    def words(self) -> CountedWords:
        """All words."""
        words = None if self._spill is None else self._spill.merged(self._free)
        if words is None:
            words = merged_counters(self._free or [WordCounter(self._mode)]).words()
        return CountedWords(words.data, words.indptr, words.counts, self.report)

    def words_of_threads(self, workers: Workers) -> list[CountedWords]:
        """The words that each thread counted, at least one of them; a word may be among those of several."""
        if self._spill is not None:
            return [self.words()]
        counters = self._free or [WordCounter(self._mode)]
        self._free = []

        def listed(_: int) -> CountedWords:
            words = counters.pop().words()  # so that its table is given up
            return CountedWords(words.data, words.indptr, words.counts, self.report)

        return list(workers.map(listed, list(range(len(counters)))))


def reads_paths(texts: object) -> bool:
    """Whether texts are lines of files, from which the reference takes nothing away but the newline."""
    if isinstance(texts, list | tuple):
        return all(isinstance(text, os.PathLike) for text in texts)
    return isinstance(texts, str | os.PathLike)


def some_texts(texts: object, options: SentencePieceOptions, report: TextReport, reading: Any) -> Iterator[TextBatch]:
    """Batches of texts, as many as are wanted."""
    if options.input_sentence_size and options.shuffle_input_sentence:
        yield from _sample(texts, options, report, reading)
        return
    left = options.input_sentence_size or -1
    for batch in read_texts(texts, report, **{"keep_line_ends": False, **reading}):
        for part in _no_more_than(batch, BATCH_BYTES):
            if left < 0:
                yield part
                continue
            # Only those that are trained on are counted.
            for number in range(len(part.indptr) - 1):
                one = TextBatch(part.data, part.indptr[number : number + 2])
                left_out = np.zeros(3, np.int64)
                _select(one, not reads_paths(texts), options.max_sentence_length, left_out)
                yield one
                left -= not left_out.any()
                if left == 0:
                    return


def _sample(texts: object, options: SentencePieceOptions, report: TextReport, reading: Any) -> Iterator[TextBatch]:
    """Some texts of all that are trained on, in their order: those whose numbers have the least hashes.

    The reference draws another sample each time, by a generator that it seeds with something random.
    """
    size = options.input_sentence_size
    keys: list[NDArray[np.uint64]] = []
    kept: list[list[bytes]] = []
    n = waiting = 0
    left_out = np.zeros(3, np.int64)
    highest = np.uint64((1 << 64) - 1)
    for batch in read_texts(texts, report, **{"keep_line_ends": False, **reading}):
        data, starts, ends = _select(batch, not reads_paths(texts), options.max_sentence_length, left_out)
        batch_keys = _mixed(np.arange(n, n + len(starts), dtype=np.uint64))
        n += len(starts)
        chosen = np.flatnonzero(batch_keys <= highest)
        keys.append(batch_keys[chosen])
        kept.append([data[a:b].tobytes() for a, b in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)])
        waiting += len(chosen)
        if waiting > 2 * size:
            all_keys = np.concatenate(keys)
            highest = np.partition(all_keys, size - 1)[size - 1]
            kept = [[text for text, key in zip(_joined(kept), all_keys.tolist(), strict=True) if key <= highest]]
            keys = [all_keys[all_keys <= highest]]
            waiting = size
    all_keys = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
    if len(all_keys) > size:
        highest = np.partition(all_keys, size - 1)[size - 1]
    chosen_texts = [text for text, key in zip(_joined(kept), all_keys.tolist(), strict=True) if key <= highest]
    del kept
    for reason, number in zip(_REASONS, left_out.tolist(), strict=True):
        report.skip(reason, number)
    if not chosen_texts:
        return
    whole = texts_from(chosen_texts)
    yield from _no_more_than(TextBatch(whole.data, whole.indptr), BATCH_BYTES)


def _joined(lists: list[list[bytes]]) -> Iterator[bytes]:
    for some in lists:
        yield from some


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, all different for different ones (Steele, Lea and Flood 2014, "SplitMix")."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


def count_texts(
    texts: object,
    options: SentencePieceOptions,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    **reading: Any,
) -> CountedWords:
    """Count the words of texts: :func:`text_counter`, and its words.

    Parameters
    ----------
    texts
        One sentence each: a path, or any iterable; see :func:`~jittok.training.texts.read_texts`. CR and LF at the end
        of a sentence are left out, but of lines of files only the newline is.
    options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.
    threads
        At most so many threads; None: one for each processor. The words do not depend on it, their order does.
    memory_limit
        Bytes that tables of words may take; what does not fit goes to temporary files.
    progress
        Whether to show how far it is.
    **reading
        See :func:`~jittok.training.texts.read_texts`.

    Returns
    -------
    CountedWords
        Memory goes with the words that differ, not with the texts.
    """
    with spilling(memory_limit, threads) as spill:
        return text_counter(texts, options, spill, threads=threads, progress=progress, **reading).words()


@contextmanager
def spilling(memory_limit: int | None, threads: int | None, tables: int = 1) -> Iterator[Spill | None]:
    """Where words go that are too many for memory, and a folder as long as it is needed; None without a limit.

    Parameters
    ----------
    memory_limit
        Bytes of the tables of all threads.
    threads
        At most so many threads; None: one for each processor.
    tables
        How many tables each has.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        It is no number of bytes.
    """
    memory_limit = checked_memory_limit(memory_limit)
    if memory_limit is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="jittok-", ignore_cleanup_errors=True) as folder:
        yield Spill(memory_limit // (thread_count(threads) * tables), Path(folder))


def text_counter(
    texts: object,
    options: SentencePieceOptions,
    spill: Spill | None = None,
    *,
    threads: int | None,
    progress: bool,
    **reading: Any,
) -> TextCounter:
    """Count the words of texts, see :func:`count_texts`; they are still in the tables of threads."""
    report = TextReport()
    counter = TextCounter(options, report, not reads_paths(texts), spill)
    with Progress(None, "B", "counting words", progress) as bar:
        counter.run(some_texts(texts, options, report, reading), thread_count(threads), bar)
    return counter


def count_sentencepiece_words(
    texts: object,
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
    **options: Any,
) -> WordCounts:
    """Count the words of a part of a corpus, for SentencePiece's BPE and unigram trainers.

    Parameters
    ----------
    texts
        See :func:`count_texts`.
    threads, memory_limit, progress
        As there.
    **options
        Those of the trainer, of which only those matter that say what becomes of texts; and ``field``, ``column`` and
        ``errors`` of :func:`~jittok.training.texts.read_texts`.

    Returns
    -------
    WordCounts
        To be saved, merged, and given to a trainer as ``counts=``, with the same options.
    """
    from jittok.training.sentencepiece_options import sentencepiece_options

    reading = {name: options.pop(name) for name in ("field", "column", "errors") if name in options}
    checked = sentencepiece_options("bpe", **options)
    words = count_texts(texts, checked, threads=threads, memory_limit=memory_limit, progress=progress, **reading)
    # From runs they come sorted.
    ordered = words if isinstance(words.data, np.memmap) else sorted_words(words.data, words.indptr, words.counts)
    return WordCounts(ordered.data, ordered.indptr, ordered.counts, word_settings(checked), words.report)


def word_settings(options: SentencePieceOptions) -> dict[str, Any]:
    """What counted words depend on, as JSON values."""
    meta = sorted(piece for piece, _ in options.meta_pieces().values())
    return {"rules": "sentencepiece", "meta_pieces": meta, **{name: getattr(options, name) for name in _WORD_OPTIONS}}


def words_of_counts(counts: Any, options: SentencePieceOptions) -> CountedWords:
    """Words that were counted before.

    Parameters
    ----------
    counts
        What :func:`count_sentencepiece_words` gave, the path of such a file, or a list of these.
    options
        Must be those that the words were counted with.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        They are not, or they are no counts; see also :func:`jittok.training.word_counts.check_words`.
    """
    several = counts if isinstance(counts, list | tuple) else [counts]
    for one in several:
        if not isinstance(one, WordCounts | str | os.PathLike):
            raise ArgumentTypeError(f"counts: expected WordCounts or the paths of their files, got {type(one).__name__}")
    read = [one if isinstance(one, WordCounts) else WordCounts.load(one) for one in several]
    if not read:
        raise ArgumentError("counts: expected at least one WordCounts or file of word counts")
    wanted = word_settings(options)
    counter = WordCounter(0)
    report = TextReport()
    for one in read:
        for name, value in wanted.items():
            if one.settings.get(name) != value:
                raise ArgumentError(
                    f"counts: the words were counted with {name}={one.settings.get(name)!r}, but {value!r} is asked for; "
                    f"count them with {__name__}.count_sentencepiece_words() and the options of training"
                )
        check_order(one)
        check_words(one, bytewise=False)
        data = np.concatenate((one.data[: int(one.indptr[-1])], np.zeros(64, np.uint8)))
        counter.add(data, one.indptr[:-1], one.indptr[1:], one.counts)
        report.add(one.report)
    words = counter.words()
    return CountedWords(words.data, words.indptr, words.counts, report)


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
    return alphabet_of_all([words], options)


def alphabet_of_all(several: Sequence[CountedWords], options: SentencePieceOptions, threads: int = 1) -> Alphabet:
    """Choose the alphabet of words that are in several lists, on threads; see :func:`alphabet_of`."""
    from jittok.kernels.sentencepiece_corpus import count_characters

    def counted(words: CountedWords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # At least of U+2581, which U+0020 stands for.
        dense = np.zeros(max(codepoints_below(words.data[: int(words.indptr[-1])]), ord(BLANK) + 1), np.int64)
        count_characters(read_only(words.data), read_only(words.indptr), read_only(words.counts), dense)
        dense[ord(BLANK)] += dense[ord(" ")]
        dense[ord(" ")] = 0
        characters = np.flatnonzero(dense)
        return characters, dense[characters]

    parts = list(Workers(threads).map(counted, list(several)))
    characters = np.unique(np.concatenate([part for part, _ in parts]))
    character_counts = np.zeros(len(characters), np.int64)
    for part, part_counts in parts:
        character_counts[np.searchsorted(characters, part)] += part_counts
    meta = len(options.meta_pieces())
    if options.auto_character_coverage:
        if meta >= options.vocab_size:
            raise ArgumentError(f"vocab_size={options.vocab_size}: there are {meta} meta pieces; expected more")
        if not len(characters):
            raise _nothing_left(several)
        letters = counts = np.zeros(0, np.int64)
    else:
        letters, counts = _letters(characters, character_counts, options, several)
        if len(letters) + meta > options.vocab_size:
            raise ArgumentError(
                f"vocab_size={options.vocab_size}: the alphabet has {len(letters)} characters and there are {meta} meta "
                "pieces; expected at least as many together, or a smaller character_coverage"
            )
    return Alphabet(letters.astype(np.uint32), counts, characters.astype(np.uint32), character_counts)


def _nothing_left(words: Sequence[CountedWords]) -> ArgumentError:
    """The error for texts of which none is left; all lists of words have the same report."""
    skipped = ", ".join(f"{n:,} {reason}" for reason, n in sorted(words[0].report.skipped.items()))
    return ArgumentError(
        "texts: nothing is left to train on; expected at least one text that is not empty"
        + (f" (left out: {skipped})" if skipped else "")
    )


def _letters(
    characters: NDArray[np.int64],
    character_counts: NDArray[np.int64],
    options: SentencePieceOptions,
    words: Sequence[CountedWords],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The alphabet and its counts, the most frequent first; of all characters, rising, and how often each occurs."""
    is_letter = characters != 0
    total = int(character_counts[is_letter].sum())
    if total == 0:
        raise _nothing_left(words)
    required = np.array([ord(letter) for letter in options.required_chars if letter != "\0"], np.int64)
    found = np.unique(np.concatenate((characters[is_letter], required)))
    counts = np.zeros(len(found), np.int64)
    counts[np.searchsorted(found, characters[is_letter])] = character_counts[is_letter]
    first = np.lexsort((found, -counts, ~np.isin(found, required)))
    order, counts = found[first], counts[first]
    before = np.cumsum(counts) - counts
    # As the reference computes it: float64 division, rounded to float32.
    covered = (before / total).astype(np.float32) >= np.float32(options.character_coverage)
    n = int(np.argmax(covered)) if covered.any() else len(order)
    order, counts = order[:n], counts[:n]
    if (order == ord(OUTSIDE)).any():
        raise ArgumentError("normalization: the rules make U+2585, which is reserved; leave that rule out")
    kept = order != ord(BOUNDARY)
    order, counts = order[kept], counts[kept]
    last = np.lexsort((order, -counts))
    return order[last], counts[last]


def load_corpus(
    texts: object,
    options: SentencePieceOptions,
    *,
    counts: Any = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Any,
) -> SentencePieceCorpus:
    """Read texts as the reference's trainers do.

    Parameters
    ----------
    texts
        See :func:`count_texts`.
    options
        See :class:`~jittok.training.sentencepiece_options.SentencePieceOptions`.
    counts
        Instead of texts: see :func:`words_of_counts`.
    threads, progress, **reading
        See :func:`count_texts`. The result does not depend on the number of threads.

    Returns
    -------
    SentencePieceCorpus

    Raises
    ------
    ArgumentError
        Nothing is left, or the alphabet is larger than the vocabulary.
    """
    if counts is not None:
        words = words_of_counts(counts, options)
    elif options.split_by_whitespace:
        words = count_texts(texts, options, threads=threads, progress=progress, **reading)
    else:
        words = whole_texts(texts, options, reading)
    alphabet = alphabet_of(words, options)
    codepoints, indptr = decoded_words(words, alphabet)
    if options.split_by_whitespace or counts is not None:
        codepoints, indptr, n_times = _in_order(codepoints, indptr, words.counts)
    else:
        n_times = words.counts
    return SentencePieceCorpus(alphabet.letters, alphabet.counts, codepoints, indptr, n_times, words.report)


def whole_texts(texts: object, options: SentencePieceOptions, reading: Any) -> CountedWords:
    """Whole texts, each counted once, in the order in which the reference has them."""
    report = TextReport()
    counter = TextCounter(options, report, not reads_paths(texts))
    kept: list[bytes] = []
    for batch in some_texts(texts, options, report, reading):
        left_out = np.zeros(3, np.int64)
        data, starts, ends = counter.reader.read(batch, not reads_paths(texts), left_out)
        content = data.tobytes()
        kept += [content[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        counter.take((left_out, 0, 0))
    at = 0
    while at < len(kept):  # the last one comes in the place of one that is empty
        if kept[at]:
            at += 1
        else:
            report.skip(_VANISHED)
            kept[at] = kept[-1]
            kept.pop()
    indptr = np.cumsum([0] + [len(text) for text in kept])
    joined = np.frombuffer(b"".join(kept) + bytes(64), np.uint8)
    return CountedWords(joined, indptr, np.ones(len(kept), np.int64), report)


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
