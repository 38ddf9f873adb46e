"""Learning byte-pair merges: against the textbook trainer, and against tokenizers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from base64 import b64encode
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reference_training as textbook
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import DATA

import jittok
from jittok.build.merge_tables import byte_alphabet
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError, MissingFileError, OutputError, TrainingWarning
from jittok.training import merge_learning, vocabulary_learning
from jittok.training.merge_learning import MergeLearner, Rules, Words

tokenizers = pytest.importorskip("tokenizers")
tiktoken = pytest.importorskip("tiktoken")


def result(tokenizer):
    vocab = tokenizer.spec.model.vocab
    assert sorted(vocab.values()) == list(range(len(vocab)))
    return sorted(vocab, key=vocab.get), list(tokenizer.spec.model.merges)


# ------------------------------------------------------------------------------------------------- textbook trainer

WORDS = st.dictionaries(st.text("aab", min_size=1, max_size=12), st.integers(1, 9), min_size=1, max_size=8)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "min_frequency": st.integers(0, 6),
        "max_token_length": st.integers(1, 6),
        "special_tokens": st.lists(st.sampled_from(["<s>", "a", "ab", "aa", "##b", "b</w>"]), max_size=3, unique=True),
        "initial_alphabet": st.lists(st.sampled_from("abcd"), max_size=3, unique=True),
        "limit_alphabet": st.integers(0, 4),
        "continuing_subword_prefix": st.sampled_from(["##", "a", "b"]),
        "end_of_word_suffix": st.sampled_from(["</w>", "a"]),
    },
)


def by_textbook(words, size, options):
    prefix = options.get("continuing_subword_prefix", "")
    tokens, split = textbook.start(
        words,
        special=options.get("special_tokens", ()),
        initial_alphabet=options.get("initial_alphabet", ()),
        limit_alphabet=options.get("limit_alphabet"),
        prefix=prefix,
        suffix=options.get("end_of_word_suffix", ""),
    )
    return textbook.learn(
        tokens,
        split,
        size,
        min_frequency=options.get("min_frequency", 0),
        max_token_length=options.get("max_token_length"),
        prefix=prefix,
    )


@settings(max_examples=250, deadline=None)
@given(WORDS, st.integers(0, 40), OPTIONS)
def test_textbook(words, size, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        counts = jittok.WordCounts.from_mapping(words)
        expected = by_textbook(words, size, options)
        if not words or len(expected[0]) > size:
            with pytest.raises(ArgumentError, match="no words to learn from" if not words else "is less than the"):
                jittok.train_bpe(counts=counts, vocab_size=size, unreachable="stop", **options)
        got = result(jittok.train_bpe(counts=counts, vocab_size=size, **options))
    assert got == expected


@settings(max_examples=60, deadline=None)
@given(WORDS, st.integers(0, 40), OPTIONS)
def test_textbook_with_small_arrays(words, size, options):
    """Arrays grow, pairs wait in the heap, and slices end after every merge."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SLICE", 1), ("FIRST_PAIRS", 1), ("FIRST_EVENTS", 0), ("TOKEN_BYTES", 0), ("BUCKETS", 3)):
            patch.setattr(merge_learning, name, value)
        test_textbook.hypothesis.inner_test(words, size, options)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text("aébあ", min_size=1, max_size=12), st.integers(1, 9), min_size=1, max_size=12),
    st.integers(0, 40),
    OPTIONS,
    st.sampled_from([2, 3, 7]),
    st.integers(0, 2),
)
def test_textbook_on_threads(words, size, options, threads, huge):
    """Each thread has some of the words; letters that are left out, and counts that are too large for cells."""
    words = {word: count << 33 if number < huge else count for number, (word, count) in enumerate(words.items())}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        for name, value in (("PART_BYTES", 1), ("FIRST_PAIRS", 1)):
            patch.setattr(merge_learning, name, value)
        counts = jittok.WordCounts.from_mapping(words)
        expected = by_textbook(words, size, options)
        got = result(jittok.train_bpe(counts=counts, vocab_size=size, threads=threads, **options))
    assert got == expected


