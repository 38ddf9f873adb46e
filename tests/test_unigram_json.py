"""Unigram models of tokenizer.json: reading as tokenizers does, and writing."""

from __future__ import annotations

import base64
import itertools
import json
import math
import random

import pytest
from sentencepiece_files import content

import jittok
from jittok import rewriting
from jittok.build.charsmap import compile_charsmap, named_charsmap
from jittok.errors import FormatError
from jittok.formats import tokenizer_json
from jittok.spec import DecodeMetaspace, Metaspace, TokenizerSpec, UnigramModel
from jittok.vocabulary import Vocabulary, build_vocabulary

VOCAB = [["<unk>", 0.0], ["a", -1.5], ["b", -2], ["c", -3.25]]


def document(model, **others):
    fields = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    fields |= {"pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model}
    return json.dumps(fields | others)


def tokenizer(text):
    return pytest.importorskip("tokenizers").Tokenizer.from_str(text)


def test_scores_are_read_as_the_reference_reads_them():
    source = random.Random(4)
    numbers = ["0", "-0.0", "5", "-7", "1e5", "-1.5E-3", "1e308", "4.9e-324", "2.2250738585072014e-308", "1e-400"]
    numbers += ["0.1e-307", "123456789012345678901234567890.5", "18446744073709551615.5", "18446744073709551616.5"]
    for _ in range(3000):
        digits = "".join(source.choice("0123456789") for _ in range(source.randrange(1, 25)))
        numbers.append(f"-{source.randrange(20)}.{digits}")
        numbers.append(repr(-source.random() * 10 ** source.randrange(-5, 3)))
    text = document({"type": "Unigram", "unk_id": 0, "vocab": [["x", 0.5]]})
    text = text.replace('["x", 0.5]', ", ".join(f'["{i}", {number}]' for i, number in enumerate(numbers)))
    # The reference writes the shortest number that is nearest to what it has.
    wanted = [float(score) for _, score in json.loads(tokenizer(text).to_str())["model"]["vocab"]]
    scores = tokenizer_json.read(text.encode(), "x").model.scores
    assert list(scores) == wanted
    assert [math.copysign(1, score) for score in scores] == [math.copysign(1, score) for score in wanted]
    assert sum(score != float(number) for score, number in zip(scores, numbers, strict=True)) > 100


@pytest.mark.parametrize("number", ["1e309", "-1e400", "1" + "0" * 400])
def test_scores_beyond_floats(number):
    text = document({"type": "Unigram", "unk_id": 0, "vocab": [["x", 0.5]]}).replace("0.5", number)
    with pytest.raises(Exception, match="number out of range"):
        tokenizer(text)
    with pytest.raises(FormatError, match=r"model\.vocab\[0\]"):
        tokenizer_json.read(text.encode(), "x")


@pytest.mark.parametrize(
    ("model", "unk_id", "size"),
    [
        ({"type": "Unigram", "unk_id": 0, "vocab": VOCAB, "byte_fallback": False}, 0, 4),
        ({"unk_id": 0, "vocab": VOCAB}, 0, 4),
        ({"type": "Unigram", "vocab": VOCAB, "other": 3}, None, 4),
        ({"type": "Unigram", "unk_id": None, "vocab": []}, None, 0),
        ({"type": "Unigram", "unk_id": 2, "vocab": [*VOCAB, ["a", -9], ["", -9]]}, 2, 6),
    ],
)
def test_models(model, unk_id, size):
    wanted = tokenizer(document(model))
    found = tokenizer_json.read(document(model).encode(), "x").model
    assert isinstance(found, UnigramModel)
    assert (found.unk_id, len(found.pieces), found.byte_fallback) == (unk_id, size, False)
    vocabulary = Vocabulary(build_vocabulary(tokenizer_json.read(document(model).encode(), "x")))
    for piece in set(found.pieces):
        assert vocabulary.token_to_id(piece) == wanted.token_to_id(piece)
    for number in range(size):
        assert vocabulary.id_to_token(number) == wanted.id_to_token(number)


@pytest.mark.parametrize(
    ("model", "place"),
    [
        ({"type": "Unigram", "unk_id": 0}, "model: the field 'vocab'"),
        ({"type": "Unigram", "unk_id": 0, "vocab": {"a": 1}}, "model.vocab"),
        ({"type": "Unigram", "unk_id": 0, "vocab": []}, "model.unk_id"),
        ({"type": "Unigram", "unk_id": 9, "vocab": VOCAB}, "model.unk_id"),
        ({"type": "Unigram", "unk_id": -1, "vocab": VOCAB}, "model.unk_id"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["a", -1, 3]]}, r"model.vocab\[0\]"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [*VOCAB, ["a"]]}, r"model.vocab\[4\]"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["a", "x"]]}, r"model.vocab\[0\]\[1\]"),
        ({"type": "Unigram", "unk_id": 0, "vocab": [[1, 1]]}, r"model.vocab\[0\]\[0\]"),
        ({"type": "Unigram", "unk_id": 0, "vocab": ["ab"]}, r"model.vocab\[0\]"),
        ({"type": "Unigram", "unk_id": 0, "vocab": VOCAB, "byte_fallback": None}, "model.byte_fallback"),
    ],
)
def test_models_that_are_refused(model, place):
    with pytest.raises(Exception, match=" at line "):
        tokenizer(document(model))
    with pytest.raises(FormatError, match=f"^x: {place}"):
        tokenizer_json.read(document(model).encode(), "x")


