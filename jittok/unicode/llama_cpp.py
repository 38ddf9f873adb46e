"""The Unicode data of llama.cpp: that of Unicode 15.1, told as differences from the tables at hand.

Measured on all 0x110000 codepoints of llama.cpp as of llama-cpp-python 0.3.36: its general categories are those of
16.0 but for the codepoints that 16.0 added, which it takes for unassigned; its white space is White_Space; its lower
case is that of 17.0 for the codepoints that it knows; and of a canonical decomposition (9.0, and U+11938) it keeps the
first codepoint.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from jittok.unicode import bert, classes, intervals
from jittok.unicode.intervals import Intervals
from jittok.unicode.normalization import load_normalization

#: The codepoints that Unicode 16.0 added, as half-open ranges.
_ADDED_IN_16 = (
    (0x897, 0x898), (0x1B4E, 0x1B50), (0x1B7F, 0x1B80), (0x1C89, 0x1C8B), (0x2427, 0x242A), (0x31E4, 0x31E6),
    (0xA7CB, 0xA7CE), (0xA7DA, 0xA7DD), (0x105C0, 0x105F4), (0x10D40, 0x10D66), (0x10D69, 0x10D86),
    (0x10D8E, 0x10D90), (0x10EC2, 0x10EC5), (0x10EFC, 0x10EFD), (0x11380, 0x1138A), (0x1138B, 0x1138C),
    (0x1138E, 0x1138F), (0x11390, 0x113B6), (0x113B7, 0x113C1), (0x113C2, 0x113C3), (0x113C5, 0x113C6),
    (0x113C7, 0x113CB), (0x113CC, 0x113D6), (0x113D7, 0x113D9), (0x113E1, 0x113E3), (0x116D0, 0x116E4),
    (0x11BC0, 0x11BE2), (0x11BF0, 0x11BFA), (0x11F5A, 0x11F5B), (0x13460, 0x143FB), (0x16100, 0x1613A),
    (0x16D40, 0x16D7A), (0x18CFF, 0x18D00), (0x1CC00, 0x1CCFA), (0x1CD00, 0x1CEB4), (0x1E5D0, 0x1E5FB),
    (0x1E5FF, 0x1E600), (0x1F8B2, 0x1F8BC), (0x1F8C0, 0x1F8C2), (0x1FA89, 0x1FA8A), (0x1FA8F, 0x1FA90),
    (0x1FABE, 0x1FABF), (0x1FAC6, 0x1FAC7), (0x1FADC, 0x1FADD), (0x1FADF, 0x1FAE0), (0x1FAE9, 0x1FAEA),
    (0x1FBCB, 0x1FBF0),
)  # fmt: skip
_ALL = 0x110000
#: What U+2581 in a text becomes where that stands for the beginning of a word; private, so no text keeps it.
OTHER_MARK = "\ue000"


@cache
def known() -> Intervals:
    """The codepoints that llama.cpp has data of: assigned in Unicode 15.1."""
    unassigned = classes.general_category("Cn")
    assert unassigned is not None
    added = np.array(_ADDED_IN_16, np.int32).ravel()
    return intervals.complement(intervals.union(unassigned, added))


def category(name: str) -> Intervals | None:
    """Return the codepoints of a general category or group of categories; None when there is no such category.

    Parameters
    ----------
    name
        Its short name.
    """
    members = classes.general_category(name)
    if members is None:
        return None
    return intervals.intersection(members, known())


def lower_case() -> NDArray[np.int64]:
    """What each codepoint is in lower case, always one codepoint, int64[0x110000]."""
    data = load_normalization()
    keys, indptr, values = (data[f"lowercase_{part}"] for part in ("from", "indptr", "to"))
    lower = np.arange(_ALL, dtype=np.int64)
    lower[keys] = values[indptr[:-1]]
    unknown = ~bert.membership(known())
    lower[unknown] = np.flatnonzero(unknown)
    return lower


def clean_up(lowercase: bool, strip_accents: bool) -> NDArray[np.object_]:
    """What each codepoint becomes in llama.cpp's words, with blanks between them; None: itself. object[0x110000].

    Parameters
    ----------
    lowercase, strip_accents
        As in :class:`~jittok.spec.LlamaCppCleanUp`.
    """
    first = first_decomposed() if strip_accents else np.arange(_ALL, dtype=np.int64)
    lower = lower_case() if lowercase else np.arange(_ALL, dtype=np.int64)

    def of(*names: str) -> NDArray[np.bool_]:
        """Which codepoints come to one of some categories."""
        inside = np.zeros(_ALL, np.bool_)
        for name in names:
            members = category(name)
            assert members is not None
            inside |= bert.membership(members)
        return inside[first]

    result = np.full(_ALL, None, np.object_)
    content = lower[first]
    for codepoint in np.flatnonzero(content != np.arange(_ALL)).tolist():
        result[codepoint] = chr(content[codepoint])
    alone = of("P") | (of("S") & (first < 0x7F)) | bert.membership(bert.CHINESE)[first]
    for codepoint in np.flatnonzero(alone).tolist():
        result[codepoint] = f" {chr(content[codepoint])} "
    # Lone surrogates are in no text.
    removed = of("Cc", "Cf", "Co") | (first == 0) | (first == 0xFFFD)
    if strip_accents:
        removed |= of("M")
    result[removed] = ""
    result[ord("\u2581")] = OTHER_MARK
    white_space = classes.binary_property("whitespace")
    assert white_space is not None
    result[bert.membership(white_space)] = " "
    return result


def first_decomposed() -> NDArray[np.int64]:
    """The first codepoint of each one's canonical decomposition, int64[0x110000]."""
    data = load_normalization()
    first = np.arange(_ALL, dtype=np.int64)
    first[data["canonical_from"]] = data["canonical_to"][data["canonical_indptr"][:-1]]
    first[0x11938] = 0x11935
    syllables = np.arange(0xAC00, 0xD7A4)
    first[syllables] = 0x1100 + (syllables - 0xAC00) // 588
    return first
