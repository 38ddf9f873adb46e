import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok import errors
from jittok.kernels.utf8 import find_invalid_utf8
from jittok.text import SLACK, Texts, check_texts, text_from, texts_from

WORDS = ["", "abc", "naïve", "日本語", "🙂", "a\0b", "x" * 100]


def back(texts):
    bounds = texts.indptr.tolist()
    return [texts.data[p:q].tobytes() for p, q in zip(bounds, bounds[1:], strict=False)]


def python_finds(data):
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


# ------------------------------------------------------------------------------------------- the validator

INTERESTING = [
    0x00,
    0x41,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xEC,
    0xED,
]
INTERESTING += [0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


def test_validator_on_all_boundary_sequences():
    for a in INTERESTING:
        for b in INTERESTING:
            for rest in (b"", b"\x80", b"\xbf\x80", b"a", b"\x80\x80\x80", b"\x80\xc2"):
                data = bytes([a, b]) + rest
                assert find_invalid_utf8(np.frombuffer(data, np.uint8), 0, len(data)) == python_finds(data)


def test_validator_on_random_bytes():
    rng = random.Random(7)
    for _ in range(3000):
        parts = [rng.choice(WORDS).encode() for _ in range(rng.randrange(6))]
        if rng.random() < 0.7:
            parts.insert(rng.randrange(len(parts) + 1), bytes(rng.choices(INTERESTING, k=rng.randrange(1, 5))))
        filler = rng.choice([b"a", "é".encode(), "日".encode(), "🙂".encode()])
        data = filler * rng.choice([0, 1, 31, 32, 33, 64, 127, 128, 130]) + b"".join(parts)
        data += rng.choice([b"", b"a", filler]) * rng.choice([0, 1, 200])
        array = np.frombuffer(data, np.uint8)
        assert find_invalid_utf8(array, 0, len(data)) == python_finds(data), data
        if data:
            start, end = sorted([rng.randrange(len(data)), rng.randrange(len(data))])
            expected = python_finds(data[start:end])
            assert find_invalid_utf8(array, start, end) == (start + expected if expected >= 0 else -1)


# --------------------------------------------------------------------------------------------------- inputs


def test_every_form_gives_the_same():
    import pyarrow as pa

    expected = [word.encode() for word in WORDS]
    data = np.frombuffer(b"".join(expected), np.uint8)
    indptr = np.cumsum([0, *map(len, expected)])
    forms = [
        WORDS,
        tuple(WORDS),
        iter(WORDS),
        (word for word in WORDS),
        dict.fromkeys(WORDS).keys(),
        np.array(WORDS, dtype=object),
        expected,
        tuple(expected),
        [bytearray(word) for word in expected],
        [memoryview(word) for word in expected],
        (data, indptr),
        (data, indptr.astype(np.int32)),
        (data, indptr.astype(np.uint16)),
        pa.array(WORDS),
        pa.array(WORDS, pa.large_string()),
        pa.array(expected),
        pa.array(expected, pa.large_binary()),
        pa.array(["skipped", *WORDS])[1:],
        pa.chunked_array([WORDS[:2], WORDS[2:3], WORDS[3:]]),
        pa.chunked_array([pa.array(expected[:2]), pa.array(expected[2:])]),
        pa.chunked_array([pa.array(WORDS)]),
        pa.array(WORDS).dictionary_encode(),
        pa.array(WORDS, pa.string_view()),
        pa.array(expected, pa.binary_view()),
    ]
    for number, form in enumerate(forms):
        texts = texts_from(form)
        assert back(texts) == expected, number
        assert texts.data.dtype == np.uint8
        assert texts.indptr.dtype == np.int64
        assert not texts.data.flags.writeable
        assert not texts.indptr.flags.writeable
        assert texts.data.flags.c_contiguous
        if texts.has_slack:
            end = int(texts.indptr[-1])
            assert not texts.data[end:].any()
            assert len(texts.data) >= end + SLACK
    assert texts_from(texts) is texts


def test_numpy_string_arrays_and_series():
    assert back(texts_from(np.array(["a", "bc"]))) == [b"a", b"bc"]
    assert back(texts_from(np.array([b"a", b"bc"]))) == [b"a", b"bc"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert back(texts_from(pandas.Series(["a", "bc"], index=[5, 6]))) == [b"a", b"bc"]


def test_empty_batches():
    import pyarrow as pa

    for form in ([], (), iter(()), np.array([], dtype=object), pa.array([], pa.string()), pa.array([])):
        texts = texts_from(form)
        assert texts.indptr.tolist() == [0]
    assert back(texts_from((np.zeros(0, np.uint8), np.zeros(3, np.int64)))) == [b"", b""]
    assert back(texts_from(pa.chunked_array([], pa.string()))) == []


def test_arrow_and_pairs_are_not_copied():
    import pyarrow as pa

    data = np.frombuffer("naïve text".encode(), np.uint8)
    assert texts_from((data, np.array([0, 5]))).data.ctypes.data == data.ctypes.data
    column = pa.array(["abc", "def"])
    assert texts_from(column).data.ctypes.data == column.buffers()[2].address


def test_a_pair_may_begin_and_end_inside_the_data():
    data = np.frombuffer(b"\xffabcd\xff", np.uint8)
    assert back(texts_from((data, np.array([1, 3, 5])))) == [b"ab", b"cd"]


def test_single_texts():
    for form in ("naïve", "naïve".encode(), bytearray("naïve".encode()), memoryview("naïve".encode())):
        texts = text_from(form)
        assert isinstance(texts, Texts)
        assert back(texts) == ["naïve".encode()]
    assert back(text_from("")) == [b""]
    assert back(text_from("\0")) == [b"\0"]


# --------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (None, "None"),
        (5, "int"),
        ("one text", r"one str.*\[text\]"),
        (b"one text", "one bytes"),
        ({"a": 1}, "dict"),
        (["a", None], r"texts\[1\].*None"),
        (["a", "b", 3], r"texts\[2\].*int"),
        (["a", b"b"], r"texts\[1\].*bytes.*mixed"),
        ([b"a", "b"], r"texts\[1\].*str.*mixed"),
        ([None], r"texts\[0\].*None"),
        ([["a"]], r"texts\[0\].*list"),
        (np.array(["a", None], dtype=object), r"texts\[1\].*None"),
        (np.array([1, 2]), r"texts\[0\].*int"),
        (np.array([1.5, np.nan]), r"texts\[0\].*float"),
        ((np.zeros(3, np.int8), np.array([0, 3])), "uint8"),
        ((np.zeros(3, np.uint8), np.array([0.0, 3.0])), "indptr"),
    ],
)
def test_wrong_types(form, words):
    with pytest.raises(errors.ArgumentTypeError, match=words):
        texts_from(form)


