"""The wrapper with the methods of SentencePieceProcessor, compared with sentencepiece."""

from __future__ import annotations

import copy
import math
import pickle
import random
from functools import cache

import numpy as np
import pytest
from sentencepiece_files import ATOMS, content, small_model

import jittok
from jittok import errors
from jittok.interop import sentencepiece as interop
from jittok.interop._sentencepiece_text import NBestSentencePieceText, SentencePieceText
from jittok.interop.sentencepiece import SentencePieceProcessor

spm = pytest.importorskip("sentencepiece")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
LETTERS = "▁ a b c e l o h w r d t . ▁a ab ▁hello ▁wor ld he llo ▁the th ▁t".split()
SPECIAL = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<x>", 0.0, USER_DEFINED)]
PIECES = [*SPECIAL, *((piece, -1.0 - number / 7, NORMAL) for number, piece in enumerate(LETTERS))]
BYTES = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
MADE = {
    "unigram": lambda: small_model(PIECES, model_type=1),
    "bpe": lambda: small_model(PIECES, model_type=2),
    "bytes": lambda: small_model([*PIECES, *BYTES], model_type=1, byte_fallback=True),
    "no ends": lambda: small_model([*SPECIAL[:1], *PIECES[3:], ("q", -9.0, UNUSED)], model_type=1, bos_id=-1, eos_id=-1),
}
REAL = ["sp-bpe/llama2/tokenizer.model", "unigram/t5-nai/spiece.model", "unigram/deberta-v3/spm.model"]
TEXTS = ["", "hello world", "  two  blanks ", "the <x> ab", "é", "藤 c", "a.b", "<s>", "q\n\t"]
KINDS = [int, str, bytes, "serialized_proto", "offset_mapping", "numpy"]


@cache
def pair_of(name):
    data = MADE[name]() if name in MADE else content(name)
    return spm.SentencePieceProcessor(model_proto=data), jittok.load_bytes(data, format="sentencepiece").as_sentencepiece()


def result_of(function):
    """What a call gives, or that it raises."""
    try:
        found = function()
    except Exception as error:
        return error
    if isinstance(found, np.ndarray):
        return found.tolist()
    return [one.tolist() if isinstance(one, np.ndarray) else one for one in found] if isinstance(found, list) else found


def same(call, name, label):
    library, ours = pair_of(name)
    expected, found = result_of(lambda: call(library)), result_of(lambda: call(ours))
    if isinstance(expected, Exception):
        # RuntimeError is what the library raises for whatever has no other class.
        kinds = (type(expected),) if type(expected) is not RuntimeError else (errors.JittokError,)
        assert isinstance(found, kinds), (name, label, expected, found)
        assert isinstance(found, errors.JittokError), (name, label, found)
    else:
        assert found == expected, (name, label)


def random_texts(count):
    rng = random.Random(5)
    return ["".join(rng.choice(ATOMS) for _ in range(rng.randrange(9))) for _ in range(count)]


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_encode(name):
    arguments = [{}, {"add_bos": True}, {"add_eos": True, "reverse": True}, {"emit_unk_piece": True}]
    for text in [*TEXTS, *random_texts(12)]:
        for given in (text, text.encode(), [text, "a"]):
            for kind in KINDS:
                for more in arguments:
                    same(lambda sp: sp.encode(given, return_type=kind, **more), name, (given, kind, more))  # noqa: B023
    for given in ([], ["a", b"b"], ("a",), 3, ["a", 3]):
        same(lambda sp: sp.encode(given), name, given)  # noqa: B023


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_decode(name):
    library, ours = pair_of(name)
    rng = random.Random(7)
    for text in [*TEXTS, *random_texts(6)]:
        ids = [rng.randrange(len(library)) for _ in range(rng.randrange(9))]
        pieces = [rng.choice([library.id_to_piece(number), "zz", "é"]) for number in ids]
        as_bytes = [piece.encode() for piece in pieces]
        own = library.encode(text)
        for given in (ids, own, pieces, as_bytes, tuple(pieces), [ids, own], [pieces, []], [[], pieces]):
            for kind in (str, bytes, "serialized_proto", "offset_mapping"):
                same(lambda sp: sp.decode(given, return_type=kind), name, (given, kind))  # noqa: B023
        assert ours.decode(np.array(ids, dtype=np.int64)) == library.decode(ids)
    for given in (None, "", [], [[]], 5, "a", b"a", [10**6], -1, [1.5], [["a"], [3]], ["a", 3], np.zeros((1, 1, 1), int)):
        same(lambda sp: sp.decode(given), name, given)  # noqa: B023


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_normalize(name):
    for text in [*TEXTS, "   ", *random_texts(12)]:
        for given in (text, text.encode(), [text, "a"]):
            for offsets in (False, True):
                same(lambda sp: sp.normalize(given, with_offsets=offsets), name, (given, offsets))  # noqa: B023


