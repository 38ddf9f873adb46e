"""WordPiece kernels: words by length, and running text; nothing is cached."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from jittok.build.wordpiece_tables import build_wordpiece_tables
from jittok.kernels.wordpiece import lin_max_match, max_match, wordpiece_end_to_end
from jittok.text import texts_from
from jittok.unicode import bert, classes

from . import texts

ENCODERS = {"MaxMatch": max_match, "LinMaxMatch": lin_max_match}


def vocabulary() -> dict[str, int]:
    """Letters, the frequent words of Hamlet, and frequent parts of its words."""
    words = Counter(word.strip(".,;:!?'()[]-").lower() for word in texts.hamlet().split())
    parts: Counter[str] = Counter()
    for word, n in words.items():
        for first in range(1, len(word)):
            for last in range(first + 1, min(first + 6, len(word)) + 1):
                parts[word[first:last]] += n
    letters = sorted({letter for word in words for letter in word})
    tokens = ["[UNK]", *letters, *(f"##{letter}" for letter in letters)]
    tokens += [word for word, _ in words.most_common(4000) if word]
    tokens += [f"##{part}" for part, _ in parts.most_common(4000)]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def build(max_input: int = 1 << 20) -> Any:
    """The tables of that vocabulary."""
    space = classes.binary_property("whitespace")
    return build_wordpiece_tables(
        vocabulary(), unknown=0, max_input=max_input, space=space, isolated=bert.punctuation()
    )


class WordPieceWords:
    """100,000 characters in words of one length."""

    timer = time.process_time
    params: ClassVar = [list(ENCODERS), [3, 10, 30, 100, 300]]
    param_names: ClassVar = ["encoder", "length"]

    def setup(self, encoder: str, length: int) -> None:
        generator = random.Random(length)
        known = sorted(word for word in vocabulary() if word.isalpha())
        count = 100_000 // length
        words = []
        while len(words) < count:
            word = ""
            while len(word) < length:
                word += generator.choice(known)
            words.append(word[:length])
        data, indptr, *_ = texts_from(words)
        self.encode = ENCODERS[encoder]
        ids, lengths = np.zeros(len(data), np.int32), np.zeros(len(data), np.int32)
        self.arguments = (build(), data, indptr[:-1], indptr[1:], ids, lengths, np.zeros(count, np.int64))
        self.encode(*self.arguments)

    def time_words(self, encoder: str, length: int) -> None:
        self.encode(*self.arguments)


class WordPieceText:
    """1 MB of running text, end to end."""

    timer = time.process_time
    params: ClassVar = list(texts.KINDS)
    param_names: ClassVar = ["text"]

    def setup(self, kind: str) -> None:
        data, indptr, *_ = texts_from([document.lower() for document in texts.documents(kind)])
        ids, lengths = np.zeros(len(data), np.int32), np.zeros(len(data), np.int32)
        outputs = (ids, lengths, np.zeros(0, np.int64), np.zeros(len(indptr) - 1, np.int64))
        self.arguments = (build(100), data, indptr[:-1], indptr[1:], *outputs)
        wordpiece_end_to_end(*self.arguments)

    def time_text(self, kind: str) -> None:
        wordpiece_end_to_end(*self.arguments)


class WordPieceTables:
    """Building the tables."""

    timer = time.process_time

    def setup(self) -> None:
        self.vocabulary = vocabulary()
        build_wordpiece_tables(self.vocabulary, unknown=0)

    def time_build(self) -> None:
        build_wordpiece_tables(self.vocabulary, unknown=0)
