"""Unigram kernels: the two forward passes by length, and running text with and without a cache of words."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from jittok.build.unigram_tables import build_unigram_tables
from jittok.kernels.unigram import STATE, encode_unigram_nested, encode_unigram_segments, new_unigram_scratch
from jittok.kernels.unigram_cache import encode_unigram_text, new_unigram_cache
from jittok.kernels.word_cache import EXTRA_ROOM
from jittok.tables import RULE_SENTENCEPIECE
from jittok.text import texts_from

from . import texts


def pieces() -> dict[str, float]:
    """Letters, words and parts of words of Hamlet, by how frequent they are."""
    words = Counter("\u2581" + word for word in texts.hamlet().split())
    counts: Counter[str] = Counter()
    for word, n in words.items():
        for first in range(len(word)):
            for last in range(first + 1, min(first + 8, len(word)) + 1):
                counts[word[first:last]] += n
    kept = dict(counts.most_common(12_000)) | {letter: counts[letter] for word in words for letter in word}
    kept.setdefault("\u2581", 1)
    total = sum(kept.values())
    return {piece: math.log(n / total) for piece, n in kept.items()}


def build() -> Any:
    """The tables of these pieces."""
    scores = pieces()
    return build_unigram_tables(
        ["<unk>", *scores], [0.0, *scores.values()], [2] + [1] * len(scores), space_as_blank=True
    )


class Arguments:
    """What the kernels take for some texts."""

    def __init__(self, documents: list[str]) -> None:
        data, indptr, *_ = texts_from([" " + document for document in documents])
        self.text = (data, indptr[:-1], indptr[1:])
        self.n = len(documents)
        self.scratch = new_unigram_scratch(int(np.diff(indptr).max()), RULE_SENTENCEPIECE)
        self.output = (np.zeros(len(data) + EXTRA_ROOM, np.int32), np.zeros(self.n, np.int64), np.zeros(0, np.int32))


class UnigramLength:
    """100,000 characters in texts of one length, by both forward passes."""

    timer = time.process_time
    params: ClassVar = [["nested", "trie"], [10, 100, 1000]]
    param_names: ClassVar = ["pass", "length"]

    def setup(self, name: str, length: int) -> None:
        text = " ".join(texts.hamlet().split())[:100_000]
        self.arguments = Arguments([text[first : first + length] for first in range(0, len(text), length)])
        self.tables = build()
        self.time_texts(name, length)

    def time_texts(self, name: str, length: int) -> None:
        a = self.arguments
        if name == "nested":
            encode_unigram_nested(self.tables, *a.text, a.scratch, *a.output)
        else:
            encode_unigram_segments(self.tables, *a.text, a.n, np.zeros(STATE, np.int64), a.scratch, *a.output)


class UnigramText:
    """1 MB of running text: without a cache, with an empty one, and with one that has seen it."""

    timer = time.process_time
    params: ClassVar = [list(texts.KINDS), ["uncached", "unseen", "seen"]]
    param_names: ClassVar = ["text", "cache"]

    def setup(self, kind: str, state: str) -> None:
        self.arguments = Arguments(texts.documents(kind))
        self.tables = build()
        self.cache = new_unigram_cache(self.tables, 17)
        self.time_text(kind, state)

    def time_text(self, kind: str, state: str) -> None:
        a = self.arguments
        if state == "uncached":
            encode_unigram_segments(self.tables, *a.text, a.n, np.zeros(STATE, np.int64), a.scratch, *a.output)
            return
        if state == "unseen":
            self.cache.slots[:] = 0
            self.cache.counters[:] = 0
        encode_unigram_text(
            self.tables, *a.text, a.n, np.zeros(STATE, np.int64), a.scratch, self.cache, *a.output
        )


class UnigramTables:
    """Building the tables."""

    timer = time.process_time

    def setup(self) -> None:
        self.scores = pieces()
        self.time_build()

    def time_build(self) -> None:
        scores = self.scores
        build_unigram_tables(["<unk>", *scores], [0.0, *scores.values()], [2] + [1] * len(scores))
