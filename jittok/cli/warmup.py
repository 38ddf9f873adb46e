"""``jittok warmup``: compile now, so that later processes start fast (for example in a container image)."""

from __future__ import annotations

import argparse
import time
from typing import Any

#: What each family's kernels are warmed with. Both widths of text, every special case of the calls.
FAMILIES = ("bpe",)


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "warmup",
        help="compile the kernels and keep them on disk",
        description=(
            "Compile the kernels and leave them in the cache that later processes read (numba's cache directory:"
            " NUMBA_CACHE_DIR, else beside the package, else under the user's cache)."
        ),
    )
    parser.add_argument("family", nargs="?", choices=FAMILIES, help="only this algorithm's kernels (default: all)")
    parser.add_argument(
        "--tokenizer", "-t", metavar="X", help="also warm up this tokenizer file's own choice of kernels"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compile, and say how long it took."""
    from jittok.cli.corpus import load

    names = ["default"] + ([options.tokenizer] if options.tokenizer else [])
    for name in names:
        start = time.perf_counter()
        exercise(load(name))
        print(f"{name}: ready in {time.perf_counter() - start:.2f} s")
    return 0


def exercise(tokenizer: Any) -> None:
    """Call everything that a kernel serves once, on ASCII and on other text, short and long.

    Parameters
    ----------
    tokenizer
        A loaded tokenizer.
    """
    import numpy as np

    ascii_text = (
        "The quick brown fox's 12345 jumps.\n\n  def f(x):\treturn x + 1\n" + "antidisestablishmentarianism" * 20
    )
    other_text = (
        "naïve café, Ελληνικά, русский текст, 中文分词、日本語 한국어 العربية 👩‍👩‍👧 e\u0301\n"
        + "длинноеслово" * 40
    )
    texts = [ascii_text, other_text, ""]
    for text in texts:
        encoding = tokenizer.encode(text)
        _ = encoding.spans
        tokenizer.decode(encoding.ids)
        tokenizer.count(text)
    for spans in (False, True):
        tokenizer.encode_batch(texts, spans=spans)
    encoded = [text.encode() for text in texts]
    indptr = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=indptr[1:])
    data = np.frombuffer(b"".join(encoded), np.uint8)
    batch = tokenizer.encode_batch((data, indptr))
    tokenizer.count_batch((data, indptr))
    tokenizer.decode_batch(batch)
