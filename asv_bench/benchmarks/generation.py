"""What is done to the logits of one step: processors in place, and a step of beam search with and without samples."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from jittok.generation import LogitsProcessor, generate

VOCAB = 50_257
SAMPLES = {"do_sample": True, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3}
PROCESSORS = {
    "top-k": {"do_sample": True, "top_k": 50},
    "top-p": {"do_sample": True, "top_p": 0.9},
    "min-p": {"do_sample": True, "min_p": 0.05},
    "typical": {"do_sample": True, "typical_p": 0.9},
    "log-softmax": {"log_softmax": True},
    "all": SAMPLES,
}
ROUTINES = {"greedy": {}, "samples": SAMPLES, "beams": {"num_beams": 5}, "beam samples": SAMPLES | {"num_beams": 5}}


class Processors:
    """25 rows, in place."""

    timer = time.process_time
    params: ClassVar = list(PROCESSORS)
    param_names: ClassVar = ["processor"]

    def setup(self, processor: str) -> None:
        generator = np.random.default_rng(0)
        self.given = generator.normal(0, 3, (25, VOCAB)).astype(np.float32)
        self.ids = generator.integers(0, VOCAB, (25, 48))
        self.process = LogitsProcessor(**PROCESSORS[processor])
        self.process(self.given.copy(), self.ids)

    def time_process(self, processor: str) -> None:
        self.process(self.given.copy(), self.ids)


class Routines:
    """20 steps for 5 prompts, whose logits cost nothing."""

    timer = time.process_time
    params: ClassVar = list(ROUTINES)
    param_names: ClassVar = ["routine"]

    def setup(self, routine: str) -> None:
        self.logits = np.random.default_rng(0).normal(0, 3, (25, VOCAB)).astype(np.float32)
        self.prompts = np.random.default_rng(1).integers(0, VOCAB, (5, 32))
        self.time_generate(routine)

    def time_generate(self, routine: str) -> None:
        def step(ids: object, state: object, beam_index: object) -> tuple[object, object]:
            return self.logits[: len(ids)], state

        generate(step, self.prompts, max_new_tokens=20, seed=1, **ROUTINES[routine])
