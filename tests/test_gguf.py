"""GGUF vocabularies: the reader, and ids as llama.cpp gives them (recorded with llama-cpp-python 0.3.36's)."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from gguf_files import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, gguf, vocabulary

import jittok
from jittok.build.added_tokens import levels
from jittok.build.merge_tables import byte_alphabet
from jittok.cli import main
from jittok.errors import FormatError, JittokError, UnsupportedError
from jittok.formats.gguf import read
from jittok.formats.gguf_patterns import names, pre_tokenization
from jittok.vocabulary import unescaped

BYTES = [(character, NORMAL) for character in byte_alphabet()]
SPECIAL = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]


def pieces(**others):
    """SPM: with tokens of bytes, an unused token that is used like any other, and one of two blanks."""
    tokens = [
        *SPECIAL, *((f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)),
        ("\u2581", NORMAL, -1.0), ("a", NORMAL, -2.0), ("b", NORMAL, -3.0), ("ab", NORMAL, -4.0),
        ("\u2581a", NORMAL, -4.0),
        ("\u2581\u2581", UNUSED, -1.5), ("<tool>", USER_DEFINED, 0.0), ("\u00e9", NORMAL, -5.0), ("bc", NORMAL, -9.0),
        ("abc", NORMAL, -0.5), ("/s", NORMAL, -3.5), ("</s", NORMAL, -3.0), ("<t", USER_DEFINED, 0.0),
    ]  # fmt: skip
    return vocabulary("llama", tokens, **others)


def merges(**others):
    """BPE over bytes, with a merge twice, one that no text needs, and control tokens only by their names."""
    tokens = [*BYTES, ("ab", NORMAL), ("\u0120a", NORMAL), ("abc", NORMAL), ("<|endoftext|>", NORMAL)]
    tokens += [("x y", USER_DEFINED)]
    values = {"merges": ["a b", "\u0120 a", "a b", "ab c", "zz top"], "pre": "gpt-2"}
    values |= {"bos_token_id": 259, "eos_token_id": 259}
    return vocabulary("gpt2", tokens, **{**values, **others})


def words(**others):
    """WPM; U+2581 alone may begin a word and stand inside of one."""
    strings = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581", "\u2581the", "m", "e", "\u2581.", "\u2581\u4e2d"]
    strings += ["\u2581e", "t", "\u2581\u1100"]
    kinds = [CONTROL, UNKNOWN, CONTROL, CONTROL, CONTROL] + [NORMAL] * (len(strings) - 5)
    values = {"bos_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1}
    return vocabulary("bert", list(zip(strings, kinds, strict=True)), **{**values, **others})


def unigram(**others):
    """UGM; one unused token, and a user-defined one."""
    tokens = [
        ("<pad>", CONTROL, 0.0), ("</s>", CONTROL, 0.0), ("<unk>", UNKNOWN, 0.0), ("\u2581", NORMAL, -2.0),
        ("\u2581a", NORMAL, -3.0), ("a", NORMAL, -2.5), ("ab", UNUSED, -3.0),
        ("b", NORMAL, -2.0), ("<x>", USER_DEFINED, 0.0),
        ("x", NORMAL, -4.0),
    ]  # fmt: skip
    values = {"add_space_prefix": True, "remove_extra_whitespaces": True}
    return vocabulary("t5", tokens, **{**values, **others})


def trie(**others):
    """RWKV: bytes, some longer tokens, and a control token."""
    tokens = [("<s>", CONTROL), *((f"\\x{byte:02x}", NORMAL) for byte in range(256) if byte not in (0x0A, 0x61))]
    tokens += [("\\n", NORMAL), ("a", NORMAL), ("a\\xc3", NORMAL), ("\\n\\n", USER_DEFINED), ("aa", NORMAL)]
    tokens += [("\\\\a", NORMAL)]
    return vocabulary("rwkv", tokens, **others)


KINDS = {"pieces": pieces, "merges": merges, "words": words, "unigram": unigram, "trie": trie}

#: Kind, changes, text, ids with special tokens as text and none around, ids with all of them.
RECORDED = [
    ("pieces", {}, "",
     [],
     [1]),
    ("pieces", {}, " ",
     [264],
     [1, 264]),
    ("pieces", {}, "ab  abc\xe9</s>\u4e2d<tool>a",
     [263, 261, 264, 268, 266, 2, 231, 187, 176, 265, 263],
     [1, 263, 261, 264, 268, 266, 2, 259, 231, 187, 176, 265, 263]),
    ("pieces", {"add_space_prefix": False, "add_eos_token": True}, "ab ab<s>b",
     [262, 263, 261, 63, 118, 65, 261],
     [1, 262, 263, 261, 1, 261, 2]),
    ("pieces", {"add_bos_token": False}, "<0x41>\u2581a<t",
     [259, 63, 51, 123, 55, 52, 65, 263, 271],
     [259, 63, 51, 123, 55, 52, 65, 263, 271]),
    ("merges", {}, "abcab a ab\xe9<|endoftext|>x yab",
     [258, 256, 257, 220, 256, 127, 102, 27, 91, 68, 77, 67, 78, 69, 83, 68, 87, 83, 91, 29, 260, 256],
     [258, 256, 257, 220, 256, 127, 102, 259, 260, 256]),
    ("merges", {"add_bos_token": True, "add_eos_token": True}, "ab",
     [256],
     [259, 256, 259]),
    ("merges", {"pre": "llama-bpe"}, "abcab 12345",
     [258, 256, 220, 16, 17, 18, 19, 20],
     [259, 258, 256, 220, 16, 17, 18, 19, 20]),
    ("words", {}, "The M\xe9 \u2581\u2581the.\u4e2de[MASK]e!",
     [6, 5, 7, 8, 5, 5, 6, 9, 10, 11, 1, 1, 1, 11, 1],
     [2, 6, 5, 7, 8, 5, 5, 6, 9, 10, 11, 4, 11, 1, 3]),
    ("words", {"normalizer.lowercase": False}, "The me\xe9 the\u0301 \uac01",
     [1, 1, 1, 1],
     [2, 1, 1, 1, 1, 3]),
    ("words", {}, "\uac01 the\x00e \xe9\u0301 \ue000",
     [13, 6, 8, 11],
     [2, 13, 6, 8, 11, 3]),
    ("unigram", {}, "  a  ab<x>b\u4e2d\u4e2d</s> \u2581",
     [4, 3, 6, 8, 3, 7, 2, 3, 3],
     [4, 3, 6, 8, 3, 7, 2, 1, 3, 3, 1]),
    ("unigram", {"remove_extra_whitespaces": False}, "  a ab ",
     [3, 3, 4, 3, 6, 3],
     [3, 3, 4, 3, 6, 3, 1]),
    ("unigram", {"add_space_prefix": False, "remove_extra_whitespaces": False, "add_eos_token": False}, "ab a<xb",
     [6, 4, 2, 9, 7],
     [6, 4, 2, 9, 7]),
    ("unigram", {"remove_extra_whitespaces": False}, "  ",
     [3, 3],
     [3, 3, 1]),
    ("trie", {}, "aa\xe9a\xe9\n\n\na\\a<s>",
     [259, 194, 168, 257, 168, 258, 255, 256, 260, 0],
     [259, 194, 168, 257, 168, 258, 255, 256, 260, 0]),
]  # fmt: skip


@pytest.fixture
def load(tmp_path):
    def load(values):
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf(values))
        return jittok.load(path)

    return load


@pytest.mark.parametrize(("kind", "changes", "text", "plain", "special"), RECORDED)
def test_recorded_ids(kind, changes, text, plain, special, load):
    tok = load(KINDS[kind](**changes))
    assert tok.encode(text, add_special_tokens=False).ids.tolist() == plain
    assert tok.encode(text, special="parse").ids.tolist() == special


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_saving_and_facts(kind, load, tmp_path, capsys):
    tok = load(KINDS[kind]())
    text = " ab<x>\u00e9 the\n\n<s>\u4e2d. aa\\a"
    encoded = tok.encode(text, special="parse")
    stream = tok.decode_stream()
    assert "".join(map(stream.push, encoded.ids.tolist())) + stream.finish() == tok.decode(encoded)
    if kind == "trie":
        assert tok.decode(encoded) == text.replace("<s>", "")
    if kind == "pieces":  # blanks in front of each part, but "\u2581\u2581" is unused; nothing of the control token
        assert tok.decode(encoded) == "ab<x>\u00e9 the\n\n \u4e2d. aa\\a"
    tok.save(tmp_path / "file.jittok")
    again = jittok.load(tmp_path / "file.jittok")
    for other in (again, pickle.loads(pickle.dumps(tok)), jittok.load_bytes(gguf(KINDS[kind]()))):
        assert other == tok
        assert other.encode(text, special="parse").ids.tolist() == encoded.ids.tolist()
        assert other.decode_bytes(encoded) == tok.decode_bytes(encoded)
    for format in ("tokenizer.json", "sentencepiece", "tiktoken", "vocab.txt"):
        with pytest.raises(UnsupportedError, match=r"llama.cpp's rules.*save as jittok"):
            tok.save(tmp_path / "file", format=format)
    assert main(["info", str(tmp_path / "model.gguf")]) == 0
    out = capsys.readouterr().out
    assert "gguf; ids as llama.cpp gives them" in out and "in the file:    model=" in out
    assert max(map(len, out.splitlines())) < 700
    assert jittok.load(tmp_path).vocab_size == tok.vocab_size == len(KINDS[kind]()["tokens"])


def test_spans(load):
    encoded = load(words()).encode("The <x>\u4e2d[MASK].e", special="parse")
    assert encoded.spans.tolist()[1:-1] == [[0, 3], [3, 5], [5, 6], [6, 7], [7, 8], [8, 14], [14, 15], [15, 16]]
    encoded = load(pieces()).encode("ab \u00e9<tool>  a", add_special_tokens=False)
    assert encoded.tokens == ["\u2581a", "b", "\u2581", "\u00e9", "<tool>", "\u2581\u2581", "\u2581a"]
    assert encoded.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 10], [10, 11], [11, 13]]


def test_special_tokens(load):
    tok = load(merges())
    assert tok.special_tokens == {"<|endoftext|>": 259}  # by its name
    assert tok.encode("x y<|endoftext|>").tokens == ["x y", "<", "|", *"endoftext", "|", ">"]
    assert tok.encode("x y<|endoftext|>", special="parse").tokens == ["x y", "<|endoftext|>"]
    assert tok.decode([259, 260, 256]) == "x yab"  # control tokens leave nothing
    tok = load(pieces(**{"general.name": "Phi-3"}))
    assert tok.encode("<tool>\n  a \u00a0", add_special_tokens=False).tokens[:2] == ["<tool>", "\u2581a"]
    assert tok.encode("<tool>\u00a0a", add_special_tokens=False).tokens[1:4] == ["\u2581", "<0xC2>", "<0xA0>"]  # ASCII only


def test_the_longest_token_goes_first_wherever_it_stands(load):
    tok = load(unigram(tokens=["<pad>", "</s>", "<unk>", "\u2581", "\u2581a", "a", "x<", "b", "<x>", "x"],
                       token_type=np.array([3, 3, 2, 1, 1, 1, 4, 1, 4, 1], "<i4")))  # fmt: skip
    assert tok.encode("ax<x>", add_special_tokens=False).tokens == ["\u2581a", "x", "<x>"]
    assert levels(["<s>", "</s>", "aa", "aaa", "ab"]) == [[1, 0, 3, 2, 4]]
    assert levels(["<x>", "a<", "b"]) == [[0], [1, 2]]
    assert levels(["ba", "ab"]) == [[0], [1]]
    assert levels(["x" * 9000, "y"]) == [[0, 1]]


# ------------------------------------------------------------------------------------------- pre-tokenizers

TEXT = "I'LL say 12345\u00bd a\u00b2b: caf\u00e9's \u0e01\u0301x!?\r\n\n  \u4e2d\u6587a \u30ab_y  \ta\u3000 <|>9'9 \u1c89  "
#: Where pre-tokens begin.
CUTS = {
    "afmoe": "0 1 4 8 9 12 15 17 18 19 20 25 27 31 36 38 40 41 42 43 45 47 49 50 54 55 56 57 58 59",
    "bailingmoe": (
        "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59"
    ),
    "chameleon": (
        "0 1 2 4 8 9 10 11 12 13 14 15 17 18 19 20 25 26 27 29 30 31 32 33 34 35 36 38 41 43 44 45 47 48 "
        "49 51 52 53 54 55 56 57 59"
    ),
    "deepseek-coder": (
        "0 1 2 4 8 9 10 11 12 13 14 15 17 18 19 20 25 26 27 28 29 30 31 33 34 35 36 37 38 40 41 42 43 44 "
        "45 47 49 54 55 56 57 58 59"
    ),
    "deepseek-llm": (
        "0 1 2 4 8 9 15 17 18 19 20 24 25 26 27 28 29 30 31 33 34 35 36 38 40 41 42 43 44 45 47 49 50 54 "
        "55 56 57 58 59"
    ),
    "deepseek-v3": "0 1 4 8 9 12 15 17 18 19 20 25 27 31 36 38 40 41 42 43 45 47 49 50 54 55 56 57 58 59",
    "default": "0 1 2 4 8 9 12 15 17 18 19 20 25 26 27 29 30 31 33 37 41 43 44 45 47 48 49 51 54 55 56 57 59",
    "exaone-moe": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 31 34 36 37 43 45 47 49 50 54 55 56 57 59",
    "falcon": "0 1 2 4 8 9 12 15 17 18 19 20 25 26 27 29 30 31 33 37 41 43 44 45 47 48 49 51 54 55 56 57 59",
    "gpt-2": "0 1 2 4 8 15 17 18 19 20 25 27 29 30 31 33 37 41 43 44 45 47 48 49 50 54 55 56 57 59",
    "gpt-4o": "0 4 8 9 12 15 17 18 19 20 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "granite-embed-multi-97m": "0 4 8 9 12 15 17 18 19 20 27 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "jais-2": "0 1 4 8 9 12 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "kimi-k2": "0 4 8 9 12 15 17 18 19 20 27 29 31 36 37 38 40 41 43 45 47 49 50 54 55 56 57 59",
    "laguna": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 34 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "llama3": "0 1 4 8 9 12 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "minicpm5": "0 1 4 8 9 12 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "poro-chat": "0 4 8 15 20 27 31 37 41 45 48 49 50 52 53 57 59",
    "qwen2": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "qwen35": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "seed-coder": (
        "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 33 36 37 41 43 45 47 49 50 54 55 56 57 59"
    ),
    "spark2_5": (
        "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 31 33 34 35 36 38 40 41 42 43 45 47 49 50 54 55 "
        "56 57 58 59"
    ),
    "starcoder": (
        "0 1 2 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 30 31 33 37 41 43 44 45 47 48 49 50 54 55 56 "
        "57 59"
    ),
    "superbpe": "0 9 11 15 17 18 54 55 56 57",
    "tekken": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "tiny_aya": "0 4 8 9 12 15 17 18 19 20 27 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "ufakzeka": "0 1 4 8 9 10 11 12 13 14 15 17 18 19 20 25 27 29 31 36 37 41 43 45 47 49 50 54 55 56 57 59",
    "viking": "0 4 8 9 10 11 12 13 14 15 17 18 20 27 31 37 41 45 48 49 50 52 53 54 55 56 57 59",
    "youtu": "0 4 8 9 10 11 12 13 14 15 17 18 19 20 27 31 36 38 40 41 42 43 45 47 49 50 54 55 56 57 59",
}


@pytest.mark.parametrize("name", CUTS)
def test_pre_tokenizers(name, load):
    tok = load(vocabulary("gpt2", BYTES, merges=[], pre=name, add_bos_token=False))
    encoded = tok.encode(TEXT)
    begins = np.flatnonzero(np.diff(encoded.word_ids, prepend=-1))
    assert " ".join(map(str, encoded.spans[begins, 0].tolist())) == CUTS[name]
    assert tok.decode(encoded) == TEXT


def test_names_of_pre_tokenizers(load):
    assert len(names()) == 91
    known = [*CUTS, "gemma4", "whitespace"]
    assert {pre_tokenization(name).steps for name in names()} == {pre_tokenization(name).steps for name in known}
    with pytest.raises(UnsupportedError, match=r"tokenizer.ggml.pre is 'other'.*llama-bpe"):
        load(merges(pre="other"))


def test_groups_of_digits(load):
    text = "1 12 123 1234 12345 123456 x1234567 \u00bd12\u0664"
    for name, expected in (
        ("tiny_aya", ["1 12", " 123", " 1", "234", " 12", "345", " 123", "456", " x1", "234", "567", " \u00bd", "12\u0664"]),
        ("superbpe", ["123", "1", "234", "12", "345", "123", "456", "1", "234", "567"]),
    ):
        encoded = load(vocabulary("gpt2", BYTES, merges=[], pre=name)).encode(text)
        begins = np.flatnonzero(np.diff(encoded.word_ids, prepend=-1))
        bounds = [*encoded.spans[begins, 0].tolist(), len(text)]
        found = [text[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False)]
        assert "".join(found) == text
        if name == "superbpe":
            assert [part for part in found if part.isdigit() and len(part) < 4 and "\u00bd" not in part][2:] == expected
        else:
            assert "234" in found and "345" in found and found[-1] != text


def test_pieces_as_merges(load):
    """Gemma 4's kind: merges over characters, with U+2581 for blanks."""
    tokens = [("<bos>", CONTROL), *((f"<0x{byte:02X}>", BYTE) for byte in range(256)), ("a", NORMAL), ("\u2581", NORMAL)]
    tokens += [("\u2581a", NORMAL), ("\n", NORMAL), ("\n\n", NORMAL)]
    tok = load(vocabulary("gemma4", tokens, merges=["\u2581 a", "\n \n"], bos_token_id=0, add_bos_token=False))
    encoded = tok.encode("a a\n\n\n\u00e9")
    assert encoded.tokens == ["<bos>", "a", "\u2581a", "\n\n", "\n", "<0xC3>", "<0xA9>"]
    assert tok.decode(encoded) == "a a\n\n\n\u00e9"


