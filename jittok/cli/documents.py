"""The documents that ``bench``, ``compare``, ``report`` and ``verify`` are given: the first of some files."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jittok.cli import arguments
from jittok.errors import ArgumentError

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
        "--megabytes", type=float, default=megabytes, metavar="N", help=f"text to take at most (default: {megabytes:g})"
    )


def documents_of(options: argparse.Namespace) -> Iterator[str]:
    """The first documents of the files that a command names, as many as are wanted; empty ones are left out.

    Parameters
    ----------
    options
        With ``files``, ``separator``, ``field``, ``column`` and ``megabytes``.

    Raises
    ------
    ArgumentError
        ``megabytes`` is not greater than 0.
    """
    from jittok.corpus.sources import find_sources

    limit = _limit(options)
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
        ``megabytes`` is not greater than 0, or a table has no such column.
    """
    limit = _limit(options)
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


def _limit(options: argparse.Namespace) -> float:
    """Bytes of text to take at most."""
    if not options.megabytes > 0:  # so for nan, too
        raise ArgumentError(f"--megabytes: expected a number greater than 0, not {options.megabytes:g}")
    return float(options.megabytes * 1e6)


def _reading(options: argparse.Namespace) -> Reading:
    from jittok.corpus.reading import Reading

    return Reading(options.separator, options.field, options.column, limit=None, replace_invalid=True)


def _numbered(source: Source, reading: Reading) -> Iterator[tuple[int, str]]:
    """All documents of a file, empty ones too, each with the number of its record; a warning says what is none."""
    from jittok.corpus.reading import read_documents

    n_problems, first = 0, ""
    try:
        for documents in read_documents(source, reading):
            for problem in documents.problems:
                first = first or f"record {problem.number}: {problem.reason}"
            n_problems += len(documents.problems)
            yield from zip(documents.numbers.tolist(), _strings(documents.texts), strict=True)
    finally:
        if n_problems and not reading.labels:  # records without a label are of use
            many = f"{n_problems:,} records without a text are left out, the first is " if n_problems > 1 else "left out: "
            print(f"jittok: warning: {source.name}: {many}{first}", file=sys.stderr)


def _strings(texts: Any) -> Iterator[str]:
    if isinstance(texts, tuple):
        data, bounds = texts[0], texts[1].tolist()
        for begin, end in zip(bounds, bounds[1:], strict=False):
            yield data[begin:end].tobytes().decode("utf-8", "replace")
    elif isinstance(texts, list):
        yield from texts
    else:
        import pyarrow

        for text in texts.cast(pyarrow.large_binary()):  # which a column of strings may be, too: some are no UTF-8
            yield text.as_py().decode("utf-8", "replace")
