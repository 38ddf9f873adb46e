"""Texts to train on, whatever they come in: batches of UTF-8, and a report of what was odd about them.

Nothing is left out unless it is said so here, and counted in the report:

- Empty texts, blank lines, NUL, U+2028 and long lines are texts like others; the report counts them.
- Bytes that are not UTF-8, and lone surrogates in a str, become U+FFFD as Python's decoder does it (``errors="replace"``);
  or their texts are skipped (``"skip"``), or an error (``"strict"``).
- Nulls of Arrow and Parquet columns, blank lines of a .jsonl file and its objects without the field, are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._strings import strings_of
from jittok.corpus.blocks import Problem
from jittok.corpus.reading import IS_BLANK, IS_NULL, NO_FIELD, NOT_UTF_8, REPLACED, Reading, place, read_documents
from jittok.corpus.sources import Kind, Source, kind_of
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, MissingFileError, TextError, TextWarning
from jittok.tables import read_only
from jittok.text import Texts, find_invalid, text_from, texts_from
from jittok.training.progress import warn_caller

ErrorPolicy = Literal["replace", "skip", "strict"]

#: Bytes of text in a batch, about, where texts come one by one.
BATCH_BYTES = 1 << 19
#: Texts taken at once from an iterable, at first, and where they are short.
_AT_ONCE, _MOST_AT_ONCE = 64, 1024
#: What an error about a text says.
_WHAT_TO_DO = "pass valid UTF-8, or errors='replace' to put U+FFFD there, or errors='skip' to leave the text out"
#: What the report calls long.
LONG_TEXT = 1 << 20


class TextBatch(NamedTuple):
    """Some texts.

    Attributes
    ----------
    data
        uint8[m], read-only; valid UTF-8.
    indptr
        int64[n + 1], rising; text `i` is ``data[indptr[i]:indptr[i + 1]]``. It need not begin with 0.
    """

    data: NDArray[np.uint8]
    indptr: NDArray[np.int64]


@dataclass
class TextReport:
    """What was found in the texts of a corpus.

    Attributes
    ----------
    texts
        Texts given, those skipped among them.
    n_bytes
        Bytes of those that were not skipped.
    skipped, replaced, kept
        Number of texts by reason: those left out; those with characters replaced by U+FFFD; and those that were
        taken as they are though something is odd about them.
    """

    texts: int = 0
    n_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str, n: int = 1) -> None:
        """Count `n` texts that are left out, and are among :attr:`texts`, for a `reason`."""
        _count(self.skipped, reason, n)

    def replace(self, reason: str, n: int = 1) -> None:
        """Count `n` texts in which something was replaced for a `reason`."""
        _count(self.replaced, reason, n)

    def keep(self, reason: str, n: int = 1) -> None:
        """Count `n` texts that are taken as they are, and odd for a `reason`."""
        _count(self.kept, reason, n)

    def add(self, other: TextReport) -> None:
        """Count what `other` counted too."""
        self.texts += other.texts
        self.n_bytes += other.n_bytes
        for mine, its in ((self.skipped, other.skipped), (self.replaced, other.replaced), (self.kept, other.kept)):
            for reason, n in its.items():
                _count(mine, reason, n)

    def summary(self) -> str:
        """What to tell the user, in a line: ``10,000 texts, 1.2 MB; skipped 3 of 10,000: 3 null``."""
        parts = [f"{self.texts:,} texts, {self.n_bytes / 1e6:,.1f} MB"]
        for verb, reasons in (("skipped", self.skipped), ("replaced characters in", self.replaced), ("kept", self.kept)):
            if reasons:
                total = f"{sum(reasons.values()):,} of {self.texts:,}: " if verb != "kept" else ""
                parts.append(f"{verb} {total}" + ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items())))
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values, the same for the same numbers."""
        reasons = {name: dict(sorted(getattr(self, name).items())) for name in ("skipped", "replaced", "kept")}
        return {"texts": self.texts, "n_bytes": self.n_bytes, **reasons}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> TextReport:
        """The report that :meth:`as_json` stated as `value`."""
        return TextReport(
            int(value["texts"]),
            int(value["n_bytes"]),
            *({str(k): int(n) for k, n in value[name].items()} for name in ("skipped", "replaced", "kept")),
        )


