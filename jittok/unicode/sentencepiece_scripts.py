"""The script of each codepoint, as SentencePiece's trainers keep them apart (Unicode 9.0).

The data is made by ``scripts/build_sentencepiece_scripts.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _data() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).with_name("sentencepiece_scripts.npz"), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def script_names() -> list[str]:
    """What the numbers mean; 0 is Common."""
    names: list[str] = _data()["names"].tolist()
    return names


def script_numbers(codepoints: NDArray[Any]) -> NDArray[np.uint8]:
    """The script of each of `codepoints`: a position in :func:`script_names`.

    Han stands for Hiragana, Katakana and U+30FC too, and Common for what Unicode 9.0 does not know.
    """
    data = _data()
    numbers: NDArray[np.uint8] = data["values"][np.searchsorted(data["starts"], codepoints, side="right") - 1]
    return numbers