def test_words_without_white_space(load):
    tokens = [(letter, NORMAL) for letter in "abc"] + [("ab", NORMAL), ("<0xC3>", BYTE), ("<0xA9>", BYTE), (" ", NORMAL)]
    values = {"merges": ["a b"], "pre": "whitespace", "bos_token_id": 0, "eos_token_id": 0}
    for kind, between in (("whitespace", []), ("gpt2", [" "])):
        encoded = load(vocabulary(kind, tokens, **values)).encode("abc a\u00e9")
        assert encoded.tokens == ["ab", "c", *between, "a", "<0xC3>", "<0xA9>"]
    with pytest.raises(UnsupportedError, match="lower case"):
        load(vocabulary("whitespace", tokens, **values | {"normalizer.lowercase": True}))


# ---------------------------------------------------------------------------------------------- odd files


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"general.architecture": "llama"}, r"no value 'tokenizer.ggml.model'"),
        (pieces(model="new"), r"model is 'new'"),
        (pieces(model="plamo2"), r"PLaMo 2"),
        (pieces(model="none"), r"without a vocabulary"),
        (pieces(tokens=[]), r"tokens is empty"),
        (pieces(tokens=["a", "b", "a"]), r"tokens\[0\] and tokens\[2\] are both 'a'"),
        (pieces(tokens=["a", b"\xff"]), r"tokens\[1\]: expected UTF-8"),
        (pieces(tokens=["a" * 9000]), r"tokens\[0\] has 9000 bytes"),
        (pieces(tokens="a"), r"tokens: expected an array of strings, got a string"),
        (pieces(scores=np.zeros(3, "<f4")), r"scores has 3 elements"),
        (pieces(scores=np.zeros(272, "<u8")), r"expected an array of f4 or i4, got an array of u8"),
        (pieces(scores=np.full(272, np.nan, "<f4")), r"scores\[0\] is nan"),
        (pieces(token_type=np.zeros(3, "<i4")), r"token_type has 3 elements"),
        (pieces(add_bos_token="yes"), r"expected a truth value, got a string"),
        (pieces(bos_token_id=True), r"expected a whole number, got a truth value"),
        (pieces(tokens=["<0x41>"], token_type=np.array([6], "<i4"), scores=np.zeros(1, "<f4")), r"but not <0x00>"),
        (merges(merges=["a q", "aq z"]), r"merges\[0\] needs 'aq'"),
        ({name: value for name, value in merges().items() if name != "merges"}, r"no value 'tokenizer.ggml.merges'"),
        (unigram(unknown_token_id=5), r"used for text too"),
        (unigram(precompiled_charsmap=np.zeros(3, "<i1")), r"precompiled_charsmap"),
        (trie(tokens=["\\x61", "a"], token_type=np.ones(2, "<i4")), r"tokens\[1\] and tokens\[0\] are the same bytes"),
    ],
)
def test_what_is_wrong_is_named(values, message):
    with pytest.raises(JittokError, match=message) as caught:
        read(gguf(values), "m.gguf")
    assert str(caught.value).startswith("m.gguf: ")


