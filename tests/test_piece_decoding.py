"""Ids and pieces of SentencePiece models back to text, against the reference library."""

from __future__ import annotations

import random

import pytest
from sentencepiece_files import FILES, read, reference, small_model

from jittok.errors import ArgumentTypeError, TokenIdError
from jittok.formats import sentencepiece_model
from jittok.piece_decoding import PieceDecoder, make_decoder
from jittok.spec import PieceType
from jittok.streaming import DecodeStream
from jittok.vocabulary import Vocabulary, build_vocabulary


def decoder_of(spec):
    return make_decoder(spec, Vocabulary(build_vocabulary(spec)))


def random_ids(model, count, source):
    """Rows of ids in which byte pieces, control pieces and blanks come often."""
    size = len(model.pieces)
    kinds = [list(range(size)), [i for i, piece in enumerate(model.pieces) if piece.startswith("\u2581")][:50]]
    kinds += [model.of_type(kind) for kind in (PieceType.BYTE, PieceType.CONTROL, PieceType.UNKNOWN)]
    kinds += [model.of_type(PieceType.BYTE), model.of_type(PieceType.USER_DEFINED)]
    kinds = [kind for kind in kinds if kind]
    rows = []
    for _ in range(count):
        row = [source.choice(source.choice(kinds)) for _ in range(source.choice([0, 1, 2, 3, 6, 20]))]
        if model.byte_fallback and source.random() < 0.4:
            encoded = "aé한\U0001f600".encode()[: source.randrange(8)]
            row = [model.pieces.index(f"<0x{byte:02X}>") for byte in encoded] + row
        rows.append(row)
    return rows


def check(spec, wanted, count):
    decoder = decoder_of(spec)
    assert isinstance(decoder, PieceDecoder)
    rows = random_ids(spec.model, count, random.Random(count))
    texts = [wanted.decode(row) for row in rows]
    assert [decoder.decode(row) for row in rows] == texts
    assert decoder.decode_batch(rows) == texts
    assert decoder.decode_batch(rows[:3]) == texts[:3]
    long = [number for row in rows for number in row]
    assert decoder.decode(long) == wanted.decode(long)
    for row, text in zip(rows, texts, strict=True):
        stream = DecodeStream(decoder)
        assert "".join([stream.push(number) for number in row] + [stream.finish()]) == text
        pieces = [spec.model.pieces[number] for number in row]
        pieces.insert(len(pieces) // 2, "\u2581none of \u2581 the pieces")
        assert decoder.decode_tokens(pieces) == wanted.decode(pieces)
        if text.isascii():
            assert decoder.decode_bytes(row) == text.encode()


@pytest.mark.parametrize("name", FILES)
def test_real_models(name):
    check(read(name), reference(name), 400)


PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("\u2581", -1.0, 1), ("\u2581a", -1.0, 1), ("a\u2581\u2581b", -1.0, 1)]
BYTES = [(f"<0x{value:02X}>", 0.0, 6) for value in range(256)]


@pytest.mark.parametrize("flags", range(4))
@pytest.mark.parametrize("surface", [" \u2047 ", "", "\u2581x"])
def test_small_models(flags, surface):
    data = small_model(
        [*PIECES, ("\u2581\u2581", -1.0, 1), ("\u2581ud\u2581", 0.0, 4), *BYTES],
        {"add_dummy_prefix": bool(flags & 1), "remove_extra_whitespaces": bool(flags & 2)},
        unk_surface=surface,
        byte_fallback=True,
    )
    spm = pytest.importorskip("sentencepiece")
    check(sentencepiece_model.read(data, "x"), spm.SentencePieceProcessor(model_proto=data), 300)


def test_without_an_unknown_piece():
    data = small_model([*PIECES[1:], *BYTES], byte_fallback=True)
    spm = pytest.importorskip("sentencepiece")
    check(sentencepiece_model.read(data, "x"), spm.SentencePieceProcessor(model_proto=data), 200)


def test_bytes_as_they_are():
    decoder = decoder_of(sentencepiece_model.read(small_model([*PIECES, *BYTES], byte_fallback=True), "x"))
    assert decoder.decode_bytes([3, 5 + 0xFF, 1, 5 + 0xC3, 5 + 0xA9]) == b"a\xff\xc3\xa9"
    assert decoder.decode([3, 5 + 0xFF, 1, 5 + 0xC3, 5 + 0xA9]) == "a\ufffdé"
    assert decoder.decode([5 + 0xC3, 1, 5 + 0xA9]) == "\ufffd\ufffd"
    assert decoder.decode_batch([[5 + 0xC3, 1, 5 + 0xA9]] * 300) == ["\ufffd\ufffd"] * 300
    stream = DecodeStream(decoder)
    assert [stream.push(number) for number in (5 + 0xC3, 5 + 0xA9, 5 + 0xC3, 3)] == ["", "é", "", "\ufffd a"]


def test_special_pieces_can_be_left_out():
    decoder = decoder_of(sentencepiece_model.read(small_model(PIECES), "x"))
    assert decoder.decode([0, 1, 3]) == " \u2047  a"
    assert decoder.decode([0, 1, 3], skip_special_tokens=True) == "a"


def test_wrong_arguments():
    decoder = decoder_of(sentencepiece_model.read(small_model(PIECES), "x"))
    for ids in ([99], [-1]):
        with pytest.raises(TokenIdError):
            decoder.decode(ids)
    for tokens in ("abc", [1], 5):
        with pytest.raises(ArgumentTypeError):
            decoder.decode_tokens(tokens)
    assert decoder.decode([]) == decoder.decode_tokens([]) == ""
