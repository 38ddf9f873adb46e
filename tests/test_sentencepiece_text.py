"""SentencePiece models on text that nobody means to write, and on bytes that are no text, against the reference."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sentencepiece_files import FILES, content, random_texts, reference

import jittok
from jittok._jit import JIT_DISABLED
from jittok.errors import TextError
from jittok.text import decoded_bytewise

#: Not Unicode at all, cut off, overlong, surrogates, too large; and what rules make something else of.
BYTES = [
    b"\xff", b"\xfe", b"\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98", b"a", b" ",
    b"  ", b"\0", b"<extra_id_0>", *(c.encode() for c in "éﬁ\ufffd中\u2581"),
]  # fmt: skip


@pytest.fixture(scope="module", params=FILES)
def both(request):
    """A tokenizer and the reference's, of one file."""
    return jittok.load_bytes(content(request.param)), reference(request.param)


def odd_texts(tok):
    pieces = [piece for piece, kind in zip(tok.spec.model.pieces, tok.spec.model.types, strict=True) if kind != 1]
    meta = [piece for piece in pieces if not piece.startswith("<0x")][:40]
    texts = ["", " ", "   ", "\u2581", "\u2581\u2581", " \u2581 ", "\t\n\r\x0b\x0c", "\0", "a\0b\0", "\u3000", "\ufeff"]
    texts += ["\u200b", "e" + "\u0301" * 40, "\u0301", "a\u0327\u0301\u0300", "\U0010ffff\ue000\ufdd0", "<0x41>", "<0x4"]
    texts += ["<unk><s></s>"]
    texts += ["a" * 3000, "é" * 1000, "\u2581" * 500, " " * 500, "ab" * 700, "\U0001f600" * 300, "中" * 1000, ".,;" * 300]
    texts += meta + [f"a{piece}b {piece}" for piece in meta] + ["".join(meta[:10])]
    return texts + random_texts(60, 30, seed=8)


def test_odd_texts(both):
    tok, processor = both
    texts = odd_texts(tok)
    expected = processor.encode(texts)
    assert tok.encode_batch(texts).to_lists() == expected
    assert tok.encode_batch(texts, spans=True).to_lists() == expected  # by another way through the engine
    assert [tok.encode(text).ids.tolist() for text in texts] == expected
    assert tok.count_batch(texts).tolist() == [len(ids) for ids in expected]
    assert tok.decode_batch(expected) == processor.decode(expected)
    assert [tok.normalize(text) for text in texts] == processor.normalize(texts)


def test_bytes_that_are_no_text(both):
    tok, processor = both
    source = random.Random(3)
    texts = [b"".join(source.choices(BYTES, k=source.randrange(14))) for _ in range(150)]
    protos = [processor.encode_as_proto(text) for text in texts]
    expected = [[piece.id for piece in proto.pieces] for proto in protos]
    assert [tok.encode(text, errors="replace").ids.tolist() for text in texts] == expected
    batch = tok.encode_batch(texts, spans=True, errors="replace")
    assert batch.to_lists() == tok.encode_batch(texts, errors="replace").to_lists() == expected
    assert [tok.count(text, errors="replace") for text in texts] == [len(ids) for ids in expected]
    data = np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])
    assert tok.encode_batch(data, errors="replace").to_lists() == expected
    words = tok.encode(texts[:20], is_split_into_words=True, errors="replace")
    assert words.ids.tolist() == [token for ids in expected[:20] for token in ids]
    for text, proto, enc in zip(texts, protos, batch, strict=True):
        # Spans count each such byte as a character.
        sizes = [1 if "\udc80" <= c <= "\udcff" else len(c.encode()) for c in text.decode("utf-8", "surrogateescape")]
        at = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        found = at[enc.spans].reshape(-1, 2).tolist()
        assert found == [[piece.begin, piece.end] for piece in proto.pieces]
        assert enc.surfaces == [decoded_bytewise(text)[a:b] for a, b in enc.spans.tolist()]
    for text in texts:
        if b"\xff" in text:
            with pytest.raises(TextError, match="invalid UTF-8"):
                tok.encode(text)


def test_lone_surrogates(both):
    tok, processor = both
    for text in ("\ud800", "a\udfff b"):
        with pytest.raises(TextError, match="lone surrogate"):
            tok.encode(text)
        with pytest.raises(Exception):  # noqa: B017  (a UnicodeEncodeError)
            processor.encode(text)
        expected = processor.encode(text.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd"))
        assert tok.encode(text, surrogates="replace").ids.tolist() == expected


@pytest.mark.skipif(JIT_DISABLED, reason="takes minutes as plain Python")
@pytest.mark.parametrize("character", ["a", "\u2581", " ", "\u0301", "中", "\0", "\U0001f600"])
@pytest.mark.parametrize("name", ["unigram/t5-nai/spiece.model", "sp-bpe/llama2/tokenizer.model"])
def test_a_million_bytes_of_one_character(name, character):
    tok, processor = jittok.load_bytes(content(name)), reference(name)
    text = character * (1_000_000 // len(character.encode()))
    assert tok.encode(text).ids.tolist() == processor.encode(text)