def test_odd_files_that_are_read(load):
    tok = load(merges(tokens=[*[token for token, _ in BYTES], "", "xy\0z"], token_type=np.ones(258, "<i4"), merges=[]))
    assert tok.id_to_token(256) == "[EMPTY_256]"
    assert tok.id_to_token(257) == "xy"  # up to the NUL
    assert tok.encode("xy", add_special_tokens=False).ids.tolist() == [tok.token_to_id("x"), tok.token_to_id("y")]
    tok = load(unigram(bos_token_id=900, eos_token_id=900, add_bos_token=True))  # ids that there are not
    assert tok.encode("a").tokens == ["\u2581a", "</s>"]
    spec = read(gguf(pieces(), version=2, n_tensors=7), "")
    assert spec.extra == {"model": "llama"}
    for version in (1, 4, 3 << 24):
        with pytest.raises(UnsupportedError, match="GGUF file"):
            read(gguf(pieces(), version=version), "m")


def test_a_file_cut_short_anywhere():
    data = gguf(words())
    for size in range(len(data)):
        with pytest.raises(FormatError):
            read(data[:size], "m")


def test_random_bytes_in_files(tmp_path):
    rng = random.Random(5)
    for kind, make in KINDS.items():
        data = gguf(make(**({"scores": np.zeros(272, "<f4")} if kind == "pieces" else {})))
        for number in range(2000):
            changed = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(4, len(data))
                changed[at] ^= 1 << rng.randrange(8)
            try:
                spec = read(bytes(changed), "m")
                if number % 40 == 0:
                    jittok.Tokenizer(spec).encode("ab <x> the.\n", special="parse")
            except JittokError:
                pass


