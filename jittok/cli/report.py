"""``jittok report``: a page that compares tokenizers on the user's own text."""

from __future__ import annotations

import argparse
import copy
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from jittok.cli import arguments
from jittok.cli.documents import add_documents, documents_of, labelled_documents_of
from jittok.errors import ArgumentError, JittokError, OutputError

#: Text that is taken of each file, by default.
MEGABYTES = 5.0
#: Names of files that say nothing without their folder.
_SAY_NOTHING = {"tokenizer", "spiece", "sentencepiece", "sentencepiece.bpe", "vocab", "merges", "tekken", "model"}


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "report",
        usage="%(prog)s [options] X [X ...] FILE [FILE ...]",
        help="a page that compares tokenizers on your text",
        description=(
            "Encode the documents of the FILEs with each tokenizer X, and write one self-contained HTML page: characters "
            "per token and tokens per word for each file, the vocabulary in use, longest and rarest tokens, unknown "
            "tokens and byte fallbacks, speed. The first arguments that are tokenizer files, or 'default', are the "
            "tokenizers; those that follow are the texts."
        ),
    )
    files = "tokenizer files or directories, or 'default'; then text, JSON lines, Parquet or Arrow, compressed or not"
    add_documents(parser, MEGABYTES, "X, FILE", files)
    parser.add_argument(
        "--tokenizer",
        "-t",
        action="append",
        default=[],
        metavar="X",
        help="one more tokenizer, for files of which it is not seen what they are; may be given several times",
    )
    parser.add_argument(
        "--group",
        metavar="PATH",
        help="group documents by another field or column, such as a language, instead of by file (jsonl, tables)",
    )
    parser.add_argument("--out", "-o", metavar="FILE", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--json", action="store_true", help="print the numbers as one JSON object and write no page")
    parser.add_argument("--title", default="Tokenizers compared", help="heading of the page")
    parser.add_argument(
        "--rounds", type=arguments.whole_number(0), default=2, metavar="N",
        help="rounds of measuring speed; 0: none (default: 2)"
    )
    arguments.add_tokenizer_details(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, and write the page."""
    from jittok.report import measure_report

    names, files = _tokenizers_and_files([*options.tokenizer, *options.files], len(options.tokenizer))
    tokenizers = {}
    for name, shown in zip(names, _short(names, "tokenizer"), strict=True):
        wanted = copy.copy(options)
        wanted.tokenizer = name
        tokenizers[shown] = arguments.load_tokenizer(wanted)
    texts = _texts(options, files)
    if not texts:
        raise ArgumentError("no documents in " + ", ".join(files))
    report = measure_report(tokenizers, texts, rounds=options.rounds)
    if options.json:
        print(json.dumps(report.to_dict()))
        return 0
    try:
        Path(options.out).write_text(report.to_html(options.title), encoding="utf-8", errors="replace")
    except OSError as error:
        raise OutputError(f"--out: cannot write {options.out}: {error.strerror}; name a file that can be written") from None
    width = max(map(len, tokenizers))
    for one in report.tokenizers:
        group = one.groups["all"]
        print(
            f"{one.name:{width}}  {group.tokens:,} tokens, {group.characters_per_token:.3f} characters per token,"
            f" {group.fertility:.3f} tokens per word, {one.used:,} of {one.vocab_size:,} entries in use"
        )
    print(options.out)
    return 0


def _tokenizers_and_files(given: list[str], known: int) -> tuple[list[str], list[str]]:
    """The tokenizers, which come first, and the files of text."""
    from jittok.formats.detect import locate

    count = known
    while count < len(given):
        if given[count] != "default":
            try:
                locate(given[count])
            except (JittokError, OSError):
                break
        count += 1
    if count == 0:
        locate(given[0])  # raises, and says why it is none
    if count == len(given):
        raise ArgumentError(
            "all arguments are tokenizers; name files of text, too. If the last ones are text that looks like a tokenizer"
            " file, give the tokenizers by --tokenizer"
        )
    return given[:count], given[count:]


def _short(names: list[str], kind: str) -> list[str]:
    """Names to show: as many parts of each path, from the end, as tell them apart; more than "tokenizer.json".

    Raises
    ------
    ArgumentError
        One file is named twice. `kind` says what it is.
    """
    parts = [Path(os.path.abspath(name)).parts if name != "default" else ("default",) for name in names]
    for at, one in enumerate(parts):
        if one in parts[:at]:
            raise ArgumentError(f"a {kind} is given twice: {names[at]}; name each of them once")
    telling = [2 if len(one) > 2 and Path(one[-1]).stem in _SAY_NOTHING else 1 for one in parts]
    for length in range(max(map(len, parts))):
        short = ["/".join(one[-max(length, least) :]) for one, least in zip(parts, telling, strict=True)]
        if len(set(short)) == len(short):
            return short
    return ["/".join(one) for one in parts]


def _texts(options: argparse.Namespace, files: list[str]) -> dict[str, list[str]]:
    """Groups of documents by name."""
    from jittok.corpus.sources import find_sources

    groups: defaultdict[str, list[str]] = defaultdict(list)
    sources = find_sources(files)
    names = _short([source.path for source in sources], "file of text")
    grouped: list[str] = []
    labels = records = 0
    for source, name in zip(sources, names, strict=True):
        one = copy.copy(options)
        one.files = [source.path]
        if options.group is None or source.kind == "text":
            groups[_group_name(source.name if source.path == "-" else name)] += documents_of(one)
            continue
        grouped.append(source.path)
        for label, text in labelled_documents_of(one, source, options.group):
            records += 1
            labels += label is not None
            groups[_group_name(label or "(none)")].append(text)
    if records and not labels:
        raise ArgumentError(
            f"--group: no record with a text has the field {options.group!r} in {', '.join(grouped)}; name one that"
            " records have, such as a language"
        )
    return {name: texts for name, texts in sorted(groups.items()) if texts}


def _group_name(name: str) -> str:
    return f"{name} (file)" if name == "all" else name