@pytest.mark.parametrize("name", [*MADE, *REAL])
def test_vocabulary(name):
    library, ours = pair_of(name)
    every = list(range(len(library)))
    assert len(ours) == len(library) == ours.GetPieceSize() == ours.vocab_size() == ours.piece_size()
    for method in ("id_to_piece", "get_score", "is_unknown", "is_control", "is_unused", "is_byte"):
        assert getattr(ours, method)(every) == getattr(library, method)(every), method
        assert getattr(ours, method)(np.array(every[:3])) == getattr(library, method)(every[:3])
        for given in (3, -1, len(library), [0, -1], "a", []):
            same(lambda sp: getattr(sp, method)(given), name, (method, given))  # noqa: B023
    for given in (library.id_to_piece(every), "nothing", b"a", ["a", b"b"], 3, ["a", 3], ()):
        same(lambda sp: sp.piece_to_id(given), name, given)  # noqa: B023
    assert [getattr(ours, f"{one}_id")() for one in ("unk", "bos", "eos", "pad")] == [
        getattr(library, f"{one}_id")() for one in ("unk", "bos", "eos", "pad")
    ]
    assert ours["a"] == library["a"] and ours.serialized_model_proto() == library.serialized_model_proto()


@pytest.mark.parametrize("name", ["unigram", "bytes", *REAL[1:]])
def test_n_best(name):
    for text in ["hello world the", "é ab", "", *random_texts(4)]:
        for kind in KINDS:
            for size in (-1, 1, 4, 600):
                same(lambda sp: sp.nbest_encode(text, nbest_size=size, return_type=kind), name, (text, kind, size))  # noqa: B023
    same(lambda sp: sp.nbest_encode(["ab", "the"], nbest_size=2, add_bos=True), name, "lists")
    same(lambda sp: sp.nbest_encode("ab", nbest_size=2, return_type="proto", add_bos=True), name, "proto")
    library, ours = pair_of(name)
    for method in ("nbest_encode_as_ids", "NBestEncodeAsPieces"):
        assert getattr(ours, method)("hello", 3) == getattr(library, method)("hello", 3)


def test_no_n_best():
    same(lambda sp: sp.nbest_encode("ab", nbest_size=2), "bpe", "bpe")


@pytest.mark.parametrize("name", ["unigram", "bpe", "bytes"])
def test_samples(name):
    library, ours = pair_of(name)
    text = "hello the world"
    for seed in (1, 2):
        interop.set_random_generator_seed(seed)
        first = [ours.sample_encode_as_ids(text, -1, 0.5) for _ in range(20)]
        interop.set_random_generator_seed(seed)
        assert [ours.SampleEncodeAsIds(text, -1, 0.5) for _ in range(20)] == first
        assert len(set(map(tuple, first))) > 3
        assert all(library.decode(ids) == text for ids in first)
    interop._seeds = None
    assert ours.decode(ours.encode(text, enable_sampling=True, nbest_size=8, alpha=0.3, return_type=str)) == text
    found = SentencePieceText.FromString(ours.encode(text, enable_sampling=True, return_type="serialized_proto"))
    assert found.text == text and "".join(piece.surface for piece in found.pieces) == text
    wrong = [{"nbest_size": 0}, {"nbest_size": 1}, {"alpha": -1.0}, {"alpha": math.inf}, {"nbest_size": 1000}]
    for more in wrong:
        if name != "bpe" or "nbest_size" not in more or more["nbest_size"] < 2:
            same(lambda sp: sp.encode(text, enable_sampling=True, **more), name, more)  # noqa: B023


