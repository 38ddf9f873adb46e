"""Assertions of sentencepiece's own tests: of its models, its normalizer and its Python class."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest
from sentencepiece_files import content
from test_cases import cases

import jittok
from jittok.build.charsmap import compile_charsmap, named_charsmap
from jittok.formats.sentencepiece_model import make_spec
from jittok.rewriting import build_rewriter
from jittok.spec import PieceType, SentencePieceNormalizer
from jittok.tokenizer import Tokenizer

VERSIONS = ("", "_0_2_3")
PLAIN = SentencePieceNormalizer(add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False)


# ---------------------------------------------------------------------------------------------------------- models


def joined_unknowns(tokens, pieces):
    """Models give unknown characters one by one; a tokenizer joins neighbours."""
    known = {piece for piece, _, kind in pieces if kind not in ("UNKNOWN", "UNUSED")}
    result, was_unknown = [], False
    for token in tokens:
        if was_unknown and token not in known:
            result[-1] += token
        else:
            result.append(token)
        was_unknown = token not in known
    return result


@pytest.mark.parametrize(
    "record", [case for version in VERSIONS for case in cases(f"sentencepiece_models_cc{version}", lambda r: True)]
)
def test_models(record):
    assert record.get("trainer_spec") is None
    pieces = [(piece, score, PieceType[kind]) for piece, score, kind in record["pieces"]]
    tok = Tokenizer(make_spec(record["model_type"], pieces, normalizer=PLAIN))
    expected = joined_unknowns(record["expected_tokens"], record["pieces"])
    enc = tok.encode(record["input"])
    assert enc.tokens == expected
    assert enc.ids.tolist() == [tok.token_to_id(token) or 0 for token in expected]
    if "expected_ids" in record:
        assert enc.ids.tolist() == record["expected_ids"]
    assert tok.encode_batch([record["input"]] * 2).to_lists() == [enc.ids.tolist()] * 2


# ----------------------------------------------------------------------------------------------------- normalizers


@cache
def rules_of(name, rules):
    if rules is None:
        return named_charsmap(name)
    return compile_charsmap(dict(json.loads(rules)))


def byte_map(normalized, spans, text):
    """Where each byte of the result comes from, in bytes, as sentencepiece says it; and one more for the end."""
    at = np.cumsum([0, *(len(character.encode()) for character in text)]).tolist()
    result = []
    for character, (start, _) in zip(normalized, spans.tolist(), strict=True):
        result += [at[start]] * len(character.encode())
    return [*result, at[spans[-1, 1]] if len(spans) else 0]


@pytest.mark.parametrize(
    "record", [case for version in VERSIONS for case in cases(f"sentencepiece_normalizer_cc{version}", lambda r: True)]
)
def test_normalizers(record):
    flags = dict(record["normalizer"])
    rules = rules_of(flags.pop("name"), json.dumps(record["rules"]) if record["rules"] else None)
    rewriter = build_rewriter([SentencePieceNormalizer(rules, **flags)])
    text = record["input"]
    if isinstance(text, dict):
        data = bytes.fromhex(text["bytes_hex"])
        assert rewriter.apply_aligned(data)[0] == record["expected_normalized"]
        return
    assert rewriter.apply_strings([text])[0] == record["expected_normalized"]
    normalized, spans = rewriter.apply_aligned(text.encode())
    assert normalized == record["expected_normalized"]
    if "expected_norm_to_orig_bytes" in record:
        assert byte_map(normalized, spans, text) == record["expected_norm_to_orig_bytes"]


# ------------------------------------------------------------------------------------------------ the Python class

MODEL = "unigram/sentencepiece-test/test_model.model"
JAPANESE = "unigram/sentencepiece-test-ja/test_ja_model.model"


class Processor:
    """What the reference's class of this name does, by jittok."""

    def __init__(self, name):
        self.tok = jittok.load_bytes(content(name))

    def piece_size(self):
        return self.tok.vocab_size

    def piece_to_id(self, piece):
        if isinstance(piece, list):
            return [self.piece_to_id(one) for one in piece]
        found = self.tok.token_to_id(piece)
        return self.tok.spec.model.unk_id if found is None else found

    def special_id(self, name):
        return getattr(self.tok.spec.model, name)

    def encode_as_ids(self, text):
        if isinstance(text, list):
            return [self.encode_as_ids(one) for one in text]
        return self.tok.encode(text).ids.tolist()

    def encode_as_pieces(self, text):
        if isinstance(text, list):
            return [self.encode_as_pieces(one) for one in text]
        return self.tok.encode(text).tokens

    def decode(self, value, **kwargs):
        if value and isinstance(value[0], list):
            return [self.decode(row) for row in value]
        if value and isinstance(value[0], str):
            return self.tok.decode_tokens(value)
        return self.tok.decode(value or [])

    def normalize(self, text, with_offsets=False):
        return normalized_by(self.tok.plan.normalizer, text, with_offsets, escape=True)


