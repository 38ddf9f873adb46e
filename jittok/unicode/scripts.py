"""The script of each codepoint in Unicode 9.0, which the UnicodeScripts pre-tokenizer of tokenizers uses.

The data is made by ``scripts/build_unicode_scripts.py``. Regular expressions use another version, that of
:mod:`jittok.unicode.classes`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from jittok.unicode.intervals import Intervals, from_ranges


@cache
def script_groups() -> tuple[Intervals, ...]:
    """The sets of codepoints that UnicodeScripts does not cut within.

    One for each script, but Hiragana, Katakana and U+30FC belong to Han. The blank and what is not assigned are in
    none of them.
    """
    with np.load(Path(__file__).with_name("scripts.npz"), allow_pickle=False) as archive:
        names, starts, values = archive["names"].tolist(), archive["starts"], archive["values"]
    script = np.repeat(values, np.diff(starts, append=0x110000))
    han = names.index("Han") + 1
    for name in ("Hiragana", "Katakana"):
        script[script == names.index(name) + 1] = han
    script[0x30FC] = han
    script[ord(" ")] = 0
    groups = []
    for number in np.unique(script[script > 0]).tolist():
        edges = np.flatnonzero(np.diff(script == number, prepend=False, append=False)).reshape(-1, 2)
        groups.append(from_ranges((begin, end - 1) for begin, end in edges.tolist()))
    return tuple(groups)
