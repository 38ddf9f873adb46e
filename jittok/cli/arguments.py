"""Arguments that several commands take; imports nothing heavy, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
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


def whole_number(least: int) -> Callable[[str], int]:
    """Make a ``type=`` of whole numbers, written in digits of ASCII.

    Parameters
    ----------
    least
        The least one that makes sense.
    """

    def read(text: str) -> int:
        # More than 18 digits are beyond 64 bits, which no option has use for.
        number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"{_shown(text)}: expected a whole number of at least {least}")
        return number

    return read


def whole_numbers(text: str) -> list[int]:
    """Read several whole numbers above 0, with commas between; a ``type=``.

    Parameters
    ----------
    text
        As given.
    """
    return [whole_number(1)(part.strip(" ")) for part in text.split(",")]


def positive_number(text: str) -> float:
    """Read a number above 0, with a decimal point or an exponent or not; a ``type=``.

    Parameters
    ----------
    text
        As given.
    """
    number = 0.0
    if re.fullmatch(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text.lower()):
        number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{_shown(text)}: expected a number greater than 0")
    return number


def number_with_unit(text: str) -> int:
    """Read a whole number above 0, or a number with k, M, G or T; a ``type=``.

    Each letter is a thousand times the one before, or 1,024 times with an i as in MiB.

    Parameters
    ----------
    text
        As given.
    """
    match = re.fullmatch(r"([0-9]{1,18})|([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kmgt])(i?)b?", text.strip(" ").lower())
    number = 0
    if match is not None:
        step = 1024 if match[4] else 1000
        number = int(match[1]) if match[1] else int(float(match[2]) * step ** (1 + "kmgt".index(match[3])))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a number above 0 such as 4096, 500M or 2G")
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


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
