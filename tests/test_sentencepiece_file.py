"""SentencePiece model files: reading, writing, and what is refused, against the reference library."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_files import FILES, content, read, reference, small_model

import jittok
from jittok import spec
from jittok.errors import ArgumentError, FormatError, JittokError, TextError, UnknownFormatError, UnsupportedError
from jittok.formats import detect, sentencepiece_model
from jittok.spec import PieceType
from jittok.tokenizer import Tokenizer
from jittok.vocabulary import Vocabulary, build_vocabulary

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BASE = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("\u2581a", -1.5, NORMAL)]
BYTES = [(f"<0x{value:02X}>", 0.0, BYTE) for value in range(256)]


def processor(data):
    """The reference with this model, None where it refuses it."""
    spm = pytest.importorskip("sentencepiece")
    try:
        return spm.SentencePieceProcessor(model_proto=data)
    except RuntimeError:
        return None


@pytest.mark.parametrize("name", FILES)
def test_real_files(name):
    tokenizer, wanted = read(name), reference(name)
    model = tokenizer.model
    size = wanted.get_piece_size()
    ids = range(size)
    assert list(model.pieces) == [wanted.id_to_piece(i) for i in ids]
    assert list(model.scores) == [wanted.get_score(i) for i in ids]
    assert model.of_type(PieceType.CONTROL) == [i for i in ids if wanted.is_control(i)]
    assert model.of_type(PieceType.UNKNOWN) == [i for i in ids if wanted.is_unknown(i)]
    assert model.of_type(PieceType.UNUSED) == [i for i in ids if wanted.is_unused(i)]
    assert model.of_type(PieceType.BYTE) == [i for i in ids if wanted.is_byte(i)]
    special = (wanted.unk_id(), wanted.bos_id(), wanted.eos_id(), wanted.pad_id())
    assert (model.unk_id, model.bos_id, model.eos_id, model.pad_id) == special
    assert sentencepiece_model.write(tokenizer) == content(name)
    vocabulary = Vocabulary(build_vocabulary(tokenizer))
    for piece in [*model.pieces[::17], "no such piece", "<s>", "\u2581"]:
        found = vocabulary.token_to_id(piece)
        assert (wanted.unk_id() if found is None else found) == wanted.piece_to_id(piece)
    assert tokenizer.reference == "sentencepiece" and tokenizer.default_special == "text"


def test_facts_are_what_the_file_says():
    facts = sentencepiece_model.facts(read("unigram/nmt-joint/vocab.joint.spm").model)
    assert facts["trainer_spec"]["treat_whitespace_as_suffix"] is True
    assert facts["normalizer_spec"]["precompiled_charsmap"] == "27355 bytes"
    assert facts["denormalizer_spec"]["precompiled_charsmap"] == "14896 bytes"
    assert sentencepiece_model.facts(read("sp-bpe/llama2/tokenizer.model").model)["denormalizer_spec"] == {}


@pytest.mark.parametrize("name", FILES)
def test_padding(name):
    """The padding piece of the model is the one that rectangles are filled up with."""
    padding = reference(name).pad_id()
    batch = jittok.load_bytes(content(name)).encode_batch(["a b c d", "a"])
    if padding < 0:
        with pytest.raises(ArgumentError, match="names no padding token"):
            batch.pad()
    else:
        ids, mask = batch.pad()
        assert set(ids[~mask].tolist()) == {padding}


def test_lone_surrogates_are_not_normalized():
    tokenizer = jittok.load_bytes(content("unigram/t5-nai/spiece.model"))
    for use in (tokenizer.normalize, tokenizer.normalize_aligned, tokenizer.encode):
        with pytest.raises(TextError, match="lone surrogate U.D800 at character 1"):
            use("a\ud800b")
    assert tokenizer.normalize("a\ufffdb") == reference("unigram/t5-nai/spiece.model").normalize("a\ufffdb")


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word", "char"])
def test_kinds(kind):
    data = small_model(BASE, model_type=["unigram", "bpe", "word", "char"].index(kind) + 1)
    assert processor(data) is not None
    assert sentencepiece_model.read(data, "x").model.algorithm == kind


@pytest.mark.parametrize(
    ("pieces", "trainer", "problem"),
    [
        ([*BASE, ("", 0.0, NORMAL)], {}, r"pieces\[4\].*empty"),
        ([*BASE, ("\u2581a", -3.0, NORMAL)], {}, r"pieces\[4\].*the same piece as pieces\[3\]"),
        ([*BASE, ("<s>", 0.0, CONTROL)], {}, r"the same piece as pieces\[1\]"),
        ([*BASE, ("a\0b", 0.0, NORMAL)], {}, "NUL"),
        ([*BASE, ("\0", 0.0, USER_DEFINED)], {}, "NUL"),
        ([*BASE, ("x" * 8000, 0.0, NORMAL)], {}, "too long"),
        ([*BASE, ("\u2581" * 2667, 0.0, NORMAL)], {}, "too long"),
        ([*BASE, ("<u>", 0.0, UNKNOWN)], {}, "second unknown"),
        (BASE[1:], {}, "type unknown"),
        (BASE[:3], {}, "stands for text"),
        ([*BASE, ("<0x41>", 0.0, BYTE)], {}, "byte_fallback is false"),
        ([*BASE, *BYTES[:-1]], {"byte_fallback": True}, "<0xFF> is missing"),
        ([*BASE, *BYTES, ("<0xfg>", 0.0, BYTE)], {"byte_fallback": True}, "not a byte piece"),
        ([*BASE, *BYTES, ("<0xff>", 0.0, BYTE)], {"byte_fallback": True}, "not a byte piece"),
        ([*BASE, ("b", float("nan"), NORMAL)], {}, "nan"),
        ([*BASE, ("b", float("-inf"), NORMAL)], {}, "-inf"),
        ([], {"unk_surface": "?"}, "type unknown"),
    ],
)
def test_models_that_are_refused(pieces, trainer, problem):
    data = small_model(pieces, **trainer)
    assert processor(data) is None  # as the reference does
    with pytest.raises(FormatError, match=f"^model.bin: .*{problem}"):
        sentencepiece_model.read(data, "model.bin")


@pytest.mark.parametrize(
    ("pieces", "trainer"),
    [
        ([*BASE, ("x" * 7999, 0.0, NORMAL), ("\0", 0.0, UNUSED), ("\0", 0.0, UNUSED)], {}),
        ([*BASE, ("<s>", -3.0, NORMAL)], {}),  # the same string as a control piece
        ([*BASE[1:], *BYTES, ("\0", 0.0, NORMAL)], {"byte_fallback": True}),  # no unknown piece
        ([*BASE, ("[BOS]", 0.0, CONTROL)], {"bos_piece": "[BOS]", "eos_piece": "none", "pad_piece": "\u2581a"}),
        (BASE, {"unk_surface": "", "unk_piece": "", "bos_piece": ""}),
        ([*BASE, ("un", 0.0, UNUSED), ("ud", 0.0, USER_DEFINED)], {"unk_surface": "?"}),
    ],
)
def test_models_that_are_odd(pieces, trainer):
    data = small_model(pieces, **trainer)
    wanted = processor(data)
    model = sentencepiece_model.read(data, "model.bin").model
    special = (wanted.unk_id(), wanted.bos_id(), wanted.eos_id(), wanted.pad_id())
    assert (model.unk_id, model.bos_id, model.eos_id, model.pad_id) == special
    assert list(model.types) == [
        UNUSED if piece == "\0" and trainer.get("byte_fallback") else kind for piece, _, kind in pieces
    ]
    vocabulary = Vocabulary(build_vocabulary(sentencepiece_model.read(data, "model.bin")))
    for piece in {piece for piece, _, _ in pieces} - {"\0"}:
        assert vocabulary.token_to_id(piece) == wanted.piece_to_id(piece)


@pytest.mark.parametrize("kind", [1, 2])
def test_a_piece_that_is_a_nul_is_unused(kind):
    """Sentencepiece refuses such files; they exist, and with byte fallback it makes the piece an unused one, too."""
    data = small_model([*BASE, ("\0", -5.0, NORMAL)], model_type=kind)
    assert processor(data) is None
    tok = jittok.load_bytes(data)
    assert tok.spec.model.types[4] == UNUSED
    assert sentencepiece_model.write(tok.spec) == data
    assert tok.encode("a\0a").ids.tolist() == [3, 0]  # the unknown run is "\0a"
    assert tok.with_vocabulary(None).spec.model.types[4] == UNUSED


def test_pieces_of_bpe_share_one_set_of_strings():
    pieces = [*BASE, ("<s>", -3.0, NORMAL)]
    assert processor(small_model(pieces, model_type=2)) is None
    with pytest.raises(FormatError, match="the same piece"):
        sentencepiece_model.read(small_model(pieces, model_type=2), "x")


def test_pieces_that_are_not_utf_8():
    data = small_model([*BASE, ("zz", 0.0, NORMAL)]).replace(b"\x0a\x02zz", b"\x0a\x02\xff\xfe")
    with pytest.raises(FormatError, match=r"pieces\[4\].*UTF-8"):
        sentencepiece_model.read(data, "x")


def test_broken_charsmaps_are_named():
    data = small_model(BASE, {"precompiled_charsmap": b"\xff" * 50})
    assert processor(data) is None
    with pytest.raises(FormatError, match=r"normalizer_spec\.precompiled_charsmap"):
        sentencepiece_model.read(data, "x")


def test_fields_that_are_not_known_are_kept():
    pb = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model = pb.ModelProto.FromString(small_model(BASE, {"name": "x"}, unk_surface="?"))
    data = model.SerializeToString() + b"\x22\x03abc" + b"\xc2\x0c\x02hi"  # fields 4 and 200
    data = data.replace(b"\x1a\x03\x0a\x01x", b"\x1a\x07\x0a\x01x\xc0\x0c\x80\x01")  # field 200 of the normalizer
    tokenizer = sentencepiece_model.read(data, "x")
    assert tokenizer.model.messages.self_test_data == b"abc"
    assert sentencepiece_model.write(tokenizer) == data


def test_messages_in_several_parts_are_one():
    data = small_model(BASE) + b"\x12\x03\xe2\x02\x00" + b"\x12\x04\xe2\x02\x01?"  # trainer_spec.unk_surface, twice
    assert sentencepiece_model.read(data, "x").model.unk_surface == "?"


def test_only_models_of_the_kind_can_be_written():
    other = spec.TokenizerSpec(model=spec.RankModel({b"a": 0}))
    with pytest.raises(UnsupportedError, match="tokenizer.json"):
        sentencepiece_model.write(other)
    tokenizer = sentencepiece_model.read(small_model(BASE), "x")
    from dataclasses import replace

    with pytest.raises(UnsupportedError, match="<tool>"):
        sentencepiece_model.write(replace(tokenizer, added_tokens=(spec.AddedToken(9, "<tool>"),)))


def test_new_models():
    step = spec.SentencePieceNormalizer(add_dummy_prefix=False, treat_whitespace_as_suffix=True)
    pieces = [(piece, score, PieceType(kind)) for piece, score, kind in [*BASE, ("ud", 0.0, USER_DEFINED)]]
    made = sentencepiece_model.make_spec(
        "bpe", pieces, normalizer=step, normalizer_name="identity", trainer={"unk_surface": "?"}
    )
    data = sentencepiece_model.write(made)
    assert sentencepiece_model.read(data, "x") == made
    assert made.model.algorithm == "bpe" and made.normalizers[0].symbols == ("ud",)
    wanted = processor(data)
    assert [wanted.id_to_piece(i) for i in range(5)] == list(made.model.pieces)
    assert wanted.decode([0, 3]) == "? a"
    with pytest.raises(FormatError):
        sentencepiece_model.make_spec("bpe", pieces[1:])


# -------------------------------------------------------------------------------------------------------- detection


@pytest.mark.parametrize("name", FILES)
def test_content_is_recognised(name, tmp_path):
    path = tmp_path / "anything.bin"
    path.write_bytes(content(name))
    assert detect.detect_format(path) == "sentencepiece"
    assert detect.read_spec_bytes(content(name)) == read(name)


def test_small_models_are_recognised(tmp_path):
    for pieces in (BASE, [("x" * 300, -1.0, NORMAL)], [("a", 0.0, NORMAL)] * 20):
        assert detect.looks_like(small_model(pieces))
    for other in (b"\n\nsome text\n", b"\nabc", b"{}", b"\n\x01a\n\x01b", b"", b"\n", b"a\nb\n", b"GGUF" + bytes(90)):
        assert not detect.looks_like(other)
    # A name helps where the content does not.
    path = tmp_path / "x.model"
    path.write_bytes(b"\x08\xff\xff")
    with pytest.raises(FormatError, match="protobuf"):
        detect.read_spec(path)
    path = tmp_path / "x.bin"
    path.write_bytes(b"\x08\xff\xff")
    with pytest.raises(UnknownFormatError):
        detect.read_spec(path)


def test_directories(tmp_path):
    (tmp_path / "spm.spm").write_bytes(small_model(BASE))
    assert detect.read_spec(tmp_path).source_format == "sentencepiece"


def test_content_in_memory():
    assert detect.read_spec_bytes(small_model(BASE), format="sentencepiece").model.pieces[3] == "\u2581a"
    for data, error in ((b"", FormatError), (b"\xff\xfe", UnknownFormatError), (b"[PAD]\n[UNK]\n", UnsupportedError)):
        with pytest.raises(error):
            detect.read_spec_bytes(data)
    with pytest.raises(TypeError):
        detect.read_spec_bytes("text")


# ------------------------------------------------------------------------------------------------------------ fuzz


@pytest.mark.parametrize("data", [b"\0", b"abc", b"\n" * 100, b"\xff\xfe"])
def test_content_of_no_format(data):
    with pytest.raises(UnknownFormatError, match="not the content of a tokenizer file.* sentencepiece.* gguf"):
        jittok.load_bytes(data)


def try_to_read(data):
    """Read what may be broken: a tokenizer or one exception of jittok's; what the reference refuses is refused."""
    try:
        return sentencepiece_model.read(data, "the file")
    except JittokError as error:
        assert str(error).startswith("the file: ")
        return None