@pytest.mark.parametrize(
    ("indptr", "words"),
    [([], "n . 1"), ([0, 2, 1], "falls from 2 to 1 at 2"), ([-1, 2], "-1"), ([0, 4], "4.*3 bytes")],
)
def test_bad_row_pointers(indptr, words):
    with pytest.raises(errors.ArgumentError, match=words):
        texts_from((np.zeros(3, np.uint8), np.array(indptr, dtype=np.int64)))


def test_unsigned_row_pointers_that_fall():
    with pytest.raises(errors.ArgumentError, match="falls"):
        texts_from((np.zeros(9, np.uint8), np.array([0, 5, 3], dtype=np.uint64)))


def test_arrow_refusals():
    import pyarrow as pa

    with pytest.raises(errors.ArgumentError, match=r"texts\[1\] is null"):
        texts_from(pa.array(["a", None]))
    with pytest.raises(errors.ArgumentError, match=r"texts\[2\] is null"):
        texts_from(pa.chunked_array([["a", "b"], [None, None]]))
    with pytest.raises(errors.ArgumentTypeError, match="int64"):
        texts_from(pa.array([1, 2]))
    with pytest.raises(errors.ArgumentTypeError, match="Table"):
        texts_from(pa.table({"text": ["a"]}))
    with pytest.raises(errors.ArgumentTypeError):
        texts_from(pa.scalar("a"))