FLAGS = ("add_dummy_prefix", "escape_whitespaces", "remove_extra_whitespaces")


class Normalizer:
    """What the reference's class of this name does; flags are by default those of the file, before 0.2.3 they were off."""

    def __init__(self, default, rule_name=None, norm_map=None, **flags):
        [step] = jittok.load_bytes(content(MODEL)).spec.normalizers
        rules = step.charsmap
        if norm_map is not None:
            rules = compile_charsmap(dict(norm_map))
        elif rule_name is not None:
            rules = named_charsmap(rule_name)
        chosen = {name: flags.get(name, default) for name in FLAGS}
        self.rewriter = build_rewriter([SentencePieceNormalizer(rules, **chosen)])

    def normalize(self, text, with_offsets=False):
        return normalized_by(self.rewriter, text, with_offsets)


def normalized_by(rewriter, text, with_offsets, escape=False):
    if isinstance(text, list):
        return [normalized_by(rewriter, one, with_offsets, escape) for one in text]
    normalized, spans = rewriter.apply_aligned(text.encode())
    if escape:
        normalized = normalized.replace(" ", "\u2581")
    if not with_offsets:
        return normalized
    return normalized, Offsets([*spans[:, 0].tolist(), int(spans[-1, 1])], byte_map(normalized, spans, text))


class Offsets(list):
    """Where characters come from; equal to those of bytes as well, as records do not say which were given."""

    def __init__(self, characters, of_bytes):
        super().__init__(characters)
        self.of_bytes = of_bytes

    def __eq__(self, other):
        return list(self) == other or self.of_bytes == other


METHODS = {
    "GetPieceSize": "piece_size", "get_piece_size": "piece_size", "vocab_size": "piece_size",
    "PieceToId": "piece_to_id", "piece_to_id": "piece_to_id",
    "EncodeAsIds": "encode_as_ids", "encode_as_ids": "encode_as_ids", "encode": "encode_as_ids",
    "EncodeAsPieces": "encode_as_pieces", "encode_as_pieces": "encode_as_pieces",
    "DecodePieces": "decode", "decode_pieces": "decode", "DecodeIds": "decode", "decode_ids": "decode", "decode": "decode",
    "Normalize": "normalize", "normalize": "normalize",
}  # fmt: skip


class NotHere(Exception):
    """The record asks for something else than what jittok gives in its own way."""