def test_sizes_that_are_too_large():
    """A few bytes that ask for much memory, or for many turns of a loop."""
    header = b"GGUF" + struct.pack("<Iqq", 3, 0, 1)
    name = struct.pack("<Q", 21) + b"tokenizer.ggml.tokens"
    for data in (
        b"GGUF" + struct.pack("<Iqq", 3, 0, 1 << 60),
        b"GGUF" + struct.pack("<Iqq", 3, 0, -1),
        header + struct.pack("<Q", 1 << 62) + b"x" * 64,
        header + name + struct.pack("<IIQ", 9, 8, 1 << 61) + b"\0" * 64,
        header + name + struct.pack("<IIQ", 9, 6, (1 << 64) - 1) + b"\0" * 64,
        header + name + struct.pack("<IIQ", 9, 9, 1) + b"\0" * 64,
        header + name + struct.pack("<I", 8) + struct.pack("<Q", (1 << 64) - 1) + b"x" * 64,
    ):
        with pytest.raises(FormatError):
            read(data, "m")


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_other_types(kind):
    values = KINDS[kind]()
    wrong = ["text", True, 7, ["a"], np.array([1.5], "<f4"), np.array([1, 2], "<u2"), np.float64(2.0)]
    for name in values:
        for other in wrong:
            try:
                read(gguf({**values, name: other}), "m")
            except JittokError:
                pass