@pytest.mark.parametrize("charsmap", ["", "AAA", "AAAAAAAA", "!!", "/////w==", 5, None])
def test_charsmaps_that_are_refused(charsmap):
    normalizer = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    text = document({"type": "Unigram", "unk_id": 0, "vocab": VOCAB}, normalizer=normalizer)
    with pytest.raises(FormatError, match=r"^x: normalizer\.precompiled_charsmap"):
        tokenizer_json.read(text.encode(), "x")


@pytest.mark.parametrize("name", ["unigram/t5-small", "unigram/xlnet-base-cased", "unigram/nmt-joint"])
def test_files_are_written_as_they_are_read(name):
    spec = tokenizer_json.read(content(f"{name}/tokenizer.json"), name)
    assert isinstance(spec.model, UnigramModel)
    written = tokenizer_json.write(spec)
    assert tokenizer_json.read(written, "written") == spec
    # The scores that the reference has are the same to the last bit.
    theirs = json.loads(tokenizer(written.decode()).to_str())["model"]["vocab"]
    assert [score for _, score in theirs] == list(spec.model.scores)


def test_any_score_can_be_written():
    source = random.Random(8)
    scores = tuple(-source.random() * 10 ** source.randrange(-3, 2) for _ in range(3000)) + (0.0, 1e300, -5e-324)
    pieces = tuple(f'"vocab":[]{i}' for i in range(len(scores)))
    spec = TokenizerSpec(model=UnigramModel(pieces, scores, 0))
    found = tokenizer_json.read(tokenizer_json.write(spec), "x").model
    assert found.pieces == pieces
    differing = [(a, b) for a, b in zip(found.scores, scores, strict=True) if a != b]
    assert len(differing) < 20 and all(math.isclose(a, b, rel_tol=1e-15) for a, b in differing)


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@pytest.mark.parametrize("split", [True, False])
def test_metaspace_is_kept(scheme, split):
    block = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
    text = document(
        {"type": "Unigram", "unk_id": 0, "vocab": VOCAB}, pre_tokenizer=block, decoder=block, normalizer={"type": "Nmt"}
    )
    spec = tokenizer_json.read(text.encode(), "x")
    assert spec.pre_tokenizers == (Metaspace("\u2581", scheme, split),)
    assert spec.decoders == (DecodeMetaspace("\u2581", scheme),)
    assert tokenizer_json.read(tokenizer_json.write(spec), "x") == spec


# ------------------------------------------------------------------------------------- Metaspace in one pass