def _count(reasons: dict[str, int], reason: str, n: int) -> None:
    if n:
        reasons[reason] = reasons.get(reason, 0) + int(n)


def read_texts(
    texts: object,
    report: TextReport,
    *,
    field: str = "text",
    column: str = "text",
    errors: ErrorPolicy = "replace",
    keep_line_ends: bool = True,
) -> Iterator[TextBatch]:
    """Go through texts in batches of a few megabytes.

    Parameters
    ----------
    texts
        The path of a file, as a str or a Path; an iterable of str, of bytes, of lists of these, or of Paths; a pyarrow
        string or binary array, chunked or not; a pair ``(data, indptr)`` of NumPy arrays. Of a file, each line is a
        text; of a .jsonl file, a field of each line's object; of a .parquet file, each value of a column. Files of
        lines may be compressed (.gz, .bz2, .xz; .zst with zstandard or pyarrow installed, or Python 3.14).
    report
        Receives what is found.
    field, column
        Which field of .jsonl files, and which column of .parquet files.
    errors
        What becomes of a text that is not valid UTF-8: "replace", U+FFFD where it is not; "skip", it is left out;
        "strict", an error.
    keep_line_ends
        Whether the newline that ends a line belongs to its text, as tokenizers' trainers take it.

    Yields
    ------
    TextBatch
        In the order of the texts. Of a pair or an Arrow array, the bytes are not copied.

    Raises
    ------
    TextError
        With errors="strict".
    FormatError
        A line of a .jsonl file is not JSON, or the field is not a string; a file cannot be decompressed.
    MissingFileError
        A file cannot be read.
    ArgumentError, ArgumentTypeError
        The texts are of no such form; there is no such column.
    MissingDependencyError
        A .parquet file without pyarrow, a .zst file without a module that can decompress it.
    """
    if errors not in ("replace", "skip", "strict"):
        raise ArgumentError(f"errors={errors!r}: expected 'replace', 'skip' or 'strict'")
    reader = _Reader(report, field, column, errors, keep_line_ends)
    for batch in reader.read(texts):
        reader.look_at(batch)
        yield batch