def test_scored_samples_and_entropy():
    _, ours = pair_of("unigram")
    samples = ours.sample_encode_and_score("the ab", num_samples=5, alpha=0.7, out_type=str)
    assert len(samples) == 5 and all(abs(ours.tokenizer.score(pieces) - score) < 1e-4 for pieces, score in samples)
    assert len(ours.SampleEncodeAndScore(["a", "b"])) == 2
    assert ours.calculate_entropy("the ab", 0.7) == ours.tokenizer.entropy("the ab", alpha=0.7) > 0
    assert ours.CalculateEntropy(["a", "ab"], 1.0)[1] == ours.tokenizer.entropy("ab", alpha=1.0)
    with pytest.raises(errors.UnsupportedCallError):
        ours.sample_encode_and_score("a", wor=True)


def test_protos():
    for name in MADE:
        library, ours = pair_of(name)
        for text in TEXTS:
            proto = ours.encode_as_proto(text)
            assert isinstance(proto, SentencePieceText) and proto.SerializeToString() == library.encode_as_proto(
                text
            ).SerializeToString()
            plain = ours.encode_as_immutable_proto(text)
            assert plain.SerializeAsString() == ours.encode_as_serialized_proto(text) and plain.text == text
            assert [(p.piece, p.id, p.surface) for p in plain.pieces] == [(p.piece, p.id, p.surface) for p in proto.pieces]
            assert [(p.begin, p.end) for p in plain.pieces] == ours.encode_as_offset_mapping(text)["offsets"]
            assert hash(plain) == hash(ours.encode(text, out_type="immutable_proto"))
            ids = library.encode(text)
            assert ours.decode_ids_as_proto(ids).SerializeToString() == library.decode_ids_as_proto(ids).SerializeToString()
            assert ours.decode_ids_as_immutable_proto(ids).text == library.decode(ids)
    library, ours = pair_of("unigram")
    several = ours.nbest_encode_as_immutable_proto("the ab", 3)
    assert several.SerializeAsString() == library.nbest_encode("the ab", nbest_size=3, return_type="serialized_proto")
    assert [one.score for one in several.nbests] == sorted((one.score for one in several.nbests), reverse=True)
    assert isinstance(ours.nbest_encode_as_proto("ab", 2), NBestSentencePieceText)
    assert ours.decode_pieces_as_proto(["a", "zz"]).text == "azz"


def test_loading(tmp_path):
    data = MADE["unigram"]()
    path = tmp_path / "some.model"
    path.write_bytes(data)
    made = [
        SentencePieceProcessor(str(path)),
        SentencePieceProcessor(model_proto=data),
        SentencePieceProcessor.from_file(path),
        SentencePieceProcessor.from_proto(data),
    ]
    empty = SentencePieceProcessor(out_type=str)
    with pytest.raises(errors.UnsupportedCallError, match="Load"):
        empty.encode("a")
    assert empty.Load(str(path)) is True and empty.load(model_proto=data) is True and empty.encode("ab") == ["▁", "a", "b"]
    assert all(one.encode("hello") == made[0].encode("hello") == pair_of("unigram")[0].encode("hello") for one in made)
    for arguments in ({}, {"model_file": "x", "model_proto": b"y"}):
        with pytest.raises(errors.ArgumentError):
            empty.load(**arguments)
    with pytest.raises(errors.MissingFileError):
        empty.load(str(tmp_path / "none"))
    with pytest.raises(errors.FormatError):
        empty.load_from_serialized_proto(b"nonsense")
    with pytest.raises(errors.ArgumentTypeError):
        empty.load_from_serialized_proto("text")
    with pytest.raises(errors.ArgumentError):
        SentencePieceProcessor.from_file(path, model_proto=data)
    with pytest.raises(errors.UnsupportedError, match="SentencePiece models"):
        jittok.load_default().as_sentencepiece()