TEXT = (Path(jittok.__file__).parent / "data" / "hamlet.txt").read_text(encoding="utf-8")


def counted(text, pattern=str.split):
    return dict(Counter(pattern(text)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"end_of_word_suffix": "</w>", "min_frequency": 3},
        {"continuing_subword_prefix": "##", "max_token_length": 5},
        {"limit_alphabet": 20, "special_tokens": ["[UNK]", "the", "e"]},
    ],
)
def test_textbook_on_english(options):
    words = counted(TEXT[:6_000])
    counts = jittok.WordCounts.from_mapping(words)
    got = result(jittok.train_bpe(counts=counts, vocab_size=250, unreachable="error", **options))
    assert got == by_textbook(words, 250, options)


def test_tokens_made_in_several_ways():
    """With such a prefix, merges make letters and tokens that are there already."""
    words = {"a" * n: n % 7 + 1 for n in range(1, 20)}
    words.update({"b" + "a" * n: n % 5 + 1 for n in range(1, 15)})
    words.update({"ab" * n + "a" * n: 3 for n in range(1, 10)})
    options = {"continuing_subword_prefix": "a"}
    counts = jittok.WordCounts.from_mapping(words)
    got = result(jittok.train_bpe(counts=counts, vocab_size=1000, unreachable="stop", **options))
    assert got == by_textbook(words, 1000, options)
    tokens = [token for token in got[0] if len(token) > 2]
    assert len(got[1]) > len(tokens) + 5


# ------------------------------------------------------------------------------------------------------- tokenizers


def by_tokenizers(texts, size, normalizer=None, pre_tokenizer=None, **options):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())


def setup(name):
    """Normalizer, pre-tokenizer and options of a kind of tokenizer."""
    make, byte_level = tokenizers.pre_tokenizers, tokenizers.pre_tokenizers.ByteLevel
    alphabet = {"initial_alphabet": byte_level.alphabet()}
    if name == "gpt2":
        return None, byte_level(add_prefix_space=False), alphabet
    if name == "whitespace":
        return tokenizers.normalizers.NFKC(), make.Whitespace(), {"special_tokens": ["[UNK]"]}
    if name == "metaspace":
        return None, make.Metaspace(), {"min_frequency": 3, "limit_alphabet": 60}
    parts = byte_level(add_prefix_space=False, use_regex=False)
    if name == "cl100k":
        from jittok.training.steps import read_steps

        pattern = read_steps(pre_tokenizer="cl100k").pre_tokenizers[0].pattern
        pre_tokenizer = make.Sequence([make.Split(tokenizers.Regex(pattern), "isolated"), parts])
        return None, pre_tokenizer, {**alphabet, "special_tokens": ["<|endoftext|>"]}
    assert name == "clip"
    pattern = tokenizers.Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC(), tokenizers.normalizers.Lowercase()])
    pre_tokenizer = make.Sequence([make.Split(pattern, "removed", invert=True), parts])
    return normalizer, pre_tokenizer, {**alphabet, "end_of_word_suffix": "</w>"}


def compare_with_tokenizers(name, texts, size):
    normalizer, pre_tokenizer, options = setup(name)
    expected = by_tokenizers(texts, size, normalizer, pre_tokenizer, **options)
    vocab = expected["model"]["vocab"]
    tokens, merges = sorted(vocab, key=vocab.get), [tuple(pair) for pair in expected["model"]["merges"]]
    if name == "clip":
        # The ids of letters with a suffix are random there. Given one run's order, all else follows.
        options["special_tokens"] = tokens[: len(tokens) - len({a + b for a, b in merges})]
    steps = {"normalizer": expected["normalizer"], "pre_tokenizer": expected["pre_tokenizer"]}
    trained = jittok.train_bpe(texts, vocab_size=size, unreachable="stop", **steps, **options)
    assert result(trained) == (tokens, merges)
    return trained


SETUPS = ["gpt2", "cl100k", "whitespace", "metaspace", "clip"]


