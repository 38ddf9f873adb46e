"""Arguments that several commands take; imports nothing heavy, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.errors import ArgumentError, MissingFileError

if TYPE_CHECKING:
    from jittok.corpus.blocks import Separator
    from jittok.corpus.sources import Kind
    from jittok.corpus.writing import Format

SEPARATORS: tuple[Separator, ...] = ("newline", "nul", "blank-line", "none-per-file")

#: As in ``jittok.corpus``, which needs NumPy.
FORMATS: tuple[Format, ...] = ("npy", "raw", "megatron", "packed", "parquet", "arrow")
KINDS: tuple[Kind, ...] = ("text", "jsonl", "parquet", "arrow")


def add_tokenizer_details(parser: argparse.ArgumentParser) -> None:
    """Add what a rank file or a Marian pair does not say itself.

    Parameters
    ----------
    parser
        Of the command.
    """
    parser.add_argument(
        "--pattern",
        metavar="P",
        help="for a rank file: how it splits text, a known encoding's name or a regular expression",
    )
    parser.add_argument(
        "--special-tokens",
        metavar="JSON",
        help='for a rank file: its special tokens, as \'{"<|end|>": 100257}\' or the name of a file with that',
    )
    parser.add_argument("--side", choices=("source", "target"), help="for a Marian pair: whose text (default: source)")


def load_tokenizer(options: argparse.Namespace) -> Any:
    """Load the tokenizer that the command names.

    Parameters
    ----------
    options
        The command's arguments, among them ``tokenizer``.
    """
    import jittok

    pattern = getattr(options, "pattern", None)
    special_tokens = _special_tokens(getattr(options, "special_tokens", None))
    if options.tokenizer == "default":
        if pattern is not None or special_tokens is not None:
            raise ArgumentError("--pattern and --special-tokens are for rank files; name one with --tokenizer.")
        return jittok.load_default()
    side = getattr(options, "side", None)
    return jittok.load(options.tokenizer, pattern=pattern, special_tokens=special_tokens, side=side)


def _special_tokens(given: str | None) -> dict[str, int] | None:
    if given is None:
        return None
    text = given
    if not given.lstrip().startswith("{"):
        try:
            text = Path(given).read_text(encoding="utf-8")
        except OSError as error:
            raise MissingFileError(
                f"--special-tokens: cannot read {given!r}: {error.strerror}. Give a JSON object, or a file of one."
            ) from error
    try:
        tokens = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"--special-tokens: not JSON: {error}") from error
    if not isinstance(tokens, dict) or not all(type(number) is int for number in tokens.values()):
        raise ArgumentError("--special-tokens: expected a JSON object from token to id")
    return tokens
