import random
import time

import numpy as np
import pytest
from specs import rank_spec, real

from jittok import errors, spec
from jittok.vocabulary import Vocabulary, alphabet_bytes, build_vocabulary, byte_alphabet

NAMES = [
    "gpt2",
    "roberta-base",
    "llama3",
    "qwen3",
    "deepseek-v4",
    "gpt-neox",
    "whisper-large-v3",
    "clip",
    "sqlpilot",
]


def small(vocab, added=(), **kwargs):
    return spec.TokenizerSpec(model=spec.BPEModel(vocab, ()), added_tokens=tuple(added), **kwargs)


def test_byte_alphabet_is_that_of_the_reference():
    from tokenizers import pre_tokenizers

    letters = {chr(c) for c in byte_alphabet().tolist()}
    assert letters == set(pre_tokenizers.ByteLevel.alphabet())
    assert len(letters) == 256
    assert byte_alphabet()[ord("a")] == ord("a")
    assert byte_alphabet()[0x20] == 0x120
    assert (alphabet_bytes()[byte_alphabet()] == np.arange(256)).all()


@pytest.mark.parametrize("name", NAMES)
def test_look_ups_are_those_of_tokenizers(name):
    made, reference = real(f"bbpe/{name}/tokenizer.json")
    vocabulary = Vocabulary(build_vocabulary(made), made.added_tokens)
    all_tokens = reference.get_vocab(with_added_tokens=True)
    assert len(vocabulary) == len(all_tokens) == reference.get_vocab_size()
    size = max(all_tokens.values()) + 1
    assert vocabulary.size == size
    assert vocabulary.tokens(np.arange(size)) == [reference.id_to_token(i) or "" for i in range(size)]
    chosen = random.Random(1).sample(sorted(all_tokens), min(300, len(all_tokens)))
    for token in [*chosen, *(t.content for t in made.added_tokens[:50])]:
        assert vocabulary.token_to_id(token) == all_tokens[token]
        assert vocabulary.id_to_token(all_tokens[token]) == token
    assert vocabulary.token_to_id("no such token, surely") is None
    assert vocabulary.id_to_token(size) is None
    assert vocabulary.id_to_token(-1) is None


def test_rank_file():
    made = rank_spec("tiktoken/cl100k_base/cl100k_base.tiktoken", [("<|endoftext|>", 100257)])
    tables = build_vocabulary(made)
    vocabulary = Vocabulary(tables, made.added_tokens)
    assert tables.token_bytes is tables.strings
    for token, rank in random.Random(2).sample(sorted(made.model.ranks.items()), 500):
        assert vocabulary.bytes_of(rank) == token
        assert vocabulary.token_to_id(token) == rank
        assert vocabulary.id_to_token(rank) == token.decode("utf-8", "replace")
    assert vocabulary.id_to_token(100256) is None  # a hole
    assert not vocabulary.contains_id(100256)
    assert vocabulary.token_to_id("<|endoftext|>") == 100257
    assert vocabulary.special_tokens == {"<|endoftext|>": 100257}


def test_bytes_of_byte_level_tokens():
    added = [spec.AddedToken(3, "Začuđen"), spec.AddedToken(4, "<s>", special=True)]
    made = small({"Ġa": 0, "é": 1, "中x": 2, "<s>": 4}, added, decoders=(spec.DecodeByteLevel(),))
    vocabulary = Vocabulary(build_vocabulary(made), made.added_tokens)
    assert vocabulary.bytes_of(0) == b" a"
    assert vocabulary.bytes_of(1) == b"\xe9"
    assert vocabulary.bytes_of(2) == "中x".encode()  # outside the alphabet: its own UTF-8
    assert vocabulary.bytes_of(3) == "Začuđen".encode()
    assert vocabulary.bytes_of(4) == b"<s>"
    plain = small({"Ġa": 0})
    assert Vocabulary(build_vocabulary(plain)).bytes_of(0) == "Ġa".encode()


def test_an_added_token_takes_over_the_id_of_a_model_token():
    made = small({"a": 0, "b": 1}, [spec.AddedToken(1, "B")])
    vocabulary = Vocabulary(build_vocabulary(made), made.added_tokens)
    assert vocabulary.id_to_token(1) == "B"
    assert vocabulary.token_to_id("B") == 1
    assert vocabulary.token_to_id("b") is None
    assert len(vocabulary) == 2


