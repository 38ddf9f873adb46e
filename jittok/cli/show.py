"""``jittok show``: tokens painted on a text."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from jittok.cli import arguments
from jittok.errors import MissingFileError, TextError


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "show",
        help="tokens of a text, in colours",
        description="Show a text with its tokens in colours, in the terminal or as an HTML page with ids.",
    )
    parser.add_argument("text", nargs="?", metavar="TEXT", help="the text; standard input without it")
    parser.add_argument("--file", "-f", metavar="FILE", help="read the text from a file instead")
    parser.add_argument(
        "--tokenizer", "-t", default="default", metavar="X", help="tokenizer file or directory (default: the built-in one)"
    )
    arguments.add_tokenizer_details(parser)
    parser.add_argument("--ids", action="store_true", help="list the tokens with ids and spans, too")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours (default: in a terminal, unless NO_COLOR is set)",
    )
    parser.add_argument("--html", action="store_true", help="print an HTML page")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the text."""
    from jittok.painting import as_ansi, as_html

    encoding = arguments.load_tokenizer(options).encode(_text(options))
    if options.html:
        print(
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>jittok</title><style>'
            ":root{color-scheme:light dark}body{font-family:sans-serif;max-width:60em;margin:2em auto}</style></head>"
            f"<body>{as_html(encoding)}</body></html>"
        )
        return 0
    colours = options.color == "always" or (
        options.color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    )
    print(as_ansi(encoding, colours=colours))
    if options.ids:
        width = max([len(str(number)) for number in encoding.ids.tolist()], default=1)
        assert encoding.spans is not None
        for number, token, (begin, end) in zip(
            encoding.ids.tolist(), encoding.tokens, encoding.spans.tolist(), strict=True
        ):
            print(f"{number:{width}}  {begin}-{end}  {token!r}")
    print(f"{len(encoding):,} token{'s' * (len(encoding) != 1)}", file=sys.stderr)
    return 0


def _text(options: argparse.Namespace) -> str:
    if options.text is not None:
        return str(options.text)
    try:
        content = Path(options.file).read_bytes() if options.file else sys.stdin.buffer.read()
    except OSError as error:
        raise MissingFileError(f"{options.file}: cannot be read ({error.strerror})") from None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"{options.file or 'standard input'}: no UTF-8 at byte {error.start}; convert it first") from None
