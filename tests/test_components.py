"""Components of tokenizer.json that few files have, each as the reference does it."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import random_configs
from tokenizers import Tokenizer, pre_tokenizers

import jittok
from jittok.errors import FormatError, UnsupportedError

BLOCK = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": None, "post_processor": None, "decoder": None,
}  # fmt: skip


def both(tmp_path, **parts):
    """The same file, loaded by both libraries."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**BLOCK, **parts}), encoding="utf-8")
    return jittok.load(path), Tokenizer.from_file(str(path))


def word_level(words, unknown="<unk>"):
    return {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": unknown}


def test_word_level_models_know_whole_words_only(tmp_path):
    tok, reference = both(tmp_path, model=word_level(["<unk>", "to", "be", "o", "r"]), pre_tokenizer={"type": "Whitespace"})
    text = "to be or tobe  o-r"
    assert tok.encode(text).ids.tolist() == reference.encode(text).ids == [1, 2, 0, 0, 3, 0, 4]
    assert tok.encode(text).tokens == reference.encode(text).tokens
    assert "WordLevel" in repr(tok)


def test_a_word_level_model_without_its_unknown_token_raises_where_it_is_needed(tmp_path):
    tok, reference = both(tmp_path, model=word_level(["a", "b"]), pre_tokenizer={"type": "WhitespaceSplit"})
    assert tok.encode("a b").ids.tolist() == [0, 1]
    with pytest.raises(FormatError, match="unk_token"):
        tok.encode("a c")
    with pytest.raises(Exception, match="UNK"):
        reference.encode("a c")


def test_a_word_level_model_may_use_any_character(tmp_path):
    words = ["<unk>", *(chr(0xE000 + i) for i in range(40)), "\ue000\ue000", "##a", "a##a"]
    tok, reference = both(tmp_path, model=word_level(words), pre_tokenizer={"type": "WhitespaceSplit"})
    for text in ("\ue000 \ue000\ue000 \ue001\ue000", "##a a##a a", "\uf8ff"):
        assert tok.encode(text).ids.tolist() == reference.encode(text).ids


def test_a_million_character_word_of_a_word_level_model(tmp_path):
    word = "a" * 1_000_000
    tok, _ = both(tmp_path, model=word_level(["<unk>", word, "a"]))
    assert tok.encode(word).ids.tolist() == [1]
    assert tok.encode(word + "a").ids.tolist() == [0]


def test_unicode_scripts_are_the_reference_s_for_every_codepoint(tmp_path):
    tok, _ = both(tmp_path, model=word_level(["x"], "x"), pre_tokenizer={"type": "UnicodeScripts"})
    reference = pre_tokenizers.UnicodeScripts()
    codepoints = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    # Each between two letters of Latin, and all in a row.
    for first in range(0, len(codepoints), 20_000):
        part = codepoints[first : first + 20_000]
        for text in ("a" + "a".join(map(chr, part)), "".join(map(chr, part))):
            spans = [span for _, span in reference.pre_tokenize_str(text)]
            assert list(map(tuple, tok.encode(text).spans.tolist())) == spans


@pytest.mark.parametrize("length", [1, 2, 5, 300])
def test_fixed_length_counts_codepoints(tmp_path, length):
    tok, _ = both(tmp_path, model=word_level(["x"], "x"), pre_tokenizer={"type": "FixedLength", "length": length})
    reference = pre_tokenizers.FixedLength(length)
    for text in ("", "a", "ab c\n\u00e9\U0001f600" * 100):
        spans = [span for _, span in reference.pre_tokenize_str(text)]
        assert list(map(tuple, tok.encode(text).spans.tolist())) == spans


def test_fixed_length_of_nothing_is_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    step = {"type": "FixedLength", "length": 0}
    path.write_text(json.dumps({**BLOCK, "model": word_level(["x"]), "pre_tokenizer": step}))
    with pytest.raises(FormatError, match="at least 1"):
        jittok.load(path)  # where it is used, the reference crashes


def test_a_very_great_fixed_length_is_refused_by_name(tmp_path):
    path = tmp_path / "tokenizer.json"
    step = {"type": "FixedLength", "length": 1_000_000}
    path.write_text(json.dumps({**BLOCK, "model": word_level(["x"]), "pre_tokenizer": step}))
    with pytest.raises(UnsupportedError, match="FixedLength"):
        jittok.load(path)


def test_byte_level_pre_tokenizers_work_for_every_model(tmp_path):
    step = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    models = [
        word_level(["<unk>", "\u0120ab", "\u00c3\u00a9"]),
        {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
         "vocab": {"<unk>": 0, "\u0120": 1, "##a": 2, "##\u00c3": 3, "##\u00a9": 4, "##b": 5}},
        {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u0120a", -1], ["\u00c3", -3], ["\u00a9", -1]]},
    ]  # fmt: skip
    for model in models:
        tok, reference = both(tmp_path, model=model, pre_tokenizer=step)
        for text in ("ab", "\u00e9", " ab\u00e9b\u00e9", ""):
            ours, theirs = tok.encode(text), reference.encode(text)
            assert ours.ids.tolist() == theirs.ids
            assert ours.spans.tolist() == list(map(list, theirs.offsets))


def test_equal_tokens_in_a_row_are_one_to_ctc(tmp_path):
    decoder = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}
    words = ["<pad>", "|", "h", "e", "l", "o", " n't", "a<pad>b"]
    tok, reference = both(tmp_path, model=word_level(words, "<pad>"), decoder=decoder)
    rng = random.Random(1)
    for _ in range(200):
        ids = [rng.randrange(len(words)) for _ in range(rng.randint(0, 12))]
        assert tok.decode(ids) == reference.decode(ids)
        stream = tok.decode_stream()
        assert "".join(map(stream.push, ids)) + stream.finish() == reference.decode(ids)
    assert tok.decode([2, 2, 0, 2, 3, 4, 0, 4, 5, 1, 1, 5]) == "hhello o"


@pytest.mark.parametrize("pattern", ["a+|b", "a*", "$", r"\s", r"(?i:x)", ""])
def test_decoders_that_replace_by_regex(tmp_path, pattern):
    decoder = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "_"}
    words = ["a", "aab", " ", "X", "\u00e9 a", "", "b"]
    tok, reference = both(tmp_path, model=word_level(words, "a"), decoder=decoder)
    rng = random.Random(2)
    for _ in range(100):
        ids = [rng.randrange(len(words)) for _ in range(rng.randint(0, 12))]
        assert tok.decode(ids) == reference.decode(ids)
    many = [rng.randrange(len(words)) for _ in range(2000)]
    assert tok.decode(many) == reference.decode(many)


