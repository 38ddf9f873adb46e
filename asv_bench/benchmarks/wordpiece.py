"""WordPiece kernels: words by length, and running text; nothing is cached."""

from __future__ import annotations

import random
import time
from typing import Any, ClassVar

import numpy as np

from jittok.build.wordpiece_tables import build_wordpiece_tables
from jittok.kernels.wordpiece import lin_max_match, max_match, wordpiece_end_to_end
from jittok.text import texts_from
from jittok.unicode import bert, classes

from . import texts

ENCODERS = {"MaxMatch": max_match, "LinMaxMatch": lin_max_match}


def build(max_input: int = 1 << 20) -> Any:
    """The tables of that vocabulary."""
    space = classes.binary_property("whitespace")
    return build_wordpiece_tables(
        texts.word_pieces(), unknown=0, max_input=max_input, space=space, isolated=bert.punctuation()
    )


class WordPieceWords:
    """100,000 characters in words of one length."""

    timer = time.process_time
    params: ClassVar = [list(ENCODERS), [3, 10, 30, 100, 300]]
    param_names: ClassVar = ["encoder", "length"]

    def setup(self, encoder: str, length: int) -> None:
        generator = random.Random(length)
        known = sorted(word for word in texts.word_pieces() if word.isalpha())
        count = 100_000 // length
        words = []
        while len(words) < count:
            word = ""
            while len(word) < length:
                word += generator.choice(known)
            words.append(word[:length])
        data, indptr = texts_from(words)[:2]
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
        data, indptr = texts_from([document.lower() for document in texts.documents(kind)])[:2]
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
        self.vocabulary = texts.word_pieces()
        build_wordpiece_tables(self.vocabulary, unknown=0)

    def time_build(self) -> None:
        build_wordpiece_tables(self.vocabulary, unknown=0)