def test_escapes_of_rwkv():
    assert unescaped(rb"a\n\t\r\\\x41\xff\q") == b"a\n\t\r\\A\xffq"
    assert unescaped(b"\\x4") == unescaped(b"\\") == b""


# ------------------------------------------------------------------------------------------------ real data


def models():
    root = os.environ.get("JITTOK_TEST_DATA")
    if not root:
        pytest.skip("set JITTOK_TEST_DATA to a folder that holds models/ to test with real vocabularies")
    return Path(root) / "models"


def llama_cpp_vocabulary(name):
    """A vocabulary of llama.cpp's, from the folder of models or from that of its source archive."""
    file = f"ggml-vocab-{name}.gguf"
    folders = [models() / "gguf" / name]
    if source := os.environ.get("JITTOK_LLAMA_CPP_VOCABULARIES"):
        folders.append(Path(source))
    for folder in folders:
        if (folder / file).exists():
            return folder / file
    pytest.skip(
        f"{file} is not in JITTOK_TEST_DATA; set JITTOK_LLAMA_CPP_VOCABULARIES to the folder vendor/llama.cpp/models of the "
        "source archive of llama-cpp-python 0.3.36"
    )


#: The cases that llama.cpp has for each of its vocabularies.
CASES = dict.fromkeys(
    "bert-bge command-r deepseek-coder deepseek-llm falcon gemma-4 gpt-2 llama-bpe llama-spm mpt phi-3 qwen2 refact "
    "starcoder".split(),
    46,
) | {"qwen35": 50}


