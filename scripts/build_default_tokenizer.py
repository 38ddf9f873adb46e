"""Make jittok's built-in default tokenizer from the public-domain texts in ``default_tokenizer/corpus``.

Training gives a tokenizer.json, in memory; jittok builds its tables and saves these, ``jittok/data/default.jittok``.
The same corpus and the same version of the trainer give the same tokenizer.json, byte for byte: its SHA-256 is
compared with the one written below, and the script fails when they differ. The tables follow from it, whatever
the machine and the version of NumPy.

    python scripts/build_default_tokenizer.py            # train, check, build tables, write
    python scripts/build_default_tokenizer.py --accept   # after a change on purpose: print the new hash
    python scripts/build_default_tokenizer.py --tables   # do not train: new tables for the model of the file
                                                         # (after a change of how tables are built)

The trainer is jittok's own, by the rules of Hugging Face tokenizers 0.23.3, which makes the same tokenizer.json (with
``max_token_length=32``, which is off by one there).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "default_tokenizer" / "corpus"
OUTPUT = HERE.parent / "jittok" / "data" / "default.jittok"
#: Of the trained tokenizer in the form of tokenizer.json.
SHA256 = "94e8f2e0a6041e75132b7a9a3cb96dbb28060f5fc4aaca1e609420ec17d4836e"

VOCAB_SIZE = 32_768
END_OF_TEXT = "<|endoftext|>"

#: How text is cut before merging. In this order: an English contraction; a word, with at most one blank or
#: sign in front of it; up to three digits; signs, with a blank before and line ends after; line ends with
#: the blanks before them; blanks except the last before a word; blanks.
SPLIT_PATTERN = "|".join(
    (
        r"'(?i:[sdmt]|ll|re|ve)",
        r"[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

#: Copies of each language in the training data; small collections count more than once.
WEIGHTS = {"german": 4, "portuguese": 3, "spanish": 2, "python": 1, "esperanto": 1}


def corpus_documents() -> Iterator[str]:
    """Every document of the corpus, in order of file name."""
    for path in sorted(CORPUS.glob("*.txt.xz")):
        documents = lzma.decompress(path.read_bytes()).decode("utf-8").split("\0")
        for _ in range(WEIGHTS.get(path.name.split(".")[0], 1)):
            yield from documents


def train() -> dict[str, Any]:
    """Train, and return the tokenizer in the form of tokenizer.json."""
    import jittok
    from jittok.build.merge_tables import byte_alphabet
    from jittok.spec import ByteLevel, Split

    tokenizer = jittok.train_bpe(
        corpus_documents(),
        vocab_size=VOCAB_SIZE - 1,
        pre_tokenizer=[Split(SPLIT_PATTERN), ByteLevel(add_prefix_space=False, use_regex=False)],
        initial_alphabet=byte_alphabet(),
        max_token_length=31,
        unreachable="error",
    ).with_added_tokens([END_OF_TEXT], special=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        tokenizer.save(path)
        data: dict[str, Any] = json.loads(path.read_bytes())
    return data


def serialise(data: dict[str, Any]) -> bytes:
    """The trained tokenizer as the bytes of a tokenizer.json."""
    vocab = data["model"]["vocab"]
    data["model"]["vocab"] = dict(sorted(vocab.items(), key=lambda item: item[1]))
    # merges are written as pairs; one string is shorter, and no token here holds a blank
    data["model"]["merges"] = [
        merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]
    ]
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def build_tables(tokenizer_json: bytes) -> Any:
    """Load the trained tokenizer with jittok, which builds its tables."""
    import jittok

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(tokenizer_json)
        return jittok.load(path)


def rebuild_tables(path: Path) -> Any:
    """Build new tables for the model that a jittok file holds."""
    from jittok.formats.jittok_file import read_spec
    from jittok.tokenizer import Tokenizer

    return Tokenizer(read_spec(path))


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Train the built-in default tokenizer.")
    parser.add_argument("--accept", action="store_true", help="write the result even if its hash is new")
    parser.add_argument("--tables", action="store_true", help="do not train, only build tables anew")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="where to write (default: %(default)s)")
    options = parser.parse_args()
    if options.tables:
        rebuild_tables(OUTPUT).save(options.out, format="jittok")
        return 0
    content = serialise(train())
    digest = hashlib.sha256(content).hexdigest()
    packed = len(lzma.compress(content))
    print(f"sha256 {digest}, {len(content):,} bytes, {packed:,} compressed")
    if digest != SHA256 and not options.accept:
        print(f"expected {SHA256}: the corpus, the trainer or this script changed (see --accept)", file=sys.stderr)
        return 1
    options.out.parent.mkdir(parents=True, exist_ok=True)
    build_tables(content).save(options.out, format="jittok")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
