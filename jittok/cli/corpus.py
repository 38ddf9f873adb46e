"""``jittok encode`` and ``jittok count``: corpora of any size."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.cli import arguments
from jittok.errors import ArgumentError

if TYPE_CHECKING:
    from jittok.corpus.job import Summary
    from jittok.corpus.reading import Reading
    from jittok.corpus.sources import Source

ONE_MEGABYTE = 1_000_000


def add_encode(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "encode",
        help="files to arrays of ids",
        description=(
            "Encode files into DIR. By default each file has arrays of its own, NAME.ids (int32) and NAME.indptr (int64):"
            " document i of the file is ids[indptr[i]:indptr[i + 1]]. With --shard-tokens, all input becomes shards of"
            " about that many ids. Output appears under its name only when complete, and is recorded in"
            " DIR/manifest.jsonl: the same command, given again after the job was stopped in whatever way, goes on where"
            " it was."
        ),
    )
    _add_common(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="directory for the output; made if missing"
    )
    output.add_argument(
        "--format",
        choices=arguments.FORMATS,
        default="npy",
        help="npy (NumPy); raw: bare little-endian arrays, ids as uint16 if they fit, else uint32, and a JSON file that"
        " describes them; megatron: .bin and .idx; packed: rows of --seq-len ids, NumPy; parquet and arrow: a column"
        " ids, list<int32>, beside the others (default: npy)",
    )
    output.add_argument(
        "--shard-tokens", type=arguments.number_with_unit, metavar="N",
        help="ids of a shard, such as 500M (default: a shard for each file)"
    )
    output.add_argument("--document-end", metavar="TOKEN", help="token to put after each document")
    output.add_argument("--seq-len", type=arguments.number_with_unit, metavar="N", help="ids in a row of packed sequences")
    output.add_argument("--pad", metavar="TOKEN", help="fills up a shard's last row (default: that of --document-end, or 0)")
    output.add_argument("--document-index", action="store_true", help="packed: write where documents begin, too")
    output.add_argument("--no-columns", action="store_true", help="parquet, arrow: leave the input's other columns out")
    output.add_argument("--overwrite", action="store_true", help="begin anew, and replace output that exists")
    output.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(run=run_encode)


def add_count(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "count", help="number of tokens of files", description="Count the tokens of each file without keeping ids."
    )
    _add_common(parser)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.set_defaults(run=run_count)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="files, directories, or patterns in quotes; - is standard input"
    )
    parser.add_argument(
        "--tokenizer",
        "-t",
        default="default",
        metavar="X",
        help="tokenizer file or directory, or 'default' for the built-in one (default: default)",
    )
    arguments.add_tokenizer_details(parser)
    given = parser.add_argument_group("input", "Files may be compressed (.gz, .bz2, .xz, .zst).")
    given.add_argument(
        "--input-format",
        choices=arguments.KINDS,
        help="what the files are (default: by their names: .jsonl, .ndjson; .parquet, .pq; .arrow, .feather, .ipc; else"
        " text in UTF-8)",
    )
    given.add_argument(
        "--separator",
        choices=arguments.SEPARATORS,
        default="newline",
        help="text: what ends a document (default: newline)",
    )
    given.add_argument("--separator-text", metavar="S", help=r"text: any other; \n, \t, \r, \0 and \\ are understood")
    given.add_argument(
        "--field", default="text", metavar="PATH", help="jsonl: where the text is, such as data.0.text (default: text)"
    )
    given.add_argument("--column", default="text", metavar="NAME", help="parquet, arrow: column of the text (default: text)")
    given.add_argument(
        "--max-record",
        type=arguments.number_with_unit,
        default=1 << 26,
        metavar="N",
        help="most bytes of a record, as 500M (default: 64 MiB); a record takes 4 to 9 times its size in memory",
    )
    given.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="records that cannot be encoded: stop, or leave them out, listed in NAME.rejects.jsonl (default: stop)",
    )
    parser.add_argument(
        "--threads", type=arguments.whole_number(1), metavar="N", help="threads (default: one for each core)"
    )
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
    from jittok.corpus.job import encode_corpus
    from jittok.corpus.sources import find_sources

    sources = find_sources(options.files, options.input_format)
    tokenizer = arguments.load_tokenizer(options)
    keep_columns = options.format in ("parquet", "arrow") and not options.no_columns
    with Progress(sources, options.quiet) as progress:
        summary = encode_corpus(
            tokenizer,
            options.files,
            options.out,
            format=options.format,
            reading=_reading(options, keep_columns),
            kind=options.input_format,
            shard_tokens=options.shard_tokens,
            document_end=_token_id(tokenizer, options.document_end, "--document-end"),
            sequence_length=options.seq_len,
            pad_id=_token_id(tokenizer, options.pad, "--pad"),
            document_index=options.document_index,
            on_error=options.on_error,
            overwrite=options.overwrite,
            name=options.tokenizer,
            report=progress.report,
            **_call_arguments(options),
        )
    if "-" in options.files and summary.was_complete:
        print(
            f"jittok: note: the job of {str(options.out)!r} was complete, and standard input was not read; for other input,"
            " give another --out, or --overwrite",
            file=sys.stderr,
        )
    if options.json:
        print(json.dumps(summary.as_json()))
    else:
        _print_summary(summary)
    return 0


def run_count(options: argparse.Namespace) -> int:
    """Count the tokens of the files."""
    from jittok.corpus.encoding import run_on_documents
    from jittok.corpus.job import Summary
    from jittok.corpus.overlap import ahead
    from jittok.corpus.reading import read_documents
    from jittok.corpus.sources import find_sources

    sources = find_sources(options.files, options.input_format)
    tokenizer = arguments.load_tokenizer(options)
    settings, reading = _call_arguments(options), _reading(options)
    start = time.perf_counter()
    total = Summary()
    rows: list[tuple[int, int, int, str]] = []
    done = 0
    with Progress(sources, options.quiet) as progress:
        for source in sources:
            tokens = documents = size = 0
            for batch in ahead(read_documents(source, reading)):
                batch, counts = run_on_documents(
                    lambda texts: tokenizer.count_batch(texts, **settings),
                    batch,
                    source,
                    reading,
                    options.on_error == "skip",
                )
                tokens += int(counts.sum())
                documents += len(batch)
                size += batch.size
                total.tokens += int(counts.sum())
                total.documents += len(batch)
                total.n_bytes += batch.size
                for problem in batch.problems:
                    total.rejected[problem.kind] = total.rejected.get(problem.kind, 0) + 1
                progress.report(done + batch.done, total)
            done += source.size() or 0
            rows.append((tokens, documents, size, source.path))
    total.seconds = time.perf_counter() - start
    if options.json:
        files = [dict(zip(("tokens", "documents", "bytes", "file"), row, strict=True)) for row in rows]
        print(json.dumps({"files": files, "tokens": total.tokens, "documents": total.documents, "bytes": total.n_bytes,
                          "rejected": total.rejected, "seconds": total.seconds}))  # fmt: skip
        return 0
    print(f"{'tokens':>15} {'documents':>13} {'bytes':>15}  file")
    for row in rows:
        print(f"{row[0]:>15,} {row[1]:>13,} {row[2]:>15,}  {row[3]}")
    if len(rows) > 1:
        print(f"{total.tokens:>15,} {total.documents:>13,} {total.n_bytes:>15,}  total")
    _print_summary(total)
    return 0


class Progress:
    """What is done, on standard error if that is a terminal: tqdm's bar where tqdm is installed, else a line now and then.

    Parameters
    ----------
    sources
        Of which the sizes are the whole.
    quiet
        Whether to show nothing.
    """

    def __init__(self, sources: list[Source], quiet: bool) -> None:
        sizes = [source.size() for source in sources]
        self._total = None if None in sizes else sum(size for size in sizes if size is not None)
        self._show = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._begin = self._printed = time.perf_counter()

    def __enter__(self) -> Progress:
        if self._show:
            try:
                from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                return self
            self._bar = tqdm(total=self._total, unit="B", unit_scale=True, file=sys.stderr, leave=False)
        return self

    def report(self, done: int, summary: Summary) -> None:
        """Say how many bytes of the files are done, and what came out of them."""
        if not self._show:
            return
        now = time.perf_counter()
        rate = summary.tokens / max(now - self._begin, 1e-9)
        state = f"{summary.documents:,} documents, {summary.tokens:,} tokens, {rate / 1e6:,.1f} M tokens/s"
        if self._bar is not None:
            self._bar.set_postfix_str(state, refresh=False)
            self._bar.update(done - self._bar.n)
        elif now - self._printed > 1:
            self._printed = now
            of = f" of {self._total / ONE_MEGABYTE:,.0f}" if self._total else ""
            print(f"{done / ONE_MEGABYTE:,.0f}{of} MB, {state}", file=sys.stderr)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _reading(options: argparse.Namespace, keep_columns: bool = False) -> Reading:
    from jittok.corpus.reading import Reading

    separator = options.separator
    if options.separator_text is not None:
        separator = _unescaped(options.separator_text)
    return Reading(separator, options.field, options.column, options.max_record, keep_columns=keep_columns)


def _unescaped(text: str) -> bytes:
    r"""The bytes of a separator in which \n, \t, \r, \0 and \\ stand for one character."""
    for written, meant in (("\\\\", "\x1b"), (r"\n", "\n"), (r"\t", "\t"), (r"\r", "\r"), (r"\0", "\0"), ("\x1b", "\\")):
        text = text.replace(written, meant)
    if not text:
        raise ArgumentError("--separator-text is empty; for files that are one document each: --separator none-per-file")
    return text.encode("utf-8", "surrogateescape")


def _token_id(tokenizer: Any, token: str | None, flag: str) -> int | None:
    if token is None:
        return None
    number = tokenizer.token_to_id(token)
    if number is None:
        raise ArgumentError(f"{flag}: the tokenizer has no token {token!r}; `jittok info` lists its special tokens")
    return int(number)


def _call_arguments(options: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {"add_special_tokens": options.add_special_tokens}
    if options.threads is not None:
        settings["threads"] = options.threads
    if options.special is not None:
        settings["special"] = options.special
    return settings


def _print_summary(summary: Summary) -> None:
    megabytes = summary.n_bytes / ONE_MEGABYTE
    rate = megabytes / summary.seconds if summary.seconds > 0 else 0.0
    print(
        f"{megabytes:,.1f} MB, {summary.documents:,} documents, {summary.tokens:,} tokens"
        + (": all done before" if summary.was_complete else f" in {summary.seconds:.2f} s: {rate:,.1f} MB/s")
    )
    if summary.resumed_documents and not summary.was_complete:
        print(f"{summary.resumed_documents:,} of the documents were done before")
    if summary.rejected:
        reasons = ", ".join(f"{n:,} {kind}" for kind, n in sorted(summary.rejected.items()))
        print(f"{sum(summary.rejected.values()):,} records left out: {reasons}")