class _Reader:
    """Goes through texts; what is found goes into the report."""

    def __init__(self, report: TextReport, field: str, column: str, errors: ErrorPolicy, keep_line_ends: bool) -> None:
        self._report = report
        self._field, self._column, self._errors, self._keep_line_ends = field, column, errors, keep_line_ends

    def read(self, texts: object) -> Iterator[TextBatch]:
        if isinstance(texts, str | os.PathLike):
            yield from self._file(Path(texts))
        elif isinstance(texts, bytes | bytearray | memoryview | Mapping) or texts is None:
            raise ArgumentTypeError(
                f"texts: expected the path of a file or an iterable of texts, got {type(texts).__name__}; "
                "pass [text] for one text"
            )
        elif isinstance(texts, Texts) or _is_pair(texts):
            yield from self._whole(texts_from(texts, check=False))
        elif type(texts).__module__.split(".")[0] in ("pyarrow", "polars"):
            yield from self._arrow(texts)
        elif isinstance(texts, Iterable):
            yield from self._iterable(texts)
        else:
            raise ArgumentTypeError(
                f"texts: expected the path of a file or an iterable of texts, got {type(texts).__name__}"
            )

    def look_at(self, batch: TextBatch) -> None:
        """Count what is odd about texts that are taken."""
        from jittok.kernels.texts import BLANK, LONG, WITH_LINE_SEPARATOR, WITH_NUL, survey_texts

        report, (data, indptr) = self._report, batch
        n = len(indptr) - 1
        report.texts += n
        if not n:
            return
        begin, end = int(indptr[0]), int(indptr[-1])
        report.n_bytes += end - begin
        found = np.zeros(4, np.int64)
        survey_texts(read_only(data), read_only(indptr), LONG_TEXT, found)
        report.keep("blank", int(found[BLANK]))
        report.keep(f"longer than {LONG_TEXT:,} bytes", int(found[LONG]))
        report.keep("with NUL", int(found[WITH_NUL]))
        report.keep("with U+2028", int(found[WITH_LINE_SEPARATOR]))

    # ------------------------------------------------------------------------------------------ Python objects

    def _iterable(self, texts: Iterable[Any]) -> Iterator[TextBatch]:
        if isinstance(texts, np.ndarray) and texts.ndim != 1:
            raise ArgumentError(f"texts: expected an array of one dimension, got {texts.ndim}")
        if hasattr(texts, "tolist"):
            texts = texts.tolist()
        items = iter(texts)
        pending: list[Any] = []
        size = number = 0
        at_once = _AT_ONCE
        while True:
            some = list(islice(items, at_once))
            if number == 0 and some and not pending and _names_file(some[0]):
                warn_caller(
                    f"the first text is {some[0]!r}, and there is such a file; what is in a list is learned from as it is, "
                    "so for what the file holds give Path objects, or a single path",
                    TextWarning,
                )
            # Looking at types first: to ask each item whether it is a path takes longer than all else.
            plain = {str, bytes}.issuperset(map(type, some))
            if not plain and any(isinstance(item, list | tuple | os.PathLike) for item in some):
                yield from self._objects(pending, number)
                number += len(pending)
                pending, size = [], 0
                for item in some:
                    if isinstance(item, os.PathLike):
                        yield from self._file(Path(item))
                        number += 1
                    else:
                        item = list(item) if isinstance(item, list | tuple) else [item]
                        yield from self._objects(item, number)
                        number += len(item)
                continue
            pending += some
            try:
                size += sum(map(len, some))
            except TypeError:
                size = BATCH_BYTES  # an item of a wrong type, which is found below
            if size >= BATCH_BYTES or not some:
                yield from self._objects(pending, number)
                number += len(pending)
                pending, size = [], 0
            elif size < BATCH_BYTES // 4:
                at_once = min(2 * at_once, _MOST_AT_ONCE)  # they are short
            if not some:
                return

    def _objects(self, items: list[Any], first_number: int) -> Iterator[TextBatch]:
        """Some str, or some bytes."""
        if not items:
            return
        # Kernels read strings three times as fast as the interpreter, and let other threads run meanwhile.
        strings = strings_of(items) if type(items[0]) is str else None
        read = None if strings is None else strings.utf8(0, len(items))
        if read is not None:
            yield TextBatch(*read)
            return
        try:
            batch = texts_from(items, first_number=first_number)
        except TextError:
            if self._errors == "strict":
                raise
            yield self._mended(items, first_number)
            return
        yield TextBatch(batch.data, batch.indptr)

    def _mended(self, items: list[Any], first_number: int) -> TextBatch:
        """Texts, one by one, those that are not valid UTF-8 replaced or skipped."""
        good: list[bytes] = []
        reason = "with lone surrogates" if isinstance(items[0], str) else "not UTF-8"
        for number, item in enumerate(items, first_number):
            try:
                texts_from([item], first_number=number)
            except TextError:
                if self._errors == "skip":
                    self._report.skip(reason)
                    self._report.texts += 1
                    continue
                self._report.replace(reason)
                one = texts_from([item], errors="replace", surrogates="replace")
                good.append(one.data[: int(one.indptr[-1])].tobytes())
            else:
                good.append(item.encode() if isinstance(item, str) else bytes(item))
        batch = texts_from(good)
        return TextBatch(batch.data, batch.indptr)

    # --------------------------------------------------------------------------------------------------- arrays

    def _whole(self, texts: Texts, where: str = "texts[{}]", first_number: int = 0) -> Iterator[TextBatch]:
        """Texts that are bytes already, in batches."""
        indptr = texts.indptr
        n = len(indptr) - 1
        first = 0
        while first < n:
            last = int(np.searchsorted(indptr, indptr[first] + BATCH_BYTES, side="left"))
            last = min(max(last, first + 1), n)
            part = texts._replace(indptr=indptr[first : last + 1])
            invalid = -1 if texts.is_checked else find_invalid(part)
            if invalid < 0:
                yield TextBatch(part.data, part.indptr)
            else:
                bounds = part.indptr.tolist()
                if self._errors == "strict":
                    text = part.data[bounds[invalid] : bounds[invalid + 1]].tobytes()
                    raise _invalid_text(text, where.format(first_number + first + invalid))
                items = [part.data[p:q].tobytes() for p, q in zip(bounds, bounds[1:], strict=False)]
                yield self._mended(items, first_number + first)
            first = last

    def _arrow(self, array: Any, where: str = "texts[{}]", first_number: int = 0) -> Iterator[TextBatch]:
        if hasattr(array, "to_arrow"):
            array = array.to_arrow()
        chunks = array.chunks if hasattr(array, "chunks") else [array]
        for chunk in chunks:
            n, nulls = len(chunk), int(getattr(chunk, "null_count", 0))
            if nulls:
                self._report.texts += nulls
                self._report.skip("null", nulls)
                chunk = chunk.drop_null()
            yield from self._whole(texts_from(chunk, check=False), where, first_number)
            first_number += n

    # --------------------------------------------------------------------------------------------------- files

    def _file(self, path: Path) -> Iterator[TextBatch]:
        if path.is_dir():
            raise MissingFileError(
                f"{str(path)!r} is a folder; give the path of a file, or the paths of several as Path objects in a list"
            )
        if not path.exists():
            raise MissingFileError(
                f"{str(path)!r} does not exist. texts is the path of a file, or an iterable of texts: pass [text] for "
                "one text"
            )
        source = Source(str(path), kind_of(str(path)))
        reading = Reading(
            field=self._field,
            column=self._column,
            limit=None,
            keep_separators=self._keep_line_ends,
            replace_invalid=self._errors == "replace",
            batch_bytes=BATCH_BYTES,
        )
        for documents in read_documents(source, reading):
            for problem in documents.problems:
                self._problem(problem, source)
            try:
                yield from self._documents(documents.texts, source.kind, documents.numbers)
            except TextError as error:
                raise TextError(f"{path}: {error}") from None

    def _documents(self, texts: Any, kind: Kind, numbers: NDArray[np.int64]) -> Iterator[TextBatch]:
        first = int(numbers[0]) if len(numbers) else 0
        if isinstance(texts, list):
            try:
                yield from self._objects(texts, 0)
            except TextError:
                for text, number in zip(texts, numbers.tolist(), strict=True):
                    try:
                        text_from(text)
                    except TextError as error:
                        raise TextError(f"line {number + 1}: {error}") from None
                raise
        elif isinstance(texts, tuple) and kind == "jsonl":
            yield from self._whole(Texts(texts[0], texts[1], has_slack=False, is_checked=True))
        elif isinstance(texts, tuple):
            yield from self._whole(Texts(texts[0], texts[1], has_slack=False, is_checked=False), "line {}", first + 1)
        else:
            yield from self._arrow(texts, "row {}", first)

    def _problem(self, problem: Problem, source: Source) -> None:
        """Count a record that has nothing to give, or raise."""
        reason = {IS_BLANK: "blank lines of JSON", NO_FIELD: f"without the field {self._field!r}", IS_NULL: "null"}
        if problem.kind == REPLACED:
            self._report.replace(problem.reason)
            return
        if problem.kind == NOT_UTF_8 and self._errors == "strict":
            raise TextError(f"{place(source, problem.number, problem.position)}: {problem.reason}; {_WHAT_TO_DO}")
        if problem.kind not in (*reason, NOT_UTF_8):
            raise FormatError(f"{place(source, problem.number, problem.position)}: {problem.reason}")
        self._report.texts += 1
        self._report.skip(reason.get(problem.kind, "not UTF-8"))


def _names_file(text: object) -> bool:
    """Whether a text may be a path that was meant to be read."""
    return isinstance(text, str) and 0 < len(text) < 256 and text.isprintable() and os.path.isfile(text)


def _is_pair(texts: object) -> bool:
    return isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(part, np.ndarray) for part in texts)


def _invalid_text(text: bytes, where: str) -> TextError:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return TextError(
            f"{where}: invalid UTF-8 at byte {error.start} (0x{text[error.start]:02X}, {error.reason}); {_WHAT_TO_DO}"
        )
    raise AssertionError("two UTF-8 decoders disagree")