def test_wrong_single_texts():
    for bad in (None, 5, ["a"], np.array("a")):
        with pytest.raises(errors.ArgumentTypeError):
            text_from(bad)
    for keyword in ({"errors": "ignore"}, {"surrogates": "pass"}):
        with pytest.raises(errors.ArgumentError):
            text_from("a", **keyword)
        with pytest.raises(errors.ArgumentError):
            texts_from(["a"], **keyword)


@pytest.mark.parametrize("padding", [0, 100_000])  # below and above the size where the kernel takes over
def test_invalid_utf8_names_text_and_byte(padding):
    good = "ä" * (padding // 2)
    with pytest.raises(errors.TextError, match=r"texts\[2\]: invalid UTF-8 at byte 2 \(0xFF"):
        texts_from([good.encode(), b"ok", b"ab\xffcd"])
    with pytest.raises(errors.TextError, match=r"texts\[1\]: invalid UTF-8 at byte 0"):
        texts_from([good.encode() + b"a", b"\x80"])
    # A character torn apart by a text boundary: the bytes as a whole are valid.
    with pytest.raises(errors.TextError, match=rf"texts\[0\]: invalid UTF-8 at byte {len(good.encode())} "):
        texts_from([good.encode() + b"\xe6\x97", b"\xa5"])
    with pytest.raises(errors.TextError, match=rf"text: invalid UTF-8 at byte {len(good.encode())} "):
        text_from(good.encode() + b"\xed\xa0\x80")
    data = np.frombuffer(good.encode() + b"\xe6\x97\xa5", np.uint8)
    with pytest.raises(errors.TextError, match=r"texts\[0\]"):
        texts_from((data, np.array([0, len(data) - 1, len(data)])))


@pytest.mark.parametrize("padding", [0, 100_000])
def test_replaced_invalid_utf8(padding):
    rng = random.Random(3)
    rows = [b"a" * padding] + [bytes(rng.choices(INTERESTING, k=rng.randrange(8))) for _ in range(200)]
    expected = [row.decode("utf-8", "replace").encode() for row in rows]
    assert back(texts_from(rows, errors="replace")) == expected
    assert back(text_from(rows[5], errors="replace")) == [expected[5]]


def test_surrogates():
    with pytest.raises(errors.TextError, match=r"texts\[1\]: lone surrogate U\+D800 at character 1"):
        texts_from(["a", "b\ud800"])
    with pytest.raises(errors.TextError, match=r"text: lone surrogate U\+DC01"):
        text_from("\udc01")
    pairs = ["\ud83d\ude42", "a\ud800b", "\udc00\ud800", "plain"]
    expected = ["🙂", "a\ufffdb", "\ufffd\ufffd", "plain"]
    assert back(texts_from(pairs, surrogates="replace")) == [text.encode() for text in expected]
    assert back(text_from(pairs[0], surrogates="replace")) == ["🙂".encode()]
    with pytest.raises(errors.ArgumentTypeError, match=r"texts\[1\]"):
        texts_from(["\ud800", 3])


def test_surrogates_as_tiktoken():
    import tiktoken

    encoding = tiktoken.Encoding(
        "bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={}
    )
    for text in ["\ud83d\ude42", "a\ud800b", "\udc00\ud800", "\ud800\ud83d\ude42x"]:
        assert bytes(encoding.encode(text)) == back(text_from(text, surrogates="replace"))[0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(), max_size=6))
def test_any_texts(rows):
    expected = [row.encode() for row in rows]
    assert back(texts_from(rows)) == expected
    assert back(texts_from(expected)) == expected
    assert back(texts_from(rows + ["\ud800"], surrogates="replace"))[:-1] == expected


def test_texts_checked_later_are_named_the_same():
    pair = np.frombuffer("fineé".encode() + b"bad \xfffine", np.uint8), np.array([0, 4, 6, 11, 15])
    later = texts_from(pair, check=False)
    assert not later.is_checked and texts_from(pair, check=False, errors="replace").is_checked
    check_texts(later._replace(indptr=later.indptr[:3]), 0)
    with pytest.raises(errors.TextError, match=r"texts\[12\]: invalid UTF-8 at byte 4"):
        check_texts(later._replace(indptr=later.indptr[1:]), 11)