def test_empty_vocabulary():
    vocabulary = Vocabulary(build_vocabulary(small({})))
    assert len(vocabulary) == vocabulary.size == 0
    assert vocabulary.token_to_id("a") is None
    assert vocabulary.id_to_token(0) is None
    assert [len(a) for a in vocabulary.trim_counts(np.zeros(0, np.int32))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("vocab", "added", "word"),
    [
        ({"a": -1}, [], "-1"),
        ({"a": 2**40}, [], "greatest"),
        ({"a": 0}, [spec.AddedToken(2**31, "x")], "greatest"),
        ({"a": 0}, [spec.AddedToken(-5, "x")], "-5"),
        ({"\ud800": 0}, [], "surrogate"),
    ],
)
def test_bad_vocabularies(vocab, added, word):
    with pytest.raises(errors.FormatError, match=word):
        build_vocabulary(small(vocab, added))


def test_two_tokens_with_one_id():
    # As in the reference, both are found; the later one is what the id stands for.
    vocabulary = Vocabulary(build_vocabulary(small({"a": 0, "b": 0})))
    assert vocabulary.id_to_token(0) == "b"
    # Not where something is merged.
    merged = spec.TokenizerSpec(spec.BPEModel({"a": 0, "b": 0, "aa": 1}, (("a", "a"),)))
    with pytest.raises(errors.FormatError, match=r"'a'.*'b'"):
        build_vocabulary(merged)


def test_wrong_types():
    vocabulary = Vocabulary(build_vocabulary(small({"a": 0})))
    for bad in ("0", 0.0, None, True):
        with pytest.raises(errors.ArgumentTypeError):
            vocabulary.id_to_token(bad)
    with pytest.raises(errors.ArgumentTypeError):
        vocabulary.token_to_id(3)
    assert vocabulary.token_to_id("\ud800") is None
    assert vocabulary.id_to_token(np.int64(0)) == "a"


def test_tables_are_read_only_and_contiguous():
    for array in build_vocabulary(small({"a": 0, "b": 5})):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_equal_hashes_are_told_apart():
    # Two strings of the same CRC-32.
    made = small({"plumless": 0, "buckeroo": 1})
    tables = build_vocabulary(made)
    assert tables.hashes[0] == tables.hashes[1]
    vocabulary = Vocabulary(tables)
    assert vocabulary.token_to_id("plumless") == 0
    assert vocabulary.token_to_id("buckeroo") == 1


def test_trim_counts():
    made = small({"ĠĠaĠ": 0, "ĠĊ": 1, " \u3000": 2, "": 3, "x": 4, "\u2003y": 5})
    vocabulary = Vocabulary(build_vocabulary(made))
    leading, trailing, places = vocabulary.trim_counts(np.arange(vocabulary.size))
    assert places.tolist() == list(range(vocabulary.size))
    assert leading.tolist() == [2, 1, 2, 0, 0, 1]
    assert trailing.tolist() == [1, 0, 2, 0, 0, 0]


def test_shown_tokens():
    added = [spec.AddedToken(1, "[M]", lstrip=True, rstrip=True), spec.AddedToken(2, "Yes", normalized=True)]
    tables = build_vocabulary(small({"a": 0}, added))
    vocabulary = Vocabulary(tables, added, shown={1: "[M]", 2: "yes"}.__getitem__)
    spans = np.array([[0, 1], [1, 8], [8, 11]])

    def slice_of(row):
        raise AssertionError(row)

    shown = {1: " \n[M]\t ", 2: "yes"}
    assert vocabulary.tokens_in_text(np.array([0, 1, 2]), spans, slice_of, shown) == ["a", " \n[M]\t ", "yes"]
    assert vocabulary.tokens_in_text(np.array([0, 1, 2]), spans, slice_of) == ["a", "[M]", "Yes"]  # the model's
    assert vocabulary.tokens_in_text(np.array([0, 1, 2]), None, slice_of) == ["a", "[M]", "yes"]


if __name__ == "__main__":
    big = rank_spec("tiktoken/o200k_base/o200k_base.tiktoken")
    start = time.perf_counter()
    build_vocabulary(big)
    print(time.perf_counter() - start)
