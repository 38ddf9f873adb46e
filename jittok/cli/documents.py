"""The documents that ``bench``, ``compare`` and ``verify`` are given: the first of some files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from jittok.cli import arguments

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
    """
    limit = int(options.megabytes * 1e6)
    size = 0
    for text in strings_of(options):
        if size >= limit:
            return
        if text:
            yield text
            size += len(text.encode("utf-8", "surrogatepass"))


def strings_of(options: argparse.Namespace) -> Iterator[str]:
    """All documents of the files that a command names, empty ones too.

    Parameters
    ----------
    options
        With ``files``, ``separator``, ``field`` and ``column``.
    """
    from jittok.corpus.reading import Reading, read_documents
    from jittok.corpus.sources import find_sources

    reading = Reading(options.separator, options.field, options.column, limit=None, replace_invalid=True)
    for source in find_sources(options.files):
        for documents in read_documents(source, reading):
            yield from _strings(documents.texts)


def _strings(texts: Any) -> Iterator[str]:
    if isinstance(texts, tuple):
        data, bounds = texts[0], texts[1].tolist()
        for begin, end in zip(bounds, bounds[1:], strict=False):
            yield data[begin:end].tobytes().decode("utf-8", "replace")
    else:
        yield from (text if isinstance(text, str) else text.as_py() for text in texts)