MARK = "\u2581"
PIECES = [["<unk>", 0.0], [MARK, -3.0], ["a", -4], ["b", -4.5]]
PIECES += [[MARK + "a", -3.5], ["ab", -5], [MARK + "ab", -5.2], ["e", -5]]
PIECES += [["\xe9", -6], [" ", -2], ["  ", -1], [MARK + MARK, -1.0]]
PIECES += [["a" + MARK, -1], ["\n", -6], ["</s>", -9], ["x", -7.5]]
BYTES = [[f"<0x{byte:02X}>", -9.0] for byte in range(256)]
MODELS = {
    "unigram": {"type": "Unigram", "unk_id": 0, "vocab": PIECES},
    "unigram with bytes": {"type": "Unigram", "unk_id": 0, "vocab": PIECES + BYTES, "byte_fallback": True},
    "unigram with the bytes of marks": {
        "type": "Unigram", "unk_id": 0, "vocab": [pair for pair in PIECES if MARK not in pair[0]] + BYTES,
        "byte_fallback": True,
    },
    "bpe": {
        "type": "BPE", "vocab": {piece: number for number, (piece, _) in enumerate(PIECES)}, "unk_token": "<unk>",
        "merges": [[MARK, "a"], ["a", "b"], [MARK + "a", "b"], [MARK, MARK], ["a", MARK], [" ", " "]], "fuse_unk": True,
    },
}  # fmt: skip
ADDED = [
    {"id": 14, "content": "</s>", "normalized": False, "special": True, "lstrip": False},
    {"id": 500, "content": "<x>", "normalized": False, "special": False, "lstrip": True},
    {"id": 501, "content": "ab b", "normalized": True, "special": False, "lstrip": False},
]
TEXT_PARTS = [" ", "  ", "\n", "\t", MARK, MARK + MARK, "a", "b", "ab"]
TEXT_PARTS += ["\xe9", "e\u0301", "\u0301", "\u200d", "\u0600", "\xa0"]
TEXT_PARTS += ["\u3000", "\x85", "\x1c", "\x00", "``", "`", "\u4e2d"]
TEXT_PARTS += ["\ufb01", "</s>", "<x>", "ab b", "\r\n", "\u200b", "xxx"]
TEXT_PARTS += ["\u2028", "\u2003", "\u1680", "\u205f", "\u2580", "\xc3", "x" * 70, "a " * 40]


def normalizers():
    charsmap = base64.b64encode(named_charsmap("nmt_nfkc")).decode()
    precompiled = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    blanks = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": MARK}
    quotes = {"type": "Replace", "pattern": {"String": "``"}, "content": '"'}
    yield None
    yield {"type": "Sequence", "normalizers": [precompiled, strip, blanks]}
    yield {"type": "Sequence", "normalizers": [quotes, {"type": "NFKD"}, {"type": "StripAccents"}, precompiled]}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("separates", [True, False])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_metaspace_in_one_pass(model, separates, scheme, monkeypatch):
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    source = random.Random(f"{model}{separates}{scheme}")
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": True}
    both = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
    for normalizer, added in itertools.product(normalizers(), ([], ADDED)):
        tokens = [{"single_word": False, "rstrip": False, **token} for token in added]
        text = document(
            MODELS[model], normalizer=normalizer, pre_tokenizer=both if separates else metaspace, added_tokens=tokens
        )
        theirs, ours = tokenizer(text), jittok.Tokenizer(tokenizer_json.read(text.encode(), "x"))
        takes_blanks = "bytes of marks" not in model and (scheme == "always" or not separates)
        assert (ours.plan.marks is not None) == takes_blanks or model == "bpe"
        texts = ["", " ", "   ", MARK, " " + MARK, MARK + " ", " a", "a ", " " * 200, MARK * 70, ("a " * 31 + MARK) * 9]
        lengths = [source.choice([1, 2, 3, 5, 9, 20]) for _ in range(40)]
        texts += ["".join(source.choice(TEXT_PARTS) for _ in range(length)) for length in lengths]
        if scheme == "first" and normalizer is not None:
            # What the reference takes for the beginning of a text depends on its offsets, which are not right where
            # a normalizer leaves out or replaces what it begins with.
            texts = ["a" + text for text in texts]
        encoded = [theirs.encode(text) for text in texts]
        # Without spans all is done in one pass, with spans step by step.
        for options in ({}, {"spans": True}):
            batch = ours.encode_batch(texts, **options)
            found = batch.to_lists()
            assert found == [encoding.ids for encoding in encoded]
        for text, encoding in zip(texts[:20], encoded, strict=False):
            assert list(ours.encode(text).word_ids) == encoding.word_ids, text


