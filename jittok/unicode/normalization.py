"""The Unicode data of the rewriting steps and of added tokens, pinned to what the references use.

Unicode 9.0 for the normalization forms, 17.0 for lower case, 16.0 for word characters; the arrays are made by
``scripts/build_unicode_normalization.py``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.tables import CodepointClasses
from jittok.unicode import classes


@cache
def load_normalization() -> dict[str, NDArray[Any]]:
    """The arrays of ``normalization.npz``; ``scripts/build_unicode_normalization.py`` says what they are."""
    with np.load(Path(__file__).parent / "normalization.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def fold_pages(values: NDArray[Any]) -> tuple[NDArray[np.uint16], NDArray[Any]]:
    """Fold one value for each of the 0x110000 codepoints into pages of 128, equal pages stored once.

    `values` may end before: those of all further codepoints are 0.

    Returns `page_of` (uint16[8704]) and the values of the kept pages, both read-only: the value of `cp` is
    ``kept[(page_of[cp >> 7] << 7) | (cp & 127)]``.
    """
    pages = values.reshape(-1, 128)
    page_of = np.zeros(0x110000 >> 7, dtype=np.uint16)
    kept = [pages[0]]
    number_of = {pages[0].tobytes(): 0}
    filled: NDArray[np.bool_] = np.any(pages, axis=1)
    if filled[0]:  # else page 0, that of ASCII, is the empty one already
        page_of[1:] = 1
        kept.append(np.zeros(128, pages.dtype))
    for index in np.flatnonzero(filled).tolist():
        number = number_of.setdefault(pages[index].tobytes(), len(kept))
        if number == len(kept):
            kept.append(pages[index])
        page_of[index] = number
    value_of = np.concatenate(kept)
    page_of.flags.writeable = False
    value_of.flags.writeable = False
    return page_of, value_of


@cache
def load_word_classes() -> CodepointClasses:
    """Class 1 for the word characters of Unicode 16.0, as the Rust regex library has them, else 0."""
    values = np.zeros(0x110000, dtype=np.uint8)
    parts = [classes.binary_property(name) for name in ("alphabetic", "joincontrol")]
    parts += [classes.general_category(name) for name in ("M", "Nd", "Pc")]
    for part in parts:
        assert part is not None  # all five are in the data
        for begin, end in part.reshape(-1, 2).tolist():
            values[begin:end] = 1
    return CodepointClasses(*fold_pages(values))