def test_truncated_files():
    data = content("unigram/seqio-test/sentencepiece.model")
    for size in [*range(600), *range(600, len(data), 9973)]:
        found = try_to_read(data[:size])
        if found is not None:
            assert processor(data[:size]) is not None
    assert try_to_read(b"") is None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_bit_flips(data):
    pieces = [*BASE, ("b", -2.0, NORMAL), ("ud", 0.0, USER_DEFINED)]
    blob = bytearray(small_model(pieces, {"add_dummy_prefix": True, "name": "x"}, unk_surface="?", model_type=1))
    for _ in range(data.draw(st.integers(1, 5))):
        blob[data.draw(st.integers(0, len(blob) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = try_to_read(bytes(blob))
    if found is None or "\0" in found.model.pieces:  # which the reference refuses
        return
    wanted = processor(bytes(blob))
    assert wanted is not None
    try:
        tok = Tokenizer(found)
    except UnsupportedError:  # scores of 1e30 and more
        assert max(map(abs, found.model.scores)) >= 1e30
        return
    texts = ["", " a b  ud", "\u2581a☃", "udud a"]
    assert tok.encode_batch(texts).to_lists() == wanted.encode(texts)
    assert [tok.encode(text).ids.tolist() for text in texts] == wanted.encode(texts)
    assert list(found.model.pieces) == [wanted.id_to_piece(i) for i in range(wanted.get_piece_size())]
    assert found.model.unk_id == wanted.unk_id()
    assert try_to_read(sentencepiece_model.write(found)) is not None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    try_to_read(data)
    detect.looks_like(data)


def test_huge_lengths():
    for data in (b"\x0a\xff\xff\xff\xff\x0f" + b"x" * 100, b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"\x0b" * 5000):
        assert try_to_read(data) is None


@pytest.mark.parametrize("seed", range(3))
def test_damaged_real_files(seed):
    source = random.Random(seed)
    data = bytearray(content("unigram/seqio-test/sentencepiece.model"))
    for _ in range(60):
        place = source.randrange(len(data)) if source.random() < 0.5 else source.randrange(700)
        before = data[place]
        data[place] = source.randrange(256)
        found = try_to_read(bytes(data))
        if found is not None and "\0" not in found.model.pieces:
            assert processor(bytes(data)) is not None
        if source.random() < 0.7:
            data[place] = before


# ------------------------------------------------------------------------------------------------------ jittok files


@pytest.mark.parametrize("name", ["unigram/seqio-test/sentencepiece.model", "unigram/nmt-joint/vocab.joint.spm"])
def test_specs_go_through_the_json_of_jittok_files(name):
    import json

    from jittok.formats import jittok_file

    tokenizer = read(name)
    arrays = {}
    jittok_file._add_model(arrays, tokenizer)
    stated = json.loads(json.dumps(jittok_file.plain(tokenizer)))
    model = jittok_file._stored_model(stated["model"], arrays, len(tokenizer.model.pieces), "x")
    assert jittok_file.restored(stated, {"model": model}) == tokenizer
    arrays["model.scores"] = arrays["model.scores"][1:]
    with pytest.raises(FormatError, match=r"model\.scores"):
        jittok_file._stored_model(stated["model"], arrays, len(tokenizer.model.pieces), "x")
