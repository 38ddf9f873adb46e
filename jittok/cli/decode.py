"""``jittok decode``: ids to text."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from jittok.cli import arguments
from jittok.errors import ArgumentError, FormatError, MissingFileError

#: Documents that are decoded at once.
BATCH = 1000
_NUMBER = re.compile(r"[+-]?[0-9]+")


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "decode",
        help="ids back to text",
        description=(
            "Decode ids. A FILE is what `jittok encode` wrote (NAME.ids.npy, with NAME.indptr.npy beside it), or text with"
            " the ids of one document in a line: numbers between blanks or commas, in brackets or not."
        ),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="arrays, or text; - is standard input")
    parser.add_argument(
        "--tokenizer", "-t", default="default", metavar="X", help="tokenizer file or directory (default: the built-in one)"
    )
    arguments.add_tokenizer_details(parser)
    parser.add_argument("--skip-special-tokens", action="store_true", help="leave special tokens out")
    parser.add_argument(
        "--json", action="store_true", help="one JSON string a line, so that line breaks in a document do not end it"
    )
    parser.add_argument(
        "--end",
        default="\\n",
        metavar="S",
        help="what comes after each document; \\n, \\t and \\0 are understood (default: \\n)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the texts to standard output."""
    tokenizer = arguments.load_tokenizer(options)
    end = options.end.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
    out = sys.stdout
    for path in options.files:
        for documents in _batches(path):
            texts = tokenizer.decode_batch(documents, skip_special_tokens=options.skip_special_tokens)
            for text in texts:
                out.write(json.dumps(text, ensure_ascii=False) + "\n" if options.json else text + end)
    out.flush()
    return 0


def _batches(path: str) -> Iterator[Any]:
    """The ids of a file, some documents at a time."""
    if path.endswith(".npy"):
        yield from _from_arrays(path)
        return
    documents: list[list[int]] = []
    for ids in _from_lines(path):
        documents.append(ids)
        if len(documents) == BATCH:
            yield documents
            documents = []
    if documents:
        yield documents


def _from_arrays(path: str) -> Iterator[list[Any]]:
    import numpy as np

    if not path.endswith(".ids.npy"):
        raise ArgumentError(f"{path}: expected NAME.ids.npy, which `jittok encode` writes beside NAME.indptr.npy")
    other = path.removesuffix(".ids.npy") + ".indptr.npy"
    arrays = []
    for name in path, other:
        try:
            arrays.append(np.load(name, mmap_mode="r", allow_pickle=False))
        except FileNotFoundError:
            raise MissingFileError(f"{name}: there is no such file; the ids and the row pointers belong together") from None
        except (ValueError, EOFError) as error:
            raise FormatError(f"{name}: no array of NumPy's ({error})") from None
    ids, indptr = arrays
    sound = ids.ndim == indptr.ndim == 1 and ids.dtype.kind in "iu" and indptr.dtype.kind in "iu" and len(indptr)
    if not sound or indptr[0] != 0 or indptr[-1] != len(ids) or bool((np.diff(indptr) < 0).any()):
        raise FormatError(f"{other}: these row pointers do not rise from 0 to the {ids.size} ids of {path}")
    for first in range(0, len(indptr) - 1, BATCH):
        bounds = indptr[first : first + BATCH + 1].tolist()
        yield [np.asarray(ids[begin:end]) for begin, end in zip(bounds, bounds[1:], strict=False)]


def _from_lines(path: str) -> Iterator[list[int]]:
    try:
        file = sys.stdin if path == "-" else open(path, encoding="utf-8")
    except OSError as error:
        raise MissingFileError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        try:
            for number, line in enumerate(file, 1):
                words = line.strip().strip("[]").replace(",", " ").split()
                for word in words:
                    if not _NUMBER.fullmatch(word):
                        raise FormatError(f"{path}, line {number}: {word[:40]!r} is no id; expected numbers between blanks")
                yield [int(word) for word in words]
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not text; expected a document's ids in each line, or a file named .npy") from None
