"""The documents that ``bench``, ``compare``, ``report`` and ``verify`` are given: the first of some files."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jittok.cli import arguments

if TYPE_CHECKING:
    from jittok.corpus.reading import Reading
    from jittok.corpus.sources import Source

FILES = "text, JSON lines, Parquet or Arrow; compressed or not"


def add_documents(
    parser: argparse.ArgumentParser, megabytes: float, metavar: str = "FILE", files: str = FILES
) -> None:
    """Add what says which documents are taken.

    Parameters
    ----------
    parser
        Of the command.
    megabytes
        How much text is taken by default, at most.
    metavar, files
        How the files are called in the help, and what it says of them.
    """
    parser.add_argument("files", nargs="+", metavar=metavar, help=files)
    parser.add_argument(
        "--separator", choices=arguments.SEPARATORS, default="newline", help="what ends a document (default: newline)"
    )
    parser.add_argument("--field", default="text", metavar="PATH", help="jsonl: where the text is (default: text)")
    parser.add_argument("--column", default="text", metavar="NAME", help="tables: column of the text (default: text)")
    parser.add_argument(
        "--megabytes",
        type=arguments.positive_number,
        default=megabytes,
        metavar="N",
        help=f"text to take at most (default: {megabytes:g})",
    )


def documents_of(options: argparse.Namespace) -> Iterator[str]:
    """The first documents of the files that a command names, as many as are wanted; empty ones are left out.

    Parameters
    ----------
    options
        With ``files``, ``separator``, ``field``, ``column`` and ``megabytes``.
    """
    from jittok.corpus.sources import find_sources

    limit = options.megabytes * 1e6
    size = 0
    for source in find_sources(options.files):
        for _, text in _numbered(source, _reading(options)):
            if size >= limit:
                return
            if text:
                yield text
                size += len(text.encode("utf-8", "surrogatepass"))


def labelled_documents_of(options: argparse.Namespace, source: Source, labels: str) -> Iterator[tuple[str | None, str]]:
    """The first documents of JSON lines or of a table, each with the label that its record has, or None.

    Parameters
    ----------
    options
        As for :func:`documents_of`; ``files`` are not looked at.
    source
        The file, which is read twice.
    labels
        Field or column of the labels.

    Raises
    ------
    ArgumentError
        A table has no such column.
    """
    limit = options.megabytes * 1e6
    size = 0
    reading = _reading(options)
    others = _numbered(source, dataclasses.replace(reading, field=labels, column=labels, labels=True))
    number, label = next(others, (sys.maxsize, ""))
    # Either reading leaves out records that do not have what it looks for.
    for at, text in _numbered(source, reading):
        if size >= limit:
            return
        while number < at:
            number, label = next(others, (sys.maxsize, ""))
        if text:
            yield label if number == at else None, text
            size += len(text.encode("utf-8", "surrogatepass"))


def _reading(options: argparse.Namespace) -> Reading:
    from jittok.corpus.reading import Reading

    return Reading(options.separator, options.field, options.column, limit=None, replace_invalid=True)


class _Told:
    """Records of a file of which something is told at its end: how many, and about the first."""

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def add(self, where: str, reason: str) -> None:
        self.first = self.first or f"{where}: {reason}"
        self.count += 1

    def warn(self, what: str) -> None:
        if self.count:
            many = f"{self.count:,} records {what}; the first is " if self.count > 1 else f"a record {what}: "
            print(f"jittok: warning: {many}{self.first}", file=sys.stderr)


def _numbered(source: Source, reading: Reading) -> Iterator[tuple[int, str]]:
    """All documents of a file, empty ones too, each with the number of its record; a warning says what is none."""
    from jittok.corpus.reading import REPLACED, place, read_documents

    left_out, replaced = _Told(), _Told()
    try:
        for documents in read_documents(source, reading):
            for problem in documents.problems:
                told = replaced if problem.kind == REPLACED else left_out
                told.add(place(source, problem.number, problem.position, reading.separator), problem.reason)
            for row, (text, reason) in enumerate(_strings(documents.texts)):
                number = int(documents.numbers[row])
                if reason:
                    replaced.add(place(source, number, int(documents.starts[row]), reading.separator), reason)
                yield number, text
    finally:
        if not reading.labels:  # records without a label are of use
            left_out.warn("without a text left out")
            replaced.warn("with U+FFFD for what is no text")


def _strings(texts: Any) -> Iterator[tuple[str, str]]:
    """Texts, and why there is U+FFFD for some of one, or ""."""
    if isinstance(texts, tuple):
        data, bounds = texts[0], texts[1].tolist()
        for begin, end in zip(bounds, bounds[1:], strict=False):
            yield _decoded(data[begin:end].tobytes())
    elif isinstance(texts, list):
        for text in texts:
            try:
                text.encode()
                yield text, ""
            except UnicodeEncodeError as error:
                whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
                yield whole, f"lone surrogate U+{ord(text[error.start]):04X} at character {error.start}"
    else:
        import pyarrow

        for text in texts.cast(pyarrow.large_binary()):  # which a column of strings may be, too: some are no UTF-8
            yield _decoded(text.as_py())


def _decoded(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"invalid UTF-8 at byte {error.start} ({error.reason})"