class WithMore(SentencePieceProcessor):
    def __init__(self, more, **options):
        super().__init__(**options)
        self.more = more


def test_options_and_copies():
    data = MADE["unigram"]()
    ours = jittok.load_bytes(data).as_sentencepiece(add_bos=True, add_eos=True, out_type=str)
    library = spm.SentencePieceProcessor(model_proto=data, add_bos=True, add_eos=True, out_type=str)
    assert ours.encode("ab") == library.encode("ab") == ["<s>", "▁", "a", "b", "</s>"]
    assert ours.encode("ab", add_eos=False) == library.encode("ab", add_eos=False)
    for copied in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        assert copied.encode("ab") == ours.encode("ab")
    more = pickle.loads(pickle.dumps(WithMore(3, model_proto=data, out_type=str)))
    assert more.more == 3 and more.encode("b") == ["▁", "b"]
    old = SentencePieceProcessor.__new__(SentencePieceProcessor)
    old.__setstate__(data)
    assert old.encode("ab") == pair_of("unigram")[0].encode("ab")
    for arguments in ({"return_type": int, "out_type": int}, {"return_type": "pt"}, {"return_bytes": True}):
        with pytest.raises(errors.ArgumentError):
            ours.encode("a", **arguments)
    with pytest.raises(errors.ArgumentError):
        ours.decode([1], return_type=int)
    with pytest.raises(errors.ArgumentTypeError):
        ours.encode("a", num_threads="x")


def test_parallel_and_threads():
    library, ours = pair_of("bpe")
    pool = spm.ThreadPool(3)
    for kind in (int, str, "serialized_proto"):
        expected = library.encode(["hello world", "the"], return_type=kind)
        assert ours.encode(["hello world", "the"], return_type=kind, num_threads=2) == expected
        assert ours.encode(["hello world", "the"], return_type=kind, thread_pool=pool) == expected
        assert ours.parallel_encode(["hello world", "the"], chunk_len=3, num_threads=2, return_type=kind) == expected
    for length in (0, None, "x"):
        with pytest.raises(errors.ArgumentError):
            ours.parallel_encode("a", chunk_len=length)
    assert ours.parallel_encode_as_pieces("ab", chunk_len=1) == ours.encode_as_pieces("ab")


def test_restricted_vocabulary(tmp_path):
    ours = jittok.load_bytes(MADE["bpe"]()).as_sentencepiece()
    before = ours.encode_as_pieces("hello")
    assert before == ["▁", "he", "l", "l", "o"] and ours.set_vocabulary(["llo"]) is True
    assert ours.encode_as_pieces("hello") == ["▁", "h", "e", "l", "l", "o"]
    assert ours.is_unused(ours.piece_to_id("he")) and not ours.is_unused(ours.piece_to_id("llo"))
    assert ours.ResetVocabulary() is True and ours.encode_as_pieces("hello") == before
    path = tmp_path / "vocabulary.txt"
    path.write_text("he\t5\n▁the\t2\nllo\n")
    assert ours.load_vocabulary(path, 3) is True
    assert not ours.is_unused(ours.piece_to_id("he")) and ours.is_unused(ours.piece_to_id("▁the"))
    path.write_text("he\tmany\n")
    with pytest.raises(errors.ArgumentError, match="line 1"):
        ours.load_vocabulary(path, 3)
    with pytest.raises(errors.MissingFileError):
        ours.load_vocabulary(tmp_path / "none", 3)


def test_both_spellings():
    for name in dir(spm.SentencePieceProcessor):
        if not name.startswith("_"):
            assert hasattr(SentencePieceProcessor, name), name
    assert SentencePieceProcessor.nbest_encode is SentencePieceProcessor.NBestEncode
