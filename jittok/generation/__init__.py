"""Around a language model: prompts become arrays, logits become tokens, tokens become text.

The model is any function ``step(ids, state, beam_index) -> (logits, state)``; nothing here knows a neural network, and
nothing of it is used to tokenize. docs/generation.md explains it with examples.

>>> import numpy as np
>>> from jittok.generation import generate
>>> table = np.log(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.1, 0.1, 0.8]], np.float32))
>>> result = generate(lambda ids, state, beam_index: (table[ids[:, -1]], state), [[0]], max_new_tokens=4)
>>> result[0].ids.tolist()
[1, 0, 1, 0]
"""

from jittok.errors import GenerationError
from jittok.generation.processors import (
    LogitsProcessor,
    ban_repeated_ngrams,
    ban_tokens,
    ban_words,
    force_token,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    keep_typical,
    log_softmax,
    penalize_repetition,
    sample,
    scale_by_temperature,
)
from jittok.generation.results import Generated, GeneratedSequence
from jittok.generation.routines import Chunk, generate, stream
from jittok.generation.settings import GenerationSettings
from jittok.generation.stop_strings import StopStrings, TextStream

__all__ = [
    "Chunk",
    "Generated",
    "GeneratedSequence",
    "GenerationError",
    "GenerationSettings",
    "LogitsProcessor",
    "StopStrings",
    "TextStream",
    "ban_repeated_ngrams",
    "ban_tokens",
    "ban_words",
    "force_token",
    "generate",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "keep_typical",
    "log_softmax",
    "penalize_repetition",
    "sample",
    "scale_by_temperature",
    "stream",
]