@pytest.mark.parametrize("name", CASES)
def test_cases_of_llama_cpp(name):
    cases = os.environ.get("JITTOK_TEST_CASES")
    if not cases:
        pytest.skip("set JITTOK_TEST_CASES to a folder that holds cases/ to replay them")
    lines = (Path(cases) / "cases" / "llama_cpp_vocab.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["model"] == f"gguf/{name}/ggml-vocab-{name}.gguf"]
    assert len(rows) == CASES[name] and len(lines) == sum(CASES.values())
    tok = jittok.load(llama_cpp_vocabulary(name))
    texts = [row["input"] for row in rows]
    assert tok.encode_batch(texts, add_special_tokens=False).to_lists() == [row["expected_ids"] for row in rows]


@pytest.mark.parametrize("name", ["bert-bge", "deepseek-coder", "gpt-2", "llama-spm", "phi-3", "qwen2"])
def test_golden_outputs(name):
    cases = os.environ.get("JITTOK_TEST_CASES")
    if not cases:
        pytest.skip("set JITTOK_TEST_CASES to a folder that holds golden/ to replay it")
    path = models() / f"gguf/{name}/ggml-vocab-{name}.gguf"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the models in JITTOK_TEST_DATA")
    tok = jittok.load(path)
    for line in (Path(cases) / "golden" / f"gguf__{name}__llama_cpp.jsonl").read_text("utf-8").splitlines()[1:]:
        row = json.loads(line)
        encoded = tok.encode(row["text"], add_special_tokens=False)
        assert encoded.ids.tolist() == row["ids"]
        assert encoded.tokens == row["tokens"]
        decoded = tok.decode_bytes(encoded)
        if max(map(len, encoded.tokens), default=0) <= 32:  # the package drops longer tokens
            assert decoded == bytes.fromhex(row["decoded_hex"])
        assert tok.encode(row["text"], special="parse").ids.tolist() == row["special"]["ids"]
