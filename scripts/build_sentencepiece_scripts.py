"""Build ``jittok/unicode/sentencepiece_scripts.npz``: the scripts that SentencePiece's trainers keep apart.

They are those of Unicode 9.0, as measured: codepoints that are not in it, and private ones, count as Common. Hiragana,
Katakana and U+30FC count as Han. Source: npm package ``@unicode/unicode-9.0.0``.

Usage: have ``node`` and ``npm``, then ``python scripts/build_sentencepiece_scripts.py``. With ``--packages FOLDER`` the
package is taken from FOLDER/unicode-9.0.0 instead of the registry.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import build_unicode_normalization as common
import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "sentencepiece_scripts.npz"
VERSION = "9.0.0"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path)
    folder = parser.parse_args().packages
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            folder = Path(temporary)
            common.VERSIONS = (VERSION,)
            common.fetch_packages(folder)
        scripts = folder / f"unicode-{VERSION}" / "package" / "Script"
        names = sorted(path.name for path in scripts.iterdir() if path.is_dir() and path.name != "Unknown")
        names = ["Common", *(name for name in names if name not in ("Common", "Hiragana", "Katakana"))]
        number = np.zeros(0x110000, np.uint8)
        for name in [*names, "Hiragana", "Katakana"]:
            value = names.index("Han" if name in ("Hiragana", "Katakana") else name)
            for first, stop in common.read_module(folder, VERSION, f"Script/{name}/ranges"):
                number[first:stop] = value
    number[0x30FC] = names.index("Han")
    starts = np.flatnonzero(np.diff(number, prepend=number[:1] + 1)).astype(np.int32)
    np.savez_compressed(OUTPUT, names=np.array(names), starts=starts, values=number[starts])


if __name__ == "__main__":
    main()
