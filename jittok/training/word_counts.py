"""Count the words of a corpus: what trainers learn from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.streams import COMPRESSED
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, TextWarning
from jittok.tables import read_only
from jittok.text import Texts, find_invalid
from jittok.training.array_file import read_arrays, write_arrays
from jittok.training.counting import Counting, Words, checked_memory_limit, merged, merged_by_parts
from jittok.training.progress import Progress, warn_caller
from jittok.training.steps import read_steps
from jittok.training.texts import ErrorPolicy, TextReport, read_texts

KIND = "jittok word counts"
VERSION = 1


@dataclass(frozen=True)
class WordCounts:
    """Words and how often each occurs.

    A word is a pre-token of the normalised text. Of byte-level steps it is the text's bytes: the byte alphabet is the
    trainer's matter.

    Attributes
    ----------
    data
        uint8[m], read-only: the words in UTF-8, one after another.
    indptr
        int64[n + 1]: word `i` is ``data[indptr[i]:indptr[i + 1]]``. Words are sorted by their bytes, and all differ.
    counts
        int64[n], at least 1.
    settings
        JSON values that say how words were made: ``normalizers`` and ``pre_tokenizers``, and whether a model sees their
        bytes, ``byte_level``. Empty where the words were given. Counts can be merged if their settings are equal.
    report
        What was found in the texts.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]
    counts: NDArray[np.int64]
    settings: dict[str, Any] = field(default_factory=dict)
    report: TextReport = field(default_factory=TextReport)

    def __post_init__(self) -> None:
        for name, dtype in (("data", np.uint8), ("indptr", np.int64), ("counts", np.int64)):
            array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        indptr = self.indptr
        if len(indptr) != len(self.counts) + 1:
            raise ArgumentError(f"indptr has {len(indptr)} items for {len(self.counts)} counts; expected one more")
        if indptr[0] != 0 or indptr[-1] > len(self.data) or (np.diff(indptr) < 0).any():
            raise ArgumentError(f"indptr does not rise from 0 to the {len(self.data)} bytes of data")
        if len(self.counts) and self.counts.min() < 1:
            raise ArgumentError("a count is less than 1")

    def __len__(self) -> int:
        """The number of words that differ."""
        return len(self.counts)

    @property
    def words(self) -> Words:
        """The three arrays."""
        return Words(self.data, self.indptr, self.counts)

    @property
    def total(self) -> int:
        """The number of words, each as often as it occurs."""
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        """Whether words, counts and settings are equal; the report does not matter."""
        if not isinstance(other, WordCounts):
            return NotImplemented
        return (
            self.settings == other.settings
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.data[: self.indptr[-1]], other.data[: other.indptr[-1]])
        )

    __hash__ = None  # type: ignore[assignment]

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Go through words, as bytes, and their counts."""
        content = self.data[: int(self.indptr[-1])].tobytes()
        bounds = self.indptr.tolist()
        for i, count in enumerate(self.counts.tolist()):
            yield content[bounds[i] : bounds[i + 1]], count

    @staticmethod
    def from_mapping(counts: Mapping[str, int] | Mapping[bytes, int], settings: dict[str, Any] | None = None) -> WordCounts:
        """Counts that somebody else made.

        Parameters
        ----------
        counts
            Words, as str or as bytes, and how often each occurs: 1 or more.
        settings
            See :attr:`settings`.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            A word is neither str nor bytes, or a count is no whole number of at least 1.
        """
        if not isinstance(counts, Mapping):
            raise ArgumentTypeError(f"word counts: expected a mapping of words to counts, got {type(counts).__name__}")
        words: dict[bytes, int] = {}
        for word, count in counts.items():
            if not isinstance(word, str | bytes):
                raise ArgumentTypeError(f"word counts: expected words as str or bytes, got {word!r}")
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count < 1 << 63:
                raise ArgumentError(f"word counts: {word!r} occurs {count!r} times; expected a whole number of at least 1")
            key = word.encode("utf-8", "surrogatepass") if isinstance(word, str) else word
            words[key] = words.get(key, 0) + int(count)
            if words[key] >= 1 << 63:
                raise ArgumentError(f"word counts: {word!r} occurs {words[key]} times; expected less than 2**63")
        return _from_words(words, settings or {}, TextReport())

    def merge(self, *others: WordCounts) -> WordCounts:
        """The counts of several corpora together.

        Parameters
        ----------
        *others
            Made with the same settings.

        Returns
        -------
        WordCounts
            The same whatever the order is.

        Raises
        ------
        ArgumentError
            The settings differ.
        """
        return merge_counts([self, *others])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a file, which has a checksum. The same counts give the same bytes.

        Parameters
        ----------
        path
            The file; it appears under its name when it is complete.

        Raises
        ------
        OutputError
            It cannot be written.
        """
        metadata = {"settings": self.settings, "report": self.report.as_json()}
        arrays: dict[str, Any] = {"counts": self.counts, "indptr": self.indptr, "data": self.data[: int(self.indptr[-1])]}
        write_arrays(Path(path), KIND, VERSION, metadata, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> WordCounts:
        """Read what :meth:`save` wrote. The arrays are mapped into memory, not copied.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        MissingFileError
            It cannot be opened.
        FormatError
            It is no such file, of another version, truncated or altered.
        """
        metadata, arrays = read_arrays(Path(path), KIND, VERSION)
        try:
            report = TextReport.from_json(metadata["report"])
            return WordCounts(arrays["data"], arrays["indptr"], arrays["counts"], metadata["settings"], report)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{path}: not as word counts are written ({error}); count the words anew") from None


def count_words(
    texts: object,
    *,
    normalizer: object = None,
    pre_tokenizer: object = None,
    field: str = "text",
    column: str = "text",
    errors: ErrorPolicy = "replace",
    keep_line_ends: bool = True,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: bool = False,
) -> WordCounts:
    """Count the words of a corpus, or of a part of one.

    Parameters
    ----------
    texts
        The path of a file, or any iterable of texts; see :func:`jittok.training.texts.read_texts`.
    normalizer, pre_tokenizer
        What makes words of texts; see :func:`jittok.training.steps.read_steps`. Without a pre-tokenizer, each text is
        a word.
    field, column, errors, keep_line_ends
        See :func:`jittok.training.texts.read_texts`.
    threads
        At most so many threads; None: one for each processor.
    memory_limit
        Bytes that tables of words may take; what does not fit goes to temporary files.
    progress
        Whether to show how far it is.

    Returns
    -------
    WordCounts
        The same for every number of threads, and whatever the order of texts is.
    """
    from jittok.build.plan import build_word_split
    from jittok.engine import thread_count

    n_threads = thread_count(threads)
    memory_limit = checked_memory_limit(memory_limit)
    steps = read_steps(normalizer, pre_tokenizer)
    split = build_word_split(steps.normalizers, steps.pre_tokenizers)
    report = TextReport()
    batches = read_texts(texts, report, field=field, column=column, errors=errors, keep_line_ends=keep_line_ends)
    with (
        Progress(_size_of(texts), "B", "counting words", progress) as bar,
        tempfile.TemporaryDirectory(prefix="jittok-", ignore_cleanup_errors=True) as folder,
    ):
        counting = Counting(split, n_threads, memory_limit, Path(folder))
        words = counting.run(batches, bar)
    warn_of(report)
    return WordCounts(*words, steps.settings(), report)


def warn_of(report: TextReport) -> None:
    """Warn if texts were skipped or changed.

    Parameters
    ----------
    report
        What was found in the texts.
    """
    if report.skipped or report.replaced:
        warn_caller(report.summary(), TextWarning)


def _size_of(texts: object) -> int | None:
    """Bytes of a file of plain text, for the progress bar."""
    try:
        if isinstance(texts, str | os.PathLike) and not str(texts).endswith(COMPRESSED):
            return os.stat(texts).st_size
    except (OSError, ValueError):  # what cannot be a path, and all else, is said when it is read
        pass
    return None


def merge_counts(counts: Iterable[WordCounts | str | os.PathLike[str]], *, memory_limit: int | None = None) -> WordCounts:
    """The counts of several corpora together.

    Parameters
    ----------
    counts
        Counts, or files that :meth:`WordCounts.save` wrote.
    memory_limit
        Bytes to use, about. With it the result is mapped from a temporary file; else it is made in memory.

    Raises
    ------
    ArgumentError
        There are none, their settings differ, or words are not in order.
    MissingFileError, FormatError
        As :meth:`WordCounts.load`.
    """
    parts = [one if isinstance(one, WordCounts) else WordCounts.load(one) for one in counts]
    if not parts:
        raise ArgumentError("counts: expected at least one WordCounts or file of word counts")
    report = TextReport()
    for one in parts:
        _check_settings(parts[0].settings, one.settings)
        check_order(one)
        report.add(one.report)
    if sum(int(one.counts.max(initial=0)) for one in parts) >= 1 << 63:
        raise ArgumentError("counts: a word may occur 2**63 times or more in all; divide all counts by the same number")
    memory_limit = checked_memory_limit(memory_limit)
    if memory_limit is None:
        words = merged([one.words for one in parts])
    else:
        with tempfile.TemporaryDirectory(prefix="jittok-", ignore_cleanup_errors=True) as folder:
            words = merged_by_parts([one.words for one in parts], memory_limit, Path(folder))
    return WordCounts(*words, parts[0].settings, report)


def check_order(counts: WordCounts) -> None:
    """Raise unless words are in the order of their bytes, and all differ, as merging takes for granted.

    Parameters
    ----------
    counts
        The words, which anybody may have made.

    Raises
    ------
    ArgumentError
        They are not.
    """
    from jittok.kernels.word_counting import first_unordered

    number = int(first_unordered(read_only(counts.data), read_only(counts.indptr)))
    if number >= 0:
        one, other = counts.words.word(number - 1), counts.words.word(number)
        raise ArgumentError(
            f"counts: the word {other[:50]!r} is behind {one[:50]!r}; expected words in the order of their bytes, each "
            "once. WordCounts.from_mapping() brings them in order"
        )


def check_words(counts: WordCounts, *, bytewise: bool) -> None:
    """Raise unless trainers can take these words, which anybody may have made.

    Parameters
    ----------
    counts
        The words.
    bytewise
        Whether a model sees bytes, so that words need not be UTF-8.

    Raises
    ------
    ArgumentError
        A word is not UTF-8, or a letter occurs more often than 64 bits hold.
    """
    data, indptr = counts.data, counts.indptr
    # Kernels add up how often each letter and pair occurs: no pair more often than its letters, no letter than its bytes.
    most, lengths = float(1 << 63), np.diff(indptr)
    # Not by a product of vectors: BLAS would start threads for it, which go on spinning.
    if float((lengths * counts.counts.astype(np.float64)).sum()) >= most / 2:
        used = data[: int(indptr[-1])]
        totals = np.bincount(used, np.repeat(counts.counts.astype(np.float64), lengths))
        if totals.max() >= most * (1 - 1e-9):
            raise ArgumentError("counts: a letter occurs 2**63 times or more in all; divide all counts by the same number")
    if bytewise:
        return
    number = find_invalid(Texts(data, indptr, has_slack=False, is_checked=False))
    if number >= 0:
        word = data[int(indptr[number]) : int(indptr[number + 1])].tobytes()
        raise ArgumentError(
            f"counts: the word {word[:50]!r} is not UTF-8; leave it out, or train a byte-level vocabulary "
            '(pre_tokenizer="ByteLevel")'
        )


def _check_settings(one: dict[str, Any], other: dict[str, Any]) -> None:
    if one != other:
        name = next(name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))
        raise ArgumentError(
            f"word counts of different settings cannot be merged: {name} is {one.get(name)!r} here and "
            f"{other.get(name)!r} there; count the words of all parts in the same way"
        )


def _from_words(words: Mapping[bytes, int], settings: dict[str, Any], report: TextReport) -> WordCounts:
    ordered = sorted(words)
    indptr = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(word) for word in ordered], out=indptr[1:])
    counts = np.array([words[word] for word in ordered], np.int64)
    return WordCounts(np.frombuffer(b"".join(ordered), np.uint8), indptr, counts, settings, report)
