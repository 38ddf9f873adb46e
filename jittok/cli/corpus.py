"""``jittok encode`` and ``jittok count``: whole files, block by block."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from jittok.cli import arguments
from jittok.errors import ArgumentError, OutputError, TextError

ONE_MEGABYTE = 1_000_000


def add_encode(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "encode",
        help="files to arrays of ids",
        description=(
            "Encode each file into NAME.ids (int32) and NAME.indptr (int64) in the directory DIR: document i of"
            " the file is ids[indptr[i]:indptr[i + 1]]. Files are read in blocks, so memory does not grow with"
            " their size, but one document is held whole: a 1 GB line needs several GB. Output appears under its"
            " name only when complete."
        ),
    )
    _add_common(parser)
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="directory for the arrays; made if missing"
    )
    parser.add_argument(
        "--format",
        choices=arguments.FORMATS,
        default="npy",
        help="npy (NumPy), or raw: bare little-endian arrays and a JSON file that describes them (default: npy)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace output that exists")
    parser.set_defaults(run=run_encode)


def add_count(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "count", help="number of tokens of files", description="Count the tokens of each file without keeping ids."
    )
    _add_common(parser)
    parser.set_defaults(run=run_count)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="text in UTF-8; - is standard input")
    parser.add_argument(
        "--tokenizer",
        "-t",
        default="default",
        metavar="X",
        help="tokenizer file or directory, or 'default' for the built-in one (default: default)",
    )
    arguments.add_tokenizer_details(parser)
    parser.add_argument(
        "--separator",
        choices=arguments.SEPARATORS,
        default="newline",
        help="what ends a document (default: newline)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: one for each core)")
    parser.add_argument(
        "--add-special-tokens", action="store_true", help="add what the tokenizer puts around a text"
    )
    parser.add_argument(
        "--special",
        choices=("parse", "text", "raise"),
        help="special tokens written in the text: parse them, take them as ordinary text, or stop"
        " (default: as the tokenizer's reference library does)",
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def run_encode(options: argparse.Namespace) -> int:
    """Encode the files."""
    from jittok.blocks import read_blocks
    from jittok.cli.reading import explain_text_error
    from jittok.cli.writing import TokenWriter, output_paths

    _check(options)
    names = _output_names(options.files)
    _make_directory(options.out)
    if not options.overwrite:
        for name in names:
            for path in output_paths(options.out, name, options.format):
                if path.exists():
                    raise OutputError(
                        f"{str(path)!r} exists. Give another directory, or --overwrite to replace it."
                    )
    tokenizer = arguments.load_tokenizer(options)
    settings = _call_arguments(options)
    start = time.perf_counter()
    tokens = documents = size = 0
    with Progress(options.files, options.quiet) as progress:
        for path, name in zip(options.files, names, strict=True):
            about = {"source": path, "tokenizer": options.tokenizer, "separator": options.separator}
            with TokenWriter(options.out, name, options.format, about) as writer:
                for block in read_blocks(path, options.separator):
                    try:
                        batch = tokenizer.encode_batch((block.data, block.indptr), **settings)
                    except TextError as error:
                        raise explain_text_error(error, block, path) from error
                    writer.append(batch.ids, batch.indptr)
                    size += len(block.raw)
                    progress.advance(len(block.raw), tokens + writer.tokens)
            tokens += writer.tokens
            documents += writer.documents
    print(_summary(size, documents, tokens, time.perf_counter() - start))
    return 0


def run_count(options: argparse.Namespace) -> int:
    """Count the tokens of the files."""
    from jittok.blocks import read_blocks
    from jittok.cli.reading import explain_text_error

    _check(options)
    tokenizer = arguments.load_tokenizer(options)
    settings = _call_arguments(options)
    start = time.perf_counter()
    rows: list[tuple[int, int, int, str]] = []
    with Progress(options.files, options.quiet) as progress:
        for path in options.files:
            tokens = documents = size = 0
            for block in read_blocks(path, options.separator):
                try:
                    tokens += int(tokenizer.count_batch((block.data, block.indptr), **settings).sum())
                except TextError as error:
                    raise explain_text_error(error, block, path) from error
                documents += len(block.indptr) - 1
                size += len(block.raw)
                progress.advance(len(block.raw), tokens)
            rows.append((tokens, documents, size, path))
    seconds = time.perf_counter() - start
    total = sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"{'tokens':>15} {'documents':>13} {'bytes':>15}  file")
    for row in rows:
        print(f"{row[0]:>15,} {row[1]:>13,} {row[2]:>15,}  {row[3]}")
    if len(rows) > 1:
        print(f"{total[0]:>15,} {total[1]:>13,} {total[2]:>15,}  total")
    print(_summary(total[2], total[1], total[0], seconds))
    return 0


class Progress:
    """Bytes done, on standard error: tqdm's bar where tqdm is installed, else a line now and then."""

    def __init__(self, files: list[str], quiet: bool) -> None:
        from jittok.cli.reading import display_size

        sizes = [display_size(path) for path in files]
        self._total = None if None in sizes else sum(size for size in sizes if size is not None)
        self._show = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._done = 0
        self._printed = time.perf_counter()

    def __enter__(self) -> Progress:
        if self._show:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                return self
            self._bar = tqdm(total=self._total, unit="B", unit_scale=True, file=sys.stderr, leave=False)
        return self

    def advance(self, size: int, tokens: int) -> None:
        """Say that `size` more bytes are done, and how many tokens there are so far."""
        self._done += size
        if self._bar is not None:
            self._bar.set_postfix_str(f"{tokens:,} tokens", refresh=False)
            self._bar.update(size)
        elif self._show and time.perf_counter() - self._printed > 1:
            self._printed = time.perf_counter()
            of = f" of {self._total / ONE_MEGABYTE:,.0f}" if self._total else ""
            print(f"{self._done / ONE_MEGABYTE:,.0f}{of} MB, {tokens:,} tokens", file=sys.stderr)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _check(options: argparse.Namespace) -> None:
    if options.threads is not None and options.threads < 1:
        raise ArgumentError(
            f"--threads is {options.threads}; give 1 or more, or leave it out for one for each core."
        )
    if options.files.count("-") > 1:
        raise ArgumentError("- (standard input) is given more than once; it can be read once only.")


def _call_arguments(options: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {"add_special_tokens": options.add_special_tokens}
    if options.threads is not None:
        settings["threads"] = options.threads
    if options.special is not None:
        settings["special"] = options.special
    return settings


def _output_names(files: list[str]) -> list[str]:
    names = ["stdin" if path == "-" else Path(path).name for path in files]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"{names.count(name)} files are named {name!r}, and their output would have one name; encode them"
                " in separate runs with different --out."
            )
    return names


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the directory {str(directory)!r}: {error.strerror}. Give another --out."
        ) from error


def _summary(size: int, documents: int, tokens: int, seconds: float) -> str:
    rate = size / ONE_MEGABYTE / seconds if seconds > 0 else 0.0
    return (
        f"{size / ONE_MEGABYTE:,.1f} MB, {documents:,} documents, {tokens:,} tokens"
        f" in {seconds:.2f} s: {rate:,.1f} MB/s"
    )