@pytest.mark.parametrize("name", ["unigram/t5-small", "unigram/xlnet-base-cased", "unigram/nmt-joint", "sp-bpe/barthez"])
def test_metaspace_of_real_files(name, monkeypatch):
    text = content(f"{name}/tokenizer.json").decode()
    theirs, ours = tokenizer(text), jittok.Tokenizer(tokenizer_json.read(text.encode(), name))
    assert ours.plan.marks is not None
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    source = random.Random(name)
    texts = ["".join(source.choice(TEXT_PARTS) for _ in range(source.choice([2, 5, 20]))) for _ in range(300)]
    # Two words more than a chunk of text has.
    texts.append("word \u2581\n" * 90_000 + "\xe9")
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert ours.encode_batch(texts, add_special_tokens=False).to_lists() == expected


# ----------------------------------------------------------------------------- steps that look at what others leave


def _replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def _itself(character):
    charsmap = base64.b64encode(compile_charsmap({character: character})).decode()
    return {"type": "Precompiled", "precompiled_charsmap": charsmap}


def _unigram(characters, **changes):
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
             "vocab": [["<unk>", 0.0], *([character, -1.0] for character in characters)]}  # fmt: skip
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([_replace("ab", "a"), _replace("ac", "y")], "abc"),
        ([_replace("ab", "a"), _replace("abb", "c")], "xabbbx"),
        ([_replace("ab", "xa"), _replace("ac", "y")], "abc"),
        ([{"type": "NFC"}, _replace("ab", "a"), _replace("ac", "c")], "abc"),
        ([_replace("ab", "xa"), _replace("ac", "y"), {"type": "NFC"}], "abc"),
        ([_replace("  ", " "), _replace("   ", "y")], "a      b    c"),
        ([_itself("a")], "a\u0316"),
        ([_itself("가")], "x가\u0316y"),
    ],
)
def test_steps_that_look_further_together(monkeypatch, steps, text):
    monkeypatch.setattr(rewriting, "LOCAL_BYTES", 0)
    block = _unigram("abcxy 가\u0316", normalizer={"type": "Sequence", "normalizers": steps})
    reference = tokenizer(json.dumps(block)).encode(text).ids
    tok = jittok.load_bytes(json.dumps(block).encode())
    for _ in range(2):
        assert [row.ids.tolist() for row in tok.encode_batch([text] * 3)] == [reference] * 3
        assert tok.count(text) == len(reference)
        assert tok.encode(text).ids.tolist() == reference


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@pytest.mark.parametrize("pieces", ["ab", "ab\u2581", "ab "])
def test_bytes_of_a_mark_that_is_no_piece(scheme, pieces):
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}
    block = _unigram(pieces, pre_tokenizer=metaspace)
    block["model"]["byte_fallback"] = True
    block["model"]["vocab"] += [[f"<0x{byte:02X}>", -9.0] for byte in range(256)]
    reference = tokenizer(json.dumps(block))
    tok = jittok.load_bytes(json.dumps(block).encode())
    for text in ("a b", " a", "a\u2581b \u0436", "  "):
        expected = reference.encode(text).ids
        assert tok.encode_batch([text, text])[1].ids.tolist() == expected
        assert tok.encode(text).ids.tolist() == expected
        assert tok.count(text) == len(expected)
