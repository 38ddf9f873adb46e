"""File formats: what is read, what is refused, and that the reference agrees."""

from __future__ import annotations

import base64
import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    JittokError,
    MissingFileError,
    UnknownFormatError,
    UnsupportedError,
)
from jittok.formats import merges_txt, tiktoken_file, tokenizer_json
from jittok.formats.detect import FORMATS, detect_format, locate, read_spec
from jittok.spec import (
    AddedToken,
    BertNormalizer,
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    DecodeFuse,
    DecodeWordPiece,
    Digits,
    Metaspace,
    Punctuation,
    RankModel,
    Split,
    Template,
    TemplatePiece,
    TokenizerSpec,
    TrimOffsets,
    Whitespace,
    WhitespaceSplit,
    WordPieceModel,
)
from jittok.unicode import bert, intervals

tokenizers = pytest.importorskip("tokenizers", reason="the reference library tokenizers is not installed")

DATA = os.environ.get("JITTOK_TEST_DATA")
CASES = os.environ.get("JITTOK_TEST_CASES")
needs_data = pytest.mark.skipif(not DATA, reason="JITTOK_TEST_DATA is not set: no real models here")
needs_cases = pytest.mark.skipif(not CASES, reason="JITTOK_TEST_CASES is not set: no reported cases here")

TEXTS = (
    "",
    "Hello world, it's  12345 o'clock!\n\n\tEnd ",
    "  na\u00efve cafe\u0301 \u212b \u0130stanbul \u4f60\u597d \U0001f469\u200d\U0001f469\u200d\U0001f467",
    "<|endoftext|> a<|endoftext|>b <mask> x<s>y</s> <unk>\u2581<|im_start|><|startoftranscript|>",
    "x = foo(bar[1:20]) # comment\r\n\r\n    return None",
)


def model_paths() -> list[Path]:
    return sorted((Path(DATA) / "models" / "bbpe").glob("*/tokenizer.json")) if DATA else []


def added(content: str, token_id: int = 0, **flags: bool) -> dict:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": token_id, "content": content, **dict.fromkeys(names, False), **flags}


def document(**changes: object) -> dict:
    """Make a small tokenizer.json; `model_x=` sets a field of the model, `...` removes a field."""
    result: dict = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": [["a", "b"]]},
    }
    result.update((key, value) for key, value in changes.items() if key == "model")
    for key, value in changes.items():
        target, name = (result["model"], key[6:]) if key.startswith("model_") else (result, key)
        if value is ...:
            del target[name]
        else:
            target[name] = value
    return result


def read(value: object) -> TokenizerSpec:
    return tokenizer_json.read(json.dumps(value).encode(), "t.json")


def reference(data: bytes | str):
    """Load with the reference; None where it refuses, "panic" where it crashes."""
    try:
        loaded = tokenizers.Tokenizer.from_str(data if isinstance(data, str) else data.decode())
    except Exception:
        return None
    except BaseException as error:  # its panics are not Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return "panic"
    loaded.no_padding()
    loaded.no_truncation()
    return loaded


def behaviour(tokenizer, texts=TEXTS) -> list:
    """What a reference tokenizer makes of texts, pairs and ids; errors count as results."""

    def attempt(action):
        try:
            return action()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return "error"

    def fields(encoding):
        return encoding.ids, encoding.tokens, encoding.offsets, encoding.type_ids, encoding.special_tokens_mask

    result: list = [sorted(tokenizer.get_vocab().items())]
    for text in texts:
        result.append(attempt(lambda text=text: fields(tokenizer.encode(text))))
        result.append(attempt(lambda text=text: fields(tokenizer.encode(text, "b c", add_special_tokens=False))))
        result.append(attempt(lambda text=text: fields(tokenizer.encode("ab", text))))
        ids = attempt(lambda text=text: tokenizer.encode(text).ids)
        result.append(attempt(lambda ids=ids: tokenizer.decode(ids)))
        result.append(attempt(lambda ids=ids: tokenizer.decode(ids, skip_special_tokens=False)))
    return result


def flags_of(spec: TokenizerSpec) -> dict:
    return {t.id: (t.content, t.single_word, t.lstrip, t.rstrip, t.normalized) for t in spec.added_tokens}


def reference_flags(tokenizer) -> dict:
    return {
        token_id: (t.content, t.single_word, t.lstrip, t.rstrip, t.normalized)
        for token_id, t in tokenizer.get_added_tokens_decoder().items()
    }


# ----------------------------------------------------------------------------------------- tokenizer.json


@needs_data
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models_round_trip(path):
    data = path.read_bytes()
    large = len(data) > 4_000_000  # the reference takes seconds for these
    expected = None if large else reference(data)
    if expected is None and not large:
        with pytest.raises(JittokError):
            tokenizer_json.read(data, str(path))
        return
    spec = tokenizer_json.read(data, str(path))
    written = tokenizer_json.write(spec)
    assert tokenizer_json.read(written, "again") == spec
    if large:
        ids = [token["id"] for token in json.loads(data)["added_tokens"]]
        assert [token.id for token in spec.added_tokens] == ids
    else:
        assert flags_of(spec) == reference_flags(expected)
        assert behaviour(reference(written)) == behaviour(expected)


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\d"}, "behavior": "Isolated", "invert": False}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 2}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"x": {"id": "x", "ids": [3, 0], "tokens": ["c", "a"]}},
}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["c", 3],
    "cls": ["a", 0],
    "trim_offsets": True,
    "add_prefix_space": False,
}

WORD_PIECE = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "!": 3},
}
BERT_NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
WORD_PIECE_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
BERT_PROCESSING = {"type": "BertProcessing", "sep": ["a", 1], "cls": ["!", 3]}


def bert_document(**changes: object) -> dict:
    """Make a small tokenizer.json with a WordPiece model, as :func:`document`."""
    return document(
        **{
            "model": dict(WORD_PIECE),
            "normalizer": BERT_NORMALIZER,
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": BERT_PROCESSING,
            "decoder": WORD_PIECE_DECODER,
            **changes,
        }
    )