@pytest.mark.parametrize(
    "make",
    [
        random_configs.configuration,
        random_configs.wordpiece_configuration,
        random_configs.wordlevel_configuration,
        random_configs.unigram_configuration,
    ],
)
def test_what_is_saved_is_what_was_loaded(tmp_path, make):
    compared = 0
    for seed in range(25):
        rng = random.Random(seed)
        path, saved, stored = (tmp_path / name for name in ("given.json", "saved.json", "saved.jittok"))
        path.write_text(json.dumps(make(rng)), encoding="utf-8")
        try:
            tok = jittok.load(path)
        except UnsupportedError as error:
            assert "byte_fallback" in str(error)  # nothing else here is unsupported
            continue
        tok.save(stored)
        try:
            tok.save(saved, format="tokenizer.json")
        except UnsupportedError as error:
            assert "keep the ids of these added tokens" in str(error)
            continue
        assert jittok.load(saved) == tok == jittok.load(stored)
        Tokenizer.from_file(str(saved))
        texts = [random_configs.text(rng) for _ in range(5)]
        for again in (jittok.load(saved), jittok.load(stored)):
            for text in texts:
                try:
                    expected = tok.encode(text)
                except FormatError as error:
                    assert "unk_token" in str(error)
                    continue
                assert again.encode(text) == expected
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize("n", [0, 10, 40_000])
@pytest.mark.parametrize("below", [100, 0x600, 1 << 22])
def test_distinct_pairs(n, below):
    from jittok.build.junctions import distinct_pairs

    left, right = np.random.default_rng(n).integers(0, below, (2, n))
    found = list(zip(*(side.tolist() for side in distinct_pairs(left, right)), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == set(zip(left.tolist(), right.tolist(), strict=True))
