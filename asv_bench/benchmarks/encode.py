"""Encoding."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from . import texts


class Encode:
    """Documents of about 3 kB, 1 MB in all, one thread."""

    timer = time.process_time
    params: ClassVar = [texts.FAMILIES, list(texts.KINDS)]
    param_names: ClassVar = ["family", "text"]

    def setup(self, family: str, kind: str) -> None:
        self.tokenizer = texts.load(family)
        self.documents = texts.documents(kind)
        encoded = [document.encode("utf-8") for document in self.documents]
        self.data = np.frombuffer(b"".join(encoded), np.uint8)
        self.indptr = np.concatenate([[0], np.cumsum([len(document) for document in encoded])]).astype(np.int64)
        self.tokenizer.encode_batch(self.documents, threads=1)
        self.tokenizer.encode_batch(self.documents, threads=1, spans=True)
        self.tokenizer.count_batch(self.documents, threads=1)

    def time_strings(self, family: str, kind: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1)

    def time_arrays(self, family: str, kind: str) -> None:
        self.tokenizer.encode_batch((self.data, self.indptr), threads=1)

    def time_spans(self, family: str, kind: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1, spans=True)

    def time_count(self, family: str, kind: str) -> None:
        self.tokenizer.count_batch(self.documents, threads=1)


class EncodeNew:
    """Text that the process has not seen."""

    timer = time.process_time
    number = 1
    repeat = 5
    warmup_time = 0
    params = Encode.params
    param_names = Encode.param_names

    def setup(self, family: str, kind: str) -> None:
        # asv calls this before each measurement: a new tokenizer has an empty cache
        self.tokenizer = texts.load(family)
        self.tokenizer.encode_batch(texts.documents(kind, size=10_000, seed=2), threads=1)
        self.documents = texts.documents(kind)

    def time_strings(self, family: str, kind: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1)

    def time_spans(self, family: str, kind: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1, spans=True)


class Short:
    """10,000 texts of 100 characters, and one text after another."""

    timer = time.process_time
    params: ClassVar = texts.FAMILIES
    param_names: ClassVar = ["family"]

    def setup(self, family: str) -> None:
        self.tokenizer = texts.load(family)
        text = "\n".join(texts.documents("english"))
        self.documents = [text[i * 100 : (i + 1) * 100] for i in range(10_000)]
        self.tokenizer.encode_batch(self.documents, threads=1)
        self.tokenizer.encode_batch(self.documents, threads=1, spans=True)
        self.tokenizer.encode(self.documents[0])

    def time_batch(self, family: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1)

    def time_spans(self, family: str) -> None:
        self.tokenizer.encode_batch(self.documents, threads=1, spans=True)

    def time_one_by_one(self, family: str) -> None:
        encode = self.tokenizer.encode
        for document in self.documents[:1000]:
            encode(document)


class Threads:
    """The same 8 MB with more threads; wall time."""

    timer = time.perf_counter
    params: ClassVar = [list(texts.KINDS), [1, 2, 4]]
    param_names: ClassVar = ["text", "threads"]

    def setup(self, kind: str, threads: int) -> None:
        self.tokenizer = texts.load("default")
        self.documents = texts.documents(kind, size=8_000_000)
        encoded = [document.encode("utf-8") for document in self.documents]
        self.data = np.frombuffer(b"".join(encoded), np.uint8)
        self.indptr = np.concatenate([[0], np.cumsum([len(document) for document in encoded])]).astype(np.int64)
        self.tokenizer.encode_batch(self.documents, threads=threads)
        self.tokenizer.encode_batch(self.documents, threads=threads, spans=True)

    def time_strings(self, kind: str, threads: int) -> None:
        self.tokenizer.encode_batch(self.documents, threads=threads)

    def time_arrays(self, kind: str, threads: int) -> None:
        self.tokenizer.encode_batch((self.data, self.indptr), threads=threads)

    def time_spans(self, kind: str, threads: int) -> None:
        self.tokenizer.encode_batch(self.documents, threads=threads, spans=True)


class Hard:
    """Inputs that break quadratic algorithms."""

    timer = time.process_time
    params: ClassVar = list(texts.hard_inputs())
    param_names: ClassVar = ["input"]

    def setup(self, name: str) -> None:
        self.tokenizer = texts.load("default")
        self.text = texts.hard_inputs()[name]
        self.tokenizer.encode_batch([self.text[:1000]], threads=1)

    def time_encode(self, name: str) -> None:
        self.tokenizer.encode_batch([self.text], threads=1)


class Decode:
    """Ids back to text."""

    timer = time.process_time
    params: ClassVar = texts.FAMILIES
    param_names: ClassVar = ["family"]

    def setup(self, family: str) -> None:
        self.tokenizer = texts.load(family)
        self.batch = self.tokenizer.encode_batch(texts.documents("english"))
        self.tokenizer.decode_batch(self.batch)

    def time_batch(self, family: str) -> None:
        self.tokenizer.decode_batch(self.batch)
