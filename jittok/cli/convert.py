"""``jittok convert``: write a tokenizer in another format, if that gives the same ids."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

from jittok.cli import arguments
from jittok.errors import ConversionWarning


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "convert",
        help="write a tokenizer in another format",
        description=(
            "Write tokenizer A as B. What B's format cannot hold is refused, with the reason. What is written gives the same"
            " ids in the library that the format belongs to."
        ),
    )
    parser.add_argument("tokenizer", metavar="A", help="tokenizer file or directory, or 'default' for the built-in one")
    parser.add_argument("out", metavar="B", help="file to write; its suffix decides the format; for merges, a directory")
    parser.add_argument(
        "--format",
        metavar="F",
        help="tokenizer.json, sentencepiece, tiktoken, merges (vocab.json and merges.txt), vocab.txt or jittok",
    )
    parser.add_argument(
        "--inexact", action="store_true", help="write it too where ids differ for some texts, and say for which"
    )
    parser.add_argument(
        "--no-template", action="store_true", help="leave out the special tokens that are put around texts"
    )
    arguments.add_tokenizer_details(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Convert, and say what was written."""
    tokenizer = arguments.load_tokenizer(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConversionWarning)
        tokenizer.save(options.out, options.format, exact=not options.inexact, template=not options.no_template)
    for warning in caught:
        print(f"jittok: warning: {warning.message}", file=sys.stderr)
    from jittok.tokenizer import format_of

    written = format_of(options.out, options.format)
    print(f"{options.out}: {written}, {tokenizer.vocab_size:,} entries")
    if written == "tiktoken":
        from jittok.formats.conversion import convert

        spec, _ = convert(tokenizer.spec, written, template=not options.no_template)
        special = {token.content: token.id for token in spec.added_tokens}
        pattern = getattr(spec.pre_tokenizers[0], "pattern", None)
        print("ranks only; what must be passed with them:")
        print(f"pattern: {pattern}")
        print(f"special tokens: {json.dumps(special, ensure_ascii=False)}")
    return 0
