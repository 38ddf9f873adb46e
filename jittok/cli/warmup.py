"""``jittok warmup``: compile now, so that later processes start fast (for example in a container image)."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

#: Algorithms whose kernels can be compiled alone.
FAMILIES = ("bpe",)


def add(commands: Any) -> None:
    """Define the command's arguments."""
    parser = commands.add_parser(
        "warmup",
        help="compile the kernels and keep them on disk",
        description=(
            "Compile the kernels and leave them in the cache that later processes read: JITTOK_CACHE_DIR, else"
            " NUMBA_CACHE_DIR/jittok, else the user's cache folder. Code files are for a level of the CPU"
            " (x86-64-v3, say), so a cache in a container image serves every machine of that level."
        ),
    )
    parser.add_argument("family", nargs="?", choices=FAMILIES, help="only this algorithm's kernels (default: all)")
    parser.add_argument(
        "--tokenizer", "-t", metavar="X", help="also warm up this tokenizer file's own choice of kernels"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compile, and say how long it took and what is there now."""
    os.environ["JITTOK_BACKGROUND"] = "0"  # compile here and now
    from jittok import _jit
    from jittok.cli.corpus import load

    names = ["default"] + ([options.tokenizer] if options.tokenizer else [])
    for name in names:
        start = time.perf_counter()
        exercise(load(name))
        print(f"{name}: ready in {time.perf_counter() - start:.2f} s")
    folder = None if _jit.JIT_DISABLED else _jit.cache_folder()
    if folder is not None:
        files = [file for file in folder.rglob("*") if file.suffix in (".code", ".nbc")]
        print(f"{len(files)} compiled kernels, {sum(file.stat().st_size for file in files):,} bytes, in {folder}")
    return 0


def exercise(tokenizer: Any) -> None:
    """Call everything that a kernel serves once, on ASCII and on other text, short and long.

    Parameters
    ----------
    tokenizer
        A loaded tokenizer.
    """
    import numpy as np

    from jittok.tokenizer import Tokenizer

    ascii_text = (
        "The quick brown fox's 12345 jumps.\n\n  def f(x):\treturn x + 1\n" + "antidisestablishmentarianism" * 20
    )
    other_text = (
        "naïve café, Ελληνικά, русский текст, 中文分词、日本語 한국어 العربية 👩‍👩‍👧 e\u0301\n"
        + "длинноеслово" * 40
    )
    texts = [ascii_text, other_text, "", "x" * 100_000]
    for text in texts:
        encoding = tokenizer.encode(text)
        _ = encoding.spans
        tokenizer.decode(encoding.ids)
        tokenizer.count(text)
    for spans in (False, True):
        tokenizer.encode_batch(texts, spans=spans)
        tokenizer.encode_batch(texts, texts, spans=spans)
        tokenizer.encode_batch(texts, max_length=8, spans=spans, overflowing=True)
    encoded = [text.encode() for text in texts]
    tokenizer.encode_batch(encoded)
    indptr = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=indptr[1:])
    joined = b"".join(encoded)
    for data in (np.frombuffer(joined, np.uint8), np.frombuffer(bytearray(joined), np.uint8)):
        batch = tokenizer.encode_batch((data, indptr))
        tokenizer.count_batch((data, indptr))
        tokenizer.decode_batch(batch)
    if tokenizer.special_tokens:
        tokenizer.encode(f"a {next(iter(tokenizer.special_tokens))} b", special="parse")
    Tokenizer(tokenizer.spec)  # what builds tables
