"""``jittok demo``: Hamlet through a tokenizer."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from jittok.cli import arguments


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "demo",
        help="encode Hamlet and look at the result",
        description="Encode Shakespeare's Hamlet with the built-in tokenizer; print ids, tokens, spans and MB/s.",
    )
    parser.add_argument(
        "--tokenizer", "-t", default="default", metavar="X", help="another tokenizer file or directory"
    )
    parser.add_argument(
        "--rounds", type=arguments.whole_number(1), default=20, metavar="N",
        help="times to encode for the MB/s (default: 20)"
    )
    parser.set_defaults(run=run)


def hamlet() -> str:
    """Return the play, as shipped with the package."""
    return (Path(__file__).parents[1] / "data" / "hamlet.txt").read_text(encoding="utf-8")


def run(options: argparse.Namespace) -> int:
    """Encode and print."""
    start = time.perf_counter()
    tokenizer = arguments.load_tokenizer(options)
    loaded = time.perf_counter()
    text = hamlet()
    encoding = tokenizer.encode(text, add_special_tokens=False)
    first = time.perf_counter()
    line = "To be, or not to be,--that is the question:--"
    begin = text.find(line)
    shown = [
        index for index, (left, right) in enumerate(encoding.spans) if begin <= left and right <= begin + len(line)
    ]
    print(f"{'id':>7}  {'token':<12} {'span':<16} text")
    tokens = encoding.tokens
    for index in shown:
        left, right = (int(position) for position in encoding.spans[index])
        span = f"[{left}, {right})"
        print(f"{int(encoding.ids[index]):>7}  {tokens[index]:<12} {span:<16} {text[left:right]!r}")
    print(f"\nHamlet: {len(text):,} characters, {len(encoding.ids):,} tokens")
    print(f"decoded again it is {'the same' if tokenizer.decode(encoding.ids) == text else 'ANOTHER'} text")
    print(
        f"load {loaded - start:.2f} s, first encoding {first - loaded:.2f} s (with compiling, if not cached)"
    )
    print(f"repeated: {_rate(tokenizer, text, options.rounds):,.0f} MB/s, one thread")
    return 0


def _rate(tokenizer: Any, text: str, rounds: int) -> float:
    size = len(text.encode("utf-8"))
    best = 0.0
    tokenizer.encode_batch([text], threads=1, add_special_tokens=False)
    for _ in range(rounds):
        start = time.perf_counter()
        tokenizer.encode_batch([text], threads=1, add_special_tokens=False)
        best = max(best, size / 1e6 / (time.perf_counter() - start))
    return best