#: Documents that both load; the behaviour after writing must be the same.
ACCEPTED = {
    "plain": document(),
    "without optional fields": {"model": {"vocab": {"a": 0}, "merges": []}},
    "model type guessed": document(model_type=...),
    "legacy merges": document(model_merges=["#version: 0.2", "a b"]),
    "merge twice: the later rank": document(
        model_vocab={"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4},
        model_merges=[["a", "b"], ["b", "c"], ["a", "b"]],
    ),
    "tokens with blanks": document(model_vocab={"a": 0, " b": 1, "a b": 2}, model_merges=[["a", " b"]]),
    "nulls in the model": document(
        **{
            f"model_{key}": None
            for key in (
                "dropout",
                "unk_token",
                "continuing_subword_prefix",
                "end_of_word_suffix",
                "fuse_unk",
                "byte_fallback",
                "ignore_merges",
            )
        }
    ),
    "dropout of 0": document(model_dropout=0.0),
    "unknown field of the model": document(model_future=[1]),
    "continuing prefix": document(
        model_vocab={"a": 0, "##b": 1, "ab": 2, "##a": 3, "##ab": 4},
        model_merges=[["a", "##b"], ["##a", "##b"]],
        model_continuing_subword_prefix="##",
        model_unk_token="a",
    ),
    "end of word": document(
        model_vocab={"a": 0, "b</w>": 1, "ab</w>": 2},
        model_merges=[["a", "b</w>"]],
        model_end_of_word_suffix="</w>",
    ),
    "unk that is not there": document(model_unk_token="<unk>"),
    "unk fused": document(model_unk_token="c", model_fuse_unk=True),
    "byte fallback": document(
        model_vocab={"a": 0, "b": 1, "ab": 2, "<0xC3>": 3, "<0xA9>": 4}, model_byte_fallback=True
    ),
    "ignore_merges": document(model_vocab={"a": 0, "b": 1, "ab": 2, "abc": 3}, model_ignore_merges=True),
    "empty vocabulary": document(model_vocab={}, model_merges=[]),
    "empty token": document(model_vocab={"": 0, "a": 1}, model_merges=[]),
    "added token in the vocabulary": document(added_tokens=[added("c", 9, special=True)]),
    "added tokens renumbered": document(added_tokens=[added("<x>", 9), added("<y>", 7, lstrip=True)]),
    "added tokens into holes": document(
        model_vocab={"a": 0, "b": 5, "ab": 20},
        added_tokens=[added("<x>", 21), added("<y>", 22), added("b", 3), added("<z>", 23)],
    ),
    "added token twice": document(added_tokens=[added("<x>", 4, special=True), added("<x>", 4, rstrip=True)]),
    "added token without text": document(added_tokens=[added("", 4), added("<y>", 5)]),
    "normalized added token": document(
        normalizer={"type": "Lowercase"}, added_tokens=[added("XY", 4, normalized=True)]
    ),
    "normalizers": document(
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "NFD"},
                {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]},
                {"type": "Strip", "strip_left": True, "strip_right": False},
                {"type": "Replace", "pattern": {"String": "n"}, "content": "c"},
                {"type": "Replace", "pattern": {"Regex": "[d-m]+"}, "content": "\\1"},
                {"type": "Prepend", "prepend": "ab"},
                {"type": "NFKC"},
                {"type": "NFKD"},
                {"type": "NFC"},
            ],
        }
    ),
    "byte level": document(pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL, post_processor=BYTE_LEVEL),
    "byte level without regex": document(pre_tokenizer={**BYTE_LEVEL, "use_regex": False}),
    **{
        f"split {behavior} {invert}": document(
            pre_tokenizer={**SPLIT, "behavior": behavior, "invert": invert, "pattern": pattern}
        )
        for behavior, invert, pattern in (
            ("Removed", True, {"Regex": "[a-z]+"}),
            ("Isolated", False, {"String": "o"}),
            ("MergedWithPrevious", False, {"Regex": r"\s+"}),
            ("MergedWithNext", False, {"String": " "}),
            ("Contiguous", True, {"Regex": r"\w"}),
        )
    },
    "split before everything": document(pre_tokenizer={**SPLIT, "pattern": {"String": ""}}),
    "pre-tokenizers": document(
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Digits", "individual_digits": True},
                {"type": "Sequence", "pretokenizers": [{"type": "CharDelimiterSplit", "delimiter": "o"}]},
                {"type": "Whitespace"},
                {"type": "Digits", "individual_digits": False},
                {"type": "Punctuation"},
                {"type": "Punctuation", "behavior": "MergedWithNext"},
            ],
        }
    ),
    "bert pre-tokenizer": document(pre_tokenizer={"type": "BertPreTokenizer"}),
    "metaspace": document(pre_tokenizer={"type": "Metaspace", "replacement": "_"}),
    "old metaspace": document(
        pre_tokenizer={"type": "Metaspace", "replacement": "_", "add_prefix_space": True, "str_rep": "_"},
        decoder={"type": "Metaspace", "replacement": "_", "add_prefix_space": True, "prepend_scheme": "never"},
    ),
    "metaspace without prefix": document(
        pre_tokenizer={
            "type": "Metaspace",
            "replacement": "_",
            "add_prefix_space": False,
            "prepend_scheme": "never",
            "split": None,
        }
    ),
    "metaspace first": document(
        pre_tokenizer={"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": False}
    ),
    "template": document(post_processor=TEMPLATE),
    "template without B": document(post_processor={**TEMPLATE, "pair": TEMPLATE["single"]}),
    "template without A": document(post_processor={**TEMPLATE, "single": []}),
    "roberta": document(post_processor=ROBERTA),
    "roberta untrimmed": document(post_processor={**ROBERTA, "trim_offsets": False}),
    "bert processing": document(post_processor={"type": "BertProcessing", "sep": ["c", 3], "cls": ["a", 0]}),
    "bert": bert_document(),
    "bert, type guessed": bert_document(model_type=...),
    "bert without strip_accents": bert_document(
        normalizer={key: value for key, value in BERT_NORMALIZER.items() if key != "strip_accents"}
    ),
    "bert with accents": bert_document(normalizer={**BERT_NORMALIZER, "strip_accents": False}),
    "bert that keeps all": bert_document(
        normalizer={**BERT_NORMALIZER, "clean_text": False, "handle_chinese_chars": False, "lowercase": False}
    ),
    "strip accents": bert_document(normalizer={"type": "StripAccents"}),
    "no unknown token in the vocabulary": bert_document(model_vocab={"a": 1, "##b": 2, "!": 3}),
    "empty vocabulary of word pieces": bert_document(model_vocab={}, post_processor=None),
    "vocabulary with holes": bert_document(model_vocab={"[UNK]": 7, "a": 1, "##b": 12, "!": 3}),
    "only suffix pieces": bert_document(model_vocab={"[UNK]": 0, "##a": 1, "##b": 3}),
    "no prefix": bert_document(model_continuing_subword_prefix=""),
    "longest word": bert_document(model_max_input_chars_per_word=0),
    "word of any length": bert_document(model_max_input_chars_per_word=(1 << 64) - 1),
    "word pieces of another prefix": bert_document(
        model_vocab={"[UNK]": 0, "a": 1, "+b": 2, "!": 3},
        model_continuing_subword_prefix="+",
        decoder={"type": "WordPiece", "prefix": "+", "cleanup": False},
    ),
    "split with bert's": bert_document(
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [{"type": "CharDelimiterSplit", "delimiter": "l"}, {"type": "Whitespace"}],
        }
    ),
    "bert that is roberta": document(post_processor={**ROBERTA, "type": "BertProcessing"}),
    "post-processors": document(
        pre_tokenizer=BYTE_LEVEL,
        post_processor={"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]},
    ),
    "no post-processors": document(post_processor={"type": "Sequence", "processors": []}),
    "decoders": document(
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "b"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": "a", "start": 1, "stop": 0},
            ],
        }
    ),
    "no decoders but a sequence": document(decoder={"type": "Sequence", "decoders": []}),
    "bpe decoder": document(decoder={"type": "BPEDecoder", "suffix": "b"}),
    "truncation and padding": document(
        truncation={"max_length": 5, "strategy": "OnlyFirst", "stride": 1},
        padding={
            "strategy": {"Fixed": 4},
            "direction": "Left",
            "pad_id": 1,
            "pad_type_id": 0,
            "pad_token": "b",
        },
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_documents_mean_what_the_reference_makes_of_them(name):
    data = json.dumps(ACCEPTED[name])
    expected = reference(data)
    assert expected is not None, "this case is wrong: the reference refuses it"
    spec = read(ACCEPTED[name])
    written = tokenizer_json.write(spec)
    assert tokenizer_json.read(written, "again") == spec
    assert flags_of(spec) == reference_flags(expected)
    assert behaviour(reference(written)) == behaviour(expected)


def test_two_tokens_of_one_id_without_merges():
    value = document(model_vocab={"a": 0, "b": 0}, model_merges=[])
    spec = read(value)
    assert reference(tokenizer_json.write(spec)).encode("ab").ids == [0, 0]
    assert dict(spec.model.vocab) == {"a": 0, "b": 0}


def test_components_in_the_spec():
    spec = read(ACCEPTED["byte level"])
    assert spec.pre_tokenizers == (ByteLevel(True, True, True),)
    assert spec.post_processors == (TrimOffsets(True),)
    assert read(ACCEPTED["no decoders but a sequence"]).decoders == (DecodeFuse(),)
    assert read(document()).decoders == ()
    assert read(ACCEPTED["metaspace first"]).pre_tokenizers == (Metaspace("_", "first", False),)
    steps = read(ACCEPTED["pre-tokenizers"]).pre_tokenizers
    assert steps[:4] == (WhitespaceSplit(), Digits(True), CharDelimiterSplit("o"), Whitespace())
    assert steps[5:] == (Punctuation(), Punctuation("merged_with_next"))
    bert_like = read(ACCEPTED["bert"])
    assert bert_like.model == WordPieceModel({"[UNK]": 0, "a": 1, "##b": 2, "!": 3}, "[UNK]", "##", 100)
    assert bert_like.normalizers == (BertNormalizer(True, True, None, True),)
    assert bert_like.pre_tokenizers == (BertPreTokenizer(),)
    assert bert_like.decoders == (DecodeWordPiece("##", True),)
    cls, sep = TemplatePiece(0, None, (0,), ("a",)), TemplatePiece(0, None, (3,), ("c",))
    a, b = TemplatePiece(0, "A"), TemplatePiece(0, "B")
    assert read(ACCEPTED["roberta"]).post_processors == (
        TrimOffsets(False),
        Template((cls, a, sep), (cls, a, sep, sep, b, sep)),
    )
    stored = read(ACCEPTED["truncation and padding"])
    assert stored.stored_truncation["direction"] == "Right"
    assert stored.stored_padding["strategy"] == {"Fixed": 4}
    assert read(ACCEPTED["merge twice: the later rank"]).model.merges == (("b", "c"), ("a", "b"))


#: Documents that are refused, and what the message must say.
REFUSED = {
    "root is an array": ([], "top level: expected an object"),
    "no model": (document(model=...), "'model' is missing"),
    "model is null": (document(model=None), "model: expected an object"),
    "version": (document(version="2.0"), "version: expected '1.0'"),
    "unknown field": (document(future=1), "unknown field 'future'"),
    "added_tokens null": (document(added_tokens=None), "added_tokens: expected an array"),
    "added token string": (document(added_tokens=["<x>"]), r"added_tokens\[0\]: expected an object"),
    "added token without flag": (
        document(added_tokens=[{"id": 4, "content": "x"}]),
        r"added_tokens\[0\]: the field 'single_word' is missing",
    ),
    "added token null flag": (
        document(added_tokens=[added("<y>"), added("<x>", special=None)]),
        r"added_tokens\[1\].special: expected true or false, got null",
    ),
    "added token id": (document(added_tokens=[added("x", -1)]), r"added_tokens\[0\].id: expected an integer"),
    "vocabulary is a list": (document(model_vocab=["a"]), "model.vocab: expected an object"),
    "duplicate ids": (document(model_vocab={"a": 0, "b": 0, "ab": 1}), "'a' and 'b' have the same id, 0"),
    "negative id": (document(model_vocab={"a": -1}), "model.vocab.a: expected an integer from 0"),
    "float id": (document(model_vocab={"a": 1.0}), "model.vocab.a: expected an integer"),
    "boolean id": (document(model_vocab={"a": True}), "model.vocab.a: expected an integer"),
    "large id": (document(model_vocab={"a": 1 << 24}, model_merges=[]), "model.vocab.a: expected an integer"),
    "huge id": (document(model_vocab={"a": 10**400}), "a huge number"),
    "merges missing": (document(model_merges=...), "'merges' is missing"),
    "merges null": (document(model_merges=None), "model.merges: expected an array"),
    "merges object": (document(model_merges={}), "model.merges: expected an array"),
    "merges mixed": (document(model_merges=["a b", ["a", "b"]]), r"model.merges\[1\]: expected a merge"),
    "merges of numbers": (document(model_merges=[1]), r"model.merges\[0\]: expected a merge"),
    "merge of three": (document(model_merges=[["a", "b", "c"]]), r"model.merges\[0\]: expected two tokens"),
    "merge with a blank": (
        document(model_merges=["#version", "a b", "a b c"]),
        r"model.merges\[2\]: expected two tokens with one blank",
    ),
    "merge empty": (document(model_merges=[""]), r"model.merges\[0\]: expected two tokens"),
    "merge of non-strings": (document(model_merges=[["a", 1]]), r"model.merges\[0\]: expected two strings"),
    "merge of lists": (document(model_merges=[["a", []]]), r"model.merges\[0\]: expected two strings"),
    "merge part unknown": (
        document(model_merges=["#version", "a x"]),
        r"model.merges\[1\]: the part 'x' of this merge is not in the vocabulary",
    ),
    "merge result unknown": (document(model_merges=[["b", "c"]]), r"result of merging 'b' and 'c' is not"),
    "merge shorter than the prefix": (
        document(model_continuing_subword_prefix="###"),
        "result of merging 'a' and 'b' is not",
    ),
    "merge cut in a character": (
        document(
            model_vocab={"a": 0, "\u00e9": 1}, model_merges=[["a", "\u00e9"]], model_continuing_subword_prefix="#"
        ),
        "result of merging",
    ),
    "flag as text": (document(model_fuse_unk="yes"), "model.fuse_unk: expected true or false, got 'yes'"),
    "unk as number": (document(model_unk_token=5), "model.unk_token: expected a string, got 5"),
    "dropout out of range": (document(model_dropout=5), "model.dropout: expected a number from 0 to 1"),
    "model type": (document(model_type="Foo"), "expected a model of type .* or Unigram, got type 'Foo'"),
    "model type null": (document(model_type=None), "expected a model of type BPE"),
    **{
        f"word pieces without {key}": (bert_document(**{f"model_{key}": ...}), f"model: the field '{key}' is missing")
        for key in ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab")
    },
    "prefix null": (
        bert_document(model_continuing_subword_prefix=None),
        "model.continuing_subword_prefix: expected a string, got null",
    ),
    "negative length of words": (
        bert_document(model_max_input_chars_per_word=-1),
        "model.max_input_chars_per_word: expected an integer",
    ),
    "bert normalizer without options": (
        bert_document(normalizer={"type": "BertNormalizer"}),
        "normalizer: the field 'clean_text' is missing",
    ),
    "bert normalizer null": (
        bert_document(normalizer={**BERT_NORMALIZER, "lowercase": None}),
        "normalizer.lowercase: expected true or false",
    ),
    "word piece decoder without options": (
        bert_document(decoder={"type": "WordPiece", "prefix": "##"}),
        "decoder: the field 'cleanup' is missing",
    ),
    "delimiter of two characters": (
        document(pre_tokenizer={"type": "CharDelimiterSplit", "delimiter": "ab"}),
        "pre_tokenizer.delimiter: expected a string of one character",
    ),
    "normalizer as text": (document(normalizer="NFC"), "normalizer: expected a normalizer"),
    "normalizer without type": (document(normalizer={"prepend": "x"}), "normalizer: expected a normalizer"),
    "replace without pattern": (document(normalizer={"type": "Replace", "content": ""}), "'pattern' is missing"),
    "pattern of two kinds": (
        document(pre_tokenizer={**SPLIT, "pattern": {"String": "a", "Regex": "b"}}),
        "pre_tokenizer.pattern: expected",
    ),
    "behavior": (
        document(pre_tokenizer={**SPLIT, "behavior": "isolated"}),
        "pre_tokenizer.behavior: expected one of Removed, Isolated",
    ),
    "byte level without options": (document(pre_tokenizer={"type": "ByteLevel"}), "'add_prefix_space' is missing"),
    "use_regex null": (document(pre_tokenizer={**BYTE_LEVEL, "use_regex": None}), "use_regex: expected true"),
    "metaspace contradiction": (
        document(pre_tokenizer={"type": "Metaspace", "replacement": "_", "add_prefix_space": False}),
        "add_prefix_space is false but prepend_scheme is 'always'",
    ),
    "metaspace of two characters": (
        document(decoder={"type": "Metaspace", "replacement": "__"}),
        "decoder.replacement: expected a string of one character",
    ),
    "null in a sequence": (
        document(pre_tokenizer={"type": "Sequence", "pretokenizers": [None]}),
        r"pre_tokenizer.pretokenizers\[0\]: expected a pre-tokenizer",
    ),
    "template token unknown": (
        document(post_processor={**TEMPLATE, "special_tokens": {}}),
        r"post_processor.single\[0\].SpecialToken.id: the template names the token 'x'",
    ),
    "template id outside": (
        document(post_processor={**TEMPLATE, "special_tokens": {"x": {"id": "x", "ids": [9], "tokens": ["x"]}}}),
        r"post_processor.special_tokens.x.ids\[0\]: the id 9 is neither",
    ),
    "template ids without tokens": (
        document(post_processor={**TEMPLATE, "special_tokens": {"x": {"id": "x", "ids": [1], "tokens": []}}}),
        "1 ids but 0 tokens",
    ),
    "template without pair": (document(post_processor={**TEMPLATE, "pair": None}), "pair: expected an array"),
    "template piece": (document(post_processor={**TEMPLATE, "single": ["$A"]}), r"single\[0\]: expected"),
    "template with B alone": (
        document(post_processor={**TEMPLATE, "single": [{"Sequence": {"id": "B", "type_id": 0}}]}),
        "the template for one sequence uses sequence B",
    ),
    "roberta without id": (document(post_processor={**ROBERTA, "sep": ["c"]}), "post_processor.sep: expected"),
    "roberta id outside": (document(post_processor={**ROBERTA, "sep": ["c", 77]}), "the id 77 is neither"),
    "two kinds of post-processor": (document(post_processor={**ROBERTA, "type": "ByteLevel"}), "must not have"),
    "strip decoder": (
        document(decoder={"type": "Strip", "content": "a", "start": -1, "stop": 0}),
        "decoder.start: expected an integer",
    ),
    "truncation": (document(truncation={"max_length": 5}), "truncation: the field 'strategy' is missing"),
    "padding": (document(padding={"strategy": "Longest"}), "padding.strategy: expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_documents_name_the_place(name):
    value, message = REFUSED[name]
    with pytest.raises((FormatError, UnsupportedError), match=f"^t.json: .*{message}"):
        read(value)


def test_refused_documents_that_the_reference_loads():
    """Refused here although the reference loads them: each for a reason."""
    loads = set()
    for name, (value, _) in REFUSED.items():
        if "cut in" in name:
            continue  # this one takes the whole process down
        if reference(json.dumps(value)) not in (None, "panic"):
            loads.add(name)
    assert loads == {
        "duplicate ids",  # which merges apply would be left to chance
        "large id",  # out of proportion
        "normalizer without type",  # of no known version
        "template token unknown",  # it panics when used
        "template with B alone",  # it panics when used
        "template id outside",  # an id that no model has a row for
        "template ids without tokens",
        "roberta id outside",
        "two kinds of post-processor",  # read as another type than it says
    }


UNSUPPORTED = {
    "normalizer": (
        document(normalizer={"type": "Sequence", "normalizers": [{"type": "Other"}]}),
        r"normalizer.normalizers\[0\]: the normalizer Other is not supported",
    ),
    "pre-tokenizer": (document(pre_tokenizer={"type": "Other"}), "pre-tokenizer Other is not supported"),
    "decoder": (document(decoder={"type": "Other"}), "decoder: the decoder Other is not supported"),
    "post-processor": (document(post_processor={"type": "Other"}), "post-processor Other is not supported"),
    "two templates": (
        document(post_processor={"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]}),
        "a template takes one part or two",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_components_are_refused_by_name(name):
    value, message = UNSUPPORTED[name]
    with pytest.raises(UnsupportedError, match=message):
        read(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "truncated"),
        (json.dumps(document()).encode()[:-40], "truncated"),
        (json.dumps(document()).encode() + b"x", "Extra data"),
        (b'{"model": nul}', "line 1, column 11"),
        (b'{"model": NaN}', "NaN is not JSON"),
        (b'{"model": -Infinity}', "-Infinity is not JSON"),
        (b'{"model": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"model": "\xff"}', "not UTF-8 at byte 11"),
        (b'{"model": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"model": "\\ud800"}', "surrogate"),
        (b'{"model": "\\udc00"}', "surrogate"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        ('{"model": 1}'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_files_that_are_not_json(data, message):
    with pytest.raises(FormatError, match=message):
        tokenizer_json.read(data, "t.json")


def test_punctuation_is_what_the_reference_cuts_at():
    every = [chr(codepoint) for codepoint in range(0x20000) if not 0xD800 <= codepoint < 0xE000]
    pieces = tokenizers.pre_tokenizers.Punctuation("isolated").pre_tokenize_str("a" + "a".join(every) + "a")
    cut = {piece for piece, _ in pieces if len(piece) == 1 and piece != "a"}
    inside = intervals.contains(bert.punctuation(), np.array([ord(character) for character in every], np.int32))
    assert {character for character, is_member in zip(every, inside, strict=True) if is_member} == cut


def test_deeply_nested_sequences():
    node: dict = {"type": "NFC"}
    for _ in range(50):
        node = {"type": "Sequence", "normalizers": [node]}
    assert len(read(document(normalizer=node)).normalizers) == 1
    for _ in range(50):
        node = {"type": "Sequence", "normalizers": [node]}
    with pytest.raises(FormatError, match="nested more than"):
        read(document(normalizer=node))


def test_surrogate_pairs_and_escapes_are_read():
    data = b'{"model": {"vocab": {"\\ud83d\\ude00": 0, "\\u0000": 1}, "merges": []}}'
    spec = tokenizer_json.read(data, "t.json")
    assert dict(spec.model.vocab) == {"\U0001f600": 0, "\0": 1}


def test_write_refuses_what_the_format_cannot_say():
    spec = read(document())
    with pytest.raises(UnsupportedError, match="byte ranks"):
        tokenizer_json.write(TokenizerSpec(RankModel({b"a": 0})))
    with pytest.raises(UnsupportedError, match="keep the ids"):
        tokenizer_json.write(TokenizerSpec(spec.model, added_tokens=(AddedToken(77, "<x>"),)))
    with pytest.raises(UnsupportedError, match="rust dialect"):
        tokenizer_json.write(TokenizerSpec(spec.model, pre_tokenizers=(Split("a", dialect="rust"),)))


def test_write_keeps_template_tokens_of_one_name_apart():
    spec = read(document())
    pieces = (
        TemplatePiece(0, None, (3,), ("c",)),
        TemplatePiece(0, "A"),
        TemplatePiece(1, None, (0,), ("c",)),
        TemplatePiece(2, None, (3,), ("c",)),
    )
    spec = TokenizerSpec(spec.model, post_processors=(Template(pieces, pieces),))
    assert read(json.loads(tokenizer_json.write(spec))).post_processors == spec.post_processors


RICH = document(
    added_tokens=[added("<x>", 9, special=True), added("c", 3, lstrip=True, normalized=True)],
    normalizer={
        "type": "Sequence",
        "normalizers": [
            {"type": "NFC"},
            {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "Replace", "pattern": {"String": "o"}, "content": "a"},
            {"type": "Prepend", "prepend": "a"},
            {"type": "Lowercase"},
        ],
    },
    pre_tokenizer={
        "type": "Sequence",
        "pretokenizers": [
            SPLIT,
            {"type": "Digits", "individual_digits": True},
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True},
            BYTE_LEVEL,
        ],
    },
    post_processor={"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]},
    decoder={
        "type": "Sequence",
        "decoders": [
            BYTE_LEVEL,
            {"type": "Strip", "content": "a", "start": 1, "stop": 0},
            {"type": "Replace", "pattern": {"Regex": "b+"}, "content": " "},
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": True},
            {"type": "BPEDecoder", "suffix": "</w>"},
        ],
    },
    model_merges=[["a", "b"], ["ab", "c"]],
    model_vocab={"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4},
    model_unk_token="b",
    model_fuse_unk=False,
    model_byte_fallback=False,
    model_ignore_merges=False,
    model_dropout=None,
    model_continuing_subword_prefix="",
    model_end_of_word_suffix="",
)


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Every path in a JSON value, the root excepted."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found.append((*path, key))
        found.extend(places(child, (*path, key)))
    return found


ROBERTA_RICH = {**RICH, "post_processor": ROBERTA}
BERT_RICH = bert_document(added_tokens=RICH["added_tokens"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, 3, 4, 5, -1, 1.5, 1 << 24, 1 << 33]),
    st.sampled_from(["", "a", "b", "ab", "x", " ", "Sequence", "BPE", "NFC", "ByteLevel", "Isolated", "never"]),
    st.sampled_from([[], {}, ["a", "b"], [["a", "b"]], {"String": "a"}, {"Regex": "[ab]+"}, {"a": 0}]),
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutated_documents_are_read_as_the_reference_reads_them_or_refused(data):
    document_ = copy.deepcopy(data.draw(st.sampled_from([RICH, ROBERTA_RICH, BERT_RICH])))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document_)))
        target = document_
        for key in path[:-1]:
            target = target[key]
        action = data.draw(st.sampled_from(["delete", "replace", "replace", "rename"]))
        if action == "delete":
            del target[path[-1]]
        elif action == "rename" and isinstance(target, dict):
            target[data.draw(st.sampled_from(["x", "type", "ab", "id", "merges"]))] = target.pop(path[-1])
        else:
            target[path[-1]] = copy.deepcopy(data.draw(VALUES))
    text = json.dumps(document_)
    try:
        spec = tokenizer_json.read(text.encode(), "t.json")
    except JittokError as error:
        assert str(error).startswith("t.json: ")
        return
    expected = reference(text)
    assert expected is not None, "read, but the reference refuses it"
    if expected == "panic":
        return
    again = reference(tokenizer_json.write(spec))
    assert again is not None
    if len(set(spec.model.vocab.values())) != len(spec.model.vocab):
        return  # the reference decodes by chance
    texts = ("", "abc ab1 o<x> C  c", "b<x>ba_")
    assert behaviour(again, texts) == behaviour(expected, texts)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_files_give_jittok_errors(data):
    original = json.dumps(RICH).encode()
    start = data.draw(st.integers(0, len(original)))
    stop = data.draw(st.integers(start, min(len(original), start + 30)))
    damaged = original[:start] + data.draw(st.binary(max_size=6)) + original[stop:]
    try:
        tokenizer_json.read(damaged, "t.json")
    except JittokError as error:
        assert str(error).startswith("t.json: ")


@needs_cases
def test_reported_load_errors():
    lines = (Path(CASES) / "cases" / "reported_faults.jsonl").read_text().splitlines()
    seen = 0
    for case in map(json.loads, lines):
        inline = case["model"].get("tokenizer_json") if isinstance(case["model"], dict) else None
        if inline is None or case["op"] not in ("load_error", "load_ok"):
            continue
        split = (inline.get("pre_tokenizer") or {}).get("pattern", {})
        if "Regex" in split:
            continue  # a regex is compiled when the tables are built
        seen += 1
        if case["op"] == "load_error":
            with pytest.raises(JittokError):
                read(inline)
        else:
            read(inline)
    assert seen


# -------------------------------------------------------------------------------------- vocab.json + merges


def byte_letters() -> list[str]:
    spec_vocab = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    return sorted(spec_vocab)


def write_pair(directory: Path, extra_tokens=(), merges=("h e", "he l", "\u0120 w"), **files: object) -> Path:
    directory.mkdir(exist_ok=True)
    tokens = [*byte_letters(), "he", "hel", "\u0120w", *extra_tokens]
    (directory / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), "utf-8")
    (directory / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", "utf-8", newline="\n")
    for name, value in files.items():
        (directory / f"{name}.json").write_text(json.dumps(value))
    return directory


def test_pair_without_configuration(tmp_path):
    spec = read_spec(write_pair(tmp_path / "a"))
    assert spec.source_format == "merges" and spec.added_tokens == () and spec.post_processors == ()
    assert spec.pre_tokenizers == (ByteLevel(add_prefix_space=False),)
    assert spec.model.merges == (("h", "e"), ("he", "l"), ("\u0120", "w"))
    spec = read_spec(write_pair(tmp_path / "b", ["<|endoftext|>", "<s>"]))
    assert [token.content for token in spec.added_tokens] == ["<|endoftext|>"]
    spec = read_spec(write_pair(tmp_path / "c", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]))
    assert [token.content for token in spec.added_tokens] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert [token.content for token in spec.added_tokens if token.lstrip] == ["<mask>"]
    assert spec.post_processors == ()


def test_pair_files_by_name(tmp_path):
    directory = write_pair(tmp_path)
    spec = read_spec(directory)
    assert read_spec(directory / "vocab.json") == read_spec(directory / "merges.txt") == spec
    (directory / "vocab.json").rename(directory / "encoder.json")
    (directory / "merges.txt").rename(directory / "vocab.bpe")
    assert read_spec(directory) == read_spec(directory / "vocab.bpe") == spec
    (directory / "encoder.json").rename(directory / "my-vocab.json")
    (directory / "vocab.bpe").rename(directory / "my-merges.txt")
    assert read_spec(directory / "my-vocab.json") == read_spec(directory / "my-merges.txt") == spec


def test_pair_with_odd_line_separators(tmp_path):
    """Letters at which str.splitlines cuts are not line ends; blank lines and CRLF are harmless."""
    vocab = {"\u0085": 0, "\u2028": 1, "\u0085\u2028": 2, "a": 3, "aa": 4}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_bytes("#version: 0.2\n\n\u0085 \u2028\r\n\na a".encode())
    assert read_spec(tmp_path).model.merges == (("\u0085", "\u2028"), ("a", "a"))


def test_gpt2_class_with_tokens_in_every_file(tmp_path):
    """Which file wins, the order of adding and the flags; values as transformers 5.24 gives them."""
    config = {
        "tokenizer_class": "GPT2Tokenizer",
        "pad_token": "<pad>",
        "additional_special_tokens": ["<a>", "<b>"],
    }
    eos = {"content": "<eos>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
    directory = write_pair(
        tmp_path / "map",
        ["<|endoftext|>"],
        tokenizer_config=config,
        special_tokens_map={"pad_token": "<PAD>", "eos_token": eos},
        added_tokens={"<PAD>": 261, "<new>": 260},
    )
    spec = read_spec(directory)
    size = len(spec.model.vocab)
    assert [(token.content, token.id - size) for token in spec.added_tokens] == [
        ("<|endoftext|>", -1),
        ("<new>", 0),
        ("<PAD>", 1),
        ("<eos>", 2),
        ("<a>", 3),
        ("<b>", 4),
    ]
    flags = {token.content: token for token in spec.added_tokens}
    assert flags["<eos>"].lstrip and flags["<eos>"].special
    assert not flags["<new>"].special and flags["<new>"].normalized
    assert flags["<PAD>"].special and not flags["<PAD>"].normalized
    assert spec.extra["special_tokens"]["pad_token"] == "<PAD>"
    decoder = {"300": {"content": "<x>", "rstrip": True, "normalized": True}}
    directory = write_pair(
        tmp_path / "decoder",
        ["<|endoftext|>"],
        tokenizer_config={**config, "added_tokens_decoder": decoder, "pad_token": "<x>", "add_bos_token": True},
        special_tokens_map={"pad_token": "<ignored>"},
    )
    spec = read_spec(directory)
    assert [(token.content, token.id - size) for token in spec.added_tokens] == [
        ("<|endoftext|>", -1),
        ("<x>", 0),
        ("<a>", 1),
        ("<b>", 2),
    ]
    assert spec.added_tokens[1] == AddedToken(size, "<x>", special=True, rstrip=True, normalized=True)
    bos = (size - 1,)
    assert [piece.ids for piece in spec.post_processors[0].pair] == [bos, (), bos, ()]
    assert [piece.type_id for piece in spec.post_processors[0].pair] == [0, 0, 1, 1]


@needs_data
@pytest.mark.parametrize(
    ("model", "class_name"),
    [
        ("gpt2", "GPT2Tokenizer"),
        ("roberta-base", "RobertaTokenizerFast"),
        ("clip", "CLIPTokenizer"),
        ("whisper-large-v3", "WhisperTokenizer"),
    ],
)
def test_real_pairs_equal_their_tokenizer_json(model, class_name, tmp_path):
    source = Path(DATA) / "models" / "bbpe" / model
    whole = json.loads((source / "tokenizer.json").read_text("utf-8"))
    (tmp_path / "vocab.json").write_text(json.dumps(whole["model"]["vocab"]))
    (tmp_path / "merges.txt").write_text("\n".join(whole["model"]["merges"]), "utf-8", newline="\n")
    config = source / "tokenizer_config.json"
    settings_ = json.loads(config.read_text("utf-8")) if config.exists() else {}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings_, "tokenizer_class": class_name}))
    spec = read_spec(tmp_path)
    assert spec.extra["tokenizer_class"] == class_name
    expected = reference((source / "tokenizer.json").read_bytes())
    assert behaviour(reference(tokenizer_json.write(spec))) == behaviour(expected)


@needs_data
def test_real_pair_equals_the_reference_reader(tmp_path):
    source = Path(DATA) / "models" / "bbpe" / "robbert-1000"
    spec = read_spec(source)
    expected = tokenizers.Tokenizer(
        tokenizers.models.BPE.from_file(str(source / "vocab.json"), str(source / "merges.txt"))
    )
    expected.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    expected.decoder = tokenizers.decoders.ByteLevel()
    assert behaviour(reference(tokenizer_json.write(spec))) == behaviour(expected)


def test_model_type_of_config_names_the_class(tmp_path):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    spec = read_spec(write_pair(tmp_path / "r", tokens, config={"model_type": "roberta"}))
    assert isinstance(spec.post_processors[0], TrimOffsets)
    assert {token.content for token in spec.added_tokens if token.lstrip} == {"<mask>"}
    spec = read_spec(write_pair(tmp_path / "q", config={"model_type": "qwen2"}))
    assert [token.content for token in spec.added_tokens] == ["<|endoftext|>"]
    with pytest.raises(UnsupportedError, match="'t5' models"):
        read_spec(write_pair(tmp_path / "t", config={"model_type": "t5"}))


def test_bad_pairs(tmp_path):
    cases = {
        "class": ({"tokenizer_config": {"tokenizer_class": "T5Tokenizer"}}, UnsupportedError, "T5Tokenizer"),
        "config": ({"tokenizer_config": []}, FormatError, "tokenizer_config.json: top level: expected an object"),
        "flag": (
            {"tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": "no"}},
            FormatError,
            "add_prefix_space: expected true or false",
        ),
        "token": (
            {"tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", "pad_token": 5}},
            FormatError,
            "pad_token: expected an object",
        ),
        "decoder": (
            {"tokenizer_config": {"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"-1": {}}}},
            FormatError,
            "expected ids below",
        ),
        "added": ({"added_tokens": {"<x>": "5"}}, FormatError, "added_tokens.json: <x>: expected an integer"),
        "map": ({"special_tokens_map": {"pad_token": {}}}, FormatError, "'content' is missing"),
        "whisper": (
            {"tokenizer_config": {"tokenizer_class": "WhisperTokenizer"}},
            FormatError,
            r"<\|startoftranscript\|>",
        ),
        "language": (
            {"tokenizer_config": {"tokenizer_class": "WhisperTokenizer", "language": "french"}},
            UnsupportedError,
            "language",
        ),
    }
    for name, (files, error, message) in cases.items():
        with pytest.raises(error, match=message):
            read_spec(write_pair(tmp_path / name, **files))
    for name, merges, message in (
        ("three", ["h e", "h e l"], "merges.txt: line 3: expected two tokens"),
        ("unknown", ["h e", "", "he y\u4e00"], "merges.txt: line 4: the part"),
        ("result", ["z z"], "merges.txt: line 2: the result"),
    ):
        with pytest.raises(FormatError, match=message):
            read_spec(write_pair(tmp_path / name, merges=merges))
    directory = write_pair(tmp_path / "bytes")
    (directory / "merges.txt").write_bytes(b"h e\n\xff \xfe\n")
    with pytest.raises(FormatError, match=r"merges.txt: not UTF-8 at byte 4"):
        read_spec(directory)
    (directory / "merges.txt").unlink()
    with pytest.raises(MissingFileError, match=r"merges\.txt"):
        read_spec(directory)
    with pytest.raises(MissingFileError, match=r"merges\.txt"):
        read_spec(directory / "vocab.json")
    with pytest.raises(UnsupportedError, match="</w>"):
        read_spec(write_pair(tmp_path / "suffix", ["a</w>", "e</w>"]))


# ---------------------------------------------------------------------------------------------- tiktoken

RANKS = b"".join(base64.b64encode(bytes((value,))) + b" %d\n" % value for value in range(256))


def test_known_encodings_are_those_of_tiktoken(monkeypatch):
    public = pytest.importorskip("tiktoken_ext.openai_public", reason="tiktoken is not installed")
    hashes = {}
    monkeypatch.setattr(
        public, "load_tiktoken_bpe", lambda url, expected_hash: hashes.setdefault("last", expected_hash) and {}
    )
    monkeypatch.setattr(public, "data_gym_to_mergeable_bpe_ranks", lambda **arguments: {})
    assert set(tiktoken_file.ENCODINGS) - {"llama3", "kimi_k2"} == set(public.ENCODING_CONSTRUCTORS)
    for name, constructor in public.ENCODING_CONSTRUCTORS.items():
        hashes.clear()
        expected = constructor()
        encoding = tiktoken_file.ENCODINGS[name]
        assert encoding.pattern == expected["pat_str"]
        assert encoding.special_tokens == expected["special_tokens"]
        assert hashes.get("last", encoding.sha256) == encoding.sha256


@needs_data
@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_known_files(name):
    load = pytest.importorskip("tiktoken.load", reason="tiktoken is not installed").load_tiktoken_bpe
    path = Path(DATA) / "models" / "tiktoken" / name / f"{name}.tiktoken"
    spec = read_spec(path)
    assert spec.extra == {"encoding": name}
    assert spec.default_special == "raise" and spec.reference == "tiktoken"
    assert spec.model.ranks == load(str(path))
    assert tiktoken_file.write(spec) == path.read_bytes()
    assert {t.content: t.id for t in spec.added_tokens} == tiktoken_file.ENCODINGS[name].special_tokens
    if name == "p50k_base":
        assert len(read_spec(path, pattern="p50k_edit").added_tokens) == 4
    if name == "o200k_base":
        # Two names share an id there.
        ids = [token.id for token in read_spec(path, pattern="o200k_harmony").added_tokens]
        assert ids == sorted(ids) and ids.count(200018) == 2


@needs_data
def test_the_rank_file_of_llama_3_is_known(tmp_path):
    path = Path(DATA) / "models" / "bbpe" / "llama3" / "tokenizer.json"
    if not path.exists():
        pytest.skip("llama3 is not among the models in JITTOK_TEST_DATA")
    tok = jittok.load(path)
    tok.save(tmp_path / "tokenizer.model", "tiktoken", exact=True, template=False)
    spec = read_spec(tmp_path / "tokenizer.model")
    assert spec.extra == {"encoding": "llama3"}
    assert {t.content: t.id for t in spec.added_tokens} == {t.content: t.id for t in tok.spec.added_tokens}
    assert spec.pre_tokenizers[0].pattern == tok.spec.pre_tokenizers[0].pattern


@needs_data
def test_the_rank_file_of_kimi_is_known(tmp_path):
    path = Path(DATA) / "models" / "tiktoken" / "kimi-k2" / "kimi_k2.tiktoken"
    if not path.exists():
        pytest.skip("kimi-k2 is not among the models in JITTOK_TEST_DATA")
    spec = read_spec(path, special_tokens={})
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    theirs = tiktoken.Encoding(
        "kimi", pat_str=spec.pre_tokenizers[0].pattern, mergeable_ranks=spec.model.ranks, special_tokens={}
    )
    ours = jittok.load(path, special_tokens={})
    for text in ("漢字 kanji's 12345 HELLOWorld", "  a\n\n b漢B字ı", "中文English中文 don't"):
        assert ours.encode(text).ids.tolist() == theirs.encode(text)
    with pytest.raises(FormatError, match="tokenizer_config.json beside it"):
        read_spec(path)


def test_special_tokens_of_a_rank_file_may_stand_beside_it(tmp_path):
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(RANKS)
    flags = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    config = {"added_tokens_decoder": {"301": {"content": "<b>", **flags}, "300": {"content": "<a>", **flags}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    spec = read_spec(path, pattern="cl100k")
    assert [(token.id, token.content) for token in spec.added_tokens] == [(300, "<a>"), (301, "<b>")]
    assert read_spec(path, pattern="cl100k", special_tokens={}).added_tokens == ()
    (tmp_path / "tokenizer_config.json").write_text('{"added_tokens_decoder": {"x": {}}}')
    with pytest.raises(FormatError, match="tokenizer_config.json"):
        read_spec(path, pattern="cl100k")


def test_a_stored_dropout_is_kept_for_samples(tmp_path):
    """Ids are those without dropout, as settings of a call are never stored; samples take it for their default."""
    (tmp_path / "x.json").write_text(json.dumps(document(model_dropout=0.25)))
    tok = jittok.load(tmp_path / "x.json")
    assert tok.spec.extra == {"dropout": 0.25}
    text = "lower newer"
    assert tok.encode(text) == jittok.load_bytes(json.dumps(document()).encode()).encode(text)
    drawn = [tok.sample_encode(text, seed=seed).ids.tolist() for seed in range(50)]
    assert drawn == [tok.sample_encode(text, seed=seed, dropout=0.25).ids.tolist() for seed in range(50)]
    tok.save(tmp_path / "y.json")
    assert json.loads((tmp_path / "y.json").read_text())["model"]["dropout"] == 0.25


def test_unknown_rank_file_says_what_to_pass(tmp_path):
    path = tmp_path / "mine.model"
    path.write_bytes(RANKS)
    assert detect_format(path) == "tiktoken"
    with pytest.raises(FormatError, match="pass pattern= .* and special_tokens="):
        read_spec(path)
    with pytest.raises(FormatError, match="pass special_tokens="):
        read_spec(path, pattern="cl100k")
    with pytest.raises(FormatError, match="pass pattern="):
        read_spec(path, special_tokens={})
    spec = read_spec(path, pattern="cl100k", special_tokens={"<b>": 300, "<a>": 299})
    assert spec.pre_tokenizers == (Split(tiktoken_file.ENCODINGS["cl100k_base"].pattern, dialect="rust"),)
    assert spec.added_tokens == (
        AddedToken(299, "<a>", special=True, normalized=False),
        AddedToken(300, "<b>", special=True, normalized=False),
    )
    assert read_spec(path, pattern=r"\s+|\S+", special_tokens={}).pre_tokenizers[0].pattern == r"\s+|\S+"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n\n", "no tokens"),
        (RANKS + b"QUI= 300\nQUI= 301\n", "b'AB' comes twice"),
        (RANKS + b"QUI= 3\n", "two tokens have the rank 3"),
        (RANKS + b"QUI 300\n", "line 257: b'QUI 300' is not a token"),
        (RANKS + b"QUI=\n", "line 257"),
        (RANKS + b"QUI= 300 5\n", "line 257"),
        (RANKS + b"QUI=300\n", "line 257"),
        (RANKS + b"QUI=  300\n", "line 257"),
        (RANKS + b"\n\nQUI= x\n", "line 259"),
        (RANKS + b"QUI= -3\n", "line 257: unexpected byte b'-'"),
        (RANKS + b"QUI=\t300\n", "line 257: unexpected byte"),
        (RANKS + b" 300\n", "line 257"),
        (RANKS + b"==== 300\n", "line 257"),
        (RANKS + b"Q=I= 300\n", "line 257"),
        (RANKS + b"QU=I 300\n", "line 257"),
        (RANKS + b"A=BC 300\n", "line 257"),
        (RANKS + b"QUI= 123456789\n", "line 257"),
        (RANKS + b"QUI= 99999999\n", "ranks below"),
        (RANKS + b"QUI=\n300 QUJD\n301\n", "line 257"),
        (RANKS + b"QUJD", "line 257"),
        (RANKS[:-9], "single bytes are no tokens"),
    ],
)
def test_bad_rank_files(data, message):
    with pytest.raises(FormatError, match=f"^r: .*{message}"):
        tiktoken_file.read(data, "r", pattern="cl100k", special_tokens={})


@pytest.mark.parametrize("data", [RANKS, RANKS[:-1], RANKS.replace(b"\n", b"\r\n"), b"\n" + RANKS + b"\n\n"])
def test_line_ends_of_rank_files(data):
    assert tiktoken_file.parse_ranks(data, "r") == {bytes((value,)): value for value in range(256)}


@given(st.binary(max_size=40), st.integers(0, len(RANKS)))
def test_damaged_rank_files(junk, position):
    load = pytest.importorskip("tiktoken.load", reason="tiktoken is not installed")
    data = RANKS[:position] + junk + RANKS[position:]
    try:
        ranks = tiktoken_file.parse_ranks(data, "r")
    except JittokError as error:
        assert str(error).startswith("r: ")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "read_file_cached", lambda *arguments: data)
        assert load.load_tiktoken_bpe("r") == ranks


@pytest.mark.parametrize(
    ("special", "error", "message"),
    [
        ({"<x>": 3}, FormatError, "has id 3, which is also a rank"),
        ({"<x>": -1}, FormatError, "has id -1"),
        ({"<x>": 1 << 24}, FormatError, "expected 0 to"),
        ({"": 300}, FormatError, "empty string"),
        ({"<x>": "300"}, ArgumentTypeError, "got the entry"),
        ({5: 300}, ArgumentTypeError, "got the entry"),
        (["<x>"], ArgumentTypeError, "must be a dict"),
    ],
)
def test_bad_special_tokens(special, error, message):
    with pytest.raises(error, match=message):
        tiktoken_file.read(RANKS, "r", pattern="cl100k", special_tokens=special)


def test_rank_files_hold_only_ranks():
    with pytest.raises(UnsupportedError, match="byte ranks"):
        tiktoken_file.write(read(document()))


# --------------------------------------------------------------------------------------------- detection


def safetensors(metadata: dict) -> bytes:
    header = json.dumps({"__metadata__": metadata}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 16


TOKEN_BYTES = {"rank": 0, "token_bytes": "AA==", "token_str": "\0"}
CONTENTS = {
    "tokenizer.json": json.dumps(document()).encode(),
    "merges": b'{"a": 0, "b": 1}',
    "tiktoken": RANKS,
    "jittok": safetensors({"format": "jittok", "version": "1"}),
    "sentencepiece": b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02\x0a\x0c\x0a\x03<s>",
    "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\nthe\n##s\n",
    "tekken": json.dumps({"config": {"pattern": "a"}, "vocab": [TOKEN_BYTES]}).encode(),
    "gguf": b"GGUF\x03\0\0\0" + b"\0" * 40,
}


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "marian"])  # that is a directory
def test_content_decides_the_format(name, tmp_path):
    for suffix in ("json", "txt", "model", "tiktoken", "dat"):
        path = tmp_path / f"file.{suffix}"
        path.write_bytes(CONTENTS[name])
        if name == "merges" and suffix != "json":
            continue  # a vocab.json without that suffix has no partner
        assert detect_format(str(path)) == detect_format(path) == name


@pytest.mark.parametrize("name", ["jittok"])
def test_formats_not_read_here_are_named(name, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENTS[name])
    with pytest.raises(UnsupportedError, match=name):
        read_spec(path)


def test_first_fields_of_a_tokenizer_json(tmp_path):
    path = tmp_path / "t.json"
    for key in document():
        reordered = {key: document()[key], **document()}
        path.write_text(json.dumps(reordered, indent=2))
        assert detect_format(path) == "tokenizer.json"
    path.write_text(json.dumps({"future": 1, **document()}))
    with pytest.raises(UnsupportedError, match="future"):
        read_spec(path, format="tokenizer.json")
    path.write_text(json.dumps({"future": [], **document()}))
    with pytest.raises(UnsupportedError, match="future"):
        read_spec(path)
    path.write_text('{"model": 7, "version": 8}')  # a vocabulary with such tokens
    assert detect_format(path) == "merges"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FormatError, "empty"),
        (b"\0" * 100, UnknownFormatError, "not a tokenizer file"),
        (b"some prose of three words\nand more\n", UnknownFormatError, "known formats are"),
        (b"\x80\x81\x82", UnknownFormatError, "not a tokenizer file"),
        (b"\x1f\x8b\x08\0", UnknownFormatError, "compressed"),
        (b"PK\x03\x04...", UnknownFormatError, "archive"),
        (safetensors({"format": "pt"}), UnknownFormatError, "safetensors"),
        (b'{"tokenizer_class": "GPT2Tokenizer"}', UnknownFormatError, "pass the directory"),
        (b"{}", UnknownFormatError, "JSON, but"),
        (b"{not json", FormatError, "not valid JSON"),
        (b'{"version": "1.0", "trunc', FormatError, "truncated"),
        (b"\xef\xbb\xbf" + b'{"version": "1.0"}', FormatError, "byte-order mark"),
        (b"#version: 0.2\na b\n", FormatError, "merges without their vocabulary"),
        (b"[1, 2, 3]", UnknownFormatError, "not a tokenizer file"),
    ],
)
def test_files_that_are_no_tokenizers(content, error, message, tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_spec(path)


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(MissingFileError, match="no such file"):
        read_spec(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        detect_format(str(tmp_path / "none.json"))
    with pytest.raises(MissingFileError, match="no tokenizer in this directory; looked for vocab.json"):
        read_spec(tmp_path)
    with pytest.raises(MissingFileError):
        read_spec("a\0b")
    with pytest.raises(ArgumentTypeError, match="must be a str or a path"):
        read_spec(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError):
        read_spec(b"path")  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read everything")
def test_file_without_permission(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(MissingFileError, match="Permission"):
        read_spec(path)


def test_directories(tmp_path):
    ranks = tmp_path / "original" / "tokenizer.model"
    ranks.parent.mkdir()
    ranks.write_bytes(RANKS)
    assert locate(ranks.parent) == ("tiktoken", ranks)
    (ranks.parent / "other.model").write_bytes(CONTENTS["sentencepiece"])
    with pytest.raises(FormatError, match=r"several tokenizer files \(other.model, tokenizer.model\)"):
        locate(ranks.parent)
    assert locate(ranks.parent, "tiktoken") == ("tiktoken", ranks)
    assert locate(ranks.parent, "sentencepiece")[1].name == "other.model"
    with pytest.raises(MissingFileError, match="looked for a gguf file"):
        locate(ranks.parent, "gguf")
    pair = write_pair(tmp_path / "pair")
    assert locate(pair) == ("merges", pair / "vocab.json")
    (pair / "tokenizer.json").write_text(json.dumps(document()))
    assert locate(pair) == ("tokenizer.json", pair / "tokenizer.json")
    assert read_spec(pair).source_format == "tokenizer.json"
    assert read_spec(pair, format="merges").source_format == "merges"


def test_arguments(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document()))
    with pytest.raises(ArgumentError, match="unknown format 'hf'; expected one of tokenizer.json"):
        read_spec(path, format="hf")
    with pytest.raises(ArgumentError, match="pattern= and special_tokens= are for tiktoken files"):
        read_spec(path, pattern="cl100k")
    with pytest.raises(FormatError):
        read_spec(path, format="tiktoken", pattern="cl100k", special_tokens={})


def test_reader_of_merges_reports_lines():
    with pytest.raises(FormatError, match="m: line 2"):
        merges_txt.read_merges(b"a b\na", "m", {"a": 0, "b": 1, "ab": 2})
