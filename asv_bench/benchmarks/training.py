"""Training: each trainer on megabytes of text, by size of the vocabulary and number of threads; what it learns."""

from __future__ import annotations

import functools
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import jittok

from . import texts

#: Bytes of text; words that are made of Hamlet's, so that there are more of them than there.
SIZE = 4_000_000
TRAINERS: dict[str, Callable[..., Any]] = {
    "bpe": functools.partial(jittok.train_bpe, pre_tokenizer="gpt2"),
    "wordpiece": functools.partial(
        jittok.train_wordpiece, normalizer="BertNormalizer", pre_tokenizer="BertPreTokenizer"
    ),
    "sentencepiece bpe": functools.partial(jittok.train_bpe, rules="sentencepiece"),
    "unigram": jittok.train_unigram,
}


@functools.cache
def corpus() -> Path:
    """A file of English, code and many scripts, a line a sentence."""
    folder = tempfile.mkdtemp(prefix="jittok-bench-")
    path = Path(folder, "corpus.txt")
    parts = [texts.documents(kind, size=SIZE // len(texts.KINDS)) for kind in texts.KINDS]
    path.write_text("\n".join(document for part in parts for document in part), encoding="utf-8", newline="\n")
    return path


def train(trainer: str, size: int, threads: int = 1) -> Any:
    """What the trainer makes of the corpus."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TRAINERS[trainer](corpus(), vocab_size=size, threads=threads, unreachable="warn")


class Training:
    """CPU time of one thread."""

    timer = time.process_time
    params: ClassVar = [list(TRAINERS), [4_000, 16_000]]
    param_names: ClassVar = ["trainer", "vocabulary"]

    def setup(self, trainer: str, size: int) -> None:
        train(trainer, size)

    def time_train(self, trainer: str, size: int) -> None:
        train(trainer, size)


class TrainingThreads:
    """Wall time."""

    timer = time.perf_counter
    params: ClassVar = [list(TRAINERS), [1, 2]]
    param_names: ClassVar = ["trainer", "threads"]

    def setup(self, trainer: str, threads: int) -> None:
        train(trainer, 8_000, threads)

    def time_train(self, trainer: str, threads: int) -> None:
        train(trainer, 8_000, threads)


class TrainingMemory:
    """Peak memory, and what is learned: a commit that changes the checksum has changed vocabularies."""

    params: ClassVar = list(TRAINERS)
    param_names: ClassVar = ["trainer"]

    def setup(self, trainer: str) -> None:
        corpus()

    def peakmem_train(self, trainer: str) -> None:
        train(trainer, 8_000)

    def track_checksum(self, trainer: str) -> int:
        model = train(trainer, 8_000).spec.model
        learned = [getattr(model, name, None) for name in ("pieces", "scores", "vocab", "merges")]
        return zlib.crc32(repr(learned).encode())

    track_checksum.unit = "crc32"  # type: ignore[attr-defined]


class Counting:
    """Counting words, and in little memory."""

    timer = time.process_time
    params: ClassVar = [["gpt2", "cl100k", "Whitespace"], [None, 1 << 21]]
    param_names: ClassVar = ["pre-tokenizer", "memory limit"]

    def setup(self, pre_tokenizer: str, memory_limit: int | None) -> None:
        self.time_count(pre_tokenizer, memory_limit)

    def time_count(self, pre_tokenizer: str, memory_limit: int | None) -> None:
        jittok.count_words(corpus(), pre_tokenizer=pre_tokenizer, memory_limit=memory_limit, threads=1)
