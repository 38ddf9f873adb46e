"""The kernels that users call from their own compiled functions."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok import kernels, spec
from jittok._jit import JIT_DISABLED
from jittok.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from jittok.kernels import EXTRA_ROOM, INVALID, NO_ROOM, TOO_LONG, decode_bytes, encode_codepoints
from jittok.tokenizer import Tokenizer

TEXTS = [
    "",
    "a",
    "To be, or not to be: that is the question.",
    "naïve café, Ελληνικά, русский, 中文分词、日本語 한국어 العربية 👩‍👩‍👧 e\u0301\n\n  \t x = 12345\r\n",
    "antidisestablishmentarianism" * 20,
    "\U0010ffff\x00\ud7ff\ue000",
    "ab " * 900 + "длинноеслово" * 300,
    "<|endoftext|>",
]


@pytest.fixture(scope="module")
def default():
    tok = jittok.load_default()
    tables = kernels.tables(tok)
    return tok, tables, kernels.new_workspace(tables, capacity=8000)


def codepoints_of(text):
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def encoded(tables, workspace, codepoints):
    out = np.full(4 * len(codepoints) + EXTRA_ROOM, -7, np.int32)
    n = encode_codepoints(tables, workspace, codepoints, 0, len(codepoints), out)
    return out[:n].tolist() if n >= 0 else n


@numba.njit
def count_in_windows(tables, workspace, codepoints, width, out, counts):
    """What a user may write: a loop of his own around the kernels."""
    n = 0
    for first in range(0, codepoints.size, width):
        last = min(first + width, codepoints.size)
        counts[n] = encode_codepoints(tables, workspace, codepoints, first, last, out)
        n += 1
    return n


@numba.njit
def there_and_back(tables, workspace, codepoints, ids, text):
    n = encode_codepoints(tables, workspace, codepoints, 0, codepoints.size, ids)
    return decode_bytes(tables, ids, 0, n, text)


@pytest.mark.parametrize("text", TEXTS)
def test_from_python(default, text):
    tok, tables, workspace = default
    ids = encoded(tables, workspace, codepoints_of(text))
    assert ids == tok.encode(text, special="text", add_special_tokens=False).ids.tolist()
    buffer = np.zeros(len(text.encode()), np.uint8)
    n = decode_bytes(tables, np.array(ids, np.int32), 0, len(ids), buffer)
    assert buffer[:n].tobytes() == text.encode()


def test_from_a_compiled_function(default):
    tok, tables, workspace = default
    text = "".join(TEXTS)
    codepoints = codepoints_of(text)
    out, counts = np.zeros(4 * 100 + EXTRA_ROOM, np.int32), np.zeros(len(text), np.int64)
    n = count_in_windows(tables, workspace, codepoints, 100, out, counts)
    windows = [text[i : i + 100] for i in range(0, len(text), 100)]
    assert counts[:n].tolist() == tok.count_batch(windows, special="text").tolist()
    ids, back = np.zeros(4 * len(text) + EXTRA_ROOM, np.int32), np.zeros(4 * len(text), np.uint8)
    size = there_and_back(tables, workspace, codepoints, ids, back)
    assert back[:size].tobytes() == text.encode()


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text(default, text):
    tok, tables, workspace = default
    assert encoded(tables, workspace, codepoints_of(text)) == tok.encode(text, special="text").ids.tolist()


def test_more_words_than_the_cache_holds(default):
    tok, tables, _ = default
    workspace = kernels.new_workspace(tables, capacity=1000, cache_bits=13)
    for number in range(75 if JIT_DISABLED else 300):  # a cache of this size forgets all after 4,096 words
        text = " ".join(f"w{number * 100 + i} {'x' * (i % 30)}{number}" for i in range(60))[:1000]
        assert encoded(tables, workspace, codepoints_of(text)) == tok.encode(text, special="text").ids.tolist()


def test_statuses(default):
    _, tables, workspace = default
    out = np.zeros(200, np.int32)
    text = codepoints_of("x" * 23)
    assert encode_codepoints(tables, workspace, text, 0, 23, out) > 0
    assert encode_codepoints(tables, workspace, text, 0, 23, out[: 4 * 23 + EXTRA_ROOM - 1]) == NO_ROOM
    assert encode_codepoints(tables, workspace, np.zeros(8001, np.uint32), 0, 8001, out) == TOO_LONG
    for codepoint in (0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF):
        assert encoded(tables, workspace, np.array([65, codepoint], np.uint32)) == INVALID
    for first, last in ((-1, 2), (2, 1), (0, 24)):
        assert encode_codepoints(tables, workspace, text, first, last, out) == INVALID
        assert decode_bytes(tables, out, first, 201 if last == 24 else last, np.zeros(9, np.uint8)) == INVALID
    ids = np.array(encoded(tables, workspace, text), np.int32)
    assert decode_bytes(tables, ids, 0, len(ids), np.zeros(22, np.uint8)) == NO_ROOM
    for wrong in (-1, 32_767, 2**31 - 1):  # 32,767 is the added token
        assert decode_bytes(tables, np.array([wrong], np.int32), 0, 1, np.zeros(9, np.uint8)) == INVALID


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64])
def test_numbers_that_are_no_codepoints(default, dtype):
    _, tables, workspace = default
    out = np.empty(100, np.int32)
    for number in (-1, -2, int(np.iinfo(np.int8).min)):
        codepoints = np.array([0x41, number & 0xFFFFFFFFFFFFFFFF if dtype == np.uint64 else number, 5], dtype)
        assert encode_codepoints(tables, workspace, codepoints, 0, 3, out) == INVALID


@pytest.mark.skipif(JIT_DISABLED, reason="NumPy itself refuses to write to them, and converts what is written")
def test_outputs_that_cannot_be_written(default):
    tok, tables, workspace = default
    codepoints = codepoints_of("to be")
    ids = tok.encode("to be", add_special_tokens=False).ids
    frozen = b"x" * 100
    for _ in range(2):
        with pytest.raises(ArgumentTypeError, match=r"out: expected a contiguous array of uint8 that can be written"):
            decode_bytes(tables, ids, 0, len(ids), np.frombuffer(frozen, np.uint8))
        read_only = np.empty(100, np.int32)
        read_only.flags.writeable = False
        others = np.empty(100, np.int64), np.empty(200, np.int32)[::2], np.empty((10, 10), np.int32), [0] * 100
        for wrong in (read_only, *others):
            with pytest.raises(ArgumentTypeError, match="out: expected"):
                encode_codepoints(tables, workspace, codepoints, 0, 5, wrong)
        out = np.empty(100, np.int32)
        n = encode_codepoints(tables, workspace, codepoints, 0, 5, out)
        assert out[:n].tolist() == ids.tolist()
    assert frozen == b"x" * 100


def test_ranges_beyond_64_bits(default):
    tok, tables, workspace = default
    text, out, data = codepoints_of("to be"), np.empty(100, np.int32), np.empty(100, np.uint8)
    ids = np.array(encoded(tables, workspace, text), np.int32)
    for number in (1 << 63, 1 << 64, (1 << 64) + 5, -(1 << 63) - 1, -(1 << 64), np.uint64((1 << 64) - 1)):
        for first, last, name in ((number, 5, "first"), (0, number, "last")):
            with pytest.raises(ArgumentError, match=f"{name}: expected a whole number of at most 64 bits, got one of 6"):
                encode_codepoints(tables, workspace, text, first, last, out)
            with pytest.raises(ArgumentError, match=f"{name}: expected a whole number of at most 64 bits, got one of 6"):
                decode_bytes(tables, ids, first, last, data)
    for number in ((1 << 63) - 1, -(1 << 63)):
        assert encode_codepoints(tables, workspace, text, 0, number, out) == INVALID
        assert encode_codepoints(tables, workspace, text, number, 5, out) == INVALID
        assert decode_bytes(tables, ids, 0, number, data) == INVALID
    for wrong in (1.0, "1", None):
        with pytest.raises(ArgumentTypeError, match=f"last: expected a whole number, got {type(wrong).__name__}"):
            encode_codepoints(tables, workspace, text, 0, wrong, out)
    assert out[: encode_codepoints(tables, workspace, text, np.uint64(0), np.int8(5), out)].tolist() == ids.tolist()


def test_arguments_by_name(default):
    _, tables, workspace = default
    text, out = codepoints_of("to be"), np.empty(100, np.int32)
    ids = encoded(tables, workspace, text)
    n = encode_codepoints(tables, workspace, text, out=out, last=5, first=0)
    assert out[:n].tolist() == ids
    takes = "encode_codepoints takes tables, workspace, codepoints, first, last, out"
    with pytest.raises(ArgumentTypeError, match=f"unexpected argument start=; {takes}"):
        encode_codepoints(tables, workspace, text, start=0, last=5, out=out)
    with pytest.raises(ArgumentTypeError, match=f"the argument tables is given twice; {takes}"):
        encode_codepoints(tables, workspace, text, 0, 5, tables=tables)
    with pytest.raises(ArgumentTypeError, match=f"missing argument: last, out; {takes}"):
        encode_codepoints(tables, workspace, text, 0)
    with pytest.raises(ArgumentTypeError, match="7 arguments are given; decode_bytes takes|7 arguments are given; encode"):
        encode_codepoints(tables, workspace, text, 0, 5, out, 1)


def test_a_range_is_a_text_of_its_own(default):
    tok, tables, workspace = default
    text = codepoints_of("one two three")
    out = np.zeros(4 * 13 + EXTRA_ROOM, np.int32)
    n = encode_codepoints(tables, workspace, text, 3, 7, out)
    assert out[:n].tolist() == tok.encode(" two").ids.tolist()
    assert encode_codepoints(tables, workspace, text, 5, 5, out) == 0


def test_refused_tokenizers():
    model = spec.BPEModel({letter: number for number, letter in enumerate("abc")}, ())
    normalising = Tokenizer(spec.TokenizerSpec(model, normalizers=(spec.UnicodeForm("NFC"),)))
    with pytest.raises(UnsupportedError, match="normalized=True"):
        kernels.tables(normalising)
    tables = kernels.tables(normalising, normalized=True)
    assert encoded(tables, kernels.new_workspace(tables, 100), codepoints_of("cab")) == [2, 0, 1]
    assert decode_bytes(tables, np.zeros(1, np.int32), 0, 1, np.zeros(9, np.uint8)) == INVALID
    several = Tokenizer(spec.TokenizerSpec(model, pre_tokenizers=(spec.Split("a"), spec.Split("b"))))
    with pytest.raises(UnsupportedError, match="2 steps"):
        kernels.tables(several)


@pytest.mark.parametrize("arguments", [{"capacity": 0}, {"cache_bits": 12}, {"cache_bits": 25}])
def test_wrong_workspaces(default, arguments):
    with pytest.raises(ArgumentError):
        kernels.new_workspace(default[1], **arguments)


def test_names():
    for name in kernels.__all__:
        assert getattr(kernels, name) is getattr(jittok.kernels.user, name)
    with pytest.raises(AttributeError):
        kernels.nothing  # noqa: B018
