"""The wrapper with the methods of tiktoken.Encoding, compared with tiktoken."""

from __future__ import annotations

import pickle
import random
from functools import cache

import numpy as np
import pytest
import tiktoken
from specs import model_path

import jittok
from jittok import errors
from jittok.interop.tiktoken import TiktokenEncoding
from jittok.spec import TokenizerSpec, WordLevelModel

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TOKENS = [b"he", b"ll", b"hell", b"hello", b" w", b"or", b" wor", b"ld", b"  ", b"\n\n", b"\xc3\xa9", b"12", b"\xe8\x97"]
SPECIAL = {"<|endoftext|>": 300, "<|fim|>": 301}
TEXTS = ["hello world", "", " café 12\n\n", "<|endoftext|>", "x<|fim|><|endoftext|> ", "藤 🙂", "  \n "]
TEXTS += ["\ud83d\ude42 \ud800"]


@cache
def pair_of(name):
    if name == "made":
        ranks = {bytes([byte]): byte for byte in range(256)} | {token: 256 + n for n, token in enumerate(TOKENS)}
        arguments = {"pat_str": PATTERN, "mergeable_ranks": ranks, "special_tokens": SPECIAL}
        return tiktoken.Encoding("made", **arguments), TiktokenEncoding.from_ranks("made", **arguments)
    ours = jittok.load(model_path(f"tiktoken/{name}/{name}.tiktoken")).as_tiktoken()
    return tiktoken.Encoding(
        ours.name, pat_str=ours._pat_str, mergeable_ranks=dict(ours._mergeable_ranks), special_tokens=ours._special_tokens
    ), ours


NAMES = ["made", "r50k_base", "cl100k_base"]
#: What an exception of the library may be here.
KINDS = {AssertionError: TypeError, OverflowError: KeyError}


def same(call, name, label):
    library, ours = pair_of(name)
    try:
        expected = call(library)
    except Exception as error:
        kind = KINDS.get(type(error), type(error))
        with pytest.raises(kind) as caught:
            call(ours)
        assert isinstance(caught.value, errors.JittokError | UnicodeDecodeError), (name, label)
        return
    found = call(ours)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        expected, found = expected.tolist(), found.tolist()
    assert found == expected, (name, label)


