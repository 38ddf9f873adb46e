"""Write every model of a folder in every format, and compare ids with the library that the format belongs to.

    JITTOK_TEST_DATA=FOLDER python scripts/compare_conversions.py [--only NAME] [--texts 200]

FOLDER holds models/ and corpora/. Prints a line for each pair: exact, inexact (see `ConversionWarning`) or refused, and the
number of texts whose ids differ from the source's, which must be 0 for exact ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

import jittok
from jittok.errors import ConversionError, JittokError, UnsupportedError

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

NAMES = ("tokenizer.json", "*.model", "*.spm", "*.tiktoken", "vocab.txt", "vocab.json", "tekken.json")
FORMATS = {
    "tokenizer.json": "x.json", "sentencepiece": "x.model", "tiktoken": "x.tiktoken", "vocab.txt": "bert", "merges": "pair",
}  # fmt: skip


def main() -> int:
    """Compare; the exit code is 1 if an exact conversion gives other ids."""
    from test_conversion import TEXTS, corpus_texts, reference_ids

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--texts", type=int, default=200, help="of each corpus")
    options = parser.parse_args()
    models = Path(os.environ["JITTOK_TEST_DATA"]) / "models"
    everything = TEXTS + corpus_texts(options.texts)
    wrong = 0
    for path in sorted(path for name in NAMES for path in models.glob(f"*/*/{name}")):
        name = str(path.relative_to(models))
        if options.only not in name:
            continue
        try:
            tok = jittok.load(path)
        except JittokError as error:
            print(f"{name}: {str(error)[:120]}")
            continue
        special = [*tok.special_tokens, "<unk>"]
        texts = [text for text in everything if not any(token in text for token in special)]
        for written, file in FORMATS.items():
            template = written in ("tokenizer.json", "vocab.txt")
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target = Path(folder) / file
                kind = "exact"
                try:
                    tok.save(target, written, exact=True, template=template)
                except ConversionError:
                    kind = "inexact"
                    tok.save(target, written, template=template)
                except UnsupportedError as error:
                    print(f"{name} -> {written}: refused: {str(error).split('; save as')[0][:150]}", flush=True)
                    continue
                around = template and written != "sentencepiece"
                expected = [tok.encode(text, special="parse", add_special_tokens=around).ids.tolist() for text in texts]
                found = reference_ids(target, written, tok, texts)
                differ = sum(a != b for a, b in zip(expected, found, strict=True))
                wrong += kind == "exact" and differ > 0
                print(f"{name} -> {written}: {kind}, {differ} of {len(texts)} texts differ", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
