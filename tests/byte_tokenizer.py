"""A stand-in tokenizer, one id for each byte: it needs no kernels, and wants valid UTF-8 as the real ones do."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from jittok.errors import SpecialTokenError, TextError


class Bytes:
    vocab_size = id_limit = 256
    fingerprint = "bytes"

    def encode_batch(self, texts, add_special_tokens=False, threads=None, special=None):
        if not isinstance(texts, tuple):
            texts = texts if isinstance(texts, list) else texts.to_pylist()
            parts = [text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts]
            texts = np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)])
        data, indptr = texts
        for left, right in zip(indptr[:-1], indptr[1:], strict=True):
            text = bytes(data[left:right])
            try:
                text.decode()
            except UnicodeDecodeError as error:
                raise TextError("invalid UTF-8") from error
            if special == "raise" and b"<s>" in text:
                raise SpecialTokenError("the text holds <s>")
        return SimpleNamespace(ids=data[indptr[0] : indptr[-1]].astype(np.int32), indptr=indptr - indptr[0])

    def count_batch(self, texts, **arguments):
        batch = self.encode_batch(texts, **arguments)
        return np.diff(batch.indptr)

    def token_to_id(self, token):
        return ord(token) if len(token) == 1 else None
