"""Where grapheme clusters end (Unicode Standard Annex 29), pinned to Unicode 17.0.

The arrays are made by ``scripts/build_unicode_graphemes.py``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: The Grapheme_Cluster_Break of a codepoint, in the lowest four bits of its class; 0: any other.
BREAK = 15
CR = 1
LF = 2
CONTROL = 3
EXTEND = 4
ZWJ = 5
SPACING_MARK = 6
PREPEND = 7
HANGUL_L = 8
HANGUL_V = 9
HANGUL_T = 10
HANGUL_LV = 11
HANGUL_LVT = 12
REGIONAL = 13
PICTOGRAPHIC = 14  # Extended_Pictographic, which no other of these is
#: The Indic_Conjunct_Break, in the next two bits; 0: none.
CONJUNCT = 0x30
CONSONANT = 0x10
LINKER = 0x20
CONJUNCT_EXTEND = 0x30


@cache
def grapheme_classes() -> NDArray[np.uint8]:
    """The class of each codepoint, uint8[0x110000]."""
    with np.load(Path(__file__).parent / "graphemes.npz", allow_pickle=False) as arrays:
        starts, classes = arrays["starts"], arrays["classes"]
    result = np.repeat(classes, np.diff(starts, append=0x110000))
    result.flags.writeable = False
    return result
