"""SentencePiece files for tests: real ones, and small ones made by the reference's own protobuf classes."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from specs import DATA

from jittok.formats import sentencepiece_model

FILES = (
    "sp-bpe/barthez/sentencepiece.bpe.model",
    "sp-bpe/hf-fixture-test-sentencepiece-bpe/test_sentencepiece_bpe.model",
    "sp-bpe/llama2/tokenizer.model",
    "sp-bpe/mistral-v3/tokenizer.model",
    "unigram/deberta-v3/spm.model",
    "unigram/nmt-joint/vocab.joint.spm",
    "unigram/opus-mt-en-fr/source.spm",
    "unigram/sentencepiece-test-ja/test_ja_model.model",
    "unigram/sentencepiece-test/test_model.model",
    "unigram/seqio-test/sentencepiece.model",
    "unigram/t5-nai/spiece.model",
    "unigram/tf-text-fast-sentencepiece/fast_sentencepiece.model",
    "unigram/xlnet-base-cased/spiece.model",
)
#: Pieces of text that normalizers treat in many ways.
ATOMS = [
    *" \u2581\t\n\r\u3000aAbée\u0301\u0300\u0327\uff21ﬁ\u1100\u1161\u11a8한か\u3099カ\uff76\uff9e.()\"<>",
    *"\U0001f600\u200d\u00a0\ufdfa\u00ad\0\x01\x7f£–①½\u2029",
    *("<extra_id_0>", "<eop>", "(#1)", "  ", "▁▁", "[REFERENCE_DOC_1]", "words in a row, of plain letters only "),
]


def content(name):
    if DATA is None:
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds models/ to test with real models")
    path = Path(DATA) / "models" / name
    if not path.exists():
        pytest.skip(f"{name} is not among the models in JITTOK_TEST_DATA")
    return path.read_bytes()


@cache
def reference(name):
    spm = pytest.importorskip("sentencepiece")
    return spm.SentencePieceProcessor(model_proto=content(name))


@cache
def read(name):
    return sentencepiece_model.read(content(name), name)


def small_model(pieces, normalizer=None, **trainer):
    """The content of a model file, made with the reference's classes: pieces are (string, score, type)."""
    pb = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model = pb.ModelProto()
    for piece, score, kind in pieces:
        model.pieces.add(piece=piece, score=score, type=kind)
    for name, value in trainer.items():
        setattr(model.trainer_spec, name, value)
    for name, value in (normalizer or {}).items():
        setattr(model.normalizer_spec, name, value)
    return model.SerializeToString()


def random_texts(count, longest, seed=0):
    source = random.Random(seed)
    return ["".join(source.choice(ATOMS) for _ in range(source.randrange(longest))) for _ in range(count)]


def segments(texts):
    """Strings or bytes as the arrays that a rewriter takes."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(64), np.uint8)
    bounds = np.zeros(len(encoded) + 1, np.int64)
    bounds[1:] = np.cumsum([len(text) for text in encoded])
    return data, bounds[:-1].copy(), bounds[1:].copy()


def rewritten(rewriter, texts, alignment=False):
    """Bytes of each text, and where its codepoints come from."""
    done = rewriter.apply(*segments(texts), alignment=alignment)
    blob = done.data.tobytes()
    results = [blob[start:end] for start, end in zip(done.starts.tolist(), done.ends.tolist(), strict=True)]
    if not alignment:
        return results
    bounds = done.codepoint_indptr.tolist()
    sources = [
        (done.source_start[a:b].tolist(), done.source_end[a:b].tolist()) for a, b in zip(bounds, bounds[1:], strict=False)
    ]
    return results, sources
