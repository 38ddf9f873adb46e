"""A Numba-JIT, array-oriented tokenizer engine.

Importing this package is cheap: neither Numba nor any table is loaded before a tokenizer is.

>>> import jittok
>>> tok = jittok.load_default()
>>> tok.decode(tok.encode("Words, words, words.").ids)
'Words, words, words.'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jittok import errors

if TYPE_CHECKING:
    from jittok.encodings import Batch, Encoding
    from jittok.spec import AddedToken
    from jittok.streaming import DecodeStream
    from jittok.tokenizer import Tokenizer, load, load_bytes, load_default
    from jittok.training.bpe import train_bpe
    from jittok.training.unigram import train_unigram
    from jittok.training.word_counts import WordCounts, count_words
    from jittok.training.wordpiece import train_wordpiece

__version__ = "0.1.0"

_HOME = {
    "AddedToken": "jittok.spec",
    "Batch": "jittok.encodings",
    "DecodeStream": "jittok.streaming",
    "Encoding": "jittok.encodings",
    "Tokenizer": "jittok.tokenizer",
    "WordCounts": "jittok.training.word_counts",
    "count_words": "jittok.training.word_counts",
    "load": "jittok.tokenizer",
    "load_bytes": "jittok.tokenizer",
    "load_default": "jittok.tokenizer",
    "train_bpe": "jittok.training.bpe",
    "train_unigram": "jittok.training.unigram",
    "train_wordpiece": "jittok.training.wordpiece",
}

__all__ = [
    "AddedToken",
    "Batch",
    "DecodeStream",
    "Encoding",
    "Tokenizer",
    "WordCounts",
    "count_words",
    "errors",
    "load",
    "load_bytes",
    "load_default",
    "train_bpe",
    "train_unigram",
    "train_wordpiece",
]


def __getattr__(name: str) -> Any:
    if name == "kernels":
        return importlib.import_module("jittok.kernels")
    if name not in _HOME:
        raise AttributeError(f"module 'jittok' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
