"""Generation against what transformers gave for the same models: sequences and scores."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_models import FIXTURES, TinyBART, TinyGPT2

from jittok.generation import generate

MODELS = {"gpt2": TinyGPT2(), "bart": TinyBART()}
START = 2  # of BART's decoder


def recorded(file):
    return json.loads((FIXTURES / file).read_text())["cases"]


def run(case):
    model, prompts = MODELS[case["model"]], case["prompts"]
    width = max(map(len, prompts))
    if case["model"] == "gpt2":
        mask = np.array([[False] * (width - len(prompt)) + [True] * len(prompt) for prompt in prompts])
        return generate(model, prompts, state=mask, **case["settings"])
    ids = np.array([prompt + [0] * (width - len(prompt)) for prompt in prompts])
    mask = np.array([[True] * len(prompt) + [False] * (width - len(prompt)) for prompt in prompts])
    return generate(model, [[START]] * len(prompts), state=model.encode(ids, mask), **case["settings"])


@pytest.mark.parametrize("file", ["cases.json", "diverse.json"])
@pytest.mark.parametrize("model", MODELS)
def test_transformers_sequences_and_scores(file, model):
    cases = [case for case in recorded(file) if case["model"] == model]
    assert len(cases) >= 10
    wrong = []
    for case in cases:
        found, expected = run(case), case["expected"]
        is_same = len(found) == len(expected)
        for sequence, wanted in zip(found, expected, strict=False):
            is_same &= sequence.ids.tolist() == wanted["ids"]
            scores = wanted.get("token_scores", sequence.token_scores)
            is_same &= len(sequence.token_scores) == len(scores) and np.allclose(
                sequence.token_scores, scores, rtol=1e-4, atol=2e-4
            )
            is_same &= "score" not in wanted or bool(np.isclose(sequence.score, wanted["score"], rtol=1e-5, atol=5e-5))
        if not is_same:
            wrong.append((case["settings"], expected, [(s.ids.tolist(), s.score) for s in found]))
    assert wrong == [], f"{len(wrong)} of {len(cases)} differ; the first: {wrong[0]}"
