"""Sets of codepoints of BERT's clean-up and splits, pinned to what tokenizers uses (8.0, and 9.0 for `marks`).

The data is made by ``scripts/build_unicode_bert.py``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jittok.unicode.intervals import Intervals

#: The blocks of Chinese characters that get blanks around them. The reference begins one at U+2B920 that
#: Unicode begins at U+2B820.
CHINESE: Intervals = np.array(
    [
        (0x3400, 0x4DC0),
        (0x4E00, 0xA000),
        (0xF900, 0xFB00),
        (0x20000, 0x2A6E0),
        (0x2A700, 0x2B820),
        (0x2B920, 0x2CEB0),
        (0x2F800, 0x2FA20),
    ],
    np.int32,
).ravel()


@cache
def _data() -> dict[str, Intervals]:
    with np.load(Path(__file__).with_name("bert.npz"), allow_pickle=False) as archive:
        data = {name: archive[name] for name in archive.files}
    for array in data.values():
        array.flags.writeable = False
    return data


def removed() -> Intervals:
    """What clean-up leaves out: Cc, Cf and Co of Unicode 8.0 but for TAB, LF and CR, and U+FFFD."""
    return _data()["removed"]


def nonspacing_marks() -> Intervals:
    """What BertNormalizer leaves out to strip accents: Mn of Unicode 8.0."""
    return _data()["nonspacing_marks"]


def marks() -> Intervals:
    """What StripAccents leaves out: M of Unicode 9.0."""
    return _data()["marks"]


def punctuation() -> Intervals:
    """What Punctuation and BertPreTokenizer cut at: P of Unicode 8.0, and the symbols of ASCII."""
    return _data()["punctuation"]


def membership(members: Intervals) -> NDArray[np.bool_]:
    """Whether each codepoint is in a set, bool[0x110000]."""
    inside = np.zeros(0x110000, np.bool_)
    for begin, end in members.reshape(-1, 2).tolist():
        inside[begin:end] = True
    return inside
