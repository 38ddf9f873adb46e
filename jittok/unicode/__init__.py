"""The Unicode tables that the reference libraries use, pinned, as arrays."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jittok.tables import CodepointClasses


@cache
def load_normalization() -> dict[str, NDArray[np.generic]]:
    """The arrays of ``normalization.npz``; ``scripts/build_unicode_normalization.py`` says what they are."""
    with np.load(Path(__file__).parent / "normalization.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def two_level(values: NDArray[np.uint8]) -> CodepointClasses:
    """Fold one value for each of the 0x110000 codepoints into pages of 128, equal pages stored once."""
    pages = values.reshape(-1, 128)
    number_of: dict[bytes, int] = {}
    page_of = np.zeros(len(pages), dtype=np.uint16)
    kept: list[NDArray[np.uint8]] = []
    for index, page in enumerate(pages):
        key = page.tobytes()
        if key not in number_of:
            number_of[key] = len(kept)
            kept.append(page)
        page_of[index] = number_of[key]
    class_of = np.concatenate(kept)
    page_of.flags.writeable = False
    class_of.flags.writeable = False
    return CodepointClasses(page_of, class_of)


@cache
def load_word_classes() -> CodepointClasses:
    """Class 1 for the word characters of Unicode 16.0, as the Rust regex library has them, else 0."""
    values = np.zeros(0x110000, dtype=np.uint8)
    for begin, end in load_normalization()["word_ranges"].tolist():
        values[begin:end] = 1
    return two_level(values)
