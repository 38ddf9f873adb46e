"""Learning WordPiece vocabularies: against the textbook trainer, and against tokenizers."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path

import pytest
import reference_training as textbook
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import DATA
from test_training_bpe import TEXT, WORDS, interrupt_after

import jittok
from jittok.errors import ArgumentError, ArgumentTypeError, ConversionWarning, TrainingWarning

tokenizers = pytest.importorskip("tokenizers")


def tokens_of(tokenizer):
    vocab = tokenizer.spec.model.vocab
    assert sorted(vocab.values()) == list(range(len(vocab)))
    return sorted(vocab, key=vocab.get)


def by_textbook(words, size, *, min_frequency=0, max_token_length=None, prefix="##", suffix="", special=(), score="count"):
    tokens, split = textbook.start(words, special=special, prefix=prefix, suffix=suffix)
    return textbook.learn(
        tokens,
        split,
        size,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        prefix=prefix,
        by_likelihood=score == "likelihood",
    )[0]


@settings(max_examples=150, deadline=None)
@given(
    WORDS,
    st.integers(0, 40),
    st.sampled_from(["count", "likelihood"]),
    st.integers(0, 5),
    st.sampled_from([None, 2, 5]),
    st.sampled_from(["##", "a", ""]),
)
def test_textbook(words, size, score, min_frequency, max_token_length, prefix):
    expected = by_textbook(
        words, size, min_frequency=min_frequency, max_token_length=max_token_length, prefix=prefix, score=score
    )
    arguments = {
        "counts": jittok.WordCounts.from_mapping(words),
        "vocab_size": size,
        "score": score,
        "min_frequency": min_frequency,
        "max_token_length": max_token_length,
        "continuing_subword_prefix": prefix,
    }
    if not words or len(expected) > size:
        with pytest.raises(ArgumentError, match="no words to learn from" if not words else "is less than the"):
            jittok.train_wordpiece(**arguments, unreachable="error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        got = jittok.train_wordpiece(**arguments)
    assert tokens_of(got) == expected


@pytest.mark.parametrize("score", ["count", "likelihood"])
def test_textbook_on_english(score):
    words = dict(Counter(TEXT[:8_000].lower().split()))
    counts = jittok.WordCounts.from_mapping(words)
    options = {"min_frequency": 2 if score == "likelihood" else 0}
    got = jittok.train_wordpiece(counts=counts, vocab_size=260, score=score, special_tokens=["[UNK]"], **options)
    assert tokens_of(got) == by_textbook(words, 260, score=score, special=["[UNK]"], **options)


def compare_with_tokenizers(texts, size):
    """All but the random order of letters that continue words."""
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    theirs.train_from_iterator(texts, trainer)
    vocab = theirs.get_vocab()
    expected = sorted(vocab, key=vocab.get)
    steps = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    natural = jittok.train_wordpiece(texts, vocab_size=size, special_tokens=special, unreachable="stop", **steps)
    first = [token for token in expected if len(token.removeprefix("##")) == 1 or token in special]
    n = len(first)
    assert expected[:n] == first
    letters = sorted((token for token in first if token not in special), key=lambda token: (token.startswith("##"), token))
    assert tokens_of(natural)[:n] == special + letters
    # With that run's order of letters, all else is the same.
    ordered = jittok.train_wordpiece(texts, vocab_size=size, special_tokens=first, unreachable="stop", **steps)
    assert tokens_of(ordered) == expected
    return natural, theirs


def test_tokenizers(tmp_path):
    trained, _ = compare_with_tokenizers(TEXT.splitlines(), 1000)
    path = tmp_path / "tokenizer.json"
    trained.save(path)
    assert jittok.load(path) == trained
    theirs = tokenizers.Tokenizer.from_file(str(path))
    for text in (*TEXT.splitlines()[:30], "naïve 東京 \U0001f600 [CLS]"):
        assert trained.encode(text).ids.tolist() == theirs.encode(text).ids
    assert json.loads(path.read_text())["model"]["type"] == "WordPiece"
    lines = tmp_path / "vocab.txt"
    with pytest.warns(ConversionWarning, match="readers of a vocab.txt put"):
        trained.save(lines)
    assert lines.read_text(encoding="utf-8").splitlines() == tokens_of(trained)


@pytest.mark.skipif(DATA is None, reason="set JITTOK_TEST_DATA to a folder that holds corpora/ to test with real text")
@pytest.mark.parametrize("corpus", ["english", "multi", "code"])
def test_tokenizers_on_corpora(corpus):
    with open(Path(DATA) / "corpora" / f"{corpus}.txt", encoding="utf-8", errors="replace") as file:
        text = file.read(500_000)
    compare_with_tokenizers(text.splitlines(), 8000)


@pytest.mark.parametrize("score", ["count", "likelihood"])
def test_several_sizes_and_resumed(tmp_path, score):
    path = tmp_path / "checkpoint"
    options = {"pre_tokenizer": "Whitespace", "score": score, "min_frequency": 2}
    trained = jittok.train_wordpiece([TEXT[:50_000]], vocab_sizes=[300, 500], **options)
    assert tokens_of(trained[300]) == tokens_of(jittok.train_wordpiece([TEXT[:50_000]], vocab_size=300, **options))
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(10, patch)
        with pytest.raises(KeyboardInterrupt):
            jittok.train_wordpiece([TEXT[:50_000]], vocab_size=500, checkpoint=path, **options)
    assert jittok.train_wordpiece(resume=path, vocab_size=500, **options) == trained[500]


def test_wrong_arguments():
    for wrong in ({"score": "pmi"}, {"vocab_size": 2, "unreachable": "error"}, {"vocab_size": 99, "unreachable": "error"}):
        with pytest.raises(ArgumentError):
            jittok.train_wordpiece(["abc"], **wrong)
    for wrong in ({"unk_token": None}, {"base": 3}, {"special_tokens": "[UNK]"}):
        with pytest.raises(ArgumentTypeError):
            jittok.train_wordpiece(["abc"], **wrong)