def texts_of(count, seed):
    rng = random.Random(seed)
    pieces = ["hello", " wor", "ld", "\n", " ", "\t", "é", "藤", "<|endoftext|>", "12", "'s", "!", "\r\n", "🙂", "<|fim"]
    return ["".join(rng.choice(pieces) for _ in range(rng.randrange(5))) for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_encode(name):
    policies = [
        {},
        {"allowed_special": "all"},
        {"disallowed_special": ()},
        {"allowed_special": {"<|endoftext|>"}, "disallowed_special": ()},
        {"allowed_special": {"<|endoftext|>"}},
        {"allowed_special": {"none"}, "disallowed_special": {"hello"}},
    ]
    for text in [*TEXTS, *texts_of(20, 1)]:
        same(lambda e: e.encode_ordinary(text), name, text)  # noqa: B023
        for policy in policies:
            same(lambda e: e.encode(text, **policy), name, (text, policy))  # noqa: B023
            if "\ud800" not in text and "\ud83d" not in text:
                same(lambda e: e.encode_to_numpy(text, **policy), name, (text, policy))  # noqa: B023
    for texts in (TEXTS, [], texts_of(5, 2)):
        same(lambda e: e.encode_batch(texts, allowed_special="all"), name, texts)  # noqa: B023
        same(lambda e: e.encode_batch(texts), name, texts)  # noqa: B023
        same(lambda e: e.encode_ordinary_batch(texts, num_threads=2), name, texts)  # noqa: B023
    for wrong in (3, b"x", None):
        same(lambda e: e.encode(wrong), name, wrong)  # noqa: B023
    same(lambda e: e.encode_batch(["a", 3]), name, "a number")


@pytest.mark.parametrize("name", NAMES)
def test_unstable(name):
    def parts(encoding, text):
        stable, completions = encoding.encode_with_unstable(text, allowed_special="all")
        return stable, sorted(map(tuple, completions))

    for text in ["", "hello", "hell", " ", "\n ", "a \n", "é", "hello<|endoftext|>", "<|endoftext|>h", *texts_of(15, 3)]:
        same(lambda e: parts(e, text), name, text)  # noqa: B023
    same(lambda e: e.encode_with_unstable("<|endoftext|>"), name, "refused")


@pytest.mark.parametrize("name", NAMES)
def test_bytes(name):
    rng = random.Random(4)
    for text in [*TEXTS[:7], *texts_of(10, 5)]:
        data = text.encode()[: rng.randrange(20)] + bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
        same(lambda e: e._encode_bytes(data), name, data)  # noqa: B023
        if data:
            same(lambda e: e._encode_single_piece(data), name, data)  # noqa: B023
    library, ours = pair_of(name)
    assert ours._encode_single_piece(b"\x80" * 5000) == library._encode_single_piece(b"\x80" * 5000)
    assert ours._encode_single_piece("hello") == library._encode_single_piece("hello")
    assert ours._encode_single_piece(b"") == []


@pytest.mark.parametrize("name", NAMES)
def test_decode(name):
    library, ours = pair_of(name)
    rng = random.Random(6)
    rows = [[rng.randrange(library.n_vocab - 50) for _ in range(rng.randrange(7))] for _ in range(12)]
    rows += [library.encode(text, allowed_special="all") for text in TEXTS]
    rows += [[library.n_vocab + 5], [-1], ["a"], [1.5], [187]]
    for row in rows:
        for method in ("decode_bytes", "decode", "decode_tokens_bytes", "decode_with_offsets"):
            same(lambda e: getattr(e, method)(row), name, (method, row))  # noqa: B023
        same(lambda e: e.decode(row, errors="strict"), name, row)  # noqa: B023
        same(lambda e: e.decode_batch([row, [1]]), name, row)  # noqa: B023
        same(lambda e: e.decode_batch([row], errors="ignore", num_threads=1), name, row)  # noqa: B023
        same(lambda e: e.decode_bytes_batch([row, []]), name, row)  # noqa: B023
    for token in (0, 5, 256, library.n_vocab + 5, "a"):
        same(lambda e: e.decode_single_token_bytes(token), name, token)  # noqa: B023


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary(name):
    library, ours = pair_of(name)
    for attribute in ("n_vocab", "max_token_value", "eot_token", "special_tokens_set", "name"):
        assert getattr(ours, attribute) == getattr(library, attribute), attribute
    assert ours.token_byte_values() == library.token_byte_values() and repr(ours) == repr(library)
    for token in ("hello", b"hello", "<|endoftext|>", b"\xff", "no such token", "", 3):
        same(lambda e: e.encode_single_token(token), name, token)  # noqa: B023
    for token in (0, library.eot_token, -1, 10**9, "a"):
        same(lambda e: e.is_special_token(token), name, token)  # noqa: B023
    for name_of in dir(tiktoken.Encoding):
        if not name_of.startswith("_"):
            assert hasattr(ours, name_of), name_of


def test_pickles():
    ours = pair_of("made")[1]
    ours.token_byte_values()
    copied = pickle.loads(pickle.dumps(ours))
    assert copied.encode("hello<|fim|>", allowed_special="all") == ours.encode("hello<|fim|>", allowed_special="all")
    assert copied.name == "made" and "_sorted_tokens" not in vars(copied)


def test_other_tokenizers():
    tokenizer = jittok.load_default()
    encoding = tokenizer.as_tiktoken("default")
    assert encoding.name == "default" and tokenizer.as_tiktoken().name == "jittok"
    assert encoding.decode(encoding.encode("to be", disallowed_special=())) == "to be"
    for attribute in ("_mergeable_ranks",):
        with pytest.raises(errors.UnsupportedError):
            getattr(encoding, attribute)
    with pytest.raises(errors.UnsupportedError):
        encoding.encode_with_unstable("x", disallowed_special=())
    words = jittok.Tokenizer(TokenizerSpec(WordLevelModel({"<unk>": 0})))
    with pytest.raises(errors.UnsupportedError):
        words.encode_piece(b"x")
    with pytest.raises(errors.ArgumentTypeError):
        pair_of("made")[1]._tokenizer.encode_piece("x")
    without = TiktokenEncoding.from_ranks(
        "plain", pat_str=".", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={}
    )
    with pytest.raises(KeyError, match="endoftext"):
        _ = without.eot_token


def test_refused_arguments():
    ranks = {bytes([byte]): byte for byte in range(256)}
    for change, error in (
        ({"mergeable_ranks": {b"a": 1}}, errors.FormatError),
        ({"mergeable_ranks": {**ranks, b"ab": 3}}, errors.FormatError),
        ({"mergeable_ranks": {**ranks, "ab": 256}}, errors.ArgumentTypeError),
        ({"mergeable_ranks": {**ranks, b"ab": -1}}, errors.FormatError),
        ({"special_tokens": {"x": 5}}, errors.FormatError),
        ({"pat_str": "("}, errors.RegexError),
        ({"explicit_n_vocab": 300}, errors.ArgumentError),
    ):
        arguments = {"pat_str": ".", "mergeable_ranks": ranks, "special_tokens": {}, **change}
        with pytest.raises(error):
            TiktokenEncoding.from_ranks("x", **arguments)