def evaluate(node, test, since_0_2_3):
    """The value of a recorded expression."""
    if isinstance(node, list):
        return [evaluate(item, test, since_0_2_3) for item in node]
    if not isinstance(node, dict):
        return node
    if "is" in node:
        return evaluate(node["is"], test, since_0_2_3)
    if "index" in node:
        key = node["index"]
        if not re.fullmatch(r"-?\d+", str(key)):
            raise NotHere(f"[{key}]")
        return evaluate(node["of"], test, since_0_2_3)[int(key)]
    if "call" not in node:
        raise NotHere(json.dumps(node)[:60])
    name = node["call"]
    if name == "SentencePieceProcessor":
        text = json.dumps(node.get("kwargs", {}))
        if "model_prefix" in text or "model_proto" in text:
            raise NotHere("another model")
        return Processor(JAPANESE if "test_ja" in text or "_ja_" in test else MODEL)
    arguments = [evaluate(argument, test, since_0_2_3) for argument in node.get("args", [])]
    options = node.get("kwargs", {})
    if name == "SentencePieceNormalizer":
        flags = {**options, **options.get("**", {})}
        flags.pop("**", None)
        model = json.dumps(flags.pop("model_file", flags.pop("model_proto", "")))
        if set(flags) - {"rule_name", "norm_map", *FLAGS} or arguments or "prefix" in model:
            raise NotHere("other rules")
        return Normalizer(since_0_2_3, **flags)
    if name == "len" and "on" not in node:
        return len(arguments[0])
    owner = evaluate(node["on"], test, since_0_2_3)
    if isinstance(owner, Processor):
        if name in ("unk_id", "bos_id", "eos_id", "pad_id"):
            return owner.special_id(name)
        if name in ("IdToPiece", "id_to_piece"):
            return owner.tok.id_to_token(*arguments)
    kinds = options.get("return_type", options.get("out_type"))
    if kinds is not None:
        kind = kinds.get("name") if isinstance(kinds, dict) else kinds
        if kind == "str" and name in ("encode", "Encode"):
            name = "EncodeAsPieces"
        elif kind not in ("int", "str"):
            raise NotHere(f"return type {kind}")
    if name not in METHODS:
        raise NotHere(name)
    allowed = {key: value for key, value in options.items() if key == "with_offsets"}
    if set(options) - {"with_offsets", "return_type", "out_type"}:
        raise NotHere(f"options {sorted(options)}")
    return getattr(owner, METHODS[name])(*arguments, **allowed)


#: Records that are not replayed, and why: matched against the test's name and what it did before.
BEFORE = {
    r'"[Tt]rain"|special_tokens|test_train|model_prefix|word_model': "trains a model",
    r"immutable_proto": "a return type of the reference's Python class",
    r"override_normalizer|SetEncodeExtra": "changes an object; jittok's never change",
}
#: The same for those that cannot be; matched against the expression too.
LEFT_OUT = {
    r"timeout": "a time limit of the reference's n-best search, which jittok's does not need",
    r"ThreadPool": "threads are an argument of encode_batch",
    r"pickle": "pickles a class of the reference",
    r"offset_mapping|[Pp]roto|bytes|return_type": "a return type of the reference's Python class",
    r"Decompile|normalizer_map|normalizer_spec|test_trainer_with": "rules given to a class of the reference",
    r"expr": "variables of the test",
    r"<unk>|emit_unk_piece": "unk_piece: jittok's tokens are what stands in the text",
    r"tuple|batch_piece_to_id": "lists of ids, which jittok looks up one by one",
}


def reason(reasons, *parts):
    text = json.dumps(parts)
    return next((why for pattern, why in reasons.items() if re.search(pattern, text)), None)


@pytest.mark.parametrize(
    "record", [case for version in VERSIONS for case in cases(f"sentencepiece_py{version}", lambda r: True)]
)
def test_python_class(record):
    why = reason(BEFORE, record["test"], record.get("setup_calls", []))
    if why is not None:
        pytest.skip(why)
    try:
        actual = evaluate(record["what"], record["test"], record["commit"] == "0.2.3")
    except NotHere as found:
        why = reason(LEFT_OUT, record["test"], record["what"])
        assert why is not None, f"neither replayed nor listed: {found}"
        pytest.skip(why)
    expected = record["expected"]
    assert (list(actual) if isinstance(actual, tuple) else actual) == expected