@pytest.mark.parametrize("name", SETUPS)
def test_tokenizers(name, tmp_path):
    texts = TEXT.splitlines(keepends=True)
    trained = compare_with_tokenizers(name, texts, 1500)
    if name == "clip":  # there special tokens were abused
        trained = jittok.train_bpe(texts, vocab_size=1500, **{k: v for k, v in setup(name)[2].items()}, pre_tokenizer="gpt2")
    path = tmp_path / "tokenizer.json"
    trained.save(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    assert jittok.load(path) == trained
    for text in (*texts[:50], "naïve 東京 \U0001f600 <|endoftext|>"):
        expected = theirs.encode(text)
        assert trained.encode(text).ids.tolist() == expected.ids
        assert trained.decode(expected.ids, skip_special_tokens=True) == theirs.decode(expected.ids)


@pytest.mark.skipif(DATA is None, reason="set JITTOK_TEST_DATA to a folder that holds corpora/ to test with real text")
@pytest.mark.parametrize("corpus", ["english", "multi", "code"])
@pytest.mark.parametrize("name", SETUPS)
def test_tokenizers_on_corpora(name, corpus):
    with open(Path(DATA) / "corpora" / f"{corpus}.txt", encoding="utf-8", errors="replace") as file:
        text = file.read(500_000)
    compare_with_tokenizers(name, text.splitlines(keepends=True), 8000)


# ------------------------------------------------------------------------------------------------ sizes and options


def test_several_sizes():
    counts = jittok.count_words([TEXT], pre_tokenizer="gpt2")
    sizes = [700, 300, 257, 500]
    with pytest.raises(ArgumentError, match="vocab_size=0 is less than"):
        jittok.train_bpe(counts=counts, vocab_sizes=[*sizes, 0], unreachable="stop")
    trained = jittok.train_bpe(counts=counts, vocab_sizes=iter(sizes))
    assert list(trained) == sorted(sizes)
    for size in sizes:
        assert result(trained[size]) == result(jittok.train_bpe(counts=counts, vocab_size=size))


def test_unreachable_sizes():
    words = {"abc": 2, "abd": 1}
    counts = jittok.WordCounts.from_mapping(words)
    with pytest.raises(ArgumentError, match=r"vocab_size=100 cannot be reached.* the largest that can be is 7\b"):
        jittok.train_bpe(counts=counts, vocab_size=100, unreachable="error")
    with pytest.warns(TrainingWarning, match=r"the largest that can be is 7\b"):
        assert jittok.train_bpe(counts=counts, vocab_size=100).vocab_size == 7
    assert jittok.train_bpe(counts=counts, vocab_size=100, unreachable="stop").vocab_size == 7
    assert jittok.train_bpe(counts=counts, vocab_size=7, unreachable="error").vocab_size == 7
    assert jittok.train_bpe(counts=counts).vocab_size == 7  # no size was asked for
    for unreachable in ("error", "stop"):
        with pytest.raises(ArgumentError, match="vocab_size=3 is less than the 4 special tokens and letters"):
            jittok.train_bpe(counts=counts, vocab_size=3, unreachable=unreachable)
    for texts in ([], [""]):
        for train in (jittok.train_bpe, jittok.train_wordpiece):
            with pytest.raises(ArgumentError, match="no words to learn from"):
                train(texts, unreachable="stop")
            with pytest.warns(TrainingWarning, match="no words to learn from"):
                assert train(texts).vocab_size == 0


def test_counts_are_64_bit():
    big = 1 << 61
    counts = jittok.WordCounts.from_mapping({"ab": big, "cd": big + 1, "ef": 3})
    assert result(jittok.train_bpe(counts=counts, vocab_size=9))[1] == [("c", "d"), ("a", "b"), ("e", "f")]


def test_numbers_beyond_64_bits():
    counts = jittok.WordCounts.from_mapping({"ab": 3})
    assert result(jittok.train_bpe(counts=counts, vocab_size=10**30, unreachable="stop"))[1] == [("a", "b")]
    assert result(jittok.train_bpe(counts=counts, vocab_size=10, min_frequency=10**30, unreachable="stop"))[1] == []


def test_special_tokens():
    token = jittok.AddedToken(7, "[MASK]", lstrip=True)
    tokenizer = jittok.train_bpe(["a b a b"], special_tokens=["[UNK]", token, "[UNK]"], unk_token="[UNK]")
    assert tokenizer.special_tokens == {"[UNK]": 0, "[MASK]": 1}
    assert tokenizer.spec.added_tokens[1].lstrip
    assert tokenizer.encode("a[MASK]x").tokens == ["a", "[MASK]", "[UNK]"]
    for wrong, message in ((["[UNK]", ""], "is empty"), ([token, "[MASK]"], "twice, with different flags")):
        with pytest.raises(ArgumentError, match=message):
            jittok.train_bpe(["a"], special_tokens=wrong)
    with pytest.raises(ArgumentError, match="is not in the vocabulary; add it to special_tokens"):
        jittok.train_bpe(["a"], unk_token="[UNK]")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ArgumentError, "neither"),
        ({"texts": ["a"], "counts": jittok.WordCounts.from_mapping({"a": 1})}, ArgumentError, "both"),
        ({"texts": ["a"], "rules": "minbpe"}, ArgumentError, "rules='minbpe'"),
        ({"texts": ["a"], "vocab_size": -1}, ArgumentError, "vocab_size"),
        ({"texts": ["a"], "vocab_size": 3, "vocab_sizes": [3]}, ArgumentError, "both given"),
        ({"texts": ["a"], "vocab_sizes": []}, ArgumentError, "empty"),
        ({"texts": ["a"], "vocab_sizes": 3}, ArgumentTypeError, "a list of whole numbers"),
        ({"texts": ["a"], "continuing_subword_prefix": "\ud800"}, ArgumentError, "lone surrogate"),
        ({"resume": 5}, ArgumentTypeError, "resume: expected the path"),
        ({"texts": ["a"], "unreachable": "no"}, ArgumentError, "'error', 'warn' or 'stop'"),
        ({"texts": ["a"], "max_token_length": 0}, ArgumentError, "max_token_length"),
        ({"texts": ["a"], "special_tokens": ["\ud800"]}, ArgumentError, "special_tokens=.* has a lone surrogate"),
        ({"texts": ["a"], "initial_alphabet": "\ud800"}, ArgumentError, "lone surrogate"),
        ({"texts": ["a"], "fuse_unk": "yes"}, ArgumentTypeError, "fuse_unk: expected True or False"),
        ({"texts": ["a"], "byte_fallback": 1}, ArgumentTypeError, "byte_fallback"),
        ({"texts": ["a"], "unk_token": 5}, ArgumentTypeError, "unk_token"),
        ({"texts": ["a"], "memory_limit": True}, ArgumentError, "memory_limit"),
        ({"texts": "a\0b"}, MissingFileError, "does not exist"),
        ({"texts": "."}, MissingFileError, "is a folder"),
        ({"texts": ["a"], "rules": "sentencepiece", "model_type": "bpe"}, ArgumentError, "call train_bpe or train_unigram"),
        ({"texts": ["a"], "special_tokens": "[UNK]"}, ArgumentTypeError, "a list of str"),
        ({"texts": ["a"], "special_tokens": [3]}, ArgumentTypeError, "expected str or AddedToken"),
        ({"texts": ["a"], "initial_alphabet": [""]}, ArgumentTypeError, "initial_alphabet"),
        ({"texts": ["a"], "end_of_word_suffix": 3}, ArgumentTypeError, "end_of_word_suffix"),
        ({"texts": ["a"], "character_coverage": 0.9}, ArgumentTypeError, "unexpected argument character_coverage="),
        ({"counts": []}, ArgumentError, "expected at least one WordCounts"),
        ({"counts": [3]}, ArgumentTypeError, "counts"),
        ({"texts": ["a"], "base": 3}, ArgumentTypeError, "base"),
        ({"texts": ["a"], "decoder": 3}, ArgumentTypeError, "decoder"),
        ({"texts": ["a"], "post_processor": 3}, ArgumentTypeError, "post_processor"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        jittok.train_bpe(**arguments)


def test_settings_of_counts():
    counts = jittok.count_words([TEXT[:5000]], normalizer="NFC", pre_tokenizer="gpt2")
    trained = jittok.train_bpe(counts=counts, vocab_size=400, unreachable="stop")
    assert result(trained) == result(
        jittok.train_bpe([TEXT[:5000]], vocab_size=400, normalizer="NFC", pre_tokenizer="gpt2", unreachable="stop")
    )
    with pytest.raises(ArgumentError, match="pre_tokenizer: the words were counted with"):
        jittok.train_bpe(counts=counts, pre_tokenizer="Whitespace")


# -------------------------------------------------------------------------------------------------- going on with it


def test_continued_training():
    counts = jittok.count_words([TEXT], pre_tokenizer="gpt2")
    whole = jittok.train_bpe(counts=counts, vocab_size=900)
    part = jittok.train_bpe(counts=counts, vocab_size=500)
    continued = jittok.train_bpe(counts=counts, base=part, vocab_size=900)
    assert result(continued) == result(whole)
    assert continued == whole


def test_byte_ranks_are_continued(tmp_path):
    alphabet = byte_alphabet()
    options = {"pre_tokenizer": "gpt2", "initial_alphabet": tuple(alphabet)}
    counts = jittok.count_words([TEXT], pre_tokenizer="gpt2")
    whole = jittok.train_bpe(counts=counts, vocab_size=900, **options)
    ranks = {bytes(map(alphabet.__getitem__, token)): number for token, number in whole.spec.model.vocab.items()}
    path = tmp_path / "base.tiktoken"
    path.write_bytes(b"".join(b64encode(token) + b" %d\n" % rank for token, rank in ranks.items() if rank < 500))
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    base = jittok.load(path, format="tiktoken", pattern=pattern, special_tokens={"<end>": 500})
    continued = jittok.train_bpe([TEXT], base=base, vocab_size=901)
    # The special token has the id 500, so what is new comes one later than without it.
    wanted = {token: rank + (rank >= 500) for token, rank in ranks.items()}
    assert continued.spec.model.ranks == wanted
    assert continued.special_tokens == {"<end>": 500}
    continued.save(tmp_path / "new.tiktoken")
    again = jittok.load(tmp_path / "new.tiktoken", format="tiktoken", pattern=pattern, special_tokens={"<end>": 500})
    theirs = tiktoken.Encoding("new", pat_str=pattern, mergeable_ranks=wanted, special_tokens={"<end>": 500})
    for tokenizer in (continued, again):
        assert tokenizer.encode(TEXT[:5000]).ids.tolist() == theirs.encode(TEXT[:5000])
    more = jittok.train_bpe([TEXT], base=continued, vocab_size=950, special_tokens=["<pad>"])
    assert more.spec.model.ranks.items() > wanted.items()
    assert more.special_tokens == {"<end>": 500, "<pad>": 901}
    assert more.vocab_size == 950


@pytest.mark.parametrize(
    "own", [{"unk_token": "[UNK]"}, {"fuse_unk": True}, {"byte_fallback": True}, {"decoder": {"type": "Fuse"}}]
)
def test_what_a_base_has_already_is_refused(own):
    base = jittok.train_bpe(["a b ab"], vocab_size=4)
    with pytest.raises(ArgumentError, match="the base has its own; leave the argument out"):
        jittok.train_bpe(["ab"], base=base, vocab_size=9, **own)
    with pytest.raises(ArgumentError, match="less than the 4 tokens of the base"):
        jittok.train_bpe(["ab"], base=base, vocab_size=2, unreachable="error")


def test_base_keeps_ids(tmp_path):
    base = jittok.train_bpe(["low lower"] * 3, pre_tokenizer="Whitespace", special_tokens=["<s>"])
    base = base.with_added_tokens(["<new>"])  # behind the vocabulary
    path = tmp_path / "tokenizer.json"
    base.save(path)
    continued = jittok.train_bpe(["newer lowest ñ", "newest"], base=path, special_tokens=["<end>"])
    for token in range(base.vocab_size):
        assert continued.id_to_token(token) == base.id_to_token(token)
    merges = base.spec.model.merges
    assert continued.spec.model.merges[: len(merges)] == merges
    assert len(continued.spec.model.merges) > len(merges)
    assert continued.token_to_id("<end>") == base.vocab_size
    assert continued.token_to_id("ñ") is not None
    assert continued.encode("<s>low<new>").tokens == ["<s>", "low", "<new>"]
    continued.save(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    for text in ("newest lowest <new> ñ<end>", "slow"):
        assert continued.encode(text).ids.tolist() == theirs.encode(text).ids
    with pytest.raises(ArgumentError, match="the base has None"):
        jittok.train_bpe(["a"], base=base, end_of_word_suffix="</w>")


def interrupt_after(n, patch):
    """Let Ctrl-C come after `n` slices."""
    patch.setattr(merge_learning, "SLICE", 200)
    calls = []

    def write(self, *arguments, now=False, write=vocabulary_learning.Checkpoints.write):
        calls.append(now)
        if len(calls) == n:
            raise KeyboardInterrupt
        write(self, *arguments, now=now)

    patch.setattr(vocabulary_learning.Checkpoints, "write", write)


@pytest.mark.parametrize("slices", [1, 7, 40])
@pytest.mark.parametrize("arguments", [{}, {"continuing_subword_prefix": "##", "pre_tokenizer": "Whitespace"}])
def test_interrupted_and_resumed(tmp_path, monkeypatch, slices, arguments):
    arguments = {"pre_tokenizer": "gpt2", "vocab_sizes": [400, 600], **arguments}
    path = tmp_path / "checkpoint"
    expected = jittok.train_bpe([TEXT[:30_000]], **arguments)
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(slices, patch)
        with pytest.raises(KeyboardInterrupt):
            jittok.train_bpe([TEXT[:30_000]], checkpoint=path, **arguments)
    got = jittok.train_bpe(resume=path, **arguments)
    assert {size: result(tokenizer) for size, tokenizer in got.items()} == {
        size: result(tokenizer) for size, tokenizer in expected.items()
    }


def test_wrong_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(3, patch)
        with pytest.raises(KeyboardInterrupt):
            jittok.train_bpe([TEXT[:30_000]], pre_tokenizer="gpt2", checkpoint=path)
    with pytest.raises(ArgumentError, match="made with other options"):
        jittok.train_bpe(resume=path, pre_tokenizer="gpt2", min_frequency=2)
    with pytest.raises(ArgumentError, match="leave texts and counts out"):
        jittok.train_bpe(["a"], resume=path, pre_tokenizer="gpt2")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="checksum"):
        jittok.train_bpe(resume=path, pre_tokenizer="gpt2")


def test_checkpoint_of_another_base(tmp_path):
    path = tmp_path / "checkpoint"
    text = [TEXT[:30_000]]
    base, other = (jittok.train_bpe(text, pre_tokenizer="gpt2", vocab_size=size) for size in (200, 150))
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(1, patch)
        with pytest.raises(KeyboardInterrupt):
            jittok.train_bpe(text, vocab_size=700, base=base, checkpoint=path)
    expected = jittok.train_bpe(text, pre_tokenizer="gpt2", vocab_size=700)
    assert result(jittok.train_bpe(resume=path, vocab_size=700, base=base)) == result(expected)
    for arguments in ({"base": other}, {"pre_tokenizer": "gpt2"}):  # the base's merges are not in the checkpoint
        with pytest.raises(ArgumentError, match="made with other base"):
            jittok.train_bpe(resume=path, vocab_size=700, **arguments)


@pytest.mark.parametrize("train", [jittok.train_bpe, jittok.train_wordpiece])
def test_counts_that_trainers_cannot_take(train):
    for bad in ({b"a\xff\xfe": 3, b"b": 1}, {"a\ud800": 2}, {b"a": 1, b"\xe3\x81": 4}):
        with pytest.raises(ArgumentError, match="is not UTF-8"):
            train(counts=jittok.WordCounts.from_mapping(bad), vocab_size=10)
    for bad in ({"ab": (1 << 63) - 1, "ac": 1}, {"aaaa": 1 << 61}):
        with pytest.raises(ArgumentError, match="a letter occurs 2\\*\\*63 times or more"):
            train(counts=jittok.WordCounts.from_mapping(bad), vocab_size=10)


def test_byte_level_words_may_be_any_bytes():
    steps = jittok.count_words([], pre_tokenizer="gpt2").settings
    counts = jittok.WordCounts.from_mapping({b"\xff\xfe": 3, b"\xff": 1}, steps)
    assert result(jittok.train_bpe(counts=counts, vocab_size=3))[1] == [("ÿ", "þ")]


def test_a_checkpoint_that_cannot_be_written_is_told_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    by_sentencepiece = partial(jittok.train_bpe, rules="sentencepiece")
    for train in (jittok.train_bpe, jittok.train_wordpiece, jittok.train_unigram, by_sentencepiece):
        for path in (tmp_path, tmp_path / "file" / "checkpoint"):
            with pytest.raises(OutputError, match="checkpoint: "):
                train(iter(()), vocab_size=10, checkpoint=path)
        with pytest.raises(ArgumentTypeError, match="checkpoint: expected the path"):
            train(iter(()), vocab_size=10, checkpoint=5)


def test_learner_goes_on_after_an_exception(monkeypatch):
    monkeypatch.setattr(merge_learning, "SLICE", 1)
    words = Words(np.array([0, 1, 0, 1, 2], np.int32), np.array([0, 5], np.int64), np.array([3], np.int64))
    learner = MergeLearner(words, ["a", "b", "c"], [1, 1, 1], Rules(), 6)

    def stop(size):
        raise KeyboardInterrupt

    for _ in range(20):
        try:
            assert learner.run(stop)
            break
        except KeyboardInterrupt:
            pass
    assert learner.tokens == ["a", "b", "c", "ab", "abc", "ababc"]


# ------------------------------------------------------------------------------------------------------ determinism


def test_order_of_texts_and_threads():
    texts = TEXT.splitlines(keepends=True)
    expected = jittok.train_bpe(texts, pre_tokenizer="gpt2", vocab_size=500)
    shards = [jittok.count_words(texts[i::3], pre_tokenizer="gpt2") for i in (2, 0, 1)]
    assert jittok.train_bpe(counts=shards, vocab_size=500) == expected
    assert jittok.train_bpe(texts[::-1], pre_tokenizer="gpt2", vocab_size=500, threads=1) == expected
    assert jittok.train_bpe(texts, pre_tokenizer="gpt2", vocab_size=500, threads=3) == expected


def test_hash_seed(tmp_path):
    code = (
        "import jittok, sys; from pathlib import Path\n"
        "text = (Path(jittok.__file__).parent / 'data' / 'hamlet.txt').read_text(encoding='utf-8')\n"
        "options = dict(pre_tokenizer='Whitespace', vocab_size=400, limit_alphabet=40)\n"
        "jittok.train_bpe([text], end_of_word_suffix='</w>', **options).save(sys.argv[1], format='tokenizer.json')\n"
        "jittok.train_wordpiece([text], **options).save(sys.argv[2], format='tokenizer.json')\n"
    )
    files = []
    for seed in ("1", "2"):
        paths = [tmp_path / f"{kind}{seed}" for kind in ("bpe", "wordpiece")]
        subprocess.run(
            [sys.executable, "-c", code, *map(str, paths)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(jittok.__file__).parent.parent,
        )
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]


def test_all_bytes():
    options = {"vocab_size": 300, "unreachable": "stop"}
    trained = jittok.train_bpe(["to be"], pre_tokenizer="gpt2", initial_alphabet="byte-level", **options)
    assert trained.decode(trained.encode("z\u00e9\u6771").ids) == "z\u00e9\u6771"
    assert trained.vocab_size >= 256
