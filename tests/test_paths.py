"""Small tokenizers that between them take every path through the kernels, against the reference library.

Also run with the JIT off, where the kernels are plain Python: see CONTRIBUTING.md.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import tokenizers

from jittok import spec
from jittok.tokenizer import Tokenizer

LETTERS = "abcdeABé中 _\n"


def merges_of(rng, alphabet, count):
    """A vocabulary and merges that build on each other."""
    pieces = list(alphabet)
    vocab = {piece: number for number, piece in enumerate(pieces)}
    merges = []
    while len(merges) < count:
        pair = (rng.choice(pieces), rng.choice(pieces))
        joined = "".join(pair)
        if joined not in vocab and len(joined) <= 12:
            vocab[joined] = len(vocab)
            pieces.append(joined)
            merges.append(pair)
    return vocab, tuple(merges)


def general(rng, **options):
    vocab, merges = merges_of(rng, "abcdeé_", 60)
    vocab["<unk>"] = len(vocab)
    return spec.BPEModel(vocab, merges, unk_token="<unk>", **options)


def byte_level(rng, **options):
    from tokenizers import pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab, merges = merges_of(rng, "abcdeĠ", 80)
    for letter in alphabet:
        vocab.setdefault(letter, len(vocab))
    return spec.BPEModel(vocab, merges, **options)


def texts_of(rng):
    texts = ["", "a", " ", "abc", "éa\n\n中b", "a" * 300, "ab" * 2000, "abcde" * 5 + " " * 70 + "中é" * 30]
    texts += ["".join(rng.choices(LETTERS, k=rng.randrange(400))) for _ in range(30)]
    return texts


SPLITS = [spec.Split("[a-c]+", behavior, invert) for behavior in spec.SplitBehavior.__args__ for invert in (False, True)]
BYTES = spec.ByteLevel(add_prefix_space=False, use_regex=False, trim_offsets=False)


def agree(subject, reference, texts):
    batch = subject.encode_batch(texts, spans=True)
    for text, ids, number in zip(texts, batch.to_lists(), range(len(texts)), strict=True):
        right = reference.encode(text)
        assert ids == right.ids, text[:80]
        assert subject.encode(text).ids.tolist() == right.ids
        if text.isascii():
            assert batch[number].ids.tolist() == right.ids
            assert batch.spans[batch.indptr[number] : batch.indptr[number + 1]].tolist() == [list(p) for p in right.offsets]


def compare(tmp_path, specification, texts):
    subject = Tokenizer(specification)
    path = tmp_path / "tokenizer.json"
    subject.save(path)
    agree(subject, tokenizers.Tokenizer.from_file(str(path)), texts)
    return subject


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: f"{split.behavior}-{split.invert}")
@pytest.mark.parametrize("model", [general, byte_level])
def test_splits(tmp_path, split, model):
    rng = random.Random(7)
    steps = (split,) if model is general else (split, BYTES)
    compare(tmp_path, spec.TokenizerSpec(model(rng), pre_tokenizers=steps), texts_of(rng))


@pytest.mark.parametrize(
    "options",
    [
        {"fuse_unk": True},
        {"ignore_merges": True},
        {"end_of_word_suffix": "e"},
        {"continuing_subword_prefix": "_"},
        {"byte_fallback": True},
    ],
    ids=str,
)
def test_models(tmp_path, options):
    rng = random.Random(8)
    if options.get("continuing_subword_prefix"):
        model = spec.BPEModel({"a": 0, "_a": 1, "b": 2, "_b": 3, "ab": 4, "<unk>": 5}, (("a", "_b"),), "<unk>", **options)
    else:
        model = general(rng, **options)
    compare(tmp_path, spec.TokenizerSpec(model, pre_tokenizers=(spec.Split(" "),)), texts_of(rng))


def long_words(rng, alphabet):
    """Words that fill several windows: random ones, runs, and runs with a few other letters."""
    words = []
    for _ in range(12):
        words.append("".join(rng.choices(alphabet, k=rng.randrange(45, 700))))
        period = "".join(rng.choices(alphabet, k=rng.randrange(1, 9)))
        run = period * rng.randrange(10, 120)
        words.append(run)
        at = rng.randrange(len(run))
        words.append(run[:at] + rng.choice(alphabet) + run[at:])
    return words


@pytest.mark.parametrize("seed", range(4))
def test_long_words(tmp_path, seed):
    """Those of ranked tables are merged in windows. Merges in any order, and tokens longer than a window."""
    rng = random.Random(seed)
    model = byte_level(rng)
    vocab, merges = dict(model.vocab), list(model.merges)
    for letter in "ab":
        run = letter
        while len(run) < (8, 64, 128, 256)[seed]:
            if run + run not in vocab:
                vocab[run + run] = len(vocab)
                merges.append((run, run))
            run += run
    if seed % 2:
        rng.shuffle(merges)
    model = spec.BPEModel(vocab, tuple(merges))
    words = long_words(rng, "ab") + long_words(rng, "abcde") + ["a" * 3000, "b" * 2999 + "a" * 2001]
    compare(tmp_path, spec.TokenizerSpec(model, pre_tokenizers=(spec.Split(" "), BYTES)), words)


def test_long_words_whose_end_matters_far_before_it(tmp_path):
    """In a chain of letters each pair may merge, the last one first: whether a letter is left alone shows at the end."""
    rng = random.Random(5)
    letters = [chr(c) for c in range(0x21, 0x7F)]
    vocab = dict(byte_level(rng).vocab)
    vocab = {piece: number for number, piece in enumerate(piece for piece in vocab if len(piece) == 1)}
    pairs = list(zip(letters, letters[1:], strict=False))[::-1]
    for pair in pairs:
        vocab["".join(pair)] = len(vocab)
    chain = "".join(letters)
    words = [chain[rng.randrange(40) : rng.randrange(60, 94)] * rng.choice((1, 1, 2, 60)) for _ in range(20)]
    words += ["".join(chain[rng.randrange(94) :] for _ in range(n)) for n in (2, 5, 100)]
    compare(tmp_path, spec.TokenizerSpec(spec.BPEModel(vocab, tuple(pairs)), pre_tokenizers=(BYTES,)), words)


def test_words_looked_up_whole(tmp_path):
    rng = random.Random(9)
    model = byte_level(rng, ignore_merges=True)
    extra = {"dcba" * 5: len(model.vocab), "edcbaabcde": len(model.vocab) + 1}  # no merges lead to these
    model = spec.BPEModel({**model.vocab, **extra}, model.merges, ignore_merges=True)
    texts = [*texts_of(rng), "dcba" * 5, "edcbaabcde", "dcba" * 5 + " edcbaabcde"]
    compare(tmp_path, spec.TokenizerSpec(model, pre_tokenizers=(spec.Split(" "), BYTES)), texts)


@pytest.mark.parametrize("n_texts", [1, 4000])  # one text, and enough for the kernels of large batches
def test_template_and_trimmed_spans(tmp_path, n_texts):
    rng = random.Random(10)
    model = byte_level(rng)
    end = spec.TemplatePiece(1, None, (len(model.vocab),), ("<end>",))
    first, second = spec.TemplatePiece(0, "A"), spec.TemplatePiece(1, "B")
    specification = spec.TokenizerSpec(
        model,
        added_tokens=(spec.AddedToken(len(model.vocab), "<end>", special=True, normalized=False),),
        pre_tokenizers=(spec.ByteLevel(add_prefix_space=False),),
        post_processors=(spec.TrimOffsets(add_prefix_space=False), spec.Template((first, end), (first, second, end))),
    )
    texts = [text for text in texts_of(rng) if text.isascii()][-8:] + ["a <end> b", "  a b  "]
    subject = compare(tmp_path, specification, texts)
    reference = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    many = [texts[i % len(texts)] for i in range(n_texts)]
    batch = subject.encode_batch(many, many, spans=True)
    for number in range(min(n_texts, len(texts))):
        right = reference.encode(many[number], many[number])
        part = slice(int(batch.indptr[number]), int(batch.indptr[number + 1]))
        assert batch.ids[part].tolist() == right.ids
        assert batch.spans[part].tolist() == [list(pair) for pair in right.offsets]
    assert len(batch) == n_texts


def test_cache_resets_change_nothing():
    """More different words than a small cache holds."""
    rng = random.Random(11)
    subject = Tokenizer(spec.TokenizerSpec(byte_level(rng), pre_tokenizers=(spec.Split(" "), BYTES)))
    words = ["".join(rng.choices("abcde", k=rng.randrange(1, 40))) for _ in range(3000)]
    together = subject.encode_batch([" ".join(words)]).ids
    parts = []
    for number, word in enumerate(words):
        if number % 100 == 0:
            subject.clear_cache()
        parts.append(subject.encode_batch([word if number == 0 else " ", word] if number else [word]).ids)
    assert np.array_equal(together, np.concatenate(parts))
